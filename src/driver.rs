//! Carries out what the engine wants: processes, pipes, timers, files, terminals, all on the one tokio runtime.
//!
//! The engine sits behind one lock. Whoever holds it, the main thread or a task here, holds it for
//! microseconds: parsing is done before it is taken and IO after it is given back.

use std::collections::{HashMap, HashSet, VecDeque};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use acp::framing::{Frame, LineBuffer, MAX_LINE_BYTES};
use acp::message::Message;
use crossbeam_channel::Receiver;
use parking_lot::{Condvar, Mutex};
use rustix::process::Signal;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use crate::context;
use crate::disk;
use crate::errand::{self, Errand, Outcome};
use crate::error::{Error, Problem};
use crate::family::{Families, Family};
use crate::keeper::Keeper;
use crate::known_secrets;
use crate::links;
use crate::memory::{Asked, Memory, Source};
use crate::process::{self, Tail};
use crate::processes::Running;
use crate::review::Review;
use crate::stdin;
use engine::agents::env::Env;
use engine::agents::launch::{Exit, Launch};
use engine::effect::{DiskOp, Effect, Timer};
use engine::ids::{EditorId, Proc, ResultId};
use engine::policy::{Judged, paths};
use engine::screen::outbox::Wake;
use engine::secrets::Secrets;
use engine::{Engine, Now};

/// Changes are shown at most once a frame.
const FRAME_MS: u64 = 16;
/// How long a process whose stdout has ended may take to exit.
const EXIT_WAIT: Duration = Duration::from_secs(1);
/// How long the last stderr lines may take after that; a grandchild can hold the pipe open for ever.
const STDERR_WAIT: Duration = Duration::from_millis(200);
/// How long a session waits for the files that name its MCP servers.
const MCP_WAIT: Duration = Duration::from_secs(3);
/// How long a prompt may wait until files are kept as they are.
const HOLD_WAIT: Duration = Duration::from_millis(300);
/// How long an agent may wait to be heard until it was looked what a call changed.
const LOOK_WAIT: Duration = Duration::from_secs(1);
/// How long the last words may take to be written when Neovim leaves.
const MEMORY_WAIT: Duration = Duration::from_millis(150);
/// Between the polite signal and the other one.
const TERM_TO_KILL: Duration = Duration::from_millis(500);
/// How long what a dead agent left in its group may take to end after the polite signal.
const LEFTOVER_WAIT: Duration = Duration::from_secs(2);
/// How often is looked whether it did, and whether what left its group did.
const LEFTOVER_POLL: Duration = Duration::from_millis(10);
const FAMILY_POLL: Duration = Duration::from_millis(100);

/// Owns the runtime and the engine. Cheap to clone; the runtime lives until `shutdown`.
#[derive(Clone)]
pub struct Driver {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// A process ended.
    ended: Condvar,
    families: Families,
    keeper: Keeper,
    review: Review,
    memory: Memory,
    runtime: Mutex<Option<Runtime>>,
    handle: tokio::runtime::Handle,
    waker: Box<dyn Fn() + Send + Sync>,
    /// A wake-up is on its way.
    wake_pending: AtomicBool,
    /// When the editor was woken last, milliseconds since `started`.
    woken_ms: AtomicU64,
    started: Instant,
}

/// What the thread that writes conversations down asks.
struct Writing(Arc<OnceLock<Weak<Shared>>>);

impl Writing {
    fn driver(&self) -> Option<Driver> {
        let shared = self.0.get().and_then(Weak::upgrade)?;
        Some(Driver { shared })
    }
}

impl Source for Writing {
    fn take(&self) -> (Vec<engine::sessions::memory::Noted>, bool) {
        let driver = self.driver();
        driver.map_or_else(Default::default, |driver| driver.with(Engine::take_memory))
    }

    fn tell(&self, message: String) {
        if let Some(driver) = self.driver() {
            driver.with(|engine| engine.on_memory_trouble(message));
        }
    }
}

struct State {
    engine: Engine,
    /// What is to be done with each file, in the order it was asked for. The first is being done and was taken out.
    disk: HashMap<String, VecDeque<Option<DiskJob>>>,
    agents: HashMap<Proc, Child>,
    terminals: HashMap<u64, Child>,
    /// The groups of commands that are run for what they print.
    errands: HashSet<u32>,
}

struct DiskJob {
    request: EditorId,
    op: DiskOp,
    /// Where its path led when it was judged.
    real: Option<String>,
    encodings: Vec<String>,
}

/// What is held of a running process.
#[derive(Default)]
struct Child {
    /// Lines for its stdin; dropped to close it.
    stdin: Option<stdin::Sender>,
    /// Lines that wait until the review has kept the files as they are.
    held: Option<Vec<Vec<u8>>>,
    /// How many hold them back.
    holds: usize,
    /// Its process group, once it runs.
    pid: Option<u32>,
    /// Since when.
    since: Option<Instant>,
    /// All that descends from it.
    family: Family,
    /// It was told to end before it had started, or is of no use to anybody any more.
    doomed: bool,
    /// It ended; what it left in the background may still be there.
    exited: bool,
}

impl Child {
    /// Writes a line, or keeps it while lines are held back.
    fn write(&mut self, line: Vec<u8>) {
        if let Some(held) = &mut self.held {
            held.push(line);
        } else if let Some(stdin) = &self.stdin {
            stdin.send(line);
        }
    }

    /// Writes what was held back, once nothing holds it any more.
    fn release(&mut self) {
        self.holds = self.holds.saturating_sub(1);
        if self.holds > 0 {
            return;
        }
        for line in self.held.take().unwrap_or_default() {
            self.write(line);
        }
    }
}

/// What is done when the lock is given back, in order.
enum Later {
    /// To a process group.
    Signal(u32, Signal),
    Hide(Secrets),
    Log {
        level: &'static str,
        text: String,
    },
}

impl Later {
    fn run(self) {
        match self {
            Self::Signal(group, kind) => process::signal_group(group, kind),
            Self::Hide(secrets) => known_secrets::hide(&secrets),
            Self::Log { level, text } => crate::log::write(level, &text),
        }
    }
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
        let families = Families::default();
        let itself: Arc<OnceLock<Weak<Shared>>> = Arc::default();
        let driver = itself.clone();
        let review = Review::start(move |report| {
            if let Some(shared) = driver.get().and_then(Weak::upgrade) {
                Self { shared }.with(|engine| engine.on_review(report));
            }
        })?;
        let memory = Memory::start(Writing(itself.clone()))?;
        let driver = Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    engine: Engine::new(Env::new(known_secrets::own_env)),
                    disk: HashMap::new(),
                    agents: HashMap::new(),
                    terminals: HashMap::new(),
                    errands: HashSet::new(),
                }),
                ended: Condvar::new(),
                keeper: Keeper::new(families.id()),
                families,
                review,
                memory,
                runtime: Mutex::new(Some(runtime)),
                handle,
                waker: Box::new(waker),
                wake_pending: AtomicBool::new(false),
                woken_ms: AtomicU64::new(0),
                started: Instant::now(),
            }),
        };
        let _ = itself.set(Arc::downgrade(&driver.shared));
        Ok(driver)
    }

    /// What agents changed on disk.
    pub fn review(&self) -> &Review {
        &self.shared.review
    }

    /// Conversations on disk.
    pub fn memory(&self) -> &Memory {
        &self.shared.memory
    }

    /// Now, in milliseconds since 1970.
    pub fn wall_ms(&self) -> u64 {
        self.now().wall_ms
    }

    /// Lets `f` work on the engine, then does what came of it, in order.
    pub fn with<R>(&self, f: impl FnOnce(&mut Engine) -> R) -> R {
        self.with_look(f).0
    }

    /// The same, and what to wait for before the agent is heard again.
    fn with_look<R>(&self, f: impl FnOnce(&mut Engine) -> R) -> (R, Option<Receiver<()>>) {
        let mut look = None;
        let mut state = self.shared.state.lock();
        state.engine.set_now(self.now());
        let result = f(&mut state.engine);
        for watched in state.engine.take_watched() {
            self.shared.review.tell(watched.job);
            if let Some(proc) = watched.hold {
                self.hold(&mut state, proc);
            }
            if watched.first {
                look = Some(self.shared.review.barrier());
            }
        }
        // Under the lock, so that lines are written in the order they were decided on.
        let mut later = Vec::new();
        for effect in state.engine.take_effects() {
            later.extend(self.perform(&mut state, effect));
        }
        let wake = state.engine.take_wake();
        drop(state);
        for later in later {
            later.run();
        }
        self.wake(wake);
        (result, look)
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
        let children = state.agents.values().chain(state.terminals.values());
        let leaders = children.filter_map(|child| child.pid);
        let leaders: Vec<u32> = leaders.chain(state.errands.iter().copied()).collect();
        drop(state);
        // Also what agents that have ended left in sessions of their own.
        self.shared.families.all().kill(&leaders);
        for pid in leaders {
            self.shared.keeper.forget(pid);
        }
        self.shared.memory.finish(MEMORY_WAIT);
        if let Some(runtime) = self.shared.runtime.lock().take() {
            runtime.shutdown_timeout(Duration::from_millis(100));
        }
        crate::log::flush();
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

    /// Carries out an effect; what comes back is not done under the lock.
    fn perform(&self, state: &mut State, effect: Effect) -> Option<Later> {
        match effect {
            Effect::Spawn { proc, launch } => {
                let (stdin, lines) = stdin::channel();
                let family = self.shared.families.found();
                state.agents.insert(
                    proc,
                    Child {
                        stdin: Some(stdin),
                        family: family.clone(),
                        ..Child::default()
                    },
                );
                self.spawn(|driver| async move {
                    driver.run_agent(proc, launch, &family, lines).await;
                });
            }
            Effect::Write { proc, line } => {
                if let Some(child) = state.agents.get_mut(&proc) {
                    child.write(line);
                }
            }
            Effect::End { proc, grace_ms } => {
                if let Some(child) = state.agents.get_mut(&proc) {
                    child.release();
                    child.stdin = None;
                    child.doomed |= child.pid.is_none();
                    self.spawn(move |driver| async move { driver.end_agent(proc, grace_ms).await });
                }
            }
            Effect::After { ms, timer } => self.after(ms, timer),
            Effect::CliConfig { result, path } => self.spawn(move |driver| async move {
                let read = tokio::task::spawn_blocking(move || crate::cli_config::read(&path));
                let read = read.await.map_err(|error| error.to_string());
                driver.with(|engine| engine.on_cli_config(result, read));
            }),
            Effect::ReadMcp { key, proc, wanted } => self.spawn(move |driver| async move {
                let read = tokio::task::spawn_blocking(move || crate::mcp::passing(&wanted));
                // A session starts without them rather than not at all.
                let read = tokio::time::timeout(MCP_WAIT, read).await;
                let read = read.map(Result::unwrap_or_default).unwrap_or_default();
                driver.with(|engine| engine.on_mcp(key, proc, read));
            }),
            Effect::ReadContext {
                key,
                session_id,
                env,
            } => self.spawn(move |driver| async move {
                let id = session_id.clone();
                let read = tokio::task::spawn_blocking(move || context::read(&id, &env));
                if let Ok(Some(context)) = read.await {
                    driver.with(|engine| engine.on_context(key, &session_id, context));
                }
            }),
            Effect::Disk { request, op, real } => {
                let (DiskOp::Read { path, .. } | DiskOp::Write { path, .. }) = &op;
                let path = path.clone();
                let encodings = state.engine.encodings().to_vec();
                let queue = state.disk.entry(path.clone()).or_default();
                let idle = queue.is_empty();
                queue.push_back(Some(DiskJob {
                    request,
                    op,
                    real,
                    encodings,
                }));
                if idle {
                    self.spawn(move |driver| async move { driver.work_off(path).await });
                }
            }
            Effect::Keep { request, path } => {
                let driver = Arc::downgrade(&self.shared);
                self.shared.review.look(path.into(), move || {
                    if let Some(shared) = driver.upgrade() {
                        Self { shared }.with(|engine| engine.on_kept(request));
                    }
                });
            }
            Effect::Judge { whose, case } => self.spawn(move |driver| async move {
                let judged = tokio::task::spawn_blocking(move || case.judge(&links::Real));
                // A panic must not leave a request without an answer: nothing is known of the call, so it is asked.
                let judged = judged.await.unwrap_or_else(|_| Judged::unknown());
                driver.with(|engine| engine.on_judged(whose, judged));
            }),
            Effect::Diff(job) => self.spawn(move |driver| async move {
                let job = tokio::task::spawn_blocking(move || {
                    let diff = job.run(disk::read_for_place(&job.path).as_deref());
                    (job, diff)
                });
                if let Ok((job, diff)) = job.await {
                    driver.with(|engine| engine.on_diff(&job, diff));
                }
            }),
            Effect::Recall {
                key,
                session_id,
                agent,
                cwd,
                env,
            } => self.spawn(move |driver| async move {
                let asked = Asked {
                    session_id,
                    agent,
                    cwd,
                    env,
                };
                let memory = driver.memory().clone();
                let recalled =
                    tokio::task::spawn_blocking(move || memory.recall(key, &asked)).await;
                let is_open = driver.with(|engine| {
                    engine.on_recalled(key, recalled.unwrap_or_default());
                    engine.keys().any(|open| open == key)
                });
                if !is_open {
                    driver.memory().release(key);
                }
            }),
            Effect::Remember => self.shared.memory.look(),
            Effect::Hide(secrets) => return Some(Later::Hide(secrets)),
            Effect::Log { level, text } => return Some(Later::Log { level, text }),
            Effect::StartTerminal { terminal, launch } => {
                let family = self.shared.families.found();
                state.terminals.insert(
                    terminal,
                    Child {
                        family: family.clone(),
                        ..Child::default()
                    },
                );
                self.spawn(move |driver| async move {
                    driver.run_terminal(terminal, launch, &family).await;
                });
            }
            Effect::KillTerminal { terminal } => {
                if let Some(child) = state.terminals.get_mut(&terminal) {
                    child.doomed |= child.pid.is_none();
                    let (pid, family) = (child.pid, child.family.clone());
                    self.spawn(move |driver| async move {
                        signal_family(pid, family, Signal::TERM).await;
                        tokio::time::sleep(TERM_TO_KILL).await;
                        // Its number may be another's once it has ended.
                        let child = driver.child_of_terminal(terminal);
                        if let Some((pid, family)) = child {
                            signal_family(pid, family, Signal::KILL).await;
                        }
                    });
                    return pid.map(|pid| Later::Signal(pid, Signal::TERM));
                }
            }
            Effect::ReleaseTerminal { terminal } => {
                if let Some(child) = state.terminals.get_mut(&terminal) {
                    child.doomed = true;
                    let pid = child.pid;
                    if child.exited {
                        let family = child.family.clone();
                        state.terminals.remove(&terminal);
                        self.spawn(move |driver| async move {
                            signal_family(pid, family, Signal::KILL).await;
                            pid.inspect(|pid| driver.shared.keeper.forget(*pid));
                        });
                    }
                    return pid.map(|pid| Later::Signal(pid, Signal::KILL));
                }
            }
        }
        None
    }

    /// Holds back what is written to a process until the review has kept the files as they are, or for as long as that may
    /// take.
    fn hold(&self, state: &mut State, proc: Proc) {
        let barrier = self.shared.review.barrier();
        let Some(child) = state.agents.get_mut(&proc) else {
            return;
        };
        child.holds += 1;
        child.held.get_or_insert_default();
        let driver = self.clone();
        self.shared.handle.spawn_blocking(move || {
            let _ = barrier.recv_timeout(HOLD_WAIT);
            let mut state = driver.shared.state.lock();
            let Some(child) = state.agents.get_mut(&proc) else {
                return;
            };
            child.release();
        });
    }

    fn spawn<F>(&self, task: impl FnOnce(Self) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.shared.handle.spawn(task(self.clone()));
    }

    /// Works on something on the runtime; when it is done, the editor hears so as a `result`. Its number.
    pub fn beside(&self, work: impl FnOnce(ResultId) + Send + 'static) -> ResultId {
        let id = self.with(Engine::promise);
        self.spawn(move |driver| async move {
            let done = tokio::task::spawn_blocking(move || work(id)).await;
            let result = done.map_err(|error| error.to_string());
            driver.with(|engine| engine.keep_promise(id, result));
        });
        id
    }

    /// Works something out on the runtime; the editor hears what came of it as a `result`. Its number.
    pub fn compute(
        &self,
        work: impl FnOnce() -> Result<Value, Error> + Send + 'static,
    ) -> ResultId {
        let id = self.with(Engine::promise);
        self.spawn(move |driver| async move {
            let done = tokio::task::spawn_blocking(work).await;
            let result = done.unwrap_or_else(|error| Err(error.into()));
            let result = result.map_err(|error| error.to_string());
            driver.with(|engine| engine.tell_result(id, result));
        });
        id
    }

    /// The agents that run, but for their memory.
    pub fn running(&self) -> Vec<Running> {
        let state = self.shared.state.lock();
        let running = state.agents.iter().filter_map(|(proc, child)| {
            let about = state.engine.about(proc.agent)?;
            Some(Running {
                agent: about.agent,
                cwd: about.cwd,
                pid: child.pid?,
                age_ms: child.since.map_or(0, |since| millis(since.elapsed())),
                sessions: about.sessions,
                memory_bytes: None,
            })
        });
        let mut running: Vec<Running> = running.collect();
        running.sort_by_key(|one| one.pid);
        running
    }

    /// Runs a command for what it prints; the editor hears that as a `result`. Its number.
    pub fn run(&self, errand: Errand) -> ResultId {
        let id = self.with(Engine::promise);
        self.spawn(move |driver| async move {
            let result = driver.run_errand(&errand).await;
            let result = result.and_then(|done| Ok(serde_json::to_value(done)?));
            let result = result.map_err(|error| error.to_string());
            driver.with(|engine| engine.tell_result(id, result));
        });
        id
    }

    async fn run_errand(&self, errand: &Errand) -> Result<Outcome, Error> {
        let family = self.shared.families.found();
        let program = errand.command.first().cloned().unwrap_or_default();
        let mut child = process::spawn(&errand.launch(), &family)
            .map_err(|source| Error::Command { program, source })?;
        let pid = child.id();
        if let Some(pid) = pid {
            self.shared.keeper.watch(pid);
            self.shared.state.lock().errands.insert(pid);
        }
        // It has nothing to read.
        drop(child.stdin.take());
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let mut exited = None;
        let ended = {
            let reading = async {
                let mut out = pin!(errand::collect(stdout, &mut out));
                let mut err = pin!(errand::collect(stderr, &mut err));
                let mut open = (true, true);
                poll_fn(|context| {
                    open.0 = open.0 && out.as_mut().poll(context).is_pending();
                    open.1 = open.1 && err.as_mut().poll(context).is_pending();
                    if open == (false, false) {
                        Poll::Ready(())
                    } else {
                        Poll::Pending
                    }
                })
                .await;
            };
            let ending = async {
                exited = process::until_gone(&mut child, reading, STDERR_WAIT).await;
                if exited.is_none() {
                    exited = child.wait().await.ok();
                }
            };
            tokio::time::timeout(errand.timeout(), ending).await
        };
        if ended.is_err() {
            signal_family(pid, family.clone(), Signal::KILL).await;
            exited = child.wait().await.ok();
        }
        // What it left in the background has no use.
        signal_family(pid, family.clone(), Signal::TERM).await;
        if let Some(pid) = pid {
            self.spawn(move |driver| async move {
                await_family(pid, &family).await;
                driver.shared.keeper.forget(pid);
                driver.shared.state.lock().errands.remove(&pid);
            });
        }
        let exit = process::exit(exited, Vec::new());
        Ok(Outcome::new(&exit, ended.is_err(), &out, &err))
    }

    /// Does what is to be done with a file, one thing after the other.
    async fn work_off(&self, path: String) {
        loop {
            let job = {
                let mut state = self.shared.state.lock();
                let Some(queue) = state.disk.get_mut(&path) else {
                    return;
                };
                let Some(job) = queue.front_mut().and_then(Option::take) else {
                    state.disk.remove(&path);
                    return;
                };
                job
            };
            let (request, op, encodings) = (job.request, job.op, job.encodings);
            let done = tokio::task::spawn_blocking(move || {
                leads_there(&op, job.real.as_deref())?;
                match op {
                    DiskOp::Read { path, line, limit } => {
                        disk::read(&path, line, limit, &encodings)
                    }
                    DiskOp::Write { path, content } => {
                        disk::write(&path, &content, &encodings).map(|()| String::new())
                    }
                }
            });
            let done = done.await.unwrap_or_else(|error| Err(error.into()));
            let done = done.map_err(|error| error.of_file());
            self.with(|engine| engine.on_file_done(request, done));
            if let Some(queue) = self.shared.state.lock().disk.get_mut(&path) {
                queue.pop_front();
            }
        }
    }

    fn after(&self, ms: u64, timer: Timer) {
        self.spawn(move |driver| async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            driver.with(|engine| engine.on_timer(timer));
        });
    }

    async fn run_agent(&self, proc: Proc, launch: Launch, family: &Family, lines: stdin::Receiver) {
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
        {
            let mut state = self.shared.state.lock();
            if let Some(entry) = state.agents.get_mut(&proc) {
                entry.pid = pid;
                entry.since = Some(Instant::now());
                if entry.doomed {
                    signal(entry, Signal::TERM);
                }
            }
        }
        let waiting = lines.waiting();
        if let Some(stdin) = child.stdin.take() {
            let driver = self.clone();
            tokio::spawn(async move {
                let stalled = |bytes| driver.with(|engine| engine.on_stalled(proc, bytes));
                if lines.write_to(stdin, stalled).await == stdin::End::Lost {
                    // One that ends closes all of its pipes: then its end is told.
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
        // Stdout has ended: for the protocol the agent is gone, whatever the process still does.
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

    /// Parses outside the lock. A panic over one message must not end the stream of the others.
    fn on_frame(&self, proc: Proc, frame: Frame) {
        let taken = catch_unwind(AssertUnwindSafe(|| match frame {
            Frame::TooLong { bytes } => self.with(|engine| engine.on_too_long(proc, bytes)),
            Frame::Line(line) => {
                let messages = Message::parse_all(line);
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

    async fn end_agent(&self, proc: Proc, grace_ms: u64) {
        for (wait, kind) in [
            (Duration::from_millis(grace_ms), Signal::TERM),
            (TERM_TO_KILL, Signal::KILL),
        ] {
            tokio::time::sleep(wait).await;
            let child = self.shared.state.lock().agents.get(&proc).map(held);
            let Some((pid, family)) = child else { return };
            signal_family(pid, family, kind).await;
        }
    }

    fn forget_agent(&self, proc: Proc) {
        self.shared.state.lock().agents.remove(&proc);
        self.shared.ended.notify_all();
    }

    fn child_of_terminal(&self, terminal: u64) -> Option<(Option<u32>, Family)> {
        self.shared.state.lock().terminals.get(&terminal).map(held)
    }

    async fn run_terminal(&self, terminal: u64, launch: Launch, family: &Family) {
        let exit = match process::spawn_merged(&launch, family) {
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
                process::exit(status, Vec::new())
            }
        };
        self.with(|engine| engine.on_terminal_exit(terminal, &exit));
        let left = {
            let family = family.clone();
            tokio::task::spawn_blocking(move || family.lives(&[])).await
        };
        let Some((pid, doomed)) = self.end_terminal(terminal, left.unwrap_or(false)) else {
            return;
        };
        if doomed {
            signal_family(None, family.clone(), Signal::KILL).await;
        }
        // All of the group is dead, even if the system has not taken note of that yet.
        pid.inspect(|pid| self.shared.keeper.forget(*pid));
    }

    /// A command has ended; `left`: something of it runs on. Its group and whether that was to end, unless it is kept:
    /// what it left in the background is killed on release.
    fn end_terminal(&self, terminal: u64, left: bool) -> Option<(Option<u32>, bool)> {
        let mut state = self.shared.state.lock();
        let child = state.terminals.get_mut(&terminal)?;
        child.exited = true;
        let (pid, doomed) = (child.pid, child.doomed);
        // A group that is gone must not be mistaken for a later one with its number.
        child.pid = pid.filter(|pid| process::group_lives(*pid));
        if !doomed && (child.pid.is_some() || left) {
            return None;
        }
        state.terminals.remove(&terminal);
        Some((pid, doomed))
    }
}

/// Waits for the rest of a family whose leader has ended and that was told to end; kills it when it does not.
async fn await_family(pid: u32, family: &Family) {
    let until = Instant::now() + LEFTOVER_WAIT;
    let late = || Instant::now() >= until;
    while process::group_lives(pid) && !late() {
        tokio::time::sleep(LEFTOVER_POLL).await;
    }
    // Those who left the group. Looking for them costs more.
    while !late() {
        let family = family.clone();
        let lives = tokio::task::spawn_blocking(move || family.lives(&[])).await;
        if !lives.unwrap_or(false) {
            return;
        }
        tokio::time::sleep(FAMILY_POLL).await;
    }
    // The group may be gone: its number is no one's to kill then.
    let leader = Some(pid).filter(|pid| process::group_lives(*pid));
    signal_family(leader, family.clone(), Signal::KILL).await;
}

/// What is needed to end a child when the lock is given back.
fn held(child: &Child) -> (Option<u32>, Family) {
    (child.pid, child.family.clone())
}

/// Signals a group and what left it. Looking for that takes milliseconds: never under the lock.
async fn signal_family(pid: Option<u32>, family: Family, kind: Signal) {
    let leaders: Vec<u32> = pid.into_iter().collect();
    let done = tokio::task::spawn_blocking(move || match kind {
        Signal::KILL => family.kill(&leaders),
        _ => family.signal(&leaders, kind),
    });
    let _ = done.await;
}

fn signal(child: &Child, kind: Signal) {
    if let Some(pid) = child.pid {
        process::signal_group(pid, kind);
    }
}

/// Whether a path still leads where it led when it was judged: a link may have been put there since.
fn leads_there(op: &DiskOp, real: Option<&str>) -> Result<(), Error> {
    let (DiskOp::Read { path, .. } | DiskOp::Write { path, .. }) = op;
    match real {
        Some(real) if paths::resolve(path, &links::Real) != real => Err(Error::File {
            path: path.clone(),
            problem: Problem::LeadsElsewhere,
        }),
        _ => Ok(()),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use engine::agents::agent::AgentSpec;
    use engine::sessions::session::Wanted;

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
        let key = driver.with(|engine| engine.keys().next().unwrap());
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
            let perform = |effect| {
                let later = driver.perform(&mut driver.shared.state.lock(), effect);
                later.into_iter().for_each(Later::run);
            };
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

    #[test]
    fn writes_of_one_file_are_done_in_the_order_they_were_asked_for() {
        let driver = Driver::start(|| {}).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let paths = ["a", "b"].map(|name| dir.path().join(name).to_string_lossy().into_owned());
        for number in 0..100 {
            for path in &paths {
                let op = DiskOp::Write {
                    path: path.clone(),
                    content: number.to_string(),
                };
                let request = EditorId(number);
                driver.perform(
                    &mut driver.shared.state.lock(),
                    Effect::Disk {
                        request,
                        op,
                        real: None,
                    },
                );
            }
        }
        assert!(wait_for(|| driver.shared.state.lock().disk.is_empty()));
        for path in &paths {
            assert_eq!(std::fs::read_to_string(path).unwrap(), "99");
        }
        driver.shutdown(Duration::from_millis(300));
    }
}
