//! The command line.

use crate::error::Error;

/// What `--help` says.
pub const USAGE: &str = "\
usage: cursor-agent-connect URL [--token-command PROGRAM [ARGUMENT…]]

Connects a client that speaks the Agent Client Protocol on stdin and stdout to an agent at URL (ws://, wss://, http:// or https://),
over the protocol's WebSocket transport. The default path is /acp.

  --token-command PROGRAM [ARGUMENT…]   run this command; the first line of its output is the bearer token
  --help                                print this
  --version                             print the version

Without a command, the bearer token is ACP_TOKEN from the environment. Messages go to stdout, everything else to stderr.
It exits when stdin or the connection closes: with code 0 if the server closed the connection cleanly, otherwise with 1.";

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Wanted {
    Help,
    Version,
    Connect(Options),
}

/// Where to.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// With a scheme of WebSocket's, and a path.
    pub url: String,
    /// Prints the token; empty for none.
    pub token_command: Vec<String>,
}

/// Reads the arguments.
pub fn parse(args: impl Iterator<Item = String>) -> Result<Wanted, Error> {
    let mut args = args.peekable();
    let mut url = None;
    let mut token_command = Vec::new();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--help" | "-h" => return Ok(Wanted::Help),
            "--version" | "-V" => return Ok(Wanted::Version),
            "--token-command" => {
                token_command = args.by_ref().collect();
                if token_command.is_empty() {
                    return Err(Error::NoTokenProgram);
                }
            }
            _ if arg.starts_with('-') => return Err(Error::UnknownOption(arg)),
            _ if url.is_none() => url = Some(address(&arg)?),
            _ => return Err(Error::SecondUrl(arg)),
        }
    }
    let url = url.ok_or(Error::NoUrl)?;
    Ok(Wanted::Connect(Options { url, token_command }))
}

/// The address as WebSocket has it.
fn address(text: &str) -> Result<String, Error> {
    const SCHEMES: &[(&str, &str)] = &[
        ("ws://", "ws://"),
        ("wss://", "wss://"),
        ("http://", "ws://"),
        ("https://", "wss://"),
    ];
    let found = SCHEMES
        .iter()
        .find_map(|(given, scheme)| Some((text.strip_prefix(given)?, scheme)));
    let Some((rest, scheme)) = found.filter(|(rest, _)| !rest.is_empty()) else {
        return Err(Error::NotAnAddress(text.to_owned()));
    };
    let (host, path) = match rest.find(['/', '?']) {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let path = match path {
        "" | "/" => "/acp".to_owned(),
        path if path.starts_with('?') => format!("/acp{path}"),
        path => path.to_owned(),
    };
    Ok(format!("{scheme}{host}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(args: &[&str]) -> Result<String, String> {
        match parse(args.iter().map(|arg| (*arg).to_owned())).map_err(|error| error.to_string())? {
            Wanted::Connect(options) => Ok(options.url),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn addresses() {
        assert_eq!(url(&["ws://h:1"]), Ok("ws://h:1/acp".to_owned()));
        assert_eq!(url(&["http://h/"]), Ok("ws://h/acp".to_owned()));
        assert_eq!(url(&["https://h/x?y=1"]), Ok("wss://h/x?y=1".to_owned()));
        assert_eq!(url(&["wss://h?y=1"]), Ok("wss://h/acp?y=1".to_owned()));
        for wrong in [
            &["h:1"][..],
            &["ftp://h"],
            &["ws://"],
            &[],
            &["ws://a", "ws://b"],
            &["-x"],
        ] {
            assert!(url(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_token_command_takes_all_that_follows() {
        let args = ["ws://h", "--token-command", "pass", "show", "--help"];
        let wanted = parse(args.iter().map(|arg| (*arg).to_owned()));
        let expected = Options {
            url: "ws://h/acp".to_owned(),
            token_command: ["pass", "show", "--help"].map(str::to_owned).to_vec(),
        };
        assert_eq!(wanted.ok(), Some(Wanted::Connect(expected)));
    }
}
