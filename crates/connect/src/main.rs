//! `cursor-agent-connect`: joins a client that speaks ACP on stdio with an agent that is reached by WebSocket.
//!
//! The remote transport of the protocol's draft: one JSON-RPC message is one text frame there and one line here; binary frames are
//! ignored. `args` reads the command line, `token` finds the bearer, `socket` connects and carries messages,
//! `error` says what went wrong.

mod args;
mod error;
mod socket;
mod token;

use std::io::Write;

use args::Wanted;

fn main() {
    let code = match args::parse(std::env::args().skip(1)) {
        Ok(Wanted::Help) => {
            say(&mut std::io::stdout(), args::USAGE);
            0
        }
        Ok(Wanted::Version) => {
            let version = concat!("cursor-agent-connect ", env!("CARGO_PKG_VERSION"));
            say(&mut std::io::stdout(), version);
            0
        }
        Ok(Wanted::Connect(options)) => match run(&options) {
            Ok(()) => 0,
            Err(error) => {
                say(&mut std::io::stderr(), &error.to_string());
                1
            }
        },
        Err(problem) => {
            say(
                &mut std::io::stderr(),
                &format!("{problem}\n\n{}", args::USAGE),
            );
            2
        }
    };
    std::process::exit(code);
}

fn run(options: &args::Options) -> Result<(), error::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let done = runtime.block_on(async {
        let token = token::find(options).await?;
        socket::carry(&options.url, token.as_deref()).await
    });
    // Reading stdin may be in the middle of a line that never ends.
    runtime.shutdown_background();
    done
}

fn say(to: &mut impl Write, text: &str) {
    // Whoever closed the pipe does not want to hear it.
    let _ = writeln!(to, "{text}");
}
