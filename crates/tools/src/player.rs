//! Plays a scenario: the face of the agent that tests talk to.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, HashMap},
    future::Future,
    io::{self, Write},
    path::{Path, PathBuf},
    pin::Pin,
    rc::Rc,
    time::Duration,
};

use acp::{Message, RpcError};
use serde_json::{Value, json};
use tokio::{
    sync::{oneshot, watch},
    task::spawn_local,
};

use crate::{
    cursor::Cursor,
    error::Error,
    host::{self, Manners},
    login::{Login, state_dir},
    plain::Plain,
    process,
    profile::{Answer, Profile, Reaction, merge},
    prompt::{prompt_text, title_of},
    record::{self, Record},
    scenario::{BigText, Chunks, Handler, Hang, Ids, ProfileName, Request, Scenario, Step},
    sessions::{Session, Sessions},
    template::Vars,
    wire::{ClientAnswer, Wire, call},
};

/// Chunks go out in writes of about this size.
const WRITE_BYTES: usize = 64 * 1024;

/// A client must answer what is pending when it cancels a turn; this long it is waited for.
const ANSWER_AFTER_CANCEL: Duration = Duration::from_secs(2);

/// A text of this size is not kept for `session/load`.
const REMEMBERED_BYTES: u64 = 1024 * 1024;

/// What a prompt gets when the scenario has no more turns.
const DEFAULT_ANSWER: &str = "Nothing more is scripted.";

/// Plays until the client is gone. `args`: what else stood on the command line, for the record.
pub async fn play(scenario: &Path, record: Option<&Path>, args: &[String]) -> Result<(), Error> {
    let run = record.map_or(0, record::earlier_runs);
    let scenario = Scenario::read(scenario, run)?;
    let wire = Wire::new(Record::open(record)?)?;
    note_start(&wire, &scenario, args);

    let player = Rc::new(Player::new(scenario, wire));
    host::watch_sigterm(&player.wire, &player.manners)?;
    let mut start = Context::of_start();
    let _ = player.steps(&mut start, &player.scenario.start).await;

    let listener = player.clone();
    host::listen(&player.wire, &player.manners, move |value, message| {
        listener.receive(&value, message);
    })
    .await?;
    Ok(())
}

fn note_start(wire: &Wire, scenario: &Scenario, args: &[String]) {
    let env: BTreeMap<&str, Option<String>> = scenario
        .record_env
        .iter()
        .map(|name| (name.as_str(), std::env::var(name).ok()))
        .collect();
    let cwd = std::env::current_dir().unwrap_or_default();
    wire.record().note(
        "start",
        json!({ "pid": std::process::id(), "cwd": cwd, "args": args, "env": env }),
    );
}

#[derive(Debug)]
struct Player {
    scenario: Scenario,
    wire: Wire,
    manners: Rc<Manners>,
    profile: RefCell<Box<dyn Profile>>,
    login: Login,
    prompts: Cell<usize>,
    /// How often each method with lists in turn has been called.
    calls: RefCell<HashMap<String, usize>>,
    turns: RefCell<Vec<Turn>>,
    /// Every method the client called, in order; the watch tells that there are more.
    heard: RefCell<Vec<String>>,
    heard_more: watch::Sender<usize>,
    latest_client_id: RefCell<Value>,
}

#[derive(Debug)]
struct Turn {
    session: String,
    cancel: Rc<watch::Sender<bool>>,
}

/// What a list of steps is played for.
struct Context {
    vars: Vars,
    request: Option<Value>,
    kind: Kind,
    answered: bool,
    cancelled: watch::Receiver<bool>,
    /// A cancel ends the steps at once.
    obeys_cancel: bool,
    /// Methods heard before this one are not expected any more.
    heard: usize,
    named: HashMap<String, Named>,
    /// What the profile would answer.
    reaction: Option<Reaction>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Start,
    Turn,
    Handler,
}

struct Named {
    id: Value,
    answer: Option<oneshot::Receiver<ClientAnswer>>,
}

/// Whether the steps after this one are played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
enum Flow {
    On,
    Ended,
}

impl Context {
    fn of_start() -> Self {
        Self::new(Kind::Start, Vars::default(), None, never_cancelled())
    }

    fn new(
        kind: Kind,
        vars: Vars,
        request: Option<Value>,
        cancelled: watch::Receiver<bool>,
    ) -> Self {
        Self {
            vars,
            request,
            kind,
            answered: false,
            cancelled,
            obeys_cancel: false,
            heard: 0,
            named: HashMap::new(),
            reaction: None,
        }
    }

    fn is_cancelled(&self) -> bool {
        *self.cancelled.borrow()
    }

    /// Waits for something, or for a cancel that ends it.
    async fn unless_cancelled<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut cancelled = self.cancelled.clone();
        let obeys = self.obeys_cancel;
        tokio::select! {
            value = future => Some(value),
            () = async {
                if !obeys || cancelled.wait_for(|cancelled| *cancelled).await.is_err() {
                    std::future::pending::<()>().await;
                }
            } => None,
        }
    }
}

fn never_cancelled() -> watch::Receiver<bool> {
    watch::channel(false).1
}

impl Player {
    fn new(scenario: Scenario, wire: Wire) -> Self {
        let mut sessions = Sessions::in_memory();
        sessions.prescribed_id = scenario.session["sessionId"].as_str().map(str::to_owned);
        for past in &scenario.sessions {
            sessions.add(Session {
                id: past.session_id.clone(),
                cwd: past.cwd.clone().unwrap_or_default(),
                title: past.title.clone(),
                updated_at: past.updated_at.clone(),
                mode: "agent".to_owned(),
                model: "default".to_owned(),
                options: BTreeMap::new(),
                history: past.updates.clone(),
                station: 0,
                allowed: Vec::new(),
            });
        }
        let login = Login::new(&state_dir(), !scenario.signed_out);
        let profile: Box<dyn Profile> = match scenario.profile {
            ProfileName::Cursor => {
                let commands =
                    vec![json!({ "name": "simplify", "description": "Simplify the code" })];
                let login = scenario.signed_out.then(|| login.clone());
                Box::new(Cursor::new(sessions, commands, login))
            }
            ProfileName::Plain => Box::new(Plain::new(sessions)),
        };
        Self {
            login,
            scenario,
            wire,
            manners: Rc::default(),
            profile: RefCell::new(profile),
            prompts: Cell::new(0),
            calls: RefCell::default(),
            turns: RefCell::default(),
            heard: RefCell::default(),
            heard_more: watch::channel(0).0,
            latest_client_id: RefCell::new(Value::Null),
        }
    }

    fn receive(self: &Rc<Self>, value: &Value, message: Message) {
        match message {
            Message::Request { method, params, .. } => {
                let id = value["id"].clone();
                self.latest_client_id.replace(id.clone());
                self.hear(&method);
                self.request(id, &method, &params);
            }
            Message::Notification { method, params } => {
                self.hear(&method);
                self.notification(&method, &params);
            }
            Message::Response { result, .. } => {
                if !self.wire.resolve(&value["id"], result) {
                    self.wire
                        .record()
                        .note("stray answer", json!({ "id": value["id"] }));
                }
            }
        }
    }

    fn hear(&self, method: &str) {
        let mut heard = self.heard.borrow_mut();
        heard.push(method.to_owned());
        self.heard_more.send_replace(heard.len());
    }

    fn request(self: &Rc<Self>, id: Value, method: &str, params: &Value) {
        if let Some(steps) = self.handler(method) {
            self.handle(&steps, Some(id), method, params);
        } else if method == "session/prompt" {
            self.prompt(id, params);
        } else {
            let reaction = self.react(method, params);
            host::perform(&self.wire, &self.login, id, reaction);
        }
    }

    fn notification(self: &Rc<Self>, method: &str, params: &Value) {
        if method == "session/cancel" {
            for turn in self.turns.borrow().iter() {
                if params["sessionId"] == turn.session.as_str() {
                    turn.cancel.send_replace(true);
                }
            }
        }
        if let Some(steps) = self.handler(method) {
            self.handle(&steps, None, method, params);
        }
    }

    /// What the scenario has for a method, this time.
    fn handler(&self, method: &str) -> Option<Vec<Step>> {
        match self.scenario.on.get(method)? {
            Handler::Always(steps) => Some(steps.clone()),
            Handler::InTurn(lists) => {
                let mut calls = self.calls.borrow_mut();
                let calls = calls.entry(method.to_owned()).or_default();
                let steps = lists.get(*calls).cloned();
                *calls += 1;
                steps
            }
        }
    }

    fn handle(self: &Rc<Self>, steps: &[Step], id: Option<Value>, method: &str, params: &Value) {
        let mut reaction = None;
        let session = if method == "session/new" {
            // The session exists before the answer names it: updates for it may be sent first.
            let made = self.react(method, params);
            let session = match &made.answer {
                Answer::Now(Ok(answer)) => answer["sessionId"].as_str().map(str::to_owned),
                _ => None,
            };
            reaction = Some(made);
            session
        } else {
            if contains(steps, &|step| matches!(step, Step::Profile)) {
                reaction = Some(self.react(method, params));
            }
            params["sessionId"].as_str().map(str::to_owned)
        };
        let vars = self.vars(session, id.clone(), prompt_text(params));
        let mut context = Context::new(Kind::Handler, vars, id, never_cancelled());
        context.heard = self.heard.borrow().len();
        context.reaction = reaction;
        let (player, steps) = (self.clone(), steps.to_vec());
        spawn_local(async move { player.steps(&mut context, &steps).await });
    }

    fn prompt(self: &Rc<Self>, id: Value, params: &Value) {
        let Some(session) = params["sessionId"].as_str().map(str::to_owned) else {
            let error = RpcError::invalid_params("Invalid params");
            return self.wire.answer(&id, &Err(error));
        };
        let text = prompt_text(params);
        self.remember_prompt(&session, &text);
        let number = self.prompts.replace(self.prompts.get() + 1);
        let steps = self.scenario.turns.get(number).cloned().unwrap_or_else(|| {
            vec![Step::Chunk {
                kind: crate::scenario::ChunkKind::Text,
                text: DEFAULT_ANSWER.to_owned(),
                message_id: None,
                session: None,
            }]
        });

        let cancel = Rc::new(watch::channel(false).0);
        let vars = self.vars(Some(session.clone()), Some(id.clone()), text);
        let mut context = Context::new(Kind::Turn, vars, Some(id.clone()), cancel.subscribe());
        context.heard = self.heard.borrow().len();
        context.obeys_cancel = !contains(&steps, &|step| {
            matches!(step, Step::WaitCancel | Step::IgnoreCancel | Step::Hang(_))
        });
        self.turns.borrow_mut().push(Turn {
            session,
            cancel: cancel.clone(),
        });
        let player = self.clone();
        spawn_local(async move {
            let _ = player.steps(&mut context, &steps).await;
            let mut turns = player.turns.borrow_mut();
            turns.retain(|turn| !Rc::ptr_eq(&turn.cancel, &cancel));
            drop(turns);
            if !context.answered {
                let heeded = !contains(&steps, &|step| matches!(step, Step::IgnoreCancel));
                let reason = if context.is_cancelled() && heeded {
                    "cancelled"
                } else {
                    "end_turn"
                };
                player
                    .wire
                    .answer(&id, &Ok(json!({ "stopReason": reason })));
            }
        });
    }

    fn remember_prompt(&self, session: &str, text: &str) {
        let mut profile = self.profile.borrow_mut();
        let sessions = profile.sessions();
        let chunk = json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": text } });
        sessions.remember(session, &chunk);
        if let Some(session) = sessions.get_mut(session) {
            session.title.get_or_insert_with(|| title_of(text));
        }
    }

    fn vars(&self, session: Option<String>, request: Option<Value>, prompt: String) -> Vars {
        let mut profile = self.profile.borrow_mut();
        let cwd = session
            .as_deref()
            .and_then(|id| profile.sessions().get(id))
            .map(|session| session.cwd.clone())
            .filter(|cwd| !cwd.is_empty())
            .unwrap_or_else(|| {
                let cwd = std::env::current_dir().unwrap_or_default();
                cwd.display().to_string()
            });
        Vars {
            session: session.unwrap_or_default(),
            cwd,
            request_id: request.unwrap_or_default(),
            prompt,
            n: 0,
        }
    }

    /// The profile's answer, with what the scenario lays over it.
    fn react(&self, method: &str, params: &Value) -> Reaction {
        let mut reaction = self.profile.borrow_mut().react(method, params);
        let over = match method {
            "initialize" => Some(&self.scenario.initialize),
            "session/new" | "session/load" | "session/resume" => Some(&self.scenario.session),
            _ => None,
        };
        if let (Answer::Now(Ok(answer)), Some(over)) = (&mut reaction.answer, over) {
            let session = answer.get("sessionId").cloned();
            merge(answer, over);
            match session {
                // A prescribed id is the first session's alone; `sessions` made the others differ.
                Some(session) => answer["sessionId"] = session,
                None => {
                    if let Some(answer) = answer.as_object_mut() {
                        answer.remove("sessionId");
                    }
                }
            }
        }
        reaction
    }

    fn steps<'a>(
        &'a self,
        context: &'a mut Context,
        steps: &'a [Step],
    ) -> Pin<Box<dyn Future<Output = Flow> + 'a>> {
        Box::pin(async move {
            for step in steps {
                if context.obeys_cancel && context.is_cancelled() {
                    return Flow::Ended;
                }
                if self.step(context, step).await == Flow::Ended {
                    return Flow::Ended;
                }
            }
            Flow::On
        })
    }

    async fn step(&self, context: &mut Context, step: &Step) -> Flow {
        match step {
            Step::Chunk {
                kind,
                text,
                message_id,
                session,
            } => {
                let text = context.vars.fill_text(text);
                let mut update = chunk(kind.update_name(), &text);
                if let Some(id) = message_id {
                    update["messageId"] = json!(context.vars.fill_text(id));
                }
                self.update(context, session.as_deref(), &update);
            }
            Step::Update { update, session } => {
                let update = context.vars.fill(update);
                self.update(context, session.as_deref(), &update);
            }
            Step::Chunks(chunks) => return self.chunks(context, chunks).await,
            Step::BigText(big) => self.big_text(context, big),
            Step::Request {
                request,
                id,
                name,
                wait,
                then,
            } => {
                let id = match id {
                    Some(id) => context.vars.fill(id),
                    None => self.own_id(),
                };
                let answer = self.ask(context, &id, request);
                if !wait {
                    if let Some(name) = name {
                        let answer = Some(answer);
                        context.named.insert(name.clone(), Named { id, answer });
                    }
                    return Flow::On;
                }
                if let Some(name) = name {
                    let named = Named {
                        id: id.clone(),
                        answer: None,
                    };
                    context.named.insert(name.clone(), named);
                }
                return self.answered(context, &id, answer, then).await;
            }
            Step::Join { name, then } => {
                let named = context.named.get_mut(name);
                let Some((id, answer)) =
                    named.and_then(|named| Some((named.id.clone(), named.answer.take()?)))
                else {
                    self.fail(&format!("join: no request named {name} waits"));
                };
                return self.answered(context, &id, answer, then).await;
            }
            Step::Withdraw(name) => {
                let Some(named) = context.named.get(name) else {
                    self.fail(&format!("withdraw: no request named {name}"));
                };
                let params = json!({ "requestId": named.id });
                self.wire.notify("$/cancel_request", Some(params));
            }
            Step::Notify(Request { method, params }) => {
                let params = params.as_ref().map(|params| context.vars.fill(params));
                self.wire.notify(method, params);
            }
            Step::Raw(text) => self.wire.raw(context.vars.fill_text(text).as_bytes()),
            Step::RawBytes(bytes) => self.wire.raw(bytes),
            Step::RawRepeat(raw) => self.wire.raw_repeat(raw.text.as_bytes(), raw.times),
            Step::Repeat { times, steps } => {
                for n in 0..*times {
                    context.vars.n = n;
                    if self.steps(context, steps).await == Flow::Ended {
                        return Flow::Ended;
                    }
                    tokio::task::yield_now().await;
                }
            }
            Step::WaitMs(ms) => {
                let pause = tokio::time::sleep(Duration::from_millis(*ms));
                if context.unless_cancelled(pause).await.is_none() {
                    return Flow::Ended;
                }
            }
            Step::WaitCancel => {
                let cancelled = context.cancelled.wait_for(|cancelled| *cancelled);
                if cancelled.await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
            Step::Expect { method, timeout_ms } => {
                return self.expect(context, method, *timeout_ms).await;
            }
            Step::Stop { reason, with } => {
                let mut result = json!({ "stopReason": reason });
                merge(&mut result, &context.vars.fill(with));
                self.reply(context, &Ok(result));
            }
            Step::Reply(value) => {
                let result = context.vars.fill(value);
                self.reply(context, &Ok(result));
            }
            Step::Error(error) => {
                let error = context.vars.fill(error);
                context.answered = true;
                let id = &context.request;
                self.wire
                    .send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
            Step::Profile => {
                let id = context.request.clone();
                if let (Some(reaction), Some(id)) = (context.reaction.take(), id) {
                    context.answered = true;
                    host::perform(&self.wire, &self.login, id, reaction);
                }
            }
            Step::WriteFile(file) => {
                let path = in_cwd(context, &file.path);
                let text = context.vars.fill_text(&file.text);
                if let Err(error) = write_file(&path, &text) {
                    self.fail(&format!("write_file: {}: {error}", path.display()));
                }
            }
            Step::RemoveFile(path) => {
                let path = in_cwd(context, path);
                if let Err(error) = std::fs::remove_file(&path) {
                    self.fail(&format!("remove_file: {}: {error}", path.display()));
                }
            }
            Step::Stderr(text) => {
                let text = context.vars.fill_text(text);
                let _ = io::stderr().write_all(text.as_bytes());
            }
            Step::Note(text) => self.wire.record().note(text, json!({})),
            Step::Exit(code) => process::exit(&self.wire, *code),
            Step::Signal(signal) => process::die_of(&self.wire, *signal),
            Step::Hang(what) => {
                if *what == Hang::Process {
                    self.manners.deaf.set();
                }
                std::future::pending::<()>().await;
            }
            Step::IgnoreEof => self.manners.ignore_eof.set(true),
            Step::IgnoreSigterm => self.manners.ignore_sigterm.set(true),
            // What it means for the turn was seen when the turn began.
            Step::IgnoreCancel => {}
            Step::CloseStdout => {
                if let Err(error) = self.wire.close_stdout() {
                    self.fail(&format!("close_stdout: {error}"));
                }
            }
            Step::Spawn {
                command,
                inherit,
                own_group,
            } => match process::spawn(command, *inherit, *own_group) {
                Ok(pid) => self
                    .wire
                    .record()
                    .note("spawned", json!({ "pid": pid, "command": command })),
                Err(error) => self.fail(&format!("spawn: {}: {error}", command.join(" "))),
            },
        }
        Flow::On
    }

    fn reply(&self, context: &mut Context, answer: &Result<Value, RpcError>) {
        context.answered = true;
        let id = context.request.clone().unwrap_or_default();
        self.wire.answer(&id, answer);
    }

    fn update(&self, context: &Context, session: Option<&str>, update: &Value) {
        let session = match session {
            Some(session) => context.vars.fill_text(session),
            None => context.vars.session.clone(),
        };
        self.wire.update(&session, update);
        if context.kind == Kind::Turn && is_history(update) {
            self.profile
                .borrow_mut()
                .sessions()
                .remember(&session, update);
        }
    }

    async fn chunks(&self, context: &Context, chunks: &Chunks) -> Flow {
        let session = &context.vars.session;
        let (before, after) = around_text(session, chunks.kind.update_name());
        let numbered = chunks.text.contains("${n}");
        let message = json!({
            "jsonrpc": "2.0", "method": "session/update",
            "params": { "sessionId": session, "update": chunk(chunks.kind.update_name(), &chunks.text) },
        });
        self.wire.record().sent(&message, chunks.count);
        let mut vars = context.vars.clone();
        let mut text = json_inside(&vars.fill_text(&chunks.text));
        let mut block = Vec::with_capacity(WRITE_BYTES + 1024);
        for n in 0..chunks.count {
            if numbered {
                vars.n = n;
                text = json_inside(&vars.fill_text(&chunks.text));
            }
            block.extend_from_slice(&before);
            block.extend_from_slice(text.as_bytes());
            block.extend_from_slice(&after);
            if chunks.every_ms > 0 {
                self.wire.lines(&block);
                block.clear();
                let pause = tokio::time::sleep(Duration::from_millis(chunks.every_ms));
                if context.unless_cancelled(pause).await.is_none() {
                    return Flow::Ended;
                }
            } else if block.len() >= WRITE_BYTES {
                self.wire.lines(&block);
                block.clear();
                // A cancel may have come meanwhile.
                tokio::task::yield_now().await;
                if context.obeys_cancel && context.is_cancelled() {
                    return Flow::Ended;
                }
            }
        }
        self.wire.lines(&block);
        let bytes = chunks.count.saturating_mul(chunks.text.len() as u64);
        if context.kind == Kind::Turn && !numbered && bytes < REMEMBERED_BYTES {
            let times = usize::try_from(chunks.count).unwrap_or(0);
            let said = chunk(chunks.kind.update_name(), &chunks.text.repeat(times));
            self.profile
                .borrow_mut()
                .sessions()
                .remember(session, &said);
        }
        Flow::On
    }

    fn big_text(&self, context: &Context, big: &BigText) {
        let (before, after) = around_text(&context.vars.session, big.kind.update_name());
        let text = json_inside(&big.text);
        self.wire
            .big_message(&before, text.as_bytes(), big.times, &after);
    }

    fn own_id(&self) -> Value {
        match self.scenario.ids {
            Ids::Number => json!(self.wire.next_id()),
            Ids::String => json!(format!("agent-{}", self.wire.next_id())),
            Ids::Same => self.latest_client_id.borrow().clone(),
        }
    }

    fn ask(
        &self,
        context: &Context,
        id: &Value,
        request: &Request,
    ) -> oneshot::Receiver<ClientAnswer> {
        let params = request
            .params
            .as_ref()
            .map(|params| context.vars.fill(params));
        self.wire.request(id, &request.method, params)
    }

    /// Waits for the client's answer, then plays what the scenario has for it.
    async fn answered(
        &self,
        context: &mut Context,
        id: &Value,
        mut answer: oneshot::Receiver<ClientAnswer>,
        then: &BTreeMap<String, Vec<Step>>,
    ) -> Flow {
        let mut got = context.unless_cancelled(&mut answer).await;
        if got.is_none() {
            // Cancelled: the client still owes this answer, and ours waits for it.
            got = tokio::time::timeout(ANSWER_AFTER_CANCEL, answer).await.ok();
        }
        let Some(Ok(answer)) = got else {
            self.wire.record().note("unanswered", json!({ "id": id }));
            return Flow::Ended;
        };
        let key = answer_key(&answer);
        let steps = then.get(&key).or_else(|| then.get("*"));
        let Some(steps) = steps else { return Flow::On };
        // What a cancelled decision leads to belongs to the turn that is being cancelled.
        let obeys = context.obeys_cancel;
        context.obeys_cancel = obeys && key != "cancelled";
        let flow = self.steps(context, steps).await;
        context.obeys_cancel = obeys;
        flow
    }

    async fn expect(&self, context: &mut Context, method: &str, timeout_ms: Option<u64>) -> Flow {
        let mut more = self.heard_more.subscribe();
        let from = context.heard;
        let found = async {
            loop {
                let found = {
                    let heard = self.heard.borrow();
                    let unseen = heard.iter().enumerate().skip(from);
                    unseen
                        .into_iter()
                        .find(|(_, heard)| *heard == method)
                        .map(|(index, _)| index)
                };
                if let Some(index) = found {
                    return index;
                }
                if more.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        let limit = timeout_ms.map_or(Duration::MAX, Duration::from_millis);
        match context
            .unless_cancelled(tokio::time::timeout(limit, found))
            .await
        {
            Some(Ok(index)) => {
                context.heard = index + 1;
                Flow::On
            }
            Some(Err(_)) => self.fail(&format!("expect: no {method} came in {limit:?}")),
            None => Flow::Ended,
        }
    }

    /// The scenario cannot be played as written: loud, so that the test fails for the right reason.
    fn fail(&self, message: &str) -> ! {
        process::complain(message);
        self.wire
            .record()
            .note("failed", json!({ "message": message }));
        process::exit(&self.wire, 2)
    }
}

fn write_file(path: &Path, text: &str) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    std::fs::write(path, text)
}

fn in_cwd(context: &Context, path: &str) -> PathBuf {
    Path::new(&context.vars.cwd).join(context.vars.fill_text(path))
}

/// Whether a step is in the list, at any depth.
fn contains(steps: &[Step], wanted: &impl Fn(&Step) -> bool) -> bool {
    steps.iter().any(|step| {
        wanted(step)
            || match step {
                Step::Repeat { steps, .. } => contains(steps, wanted),
                Step::Request { then, .. } | Step::Join { then, .. } => {
                    then.values().any(|steps| contains(steps, wanted))
                }
                _ => false,
            }
    })
}

/// Under which key of `then` an answer stands: the chosen option, the outcome, or `error`.
fn answer_key(answer: &ClientAnswer) -> String {
    let Ok(result) = answer else {
        return "error".to_owned();
    };
    let outcome = &result["outcome"];
    outcome["optionId"]
        .as_str()
        .or_else(|| outcome["outcome"].as_str())
        .or_else(|| result["action"].as_str())
        .unwrap_or("result")
        .to_owned()
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } })
}

/// The line of a chunk, cut where its text stands.
fn around_text(session: &str, kind: &str) -> (Vec<u8>, Vec<u8>) {
    // No session id and no method has this in it, and JSON does not escape it.
    const MARK: &str = "<the text>";
    let params = json!({ "sessionId": session, "update": chunk(kind, MARK) });
    let line = call(None, "session/update", Some(params)).to_string();
    match line.split_once(MARK) {
        Some((before, after)) => (before.into(), format!("{after}\n").into()),
        None => (line.into(), b"\n".to_vec()),
    }
}

/// A text as it stands between the quotes of a JSON string.
fn json_inside(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or_default()
        .to_owned()
}

/// Whether a later `session/load` replays it.
fn is_history(update: &Value) -> bool {
    matches!(
        update["sessionUpdate"].as_str(),
        Some(
            "agent_message_chunk"
                | "agent_thought_chunk"
                | "user_message_chunk"
                | "tool_call"
                | "tool_call_update"
                | "plan"
        )
    )
}
