//! Plays a scenario: the face of the agent that tests talk to.
//!
//! Here a message of the client finds the steps that belong to it; `context` is what they are played for, `steps` does them.

mod context;
mod steps;

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, HashMap},
    path::Path,
    rc::Rc,
};

use acp::{Message, RpcError};
use serde_json::{Value, json};
use tokio::{sync::watch, task::spawn_local};

use self::{
    context::{Context, Kind, never_cancelled},
    steps::contains,
};
use crate::{
    cursor::Cursor,
    cursor_2026_10::Cursor202610,
    error::Error,
    host::{self, Manners},
    login::{Login, state_dir},
    plain::Plain,
    profile::{Answer, Profile, Reaction, merge},
    prompt::{prompt_text, title_of},
    record::{self, Record},
    scenario::{ChunkKind, Handler, ProfileName, Scenario, Step},
    sessions::{Session, Sessions},
    template::Vars,
    wire::Wire,
};

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
        let commands = vec![json!({ "name": "simplify", "description": "Simplify the code" })];
        let profile: Box<dyn Profile> = match scenario.profile {
            ProfileName::Cursor => {
                let login = scenario.signed_out.then(|| login.clone());
                Box::new(Cursor::new(sessions, commands, login))
            }
            ProfileName::Cursor202610 => {
                Box::new(Cursor202610::new(sessions, commands, login.clone()))
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
        if self.profile.borrow().outlives_stdin() {
            self.manners.ignore_eof.set(true);
        }
        let text = prompt_text(params);
        self.remember_prompt(&session, &text);
        let number = self.prompts.replace(self.prompts.get() + 1);
        let steps = self.scenario.turns.get(number).cloned().unwrap_or_else(|| {
            vec![Step::Chunk {
                kind: ChunkKind::Text,
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
}
