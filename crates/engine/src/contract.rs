//! The tables Lua sees, written into `lua/cursor_agent/bridge/types.lua` from the Rust types they are made of. `make doc`
//! writes them; without that, a difference fails.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::agents::cli_config::CliConfig;
use crate::agents::sign_in::Given;
use crate::agents::wire_log::Row;
use crate::decide::decision::{Choice, PermissionOption, Phase, Plan, Question};
use crate::inbound::serve::EditorReply;
use crate::policy::call::{Facts, McpTool};
use crate::policy::paths::Place;
use crate::screen::drain::{Change, EditorRequest};
use crate::screen::view::{
    CommandView, ContentView, DecisionView, EntryView, Named, OptionView, Queued, Status, ToolView,
};
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
    let mut fields: Vec<(String, Value, bool)> = Vec::new();
    match schema.get("oneOf").and_then(Value::as_array) {
        // One class for all variants: what only some of them have may be missing.
        Some(variants) => {
            let mut kinds = BTreeSet::new();
            for variant in variants {
                for (field, of, _) in fields_of(variant) {
                    if let Some(kind) = of.get("const") {
                        kinds.insert(kind.to_string());
                    } else if !fields.iter().any(|(known, ..)| *known == field) {
                        let all = variants.iter().all(|variant| {
                            let mut fields = fields_of(variant).into_iter();
                            fields.any(|(name, _, required)| name == field && required)
                        });
                        let same = variants
                            .iter()
                            .filter_map(|v| v.get("properties")?.get(&field));
                        let types: BTreeSet<String> = same.map(lua_type).collect();
                        let mut of = of;
                        if types.len() > 1 {
                            of = serde_json::json!({ "x-lua": "any", "description": of.get("description") });
                        }
                        fields.push((field, of, all));
                    }
                }
            }
            let kinds: Vec<String> = kinds.into_iter().collect();
            let kind = serde_json::json!({ "x-lua": kinds.join("|") });
            fields.insert(0, ("type".to_owned(), kind, true));
        }
        None => fields = fields_of(schema),
    }
    classes.push('\n');
    if let Some(about) = schema.get("description").and_then(Value::as_str) {
        classes.push_str(&format!("---{}\n", about.replace('\n', " ")));
    }
    classes.push_str(&format!("---@class (exact) cursor_agent.{name}\n"));
    for (field, of, required) in fields {
        let mut kind = lua_type(&of);
        if !required && !kind.ends_with('?') && kind != "any" {
            kind.push('?');
        }
        let about = of.get("description").and_then(Value::as_str);
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

fn fields_of(schema: &Value) -> Vec<(String, Value, bool)> {
    let none = Map::new();
    let all = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&none);
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    all.iter()
        .map(|(name, of)| (name.clone(), of.clone(), required.contains(&name.as_str())))
        .collect()
}

fn lua_name(rust: &str) -> Option<&'static str> {
    let names: BTreeMap<&str, &str> = NAMES.iter().copied().collect();
    names.get(rust).copied()
}

fn lua_type(of: &Value) -> String {
    if let Some(given) = of.get("x-lua").and_then(Value::as_str) {
        return given.to_owned();
    }
    if let Some(reference) = of.get("$ref").and_then(Value::as_str) {
        let rust = reference.rsplit('/').next().unwrap_or_default();
        // The other numbers things go by are just numbers there.
        return lua_name(rust).map_or_else(
            || "integer".to_owned(),
            |name| format!("cursor_agent.{name}"),
        );
    }
    if let Some(choices) = of.get("anyOf").and_then(Value::as_array) {
        let is_null = |choice: &&Value| choice.get("type") == Some(&Value::from("null"));
        let some: Vec<String> = choices
            .iter()
            .filter(|choice| !is_null(choice))
            .map(lua_type)
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
                    .map(|(at, item)| format!("[{}]: {}", at + 1, lua_type(item)))
                    .collect();
                format!("{{ {} }}", items.join(", "))
            }
            None => format!("{}[]", lua_type(of.get("items").unwrap_or(&Value::Null))),
        },
        Some("object") => format!(
            "table<string, {}>",
            lua_type(of.get("additionalProperties").unwrap_or(&Value::Null))
        ),
        _ => "any".to_owned(),
    };
    shown + optional
}
