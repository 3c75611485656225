//! Conversations on disk: a thread writes down what the engine says is new, and what was written is brought back.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use engine::ids::Key;
use engine::sessions::memory::{About, Noted, Piece, Recalled};
use engine::sessions::stored;
use parking_lot::RwLock;
use serde::Deserialize;
use store::transcript::journal::Journal;
use store::transcript::read::{self, Contents};
use store::transcript::shelf::{Limits, Shelf};
use store::transcript::{Error, Meta, record};

use crate::known_secrets;

/// What is new is written at most so much later. SIGKILL costs twice that at worst.
const FLUSH_GAP: Duration = Duration::from_millis(40);
/// Where conversations go, and how much is kept.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The directory; none: nothing is written.
    pub dir: Option<PathBuf>,
    /// How long one is kept after anything was last said in it.
    pub max_age_days: u64,
    /// How much all may take.
    pub max_mb: u64,
}

impl Settings {
    fn limits(&self) -> Limits {
        Limits {
            max_age: Duration::from_secs(self.max_age_days.saturating_mul(24 * 60 * 60)),
            max_bytes: self.max_mb.saturating_mul(1024 * 1024),
        }
    }

    fn shelf(&self) -> Option<Shelf> {
        Some(Shelf::new(self.dir.clone()?))
    }
}

/// The thread that writes, and where.
#[derive(Debug, Clone)]
pub struct Memory {
    jobs: Sender<Job>,
    settings: Arc<RwLock<Option<Settings>>>,
}

#[derive(Debug)]
enum Job {
    /// There is something to be written.
    Look,
    /// The file of a session that was brought back.
    Adopt(Key, Box<Journal>, Meta),
    /// A session that was brought back is gone by now.
    Drop(Key),
    /// Everything is to be written, and the answer is that it is.
    Finish(Sender<()>),
}

/// What the thread asks and tells.
pub trait Source: Send + 'static {
    /// What is new, and whether there is more.
    fn take(&self) -> (Vec<Noted>, bool);
    /// The user has to know this.
    fn tell(&self, message: String);
}

impl Memory {
    /// Starts the thread. It writes nothing before `set_up`.
    pub fn start(source: impl Source) -> std::io::Result<Self> {
        let (jobs, work) = unbounded();
        let settings: Arc<RwLock<Option<Settings>>> = Arc::default();
        let writer = Writer {
            source,
            settings: settings.clone(),
            open: HashMap::new(),
            lost: HashMap::new(),
            told: Vec::new(),
        };
        std::thread::Builder::new()
            .name("cursor-agent-memory".to_owned())
            .spawn(move || writer.run(&work))?;
        Ok(Self { jobs, settings })
    }

    /// Says where conversations go, and removes what is too old or too much.
    pub fn set_up(&self, settings: Settings) {
        let shelf = settings.shelf();
        let limits = settings.limits();
        *self.settings.write() = Some(settings);
        if let Some(shelf) = shelf {
            let _ = std::thread::Builder::new().spawn(move || prune(&shelf, limits));
        }
    }

    /// Where conversations are; None where none are kept.
    pub fn shelf(&self) -> Option<Shelf> {
        self.settings.read().as_ref()?.shelf()
    }

    /// There is something to be written.
    pub fn look(&self) {
        let _ = self.jobs.send(Job::Look);
    }

    /// Lets the file of a session go that was closed while it was brought back.
    pub fn release(&self, key: Key) {
        let _ = self.jobs.send(Job::Drop(key));
    }

    /// Writes all there is, for at most this long.
    pub fn finish(&self, wait: Duration) {
        let (done, is_done) = unbounded();
        if self.jobs.send(Job::Finish(done)).is_ok() {
            let _ = is_done.recv_timeout(wait);
        }
    }

    /// Brings a conversation back. For a thread that may wait.
    pub fn recall(&self, key: Key, asked: &Asked) -> Option<Recalled> {
        let ours = self.shelf().and_then(|shelf| {
            let found = shelf.find(Some(&asked.agent), &asked.session_id)?;
            Some(self.open_stored(key, &found.path))
        });
        ours.or_else(|| crate::cli_chats::recall(asked))
    }

    fn open_stored(&self, key: Key, path: &std::path::Path) -> Recalled {
        match Journal::open(path) {
            Ok((journal, contents)) => {
                let meta = contents.meta.clone();
                let recalled = recalled(contents, true, None);
                let _ = self.jobs.send(Job::Adopt(key, Box::new(journal), meta));
                recalled
            }
            Err(Error::Busy(_)) => {
                let why = "this conversation is open in another Neovim too: what is said here is stored in a file of its own";
                read_only(path, why.to_owned())
            }
            Err(error @ Error::Io { .. }) => {
                let why = format!("this conversation cannot be stored any further: {error}");
                read_only(path, why)
            }
            Err(error) => broken(&error),
        }
    }
}

/// Whose conversation is to be brought back.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The agent's id of it.
    pub session_id: String,
    /// The agent's name in the options.
    pub agent: String,
    /// Where it works.
    pub cwd: String,
    /// Of Cursor's CLI: the variables it is started with, on top of those it inherits.
    pub env: Option<BTreeMap<String, String>>,
}

impl Asked {
    /// A variable as the agent sees it.
    pub fn var(&self, name: &str) -> Option<OsString> {
        let own = self.env.as_ref().and_then(|env| env.get(name));
        own.map(OsString::from).or_else(|| std::env::var_os(name))
    }
}

fn read_only(path: &std::path::Path, why: String) -> Recalled {
    match read::read(path) {
        Ok(contents) => recalled(contents, false, Some(why)),
        Err(error) => broken(&error),
    }
}

fn broken(error: &Error) -> Recalled {
    Recalled {
        notice: Some(format!("the stored conversation cannot be shown: {error}")),
        ..Recalled::default()
    }
}

fn recalled(contents: Contents, goes_on: bool, notice: Option<String>) -> Recalled {
    let Contents {
        meta,
        entries,
        torn,
        damaged,
        ..
    } = contents;
    let entries = entries.into_iter().map(|kept| {
        let kept = kept?;
        stored::decode(&kept.json, &kept.more)
    });
    let mut notices: Vec<String> = notice.into_iter().collect();
    if torn {
        notices.push(
            "Neovim ended while this conversation was written: its last moment is missing"
                .to_owned(),
        );
    }
    if damaged > 0 {
        notices.push(format!(
            "the stored conversation is damaged in {damaged} place{}; the rest is shown",
            if damaged == 1 { "" } else { "s" }
        ));
    }
    Recalled {
        title: meta.title,
        name: meta.name,
        goes_on,
        notice: (!notices.is_empty()).then(|| notices.join("\n")),
        ..Recalled::of(entries.collect())
    }
}

struct Writer<S> {
    source: S,
    settings: Arc<RwLock<Option<Settings>>>,
    open: HashMap<Key, Open>,
    /// Sessions that cannot be written any more.
    lost: HashMap<Key, ()>,
    /// What the user was told already.
    told: Vec<String>,
}

/// The file of a session.
struct Open {
    journal: Journal,
    meta: Meta,
    /// What of an entry's text is held back: it may be the beginning of a secret.
    held: HashMap<usize, String>,
}

impl<S: Source> Writer<S> {
    fn run(mut self, jobs: &Receiver<Job>) {
        let mut last = Instant::now();
        let mut waits = None::<Instant>;
        loop {
            let job = match waits {
                None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(until) => jobs.recv_deadline(until),
            };
            match job {
                Ok(Job::Look) => {
                    waits.get_or_insert(last + FLUSH_GAP);
                }
                Ok(Job::Adopt(key, journal, meta)) => {
                    let open = Open::new(*journal, meta);
                    self.open.insert(key, open);
                }
                Ok(Job::Drop(key)) => {
                    self.open.remove(&key);
                }
                Ok(Job::Finish(done)) => {
                    self.flush();
                    self.sync_all();
                    let _ = done.send(());
                }
                Err(RecvTimeoutError::Timeout) => {
                    last = Instant::now();
                    waits = None;
                    self.flush();
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn flush(&mut self) {
        loop {
            let (noted, more) = self.source.take();
            for noted in noted {
                self.write(noted);
            }
            if !more {
                break;
            }
        }
    }

    fn write(&mut self, noted: Noted) {
        let (key, closed) = (noted.key, noted.closed);
        if !self.lost.contains_key(&key)
            && let Err(error) = self.try_write(noted)
        {
            self.open.remove(&key);
            self.lost.insert(key, ());
            self.tell(&error);
        }
        if closed {
            self.open.remove(&key);
            self.lost.remove(&key);
        }
    }

    fn try_write(&mut self, noted: Noted) -> Result<(), Error> {
        let open = match self.open.entry(noted.key) {
            std::collections::hash_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::hash_map::Entry::Vacant(vacant) => {
                let settings = self.settings.read().clone();
                let Some(about) = noted.about.as_ref() else {
                    // Its first news has it, unless it was turned on in between.
                    return Ok(());
                };
                let Some((shelf, settings)) = settings.and_then(|s| Some((s.shelf()?, s))) else {
                    return Ok(());
                };
                let path = shelf.new_path(&about.cwd, now_ms());
                let mut journal = Journal::create(&path)?;
                let meta = meta_of(about, now_ms());
                journal.append(&record::meta(&meta))?;
                let limits = settings.limits();
                let _ = std::thread::Builder::new().spawn(move || prune(&shelf, limits));
                vacant.insert(Open::new(journal, meta))
            }
        };
        open.write(noted)
    }

    /// What was written has to last.
    fn sync_all(&mut self) {
        for open in self.open.values_mut() {
            let _ = open.journal.sync();
        }
    }

    /// Says once that something cannot be written.
    fn tell(&mut self, error: &Error) {
        let why = match error {
            Error::Io { source, .. } => source.to_string(),
            other => other.to_string(),
        };
        crate::log::write("warn", &format!("a conversation cannot be stored: {error}"));
        if !self.told.contains(&why) {
            self.told.push(why);
            self.source.tell(format!(
                "conversations cannot be stored: {error}\n  the chat goes on; what is said from now on is not in the memory"
            ));
        }
    }
}

impl Open {
    fn new(journal: Journal, meta: Meta) -> Self {
        Self {
            journal,
            meta,
            held: HashMap::new(),
        }
    }

    fn write(&mut self, noted: Noted) -> Result<(), Error> {
        let secrets = known_secrets::known();
        let mut records = Vec::new();
        for (number, piece) in noted.entries {
            match piece {
                Piece::Whole(mut entry) => {
                    self.held.remove(&number);
                    if entry.streams() && !entry.done {
                        let begun = secrets.begun_at_end(&entry.text);
                        let rest = entry.text.split_off(entry.text.len() - begun);
                        if !rest.is_empty() {
                            self.held.insert(number, rest);
                        }
                    }
                    let json = String::from_utf8(stored::encode(*entry)).unwrap_or_default();
                    records.extend(record::entry(number, secrets.mask_known(&json).as_bytes()));
                }
                Piece::Text(text) => {
                    let mut text = self.held.remove(&number).unwrap_or_default() + &text;
                    let begun = secrets.begun_at_end(&text);
                    let rest = text.split_off(text.len() - begun);
                    if !rest.is_empty() {
                        self.held.insert(number, rest);
                    }
                    if !text.is_empty() {
                        records.extend(record::text(number, &secrets.mask_known(&text)));
                    }
                }
            }
        }
        let now = now_ms();
        if let Some(about) = &noted.about {
            let meta = meta_of(about, now);
            let same = Meta {
                updated_ms: self.meta.updated_ms,
                ..meta.clone()
            };
            // How many entries there are is no news while they come.
            let counted = Meta {
                entries: self.meta.entries,
                ..same
            };
            let is_news = counted != self.meta;
            self.meta = meta;
            if is_news && !noted.sync {
                records.extend(record::meta(&self.meta));
            }
        }
        if noted.sync || noted.closed {
            self.meta.updated_ms = if noted.sync {
                now
            } else {
                self.meta.updated_ms
            };
            records.extend(record::meta(&self.meta));
        }
        if !records.is_empty() {
            self.journal.append(&records)?;
        }
        if noted.sync || noted.closed {
            self.journal.sync()?;
        }
        Ok(())
    }
}

fn meta_of(about: &About, now_ms: u64) -> Meta {
    let secrets = known_secrets::known();
    let masked = |text: &Option<String>| {
        let text = text.as_deref()?;
        Some(secrets.mask_known(text).into_owned())
    };
    Meta {
        id: about.id.clone(),
        agent: about.agent.clone(),
        cwd: about.cwd.clone(),
        title: masked(&about.title),
        name: masked(&about.name),
        prompt: masked(&about.prompt),
        started_ms: about.started_ms,
        updated_ms: now_ms,
        entries: about.entries,
    }
}

fn prune(shelf: &Shelf, limits: Limits) {
    let gone = shelf.prune(limits, SystemTime::now());
    if gone > 0 {
        crate::log::write(
            "info",
            &format!("{gone} stored conversations were too old or too much and are gone"),
        );
    }
}

fn now_ms() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use engine::secrets::Secrets;
    use engine::sessions::entry::{Body, Entry};
    use parking_lot::Mutex;

    use super::*;

    /// News to be written, and what the user was told.
    #[derive(Clone, Default)]
    struct Desk {
        news: Arc<Mutex<Vec<Noted>>>,
        told: Arc<Mutex<Vec<String>>>,
    }

    impl Source for Desk {
        fn take(&self) -> (Vec<Noted>, bool) {
            (std::mem::take(&mut *self.news.lock()), false)
        }

        fn tell(&self, message: String) {
            self.told.lock().push(message);
        }
    }

    fn noted(key: u64, prompt: &str, entries: Vec<(usize, Piece)>) -> Noted {
        Noted {
            key: Key(key),
            about: Some(About {
                id: format!("session-{key}"),
                agent: "cursor".to_owned(),
                cwd: "/w".to_owned(),
                title: Some(format!("about {prompt}")),
                name: Some(format!("named {prompt}")),
                prompt: Some(prompt.to_owned()),
                ..About::default()
            }),
            entries,
            sync: true,
            closed: false,
        }
    }

    fn said(text: &str) -> Piece {
        let body = Body::Agent { message_id: None };
        Piece::Whole(Box::new(Entry::new(text.to_owned(), body, 1)))
    }

    fn written(dir: PathBuf, news: Vec<Noted>) -> (Shelf, Vec<String>) {
        let desk = Desk::default();
        *desk.news.lock() = news;
        let memory = Memory::start(desk.clone()).unwrap();
        memory.set_up(Settings {
            dir: Some(dir),
            max_age_days: 90,
            max_mb: 500,
        });
        memory.finish(Duration::from_secs(10));
        let told = desk.told.lock().clone();
        (memory.shelf().unwrap(), told)
    }

    #[test]
    fn no_known_secret_is_written_neither_in_titles_nor_in_pieces() {
        let secret = "pa55-of-the-\"memory\"-test";
        let mut secrets = Secrets::default();
        secrets.add_values(&[secret.to_owned()]);
        known_secrets::hide(&secrets);
        let dir = tempfile::tempdir().unwrap();
        let (begin, end) = secret.split_at(10);
        let entries = vec![
            (0, said(&format!("use {secret} for it"))),
            (1, said(&format!("it is {begin}"))),
            (1, Piece::Text(format!("{end}, as you said"))),
        ];
        let news = vec![noted(1, &format!("log in with {secret}"), entries)];
        let (shelf, told) = written(dir.path().join("chats"), news);
        assert!(told.is_empty(), "{told:?}");
        let (found, _) = shelf.list(None);
        let title = found[0].meta.title.as_deref();
        assert_eq!(title, Some("about log in with •••"));
        let file = std::fs::read_to_string(&found[0].path).unwrap();
        for part in ["pa55", "of-the", "memory\\\"-test"] {
            assert!(!file.contains(part), "{file}");
        }
        assert!(file.contains("as you said"));
    }

    #[test]
    fn a_place_that_cannot_be_written_is_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("a file");
        std::fs::write(&place, "x").unwrap();
        let news = (1..6).map(|key| noted(key, "hello", vec![(0, said("yes"))]));
        let (_, told) = written(place.clone(), news.collect());
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains(place.to_str().unwrap()), "{told:?}");
    }
}
