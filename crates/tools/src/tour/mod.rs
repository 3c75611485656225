//! The guided tour: an agent for `make demo` that needs no account and no network.
//!
//! `texts` is what it says, `stations` what it does in each answer, `turn` how an answer is given, `project` the files it edits. On the wire it
//! is today's Cursor (`cursor_2026_10`), except that it ends with its client; files are written by itself, `fs/*` and `terminal/*` are never called.

mod project;
mod stations;
mod texts;
mod turn;

use std::{
    cell::{Cell, RefCell},
    path::PathBuf,
    rc::Rc,
    time::Duration,
};

use acp::{Message, RpcError};
use serde_json::{Value, json};
use tokio::{sync::watch, task::spawn_local};

use self::{
    stations::{Station, WAY},
    turn::{Cancelled, Turn},
};
use crate::{
    cursor_2026_10::Cursor202610,
    error::Error,
    host::{self, Manners},
    login::{Login, state_dir},
    process,
    profile::{Profile, session_not_found},
    prompt::{prompt_text, title_of},
    record::Record,
    sessions::{Session, Sessions},
    wire::Wire,
};

/// Shortens the pauses: `fast` for none, or a number that divides them.
const SPEED_VARIABLE: &str = "CURSOR_AGENT_DEMO_SPEED";

pub async fn guide() -> Result<(), Error> {
    let wire = Wire::new(Record::open(None)?)?;
    let login = Login::from_env();
    let sessions = Sessions::kept_in(state_dir().join("sessions"));
    let tour = Rc::new(Tour {
        wire,
        profile: RefCell::new(Cursor202610::new(
            sessions,
            stations::slash_commands(),
            login.clone(),
        )),
        login,
        pace: Pace::from_env(),
        turns: RefCell::default(),
        calls: Cell::new(0),
        failed: Cell::new(false),
    });
    let manners = Rc::new(Manners::default());
    host::watch_sigterm(&tour.wire, &manners)?;
    let listener = tour.clone();
    host::listen(&tour.wire, &manners, move |value, message| {
        listener.receive(&value, message)
    })
    .await?;
    Ok(())
}

#[derive(Debug)]
struct Tour {
    wire: Wire,
    profile: RefCell<Cursor202610>,
    login: Login,
    pace: Pace,
    /// The running turn of each session.
    turns: RefCell<Vec<(String, watch::Sender<bool>)>>,
    calls: Cell<usize>,
    /// The answer that fails has failed, so that it works the next time.
    failed: Cell<bool>,
}

impl Tour {
    fn receive(self: &Rc<Self>, value: &Value, message: Message) {
        match message {
            Message::Request { method, params, .. } if method == "session/prompt" => {
                if let Err(error) = self.prompt(&value["id"], &params) {
                    self.wire.answer(&value["id"], &Err(error));
                }
            }
            Message::Request { method, params, .. } => {
                let reaction = self.profile.borrow_mut().react(&method, &params);
                host::perform(&self.wire, &self.login, value["id"].clone(), reaction);
            }
            Message::Notification { method, params } if method == "session/cancel" => {
                for (session, cancel) in self.turns.borrow().iter() {
                    if params["sessionId"] == session.as_str() {
                        cancel.send_replace(true);
                    }
                }
            }
            Message::Notification { .. } => {}
            Message::Response { result, .. } => {
                self.wire.resolve(&value["id"], result);
            }
        }
    }

    fn prompt(self: &Rc<Self>, id: &Value, params: &Value) -> Result<(), RpcError> {
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        if self
            .turns
            .borrow()
            .iter()
            .any(|(running, _)| *running == session)
        {
            return Err(RpcError::new(
                RpcError::INVALID_REQUEST,
                "A turn is already running in this session",
            ));
        }
        let text = prompt_text(params);
        let (station, cwd) = self
            .with_session(&session, |session| {
                session.title.get_or_insert_with(|| title_of(&text));
                (
                    next_station(session, first_text(params)),
                    PathBuf::from(&session.cwd),
                )
            })
            .ok_or_else(|| session_not_found(&session))?;
        self.remember(
            &session,
            &json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": text } }),
        );

        // Now already: the client may kill us in the middle of the turn.
        self.keep(&session);

        let (cancel, cancelled) = watch::channel(false);
        self.turns.borrow_mut().push((session.clone(), cancel));
        let turn = Turn {
            tour: self.clone(),
            session,
            cwd,
            cancelled,
        };
        let (id, along) = (id.clone(), sent_along(params));
        spawn_local(async move {
            let played = play(&turn, station, &along).await;
            let tour = &turn.tour;
            tour.turns
                .borrow_mut()
                .retain(|(session, _)| *session != turn.session);
            tour.keep(&turn.session);
            let reason = match played {
                Ok(()) => "end_turn",
                Err(Cancelled) => "cancelled",
            };
            tour.wire.answer(&id, &Ok(json!({ "stopReason": reason })));
        });
        Ok(())
    }

    fn with_session<T>(&self, id: &str, with: impl FnOnce(&mut Session) -> T) -> Option<T> {
        self.profile.borrow_mut().sessions().get_mut(id).map(with)
    }

    fn remember(&self, session: &str, update: &Value) {
        self.profile
            .borrow_mut()
            .sessions()
            .remember(session, update);
    }

    fn keep(&self, session: &str) {
        if let Err(error) = self.profile.borrow_mut().sessions().keep(session) {
            process::complain(&format!("the session cannot be saved: {error}"));
        }
    }

    /// Only in agent mode.
    fn may_write(&self, session: &str) -> bool {
        self.with_session(session, |session| session.mode == "agent") == Some(true)
    }

    fn mode_and_model(&self, session: &str) -> (String, String) {
        let both = |session: &mut Session| (session.mode.clone(), session.model.clone());
        self.with_session(session, both).unwrap_or_default()
    }

    fn is_allowed(&self, session: &str, program: &str) -> bool {
        let allowed =
            |session: &mut Session| session.allowed.iter().any(|allowed| allowed == program);
        self.with_session(session, allowed) == Some(true)
    }

    fn allow(&self, session: &str, program: &str) {
        self.with_session(session, |session| session.allowed.push(program.to_owned()));
    }

    /// Different in every process, since a session goes on in another one.
    fn next_call_id(&self) -> String {
        let number = self.calls.replace(self.calls.get() + 1);
        format!("tool_{}_{number}", std::process::id())
    }
}

async fn play(turn: &Turn, station: Station, along: &str) -> Result<(), Cancelled> {
    if !along.is_empty() {
        turn.say_literally(&format!("You attached {along}.\n\n"))
            .await?;
    }
    station.play(turn).await
}

/// The station a prompt leads to: the one it names, or the next on the way. The session remembers what comes after it.
fn next_station(session: &mut Session, prompt: &str) -> Station {
    let station = Station::named_in(prompt)
        .or_else(|| WAY.get(session.station % WAY.len()).copied())
        .unwrap_or(Station::Welcome);
    if let Some(index) = WAY.iter().position(|on_way| *on_way == station) {
        session.station = index + 1;
    }
    station
}

/// What the user typed; context may follow it in further blocks.
fn first_text(params: &Value) -> &str {
    let blocks = params["prompt"].as_array().into_iter().flatten();
    blocks
        .filter_map(|block| block["text"].as_str())
        .next()
        .unwrap_or_default()
}

/// The attachments of the prompt, in words.
fn sent_along(params: &Value) -> String {
    let blocks = params["prompt"].as_array().into_iter().flatten();
    let named: Vec<String> = blocks
        .filter_map(|block| match block["type"].as_str()? {
            "resource_link" => Some(format!(
                "`{}`",
                block["name"].as_str().or(block["uri"].as_str())?
            )),
            "resource" => Some(format!("`{}`", block["resource"]["uri"].as_str()?)),
            "image" => Some("an image".to_owned()),
            _ => None,
        })
        .collect();
    named.join(", ")
}

/// How fast the tour goes.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// Divides the pauses; None: no pauses.
    speed: Option<f64>,
}

impl Pace {
    fn from_env() -> Self {
        Self::parse(&std::env::var(SPEED_VARIABLE).unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let speed = match text {
            "fast" => None,
            number => number
                .parse()
                .ok()
                .filter(|speed| *speed > 0.0)
                .or(Some(1.0)),
        };
        Self { speed }
    }

    fn of(self, ms: u64) -> Duration {
        let pause = Duration::from_millis(ms);
        self.speed
            .map_or(Duration::ZERO, |speed| pause.div_f64(speed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> Session {
        Sessions::in_memory()
            .create("/p", "agent", "default")
            .clone()
    }

    #[test]
    fn a_word_leads_to_its_station_and_anything_else_goes_on() {
        let mut session = session();
        let way: Vec<Station> = [
            "Hello there",
            "next",
            "what?",
            "/ask",
            "next",
            "Help!",
            "next",
        ]
        .into_iter()
        .map(|prompt| next_station(&mut session, prompt))
        .collect();
        assert_eq!(
            way,
            [
                Station::Welcome,
                Station::Edit,
                Station::Run,
                Station::Ask,
                Station::Plan,
                Station::Help,
                Station::Todos,
            ]
        );
    }

    #[test]
    fn the_way_begins_again() {
        let mut session = session();
        let last = (0..=WAY.len())
            .map(|_| next_station(&mut session, "next"))
            .last();
        assert_eq!(last, Some(Station::Welcome));
    }

    #[test]
    fn pauses_follow_the_speed() {
        assert_eq!(Pace::parse("").of(100), Duration::from_millis(100));
        assert_eq!(Pace::parse("fast").of(100), Duration::ZERO);
        assert_eq!(Pace::parse("4").of(100), Duration::from_millis(25));
        assert_eq!(Pace::parse("-1").of(100), Duration::from_millis(100));
    }

    #[test]
    fn what_came_along_is_named() {
        let params = json!({ "prompt": [
            { "type": "text", "text": "edit" },
            { "type": "resource_link", "name": "src/greet.lua", "uri": "file:///p/src/greet.lua" },
            { "type": "image", "data": "", "mimeType": "image/png" },
        ] });
        assert_eq!(sent_along(&params), "`src/greet.lua`, an image");
        assert_eq!(first_text(&params), "edit");
    }
}
