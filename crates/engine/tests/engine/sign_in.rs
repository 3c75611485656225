//! Signing in to Cursor: by key, by login, and the messages when neither works.

use engine::agents::agent::AgentSpec;
use engine::ids::Key;
use engine::sessions::session::Wanted;
use serde_json::{Value, json};

use crate::kit::{Profile, World};

const NONE: [Value; 0] = [];

/// Up to the answer to `initialize`.
fn initialized(spec: AgentSpec, wanted: Wanted) -> (World, Key) {
    let mut world = World::new(None);
    let key = world.act(|engine| engine.open(spec, wanted)).unwrap();
    let request = world.take("initialize");
    world.reply(&request, Profile::cursor().initialize);
    (world, key)
}

fn signed_out() -> (World, Key) {
    initialized(Profile::cursor().spec, Wanted::default())
}

fn refuse(world: &mut World, method: &str) {
    let request = world.take(method);
    world.refuse(&request, -32000, "Authentication required");
}

/// Cursor with a key, in one of the places it can come from.
fn with_key() -> Vec<AgentSpec> {
    let spec = Profile::cursor().spec;
    let variable = |name: &str| AgentSpec {
        env: [(name.to_owned(), "topsecret-0123456789".to_owned())].into(),
        ..spec.clone()
    };
    let argument = |words: &[&str]| AgentSpec {
        command: words.iter().map(|word| (*word).to_owned()).collect(),
        ..spec.clone()
    };
    // Not said to be Cursor's, but it offers Cursor's login.
    let unnamed = AgentSpec {
        cursor: false,
        auth_method: None,
        ..variable("CURSOR_API_KEY")
    };
    vec![
        variable("CURSOR_API_KEY"),
        variable("CURSOR_AUTH_TOKEN"),
        argument(&["agent", "--api-key", "topsecret-0123456789", "acp"]),
        argument(&["agent", "--auth-token=topsecret-0123456789", "acp"]),
        unnamed,
    ]
}

#[test]
fn with_a_key_authenticate_is_never_sent() {
    for spec in with_key() {
        let (mut world, key) = initialized(spec.clone(), Wanted::default());
        let request = world.take("session/new");
        world.reply(&request, json!({ "sessionId": "s-1" }));
        assert_eq!(world.state(key), "idle");

        let (mut world, key) = initialized(spec.clone(), Wanted::default());
        world.queue(key, "hello");
        refuse(&mut world, "session/new");
        world.advance(60_000);
        assert_eq!(world.all_sent("authenticate"), NONE, "{spec:?}");
        assert_eq!(world.all_sent("session/new").len(), 1);
        let told = world.last_told();
        assert!(told.contains("did not accept the"), "{told}");
        assert!(told.contains(":CursorAgent restart"), "{told}");
        assert!(!told.contains("topsecret"), "{told}");
        let status = world.status(key);
        assert_eq!(
            (&status["needs_login"], &status["queued"]),
            (&json!(true), &json!(1))
        );
        assert!(!status.to_string().contains("topsecret"), "{status}");
    }
}

#[test]
fn the_status_says_which_key_and_where_it_comes_from() {
    let signed_in = |spec: &AgentSpec| {
        let (world, key) = initialized(spec.clone(), Wanted::default());
        world.status(key)["sign_in"].clone()
    };
    let found: Vec<Value> = with_key().iter().map(signed_in).collect();
    let given =
        |kind: &str, place: &str, name: &str| json!({ "kind": kind, "place": place, "name": name });
    assert_eq!(
        found,
        [
            given("key", "options", "CURSOR_API_KEY"),
            given("token", "options", "CURSOR_AUTH_TOKEN"),
            given("key", "arguments", "--api-key"),
            given("token", "arguments", "--auth-token"),
            given("key", "options", "CURSOR_API_KEY"),
        ]
    );
    assert_eq!(signed_in(&Profile::cursor().spec), Value::Null);
}

#[test]
fn an_empty_key_is_none() {
    let mut spec = Profile::cursor().spec;
    spec.env = [("CURSOR_API_KEY".to_owned(), String::new())].into();
    let (mut world, _) = initialized(spec, Wanted::default());
    refuse(&mut world, "session/new");
    world.take("authenticate");
}

#[test]
fn a_key_of_cursors_is_none_of_another_agents() {
    let mut profile = Profile::plain();
    profile.spec.env = [("CURSOR_API_KEY".to_owned(), "k".to_owned())].into();
    profile.initialize["authMethods"] = json!([{ "id": "itself", "name": "Itself" }]);
    let mut world = World::new(None);
    let spec = profile.spec.clone();
    let key = world
        .act(|engine| engine.open(spec, Wanted::default()))
        .unwrap();
    let request = world.take("initialize");
    world.reply(&request, profile.initialize);
    refuse(&mut world, "session/new");
    world.take("authenticate");
    assert_eq!(world.status(key)["sign_in"], Value::Null);
}

#[test]
fn a_session_goes_first_and_authenticate_only_where_it_is_refused() {
    let (mut world, key) = signed_out();
    assert_eq!(world.all_sent("authenticate"), NONE);
    refuse(&mut world, "session/new");
    let request = world.take("authenticate");
    assert_eq!(request["params"], json!({ "methodId": "cursor_login" }));
    world.reply(&request, json!({}));
    let request = world.take("session/new");
    world.reply(&request, json!({ "sessionId": "s-1" }));
    assert_eq!(world.state(key), "idle");
    assert_eq!(world.last_told(), "");
}

#[test]
fn authenticate_that_fails_ends_no_start() {
    let (mut world, key) = signed_out();
    world.queue(key, "hello");
    refuse(&mut world, "session/new");
    let request = world.take("authenticate");
    world.refuse(&request, -32602, "Failed to open browser for login");
    let request = world.take("session/new");
    world.reply(&request, json!({ "sessionId": "s-1" }));
    world.take("session/prompt");
    assert_eq!(world.state(key), "running");
    assert_eq!(world.last_told(), "");
}

#[test]
fn authenticate_that_fails_and_a_session_that_is_refused_again_end_in_a_login() {
    let (mut world, key) = signed_out();
    world.queue(key, "asked meanwhile");
    refuse(&mut world, "session/new");
    let request = world.take("authenticate");
    world.refuse(&request, -32602, "Failed to open browser for login");
    refuse(&mut world, "session/new");
    assert_eq!(world.all_sent("authenticate").len(), 1);
    let status = world.status(key);
    assert_eq!(
        (&status["state"], &status["needs_login"], &status["queued"]),
        (&json!("starting"), &json!(true), &json!(1))
    );
    let told = world.last_told();
    for part in [
        "cursor is not logged in",
        "Failed to open browser for login (-32602)",
        ":CursorAgent login runs `agent login`",
        "CURSOR_API_KEY",
    ] {
        assert!(told.contains(part), "{told}");
    }
    assert_eq!(status["error"], told);
    assert_eq!(world.texts(key), [format!("notice: {told}")]);
    // The user logs in: a new process, and the prompt is sent.
    world.profile = Some(Profile::cursor());
    world.act(|engine| engine.logged_in(key)).unwrap();
    assert_eq!(
        world.take("session/prompt")["params"]["prompt"][0]["text"],
        "asked meanwhile"
    );
    assert_eq!(world.status(key).get("error"), None);
}

#[test]
fn authenticate_that_hangs_ends_in_a_login_and_the_session_goes_on() {
    let (mut world, key) = signed_out();
    refuse(&mut world, "session/new");
    world.take("authenticate");
    world.queue(key, "asked meanwhile");
    world.advance(14_999);
    assert_eq!(world.status(key)["needs_login"], false);
    world.advance(1);
    assert_eq!(world.status(key)["needs_login"], true);
    let told = world.last_told();
    assert!(
        told.contains("has not answered the login request for 15 s"),
        "{told}"
    );
    assert!(told.contains(":CursorAgent login"), "{told}");
    let old = world.proc();
    world.profile = Some(Profile::cursor());
    world.act(|engine| engine.logged_in(key)).unwrap();
    assert_ne!(world.proc(), old);
    assert_eq!(world.state(key), "running");
    assert_eq!(
        world.take("session/prompt")["params"]["prompt"][0]["text"],
        "asked meanwhile"
    );
    assert_eq!(world.status(key).get("error"), None);
    world.exit(old, 0, &[]);
    assert_eq!(world.state(key), "running", "the old one's end is no news");
}

#[test]
fn authenticate_that_is_answered_late_goes_on_too() {
    for late in [Ok(json!({})), Err(-32603)] {
        let (mut world, key) = signed_out();
        refuse(&mut world, "session/new");
        let request = world.take("authenticate");
        world.advance(20_000);
        assert_eq!(world.status(key)["needs_login"], true);
        match late {
            Ok(result) => {
                world.reply(&request, result);
                let request = world.take("session/new");
                world.reply(&request, json!({ "sessionId": "s-1" }));
                let status = world.status(key);
                assert_eq!(
                    (&status["state"], &status["needs_login"]),
                    (&json!("idle"), &json!(false))
                );
            }
            Err(code) => {
                world.refuse(&request, code, "gave up");
                assert_eq!(world.status(key)["needs_login"], true);
                assert_eq!(world.sent("session/new"), None);
            }
        }
    }
}

#[test]
fn two_sessions_that_are_refused_are_told_once_each() {
    let (mut world, key) = signed_out();
    let spec = Profile::cursor().spec;
    let other = world
        .act(|engine| engine.open(spec, Wanted::default()))
        .unwrap();
    refuse(&mut world, "session/new");
    refuse(&mut world, "session/new");
    refuse(&mut world, "authenticate");
    refuse(&mut world, "session/new");
    refuse(&mut world, "session/new");
    assert_eq!(world.all_sent("authenticate").len(), 1);
    for key in [key, other] {
        assert_eq!(world.texts(key).len(), 1, "{:?}", world.texts(key));
        assert_eq!(world.status(key)["error"], world.last_told());
    }
}

#[test]
fn past_sessions_are_listed_without_making_one() {
    let lookup = || Wanted {
        lookup: true,
        ..Wanted::default()
    };
    let (mut world, key) = initialized(Profile::cursor().spec, lookup());
    let number = world.act(|engine| engine.list_sessions(key)).unwrap().0;
    let request = world.take("session/list");
    world.reply(
        &request,
        json!({ "sessions": [{ "sessionId": "old", "title": "Old" }] }),
    );
    assert_eq!(world.mirror.results[&number].1[0]["id"], "old");
    // Another one on the process that runs.
    let spec = Profile::cursor().spec;
    world.act(|engine| engine.open(spec, lookup())).unwrap();
    assert_eq!(world.all_sent("session/new"), NONE);
}

#[test]
fn a_list_that_is_refused_is_asked_again_after_the_login_or_says_why() {
    let lookup = || Wanted {
        lookup: true,
        ..Wanted::default()
    };
    let (mut world, key) = initialized(Profile::cursor().spec, lookup());
    let number = world.act(|engine| engine.list_sessions(key)).unwrap().0;
    refuse(&mut world, "session/list");
    let request = world.take("authenticate");
    world.reply(&request, json!({}));
    let request = world.take("session/list");
    world.reply(&request, json!({ "sessions": [] }));
    assert_eq!(world.mirror.results[&number], (true, json!([])));

    for refused_at in ["authenticate", "key"] {
        let mut spec = Profile::cursor().spec;
        if refused_at == "key" {
            spec.env = [("CURSOR_API_KEY".to_owned(), "k".to_owned())].into();
        }
        let (mut world, key) = initialized(spec, lookup());
        let number = world.act(|engine| engine.list_sessions(key)).unwrap().0;
        refuse(&mut world, "session/list");
        if refused_at == "authenticate" {
            refuse(&mut world, "authenticate");
            refuse(&mut world, "session/list");
        }
        let (ok, why) = &world.mirror.results[&number];
        assert!(!ok, "{why}");
        assert!(why.as_str().unwrap().contains(":CursorAgent"), "{why}");
        assert_eq!(world.all_sent("session/new"), NONE);
        // Asked again while it waits for a login: answered at once.
        let number = world.act(|engine| engine.list_sessions(key)).unwrap().0;
        assert!(!world.mirror.results[&number].0);
    }
}

#[test]
fn an_empty_session_the_agent_forgot_is_replaced_without_a_word() {
    let (mut world, key) = World::cursor();
    let proc = world.proc();
    world.exit(proc, 1, &[]);
    let profile = world.profile.take();
    let before = world.texts(key).len();
    world.act(|engine| engine.restart(key)).unwrap();
    let initialize = world.take("initialize");
    world.reply(&initialize, profile.as_ref().unwrap().initialize.clone());
    let load = world.take("session/load");
    world.profile = profile;
    world.refuse(&load, -32602, "Session not found");
    assert_eq!(world.state(key), "idle");
    assert_eq!(world.texts(key).len(), before, "{:?}", world.texts(key));
}

#[test]
fn a_turn_that_is_refused_names_the_key_or_the_login() {
    let refused = |spec: AgentSpec| {
        let mut profile = Profile::cursor();
        profile.spec = spec;
        let (mut world, key) = World::ready(profile);
        let prompt = world.prompt(key, "hello");
        world.refuse(&prompt, -32000, "Authentication required");
        world.status(key)["error"].as_str().unwrap().to_owned()
    };
    let by_key = refused(with_key().remove(0));
    assert!(by_key.contains("the key from CURSOR_API_KEY"), "{by_key}");
    assert!(by_key.contains(":CursorAgent restart"), "{by_key}");
    let by_login = refused(Profile::cursor().spec);
    assert!(
        by_login.contains(":CursorAgent login logs in"),
        "{by_login}"
    );
}
