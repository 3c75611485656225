//! `cursor-agent-demo`: an ACP agent that follows a script, for the tests and for the demo.
//!
//! It plays Cursor's CLI on the wire, needs no account and no network, and has these faces:
//!
//! - `acp` is the guided tour of the demo (`tour`).
//! - `play` follows a scenario file (`scenario`, `player`); the tests of the plugin talk to it.
//! - `replay` plays a saved protocol log back (`replay`).
//! - `status`, `login`, `mcp` and their like are Cursor's own commands (`login`, `mcp`).
//!
//! Below them: `cursor`, `cursor_2026_10` and `plain` are what an agent answers by itself (`profile`), `sessions` what it remembers, `wire` the connection,
//! `record` what a test reads afterwards, `host` the loop around it all; `template` fills in what a scenario leaves open, `prompt` reads
//! one, `session_store` writes Cursor's store, `process` and `private` are how it acts, `error` what it cannot read.

mod cursor;
mod cursor_2026_10;
mod error;
mod host;
mod login;
mod mcp;
mod plain;
mod player;
mod private;
mod process;
mod profile;
mod prompt;
mod record;
mod replay;
mod scenario;
mod session_store;
mod sessions;
mod template;
mod tour;
mod wire;

use std::{
    io::{self, Write},
    path::PathBuf,
};

use error::Error;

const USAGE: &str = "\
usage: cursor-agent-demo acp                                   a guided tour, as an ACP agent
       cursor-agent-demo play SCENARIO.json [--record FILE]    a scenario, as an ACP agent
       cursor-agent-demo play cursor-2026-10 [--record FILE]   the scenario included in the program
       cursor-agent-demo replay LOG.jsonl [--record FILE]      a saved protocol log, as an ACP agent
                                [--speed N]                    1 for the recorded speed, 0 (default) for no pauses
       cursor-agent-demo status | login | logout | about | models
       cursor-agent-demo mcp list | list-tools NAME | enable NAME | disable NAME | login NAME
       cursor-agent-demo --help | --version

status, login, logout, about, models and mcp answer as Cursor's CLI does.";

/// Options of Cursor's CLI that stand before or after a command and have a value. They are accepted, so that a client can be tried with
/// them; only the model is looked at.
const CURSOR_OPTIONS: &[&str] = &[
    "-e",
    "--endpoint",
    "--api-key",
    "--auth-token",
    "--model",
    "--workspace",
    "-H",
    "--header",
];

/// Likewise, without a value.
const CURSOR_FLAGS: &[&str] = &["-k", "--insecure", "--approve-mcps", "--trust", "--force"];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Err(error) = run(&args) {
        process::complain(&error.to_string());
        std::process::exit(error.exit_code());
    }
}

fn run(args: &[String]) -> Result<(), Error> {
    let args = without_cursor_options(args)?;
    let Some((face, rest)) = args.split_first() else {
        return Err(Error::Usage("missing subcommand".to_owned()));
    };
    match face.as_str() {
        "--help" | "-h" | "help" => print(USAGE),
        "--version" | "-V" => print(concat!("cursor-agent-demo ", env!("CARGO_PKG_VERSION"))),
        "acp" => on_one_thread(tour::guide()),
        "play" => {
            let mut rest = rest.to_vec();
            let record = take_option(&mut rest, "--record")?.map(PathBuf::from);
            let scenario = take_file(&mut rest, face)?;
            on_one_thread(player::play(&scenario, record.as_deref(), &rest))
        }
        "replay" => {
            let mut rest = rest.to_vec();
            let record = take_option(&mut rest, "--record")?.map(PathBuf::from);
            let speed = take_option(&mut rest, "--speed")?.map(|speed| parse_speed(&speed));
            let log = take_file(&mut rest, face)?;
            let speed = speed.transpose()?.unwrap_or(0.0);
            on_one_thread(replay::replay(&log, record.as_deref(), speed))
        }
        "mcp" => mcp::run(rest, &mut io::stdout()),
        other => {
            if login::run(other, rest, &mut io::stdout())? {
                Ok(())
            } else {
                Err(Error::Usage(format!("unknown subcommand `{other}`")))
            }
        }
    }
}

fn print(text: &str) -> Result<(), Error> {
    Ok(writeln!(io::stdout(), "{text}")?)
}

/// What is left when Cursor's options are taken away; a scenario records them instead.
fn without_cursor_options(args: &[String]) -> Result<Vec<String>, Error> {
    let mut left = Vec::new();
    let mut args_left = args.iter();
    while let Some(arg) = args_left.next() {
        if arg == "play" && left.is_empty() {
            left.push(arg.clone());
            left.extend(args_left.cloned());
            break;
        } else if CURSOR_OPTIONS.contains(&arg.as_str()) {
            let value = args_left.next();
            let value = value.ok_or_else(|| Error::Usage(format!("{arg} needs a value")))?;
            if arg == "--model" && !cursor::is_model(value) {
                let models: Vec<&str> = cursor::model_names().map(|(id, _)| id).collect();
                let models = models.join(", ");
                return Err(Error::Refused(format!(
                    "Cannot use this model: {value}. Available models: {models}"
                )));
            }
        } else if CURSOR_OPTIONS
            .iter()
            .any(|option| arg.starts_with(&format!("{option}=")))
        {
            // With its value in one.
        } else if !CURSOR_FLAGS.contains(&arg.as_str()) {
            left.push(arg.clone());
        }
    }
    Ok(left)
}

/// Everything the agent does happens in turn on this thread; only stdin has one of its own.
fn on_one_thread(face: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    tokio::task::LocalSet::new().block_on(&runtime, face)
}

/// Takes an option with its value out of the arguments.
fn take_option(args: &mut Vec<String>, name: &str) -> Result<Option<String>, Error> {
    let Some(index) = args.iter().position(|arg| arg == name) else {
        return Ok(None);
    };
    if index + 1 == args.len() {
        return Err(Error::Usage(format!("{name} needs a value")));
    }
    args.remove(index);
    Ok(Some(args.remove(index)))
}

fn take_file(args: &mut Vec<String>, face: &str) -> Result<PathBuf, Error> {
    match args.iter().position(|arg| !arg.starts_with('-')) {
        Some(index) => Ok(args.remove(index).into()),
        None => Err(Error::Usage(format!("{face} needs a file"))),
    }
}

fn parse_speed(text: &str) -> Result<f64, Error> {
    let speed = text.parse().ok().filter(|speed: &f64| *speed >= 0.0);
    speed.ok_or_else(|| Error::Usage(format!("--speed is a number, not {text}")))
}
