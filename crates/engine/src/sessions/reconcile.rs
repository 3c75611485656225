//! Compares what an agent replays of an old conversation with what is stored of it, and takes over what is new.
//!
//! The agent's replay knows less: no prompts' attachments, no decisions, no notices, often neither output nor thoughts. So
//! what is stored stays as it is, and what the replay has beyond its end is added there.

use crate::secrets::MASK;
use crate::sessions::entry::{Body, Entry};
use crate::sessions::transcript::Transcript;

/// How many characters of a prompt must match.
const SAME_CHARS: usize = 200;
/// Shorter prompts are not searched for inside others.
const INNER_CHARS: usize = 8;
/// How many turns are searched for a similar prompt; beyond them only for an identical one.
const NEAR_TURNS: usize = 16;
/// How many characters of an answer identify a turn, or the place where an answer continued.
const ANSWER_CHARS: usize = 24;

/// Takes over what is new in a replay; the number of the first entry that was added.
pub fn take_news(stored: &mut Transcript, restored: usize, replay: &Transcript) -> usize {
    let from = stored.entries().len();
    let theirs = turns(replay.entries(), replay.entries().len());
    let ours = turns(stored.entries(), restored);
    let Some((their_last, our_last)) = last_shared(stored, &ours, replay, &theirs) else {
        if ours.iter().all(|turn| turn.prompt.is_none()) {
            append(stored, replay, 0);
        }
        return from;
    };
    let turn = &theirs[their_last];
    let is_our_end = ours[our_last + 1..]
        .iter()
        .all(|later| later.prompt.is_none());
    if !is_our_end {
        // What was said here since is unknown to the agent: of what was before it we missed nothing.
        append(stored, replay, turn.end);
        return from;
    }
    // The last turn both know may have gone on after we stopped to hear.
    let begin = ours[our_last].begin;
    let said = Said::of(stored, begin);
    let mut new_from = turn.end;
    let mut rest = None;
    for at in (turn.begin..turn.end).rev() {
        let is_known = if turn.prompt == Some(at) {
            Known::Whole
        } else {
            known(stored, begin, &said, replay, turn, at)
        };
        match is_known {
            Known::Not => new_from = at,
            Known::Whole => {
                new_from = at + 1;
                break;
            }
            Known::UpTo(byte) => {
                new_from = at + 1;
                rest = Some((at, byte));
                break;
            }
        }
    }
    if let Some((at, byte)) = rest {
        go_on(stored, begin, &replay.entries()[at], byte);
    }
    append(stored, replay, new_from);
    from
}

/// A prompt and what came of it.
#[derive(Debug)]
struct Turn {
    /// The prompt's entry; what stands before the first has none.
    prompt: Option<usize>,
    begin: usize,
    end: usize,
}

fn turns(entries: &[Entry], end: usize) -> Vec<Turn> {
    let mut found: Vec<Turn> = Vec::new();
    for (at, entry) in entries.iter().enumerate().take(end) {
        let is_prompt = entry.parent.is_none() && matches!(entry.body, Body::User { .. });
        if is_prompt || found.is_empty() {
            found.push(Turn {
                prompt: is_prompt.then_some(at),
                begin: at,
                end: at,
            });
        }
        if let Some(turn) = found.last_mut() {
            turn.end = at + 1;
        }
    }
    found
}

/// The last turn that both have: which of theirs, and which of ours.
fn last_shared(
    stored: &Transcript,
    ours: &[Turn],
    replay: &Transcript,
    theirs: &[Turn],
) -> Option<(usize, usize)> {
    let prompts = |of: &Transcript, turns: &[Turn]| -> Vec<(usize, String)> {
        let prompt = |(at, turn): (usize, &Turn)| {
            let text = of.get(turn.prompt?).map(|entry| entry.text.as_str())?;
            Some((at, inner(text).to_owned()))
        };
        turns.iter().enumerate().filter_map(prompt).collect()
    };
    let (our_prompts, their_prompts) = (prompts(stored, ours), prompts(replay, theirs));
    let (mut next, mut last) = (0, None);
    for (their, text) in &their_prompts {
        let left = our_prompts.get(next..).unwrap_or_default();
        let near = &left[..left.len().min(NEAR_TURNS)];
        let same = |(_, known): &(usize, String)| same_prompt(known, text);
        let found = near
            .iter()
            .position(same)
            .or_else(|| left.iter().position(|(_, known)| known == text))
            .or_else(|| {
                let answers = |(our, _): &(usize, String)| {
                    same_answer(stored, &ours[*our], replay, &theirs[*their])
                };
                near.iter().position(answers)
            });
        if let Some(found) = found {
            last = Some((*their, left[found].0));
            next += found + 1;
        }
    }
    // Where all prompts are spelled otherwise they are counted.
    last.or_else(|| {
        let count = our_prompts.len().min(their_prompts.len()).checked_sub(1)?;
        Some((their_prompts[count].0, our_prompts[count].0))
    })
}

/// Whether a prompt is the one that was sent: agents add what was attached, and some wrap it.
fn same_prompt(ours: &str, theirs: &str) -> bool {
    let (short, long) = (normal(ours), normal(theirs));
    if short.is_empty() {
        return long.is_empty();
    }
    let start: String = short.chars().take(SAME_CHARS).collect();
    long.starts_with(&start)
        || (start.chars().count() >= INNER_CHARS && long.contains(&start))
        || theirs.lines().any(|line| normal(line) == short)
        || is_masked(&short, &long)
}

/// Whether turns whose prompts differ are the same by what came of them.
fn same_answer(stored: &Transcript, ours: &Turn, replay: &Transcript, theirs: &Turn) -> bool {
    let of = |transcript: &Transcript, turn: &Turn| -> Vec<String> {
        let entries = &transcript.entries()[turn.begin..turn.end];
        let said = entries
            .iter()
            .filter(|entry| entry.parent.is_none() && matches!(entry.body, Body::Agent { .. }));
        said.map(|entry| squeezed(&entry.text)).collect()
    };
    let known = of(stored, ours).concat();
    let told = of(replay, theirs).concat();
    let start: String = told.chars().take(ANSWER_CHARS).collect();
    start.chars().count() == ANSWER_CHARS && known.starts_with(&start)
}

/// What the user wrote, where the agent has wrapped it.
fn inner(text: &str) -> &str {
    text.split_once("<user_query>")
        .and_then(|(_, rest)| rest.split_once("</user_query>"))
        .map_or(text, |(inner, _)| inner)
}

fn normal(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Whether a text that was stored without its secrets is this one.
fn is_masked(stored: &str, text: &str) -> bool {
    let mut parts = stored.split(MASK);
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut masked = false;
    for part in parts {
        masked = true;
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    masked
}

/// All that was said in a turn, by who said it, without the spaces: a replay may join what calls stood between.
struct Said {
    agent: String,
    thoughts: String,
    subagents: String,
    /// The ids of its calls.
    calls: Vec<String>,
}

impl Said {
    fn of(transcript: &Transcript, begin: usize) -> Self {
        let mut said = Self {
            agent: String::new(),
            thoughts: String::new(),
            subagents: String::new(),
            calls: Vec::new(),
        };
        for entry in transcript.entries().iter().skip(begin) {
            said.calls.extend(entry.tool().map(|tool| tool.id.clone()));
            if let Some(voice) = said.voice_mut(entry) {
                *voice += &squeezed(&entry.text);
            }
        }
        said
    }

    fn voice_mut(&mut self, entry: &Entry) -> Option<&mut String> {
        match &entry.body {
            Body::Agent { .. } | Body::Thought { .. } if entry.parent.is_some() => {
                Some(&mut self.subagents)
            }
            Body::Agent { .. } => Some(&mut self.agent),
            Body::Thought { .. } => Some(&mut self.thoughts),
            _ => None,
        }
    }

    fn voice(&self, entry: &Entry) -> Option<&str> {
        match &entry.body {
            Body::Agent { .. } | Body::Thought { .. } if entry.parent.is_some() => {
                Some(&self.subagents)
            }
            Body::Agent { .. } => Some(&self.agent),
            Body::Thought { .. } => Some(&self.thoughts),
            _ => None,
        }
    }
}

/// How much of a replayed entry is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Not,
    Whole,
    /// Its text up to this byte.
    UpTo(usize),
}

/// How much of an entry of a replayed turn is in the stored turn that begins there.
fn known(
    stored: &Transcript,
    begin: usize,
    said: &Said,
    replay: &Transcript,
    turn: &Turn,
    at: usize,
) -> Known {
    let theirs = &replay.entries()[at];
    let any = |same: &dyn Fn(&Entry) -> bool| match stored.entries()[begin..].iter().any(same) {
        true => Known::Whole,
        false => Known::Not,
    };
    if let Some(tool) = theirs.tool() {
        // Some agents count their calls from the beginning again: only then a call is known by what it says.
        let ids = said
            .calls
            .iter()
            .any(|id| replay.own_tool(id, None).is_some());
        return any(&|entry| {
            entry.tool().is_some_and(|known| match ids {
                true => known.id == tool.id,
                false => known.title == tool.title && known.kind == tool.kind,
            })
        });
    }
    let Some(ours) = said.voice(theirs) else {
        return match theirs.body {
            Body::Todos { .. } => any(&|entry| matches!(entry.body, Body::Todos { .. })),
            _ => any(&|entry| entry.kind() == theirs.kind() && entry.text == theirs.text),
        };
    };
    let text = squeezed(&theirs.text);
    if theirs.parent.is_some() {
        return match ours.contains(&text) {
            true => Known::Whole,
            false => Known::Not,
        };
    }
    let mut up_to: String = replay.entries()[turn.begin..at]
        .iter()
        .filter(|entry| entry.parent.is_none() && entry.kind() == theirs.kind())
        .map(|entry| squeezed(&entry.text))
        .collect();
    let before = up_to.len();
    up_to += &text;
    if ours.starts_with(&up_to) {
        return Known::Whole;
    }
    let known_bytes = if up_to.starts_with(ours) {
        // What is stored ends within it, or before.
        ours.len().checked_sub(before).filter(|bytes| *bytes > 0)
    } else if ours.contains(&text) || is_masked(ours, &up_to) {
        return Known::Whole;
    } else {
        // The replay has not all that came before.
        let skip = ours.chars().count().checked_sub(ANSWER_CHARS);
        skip.and_then(|skip| {
            let end: String = ours.chars().skip(skip).collect();
            Some(text.rfind(&end)? + end.len())
        })
    };
    known_bytes.map_or(Known::Not, |bytes| {
        Known::UpTo(unsqueezed(&theirs.text, bytes))
    })
}

/// How many bytes of a text contain this many that are not spaces.
fn unsqueezed(text: &str, bytes: usize) -> usize {
    let mut left = bytes;
    for (at, char) in text.char_indices() {
        if left == 0 {
            return at;
        }
        if !char.is_whitespace() {
            left = left.saturating_sub(char.len_utf8());
        }
    }
    text.len()
}

/// Adds what a message has beyond what is stored of it: to the message itself, unless something came after it.
fn go_on(stored: &mut Transcript, begin: usize, theirs: &Entry, byte: usize) {
    let more = &theirs.text[byte..];
    if more.trim().is_empty() {
        return;
    }
    let mut of_turn = stored.entries().iter().enumerate().skip(begin).rev();
    let last =
        of_turn.find(|(_, entry)| entry.parent.is_none() && !matches!(entry.body, Body::Notice(_)));
    match last {
        Some((at, entry)) if entry.kind() == theirs.kind() => {
            let kept = entry.text.trim_end().len();
            stored.regrow(at, kept, more);
        }
        _ => {
            let mut entry = theirs.clone();
            entry.text = more.trim_start().to_owned();
            stored.take_in_new(entry);
        }
    }
}

/// Adds entries of a replay from a place on; what belongs to a task that stays behind belongs to none.
fn append(stored: &mut Transcript, replay: &Transcript, from: usize) {
    let shift = stored.entries().len();
    for mut entry in replay.entries().iter().skip(from).cloned() {
        entry.parent = entry
            .parent
            .and_then(|parent| Some(parent.checked_sub(from)? + shift));
        stored.take_in_new(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::transcript::Voice;

    /// A conversation: `> prompt`, `~ thought`, `$ call`, `! notice`, and what the agent says.
    fn conversation(lines: &[&str]) -> Transcript {
        let mut all = Transcript::default();
        for line in lines {
            let (mark, text) = line.split_at(line.len().min(2));
            match mark {
                "> " => {
                    all.end_turn(0);
                    all.chunk(Voice::User, text, None, None, 0);
                }
                "~ " => {
                    all.chunk(Voice::Thought, text, None, None, 0);
                }
                "$ " => {
                    all.end_message(None, 0);
                    let at = all.add_tool(text, None, 0);
                    let entry = all.get_mut(at).and_then(Entry::tool_mut);
                    if let Some(tool) = entry {
                        text.clone_into(&mut tool.title);
                    }
                }
                "! " => {
                    all.notice(
                        None,
                        crate::sessions::entry::Level::Info,
                        "agent",
                        text.to_owned(),
                        0,
                    );
                }
                _ => {
                    all.end_message(None, 0);
                    all.chunk(Voice::Agent, line, None, None, 0);
                }
            }
        }
        all.end_turn(0);
        all
    }

    fn shown(all: &Transcript) -> Vec<String> {
        let line = |entry: &Entry| match &entry.body {
            Body::User { .. } => format!("> {}", entry.text),
            Body::Thought { .. } => format!("~ {}", entry.text),
            Body::Tool(tool) => format!("$ {}", tool.title),
            Body::Notice(_) => format!("! {}", entry.text),
            _ => entry.text.clone(),
        };
        all.entries().iter().map(line).collect()
    }

    fn check(stored: &[&str], replay: &[&str], expected: &[&str]) {
        let mut all = conversation(stored);
        let restored = all.entries().len();
        take_news(&mut all, restored, &conversation(replay));
        assert_eq!(shown(&all), expected, "{stored:?} and {replay:?}");
        // A repetition changes nothing.
        let restored = all.entries().len();
        take_news(&mut all, restored, &conversation(replay));
        assert_eq!(shown(&all), expected, "{replay:?} twice");
    }

    #[test]
    fn a_replay_that_knows_less_changes_nothing() {
        let ours = [
            "> fix the parser",
            "~ hm, lists",
            "Let me look.",
            "$ read",
            "It drops commas.",
            "! the turn took 3 s",
            "> go on",
            "$ edit",
            "Done.",
            "! ok",
        ];
        for theirs in [
            &[] as &[&str],
            &["> fix the parser"],
            &["> fix the parser", "Let me look.", "It drops commas."],
            &[
                "> fix the parser",
                "Let me look. It drops commas.",
                "> go on",
                "Done.",
            ],
            &["> fix the parser", "It drops commas.", "> go on"],
            &["> go on", "Done."],
            &["Let me look.", "Done."],
            &[
                "> fix the parser",
                "Let me",
                "look.",
                "It drops",
                "commas.",
                "> go on",
                "$ edit",
                "Done.",
            ],
            &[
                "> <user_query>\nfix the parser\n</user_query>",
                "Let me look.",
                "> @a.rs says 3\ngo on",
                "Done.",
            ],
        ] {
            check(&ours, theirs, &ours);
        }
    }

    #[test]
    fn a_turn_the_agent_never_kept_does_not_double_the_one_before() {
        let ours = ["> a question", "An answer.", "> another", "! cancelled"];
        check(&ours, &["> a question", "An answer."], &ours);
        let more = ["> a question", "An answer.", "> from elsewhere", "Yes."];
        let all = [&ours[..], &more[2..]].concat();
        check(&ours, &more, &all);
    }

    #[test]
    fn what_is_beyond_the_end_is_added() {
        let ours = ["> count", "one two", "! the last moment is missing"];
        check(
            &ours,
            &[
                "> count",
                "one two three",
                "$ write",
                "Done.",
                "> and on",
                "four",
            ],
            &[
                "> count",
                "one two three",
                "! the last moment is missing",
                "$ write",
                "Done.",
                "> and on",
                "four",
            ],
        );
        // The same words and the same call again.
        check(
            &["> do it", "Done.", "$ look"],
            &[
                "> do it", "Done.", "$ look", "$ edit", "Done.", "$ read", "Done.",
            ],
            &[
                "> do it", "Done.", "$ look", "$ edit", "Done.", "$ read", "Done.",
            ],
        );
        // Text after a call is another message.
        check(
            &["> count", "one", "$ look"],
            &["> count", "one two three"],
            &["> count", "one", "$ look", "two three"],
        );
        check(
            &["> count", "one", "$ look", "two"],
            &["> count", "one two three"],
            &["> count", "one", "$ look", "two three"],
        );
        check(
            &["! stored elsewhere"],
            &["> a", "b"],
            &["! stored elsewhere", "> a", "b"],
        );
    }

    #[test]
    fn prompts_are_known_by_what_came_of_them_or_are_counted() {
        let ours = [
            "> hi",
            "What can I do for you today?",
            "> why",
            "Because of the lexer, I think.",
        ];
        check(
            &ours,
            &[
                "> [hi] (translated)",
                "What can I do for you today?",
                "> [why] (translated)",
                "Because of the lexer, I think.",
                "> more",
                "No.",
            ],
            &[&ours[..], &["> more", "No."]].concat(),
        );
        check(&["> hi", "Yes."], &["> [h]", "Yes."], &["> hi", "Yes."]);
        let same = ["> go on", "a", "> go on", "b"];
        check(
            &same,
            &[&same[..], &["> go on", "c"]].concat(),
            &[&same[..], &["> go on", "c"]].concat(),
        );
    }

    #[test]
    fn what_is_stored_without_its_secrets_is_the_same() {
        let ours = ["> use ••• here", "I use ••• there, as you said."];
        check(
            &ours,
            &["> use pa55word here", "I use pa55word there, as you said."],
            &ours,
        );
    }
}
