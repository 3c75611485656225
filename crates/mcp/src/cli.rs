//! What `agent mcp list` and `agent mcp list-tools` print.

use serde::Serialize;

/// How a server is, by the CLI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    pub name: String,
    pub state: State,
    /// Why, where it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// The states it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Ready,
    NeedsApproval,
    NeedsLogin,
    Disabled,
    Loading,
    Error,
    /// One we do not know; the detail has it.
    Unknown,
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tool {
    pub name: String,
    /// The names of its arguments.
    pub arguments: String,
}

/// Reads a list: lines of `name: state`. Both may hold colons: a name that is known is taken first.
pub fn list(output: &str, known: &[String]) -> Vec<Row> {
    output
        .lines()
        .filter_map(|line| row(&plain(line), known))
        .collect()
}

/// Reads the tools of a server: lines of `- name (arguments)` under a heading.
pub fn tools(output: &str) -> Vec<Tool> {
    let lines = output.lines().map(plain);
    let tools = lines.filter_map(|line| {
        let tool = line.strip_prefix("- ")?.trim();
        let (name, arguments) = match tool.split_once(" (") {
            Some((name, rest)) => (name, rest.strip_suffix(')').unwrap_or(rest)),
            None => (tool, ""),
        };
        (!name.is_empty()).then(|| Tool {
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        })
    });
    tools.collect()
}

fn row(line: &str, known: &[String]) -> Option<Row> {
    let mut named: Vec<&String> = known
        .iter()
        .filter(|name| {
            let rest = line.strip_prefix(name.as_str());
            rest.is_some_and(|rest| rest.trim_start().starts_with(':'))
        })
        .collect();
    named.sort_by_key(|name| std::cmp::Reverse(name.len()));
    if let Some(name) = named.first() {
        let said = line[name.len()..]
            .trim_start()
            .trim_start_matches(':')
            .trim();
        let (state, detail) = state(said).unwrap_or((State::Unknown, some(said)));
        return Some(Row {
            name: (*name).clone(),
            state,
            detail,
        });
    }
    // The rightmost colon that a state follows: an error has colons of its own.
    let mut colons = line.rmatch_indices(": ");
    let read = colons.find_map(|(at, _)| Some((at, state(line[at + 2..].trim())?)));
    let (at, (state, detail)) = read?;
    (at > 0).then(|| Row {
        name: line[..at].trim().to_owned(),
        state,
        detail,
    })
}

fn state(said: &str) -> Option<(State, Option<String>)> {
    const WORDS: &[(&str, State)] = &[
        ("ready", State::Ready),
        ("connected", State::Ready),
        ("not loaded (needs approval)", State::NeedsApproval),
        ("needs approval", State::NeedsApproval),
        ("not loaded", State::NeedsApproval),
        ("requires_authentication", State::NeedsLogin),
        ("requires authentication", State::NeedsLogin),
        ("needs authentication", State::NeedsLogin),
        ("disabled", State::Disabled),
        ("loading", State::Loading),
        ("Error:", State::Error),
        ("error:", State::Error),
    ];
    WORDS.iter().find_map(|(word, state)| {
        let rest = said.strip_prefix(word)?;
        let ends =
            rest.is_empty() || word.ends_with(':') || rest.starts_with([' ', '.', '…', '(', ',']);
        ends.then(|| (*state, some(rest.trim().trim_matches(['(', ')', '.', '…']))))
    })
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// A line without colours, and without the mark some releases begin it with.
fn plain(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            text.push(c);
            continue;
        }
        // A sequence ends with a letter.
        if chars.next() == Some('[') {
            chars.by_ref().find(|c| ('@'..='~').contains(c));
        }
    }
    let text = text.trim();
    let marks = ['✓', '✗', '○', '●', '⚠', '•', '✔', '✘'];
    text.trim_start_matches(marks).trim_start().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(output: &str, known: &[&str]) -> Vec<(String, State, Option<String>)> {
        let known: Vec<String> = known.iter().map(|name| (*name).to_owned()).collect();
        let rows = list(output, &known).into_iter();
        rows.map(|row| (row.name, row.state, row.detail)).collect()
    }

    fn check(line: &str, known: &[&str], name: &str, state: State, detail: Option<&str>) {
        let expected = (name.to_owned(), state, detail.map(str::to_owned));
        assert_eq!(rows(line, known), [expected], "{line}");
    }

    #[test]
    fn rows_of_every_state() {
        check("git: ready", &[], "git", State::Ready, None);
        check("git: ready\r", &["git"], "git", State::Ready, None);
        check("git:   ready", &[], "git", State::Ready, None);
        check(
            "git: not loaded (needs approval)",
            &[],
            "git",
            State::NeedsApproval,
            None,
        );
        check(
            "linear: requires_authentication",
            &[],
            "linear",
            State::NeedsLogin,
            None,
        );
        check("docs: disabled", &[], "docs", State::Disabled, None);
        check("docs: loading…", &[], "docs", State::Loading, None);
        check(
            "git: Error: Connection failed",
            &[],
            "git",
            State::Error,
            Some("Connection failed"),
        );
        check(
            "\u{1b}[33m○ mind: not loaded (needs approval)\u{1b}[0m",
            &[],
            "mind",
            State::NeedsApproval,
            None,
        );
    }

    #[test]
    fn names_and_errors_with_colons() {
        check(
            "odd: name: ready",
            &["odd: name"],
            "odd: name",
            State::Ready,
            None,
        );
        check(
            "odd: name: ready",
            &["odd"],
            "odd",
            State::Unknown,
            Some("name: ready"),
        );
        check(
            "git: Error: spawn x: ENOENT: ready",
            &["git"],
            "git",
            State::Error,
            Some("spawn x: ENOENT: ready"),
        );
        check(
            "git: reticulating",
            &["git"],
            "git",
            State::Unknown,
            Some("reticulating"),
        );
    }

    #[test]
    fn what_is_no_row_is_none() {
        let prose = "No MCP servers configured (expected in .cursor/mcp.json or ~/.cursor/mcp.json)\n\nNote: a new version is out\n";
        assert_eq!(rows(prose, &["git"]), []);
    }

    #[test]
    fn tools_of_a_server() {
        let output = "Tools for git (3):\n- log (path, limit)\n- status ()\n- plain\n\n";
        let shown: Vec<(String, String)> = tools(output)
            .into_iter()
            .map(|tool| (tool.name, tool.arguments))
            .collect();
        let expected = [("log", "path, limit"), ("status", ""), ("plain", "")];
        assert_eq!(shown, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert_eq!(tools("MCP 'figma' requires authentication.\n"), []);
    }
}
