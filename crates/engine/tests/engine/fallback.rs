//! Cursor's CLI without `acp`: its headless mode takes over, and a notice says so once.

use engine::agents::agent::AgentSpec;
use engine::ids::Key;
use engine::sessions::session::Wanted;
use serde_json::json;

use crate::kit::{Profile, World};

fn spec(cwd: &str) -> AgentSpec {
    AgentSpec {
        cwd: cwd.to_owned(),
        fallback: vec!["cursor-agent-acp".to_owned()],
        ..Profile::cursor().spec
    }
}

fn open(world: &mut World, spec: AgentSpec) -> Key {
    world
        .act(|engine| engine.open(spec, Wanted::default()))
        .unwrap()
}

fn command(world: &World) -> String {
    world.wire(world.proc()).launch.command.join(" ")
}

/// Answers up to the session.
fn answer(world: &mut World) {
    let request = world.take("initialize");
    world.reply(&request, Profile::cursor().initialize);
    let request = world.take("session/new");
    world.reply(&request, json!({ "sessionId": "s-1" }));
}

fn notices(world: &World, key: Key) -> usize {
    let said = |text: &String| text.contains("headless mode is used");
    world.texts(key).iter().filter(|text| said(text)).count()
}

#[test]
fn a_cli_without_acp_is_driven_headless() {
    let mut world = World::new(None);
    let key = open(&mut world, spec("/project"));
    world.queue(key, "hello");
    assert_eq!(command(&world), "agent acp");
    world.exit(world.proc(), 1, &["error: unknown command 'acp'"]);
    assert_eq!(command(&world), "cursor-agent-acp");
    assert_eq!(world.state(key), "starting");
    let told = world.last_told();
    for part in [
        "has no `acp`",
        "`agent acp`: exit 1",
        "headless",
        ":help cursor-agent-headless",
    ] {
        assert!(told.contains(part), "{told}");
    }
    assert_eq!(notices(&world, key), 1);
    answer(&mut world);
    // What was queued meanwhile is sent, and nothing of it all is an error.
    let prompt = world.take("session/prompt");
    world.end_turn(&prompt, "end_turn");
    assert_eq!(world.state(key), "idle");
    assert_eq!(world.status(key)["backend"], "headless");
    assert!(!world.event_names().contains(&"CursorAgentExit"));
}

#[test]
fn it_is_said_once_and_known_from_then_on() {
    let mut world = World::new(None);
    let first = open(&mut world, spec("/project"));
    world.exit(world.proc(), 0, &[]);
    answer(&mut world);
    let second = open(&mut world, spec("/elsewhere"));
    assert_eq!(command(&world), "cursor-agent-acp");
    answer(&mut world);
    assert_eq!((notices(&world, first), notices(&world, second)), (1, 0));
    // It dies: started again, it stays with what works.
    world.exit(world.proc(), 1, &["error: unknown command 'acp'"]);
    assert_eq!(world.state(second), "failed");
    // Whoever restarts may have updated the CLI.
    world.act(|engine| engine.restart(second)).unwrap();
    assert_eq!(command(&world), "agent acp");
    let request = world.take("initialize");
    world.reply(&request, Profile::cursor().initialize);
    let request = world.take("session/load");
    world.reply(&request, json!({}));
    assert!(world.status(second).get("backend").is_none());
}

#[test]
fn one_that_never_answers_is_given_up() {
    let mut world = World::new(None);
    let key = open(&mut world, spec("/project"));
    let old = world.proc();
    world.advance(19_000);
    assert_eq!(world.proc(), old);
    world.advance(2_000);
    assert_ne!(world.proc(), old);
    assert_eq!(command(&world), "cursor-agent-acp");
    assert!(world.last_told().contains("no answer for 20 s"));
    answer(&mut world);
    assert_eq!(world.state(key), "idle");
    // Its own silence is reported as usual.
    let mut world = World::new(None);
    open(&mut world, spec("/project"));
    world.exit(world.proc(), 0, &[]);
    world.advance(21_000);
    assert_eq!(command(&world), "cursor-agent-acp");
    assert!(world.last_told().contains("has not answered"));
}

#[test]
fn other_failures_stay_what_they_are() {
    // A crash, an agent without another command, one that had answered.
    let mut world = World::new(None);
    let key = open(&mut world, spec("/project"));
    world.exit(world.proc(), 1, &["Cannot use this model: x"]);
    assert_eq!(world.state(key), "failed");
    assert!(world.last_told().contains("Cannot use this model: x"));

    let mut world = World::new(None);
    let key = open(&mut world, Profile::cursor().spec);
    world.exit(world.proc(), 1, &["error: unknown command 'acp'"]);
    assert_eq!(world.state(key), "failed");

    let mut world = World::new(None);
    let key = open(&mut world, spec("/project"));
    answer(&mut world);
    world.exit(world.proc(), 0, &["unknown command"]);
    assert_eq!(world.state(key), "failed");
    assert_eq!(command(&world), "agent acp");
}
