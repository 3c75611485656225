//! What is reported to the review about a session, and its reports back: turns, calls that name files, edits,
//! commands.

use std::path::PathBuf;

use serde_json::json;

use crate::engine::Engine;
use crate::ids::{Key, Proc};
use crate::policy::paths::absolute;
use crate::screen::news::News;
use crate::screen::outbox::Wake;
use crate::sessions::entry::Level;
use crate::sessions::session::{FileChanged, Session};
use crate::tools::kind::ToolKind;
use crate::tools::tool_call::{Content, ToolCall};

/// Of a prompt, this much names its checkpoint.
const PROMPT_CHARS: usize = 200;

/// Something to report to the review, before anything else happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    /// What.
    pub job: Job,
    /// Writes to this process are held back until the review has processed it.
    pub hold: Option<Proc>,
    /// Reading from the agent pauses until the review has processed it.
    pub first: bool,
}

/// Whose change it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Author {
    /// The session.
    pub key: Key,
    pub turn: u64,
}

/// What happened, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// A turn begins. `watch` are the files the user has open.
    TurnStarted {
        /// The turn.
        author: Author,
        /// What its checkpoint is for.
        point: Box<Point>,
        /// Files that buffers have.
        watch: Vec<PathBuf>,
    },
    /// A turn is over.
    TurnEnded {
        /// The turn.
        author: Author,
    },
    /// A call names a file that it may change, most often before it does.
    Named {
        /// Absolute.
        path: PathBuf,
    },
    /// An agent changed a file. What it says of it: the old text, the new one, and the line.
    Changed {
        /// The turn.
        author: Author,
        /// Absolute.
        path: PathBuf,
        /// What the agent says the change is.
        said: Option<Said>,
    },
    /// A command of the agent's ended: whatever changed in the workspace is its doing.
    CommandEnded {
        /// The turn.
        author: Author,
    },
    /// A call ended that should have changed files but does not say that it did.
    Doubted {
        /// The turn.
        author: Author,
        /// Which call.
        doubt: Doubt,
    },
    /// Something of the user's changed a file on disk.
    UserWrote {
        /// Absolute.
        path: PathBuf,
    },
    /// The user may have committed something.
    LookForCommits,
}

/// What an agent says of a change: whole texts, or the part it replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The old text; nothing for a new file.
    pub old: Option<String>,
    /// The new text.
    pub new: String,
    /// The line, from 1.
    pub line: Option<u32>,
}

/// A call that was to change files, and may have been stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// The call's entry.
    pub entry: usize,
    /// The files, absolute.
    pub paths: Vec<PathBuf>,
    /// It was to remove them.
    pub removes: bool,
    /// They were named before it ended.
    pub begun: bool,
}

/// What others have to hear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// Hunks of these files came or went.
    Reviewed(Vec<PathBuf>),
    /// A command changed a file.
    Found {
        /// Whose.
        author: Author,
        /// Which.
        path: PathBuf,
        /// What became of it.
        state: FileChanged,
    },
    /// Whether a call changed any of the files it was to change.
    Looked {
        /// Whose.
        key: Key,
        /// The call's entry.
        entry: usize,
        /// Nothing, where that cannot be told.
        changed: Option<bool>,
    },
    /// The workspace has too many files to see what commands change.
    TooLarge {
        /// Whose.
        key: Key,
    },
    /// Old checkpoints were removed to stay within the limits.
    Pruned {
        /// How many.
        points: usize,
        /// Bytes of their contents.
        bytes: u64,
    },
    /// A checkpoint could not be written.
    Failed {
        /// Whose.
        key: Key,
        why: String,
    },
}

/// What a turn's checkpoint is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// Its name: sorts by time.
    pub id: String,
    /// The agent's id of the session.
    pub session: String,
    /// The agent's name.
    pub agent: String,
    /// Where the session works.
    pub cwd: PathBuf,
    /// How the prompt begins.
    pub prompt: String,
    /// When it was sent, in ms since 1970.
    pub at_ms: u64,
}

/// Pending reports for the review. Private to this file.
#[derive(Debug, Default)]
pub(crate) struct Watching {
    unheard: Vec<Watched>,
}

impl Engine {
    /// The reports for the review, in order.
    pub fn take_watched(&mut self) -> Vec<Watched> {
        std::mem::take(&mut self.watching.unheard)
    }

    fn watch(&mut self, job: Job) {
        self.watching.unheard.push(Watched {
            job,
            hold: None,
            first: false,
        });
    }

    /// A turn is about to start: files are snapshotted, then the prompt is sent.
    pub(crate) fn watch_turn(&mut self, key: Key, turn: u64, prompt: &str, open: Vec<String>) {
        let at_ms = self.now().wall_ms;
        let Some(session) = self.sessions.get(&key) else {
            return;
        };
        let Some(agent) = self.agents.get(&session.agent) else {
            return;
        };
        let session_id = session.session_id.as_ref();
        let point = Point {
            id: format!("{at_ms:013}-{}-{turn}", key.0),
            session: session_id.map_or_else(String::new, |id| id.as_str().to_owned()),
            agent: agent.spec().agent.clone(),
            cwd: PathBuf::from(&session.cwd),
            prompt: prompt.chars().take(PROMPT_CHARS).collect(),
            at_ms,
        };
        let proc = agent.proc();
        self.watching.unheard.push(Watched {
            job: Job::TurnStarted {
                author: Author { key, turn },
                point: Box::new(point),
                watch: open.into_iter().map(PathBuf::from).collect(),
            },
            hold: Some(proc),
            first: false,
        });
    }

    /// A turn is over.
    pub(crate) fn watch_turn_end(&mut self, key: Key) {
        let author = self.author(key);
        self.watch(Job::TurnEnded { author });
    }

    /// A call has news: the files it names are snapshotted before it changes them.
    pub(crate) fn watch_call(&mut self, key: Key, at: usize, known: &[String]) {
        let Some((session, tool)) = self.call(key, at) else {
            return;
        };
        let paths: Vec<String> = named(tool)
            .into_iter()
            .filter(|path| !known.contains(path))
            .map(|path| absolute(&session.cwd, self.policy().home(), &path))
            .collect();
        for path in paths {
            self.watch(Job::Named { path: path.into() });
        }
    }

    /// A call changed a file.
    pub(crate) fn watch_edit(&mut self, key: Key, path: &str, said: Option<Said>) {
        let author = self.author(key);
        self.watch(Job::Changed {
            author,
            path: path.into(),
            said,
        });
    }

    /// A call ended: what a command changed is looked for.
    pub(crate) fn watch_call_end(&mut self, key: Key, at: usize) {
        if self
            .call(key, at)
            .is_some_and(|(_, tool)| may_change_files(tool))
        {
            self.watch_command(key);
        }
    }

    /// A command ended: what it changed is looked for.
    pub(crate) fn watch_command(&mut self, key: Key) {
        let author = self.author(key);
        self.watch(Job::CommandEnded { author });
    }

    /// A call ended that should have changed files: the review checks whether it did, before anything else is
    /// processed.
    pub(crate) fn watch_doubt(&mut self, key: Key, doubt: Doubt) {
        let author = self.author(key);
        self.watching.unheard.push(Watched {
            job: Job::Doubted { author, doubt },
            hold: None,
            first: true,
        });
    }

    /// A call that is running now, not a replayed one.
    fn call(&self, key: Key, at: usize) -> Option<(&Session, &ToolCall)> {
        let session = self.sessions.get(&key)?;
        let tool = session.transcript.get(at)?.tool()?;
        (!session.is_replaying()).then_some((session, tool))
    }

    fn author(&self, key: Key) -> Author {
        let turn = self.sessions.get(&key).map_or(0, |session| session.turns);
        Author { key, turn }
    }

    /// The review has news.
    pub fn on_review(&mut self, report: Report) {
        match report {
            Report::Reviewed(paths) => {
                let paths = paths.iter().map(|path| path.to_string_lossy().into_owned());
                let paths = paths.collect();
                self.push(News::Reviewed { paths }, Wake::Soon);
            }
            Report::Found {
                author,
                path,
                state,
            } => {
                let path = path.to_string_lossy().into_owned();
                self.note_found(author.key, &path);
                self.look_again(author.key, &path, Vec::new(), state);
                self.event(author.key, "CursorAgentEdit", json!({ "path": path }));
            }
            Report::Looked {
                key,
                entry,
                changed,
            } => self.on_looked(key, entry, changed),
            Report::TooLarge { key } => {
                let text = "This workspace has too many files to see what commands change: \
                            what they did is not in `:CursorAgent review`";
                self.add_notice(key, Level::Info, "review", text.to_owned());
            }
            Report::Pruned { points, bytes } => {
                let (count, mb) = (points, bytes.div_ceil(1024 * 1024));
                let s = if count == 1 { "" } else { "s" };
                let message = format!(
                    "removed the {count} oldest checkpoint{s} ({mb} MB) to stay within \
                     `checkpoints.max_mb` and `checkpoints.max_days`"
                );
                // No session's: of all of them.
                self.tell(Key(0), "info", message);
            }
            Report::Failed { key, why } => {
                let text = format!("The checkpoint of this turn is incomplete: {why}");
                self.add_notice(key, Level::Warning, "review", text);
            }
        }
    }
}

/// Whether a call may change files that it does not name.
fn may_change_files(tool: &ToolCall) -> bool {
    // Also one that is shown as rejected: it may have run all the same, what Cursor reports leaves that open.
    let seems_stopped = tool.refused && tool.kind.changes_files();
    seems_stopped
        || match tool.kind {
            // One that says which files it changes is taken at its word.
            ToolKind::Edit | ToolKind::Delete => named(tool).is_empty(),
            ToolKind::Read
            | ToolKind::Search
            | ToolKind::Think
            | ToolKind::Fetch
            | ToolKind::SwitchMode
            | ToolKind::Plan => false,
            // What was moved was at one place and is at another; most calls name one of them.
            _ => true,
        }
}

/// Every file a call names.
pub(crate) fn named(tool: &ToolCall) -> Vec<String> {
    let mut paths = tool.changed_paths();
    for place in tool.places() {
        if !paths.contains(&place.path) {
            paths.push(place.path);
        }
    }
    paths
}

/// What a call says of its change of a file.
pub(crate) fn said(tool: &ToolCall, path: &str) -> Option<Said> {
    let diffs = tool.content.iter().filter_map(|content| match content {
        Content::Diff {
            path: of, old, new, ..
        } if of == path => Some((old, new)),
        _ => None,
    });
    let mut diffs = diffs.collect::<Vec<_>>().into_iter();
    let (Some((old, new)), None) = (diffs.next(), diffs.next()) else {
        // Several parts of one file: which came first is not known.
        return None;
    };
    let place = tool.locations.iter().find(|place| place.path == path);
    Some(Said {
        old: old.clone(),
        new: new.clone(),
        line: place.and_then(|place| place.line),
    })
}
