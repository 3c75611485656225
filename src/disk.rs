//! Files that are in no buffer, read and written for the agent.

use std::io::Write;
use std::path::Path;

/// A longer file is not searched.
const MAX_SEARCHED_BYTES: u64 = 8 * 1024 * 1024;

/// The text of a file: all of it, or `limit` lines from `line` on (from 1).
pub fn read(path: &str, line: Option<u64>, limit: Option<u64>) -> Result<String, String> {
    let fail = |error: std::io::Error| format!("{path}: {error}");
    if !std::fs::metadata(path).map_err(fail)?.is_file() {
        // Reading a pipe or a device might never end.
        return Err(format!("{path}: not a regular file"));
    }
    let bytes = std::fs::read(path).map_err(fail)?;
    let text = String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    Ok(slice_lines(text, line, limit))
}

/// The text of a file that is small enough to be searched for a part of it.
pub fn read_for_place(path: &str) -> Option<String> {
    let meta = std::fs::metadata(path).ok()?;
    if !meta.is_file() || meta.len() > MAX_SEARCHED_BYTES {
        return None;
    }
    read(path, None, None).ok()
}

/// Writes a whole file beside the old one and renames it into place, so that it is never half there.
pub fn write(path: &str, content: &str) -> Result<(), String> {
    let fail = |error: std::io::Error| format!("{path}: {error}");
    // Through a link, the file it leads to is meant.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| Path::new(path).to_path_buf());
    if let Some(dir) = target.parent() {
        std::fs::create_dir_all(dir).map_err(fail)?;
    }
    let old = std::fs::metadata(&target).ok();
    let mut beside = target.clone().into_os_string();
    beside.push(format!(".{}.new", std::process::id()));
    let written = std::fs::File::create(&beside)
        .and_then(|mut file| {
            file.write_all(content.as_bytes())
                .and_then(|()| file.sync_all())
        })
        .and_then(|()| match &old {
            Some(meta) => std::fs::set_permissions(&beside, meta.permissions()),
            None => Ok(()),
        })
        .and_then(|()| std::fs::rename(&beside, &target));
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written.map_err(fail)
}

/// `limit` lines from `line` on, their ends kept.
pub fn slice_lines(text: String, line: Option<u64>, limit: Option<u64>) -> String {
    if line.is_none() && limit.is_none() {
        return text;
    }
    let skip = usize::try_from(line.unwrap_or(1).saturating_sub(1)).unwrap_or(usize::MAX);
    let take = limit.map_or(usize::MAX, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    });
    text.split_inclusive('\n').skip(skip).take(take).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_one() {
        let slice = |line, limit| slice_lines("a\nb\nc".to_owned(), line, limit);
        assert_eq!(slice(None, None), "a\nb\nc");
        assert_eq!(slice(Some(2), None), "b\nc");
        assert_eq!(slice(Some(2), Some(1)), "b\n");
        assert_eq!(slice(Some(0), Some(2)), "a\nb\n");
        assert_eq!(slice(Some(9), None), "");
    }

    #[test]
    fn writes_keep_mode_and_links_and_make_directories() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
        write(&at("new/deep/file"), "one").expect("written");
        std::fs::set_permissions(at("new/deep/file"), std::fs::Permissions::from_mode(0o755))
            .expect("mode");
        std::os::unix::fs::symlink(at("new/deep/file"), at("link")).expect("link");
        write(&at("link"), "two").expect("written");
        assert_eq!(read(&at("new/deep/file"), None, None).as_deref(), Ok("two"));
        assert!(
            std::fs::symlink_metadata(at("link"))
                .expect("link")
                .is_symlink()
        );
        assert_eq!(
            std::fs::metadata(at("new/deep/file"))
                .expect("meta")
                .permissions()
                .mode()
                & 0o777,
            0o755
        );
        assert!(read("/dev/zero", None, None).is_err());
        assert!(
            read(&at("nothing"), None, None)
                .expect_err("no file")
                .contains("nothing")
        );
    }
}
