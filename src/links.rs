//! Resolves links and checks whether a filesystem is case-sensitive, for the rules.

use std::os::unix::fs::MetadataExt;

use engine::policy::Disk;

/// This machine's disk.
#[derive(Debug, Clone, Copy, Default)]
pub struct Real;

impl Disk for Real {
    fn link(&self, path: &str) -> Option<String> {
        let target = std::fs::read_link(path).ok()?;
        Some(target.to_string_lossy().into_owned())
    }

    fn ignores_case(&self, path: &str) -> bool {
        // Take the deepest existing part that has a letter: does its name in the other case refer to the same
        // file?
        let mut at = path;
        while let Some((dir, name)) = at.rsplit_once('/') {
            let other: String = name.chars().map(swap_case).collect();
            if other != name
                && let Ok(meta) = std::fs::symlink_metadata(at)
            {
                return std::fs::symlink_metadata(format!("{dir}/{other}"))
                    .is_ok_and(|same| (same.dev(), same.ino()) == (meta.dev(), meta.ino()));
            }
            at = dir;
        }
        false
    }
}

fn swap_case(char: char) -> char {
    if char.is_ascii_lowercase() {
        char.to_ascii_uppercase()
    } else {
        char.to_ascii_lowercase()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::policy::paths::resolve;

    #[test]
    fn links_of_a_real_disk_are_followed() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
        std::fs::create_dir(at("app")).expect("made");
        std::os::unix::fs::symlink(at("not-yet"), at("app/out")).expect("link");
        let real = resolve(&at("app/out"), &Real);
        assert_eq!(real, resolve(&at("not-yet"), &Real));
        let through_proc = resolve(&format!("/proc/self/root{real}"), &Real);
        if std::path::Path::new("/proc/self/root").exists() {
            assert_eq!(through_proc, real);
        }
        assert!(!Real.ignores_case(&at("app")) || std::path::Path::new(&at("APP")).exists());
    }
}
