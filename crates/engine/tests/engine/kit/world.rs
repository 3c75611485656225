//! The driver and the agent, by hand.

use std::collections::BTreeMap;

use acp::message::{Junk, Message};
use engine::agents::agent::AgentSpec;
use engine::agents::launch::{Exit, Launch};
use engine::decide::decision::Answer;
use engine::effect::{Effect, Judging, Timer};
use engine::ids::{DecisionId, EditorId, Key, Proc};
use engine::inbound::files::EditorReply;
use engine::policy::{Case, Disk};
use engine::sessions::attachments::Block;
use engine::sessions::session::{FileChanged, PromptSpec, Wanted};
use engine::sessions::watching::{Job, Report};
use engine::{Engine, Now};
use serde_json::{Value, json};

use super::{Mirror, Profile, schema};

/// When the tests begin, wall clock.
const START_MS: u64 = 1_700_000_000_000;

/// A disk that holds links and nothing else.
#[derive(Debug, Default)]
pub struct Links(pub BTreeMap<String, String>);

impl Disk for Links {
    fn link(&self, path: &str) -> Option<String> {
        self.0.get(path).cloned()
    }

    fn ignores_case(&self, _: &str) -> bool {
        false
    }
}

/// A process as the driver would hold it.
#[derive(Debug)]
pub struct Wire {
    pub launch: Launch,
    /// What was written to it, and whether the test has looked at it.
    lines: Vec<(Value, bool)>,
    /// Requests of the agent's that owe an answer: id and method. The method is none where several have one id.
    open: Vec<(Value, Option<String>)>,
    /// Requests of ours that are unanswered.
    pub owed: Vec<Value>,
    /// The last id it gave to a request.
    last_id: u64,
    /// How many sessions it made.
    sessions: usize,
    /// It was told to end: nothing can be written any more.
    ended: bool,
    /// It is gone.
    gone: bool,
}

/// An engine and everybody it talks to.
#[derive(Debug)]
pub struct World {
    pub engine: Engine,
    pub mirror: Mirror,
    /// What the engine wanted done, beside lines and timers; whoever does it takes it out.
    pub effects: Vec<Effect>,
    /// Plays the handshake.
    pub profile: Option<Profile>,
    /// How much is drained at once; None leaves it to the test.
    pub budget: Option<usize>,
    pub now_ms: u64,
    /// The links of the disk.
    pub disk: Links,
    /// Rules are asked only when the test says so.
    pub holds_judging: bool,
    judging: Vec<(Judging, Case)>,
    timers: Vec<(u64, Timer)>,
    wires: BTreeMap<Proc, Wire>,
    newest: Option<Proc>,
}

impl World {
    /// No agent runs yet.
    pub fn new(profile: Option<Profile>) -> Self {
        Self {
            engine: Engine::default(),
            mirror: Mirror::default(),
            effects: Vec::new(),
            profile,
            budget: Some(64 * 1024),
            now_ms: 0,
            disk: Links::default(),
            holds_judging: false,
            judging: Vec::new(),
            timers: Vec::new(),
            wires: BTreeMap::new(),
            newest: None,
        }
    }

    /// A session that takes prompts, on an agent of this profile.
    pub fn ready(profile: Profile) -> (Self, Key) {
        let mut world = Self::new(Some(profile));
        let key = world.open(Wanted::default());
        assert_eq!(world.state(key), "idle");
        (world, key)
    }

    pub fn cursor() -> (Self, Key) {
        Self::ready(Profile::cursor())
    }

    pub fn plain() -> (Self, Key) {
        Self::ready(Profile::plain())
    }

    pub fn spec(&self) -> AgentSpec {
        self.profile.as_ref().unwrap().spec.clone()
    }

    pub fn open(&mut self, wanted: Wanted) -> Key {
        let spec = self.spec();
        self.act(|engine| engine.open(spec, wanted)).unwrap()
    }

    /// Lets the engine work, then does what the driver would, and drains as the editor would.
    pub fn act<R>(&mut self, f: impl FnOnce(&mut Engine) -> R) -> R {
        let (mono_ms, wall_ms) = (self.now_ms, START_MS + self.now_ms);
        self.engine.set_now(Now { mono_ms, wall_ms });
        let result = f(&mut self.engine);
        self.perform();
        if let Some(budget) = self.budget {
            while self.mirror.drain(&mut self.engine, budget) {}
            self.mirror.assert_same(&self.engine);
        }
        self.answer_by_profile();
        result
    }

    fn perform(&mut self) {
        for effect in self.engine.take_effects() {
            match effect {
                Effect::Spawn { proc, ref launch } => {
                    let wire = Wire {
                        launch: launch.clone(),
                        lines: Vec::new(),
                        open: Vec::new(),
                        owed: Vec::new(),
                        last_id: 0,
                        sessions: 0,
                        ended: false,
                        gone: false,
                    };
                    let twice = self.wires.insert(proc, wire);
                    assert!(twice.is_none(), "{proc:?} is started once");
                    self.newest = Some(proc);
                }
                Effect::Write { proc, line } => self.on_write(proc, &line),
                Effect::After { ms, timer } => self.timers.push((self.now_ms + ms, timer)),
                Effect::End { proc, .. } => {
                    let wire = self.wires.get_mut(&proc).unwrap();
                    wire.ended = true;
                    assert_eq!(
                        wire.open,
                        [],
                        "every request is answered before the process is let go"
                    );
                    self.effects.push(effect);
                }
                Effect::Keep { request, .. } => {
                    self.engine.on_kept(request);
                    self.perform();
                }
                Effect::Judge { whose, case } => {
                    if self.holds_judging {
                        self.judging.push((whose, *case));
                    } else {
                        let judged = case.judge(&self.disk);
                        self.engine.on_judged(whose, judged);
                        self.perform();
                    }
                }
                // No test looks into the log, or for what is hidden from it.
                Effect::Hide(_) | Effect::Log { .. } => {}
                other => self.effects.push(other),
            }
        }
    }

    /// Judges what was held back last.
    pub fn judge_newest(&mut self) {
        if let Some((whose, case)) = self.judging.pop() {
            let judged = case.judge(&self.disk);
            self.act(|engine| engine.on_judged(whose, judged));
        }
    }

    /// Judges what was held back, newest first.
    pub fn judge_backwards(&mut self) {
        self.judging.reverse();
        self.judge();
    }

    /// Judges what was held back, oldest first.
    pub fn judge(&mut self) {
        for (whose, case) in std::mem::take(&mut self.judging) {
            let judged = case.judge(&self.disk);
            self.act(|engine| engine.on_judged(whose, judged));
        }
    }

    fn on_write(&mut self, proc: Proc, line: &[u8]) {
        let wire = self.wires.get_mut(&proc).unwrap();
        let text = std::str::from_utf8(line).unwrap();
        assert!(
            !wire.ended && !wire.gone,
            "written to a process that was let go: {text}"
        );
        assert!(text.ends_with('\n') && text.matches('\n').count() == 1);
        let message: Value = serde_json::from_str(text).unwrap();
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        match message["method"].as_str() {
            Some(method) => schema::check_call(method, &message["params"]),
            None => {
                let open = wire.open.iter().position(|(id, _)| *id == message["id"]);
                let Some(at) = open else {
                    panic!("answered twice, or never asked: {message}");
                };
                let (id, method) = wire.open.remove(at);
                let same = wire.open.iter_mut().filter(|(other, _)| *other == id);
                let ambiguous = same.map(|(_, other)| *other = None).count() > 0;
                match (message.get("error"), method) {
                    (Some(error), _) => schema::check_error(error),
                    (None, Some(method)) if !ambiguous => {
                        schema::check_result(&method, &message["result"]);
                    }
                    (None, _) => assert!(message.get("result").is_some(), "{message}"),
                }
            }
        }
        if !message["id"].is_null() && message["method"].is_string() {
            wire.owed.push(message.clone());
        }
        wire.lines.push((message, false));
    }

    fn answer_by_profile(&mut self) {
        let Some(profile) = self.profile.clone() else {
            return;
        };
        let answer = self.wires.iter_mut().find_map(|(proc, wire)| {
            let sessions = wire.sessions + 1;
            let (line, seen) = wire.lines.iter_mut().find(|(line, seen)| {
                let method = line["method"].as_str().unwrap_or_default();
                !seen
                    && !line["id"].is_null()
                    && profile.answer(method, &line["params"], 1).is_some()
            })?;
            *seen = true;
            let method = line["method"].as_str()?;
            let result = profile.answer(method, &line["params"], sessions)?;
            wire.sessions += usize::from(method == "session/new");
            Some((*proc, json!({ "id": line["id"], "result": result })))
        });
        if let Some((proc, answer)) = answer {
            self.hear_from(proc, &answer);
        }
    }

    /// The process that was started last.
    pub fn proc(&self) -> Proc {
        self.newest.unwrap()
    }

    pub fn wire(&self, proc: Proc) -> &Wire {
        &self.wires[&proc]
    }

    /// A line from the agent, as it is.
    pub fn hear_line(&mut self, proc: Proc, line: &[u8]) {
        let messages = Message::parse_all(line);
        let wire = self.wires.get_mut(&proc).unwrap();
        for message in &messages {
            match message {
                Ok(Message::Request { id, method, .. })
                | Err(Junk::Unreadable {
                    id: Some(id),
                    method,
                    ..
                }) if !wire.ended && !wire.gone => {
                    let id = serde_json::to_value(id).unwrap();
                    wire.open.push((id, Some(method.clone())));
                }
                Ok(Message::Response { id, .. }) => {
                    // A number that came back as a string is the same one.
                    let id: i64 = id.to_string().parse().unwrap_or_default();
                    wire.owed.retain(|call| call["id"] != id);
                }
                _ => {}
            }
        }
        self.act(|engine| engine.on_line(proc, line, messages));
    }

    pub fn hear_from(&mut self, proc: Proc, message: &Value) {
        let mut message = message.clone();
        message["jsonrpc"] = json!("2.0");
        self.hear_line(proc, message.to_string().as_bytes());
    }

    /// A message from the newest process.
    pub fn hear(&mut self, message: Value) {
        self.hear_from(self.proc(), &message);
    }

    /// A notification from the agent.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.hear(json!({ "method": method, "params": params }));
    }

    /// An update of a session.
    pub fn update(&mut self, session: &str, update: Value) {
        self.notify(
            "session/update",
            json!({ "sessionId": session, "update": update }),
        );
    }

    /// A piece of the agent's text.
    pub fn say(&mut self, session: &str, text: &str) {
        self.update(session, text_chunk("agent_message_chunk", text));
    }

    /// A request from the agent; its id.
    pub fn ask(&mut self, method: &str, params: Value) -> u64 {
        let proc = self.proc();
        let wire = self.wires.get_mut(&proc).unwrap();
        wire.last_id += 1;
        let id = wire.last_id;
        self.hear(json!({ "id": id, "method": method, "params": params }));
        id
    }

    /// What was written in answer to a request of the agent's, if it was answered.
    pub fn answered(&mut self, id: u64) -> Option<Value> {
        self.answered_by(self.proc(), id)
    }

    /// The same for a process that is not the newest.
    pub fn answered_by(&mut self, proc: Proc, id: u64) -> Option<Value> {
        let wire = self.wires.get_mut(&proc).unwrap();
        let (line, seen) = wire
            .lines
            .iter_mut()
            .rfind(|(line, _)| line["id"] == id && line["method"].is_null())?;
        *seen = true;
        Some(line.clone())
    }

    /// The result that was written in answer to a request of the agent's.
    pub fn result_of(&mut self, id: u64) -> Value {
        let answer = self.answered(id).expect("an answer");
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// The error that was written in answer to a request of the agent's.
    pub fn error_of(&mut self, id: u64) -> Value {
        let answer = self.answered(id).expect("an answer");
        assert!(answer.get("result").is_none(), "{answer}");
        answer["error"].clone()
    }

    /// A request from the agent that is answered at once: the result.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.result_of(id)
    }

    /// The oldest line of this method that was not looked at yet.
    pub fn sent(&mut self, method: &str) -> Option<Value> {
        let wire = self.wires.get_mut(&self.newest?).unwrap();
        let (line, seen) = wire
            .lines
            .iter_mut()
            .find(|(line, seen)| !seen && line["method"] == method)?;
        *seen = true;
        Some(line.clone())
    }

    /// The same, that has to be there.
    pub fn take(&mut self, method: &str) -> Value {
        self.sent(method)
            .unwrap_or_else(|| panic!("no {method} in {:#?}", self.written()))
    }

    /// Params of all lines of this method to the newest process, looked at or not.
    pub fn all_sent(&self, method: &str) -> Vec<Value> {
        self.written()
            .iter()
            .filter(|line| line["method"] == method)
            .map(|line| line["params"].clone())
            .collect()
    }

    /// Ids of all requests of this method to the newest process.
    pub fn all_ids(&self, method: &str) -> Vec<Value> {
        let written = self.written();
        let of_method = written.iter().filter(|line| line["method"] == method);
        of_method.map(|line| line["id"].clone()).collect()
    }

    /// Everything that was written to the newest process.
    pub fn written(&self) -> Vec<Value> {
        let wire = &self.wires[&self.newest.unwrap()];
        wire.lines.iter().map(|(line, _)| line.clone()).collect()
    }

    /// Answers a request of ours.
    pub fn reply(&mut self, request: &Value, result: Value) {
        self.hear(json!({ "id": request["id"], "result": result }));
    }

    /// Answers a request of ours with an error.
    pub fn refuse(&mut self, request: &Value, code: i64, message: &str) {
        let error = json!({ "code": code, "message": message });
        self.hear(json!({ "id": request["id"], "error": error }));
    }

    /// Sends a prompt: the request as it was written.
    pub fn prompt(&mut self, key: Key, text: &str) -> Value {
        self.queue(key, text);
        self.take("session/prompt")
    }

    /// Sends or queues a prompt; its number.
    pub fn queue(&mut self, key: Key, text: &str) -> u64 {
        let spec = PromptSpec {
            text: text.to_owned(),
            blocks: Vec::new(),
            ..Default::default()
        };
        self.act(|engine| engine.prompt(key, spec)).unwrap().0
    }

    /// Sends a prompt with what goes along: the blocks as they were written.
    pub fn prompt_with(&mut self, key: Key, text: &str, blocks: Value) -> Vec<Value> {
        let blocks: Vec<Block> = serde_json::from_value(blocks).unwrap();
        let text = text.to_owned();
        self.act(|engine| {
            engine.prompt(
                key,
                PromptSpec {
                    text,
                    blocks,
                    ..Default::default()
                },
            )
        })
        .unwrap();
        let request = self.take("session/prompt");
        let written = request["params"]["prompt"].as_array().unwrap().clone();
        self.end_turn(&request, "end_turn");
        written
    }

    /// Ends a turn.
    pub fn end_turn(&mut self, prompt: &Value, reason: &str) {
        self.reply(prompt, json!({ "stopReason": reason }));
    }

    /// Lets time pass; timers fire when they are due.
    pub fn advance(&mut self, ms: u64) {
        let until = self.now_ms + ms;
        while let Some(at) = (0..self.timers.len())
            .filter(|at| self.timers[*at].0 <= until)
            .min_by_key(|at| self.timers[*at].0)
        {
            let (due, timer) = self.timers.remove(at);
            self.now_ms = self.now_ms.max(due);
            self.act(|engine| engine.on_timer(timer));
        }
        self.now_ms = until;
    }

    /// The process ends by itself.
    pub fn exit(&mut self, proc: Proc, code: i32, stderr: &[&str]) {
        for line in stderr {
            self.act(|engine| engine.on_stderr(proc, line));
        }
        let exit = Exit {
            code: Some(code),
            signal: None,
            stderr: stderr.iter().map(|line| (*line).to_owned()).collect(),
        };
        let wire = self.wires.get_mut(&proc).unwrap();
        wire.gone = true;
        wire.open.clear();
        self.act(|engine| engine.on_exit(proc, &exit));
    }

    /// Answers a decision as the editor does.
    pub fn decide(&mut self, id: u64, answer: Value) -> Result<(), String> {
        let answer: Answer = serde_json::from_value(answer).unwrap();
        self.act(|engine| engine.answer(DecisionId(id), &answer, None))
            .map_err(|error| error.to_string())
    }

    /// The only decision that waits.
    pub fn decision(&self) -> Value {
        assert_eq!(self.mirror.pending.len(), 1, "{:#?}", self.mirror.pending);
        self.mirror.pending.values().next().unwrap().clone()
    }

    /// Answers a request to the editor.
    pub fn editor_replies(&mut self, id: u64, reply: Value) {
        let reply: EditorReply = serde_json::from_value(reply).unwrap();
        self.act(|engine| engine.reply(EditorId(id), reply));
    }

    /// The only request to the editor.
    pub fn editor_request(&mut self) -> (u64, Value) {
        assert_eq!(self.mirror.editor.len(), 1, "{:#?}", self.mirror.editor);
        self.mirror.editor.remove(0)
    }

    pub fn status(&self, key: Key) -> Value {
        serde_json::to_value(self.engine.status(key).unwrap()).unwrap()
    }

    pub fn state(&self, key: Key) -> String {
        self.status(key)["state"].as_str().unwrap().to_owned()
    }

    /// The conversation, whole.
    pub fn transcript(&self, key: Key) -> Vec<Value> {
        let entries = self.engine.transcript(key).unwrap();
        entries
            .iter()
            .map(|entry| serde_json::to_value(entry).unwrap())
            .collect()
    }

    /// The conversation as `kind: text` lines.
    pub fn texts(&self, key: Key) -> Vec<String> {
        self.transcript(key)
            .iter()
            .map(|entry| {
                let text = entry["text"].as_str().unwrap();
                format!("{}: {text}", entry["kind"].as_str().unwrap())
            })
            .collect()
    }

    /// The tool call of the last entry that is one.
    pub fn tool(&self, key: Key) -> Value {
        let entries = self.transcript(key);
        let found = entries.iter().rfind(|entry| entry["kind"] == "tool");
        found.expect("a tool call")["tool"].clone()
    }

    /// The review has looked up what a call changed that says nothing of it: this file, or none.
    pub fn looked(&mut self, key: Key, call: &str, path: Option<&str>) {
        let jobs = self.act(Engine::take_watched);
        let mut jobs = jobs.into_iter().rev().map(|watched| watched.job);
        let doubted = jobs.find_map(|job| match job {
            Job::Doubted { author, doubt } if author.key == key => Some((author, doubt.entry)),
            _ => None,
        });
        let (author, entry) = doubted.expect("the review was asked");
        assert_eq!(self.transcript(key)[entry]["tool"]["id"], call);
        if let Some(path) = path {
            self.act(|engine| {
                engine.on_review(Report::Found {
                    author,
                    path: path.into(),
                    state: FileChanged::Deleted,
                });
            });
        }
        let changed = Some(path.is_some());
        self.act(|engine| {
            engine.on_review(Report::Looked {
                key,
                entry,
                changed,
            });
        });
    }

    pub fn changed_files(&self, key: Key) -> Value {
        serde_json::to_value(self.engine.changed_files(key).unwrap()).unwrap()
    }

    /// Every process that is not gone, told to end or not.
    pub fn procs(&self) -> Vec<Proc> {
        let alive = self.wires.iter().filter(|(_, wire)| !wire.gone);
        alive.map(|(proc, _)| *proc).collect()
    }

    /// Ids of the agent's requests that are unanswered.
    pub fn open_requests(&self, proc: Proc) -> Vec<Value> {
        let open = self.wires[&proc].open.iter();
        open.map(|(id, _)| id.clone()).collect()
    }

    /// The program could not be started.
    pub fn cannot_start(&mut self, proc: Proc) {
        self.wires.get_mut(&proc).unwrap().gone = true;
        let error = std::io::Error::from(std::io::ErrorKind::NotFound);
        self.act(|engine| engine.on_spawn_error(proc, &error));
    }

    /// Drains everything in pieces of this size, and compares.
    pub fn drain_all(&mut self, budget: usize) {
        while self.mirror.drain(&mut self.engine, budget) {}
        self.mirror.assert_same(&self.engine);
    }

    /// Names of the autocommands so far.
    pub fn event_names(&self) -> Vec<&str> {
        self.mirror
            .events
            .iter()
            .map(|(name, _)| name.trim_start_matches("CursorAgent"))
            .collect()
    }

    /// What the user was told last.
    pub fn last_told(&self) -> &str {
        self.mirror.told.last().map_or("", |(_, text)| text)
    }
}

/// A chunk of a message.
pub fn text_chunk(kind: &str, text: &str) -> Value {
    json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } })
}
