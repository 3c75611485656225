//! Cursor's CLI: where it is, and the short commands we ask it.

use std::ffi::OsString;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::error::Error;
use crate::log;
use crate::options::Options;
use crate::process::{self, Launch};
use crate::redact;
use crate::text;

/// Names it has on the PATH, best first. Another program may be called `agent` too: `--command` decides then.
const NAMES: [&str; 2] = ["agent", "cursor-agent"];

/// Where its installer puts it. An editor started from a desktop may not have that on its PATH.
const INSTALLED: &str = ".local/bin/agent";

/// Short commands print no more than this that matters.
const PRINTED_BYTES: usize = 1024 * 1024;

/// How long the output of a command that has ended may still take to come.
const LAST_WORDS_MS: u64 = 300;

/// What a command of the CLI printed.
#[derive(Debug, Default)]
pub struct Printed {
    /// Its exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// Without escapes.
    pub stdout: String,
    /// Without escapes.
    pub stderr: String,
}

/// The program that the options name, or the one that is found.
///
/// # Errors
/// When there is none.
pub fn find(options: &Options) -> Result<PathBuf, Error> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::home_dir();
    find_in(options.command.as_deref(), &path, home.as_deref())
}

fn find_in(
    named: Option<&str>,
    path: &std::ffi::OsStr,
    home: Option<&Path>,
) -> Result<PathBuf, Error> {
    let on_path = |name: &str| {
        std::env::split_paths(path)
            .filter(|dir| !dir.as_os_str().is_empty())
            .map(|dir| dir.join(name))
            .find(|program| is_program(program))
    };
    // The CLI runs in the session's directory, not in ours.
    let absolute = |program: PathBuf| std::path::absolute(&program).unwrap_or(program);
    let Some(named) = named else {
        return NAMES
            .iter()
            .find_map(|name| on_path(name))
            .or_else(|| {
                home.map(|home| home.join(INSTALLED))
                    .filter(|p| is_program(p))
            })
            .map(absolute)
            .ok_or(Error::NoCli);
    };
    let found = match (named.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Some(home.join(rest)).filter(|program| is_program(program)),
        _ if named.contains('/') => {
            Some(PathBuf::from(named)).filter(|program| is_program(program))
        }
        _ => on_path(named),
    };
    found.map(absolute).ok_or_else(|| Error::NoProgram {
        program: named.to_owned(),
    })
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Runs a short command of the CLI, unless it is cancelled first.
///
/// # Errors
/// When it cannot be started or does not end in time. One that fails has still printed something.
pub async fn ask(
    options: &Options,
    args: &[&str],
    cwd: &Path,
    limit: Duration,
    cancelled: impl Future<Output = ()>,
) -> Result<Printed, Error> {
    let program = find(options)?;
    let command = command_line(&program, args);
    log::debug(&format!("run {command} in {}", cwd.display()));
    let passed_on = options.passed_on.iter().map(OsString::from);
    let launch = Launch {
        program: program.clone(),
        args: passed_on.chain(args.iter().map(OsString::from)).collect(),
        cwd: cwd.to_owned(),
        stdin: None,
    };
    let mut running = process::spawn(&launch).map_err(|error| spawn_error(&program, &error))?;
    let (stdout, stderr) = (running.stdout.take(), running.stderr.take());
    let mut printed = Printed::default();
    let ended = {
        let reading = async { tokio::join!(read(stdout), read(stderr)) };
        let mut reading = std::pin::pin!(reading);
        let work = async {
            tokio::select! {
                texts = &mut reading => (running.exited().await, texts),
                status = running.exited() => {
                    // A child of its own may have kept its output open.
                    running.sweep();
                    let rest = Duration::from_millis(LAST_WORDS_MS);
                    (status, tokio::time::timeout(rest, reading).await.unwrap_or_default())
                }
            }
        };
        tokio::select! {
            () = cancelled => Err(Error::Cancelled),
            ended = tokio::time::timeout(limit, work) => ended.map_err(|_| Error::Slow {
                command,
                seconds: limit.as_secs(),
            }),
        }
    };
    match ended {
        Ok((status, (stdout, stderr))) => {
            running.sweep();
            printed.code = status.and_then(|status| status.code());
            printed.stdout = stdout;
            printed.stderr = stderr;
            Ok(printed)
        }
        Err(error) => {
            running.stop().await;
            Err(error)
        }
    }
}

/// A new chat, which a turn can go on with by `--resume`.
///
/// # Errors
/// When the CLI makes none.
pub async fn create_chat(
    options: &Options,
    cwd: &Path,
    limit: Duration,
    cancelled: impl Future<Output = ()>,
) -> Result<String, Error> {
    let args = ["create-chat"];
    let printed = ask(options, &args, cwd, limit, cancelled).await?;
    if printed.code != Some(0) {
        return Err(printed.failure("create-chat"));
    }
    chat_id(&printed.stdout).ok_or_else(|| Error::NoChat {
        command: command_line(&find(options).unwrap_or_default(), &args),
        printed: text::headline(
            &redact::mask(&format!("{}{}", printed.stdout, printed.stderr)),
            200,
        ),
    })
}

/// The id among what `create-chat` printed: the last word that can be one, since notices come before it.
fn chat_id(printed: &str) -> Option<String> {
    let is_id = |word: &&str| {
        word.len() >= 8
            && word.chars().any(|char| char.is_ascii_digit())
            && word
                .chars()
                .all(|char| char.is_ascii_alphanumeric() || "-_".contains(char))
    };
    let is_uuid = |word: &&str| word.len() == 36 && word.matches('-').count() == 4;
    let words = || printed.split_whitespace().filter(is_id);
    words()
        .rfind(is_uuid)
        .or_else(|| {
            // A line of its own.
            let mut lines = printed.lines().rev().map(str::trim);
            lines.find(|line| is_id(line))
        })
        .map(str::to_owned)
}

impl Printed {
    /// Why the command failed, in its own words.
    pub fn failure(&self, command: &str) -> Error {
        let said = [self.stderr.trim(), self.stdout.trim()];
        let reason = said.iter().find(|text| !text.is_empty());
        let how = match self.code {
            Some(code) => format!("exit code {code}"),
            None => "killed by a signal".to_owned(),
        };
        let reason = match reason {
            Some(reason) => text::cut(&redact::mask(reason), 4000).0.to_owned(),
            None => format!("`{command}` failed ({how}) without output."),
        };
        Error::failed(reason, json!({ "command": command, "exitCode": self.code }))
    }
}

/// What the system said when the program could not be started.
pub fn spawn_error(program: &Path, error: &std::io::Error) -> Error {
    Error::Spawn {
        program: program.to_owned(),
        why: error.to_string(),
    }
}

fn command_line(program: &Path, args: &[&str]) -> String {
    format!("{} {}", program.display(), args.join(" "))
}

/// Everything a stream has, without escapes; what is beyond any use is read and thrown away.
async fn read(stream: Option<impl AsyncRead + Unpin>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        let mut block = vec![0; 16 * 1024];
        while let Ok(read @ 1..) = stream.read(&mut block).await {
            let room = PRINTED_BYTES.saturating_sub(bytes.len());
            bytes.extend_from_slice(&block[..read.min(room)]);
        }
    }
    text::plain(&String::from_utf8_lossy(&bytes))
}

/// How a process ended, for people and for `data`.
pub fn describe_exit(status: Option<std::process::ExitStatus>) -> (String, Value) {
    use std::os::unix::process::ExitStatusExt;
    let code = status.and_then(|status| status.code());
    let signal = status.and_then(|status| status.signal());
    let words = match (code, signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no exit status".to_owned(),
    };
    (words, json!({ "exitCode": code, "signal": signal }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_id_is_found_among_notices() {
        let id = "0f1a2b3c-0000-4000-8000-123456789abc";
        for (printed, expected) in [
            (format!("{id}\n"), Some(id)),
            (format!("A new version is available\n{id}\n\n"), Some(id)),
            (format!("Created chat {id}"), Some(id)),
            ("chat_12345678\n".to_owned(), Some("chat_12345678")),
            ("Usage: agent [options]\n".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(chat_id(&printed).as_deref(), expected, "{printed}");
        }
    }

    #[test]
    fn the_program_is_the_first_that_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let make = |path: &str, mode| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let path = std::env::join_paths([dir.path().join("a"), dir.path().join("b")]).unwrap();
        let home = dir.path().join("home");
        let find = |named| find_in(named, &path, Some(&home));

        assert!(matches!(find(None), Err(Error::NoCli)));
        let installed = make("home/.local/bin/agent", 0o755);
        assert_eq!(find(None).unwrap(), installed);
        let old = make("a/cursor-agent", 0o755);
        assert_eq!(find(None).unwrap(), old);
        make("a/agent", 0o644);
        assert_eq!(find(None).unwrap(), old, "not executable");
        let agent = make("b/agent", 0o755);
        assert_eq!(
            find(None).unwrap(),
            agent,
            "the name counts before the directory"
        );
        assert_eq!(find(Some("cursor-agent")).unwrap(), old);
        assert_eq!(find(Some("~/.local/bin/agent")).unwrap(), installed);
        assert_eq!(find(Some(agent.to_str().unwrap())).unwrap(), agent);
        for missing in ["nothing", "/nothing/agent", "~/nothing"] {
            assert!(matches!(find(Some(missing)), Err(Error::NoProgram { .. })));
        }
    }
}
