//! The tables Lua sees, written into `lua/cursor_agent/bridge/types.lua` from the Rust types they are made of. `make doc`
//! writes them; without that, a difference fails.

#![allow(clippy::unwrap_used)]

mod functions;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::agents::cli_config::CliConfig;
use crate::agents::protocol_log::Row;
use crate::agents::sign_in::Given;
use crate::decide::decided::{Answered, Decided};
use crate::decide::decision::{Choice, PermissionOption, Phase, Plan, Question};
use crate::inbound::files::EditorReply;
use crate::policy::call::{Facts, McpTool};
use crate::policy::paths::Place;
use crate::screen::decision_view::DecisionView;
use crate::screen::drain::{Change, EditorRequest};
use crate::screen::entry_view::{ContentView, EntryView, ToolView};
use crate::screen::view::{CommandView, Named, OptionView, Queued, State, Status};
use crate::sessions::session::{Block, FileChange, PromptSpec, Usage};
use crate::sessions::todos::Todo;
use crate::tools::diff::Hunk;
use crate::tools::tool_call::{Image, Location, Task};

const FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../lua/cursor_agent/bridge/types.lua"
);
const BEGIN: &str =
    "-- Written by `make doc` from the Rust types, to the end of the file. Change those.\n";

/// What Lua calls a type of ours.
const NAMES: &[(&str, &str)] = &[
    ("Block", "Block"),
    ("Change", "Change"),
    ("Choice", "Choice"),
    ("CliConfig", "CliConfig"),
    ("CommandView", "SlashCommand"),
    ("ContentView", "ToolContent"),
    ("Answered", "Answered"),
    ("Decided", "Decided"),
    ("DecisionView", "Decision"),
    ("EditorReply", "EditorReply"),
    ("EditorRequest", "EditorRequest"),
    ("EntryView", "Entry"),
    ("Facts", "Facts"),
    ("FileChange", "FileChange"),
    ("Given", "SignIn"),
    ("Hunk", "Hunk"),
    ("Image", "Image"),
    ("Key", "Key"),
    ("Location", "Location"),
    ("Login", "Login"),
    ("McpTool", "McpTool"),
    ("Named", "Named"),
    ("OptionView", "ConfigOption"),
    ("PermissionOption", "PermissionOption"),
    ("Phase", "Phase"),
    ("Place", "Place"),
    ("Plan", "Plan"),
    ("PromptSpec", "PromptSpec"),
    ("Question", "Question"),
    ("Queued", "QueuedPrompt"),
    ("Row", "LogRow"),
    ("State", "State"),
    ("Status", "Status"),
    ("Task", "Task"),
    ("Todo", "Todo"),
    ("ToolView", "ToolCall"),
    ("Usage", "Usage"),
];

/// Fields Lua adds itself.
const EXTRA: &[(&str, &str)] = &[(
    "Entry",
    "---@field depth integer? how many tasks it stands below; set where it is drawn\n",
)];

#[test]
fn the_tables_lua_sees_are_those_of_the_types() {
    let mut classes = String::new();
    add::<State>(&mut classes, true);
    add::<Status>(&mut classes, true);
    add::<Named>(&mut classes, true);
    add::<OptionView>(&mut classes, true);
    add::<CommandView>(&mut classes, true);
    add::<Queued>(&mut classes, true);
    add::<Usage>(&mut classes, true);
    add::<crate::agents::agent::Login>(&mut classes, true);
    add::<Given>(&mut classes, true);
    add::<CliConfig>(&mut classes, true);
    add::<Todo>(&mut classes, true);
    add::<EntryView>(&mut classes, true);
    add::<Decided>(&mut classes, true);
    add::<Answered>(&mut classes, true);
    add::<ToolView>(&mut classes, true);
    add::<Location>(&mut classes, true);
    add::<Image>(&mut classes, true);
    add::<Task>(&mut classes, true);
    add::<ContentView>(&mut classes, true);
    add::<Hunk>(&mut classes, true);
    add::<DecisionView>(&mut classes, true);
    add::<PermissionOption>(&mut classes, true);
    add::<Question>(&mut classes, true);
    add::<Choice>(&mut classes, true);
    add::<Plan>(&mut classes, true);
    add::<Phase>(&mut classes, true);
    add::<Place>(&mut classes, true);
    add::<Facts>(&mut classes, true);
    add::<McpTool>(&mut classes, true);
    add::<FileChange>(&mut classes, true);
    add::<Row>(&mut classes, true);
    add::<Change>(&mut classes, true);
    add::<EditorRequest>(&mut classes, true);
    add::<EditorReply>(&mut classes, false);
    add::<PromptSpec>(&mut classes, false);
    add::<Block>(&mut classes, false);

    let file = std::fs::read_to_string(FILE).unwrap();
    let (by_hand, written) = file.split_once(BEGIN).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(FILE, format!("{by_hand}{BEGIN}{classes}")).unwrap();
        return;
    }
    assert_eq!(written, classes, "`make doc` writes it");
}

/// Adds the class of a type that goes to Lua, or comes from it.
fn add<T: JsonSchema>(classes: &mut String, to_lua: bool) {
    let settings = SchemaSettings::draft2020_12();
    let settings = if to_lua {
        settings.for_serialize()
    } else {
        settings.for_deserialize()
    };
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let schema = schema.as_value();
    let name = lua_name(&T::schema_name()).unwrap().to_owned();
    let defs = schema.get("$defs").cloned().unwrap_or_default();
    classes.push('\n');
    if let Some(about) = schema.get("description").and_then(Value::as_str) {
        classes.push_str(&format!("---{}\n", about.replace('\n', " ")));
    }
    if let Some(words) = words(schema) {
        classes.push_str(&format!("---@alias cursor_agent.{name} {words}\n"));
        return;
    }
    let mut fields = fields_of(schema, &defs);
    if let Some(variants) = schema.get("oneOf").and_then(Value::as_array) {
        // The flattened enum stands first in the structs that have one, and so does its tag.
        fields.splice(0..0, of_variants(variants, &defs));
    }
    classes.push_str(&format!("---@class (exact) cursor_agent.{name}\n"));
    for (field, of, required) in fields {
        let mut kind = lua_type(&of, &defs);
        if !required && !kind.ends_with('?') && kind != "any" {
            kind.push('?');
        }
        let about = of.get("description").and_then(Value::as_str);
        let about = about.filter(|about| !about.is_empty());
        let about = about.map(|about| format!(" {}", about.replace('\n', " ")));
        classes.push_str(&format!(
            "---@field {field} {kind}{}\n",
            about.unwrap_or_default()
        ));
    }
    for (class, extra) in EXTRA {
        if *class == name {
            classes.push_str(extra);
        }
    }
}

/// The fields of an enum with a tag. One class has those of all variants, since the type checker cannot tell variants apart by
/// a tag: what not all of them have may be missing, and says whose it is.
fn of_variants(variants: &[Value], defs: &Value) -> Vec<(String, Value, bool)> {
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
        let always = always && types.iter().all(|of| !lua_type(of, defs).ends_with('?'));
        let spelled = types.iter().map(|of| lua_type(of, defs));
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

fn lua_name(rust: &str) -> Option<&'static str> {
    let names: BTreeMap<&str, &str> = NAMES.iter().copied().collect();
    names.get(rust).copied()
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

/// `defs` are the types it refers to.
fn lua_type(of: &Value, defs: &Value) -> String {
    if let Some(given) = of.get("x-lua").and_then(Value::as_str) {
        return given.to_owned();
    }
    if let Some(reference) = of.get("$ref").and_then(Value::as_str) {
        let rust = reference.rsplit('/').next().unwrap_or_default();
        if let Some(name) = lua_name(rust) {
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
            .map(|choice| lua_type(choice, defs))
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
                    .map(|(at, item)| format!("[{}]: {}", at + 1, lua_type(item, defs)))
                    .collect();
                format!("{{ {} }}", items.join(", "))
            }
            None => format!(
                "{}[]",
                lua_type(of.get("items").unwrap_or(&Value::Null), defs)
            ),
        },
        Some("object") => format!(
            "table<string, {}>",
            lua_type(of.get("additionalProperties").unwrap_or(&Value::Null), defs)
        ),
        _ => "any".to_owned(),
    };
    shown + optional
}
