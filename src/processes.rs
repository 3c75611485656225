//! Running agents with their process, age and memory use including descendants; and the disk space files take.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// Counting stops after this many files.
const MAX_FILES: usize = 100_000;

/// A running agent.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Running {
    /// Its name in the options.
    pub agent: String,
    /// Its working directory.
    pub cwd: String,
    /// Its process, which leads a group.
    pub pid: u32,
    /// How long it has run.
    pub age_ms: u64,
    /// How many sessions it has.
    pub sessions: usize,
    /// Memory use of its group, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

/// Disk space at a path.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Size {
    /// As requested.
    pub path: String,
    /// The path exists.
    pub found: bool,
    /// Number of files.
    pub files: usize,
    /// Their total size.
    pub bytes: u64,
    /// Counting stopped early.
    pub more: bool,
}

/// Fills in the memory use of the groups.
pub fn weigh(running: &mut [Running]) {
    let groups = groups_on_linux().or_else(groups_by_ps);
    for one in running {
        one.memory_bytes = groups
            .as_ref()
            .and_then(|groups| groups.get(&one.pid).copied());
    }
}

/// Bytes by group, from `/proc`.
fn groups_on_linux() -> Option<HashMap<u32, u64>> {
    let page = u64::try_from(rustix::param::page_size()).ok()?;
    let mut groups = HashMap::new();
    let mut seen = false;
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let name = entry.file_name();
        if !name
            .to_string_lossy()
            .bytes()
            .all(|byte| byte.is_ascii_digit())
        {
            continue;
        }
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        // The program name, in parentheses, may contain anything.
        let Some((_, rest)) = stat.rsplit_once(") ") else {
            continue;
        };
        let fields: Vec<&str> = rest.split(' ').collect();
        let group = fields.get(2).and_then(|field| field.parse().ok());
        let pages: Option<u64> = fields.get(21).and_then(|field| field.parse().ok());
        if let (Some(group), Some(pages)) = (group, pages) {
            seen = true;
            *groups.entry(group).or_default() += pages * page;
        }
    }
    seen.then_some(groups)
}

/// The same on other systems.
fn groups_by_ps() -> Option<HashMap<u32, u64>> {
    let output = std::process::Command::new("ps")
        .args(["-A", "-o", "pgid=,rss="])
        .stdin(std::process::Stdio::null())
        .output()
        .ok()?;
    let mut groups = HashMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let mut words = line.split_whitespace().map(str::parse::<u64>);
        if let (Some(Ok(group)), Some(Ok(kib))) = (words.next(), words.next())
            && let Ok(group) = u32::try_from(group)
        {
            *groups.entry(group).or_default() += kib * 1024;
        }
    }
    (!groups.is_empty()).then_some(groups)
}

/// Size of a file, or of all files below a directory. Links are not followed.
pub fn measure(path: &str) -> Size {
    let mut size = Size {
        path: path.to_owned(),
        ..Size::default()
    };
    let mut waiting: Vec<PathBuf> = vec![Path::new(path).to_owned()];
    while let Some(path) = waiting.pop() {
        let Ok(meta) = std::fs::symlink_metadata(&path) else {
            continue;
        };
        size.found = true;
        if meta.is_dir() {
            let entries = std::fs::read_dir(&path).into_iter().flatten();
            waiting.extend(entries.flatten().map(|entry| entry.path()));
        } else {
            size.files += 1;
            size.bytes += meta.len();
        }
        if size.files + waiting.len() > MAX_FILES {
            size.more = true;
            break;
        }
    }
    size
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_group_has_the_memory_of_all_its_processes() {
        use std::os::unix::process::CommandExt;
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sleep 100 & sleep 100"])
            .process_group(0)
            .spawn()
            .unwrap();
        let mut running = vec![Running {
            agent: String::new(),
            cwd: String::new(),
            pid: child.id(),
            age_ms: 0,
            sessions: 0,
            memory_bytes: None,
        }];
        weigh(&mut running);
        assert!(running[0].memory_bytes.unwrap() > 100_000, "{running:?}");
        crate::process::signal_group(child.id(), rustix::process::Signal::KILL);
        child.wait().unwrap();
    }

    #[test]
    fn files_are_counted_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("x"), "12345").unwrap();
        std::fs::write(dir.path().join("y"), "123").unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("all")).unwrap();
        let size = measure(&dir.path().to_string_lossy());
        assert_eq!((size.found, size.files, size.more), (true, 3, false));
        assert_eq!(size.bytes, 8 + 1);
        assert!(!measure("/no/such/path").found);
    }
}
