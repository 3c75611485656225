//! `cursor-agent-cloud acp`: an ACP agent whose sessions are cloud agents.
//!
//! Loading a session replays the agent's runs and goes on live; a prompt is a follow-up, or creates the agent where the session is new;
//! cancelling stops the run.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use acp::{Incoming, RpcError, Ticket, methods};
use cloud::{
    Client, CreateAgent, CreateRun, Error, Event, Image, Kind, Prompt, Repo, Run, RunStatus, Update,
};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::git;
use crate::stdio::{self, Peers, rpc_error};
use crate::updates;

/// Only Neovim gets states: other clients may take an unknown update for a mistake.
const CLIENT: &str = "cursor-agent.nvim";

/// A run that goes on is loaded as far as it is: until it has begun to tell and then says nothing for the first of these times, at most
/// for the second.
const QUIET: Duration = Duration::from_millis(200);
const BACKLOG: Duration = Duration::from_secs(1);

struct Server {
    client: Client,
    peers: Peers,
    sessions: RefCell<HashMap<String, Rc<Session>>>,
    /// The client shows a run that it did not ask for as a turn.
    knows_states: Cell<bool>,
    tasks: RefCell<JoinSet<()>>,
}

struct Session {
    id: String,
    cwd: PathBuf,
    /// It exists on the server.
    exists: RefCell<bool>,
    /// The run that is being followed.
    run: RefCell<Option<String>>,
    /// The newest run the client has heard of.
    last: RefCell<Option<String>>,
    cancelled: RefCell<bool>,
    /// The client no longer wants to hear of it.
    closed: Cell<bool>,
    /// One run is followed at a time.
    turn: tokio::sync::Mutex<()>,
    changed: Notify,
}

impl Session {
    /// Until the client has closed it.
    async fn closing(&self) {
        while !self.closed.get() {
            self.changed.notified().await;
        }
    }
}

pub async fn serve(client: Client) -> std::io::Result<()> {
    let server: RefCell<Option<Rc<Server>>> = RefCell::new(None);
    let peers = stdio::serve(|peers, incoming| {
        let server = Rc::clone(server.borrow_mut().get_or_insert_with(|| {
            Rc::new(Server {
                client: client.clone(),
                peers: peers.clone(),
                sessions: RefCell::default(),
                knows_states: Cell::default(),
                tasks: RefCell::default(),
            })
        }));
        server.handle(incoming);
    })
    .await?;
    drop(server.into_inner());
    stdio::flush(peers).await;
    Ok(())
}

impl Server {
    fn handle(self: Rc<Self>, incoming: Incoming<()>) {
        match incoming {
            Incoming::Request {
                ticket,
                method,
                params,
            } => {
                let server = Rc::clone(&self);
                let mut tasks = self.tasks.borrow_mut();
                while tasks.try_join_next().is_some() {}
                tasks.spawn_local(async move {
                    let peers = server.peers.clone();
                    if let Some(result) = server.request(ticket, &method, params).await {
                        peers.answer(ticket, result);
                    }
                });
            }
            Incoming::Notification { method, params } if method == methods::SESSION_CANCEL => {
                let id = params["sessionId"].as_str().unwrap_or_default();
                let session = self.sessions.borrow().get(id).cloned();
                if let Some(session) = session {
                    self.stop(session);
                }
            }
            _ => {}
        }
    }

    /// Stops the run of a session; one that is only now being created is stopped as soon as it has an id.
    fn stop(self: &Rc<Self>, session: Rc<Session>) {
        *session.cancelled.borrow_mut() = true;
        session.changed.notify_waiters();
        let run = session.run.borrow().clone();
        let Some(run) = run else { return };
        let server = Rc::clone(self);
        self.tasks.borrow_mut().spawn_local(async move {
            if let Err(error) = server.client.cancel(&session.id, &run).await
                && error.code() != Some("run_not_cancellable")
            {
                server.say(&session, &json!({ "sessionUpdate": "notice", "severity": "warning", "message": format!("The run could not be stopped. {error}") }));
            }
        });
    }

    /// None: another task answers.
    async fn request(
        self: Rc<Self>,
        ticket: Ticket,
        method: &str,
        params: Value,
    ) -> Option<Result<Value, RpcError>> {
        Some(match method {
            methods::INITIALIZE => {
                self.knows_states
                    .set(params["clientInfo"]["name"] == CLIENT);
                Ok(json!({
                    "protocolVersion": 1,
                    "agentCapabilities": {
                        "loadSession": true,
                        "promptCapabilities": { "image": true, "embeddedContext": true },
                        "sessionCapabilities": { "list": {}, "close": {} },
                    // A run is stopped when the user says so, not because a window or the editor is closed.
                    "_meta": { "worksElsewhere": true },
                    },
                    "agentInfo": { "name": "cursor-agent-cloud", "title": "Cursor cloud", "version": env!("CARGO_PKG_VERSION") },
                    "authMethods": [],
                }))
            }
            methods::SESSION_NEW => {
                let id = cloud::new_agent_id();
                self.open(&id, &params, false);
                Ok(json!({ "sessionId": id }))
            }
            methods::SESSION_LOAD => {
                let id = params["sessionId"].as_str().unwrap_or_default().to_owned();
                let session = self.open(&id, &params, true);
                return self
                    .load(ticket, &session)
                    .await
                    .err()
                    .map(|error| Err(rpc_error(&error)));
            }
            methods::SESSION_LIST => {
                self.look_for_runs();
                let list = cloud::ListAgents {
                    cursor: params["cursor"].as_str().map(str::to_owned),
                    limit: Some(50),
                    ..cloud::ListAgents::default()
                };
                let cwd = params["cwd"].as_str().unwrap_or("/").to_owned();
                self.client.agents(&list).await.map_err(|error| rpc_error(&error)).map(|page| {
                    let sessions: Vec<Value> = page
                        .items
                        .iter()
                        .map(|agent| json!({ "sessionId": agent.id, "cwd": cwd, "title": agent.name, "updatedAt": agent.updated_at }))
                        .collect();
                    json!({ "sessions": sessions, "nextCursor": page.next_cursor })
                })
            }
            methods::SESSION_CLOSE => {
                // The agent goes on in the cloud: only we stop listening.
                let closed = self
                    .sessions
                    .borrow_mut()
                    .remove(params["sessionId"].as_str().unwrap_or_default());
                if let Some(session) = closed {
                    session.closed.set(true);
                    session.changed.notify_waiters();
                }
                Ok(json!({}))
            }
            methods::SESSION_PROMPT => {
                let id = params["sessionId"].as_str().unwrap_or_default();
                let session = self.sessions.borrow().get(id).cloned();
                match session {
                    Some(session) => self.prompt(&session, &params["prompt"]).await,
                    None => Err(RpcError::not_found(format!("Session `{id}` is not open"))),
                }
            }
            other => Err(RpcError::method_not_found(other)),
        })
    }

    fn open(&self, id: &str, params: &Value, exists: bool) -> Rc<Session> {
        let session = Rc::new(Session {
            id: id.to_owned(),
            cwd: PathBuf::from(params["cwd"].as_str().unwrap_or("/")),
            exists: RefCell::new(exists),
            run: RefCell::default(),
            last: RefCell::default(),
            cancelled: RefCell::default(),
            closed: Cell::default(),
            turn: tokio::sync::Mutex::default(),
            changed: Notify::new(),
        });
        self.sessions
            .borrow_mut()
            .insert(id.to_owned(), Rc::clone(&session));
        session
    }

    fn say(&self, session: &Session, update: &Value) {
        self.peers.notify(
            methods::SESSION_UPDATE,
            json!({ "sessionId": session.id, "update": update }),
        );
    }

    /// Replays all runs that have ended, answers, and follows the one that has not.
    async fn load(self: &Rc<Self>, ticket: Ticket, session: &Rc<Session>) -> Result<(), Error> {
        // From the beginning: else a look for new runs in the middle of it would tell them all again.
        let turn = session.turn.lock().await;
        let agent = self.client.agent(&session.id).await?;
        let runs = self.client.all_runs(&session.id).await?;
        if let Some(name) = &agent.name {
            self.say(session, &json!({ "sessionUpdate": "session_info_update", "title": name, "updatedAt": agent.updated_at }));
        }
        *session.last.borrow_mut() = runs.last().map(|run| run.id.clone());
        let mut talk = Talk::default();
        let (over, live): (Vec<&Run>, Vec<&Run>) =
            runs.iter().partition(|run| run.status.is_over());
        for (number, run) in over.iter().enumerate() {
            self.replay(session, run, number, runs.len(), &mut talk)
                .await?;
        }
        let Some(run) = live.first() else {
            self.peers.answer(ticket, Ok(json!({})));
            return Ok(());
        };
        *session.run.borrow_mut() = Some(run.id.clone());
        let place = (&mut talk, over.len(), runs.len());
        self.follow_on(session, &run.id, place, Some(ticket)).await;
        drop(turn);
        Ok(())
    }

    /// Runs of open sessions that were started elsewhere, by the dashboard or on the web, are followed from now on. Nothing asks for
    /// them by itself: the client does, when it asks for sessions.
    fn look_for_runs(self: &Rc<Self>) {
        if !self.knows_states.get() {
            return;
        }
        let sessions: Vec<Rc<Session>> = self.sessions.borrow().values().cloned().collect();
        let mut tasks = self.tasks.borrow_mut();
        for session in sessions {
            let server = Rc::clone(self);
            tasks.spawn_local(async move {
                if *session.exists.borrow() {
                    // The next time it is asked for is soon enough.
                    let _ = server.catch_up(&session).await;
                }
            });
        }
    }

    async fn catch_up(&self, session: &Session) -> Result<(), Error> {
        // What is being followed is reported anyway.
        let Ok(turn) = session.turn.try_lock() else {
            return Ok(());
        };
        let newest = self.client.agent(&session.id).await?.latest_run_id;
        let last = session.last.borrow().clone();
        if newest.is_none() || newest == last {
            return Ok(());
        }
        let runs = self.client.all_runs(&session.id).await?;
        let from = runs.iter().position(|run| Some(&run.id) == last.as_ref());
        let mut talk = Talk::default();
        for (number, run) in runs.iter().enumerate().skip(from.map_or(0, |at| at + 1)) {
            *session.last.borrow_mut() = Some(run.id.clone());
            if run.status.is_over() {
                self.say_state(session, json!({ "state": "running" }));
                let told = self
                    .replay(session, run, number, runs.len(), &mut talk)
                    .await;
                self.say_state(session, json!({ "state": "idle" }));
                told?;
                continue;
            }
            *session.run.borrow_mut() = Some(run.id.clone());
            self.follow_on(session, &run.id, (&mut talk, number, runs.len()), None)
                .await;
        }
        drop(turn);
        Ok(())
    }

    /// Follows a run that the client did not ask for to its end, as a turn. With `loading`, what there is of it so far is part of the
    /// replay, and the request is answered then.
    async fn follow_on(
        &self,
        session: &Session,
        run: &str,
        place: (&mut Talk, usize, usize),
        mut loading: Option<Ticket>,
    ) {
        if loading.is_none() {
            self.say_state(session, json!({ "state": "running" }));
        }
        let end = self.follow(session, run, Some(place), &mut loading).await;
        *session.run.borrow_mut() = None;
        if let Some(ticket) = loading.take() {
            self.begin(session, ticket);
        }
        let (reason, why) = match &end {
            Ok(run) if run.status == RunStatus::Cancelled => ("cancelled", None),
            Ok(run) => ("end_turn", updates::ending(run)),
            Err(error) => ("end_turn", Some(error.to_string())),
        };
        if self.knows_states.get() {
            let mut idle = json!({ "state": "idle", "stopReason": reason });
            if let Some(why) = why {
                idle["error"] = json!(why);
            }
            self.say_state(session, idle);
        } else if let Some(why) = why {
            self.say(session, &notice("error", &why));
        }
    }

    /// The replay is over, and the run goes on.
    fn begin(&self, session: &Session, loading: Ticket) {
        self.peers.answer(loading, Ok(json!({})));
        self.say_state(session, json!({ "state": "running" }));
    }

    /// Whether a run that the client did not ask for goes on.
    fn say_state(&self, session: &Session, mut state: Value) {
        if self.knows_states.get() {
            state["sessionUpdate"] = json!("state_update");
            self.say(session, &state);
        }
    }

    /// A run that has ended: by its events, or, where they are no longer kept, by the words of the conversation.
    async fn replay(
        &self,
        session: &Session,
        run: &Run,
        number: usize,
        count: usize,
        talk: &mut Talk,
    ) -> Result<(), Error> {
        let place = (&mut *talk, number, count);
        match self.follow(session, &run.id, Some(place), &mut None).await {
            Ok(run) => {
                if let Some(why) = updates::ending(&run) {
                    self.say(session, &notice("error", &why));
                } else if run.status == RunStatus::Cancelled {
                    self.say(session, &notice("info", "Stopped"));
                }
                Ok(())
            }
            Err(error) if error.kind() == Kind::Gone => {
                for message in talk.of_run(self, session, number, count).await {
                    self.say(session, &message);
                }
                if talk.is_empty()
                    && let Some(result) = &run.result
                {
                    self.say(session, &updates::of_message("assistant_message", result));
                }
                if let Some(why) = updates::ending(run) {
                    self.say(session, &notice("error", &why));
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Tells what happens in a run until it ends. With its place among the runs, the user's words too, which the client has not shown
    /// itself: from the events, or, where these do not begin with them, from the conversation. A request to load is answered once what
    /// there is so far was told.
    async fn follow(
        &self,
        session: &Session,
        run: &str,
        place: Option<(&mut Talk, usize, usize)>,
        loading: &mut Option<Ticket>,
    ) -> Result<Run, Error> {
        let prompted = place.is_none();
        let mut place = place;
        let mut heard = false;
        let (mut saying, mut messages) = (String::new(), 0);
        let mut stream = self.client.stream(&session.id, run);
        let latest = Instant::now() + BACKLOG;
        let mut begun = false;
        loop {
            let event = if let Some(ticket) = *loading {
                let quiet = if begun {
                    Instant::now() + QUIET
                } else {
                    latest
                };
                match tokio::time::timeout_at(quiet.min(latest), stream.next()).await {
                    Ok(event) => event,
                    Err(_) => {
                        *loading = None;
                        self.begin(session, ticket);
                        continue;
                    }
                }
            } else {
                tokio::select! {
                    event = stream.next() => event,
                    () = session.closing() => return Err(Error::new(Kind::Gone, "The conversation was closed")),
                }
            };
            let Some(event) = event else { break };
            begun = true;
            match event? {
                Event::Update(update) => {
                    heard = true;
                    if matches!(update, Update::UserMessage(_)) {
                        place = None;
                    } else if !matches!(update, Update::Other(..))
                        && let Some((talk, number, count)) = place.take()
                    {
                        let messages = talk.of_run(self, session, number, count).await;
                        let asked =
                            |message: &&Value| message["sessionUpdate"] == "user_message_chunk";
                        for message in messages.iter().filter(asked) {
                            self.say(session, message);
                        }
                    }
                    for mut update in updates::of_update(run, &update, prompted) {
                        // Messages of two runs, or before and after a tool call, are not one.
                        let kind = update["sessionUpdate"].to_string();
                        if kind != saying {
                            (saying, messages) = (kind, messages + 1);
                        }
                        if update["content"]["text"].is_string() {
                            update["messageId"] = json!(format!("{run}-{messages}"));
                        }
                        self.say(session, &update);
                    }
                }
                Event::Ended(run) => {
                    if !heard {
                        self.say_result(session, &run, place).await;
                    }
                    return Ok(*run);
                }
                Event::Status(_) | Event::Interrupted(_) => {}
            }
        }
        Err(Error::new(
            Kind::Malformed,
            "The stream ended before the run did",
        ))
    }

    /// A run whose events could not be had: what the conversation has of it, or its last words.
    async fn say_result(
        &self,
        session: &Session,
        run: &Run,
        place: Option<(&mut Talk, usize, usize)>,
    ) {
        let mut messages = match place {
            Some((talk, number, count)) => talk.of_run(self, session, number, count).await,
            None => Vec::new(),
        };
        let answered = |message: &Value| message["sessionUpdate"] == "agent_message_chunk";
        if let (false, Some(result)) = (messages.iter().any(answered), &run.result) {
            messages.push(updates::of_message("assistant_message", result));
        }
        for message in &messages {
            self.say(session, message);
        }
    }

    async fn prompt(
        self: &Rc<Self>,
        session: &Rc<Session>,
        blocks: &Value,
    ) -> Result<Value, RpcError> {
        *session.cancelled.borrow_mut() = false;
        let turn = tokio::select! {
            turn = session.turn.lock() => turn,
            // A run that is still followed is stopped by the same cancel.
            () = session.changed.notified() => return Ok(json!({ "stopReason": "cancelled" })),
        };
        let prompt = read_prompt(blocks);
        let run = if *session.exists.borrow() {
            let create = CreateRun {
                prompt,
                ..CreateRun::default()
            };
            self.client
                .follow_up(&session.id, &create)
                .await
                .map_err(|error| rpc_error(&error))?
        } else {
            let place = git::place(&session.cwd)
                .await
                .map_err(|why| RpcError::new(RpcError::INTERNAL_ERROR, why.to_string()))?;
            let create = CreateAgent {
                agent_id: Some(session.id.clone()),
                prompt,
                repos: vec![Repo {
                    url: place.url,
                    starting_ref: place.branch,
                    pr_url: None,
                }],
                ..CreateAgent::default()
            };
            let created = self
                .client
                .create(&create)
                .await
                .map_err(|error| rpc_error(&error))?;
            *session.exists.borrow_mut() = true;
            created.run
        };
        *session.run.borrow_mut() = Some(run.id.clone());
        *session.last.borrow_mut() = Some(run.id.clone());
        if *session.cancelled.borrow() {
            self.stop(Rc::clone(session));
        }
        let end = self.follow(session, &run.id, None, &mut None).await;
        *session.run.borrow_mut() = None;
        drop(turn);
        let run = end.map_err(|error| rpc_error(&error))?;
        if run.status == RunStatus::Cancelled {
            return Ok(json!({ "stopReason": "cancelled" }));
        }
        match updates::ending(&run) {
            Some(why) => Err(RpcError::new(RpcError::INTERNAL_ERROR, why)),
            None => Ok(json!({ "stopReason": "end_turn" })),
        }
    }
}

fn notice(severity: &str, message: &str) -> Value {
    json!({ "sessionUpdate": "notice", "severity": severity, "message": message })
}

/// What was said, asked for once and only when it is needed.
#[derive(Default)]
struct Talk {
    /// Each begins with the user's words.
    parts: Option<Vec<Vec<Value>>>,
}

impl Talk {
    async fn of_run(
        &mut self,
        server: &Server,
        session: &Session,
        number: usize,
        count: usize,
    ) -> Vec<Value> {
        if self.parts.is_none() {
            let mut parts: Vec<Vec<Value>> = Vec::new();
            if let Ok(talk) = server.client.conversation(&session.id).await {
                for message in talk.messages {
                    if message.kind == "user_message" || parts.is_empty() {
                        parts.push(Vec::new());
                    }
                    if let Some(part) = parts.last_mut() {
                        part.push(updates::of_message(&message.kind, &message.text));
                    }
                }
            }
            self.parts = Some(parts);
        }
        let parts = self.parts.as_deref_mut().unwrap_or_default();
        // With more parts than runs, the first run has what is over.
        let extra = parts.len().saturating_sub(count);
        let range = if number == 0 {
            0..extra + 1
        } else {
            number + extra..number + extra + 1
        };
        parts
            .get_mut(range)
            .map(|parts| parts.iter_mut().flat_map(std::mem::take).collect())
            .unwrap_or_default()
    }

    fn is_empty(&self) -> bool {
        self.parts.as_ref().is_none_or(Vec::is_empty)
    }
}

fn read_prompt(blocks: &Value) -> Prompt {
    let mut prompt = Prompt::default();
    let mut texts: Vec<String> = Vec::new();
    for block in blocks.as_array().map(Vec::as_slice).unwrap_or_default() {
        match block["type"].as_str().unwrap_or_default() {
            "text" => texts.push(block["text"].as_str().unwrap_or_default().to_owned()),
            "image" => prompt.images.push(Image {
                data: block["data"].as_str().map(str::to_owned),
                mime_type: block["mimeType"].as_str().map(str::to_owned),
                ..Image::default()
            }),
            // The agent's machine has its own copy of the project: a path is enough, other text is sent.
            "resource_link" => texts.push(
                block["uri"]
                    .as_str()
                    .unwrap_or_default()
                    .trim_start_matches("file://")
                    .to_owned(),
            ),
            "resource" => {
                let uri = block["resource"]["uri"]
                    .as_str()
                    .unwrap_or_default()
                    .trim_start_matches("file://");
                let text = block["resource"]["text"].as_str().unwrap_or_default();
                texts.push(format!("{uri}:\n```\n{text}\n```"));
            }
            _ => {}
        }
    }
    prompt.text = texts.join("\n\n");
    prompt
}
