//! The file of a conversation that goes on: written at its end only, by one process at a time.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use super::read::{self, Contents};
use super::{Error, VERSION, at, record};
use crate::private;

/// An open file. The lock on it ends with it.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// Makes the file of a new conversation, with its first records. It is there with them, or not at all.
    pub fn create(path: &Path, records: &[u8]) -> Result<Self, Error> {
        let fail = at(path);
        if let Some(dir) = path.parent() {
            private::create_dir(dir).map_err(fail)?;
        }
        // Written beside its name first: whoever lists conversations meanwhile must not find half a header.
        let new = path.with_extension("new");
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(&new)
            .map_err(fail)?;
        let mut journal = Self {
            file,
            path: path.to_owned(),
        };
        let mut first = record::version(VERSION);
        first.extend_from_slice(records);
        let written = journal.lock().and_then(|()| journal.append(&first));
        if let Err(error) = written.and_then(|()| publish(&new, path)) {
            let _ = std::fs::remove_file(&new);
            return Err(error);
        }
        Ok(journal)
    }

    /// Opens the file of a conversation to go on with it. A record that a crash cut off at its end is removed.
    pub fn open(path: &Path) -> Result<(Self, Contents), Error> {
        let fail = at(path);
        let mut file = OpenOptions::new()
            .append(true)
            .read(true)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(path)
            .map_err(fail)?;
        read::check_size(path, &file)?;
        let journal_path = path.to_owned();
        lock(&file, path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(fail)?;
        let contents = read::contents(path, &bytes)?;
        let whole = contents.whole_bytes as u64;
        if whole < bytes.len() as u64 {
            file.set_len(whole).map_err(fail)?;
        }
        let mut journal = Self {
            file,
            path: journal_path,
        };
        if bytes.get(contents.whole_bytes.saturating_sub(1)) != Some(&b'\n') {
            // The last record lacks only its end.
            journal.append(b"\n")?;
        }
        Ok((journal, contents))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds records.
    pub fn append(&mut self, records: &[u8]) -> Result<(), Error> {
        self.file.write_all(records).map_err(at(&self.path))
    }

    /// Makes sure that what was written outlives a crash of the machine.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.file.sync_data().map_err(at(&self.path))
    }

    fn lock(&self) -> Result<(), Error> {
        lock(&self.file, &self.path)
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // A process that was being started at that moment may have the file too, and would keep the lock for as long.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

/// Gives a file its name, unless something has it already.
fn publish(new: &Path, path: &Path) -> Result<(), Error> {
    if path.symlink_metadata().is_ok() {
        return Err(at(path)(ErrorKind::AlreadyExists.into()));
    }
    std::fs::rename(new, path).map_err(at(path))
}

/// Takes the lock, or says that another Neovim has it.
pub(super) fn lock(file: &File, path: &Path) -> Result<(), Error> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::Busy(path.to_owned())),
        // A file system without locks: there is nothing to hold on to.
        Err(rustix::io::Errno::NOTSUP | rustix::io::Errno::NOLCK | rustix::io::Errno::NOSYS) => {
            Ok(())
        }
        Err(error) => Err(at(path)(error.into())),
    }
}
