//! Sessions: made, found again, listed, closed.

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use acp::types::{
    ConfigOptions, Empty, ListSessionsRequest, ListSessionsResponse, LoadSessionRequest,
    NewSessionRequest, Notice, NoticeSeverity, SessionInfo, SessionRequest, SessionResponse,
    SessionUpdate,
};
use acp::{Object, Ticket};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::cancel::Cancel;
use crate::chats::Found;
use crate::cli;
use crate::clock;
use crate::error::Error;
use crate::log;
use crate::models;
use crate::redact;
use crate::server::{Reply, Server, cancel_turn, read};
use crate::session::Session;
use crate::store::{Meta, same_dir};
use crate::text;

/// How long the CLI may take for a new chat.
const CHAT_LIMIT: Duration = Duration::from_secs(30);

/// How long it may take to list its models, which asks a server.
const MODELS_LIMIT: Duration = Duration::from_secs(20);

/// How long a new session waits for that list. When it comes later, it is sent later.
const MODELS_WAIT: Duration = Duration::from_secs(4);

/// How many sessions a page of the list has.
const PAGE: usize = 100;

impl Server {
    pub(crate) async fn new_session(
        self: Rc<Self>,
        request: NewSessionRequest,
        cancel: Rc<Cancel>,
    ) -> Result<SessionResponse, Error> {
        let cwd = checked_dir(&request.cwd)?;
        let models = self.start_models(cwd);
        let chat = cli::create_chat(&self.options, cwd, CHAT_LIMIT, cancel.wait()).await?;
        let _ = tokio::time::timeout(MODELS_WAIT, models).await;
        let meta = Meta {
            id: chat,
            cwd: request.cwd.clone(),
            updated_ms: clock::now_ms(),
            mode: self.options.mode,
            model: self.options.model.clone(),
            ..Meta::default()
        };
        self.store.write(&meta);
        let session = Rc::new(Session::new(meta));
        let mut response = self.opened(&session, !request.mcp_servers.is_empty());
        response.session_id = Some(session.id().into());
        Ok(response)
    }

    /// The session is found and shown while the message is read: a prompt right behind it finds it open.
    pub(crate) fn load(self: &Rc<Self>, ticket: Ticket, params: Value, replay: bool) -> Reply {
        let found = read(params).and_then(|request: LoadSessionRequest| {
            checked_dir(&request.cwd)?;
            // A session is of no use without the CLI: better said now than at the first prompt.
            cli::find(&self.options)?;
            let id = request.session_id.as_str();
            let session = match self.session(id) {
                Some(session) => {
                    belongs(id, &session.meta.borrow().cwd, &request.cwd)?;
                    session
                }
                None => Rc::new(Session::new(self.find_session(id, &request.cwd)?)),
            };
            Ok((session, !request.mcp_servers.is_empty()))
        });
        let (session, with_servers) = match found {
            Ok(found) => found,
            Err(error) => return Reply::Now(Err(error)),
        };
        let id = session.id();
        self.sessions
            .borrow_mut()
            .insert(id.clone(), Rc::clone(&session));
        if replay {
            let mut any = false;
            for update in self.store.replay(&id) {
                any = true;
                self.notify(&session, update);
            }
            if !any {
                for update in self
                    .chats
                    .replay(&session.chat(), &session.meta.borrow().cwd)
                {
                    self.notify(&session, update);
                }
            }
        }
        let server = Rc::clone(self);
        self.spawn(async move {
            let models = server.start_models(&session.cwd);
            let _ = tokio::time::timeout(MODELS_WAIT, models).await;
            let response = server.opened(&session, with_servers);
            server.answer(ticket, Ok(json!(response)));
        });
        Reply::Later
    }

    /// A session of ours, or a chat of the CLI, that belongs to this directory.
    pub(crate) fn find_session(&self, id: &str, cwd: &str) -> Result<Meta, Error> {
        if let Some(meta) = self.store.find(id) {
            belongs(id, &meta.cwd, cwd)?;
            return Ok(meta);
        }
        match self.chats.find(id, cwd) {
            Found::Here => Ok(Meta {
                id: id.to_owned(),
                cwd: cwd.to_owned(),
                title: self
                    .chats
                    .list(cwd)
                    .into_iter()
                    .find(|chat| chat.id == id)
                    .and_then(|chat| chat.title),
                updated_ms: clock::now_ms(),
                mode: self.options.mode,
                model: self.options.model.clone(),
                ..Meta::default()
            }),
            Found::Elsewhere(other) => Err(elsewhere(id, other.as_deref(), cwd)),
            Found::Nowhere => Err(Error::NoSession(format!(
                "Unknown session `{id}`; session/list lists them."
            ))),
        }
    }

    /// What a client gets for an open session.
    pub(crate) fn opened(
        self: &Rc<Self>,
        session: &Rc<Session>,
        with_servers: bool,
    ) -> SessionResponse {
        let mut sessions = self.sessions.borrow_mut();
        sessions.insert(session.id(), Rc::clone(session));
        drop(sessions);
        let models = self.models.borrow().clone();
        if models.is_empty() {
            self.send_models_later(session);
        }
        if with_servers {
            // After the answer, which makes the session known to the client.
            let server = Rc::clone(self);
            let session = Rc::clone(session);
            self.spawn(async move {
                tokio::task::yield_now().await;
                server.say_servers_are_ignored(&session);
            });
        }
        SessionResponse {
            modes: Some(session.modes()),
            config_options: Some(session.config_options(&models)),
            ..SessionResponse::default()
        }
    }

    pub(crate) fn say_servers_are_ignored(&self, session: &Session) {
        let title = "MCP servers from the editor are not used";
        let description = "Cursor's headless mode takes them from .cursor/mcp.json only.";
        log::warn(&format!("{title}: {description}"));
        let client = self.client.borrow();
        if client
            .session
            .is_some_and(|session| session.notices.is_some())
        {
            self.notify(
                session,
                SessionUpdate::Notice(Notice {
                    severity: NoticeSeverity::Warning,
                    title: title.to_owned(),
                    description: Some(description.to_owned()),
                    meta: None,
                    extra: Object::new(),
                }),
            );
        }
    }

    pub(crate) fn list_sessions(
        &self,
        request: &ListSessionsRequest,
    ) -> Result<ListSessionsResponse, Error> {
        let cwd = request.cwd.as_deref();
        let mut all = self.store.list(cwd, clock::now_ms());
        if let Some(cwd) = cwd {
            let own: Vec<String> = all
                .iter()
                .flat_map(|meta| [Some(meta.id.clone()), meta.chat.clone()])
                .flatten()
                .collect();
            let chats = self.chats.list(cwd).into_iter();
            all.extend(chats.filter(|chat| !own.contains(&chat.id)));
            all.sort_by_key(|meta| std::cmp::Reverse(meta.updated_ms));
        }
        let start = match request.cursor.as_deref().map(str::parse::<usize>) {
            None => 0,
            Some(Ok(start)) => start,
            Some(Err(_)) => {
                return Err(Error::Params(
                    "The cursor is not from this agent.".to_owned(),
                ));
            }
        };
        let page: Vec<SessionInfo> = all
            .iter()
            .skip(start)
            .take(PAGE)
            .map(|meta| SessionInfo {
                session_id: meta.id.clone().into(),
                cwd: Some(meta.cwd.clone()),
                title: meta.title.clone(),
                updated_at: Some(clock::iso(meta.updated_ms)),
                ..SessionInfo::default()
            })
            .collect();
        let next = start.saturating_add(page.len());
        Ok(ListSessionsResponse {
            sessions: page,
            next_cursor: (next < all.len()).then(|| next.to_string()),
            ..ListSessionsResponse::default()
        })
    }

    pub(crate) fn close_session(&self, request: &SessionRequest) -> Result<Empty, Error> {
        let session = self.open_session(request.session_id.as_str())?;
        cancel_turn(&session);
        self.sessions.borrow_mut().remove(&session.id());
        Ok(Empty {})
    }

    /// Fetches the list in the background. The receiver is signalled when that is done.
    pub(crate) fn start_models(self: &Rc<Self>, cwd: &Path) -> oneshot::Receiver<()> {
        let (done, over) = oneshot::channel();
        let (server, cwd) = (Rc::clone(self), cwd.to_owned());
        self.spawn(async move {
            server.ask_models(&cwd).await;
            let _ = done.send(());
        });
        over
    }

    /// Asks the CLI, unless the list is known. What goes wrong is logged: a session works without it.
    pub(crate) async fn ask_models(self: &Rc<Self>, cwd: &Path) {
        let _one = self.asking.lock().await;
        if !self.models.borrow().is_empty() {
            return;
        }
        for args in [&["models"], &["--list-models"]] {
            let closing = self.closing.wait();
            match cli::ask(&self.options, args, cwd, MODELS_LIMIT, closing).await {
                Ok(printed) => {
                    let found = models::parse(&printed.stdout);
                    if !found.is_empty() {
                        *self.models.borrow_mut() = found.into();
                        return;
                    }
                    let said = format!("{}{}", printed.stdout, printed.stderr);
                    log::debug(&format!(
                        "no models: {}",
                        text::headline(&redact::mask(&said), 200)
                    ));
                }
                Err(error) => {
                    log::debug(&format!("no models: {error}"));
                    return;
                }
            }
        }
    }

    pub(crate) fn send_models_later(self: &Rc<Self>, session: &Rc<Session>) {
        let server = Rc::clone(self);
        let session = Rc::clone(session);
        self.spawn(async move {
            server.ask_models(&session.cwd).await;
            let models = server.models.borrow().clone();
            if !models.is_empty() && server.session(&session.id()).is_some() {
                let options = ConfigOptions {
                    options: session.config_options(&models),
                    meta: None,
                };
                server.notify(&session, SessionUpdate::ConfigOptions(options));
            }
        });
    }
}

/// The session's directory, which the protocol wants absolute.
fn checked_dir(cwd: &str) -> Result<&Path, Error> {
    let path = Path::new(cwd);
    if !path.is_absolute() {
        return Err(Error::Params(format!(
            "`cwd` must be an absolute path, not `{cwd}`."
        )));
    }
    if !path.is_dir() {
        return Err(Error::Params(format!("No such directory: `{cwd}`.")));
    }
    Ok(path)
}

fn belongs(id: &str, own: &str, cwd: &str) -> Result<(), Error> {
    if same_dir(own, cwd) {
        Ok(())
    } else {
        Err(elsewhere(id, Some(own), cwd))
    }
}

/// The CLI would silently start an empty chat there.
fn elsewhere(id: &str, own: Option<&str>, cwd: &str) -> Error {
    let own = own.map_or_else(|| "another directory".to_owned(), |own| format!("`{own}`"));
    Error::Params(format!(
        "Session `{id}` belongs to {own}. Cursor's CLI can only continue it there, not in `{cwd}`; load it with that directory."
    ))
}
