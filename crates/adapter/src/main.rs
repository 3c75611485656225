//! `cursor-agent-acp`: an ACP agent on stdio for a Cursor CLI without `acp`, by its headless mode.
//!
//! From the outside in:
//!
//! - `options` is the command line, `wire` the connection, `server` the agent: it hands each request to `account`, `open`, `settings` or
//!   `prompting`.
//! - `session` is a session's settings, `store` what is kept of it, `history` in which form; `chats` are the CLI's own chats.
//! - `turn` is one run of the CLI; `translate` makes updates of its lines, with `said` for text, `tools`, `outcome` and `patch` for tool
//!   calls, `todos` for plans. `prompt` is the way back: a prompt's blocks as one text.
//! - `cli` finds the program and asks it short questions, `models` reads its list; `process` and `keeper` see to it that no process of it
//!   is left behind, whatever becomes of us.
//! - `error` is what can go wrong, in words, `log` where it is written, `redact` what is left out there; `text`, `values`, `clock` and `cancel` are small and used everywhere.
//!
//! What always holds: stdout carries messages only; each request is answered once; updates of a turn come before its answer, in the order
//! the CLI printed them; a client that does not read costs no more than the bounds of `wire`.

mod account;
mod cancel;
mod chats;
mod cli;
mod clock;
mod error;
mod history;
mod keeper;
mod log;
mod models;
mod open;
mod options;
mod outcome;
mod patch;
mod process;
mod prompt;
mod prompting;
mod redact;
mod said;
mod server;
mod session;
mod settings;
mod store;
mod text;
mod todos;
mod tools;
mod translate;
mod turn;
mod values;
mod wire;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use options::{Action, Options};
use server::Server;
use wire::ToClient;

/// How long what runs may take to end when the client is gone.
const SHUT_DOWN: Duration = Duration::from_secs(3);

/// How long the last answers may take to be read, without any of them being read.
const FLUSH: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            complain(&format!("{problem}; see `cursor-agent-acp --help`"));
            return ExitCode::from(2);
        }
    };
    if let Some(path) = &options.log
        && let Err(error) = log::to_file(path)
    {
        complain(&format!(
            "cannot write the log to {}: {error}",
            path.display()
        ));
        return ExitCode::from(2);
    }
    match options.action {
        Action::Help => print(options::HELP),
        Action::Version => print(&format!("cursor-agent-acp {}\n", env!("CARGO_PKG_VERSION"))),
        Action::Login => login(&options),
        Action::Serve => serve(options),
    }
}

fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "cursor-agent-acp: {text}");
}

/// Becomes `PROGRAM login`, in this terminal.
fn login(options: &Options) -> ExitCode {
    use std::os::unix::process::CommandExt;
    let program = match cli::find(options) {
        Ok(program) => program,
        Err(error) => {
            complain(&error.to_string());
            return ExitCode::FAILURE;
        }
    };
    let error = std::process::Command::new(&program)
        .args(&options.passed_on)
        .arg("login")
        .exec();
    complain(&cli::spawn_error(&program, &error).to_string());
    ExitCode::FAILURE
}

fn serve(options: Options) -> ExitCode {
    if std::io::stdin().is_terminal() {
        complain(
            "this is meant to be started by an editor that talks to it on stdin; see `cursor-agent-acp --help`",
        );
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let served = runtime.and_then(|runtime| {
        let tasks = tokio::task::LocalSet::new();
        let served = tasks.block_on(&runtime, agent(options));
        // What is still running is dropped here, which ends its processes.
        drop(tasks);
        runtime.shutdown_background();
        served
    });
    match served {
        Ok(code) => code,
        Err(error) => {
            complain(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Why the agent ends.
enum End {
    /// The client closed stdin, or does not read any more.
    Client,
    /// A signal with this number.
    Signal(u8),
}

/// Until stdin ends, the client is gone, or a signal says so.
async fn agent(options: Options) -> std::io::Result<ExitCode> {
    let out = ToClient::to_stdout()?;
    let mut arrived = wire::read_stdin()?;
    let server = Server::new(options, out.clone());
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    let mut hup = signal(SignalKind::hangup())?;
    let end = loop {
        let next = async {
            out.room_for_answers().await;
            arrived.recv().await
        };
        tokio::select! {
            message = next => match message {
                Some(message) => server.handle(message),
                None => break End::Client,
            },
            () = out.closed() => break End::Client,
            _ = term.recv() => break End::Signal(15),
            _ = int.recv() => break End::Signal(2),
            _ = hup.recv() => break End::Signal(1),
        }
    };
    server.shut_down(SHUT_DOWN).await;
    out.flush(FLUSH).await;
    Ok(match end {
        End::Client => ExitCode::SUCCESS,
        End::Signal(number) => ExitCode::from(128 + number),
    })
}
