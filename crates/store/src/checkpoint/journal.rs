//! The journal of one checkpoint: a line for each thing noted, `CRC32 JSON`. A line that is not whole is left out.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Change, Checkpoint, Error, Point, State, VERSION, at};
use crate::private;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    version: u32,
    #[serde(flatten)]
    point: Point,
}

/// A line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "snake_case")]
pub(super) enum Record {
    /// What a file was; nothing when it was too late to know.
    Before { path: PathBuf, state: Option<State> },
    /// What it was made into.
    After { path: PathBuf, state: State },
    /// What taking some of that back made of it.
    Left { path: PathBuf, state: State },
    /// The user changed it between two changes of the agent's.
    Between { path: PathBuf },
}

/// A journal that is written to.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    /// The files of which it was noted what they were, and what they were last.
    known: HashMap<PathBuf, Option<State>>,
}

impl Journal {
    pub(super) fn open(path: &Path, point: &Point) -> Result<Self, Error> {
        let before = read(path);
        let bytes = std::fs::read(path).unwrap_or_default();
        let mut journal = Self {
            file: private::append(path).map_err(at(path))?,
            path: path.to_owned(),
            known: before
                .iter()
                .flat_map(|checkpoint| &checkpoint.changes)
                .map(|change| (change.path.clone(), change.last().cloned()))
                .collect(),
        };
        if before.is_none() {
            journal.line(&Head {
                version: VERSION,
                point: point.clone(),
            })?;
        } else if !bytes.ends_with(b"\n") {
            // The end of what a crash cut off.
            journal.file.write_all(b"\n").map_err(at(path))?;
        }
        Ok(journal)
    }

    /// Whether it was noted what a file was.
    pub(super) fn knows(&self, path: &Path) -> bool {
        self.known.contains_key(path)
    }

    /// What a file was last, where that was noted.
    pub(super) fn last(&self, path: &Path) -> Option<&State> {
        self.known.get(path)?.as_ref()
    }

    pub(super) fn add(&mut self, record: Record) -> Result<(), Error> {
        self.line(&record)?;
        match record {
            Record::Before { path, .. } => {
                self.known.insert(path, None);
            }
            Record::After { path, state } | Record::Left { path, state } => {
                self.known.insert(path, Some(state));
            }
            Record::Between { .. } => {}
        }
        Ok(())
    }

    pub(super) fn sync(&mut self) -> Result<(), Error> {
        self.file.sync_data().map_err(at(&self.path))
    }

    fn line(&mut self, value: &impl Serialize) -> Result<(), Error> {
        let fail = at(&self.path);
        let body = serde_json::to_vec(value).map_err(|error| fail(error.into()))?;
        let mut line = format!("{:08x} ", crc32fast::hash(&body)).into_bytes();
        line.extend(body);
        line.push(b'\n');
        // One write: two lines never mix.
        self.file.write_all(&line).map_err(fail)
    }
}

/// Reads a journal; nothing when its first line cannot be read or is of another version.
pub(super) fn read(path: &Path) -> Option<Checkpoint> {
    let bytes = std::fs::read(path).ok()?;
    // A crash may have cut off the very first line, and a whole one follow it.
    let mut lines = bytes.split(|byte| *byte == b'\n').filter_map(body);
    let head: Head = serde_json::from_slice(lines.next()?).ok()?;
    if head.version != VERSION {
        return None;
    }
    let mut changes: Vec<Change> = Vec::new();
    let mut known: HashMap<PathBuf, usize> = HashMap::new();
    for record in lines.filter_map(|line| serde_json::from_slice(line).ok()) {
        match record {
            Record::Before { path, state } => {
                if !known.contains_key(&path) {
                    known.insert(path.clone(), changes.len());
                    changes.push(Change {
                        path,
                        before: state,
                        after: None,
                        left: None,
                        touched: false,
                    });
                }
            }
            Record::After { path, state } => {
                if let Some(at) = known.get(&path) {
                    changes[*at].after = Some(state);
                    changes[*at].left = None;
                }
            }
            Record::Left { path, state } => {
                if let Some(at) = known.get(&path) {
                    changes[*at].left = Some(state);
                }
            }
            Record::Between { path } => {
                if let Some(at) = known.get(&path) {
                    changes[*at].touched = true;
                }
            }
        }
    }
    Some(Checkpoint {
        point: head.point,
        changes,
    })
}

/// What a line says, when it is whole.
fn body(line: &[u8]) -> Option<&[u8]> {
    let (sum, body) = line.split_at_checked(9)?;
    let sum = std::str::from_utf8(&sum[..8]).ok()?;
    let sum = u32::from_str_radix(sum, 16).ok()?;
    (crc32fast::hash(body) == sum).then_some(body)
}
