//! Carries out the engine's effects: processes, pipes, timers, files and terminals, all on the one tokio
//! runtime.
//!
//! The engine is behind one lock. The main thread and the tasks here hold it only for microseconds: parse
//! before taking it, do IO after releasing it.
//!
//! `perform` carries out an effect; longer ones have their own file: `agents.rs` and `terminals.rs` (their
//! processes), `errands.rs`, `disk_queue.rs` (reads and writes files in order), `child.rs` (state of a running
//! process, and how it is terminated).

mod agents;
mod child;
mod disk_queue;
mod errands;
mod terminals;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crossbeam_channel::Receiver;
use parking_lot::{Condvar, Mutex};
use rustix::process::Signal;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use crate::context;
use crate::disk;
use crate::error::Error;
use crate::family::Families;
use crate::keeper::Keeper;
use crate::known_secrets;
use crate::links;
use crate::memory::{Asked, Memory, Source};
use crate::process;
use crate::processes::Running;
use crate::review::Review;
use crate::stdin;
use child::{Child, TERM_TO_KILL, signal_family};
use disk_queue::DiskJob;
use engine::agents::env::Env;
use engine::effect::{DiskOp, Effect, Timer};
use engine::ids::{Key, Proc, ResultId};
use engine::policy::Judged;
use engine::screen::outbox::Wake;
use engine::secrets::Secrets;
use engine::sessions::watching::Job;
use engine::{Engine, Now};

/// Changes are shown at most once per frame.
const FRAME_MS: u64 = 16;
/// How long a session start waits for the `mcp.json` files to be read.
const MCP_WAIT: Duration = Duration::from_secs(3);
/// How long a prompt waits for the review to snapshot files.
const HOLD_WAIT: Duration = Duration::from_millis(300);
/// How long exiting Neovim waits for conversations to be written.
const MEMORY_WAIT: Duration = Duration::from_millis(150);

/// Owns the runtime and the engine. Cheap to clone; the runtime lives until `shutdown`.
#[derive(Clone)]
pub struct Driver {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// Signalled when a process ends.
    ended: Condvar,
    families: Families,
    keeper: Keeper,
    review: Review,
    /// The review was told what an agent changed and may not have looked at it yet.
    unlooked: AtomicBool,
    memory: Memory,
    runtime: Mutex<Option<Runtime>>,
    handle: tokio::runtime::Handle,
    waker: Box<dyn Fn() + Send + Sync>,
    /// A wake-up is pending.
    wake_pending: AtomicBool,
    /// When the editor was last woken, in milliseconds since `started`.
    woken_ms: AtomicU64,
    started: Instant,
}

/// Gives the thread that writes conversations access to the driver.
struct Writing(Arc<OnceLock<Weak<Shared>>>);

impl Writing {
    fn driver(&self) -> Option<Driver> {
        let shared = self.0.get().and_then(Weak::upgrade)?;
        Some(Driver { shared })
    }
}

impl Source for Writing {
    fn take(&self, busy: &HashSet<(Key, usize)>) -> (Vec<engine::sessions::memory::Noted>, bool) {
        let driver = self.driver();
        driver.map_or_else(Default::default, |driver| {
            driver.with(|engine| engine.take_memory(busy))
        })
    }

    fn again(&self, key: Key) {
        if let Some(driver) = self.driver() {
            driver.with(|engine| engine.remember_again(key));
        }
    }

    fn tell(&self, message: String) {
        if let Some(driver) = self.driver() {
            driver.with(|engine| engine.on_memory_trouble(message));
        }
    }
}

struct State {
    engine: Engine,
    /// Pending jobs per file, in the order they were requested. The first one is running and has been taken
    /// out.
    disk: HashMap<String, VecDeque<Option<DiskJob>>>,
    agents: HashMap<Proc, Child>,
    terminals: HashMap<u64, Child>,
    /// Process groups of running errands.
    errands: HashSet<u32>,
}

/// Work for after the lock is released, in order.
enum Later {
    Hide(Secrets),
    Log { level: &'static str, text: String },
}

impl Later {
    fn run(self) {
        match self {
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
    /// Starts the runtime. `waker` is called from any thread when the editor should drain.
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
                unlooked: AtomicBool::new(false),
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

    /// Runs `f` on the engine, then carries out the resulting effects in order.
    pub fn with<R>(&self, f: impl FnOnce(&mut Engine) -> R) -> R {
        self.with_look(f).0
    }

    /// Like `with`, and also returns what to wait for before reading more from the agent.
    fn with_look<R>(&self, f: impl FnOnce(&mut Engine) -> R) -> (R, Option<Receiver<()>>) {
        let mut look = None;
        let mut state = self.shared.state.lock();
        state.engine.set_now(self.now());
        let result = f(&mut state.engine);
        for watched in state.engine.take_watched() {
            if matches!(watched.job, Job::Changed { .. } | Job::CommandEnded { .. }) {
                self.shared.unlooked.store(true, Ordering::Release);
            }
            self.shared.review.tell(watched.job);
            if let Some(proc) = watched.hold {
                self.hold(&mut state, proc);
            }
            if watched.first {
                look = Some(self.shared.review.barrier());
            }
        }
        // Done under the lock, so that lines are written in the order they were produced.
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

    /// The editor starts to drain: later changes need another wake-up.
    pub fn draining(&self) {
        self.shared.wake_pending.store(false, Ordering::Release);
    }

    /// Ends everything: SIGTERM, wait at most `grace`, then SIGKILL. For the editor's exit.
    pub fn shutdown(&self, grace: Duration) {
        let until = Instant::now() + grace;
        // A process without our mark is only found while its parents live.
        let before = self.shared.families.all().members(&self.leaders());
        self.with(Engine::shutdown);
        let terminals: Vec<u32> = {
            let state = self.shared.state.lock();
            let pids = state.terminals.values().filter_map(|child| child.pid);
            pids.collect()
        };
        for pid in terminals {
            process::signal_group(pid, Signal::KILL);
        }
        let mut state = self.shared.state.lock();
        while !state.agents.is_empty() {
            if self.shared.ended.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
        drop(state);
        let leaders = self.leaders();
        // This includes processes that ended agents left in sessions of their own.
        self.shared.families.all().kill(&leaders);
        for member in before {
            member.signal(Signal::KILL);
        }
        for pid in leaders {
            self.shared.keeper.forget(pid);
        }
        self.shared.memory.finish(MEMORY_WAIT);
        if let Some(runtime) = self.shared.runtime.lock().take() {
            runtime.shutdown_timeout(Duration::from_millis(100));
        }
        crate::log::flush();
    }

    /// The groups of everything that runs for us.
    fn leaders(&self) -> Vec<u32> {
        let state = self.shared.state.lock();
        let children = state.agents.values().chain(state.terminals.values());
        let leaders = children.filter_map(|child| child.pid);
        leaders.chain(state.errands.iter().copied()).collect()
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

    /// Carries out an effect; returns the part that must not run under the lock.
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
                    child.doomed |= child.pid.is_none();
                    let stdin = child.stdin.take();
                    self.spawn(move |driver| async move {
                        driver.end_agent(proc, grace_ms, stdin).await;
                    });
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
                // Better to start a session without them than not at all.
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
                // A panic must not leave a request unanswered: treat the call as unknown, so the user is asked.
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
                        // Once it has ended, its pid may be reused.
                        let child = driver.child_of_terminal(terminal);
                        if let Some((pid, family)) = child {
                            signal_family(pid, family, Signal::KILL).await;
                        }
                    });
                }
            }
            Effect::ReleaseTerminal { terminal } => {
                if let Some(child) = state.terminals.get_mut(&terminal) {
                    child.doomed = true;
                    let (exited, (pid, family)) = (child.exited, child.handle());
                    if exited {
                        state.terminals.remove(&terminal);
                    }
                    self.spawn(move |driver| async move {
                        signal_family(pid, family, Signal::KILL).await;
                        pid.filter(|_| exited)
                            .inspect(|pid| driver.shared.keeper.forget(*pid));
                    });
                }
            }
        }
        None
    }

    /// Holds back writes to a process until the review has snapshotted the files, or until the wait times out.
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

    /// Runs `work` on the runtime and returns the number under which the editor gets its `result`.
    pub fn beside(&self, work: impl FnOnce(ResultId) + Send + 'static) -> ResultId {
        let id = self.with(Engine::promise);
        self.spawn(move |driver| async move {
            let done = tokio::task::spawn_blocking(move || work(id)).await;
            let result = done.map_err(|error| error.to_string());
            driver.with(|engine| engine.keep_promise(id, result));
        });
        id
    }

    /// Runs `work` on the runtime and returns the number under which the editor gets the value as a `result`.
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

    /// The running agents, without their memory use.
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

    fn after(&self, ms: u64, timer: Timer) {
        self.spawn(move |driver| async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            driver.with(|engine| engine.on_timer(timer));
        });
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
