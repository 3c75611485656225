//! The wire log: the last messages of one agent, kept as they were, read only when somebody asks.

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::secrets::Secrets;

/// How many messages are kept.
const MAX_MESSAGES: usize = 5_000;
/// How many bytes they may take together.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Of a longer message only its length is kept: it would push out everything else.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

/// How much of a message a row shows.
const ROW_BYTES: usize = 400;

/// A message at a glance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Seconds since the library was started.
    pub t: f64,
    /// `->`, `<-` or `!!`.
    pub dir: &'static str,
    /// The method, of a response too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// `request`, `answer`, `error`, `notification` or `text`.
    pub what: &'static str,
    /// How long it is.
    pub bytes: usize,
    /// How it begins, secrets removed.
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
    /// As the recordings spell it.
    pub fn arrow(self) -> &'static str {
        match self {
            Self::Out => "->",
            Self::In => "<-",
            Self::Stderr => "!!",
        }
    }
}

#[derive(Debug)]
struct Line {
    ms: u64,
    dir: Dir,
    bytes: Vec<u8>,
}

/// The log of one agent, over all its processes.
#[derive(Debug, Default)]
pub struct WireLog {
    lines: VecDeque<Line>,
    bytes: usize,
}

impl WireLog {
    /// Keeps a line as it went over the wire. Copying it is all this costs.
    pub fn push(&mut self, ms: u64, dir: Dir, line: &[u8]) {
        let bytes = if line.len() > MAX_MESSAGE_BYTES {
            format!("(a message of {} bytes)", line.len()).into_bytes()
        } else {
            line.to_vec()
        };
        self.bytes += bytes.len();
        self.lines.push_back(Line { ms, dir, bytes });
        while self.lines.len() > MAX_MESSAGES || self.bytes > MAX_BYTES {
            let Some(old) = self.lines.pop_front() else {
                break;
            };
            self.bytes -= old.bytes.len();
        }
    }

    /// The log as JSON lines `{"t": seconds, "dir": "<-", "msg": …}`, secrets removed, of one method or of all.
    /// A response is of the method it answers.
    pub fn lines(&self, secrets: &Secrets, method: Option<&str>) -> Vec<String> {
        let mut out = Vec::new();
        for (line, head) in self.heads(method) {
            let text = String::from_utf8_lossy(&line.bytes);
            let text = text.trim_end();
            let t = seconds(line.ms);
            let dir = line.dir.arrow();
            let parsed = head.and_then(|_| serde_json::from_str::<Value>(text).ok());
            out.push(match parsed {
                Some(mut message) => {
                    secrets.mask_value(&mut message);
                    json!({"t": t, "dir": dir, "msg": message}).to_string()
                }
                None if line.dir == Dir::Stderr => {
                    json!({"t": t, "dir": dir, "text": secrets.mask(text)}).to_string()
                }
                None => json!({"t": t, "dir": dir, "raw": secrets.mask(text)}).to_string(),
            });
        }
        out
    }

    /// The log as rows for a screen: what each message is, and how it begins. Costs no more than reading each once.
    pub fn rows(&self, secrets: &Secrets, method: Option<&str>) -> Vec<Row> {
        self.heads(method)
            .map(|(line, head)| {
                let text = begin(line, head.is_some(), secrets);
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

    /// One message of those `rows` gives for `method`, counted from 1, whole and indented, secrets removed.
    pub fn message(
        &self,
        secrets: &Secrets,
        method: Option<&str>,
        number: usize,
    ) -> Option<String> {
        let (line, _) = self.heads(method).nth(number.checked_sub(1)?)?;
        let text = String::from_utf8_lossy(&line.bytes);
        let Ok(mut message) = serde_json::from_str::<Value>(&text) else {
            return Some(secrets.mask(text.trim_end()));
        };
        secrets.mask_value(&mut message);
        serde_json::to_string_pretty(&message).ok()
    }

    /// Each line with what its message is, of one method or of all.
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

/// How a line begins. Masked before it is cut: half a secret looks like none, and a field is known by its name only in
/// the message it stands in.
fn begin(line: &Line, is_message: bool, secrets: &Secrets) -> String {
    let parsed = is_message
        .then(|| serde_json::from_slice::<Value>(&line.bytes).ok())
        .flatten();
    let mut text = match parsed {
        Some(mut message) => {
            secrets.mask_value(&mut message);
            message.to_string()
        }
        None => secrets.mask(String::from_utf8_lossy(&line.bytes).trim_end()),
    };
    text.truncate(text.floor_char_boundary(ROW_BYTES));
    text
}

/// What a message is.
struct Head {
    method: Option<String>,
    what: &'static str,
}

/// Looks at a message without reading all of it; remembers requests, so that answers can be told apart.
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
        let mut log = WireLog::default();
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
        let mut log = WireLog::default();
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
    fn it_forgets_the_oldest() {
        let mut log = WireLog::default();
        for n in 0..MAX_MESSAGES + 3 {
            log.push(0, Dir::In, format!("{n}").as_bytes());
        }
        assert_eq!(log.lines.len(), MAX_MESSAGES);
        assert_eq!(log.lines[0].bytes, b"3");
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
