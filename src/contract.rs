//! A test that writes this crate's Lua-visible tables into `types.lua` (`make doc`) and fails when they differ.
//! The engine has its own for its tables.

use std::path::Path;

use contract::Classes;

use crate::errand::{Errand, Outcome};
use crate::mcp::{Listed, Overview, Place, Source};
use crate::past::{Cli, Hit, OnDisk, Past, Which};
use crate::processes::{Running, Size};
use crate::review::desk::{BufferEdit, FileView, HunkView, Lines, Select};
use crate::review::restore::{CheckpointView, FileState, PreviewView};
use crate::review::{Undone, UndoneFile};

const FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/lua/cursor_agent/bridge/types.lua"
);
const BEGIN: &str = "-- Written by `make doc` from the types of `src/`, as far as the next such line. Change those.\n";
const END: &str = "-- Written by `make doc` from the types of the engine";

/// Our type names and the names Lua uses for them.
const NAMES: &[(&str, &str)] = &[
    ("BufferEdit", "BufferEdit"),
    ("CheckpointView", "Checkpoint"),
    ("Cli", "past.Cli"),
    ("Errand", "Errand"),
    ("FileState", "CheckpointChange"),
    ("FileView", "ReviewFile"),
    ("Hit", "SearchHit"),
    ("HunkView", "ReviewHunk"),
    ("Lines", "ReviewLines"),
    ("Listed", "mcp.Server"),
    ("OnDisk", "past.OnDisk"),
    ("Outcome", "Outcome"),
    ("Overview", "mcp.Overview"),
    ("Past", "PastSession"),
    ("Place", "Where"),
    ("PreviewView", "CheckpointFile"),
    ("Running", "Running"),
    ("Select", "ReviewSelect"),
    ("Size", "Size"),
    ("Source", "mcp.File"),
    ("Undone", "Undone"),
    ("UndoneFile", "UndoneFile"),
    ("Which", "past.Which"),
];

#[test]
fn the_tables_lua_sees_are_those_of_the_types() {
    Classes::new(NAMES, &[])
        .from_lua::<Select>()
        .to_lua::<Lines>()
        .to_lua::<HunkView>()
        .to_lua::<FileView>()
        .to_lua::<Undone>()
        .to_lua::<UndoneFile>()
        .to_lua::<BufferEdit>()
        .to_lua::<CheckpointView>()
        .to_lua::<FileState>()
        .to_lua::<PreviewView>()
        .to_lua::<Past>()
        .from_lua::<Which>()
        .from_lua::<Cli>()
        .to_lua::<OnDisk>()
        .to_lua::<Hit>()
        .from_lua::<Errand>()
        .to_lua::<Outcome>()
        .to_lua::<Running>()
        .to_lua::<Size>()
        .from_lua::<Place>()
        .to_lua::<Overview>()
        .to_lua::<Source>()
        .to_lua::<Listed>()
        .check(Path::new(FILE), BEGIN, Some(END));
}
