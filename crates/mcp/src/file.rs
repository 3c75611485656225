//! One `mcp.json`: the servers it defines, and every mistake in it with its place.
//!
//! Comments and trailing commas are mistakes, but what they stand in is read all the same. A server with a mistake that
//! makes it useless is kept in the list, unusable; the others are not affected.

use std::collections::HashMap;

use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::tokens::Token;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};
use serde::Serialize;

/// A file larger than this is not read.
pub const MAX_BYTES: usize = 1024 * 1024;
/// How many problems of a file are listed.
const MAX_PROBLEMS: usize = 100;

/// What a file says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct File {
    /// In the order of the file; of two with one name only the last.
    pub servers: Vec<Server>,
    /// By place.
    pub problems: Vec<Problem>,
}

/// Where something is: lines from 1, columns in bytes from 1, the end behind the last byte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    pub line: usize,
    pub column: usize,
    pub end_line: usize,
    pub end_column: usize,
}

/// A mistake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    #[serde(flatten)]
    pub place: Place,
    /// As a person reads it.
    pub message: String,
    /// Whose definition it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Whether something cannot be used because of it.
    pub fatal: bool,
}

/// A text of the file, variables not resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    pub raw: String,
    pub place: Place,
}

/// A server as it is defined.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    pub name: String,
    /// Of its name.
    pub place: Place,
    /// How it is reached; None where that cannot be told.
    pub transport: Option<Transport>,
    /// Whether it can be used as it is written.
    pub usable: bool,
    /// The file itself switches it off.
    pub disabled: bool,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum Transport {
    /// A program.
    Stdio {
        command: Text,
        args: Vec<Text>,
        env: Vec<(String, Text)>,
        env_file: Option<Text>,
    },
    /// An address.
    Url {
        url: Text,
        headers: Vec<(String, Text)>,
        /// Server-sent events, the older way.
        sse: bool,
    },
}

impl Transport {
    /// What to call it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Url { sse: true, .. } => "sse",
            Self::Url { sse: false, .. } => "http",
        }
    }

    /// Every text in which variables may stand.
    pub fn texts(&self) -> Vec<&Text> {
        match self {
            Self::Stdio {
                command,
                args,
                env,
                env_file,
            } => {
                let values = env.iter().map(|(_, value)| value);
                let first = std::iter::once(command);
                first.chain(args).chain(values).chain(env_file).collect()
            }
            Self::Url { url, headers, .. } => {
                let values = headers.iter().map(|(_, value)| value);
                std::iter::once(url).chain(values).collect()
            }
        }
    }
}

/// Reads a file.
pub fn parse(text: &str) -> File {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader {
        lines: Lines::new(text),
        problems: Vec::new(),
        fatal: 0,
        server: None,
    };
    let servers = reader.read(text);
    let mut problems = reader.problems;
    problems.sort_by_key(|problem| problem.place);
    problems.truncate(MAX_PROBLEMS);
    File { servers, problems }
}

/// Where the lines of a text begin.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1));
        Self {
            text,
            starts: starts.collect(),
        }
    }

    fn point(&self, at: usize) -> (usize, usize) {
        let at = at.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self.starts.get(line - 1).copied().unwrap_or_default();
        (line, at - start + 1)
    }

    fn place(&self, range: Range) -> Place {
        let (line, column) = self.point(range.start);
        let (end_line, end_column) = self.point(range.end.max(range.start));
        Place {
            line,
            column,
            end_line,
            end_column,
        }
    }
}

struct Reader<'a> {
    lines: Lines<'a>,
    problems: Vec<Problem>,
    /// How many of them are fatal.
    fatal: usize,
    /// Whose definition is being read.
    server: Option<String>,
}

impl Reader<'_> {
    fn problem(&mut self, range: Range, fatal: bool, message: impl Into<String>) {
        self.fatal += usize::from(fatal);
        self.problems.push(Problem {
            place: self.lines.place(range),
            message: message.into(),
            server: self.server.clone(),
            fatal,
        });
    }

    fn read(&mut self, text: &str) -> Vec<Server> {
        let whole = Range::new(0, 0);
        if text.len() > MAX_BYTES {
            self.problem(whole, true, "the file is larger than 1 MiB");
            return Vec::new();
        }
        if text.trim().is_empty() {
            let message = "the file is empty; write { \"mcpServers\": {} }";
            self.problem(whole, true, message);
            return Vec::new();
        }
        let collect = CollectOptions {
            comments: CommentCollectionStrategy::AsTokens,
            tokens: true,
        };
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let parsed = match parse_to_ast(text, &collect, &options) {
            Ok(parsed) => parsed,
            Err(error) => {
                let kind = error.kind().to_string();
                let message = kind.trim_end_matches('.').to_owned();
                self.problem(
                    error.range(),
                    true,
                    format!("not JSON: {}", lower(&message)),
                );
                return Vec::new();
            }
        };
        let tokens = parsed.tokens.unwrap_or_default();
        let mut comma = None;
        for token in &tokens {
            match &token.token {
                Token::CommentLine(_) | Token::CommentBlock(_) => {
                    self.problem(token.range, false, "JSON has no comments; remove it");
                    continue;
                }
                Token::CloseBrace | Token::CloseBracket => {
                    if let Some(range) = comma {
                        self.problem(range, false, "trailing comma; remove it");
                    }
                }
                _ => {}
            }
            comma = (token.token == Token::Comma).then_some(token.range);
        }
        match parsed.value {
            Some(Value::Object(root)) => self.root(&root),
            Some(other) => {
                let found = kind(&other);
                self.problem(
                    other.range(),
                    true,
                    format!("expected an object, got {found}"),
                );
                Vec::new()
            }
            None => {
                self.problem(whole, true, "only comments; write { \"mcpServers\": {} }");
                Vec::new()
            }
        }
    }

    fn root(&mut self, root: &Object<'_>) -> Vec<Server> {
        let Some(servers) = last(root, "mcpServers") else {
            let message = match last(root, "servers") {
                Some(_) => "Cursor reads `mcpServers`, not `servers`",
                None => "`mcpServers` is missing",
            };
            let at = last(root, "servers").map_or(first_byte(root.range), |prop| prop.name.range());
            self.problem(at, true, message);
            return Vec::new();
        };
        let Value::Object(servers) = &servers.value else {
            let message = format!(
                "`mcpServers` must be an object, got {}",
                kind(&servers.value)
            );
            self.problem(servers.value.range(), true, message);
            return Vec::new();
        };
        let mut found: Vec<Option<Server>> = Vec::new();
        let mut lines: HashMap<String, (usize, usize)> = HashMap::new();
        for prop in &servers.properties {
            let server = self.server(prop);
            let here = (found.len(), server.place.line);
            if let Some((at, line)) = lines.insert(server.name.clone(), here) {
                let message = format!(
                    "`{}` is defined twice, first on line {line}; this one is used",
                    server.name
                );
                self.server = Some(server.name.clone());
                self.problem(prop.name.range(), false, message);
                self.server = None;
                found[at] = None;
            }
            found.push(Some(server));
        }
        found.into_iter().flatten().collect()
    }

    fn server(&mut self, prop: &ObjectProp<'_>) -> Server {
        let name = prop.name.as_str().to_owned();
        self.server = Some(name.clone());
        let before = self.fatal;
        if name.trim().is_empty() {
            self.problem(prop.name.range(), true, "a server needs a name");
        }
        let mut server = Server {
            name,
            place: self.lines.place(prop.name.range()),
            transport: None,
            usable: false,
            disabled: false,
        };
        if let Value::Object(fields) = &prop.value {
            server.disabled = self.flag(fields, "disabled") == Some(true)
                || self.flag(fields, "enabled") == Some(false);
            server.transport = self.transport(prop, fields);
            self.unknown(fields);
        } else {
            let message = format!(
                "`{}` must be an object, got {}",
                server.name,
                kind(&prop.value)
            );
            self.problem(prop.value.range(), true, message);
        }
        server.usable = server.transport.is_some() && self.fatal == before;
        self.server = None;
        server
    }

    fn transport(&mut self, prop: &ObjectProp<'_>, fields: &Object<'_>) -> Option<Transport> {
        let kind = self.text(fields, "type");
        let sse = match kind.as_ref().map(|kind| kind.raw.as_str()) {
            None
            | Some("stdio" | "http" | "streamableHttp" | "streamable-http" | "streamable_http") => {
                None
            }
            Some("sse") => Some(true),
            Some(other) => {
                let message = format!("`type` must be stdio, http or sse, not {other:?}");
                if let Some(prop) = last(fields, "type") {
                    self.problem(prop.value.range(), true, message);
                }
                None
            }
        };
        let says_stdio = kind.as_ref().is_some_and(|kind| kind.raw == "stdio");
        let says_url = kind.as_ref().is_some_and(|kind| kind.raw != "stdio");
        let (command, url) = (self.text(fields, "command"), self.text(fields, "url"));
        let has = |key: &str| last(fields, key);
        match (command, url) {
            (Some(command), url) => {
                if url.is_some() {
                    let at = has("url").map_or(prop.name.range(), |prop| prop.name.range());
                    let message = "has both `command` and `url`; `command` is used";
                    self.problem(at, false, message);
                } else if says_url {
                    let at = has("type").map_or(prop.name.range(), |prop| prop.value.range());
                    self.problem(at, true, "a server with a `command` has type stdio");
                }
                if command.raw.trim().is_empty() {
                    let at = has("command").map_or(prop.name.range(), |prop| prop.value.range());
                    self.problem(at, true, "`command` is empty");
                }
                Some(Transport::Stdio {
                    command,
                    args: self.list(fields, "args"),
                    env: self.pairs(fields, "env"),
                    env_file: self.text(fields, "envFile"),
                })
            }
            (None, Some(url)) => {
                let at = has("url").map_or(prop.name.range(), |prop| prop.value.range());
                if says_stdio {
                    self.problem(at, true, "a server of type stdio needs a `command`");
                }
                let web = ["http://", "https://", "${"];
                if !web.iter().any(|start| url.raw.starts_with(start)) {
                    self.problem(at, true, "`url` must begin with http:// or https://");
                }
                let sse = sse.unwrap_or(false);
                let headers = self.pairs(fields, "headers");
                Some(Transport::Url { url, headers, sse })
            }
            (None, None) => {
                // A wrong type was named already.
                if has("command").is_none() && has("url").is_none() {
                    let message = "needs a `command` or a `url`";
                    self.problem(prop.name.range(), true, message);
                }
                None
            }
        }
    }

    fn text(&mut self, fields: &Object<'_>, key: &str) -> Option<Text> {
        let prop = last(fields, key)?;
        match &prop.value {
            Value::StringLit(text) => Some(Text {
                raw: text.value.to_string(),
                place: self.lines.place(text.range),
            }),
            other => {
                let message = format!("`{key}` must be a string, got {}", kind(other));
                self.problem(other.range(), true, message);
                None
            }
        }
    }

    fn flag(&mut self, fields: &Object<'_>, key: &str) -> Option<bool> {
        let prop = last(fields, key)?;
        match &prop.value {
            Value::BooleanLit(flag) => Some(flag.value),
            other => {
                let message = format!("`{key}` must be true or false, got {}", kind(other));
                self.problem(other.range(), false, message);
                None
            }
        }
    }

    fn list(&mut self, fields: &Object<'_>, key: &str) -> Vec<Text> {
        let Some(prop) = last(fields, key) else {
            return Vec::new();
        };
        let Value::Array(list) = &prop.value else {
            let message = format!(
                "`{key}` must be a list of strings, got {}",
                kind(&prop.value)
            );
            self.problem(prop.value.range(), true, message);
            return Vec::new();
        };
        let mut texts = Vec::new();
        for (at, item) in list.elements.iter().enumerate() {
            match item {
                Value::StringLit(text) => texts.push(Text {
                    raw: text.value.to_string(),
                    place: self.lines.place(text.range),
                }),
                other => {
                    let message = format!(
                        "item {} of `{key}` must be a string, got {}",
                        at + 1,
                        kind(other)
                    );
                    self.problem(other.range(), true, message);
                }
            }
        }
        texts
    }

    fn pairs(&mut self, fields: &Object<'_>, key: &str) -> Vec<(String, Text)> {
        let Some(prop) = last(fields, key) else {
            return Vec::new();
        };
        let Value::Object(pairs) = &prop.value else {
            let message = format!(
                "`{key}` must be an object of strings, got {}",
                kind(&prop.value)
            );
            self.problem(prop.value.range(), true, message);
            return Vec::new();
        };
        let mut texts = Vec::new();
        for pair in &pairs.properties {
            let name = pair.name.as_str().to_owned();
            match &pair.value {
                Value::StringLit(text) => {
                    texts.retain(|(known, _)| *known != name);
                    texts.push((
                        name,
                        Text {
                            raw: text.value.to_string(),
                            place: self.lines.place(text.range),
                        },
                    ));
                }
                other => {
                    // The value may be a secret: its type is enough.
                    let message =
                        format!("`{name}` in `{key}` must be a string, got {}", kind(other));
                    self.problem(other.range(), true, message);
                }
            }
        }
        texts
    }

    /// Names that are close to one of ours are probably meant to be it. Other clients have fields of their own.
    fn unknown(&mut self, fields: &Object<'_>) {
        const MEANT: &[(&str, &str)] = &[
            ("arg", "args"),
            ("arguments", "args"),
            ("cmd", "command"),
            ("commands", "command"),
            ("environment", "env"),
            ("envs", "env"),
            ("header", "headers"),
            ("serverUrl", "url"),
            ("uri", "url"),
            ("env_file", "envFile"),
            ("envfile", "envFile"),
        ];
        for prop in &fields.properties {
            let name = prop.name.as_str();
            if let Some((_, meant)) = MEANT.iter().find(|(wrong, _)| *wrong == name)
                && last(fields, meant).is_none()
            {
                let message = format!("unknown field `{name}`; did you mean `{meant}`?");
                self.problem(prop.name.range(), false, message);
            }
        }
    }
}

/// The field of this name; of several the last, as in any reader of JSON.
fn last<'a, 'b>(object: &'b Object<'a>, name: &str) -> Option<&'b ObjectProp<'a>> {
    let mut named = object.properties.iter().rev();
    named.find(|prop| prop.name.as_str() == name)
}

fn first_byte(range: Range) -> Range {
    Range::new(range.start, range.start + 1)
}

fn kind(value: &Value<'_>) -> &'static str {
    match value {
        Value::StringLit(_) => "a string",
        Value::NumberLit(_) => "a number",
        Value::BooleanLit(_) => "true or false",
        Value::Object(_) => "an object",
        Value::Array(_) => "a list",
        Value::NullKeyword(_) => "null",
    }
}

fn lower(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn said(text: &str) -> Vec<String> {
        let problems = parse(text).problems;
        let shown = problems.iter().map(|problem| {
            format!(
                "{}:{} {}",
                problem.place.line, problem.place.column, problem.message
            )
        });
        shown.collect()
    }

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(said(text), expected, "{text}");
    }

    #[test]
    fn servers_of_every_transport() {
        let file = parse(
            r#"{
  "mcpServers": {
    "git": { "command": "mcp-git", "args": ["--root", "."], "env": { "A": "b" }, "envFile": ".env" },
    "docs": { "url": "https://example.org/mcp", "headers": { "Authorization": "Bearer x" } },
    "old": { "type": "sse", "url": "http://localhost:1/sse", "disabled": true }
  }
}"#,
        );
        assert_eq!(file.problems, []);
        let shown: Vec<(&str, &str, usize, bool)> = file
            .servers
            .iter()
            .map(|server| {
                let transport = server.transport.as_ref().unwrap();
                (
                    server.name.as_str(),
                    transport.name(),
                    server.place.line,
                    server.disabled,
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("git", "stdio", 3, false),
                ("docs", "http", 4, false),
                ("old", "sse", 5, true)
            ]
        );
        assert_eq!(file.servers[0].transport.as_ref().unwrap().texts().len(), 5);
    }

    #[test]
    fn comments_and_trailing_commas_are_named_and_break_nothing() {
        let text = "{\n  // mine\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\", \"args\": [\"1\",], }, /* why */\n  },\n}\n";
        check(
            text,
            &[
                "2:3 JSON has no comments; remove it",
                "4:40 trailing comma; remove it",
                "4:42 trailing comma; remove it",
                "4:45 trailing comma; remove it",
                "4:47 JSON has no comments; remove it",
                "5:4 trailing comma; remove it",
            ],
        );
        let file = parse(text);
        assert!(file.servers[0].usable);
        // What a string holds is no comment.
        check(r#"{"mcpServers":{"a":{"url":"http://x//y"}}}"#, &[]);
    }

    #[test]
    fn wrong_types_are_named_by_their_line() {
        let text = r#"{
  "mcpServers": {
    "a": {
      "command": 1
    },
    "b": { "command": "x",
      "args": "--all" },
    "c": { "command": "x", "args": [
      "fine",
      8080
    ] },
    "d": { "command": "x", "env": {
      "PORT": 8080 } },
    "e": { "command": "x", "env": ["A=b"] },
    "f": "x",
    "g": { "url": "localhost:3000" },
    "h": { "type": "websocket", "url": "http://x" },
    "i": {},
    "j": { "command": "  " },
    "k": { "command": "fine" },
    "l": { "command": null },
    "m": { "cmd": "x", "command": "x" , "arg": [] },
    "n": { "type": "stdio", "url": "http://x" },
    "": { "command": "x" }
  }
}"#;
        check(
            text,
            &[
                "4:18 `command` must be a string, got a number",
                "7:15 `args` must be a list of strings, got a string",
                "10:7 item 2 of `args` must be a string, got a number",
                "13:15 `PORT` in `env` must be a string, got a number",
                "14:35 `env` must be an object of strings, got a list",
                "15:10 `f` must be an object, got a string",
                "16:19 `url` must begin with http:// or https://",
                "17:20 `type` must be stdio, http or sse, not \"websocket\"",
                "18:5 needs a `command` or a `url`",
                "19:23 `command` is empty",
                "21:23 `command` must be a string, got null",
                "22:41 unknown field `arg`; did you mean `args`?",
                "23:36 a server of type stdio needs a `command`",
                "24:5 a server needs a name",
            ],
        );
        let file = parse(text);
        let usable: Vec<&str> = file
            .servers
            .iter()
            .filter(|server| server.usable)
            .map(|server| server.name.as_str())
            .collect();
        assert_eq!(usable, ["k", "m"]);
        assert_eq!(file.servers.len(), 15);
    }

    #[test]
    fn what_is_not_json_is_named_by_its_line() {
        check("", &["1:1 the file is empty; write { \"mcpServers\": {} }"]);
        check(
            " \n ",
            &["1:1 the file is empty; write { \"mcpServers\": {} }"],
        );
        check("[]", &["1:1 expected an object, got a list"]);
        check("{}", &["1:1 `mcpServers` is missing"]);
        check(
            "{\n  \"servers\": {} }",
            &["2:3 Cursor reads `mcpServers`, not `servers`"],
        );
        check(
            "{\"mcpServers\": []}",
            &["1:16 `mcpServers` must be an object, got a list"],
        );
        for (text, line) in [
            ("{\n\n \"mcpServers\": {\n", 3),
            ("{\"mcpServers\": {}}\n}", 2),
            ("{\n  'mcpServers': {} }", 2),
            ("{\n  mcpServers: {} }", 2),
            ("{\n\"mcpServers\": {\n\"a\": {} \"b\": {} } }", 3),
            ("{\n \"mcpServers\": { \"a\": { \"command\": \"x } }\n}", 2),
            ("hello", 1),
        ] {
            let file = parse(text);
            assert_eq!(file.servers, [], "{text}");
            assert_eq!(file.problems.len(), 1, "{text}: {:?}", file.problems);
            assert!(file.problems[0].message.starts_with("not JSON: "));
            assert_eq!(
                file.problems[0].place.line, line,
                "{text}: {:?}",
                file.problems
            );
        }
    }

    #[test]
    fn a_name_that_is_there_twice_counts_once() {
        let text = "{\"mcpServers\":{\"a\":{\"command\":\"x\"},\n\"a\":{\"command\":\"y\"}}}";
        check(
            text,
            &["2:1 `a` is defined twice, first on line 1; this one is used"],
        );
        let file = parse(text);
        assert_eq!(file.servers.len(), 1);
        assert_eq!(file.servers[0].place.line, 2);
    }

    #[test]
    fn a_byte_order_mark_and_other_line_ends_are_no_mistakes() {
        check("\u{feff}{\"mcpServers\":{}}", &[]);
        check(
            "{\r\n\"mcpServers\": {\r\n\"a\": 1 }}\r\n",
            &["3:6 `a` must be an object, got a number"],
        );
    }

    #[test]
    fn no_text_is_too_much() {
        let deep = "[".repeat(100_000);
        assert_eq!(parse(&deep).problems.len(), 1);
        let many = format!("{{\"mcpServers\":{{{}}}}}", "\"a\":1,".repeat(50_000));
        assert_eq!(parse(&many).problems.len(), MAX_PROBLEMS);
        let large = " ".repeat(MAX_BYTES + 1);
        assert_eq!(said(&large), ["1:1 the file is larger than 1 MiB"]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_and_every_place_is_in_it(text in "(?s)[\\[\\]{}\",:/*\\\\ a-e1\n\u{e9}\u{1f600}]{0,80}") {
            let lines = text.split('\n').count();
            for problem in parse(&text).problems {
                proptest::prop_assert!((1..=lines).contains(&problem.place.line));
                proptest::prop_assert!(problem.place.end_line >= problem.place.line);
            }
        }
    }
}
