//! Ways for a process to begin others and to end itself.

use std::{
    io::{self, Write},
    os::unix::process::CommandExt,
    process::{Command, Stdio},
};

use serde_json::json;

use crate::wire::Wire;

pub fn exit(wire: &Wire, code: i32) -> ! {
    wire.record().note("exit", json!({ "code": code }));
    std::process::exit(code)
}

/// Dies of a signal, through a shell that replaces this process: its handlers are gone then, so that even
/// SIGTERM kills.
pub fn die_of(wire: &Wire, signal: i32) -> ! {
    wire.record().note("exit", json!({ "signal": signal }));
    let error = Command::new("sh")
        .args(["-c", &format!("ulimit -c 0; kill -{signal} $$")])
        .exec();
    complain(&format!("no shell to die by: {error}"));
    std::process::exit(70)
}

/// A child that is not waited for; its process id.
pub fn spawn(command: &[String], inherit: bool, own_group: bool) -> io::Result<u32> {
    let [program, args @ ..] = command else {
        return Err(io::Error::other("no program"));
    };
    let stdio = || {
        if inherit {
            Stdio::inherit()
        } else {
            Stdio::null()
        }
    };
    let mut child = Command::new(program);
    child
        .args(args)
        .stdin(Stdio::null())
        .stdout(stdio())
        .stderr(stdio());
    if own_group {
        child.process_group(0);
    }
    Ok(child.spawn()?.id())
}

/// One line on stderr.
pub fn complain(message: &str) {
    let _ = writeln!(io::stderr(), "cursor-agent-demo: {message}");
}
