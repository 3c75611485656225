//! Every method of the protocol: what is sent, when it is refused because the agent does not offer it, what is answered.

use std::io::ErrorKind;

use engine::agents::launch::Exit;
use engine::effect::{DiskOp, Effect};
use engine::ids::Key;
use engine::sessions::session::{OptionValue, Wanted};
use engine::{Engine, Error, FileError};
use serde_json::{Value, json};

use crate::kit::{Profile, World};

/// A world in which the process runs and `initialize` waits for its answer.
fn starting(profile: &Profile) -> (World, Key) {
    let mut world = World::new(None);
    let spec = profile.spec.clone();
    let key = world
        .act(|engine| engine.open(spec, Wanted::default()))
        .unwrap();
    (world, key)
}

fn refused<T: std::fmt::Debug>(
    world: &mut World,
    call: impl FnOnce(&mut Engine) -> Result<T, Error>,
) -> String {
    let before = world.written().len();
    let message = world.act(call).unwrap_err().to_string();
    assert_eq!(world.written().len(), before, "nothing is sent: {message}");
    message
}

fn wanted(change: impl FnOnce(&mut Wanted)) -> Wanted {
    let mut wanted = Wanted::default();
    change(&mut wanted);
    wanted
}

// Client to agent.

#[test]
fn initialize() {
    let (mut world, key) = starting(&Profile::plain());
    assert_eq!(world.state(key), "starting");
    assert_eq!(
        world.written().len(),
        1,
        "nothing else before it is answered"
    );
    let request = world.take("initialize");
    assert_eq!(request["params"]["protocolVersion"], 1);
    assert_eq!(request["params"]["clientInfo"]["name"], "cursor-agent.nvim");
    world.reply(&request, Profile::plain().initialize);
    assert_eq!(world.status(key)["agent_title"], "Plain Agent");
    world.take("session/new");
}

#[test]
fn initialize_in_a_version_we_do_not_speak() {
    for (answer, says) in [
        (json!({ "protocolVersion": 2 }), "uses version 2"),
        (json!("hello"), "answered initialize with"),
    ] {
        let (mut world, key) = starting(&Profile::plain());
        let request = world.take("initialize");
        world.reply(&request, answer);
        assert_eq!(world.state(key), "failed");
        let error = world.status(key)["error"].as_str().unwrap().to_owned();
        assert!(error.contains(says), "{error}");
        assert!(matches!(
            world.effects[..],
            [Effect::End { grace_ms: 0, .. }]
        ));
    }
    // One that does not say is taken at its word that it speaks this one.
    let (mut world, _) = starting(&Profile::plain());
    let request = world.take("initialize");
    world.reply(&request, json!({}));
    world.take("session/new");
}

#[test]
fn initialize_is_refused_or_never_answered() {
    let (mut world, key) = starting(&Profile::plain());
    let request = world.take("initialize");
    world.refuse(&request, -32603, "no model configured");
    let error = world.status(key)["error"].as_str().unwrap().to_owned();
    assert!(
        error.contains("refused to initialize: no model configured (-32603)"),
        "{error}"
    );

    let (mut world, key) = starting(&Profile::plain());
    world.advance(19_999);
    assert_eq!(world.last_told(), "");
    world.advance(1);
    assert!(
        world.last_told().contains("has not answered for 20 s"),
        "{}",
        world.last_told()
    );
    assert_eq!(world.state(key), "starting", "the wait goes on");
}

#[test]
fn authenticate_is_not_sent_where_a_session_works_without_it() {
    let mut profile = Profile::plain();
    profile.initialize["authMethods"] = json!([{ "id": "key", "name": "Key" }]);
    profile.spec.auth_method = Some("key".to_owned());
    let (world, key) = World::ready(profile);
    assert_eq!(world.state(key), "idle");
    assert_eq!(world.all_sent("authenticate"), [] as [Value; 0]);
}

#[test]
fn authenticate_when_a_session_is_refused_without_it() {
    let mut profile = Profile::plain();
    profile.initialize["authMethods"] = json!([
        { "id": "browser", "name": "Browser", "type": "terminal" }, { "id": "itself", "name": "Itself" },
    ]);
    profile.spec.auth_method = Some("itself".to_owned());
    let (mut world, key) = starting(&profile);
    let request = world.take("initialize");
    world.reply(&request, profile.initialize);
    let request = world.take("session/new");
    world.refuse(&request, -32000, "Authentication required");
    let request = world.take("authenticate");
    assert_eq!(request["params"]["methodId"], "itself");
    world.reply(&request, json!({}));
    let request = world.take("session/new");
    // Refused again: now the user has to log in.
    world.refuse(&request, -32000, "Authentication required");
    assert_eq!(world.sent("authenticate"), None);
    assert_eq!(world.status(key)["needs_login"], true);
    assert_eq!(
        world.status(key)["login"]["command"],
        json!(["plain-agent"])
    );
}

#[test]
fn authenticate_once_when_two_sessions_are_refused_without_it() {
    let mut profile = Profile::plain();
    profile.initialize["authMethods"] = json!([{ "id": "itself", "name": "Itself" }]);
    let (mut world, key) = starting(&profile);
    let spec = profile.spec.clone();
    let other = world
        .act(|engine| engine.open(spec, Wanted::default()))
        .unwrap();
    let request = world.take("initialize");
    world.reply(&request, profile.initialize);
    let requests = [world.take("session/new"), world.take("session/new")];
    for request in &requests {
        world.refuse(request, -32000, "Authentication required");
    }
    let request = world.take("authenticate");
    assert_eq!(world.sent("authenticate"), None);
    for key in [key, other] {
        assert_eq!(world.status(key)["needs_login"], false);
    }
    world.reply(&request, json!({}));
    world.take("session/new");
    world.take("session/new");
}

/// Several ways to log in, two of which the agent does itself; up to a session that is refused.
fn several_logins(order: &[&str]) -> (World, Key) {
    let mut profile = Profile::plain();
    profile.spec.auth_order = order.iter().map(|id| (*id).to_owned()).collect();
    profile.spec.login_command = Some(vec!["plain".to_owned(), "login".to_owned()]);
    profile.initialize["authMethods"] = json!([
        { "id": "account", "name": "Account", "description": "In a browser" },
        { "id": "key", "name": "Key" },
        { "id": "window", "name": "Window", "type": "terminal", "args": ["--window"] },
        { "id": "odd", "name": "Odd", "type": "by pigeon" },
    ]);
    let (mut world, key) = starting(&profile);
    let request = world.take("initialize");
    world.reply(&request, profile.initialize);
    let request = world.take("session/new");
    world.refuse(&request, -32000, "Authentication required");
    (world, key)
}

#[test]
fn authenticate_by_the_method_that_is_named_among_those_offered() {
    let method = |order: &[&str]| {
        let (mut world, _) = several_logins(order);
        world.take("authenticate")["params"]["methodId"].clone()
    };
    assert_eq!(method(&["gone", "key", "account"]), "key");
    // What only the user can do is not asked of the agent.
    assert_eq!(method(&["window", "key"]), "key");
}

#[test]
fn of_several_logins_none_is_tried_unasked() {
    for order in [&[] as &[&str], &["gone"], &["window"]] {
        let (mut world, key) = several_logins(order);
        assert_eq!(world.sent("authenticate"), None);
        let status = world.status(key);
        assert_eq!(status["needs_login"], true);
        let names: Vec<&str> = status["logins"]
            .as_array()
            .unwrap()
            .iter()
            .map(|way| way["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["Account", "Key", "Window", "plain login"]);
        let told = world.last_told();
        assert!(
            told.contains("Account · Key · Window · plain login"),
            "{told}"
        );
    }
}

#[test]
fn the_login_that_is_chosen_is_asked_for_and_the_session_goes_on() {
    let (mut world, key) = several_logins(&[]);
    world.queue(key, "hello");
    world
        .act(|engine| engine.log_in(key, "window"))
        .expect_err("the user does it in a terminal");
    world
        .act(|engine| engine.log_in(key, "gone"))
        .expect_err("there is none");
    world.act(|engine| engine.log_in(key, "account")).unwrap();
    let request = world.take("authenticate");
    assert_eq!(request["params"], json!({ "methodId": "account" }));
    // As long as a person in a browser takes.
    world.advance(600_000);
    world.refuse(&request, -32603, "the window was closed");
    assert_eq!(world.status(key)["needs_login"], true);
    assert_eq!(world.sent("session/new"), None);
    world.act(|engine| engine.log_in(key, "key")).unwrap();
    let request = world.take("authenticate");
    assert_eq!(request["params"], json!({ "methodId": "key" }));
    world.reply(&request, json!({}));
    let request = world.take("session/new");
    world.reply(&request, json!({ "sessionId": "s-1" }));
    assert_eq!(
        world.take("session/prompt")["params"]["prompt"][0]["text"],
        "hello"
    );
    assert_eq!(world.status(key)["needs_login"], false);
    // When it is needed again, the choice is known.
    world.act(|engine| engine.restart(key)).unwrap();
}

#[test]
fn a_prompt_that_is_refused_sets_the_login_and_a_login_takes_it_back() {
    let mut profile = Profile::plain();
    profile.initialize["authMethods"] = json!([
        { "id": "sub", "name": "Subscription", "type": "terminal", "args": ["--login"] },
        { "id": "key", "name": "Key" },
    ]);
    let (mut world, key) = starting(&profile);
    let request = world.take("initialize");
    world.reply(&request, profile.initialize);
    let request = world.take("session/new");
    world.reply(&request, json!({ "sessionId": "s-1" }));
    // In an idle session as well.
    let status = world.status(key);
    assert_eq!(status["logins"].as_array().unwrap().len(), 2);
    assert_eq!(status["needs_login"], false);
    let prompt = world.prompt(key, "hello");
    world.refuse(&prompt, -32000, "Authentication required");
    let status = world.status(key);
    assert_eq!(status["needs_login"], true);
    assert!(
        status["login"]["command"].to_string().contains("--login"),
        "{status}"
    );
    let error = status["error"].as_str().unwrap();
    assert!(error.contains(":CursorAgent login logs in"), "{error}");
    assert!(error.contains(":CursorAgent retry"), "{error}");
    world.act(|engine| engine.log_in(key, "key")).unwrap();
    let request = world.take("authenticate");
    world.reply(&request, json!({}));
    assert_eq!(world.status(key)["needs_login"], false);
    world.act(|engine| engine.retry(key)).unwrap();
    world.take("session/prompt");
}

#[test]
fn logout() {
    let (mut world, key) = World::plain();
    let number = world.act(|engine| engine.logout(key)).unwrap().0;
    assert_eq!(world.all_sent("logout"), [json!({})]);
    assert_eq!(world.mirror.results[&number], (true, json!(true)));
    let (mut world, key) = World::cursor();
    assert_eq!(
        refused(&mut world, |engine| engine.logout(key)),
        "cursor cannot log out"
    );
}

#[test]
fn session_new() {
    let (world, key) = World::plain();
    assert_eq!(
        world.all_sent("session/new"),
        [json!({ "cwd": "/project", "mcpServers": [] })]
    );
    assert_eq!(world.status(key)["session_id"], "s-1");

    let servers: Vec<acp::types::McpServer> = [
        json!({ "name": "git", "command": "mcp-git", "args": ["-v"], "env": { "A": "1" } }),
        json!({ "type": "http", "name": "docs", "url": "http://h/mcp", "headers": [] }),
        json!({ "type": "sse", "name": "news", "url": "http://s/mcp" }),
    ]
    .into_iter()
    .map(|server| acp::FromValue::from_value(server).unwrap())
    .collect();
    let all = wanted(|wanted| {
        wanted.directories = vec!["/more".to_owned()];
        wanted.mcp_servers = servers;
    });
    let mut world = World::new(Some(Profile::plain()));
    world.open(all.clone());
    let params = world.all_sent("session/new").remove(0);
    assert_eq!(params["additionalDirectories"], json!(["/more"]));
    assert_eq!(
        params["mcpServers"][0],
        json!({ "name": "git", "command": "mcp-git", "args": ["-v"], "env": [{ "name": "A", "value": "1" }] })
    );
    assert_eq!(params["mcpServers"][1]["type"], "http");
    assert_eq!(params["mcpServers"][2]["type"], "sse");

    // Without the capabilities: a notice says what is left out.
    let mut world = World::new(Some(Profile::bare()));
    let key = world.open(all);
    let params = world.all_sent("session/new").remove(0);
    assert_eq!(params.get("additionalDirectories"), None);
    assert_eq!(params["mcpServers"].as_array().unwrap().len(), 1);
    assert!(world.texts(key)[0].contains("`docs` (http), `news` (sse)"));
    assert!(
        world
            .texts(key)
            .iter()
            .any(|text| text.contains("additional directories")),
        "{:?}",
        world.texts(key)
    );
}

#[test]
fn session_new_is_refused() {
    let (mut world, key) = starting(&Profile::plain());
    let request = world.take("initialize");
    world.reply(&request, Profile::plain().initialize);
    let request = world.take("session/new");
    world.hear(
        json!({ "id": request["id"], "error": { "code": -32602, "message": "Invalid params", "data": { "details": "cwd is no directory" } } }),
    );
    assert_eq!(world.state(key), "failed");
    assert!(
        world
            .last_told()
            .contains("could not start a session: Invalid params (-32602): cwd is no directory"),
        "{}",
        world.last_told()
    );
    // The next prompt tries again, on the same process.
    world.queue(key, "hello");
    let request = world.take("session/new");
    world.reply(&request, json!({ "sessionId": "s-1" }));
    assert_eq!(
        world.take("session/prompt")["params"]["prompt"][0]["text"],
        "hello"
    );

    let (mut world, key) = starting(&Profile::plain());
    let request = world.take("initialize");
    world.reply(&request, Profile::plain().initialize);
    let request = world.take("session/new");
    world.reply(&request, json!({}));
    assert_eq!(world.state(key), "failed");
    assert!(world.last_told().contains("a session without an id"));
}

/// An agent that was told to make, load or resume a session and says nothing, and what it was told.
fn silent(method: &str) -> (World, Key, Value) {
    let mut world = World::new(None);
    let spec = Profile::plain().spec;
    let load = (method != "session/new").then(|| "old".to_owned());
    let key = world
        .act(|engine| engine.open(spec, wanted(|wanted| wanted.load = load)))
        .unwrap();
    let request = world.take("initialize");
    let caps = match method {
        "session/resume" => json!({ "sessionCapabilities": { "resume": {} } }),
        _ => json!({ "loadSession": true }),
    };
    world.reply(&request, json!({ "agentCapabilities": caps }));
    let request = world.take(method);
    (world, key, request)
}

#[test]
fn a_session_that_does_not_come_is_said_to_be_late_and_may_come_later() {
    for method in ["session/new", "session/load", "session/resume"] {
        let (mut world, key, request) = silent(method);
        world.advance(29_999);
        assert_eq!(world.status(key).get("error"), None);
        world.advance(1);
        assert!(world.status(key)["error"].is_string());
        let told = world.last_told().to_owned();
        assert!(told.contains(&format!("has not answered {method} for 30 s")));
        assert!(told.contains(":CursorAgent restart"), "{told}");
        assert_eq!(world.texts(key), [format!("notice: {told}")]);
        world.advance(300_000);
        assert_eq!(world.texts(key).len(), 1, "one notice");

        world.reply(&request, json!({ "sessionId": "s-1" }));
        world.advance(1000);
        assert_eq!(world.state(key), "idle");
        assert_eq!(world.status(key).get("error"), None);
        world.prompt(key, "hello");
    }
}

#[test]
fn a_late_session_can_be_asked_for_again() {
    let (mut world, key, _) = silent("session/load");
    world.advance(30_000);
    world.act(|engine| engine.restart(key)).unwrap();
    assert_eq!(world.status(key).get("error"), None);
    let request = world.take("initialize");
    world.reply(
        &request,
        json!({ "agentCapabilities": { "loadSession": true } }),
    );
    world.advance(29_999);
    assert_eq!(world.status(key).get("error"), None);
    let request = world.take("session/load");
    world.reply(&request, json!({}));
    world.advance(1000);
    assert_eq!(world.state(key), "idle");
}

#[test]
fn a_long_replay_is_not_late_while_it_goes_on() {
    let (mut world, key, request) = silent("session/load");
    for _ in 0..10 {
        world.advance(20_000);
        world.say("old", "more ");
        assert_eq!(world.status(key).get("error"), None);
    }
    world.advance(60_000);
    assert!(world.status(key)["error"].is_string());
    world.say("old", "and more");
    assert_eq!(world.status(key).get("error"), None);
    world.advance(60_000);
    assert!(world.status(key)["error"].is_string(), "and late again");
    world.reply(&request, json!({}));
    world.advance(1000);
    assert_eq!(world.state(key), "idle");
}

#[test]
fn session_load() {
    let mut world = World::new(Some(Profile::cursor()));
    let key = world.open(wanted(|wanted| wanted.load = Some("old".to_owned())));
    assert_eq!(
        world.all_sent("session/load"),
        [json!({ "sessionId": "old", "cwd": "/project", "mcpServers": [] })]
    );
    assert_eq!(world.state(key), "starting");
    world.advance(1000);
    assert_eq!(world.state(key), "idle");
    assert_eq!(world.status(key)["mode"], "agent");

    let mut world = World::new(Some(Profile::bare()));
    let key = world.open(wanted(|wanted| wanted.load = Some("old".to_owned())));
    assert_eq!(world.state(key), "failed");
    assert_eq!(world.all_sent("session/load"), [] as [Value; 0]);
    assert!(
        world
            .last_told()
            .contains("it supports neither session/load nor session/resume")
    );

    // It may not be there: then another session would be a surprise, also when something was said of it before.
    let mut world = World::new(None);
    let spec = Profile::plain().spec;
    let load = wanted(|wanted| {
        wanted.load = Some("old".to_owned());
        wanted.directories = vec!["/more".to_owned()];
    });
    let key = world.act(|engine| engine.open(spec, load)).unwrap();
    let request = world.take("initialize");
    world.reply(
        &request,
        json!({ "agentCapabilities": { "loadSession": true } }),
    );
    assert_eq!(world.texts(key).len(), 1);
    let request = world.take("session/load");
    world.refuse(&request, -32602, "Session not found");
    assert_eq!(world.state(key), "failed");
    assert!(
        world
            .last_told()
            .contains("could not load the session: Session not found")
    );
}

#[test]
fn session_resume() {
    let mut profile = Profile::plain();
    profile.initialize["agentCapabilities"]["loadSession"] = json!(false);
    let mut world = World::new(Some(profile));
    let key = world.open(wanted(|wanted| wanted.load = Some("old".to_owned())));
    assert_eq!(
        world.all_sent("session/resume"),
        [json!({ "sessionId": "old", "cwd": "/project", "mcpServers": [] })]
    );
    assert_eq!(world.state(key), "idle", "there is no replay to wait for");
    // An agent that can do both replays what the transcript does not have.
    let mut world = World::new(Some(Profile::plain()));
    world.open(wanted(|wanted| wanted.load = Some("old".to_owned())));
    assert_eq!(world.all_sent("session/load").len(), 1);
}

#[test]
fn session_list() {
    let (mut world, key) = World::plain();
    world.profile = None;
    let number = world.act(|engine| engine.list_sessions(key)).unwrap().0;
    let page = world.take("session/list");
    assert_eq!(page["params"], json!({ "cwd": "/project" }));
    world.reply(
        &page,
        json!({ "sessions": [{ "sessionId": "a", "cwd": "/a", "title": "A", "updatedAt": "2026-01-01T00:00:00Z" }], "nextCursor": "2" }),
    );
    let page = world.take("session/list");
    assert_eq!(page["params"], json!({ "cwd": "/project", "cursor": "2" }));
    world.reply(&page, json!({ "sessions": [{ "sessionId": "b" }] }));
    assert_eq!(
        world.mirror.results[&number],
        (
            true,
            json!([
                { "id": "a", "agent": "plain", "cwd": "/a", "title": "A", "updated_at": "2026-01-01T00:00:00Z" },
                { "id": "b", "agent": "plain", "cwd": "/project" },
            ])
        )
    );

    let number = world.act(|engine| engine.list_sessions(key)).unwrap().0;
    let page = world.take("session/list");
    world.refuse(&page, -32603, "no disk");
    assert_eq!(
        world.mirror.results[&number],
        (false, json!("no disk (-32603)"))
    );

    let (mut world, key) = World::ready(Profile::bare());
    assert_eq!(
        refused(&mut world, |engine| engine.list_sessions(key)),
        "plain cannot list its past sessions"
    );
}

#[test]
fn session_list_asked_for_while_the_agent_starts() {
    let spec = Profile::plain().spec;
    let mut world = World::new(None);
    let key = world
        .act(|engine| engine.open(spec, Wanted::default()))
        .unwrap();
    let number = world.act(|engine| engine.list_sessions(key)).unwrap().0;
    assert!(world.sent("session/list").is_none());
    let hello = world.take("initialize");
    world.reply(&hello, json!({ "protocolVersion": 1, "agentCapabilities": { "sessionCapabilities": { "list": {} } } }));
    let page = world.take("session/list");
    world.reply(&page, json!({ "sessions": [] }));
    assert_eq!(world.mirror.results[&number], (true, json!([])));

    let spec = Profile::plain().spec;
    let mut world = World::new(None);
    let key = world
        .act(|engine| engine.open(spec, Wanted::default()))
        .unwrap();
    let number = world.act(|engine| engine.list_sessions(key)).unwrap().0;
    let proc = world.proc();
    world.exit(proc, 1, &["no model"]);
    assert!(
        !world.mirror.results[&number].0,
        "no answer for a list that will not come"
    );
}

#[test]
fn session_list_whose_pages_never_end() {
    let (mut world, key) = World::plain();
    world.profile = None;
    let number = world.act(|engine| engine.list_sessions(key)).unwrap().0;
    let mut pages = 0;
    while let Some(page) = world.sent("session/list") {
        pages += 1;
        assert!(pages <= 20, "the user waits");
        world.reply(
            &page,
            json!({ "sessions": [{ "sessionId": format!("{pages}") }], "nextCursor": "again" }),
        );
    }
    assert!(world.mirror.results[&number].0);
}

#[test]
fn session_delete() {
    let (mut world, key) = World::plain();
    let number = world
        .act(|engine| engine.delete_session(key, "old"))
        .unwrap()
        .0;
    assert_eq!(
        world.all_sent("session/delete"),
        [json!({ "sessionId": "old" })]
    );
    assert_eq!(world.mirror.results[&number], (true, json!(true)));
    let (mut world, key) = World::cursor();
    assert_eq!(
        refused(&mut world, |engine| engine.delete_session(key, "old")),
        "cursor cannot delete a session"
    );
}

#[test]
fn session_close() {
    let (mut world, key) = World::plain();
    world.act(|engine| engine.close(key)).unwrap();
    assert_eq!(
        world.all_sent("session/close"),
        [json!({ "sessionId": "s-1" })]
    );
    let (mut world, key) = World::cursor();
    world.act(|engine| engine.close(key)).unwrap();
    assert_eq!(world.all_sent("session/close"), [] as [Value; 0]);
    assert!(matches!(world.effects[..], [Effect::End { .. }]));
}

#[test]
fn session_close_while_it_is_being_made() {
    let (mut world, first) = World::plain();
    let running = world.prompt(first, "hello");
    world.profile = None;
    let spec = Profile::plain().spec;
    let second = world
        .act(|engine| engine.open(spec, Wanted::default()))
        .unwrap();
    let request = world.take("session/new");
    world.act(|engine| engine.close(second)).unwrap();
    // Its text belongs to no session, least of all the other one.
    world.say("s-2", "early");
    world.reply(&request, json!({ "sessionId": "s-2" }));
    world.say("s-2", "late");
    world.end_turn(&running, "end_turn");
    assert_eq!(
        world.take("session/close")["params"],
        json!({ "sessionId": "s-2" })
    );
    assert_eq!(world.texts(first), ["user: hello"]);
}

#[test]
fn session_set_mode() {
    let (mut world, key) = World::cursor();
    world.act(|engine| engine.set_mode(key, "plan")).unwrap();
    assert_eq!(
        world.all_sent("session/set_mode"),
        [json!({ "sessionId": "s-1", "modeId": "plan" })]
    );
    assert_eq!(world.status(key)["mode"], "plan");
    // The option that shows the same says the same.
    assert_eq!(world.status(key)["options"][0]["value"], "plan");
    assert_eq!(
        refused(&mut world, |engine| engine.set_mode(key, "yolo")),
        "unknown mode yolo; this agent has: agent, plan, ask"
    );

    world.profile = None;
    world.act(|engine| engine.set_mode(key, "ask")).unwrap();
    let request = world.take("session/set_mode");
    assert_eq!(world.status(key)["mode"], "plan", "not before it is so");
    world.refuse(&request, -32603, "not now");
    assert_eq!(world.status(key)["mode"], "plan");
    assert_eq!(
        world.last_told(),
        "could not set the mode ask: not now (-32603)"
    );

    let (mut world, key) = World::plain();
    assert_eq!(
        refused(&mut world, |engine| engine.set_mode(key, "plan")),
        "this agent has no modes"
    );
    // An agent that has modes only as a config option.
    let mut profile = Profile::plain();
    profile.session = json!({ "configOptions": Profile::options("agent", "default") });
    let (mut world, key) = World::ready(profile);
    world.act(|engine| engine.set_mode(key, "plan")).unwrap();
    assert_eq!(
        world.all_sent("session/set_config_option"),
        [json!({ "sessionId": "s-1", "configId": "mode", "value": "plan" })]
    );
}

#[test]
fn session_set_config_option() {
    let mut profile = Profile::plain();
    profile.session = json!({ "configOptions": Profile::options("agent", "opus") });
    let (mut world, key) = World::ready(profile);
    let text = |text: &str| OptionValue::Text(text.to_owned());
    let set = |world: &mut World, id: &str, value: &OptionValue| {
        world.act(|engine| engine.set_option(key, id, value))
    };
    set(&mut world, "effort", &text("low")).unwrap();
    set(&mut world, "thinking", &OptionValue::Bool(false)).unwrap();
    set(&mut world, "thinking", &text("on")).unwrap();
    assert_eq!(
        world.all_sent("session/set_config_option"),
        [
            json!({ "sessionId": "s-1", "configId": "effort", "value": "low" }),
            json!({ "sessionId": "s-1", "configId": "thinking", "type": "boolean", "value": false }),
            json!({ "sessionId": "s-1", "configId": "thinking", "type": "boolean", "value": true }),
        ]
    );
    // The answer is the complete new list: it changes with the model.
    set(&mut world, "model", &text("default")).unwrap();
    let ids: Vec<Value> = world.status(key)["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|option| option["id"].clone())
        .collect();
    assert_eq!(ids, ["mode", "model"]);

    let message = |world: &mut World, id: &str, value: &OptionValue| {
        refused(world, |engine| engine.set_option(key, id, value))
    };
    assert_eq!(
        message(&mut world, "effort", &text("low")),
        "unknown option effort; this agent has: mode, model"
    );
    assert_eq!(
        message(&mut world, "model", &text("nope")),
        "model cannot be nope; it can be: default, opus"
    );
    set(&mut world, "model", &text("opus")).unwrap();
    assert_eq!(
        message(&mut world, "thinking", &text("maybe")),
        "thinking must be true or false, not maybe"
    );
    world.profile = None;
    set(&mut world, "effort", &text("low")).unwrap();
    world.take("session/set_config_option");
    while let Some(request) = world.sent("session/set_config_option") {
        world.refuse(&request, -32602, "no");
        assert_eq!(
            world.last_told(),
            "could not set the option effort: no (-32602)"
        );
    }

    let (mut world, key) = World::plain();
    assert_eq!(
        refused(&mut world, |engine| engine.set_option(key, "x", &text("y"))),
        "this agent has no options"
    );
}

#[test]
fn session_set_model() {
    let mut profile = Profile::plain();
    profile.session = json!({ "models": {
        "currentModelId": "a", "availableModels": [{ "modelId": "a", "name": "A" }, { "modelId": "b", "name": "B" }],
    } });
    let (mut world, key) = World::ready(profile);
    assert_eq!(world.status(key)["model"], "a");
    world.act(|engine| engine.set_model(key, "b")).unwrap();
    assert_eq!(
        world.all_sent("session/set_model"),
        [json!({ "sessionId": "s-1", "modelId": "b" })]
    );
    assert_eq!(world.status(key)["model"], "b");
    assert_eq!(
        refused(&mut world, |engine| engine.set_model(key, "c")),
        "unknown model c; this agent has: a, b"
    );
    let (mut world, key) = World::plain();
    assert_eq!(
        refused(&mut world, |engine| engine.set_model(key, "b")),
        "this agent does not let you choose the model"
    );
}

#[test]
fn session_prompt() {
    let (mut world, key) = World::plain();
    assert_eq!(
        refused(&mut world, |engine| engine.prompt(key, Default::default())),
        "the prompt is empty"
    );
    let request = world.prompt(key, "hello");
    assert_eq!(
        request["params"],
        json!({ "sessionId": "s-1", "prompt": [{ "type": "text", "text": "hello" }] })
    );
    // One at a time.
    world.queue(key, "second");
    assert_eq!(world.sent("session/prompt"), None);
    world.end_turn(&request, "end_turn");
    assert_eq!(
        world.take("session/prompt")["params"]["prompt"][0]["text"],
        "second"
    );
}

#[test]
fn session_prompt_with_blocks_as_far_as_the_agent_takes_them() {
    let blocks = json!([
        { "type": "text", "text": "selected" },
        { "type": "file", "path": "/a b.rs", "line": 3 },
        { "type": "file", "path": "/c.rs", "text": "fn c() {}\n", "mime": "text/x-rust" },
        { "type": "image", "data": "aGk=", "mime": "image/png", "path": "/p.png" },
        { "type": "blob", "data": "aGk=", "path": "/d.pdf", "mime": "application/pdf", "label": "@d.pdf" },
    ]);
    let link = json!({ "type": "resource_link", "uri": "file:///a%20b.rs#L3", "name": "a b.rs" });
    // promptCapabilities.image, .embeddedContext: all of it.
    let (mut world, key) = World::plain();
    assert_eq!(
        world.prompt_with(key, "see", blocks.clone()),
        [
            json!({ "type": "text", "text": "see" }),
            json!({ "type": "text", "text": "selected" }),
            link.clone(),
            json!({ "type": "resource", "resource": { "uri": "file:///c.rs", "mimeType": "text/x-rust", "text": "fn c() {}\n" } }),
            json!({ "type": "image", "data": "aGk=", "mimeType": "image/png", "uri": "file:///p.png" }),
            json!({ "type": "resource", "resource": { "uri": "file:///d.pdf", "mimeType": "application/pdf", "blob": "aGk=" } }),
        ]
    );
    assert_eq!(world.transcript(key)[0]["context"], json!(["@d.pdf"]));
    // None of them: files as text, images as links, and a notice for what cannot be sent.
    let (mut world, key) = World::ready(Profile::bare());
    assert_eq!(
        world.prompt_with(key, "see", blocks),
        [
            json!({ "type": "text", "text": "see" }),
            json!({ "type": "text", "text": "selected" }),
            link,
            json!({ "type": "text", "text": "/c.rs:\n```\nfn c() {}\n```" }),
            json!({ "type": "resource_link", "uri": "file:///p.png", "name": "p.png", "mimeType": "image/png" }),
        ]
    );
    assert_eq!(
        world.texts(key)[1],
        "notice: @d.pdf was left out: this agent does not accept blob"
    );
    // An image that is nowhere on disk cannot be linked; a prompt of nothing else is not sent.
    let blocks =
        serde_json::from_value(json!([{ "type": "image", "data": "aGk=", "label": "pasted" }]))
            .unwrap();
    let spec = engine::sessions::session::PromptSpec {
        text: String::new(),
        blocks,
        ..Default::default()
    };
    world.act(|engine| engine.prompt(key, spec)).unwrap();
    assert_eq!(world.sent("session/prompt"), None);
    assert_eq!(world.state(key), "idle");
    assert!(
        world
            .texts(key)
            .contains(&"notice: this agent does not accept images: pasted was left out".to_owned())
    );
}

#[test]
fn session_cancel() {
    let (mut world, key) = World::plain();
    assert_eq!(
        refused(&mut world, |engine| engine.cancel(key)),
        "nothing is running"
    );
    let prompt = world.prompt(key, "hello");
    world.say("s-1", "as far as it got");
    let ask = world.ask("session/request_permission", ask_for("t1"));
    world.act(|engine| engine.cancel(key)).unwrap();
    assert_eq!(
        world.all_sent("session/cancel"),
        [json!({ "sessionId": "s-1" })]
    );
    let cancelled = json!({ "outcome": { "outcome": "cancelled" } });
    assert_eq!(world.result_of(ask), cancelled);
    assert_eq!(world.status(key)["cancelling"], true);
    // Whatever it asks now cannot be answered.
    assert_eq!(
        world.call("session/request_permission", ask_for("t2")),
        cancelled
    );
    assert_eq!(
        world.call(
            "elicitation/create",
            json!({ "sessionId": "s-1", "message": "?", "mode": "url", "url": "http://u", "elicitationId": "e" })
        ),
        json!({ "action": "cancel" })
    );
    assert_eq!(
        world.call("cursor/create_plan", json!({ "plan": "p" })),
        cancelled
    );
    world.end_turn(&prompt, "cancelled");
    assert_eq!(world.state(key), "idle");
    let texts = world.texts(key);
    assert_eq!(texts[1], "agent: as far as it got");
    assert_eq!(texts.last().unwrap(), "notice: cancelled");
    assert_eq!(world.tool(key)["status"], "cancelled");
}

#[test]
fn session_cancel_that_the_agent_ignores() {
    let (mut world, key) = World::plain();
    let prompt = world.prompt(key, "hello");
    world.act(|engine| engine.cancel(key)).unwrap();
    world.advance(4_999);
    assert_eq!(world.status(key)["stuck"], false);
    world.advance(1);
    assert_eq!(world.status(key)["stuck"], true);
    assert!(
        world.last_told().contains(":CursorAgent restart"),
        "{}",
        world.last_told()
    );
    // It comes to its end after all.
    world.end_turn(&prompt, "cancelled");
    assert_eq!(world.state(key), "idle");
    assert_eq!(world.status(key)["stuck"], false);
}

#[test]
fn session_cancel_answered_with_an_error() {
    for (code, message) in [
        (-32800, "Request cancelled"),
        (-32603, "The turn was canceled"),
    ] {
        let (mut world, key) = World::plain();
        let prompt = world.prompt(key, "hello");
        world.act(|engine| engine.cancel(key)).unwrap();
        world.refuse(&prompt, code, message);
        assert_eq!(world.texts(key).last().unwrap(), "notice: cancelled");
        assert_eq!(world.state(key), "idle");
    }
}

// Agent to client.

fn ask_for(call: &str) -> Value {
    json!({
        "sessionId": "s-1",
        "toolCall": { "toolCallId": call, "title": "Run it", "kind": "execute", "rawInput": { "command": "make" } },
        "options": [
            { "optionId": "yes", "name": "Yes", "kind": "allow_once" },
            { "optionId": "always", "name": "Always", "kind": "allow_always" },
            { "optionId": "no", "name": "No", "kind": "reject_once" },
        ],
    })
}

#[test]
fn session_request_permission() {
    let selected = |id: &str| json!({ "outcome": { "outcome": "selected", "optionId": id } });
    for (answer, result) in [
        (json!({ "option": "always" }), selected("always")),
        (json!({ "accept": true }), selected("yes")),
        (json!({ "reject": true }), selected("no")),
        (
            json!({ "cancel": true }),
            json!({ "outcome": { "outcome": "cancelled" } }),
        ),
    ] {
        let (mut world, key) = World::plain();
        let prompt = world.prompt(key, "hello");
        let id = world.ask("session/request_permission", ask_for("t1"));
        assert_eq!(world.state(key), "waiting");
        assert_eq!(world.answered(id), None);
        let decision = world.decision();
        assert_eq!(
            (&decision["kind"], &decision["title"]),
            (&json!("permission"), &json!("make"))
        );
        assert_eq!(
            decision["options"][0],
            json!({ "id": "yes", "name": "Yes", "kind": "allow_once" })
        );
        assert_eq!(world.tool(key)["decision"], decision["id"]);
        let number = decision["id"].as_u64().unwrap();
        let wrong = world
            .decide(number, json!({ "option": "nope" }))
            .unwrap_err();
        assert_eq!(wrong, "answer with { option = … }, one of: yes, always, no");
        world.decide(number, answer).unwrap();
        assert_eq!(world.result_of(id), result);
        assert_eq!(world.tool(key).get("decision"), None);
        assert_eq!(world.state(key), "running");
        let twice = world.decide(number, json!({ "accept": true })).unwrap_err();
        assert!(
            twice.contains("was already answered or withdrawn"),
            "{twice}"
        );
        world.end_turn(&prompt, "end_turn");
    }
}

#[test]
fn session_request_permission_for_a_session_nobody_has() {
    let (mut world, _) = World::plain();
    let mut params = ask_for("t1");
    params["sessionId"] = json!("elsewhere");
    assert_eq!(
        world.call("session/request_permission", params),
        json!({ "outcome": { "outcome": "cancelled" } })
    );
}

#[test]
fn fs_read_text_file() {
    let (mut world, _) = World::plain();
    let read = |path: &str| json!({ "sessionId": "s-1", "path": path, "line": 5, "limit": 2 });
    let id = world.ask("fs/read_text_file", read("/project/a.txt"));
    let (number, request) = world.editor_request();
    assert_eq!(
        request,
        json!({ "op": "read", "path": "/project/a.txt", "line": 5, "limit": 2, "real": "/project/a.txt" })
    );
    assert_eq!(world.answered(id), None);
    // The editor has it in a buffer: unsaved text is what is read.
    world.editor_replies(number, json!({ "ok": true, "content": "unsaved\n" }));
    assert_eq!(world.result_of(id), json!({ "content": "unsaved\n" }));

    // It does not: the file is read, here a path that is not absolute.
    let id = world.ask("fs/read_text_file", read("b.txt"));
    let (number, request) = world.editor_request();
    assert_eq!(request["path"], "/project/b.txt");
    world.editor_replies(number, json!({ "ok": true, "disk": true }));
    let Some(Effect::Disk { request, op, .. }) = world.effects.pop() else {
        panic!("it is to be read from disk");
    };
    assert_eq!(
        op,
        DiskOp::Read {
            path: "/project/b.txt".to_owned(),
            line: Some(5),
            limit: Some(2)
        }
    );
    world.act(|engine| engine.on_file_done(request, Ok("saved\n".to_owned())));
    assert_eq!(world.result_of(id), json!({ "content": "saved\n" }));

    for (kind, code) in [
        (ErrorKind::NotFound, -32002),
        (ErrorKind::PermissionDenied, -32603),
    ] {
        // What it is follows from its kind, whatever the words are.
        let error = FileError {
            kind,
            why: "/b: No such file or directory".to_owned(),
        };
        let id = world.ask("fs/read_text_file", read("b"));
        let (number, _) = world.editor_request();
        world.editor_replies(number, json!({ "ok": true, "disk": true }));
        world.act(|engine| engine.on_file_done(engine::ids::EditorId(number), Err(error)));
        assert_eq!(world.error_of(id)["code"], code, "{kind}");
    }
    let id = world.ask("fs/read_text_file", read("b"));
    let (number, _) = world.editor_request();
    world.editor_replies(number, json!({ "ok": false, "error": "the user said no" }));
    assert_eq!(world.error_of(id)["message"], "the user said no");
}

#[test]
fn fs_write_text_file() {
    let (mut world, key) = World::plain();
    let write = json!({ "sessionId": "s-1", "path": "/project/a.txt", "content": "new\n" });
    for on_disk in [false, true] {
        let id = world.ask("fs/write_text_file", write.clone());
        let (number, request) = world.editor_request();
        assert_eq!(
            request,
            json!({ "op": "write", "path": "/project/a.txt", "content": "new\n", "real": "/project/a.txt" })
        );
        world.editor_replies(number, json!({ "ok": true, "disk": on_disk }));
        if on_disk {
            assert_eq!(world.answered(id), None);
            world.act(|engine| {
                engine.on_file_done(engine::ids::EditorId(number), Ok(String::new()))
            });
        }
        assert_eq!(world.result_of(id), json!({}));
    }
    assert_eq!(world.mirror.edited, ["/project/a.txt", "/project/a.txt"]);
    assert_eq!(world.changed_files(key)[0]["path"], "/project/a.txt");
    assert!(world.mirror.events.contains(&(
        "CursorAgentEdit".to_owned(),
        json!({ "path": "/project/a.txt", "session_id": "s-1" })
    )));

    let id = world.ask("fs/write_text_file", write);
    let (number, _) = world.editor_request();
    world.editor_replies(number, json!({ "ok": false, "error": "unsaved changes" }));
    assert_eq!(world.error_of(id)["message"], "unsaved changes");
    assert_eq!(world.mirror.edited.len(), 2);
}

#[test]
fn a_file_that_is_written_and_then_reported_is_one_change() {
    let (mut world, key) = World::plain();
    world.prompt(key, "edit");
    let call = |id: &str, status: &str, content: Value| {
        json!({
            "sessionUpdate": "tool_call_update", "toolCallId": id, "kind": "edit", "status": status,
            "content": content,
        })
    };
    let diff = |path: &str, new: &str| json!({ "type": "diff", "path": path, "oldText": "a\n", "newText": new });
    let edits = |world: &World| {
        let names = world.event_names();
        names.iter().filter(|name| **name == "Edit").count()
    };
    let write = |world: &mut World, path: &str| {
        let params = json!({ "sessionId": "s-1", "path": path, "content": "b\n" });
        world.ask("fs/write_text_file", params);
        let (number, _) = world.editor_request();
        world.editor_replies(number, json!({ "ok": true }));
    };
    // opencode has the file written when it may, and reports the call afterwards; twice.
    for (round, id) in ["one", "two"].into_iter().enumerate() {
        world.update("s-1", call(id, "in_progress", json!([])));
        write(&mut world, "/project/a.txt");
        world.update(
            "s-1",
            call(id, "completed", json!([diff("/project/a.txt", "b\n")])),
        );
        assert_eq!(edits(&world), round + 1);
    }
    assert_eq!(
        world.changed_files(key)[0]["hunks"][0]["lines"],
        json!([["-", "a"], ["+", "b"]])
    );
    // A call that begins later is another change.
    write(&mut world, "/project/a.txt");
    assert_eq!(edits(&world), 3);
    let content = json!([diff("/project/a.txt", "c\n")]);
    world.update("s-1", call("three", "completed", content));
    assert_eq!(edits(&world), 4);
    // What a call says again after its end was told already, what it adds was not.
    let content = json!([diff("/project/a.txt", "c\n"), diff("/project/b.txt", "c\n")]);
    world.update("s-1", call("three", "completed", content));
    assert_eq!(edits(&world), 5);
}

#[test]
fn fs_write_text_file_that_waits_for_the_user_is_cancelled_with_the_turn() {
    let (mut world, key) = World::plain();
    let prompt = world.prompt(key, "write");
    let write = json!({ "sessionId": "s-1", "path": "/project/a.txt", "content": "new\n" });
    let busy = world.ask("fs/write_text_file", write.clone());
    let (on_disk, _) = world.editor_request();
    world.editor_replies(on_disk, json!({ "ok": true, "disk": true }));
    let asked = world.ask("fs/write_text_file", write);
    let (number, _) = world.editor_request();
    world.act(|engine| engine.cancel(key)).unwrap();
    assert_eq!(world.error_of(asked)["code"], -32800);
    assert_eq!(world.mirror.withdrawn, [number]);
    // One that is being written gets its result.
    assert_eq!(world.answered(busy), None);
    world.act(|engine| engine.on_file_done(engine::ids::EditorId(on_disk), Ok(String::new())));
    assert_eq!(world.result_of(busy), json!({}));
    // The user's answer comes too late; the kit would see a second one.
    world.editor_replies(number, json!({ "ok": true }));
    world.end_turn(&prompt, "cancelled");
}

#[test]
fn terminal_create_output_wait_for_exit_kill_release() {
    let mut profile = Profile::plain();
    profile.spec.env = [("AGENT".to_owned(), "1".to_owned())].into();
    let (mut world, key) = World::ready(profile);
    let created = world.call(
        "terminal/create",
        json!({
            "sessionId": "s-1", "command": "cargo", "args": ["test", "a b"], "env": [{ "name": "CI", "value": "1" }],
            "cwd": "/project/sub", "outputByteLimit": 10,
        }),
    );
    let Some(Effect::StartTerminal { terminal, launch }) = world.effects.pop() else {
        panic!("a terminal");
    };
    assert_eq!(launch.command, ["cargo", "test", "a b"]);
    assert_eq!(launch.cwd, "/project/sub");
    assert_eq!(
        launch.env,
        [
            ("AGENT".to_owned(), "1".to_owned()),
            ("CI".to_owned(), "1".to_owned())
        ]
        .into()
    );
    let params = json!({ "sessionId": "s-1", "terminalId": created["terminalId"] });
    assert_eq!(
        world.call("terminal/output", params.clone()),
        json!({ "output": "", "truncated": false })
    );
    world.act(|engine| engine.on_terminal_output(terminal, "äöü0123456".as_bytes()));
    assert_eq!(
        world.call("terminal/output", params.clone()),
        json!({ "output": "ü0123456", "truncated": true }),
        "outputByteLimit"
    );
    // A tool call shows it, and goes on showing it after its release.
    world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "test", "kind": "execute", "content": [{ "type": "terminal", "terminalId": created["terminalId"] }] }));
    let shown = &world.tool(key)["content"][0];
    assert_eq!(
        (&shown["text"], &shown["running"]),
        (&json!("äöü0123456"), &json!(true))
    );
    let waits = [
        world.ask("terminal/wait_for_exit", params.clone()),
        world.ask("terminal/wait_for_exit", params.clone()),
    ];
    assert_eq!(world.call("terminal/kill", params.clone()), json!({}));
    assert_eq!(world.effects.pop(), Some(Effect::KillTerminal { terminal }));
    assert_eq!(world.answered(waits[0]), None);
    let exit = Exit {
        signal: Some(15),
        ..Exit::default()
    };
    world.act(|engine| engine.on_terminal_exit(terminal, &exit));
    for wait in waits {
        assert_eq!(world.result_of(wait), json!({ "signal": "SIGTERM" }));
    }
    assert_eq!(
        world.call("terminal/wait_for_exit", params.clone()),
        json!({ "signal": "SIGTERM" })
    );
    assert_eq!(
        world.call("terminal/output", params.clone())["exitStatus"],
        json!({ "signal": "SIGTERM" })
    );
    assert_eq!(world.call("terminal/kill", params.clone()), json!({}));
    assert_eq!(world.effects.pop(), None, "there is nothing left to kill");
    assert_eq!(world.call("terminal/release", params.clone()), json!({}));
    assert_eq!(
        world.effects.pop(),
        Some(Effect::ReleaseTerminal { terminal })
    );
    let shown = &world.tool(key)["content"][0];
    assert_eq!(
        (&shown["text"], &shown["running"], &shown["signal"]),
        (&json!("äöü0123456"), &json!(false), &json!("SIGTERM"))
    );
    for method in [
        "terminal/output",
        "terminal/wait_for_exit",
        "terminal/kill",
        "terminal/release",
    ] {
        let id = world.ask(method, params.clone());
        assert_eq!(world.error_of(id)["code"], -32002, "{method}");
        let id = world.ask(method, json!({ "sessionId": "s-1" }));
        assert_eq!(world.error_of(id)["code"], -32602, "{method}");
    }
}

#[test]
fn terminal_release_of_one_that_runs() {
    let (mut world, key) = World::plain();
    let created = world.call(
        "terminal/create",
        json!({ "sessionId": "s-1", "command": "sleep 9 && ls | wc" }),
    );
    let Some(Effect::StartTerminal { launch, .. }) = world.effects.pop() else {
        panic!("a terminal");
    };
    assert_eq!(
        launch.command,
        ["/bin/sh", "-c", "sleep 9 && ls | wc"],
        "a whole line is for a shell"
    );
    let params = json!({ "sessionId": "s-1", "terminalId": created["terminalId"] });
    world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "content": [{ "type": "terminal", "terminalId": created["terminalId"] }] }));
    let wait = world.ask("terminal/wait_for_exit", params.clone());
    world.call("terminal/release", params);
    assert_eq!(world.result_of(wait), json!({ "signal": "SIGKILL" }));
    assert_eq!(world.tool(key)["content"][0]["running"], false);
    assert_eq!(world.tool(key)["signal"], "SIGKILL");

    let id = world.ask(
        "terminal/create",
        json!({ "sessionId": "elsewhere", "command": "ls" }),
    );
    assert_eq!(world.error_of(id)["code"], -32602);
}

#[test]
fn elicitation_create_in_form_mode() {
    let schema = json!({
        "type": "object", "required": ["name"],
        "properties": {
            "name": { "type": "string", "title": "Name", "description": "as it is printed" },
            "store": { "type": "string", "enum": ["sqlite", "json"], "enumNames": ["SQLite", "JSON"] },
            "parts": { "type": "array", "items": { "type": "string", "enum": ["a", "b"] } },
            "count": { "type": "integer", "default": 3 },
            "ratio": { "type": "number" },
            "sure": { "type": "boolean" },
        },
    });
    let (mut world, _) = World::plain();
    let request = json!({ "sessionId": "s-1", "mode": "form", "message": "A few things", "requestedSchema": schema });
    let id = world.ask("elicitation/create", request.clone());
    let decision = world.decision();
    assert_eq!(
        (&decision["kind"], &decision["title"]),
        (&json!("question"), &json!("A few things"))
    );
    let questions = decision["questions"].as_array().unwrap();
    let asked: Vec<_> = questions
        .iter()
        .map(|q| (q["id"].as_str().unwrap(), q["type"].as_str().unwrap()))
        .collect();
    assert_eq!(
        asked,
        [
            ("name", "string"),
            ("store", "string"),
            ("parts", "array"),
            ("count", "integer"),
            ("ratio", "number"),
            ("sure", "boolean")
        ]
    );
    assert_eq!(questions[0]["prompt"], "Name: as it is printed");
    assert_eq!(
        questions[1]["options"][1],
        json!({ "id": "json", "label": "JSON" })
    );
    let number = decision["id"].as_u64().unwrap();
    for (answers, wrong) in [
        (json!({}), "\"Name: as it is printed\" needs an answer"),
        (
            json!({ "name": ["n"], "ratio": ["much"] }),
            "\"ratio\" takes a number, not \"much\"",
        ),
        (
            json!({ "name": ["n"], "store": ["oracle"] }),
            "\"store\" has no option \"oracle\"",
        ),
        (
            json!({ "name": ["n"], "store": ["json", "sqlite"] }),
            "\"store\" takes one answer",
        ),
        (json!({ "other": ["n"] }), "unknown question \"other\""),
    ] {
        let message = world
            .decide(number, json!({ "answers": answers }))
            .unwrap_err();
        assert_eq!(message, wrong);
    }
    assert_eq!(world.answered(id), None);
    let answers = json!({ "name": "n", "store": ["json"], "parts": ["a", "b"], "ratio": ["0.5"], "sure": ["true"] });
    world.decide(number, json!({ "answers": answers })).unwrap();
    assert_eq!(
        world.result_of(id),
        json!({ "action": "accept", "content": { "name": "n", "store": "json", "parts": ["a", "b"], "count": 3, "ratio": 0.5, "sure": true } })
    );
    for (answer, action) in [
        (json!({ "reject": true }), "decline"),
        (json!({ "skip": true }), "decline"),
        (json!({ "cancel": true }), "cancel"),
    ] {
        let id = world.ask("elicitation/create", request.clone());
        let number = world.decision()["id"].as_u64().unwrap();
        world.decide(number, answer).unwrap();
        assert_eq!(world.result_of(id), json!({ "action": action }));
    }
}

#[test]
fn elicitation_create_in_url_mode_and_elicitation_complete() {
    let (mut world, key) = World::plain();
    // Scoped by a request of ours, not by a session.
    let request = json!({ "requestId": 2, "mode": "url", "message": "Sign in", "url": "https://e/login", "elicitationId": "e1" });
    let id = world.ask("elicitation/create", request);
    let decision = world.decision();
    assert_eq!(decision["url"], "https://e/login");
    world
        .decide(decision["id"].as_u64().unwrap(), json!({ "accept": true }))
        .unwrap();
    assert_eq!(world.result_of(id), json!({ "action": "accept" }));
    let before = world.texts(key);
    world.notify("elicitation/complete", json!({ "elicitationId": "e1" }));
    assert_eq!(world.texts(key), before);

    let id = world.ask(
        "elicitation/create",
        json!({ "sessionId": "s-1", "mode": "telepathy", "message": "?" }),
    );
    assert_eq!(world.error_of(id)["code"], -32602);
}

#[test]
fn cancel_request_from_the_agent() {
    let (mut world, key) = World::plain();
    let prompt = world.prompt(key, "hello");
    let created = world.call(
        "terminal/create",
        json!({ "sessionId": "s-1", "command": "sleep" }),
    );
    let ids = [
        world.ask("session/request_permission", ask_for("t1")),
        world.ask(
            "fs/read_text_file",
            json!({ "sessionId": "s-1", "path": "a" }),
        ),
        world.ask(
            "terminal/wait_for_exit",
            json!({ "sessionId": "s-1", "terminalId": created["terminalId"] }),
        ),
    ];
    for id in ids {
        world.notify("$/cancel_request", json!({ "requestId": id }));
        assert_eq!(world.error_of(id)["code"], -32800);
    }
    assert_eq!(world.mirror.decided, [(1, "withdrawn".to_owned())]);
    assert_eq!(world.state(key), "running");
    // What comes too late is no second answer: the kit would say so.
    let (number, _) = world.editor_request();
    world.editor_replies(number, json!({ "ok": true, "content": "late" }));
    world.act(|engine| engine.on_terminal_exit(1, &Exit::default()));
    world.notify("$/cancel_request", json!({ "requestId": 99 }));
    world.notify("$/cancel_request", json!({}));
    world.end_turn(&prompt, "end_turn");
}

#[test]
fn params_that_cannot_be_read() {
    let (mut world, _) = World::plain();
    for method in [
        "session/request_permission",
        "fs/read_text_file",
        "fs/write_text_file",
        "terminal/create",
        "cursor/ask_question",
        "cursor/update_todos",
    ] {
        for params in [json!({}), json!([]), json!("x"), Value::Null] {
            let id = world.ask(method, params);
            assert_eq!(world.error_of(id)["code"], -32602, "{method}");
        }
    }
}

#[test]
fn every_other_method_of_the_table_is_answered_with_method_not_found() {
    let (mut world, key) = World::plain();
    for method in [
        // Ours to call, not theirs.
        "initialize",
        "authenticate",
        "logout",
        "session/new",
        "session/load",
        "session/resume",
        "session/list",
        "session/delete",
        "session/close",
        "session/set_mode",
        "session/set_config_option",
        "session/prompt",
        "session/set_model",
        // Unstable.
        "session/fork",
        "session/archive",
        "session/unarchive",
        "session/status",
        "session/set_title",
        "auth/status",
        "providers/list",
        "providers/set",
        "providers/disable",
        "mcp/message",
        "proxy/initialize",
        "proxy/successor",
        // A custom one.
        "_vendor/thing",
        "cursor/anything_else",
        "craft/drainMidTurnQueue",
    ] {
        let id = world.ask(method, json!({ "sessionId": "s-1" }));
        assert_eq!(world.error_of(id)["code"], -32601, "{method}");
    }
    assert_eq!(world.texts(key), [] as [&str; 0]);
    // As notifications they are ignored, and the stream goes on.
    for method in [
        "mcp/message",
        "_vendor/thing",
        "_qwen/notify",
        "cursor/anything_else",
        "auth/status_update",
    ] {
        world.notify(method, json!({ "sessionId": "s-1" }));
        world.notify(method, json!({}));
    }
    world.say("s-1", "go on");
    assert_eq!(world.texts(key), ["agent: go on"]);
}

#[test]
fn elicitation_content_is_what_the_schema_allows() {
    let field = |kind: Value| {
        let schema = json!({ "type": "object", "required": ["f"], "properties": { "f": kind } });
        json!({ "sessionId": "s-1", "mode": "form", "message": "m", "requestedSchema": schema })
    };
    // A default that is not of the field's type is none; numbers are finite.
    for (kind, answers, result) in [
        (
            json!({ "type": "number" }),
            json!({ "f": ["NaN"] }),
            Err("\"f\" takes a number, not \"NaN\""),
        ),
        (
            json!({ "type": "number" }),
            json!({ "f": ["inf"] }),
            Err("\"f\" takes a number, not \"inf\""),
        ),
        (
            json!({ "type": "number", "default": 1.5 }),
            json!({}),
            Ok(json!(1.5)),
        ),
        (
            json!({ "type": "number", "default": "1" }),
            json!({}),
            Err("\"f\" needs an answer"),
        ),
        (
            json!({ "type": "integer", "default": 1.5 }),
            json!({}),
            Err("\"f\" needs an answer"),
        ),
        (
            json!({ "type": "boolean", "default": false }),
            json!({}),
            Ok(json!(false)),
        ),
        (
            json!({ "type": "string", "default": { "odd": 1 } }),
            json!({}),
            Err("\"f\" needs an answer"),
        ),
        (
            json!({ "type": "array", "items": { "enum": ["a"] }, "default": ["a"] }),
            json!({}),
            Ok(json!(["a"])),
        ),
        (
            json!({ "type": "array", "items": { "enum": ["a"] }, "default": [1] }),
            json!({}),
            Err("\"f\" needs an answer"),
        ),
    ] {
        let (mut world, _) = World::plain();
        let id = world.ask("elicitation/create", field(kind));
        let number = world.decision()["id"].as_u64().unwrap();
        let taken = world.decide(number, json!({ "answers": answers }));
        let given = taken.map(|()| world.result_of(id)["content"]["f"].clone());
        assert_eq!(given, result.map_err(str::to_owned));
    }
}
