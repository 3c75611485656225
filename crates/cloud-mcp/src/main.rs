//! `cursor-agent-mcp`: an MCP server for Cursor's cloud agents, over stdio and streamable HTTP.
//!
//! - `options` is the command line, `error` why the program cannot start; `server` the MCP server, the same for both transports; `http` is the other one's routes and checks,
//!   with `guard` for Host and Origin, `bearer` for who asks, `token` for the tokens made here, and `log` for a line per request.
//! - `tools` lists the fourteen tools and calls them; `schema` has their inputs and outputs, `check` validates an input against its schema.
//! - `account` is one API key with its client; `agents` makes the calls, by today's API where it can; `wait` is `createAndWait`,
//!   `summary`, `templates` and `documentation` the tools of these names, `text` what people read, `failure` what went wrong.
//!
//! What always holds: stdout carries messages only; a failed call is a result with `isError`; no key, token, secret or body is in the log,
//! in an error or in a URL.

mod account;
mod agents;
mod bearer;
mod check;
mod documentation;
mod error;
mod failure;
mod guard;
mod http;
mod log;
mod options;
mod schema;
mod server;
mod summary;
mod templates;
mod text;
mod token;
mod tools;
mod wait;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use account::Account;
use error::Error;
use options::{Action, Options};
use server::Server;
use wait::Waits;

/// How long the last answers may take.
const SHUT_DOWN: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1), |name| std::env::var(name).ok()) {
        Ok(options) => options,
        Err(problem) => {
            complain(&format!("{problem}; see `cursor-agent-mcp --help`"));
            return ExitCode::from(2);
        }
    };
    match &options.action {
        Action::Help => return print(options::HELP),
        Action::Version => {
            return print(&format!("cursor-agent-mcp {}\n", env!("CARGO_PKG_VERSION")));
        }
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&error.to_string());
            return ExitCode::FAILURE;
        }
    };
    let ended = runtime.block_on(run(options));
    // A thread may still read stdin, which has no end.
    runtime.shutdown_background();
    match ended {
        Ok(code) => code,
        Err(error) => {
            complain(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<ExitCode, Error> {
    match options.action {
        Action::Token { lasts } => match token::make(lasts).await {
            Ok(token) => Ok(print(&format!("{token}\n"))),
            Err(problem) => Err(problem),
        },
        Action::Http(http) => http::serve(http).await,
        _ => stdio().await,
    }
}

/// Until stdin ends or a signal comes.
async fn stdio() -> Result<ExitCode, Error> {
    let account = Account::from_env()?;
    let stop = CancellationToken::new();
    let server = Server::new(Some(Arc::new(account)), Waits::new(stop.clone()));
    let (mut term, mut int) = signals()?;
    let serving = async {
        // A client that is gone before it said hello is no failure.
        if let Ok(service) = server.serve(rmcp::transport::stdio()).await {
            let _ = service.waiting().await;
        }
    };
    tokio::pin!(serving);
    tokio::select! {
        () = &mut serving => return Ok(ExitCode::SUCCESS),
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    stop.cancel();
    // What waits answers now; reading goes on until then.
    let _ = tokio::time::timeout(Duration::from_millis(200), serving).await;
    Ok(ExitCode::SUCCESS)
}

fn signals() -> std::io::Result<(tokio::signal::unix::Signal, tokio::signal::unix::Signal)> {
    Ok((
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    ))
}

fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "cursor-agent-mcp: {text}");
}
