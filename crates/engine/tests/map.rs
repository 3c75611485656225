//! The maps at the top of `src/lib.rs`, `crates/engine/src/lib.rs` and `lua/cursor_agent/init.lua` name every file, crate and
//! room there is, and nothing that is gone; so do those of the other crates.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The comment a file opens with.
fn map(path: &str, comment: &str) -> String {
    let text = std::fs::read_to_string(root().join(path)).unwrap();
    let lines = text.lines().take_while(|line| line.starts_with(comment));
    lines.collect::<Vec<_>>().join("\n")
}

/// The names in a directory that are kept in the repository, without their endings.
fn names(path: &str, ending: &str) -> BTreeSet<String> {
    let all = std::fs::read_dir(root().join(path)).unwrap();
    all.filter_map(|entry| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        match name.strip_suffix(ending) {
            Some(stem) => Some(stem.to_owned()),
            None => entry.path().is_dir().then_some(name),
        }
    })
    .collect()
}

fn assert_named(
    map: &str,
    names: impl IntoIterator<Item = String>,
    spelled: impl Fn(&str) -> Vec<String>,
) {
    let missing: Vec<String> = names
        .into_iter()
        .filter(|name| !spelled(name).iter().any(|word| map.contains(word)))
        .collect();
    assert!(missing.is_empty(), "not on the map: {missing:?}");
}

#[test]
fn every_file_of_the_engine_is_on_its_map() {
    let map = map("crates/engine/src/lib.rs", "//!");
    let rooms = names("crates/engine/src", ".rs");
    for room in rooms.clone() {
        let path = format!("crates/engine/src/{room}");
        if root().join(&path).is_dir() {
            let files = names(&path, ".rs").into_iter();
            let files = files.filter(|name| !matches!(name.as_str(), "mod" | "tests"));
            assert_named(&map, files, |name| vec![format!("`{name}.rs`")]);
        }
    }
    let files = rooms.into_iter().filter(|name| name != "lib");
    assert_named(&map, files, |name| {
        vec![format!("`{name}.rs`"), format!("[`{name}`]")]
    });
    let named = map.split('`').filter_map(|word| word.strip_suffix(".rs"));
    let there = |name: &str| {
        let mut dirs = names("crates/engine/src", ".rs").into_iter();
        let inside = |dir: &String| {
            root()
                .join(format!("crates/engine/src/{dir}/{name}.rs"))
                .exists()
        };
        root().join(format!("crates/engine/src/{name}.rs")).exists() || dirs.any(|dir| inside(&dir))
    };
    let gone: Vec<&str> = named.filter(|name| !there(name)).collect();
    assert!(gone.is_empty(), "on the map and gone: {gone:?}");
}

#[test]
fn every_module_and_crate_is_on_the_map_of_the_library() {
    let map = map("src/lib.rs", "//!");
    let files = names("src", ".rs").into_iter();
    let files = files.filter(|name| name != "lib" && !name.ends_with("_tests"));
    assert_named(&map, files, |name| vec![format!("`{name}`")]);
    assert_named(&map, names("crates", "/"), |name| {
        vec![format!("`crates/{name}`")]
    });
    let linked = map
        .split("[`")
        .skip(1)
        .filter_map(|rest| rest.split('`').next());
    let there = |name: &str| ["", "/mod"].map(|end| root().join(format!("src/{name}{end}.rs")));
    let gone = linked.filter(|name| !there(name).iter().any(|path| path.exists()));
    let gone: Vec<&str> = gone.collect();
    assert!(gone.is_empty(), "on the map and gone: {gone:?}");
}

/// What a directory of Rust opens with: its own file, or the one beside it that has its name.
fn map_of(dir: &str) -> String {
    let own = ["lib", "main", "mod"].map(|name| format!("{dir}/{name}.rs"));
    let beside = format!("{dir}.rs");
    let there = own
        .iter()
        .chain([&beside])
        .filter(|path| root().join(path).exists());
    there.map(|path| map(path, "//!")).collect()
}

/// The files of a directory, and of those in it, that no map names.
fn unmapped(dir: &str, maps: &str) -> Vec<String> {
    let maps = format!("{maps}{}", map_of(dir));
    let own = ["lib", "main", "mod", "tests", "bin"];
    let files = names(dir, ".rs").into_iter();
    let files = files.filter(|name| !own.contains(&name.as_str()) && !name.ends_with("_tests"));
    let mut missing = Vec::new();
    for name in files {
        let spelled = ["`", ".rs`", "::"].map(|end| format!("`{name}{end}"));
        if !spelled.iter().any(|word| maps.contains(word)) {
            missing.push(format!("{dir}/{name}"));
        }
        let room = format!("{dir}/{name}");
        if root().join(&room).is_dir() {
            missing.extend(unmapped(&room, &maps));
        }
    }
    missing
}

#[test]
fn every_file_is_on_the_map_of_its_crate_or_of_its_room() {
    let crates = names("crates", "/").into_iter();
    let programs = names("crates/cloud/src/bin", ".rs").into_iter();
    let dirs = crates
        .map(|name| format!("crates/{name}/src"))
        .chain(programs.map(|name| format!("crates/cloud/src/bin/{name}")))
        .chain(["src".to_owned()]);
    let missing: Vec<String> = dirs.flat_map(|dir| unmapped(&dir, "")).collect();
    assert!(missing.is_empty(), "not on a map: {missing:#?}");
}

#[test]
fn every_room_and_file_is_on_the_map_of_lua() {
    let map = map("lua/cursor_agent/init.lua", "--");
    let (top, rooms) = map.split_once("-- The rooms").unwrap();
    let mut missing = Vec::new();
    for name in names("lua/cursor_agent", ".lua") {
        if !root().join("lua/cursor_agent").join(&name).is_dir() {
            missing.extend((!top.contains(&format!("{name} "))).then_some(name));
            continue;
        }
        let entry = rooms.split_once(&format!("\n--   {name}/ "));
        let Some((_, entry)) = entry else {
            missing.push(name);
            continue;
        };
        // To the next room.
        let lines = entry.lines().enumerate();
        let lines = lines.take_while(|(at, line)| *at == 0 || line.starts_with("--      "));
        let entry: String = lines.map(|(_, line)| format!("{line} ")).collect();
        let words: BTreeSet<&str> = entry
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .collect();
        let files = names(&format!("lua/cursor_agent/{name}"), ".lua").into_iter();
        let files = files.filter(|file| file != "init" && !words.contains(file.as_str()));
        missing.extend(files.map(|file| format!("{name}/{file}")));
    }
    assert!(missing.is_empty(), "not on the map: {missing:#?}");
}
