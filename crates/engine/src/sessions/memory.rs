//! What is to be stored: derived from changes of the state, like the screen's news, and handed to the writer
//! thread in bounded pieces. Also restores stored conversations.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::agents::agent::Link;
use crate::effect::Effect;
use crate::engine::Engine;
use crate::error::Error;
use crate::ids::Key;
use crate::sessions::entry::{Body, Entry, Level};
use crate::sessions::session::{Carry, Session};
use crate::sessions::stored;
use crate::sessions::transcript::{Touched, Transcript};
use crate::text::label;

/// The most bytes, and entries, handed out at once: copying them holds the lock.
const BATCH_BYTES: usize = 256 * 1024;
const BATCH_ENTRIES: usize = 200;
/// A conversation is titled with this many characters of its first prompt.
const TITLE_CHARS: usize = 80;
/// The most of an old conversation that is attached to the first prompt of a new session.
pub const CARRY_BYTES: usize = 32 * 1024;
/// The most of one of its entries.
const CARRY_ENTRY_BYTES: usize = 4 * 1024;

/// Pending news for the writer thread.
#[derive(Debug, Default)]
pub struct Memory {
    /// Whether conversations are stored at all.
    on: bool,
    /// Whether stored conversations can be requested.
    recalls: bool,
    /// Something changed since the last notification.
    fresh: bool,
    /// The thread was notified.
    asked: bool,
    changed: BTreeMap<Key, Changed>,
    /// What was handed out last of each session.
    told: HashMap<Key, About>,
    /// How many turns of each session were handed out to their end.
    ended: HashMap<Key, u64>,
    /// Sessions that were closed and of which not all was handed out.
    leaving: BTreeMap<Key, Session>,
}

/// What changed in a session.
#[derive(Debug, Default)]
struct Changed {
    entries: BTreeMap<usize, Since>,
}

/// What of an entry is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Since {
    /// Its text from here on.
    Byte(usize),
    /// All of it.
    Start,
}

/// What is known of a session beside what was said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// The agent's id of it.
    pub id: String,
    /// The agent's name in the options.
    pub agent: String,
    /// Where it works.
    pub cwd: String,
    /// What the agent calls it.
    pub title: Option<String>,
    /// What the user calls it.
    pub name: Option<String>,
    /// The first line of the first prompt.
    pub prompt: Option<String>,
    /// When it began, milliseconds since 1970.
    pub started_ms: u64,
    /// How many entries it has.
    pub entries: usize,
}

/// News of one session.
#[derive(Debug)]
pub struct Noted {
    /// Which one.
    pub key: Key,
    /// What is known of it, when that changed.
    pub about: Option<About>,
    /// Entries in their order.
    pub entries: Vec<(usize, Piece)>,
    /// A turn is over: sync to disk.
    pub sync: bool,
    /// It was closed: this is the last of it.
    pub closed: bool,
}

/// News of an entry.
#[derive(Debug)]
pub enum Piece {
    /// All of it.
    Whole(Box<Entry>),
    /// Text at its end.
    Text(String),
}

/// A chat of Cursor's terminal: only the headless mode can continue it, and only in its own directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terminal {
    /// It belongs to the session's directory.
    pub here: bool,
    /// Where it belongs, where that is known.
    pub cwd: Option<String>,
}

/// A restored conversation.
#[derive(Debug, Default)]
pub struct Recalled {
    /// What was said.
    pub transcript: Transcript,
    /// What the agent called it.
    pub title: Option<String>,
    /// What the user calls it.
    pub name: Option<String>,
    /// Its file is appended to; otherwise it is not ours, or another Neovim has it open.
    pub goes_on: bool,
    /// It is a chat of Cursor's terminal.
    pub terminal: Option<Terminal>,
    /// What the user has to know.
    pub notice: Option<String>,
}

impl Recalled {
    /// A conversation of these entries; None where a record is damaged.
    pub fn of(entries: Vec<Option<Entry>>) -> Self {
        let gap = |entry: Option<Entry>| entry.unwrap_or_else(|| stored::gap(0));
        Self {
            transcript: Transcript::of(entries.into_iter().map(gap).collect()),
            ..Self::default()
        }
    }
}

impl Memory {
    /// Notes what changed in a session.
    pub(crate) fn note(&mut self, key: Key, touched: &[Touched]) {
        if !self.on {
            return;
        }
        self.fresh = true;
        let changed = self.changed.entry(key).or_default();
        for touched in touched {
            match *touched {
                Touched::Grew { entry, from } => {
                    changed.entries.entry(entry).or_insert(Since::Byte(from));
                }
                Touched::Entry(entry) => {
                    changed.entries.insert(entry, Since::Start);
                }
            }
        }
    }

    /// Whether to notify the writer thread.
    pub(crate) fn asks(&mut self) -> bool {
        if self.asked || !std::mem::take(&mut self.fresh) {
            return false;
        }
        self.asked = true;
        true
    }

    /// Keeps a closed session until all of it is handed out.
    pub(crate) fn keep(&mut self, session: Session) {
        if self.on {
            self.fresh = true;
            self.changed.entry(session.key).or_default();
            self.leaving.insert(session.key, session);
        }
    }
}

impl Engine {
    /// Whether conversations are remembered from now on.
    pub fn remember_sessions(&mut self, on: bool) {
        let was = std::mem::replace(&mut self.memory.on, on);
        self.memory.recalls = true;
        if !on {
            self.memory.changed.clear();
            self.memory.leaving.clear();
        } else if !was {
            // Nothing of the open sessions has been written yet.
            let open: Vec<Key> = self.sessions.keys().copied().collect();
            for key in open {
                self.remember_again(key);
            }
        }
    }

    /// Hands out all of a session again: none of it is written, or its file is lost.
    pub fn remember_again(&mut self, key: Key) {
        if let Some(session) = self.sessions.get(&key) {
            let count = session.transcript.entries().len();
            let touched: Vec<Touched> = (0..count).map(Touched::Entry).collect();
            self.memory.told.remove(&key);
            // The turns must be synced there as well.
            self.memory.ended.remove(&key);
            self.memory.note(key, &touched);
        }
    }

    /// The oldest news, and whether there are more. Running tool calls in `busy` are left for later.
    pub fn take_memory(&mut self, busy: &HashSet<(Key, usize)>) -> (Vec<Noted>, bool) {
        self.note_changes();
        let mut memory = std::mem::take(&mut self.memory);
        memory.asked = false;
        let mut left = (BATCH_BYTES, BATCH_ENTRIES);
        let (mut noted, mut again) = (Vec::new(), BTreeMap::new());
        while let Some((key, mut changed)) = memory.changed.pop_first() {
            if left.0 == 0 || left.1 == 0 {
                memory.changed.insert(key, changed);
                break;
            }
            let closed = memory.leaving.contains_key(&key);
            let session = memory.leaving.get(&key).or_else(|| self.sessions.get(&key));
            let Some(session) = session.filter(|session| session.is_remembered()) else {
                // It is still empty.
                if closed || session.is_none() {
                    memory.leaving.remove(&key);
                } else if !changed.entries.is_empty() {
                    again.insert(key, changed);
                }
                continue;
            };
            let (mut entries, mut waiting) = (Vec::new(), BTreeMap::new());
            while left.0 > 0 && left.1 > 0 {
                let Some((at, since)) = changed.entries.pop_first() else {
                    break;
                };
                let Some(entry) = session.transcript.get(at) else {
                    continue;
                };
                let is_busy = busy.contains(&(key, at)) && !closed && session.turn.is_some();
                if is_busy && entry.tool().is_some_and(|tool| !tool.is_over()) {
                    waiting.insert(at, since);
                    continue;
                }
                // Of a text that grows only what is new is copied, however long it is.
                let (piece, bytes) = match since {
                    Since::Byte(from) => {
                        let text = entry.text.get(from..).unwrap_or_default().to_owned();
                        let bytes = text.len();
                        (Piece::Text(text), bytes)
                    }
                    Since::Start => (Piece::Whole(Box::new(entry.clone())), weight(entry)),
                };
                left = (left.0.saturating_sub(bytes), left.1 - 1);
                entries.push((at, piece));
            }
            let all = changed.entries.is_empty();
            let agent = self.agents.get(&session.agent);
            let about = session.about(agent.map(|agent| agent.spec().agent.as_str()));
            let is_news = memory.told.get(&key) != Some(&about);
            if is_news {
                memory.told.insert(key, about.clone());
            }
            let runs = session.turn.is_some();
            // A turn may begin and end between two looks.
            let ended = memory.ended.entry(key).or_default();
            let sync = all && !runs && *ended != session.turns;
            if sync {
                *ended = session.turns;
            }
            noted.push(Noted {
                key,
                about: is_news.then_some(about),
                entries,
                sync,
                closed: all && closed,
            });
            if all && closed {
                memory.leaving.remove(&key);
                memory.told.remove(&key);
                memory.ended.remove(&key);
            } else if !all {
                changed.entries.append(&mut waiting);
                memory.changed.insert(key, changed);
            } else if runs {
                // Its end must be noticed.
                changed.entries = waiting;
                again.insert(key, changed);
            }
        }
        let more = !memory.changed.is_empty();
        memory.changed.append(&mut again);
        self.memory = memory;
        (noted, more)
    }

    /// Asks for what is stored of a session that is to be loaded; whether that is under way.
    pub(crate) fn recall(&mut self, key: Key) {
        let Some(session) = self.sessions.get(&key).filter(|_| self.memory.recalls) else {
            return;
        };
        let (Some(id), Some(agent)) = (&session.wanted.load, self.agents.get(&session.agent))
        else {
            return;
        };
        let effect = Effect::Recall {
            key,
            session_id: id.clone(),
            agent: agent.spec().agent.clone(),
            cwd: session.cwd.clone(),
            env: agent.is_cursor().then(|| agent.spec().env.clone()),
        };
        self.effect(effect);
        if let Some(session) = self.sessions.get_mut(&key) {
            session.recalling = true;
        }
    }

    /// What is stored of a session was read, or there is nothing.
    pub fn on_recalled(&mut self, key: Key, recalled: Option<Recalled>) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        if !std::mem::take(&mut session.recalling) {
            return;
        }
        if let Some(recalled) = recalled {
            let above = session.transcript.entries().len();
            let mut transcript = recalled.transcript;
            let restored = transcript.entries().len();
            // What was said meanwhile, such as a notice, stands below.
            for entry in session.transcript.entries() {
                transcript.take_in(entry.clone());
            }
            session.transcript = transcript;
            session.restored = restored;
            // What the agent lists is newer.
            session.title = session.title.take().or(recalled.title);
            session.name = recalled.name;
            session.stored = recalled.goes_on;
            session.terminal = recalled.terminal;
            if let Some(changed) = self.memory.changed.get_mut(&key) {
                changed.entries.clear();
            }
            let from = if recalled.goes_on { restored } else { 0 };
            let touched: Vec<Touched> = (from..restored + above).map(Touched::Entry).collect();
            self.memory.note(key, &touched);
            self.retell(key);
            if let Some(notice) = recalled.notice {
                self.add_notice(key, Level::Warning, "memory", notice);
            }
        }
        let agent = self.sessions.get(&key).map(|session| session.agent);
        let link = agent
            .and_then(|id| self.agents.get(&id))
            .map(|agent| agent.link());
        if link == Some(&Link::Ready) {
            self.begin(key);
        }
    }

    /// Tells the user about a problem with storing.
    pub fn on_memory_trouble(&mut self, message: String) {
        if let Some(key) = self.sessions.keys().next_back().copied() {
            self.tell(key, "warn", message);
        }
    }

    /// Sets the user's name for a session; an empty one removes it. Returns whether there is such a session.
    pub fn rename(&mut self, id: &str, name: &str) -> bool {
        let mut all = self.sessions.values();
        let Some(key) = all.find(|session| session.is_called(id)).map(|s| s.key) else {
            return false;
        };
        if let Some(session) = self.sessions.get_mut(&key) {
            let name = label(name.trim(), 200);
            session.name = Some(name).filter(|name| !name.is_empty());
        }
        true
    }

    /// The ids of sessions that are open, with their keys and what they are called.
    pub fn open_ids(&self) -> Vec<(String, (Key, Option<String>))> {
        let open = self
            .sessions
            .values()
            .filter(|session| !session.wanted.lookup);
        open.flat_map(|session| {
            let loading = session.wanted.load.clone();
            let id = session.session_id.as_ref().map(|id| id.as_str().to_owned());
            // A replacement session counts as the old one until its first turn.
            let old = session.known_as.clone().filter(|_| session.turns == 0);
            let ids = id.or(loading).into_iter().chain(old);
            ids.map(|id| (id, (session.key, session.shown_title())))
        })
        .collect()
    }

    /// Attaches the old conversation to the next prompt: the agent does not know it.
    pub(crate) fn carry_over(&mut self, key: Key) {
        if let Some(session) = self.sessions.get_mut(&key) {
            session.carry = session.transcript.carried(CARRY_BYTES);
        }
    }

    /// Does not attach it after all.
    pub fn drop_carry(&mut self, key: Key) -> Result<(), Error> {
        self.session(key)?;
        let session = self.sessions.get_mut(&key);
        match session.and_then(|session| session.carry.take()) {
            Some(_) => Ok(()),
            None => Err(Error::NoCarry),
        }
    }

    /// Merges the agent's replay with what is stored.
    pub(crate) fn reconcile(&mut self, key: Key) {
        let now = self.now().wall_ms;
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let Some(replay) = &mut session.shadow else {
            return;
        };
        replay.end_turn(now);
        let restored = session.restored;
        let from = super::reconcile::take_news(&mut session.transcript, restored, replay);
        // The replay may go on; then it is compared again.
        session.restored = session.transcript.entries().len();
        session.late = false;
        // Long diffs were not compared while it was not known whether they are news.
        for at in from..session.transcript.entries().len() {
            self.compare_diffs(key, at);
        }
    }
}

impl Session {
    /// Whether it is written down: something was said in it here, or it was before.
    fn is_remembered(&self) -> bool {
        let named = self.session_id.is_some() && !self.wanted.lookup;
        named && (self.stored || self.turns > 0)
    }

    /// The id it is stored under: for a session that replaces another, the old one until it has its first message.
    fn stored_id(&self) -> String {
        let old = self.known_as.clone().filter(|_| self.turns == 0);
        let own = self.session_id.as_ref().map(|id| id.as_str().to_owned());
        old.or(own).unwrap_or_default()
    }

    fn about(&self, agent: Option<&str>) -> About {
        let entries = self.transcript.entries();
        About {
            id: self.stored_id(),
            agent: agent.unwrap_or_default().to_owned(),
            cwd: self.cwd.clone(),
            title: self.title.clone(),
            name: self.name.clone(),
            prompt: self.transcript.first_prompt(),
            started_ms: entries.first().map_or(0, |entry| entry.started_ms),
            entries: entries.len(),
        }
    }

    /// Who named it.
    pub fn title_from(&self) -> Option<&'static str> {
        let is_set = |name: &Option<String>| name.as_deref().is_some_and(|n| !n.trim().is_empty());
        match (is_set(&self.name), is_set(&self.title)) {
            (true, _) => Some("user"),
            (_, true) => Some("agent"),
            _ => self.transcript.first_prompt().map(|_| "prompt"),
        }
    }

    /// What it is called: by the user, by the agent, or else after the first prompt.
    pub fn shown_title(&self) -> Option<String> {
        let given = self.name.clone().or_else(|| self.title.clone());
        let given = given.filter(|title| !title.trim().is_empty());
        given.or_else(|| self.transcript.first_prompt())
    }
}

impl Transcript {
    /// The first line of the first prompt, or what is attached to it where it has no words.
    pub fn first_prompt(&self) -> Option<String> {
        let mut top = self.entries().iter().filter(|entry| entry.parent.is_none());
        top.find_map(|entry| {
            let Body::User { context, .. } = &entry.body else {
                return None;
            };
            let mut lines = entry.text.lines().chain(context.iter().map(String::as_str));
            let line = lines.find(|line| !line.trim().is_empty())?;
            Some(label(line.trim(), TITLE_CHARS))
        })
    }

    /// The end of the conversation as text for another session, at most `max_bytes`; None if it is empty.
    pub fn carried(&self, max_bytes: usize) -> Option<Carry> {
        let part = |entry: &Entry| {
            let who = match &entry.body {
                Body::User { .. } => "User",
                Body::Agent { .. } => "Assistant",
                Body::Tool(_) => "Tool",
                _ => return None,
            };
            let text = match &entry.body {
                Body::Tool(_) => entry.text.clone(),
                _ => crate::text::passage(&entry.text, CARRY_ENTRY_BYTES),
            };
            (!text.trim().is_empty()).then(|| format!("{who}: {}\n\n", text.trim()))
        };
        let parts: Vec<String> = self
            .entries()
            .iter()
            .filter(|entry| entry.parent.is_none())
            .filter_map(part)
            .collect();
        let total: usize = parts.iter().map(String::len).sum();
        let mut kept = Vec::new();
        let mut bytes = 0;
        for part in parts.iter().rev() {
            if bytes + part.len() > max_bytes {
                break;
            }
            bytes += part.len();
            kept.push(part.as_str());
        }
        kept.reverse();
        if total == 0 {
            return None;
        }
        let kilo = |bytes: usize| bytes.div_ceil(1000);
        let label = if bytes < total {
            format!(
                "the conversation so far (last {} kB of {} kB)",
                kilo(bytes),
                kilo(total)
            )
        } else {
            format!("the conversation so far ({} kB)", kilo(total))
        };
        Some(Carry {
            text: format!(
                "For context, this is the conversation from an earlier session:\n\n{}",
                kept.concat()
            ),
            label,
        })
    }
}

/// What copying an entry costs, roughly.
fn weight(entry: &Entry) -> usize {
    let tool = entry.tool().map_or(0, |tool| {
        let content = tool
            .content
            .iter()
            .map(crate::tools::tool_call::Content::bytes);
        content.sum::<usize>() + tool.shown_result.as_ref().map_or(0, |out| out.text().len())
    });
    200 + entry.text.len() + tool
}
