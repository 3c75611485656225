//! Brings a path back to what it was.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::Snapshot;
use super::snapshot::CAREFUL;

impl Snapshot {
    /// Makes a path this. It is the old or the new at every moment, never half of either.
    pub fn put(&self, path: &Path) -> io::Result<()> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let old = std::fs::symlink_metadata(path);
        match self {
            Self::Absent => match std::fs::remove_file(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                done => done,
            },
            Self::Link { target } => {
                let beside = beside(path);
                symlink(target, &beside)?;
                rename(&beside, path)
            }
            Self::File { bytes, mode } => match old {
                Ok(meta) if meta.is_dir() => Err(io::Error::other("it is a directory now")),
                // Other names of the file stay names of it.
                Ok(meta) if meta.is_file() && meta.nlink() > 1 => {
                    write_in_place(path, bytes, *mode)
                }
                old => {
                    let beside = beside(path);
                    let written = create(&beside).and_then(|mut file| {
                        file.write_all(bytes)?;
                        if let Ok(meta) = &old
                            && meta.is_file()
                        {
                            // Only root can give a file away; for anybody else it is theirs already.
                            let _ = chown(&beside, Some(meta.uid()), Some(meta.gid()));
                        }
                        file.set_permissions(Permissions::from_mode(*mode))
                    });
                    if let Err(error) = written {
                        let _ = std::fs::remove_file(&beside);
                        return Err(error);
                    }
                    rename(&beside, path)
                }
            },
        }
    }
}

/// A file of this name that was not there, the user's alone until it has its mode.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to).inspect_err(|_| {
        let _ = std::fs::remove_file(from);
    })
}

/// Takes the place first, so that a full disk leaves the old text.
fn write_in_place(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    // A pipe that has taken its place would wait for a reader.
    let mut file = OpenOptions::new()
        .write(true)
        .custom_flags(CAREFUL.bits().cast_signed())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let spare = beside(path);
    let fits = create(&spare).and_then(|mut spare| spare.write_all(bytes));
    let _ = std::fs::remove_file(&spare);
    fits?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)?;
    file.set_permissions(Permissions::from_mode(mode))
}

/// A name in the same directory that nothing has.
fn beside(path: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().take(40).collect();
    path.with_file_name(format!(".{name}.{}.{number}.restore", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_can_be_brought_back_from_every_other() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("deep/file");
        let states = [
            Snapshot::Absent,
            Snapshot::File {
                bytes: b"\xff\0\r\n".to_vec(),
                mode: 0o755,
            },
            Snapshot::File {
                bytes: Vec::new(),
                mode: 0o600,
            },
            Snapshot::Link {
                target: "nowhere".into(),
            },
        ];
        for from in &states {
            for to in &states {
                from.put(&path).expect("put");
                to.put(&path).expect("put");
                assert_eq!(&Snapshot::take(&path, 100).expect("taken"), to);
            }
        }
        Snapshot::Absent.put(&path).expect("put");
        let left = std::fs::read_dir(dir.path().join("deep")).expect("listed");
        assert_eq!(left.count(), 0);
    }

    #[test]
    fn other_names_of_a_file_stay_names_of_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        std::fs::write(&a, "a long text").expect("written");
        std::fs::hard_link(&a, &b).expect("linked");
        let file = Snapshot::File {
            bytes: b"short".to_vec(),
            mode: 0o640,
        };
        file.put(&a).expect("put");
        assert_eq!(Snapshot::take(&b, 100).expect("taken"), file);
        std::fs::create_dir(dir.path().join("d")).expect("made");
        assert!(file.put(&dir.path().join("d")).is_err());
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo").success());
        assert!(write_in_place(&path, b"text", 0o644).is_err());
    }
}
