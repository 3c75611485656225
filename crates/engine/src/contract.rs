//! Writes the tables Lua sees into `lua/cursor_agent/bridge/types.lua` from their Rust types. `make doc` writes
//! them; otherwise a difference fails the test.

#![allow(clippy::unwrap_used)]

mod functions;

use std::path::Path;

use contract::Classes;
pub use contract::open;

use crate::agents::cli_config::CliConfig;
use crate::agents::protocol_log::Row;
use crate::agents::sign_in::Given;
use crate::decide::decided::{Answered, Decided};
use crate::decide::decision::{Choice, PermissionOption, Phase, Plan, Question};
use crate::inbound::files::EditorReply;
use crate::policy::call::McpTool;
use crate::policy::facts::Facts;
use crate::policy::paths::Place;
use crate::screen::decision_view::DecisionView;
use crate::screen::drain::{Change, EditorRequest};
use crate::screen::entry_view::{ContentView, EntryView, ToolView};
use crate::screen::view::{Capabilities, CommandView, Named, OptionView, Queued, State, Status};
use crate::sessions::attachments::Block;
use crate::sessions::session::{FileChange, PromptSpec, Usage};
use crate::sessions::todos::Todo;
use crate::tools::diff::Hunk;
use crate::tools::tool_call::{Image, Location, Task};

const FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../lua/cursor_agent/bridge/types.lua"
);
const BEGIN: &str = "-- Written by `make doc` from the types of the engine, to the end of the file. Change those.\n";

/// Our type names and the names Lua uses for them.
const NAMES: &[(&str, &str)] = &[
    ("Block", "Block"),
    ("Capabilities", "Capabilities"),
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
    Classes::new(NAMES, EXTRA)
        .to_lua::<State>()
        .to_lua::<Status>()
        .to_lua::<Capabilities>()
        .to_lua::<Named>()
        .to_lua::<OptionView>()
        .to_lua::<CommandView>()
        .to_lua::<Queued>()
        .to_lua::<Usage>()
        .to_lua::<crate::agents::agent::Login>()
        .to_lua::<Given>()
        .to_lua::<CliConfig>()
        .to_lua::<Todo>()
        .to_lua::<EntryView>()
        .to_lua::<Decided>()
        .to_lua::<Answered>()
        .to_lua::<ToolView>()
        .to_lua::<Location>()
        .to_lua::<Image>()
        .to_lua::<Task>()
        .to_lua::<ContentView>()
        .to_lua::<Hunk>()
        .to_lua::<DecisionView>()
        .to_lua::<PermissionOption>()
        .to_lua::<Question>()
        .to_lua::<Choice>()
        .to_lua::<Plan>()
        .to_lua::<Phase>()
        .to_lua::<Place>()
        .to_lua::<Facts>()
        .to_lua::<McpTool>()
        .to_lua::<FileChange>()
        .to_lua::<Row>()
        .to_lua::<Change>()
        .to_lua::<EditorRequest>()
        .from_lua::<EditorReply>()
        .from_lua::<PromptSpec>()
        .from_lua::<Block>()
        .check(Path::new(FILE), BEGIN, None);
}
