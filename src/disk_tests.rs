//! Tests of reading and writing files on disk.

use std::os::unix::fs::symlink;

use super::*;

struct Dir(tempfile::TempDir);

impl Dir {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_string_lossy().into_owned()
    }

    fn put(&self, name: &str, bytes: &[u8]) -> String {
        std::fs::write(self.at(name), bytes).expect("written");
        self.at(name)
    }

    fn get(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.at(name)).expect("there")
    }

    fn mode(&self, name: &str, mode: u32) {
        std::fs::set_permissions(self.at(name), std::fs::Permissions::from_mode(mode))
            .expect("mode");
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("a directory");
        let mut names: Vec<_> = entries
            .map(|entry| {
                entry
                    .expect("entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }
}

/// Reads and turns an error into the message the agent gets.
fn read(
    path: &str,
    line: Option<u64>,
    limit: Option<u64>,
    encodings: &[String],
) -> Result<String, String> {
    super::read(path, line, limit, encodings).map_err(|error| error.to_string())
}

fn write(path: &str, content: &str, encodings: &[String]) -> Result<(), String> {
    super::write(path, content, encodings).map_err(|error| error.to_string())
}

fn whole(path: &str) -> Result<String, String> {
    read(path, None, None, &[])
}

#[test]
fn lines_are_counted_from_one() {
    let dir = Dir::new();
    let path = dir.put("f", b"a\nb\nc");
    let slice = |line, limit| read(&path, line, limit, &[]).expect("read");
    assert_eq!(slice(None, None), "a\nb\nc");
    assert_eq!(slice(Some(2), None), "b\nc");
    assert_eq!(slice(Some(2), Some(1)), "b\n");
    assert_eq!(slice(Some(0), Some(2)), "a\nb\n");
    assert_eq!(slice(None, Some(9)), "a\nb\nc");
    assert_eq!(slice(Some(9), None), "");
    assert_eq!(slice(Some(1), Some(0)), "");
}

#[test]
fn lines_of_any_encoding_are_found_over_the_ends_of_pieces() {
    let dir = Dir::new();
    let lines: Vec<String> = (0..30_000).map(|n| format!("Zeile {n} ß\n")).collect();
    let text = lines.concat();
    let marked = format!("\u{feff}{text}");
    let cases: [Vec<u8>; 6] = [
        text.clone().into_bytes(),
        marked.clone().into_bytes(),
        text.chars()
            .map(|c| u8::try_from(c).expect("latin1"))
            .collect(),
        marked.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        marked.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        marked
            .chars()
            .flat_map(|c| u32::from(c).to_le_bytes())
            .collect(),
    ];
    for bytes in cases {
        let path = dir.put("f", &bytes);
        for (line, limit) in [(1, 1), (2, 3), (20_000, 2), (29_999, 100)] {
            let from = usize::try_from(line - 1).expect("small");
            let wanted: String = lines[from..]
                .iter()
                .take(usize::try_from(limit).expect("small"))
                .map(String::as_str)
                .collect();
            assert_eq!(read(&path, Some(line), Some(limit), &[]), Ok(wanted));
        }
        assert_eq!(whole(&path).as_deref(), Ok(&*text));
    }
}

#[test]
fn a_large_file_is_read_in_part_and_long_lines_are_refused() {
    let dir = Dir::new();
    let path = dir.put("f", b"first\nsecond\n");
    let file = OpenOptions::new().append(true).open(&path).expect("open");
    file.set_len(600 * 1024 * 1024).expect("sparse");
    let problem = whole(&path).expect_err("too large");
    assert!(
        problem.contains("600 MB") && problem.contains("line and limit"),
        "{problem}"
    );
    assert_eq!(read(&path, Some(1), Some(1), &[]).as_deref(), Ok("first\n"));
    assert_eq!(
        read(&path, Some(2), Some(1), &[]).as_deref(),
        Ok("second\n")
    );
    let problem = read(&path, Some(3), Some(1), &[]).expect_err("one long line");
    assert!(problem.contains("16 MB"), "{problem}");
}

/// How many bytes this thread has read so far.
#[cfg(target_os = "linux")]
fn bytes_read() -> u64 {
    let counts = std::fs::read_to_string("/proc/thread-self/io").expect("counts");
    let count = counts.lines().find_map(|line| line.strip_prefix("rchar: "));
    count.expect("rchar").parse().expect("a number")
}

#[cfg(target_os = "linux")]
#[test]
fn of_a_large_file_no_more_is_read_or_kept_than_its_lines_take() {
    let dir = Dir::new();
    let path = dir.put("f", b"first\nsecond\n");
    let file = OpenOptions::new().append(true).open(&path).expect("open");
    file.set_len(40 * 1024 * 1024).expect("sparse");
    (&file).write_all(b"\nlast\n").expect("appended");
    file.set_len(200 * 1024 * 1024).expect("sparse");
    for (line, wanted, most) in [(1, "first\n", 1 << 20), (4, "last\n", 41 << 20)] {
        let before = bytes_read();
        assert_eq!(read(&path, Some(line), Some(1), &[]).as_deref(), Ok(wanted));
        let took = bytes_read() - before;
        assert!(took < most, "line {line} took {took} bytes");
    }
    let before = bytes_read();
    whole(&path).expect_err("too large");
    let took = bytes_read() - before;
    assert!(took < 1 << 20, "a refusal took {took} bytes");
}

#[test]
fn what_might_never_end_is_not_read_or_written() {
    let dir = Dir::new();
    let fifo = dir.at("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .expect("a pipe");
    symlink(&fifo, dir.at("link")).expect("link");
    for path in [
        &*fifo,
        &dir.at("link"),
        "/dev/zero",
        "/dev/tty",
        &dir.at("."),
    ] {
        for problem in [
            whole(path).expect_err("not read"),
            read(path, Some(1), Some(1), &[]).expect_err("not read"),
            write(path, "x", &[]).expect_err("not written"),
        ] {
            assert!(problem.starts_with(path), "{problem}");
        }
    }
    assert!(
        whole(&dir.at("nothing"))
            .expect_err("no file")
            .contains("nothing")
    );
}

/// Keeps swapping a pipe in for the file: opening it for reading would block until there is a writer.
#[test]
fn a_pipe_swapped_in_between_check_and_open_holds_nobody() {
    let dir = Dir::new();
    let path = dir.put("f", b"text\n");
    let (file, pipe) = (dir.put("file", b"text\n"), dir.at("pipe"));
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while done.load(Ordering::Relaxed) == 0 {
                let _ = rustix::fs::mknodat(
                    rustix::fs::CWD,
                    &pipe,
                    rustix::fs::FileType::Fifo,
                    0o600.into(),
                    0,
                );
                let _ = std::fs::rename(&pipe, &path);
                let _ = std::fs::write(&file, "text\n");
                let _ = std::fs::rename(&file, &path);
            }
        });
        for _ in 0..2000 {
            if let Ok(text) = whole(&path) {
                assert!(text.is_empty() || text == "text\n");
            }
        }
        done.store(1, Ordering::Relaxed);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn what_looks_like_a_file_is_read_and_never_written() {
    assert!(whole("/proc/self/status").expect("read").contains("Name:"));
    let problem = write("/proc/self/comm", "x", &[]).expect_err("not written");
    assert!(problem.contains("not a file on disk"), "{problem}");
}

#[test]
fn writes_keep_mode_and_links_and_make_directories() {
    let dir = Dir::new();
    write(&dir.at("new/deep/file"), "one", &[]).expect("written");
    dir.mode("new/deep/file", 0o755);
    symlink(dir.at("new/deep/file"), dir.at("link")).expect("link");
    write(&dir.at("link"), "two", &[]).expect("written");
    assert_eq!(whole(&dir.at("new/deep/file")).as_deref(), Ok("two"));
    assert!(
        std::fs::symlink_metadata(dir.at("link"))
            .expect("link")
            .is_symlink()
    );
    let meta = std::fs::metadata(dir.at("new/deep/file")).expect("meta");
    assert_eq!(meta.mode() & 0o777, 0o755);
}

#[test]
fn a_link_that_leads_nowhere_is_refused_and_kept() {
    let dir = Dir::new();
    symlink(dir.at("gone"), dir.at("link")).expect("link");
    let problem = write(&dir.at("link"), "x", &[]).expect_err("refused");
    assert!(problem.contains("a broken link"), "{problem}");
    assert_eq!(dir.names(), ["link"]);
}

#[test]
fn hard_links_and_attributes_are_kept() {
    let dir = Dir::new();
    let path = dir.put("a", b"a long text\n");
    std::fs::hard_link(&path, dir.at("b")).expect("link");
    for text in ["short\n", "a text that is longer than before\n", ""] {
        write(&path, text, &[]).expect("written");
        assert_eq!(dir.get("b"), text.as_bytes());
    }
    let path = dir.put("c", b"text\n");
    let flags = rustix::fs::XattrFlags::empty();
    if rustix::fs::setxattr(&path, "user.mine", b"1", flags).is_ok() {
        write(&path, "other\n", &[]).expect("written");
        let mut value = [0; 8];
        assert_eq!(
            rustix::fs::getxattr(&path, "user.mine", &mut value[..]),
            Ok(1)
        );
        assert_eq!(dir.get("c"), b"other\n");
    }
    assert_eq!(dir.names(), ["a", "b", "c"]);
}

#[test]
fn owner_and_group_are_kept() {
    let dir = Dir::new();
    let path = dir.put("f", b"text\n");
    if std::os::unix::fs::chown(&path, Some(4321), Some(4322)).is_ok() {
        dir.mode("f", 0o4640);
        write(&path, "other\n", &[]).expect("written");
        let meta = std::fs::metadata(&path).expect("meta");
        assert_eq!(
            (meta.uid(), meta.gid(), meta.mode() & 0o7777),
            (4321, 4322, 0o4640)
        );
    }
}

#[test]
fn a_read_only_file_stays_as_it_is() {
    let dir = Dir::new();
    let path = dir.put("f", b"text\n");
    dir.mode("f", 0o444);
    assert!(
        write(&path, "x", &[])
            .expect_err("refused")
            .contains("read-only")
    );
    assert_eq!(dir.get("f"), b"text\n");
}

#[test]
fn a_private_text_never_lies_beside_for_others_to_read() {
    let dir = Dir::new();
    let path = dir.put("secret", b"old\n");
    dir.mode("secret", 0o600);
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..200 {
                write(&path, "new secret\n", &[]).expect("written");
            }
            done.store(1, Ordering::Relaxed);
        });
        while done.load(Ordering::Relaxed) == 0 {
            for entry in std::fs::read_dir(dir.0.path())
                .expect("directory")
                .flatten()
            {
                if let Ok(meta) = entry.metadata() {
                    assert_eq!(meta.mode() & 0o077, 0, "{:?}", entry.path());
                }
            }
        }
    });
}

#[test]
fn a_link_planted_beside_a_file_is_not_followed() {
    let dir = Dir::new();
    for target in ["there", "not-there"] {
        let planted = dir.at("planted");
        std::fs::write(dir.at("there"), "kept").expect("written");
        symlink(dir.at(target), &planted).expect("link");
        assert!(create_beside(Path::new(&planted), 0o600).is_err());
        std::fs::remove_file(&planted).expect("removed");
    }
    assert_eq!(
        std::fs::read_to_string(dir.at("there")).expect("read"),
        "kept"
    );
    assert!(!Path::new(&dir.at("not-there")).exists());
}

#[test]
fn parallel_writes_do_not_mix_and_leave_nothing() {
    let dir = Dir::new();
    let path = dir.put("f", b"");
    let texts: Vec<String> = (0..8).map(|n| format!("{n}").repeat(200_000)).collect();
    std::thread::scope(|scope| {
        for text in &texts {
            scope.spawn(|| {
                for _ in 0..10 {
                    write(&path, text, &[]).expect("written");
                    let there = whole(&path).expect("read");
                    assert!(texts.contains(&there));
                }
            });
        }
    });
    assert_eq!(dir.names(), ["f"]);
}

#[test]
fn other_encodings_are_kept_or_refused() {
    let dir = Dir::new();
    let path = dir.put("f", b"caf\xe9\r\n");
    assert_eq!(whole(&path).as_deref(), Ok("café\r\n"));
    write(&path, "thé\r\n", &[]).expect("written");
    assert_eq!(dir.get("f"), b"th\xe9\r\n");
    assert!(
        write(&path, "20 €\n", &[])
            .expect_err("refused")
            .contains("has no “€” (line 1)")
    );
    assert_eq!(dir.get("f"), b"th\xe9\r\n");
    let path = dir.put("f", b"\xff\xfea\0\n\0");
    assert_eq!(whole(&path).as_deref(), Ok("a\n"));
    write(&path, "€\n", &[]).expect("written");
    assert_eq!(dir.get("f"), b"\xff\xfe\xac\x20\n\0");
    let path = dir.put("f", b"\x7fELF\0\0");
    assert!(
        whole(&path)
            .expect_err("refused")
            .contains("not a text file")
    );
    assert!(
        write(&path, "x", &[])
            .expect_err("refused")
            .contains("nothing was written")
    );
    assert_eq!(dir.get("f"), b"\x7fELF\0\0");
}

/// A full tmpfs takes the part of a disk that runs out of space; where it cannot be mounted, /dev/full makes the
/// write fail.
#[test]
fn a_full_disk_leaves_what_was_there() {
    let dir = Dir::new();
    std::fs::create_dir(dir.at("small")).expect("directory");
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "none", &dir.at("small")])
        .output()
        .is_ok_and(|output| output.status.success());
    let big = "x".repeat(200_000);
    if mounted {
        let tried = std::panic::catch_unwind(|| {
            let path = dir.put("small/f", b"text\n");
            assert!(write(&path, &big, &[]).is_err());
            assert_eq!(dir.get("small/f"), b"text\n");
            std::fs::hard_link(&path, dir.at("small/g")).expect("link");
            assert!(write(&path, &big, &[]).is_err());
            assert_eq!(dir.get("small/g"), b"text\n");
            assert!(write(&dir.at("small/new"), &big, &[]).is_err());
            let count = std::fs::read_dir(dir.at("small"))
                .expect("directory")
                .count();
            assert_eq!(count, 2, "nothing is left beside");
        });
        let _ = std::process::Command::new("umount")
            .args(["-l", &dir.at("small")])
            .status();
        assert!(tried.is_ok());
    } else {
        let full = OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("/dev/full");
        assert!(write_over(&full, b"old", b"newer").is_err());
    }
}

#[test]
fn a_missing_file_is_told_from_one_that_cannot_be_read() {
    let dir = Dir::new();
    let kind = |path: &str| {
        let error = super::read(path, None, None, &[]).expect_err("not read");
        error.of_file().kind
    };
    assert_eq!(kind(&dir.at("missing")), ErrorKind::NotFound);
    let file = dir.put("No such file or directory", b"\0");
    assert_eq!(kind(&file), ErrorKind::Other);
    assert_eq!(kind(&format!("{file}/below")), ErrorKind::NotADirectory);
}
