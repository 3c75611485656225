//! The terminals agents make through us: what each printed, within its limit, and how it ended.

use std::collections::HashMap;

use acp::peer::Ticket;

use crate::agents::launch::Exit;
use crate::ids::{Key, Proc};

/// Kept when the agent names no limit.
const DEFAULT_LIMIT_BYTES: usize = 1024 * 1024;
/// More than this is never kept, whatever limit the agent names.
const MAX_LIMIT_BYTES: usize = 4 * 1024 * 1024;
/// This much of it the user can look at, however little the agent wants.
const SHOWN_BYTES: usize = 1024 * 1024;

#[derive(Debug)]
pub struct Terminal {
    /// Who made it.
    pub proc: Proc,
    /// In which session.
    pub key: Key,
    /// The last part of what it printed, at most `limit` bytes.
    output: String,
    /// The start of a character whose rest has not come yet.
    part: Vec<u8>,
    limit: usize,
    /// Something was dropped from the front.
    pub truncated: bool,
    /// How it ended.
    pub exit: Option<Exit>,
    /// Who waits for the end.
    pub waiting: Vec<Ticket>,
    /// The tool call that shows it.
    pub shown: Option<(Key, usize)>,
}

impl Terminal {
    /// One that has just been asked for.
    pub fn new(proc: Proc, key: Key, limit: Option<u64>) -> Self {
        Self {
            proc,
            key,
            output: String::new(),
            part: Vec::new(),
            limit: limit.map_or(DEFAULT_LIMIT_BYTES, |limit| {
                usize::try_from(limit).map_or(MAX_LIMIT_BYTES, |limit| limit.min(MAX_LIMIT_BYTES))
            }),
            truncated: false,
            exit: None,
            waiting: Vec::new(),
            shown: None,
        }
    }

    /// What it printed, as far as it is kept.
    pub fn output(&self) -> &str {
        &self.output
    }

    /// How much of the output is kept for the user.
    pub fn shown_limit(&self) -> usize {
        self.limit.max(SHOWN_BYTES)
    }

    /// Takes more output and hands back what is readable of it. Characters may be split between two pieces;
    /// what is no UTF-8 is replaced.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let text = self.decode(bytes);
        self.output.push_str(&text);
        self.trim(2);
        text
    }

    fn decode(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.part);
        all.extend_from_slice(bytes);
        let mut out = String::with_capacity(all.len());
        let mut rest = all.utf8_chunks().peekable();
        while let Some(chunk) = rest.next() {
            out.push_str(chunk.valid());
            if chunk.invalid().is_empty() {
                continue;
            }
            if rest.peek().is_none() && is_begun(chunk.invalid()) {
                self.part = chunk.invalid().to_vec();
            } else {
                out.push('\u{fffd}');
            }
        }
        out
    }

    /// It ended.
    pub fn finish(&mut self, exit: Exit) {
        if !self.part.is_empty() {
            self.part.clear();
            self.output.push('\u{fffd}');
        }
        self.trim(1);
        self.exit = Some(exit);
    }

    /// The output, at most the limit, from the start of a character on.
    pub fn trimmed_output(&mut self) -> &str {
        self.trim(1);
        &self.output
    }

    /// Drops from the front what is over `slack` times the limit, so that dropping costs little per byte printed.
    fn trim(&mut self, slack: usize) {
        if self.output.len() > self.limit.saturating_mul(slack) {
            let from = self
                .output
                .ceil_char_boundary(self.output.len() - self.limit);
            self.output.drain(..from);
            self.truncated = true;
        }
    }
}

/// Whether these last bytes may be the beginning of a character.
fn is_begun(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// All terminals, by the number that is their id on the wire.
#[derive(Debug, Default)]
pub struct Terminals {
    last: u64,
    open: HashMap<u64, Terminal>,
}

impl Terminals {
    /// A new one.
    pub fn add(&mut self, terminal: Terminal) -> u64 {
        self.last += 1;
        self.open.insert(self.last, terminal);
        self.last
    }

    /// One by its number.
    pub fn get_mut(&mut self, id: u64) -> Option<&mut Terminal> {
        self.open.get_mut(&id)
    }

    /// One by its id on the wire, if this process made it.
    pub fn find(&mut self, proc: Proc, id: &str) -> Option<(u64, &mut Terminal)> {
        let number = id.strip_prefix("term-")?.parse().ok()?;
        self.open
            .get_mut(&number)
            .filter(|terminal| terminal.proc == proc)
            .map(|terminal| (number, terminal))
    }

    /// All of them.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Terminal> {
        self.open.values_mut()
    }

    /// Lets go of one.
    pub fn remove(&mut self, id: u64) -> Option<Terminal> {
        self.open.remove(&id)
    }

    /// The numbers of all that match.
    pub fn matching(&self, matches: impl Fn(&Terminal) -> bool) -> Vec<u64> {
        let found = self.open.iter().filter(|(_, terminal)| matches(terminal));
        found.map(|(id, _)| *id).collect()
    }
}

/// The id on the wire.
pub fn wire_id(number: u64) -> String {
    format!("term-{number}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::AgentId;

    const PROC: Proc = Proc {
        agent: AgentId(1),
        generation: 0,
    };

    #[test]
    fn output_is_cut_at_a_character() {
        let mut terminal = Terminal::new(PROC, Key(1), Some(3));
        let text = "aéiöü".as_bytes();
        for byte in text {
            terminal.push(&[*byte]);
        }
        // Three bytes back is the middle of a character: it goes as a whole.
        assert_eq!(terminal.trimmed_output(), "ü");
        assert!(terminal.truncated);
        terminal.push(b"\xff\xc3");
        terminal.finish(Exit {
            code: Some(0),
            ..Exit::default()
        });
        assert_eq!(terminal.output(), "\u{fffd}");
    }

    #[test]
    fn only_its_maker_finds_it() {
        let mut all = Terminals::default();
        let id = all.add(Terminal::new(PROC, Key(1), None));
        assert!(all.find(PROC, &wire_id(id)).is_some());
        assert!(
            all.find(
                Proc {
                    agent: AgentId(2),
                    generation: 0
                },
                &wire_id(id)
            )
            .is_none()
        );
        assert!(all.find(PROC, "term-99").is_none());
        assert!(all.find(PROC, "nonsense").is_none());
        assert_eq!(all.matching(|terminal| terminal.key == Key(1)), [id]);
        assert!(all.remove(id).is_some());
        assert!(all.matching(|_| true).is_empty());
    }
}
