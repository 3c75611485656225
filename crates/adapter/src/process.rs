//! One run of Cursor's CLI: in a process group of its own, and gone with all it started when it is dropped.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use crate::clock;
use crate::keeper;

/// Set for each run to a value of its own: what it starts has it too, in whatever group it hides.
pub const MARK: &str = "CURSOR_AGENT_ACP_RUN";

/// How long a run may take to leave when it is asked to.
const LEAVE_MS: u64 = 700;

/// A process that starts others while it is killed may need a second look. More than this is a fork bomb.
const SWEEPS: usize = 5;

/// What to run.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Where it runs.
    pub cwd: PathBuf,
    /// What it reads on stdin. Nothing: an empty stdin.
    pub stdin: Option<Vec<u8>>,
}

/// A process that runs. Dropping it ends it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    pid: u32,
    mark: String,
    /// What it prints.
    pub stdout: Option<ChildStdout>,
    /// What it complains about.
    pub stderr: Option<ChildStderr>,
    swept: bool,
}

/// What all marks of this process begin with.
pub fn mark_prefix() -> &'static str {
    static PREFIX: OnceLock<String> = OnceLock::new();
    PREFIX.get_or_init(|| format!("{}-{:x}-", std::process::id(), clock::now_ms()))
}

/// Starts it.
///
/// # Errors
/// When the system cannot.
pub fn spawn(launch: &Launch) -> std::io::Result<Running> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    // With an end, so that the first run's mark is not the beginning of the tenth's.
    let mark = format!("{}{number}.", mark_prefix());
    if !launch.cwd.is_dir() {
        // Without this the system's answer for a missing directory is that of a missing program.
        return Err(std::io::Error::new(
            std::io::ErrorKind::NotADirectory,
            format!("{} is not a directory", launch.cwd.display()),
        ));
    }
    let mut command = Command::new(&launch.program);
    command
        .args(&launch.args)
        .current_dir(&launch.cwd)
        .env(MARK, &mark)
        .stdin(match launch.stdin {
            Some(_) => Stdio::piped(),
            None => Stdio::null(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let mut child = command.spawn()?;
    let pid = child.id().unwrap_or_default();
    keeper::watch(pid);
    if let (Some(mut pipe), Some(text)) = (child.stdin.take(), launch.stdin.clone()) {
        tokio::task::spawn_local(async move {
            // It may end without having read everything: then its own words say why.
            let _ = pipe.write_all(&text).await;
            let _ = pipe.shutdown().await;
        });
    }
    Ok(Running {
        stdout: child.stdout.take(),
        stderr: child.stderr.take(),
        child,
        pid,
        mark,
        swept: false,
    })
}

impl Running {
    /// Waits for the process itself to end; what it started may still run.
    pub async fn exited(&mut self) -> Option<ExitStatus> {
        self.child.wait().await.ok()
    }

    /// Asks it and its group to leave, and kills what does not.
    pub async fn stop(&mut self) {
        signal_group(self.pid, Signal::TERM);
        let _ = tokio::time::timeout(Duration::from_millis(LEAVE_MS), self.child.wait()).await;
        self.sweep();
        let _ = self.child.wait().await;
    }

    /// Kills everything that is left of it.
    pub fn sweep(&mut self) {
        sweep(self.pid, &self.mark);
        if !self.swept {
            self.swept = true;
            keeper::forget(self.pid);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.swept {
            self.sweep();
        }
    }
}

fn signal_group(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(pid, signal);
    }
}

/// Kills the group, what its members started in groups of their own, and whatever else has the mark.
fn sweep(pid: u32, mark: &str) {
    for _ in 0..SWEEPS {
        let found = remains(pid, mark);
        signal_group(pid, Signal::KILL);
        if found.is_empty() {
            return;
        }
        for pid in found {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// The processes of a run that are alive.
#[cfg(target_os = "linux")]
fn remains(group: u32, mark: &str) -> Vec<Pid> {
    struct Process {
        pid: i32,
        parent: i32,
        of_run: bool,
        dead: bool,
    }
    let marked = format!("{MARK}={mark}");
    let read = |dir: &Path, pid: i32| -> Option<Process> {
        let stat = std::fs::read_to_string(dir.join("stat")).ok()?;
        // The name, in parentheses, may hold anything: state, parent and group stand after its end.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let of: u32 = fields.next()?.parse().ok()?;
        let environ = || std::fs::read(dir.join("environ")).unwrap_or_default();
        let has_mark = || {
            environ()
                .split(|byte| *byte == 0)
                .any(|variable| variable == marked.as_bytes())
        };
        Some(Process {
            pid,
            parent,
            of_run: of == group || has_mark(),
            dead: matches!(state, "Z" | "X"),
        })
    };
    let all: Vec<Process> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            read(&entry.path(), pid)
        })
        .collect();
    let mut found: Vec<i32> = all.iter().filter(|p| p.of_run).map(|p| p.pid).collect();
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        for child in all.iter().filter(|p| p.parent == parent) {
            if !found.contains(&child.pid) {
                found.push(child.pid);
            }
        }
        at += 1;
    }
    all.iter()
        .filter(|p| !p.dead && found.contains(&p.pid))
        .filter_map(|p| Pid::from_raw(p.pid))
        .collect()
}

/// Elsewhere only the group is known.
#[cfg(not(target_os = "linux"))]
fn remains(_group: u32, _mark: &str) -> Vec<Pid> {
    Vec::new()
}
