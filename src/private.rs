//! Creates files and directories that only the user can read, from the first byte and whatever the umask.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::Result;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;

const FILE_MODE: u32 = 0o600;
const DIR_MODE: u32 = 0o700;

/// Creates a directory and its missing parents.
pub fn create_dir(path: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(DIR_MODE)
        .create(path)
}

/// Creates a file that does not exist yet. Never writes to an existing file or through a planted link.
pub fn create_new(path: &Path) -> Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(path)
}

/// Opens a file for appending. If an earlier version left it readable by others, that is fixed.
pub fn append(path: &Path) -> Result<File> {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(FILE_MODE)
        .open(path)?;
    let meta = file.metadata()?;
    if meta.is_file() && meta.mode() & 0o077 != 0 {
        // If that is not allowed, it is not our file.
        let _ = file.set_permissions(std::fs::Permissions::from_mode(FILE_MODE));
    }
    Ok(file)
}

/// Locks a file, creating it if needed, until the returned handle is dropped or the process ends; None if
/// another process holds it. The file is never removed: another process could hold a lock on the removed one.
pub fn lock(path: &Path) -> Result<Option<File>> {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(FILE_MODE)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
        .open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn others_can_read_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
        let deep = dir.path().join("a/b");
        create_dir(&deep).unwrap();
        create_dir(&deep).unwrap();
        assert_eq!(mode(&dir.path().join("a")), DIR_MODE);
        assert_eq!(mode(&deep), DIR_MODE);
        create_new(&deep.join("new")).unwrap();
        assert_eq!(mode(&deep.join("new")), FILE_MODE);
        assert!(create_new(&deep.join("new")).is_err());
        std::os::unix::fs::symlink(deep.join("elsewhere"), deep.join("link")).unwrap();
        assert!(create_new(&deep.join("link")).is_err());
        std::fs::write(deep.join("old"), "1").unwrap();
        std::fs::set_permissions(deep.join("old"), std::fs::Permissions::from_mode(0o666)).unwrap();
        append(&deep.join("old")).unwrap();
        assert_eq!(mode(&deep.join("old")), FILE_MODE);
    }

    #[test]
    fn a_lock_is_held_by_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = lock(&path).unwrap();
        assert!(held.is_some());
        assert!(lock(&path).unwrap().is_none());
        drop(held);
        assert!(lock(&path).unwrap().is_some());
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, FILE_MODE);
        std::os::unix::fs::symlink(&path, dir.path().join("link")).unwrap();
        assert!(lock(&dir.path().join("link")).is_err());
    }
}
