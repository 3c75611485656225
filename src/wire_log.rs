//! The wire log: the last messages of one agent, kept as they were, read only when somebody asks.

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::secrets::Secrets;

/// How many messages are kept.
const MAX_MESSAGES: usize = 5_000;
/// How many bytes they may take together.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Of a longer message only its length is kept: it would push out everything else.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

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
        let mut asked: std::collections::HashMap<(bool, String), String> =
            std::collections::HashMap::new();
        let mut out = Vec::new();
        for line in &self.lines {
            let text = String::from_utf8_lossy(&line.bytes);
            let text = text.trim_end();
            let t = std::time::Duration::from_millis(line.ms).as_secs_f64();
            let parsed = (line.dir != Dir::Stderr)
                .then(|| serde_json::from_str::<Value>(text).ok())
                .flatten();
            let Some(mut message) = parsed else {
                if method.is_none() {
                    let key = if line.dir == Dir::Stderr {
                        "text"
                    } else {
                        "raw"
                    };
                    out.push(
                        json!({"t": t, "dir": line.dir.arrow(), key: secrets.mask(text)})
                            .to_string(),
                    );
                }
                continue;
            };
            let from_client = line.dir == Dir::Out;
            let id = message.get("id").map(ToString::to_string);
            let name = match (message.get("method").and_then(Value::as_str), id) {
                (Some(name), id) => {
                    if let Some(id) = id {
                        asked.insert((from_client, id), name.to_owned());
                    }
                    Some(name.to_owned())
                }
                (None, Some(id)) => asked.get(&(!from_client, id)).cloned(),
                (None, None) => None,
            };
            if method.is_none_or(|wanted| name.as_deref() == Some(wanted)) {
                secrets.mask_value(&mut message);
                out.push(json!({"t": t, "dir": line.dir.arrow(), "msg": message}).to_string());
            }
        }
        out
    }
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
        let all = log.lines(&secrets, None);
        assert_eq!(all.len(), 5);
        assert_eq!(all[3], r#"{"t":1.6,"dir":"!!","text":"warning"}"#);
        assert_eq!(all[4], r#"{"t":1.7,"dir":"<-","raw":"junk"}"#);
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
