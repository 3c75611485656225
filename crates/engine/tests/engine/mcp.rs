//! MCP servers a session is given: by transport, once each, and never what Cursor reads itself.

use acp::types::McpServer;
use engine::effect::Effect;
use engine::ids::{Key, Proc};
use engine::sessions::mcp::{Choice, Read, ServersWanted};
use engine::sessions::session::Wanted;
use serde_json::{Value, json};

use crate::kit::{Profile, World};

fn server(value: Value) -> McpServer {
    acp::FromValue::from_value(value).unwrap()
}

fn stdio(name: &str, command: &str) -> McpServer {
    server(json!({ "name": name, "command": command }))
}

fn wanted(files: Choice, servers: Vec<McpServer>) -> Wanted {
    Wanted {
        mcp_files: files,
        mcp_servers: servers,
        ..Wanted::default()
    }
}

/// What the engine wants to be read.
fn asked(world: &mut World) -> Option<(Key, Proc, ServersWanted)> {
    let at = world
        .effects
        .iter()
        .position(|effect| matches!(effect, Effect::ReadMcp { .. }))?;
    match world.effects.remove(at) {
        Effect::ReadMcp { key, proc, wanted } => Some((key, proc, *wanted)),
        _ => None,
    }
}

fn given(world: &World, method: &str) -> Vec<String> {
    let params = world.all_sent(method).pop().unwrap();
    let servers = params["mcpServers"].as_array().unwrap().iter();
    servers
        .map(|server| {
            let what = server["command"].as_str().or(server["url"].as_str());
            format!("{} {}", server["name"].as_str().unwrap(), what.unwrap())
        })
        .collect()
}

#[test]
fn servers_of_the_files_are_given_after_they_were_read() {
    let mut world = World::new(Some(Profile::bare()));
    let key = world.open(wanted(Choice::All, vec![stdio("git", "mine")]));
    assert!(world.all_sent("session/new").is_empty());
    let (of, proc, request) = asked(&mut world).unwrap();
    assert_eq!((of, request.choice), (key, Choice::All));
    assert_eq!(request.cwd, "/project");
    let read = Read {
        servers: vec![
            stdio("git", "theirs"),
            stdio("more", "x"),
            server(json!({ "type": "http", "name": "web", "url": "http://x" })),
        ],
        names: ["git", "more", "web"].map(str::to_owned).to_vec(),
        of_project: vec!["more".to_owned()],
        left_out: vec!["`bad`: ~/.cursor/mcp.json:3: the variable NO is not set".to_owned()],
        secrets: vec!["hunter2hunter2".to_owned()],
    };
    world.act(|engine| engine.on_mcp(key, proc, read.clone()));
    assert_eq!(given(&world, "session/new"), ["git mine", "more x"]);
    let said = world.texts(key).join("\n");
    assert!(said.contains("`web` (http)"), "{said}");
    assert!(said.contains("~/.cursor/mcp.json:3: the variable NO is not set"));
    assert!(said.contains("of this project passed to the agent: more"));
    // A second answer makes no second session.
    world.act(|engine| engine.on_mcp(key, proc, read));
    assert_eq!(world.all_sent("session/new").len(), 1);
    assert_eq!(world.state(key), "idle");
}

#[test]
fn a_session_that_is_loaded_gets_them_too() {
    let mut world = World::new(Some(Profile::plain()));
    let key = world.open(Wanted {
        load: Some("old".to_owned()),
        ..wanted(Choice::Names(vec!["git".to_owned()]), Vec::new())
    });
    let (_, proc, request) = asked(&mut world).unwrap();
    assert_eq!(request.choice, Choice::Names(vec!["git".to_owned()]));
    let read = Read {
        servers: vec![stdio("git", "x")],
        ..Read::default()
    };
    world.act(|engine| engine.on_mcp(key, proc, read));
    assert_eq!(given(&world, "session/load"), ["git x"]);
}

#[test]
fn cursor_is_never_given_what_it_reads_itself() {
    // Nothing of ours: nothing is read.
    let mut world = World::new(Some(Profile::cursor()));
    world.open(wanted(Choice::All, Vec::new()));
    assert!(asked(&mut world).is_none());
    assert_eq!(given(&world, "session/new"), Vec::<String>::new());

    let mut world = World::new(Some(Profile::cursor()));
    let key = world.open(wanted(
        Choice::All,
        vec![stdio("git", "x"), stdio("own", "y")],
    ));
    let (_, proc, request) = asked(&mut world).unwrap();
    assert_eq!(request.choice, Choice::None);
    let read = Read {
        names: vec!["git".to_owned()],
        ..Read::default()
    };
    world.act(|engine| engine.on_mcp(key, proc, read));
    assert_eq!(given(&world, "session/new"), ["own y"]);
    assert!(world.texts(key)[0].contains("`git` from its mcp.json"));
}

#[test]
fn what_was_read_for_a_process_that_is_gone_starts_nothing() {
    let mut world = World::new(Some(Profile::plain()));
    let key = world.open(wanted(Choice::All, Vec::new()));
    let (_, old, _) = asked(&mut world).unwrap();
    world.act(|engine| engine.restart(key)).unwrap();
    world.act(|engine| engine.on_mcp(key, old, Read::default()));
    assert!(world.all_sent("session/new").is_empty());
    let (_, proc, _) = asked(&mut world).unwrap();
    assert_ne!(proc, old);
    world.act(|engine| engine.on_mcp(key, proc, Read::default()));
    assert_eq!(world.all_sent("session/new").len(), 1);
    assert_eq!(world.state(key), "idle");
}
