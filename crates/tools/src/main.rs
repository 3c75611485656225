//! `cursor-agent-demo`: an ACP agent that follows a script, for the tests and for the demo.
//!
//! It plays Cursor's CLI on the wire, needs no account and no network, and has these faces:
//!
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
mod record;
mod scenario;
mod sessions;
mod template;
mod wire;

use std::{io, path::PathBuf};

use error::Error;

const USAGE: &str = "\
usage: cursor-agent-demo play SCENARIO.json [--record FILE]    a scenario, as an ACP agent
       cursor-agent-demo status | login | logout | about | models";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Err(error) = run(&args) {
        process::complain(&error.to_string());
        std::process::exit(error.exit_code());
    }
}

fn run(args: &[String]) -> Result<(), Error> {
    let Some((face, rest)) = args.split_first() else {
        return Err(Error::Usage("nothing to do".to_owned()));
    };
    match face.as_str() {
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
