//! Ends our runs when this process is killed and cannot do it: a shell that waits for EOF on its input.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::log;
use crate::process::{MARK, mark_prefix};

/// Reads `+ PID` and `- PID`. At EOF the remaining groups are killed, and every process with our mark in its
/// environment, where the system shows that.
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
[ $# -gt 0 ] || exit 0
for round in 1 2 3; do
  for group do kill -s KILL -- "-$group"; done
  files=$(grep -aslzF -- "$mark" /proc/[0-9]*/environ)
  [ -n "$files" ] || exit 0
  for file in $files; do
    pid=${file#/proc/}
    pid=${pid%/environ}
    [ "$pid" = $$ ] || kill -s KILL "$pid"
  done
  sleep 0.1
done
"#;

/// The group led by `pid` must not outlive us.
pub fn watch(pid: u32) {
    if let Some(pipe) = pipe().get_or_init(start) {
        tell(pipe, &format!("+ {pid}\n"));
    }
}

/// The group is gone: its number may come to be another's.
pub fn forget(pid: u32) {
    if let Some(Some(pipe)) = pipe().get() {
        tell(pipe, &format!("- {pid}\n"));
    }
}

fn pipe() -> &'static OnceLock<Option<UnixStream>> {
    static PIPE: OnceLock<Option<UnixStream>> = OnceLock::new();
    &PIPE
}

/// Never waits. A shell that is gone or does not read is a net less, and no reason to stop.
fn tell(mut pipe: &UnixStream, line: &str) {
    let _ = pipe.write_all(line.as_bytes());
}

fn start() -> Option<UnixStream> {
    let started = || {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        Command::new("sh")
            .args(["-c", SCRIPT, "sh", &format!("{MARK}={}", mark_prefix())])
            .env_remove(MARK)
            .current_dir("/")
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Signals from the terminal are for us, not for the shell.
            .process_group(0)
            .spawn()?;
        std::io::Result::Ok(ours)
    };
    started()
        .inspect_err(|error| {
            log::warn(&format!(
                "cannot start the shell that stops the CLI if this process is killed: {error}"
            ));
        })
        .ok()
}
