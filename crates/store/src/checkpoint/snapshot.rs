//! What a path is at one moment: nothing, a file with its bytes and mode, or a link.

use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::objects::Hash;

/// Opens without waiting for a pipe's other end and without following a link.
pub(super) const CAREFUL: OFlags = OFlags::NONBLOCK.union(OFlags::NOFOLLOW);

/// What a path was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum State {
    /// Nothing.
    Absent,
    /// A file.
    File {
        /// Of its bytes.
        hash: Hash,
        /// How many.
        size: u64,
        /// Permissions.
        mode: u32,
    },
    /// A symbolic link.
    Link {
        /// Where it leads.
        target: PathBuf,
    },
}

/// What a path is, content included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Snapshot {
    /// Nothing.
    Absent,
    /// A file.
    File {
        /// All of it.
        bytes: Vec<u8>,
        /// Permissions.
        mode: u32,
    },
    /// A symbolic link.
    Link {
        /// Where it leads.
        target: PathBuf,
    },
}

impl Snapshot {
    /// Looks at a path now. An error for a directory, a device, or a file of more than `max` bytes.
    pub fn take(path: &Path, max: u64) -> io::Result<Self> {
        match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Absent),
            // A file where a directory should be: there is nothing below it.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(Self::Absent),
            Err(error) => return Err(error),
            Ok(meta) if meta.is_symlink() => {
                return Ok(Self::Link {
                    target: std::fs::read_link(path)?,
                });
            }
            Ok(_) => {}
        }
        let file = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(CAREFUL.bits().cast_signed())
            .open(path)?;
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        if meta.len() > max {
            return Err(io::Error::other(format!("larger than {max} bytes")));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or_default());
        file.take(max + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max {
            return Err(io::Error::other(format!("larger than {max} bytes")));
        }
        Ok(Self::File {
            bytes,
            mode: meta.permissions().mode() & 0o7777,
        })
    }

    /// What it is, without its content.
    pub fn state(&self) -> State {
        match self {
            Self::Absent => State::Absent,
            Self::File { bytes, mode } => State::File {
                hash: Hash::of(bytes),
                size: bytes.len() as u64,
                mode: *mode,
            },
            Self::Link { target } => State::Link {
                target: target.clone(),
            },
        }
    }
}
