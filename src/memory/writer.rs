//! The thread that writes conversations: new text is on disk moments later, and synced at the end of each turn.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use engine::ids::Key;
use engine::sessions::memory::{About, Noted, Piece};
use engine::sessions::stored;
use parking_lot::RwLock;
use store::transcript::journal::Journal;
use store::transcript::{Error, Meta, record};

use super::changing::{self, Changing};
use super::{Job, Settings, Source, prune};
use crate::known_secrets;

/// Longest delay before new text is written. SIGKILL loses at most twice this.
const FLUSH_GAP: Duration = Duration::from_millis(40);
/// Longer records are written directly, without copying.
const COPIED_BYTES: usize = 64 * 1024;
/// The metadata is repeated after this many bytes: lists look for it at the end of the file.
const META_BYTES: usize = 32 * 1024;

/// State of the thread.
pub(super) struct Writer<S> {
    source: S,
    settings: Arc<RwLock<Option<Settings>>>,
    open: HashMap<Key, Open>,
    /// Sessions that cannot be written at the moment.
    lost: HashSet<Key>,
    /// Sessions that could not be written and are being retried.
    retried: HashSet<Key>,
    /// Messages already shown to the user.
    told: Vec<String>,
}

/// The file of a session.
struct Open {
    journal: Journal,
    meta: Meta,
    /// Text held back per entry because it may be the beginning of a secret.
    held: HashMap<usize, String>,
    /// Unfinished tool calls.
    changing: Changing,
    /// Bytes written since the last metadata record.
    since_meta: usize,
}

impl<S: Source> Writer<S> {
    pub(super) fn new(source: S, settings: Arc<RwLock<Option<Settings>>>) -> Self {
        Self {
            source,
            settings,
            open: HashMap::new(),
            lost: HashSet::new(),
            retried: HashSet::new(),
            told: Vec::new(),
        }
    }

    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        let mut last = Instant::now();
        // When to fetch news, and when deferred entries are due.
        let (mut waits, mut due) = (None::<Instant>, None::<Instant>);
        loop {
            let job = match waits.into_iter().chain(due).min() {
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
                Ok(Job::Lose(key, why)) => {
                    self.lost.insert(key);
                    self.told.push(why);
                }
                Ok(Job::Drop(key)) => {
                    self.open.remove(&key);
                    self.lost.remove(&key);
                }
                Ok(Job::Finish(done)) => {
                    self.flush(&HashSet::new());
                    self.sync_all();
                    let _ = done.send(());
                }
                Err(RecvTimeoutError::Timeout) => {
                    last = Instant::now();
                    waits = None;
                    let busy = self.busy(last);
                    self.flush(&busy.into_keys().collect());
                    due = self.busy(Instant::now()).into_values().min();
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Entries that would be rewritten and were just written; not fetched again before the given time.
    fn busy(&self, now: Instant) -> HashMap<(Key, usize), Instant> {
        let mut all = HashMap::new();
        for (key, open) in &self.open {
            let busy = open.changing.busy(now);
            all.extend(busy.map(|(at, due)| ((*key, at), due)));
        }
        all
    }

    /// This session cannot be written.
    fn lose(&mut self, key: Key, error: &Error) {
        let open = self.open.remove(&key);
        if let Some(open) = open.filter(|_| self.retried.contains(&key)) {
            // It contains no more than the file before it.
            let _ = std::fs::remove_file(open.journal.path());
        }
        self.lost.insert(key);
        self.tell(error);
    }

    fn flush(&mut self, busy: &HashSet<(Key, usize)>) {
        loop {
            let (noted, more) = self.source.take(busy);
            for noted in noted {
                self.write(noted);
            }
            if !more {
                break;
            }
        }
    }

    fn write(&mut self, noted: Noted) {
        let (key, sync, closed) = (noted.key, noted.sync, noted.closed);
        if self.lost.contains(&key) {
            if sync && !closed {
                // There may be space again by now.
                self.lost.remove(&key);
                self.retried.insert(key);
                self.source.again(key);
            }
        } else if let Err(error) = self.try_write(noted) {
            self.lose(key, &error);
        } else if sync {
            self.retried.remove(&key);
        }
        if closed {
            self.open.remove(&key);
            self.lost.remove(&key);
            self.retried.remove(&key);
        }
    }

    fn try_write(&mut self, noted: Noted) -> Result<(), Error> {
        let open = match self.open.entry(noted.key) {
            std::collections::hash_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::hash_map::Entry::Vacant(vacant) => {
                let settings = self.settings.read().clone();
                let Some(about) = noted.about.as_ref() else {
                    // The metadata comes with its first news, unless storing was turned on in between.
                    return Ok(());
                };
                let Some((shelf, settings)) = settings.and_then(|s| Some((s.shelf()?, s))) else {
                    return Ok(());
                };
                let path = shelf.new_path(&about.cwd, now_ms());
                let meta = meta_of(about, now_ms());
                let journal = Journal::create(&path, &record::meta(&meta))?;
                let limits = settings.limits();
                let _ = std::thread::Builder::new().spawn(move || prune(&shelf, limits));
                vacant.insert(Open::new(journal, meta))
            }
        };
        open.write(noted)
    }

    /// Syncs to disk.
    fn sync_all(&mut self) {
        for open in self.open.values_mut() {
            let _ = open.journal.sync();
        }
    }

    /// Reports once that something cannot be written.
    fn tell(&mut self, error: &Error) {
        let why = match error {
            Error::Io { source, .. } => source.to_string(),
            other => other.to_string(),
        };
        crate::log::write("warn", &format!("could not store a conversation: {error}"));
        if !self.told.contains(&why) {
            self.told.push(why);
            self.source.tell(format!(
                "could not store conversations: {error}\n  the chat continues; storing is tried again after each turn"
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
            changing: Changing::default(),
            since_meta: 0,
        }
    }

    fn append(&mut self, records: &[u8]) -> Result<(), Error> {
        if records.is_empty() {
            return Ok(());
        }
        self.since_meta += records.len();
        self.journal.append(records)
    }

    fn write(&mut self, noted: Noted) -> Result<(), Error> {
        let secrets = known_secrets::known();
        let now = Instant::now();
        let mut records = Vec::new();
        let mut spoken = noted.sync;
        for (number, piece) in noted.entries {
            match piece {
                Piece::Whole(mut entry) => {
                    spoken |= entry.kind() != "notice";
                    self.held.remove(&number);
                    if let Some(tool) = entry.tool() {
                        let is_over = tool.is_over();
                        let value = stored::encode(*entry);
                        let more = self.changing.take(number, value, is_over, &secrets, now);
                        if more.len() > COPIED_BYTES {
                            self.append(&std::mem::take(&mut records))?;
                            self.append(&more)?;
                        } else {
                            records.extend(more);
                        }
                        continue;
                    }
                    if entry.streams() && !entry.done {
                        let begun = secrets.begun_at_end(&entry.text);
                        let rest = entry.text.split_off(entry.text.len() - begun);
                        if !rest.is_empty() {
                            self.held.insert(number, rest);
                        }
                    }
                    let value = stored::encode(*entry);
                    records.extend(changing::whole(number, &value, &secrets));
                }
                Piece::Text(text) => {
                    spoken = true;
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
        let known = self.meta.clone();
        if let Some(about) = &noted.about {
            self.meta = meta_of(about, known.updated_ms);
        }
        if spoken {
            self.meta.updated_ms = now_ms();
        }
        // While entries arrive, the time and count alone are not worth a record. But metadata at the end of the
        // file is found immediately.
        let counted = Meta {
            entries: known.entries,
            updated_ms: known.updated_ms,
            ..self.meta.clone()
        };
        let far = self.since_meta + records.len() > META_BYTES;
        let last = noted.sync || noted.closed && self.since_meta + records.len() > 0;
        let is_told = last || far || counted != known;
        if is_told {
            records.extend(record::meta(&self.meta));
        }
        self.append(&records)?;
        if is_told {
            self.since_meta = 0;
        }
        if last {
            self.journal.sync()?;
        }
        Ok(())
    }
}

fn meta_of(about: &About, updated_ms: u64) -> Meta {
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
        updated_ms,
        entries: about.entries,
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

    use std::path::PathBuf;

    use engine::secrets::Secrets;
    use engine::sessions::entry::{Body, Entry};
    use parking_lot::Mutex;
    use store::transcript::shelf::Shelf;

    use super::super::Memory;
    use super::*;

    /// News to write, and the messages shown.
    #[derive(Clone, Default)]
    struct Desk {
        news: Arc<Mutex<Vec<Noted>>>,
        told: Arc<Mutex<Vec<String>>>,
    }

    impl Source for Desk {
        fn take(&self, _busy: &HashSet<(Key, usize)>) -> (Vec<Noted>, bool) {
            (std::mem::take(&mut *self.news.lock()), false)
        }

        fn again(&self, key: Key) {
            let entries = vec![(0, said("all of it"))];
            self.news.lock().push(noted(key.0, "again", entries));
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
    fn what_could_not_be_written_is_tried_again_after_a_turn() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("chats");
        std::fs::write(&place, "in the way").unwrap();
        let desk = Desk::default();
        let memory = Memory::start(desk.clone()).unwrap();
        memory.set_up(Settings {
            dir: Some(place.clone()),
            max_age_days: 90,
            max_mb: 500,
        });
        let turn = || {
            let entries = vec![(0, said("yes"))];
            desk.news.lock().push(noted(1, "hello", entries));
            memory.finish(Duration::from_secs(10));
            memory.finish(Duration::from_secs(10));
        };
        turn();
        turn();
        std::fs::remove_file(&place).unwrap();
        turn();
        let shelf = memory.shelf().unwrap();
        let (found, _) = shelf.list(None);
        assert_eq!(found.len(), 1);
        let contents = store::transcript::read::read(&found[0].path).unwrap();
        let text = String::from_utf8(contents.entries[0].clone().unwrap().json).unwrap();
        assert!(text.contains("all of it"), "{text}");
        assert_eq!(desk.told.lock().len(), 1);
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
