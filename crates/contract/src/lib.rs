//! The tables Lua sees, as the classes of `lua/cursor_agent/bridge/types.lua`, from the JSON schemas of the Rust types they are
//! made of. For tests: one that finds a difference fails, and with `UPDATE` set writes the classes instead (`make doc`).

#![allow(clippy::expect_used, clippy::panic, reason = "it runs in tests only")]

use std::collections::BTreeSet;
use std::path::Path;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// The classes of one crate's types.
#[derive(Debug)]
pub struct Classes<'a> {
    /// What Lua calls a type: its name in Rust, then in Lua.
    names: &'a [(&'a str, &'a str)],
    /// Fields Lua adds itself, by class.
    extra: &'a [(&'a str, &'a str)],
    text: String,
}

impl<'a> Classes<'a> {
    /// None yet.
    pub fn new(names: &'a [(&'a str, &'a str)], extra: &'a [(&'a str, &'a str)]) -> Self {
        Self {
            names,
            extra,
            text: String::new(),
        }
    }

    /// Adds the class of a type that goes to Lua.
    #[must_use]
    pub fn to_lua<T: JsonSchema>(self) -> Self {
        self.add::<T>(SchemaSettings::draft2020_12().for_serialize())
    }

    /// Adds the class of a type that comes from Lua.
    #[must_use]
    pub fn from_lua<T: JsonSchema>(self) -> Self {
        self.add::<T>(SchemaSettings::draft2020_12().for_deserialize())
    }

    /// Compares the classes with what stands between two lines of a file, or to its end; with `UPDATE` set writes them there.
    pub fn check(&self, file: &Path, begin: &str, end: Option<&str>) {
        let whole = std::fs::read_to_string(file).expect("the file is there");
        let (before, rest) = whole.split_once(begin).expect("the line it begins with");
        let (written, after) = match end {
            Some(end) => {
                let at = rest.find(end).expect("the line it ends with");
                rest.split_at(at)
            }
            None => (rest, ""),
        };
        let gap = if after.is_empty() { "" } else { "\n" };
        let wanted = format!("{}{gap}", self.text);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(file, format!("{before}{begin}{wanted}{after}")).expect("it is written");
            return;
        }
        let mut lines = written.lines().zip(wanted.lines());
        if let Some((stands, should)) = lines.find(|(stands, should)| stands != should) {
            panic!("`make doc` writes it. There is:\n{stands}\nwhere the types say:\n{should}");
        }
        assert!(
            written == wanted,
            "`make doc` writes it: lines are missing or too many"
        );
    }

    fn add<T: JsonSchema>(mut self, settings: SchemaSettings) -> Self {
        let schema = settings.into_generator().into_root_schema_for::<T>();
        let schema = schema.as_value();
        let rust = T::schema_name();
        let name = self.lua_name(&rust).expect("a name in Lua").to_owned();
        let defs = schema.get("$defs").cloned().unwrap_or_default();
        self.text.push('\n');
        if let Some(about) = schema.get("description").and_then(Value::as_str) {
            self.text
                .push_str(&format!("---{}\n", about.replace('\n', " ")));
        }
        if let Some(words) = words(schema) {
            self.text
                .push_str(&format!("---@alias cursor_agent.{name} {words}\n"));
            return self;
        }
        let mut fields = fields_of(schema, &defs);
        if let Some(variants) = schema.get("oneOf").and_then(Value::as_array) {
            // The flattened enum stands first in the structs that have one, and so does its tag.
            fields.splice(0..0, self.of_variants(variants, &defs));
        }
        self.text
            .push_str(&format!("---@class (exact) cursor_agent.{name}\n"));
        for (field, of, required) in fields {
            let mut kind = self.lua_type(&of, &defs);
            if !required && !kind.ends_with('?') && kind != "any" {
                kind.push('?');
            }
            let about = of.get("description").and_then(Value::as_str);
            let about = about.filter(|about| !about.is_empty());
            let about = about.map(|about| format!(" {}", about.replace('\n', " ")));
            self.text.push_str(&format!(
                "---@field {field} {kind}{}\n",
                about.unwrap_or_default()
            ));
        }
        for (class, extra) in self.extra {
            if *class == name {
                self.text.push_str(extra);
            }
        }
        self
    }

    fn lua_name(&self, rust: &str) -> Option<&'a str> {
        let known = self.names.iter().find(|(name, _)| *name == rust);
        known.map(|(_, lua)| *lua)
    }

    /// The fields of an enum with a tag. One class has those of all variants, since the type checker cannot tell variants apart by
    /// a tag: what not all of them have may be missing, and says whose it is.
    fn of_variants(&self, variants: &[Value], defs: &Value) -> Vec<(String, Value, bool)> {
        let mut tag = (String::new(), BTreeSet::new());
        let mut all: Vec<(String, Vec<String>, Vec<Value>, bool)> = Vec::new();
        for variant in variants {
            let fields = fields_of(variant, defs);
            let mut kind = String::new();
            for (name, of, _) in &fields {
                if let Some(word) = of.get("const") {
                    kind = word.as_str().unwrap_or_default().to_owned();
                    tag.0.clone_from(name);
                    tag.1.insert(word.to_string());
                }
            }
            for (name, of, required) in fields {
                if name == tag.0 {
                    continue;
                }
                match all.iter_mut().find(|(known, ..)| *known == name) {
                    Some((_, kinds, types, always)) => {
                        kinds.push(kind.clone());
                        types.push(of);
                        *always &= required;
                    }
                    None => all.push((name, vec![kind.clone()], vec![of], required)),
                }
            }
        }
        let words: Vec<String> = tag.1.into_iter().collect();
        let mut fields = vec![(tag.0, json!({ "x-lua": words.join("|") }), true)];
        for (name, kinds, types, always) in all {
            let everywhere = kinds.len() == variants.len();
            let about = types[0].get("description").and_then(Value::as_str);
            let whose = (!everywhere).then(|| format!("({})", kinds.join(", ")));
            let about: Vec<&str> = whose.as_deref().into_iter().chain(about).collect();
            let always = always
                && types
                    .iter()
                    .all(|of| !self.lua_type(of, defs).ends_with('?'));
            let spelled = types.iter().map(|of| self.lua_type(of, defs));
            let spelled: BTreeSet<String> = spelled
                .map(|kind| kind.trim_end_matches('?').to_owned())
                .collect();
            let kind = if spelled.len() == 1 {
                spelled.into_iter().next().unwrap_or_default()
            } else {
                "any".to_owned()
            };
            let of = json!({ "x-lua": kind, "description": about.join(" ") });
            fields.push((name, of, everywhere && always));
        }
        fields
    }

    /// `defs` are the types it refers to.
    fn lua_type(&self, of: &Value, defs: &Value) -> String {
        if let Some(given) = of.get("x-lua").and_then(Value::as_str) {
            return given.to_owned();
        }
        if let Some(reference) = of.get("$ref").and_then(Value::as_str) {
            let rust = reference.rsplit('/').next().unwrap_or_default();
            if let Some(name) = self.lua_name(rust) {
                return format!("cursor_agent.{name}");
            }
            // The other numbers things go by are just numbers there.
            return defs
                .get(rust)
                .and_then(words)
                .unwrap_or_else(|| "integer".to_owned());
        }
        if let Some(words) = words(of) {
            return words;
        }
        if let Some(choices) = of.get("anyOf").and_then(Value::as_array) {
            let is_null = |choice: &&Value| choice.get("type") == Some(&Value::from("null"));
            let some: Vec<String> = choices
                .iter()
                .filter(|choice| !is_null(choice))
                .map(|choice| self.lua_type(choice, defs))
                .collect();
            let optional = choices.iter().any(|choice| is_null(&choice));
            return some.join("|") + if optional { "?" } else { "" };
        }
        let kind = match of.get("type") {
            Some(Value::String(kind)) => vec![kind.as_str()],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => return "any".to_owned(),
        };
        let optional = if kind.contains(&"null") { "?" } else { "" };
        let kind = kind.into_iter().find(|kind| *kind != "null");
        let shown = match kind {
            Some("string") => "string".to_owned(),
            Some("integer") => "integer".to_owned(),
            Some("number") => "number".to_owned(),
            Some("boolean") => "boolean".to_owned(),
            Some("array") => match of.get("prefixItems").and_then(Value::as_array) {
                Some(items) => {
                    let items = items.iter().enumerate();
                    let items: Vec<String> = items
                        .map(|(at, item)| format!("[{}]: {}", at + 1, self.lua_type(item, defs)))
                        .collect();
                    format!("{{ {} }}", items.join(", "))
                }
                None => format!(
                    "{}[]",
                    self.lua_type(of.get("items").unwrap_or(&Value::Null), defs)
                ),
            },
            Some("object") => format!(
                "table<string, {}>",
                self.lua_type(of.get("additionalProperties").unwrap_or(&Value::Null), defs)
            ),
            _ => "any".to_owned(),
        };
        shown + optional
    }
}

/// The fields of a struct, or of a variant.
fn fields_of(schema: &Value, defs: &Value) -> Vec<(String, Value, bool)> {
    let none = Map::new();
    let own = schema.get("properties").and_then(Value::as_object);
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let own = own.unwrap_or(&none).iter();
    let mut all: Vec<_> = own
        .map(|(name, of)| (name.clone(), of.clone(), required.contains(&name.as_str())))
        .collect();
    // What is flattened into it.
    let reference = schema.get("$ref").and_then(Value::as_str);
    let of = reference.and_then(|to| defs.get(to.rsplit('/').next()?));
    all.extend(of.into_iter().flat_map(|of| fields_of(of, defs)));
    all
}

/// An enum that is one of some words, as Lua spells it.
fn words(of: &Value) -> Option<String> {
    let all: Vec<&Value> = match (of.get("oneOf"), of.get("enum")) {
        (Some(Value::Array(variants)), _) => variants
            .iter()
            .flat_map(
                |variant| match (variant.get("const"), variant.get("enum")) {
                    (Some(word), _) => vec![Some(word)],
                    (_, Some(Value::Array(words))) => words.iter().map(Some).collect(),
                    _ => vec![None],
                },
            )
            .collect::<Option<_>>()?,
        (_, Some(Value::Array(words))) => words.iter().collect(),
        _ => return None,
    };
    let all: Vec<String> = all.into_iter().map(ToString::to_string).collect();
    Some(all.join("|"))
}

/// An enum whose known words an agent may add to, as Lua spells it.
pub fn open(names: &[&str]) -> String {
    let known: String = names.iter().map(|name| format!("\"{name}\"|")).collect();
    known + "string"
}
