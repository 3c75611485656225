//! A child process: spawned in its own process group, with its pipes, its last stderr lines and its exit.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::task::Poll;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};

use engine::agents::agent::STDERR_LINES;
use engine::agents::launch::{Exit, Launch};

use crate::family::{self, Family};
use crate::pace::{self, Pace};

/// The most that is kept of an unfinished line of stderr.
const RAW_LINE_BYTES: usize = 64 * 1024;

/// Converts an exit status.
pub fn exit(status: Option<ExitStatus>, stderr: Vec<String>) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    Exit {
        code: status.and_then(|s| s.code()),
        signal: status.and_then(|s| s.signal()),
        stderr,
    }
}

/// Starts the program with all three pipes, as the leader of a new process group.
pub fn spawn(launch: &Launch, family: &Family) -> std::io::Result<Child> {
    command(launch, family)?
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

fn command(launch: &Launch, family: &Family) -> std::io::Result<Command> {
    let whole = launch.program.as_ref();
    let whole = whole.filter(|program| std::path::Path::new(program).exists());
    let given = whole.map_or(&launch.command[..], std::slice::from_ref);
    let Some((program, args)) = given.split_first() else {
        return Err(std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            "the command is empty",
        ));
    };
    if !std::path::Path::new(&launch.cwd).is_dir() {
        // Otherwise a missing directory would be reported like a missing program.
        return Err(std::io::Error::new(
            std::io::ErrorKind::NotADirectory,
            format!("no directory {}", launch.cwd),
        ));
    }
    let mut command = Command::new(program);
    command
        .args(args)
        .envs(&launch.env)
        .env(family::VARIABLE, family.value())
        .current_dir(&launch.cwd)
        .process_group(0)
        .kill_on_drop(true);
    Ok(command)
}

/// Starts a command without input, with stdout and stderr in one pipe so that their order is preserved.
pub fn spawn_merged(launch: &Launch, family: &Family) -> std::io::Result<(Child, Receiver)> {
    let (reader, writer) = std::io::pipe()?;
    pace::widen(&reader);
    let mut command = command(launch, family)?;
    command
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer);
    let child = command.spawn()?;
    // The command still holds the write ends: drop it so that the pipe closes with the child.
    drop(command);
    Ok((child, Receiver::from_owned_fd(reader.into())?))
}

/// Signals the whole group led by `pid`. Not an error if it is already gone.
pub fn signal_group(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(pid, signal);
    }
}

/// Whether any process is left in the group led by `pid`.
pub fn group_lives(pid: u32) -> bool {
    i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .is_some_and(|pid| test_kill_process_group(pid).is_ok())
}

/// The last lines of a stream. They may be long, and contain secrets.
#[derive(Debug, Default)]
pub struct Tail {
    lines: VecDeque<String>,
    part: Vec<u8>,
}

impl Tail {
    /// Takes a chunk; calls `line` with each line that is now complete.
    pub fn push(&mut self, mut bytes: &[u8], mut line: impl FnMut(&str)) {
        while let Some(at) = bytes.iter().position(|b| *b == b'\n') {
            self.grow(&bytes[..at]);
            self.end_line(&mut line);
            bytes = &bytes[at + 1..];
        }
        self.grow(bytes);
    }

    /// At EOF: the last lines, including an unfinished one.
    pub fn finish(mut self, mut line: impl FnMut(&str)) -> Vec<String> {
        if !self.part.is_empty() {
            self.end_line(&mut line);
        }
        self.lines.into()
    }

    fn grow(&mut self, bytes: &[u8]) {
        let room = RAW_LINE_BYTES.saturating_sub(self.part.len());
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

/// Waits for the end of a process's output. After it exits, a child of its own may hold the pipe open: then
/// only output within `grace` counts. Returns how it ended.
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
            // Something else may have reaped it: then only its output tells.
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

/// Reads a stream to EOF, handing out each chunk as it arrives.
pub async fn read_all(from: impl AsyncRead + Unpin, piece: impl FnMut(&[u8])) {
    read_when(from, || std::future::ready(()), piece).await;
}

/// Like `read_all`, but waits for `room` before each read.
pub async fn read_when<F: Future<Output = ()>>(
    mut from: impl AsyncRead + Unpin,
    room: impl Fn() -> F,
    mut piece: impl FnMut(&[u8]),
) {
    let mut buffer = vec![0; 64 * 1024];
    let mut pace = Pace::default();
    loop {
        room().await;
        pace.rest().await;
        let began = Instant::now();
        let read = from.read(&mut buffer).await;
        pace.note(began, read.as_ref().map_or(0, |bytes| *bytes), buffer.len());
        match read {
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
        tail.push(&vec![b'x'; 3 * RAW_LINE_BYTES], |_| seen += 1);
        let lines = tail.finish(|_| seen += 1);
        assert_eq!(lines.len(), STDERR_LINES);
        assert_eq!(lines[0], "line 6");
        assert!(lines[STDERR_LINES - 1].starts_with("\u{fffd}xxx"));
        assert!(lines[STDERR_LINES - 1].len() <= RAW_LINE_BYTES + 2);
        assert_eq!(seen, STDERR_LINES + 6);
    }
}
