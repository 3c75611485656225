//! Files and directories only the user can read, from their first byte.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Makes a directory and those above it that are missing.
pub fn create_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Opens a file at its end, made if it is missing.
pub fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .read(true)
        .mode(0o600)
        .open(path)
}

/// Writes a file that is there whole or not at all, also when the machine stops in between.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static NUMBER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.{number}.new", std::process::id()));
    let beside = Path::new(&beside);
    // What a process of the same number left behind when it was killed.
    let _ = std::fs::remove_file(beside);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(beside)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(beside, path))
        .and_then(|()| sync_dir(path.parent()));
    if written.is_err() {
        let _ = std::fs::remove_file(beside);
    }
    written
}

/// Makes a rename in a directory last.
fn sync_dir(dir: Option<&Path>) -> io::Result<()> {
    dir.map_or(Ok(()), |dir| File::open(dir)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_is_made_is_the_users_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let mode = |path: &Path| path.metadata().expect("meta").permissions().mode() & 0o777;
        let deep = dir.path().join("a/b");
        create_dir(&deep).expect("made");
        write_whole(&deep.join("whole"), b"1").expect("written");
        append(&deep.join("log")).expect("opened");
        assert_eq!(mode(&dir.path().join("a")), 0o700);
        assert_eq!(mode(&deep), 0o700);
        assert_eq!(mode(&deep.join("whole")), 0o600);
        assert_eq!(mode(&deep.join("log")), 0o600);
        assert_eq!(std::fs::read_dir(&deep).expect("listed").count(), 2);
    }
}
