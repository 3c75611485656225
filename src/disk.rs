//! Reads and writes files that are in no buffer, for the agent: in their own encoding, with bounded memory, and
//! atomically.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Access, OFlags};

use crate::encoding::{self, Encoding};
use crate::error::{Error, Problem};

/// Larger files are not searched.
const MAX_SEARCHED_BYTES: u64 = 8 * 1024 * 1024;
/// The most that is read at once.
const MAX_READ_BYTES: u64 = 16 * 1024 * 1024;
/// Size of the buffer while looking for lines.
const PIECE_BYTES: usize = 64 * 1024;
/// A file is rewritten in place only if its old contents could be restored after a failure.
const MAX_IN_PLACE_BYTES: u64 = 64 * 1024 * 1024;
/// Retries when another writer replaces the file during a write.
const MAX_ATTEMPTS: usize = 100;
/// Mode of a replacement file until it gets the mode of the original.
const PRIVATE: u32 = 0o600;
/// Mode of a new file, before the umask.
const PUBLIC: u32 = 0o666;

/// The text of a file: all of it, or `limit` lines starting at `line` (1-based). `encodings` is the value of
/// 'fileencodings'.
pub fn read(
    path: &str,
    line: Option<u64>,
    limit: Option<u64>,
    encodings: &[String],
) -> Result<String, Error> {
    read_up_to(path, line, limit, encodings, MAX_READ_BYTES).map_err(|problem| at(path, problem))
}

/// The text of a file, if it is small enough to search.
pub fn read_for_place(path: &str) -> Option<String> {
    read_up_to(path, None, None, &[], MAX_SEARCHED_BYTES).ok()
}

fn read_up_to(
    path: &str,
    line: Option<u64>,
    limit: Option<u64>,
    encodings: &[String],
    max: u64,
) -> Result<String, Problem> {
    let (mut file, meta) = open_regular(Path::new(path), OFlags::RDONLY)?;
    let mut bytes = Vec::new();
    if line.is_none() && limit.is_none() {
        if meta.len() > max {
            return Err(Problem::TooLong {
                bytes: meta.len(),
                max,
            });
        }
        // The file may grow while it is read, or report no length.
        (&mut file).take(max + 1).read_to_end(&mut bytes)?;
        if length(&bytes) > max {
            return Err(Problem::TooLong {
                bytes: length(&bytes).max(meta.len()),
                max,
            });
        }
        let (text, _) = encoding::decode(&bytes, encodings).ok_or(Problem::NotText)?;
        return Ok(text);
    }
    let mut lines = Lines::new(file)?;
    let marked = lines.encoding;
    let skip = line.unwrap_or(1).saturating_sub(1);
    lines
        .take(skip, limit.unwrap_or(u64::MAX), max, &mut bytes)
        .map_err(|error| {
            if error.kind() == ErrorKind::FileTooLarge {
                Problem::TooManyLines { max }
            } else {
                Problem::Io(error)
            }
        })?;
    let text = marked.and_then(|encoding| encoding.decode(&bytes));
    text.or_else(|| encoding::decode(&bytes, encodings).map(|(text, _)| text))
        .ok_or(Problem::NotText)
}

fn at(path: &str, problem: Problem) -> Error {
    Error::File {
        path: path.to_owned(),
        problem,
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// Opens a regular file for reading, without blocking.
pub fn open_to_read(path: &Path) -> std::io::Result<File> {
    open_regular(path, OFlags::RDONLY).map(|(file, _)| file)
}

/// Opens a file only if it is a regular one. Reading a pipe or a device might block forever.
fn open_regular(path: &Path, flags: OFlags) -> std::io::Result<(File, Metadata)> {
    let odd = || std::io::Error::other("not a regular file");
    // Merely opening a device can have side effects.
    if !std::fs::metadata(path)?.is_file() {
        return Err(odd());
    }
    // It may have been replaced since the check: open without blocking and check again what was opened.
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR);
    let file = OpenOptions::new()
        .read(!flags.contains(OFlags::WRONLY))
        .write(writes)
        .custom_flags(flags.difference(OFlags::RWMODE).bits().cast_signed())
        .open(path)?;
    let meta = file.metadata()?;
    if meta.is_file() {
        Ok((file, meta))
    } else {
        Err(odd())
    }
}

/// Finds lines in a file, reading it piece by piece.
struct Lines {
    file: File,
    /// From the byte order mark.
    encoding: Option<Encoding>,
    piece: Vec<u8>,
}

impl Lines {
    fn new(file: File) -> std::io::Result<Self> {
        let mut lines = Self {
            file,
            encoding: None,
            piece: Vec::new(),
        };
        lines.next_piece()?;
        lines.encoding = Encoding::of_mark(&lines.piece);
        if let Some(encoding) = lines.encoding {
            lines.piece.drain(..encoding.mark().len());
        }
        Ok(lines)
    }

    /// Reads until the piece is full; at EOF it is empty.
    fn next_piece(&mut self) -> std::io::Result<()> {
        self.piece.clear();
        let wanted = u64::try_from(PIECE_BYTES).unwrap_or(u64::MAX);
        (&mut self.file)
            .take(wanted)
            .read_to_end(&mut self.piece)
            .map(drop)
    }

    /// Skips `skip` lines and appends the next `count` to `bytes`, line ends included.
    fn take(
        &mut self,
        mut skip: u64,
        mut count: u64,
        max: u64,
        bytes: &mut Vec<u8>,
    ) -> std::io::Result<()> {
        let newline = self.encoding.map_or(&b"\n"[..], Encoding::newline);
        // The rest of a character split by the end of a piece.
        let mut begun = Vec::new();
        while !self.piece.is_empty() && count > 0 {
            let mut piece = std::mem::take(&mut begun);
            piece.append(&mut self.piece);
            let whole = piece.len() - piece.len() % newline.len();
            let mut at = 0;
            while at < whole && count > 0 {
                let end = line_end(&piece[at..whole], newline);
                let past = end.map_or(whole, |end| at + end);
                if skip == 0 {
                    bytes.extend_from_slice(&piece[at..past]);
                    if length(bytes) > max {
                        return Err(ErrorKind::FileTooLarge.into());
                    }
                }
                if end.is_some() && skip > 0 {
                    skip -= 1;
                } else if end.is_some() {
                    count -= 1;
                }
                at = past;
            }
            begun = piece.split_off(whole);
            self.next_piece()?;
        }
        if skip == 0 && count > 0 {
            bytes.append(&mut begun);
        }
        Ok(())
    }
}

/// End of the first line, line end included.
fn line_end(bytes: &[u8], newline: &[u8]) -> Option<usize> {
    if newline.len() == 1 {
        return memchr::memchr(b'\n', bytes).map(|at| at + 1);
    }
    let mut units = bytes.chunks_exact(newline.len());
    units
        .position(|unit| unit == newline)
        .map(|at| (at + 1) * newline.len())
}

/// Writes a whole file in its encoding, atomically. It keeps its links, owner, mode and other attributes.
pub fn write(path: &str, content: &str, encodings: &[String]) -> Result<(), Error> {
    write_file(path, content, encodings).map_err(|problem| at(path, problem))
}

fn write_file(path: &str, content: &str, encodings: &[String]) -> Result<(), Problem> {
    let path = Path::new(path);
    if std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink())
        && std::fs::metadata(path).is_err()
    {
        return Err(Problem::LeadsNowhere);
    }
    // Write to the target of a link, not over the link.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    if let Some(dir) = target.parent() {
        std::fs::create_dir_all(dir)?;
    }
    for _ in 0..MAX_ATTEMPTS {
        match open_regular(&target, OFlags::RDONLY) {
            // Another writer has renamed a new file over the one we opened.
            Ok((_, meta)) if meta.nlink() == 0 => {}
            Ok((old, meta)) => match replace(&target, old, &meta, content, encodings)? {
                Written::Whole => return Ok(()),
                Written::Replaced => {}
            },
            Err(error) if error.kind() == ErrorKind::NotFound => return create(&target, content),
            Err(error) => return Err(Problem::Io(error)),
        }
    }
    Err(Problem::Contended)
}

/// The outcome of a write to an existing file.
enum Written {
    Whole,
    /// Another file has taken its place; this write changed nothing.
    Replaced,
}

/// Creates a file that does not exist.
fn create(target: &Path, content: &str) -> Result<(), Problem> {
    let beside = Beside::new(target, PUBLIC)?;
    beside.fill(content.as_bytes())?;
    // Unlike a rename, a hard link fails if the file was created in the meantime.
    match std::fs::hard_link(&beside.path, target) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(Problem::MadeMeanwhile);
        }
        Err(_) => beside.rename_to(target)?,
    }
    drop(beside);
    sync_directory(target);
    Ok(())
}

/// Writes an existing file.
fn replace(
    target: &Path,
    mut old: File,
    meta: &Metadata,
    content: &str,
    encodings: &[String],
) -> Result<Written, Problem> {
    if meta.mode() & 0o222 == 0 || rustix::fs::access(target, Access::WRITE_OK).is_err() {
        return Err(Problem::ReadOnly);
    }
    if is_made_up(&old) {
        return Err(Problem::NotOnDisk);
    }
    let bytes = encoding_of(&mut old, encodings)?.encode(content)?;
    if meta.nlink() == 1 && !has_attributes(&old) {
        match Beside::new(target, PRIVATE) {
            Ok(beside) => {
                // Without permission to change the owner, write into the original instead.
                if beside.become_like(meta).is_ok() {
                    beside
                        .fill(&bytes)
                        .and_then(|()| beside.rename_to(target))?;
                    sync_directory(target);
                    return Ok(Written::Whole);
                }
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
                ) => {}
            Err(error) => return Err(Problem::Io(error)),
        }
    }
    rewrite(target, meta, &bytes)
}

/// The encoding of a file that is about to be written. Binary files are refused.
fn encoding_of(file: &mut File, encodings: &[String]) -> Result<Encoding, Problem> {
    let mut bytes = Vec::new();
    file.take(MAX_READ_BYTES + 1).read_to_end(&mut bytes)?;
    if length(&bytes) > MAX_READ_BYTES {
        // Detect it from the beginning of the file, in whole lines.
        let newline = Encoding::of_mark(&bytes).map_or(&b"\n"[..], Encoding::newline);
        let whole = bytes.len() - bytes.len() % newline.len();
        let last = if newline.len() == 1 {
            memchr::memrchr(b'\n', &bytes)
        } else {
            Some(whole)
        };
        bytes.truncate(last.unwrap_or(whole));
    }
    if bytes.is_empty() {
        return Ok(encoding::UTF8);
    }
    encoding::decode(&bytes, encodings)
        .map(|(_, encoding)| encoding)
        .ok_or(Problem::NotTextToReplace)
}

/// Whether the file has ACLs or other extended attributes, which a new file would lose.
fn has_attributes(file: &File) -> bool {
    let mut names = [0; 1024];
    match rustix::fs::flistxattr(file, &mut names[..]) {
        Ok(bytes) => bytes > 0,
        Err(error) => error == rustix::io::Errno::RANGE,
    }
}

/// Whether the file is on a virtual filesystem.
#[cfg(target_os = "linux")]
fn is_made_up(file: &File) -> bool {
    // sysfs and procfs.
    rustix::fs::fstatfs(file)
        .is_ok_and(|system| system.f_type == 0x6265_6572 || system.f_type == 0x9fa0)
}

#[cfg(not(target_os = "linux"))]
fn is_made_up(_: &File) -> bool {
    false
}

/// Syncs the directory so that a rename survives a crash, where that is supported.
fn sync_directory(target: &Path) {
    let _ = target
        .parent()
        .and_then(|dir| File::open(dir).ok())
        .map(|dir| dir.sync_all());
}

/// Creates a file that does not exist. Never writes to an existing file, nor through a planted link.
fn create_beside(path: &Path, mode: u32) -> std::io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
}

/// A new file next to the target; deleted on drop unless it was renamed.
struct Beside {
    file: File,
    path: PathBuf,
}

impl Beside {
    fn new(target: &Path, mode: u32) -> std::io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let dir = target.parent().unwrap_or(Path::new("/"));
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let time = std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .unwrap_or_default();
            let name = format!(
                ".cursor-agent-{}-{count}-{:x}",
                std::process::id(),
                time.as_nanos()
            );
            let path = dir.join(name);
            match create_beside(&path, mode) {
                Ok(file) => return Ok(Self { file, path }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists && count < u64::MAX => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn fill(&self, bytes: &[u8]) -> std::io::Result<()> {
        (&self.file).write_all(bytes)?;
        self.file.sync_all()
    }

    /// Copies owner and mode from another file.
    fn become_like(&self, meta: &Metadata) -> std::io::Result<()> {
        let mine = self.file.metadata()?;
        if (mine.uid(), mine.gid()) != (meta.uid(), meta.gid()) {
            std::os::unix::fs::fchown(&self.file, Some(meta.uid()), Some(meta.gid()))?;
        }
        let mode = std::fs::Permissions::from_mode(meta.mode() & 0o7777);
        self.file.set_permissions(mode)
    }

    fn rename_to(&self, target: &Path) -> std::io::Result<()> {
        std::fs::rename(&self.path, target)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // After a rename this finds nothing.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Writes into the existing inode. On failure its old contents are restored.
fn rewrite(target: &Path, meta: &Metadata, bytes: &[u8]) -> Result<Written, Problem> {
    let (file, now) = open_regular(target, OFlags::RDWR | OFlags::NOFOLLOW)?;
    if (now.dev(), now.ino()) != (meta.dev(), meta.ino()) {
        return Ok(Written::Replaced);
    }
    if now.len() > MAX_IN_PLACE_BYTES {
        return Err(Problem::TooLongInPlace {
            max: MAX_IN_PLACE_BYTES,
        });
    }
    let mut old = Vec::new();
    (&file).read_to_end(&mut old)?;
    let written = write_over(&file, &old, bytes);
    if written.is_err() {
        // This cannot run out of space: the file was not truncated.
        let _ = file.write_all_at(&old, 0);
        let _ = file.set_len(length(&old));
        let _ = file.sync_all();
    }
    written.map(|()| Written::Whole).map_err(Problem::Io)
}

fn write_over(file: &File, old: &[u8], new: &[u8]) -> std::io::Result<()> {
    let both = old.len().min(new.len());
    // Write the part that needs more space first, while the old text is still whole.
    file.write_all_at(&new[both..], length(&new[..both]))?;
    if new.len() > old.len() {
        file.sync_all()?;
    }
    file.write_all_at(&new[..both], 0)?;
    file.set_len(length(new))?;
    file.sync_all()
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
