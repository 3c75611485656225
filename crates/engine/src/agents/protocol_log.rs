//! The protocol log: the last messages of one agent, stored verbatim and parsed only on request.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::secrets::{Pieces, Secrets};

/// How many messages are kept.
const MAX_MESSAGES: usize = 5_000;
/// Their total size limit.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Of longer messages only the length is kept: they would push out everything else.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

/// How much of a message a row shows.
const ROW_BYTES: usize = 400;

/// A message in one line.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Seconds since the library was started.
    pub t: f64,
    /// `->`, `<-` or `!!`.
    #[cfg_attr(test, schemars(extend("x-lua" = "\"->\"|\"<-\"|\"!!\"")))]
    pub dir: &'static str,
    /// The method; for a response, that of its request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// `request`, `answer`, `error`, `notification` or `text`.
    #[cfg_attr(test, schemars(extend("x-lua" = "\"request\"|\"answer\"|\"error\"|\"notification\"|\"text\"")))]
    pub what: &'static str,
    /// How long it is.
    pub bytes: usize,
    /// The beginning, with secrets removed.
    pub text: String,
}

/// Who said it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dir {
    /// The client, to the agent.
    Out,
    /// The agent, to the client.
    In,
    /// The agent, on stderr.
    Stderr,
}

impl Dir {
    /// As in recordings.
    pub fn arrow(self) -> &'static str {
        match self {
            Self::Out => "->",
            Self::In => "<-",
            Self::Stderr => "!!",
        }
    }
}

#[derive(Debug, Clone)]
struct Line {
    /// Counted over the whole life of the log.
    number: u64,
    ms: u64,
    dir: Dir,
    bytes: Arc<[u8]>,
}

/// The log of one agent, over all its processes. Clones share the messages: reading is slow, so it is done on a
/// clone.
#[derive(Debug, Clone, Default)]
pub struct ProtocolLog {
    lines: VecDeque<Line>,
    bytes: usize,
    count: u64,
}

impl ProtocolLog {
    /// Stores a line verbatim. Copying it is the only cost.
    pub fn push(&mut self, ms: u64, dir: Dir, line: &[u8]) {
        let bytes: Arc<[u8]> = if line.len() > MAX_MESSAGE_BYTES {
            format!("(a message of {} bytes)", line.len())
                .into_bytes()
                .into()
        } else {
            line.into()
        };
        self.bytes += bytes.len();
        self.count += 1;
        self.lines.push_back(Line {
            number: self.count,
            ms,
            dir,
            bytes,
        });
        while self.lines.len() > MAX_MESSAGES || self.bytes > MAX_BYTES {
            let Some(old) = self.lines.pop_front() else {
                break;
            };
            self.bytes -= old.bytes.len();
        }
    }

    /// The log as JSON lines `{"t": seconds, "dir": "<-", "msg": …}`, with secrets removed, for one method or
    /// all. A response counts under the method of its request.
    pub fn lines(&self, secrets: &Secrets, method: Option<&str>) -> Vec<String> {
        let mut out = Vec::new();
        let mut pieces = Texts::default();
        let told = self.told_in_pieces(secrets);
        for (line, head) in self.heads(method) {
            let text = String::from_utf8_lossy(&line.bytes);
            let text = text.trim_end();
            let t = seconds(line.ms);
            let dir = line.dir.arrow();
            let parsed = head.and_then(|_| serde_json::from_str::<Value>(text).ok());
            out.push(match parsed {
                Some(mut message) => {
                    told.put_into(line, &mut message);
                    secrets.mask_value(&mut message);
                    json!({"t": t, "dir": dir, "msg": message}).to_string()
                }
                None => {
                    let is_stderr = line.dir == Dir::Stderr;
                    let name = if is_stderr { "text" } else { "raw" };
                    let text = secrets.mask_piece(text, pieces.of(line.dir));
                    json!({"t": t, "dir": dir, name: text}).to_string()
                }
            });
        }
        out
    }

    /// The log as rows: the type of each message and its beginning. Reads each message only once.
    pub fn rows(&self, secrets: &Secrets, method: Option<&str>) -> Vec<Row> {
        let mut pieces = Texts::default();
        let told = self.told_in_pieces(secrets);
        self.heads(method)
            .map(|(line, head)| {
                let text = begin(line, head.is_some(), secrets, &told, &mut pieces);
                let (method, what) = head.map_or((None, "text"), |head| (head.method, head.what));
                Row {
                    t: seconds(line.ms),
                    dir: line.dir.arrow(),
                    method,
                    what,
                    bytes: line.bytes.len(),
                    text,
                }
            })
            .collect()
    }

    /// The `number`th message (from 1) of those `rows` gives for `method`: whole, indented, with secrets
    /// removed.
    pub fn message(
        &self,
        secrets: &Secrets,
        method: Option<&str>,
        number: usize,
    ) -> Option<String> {
        let mut pieces = Texts::default();
        let mut heads = self.heads(method);
        // A private key may have started in an earlier line.
        for (line, head) in heads.by_ref().take(number.checked_sub(1)?) {
            if head.is_none() {
                let text = String::from_utf8_lossy(&line.bytes);
                secrets.mask_piece(text.trim_end(), pieces.of(line.dir));
            }
        }
        let (line, head) = heads.next()?;
        let text = String::from_utf8_lossy(&line.bytes);
        let parsed = head.and_then(|_| serde_json::from_str::<Value>(&text).ok());
        let Some(mut message) = parsed else {
            return Some(secrets.mask_piece(text.trim_end(), pieces.of(line.dir)));
        };
        self.told_in_pieces(secrets).put_into(line, &mut message);
        secrets.mask_value(&mut message);
        serde_json::to_string_pretty(&message).ok()
    }

    /// Texts that came in chunks with a secret that only shows when they are joined: the first chunk then holds
    /// all of it.
    fn told_in_pieces(&self, secrets: &Secrets) -> Told {
        let mut told = Told::default();
        // By session and terminal: the kind of the current text, and its chunks.
        let mut open: HashMap<String, (String, Vec<Piece>)> = HashMap::new();
        for line in &self.lines {
            if line.dir != Dir::In || memchr::memmem::find(&line.bytes, b"sessionUpdate").is_none()
            {
                continue;
            }
            let Some((stream, kind, piece)) = piece_of(line) else {
                continue;
            };
            match open.get_mut(&stream) {
                Some((of, pieces)) if *of == kind => pieces.extend(piece),
                known => {
                    if let Some((_, pieces)) = known.map(std::mem::take) {
                        told.add(secrets, pieces);
                    }
                    open.insert(stream, (kind, piece.into_iter().collect()));
                }
            }
        }
        for (_, (_, pieces)) in open {
            told.add(secrets, pieces);
        }
        told
    }

    /// Each line with its parsed head, for one method or all.
    fn heads(&self, wanted: Option<&str>) -> impl Iterator<Item = (&Line, Option<Head>)> {
        let mut asked: HashMap<(bool, String), String> = HashMap::new();
        self.lines.iter().filter_map(move |line| {
            let head = read_head(line, &mut asked);
            let matches = wanted.is_none_or(|wanted| {
                head.as_ref()
                    .is_some_and(|head| head.method.as_deref() == Some(wanted))
            });
            matches.then_some((line, head))
        })
    }
}

/// Output that is not a message arrives line by line, even a private key.
#[derive(Default)]
struct Texts {
    stderr: Pieces,
    stdout: Pieces,
}

impl Texts {
    fn of(&mut self, dir: Dir) -> &mut Pieces {
        if dir == Dir::Stderr {
            &mut self.stderr
        } else {
            &mut self.stdout
        }
    }
}

/// The beginning of a line. Masked before it is cut: half a secret is not recognized, and a field is known by
/// its name only in its message.
fn begin(
    line: &Line,
    is_message: bool,
    secrets: &Secrets,
    told: &Told,
    pieces: &mut Texts,
) -> String {
    let parsed = is_message
        .then(|| serde_json::from_slice::<Value>(&line.bytes).ok())
        .flatten();
    let mut text = match parsed {
        Some(mut message) => {
            told.put_into(line, &mut message);
            secrets.mask_value(&mut message);
            message.to_string()
        }
        None => {
            let text = String::from_utf8_lossy(&line.bytes);
            secrets.mask_piece(text.trim_end(), pieces.of(line.dir))
        }
    };
    text.truncate(text.floor_char_boundary(ROW_BYTES));
    text
}

/// A chunk of a text.
struct Piece {
    /// Of the line it is in.
    number: u64,
    /// Where it is in the message.
    place: &'static str,
    text: String,
}

/// Replacements for texts that came in chunks, by line number: where, and what.
#[derive(Default)]
struct Told {
    texts: HashMap<u64, (&'static str, String)>,
}

impl Told {
    fn add(&mut self, secrets: &Secrets, pieces: Vec<Piece>) {
        if pieces.len() < 2 {
            return;
        }
        let texts = pieces.iter().map(|piece| piece.text.as_str());
        let whole = secrets.mask(&texts.clone().collect::<String>());
        let apart: String = texts.map(|text| secrets.mask(text)).collect();
        if whole == apart {
            return;
        }
        let mut shown = Some(whole);
        for Piece { number, place, .. } in pieces {
            self.texts
                .insert(number, (place, shown.take().unwrap_or_default()));
        }
    }

    fn put_into(&self, line: &Line, message: &mut Value) {
        if let Some((place, text)) = self.texts.get(&line.number)
            && let Some(found) = message.pointer_mut(place)
        {
            *found = Value::from(text.as_str());
        }
    }
}

const TEXT: &str = "/params/update/content/text";
const OUTPUT: &str = "/params/update/_meta/terminal_output/data";
const OUTPUT_DELTA: &str = "/params/update/_meta/terminal_output_delta/data";

/// The stream an update belongs to, its kind, and its text if it is a chunk: what the agent says in a session, or what
/// a terminal of its own prints.
fn piece_of(line: &Line) -> Option<(String, String, Option<Piece>)> {
    #[derive(Deserialize)]
    struct Message {
        params: Params,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        session_id: String,
        update: Update,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Update {
        session_update: String,
        #[serde(default)]
        content: Value,
        #[serde(default, rename = "_meta")]
        meta: Value,
    }
    let Params { session_id, update } = serde_json::from_slice::<Message>(&line.bytes).ok()?.params;
    let piece = |place: &'static str, text: &str| Piece {
        number: line.number,
        place,
        text: text.to_owned(),
    };
    for (name, place) in [
        ("terminal_output_delta", OUTPUT_DELTA),
        ("terminal_output", OUTPUT),
    ] {
        if let Some(data) = update.meta[name]["data"].as_str() {
            let terminal = update.meta[name]["terminal_id"]
                .as_str()
                .unwrap_or_default();
            let stream = format!("{session_id} {terminal}");
            return Some((stream, name.to_owned(), Some(piece(place, data))));
        }
    }
    let text = update.content.get("text").and_then(Value::as_str);
    let text = text.filter(|_| update.session_update.ends_with("_chunk"));
    let text = text.map(|text| piece(TEXT, text));
    Some((session_id, update.session_update, text))
}

/// The type of a message.
struct Head {
    method: Option<String>,
    what: &'static str,
}

/// Parses just the head of a message; remembers requests so that responses can be attributed.
fn read_head(line: &Line, asked: &mut HashMap<(bool, String), String>) -> Option<Head> {
    #[derive(Deserialize)]
    struct Envelope {
        #[serde(default)]
        method: Option<String>,
        #[serde(default)]
        id: Option<Value>,
        #[serde(default)]
        error: Option<serde::de::IgnoredAny>,
    }
    if line.dir == Dir::Stderr {
        return None;
    }
    let envelope: Envelope = serde_json::from_slice(&line.bytes).ok()?;
    let from_client = line.dir == Dir::Out;
    Some(
        match (envelope.method, envelope.id.map(|id| id.to_string())) {
            (Some(method), Some(id)) => {
                asked.insert((from_client, id), method.clone());
                Head {
                    method: Some(method),
                    what: "request",
                }
            }
            (Some(method), None) => Head {
                method: Some(method),
                what: "notification",
            },
            (None, Some(id)) => Head {
                method: asked.get(&(!from_client, id)).cloned(),
                what: if envelope.error.is_some() {
                    "error"
                } else {
                    "answer"
                },
            },
            (None, None) => Head {
                method: None,
                what: "text",
            },
        },
    )
}

fn seconds(ms: u64) -> f64 {
    std::time::Duration::from_millis(ms).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_filtered_and_masked() {
        let mut log = ProtocolLog::default();
        log.push(
            10,
            Dir::Out,
            br#"{"jsonrpc":"2.0","id":1,"method":"authenticate","params":{"apiKey":"x"}}"#,
        );
        log.push(20, Dir::In, br#"{"id":1,"method":"fs/read_text_file"}"#);
        log.push(1500, Dir::In, br#"{"id":1,"result":{}}"#);
        log.push(1600, Dir::Stderr, b"warning");
        log.push(1700, Dir::In, b"junk\n");
        let secrets = Secrets::default();
        assert_eq!(
            log.lines(&secrets, Some("authenticate")),
            [
                r#"{"t":0.01,"dir":"->","msg":{"jsonrpc":"2.0","id":1,"method":"authenticate","params":{"apiKey":"•••"}}}"#,
                r#"{"t":1.5,"dir":"<-","msg":{"id":1,"result":{}}}"#,
            ]
        );
        let rows = log.rows(&secrets, None);
        let seen: Vec<_> = rows
            .iter()
            .map(|row| (row.dir, row.what, row.method.as_deref()))
            .collect();
        assert_eq!(
            seen,
            [
                ("->", "request", Some("authenticate")),
                ("<-", "request", Some("fs/read_text_file")),
                ("<-", "answer", Some("authenticate")),
                ("!!", "text", None),
                ("<-", "text", None),
            ]
        );
        let whole = log.message(&secrets, Some("authenticate"), 2);
        assert_eq!(
            whole.as_deref(),
            Some("{\n  \"id\": 1,\n  \"result\": {}\n}")
        );
        assert_eq!(log.message(&secrets, None, 4).as_deref(), Some("warning"));
        assert_eq!(log.message(&secrets, None, 6), None);
        let all = log.lines(&secrets, None);
        assert_eq!(all.len(), 5);
        assert_eq!(all[3], r#"{"t":1.6,"dir":"!!","text":"warning"}"#);
        assert_eq!(all[4], r#"{"t":1.7,"dir":"<-","raw":"junk"}"#);
    }

    #[test]
    fn rows_hide_what_only_its_name_tells() {
        let mut log = ProtocolLog::default();
        log.push(
            0,
            Dir::Out,
            br#"{"id":1,"method":"session/new","params":{"mcpServers":[{"env":[{"name":"GITHUB_TOKEN","value":"hunter2hunter2"}]}]}}"#,
        );
        let long = format!("{}hunter2hunter2", "x".repeat(ROW_BYTES - 5));
        log.push(0, Dir::Stderr, long.as_bytes());
        let env = [("A_SECRET".to_owned(), "hunter2hunter2".to_owned())];
        let secrets = Secrets::of_env(env.iter().map(|(n, v)| (n, v)));
        for (secrets, rows) in [(Secrets::default(), 1), (secrets, 2)] {
            for row in &log.rows(&secrets, None)[..rows] {
                assert!(!row.text.contains("hunt"), "{}", row.text);
                assert!(row.text.len() <= ROW_BYTES);
            }
        }
    }

    #[test]
    fn a_private_key_that_comes_line_by_line_is_hidden() {
        let mut log = ProtocolLog::default();
        let body = "MIIEowIBAAKCAQEA7bq0cH2JdVRGQyHk5Yt3iG1n";
        for dir in [Dir::In, Dir::Stderr] {
            for line in [
                "-----BEGIN RSA PRIVATE KEY-----",
                body,
                body,
                "-----END RSA PRIVATE KEY-----",
                "the rest",
            ] {
                log.push(0, dir, line.as_bytes());
            }
        }
        let secrets = Secrets::default();
        let lines = log.lines(&secrets, None);
        let rows = log.rows(&secrets, None);
        for at in 0..10 {
            let whole = log.message(&secrets, None, at + 1).expect("a line");
            for text in [&lines[at], &rows[at].text, &whole] {
                assert!(!text.contains(body), "{text}");
                assert_eq!(text.contains("the rest"), at % 5 == 4, "{text}");
            }
        }
    }

    #[test]
    fn a_secret_told_in_pieces_is_hidden() {
        let mut log = ProtocolLog::default();
        let chunk = |session: &str, kind: &str, text: &str| {
            json!({"method": "session/update", "params": {"sessionId": session, "update":
                {"sessionUpdate": kind, "content": {"type": "text", "text": text}}}})
            .to_string()
        };
        let say = "agent_message_chunk";
        for line in [
            chunk("a", say, "It is gh"),
            chunk("b", say, "all "),
            chunk("a", say, "p_16C7e42F292c"),
            chunk("b", say, "well"),
            chunk("a", say, "6912E7710c838347Ae178B4a."),
            chunk("a", "agent_thought_chunk", "6912"),
        ] {
            log.push(0, Dir::In, line.as_bytes());
        }
        let secrets = Secrets::default();
        let lines = log.lines(&secrets, None);
        assert!(lines[0].contains("It is ghp_•••."), "{}", lines[0]);
        assert!(lines[2].contains("\"text\":\"\""), "{}", lines[2]);
        assert!(lines[3].contains("well"), "{}", lines[3]);
        assert!(lines[5].contains("6912"), "{}", lines[5]);
        for (row, line) in log.rows(&secrets, None).iter().zip(&lines) {
            let shown = log.message(&secrets, None, 3).unwrap_or_default();
            assert!(!format!("{}{line}{shown}", row.text).contains("16C7"));
        }
    }

    #[test]
    fn a_secret_printed_in_pieces_is_hidden() {
        let mut log = ProtocolLog::default();
        let print = |terminal: &str, name: &str, data: &str| {
            json!({"method": "session/update", "params": {"sessionId": "a", "update": {
                "sessionUpdate": "tool_call_update", "toolCallId": "t",
                "_meta": {(name): {"terminal_id": terminal, "data": data}}}}})
            .to_string()
        };
        for line in [
            print("1", "terminal_output", "It is ghp_16C7"),
            print("2", "terminal_output", "all well"),
            r#"{"method":"session/update","params":{"sessionId":"a","update":{"sessionUpdate":"tool_call_update","toolCallId":"u"}}}"#.to_owned(),
            print("1", "terminal_output", "e42F292c6912E7710c838347Ae178B4a"),
            print("3", "terminal_output_delta", "--api-key hunter"),
            print("3", "terminal_output_delta", "two --x"),
        ] {
            log.push(0, Dir::In, line.as_bytes());
        }
        let lines = log.lines(&Secrets::default(), None);
        assert!(lines[0].contains("It is ghp_•••"), "{}", lines[0]);
        assert!(lines[1].contains("all well"), "{}", lines[1]);
        assert!(lines[4].contains("--api-key ••• --x"), "{}", lines[4]);
        for part in ["16C7", "e42F", "hunter", "two"] {
            assert!(!lines.concat().contains(part), "{part}");
        }
    }

    #[test]
    fn it_forgets_the_oldest() {
        let mut log = ProtocolLog::default();
        for n in 0..MAX_MESSAGES + 3 {
            log.push(0, Dir::In, format!("{n}").as_bytes());
        }
        assert_eq!(log.lines.len(), MAX_MESSAGES);
        assert_eq!(*log.lines[0].bytes, *b"3");
        for _ in 0..20 {
            log.push(0, Dir::In, &vec![b'x'; MAX_MESSAGE_BYTES]);
        }
        assert!(log.bytes <= MAX_BYTES);
        log.push(0, Dir::In, &vec![b'x'; MAX_MESSAGE_BYTES + 1]);
        assert!(
            log.lines
                .back()
                .is_some_and(|line| line.bytes.starts_with(b"(a message of"))
        );
    }
}
