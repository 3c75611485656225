//! What holds for any sequence of messages and calls: no request is left unanswered or answered twice, nothing panics,
//! nothing that was said is lost, and the editor ends up knowing what the engine knows.
//!
//! The kit checks each line on its way out; here the sequences are made, and what must hold after each step.

use std::collections::{BTreeMap, BTreeSet};

use engine::FileError;
use engine::agents::launch::Exit;
use engine::effect::Effect;
use engine::ids::{Key, Proc, PromptId};
use engine::sessions::session::{OptionValue, PromptSpec, Wanted};
use proptest::prelude::*;
use proptest::strategy::Union;
use serde_json::{Value, json};

use crate::kit::{Profile, World, text_chunk};

/// One step. Numbers choose among what there is at that time.
#[derive(Debug, Clone)]
enum Step {
    Editor(Call),
    World(News),
    Agent(usize, Said),
    /// Everybody answers what is owed but the prompts, so that there are sessions that can be prompted.
    Settle,
    Drain(usize),
}

/// What the user does.
#[derive(Debug, Clone)]
enum Call {
    Open { cursor: bool, load: bool },
    Close(usize),
    Prompt(usize),
    Cancel(usize),
    Stop(usize),
    Restart(usize),
    LoggedIn(usize),
    Set(usize, u8),
    Ask(usize, u8),
    Queue(usize, usize, u8),
    Answer(usize, u8),
    Reply(usize, u8),
    Shutdown,
}

/// What happens in the world.
#[derive(Debug, Clone)]
enum News {
    Exit(usize),
    CannotStart(usize),
    Stderr(usize, String),
    Pass(u64),
    Disk(bool),
    Diff,
    Printed(u64, Vec<u8>),
    Ended(u64, i32),
    TooLong(usize),
}

/// What the agent says.
#[derive(Debug, Clone)]
enum Said {
    /// An answer to a request of ours: well, with an error, or oddly.
    Reply(usize, u8),
    /// A piece of text that can be told from every other.
    Text(usize, u8),
    Update(usize, Value),
    Request {
        method: &'static str,
        params: Value,
        session: usize,
        same_id: bool,
    },
    Notify {
        method: &'static str,
        params: Value,
        session: usize,
    },
    Withdraw(usize),
    Line(Line),
}

/// Bytes that are read as text when a test fails.
#[derive(Clone)]
struct Line(Vec<u8>);

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

struct Chaos {
    world: World,
    keys: Vec<Key>,
    /// Prompts that were taken, by session.
    prompts: BTreeMap<Key, BTreeSet<u64>>,
    /// Texts that must be in a session, in order.
    said: BTreeMap<Key, Vec<String>>,
    texts: usize,
    /// How many sessions the agents made.
    sessions: usize,
    last_id: u64,
    closing: bool,
    steps: usize,
}

impl Chaos {
    fn new() -> Self {
        let mut world = World::new(None);
        world.budget = None;
        Self {
            world,
            keys: Vec::new(),
            prompts: BTreeMap::new(),
            said: BTreeMap::new(),
            texts: 0,
            sessions: 0,
            last_id: 1000,
            closing: false,
            steps: 0,
        }
    }

    fn key(&self, pick: usize) -> Option<Key> {
        let count = self.keys.len();
        (count > 0).then(|| self.keys[pick % count])
    }

    /// A session's id: mostly an existing one, else a subagent's or an unknown one.
    fn session_id(&self, pick: usize) -> String {
        let ids = self.keys.iter().filter_map(|key| {
            let status = self.world.status(*key);
            Some(status.get("session_id")?.as_str()?.to_owned())
        });
        let mut ids: Vec<String> = ids.collect();
        ids.extend(["old", "sub-1"].map(str::to_owned));
        ids.swap_remove(pick % ids.len())
    }

    fn proc(&self, pick: usize) -> Option<Proc> {
        let procs = self.world.procs();
        (!procs.is_empty()).then(|| procs[pick % procs.len()])
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Editor(call) => self.call(call),
            Step::World(news) => self.news(news),
            Step::Agent(pick, said) => {
                if let Some(proc) = self.proc(pick) {
                    self.hear(proc, said);
                }
            }
            Step::Settle => self.settle(),
            Step::Drain(budget) => {
                if !self.world.mirror.drain(&mut self.world.engine, budget) {
                    self.world.mirror.assert_same(&self.world.engine);
                }
            }
        }
        self.check_states();
        self.steps += 1;
        if self.steps.is_multiple_of(8) {
            self.check_sessions();
        }
    }

    /// What is true at any time: each session is in a state, and whoever is asked about is there to be answered.
    fn check_states(&self) {
        let world = &self.world;
        let state_of = |key: Key| world.state(key);
        for key in &self.keys {
            let state = state_of(*key);
            let known = [
                "stopped", "starting", "idle", "running", "waiting", "failed",
            ];
            assert!(known.contains(&state.as_str()), "{state}");
        }
        for decision in world.engine.pending(None) {
            let decision = serde_json::to_value(decision).unwrap();
            let key = Key(decision["key"].as_u64().unwrap());
            assert!(self.keys.contains(&key), "{decision}");
            let state = state_of(key);
            let asking = ["starting", "waiting"].contains(&state.as_str());
            assert!(asking, "{state}: {decision}");
        }
    }

    /// Nothing that was typed or said is lost, whatever happened to the agent.
    fn check_sessions(&self) {
        for key in &self.keys {
            let entries = self.world.transcript(*key);
            // Each prompt that was taken was sent once or waits.
            let sent = entries.iter().filter_map(|entry| entry["prompt"].as_u64());
            let status = self.world.status(*key);
            let queue = status["queue"].as_array().unwrap();
            let waits = queue.iter().filter_map(|prompt| prompt["id"].as_u64());
            let mut all: Vec<u64> = sent.chain(waits).collect();
            all.sort_unstable();
            let taken: Vec<u64> = self.prompts[key].iter().copied().collect();
            assert_eq!(all, taken, "prompts of {key:?}");
            // What was said is there, once and in order.
            let texts: Vec<&str> = entries
                .iter()
                .filter(|entry| entry["kind"] == "agent")
                .map(|entry| entry["text"].as_str().unwrap())
                .collect();
            let whole = texts.concat();
            let mut from = 0;
            for text in &self.said[key] {
                let at = whole[from..].find(text.as_str());
                from += at.unwrap_or_else(|| panic!("{text} is lost or out of order in {whole}"));
                assert_eq!(whole.matches(text.as_str()).count(), 1, "{text}");
            }
        }
    }

    fn settle(&mut self) {
        if self.keys.is_empty() {
            self.call(Call::Open {
                cursor: self.steps.is_multiple_of(2),
                load: false,
            });
        }
        for key in self.keys.clone() {
            if ["failed", "stopped"].contains(&self.world.state(key).as_str()) {
                let restarted = self.world.act(|engine| engine.restart(key));
                restarted.unwrap();
            }
        }
        for _ in 0..20 {
            for proc in self.world.procs() {
                let owed = &self.world.wire(proc).owed;
                let call = owed
                    .iter()
                    .position(|call| call["method"] != "session/prompt");
                if let Some(at) = call {
                    self.reply(proc, at, 9);
                }
            }
        }
        self.call(Call::Prompt(self.steps));
    }

    fn call(&mut self, call: Call) {
        let world = &mut self.world;
        match call {
            Call::Open { cursor, load } => {
                let profile = if cursor {
                    Profile::cursor()
                } else {
                    Profile::plain()
                };
                let wanted = Wanted {
                    load: load.then(|| "old".to_owned()),
                    model: cursor.then(|| "opus".to_owned()),
                    mode: load.then(|| "plan".to_owned()),
                    ..Wanted::default()
                };
                match world.act(|engine| engine.open(profile.spec, wanted)) {
                    Ok(key) => {
                        self.keys.push(key);
                        self.prompts.insert(key, BTreeSet::new());
                        self.said.insert(key, Vec::new());
                    }
                    Err(error) => {
                        assert!(
                            self.closing || matches!(error, engine::Error::OpenAlready { .. }),
                            "{error}"
                        );
                    }
                }
            }
            Call::Close(pick) => {
                if let Some(key) = self.key(pick) {
                    self.world.act(|engine| engine.close(key)).unwrap();
                    self.keys.retain(|other| *other != key);
                    assert!(self.world.engine.pending(Some(key)).is_empty());
                    assert!(self.world.act(|engine| engine.close(key)).is_err());
                }
            }
            Call::Shutdown => {
                self.closing = true;
                world.act(|engine| engine.shutdown());
                assert!(world.engine.pending(None).is_empty());
            }
            Call::Prompt(pick) => {
                if let Some(key) = self.key(pick) {
                    let id = self.world.queue(key, &format!("prompt {pick}"));
                    assert!(self.prompts.entry(key).or_default().insert(id));
                }
            }
            Call::Queue(pick, at, how) => {
                if let Some(key) = self.key(pick) {
                    self.queue(key, at, how);
                }
            }
            Call::Answer(pick, how) => self.answer(pick, how),
            Call::Reply(pick, how) => {
                let waiting = self.world.mirror.editor.len();
                if waiting > 0 {
                    let (id, request) = self.world.mirror.editor.remove(pick % waiting);
                    let reply = match how % 4 {
                        3 => json!({ "ok": false, "ask": true }),
                        0 => json!({ "ok": true, "content": request["path"] }),
                        1 => json!({ "ok": true, "disk": true }),
                        _ => json!({ "ok": false, "error": "no" }),
                    };
                    self.world.editor_replies(id, reply);
                }
            }
            Call::Cancel(pick)
            | Call::Stop(pick)
            | Call::Restart(pick)
            | Call::LoggedIn(pick)
            | Call::Set(pick, _)
            | Call::Ask(pick, _) => {
                let Some(key) = self.key(pick) else { return };
                // Whether it can be done depends on the state; what matters is what it leads to.
                let _ = self.world.act(|engine| match call {
                    Call::Cancel(_) => engine.cancel(key),
                    Call::Stop(_) => engine.stop(key),
                    Call::Restart(_) => engine.restart(key),
                    Call::LoggedIn(_) => engine.logged_in(key),
                    Call::Set(_, 0) => engine.set_mode(key, "plan"),
                    Call::Set(_, 1) => engine.set_model(key, "opus"),
                    Call::Set(_, _) => engine.set_option(key, "thinking", &OptionValue::Bool(true)),
                    Call::Ask(_, 0) => engine.list_sessions(key).map(drop),
                    Call::Ask(_, 1) => engine.delete_session(key, "old").map(drop),
                    _ => engine.logout(key).map(drop),
                });
            }
        }
    }

    fn queue(&mut self, key: Key, at: usize, how: u8) {
        let status = self.world.status(key);
        let queue = status["queue"].as_array().unwrap();
        if queue.is_empty() {
            return;
        }
        let number = queue[at % queue.len()]["id"].as_u64().unwrap();
        let id = PromptId(number);
        let spec = PromptSpec {
            text: "edited".to_owned(),
            blocks: Vec::new(),
            ..Default::default()
        };
        self.world
            .act(|engine| match how % 4 {
                0 => engine.queue_edit(key, id, spec),
                1 => engine.queue_move(key, id, at),
                2 => engine.queue_send_now(key, id),
                _ => engine.queue_remove(key, id),
            })
            .unwrap();
        if how % 4 == 3 {
            self.prompts.entry(key).or_default().remove(&number);
        }
    }

    fn answer(&mut self, pick: usize, how: u8) {
        let pending = self.world.engine.pending(None);
        if pending.is_empty() {
            return;
        }
        let decision = serde_json::to_value(&pending[pick % pending.len()]).unwrap();
        let answer = match how {
            0 => json!({ "accept": true }),
            1 => json!({ "reject": true, "reason": "no" }),
            2 => json!({ "cancel": true }),
            3 => json!({ "skip": true }),
            4 => json!({ "option": "nothing" }),
            _ => {
                let questions = decision["questions"].as_array();
                let asked = questions.into_iter().flatten();
                let given = asked.filter(|question| how == 5 || question["required"] == true);
                let given = given.map(|question| {
                    let choice = question["options"][0]["id"].as_str();
                    let free = ["7", "NaN", "0.5", "inf", "words"][pick % 5];
                    let id = question["id"].as_str().unwrap().to_owned();
                    (id, json!([choice.unwrap_or(free)]))
                });
                json!({ "answers": given.collect::<serde_json::Map<_, _>>() })
            }
        };
        let id = decision["id"].as_u64().unwrap();
        let before = self.world.engine.pending(None).len();
        let taken = self.world.decide(id, answer.clone());
        let after = self.world.engine.pending(None).len();
        assert_eq!(before - after, usize::from(taken.is_ok()), "{decision}");
        if taken.is_ok() {
            assert!(self.world.decide(id, answer).is_err(), "only once");
            if let Some(write) = decision["request"].as_u64() {
                let reply = json!({ "ok": how == 0, "error": "kept" });
                self.world.editor_replies(write, reply);
            }
        }
    }

    fn news(&mut self, news: News) {
        match news {
            News::Exit(pick) => {
                if let Some(proc) = self.proc(pick) {
                    self.world.exit(proc, 1, &["last words"]);
                }
            }
            News::CannotStart(pick) => {
                if let Some(proc) = self.proc(pick)
                    && self.world.wire(proc).owed.len() == 1
                {
                    self.world.cannot_start(proc);
                }
            }
            News::Stderr(pick, text) => {
                if let Some(proc) = self.proc(pick) {
                    self.world.act(|engine| engine.on_stderr(proc, &text));
                }
            }
            News::TooLong(pick) => {
                if let Some(proc) = self.proc(pick) {
                    self.world.act(|engine| engine.on_too_long(proc, 1 << 27));
                }
            }
            News::Pass(ms) => self.world.advance(ms),
            News::Disk(well) => {
                if let Some(Effect::Disk { request, .. }) =
                    self.take_effect(|effect| matches!(effect, Effect::Disk { .. }))
                {
                    let done = if well {
                        Ok("text".to_owned())
                    } else {
                        Err(FileError::of_editor(None))
                    };
                    self.world.act(|engine| engine.on_file_done(request, done));
                }
            }
            News::Diff => {
                if let Some(Effect::Diff(job)) =
                    self.take_effect(|effect| matches!(effect, Effect::Diff(_)))
                {
                    let diff = job.run(None);
                    self.world.act(|engine| engine.on_diff(&job, diff));
                }
            }
            News::Printed(terminal, bytes) => {
                self.world
                    .act(|engine| engine.on_terminal_output(terminal, &bytes));
            }
            News::Ended(terminal, code) => {
                let exit = Exit {
                    code: (code >= 0).then_some(code),
                    signal: (code < 0).then_some(-code),
                    stderr: Vec::new(),
                };
                self.world
                    .act(|engine| engine.on_terminal_exit(terminal, &exit));
            }
        }
    }

    fn take_effect(&mut self, wanted: fn(&Effect) -> bool) -> Option<Effect> {
        let at = self.world.effects.iter().position(wanted)?;
        Some(self.world.effects.remove(at))
    }

    fn hear(&mut self, proc: Proc, said: Said) {
        match said {
            Said::Reply(pick, how) => self.reply(proc, pick, how),
            Said::Text(pick, thought) => {
                let kind = if thought == 0 {
                    "agent_thought_chunk"
                } else {
                    "agent_message_chunk"
                };
                self.texts += 1;
                let text = format!("<{}é>", self.texts);
                let id = self.session_id(pick);
                // Where it must be seen: in the session that has this id on this process and is not being replayed.
                let of = self.keys.iter().find(|key| {
                    let status = self.world.status(**key);
                    let open =
                        ["idle", "running", "waiting"].contains(&status["state"].as_str().unwrap());
                    open && status["session_id"] == id.as_str() && self.plays(**key, proc)
                });
                if let (Some(key), true) = (of, thought > 0) {
                    self.said.entry(*key).or_default().push(text.clone());
                }
                let update = text_chunk(kind, &text);
                self.update(proc, &id, &update);
            }
            Said::Update(pick, update) => {
                let id = self.session_id(pick);
                self.update(proc, &id, &update);
            }
            Said::Request {
                method,
                params,
                session,
                same_id,
            } => {
                if !same_id {
                    self.last_id += 1;
                }
                let params = with_session(params, &self.session_id(session));
                let message = json!({ "id": self.last_id, "method": method, "params": params });
                self.world.hear_from(proc, &message);
            }
            Said::Notify {
                method,
                params,
                session,
            } => {
                let params = with_session(params, &self.session_id(session));
                self.world
                    .hear_from(proc, &json!({ "method": method, "params": params }));
            }
            Said::Withdraw(pick) => {
                let open = self.world.open_requests(proc);
                let id = match open.len() {
                    0 => json!(pick),
                    count => open[pick % count].clone(),
                };
                let params = json!({ "requestId": id });
                self.world.hear_from(
                    proc,
                    &json!({ "method": "$/cancel_request", "params": params }),
                );
            }
            Said::Line(line) => self.world.hear_line(proc, &line.0),
        }
    }

    /// Whether this process is the one that plays the session: a session's agent has one at a time.
    fn plays(&self, key: Key, proc: Proc) -> bool {
        let agent = self.world.status(key)["agent"].clone();
        let wire = self.world.wire(proc);
        let same = agent
            == (if wire.launch.command[0] == "agent" {
                "cursor"
            } else {
                "plain"
            });
        let newest = self
            .world
            .procs()
            .into_iter()
            .filter(|other| other.agent == proc.agent)
            .max();
        same && newest == Some(proc)
    }

    fn update(&mut self, proc: Proc, id: &str, update: &Value) {
        let params = json!({ "sessionId": id, "update": update });
        self.world.hear_from(
            proc,
            &json!({ "method": "session/update", "params": params }),
        );
    }

    fn reply(&mut self, proc: Proc, pick: usize, how: u8) {
        let wire = self.world.wire(proc);
        if wire.owed.is_empty() {
            return;
        }
        let call = wire.owed[pick % wire.owed.len()].clone();
        let method = call["method"].as_str().unwrap();
        let profile = if wire.launch.command[0] == "agent" {
            Profile::cursor()
        } else {
            Profile::plain()
        };
        self.sessions += usize::from(method == "session/new");
        let good = match method {
            "session/prompt" => {
                let reasons = ["end_turn", "cancelled", "max_tokens"];
                json!({ "stopReason": reasons[pick % 3] })
            }
            _ => profile
                .answer(method, &call["params"], self.sessions)
                .unwrap_or_default(),
        };
        let message = match how {
            0 => json!({ "id": call["id"], "error": { "code": -32603, "message": "no" } }),
            1 => json!({ "id": call["id"], "error": { "code": -32000, "message": "log in" } }),
            2 => json!({ "id": call["id"], "result": null }),
            3 => json!({ "id": call["id"].to_string(), "result": good }),
            _ => json!({ "id": call["id"], "result": good }),
        };
        let before = self.world.now_ms;
        self.world.hear_from(proc, &message);
        assert_eq!(before, self.world.now_ms);
        if method == "session/prompt" {
            let of = |key: &&Key| {
                self.world.status(**key)["session_id"] == call["params"]["sessionId"]
                    && self.plays(**key, proc)
            };
            if let Some(key) = self.keys.iter().find(of) {
                // Subagents ask on their own account.
                let live = ["running", "requires_action", "odd"];
                let works = self.world.transcript(*key).iter().any(|entry| {
                    let state = entry["tool"]["task"]["state"].as_str();
                    state.is_some_and(|state| live.contains(&state))
                });
                for decision in self.world.engine.pending(Some(*key)) {
                    let decision = serde_json::to_value(decision).unwrap();
                    let by_subagent = decision.get("subagent").is_some() || works;
                    assert!(by_subagent, "a turn that is over asks nothing");
                }
            }
        }
    }
}

fn with_session(mut params: Value, id: &str) -> Value {
    if let Value::Object(fields) = &mut params {
        fields.insert("sessionId".to_owned(), json!(id));
    }
    params
}

fn permission() -> impl Strategy<Value = Value> {
    (0..3u8, 0..5usize).prop_map(|(call, options)| {
        let kinds = ["allow_once", "allow_always", "reject_once", "reject_always", "odd"];
        let options: Vec<Value> = kinds
            .iter()
            .take(options)
            .map(|kind| json!({ "optionId": kind, "name": kind, "kind": kind }))
            .collect();
        json!({ "toolCall": { "toolCallId": format!("t{call}"), "title": "T", "kind": "fetch" }, "options": options })
    })
}

fn request() -> impl Strategy<Value = (&'static str, Value)> {
    let form = json!({ "mode": "form", "message": "m", "requestedSchema": { "type": "object", "required": ["n"], "properties": {
        "n": { "type": "number" }, "i": { "type": "integer", "default": "odd" }, "s": { "type": "string", "default": "d" },
        "e": { "type": "string", "enum": ["a", "b"] }, "m": { "type": "array", "items": { "enum": ["a", "b"] }, "default": { "odd": 1 } }, "b": { "type": "boolean", "default": true },
    } } });
    let question = json!({ "title": "q", "questions": [{ "id": "q", "prompt": "p", "options": [{ "id": "a", "label": "A" }] }] });
    let todos = json!({ "merge": true, "todos": [{ "content": "a" }, { "id": "1", "status": "completed" }] });
    let terminal = |id: u8| json!({ "terminalId": format!("term-{id}") });
    prop_oneof![
        4 => permission().prop_map(|params| ("session/request_permission", params)),
        2 => Just(("cursor/ask_question", question)),
        2 => (0..3u8).prop_map(|call| ("cursor/create_plan", json!({ "plan": "p", "name": "n", "toolCallId": format!("t{call}") }))),
        1 => Just(("elicitation/create", form)),
        1 => Just(("elicitation/create", json!({ "mode": "url", "message": "m", "url": "http://u", "elicitationId": "e" }))),
        1 => Just(("cursor/update_todos", todos)),
        1 => (0..3u8).prop_map(|call| ("cursor/task", json!({ "toolCallId": format!("t{call}"), "description": "d", "agentId": "sub-1", "durationMs": 5 }))),
        1 => Just(("cursor/generate_image", json!({ "description": "d" }))),
        1 => Just(("fs/read_text_file", json!({ "path": "a" }))),
        1 => Just(("fs/write_text_file", json!({ "path": "a", "content": "c" }))),
        2 => Just(("terminal/create", json!({ "command": "ls", "outputByteLimit": 5 }))),
        1 => (1..4u8).prop_map(move |id| ("terminal/output", terminal(id))),
        2 => (1..4u8).prop_map(move |id| ("terminal/wait_for_exit", terminal(id))),
        1 => (1..4u8).prop_map(move |id| ("terminal/kill", terminal(id))),
        1 => (1..4u8).prop_map(move |id| ("terminal/release", terminal(id))),
        1 => Just(("_nobody/knows", json!({}))),
    ]
}

fn update() -> impl Strategy<Value = Value> {
    let call = |kind: &'static str| {
        (0..3u8, 0..5usize, "[a-zäß🙂\n]{0,30}", 0..4u8).prop_map(move |(id, status, text, shape)| {
            let status = ["pending", "in_progress", "completed", "failed", "odd"][status];
            let content = match shape {
                0 => json!([{ "type": "content", "content": { "type": "text", "text": text } }]),
                1 => json!([{ "type": "diff", "path": "a.rs", "oldText": "x\n", "newText": text }]),
                2 => json!([{ "type": "terminal", "terminalId": format!("term-{id}") }]),
                _ => json!([]),
            };
            json!({ "sessionUpdate": kind, "toolCallId": format!("t{id}"), "title": text, "kind": "edit", "status": status, "content": content })
        })
    };
    prop_oneof![
        3 => "[a-zäß🙂\n]{0,200}".prop_map(|text| text_chunk("agent_message_chunk", &text)),
        1 => "[a-zäß🙂\n]{0,90}".prop_map(|text| text_chunk("user_message_chunk", &text)),
        2 => call("tool_call"),
        2 => call("tool_call_update"),
        1 => "[a-z]{0,9}".prop_map(|text| json!({ "sessionUpdate": "plan", "entries": [{ "content": text, "status": "pending" }, { "content": "b" }] })),
        1 => "[a-z]{0,9}".prop_map(|text| json!({ "sessionUpdate": "session_info_update", "title": text })),
        1 => any::<u64>().prop_map(|used| json!({ "sessionUpdate": "usage_update", "used": used, "size": used })),
        1 => "[a-zé\n]{0,300}".prop_map(|text| json!({ "sessionUpdate": "notice", "severity": "error", "title": text })),
        1 => (0..5usize, any::<bool>()).prop_map(|(status, summary)| {
            let status = ["in_progress", "completed", "failed", "cancelled", "odd"][status];
            let mut update = json!({ "sessionUpdate": "compaction_update", "compactionId": "c", "status": status });
            if summary {
                update["summary"] = json!([{ "type": "text", "text": "in short" }]);
            }
            update
        }),
        1 => "[a-zé\n]{0,20}".prop_map(|text| json!({ "sessionUpdate": "compaction_summary_chunk", "compactionId": "c", "content": { "type": "text", "text": text } })),
        1 => Just(json!({ "sessionUpdate": "available_commands_update", "availableCommands": [{ "name": "n" }] })),
        1 => Just(json!({ "sessionUpdate": "current_mode_update", "currentModeId": "plan" })),
        1 => Just(json!({ "sessionUpdate": "config_option_update", "configOptions": Profile::options("agent", "opus") })),
        1 => Just(json!({ "sessionUpdate": "nobody_knows" })),
        2 => subagent(),
    ]
}

/// Reports about subagents, and messages between them.
fn subagent() -> impl Strategy<Value = Value> {
    let words = [
        "running",
        "requires_action",
        "idle",
        "odd",
        "completed",
        "failed",
    ];
    prop_oneof![
        (0..3usize, 0..6usize, "[a-z]{0,5}").prop_map(move |(kind, state, title)| {
            let kind = ["subagent_update", "subagent_spawned", "subagent_state_update"][kind];
            json!({ "sessionUpdate": kind, "subagentSessionId": format!("sub-{}", state % 3), "title": title, "state": words[state] })
        }),
        (0..3usize, any::<bool>()).prop_map(|(id, whole)| {
            let kind = if whole { "session_message" } else { "session_message_chunk" };
            json!({ "sessionUpdate": kind, "messageId": format!("m{id}"), "senderSessionId": format!("sub-{id}"),
                "content": { "type": "text", "text": "told" } })
        }),
        (0..3usize, "[a-z]{1,9}").prop_map(|(id, text)| {
            let mut chunk = text_chunk("agent_message_chunk", &text);
            chunk["_meta"] = json!({ "claudeCode": { "parentToolUseId": format!("t{id}") } });
            chunk
        }),
    ]
}

/// Any JSON at all, of a size that is quick.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(vec![0.5, -1.0, 1e300]).prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        Just(json!("t1")),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-zA-Z]{1,6}", inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A message the agent could send, with one part of it replaced by anything, or taken out.
fn mutated() -> impl Strategy<Value = Line> {
    let whole = prop_oneof![
        (request(), any::<u16>()).prop_map(|((method, params), id)| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": with_session(params, "s-1") })),
        request().prop_map(|(method, params)| json!({ "jsonrpc": "2.0", "method": method, "params": with_session(params, "s-1") })),
        update().prop_map(|update| json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s-1", "update": update } })),
        (1..12u64).prop_map(|id| json!({ "jsonrpc": "2.0", "id": id, "result": { "sessionId": "s-mutated", "protocolVersion": 1, "stopReason": "end_turn", "configOptions": Profile::options("agent", "opus"), "modes": { "currentModeId": "a", "availableModes": [] }, "sessions": [], "usage": { "inputTokens": 1, "outputTokens": 2 } } })),
    ];
    (
        whole,
        any::<prop::sample::Index>(),
        prop::option::weighted(0.8, any_json()),
    )
        .prop_map(|(mut whole, at, with)| {
            let mut places = Vec::new();
            collect_places(&whole, &mut Vec::new(), &mut places);
            if !places.is_empty() {
                let place = at.get(&places);
                replace(&mut whole, place, with);
            }
            Line(whole.to_string().into_bytes())
        })
}

/// What is no message at all.
fn noise() -> impl Strategy<Value = Line> {
    prop_oneof![
        any_json().prop_map(|json| Line(json.to_string().into_bytes())),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Line),
    ]
}

fn collect_places(value: &Value, path: &mut Vec<String>, places: &mut Vec<Vec<String>>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), value))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(at, value)| (at.to_string(), value))
            .collect(),
        _ => Vec::new(),
    };
    for (key, child) in children {
        path.push(key);
        places.push(path.clone());
        collect_places(child, path, places);
        path.pop();
    }
}

fn replace(whole: &mut Value, place: &[String], with: Option<Value>) {
    let Some((last, before)) = place.split_last() else {
        return;
    };
    let mut at = whole;
    for key in before {
        at = match at {
            Value::Array(items) => &mut items[key.parse::<usize>().unwrap()],
            other => &mut other[key.as_str()],
        };
    }
    match (at, with) {
        (Value::Object(fields), Some(value)) => {
            fields.insert(last.clone(), value);
        }
        (Value::Object(fields), None) => {
            fields.remove(last);
        }
        (Value::Array(items), Some(value)) => items[last.parse::<usize>().unwrap()] = value,
        (Value::Array(items), None) => {
            items.remove(last.parse::<usize>().unwrap());
        }
        _ => {}
    }
}

const PICK: std::ops::Range<usize> = 0..6;

fn editor() -> impl Strategy<Value = Call> {
    prop_oneof![
        3 => (any::<bool>(), any::<bool>()).prop_map(|(cursor, load)| Call::Open { cursor, load }),
        1 => PICK.prop_map(Call::Close),
        6 => PICK.prop_map(Call::Prompt),
        2 => PICK.prop_map(Call::Cancel),
        1 => PICK.prop_map(Call::Stop),
        1 => PICK.prop_map(Call::Restart),
        1 => PICK.prop_map(Call::LoggedIn),
        1 => (PICK, 0..3u8).prop_map(|(key, what)| Call::Set(key, what)),
        1 => (PICK, 0..3u8).prop_map(|(key, what)| Call::Ask(key, what)),
        2 => (PICK, PICK, 0..4u8).prop_map(|(key, at, how)| Call::Queue(key, at, how)),
        6 => (PICK, 0..7u8).prop_map(|(pick, how)| Call::Answer(pick, how)),
        3 => (PICK, 0..4u8).prop_map(|(pick, how)| Call::Reply(pick, how)),
    ]
}

fn around() -> impl Strategy<Value = News> {
    prop_oneof![
        2 => PICK.prop_map(News::Exit),
        1 => PICK.prop_map(News::CannotStart),
        1 => (PICK, "\\PC{0,20}").prop_map(|(proc, text)| News::Stderr(proc, text)),
        4 => prop::sample::select(vec![1, 299, 301, 5_000, 15_000, 20_000]).prop_map(News::Pass),
        2 => any::<bool>().prop_map(News::Disk),
        1 => Just(News::Diff),
        2 => (1..4u64, prop::collection::vec(any::<u8>(), 0..20)).prop_map(|(terminal, bytes)| News::Printed(terminal, bytes)),
        2 => (1..4u64, -15..3i32).prop_map(|(terminal, code)| News::Ended(terminal, code)),
        1 => PICK.prop_map(News::TooLong),
    ]
}

fn agent() -> impl Strategy<Value = Said> {
    prop_oneof![
        10 => (PICK, 0..30u8).prop_map(|(call, how)| Said::Reply(call, how)),
        6 => (0..7usize, 0..4u8).prop_map(|(session, thought)| Said::Text(session, thought)),
        4 => (0..7usize, update()).prop_map(|(session, update)| Said::Update(session, update)),
        8 => (request(), 0..7usize, prop::bool::weighted(0.1)).prop_map(|((method, params), session, same_id)| Said::Request { method, params, session, same_id }),
        1 => (request(), 0..7usize).prop_map(|((method, params), session)| Said::Notify { method, params, session }),
        2 => PICK.prop_map(Said::Withdraw),
        2 => mutated().prop_map(Said::Line),
        2 => noise().prop_map(Said::Line),
    ]
}

fn steps(weights: [u32; 5], count: usize) -> impl Strategy<Value = Vec<Step>> {
    let kinds: Vec<(u32, BoxedStrategy<Step>)> = vec![
        (weights[0], editor().prop_map(Step::Editor).boxed()),
        (weights[1], around().prop_map(Step::World).boxed()),
        (
            weights[2],
            (PICK, agent())
                .prop_map(|(proc, said)| Step::Agent(proc, said))
                .boxed(),
        ),
        (weights[3], Just(Step::Settle).boxed()),
        (weights[4], (1..3000usize).prop_map(Step::Drain).boxed()),
    ];
    prop::collection::vec(Union::new_weighted(kinds), 1..count)
}

/// As many cases as PROPTEST_CASES says, else the usual number.
fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// How it all ends.
fn finish(mut chaos: Chaos, by_shutdown: bool, budget: usize) -> Chaos {
    chaos.check_sessions();
    if by_shutdown {
        chaos.step(Step::Editor(Call::Shutdown));
    } else {
        for key in chaos.keys.clone() {
            // No longer needed: each process ends with its last session.
            chaos.world.act(|engine| engine.close(key)).unwrap();
        }
        chaos.keys.clear();
        assert!(chaos.world.engine.pending(None).is_empty());
    }
    // The kit has seen every process answered before its end; the others are let go by their own end.
    for proc in chaos.world.procs() {
        assert_eq!(
            chaos.world.open_requests(proc),
            [] as [Value; 0],
            "{proc:?} is left waiting"
        );
        chaos.world.exit(proc, 0, &[]);
    }
    chaos.world.drain_all(budget);
    chaos
}

/// Steps that are about decisions: asked, answered, withdrawn, and everything that ends one.
fn decisions() -> impl Strategy<Value = Step> {
    let asks = request().prop_filter("a decision", |(method, _)| {
        ["permission", "question", "plan", "elicitation", "fs/write"]
            .iter()
            .any(|part| method.contains(part))
    });
    let agent = prop_oneof![
        8 => (asks, 0..3usize, prop::bool::weighted(0.1)).prop_map(|((method, params), session, same_id)| Said::Request { method, params, session, same_id }),
        3 => PICK.prop_map(Said::Withdraw),
        5 => (PICK, 0..30u8).prop_map(|(call, how)| Said::Reply(call, how)),
    ];
    let editor = prop_oneof![
        8 => (PICK, 0..7u8).prop_map(|(pick, how)| Call::Answer(pick, how)),
        3 => (PICK, 0..4u8).prop_map(|(pick, how)| Call::Reply(pick, how)),
        5 => PICK.prop_map(Call::Prompt),
        2 => PICK.prop_map(Call::Cancel),
        1 => PICK.prop_map(Call::Close),
        1 => PICK.prop_map(Call::Stop),
        1 => PICK.prop_map(Call::Restart),
        1 => any::<bool>().prop_map(|cursor| Call::Open { cursor, load: false }),
    ];
    prop_oneof![
        5 => (PICK, agent).prop_map(|(proc, said)| Step::Agent(proc, said)),
        4 => editor.prop_map(Step::Editor),
        1 => PICK.prop_map(|proc| Step::World(News::Exit(proc))),
        3 => Just(Step::Settle),
    ]
}

/// Steps that are about text: every kind of update, read in pieces of any size.
fn streams() -> impl Strategy<Value = Step> {
    let budget = prop_oneof![1..40usize, 1..2_000usize, 1..65_536usize];
    let long = ("[a-zäß🙂\n]{0,20}", 1..400usize)
        .prop_map(|(text, times)| text_chunk("agent_message_chunk", &text.repeat(times)));
    prop_oneof![
        6 => (0..5usize, update()).prop_map(|(session, update)| Step::Agent(0, Said::Update(session, update))),
        2 => long.prop_map(|update| Step::Agent(0, Said::Update(0, update))),
        2 => (0..5usize, 0..4u8).prop_map(|(session, thought)| Step::Agent(0, Said::Text(session, thought))),
        6 => budget.prop_map(Step::Drain),
        1 => PICK.prop_map(|key| Step::Editor(Call::Prompt(key))),
        1 => (PICK, 9..10u8).prop_map(|(call, how)| Step::Agent(0, Said::Reply(call, how))),
        1 => (1..3u64, prop::collection::vec(any::<u8>(), 0..200)).prop_map(|(terminal, bytes)| Step::World(News::Printed(terminal, bytes))),
        1 => Just(Step::Agent(0, Said::Request { method: "terminal/create", params: json!({ "command": "ls" }), session: 0, same_id: false })),
    ]
}

fn play(cursor: bool, steps: Vec<Step>, by_shutdown: bool, budget: usize) -> Chaos {
    let mut chaos = Chaos::new();
    // Most sequences shall get to where things happen.
    let opened = Step::Editor(Call::Open {
        cursor,
        load: false,
    });
    let prompted = Step::Editor(Call::Prompt(0));
    for step in [opened, Step::Settle, prompted].into_iter().chain(steps) {
        chaos.step(step);
    }
    finish(chaos, by_shutdown, budget)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_sequence_leaves_nobody_waiting(cursor: bool, steps in steps([6, 5, 18, 3, 2], 60), by_shutdown: bool, budget in 1..65_536usize) {
        let chaos = play(cursor, steps, by_shutdown, budget);
        // Neither an agent, as the end of the play has seen, nor the user, nor the editor.
        prop_assert!(chaos.world.mirror.pending.is_empty(), "the user is still asked");
        for key in &chaos.keys {
            let state = chaos.world.state(*key);
            prop_assert!(!["starting", "running", "waiting"].contains(&state.as_str()), "{}", state);
        }
    }

    #[test]
    fn every_decision_is_answered_once(cursor: bool, steps in prop::collection::vec(decisions(), 1..80), by_shutdown: bool) {
        let mirror = play(cursor, steps, by_shutdown, 65_536).world.mirror;
        let mut ends: BTreeMap<u64, usize> = BTreeMap::new();
        for (id, _) in &mirror.decided {
            *ends.entry(*id).or_default() += 1;
        }
        for (id, times) in &ends {
            prop_assert_eq!(*times, 1, "decision {} ended more than once", id);
        }
        for id in &mirror.asked {
            prop_assert!(ends.contains_key(id), "decision {} never ended", id);
        }
    }

    #[test]
    fn what_is_drained_is_what_was_said(cursor: bool, steps in prop::collection::vec(streams(), 1..80), budget in 1..65_536usize) {
        let chaos = play(cursor, steps, true, budget);
        // In the editor's hands, not in the engine's: whole, once, in the order it was said.
        for key in &chaos.keys {
            let shown = chaos.world.mirror.sessions.get(&key.0).cloned().unwrap_or_default();
            let texts = shown.iter().filter(|entry| entry["kind"] == "agent");
            let whole: String = texts.map(|entry| entry["text"].as_str().unwrap()).collect();
            let mut from = 0;
            for text in &chaos.said[key] {
                let at = whole[from..].find(text.as_str());
                prop_assert!(at.is_some(), "{} is lost or out of order in {}", text, whole);
                from += at.unwrap() + text.len();
            }
        }
    }

    #[test]
    fn any_bytes_from_the_very_first_are_survived(lines in prop::collection::vec(prop_oneof![mutated(), noise()], 1..40)) {
        let mut chaos = Chaos::new();
        chaos.step(Step::Editor(Call::Open { cursor: true, load: false }));
        for line in lines {
            chaos.step(Step::Agent(0, Said::Line(line)));
        }
        finish(chaos, true, 1);
    }
}

#[test]
fn fuzz_reducer() {
    let plays = (
        any::<bool>(),
        steps([6, 5, 18, 3, 2], 60),
        any::<bool>(),
        1..65_536usize,
    );
    fuzz::run("reducer", &plays, |(cursor, steps, by_shutdown, budget)| {
        play(cursor, steps, by_shutdown, budget);
        Ok(())
    });
}
