//! One child process of ours: spawned in its own process group, its pipes, its last words, its end.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::task::Poll;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};

/// How many of the last stderr lines an error shows.
const STDERR_LINES: usize = 40;
/// A longer stderr line is cut.
const STDERR_LINE_BYTES: usize = 2000;

/// What to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Set on top of Neovim's own environment.
    pub env: BTreeMap<String, String>,
    /// Where it runs.
    pub cwd: String,
}

/// How a process ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code, when it exited by itself.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The last lines it wrote to stderr.
    pub stderr: Vec<String>,
}

impl Exit {
    /// Reads what the system says of the end.
    pub fn new(status: Option<ExitStatus>, stderr: Vec<String>) -> Self {
        use std::os::unix::process::ExitStatusExt;
        Self {
            code: status.and_then(|s| s.code()),
            signal: status.and_then(|s| s.signal()),
            stderr,
        }
    }

    /// "exit 1", "signal 9", or that nobody knows.
    pub fn describe(&self) -> String {
        match (self.code, self.signal) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "no exit status".to_owned(),
        }
    }
}

/// Starts the program with all three pipes, as the leader of a new process group.
pub fn spawn(launch: &Launch) -> std::io::Result<Child> {
    command(launch)?
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

fn command(launch: &Launch) -> std::io::Result<Command> {
    let Some((program, args)) = launch.command.split_first() else {
        return Err(std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            "the command is empty",
        ));
    };
    if !std::path::Path::new(&launch.cwd).is_dir() {
        // Without this the system's answer for a missing directory is that of a missing program.
        return Err(std::io::Error::new(
            std::io::ErrorKind::NotADirectory,
            format!("no directory {}", launch.cwd),
        ));
    }
    let mut command = Command::new(program);
    command
        .args(args)
        .envs(&launch.env)
        .current_dir(&launch.cwd)
        .process_group(0)
        .kill_on_drop(true);
    Ok(command)
}

/// Starts a command with nothing to read, and stdout and stderr in one pipe, so that their order is the real one.
pub fn spawn_merged(launch: &Launch) -> std::io::Result<(Child, Receiver)> {
    let (reader, writer) = std::io::pipe()?;
    let mut command = command(launch)?;
    command
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer);
    let child = command.spawn()?;
    // The command still holds the write ends: dropping it lets the pipe end with the child.
    drop(command);
    Ok((child, Receiver::from_owned_fd(reader.into())?))
}

/// Signals the whole group led by `pid`. One that is gone already is no error.
pub fn signal_group(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(pid, signal);
    }
}

/// Kills the group led by `pid`, and what its members started in groups of their own: shells of agents often do.
pub fn kill_tree(pid: u32) {
    // Found before anybody is killed: afterwards nobody knows whose children they were.
    let members = descendants(pid);
    signal_group(pid, Signal::KILL);
    for member in members {
        let _ = kill_process(member, Signal::KILL);
    }
}

/// The processes of a group and all that descend from them.
#[cfg(target_os = "linux")]
fn descendants(group: u32) -> Vec<Pid> {
    let numbers = |stat: &str| -> Option<(i32, i32)> {
        // The name, in parentheses, may hold anything: state, parent and group stand after its end.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(1);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    let all: Vec<(i32, i32, i32)> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let (parent, group) =
                numbers(&std::fs::read_to_string(entry.path().join("stat")).ok()?)?;
            Some((pid, parent, group))
        })
        .collect();
    let mut found: Vec<i32> = all
        .iter()
        .filter(|(_, _, of)| u32::try_from(*of) == Ok(group))
        .map(|(pid, ..)| *pid)
        .collect();
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        let children = all.iter().filter(|(_, of, _)| *of == parent);
        for (child, ..) in children {
            if !found.contains(child) {
                found.push(*child);
            }
        }
        at += 1;
    }
    found.into_iter().filter_map(Pid::from_raw).collect()
}

/// Elsewhere only the group is known.
#[cfg(not(target_os = "linux"))]
fn descendants(_group: u32) -> Vec<Pid> {
    Vec::new()
}

/// Whether anything is left of the group led by `pid`.
pub fn group_lives(pid: u32) -> bool {
    i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .is_some_and(|pid| test_kill_process_group(pid).is_ok())
}

/// The last lines of a stream, cut to a readable length.
#[derive(Debug, Default)]
pub struct Tail {
    lines: VecDeque<String>,
    part: Vec<u8>,
}

impl Tail {
    /// Takes what was read; calls `line` with each line that is complete now.
    pub fn push(&mut self, mut bytes: &[u8], mut line: impl FnMut(&str)) {
        while let Some(at) = bytes.iter().position(|b| *b == b'\n') {
            self.grow(&bytes[..at]);
            self.end_line(&mut line);
            bytes = &bytes[at + 1..];
        }
        self.grow(bytes);
    }

    /// The stream has ended: the last lines, an unfinished one included.
    pub fn finish(mut self, mut line: impl FnMut(&str)) -> Vec<String> {
        if !self.part.is_empty() {
            self.end_line(&mut line);
        }
        self.lines.into()
    }

    fn grow(&mut self, bytes: &[u8]) {
        let room = STDERR_LINE_BYTES.saturating_sub(self.part.len());
        self.part.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end_line(&mut self, line: &mut impl FnMut(&str)) {
        let text = String::from_utf8_lossy(&self.part).trim_end().to_owned();
        self.part.clear();
        line(&text);
        if !text.is_empty() {
            if self.lines.len() == STDERR_LINES {
                self.lines.pop_front();
            }
            self.lines.push_back(text);
        }
    }
}

/// Waits for the end of a process's output. One that has exited may have left it open to a child of its own: then
/// what comes within `grace` is all there is, and how it ended is told.
pub async fn until_gone(
    child: &mut Child,
    reading: impl Future<Output = ()>,
    grace: Duration,
) -> Option<ExitStatus> {
    let mut reading = pin!(reading);
    let mut waiting = pin!(child.wait());
    let mut waits = true;
    let exited = poll_fn(|context| {
        if reading.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        match waits.then(|| waiting.as_mut().poll(context)) {
            Some(Poll::Ready(Ok(status))) => return Poll::Ready(Some(status)),
            // Somebody else may have been told of its end: then only its output tells.
            Some(Poll::Ready(Err(_))) => waits = false,
            Some(Poll::Pending) | None => {}
        }
        Poll::Pending
    })
    .await;
    if exited.is_some() {
        let _ = tokio::time::timeout(grace, reading).await;
    }
    exited
}

/// Reads a stream to its end, handing out each piece as it comes.
pub async fn read_all(mut from: impl AsyncRead + Unpin, mut piece: impl FnMut(&[u8])) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match from.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(n) => piece(&buffer[..n]),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn tail_keeps_the_last_lines_cut_and_lossy() {
        let mut tail = Tail::default();
        let mut seen = 0;
        for n in 0..STDERR_LINES + 5 {
            tail.push(b"li", |_| seen += 1);
            tail.push(format!("ne {n}\r\n").as_bytes(), |_| seen += 1);
        }
        tail.push(b"\xff", |_| seen += 1);
        tail.push(&vec![b'x'; 3 * STDERR_LINE_BYTES], |_| seen += 1);
        let lines = tail.finish(|_| seen += 1);
        assert_eq!(lines.len(), STDERR_LINES);
        assert_eq!(lines[0], "line 6");
        assert!(lines[STDERR_LINES - 1].starts_with("\u{fffd}xxx"));
        assert!(lines[STDERR_LINES - 1].len() <= STDERR_LINE_BYTES + 2);
        assert_eq!(seen, STDERR_LINES + 6);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn killing_a_tree_reaches_the_groups_of_its_members() {
        use std::io::{BufRead, BufReader};
        use std::os::unix::process::CommandExt;
        use std::time::{Duration, Instant};

        // The inner shell leads a group of its own, as the shells of agents do, and says who it is.
        let script = "setsid sh -c 'echo $$; exec sleep 100 2>/dev/null' & wait";
        let mut child = std::process::Command::new("sh")
            .args(["-c", script])
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut said)
            .unwrap();
        let inner: u32 = said.trim().parse().unwrap();
        assert!(group_lives(inner));
        kill_tree(child.id());
        child.wait().unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        while group_lives(inner) {
            assert!(Instant::now() < until, "{inner} still runs");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn exits_are_described() {
        let exit = |code, signal| {
            Exit {
                code,
                signal,
                stderr: Vec::new(),
            }
            .describe()
        };
        assert_eq!(exit(Some(3), None), "exit 3");
        assert_eq!(exit(None, Some(9)), "signal 9");
        assert_eq!(exit(None, None), "no exit status");
    }
}
