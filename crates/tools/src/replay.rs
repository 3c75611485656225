//! Plays a saved protocol log back, so that a user's report becomes a test.
//!
//! The log is JSON lines `{"t":seconds,"dir":"->"|"<-"|"!!","msg":…}`: `->` is client to agent, `<-` agent to client, `!!` stderr; a line that was
//! no message has `raw` or `text` instead of `msg`. The agent's lines are sent as they were recorded, with two differences: an answer carries
//! the id of the request the client really made, and nothing is sent before the client has done what it had done by then.
//!
//! What a client asks beyond the log is answered as Cursor's CLI would. A log that goes over several processes is played one process a time:
//! with `--record` the nth start plays the nth.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet, VecDeque},
    io::{self, Write},
    path::Path,
    rc::Rc,
    time::Duration,
};

use acp::{Message, RpcError};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use crate::{
    cursor::Cursor,
    error::Error,
    host::{self, Manners},
    login::{Login, state_dir},
    process,
    profile::Profile,
    record::{self, Record},
    sessions::Sessions,
    wire::{ClientAnswer, Wire},
};

/// A client that did the thing after the one we wait for is given this long to do the first one too.
const SKIP_AFTER: Duration = Duration::from_millis(500);

/// Plays until the client is gone. `speed`: how much faster than it was recorded; 0 takes no time.
pub async fn replay(log: &Path, record: Option<&Path>, speed: f64) -> Result<(), Error> {
    let text = std::fs::read_to_string(log).map_err(|source| Error::File {
        file: log.to_path_buf(),
        source,
    })?;
    let mut processes = parse(&log.display().to_string(), &text)?;
    let run = record.map_or(0, record::earlier_runs);
    let chosen = run.min(processes.len() - 1);
    let is_last = chosen == processes.len() - 1;
    let script = processes.swap_remove(chosen);

    let wire = Wire::new(Record::open(record)?)?;
    let pid = std::process::id();
    wire.record().note(
        "start",
        json!({ "pid": pid, "log": log, "process": chosen }),
    );
    let manners = Rc::new(Manners::default());
    host::watch_sigterm(&wire, &manners)?;
    let replayer = Rc::new(Replayer::new(wire, &script));
    let listener = replayer.clone();
    let listen = host::listen(&replayer.wire, &manners, move |value, message| {
        listener.receive(&value, message);
    });
    let play = async {
        replayer.play(script, speed).await;
        if !is_last && replayer.owes_an_answer() {
            // The next process in the log began while this one had something open: it must have died.
            process::exit(&replayer.wire, 1);
        }
        replayer.wire.record().note("end of the log", json!({}));
        replayer.end();
    };
    let (listened, ()) = tokio::join!(listen, play);
    Ok(listened?)
}

/// What one process did.
#[derive(Debug, Default)]
struct Script {
    moves: Vec<Move>,
    /// The session of the first line that names one.
    session: Option<String>,
}

#[derive(Debug)]
struct Move {
    /// Seconds since the start.
    at: f64,
    what: What,
}

#[derive(Debug, Clone, PartialEq)]
enum What {
    /// The client asked this, under this id.
    Asked {
        id: Value,
        method: String,
    },
    /// Wait until the client asks this; the request is taken later.
    Comes {
        method: String,
    },
    Cancelled,
    /// The client answered the agent's request of this id.
    Answered {
        id: Value,
    },
    /// A notification or a request of the agent.
    Send(Value),
    /// The agent's answer to the client's request that had this id.
    Answer {
        id: Value,
        message: Value,
    },
    Raw(String),
    Stderr(String),
}

/// The log, process by process. A new one begins where the client says `initialize` again.
fn parse(file: &str, text: &str) -> Result<Vec<Script>, Error> {
    let mut scripts = vec![Script::default()];
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let wrong = |message: String| Error::Log {
            file: file.to_owned(),
            line: index + 1,
            message,
        };
        let line: Value = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
        let what = parse_line(&line).map_err(|message| wrong(message.to_owned()))?;
        let is_new = matches!(&what, Some(What::Asked { method, .. }) if method == "initialize");
        if is_new
            && scripts
                .last()
                .is_some_and(|script| !script.moves.is_empty())
        {
            scripts.push(Script::default());
        }
        let Some(script) = scripts.last_mut() else {
            continue;
        };
        let session = ["/msg/params/sessionId", "/msg/result/sessionId"];
        let session = session.iter().find_map(|at| line.pointer(at)?.as_str());
        if script.session.is_none() {
            script.session = session.map(str::to_owned);
        }
        let at = line["t"].as_f64().unwrap_or(0.0);
        script.moves.extend(what.map(|what| Move { at, what }));
    }
    for script in &mut scripts {
        begin_in_the_middle(script);
    }
    Ok(scripts)
}

fn parse_line(line: &Value) -> Result<Option<What>, &'static str> {
    let raw = ["raw", "text", "msg"]
        .iter()
        .find_map(|key| line[key].as_str());
    let message = &line["msg"];
    Ok(match (line["dir"].as_str(), raw) {
        (Some("->"), Some(_)) => None,
        (Some("<-"), Some(text)) => Some(What::Raw(format!("{text}\n"))),
        (Some("!!"), Some(text)) => Some(What::Stderr(format!("{text}\n"))),
        (Some("->"), None) if message.is_object() => from_client(message),
        (Some("<-"), None) if message.is_object() => Some(from_agent(message)),
        // A batch, as it was.
        (Some("<-"), None) if message.is_array() => Some(What::Raw(format!("{message}\n"))),
        (Some("->" | "<-" | "!!"), None) => return Err("has neither `msg` nor `raw` nor `text`"),
        _ => return Err("has no `dir` of \"->\", \"<-\" or \"!!\""),
    })
}

fn from_client(message: &Value) -> Option<What> {
    let id = message.get("id").cloned();
    match (id, message["method"].as_str()) {
        (Some(id), Some(method)) => Some(What::Asked {
            id,
            method: method.to_owned(),
        }),
        (Some(id), None) => Some(What::Answered { id }),
        (None, Some("session/cancel")) => Some(What::Cancelled),
        // Whether and when the client says anything else makes no difference to the agent.
        (None, _) => None,
    }
}

fn from_agent(message: &Value) -> What {
    match message.get("id") {
        Some(id) if message["method"].is_null() => What::Answer {
            id: id.clone(),
            message: message.clone(),
        },
        _ => What::Send(message.clone()),
    }
}

/// A log keeps the last messages only, so it may begin anywhere. What the agent then sends first must wait for what it belongs to: a turn,
/// if a turn's end is the answer to a request the log has lost, else the first thing the client asks in it.
fn begin_in_the_middle(script: &mut Script) {
    let asked = |what: &What| match what {
        What::Asked { method, .. } => Some(method.clone()),
        _ => None,
    };
    let first = script.moves.iter().find_map(|step| asked(&step.what));
    if first.as_deref() == Some("initialize") {
        return;
    }
    let mut known = HashSet::new();
    let lost_turn = script.moves.iter().find_map(|step| match &step.what {
        What::Asked { id, .. } => {
            known.insert(id.to_string());
            None
        }
        What::Answer { id, message } => {
            let is_lost =
                !known.contains(&id.to_string()) && message["result"]["stopReason"].is_string();
            is_lost.then(|| id.clone())
        }
        _ => None,
    });
    let what = match (lost_turn, first) {
        (Some(id), _) => What::Asked {
            id,
            method: "session/prompt".to_owned(),
        },
        (None, Some(method)) => What::Comes { method },
        (None, None) => What::Comes {
            method: "session/prompt".to_owned(),
        },
    };
    let at = script.moves.first().map_or(0.0, |first| first.at);
    script.moves.insert(0, Move { at, what });
}

#[derive(Debug)]
struct Replayer {
    wire: Wire,
    profile: RefCell<Cursor>,
    login: Login,
    /// How often the log still has each method; what comes more often is not in it.
    expected: RefCell<HashMap<String, usize>>,
    /// Requests of the client that the log has and that were not reached yet.
    asked: RefCell<VecDeque<(Value, String, Value)>>,
    cancels: Cell<usize>,
    /// The client did something.
    more: watch::Sender<()>,
    /// The client's real id of each request in the log, until it is answered.
    ids: RefCell<HashMap<String, Value>>,
    ended: Cell<bool>,
}

impl Replayer {
    fn new(wire: Wire, script: &Script) -> Self {
        let mut sessions = Sessions::in_memory();
        sessions.prescribed_id.clone_from(&script.session);
        let mut expected: HashMap<String, usize> = HashMap::new();
        for step in &script.moves {
            if let What::Asked { method, .. } = &step.what {
                *expected.entry(method.clone()).or_default() += 1;
            }
        }
        Self {
            wire,
            profile: RefCell::new(Cursor::new(sessions, Vec::new(), None)),
            login: Login::new(&state_dir(), true),
            expected: RefCell::new(expected),
            asked: RefCell::default(),
            cancels: Cell::new(0),
            more: watch::channel(()).0,
            ids: RefCell::default(),
            ended: Cell::new(false),
        }
    }

    fn receive(&self, value: &Value, message: Message) {
        match message {
            Message::Request { method, params, .. } => {
                let id = value["id"].clone();
                if self.is_expected(&method) {
                    self.asked.borrow_mut().push_back((id, method, params));
                } else {
                    self.answer_beyond(&id, &method, &params);
                }
            }
            Message::Notification { method, .. } => {
                if method == "session/cancel" {
                    self.cancels.set(self.cancels.get() + 1);
                }
            }
            Message::Response { result, .. } => {
                self.wire.resolve(&value["id"], result);
            }
        }
        self.more.send_replace(());
    }

    fn is_expected(&self, method: &str) -> bool {
        let mut expected = self.expected.borrow_mut();
        match expected.get_mut(method) {
            Some(times) if *times > 0 && !self.ended.get() => {
                *times -= 1;
                true
            }
            _ => false,
        }
    }

    /// Something the log does not have.
    fn answer_beyond(&self, id: &Value, method: &str, params: &Value) {
        match method {
            "session/prompt" => {
                let error = RpcError::internal("the log that is played back has no more turns");
                self.wire.answer(id, &Err(error));
            }
            // The profile knows neither the recorded agent's methods nor its sessions.
            "authenticate" | "session/set_mode" | "session/set_model" | "session/close" => {
                self.wire.answer(id, &Ok(json!({})));
            }
            _ => {
                let reaction = self.profile.borrow_mut().react(method, params);
                host::perform(&self.wire, &self.login, id.clone(), reaction);
            }
        }
    }

    async fn play(&self, script: Script, speed: f64) {
        let mut waiting: HashMap<String, VecDeque<oneshot::Receiver<ClientAnswer>>> =
            HashMap::new();
        let mut moves: VecDeque<Move> = script.moves.into();
        let mut clock = moves.front().map_or(0.0, |first| first.at);
        while let Some(Move { at, what }) = moves.pop_front() {
            let pause = if speed > 0.0 {
                (at - clock).max(0.0) / speed
            } else {
                0.0
            };
            clock = at;
            let is_agents = !matches!(
                what,
                What::Asked { .. } | What::Comes { .. } | What::Cancelled | What::Answered { .. }
            );
            if is_agents && pause > 0.0 {
                tokio::time::sleep(Duration::from_secs_f64(pause)).await;
            }
            match what {
                What::Asked { id, method } => self.await_request(&id, &method, &moves).await,
                What::Comes { method } => {
                    self.until(|| self.has_asked(&method), &VecDeque::new())
                        .await;
                }
                What::Cancelled => {
                    if self.until(|| self.cancels.get() > 0, &moves).await {
                        self.cancels.set(self.cancels.get() - 1);
                    }
                }
                What::Answered { id } => {
                    let next = waiting
                        .get_mut(&id.to_string())
                        .and_then(VecDeque::pop_front);
                    if let Some(answer) = next {
                        let _ = answer.await;
                    }
                }
                What::Send(message) => {
                    match message.get("id").filter(|_| message["method"].is_string()) {
                        Some(id) => {
                            let method = message["method"].as_str().unwrap_or_default();
                            let params = message.get("params").cloned();
                            let answer = self.wire.request(id, method, params);
                            waiting.entry(id.to_string()).or_default().push_back(answer);
                        }
                        None => self.wire.send(&message),
                    }
                }
                What::Answer { id, mut message } => {
                    let real = self.ids.borrow_mut().remove(&id.to_string());
                    if let Some(real) = real {
                        message["id"] = real;
                        self.wire.send(&message);
                    } else {
                        self.wire.record().note("not asked", json!({ "id": id }));
                    }
                }
                What::Raw(text) => self.wire.raw(text.as_bytes()),
                What::Stderr(text) => {
                    let _ = io::stderr().write_all(text.as_bytes());
                }
            }
            // Let what came meanwhile be heard between two lines of a long log.
            tokio::task::yield_now().await;
        }
    }

    /// Waits for the client's request. A client may leave one out that the recorded one made: when it has gone on to something that comes
    /// later in the log, this one is skipped.
    async fn await_request(&self, id: &Value, method: &str, later: &VecDeque<Move>) {
        if !self.until(|| self.has_asked(method), later).await {
            self.wire
                .record()
                .note("skipped", json!({ "method": method }));
            let mut expected = self.expected.borrow_mut();
            if let Some(times) = expected.get_mut(method) {
                *times = times.saturating_sub(1);
            }
            return;
        }
        let mut asked = self.asked.borrow_mut();
        let index = asked.iter().position(|(_, asked, _)| asked == method);
        if let Some((real, ..)) = index.and_then(|index| asked.remove(index)) {
            self.ids.borrow_mut().insert(id.to_string(), real);
        }
    }

    fn has_asked(&self, method: &str) -> bool {
        self.asked
            .borrow()
            .iter()
            .any(|(_, asked, _)| asked == method)
    }

    /// Waits until a condition holds. False if the client asked only for something later instead.
    async fn until(&self, holds: impl Fn() -> bool, later: &VecDeque<Move>) -> bool {
        let mut more = self.more.subscribe();
        loop {
            if holds() {
                return true;
            }
            let went_on = later.iter().any(|step| match &step.what {
                What::Asked { method, .. } => self.has_asked(method),
                _ => false,
            });
            if !went_on {
                let _ = more.changed().await;
            } else if tokio::time::timeout(SKIP_AFTER, more.changed())
                .await
                .is_err()
            {
                return holds();
            }
        }
    }

    /// Whether a request of the client was taken and not answered.
    fn owes_an_answer(&self) -> bool {
        !self.ids.borrow().is_empty()
    }

    /// From here on nothing is in the log.
    fn end(&self) {
        self.ended.set(true);
        let rest = std::mem::take(&mut *self.asked.borrow_mut());
        for (id, method, params) in rest {
            self.answer_beyond(&id, &method, &params);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn parse_lines(lines: &[Value]) -> Vec<Vec<What>> {
        let text: Vec<String> = lines.iter().map(Value::to_string).collect();
        let scripts = parse("l.jsonl", &text.join("\n")).unwrap();
        let whats = |script: Script| script.moves.into_iter().map(|step| step.what).collect();
        scripts.into_iter().map(whats).collect()
    }

    fn asked(id: i64, method: &str) -> What {
        What::Asked {
            id: json!(id),
            method: method.to_owned(),
        }
    }

    #[test]
    fn every_shape_of_a_line_is_read() {
        let answer = json!({ "id": 1, "result": {} });
        let scripts = parse_lines(&[
            json!({ "t": 0, "dir": "->", "msg": { "id": 1, "method": "initialize" } }),
            json!({ "t": 0, "dir": "<-", "msg": answer }),
            json!({ "t": 0, "dir": "!!", "msg": "a warning" }),
            json!({ "t": 0, "dir": "!!", "text": "another" }),
            json!({ "t": 0, "dir": "<-", "raw": "junk" }),
            json!({ "t": 0, "dir": "->", "raw": "(a message of 9 bytes)" }),
            json!({ "t": 0, "dir": "->", "msg": { "method": "session/cancel" } }),
            json!({ "t": 0, "dir": "->", "msg": { "method": "$/cancel_request" } }),
            json!({ "t": 0, "dir": "<-", "msg": [1] }),
        ]);
        assert_eq!(
            scripts,
            [vec![
                asked(1, "initialize"),
                What::Answer {
                    id: json!(1),
                    message: answer
                },
                What::Stderr("a warning\n".to_owned()),
                What::Stderr("another\n".to_owned()),
                What::Raw("junk\n".to_owned()),
                What::Cancelled,
                What::Raw("[1]\n".to_owned()),
            ]]
        );
    }

    #[test]
    fn a_log_of_two_processes_is_two_scripts() {
        let initialize = json!({ "t": 0, "dir": "->", "msg": { "id": 1, "method": "initialize" } });
        let scripts = parse_lines(&[initialize.clone(), initialize]);
        assert_eq!(
            scripts,
            [vec![asked(1, "initialize")], vec![asked(1, "initialize")]]
        );
    }

    #[test]
    fn a_log_that_lost_its_beginning_waits_for_the_turn_it_ends() {
        let update = json!({ "method": "session/update" });
        let end = json!({ "id": 9, "result": { "stopReason": "end_turn" } });
        let scripts = parse_lines(&[
            json!({ "t": 5, "dir": "<-", "msg": update }),
            json!({ "t": 6, "dir": "<-", "msg": end }),
        ]);
        assert_eq!(
            scripts,
            [vec![
                asked(9, "session/prompt"),
                What::Send(update),
                What::Answer {
                    id: json!(9),
                    message: end
                },
            ]]
        );
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (line, message) in [
            ("{", "l.jsonl:2: EOF"),
            ("{}", "l.jsonl:2: has no `dir`"),
            ("{\"dir\":\"<-\"}", "l.jsonl:2: has neither `msg`"),
        ] {
            let error = parse("l.jsonl", &format!("\n{line}"))
                .unwrap_err()
                .to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
