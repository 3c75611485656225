//! `cursor-agent-demo`: an ACP agent that follows a script, for the tests and for the demo.
//!
//! It plays Cursor's CLI on the wire, needs no account and no network, and has these faces:
//!
//! - `acp` is the guided tour of the demo (`tour`).
//! - `play` follows a scenario file (`scenario`, `player`); the tests of the plugin talk to it.
//! - `status`, `login` and their like are Cursor's own commands (`login`).
//!
//! Below them: `cursor` and `plain` are what an agent answers by itself (`profile`), `sessions` what it remembers, `wire` the connection,
//! `record` what a test reads afterwards, `host` the loop around it all.

mod cursor;
mod error;
mod host;
mod login;
mod plain;
mod player;
mod process;
mod profile;
mod prompt;
mod record;
mod scenario;
mod sessions;
mod template;
mod tour;
mod wire;

use std::{io, path::PathBuf};

use error::Error;

const USAGE: &str = "\
usage: cursor-agent-demo acp                                   a guided tour, as an ACP agent
       cursor-agent-demo play SCENARIO.json [--record FILE]    a scenario, as an ACP agent
       cursor-agent-demo status | login | logout | about | models";

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
        return Err(Error::Usage("nothing to do".to_owned()));
    };
    match face.as_str() {
        "acp" => on_one_thread(tour::guide()),
        "play" => {
            let files = Files::of("play", rest)?;
            let play = player::play(&files.input, files.record.as_deref(), &files.rest);
            on_one_thread(play)
        }
        other => {
            if login::run(other, rest, &mut io::stdout())? {
                Ok(())
            } else {
                Err(Error::Usage(format!("no command named {other}")))
            }
        }
    }
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

/// The arguments of the faces that read a file.
struct Files {
    input: PathBuf,
    record: Option<PathBuf>,
    /// What a client appended; it is recorded, not understood.
    rest: Vec<String>,
}

impl Files {
    fn of(face: &str, args: &[String]) -> Result<Self, Error> {
        let mut files = Self {
            input: PathBuf::new(),
            record: None,
            rest: Vec::new(),
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--record" => {
                    let file = args.next();
                    let file =
                        file.ok_or_else(|| Error::Usage("--record needs a file".to_owned()))?;
                    files.record = Some(file.into());
                }
                file if files.input.as_os_str().is_empty() && !file.starts_with('-') => {
                    files.input = file.into();
                }
                other => files.rest.push(other.to_owned()),
            }
        }
        if files.input.as_os_str().is_empty() {
            return Err(Error::Usage(format!("{face} needs a file")));
        }
        Ok(files)
    }
}
