//! From nothing to a session and back: crashes, restarts, the queue, what belongs to which session.

use engine::effect::Effect;
use serde_json::json;

use crate::kit::{Profile, World};

#[test]
fn a_turn_is_told_as_it_happens() {
    let (mut world, key) = World::plain();
    let prompt = world.prompt(key, "hello");
    assert_eq!(world.state(key), "running");
    world.say("s-1", "Hi ");
    world.say("s-1", "there.");
    world.end_turn(&prompt, "end_turn");
    assert_eq!(world.texts(key), ["user: hello", "agent: Hi there."]);
    assert_eq!(world.state(key), "idle");
    assert_eq!(world.event_names(), ["Ready", "TurnStart", "TurnEnd"]);
}

fn permission(session: &str, call: &str) -> serde_json::Value {
    json!({
        "sessionId": session,
        "toolCall": { "toolCallId": call, "title": "`ls`", "kind": "execute" },
        "options": [{ "optionId": "yes", "name": "Yes", "kind": "allow_once" }, { "optionId": "no", "name": "No", "kind": "reject_once" }],
    })
}

/// Opens one of everything an agent can wait for.
fn ask_everything(world: &mut World, session: &str) -> [u64; 4] {
    let terminal = world.call(
        "terminal/create",
        json!({ "sessionId": session, "command": "sleep", "args": ["9"] }),
    );
    let wait = json!({ "sessionId": session, "terminalId": terminal["terminalId"] });
    [
        world.ask("session/request_permission", permission(session, "t1")),
        world.ask("cursor/create_plan", json!({ "plan": "# Plan" })),
        world.ask(
            "fs/read_text_file",
            json!({ "sessionId": session, "path": "/a" }),
        ),
        world.ask("terminal/wait_for_exit", wait),
    ]
}

#[test]
fn everybody_who_waits_is_answered_before_the_process_is_let_go() {
    type End = fn(&mut World, engine::ids::Key);
    let ends: [(&str, End); 4] = [
        ("stop", |world, key| {
            world.act(|engine| engine.stop(key)).unwrap()
        }),
        ("restart", |world, key| {
            world.act(|engine| engine.restart(key)).unwrap()
        }),
        ("close", |world, key| {
            world.act(|engine| engine.close(key)).unwrap()
        }),
        ("shutdown", |world, _| world.act(|engine| engine.shutdown())),
    ];
    for (name, end) in ends {
        let (mut world, key) = World::plain();
        world.prompt(key, "hello");
        let proc = world.proc();
        let ids = ask_everything(&mut world, "s-1");
        end(&mut world, key);
        let answers: Vec<_> = ids.map(|id| world.answered_by(proc, id).unwrap()).into();
        let cancelled = json!({ "outcome": { "outcome": "cancelled" } });
        assert_eq!(answers[0]["result"], cancelled, "{name}");
        assert_eq!(answers[1]["result"], cancelled, "{name}");
        assert_eq!(answers[2]["error"]["code"], -32800, "{name}");
        let end = world
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::End { proc: of, .. } if *of == proc));
        assert!(end, "{name}");
        assert_eq!(world.mirror.pending.len(), 0, "{name}");
        // What it still asks afterwards is not shown.
        world.hear_from(proc, &json!({ "id": 77, "method": "session/request_permission", "params": permission("s-1", "t2") }));
        assert_eq!(world.mirror.pending.len(), 0, "{name}");
    }
}

#[test]
fn calls_of_the_user_are_answered_when_the_agent_goes_away() {
    for crash in [true, false] {
        let (mut world, key) = World::plain();
        world.profile = None;
        let numbers = [
            world.act(|engine| engine.list_sessions(key)).unwrap().0,
            world
                .act(|engine| engine.delete_session(key, "old"))
                .unwrap()
                .0,
            world.act(|engine| engine.logout(key)).unwrap().0,
        ];
        let proc = world.proc();
        if crash {
            world.exit(proc, 1, &[]);
        } else {
            world.act(|engine| engine.restart(key)).unwrap();
        }
        for number in numbers {
            assert_eq!(
                world.mirror.results[&number],
                (false, json!("plain stopped before answering"))
            );
        }
    }
}

#[test]
fn a_prompt_that_waits_for_a_session_is_not_sent_to_a_process_that_was_stopped() {
    let (mut world, key) = World::plain();
    let spec = world.spec();
    let profile = world.profile.take();
    let second = world
        .act(|engine| engine.open(spec, Default::default()))
        .unwrap();
    let new = world.take("session/new");
    world.queue(second, "later");
    let old = world.proc();
    world.act(|engine| engine.stop(key)).unwrap();
    world.hear_from(
        old,
        &json!({ "id": new["id"], "result": { "sessionId": "s-9" } }),
    );
    assert_eq!(world.status(second)["queued"], 1);
    assert_eq!(world.state(second), "stopped");
    world.exit(old, 0, &[]);

    world.profile = profile;
    world.act(|engine| engine.restart(second)).unwrap();
    assert_eq!(
        world.all_sent("session/prompt").len(),
        1,
        "it is sent to the next one"
    );
    assert_eq!(world.state(second), "running");
}

#[test]
fn a_crash_keeps_transcript_and_queue_and_a_restart_goes_on() {
    // (profile, how the session goes on)
    for (profile, method) in [
        (Profile::plain(), "session/resume"),
        (Profile::cursor(), "session/load"),
    ] {
        for by_prompt in [false, true] {
            let (mut world, key) = World::ready(profile.clone());
            world.prompt(key, "first");
            world.say("s-1", "half an ans");
            world.queue(key, "second");
            let proc = world.proc();
            world.exit(proc, 3, &["out of memory", "goodbye"]);
            assert_eq!(world.state(key), "failed");
            let error = world.status(key)["error"].as_str().unwrap().to_owned();
            for part in [
                "exit 3",
                "during a turn",
                "out of memory",
                "goodbye",
                ":CursorAgent restart",
            ] {
                assert!(error.contains(part), "{part} in {error}");
            }
            assert_eq!(world.last_told(), error);
            assert_eq!(world.status(key)["queued"], 1);
            let before = world.texts(key);
            assert_eq!(before[..2], ["user: first", "agent: half an ans"]);
            let (_, exit) = world
                .mirror
                .events
                .iter()
                .find(|(name, _)| name == "CursorAgentExit")
                .unwrap();
            assert_eq!(
                (&exit["code"], &exit["stderr"]),
                (&json!(3), &json!("out of memory\ngoodbye"))
            );

            if by_prompt {
                world.queue(key, "third");
            } else {
                world.act(|engine| engine.restart(key)).unwrap();
            }
            assert_eq!(world.all_sent(method).len(), 1, "{method}");
            assert_eq!(world.all_sent(method)[0]["sessionId"], "s-1");
            if method == "session/load" {
                // What is replayed is in the transcript already.
                world.update("s-1", crate::kit::text_chunk("user_message_chunk", "first"));
                world.say("s-1", "half an answer");
            }
            world.advance(1000);
            let prompt = world.take("session/prompt");
            assert_eq!(prompt["params"]["prompt"][0]["text"], "second");
            let after = world.texts(key);
            assert_eq!(after[..before.len()], before);
            assert_eq!(after[before.len()..], ["user: second"]);
            assert_eq!(world.state(key), "running");
        }
    }
}

#[test]
fn an_agent_that_cannot_go_on_gets_a_new_session_and_the_user_is_told() {
    let (mut world, key) = World::ready(Profile::bare());
    let prompt = world.prompt(key, "first");
    world.end_turn(&prompt, "end_turn");
    let proc = world.proc();
    world.exit(proc, 1, &[]);
    let prompt = world.prompt(key, "second");
    assert_eq!(prompt["params"]["sessionId"], "s-1");
    assert_eq!(world.all_sent("session/new").len(), 1);
    assert!(
        world
            .texts(key)
            .iter()
            .any(|text| text.contains("does not know what was said above"))
    );

    // A load that fails falls back as well.
    let (mut world, key) = World::cursor();
    let prompt = world.prompt(key, "first");
    world.end_turn(&prompt, "end_turn");
    let proc = world.proc();
    world.exit(proc, 1, &[]);
    let profile = world.profile.take();
    world.act(|engine| engine.restart(key)).unwrap();
    let initialize = world.take("initialize");
    world.reply(&initialize, profile.as_ref().unwrap().initialize.clone());
    let load = world.take("session/load");
    world.profile = profile;
    world.refuse(&load, -32602, "Session not found");
    assert_eq!(world.state(key), "idle");
    assert_eq!(world.status(key)["session_id"], "s-1");
    assert!(
        world
            .texts(key)
            .iter()
            .any(|text| text.contains("Session not found"))
    );
}

#[test]
fn an_old_timer_does_not_end_a_later_replay() {
    let (mut world, key) = World::cursor();
    let prompt = world.prompt(key, "first");
    world.end_turn(&prompt, "end_turn");
    let proc = world.proc();
    world.exit(proc, 1, &[]);
    world.act(|engine| engine.restart(key)).unwrap();
    assert_eq!(world.state(key), "starting", "the replay may go on");
    // Its timer runs, and the process dies and is started again.
    world.advance(250);
    let proc = world.proc();
    world.exit(proc, 1, &[]);
    let profile = world.profile.take().unwrap();
    world.queue(key, "second");
    let initialize = world.take("initialize");
    world.reply(&initialize, profile.initialize);
    world.take("session/load");
    world.advance(100);
    assert_eq!(
        world.sent("session/prompt"),
        None,
        "the load is not answered yet"
    );
}

#[test]
fn a_loaded_session_is_replayed_even_after_a_login() {
    let mut world = World::new(None);
    let wanted = engine::sessions::session::Wanted {
        load: Some("old".to_owned()),
        ..Default::default()
    };
    let spec = Profile::cursor().spec;
    let key = world.act(|engine| engine.open(spec, wanted)).unwrap();
    let request = world.take("initialize");
    world.reply(&request, Profile::cursor().initialize);
    for method in ["session/load", "authenticate", "session/load"] {
        let request = world.take(method);
        world.refuse(&request, -32000, "Authentication required");
    }
    assert_eq!(world.status(key)["needs_login"], true);
    world.profile = Some(Profile::cursor());
    world.act(|engine| engine.logged_in(key)).unwrap();
    world.update(
        "old",
        crate::kit::text_chunk("user_message_chunk", "what was asked"),
    );
    world.say("old", "what was said");
    world.advance(1000);
    assert_eq!(world.state(key), "idle");
    assert_eq!(world.status(key)["session_id"], "old");
    assert_eq!(
        world.texts(key)[1..],
        ["user: what was asked", "agent: what was said"]
    );
}

#[test]
fn a_queued_prompt_can_be_sent_now_after_a_crash() {
    let (mut world, key) = World::plain();
    world.prompt(key, "first");
    let id = world.queue(key, "second");
    let proc = world.proc();
    world.exit(proc, 1, &[]);
    world
        .act(|engine| engine.queue_send_now(key, engine::ids::PromptId(id)))
        .unwrap();
    assert_eq!(
        world.take("session/prompt")["params"]["prompt"][0]["text"],
        "second"
    );
}

#[test]
fn a_request_taken_back_is_that_process_own() {
    let (mut world, _) = World::plain();
    let wait = |world: &mut World, session: &str| {
        let terminal = world.call(
            "terminal/create",
            json!({ "sessionId": session, "command": "sleep" }),
        );
        world.ask(
            "terminal/wait_for_exit",
            json!({ "sessionId": session, "terminalId": terminal["terminalId"] }),
        )
    };
    let first = world.proc();
    let id = wait(&mut world, "s-1");
    let mut spec = world.spec();
    spec.cwd = "/elsewhere".to_owned();
    world
        .act(|engine| engine.open(spec, Default::default()))
        .unwrap();
    assert_ne!(world.proc(), first);
    let other = wait(&mut world, "s-1");
    assert_eq!(id, other, "the same number in both");
    world.notify("$/cancel_request", json!({ "requestId": other }));
    assert_eq!(world.error_of(other)["code"], -32800);
    let exit = engine::agents::launch::Exit {
        code: Some(0),
        ..Default::default()
    };
    for terminal in [1, 2] {
        world.act(|engine| engine.on_terminal_exit(terminal, &exit));
    }
    assert_eq!(
        world.answered_by(first, id).unwrap()["result"],
        json!({ "exitCode": 0 })
    );
}

#[test]
fn a_closed_session_leaves_no_terminal_and_no_text_behind() {
    let (mut world, first) = World::plain();
    let second = world.open(Default::default());
    let terminal = world.call(
        "terminal/create",
        json!({ "sessionId": "s-1", "command": "sleep" }),
    );
    let wait = world.ask(
        "terminal/wait_for_exit",
        json!({ "sessionId": "s-1", "terminalId": terminal["terminalId"] }),
    );
    world.act(|engine| engine.close(first)).unwrap();
    assert_eq!(world.result_of(wait), json!({ "signal": "SIGKILL" }));
    assert!(
        world
            .effects
            .contains(&Effect::ReleaseTerminal { terminal: 1 })
    );
    assert_eq!(
        world.all_sent("session/close"),
        [json!({ "sessionId": "s-1" })]
    );
    let running = world.prompt(second, "hello");
    world.say("s-1", "late");
    assert_eq!(
        world.call("session/request_permission", permission("s-1", "t"))["outcome"]["outcome"],
        "cancelled"
    );
    world.end_turn(&running, "end_turn");
    assert_eq!(world.texts(second), ["user: hello"]);
    assert!(world.act(|engine| engine.close(first)).is_err());
}

#[test]
fn a_replay_that_broke_off_goes_on_where_it_was() {
    // The process ends before the load is answered, or just after it.
    for answered in [false, true] {
        let profile = Profile::plain();
        let mut world = World::new(None);
        let spec = profile.spec.clone();
        let wanted = engine::sessions::session::Wanted {
            load: Some("old".to_owned()),
            ..Default::default()
        };
        let key = world.act(|engine| engine.open(spec, wanted)).unwrap();
        let replay = |world: &mut World, count: usize| {
            let request = world.take("initialize");
            world.reply(&request, profile.initialize.clone());
            let request = world.take("session/load");
            let say = |kind: &str, text: &str| crate::kit::text_chunk(kind, text);
            let updates = [
                say("user_message_chunk", "one"),
                say("agent_message_chunk", "two"),
                json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "three", "status": "completed" }),
                say("agent_message_chunk", "four"),
            ];
            for update in updates.into_iter().take(count) {
                world.update("old", update);
            }
            request
        };
        let request = replay(&mut world, 2);
        if answered {
            world.reply(&request, json!({}));
        }
        let proc = world.proc();
        world.exit(proc, 1, &[]);
        world.queue(key, "five");
        let request = replay(&mut world, 4);
        world.reply(&request, json!({}));
        world.advance(1000);
        world.take("session/prompt");
        let mut texts = world.texts(key);
        assert!(texts.remove(2).contains("exit 1"));
        assert_eq!(
            texts,
            [
                "user: one",
                "agent: two",
                "tool: three",
                "agent: four",
                "user: five"
            ]
        );
    }
}

#[test]
fn queued_prompts_can_be_changed_and_are_sent_in_their_order() {
    let (mut world, key) = World::plain();
    let running = world.prompt(key, "running");
    let ids: Vec<_> = ["a", "b", "c", "d"]
        .map(|text| engine::ids::PromptId(world.queue(key, text)))
        .into();
    let queue = |world: &World| -> Vec<String> {
        let status = world.status(key);
        let queue = status["queue"].as_array().unwrap().clone();
        queue
            .iter()
            .map(|prompt| prompt["text"].as_str().unwrap().to_owned())
            .collect()
    };
    let spec = |text: &str| engine::sessions::session::PromptSpec {
        text: text.to_owned(),
        blocks: Vec::new(),
        ..Default::default()
    };
    world
        .act(|engine| engine.queue_move(key, ids[3], 1))
        .unwrap();
    assert_eq!(queue(&world), ["d", "a", "b", "c"]);
    world
        .act(|engine| engine.queue_move(key, ids[3], 99))
        .unwrap();
    world
        .act(|engine| engine.queue_edit(key, ids[1], spec("B")))
        .unwrap();
    world
        .act(|engine| engine.queue_remove(key, ids[2]))
        .unwrap();
    assert_eq!(queue(&world), ["a", "B", "d"]);
    let gone = world
        .act(|engine| engine.queue_remove(key, ids[2]))
        .unwrap_err();
    assert_eq!(
        gone.to_string(),
        format!(
            "prompt {} is not in the queue: it was sent or removed",
            ids[2].0
        )
    );
    let empty = world
        .act(|engine| engine.queue_edit(key, ids[1], spec("  ")))
        .unwrap_err();
    assert_eq!(empty.to_string(), "the prompt is empty");
    // Now: the turn that runs is cancelled, and this one is next.
    world
        .act(|engine| engine.queue_send_now(key, ids[3]))
        .unwrap();
    assert_eq!(world.take("session/cancel")["params"]["sessionId"], "s-1");
    world.end_turn(&running, "cancelled");
    assert_eq!(
        world.take("session/prompt")["params"]["prompt"][0]["text"],
        "d"
    );
    assert_eq!(queue(&world), ["a", "B"]);
}

#[test]
fn an_answer_by_a_rule_leaves_a_line_that_names_it() {
    let (mut world, key) = World::plain();
    world.prompt(key, "hello");
    for (answer, line) in [
        (json!({ "accept": true }), "notice: allowed by rule 2: ls"),
        (json!({ "reject": true }), "notice: rejected by rule 2: ls"),
    ] {
        world.ask("session/request_permission", permission("s-1", "t1"));
        let id = world.decision()["id"].as_u64().unwrap();
        let answer = serde_json::from_value(answer).unwrap();
        let rule = Some("rule 2".to_owned());
        world
            .act(|engine| engine.answer(engine::ids::DecisionId(id), &answer, rule))
            .unwrap();
        assert_eq!(world.texts(key).last().unwrap(), line);
        assert_eq!(
            world.mirror.decided.last().unwrap(),
            &(id, "policy".to_owned())
        );
    }
}

#[test]
fn sessions_of_one_agent_and_directory_share_a_process() {
    let (mut world, first) = World::plain();
    let proc = world.proc();
    let second = world.open(Default::default());
    assert_eq!(world.proc(), proc);
    assert_eq!(world.status(second)["session_id"], "s-2");
    let mut elsewhere = world.spec();
    elsewhere.cwd = "/elsewhere".to_owned();
    let third = world
        .act(|engine| engine.open(elsewhere, Default::default()))
        .unwrap();
    assert_ne!(world.proc(), proc);
    // A crash ends all of its sessions and no others; a restart brings them all back.
    world.exit(proc, 1, &[]);
    assert_eq!(world.state(first), "failed");
    assert_eq!(world.state(second), "failed");
    assert_eq!(world.state(third), "idle");
    world.act(|engine| engine.restart(second)).unwrap();
    assert_eq!(world.state(first), "idle");
    assert_eq!(world.state(second), "idle");
    let resumed: Vec<_> = world
        .all_sent("session/resume")
        .iter()
        .map(|params| params["sessionId"].clone())
        .collect();
    assert_eq!(resumed, ["s-1", "s-2"]);
    // A session is open once.
    let again = world.spec();
    let wanted = engine::sessions::session::Wanted {
        load: Some("s-2".to_owned()),
        ..Default::default()
    };
    let refused = world.act(|engine| engine.open(again, wanted)).unwrap_err();
    assert_eq!(refused.to_string(), "session s-2 is already open");
}

/// Lines that cannot be read, each with its message.
fn unreadable(id: &str, rest: &str) -> [(String, &'static str); 5] {
    let deep = format!("{}{}", "[".repeat(400), "]".repeat(400));
    let with = |value: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},{rest}{value}}}"#);
    [
        (with(&deep), "nested more than 127 levels deep"),
        (with("[1e999]"), "a number that does not fit in 64 bits"),
        (with("[NaN]"), "not valid JSON"),
        // Half an emoji and a stray byte are read; what comes after them is not.
        (
            with(&format!(r#"["\ud83d",{deep}]"#)),
            "nested more than 127 levels deep",
        ),
        (
            format!("[{}]", with(&deep)),
            "nested more than 127 levels deep",
        ),
    ]
}

#[test]
fn an_answer_that_cannot_be_read_fails_what_waits_for_it() {
    for at in 0..5 {
        let (mut world, key) = World::plain();
        let prompt = world.prompt(key, "hello");
        let (line, why) = unreadable(&prompt["id"].to_string(), r#""result":"#)[at].clone();
        let proc = world.proc();
        world.hear_line(proc, line.as_bytes());
        assert_eq!(world.state(key), "idle", "{line}");
        let texts = world.texts(key).join("\n");
        assert!(texts.contains(why), "{line}: {texts}");
        let again = world.prompt(key, "again");
        world.end_turn(&again, "end_turn");
    }
}

#[test]
fn a_request_that_cannot_be_read_is_answered_and_named() {
    for at in 0..5 {
        let (mut world, key) = World::plain();
        let rest = r#""method":"fs/read_text_file","params":"#;
        let (line, why) = unreadable("77", rest)[at].clone();
        let proc = world.proc();
        world.hear_line(proc, line.as_bytes());
        let error = world.error_of(77);
        assert_eq!(error["code"], -32600, "{line}");
        assert!(error["message"].as_str().unwrap().contains(why), "{error}");
        let texts = world.texts(key).join("\n");
        assert!(texts.contains(why), "{line}: {texts}");
    }
}

#[test]
fn what_only_looks_like_a_message_is_not_answered() {
    let (mut world, key) = World::plain();
    let proc = world.proc();
    for line in [
        r#"{"id":1,"level":"info","x":NaN}"#,
        "[INFO] started",
        r#"[{"a":1},"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"x","params":["#,
    ] {
        world.hear_line(proc, line.as_bytes());
    }
    assert_eq!(world.answered(1), None);
    assert_eq!(world.texts(key), Vec::<String>::new());
}
