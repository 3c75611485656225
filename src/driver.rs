//! Carries out what the engine wants: processes, pipes, timers, files, terminals, all on the one tokio runtime.
//!
//! The engine sits behind one lock. Whoever holds it, the main thread or a task here, holds it for
//! microseconds: parsing is done before it is taken and IO after it is given back.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use acp::framing::{Frame, LineBuffer, MAX_LINE_BYTES};
use acp::message::Message;
use parking_lot::{Condvar, Mutex};
use rustix::process::Signal;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::disk;
use crate::effect::{DiskOp, Effect, Timer};
use crate::engine::{Engine, Now};
use crate::ids::Proc;
use crate::keeper::Keeper;
use crate::outbox::Wake;
use crate::process::{self, Exit, Launch, Tail};

/// Changes are shown at most once a frame.
const FRAME_MS: u64 = 16;
/// How long a process whose stdout has ended may take to exit.
const EXIT_WAIT: Duration = Duration::from_secs(1);
/// How long the last stderr lines may take after that; a grandchild can hold the pipe open for ever.
const STDERR_WAIT: Duration = Duration::from_millis(200);
/// How long a short command such as `agent status` may run.
const ASK_WAIT: Duration = Duration::from_secs(10);
/// Between the polite signal and the other one.
const TERM_TO_KILL: Duration = Duration::from_millis(500);
/// How long what a dead agent left in its group may take to end after the polite signal.
const LEFTOVER_WAIT: Duration = Duration::from_secs(2);
/// How often is looked whether it did.
const LEFTOVER_POLL: Duration = Duration::from_millis(10);

/// Owns the runtime and the engine. Cheap to clone; the runtime lives until `shutdown`.
#[derive(Clone)]
pub struct Driver {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// A process ended.
    ended: Condvar,
    keeper: Keeper,
    runtime: Mutex<Option<Runtime>>,
    handle: tokio::runtime::Handle,
    waker: Box<dyn Fn() + Send + Sync>,
    /// A wake-up is on its way.
    wake_pending: AtomicBool,
    /// When the editor was woken last, milliseconds since `started`.
    woken_ms: AtomicU64,
    started: Instant,
}

struct State {
    engine: Engine,
    agents: HashMap<Proc, Child>,
    terminals: HashMap<u64, Child>,
}

/// What is held of a running process.
#[derive(Default)]
struct Child {
    /// Lines for its stdin; dropped to close it.
    stdin: Option<UnboundedSender<Vec<u8>>>,
    /// Its process group, once it runs.
    pid: Option<u32>,
    /// It was told to end before it had started, or is of no use to anybody any more.
    doomed: bool,
    /// It ended; what it left in the background may still be there.
    exited: bool,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

impl Driver {
    /// Starts the runtime. `waker` is called, from any thread, when the editor should drain.
    pub fn start(waker: impl Fn() + Send + Sync + 'static) -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("cursor-agent")
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        Ok(Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    engine: Engine::default(),
                    agents: HashMap::new(),
                    terminals: HashMap::new(),
                }),
                ended: Condvar::new(),
                keeper: Keeper::default(),
                runtime: Mutex::new(Some(runtime)),
                handle,
                waker: Box::new(waker),
                wake_pending: AtomicBool::new(false),
                woken_ms: AtomicU64::new(0),
                started: Instant::now(),
            }),
        })
    }

    /// Lets `f` work on the engine, then does what came of it, in order.
    pub fn with<R>(&self, f: impl FnOnce(&mut Engine) -> R) -> R {
        let mut state = self.shared.state.lock();
        state.engine.set_now(self.now());
        let result = f(&mut state.engine);
        // Under the lock, so that lines are written in the order they were decided on.
        for effect in state.engine.take_effects() {
            self.perform(&mut state, effect);
        }
        let wake = state.engine.take_wake();
        drop(state);
        self.wake(wake);
        result
    }

    /// The editor begins to drain: what comes from now on needs another wake-up.
    pub fn draining(&self) {
        self.shared.wake_pending.store(false, Ordering::Release);
    }

    /// Ends everything: asks politely, waits at most `grace`, then kills. For the editor's exit.
    pub fn shutdown(&self, grace: Duration) {
        let until = Instant::now() + grace;
        self.with(Engine::shutdown);
        let mut state = self.shared.state.lock();
        for terminal in state.terminals.values() {
            signal(terminal, Signal::KILL);
        }
        while !state.agents.is_empty() {
            if self.shared.ended.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
        for pid in state.agents.values().filter_map(|agent| agent.pid) {
            process::kill_tree(pid);
            self.shared.keeper.forget(pid);
        }
        for pid in state.terminals.values().filter_map(|terminal| terminal.pid) {
            self.shared.keeper.forget(pid);
        }
        drop(state);
        if let Some(runtime) = self.shared.runtime.lock().take() {
            runtime.shutdown_timeout(Duration::from_millis(100));
        }
    }

    fn now(&self) -> Now {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Now {
            mono_ms: millis(self.shared.started.elapsed()),
            wall_ms: millis(wall),
        }
    }

    fn wake(&self, wake: Wake) {
        let shared = &self.shared;
        match wake {
            Wake::None => {}
            Wake::Now => {
                shared
                    .woken_ms
                    .store(millis(shared.started.elapsed()), Ordering::Relaxed);
                (shared.waker)();
            }
            Wake::Soon => {
                if shared.wake_pending.swap(true, Ordering::AcqRel) {
                    return;
                }
                let since = millis(shared.started.elapsed())
                    .saturating_sub(shared.woken_ms.load(Ordering::Relaxed));
                let driver = self.clone();
                let left = Duration::from_millis(FRAME_MS.saturating_sub(since));
                shared.handle.spawn(async move {
                    tokio::time::sleep(left).await;
                    driver.wake(Wake::Now);
                });
            }
        }
    }

    fn perform(&self, state: &mut State, effect: Effect) {
        match effect {
            Effect::Spawn { proc, launch } => {
                let (stdin, lines) = unbounded_channel();
                state.agents.insert(
                    proc,
                    Child {
                        stdin: Some(stdin),
                        ..Child::default()
                    },
                );
                self.spawn(|driver| async move { driver.run_agent(proc, launch, lines).await });
            }
            Effect::Write { proc, line } => {
                if let Some(stdin) = state
                    .agents
                    .get(&proc)
                    .and_then(|child| child.stdin.as_ref())
                {
                    // The process may be gone; its end is told by its stdout.
                    let _ = stdin.send(line);
                }
            }
            Effect::End { proc, grace_ms } => {
                if let Some(child) = state.agents.get_mut(&proc) {
                    child.stdin = None;
                    child.doomed |= child.pid.is_none();
                    self.spawn(move |driver| async move { driver.end_agent(proc, grace_ms).await });
                }
            }
            Effect::After { ms, timer } => self.after(ms, timer),
            Effect::Ask { proc, launch } => self.spawn(move |driver| async move {
                let said = ask(&launch).await;
                driver.with(|engine| engine.on_asked(proc, said));
            }),
            Effect::Disk { request, op } => self.spawn(move |driver| async move {
                let done = tokio::task::spawn_blocking(move || match op {
                    DiskOp::Read { path, line, limit } => disk::read(&path, line, limit),
                    DiskOp::Write { path, content } => {
                        disk::write(&path, &content).map(|()| String::new())
                    }
                });
                let done = done.await.unwrap_or_else(|error| Err(error.to_string()));
                driver.with(|engine| engine.on_disk(request, done));
            }),
            Effect::Diff(job) => self.spawn(move |driver| async move {
                let job = tokio::task::spawn_blocking(move || {
                    let diff = job.run();
                    (job, diff)
                });
                if let Ok((job, diff)) = job.await {
                    driver.with(|engine| engine.on_diff(&job, diff));
                }
            }),
            Effect::StartTerminal { terminal, launch } => {
                state.terminals.insert(terminal, Child::default());
                self.spawn(
                    move |driver| async move { driver.run_terminal(terminal, launch).await },
                );
            }
            Effect::KillTerminal { terminal } => {
                if let Some(child) = state.terminals.get_mut(&terminal) {
                    child.doomed |= child.pid.is_none();
                    signal(child, Signal::TERM);
                    self.spawn(move |driver| async move {
                        tokio::time::sleep(TERM_TO_KILL).await;
                        if let Some(child) = driver.shared.state.lock().terminals.get(&terminal) {
                            signal(child, Signal::KILL);
                        }
                    });
                }
            }
            Effect::ReleaseTerminal { terminal } => {
                if let Some(child) = state.terminals.get_mut(&terminal) {
                    child.doomed = true;
                    signal(child, Signal::KILL);
                    if child.exited {
                        let pid = child.pid;
                        state.terminals.remove(&terminal);
                        pid.inspect(|pid| self.shared.keeper.forget(*pid));
                    }
                }
            }
        }
    }

    fn spawn<F>(&self, task: impl FnOnce(Self) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.shared.handle.spawn(task(self.clone()));
    }

    fn after(&self, ms: u64, timer: Timer) {
        self.spawn(move |driver| async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            driver.with(|engine| engine.on_timer(timer));
        });
    }

    async fn run_agent(&self, proc: Proc, launch: Launch, lines: UnboundedReceiver<Vec<u8>>) {
        let mut child = match process::spawn(&launch) {
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
        {
            let mut state = self.shared.state.lock();
            if let Some(entry) = state.agents.get_mut(&proc) {
                entry.pid = pid;
                if entry.doomed {
                    signal(entry, Signal::TERM);
                }
            }
        }
        if let Some(stdin) = child.stdin.take() {
            tokio::spawn(write_lines(stdin, lines));
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
            let mut buffer = LineBuffer::new(MAX_LINE_BYTES);
            let reading = process::read_all(stdout, |piece| {
                buffer.push(piece);
                while let Some(frame) = buffer.next_frame() {
                    self.take_frame(proc, frame);
                }
            });
            exited = process::until_gone(&mut child, reading, STDERR_WAIT).await;
            if let Some(frame) = buffer.finish() {
                self.take_frame(proc, frame);
            }
        }
        // Stdout has ended: for the protocol the agent is gone, whatever the process still does.
        let status = match tokio::time::timeout(EXIT_WAIT, child.wait()).await {
            Ok(status) => status.ok().or(exited),
            Err(_) => {
                if let Some(pid) = pid {
                    process::kill_tree(pid);
                }
                child.wait().await.ok()
            }
        };
        if let Some(pid) = pid {
            process::signal_group(pid, Signal::TERM);
        }
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
        self.with(|engine| engine.on_exit(proc, &Exit::new(status, stderr)));
        if let Some(pid) = pid {
            await_group(pid).await;
            self.shared.keeper.forget(pid);
        }
        self.forget_agent(proc);
    }

    /// Parses outside the lock. A panic over one message must not end the stream of the others.
    fn take_frame(&self, proc: Proc, frame: Frame) {
        let taken = catch_unwind(AssertUnwindSafe(|| match frame {
            Frame::TooLong { bytes } => self.with(|engine| engine.on_too_long(proc, bytes)),
            Frame::Line(line) => {
                let messages = Message::parse_all(line);
                self.with(|engine| engine.on_line(proc, line, messages));
            }
        }));
        if taken.is_err() {
            crate::log::write(
                "error",
                "a message from the agent could not be handled: see the panic above",
            );
        }
    }

    async fn end_agent(&self, proc: Proc, grace_ms: u64) {
        for (wait, kind) in [
            (Duration::from_millis(grace_ms), Signal::TERM),
            (TERM_TO_KILL, Signal::KILL),
        ] {
            tokio::time::sleep(wait).await;
            match self.shared.state.lock().agents.get(&proc) {
                Some(Child { pid: Some(pid), .. }) if kind == Signal::KILL => {
                    process::kill_tree(*pid);
                }
                Some(child) => signal(child, kind),
                None => return,
            }
        }
    }

    fn forget_agent(&self, proc: Proc) {
        self.shared.state.lock().agents.remove(&proc);
        self.shared.ended.notify_all();
    }

    async fn run_terminal(&self, terminal: u64, launch: Launch) {
        let exit = match process::spawn_merged(&launch) {
            Err(error) => {
                let message = format!("{}: {error}\n", launch.command.join(" "));
                self.with(|engine| engine.on_terminal_output(terminal, message.as_bytes()));
                // What a shell answers for a command it cannot run.
                Exit {
                    code: Some(127),
                    ..Exit::default()
                }
            }
            Ok((mut child, output)) => {
                if let Some(pid) = child.id() {
                    self.shared.keeper.watch(pid);
                }
                if let Some(entry) = self.shared.state.lock().terminals.get_mut(&terminal) {
                    entry.pid = child.id();
                    if entry.doomed {
                        signal(entry, Signal::KILL);
                    }
                }
                let reader = self.clone();
                let mut read = tokio::spawn(async move {
                    process::read_all(output, |piece| {
                        reader.with(|engine| engine.on_terminal_output(terminal, piece));
                    })
                    .await;
                });
                let status = child.wait().await.ok();
                // A process it left in the background can hold the pipe open: what is read by now is the output.
                let _ = tokio::time::timeout(STDERR_WAIT, &mut read).await;
                Exit::new(status, Vec::new())
            }
        };
        self.with(|engine| engine.on_terminal_exit(terminal, &exit));
        let mut state = self.shared.state.lock();
        if let Some(child) = state.terminals.get_mut(&terminal) {
            // What it left in the background is killed on release; a group that is gone must not be mistaken for
            // a later one with its number.
            child.exited = true;
            let pid = child.pid;
            child.pid = pid.filter(|pid| process::group_lives(*pid));
            if child.doomed || child.pid.is_none() {
                state.terminals.remove(&terminal);
                // All of the group is dead, even if the system has not taken note of that yet.
                pid.inspect(|pid| self.shared.keeper.forget(*pid));
            }
        }
    }
}

/// Waits for the rest of a group whose leader has ended and that was told to end; kills it when it does not.
async fn await_group(pid: u32) {
    let until = Instant::now() + LEFTOVER_WAIT;
    while process::group_lives(pid) {
        if Instant::now() >= until {
            return process::kill_tree(pid);
        }
        tokio::time::sleep(LEFTOVER_POLL).await;
    }
}

fn signal(child: &Child, kind: Signal) {
    if let Some(pid) = child.pid {
        process::signal_group(pid, kind);
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Writes lines until there will be no more, then closes the pipe. Lines that wait go out in one write.
async fn write_lines(mut stdin: ChildStdin, mut lines: UnboundedReceiver<Vec<u8>>) {
    let mut batch = Vec::new();
    while let Some(line) = lines.recv().await {
        batch.extend_from_slice(&line);
        while let Ok(line) = lines.try_recv() {
            batch.extend_from_slice(&line);
        }
        if stdin.write_all(&batch).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
        batch.clear();
    }
}

/// Runs a short command; what it printed, or None when it cannot be run or does not end.
async fn ask(launch: &Launch) -> Option<String> {
    let mut child = process::spawn(launch).ok()?;
    drop(child.stdin.take());
    let pid = child.id();
    let output = tokio::time::timeout(ASK_WAIT, child.wait_with_output()).await;
    if let Some(pid) = pid {
        process::signal_group(pid, Signal::KILL);
    }
    let output = output.ok()?.ok()?;
    Some(format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::agent::AgentSpec;
    use crate::session::Wanted;

    use super::*;

    fn wait_for(what: impl Fn() -> bool) -> bool {
        let until = Instant::now() + Duration::from_secs(10);
        while !what() {
            if Instant::now() > until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// An agent that ends at EOF and leaves a process behind that does not care for SIGTERM.
    fn with_leftover(driver: &Driver) -> u32 {
        let script =
            "(trap '' TERM; exec sleep 1000) </dev/null >/dev/null 2>&1 & read line; read line";
        let spec = AgentSpec {
            command: ["sh", "-c", script].map(str::to_owned).to_vec(),
            cwd: "/".to_owned(),
            ..AgentSpec::default()
        };
        driver
            .with(|engine| engine.open(spec, Wanted::default()))
            .unwrap();
        let pid = || {
            let state = driver.shared.state.lock();
            state.agents.values().next().and_then(|agent| agent.pid)
        };
        assert!(wait_for(|| pid().is_some()));
        pid().unwrap()
    }

    #[test]
    fn at_exit_what_an_agent_left_in_its_group_is_killed_in_time() {
        let driver = Driver::start(|| {}).unwrap();
        let group = with_leftover(&driver);
        let started = Instant::now();
        driver.shutdown(Duration::from_millis(300));
        // Not as long as what was left there would have taken.
        assert!(started.elapsed() < Duration::from_secs(10));
        assert!(wait_for(|| !process::group_lives(group)));
    }

    #[test]
    fn what_an_agent_left_in_its_group_is_killed_when_it_stops() {
        let driver = Driver::start(|| {}).unwrap();
        let group = with_leftover(&driver);
        let key = driver.with(|engine| *engine.sessions.keys().next().unwrap());
        driver.with(|engine| engine.stop(key)).unwrap();
        assert!(wait_for(|| !process::group_lives(group)));
        assert!(wait_for(|| driver.shared.state.lock().agents.is_empty()));
        driver.shutdown(Duration::from_millis(300));
    }

    #[test]
    fn of_a_released_terminal_nothing_is_kept() {
        let driver = Driver::start(|| {}).unwrap();
        for terminal in 0..20 {
            let launch = Launch {
                command: ["sh", "-c", "sleep 1000 & sleep 1000 & wait"]
                    .map(str::to_owned)
                    .to_vec(),
                cwd: "/".to_owned(),
                ..Launch::default()
            };
            let perform = |effect| driver.perform(&mut driver.shared.state.lock(), effect);
            perform(Effect::StartTerminal { terminal, launch });
            let runs = || {
                driver.shared.state.lock().terminals[&terminal]
                    .pid
                    .is_some()
            };
            assert!(wait_for(runs));
            perform(Effect::ReleaseTerminal { terminal });
        }
        assert!(wait_for(|| driver.shared.state.lock().terminals.is_empty()));
        driver.shutdown(Duration::from_millis(300));
    }
}
