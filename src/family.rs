//! All descendants of a process of ours, including those that left its group and session: they carry a mark.
//!
//! The mark is an environment variable, which children inherit. A process that cleared its environment is still
//! found while its parents live. Processes that carry no mark and do not descend from ours are never touched.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::Signal;

use crate::process::signal_group;

/// Name of the variable.
pub const VARIABLE: &str = "CURSOR_AGENT_NVIM_ID";

/// A family may still grow while it is killed, so look this many times.
const KILL_ROUNDS: usize = 3;

/// The families of one Neovim.
#[derive(Debug)]
pub struct Families {
    id: String,
    count: AtomicU64,
}

impl Default for Families {
    fn default() -> Self {
        // Random, so that no process of another Neovim, or of an earlier one with the same pid, has it.
        let random = || RandomState::new().hash_one(std::process::id());
        Self {
            id: format!("{:016x}{:016x}", random(), random()),
            count: AtomicU64::new(0),
        }
    }
}

impl Families {
    /// The common prefix of all their marks.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Starts a new family.
    pub fn found(&self) -> Family {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        Family {
            mark: format!("{}.{number}.", self.id),
        }
    }

    /// All families as one.
    pub fn all(&self) -> Family {
        Family {
            mark: format!("{}.", self.id),
        }
    }
}

/// A process of ours and all its descendants.
#[derive(Debug, Clone, Default)]
pub struct Family {
    mark: String,
}

impl Family {
    /// The value of the variable. A Neovim that was itself started by an agent keeps that agent's mark.
    pub fn value(&self) -> String {
        match std::env::var(VARIABLE) {
            Ok(outer) => format!("{outer} {}", self.mark),
            Err(_) => self.mark.clone(),
        }
    }

    /// Whether any of it runs outside the groups led by `leaders`.
    pub fn lives(&self, leaders: &[u32]) -> bool {
        !self.members(leaders).is_empty()
    }

    /// Sends a signal to the groups led by `leaders` and to the rest of the family.
    pub fn signal(&self, leaders: &[u32], signal: Signal) {
        // Find them before any process ends: afterwards their parents are unknown.
        let members = self.members(leaders);
        for leader in leaders {
            signal_group(*leader, signal);
        }
        for member in members {
            member.signal(signal);
        }
    }

    /// Kills all of it.
    pub fn kill(&self, leaders: &[u32]) {
        for _ in 0..KILL_ROUNDS {
            let members = self.members(leaders);
            for leader in leaders {
                signal_group(*leader, Signal::KILL);
            }
            if members.is_empty() {
                return;
            }
            for member in members {
                member.signal(Signal::KILL);
            }
        }
    }
}

#[cfg(target_os = "linux")]
mod scan {
    use std::collections::HashSet;
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    use rustix::process::{
        Pid, PidfdFlags, Signal, geteuid, kill_process, pidfd_open, pidfd_send_signal,
    };

    use super::Family;

    /// A running process.
    #[derive(Debug)]
    pub struct Member {
        pid: i32,
        parent: i32,
        group: i32,
        /// Start time, so that a later process with the same pid is not mistaken for it.
        started: u64,
    }

    impl Member {
        fn read(pid: i32) -> Option<Self> {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The name, in parentheses, may contain anything: parse what follows the last parenthesis.
            let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
            // Zombies do not count as running.
            if matches!(*fields.first()?, "Z" | "X") {
                return None;
            }
            Some(Self {
                pid,
                parent: fields.get(1)?.parse().ok()?,
                group: fields.get(2)?.parse().ok()?,
                started: fields.get(19)?.parse().ok()?,
            })
        }

        /// Signals the process. Does nothing if it has ended, even if its pid was reused.
        pub fn signal(&self, signal: Signal) {
            let Some(pid) = Pid::from_raw(self.pid) else {
                return;
            };
            // A pidfd keeps referring to the process it was opened for. Old kernels have none.
            let held = pidfd_open(pid, PidfdFlags::empty());
            if Self::read(self.pid).is_none_or(|now| now.started != self.started) {
                return;
            }
            let _ = match held {
                Ok(held) => pidfd_send_signal(held, signal),
                Err(_) => kill_process(pid, signal),
            };
        }
    }

    impl Family {
        /// Processes that carry the mark or are in a group led by one of `leaders`, and all their descendants.
        pub fn members(&self, leaders: &[u32]) -> Vec<Member> {
            let own = i32::try_from(std::process::id()).unwrap_or_default();
            let user = geteuid().as_raw();
            let mut others: Vec<Member> = fs::read_dir("/proc")
                .into_iter()
                .flatten()
                .flatten()
                .filter_map(|entry| {
                    let pid = entry.file_name().to_str()?.parse().ok()?;
                    // Other users' processes can be neither inspected nor signalled, and on a server most are.
                    let may = user == 0 || entry.metadata().ok()?.uid() == user;
                    (may && pid != own).then(|| Member::read(pid)).flatten()
                })
                .collect();
            let led = |member: &Member| {
                leaders
                    .iter()
                    .any(|leader| i32::try_from(*leader) == Ok(member.group))
            };
            let mut found: Vec<Member> = others
                .extract_if(.., |member| led(member) || self.marks(member.pid))
                .collect();
            let mut known: HashSet<i32> = found.iter().map(|member| member.pid).collect();
            loop {
                let children: Vec<Member> = others
                    .extract_if(.., |member| known.contains(&member.parent))
                    .collect();
                if children.is_empty() {
                    return found;
                }
                known.extend(children.iter().map(|member| member.pid));
                found.extend(children);
            }
        }

        fn marks(&self, pid: i32) -> bool {
            let path = format!("/proc/{pid}/environ");
            fs::read(Path::new(&path)).is_ok_and(|environment| {
                memchr::memmem::find(&environment, self.mark.as_bytes()).is_some()
            })
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod scan {
    use rustix::process::Signal;

    use super::Family;

    /// Uninhabited: on other systems only groups are known.
    #[derive(Debug)]
    pub enum Member {}

    impl Member {
        pub fn signal(&self, _signal: Signal) {}
    }

    impl Family {
        #[allow(clippy::unused_self)]
        pub fn members(&self, _leaders: &[u32]) -> Vec<Member> {
            Vec::new()
        }
    }
}
