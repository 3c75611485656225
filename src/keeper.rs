//! Ends our processes when Neovim is killed and cannot do it: a shell that waits for EOF on its input.
//!
//! Whatever happens to Neovim, the system closes our end of the pipe. Agents then see EOF on their own stdin,
//! and most of them exit; the commands they run, and agents that hang, do not.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Reads `+ PID` and `- PID`. At EOF the remaining groups, and processes with the mark `$1`, get 0.3 s to exit
/// by themselves and another half second after SIGTERM.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
mark=$1
set --
while read -r sign pid; do
  for known do
    shift
    [ "$known" = "$pid" ] || set -- "$@" "$known"
  done
  [ "$sign" = - ] || set -- "$@" "$pid"
done
exec 2>/dev/null
for tenth in 0 1 2 TERM 4 5 6 7 KILL; do
  for group do
    shift
    ! kill -s 0 -- "-$group" || set -- "$@" "$group"
  done
  marked=$(grep -lsF -e "$mark" /proc/[0-9]*/environ)
  [ $# -gt 0 ] || [ -n "$marked" ] || exit 0
  case $tenth in
    TERM|KILL)
      for group do kill -s "$tenth" -- "-$group"; done
      for path in $marked; do
        pid=${path#/proc/}
        kill -s "$tenth" "${pid%/environ}"
      done ;;
  esac
  sleep 0.1
done
"#;

/// The shell, started when the first process is registered.
#[derive(Debug)]
pub struct Keeper {
    mark: String,
    pipe: OnceLock<Option<UnixStream>>,
}

impl Keeper {
    /// `mark`: processes with it in their environment are ended too, besides the registered groups.
    pub fn new(mark: &str) -> Self {
        Self {
            mark: mark.to_owned(),
            pipe: OnceLock::new(),
        }
    }

    /// Registers the group led by `pid`: it must not outlive Neovim.
    pub fn watch(&self, pid: u32) {
        if let Some(pipe) = self.pipe.get_or_init(|| start(&self.mark)) {
            tell(pipe, &format!("+ {pid}\n"));
        }
    }

    /// The group is gone and its number may be reused.
    pub fn forget(&self, pid: u32) {
        if let Some(Some(pipe)) = self.pipe.get() {
            tell(pipe, &format!("- {pid}\n"));
        }
    }
}

/// Never blocks. If the shell is gone or does not read, we only lose the safety net.
fn tell(mut pipe: &UnixStream, line: &str) {
    let _ = pipe.write_all(line.as_bytes());
}

fn start(mark: &str) -> Option<UnixStream> {
    let started = || {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        Command::new("sh")
            .args(["-c", SCRIPT, "sh", mark])
            .current_dir("/")
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Signals from the terminal are for Neovim, not for the shell.
            .process_group(0)
            .spawn()?;
        std::io::Result::Ok(ours)
    };
    started()
        .inspect_err(|error| {
            let text =
                format!("cannot start the shell that stops agents if Neovim is killed: {error}");
            crate::log::write("warn", &text);
        })
        .ok()
}
