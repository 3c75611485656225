//! The command line.

use std::time::Duration;

use crate::error::Error;

/// What `--help` prints.
pub const HELP: &str = "\
cursor-agent-mcp: an MCP server for Cursor's cloud agents

usage: cursor-agent-mcp [stdio]
       cursor-agent-mcp http [--host 127.0.0.1] [--port 3000] [--allow-host NAME] [--allow-origin ORIGIN]
       cursor-agent-mcp token [--expires-in 30d]

stdio  For an MCP client that starts it and uses stdin and stdout. This is the default.
http   Serves POST /mcp (streamable HTTP), GET / (discovery) and GET /health.
       Every request carries `Authorization: Bearer` with a Cursor API key, or a token.
token  Prints a token that contains CURSOR_API_KEY, encrypted with TOKEN_SECRET, for an HTTP server with the same secret.

options:
  --host HOST            address to listen on; default: 127.0.0.1, which other machines cannot reach
  --port PORT            default: PORT, or 3000; 0 picks a free port and prints it
  --allow-host NAME      also accept this name in `Host`, for example behind a proxy; can be repeated
  --allow-origin ORIGIN  also accept web pages from this origin, such as https://app.example.com; can be repeated
  --expires-in TIME      how long the token lasts: a number with s, m, h or d, at most 365d; default: 30d
  -h, --help             print this
  -V, --version          print the version

environment:
  CURSOR_API_KEY   the key for stdio and token; or CURSOR_API_KEY_COMMAND, a command that prints it
  CURSOR_API_URL   default: https://api.cursor.com
  PORT             the port for http
  TOKEN_SECRET     encrypts tokens; at least 32 random characters, such as `openssl rand -hex 32`

.cursor/mcp.json:
  { \"mcpServers\": { \"cursor-cloud\": { \"command\": \"/path/to/lib/cursor-agent-mcp\",
    \"env\": { \"CURSOR_API_KEY\": \"${env:CURSOR_API_KEY}\" } } } }

Claude Code:
  claude mcp add cursor-cloud --env CURSOR_API_KEY=\"$CURSOR_API_KEY\" -- /path/to/lib/cursor-agent-mcp
  claude mcp add --transport http cursor-cloud http://127.0.0.1:3000/mcp --header \"Authorization: Bearer $TOKEN\"
";

const DEFAULT_PORT: u16 = 3000;
const DAY_S: u64 = 86_400;

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Serve on stdin and stdout.
    Stdio,
    /// Serve over HTTP.
    Http(Http),
    /// Make a token.
    Token {
        /// How long it lasts.
        lasts: Duration,
    },
    /// Print the help.
    Help,
    /// Print the version.
    Version,
}

/// Where to listen, and to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// An address or a name.
    pub host: String,
    /// 0: any.
    pub port: u16,
    /// Names accepted in `Host` besides the loopback's and `host`.
    pub hosts: Vec<String>,
    /// Origins accepted besides the loopback's.
    pub origins: Vec<String>,
}

/// The command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What to do.
    pub action: Action,
}

impl Options {
    /// Reads the words after the program's name.
    pub fn parse(
        words: impl Iterator<Item = String>,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let mut words = words.peekable();
        let verb = match words.peek().map(String::as_str) {
            Some("stdio" | "http" | "token") => words.next().unwrap_or_default(),
            Some(word) if !word.starts_with('-') => {
                return Err(Error::UnknownSubcommand(word.to_owned()));
            }
            _ => "stdio".to_owned(),
        };
        let mut http = Http {
            host: "127.0.0.1".to_owned(),
            port: DEFAULT_PORT,
            hosts: Vec::new(),
            origins: Vec::new(),
        };
        let mut port = None;
        let mut lasts = Duration::from_secs(30 * DAY_S);
        while let Some(word) = words.next() {
            let (name, given) = match word.split_once('=') {
                Some((name, value)) if name.starts_with("--") => {
                    (name.to_owned(), Some(value.to_owned()))
                }
                _ => (word, None),
            };
            let mut value = |name: &str| {
                given
                    .clone()
                    .or_else(|| words.next())
                    .filter(|value| !value.is_empty())
                    .ok_or_else(|| Error::NoValue(name.to_owned()))
            };
            match (verb.as_str(), name.as_str()) {
                (_, "-h" | "--help") => {
                    return Ok(Self {
                        action: Action::Help,
                    });
                }
                (_, "-V" | "--version") => {
                    return Ok(Self {
                        action: Action::Version,
                    });
                }
                ("http", "--host") => http.host = value("--host")?,
                ("http", "--port") => port = Some(read_port("--port", &value("--port")?)?),
                ("http", "--allow-host") => http.hosts.push(value("--allow-host")?),
                ("http", "--allow-origin") => http.origins.push(value("--allow-origin")?),
                ("token", "--expires-in") => lasts = read_time(&value("--expires-in")?)?,
                _ => {
                    return Err(Error::UnknownOption {
                        option: name,
                        subcommand: verb,
                    });
                }
            }
        }
        let action = match verb.as_str() {
            "http" => {
                http.port = match (port, env("PORT").filter(|text| !text.is_empty())) {
                    (Some(port), _) => port,
                    (None, Some(text)) => read_port("PORT", &text)?,
                    (None, None) => DEFAULT_PORT,
                };
                Action::Http(http)
            }
            "token" => Action::Token { lasts },
            _ => Action::Stdio,
        };
        Ok(Self { action })
    }
}

fn read_port(name: &str, text: &str) -> Result<u16, Error> {
    text.trim()
        .parse()
        .map_err(|_| Error::NotAPort(name.to_owned()))
}

fn read_time(text: &str) -> Result<Duration, Error> {
    let unit = text.chars().last().ok_or(Error::NotATime)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => DAY_S,
        _ => return Err(Error::NotATime),
    };
    let number: u64 = text
        .strip_suffix(unit)
        .and_then(|number| number.parse().ok())
        .ok_or(Error::NotATime)?;
    let lasts = number.checked_mul(seconds).ok_or(Error::NotATime)?;
    if lasts == 0 || lasts > 365 * DAY_S {
        return Err(Error::NotATime);
    }
    Ok(Duration::from_secs(lasts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str, port: Option<&str>) -> Result<Action, String> {
        Options::parse(line.split_whitespace().map(str::to_owned), |name| {
            assert_eq!(name, "PORT");
            port.map(str::to_owned)
        })
        .map(|options| options.action)
        .map_err(|error| error.to_string())
    }

    fn port(action: Result<Action, String>) -> u16 {
        match action {
            Ok(Action::Http(http)) => http.port,
            other => unreachable!("{other:?}"),
        }
    }

    #[test]
    fn stdio_is_the_default() {
        assert_eq!(parse("", None), Ok(Action::Stdio));
        assert_eq!(parse("stdio", Some("nonsense")), Ok(Action::Stdio));
    }

    #[test]
    fn the_option_wins_over_the_variable() {
        assert_eq!(port(parse("http", None)), 3000);
        assert_eq!(port(parse("http", Some("4000"))), 4000);
        assert_eq!(port(parse("http --port 5000", Some("4000"))), 5000);
        assert_eq!(port(parse("http --port=5000", None)), 5000);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let check = |line: &str, port: Option<&str>, part: &str| {
            let problem = parse(line, port).unwrap_err();
            assert!(problem.contains(part), "{line}: {problem}");
        };
        check("serve", None, "`serve`");
        check("stdio --port 1", None, "`--port`");
        check("http --port", None, "`--port`");
        check("http --port 70000", None, "`--port`");
        check("http", Some("x"), "`PORT`");
        check("token --expires-in 0s", None, "`--expires-in`");
        check("token --expires-in 366d", None, "`--expires-in`");
        check("token --expires-in 5", None, "`--expires-in`");
        check("token --expires-in é", None, "`--expires-in`");
    }

    #[test]
    fn times_have_units() {
        let lasts = |text: &str| parse(&format!("token --expires-in {text}"), None);
        let seconds = |number| Action::Token {
            lasts: Duration::from_secs(number),
        };
        assert_eq!(lasts("90s"), Ok(seconds(90)));
        assert_eq!(lasts("2h"), Ok(seconds(7200)));
        assert_eq!(lasts("365d"), Ok(seconds(365 * DAY_S)));
    }
}
