//! Prompts: each begins a turn, and is answered with how it ended.

use std::cell::RefCell;
use std::rc::Rc;

use acp::types::{
    ContentBlock, MessageChunk, Patch, PromptRequest, PromptResponse, SessionInfoUpdate,
    SessionUpdate, StopReason,
};
use acp::{Object, Ticket};
use serde_json::{Value, json};

use crate::cancel::Why;
use crate::chats::Found;
use crate::clock;
use crate::error::Error;
use crate::history::History;
use crate::log;
use crate::prompt;
use crate::server::{Reply, Server, read};
use crate::session::{Session, Turn};
use crate::text;
use crate::translate::chunk;
use crate::turn::{self, Done, Ended, Sink};

/// Titles are the first prompt, up to here.
const TITLE_CHARS: usize = 80;

impl Server {
    pub(crate) fn prompt(self: &Rc<Self>, ticket: Ticket, params: Value) -> Reply {
        let begun = read(params).and_then(|request: PromptRequest| {
            let session = self.open_session(request.session_id.as_str())?;
            let before = session.turn.borrow().clone();
            if before.as_ref().is_some_and(|turn| turn.cancel.why().is_none()) {
                return Err(Error::Refused(
                    "A turn is already running in this session. Wait for it to end, or stop it with session/cancel."
                        .to_owned(),
                ));
            }
            let mut images = self.store.images(&session.id());
            let text = prompt::text(&request.prompt, &mut images)?;
            Ok((session, before, request, text))
        });
        let (session, before, request, text) = match begun {
            Ok(begun) => begun,
            Err(error) => return Reply::Now(Err(error)),
        };
        let turn = Rc::new(Turn::new(self.cancellable(ticket)));
        *session.turn.borrow_mut() = Some(Rc::clone(&turn));
        self.note_prompt(&session, &request, &text);
        let server = Rc::clone(self);
        self.spawn(async move {
            if let Some(before) = before {
                before.wait().await;
            }
            let result = server.run_turn(&session, &turn, text).await;
            turn.end();
            let mut current = session.turn.borrow_mut();
            if current.as_ref().is_some_and(|now| Rc::ptr_eq(now, &turn)) {
                *current = None;
            }
            drop(current);
            server.answer(ticket, result.map(|response| json!(response)));
        });
        Reply::Later
    }

    /// Keeps what the user said, and gives the session its title.
    pub(crate) fn note_prompt(&self, session: &Session, request: &PromptRequest, text: &str) {
        let mut meta = session.meta.borrow_mut();
        meta.updated_ms = clock::now_ms();
        let is_first = meta.title.is_none();
        if is_first {
            meta.title = Some(text::headline(text, TITLE_CHARS));
        }
        self.store.write(&meta);
        let said: Vec<SessionUpdate> = request
            .prompt
            .iter()
            .filter(|block| {
                matches!(block.as_text(), Some(text) if !text.is_empty()) || is_link(block)
            })
            .map(|block| {
                SessionUpdate::UserMessageChunk(MessageChunk {
                    content: block.clone(),
                    ..chunk(String::new())
                })
            })
            .collect();
        self.store.append(&meta.id, &said);
        let title = meta.title.clone();
        let updated_at = clock::iso(meta.updated_ms);
        drop(meta);
        if is_first {
            self.notify(
                session,
                SessionUpdate::SessionInfo(SessionInfoUpdate {
                    title: title.map_or(Patch::Keep, Patch::Set),
                    updated_at: Patch::Set(updated_at),
                    ..SessionInfoUpdate::default()
                }),
            );
        }
    }

    pub(crate) async fn run_turn(
        self: &Rc<Self>,
        session: &Rc<Session>,
        turn: &Turn,
        prompt: String,
    ) -> Result<PromptResponse, Error> {
        let (mode, model) = {
            let meta = session.meta.borrow();
            (meta.mode, meta.model.clone())
        };
        let request = turn::Request {
            cwd: session.cwd.clone(),
            prompt,
            chat: session.chat(),
            mode,
            model,
            todos: session.todos.borrow().clone(),
        };
        let chat = request.chat.clone();
        let sink = TurnSink {
            server: self,
            session,
            history: RefCell::default(),
        };
        let mut unsupported = self.unsupported.borrow().clone();
        let ended = turn::run(
            &self.options,
            request,
            &mut unsupported,
            &sink,
            &turn.cancel,
        )
        .await;
        *self.unsupported.borrow_mut() = unsupported;
        let Ended {
            outcome,
            todos,
            chat: worked_in,
        } = ended;
        *session.todos.borrow_mut() = todos;
        self.store
            .append(&session.id(), &sink.history.into_inner().take());
        {
            let mut meta = session.meta.borrow_mut();
            meta.updated_ms = clock::now_ms();
            if let Some(other) = worked_in.filter(|worked_in| *worked_in != chat) {
                log::warn(&format!(
                    "the CLI was asked to continue chat {chat}, but reports {other}"
                ));
                // Only what lies on disk proves that the first one is lost.
                let there = |id: &str| self.chats.find(id, &meta.cwd) == Found::Here;
                if there(&other) && !there(&chat) {
                    meta.chat = Some(other);
                }
            }
            self.store.write(&meta);
        }
        match (outcome, turn.cancel.why()) {
            (None, Some(Why::Request)) => Err(Error::Cancelled),
            (None, _) => Ok(response(StopReason::Cancelled, Done::default())),
            (Some(Ok(done)), _) => Ok(response(StopReason::EndTurn, done)),
            (Some(Err(error)), _) => Err(error),
        }
    }
}

/// Where the updates of a turn go: to the client, and into what is kept.
struct TurnSink<'a> {
    server: &'a Rc<Server>,
    session: &'a Rc<Session>,
    history: RefCell<History>,
}

impl Sink for TurnSink<'_> {
    fn update(&self, update: SessionUpdate) {
        self.history.borrow_mut().note(&update);
        self.server.notify(self.session, update);
    }

    async fn room(&self) {
        self.server.out.room().await;
    }
}

fn response(stop_reason: StopReason, done: Done) -> PromptResponse {
    let id = done.request_id.map(|id| json!({ "requestId": id }));
    PromptResponse {
        stop_reason,
        usage: done.usage,
        meta: id.map(|id| Object::from_iter([("cursor".to_owned(), id)])),
        extra: Object::new(),
    }
}

fn is_link(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::ResourceLink(_))
}
