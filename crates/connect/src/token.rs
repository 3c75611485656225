//! The bearer token: from the environment, or from a command that prints it. It is never on our own command line.

use std::process::Stdio;
use std::time::Duration;

use crate::args::Options;
use crate::error::Error;

/// What a command may take that prints a token; it may ask a key store that asks the user.
const COMMAND_WAIT: Duration = Duration::from_secs(60);
/// The variable.
const VARIABLE: &str = "ACP_TOKEN";

/// The token, if there is one.
pub async fn find(options: &Options) -> Result<Option<String>, Error> {
    let Some((program, args)) = options.token_command.split_first() else {
        let set = std::env::var(VARIABLE).ok();
        return Ok(set
            .map(|token| token.trim().to_owned())
            .filter(|token| !token.is_empty()));
    };
    let running = tokio::process::Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output();
    let output = match tokio::time::timeout(COMMAND_WAIT, running).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return Err(Error::Token(format!("{program}: {error}"))),
        Err(_) => {
            let why = format!("{program} took more than {} s", COMMAND_WAIT.as_secs());
            return Err(Error::Token(why));
        }
    };
    if !output.status.success() {
        return Err(Error::Token(format!("{program}: {}", output.status)));
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    match printed.lines().map(str::trim).find(|line| !line.is_empty()) {
        Some(token) => Ok(Some(token.to_owned())),
        None => Err(Error::Token(format!("{program} printed nothing"))),
    }
}
