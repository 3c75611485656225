//! The agent: takes the client's requests one after the other, and works on those that take time at once.
//!
//! Each request is answered once. What changes a session happens while its message is read, so that the next message finds it
//! done; only what waits for the CLI goes on beside.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use acp::types::{
    AgentCapabilities, ClientCapabilities, Implementation, InitializeRequest, InitializeResponse,
    PROTOCOL_VERSION, PromptCapabilities, SessionCapabilities, SessionNotification, SessionRequest,
    SessionUpdate,
};
use acp::{FromValue, Id, Incoming, Junk, Message, Peer, RpcError, Ticket, methods};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::account;
use crate::cancel::{Cancel, Why};
use crate::chats::Chats;
use crate::error::Error;
use crate::log;
use crate::models::Model;
use crate::options::Options;
use crate::redact;
use crate::session::Session;
use crate::store::Store;
use crate::text;
use crate::turn::Unsupported;
use crate::wire::{Arrived, ToClient};

/// The agent.
#[derive(Debug)]
pub struct Server {
    pub(crate) options: Options,
    pub(crate) out: ToClient,
    pub(crate) store: Store,
    pub(crate) chats: Chats,
    peer: RefCell<Peer<()>>,
    pub(crate) client: RefCell<ClientCapabilities>,
    pub(crate) sessions: RefCell<HashMap<String, Rc<Session>>>,
    /// What can still be cancelled by `$/cancel_request`.
    cancels: RefCell<HashMap<Ticket, Rc<Cancel>>>,
    /// Everything is to end.
    pub(crate) closing: Rc<Cancel>,
    tasks: RefCell<JoinSet<()>>,
    /// The list of models, once it is known.
    pub(crate) models: RefCell<Rc<[Model]>>,
    /// One asks for it at a time.
    pub(crate) asking: tokio::sync::Mutex<()>,
    pub(crate) unsupported: RefCell<Unsupported>,
}

/// What a request comes to while its message is read.
pub(crate) enum Reply {
    /// The answer.
    Now(Result<Value, Error>),
    /// A task answers.
    Later,
}

impl Server {
    /// An agent that has heard nothing yet.
    pub fn new(options: Options, out: ToClient) -> Rc<Self> {
        Rc::new(Self {
            options,
            out,
            store: Store::open(),
            chats: Chats::open(),
            peer: RefCell::default(),
            client: RefCell::default(),
            sessions: RefCell::default(),
            cancels: RefCell::default(),
            closing: Rc::default(),
            tasks: RefCell::default(),
            models: RefCell::new(Rc::new([])),
            asking: tokio::sync::Mutex::default(),
            unsupported: RefCell::default(),
        })
    }

    /// Takes what arrived.
    pub fn handle(self: &Rc<Self>, arrived: Arrived) {
        let message = match arrived {
            Arrived::Message(message) => message,
            Arrived::Junk(junk) => return self.answer_junk(&junk),
        };
        let incoming = self.peer.borrow_mut().receive(message);
        match incoming {
            Incoming::Request {
                ticket,
                method,
                params,
            } => {
                log::debug(&format!("<- {method}"));
                if let Reply::Now(result) = self.request(ticket, &method, params) {
                    self.answer(ticket, result);
                }
            }
            Incoming::Notification { method, params } => {
                log::debug(&format!("<- {method}"));
                if method == methods::SESSION_CANCEL
                    && let Ok(request) = SessionRequest::from_value(params)
                    && let Some(session) = self.session(request.session_id.as_str())
                {
                    cancel_turn(&session);
                }
            }
            Incoming::Cancelled { ticket } => {
                if let Some(cancel) = self.cancels.borrow().get(&ticket) {
                    cancel.set(Why::Request);
                }
            }
            Incoming::Response { .. } | Incoming::Stray { .. } => {}
        }
    }

    /// Ends everything that runs, and waits for it at most that long.
    pub async fn shut_down(&self, limit: Duration) {
        self.closing.set(Why::Session);
        for session in self.sessions.borrow().values() {
            cancel_turn(session);
        }
        for cancel in self.cancels.borrow().values() {
            cancel.set(Why::Session);
        }
        let mut tasks = std::mem::take(&mut *self.tasks.borrow_mut());
        let all = async { while tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(limit, all).await;
    }

    fn answer_junk(&self, junk: &Junk) {
        log::warn(&format!("a line that is not a message: {junk}"));
        let code = match junk {
            Junk::NotJson(_) => RpcError::PARSE_ERROR,
            Junk::NotMessage(_) | Junk::Unreadable { .. } => RpcError::INVALID_REQUEST,
        };
        let error = RpcError::new(code, junk.to_string());
        let response = Message::Response {
            id: Id::Null,
            result: Err(error),
        };
        self.out.send(response.to_line());
    }

    pub(crate) fn answer(&self, ticket: Ticket, result: Result<Value, Error>) {
        self.cancels.borrow_mut().remove(&ticket);
        let line = match result {
            Ok(result) => self.peer.borrow_mut().answer_ok(ticket, &result),
            Err(error) => {
                let error = RpcError::from(error);
                log::debug(&format!("-> error {error}"));
                self.peer.borrow_mut().answer_err(ticket, &error)
            }
        };
        if let Some(line) = line {
            self.out.send(line);
        }
    }

    pub(crate) fn notify(&self, session: &Session, update: SessionUpdate) {
        let notification = SessionNotification {
            session_id: session.id().into(),
            update,
            meta: None,
        };
        let peer = self.peer.borrow();
        self.out
            .send(peer.notify(methods::SESSION_UPDATE, notification));
    }

    fn request(self: &Rc<Self>, ticket: Ticket, method: &str, params: Value) -> Reply {
        match method {
            methods::INITIALIZE => self.now(params, Self::initialize),
            methods::AUTHENTICATE => self.later(ticket, params, Self::authenticate),
            methods::LOGOUT => self.later(ticket, params, Self::logout),
            methods::SESSION_NEW => self.later(ticket, params, Self::new_session),
            methods::SESSION_LOAD => self.load(ticket, params, true),
            methods::SESSION_RESUME => self.load(ticket, params, false),
            methods::SESSION_LIST => self.now(params, Self::list_sessions),
            methods::SESSION_CLOSE => self.now(params, Self::close_session),
            methods::SESSION_SET_MODE => self.now(params, Self::set_mode),
            methods::SESSION_SET_CONFIG_OPTION => self.now(params, Self::set_config_option),
            methods::SESSION_PROMPT => self.prompt(ticket, params),
            other => {
                let error = RpcError::method_not_found(other);
                if let Some(line) = self.peer.borrow_mut().answer_err(ticket, &error) {
                    self.out.send(line);
                }
                Reply::Later
            }
        }
    }

    /// A request that is answered at once.
    fn now<P: FromValue, R: Serialize>(
        &self,
        params: Value,
        work: impl FnOnce(&Self, &P) -> Result<R, Error>,
    ) -> Reply {
        let result = read(params).and_then(|params| work(self, &params));
        Reply::Now(result.map(|result| json!(result)))
    }

    /// A request that takes time, and can be cancelled meanwhile.
    fn later<P: FromValue + 'static, R: Serialize, F>(
        self: &Rc<Self>,
        ticket: Ticket,
        params: Value,
        work: impl FnOnce(Rc<Self>, P, Rc<Cancel>) -> F + 'static,
    ) -> Reply
    where
        F: Future<Output = Result<R, Error>> + 'static,
    {
        let params = match read(params) {
            Ok(params) => params,
            Err(error) => return Reply::Now(Err(error)),
        };
        let cancel = self.cancellable(ticket);
        let server = Rc::clone(self);
        self.spawn(async move {
            let result = work(Rc::clone(&server), params, cancel).await;
            server.answer(ticket, result.map(|result| json!(result)));
        });
        Reply::Later
    }

    pub(crate) fn cancellable(&self, ticket: Ticket) -> Rc<Cancel> {
        let cancel = Rc::new(Cancel::default());
        self.cancels.borrow_mut().insert(ticket, Rc::clone(&cancel));
        cancel
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let mut tasks = self.tasks.borrow_mut();
        while tasks.try_join_next().is_some() {}
        tasks.spawn_local(task);
    }

    pub(crate) fn session(&self, id: &str) -> Option<Rc<Session>> {
        self.sessions.borrow().get(id).cloned()
    }

    pub(crate) fn open_session(&self, id: &str) -> Result<Rc<Session>, Error> {
        self.session(id).ok_or_else(|| {
            Error::NoSession(format!(
                "Session `{id}` is not open. Open it with session/load, or start one with session/new."
            ))
        })
    }

    /// Nothing of the CLI is touched here: it is answered at once, also where the CLI is missing.
    fn initialize(&self, request: &InitializeRequest) -> Result<InitializeResponse, Error> {
        let in_terminal = request.client_capabilities.auth.terminal;
        *self.client.borrow_mut() = request.client_capabilities.clone();
        Ok(InitializeResponse {
            protocol_version: Some(PROTOCOL_VERSION),
            agent_capabilities: AgentCapabilities {
                load_session: true,
                prompt: PromptCapabilities {
                    image: true,
                    ..PromptCapabilities::default()
                },
                session: SessionCapabilities {
                    list: true,
                    resume: true,
                    close: true,
                    ..SessionCapabilities::default()
                },
                logout: true,
                ..AgentCapabilities::default()
            },
            auth_methods: vec![account::method(in_terminal)],
            agent_info: Some(Implementation {
                name: "cursor-agent-acp".to_owned(),
                title: Some("Cursor (headless)".to_owned()),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            }),
            ..InitializeResponse::default()
        })
    }
}

/// Stops the turn of a session, if it is in one.
pub(crate) fn cancel_turn(session: &Session) {
    if let Some(turn) = session.turn.borrow().as_ref() {
        turn.cancel.set(Why::Session);
    }
}

/// The params of a request, or what is wrong with them.
pub(crate) fn read<P: FromValue>(params: Value) -> Result<P, Error> {
    P::from_value(params).map_err(|params| {
        let shown = text::headline(&redact::mask(&params.to_string()), 200);
        Error::Params(format!("Invalid params for this method: {shown}"))
    })
}
