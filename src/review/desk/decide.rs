//! Keeping hunks and undoing them.

use std::path::PathBuf;

use review::HunkId;
use store::checkpoint::Snapshot;

use super::view::{BufferEdit, Select, Undo, WHOLE};
use super::{Desk, bare};

impl Desk {
    /// Keeps hunks; returns their number and the files concerned.
    pub fn keep(&mut self, select: &Select) -> (usize, Vec<PathBuf>) {
        let meant = self.meant(select);
        let mut paths = Vec::new();
        let mut count = 0;
        for (path, ids) in meant {
            self.has_news(&path);
            let Some(tracked) = self.tracked(&path) else {
                continue;
            };
            count += ids.len();
            tracked.guessed = false;
            if let Some(lines) = &mut tracked.lines {
                lines.keep(&lines_of(&ids));
            }
            let open = matches!(&tracked.lines, Some(lines) if !lines.shown().hunks().is_empty());
            if !open {
                tracked.was = Some(tracked.disk.clone());
            } else if matches!(tracked.was, Some(Snapshot::Absent)) {
                // Part of a new file was kept, so the base is a file now.
                if let (Some(was), Snapshot::File { mode, .. }) = (&mut tracked.was, &tracked.disk)
                {
                    *was = Snapshot::File {
                        bytes: Vec::new(),
                        mode: *mode,
                    };
                }
            }
            self.drop_decided(&path);
            paths.push(path);
        }
        (count, paths)
    }

    /// Undoes hunks; returns their number and what to write. Hunks that cannot be undone are left alone.
    pub fn undo(&mut self, select: &Select) -> (usize, Vec<Undo>) {
        let meant = self.meant(select);
        let mut undos = Vec::new();
        let mut count = 0;
        for (path, ids) in meant {
            let Some(tracked) = self.tracked(&path) else {
                continue;
            };
            let Some(was) = tracked.was.clone() else {
                continue;
            };
            count += ids.len();
            let from = tracked.disk.clone();
            let mut edits = Vec::new();
            tracked.guessed = false;
            let to = match &mut tracked.lines {
                None => was,
                Some(lines) => {
                    let undone = lines.undo(&lines_of(&ids));
                    let (review, form) = (lines.shown(), lines.form);
                    // Bottom up, so that the lines above keep their numbers.
                    edits.extend(undone.iter().rev().map(|edit| {
                        let lines = review.base().slice(edit.new.clone());
                        BufferEdit {
                            first: edit.old.start,
                            last: edit.old.end,
                            lines: lines.iter().map(|line| bare(line)).collect(),
                        }
                    }));
                    // Everything: restore what it was, including mode and existence, unless the user has
                    // changed the base since.
                    let disk = lines.on_disk.current();
                    if review.hunks().is_empty() && form.read(&was).as_ref() == Some(disk) {
                        was
                    } else {
                        form.write(disk, mode_of(&from, &was))
                    }
                }
            };
            tracked.disk = to.clone();
            undos.push(Undo {
                path: path.clone(),
                from,
                to,
                edits,
            });
            self.drop_decided(&path);
        }
        (count, undos)
    }
}

/// The line hunks among the change numbers of a file.
fn lines_of(ids: &[u64]) -> Vec<HunkId> {
    let hunks = ids.iter().filter(|id| **id != WHOLE);
    hunks.map(|id| HunkId(*id)).collect()
}

fn mode_of(first: &Snapshot, second: &Snapshot) -> u32 {
    match (first, second) {
        (Snapshot::File { mode, .. }, _) | (_, Snapshot::File { mode, .. }) => *mode,
        _ => 0o644,
    }
}
