//! A line per request on stderr: when, what, the status and how long. Never a header, a query or a body.

use std::io::Write;
use std::time::Duration;

use cloud::clock;
use serde_json::Value;

use crate::tools::TOOLS;

/// Methods of MCP that are named in the log.
const METHODS: [&str; 8] = [
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "server/discover",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
];

/// What a message asks for, in words that are ours: nothing a client can choose reaches the log.
pub fn what(message: &Value) -> Option<(&'static str, Option<&'static str>)> {
    let method = message["method"].as_str()?;
    let method = METHODS
        .iter()
        .find(|known| **known == method)
        .copied()
        .unwrap_or("another method");
    let tool = TOOLS
        .iter()
        .find(|tool| message["params"]["name"].as_str() == Some(tool.name))
        .map(|tool| tool.name);
    Some((method, tool.filter(|_| method == "tools/call")))
}

/// Writes a line.
pub fn request(
    verb: &str,
    path: &str,
    what: Option<(&str, Option<&str>)>,
    status: u16,
    took: Duration,
) {
    let mut line = format!("{} {verb} {path}", clock::format_ms(clock::now_ms()));
    if let Some((method, tool)) = what {
        line.push(' ');
        line.push_str(method);
        if let Some(tool) = tool {
            line.push(' ');
            line.push_str(tool);
        }
    }
    let _ = writeln!(std::io::stderr(), "{line} {status} {}ms", took.as_millis());
}
