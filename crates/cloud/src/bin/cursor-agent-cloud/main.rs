//! `cursor-agent-cloud`: Cursor's cloud agents for Neovim, in a process of their own.
//!
//! - `rpc` is what the dashboard asks, `acp` an ACP agent whose sessions are cloud agents ([`updates`] makes updates of their events).
//! - `agent` serves `acp`, `git` looks at the directory, `stdio` carries lines, `usage` says what is wrong with the arguments.
//! - `fake` is the API on loopback, for tests and for trying things out.

mod agent;
mod git;
mod rpc;
mod stdio;
mod updates;
mod usage;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use cloud::fake::{Fake, Options};
use cloud::{Client, Config, KeySource};

use usage::Error;

/// The agents of the demo, and how fast they work.
const DEMO_AGENTS: usize = 14;
const DEMO_PACE: Duration = Duration::from_millis(150);

const HELP: &str = "\
cursor-agent-cloud: Cursor's cloud agents for Neovim

  cursor-agent-cloud acp
      an ACP agent on stdio: each session is a cloud agent, each prompt a follow-up

  cursor-agent-cloud rpc [--demo]
      JSON-RPC on stdio for the dashboard: hello, me, models, repos, list, get, create, follow, stop, archive,
      unarchive, delete, artifacts, download, usage, watch; with --demo, a built-in fake instead of Cursor's API

  cursor-agent-cloud fake [--port N] [--agents N] [--pace MS] [--skew MS] [--key KEY]
      a fake of Cursor's API on loopback; prints its URL and runs until stdin ends; lines of JSON on stdin inject faults

  --help, --version

The key comes from CURSOR_API_KEY, or from the command in CURSOR_API_KEY_COMMAND (a JSON list, or a line for sh).
CURSOR_API_URL selects another server; CURSOR_TEAM_ID is for team keys.
Proxies come from HTTPS_PROXY and NO_PROXY, certificates from the system and SSL_CERT_FILE.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--help" | "-h" | "help"] => print(HELP),
        ["--version" | "-V"] => print(&format!(
            "cursor-agent-cloud {}\n",
            env!("CARGO_PKG_VERSION")
        )),
        ["acp"] => with_client(|client| run_local(agent::serve(client))),
        ["rpc"] => with_client(|client| run_local(rpc::serve(client, None))),
        ["rpc", "--demo"] => run_local(demo()),
        ["fake", options @ ..] => match fake_options(options) {
            Ok(options) => run(serve_fake(options)),
            Err(why) => complain(&why.to_string()),
        },
        [] => complain("missing subcommand"),
        [other, ..] => complain(&format!("unknown argument `{other}`")),
    }
}

fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn complain(why: &str) -> ExitCode {
    let _ = writeln!(
        std::io::stderr(),
        "cursor-agent-cloud: {why}; see `cursor-agent-cloud --help`"
    );
    ExitCode::from(2)
}

fn run(work: impl Future<Output = std::io::Result<()>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let done = runtime.and_then(|runtime| {
        let done = runtime.block_on(work);
        runtime.shutdown_background();
        done
    });
    finish(done)
}

fn finish(done: std::io::Result<()>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "cursor-agent-cloud: {error}");
            ExitCode::FAILURE
        }
    }
}

/// With the settings of the environment.
fn with_client(work: impl FnOnce(Client) -> ExitCode) -> ExitCode {
    match Client::from_env() {
        Ok(client) => work(client),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "cursor-agent-cloud: {error}");
            ExitCode::FAILURE
        }
    }
}

/// On one thread: everything here waits far more than it works.
fn run_local(work: impl Future<Output = std::io::Result<()>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = runtime.and_then(|runtime| {
        let tasks = tokio::task::LocalSet::new();
        let done = tasks.block_on(&runtime, work);
        drop(tasks);
        runtime.shutdown_background();
        done
    });
    finish(done)
}

async fn demo() -> std::io::Result<()> {
    let options = Options {
        agents: DEMO_AGENTS,
        pace: DEMO_PACE,
        ..Options::default()
    };
    let fake = Fake::start(options).await?;
    let config = Config {
        url: Some(fake.url()),
        key: KeySource::given("key_fake"),
        ..Config::default()
    };
    let client = Client::new(config).map_err(std::io::Error::other)?;
    rpc::serve(client, Some(fake)).await
}

fn fake_options(words: &[&str]) -> Result<Options, Error> {
    let mut options = Options {
        pace: Duration::from_millis(120),
        ..Options::default()
    };
    let mut words = words.iter();
    while let Some(name) = words.next() {
        let value = words
            .next()
            .ok_or_else(|| Error::NoValue((*name).to_owned()))?;
        let number = || {
            value.parse::<i64>().map_err(|_| Error::NotANumber {
                name: (*name).to_owned(),
                value: (*value).to_owned(),
            })
        };
        let count = || {
            number().and_then(|number| {
                u64::try_from(number).map_err(|_| Error::Negative((*name).to_owned()))
            })
        };
        match *name {
            "--port" => options.port = u16::try_from(count()?).map_err(|_| Error::NoSuchPort)?,
            "--agents" => options.agents = usize::try_from(count()?).unwrap_or(0),
            "--pace" => options.pace = Duration::from_millis(count()?),
            "--skew" => options.skew_ms = number()?,
            "--key" => options.key = Some((*value).to_owned()),
            _ => return Err(Error::UnknownOption((*name).to_owned())),
        }
    }
    Ok(options)
}

async fn serve_fake(options: Options) -> std::io::Result<()> {
    let fake = Fake::start(options).await?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{}", fake.url())?;
    stdout.flush()?;
    // Not tokio's stdin: its read cannot be dropped.
    let (line, mut lines) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for read in std::io::stdin().lines() {
            let Ok(read) = read else { break };
            if line.send(read).is_err() {
                break;
            }
        }
    });
    while let Some(line) = lines.recv().await {
        writeln!(stdout, "{}", fake.control(&line))?;
        stdout.flush()?;
    }
    Ok(())
}
