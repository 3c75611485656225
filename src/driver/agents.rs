//! An agent's process: its pipes, from the first line to the last, and its exit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use acp::framing::{Frame, LineBuffer, MAX_LINE_BYTES};
use acp::message::Message;
use engine::agents::launch::Launch;
use engine::ids::Proc;
use rustix::process::Signal;

use super::Driver;
use super::child::{Child, STDERR_WAIT, TERM_TO_KILL, await_family, signal_family};
use crate::family::Family;
use crate::pace;
use crate::process::{self, Tail};
use crate::stdin;

/// How long a process may take to exit once its stdout has closed.
const EXIT_WAIT: Duration = Duration::from_secs(1);
/// How long reading from an agent pauses while the review looks at what a call changed.
const LOOK_WAIT: Duration = Duration::from_secs(1);

impl Driver {
    pub(super) async fn run_agent(
        &self,
        proc: Proc,
        launch: Launch,
        family: &Family,
        lines: stdin::Receiver,
    ) {
        let mut child = match process::spawn(&launch, family) {
            Ok(child) => child,
            Err(error) => {
                self.forget_agent(proc);
                self.with(|engine| engine.on_spawn_error(proc, &error));
                return;
            }
        };
        let pid = child.id();
        if let Some(pid) = pid {
            self.shared.keeper.watch(pid);
        }
        let doomed = {
            let mut state = self.shared.state.lock();
            let entry = state.agents.get_mut(&proc);
            entry.is_some_and(|entry| {
                entry.pid = pid;
                entry.since = Some(Instant::now());
                entry.doomed
            })
        };
        if let Some(pid) = pid.filter(|_| doomed) {
            process::signal_group(pid, Signal::TERM);
        }
        let waiting = lines.waiting();
        if let Some(stdin) = child.stdin.take() {
            let driver = self.clone();
            tokio::spawn(async move {
                let stalled = |bytes| driver.with(|engine| engine.on_stalled(proc, bytes));
                if lines.write_to(stdin, stalled).await == stdin::End::Lost {
                    // A process that exits closes all of its pipes; then its exit is reported instead.
                    tokio::time::sleep(EXIT_WAIT).await;
                    driver.with(|engine| engine.on_pipe_closed(proc, "stdin"));
                }
            });
        }
        let stderr = child.stderr.take().map(|stderr| {
            let driver = self.clone();
            tokio::spawn(async move {
                let mut tail = Tail::default();
                let tell = |line: &str| driver.with(|engine| engine.on_stderr(proc, line));
                process::read_all(stderr, |piece| tail.push(piece, tell)).await;
                tail.finish(tell)
            })
        });
        let mut exited = None;
        if let Some(stdout) = child.stdout.take() {
            pace::widen(&stdout);
            let mut buffer = LineBuffer::new(MAX_LINE_BYTES);
            let reading = process::read_when(
                stdout,
                || waiting.room(),
                |piece| {
                    buffer.push(piece);
                    while let Some(frame) = buffer.next_frame() {
                        self.on_frame(proc, frame);
                    }
                },
            );
            exited = process::until_gone(&mut child, reading, STDERR_WAIT).await;
            if let Some(frame) = buffer.finish() {
                self.on_frame(proc, frame);
            }
        }
        // Stdout has closed: to the protocol the agent is gone, whatever the process still does.
        let status = match tokio::time::timeout(EXIT_WAIT, child.wait()).await {
            Ok(status) => status.ok().or(exited),
            Err(_) => {
                self.with(|engine| engine.on_pipe_closed(proc, "stdout"));
                signal_family(pid, family.clone(), Signal::KILL).await;
                child.wait().await.ok()
            }
        };
        signal_family(pid, family.clone(), Signal::TERM).await;
        let stderr = match stderr {
            Some(mut task) => match tokio::time::timeout(STDERR_WAIT, &mut task).await {
                Ok(lines) => lines.unwrap_or_default(),
                Err(_) => {
                    task.abort();
                    self.with(|engine| engine.stderr_tail(proc))
                }
            },
            None => Vec::new(),
        };
        self.with(|engine| engine.on_exit(proc, &process::exit(status, stderr)));
        if let Some(pid) = pid {
            await_family(pid, family).await;
            self.shared.keeper.forget(pid);
        }
        self.forget_agent(proc);
    }

    /// Parses outside the lock. A panic in one message must not end the stream.
    fn on_frame(&self, proc: Proc, frame: Frame) {
        let taken = catch_unwind(AssertUnwindSafe(|| match frame {
            Frame::TooLong { bytes } => self.with(|engine| engine.on_too_long(proc, bytes)),
            Frame::Line(line) => {
                let messages = Message::parse_all(line);
                let is_answer = |message| matches!(message, &Ok(Message::Response { .. }));
                // When the end of a turn is reported, its changes must already be in the review.
                if messages.iter().any(is_answer)
                    && self.shared.unlooked.swap(false, Ordering::AcqRel)
                {
                    let looked = self.shared.review.barrier();
                    tokio::task::block_in_place(|| looked.recv_timeout(LOOK_WAIT).ok());
                }
                let ((), look) = self.with_look(|engine| engine.on_line(proc, line, messages));
                if let Some(look) = look {
                    tokio::task::block_in_place(|| look.recv_timeout(LOOK_WAIT).ok());
                }
            }
        }));
        if taken.is_err() {
            crate::log::write(
                "error",
                "a message from the agent could not be handled: see the panic above",
            );
        }
    }

    /// Ends an agent: closes its stdin, and ends what is left after a while by force.
    pub(super) async fn end_agent(&self, proc: Proc, grace_ms: u64, stdin: Option<stdin::Sender>) {
        let handle = || {
            let state = self.shared.state.lock();
            state.agents.get(&proc).map(Child::handle)
        };
        // A process without our mark is only found while its parents live.
        let before = match handle() {
            Some((pid, family)) => {
                let leaders: Vec<u32> = pid.into_iter().collect();
                tokio::task::spawn_blocking(move || family.members(&leaders)).await
            }
            None => Ok(Vec::new()),
        };
        drop(stdin);
        for (wait, kind) in [
            (Duration::from_millis(grace_ms), Signal::TERM),
            (TERM_TO_KILL, Signal::KILL),
        ] {
            tokio::time::sleep(wait).await;
            if let Some((pid, family)) = handle() {
                signal_family(pid, family, kind).await;
            }
            for member in before.iter().flatten() {
                member.signal(kind);
            }
        }
    }

    fn forget_agent(&self, proc: Proc) {
        self.shared.state.lock().agents.remove(&proc);
        self.shared.ended.notify_all();
    }
}
