//! Compares what an agent replays of an old conversation with what is stored of it, and takes over what is new.
//!
//! The agent's replay knows less: no prompts' attachments, no decisions, no notices, often neither output nor thoughts. So
//! what is stored stays as it is, and what the replay has beyond its end is added there.

use crate::sessions::entry::{Body, Entry};
use crate::sessions::transcript::Transcript;

/// So much of a prompt has to be the same.
const SAME_CHARS: usize = 200;

/// Takes over what is new in a replay; the number of the first entry that was added.
pub fn take_news(stored: &mut Transcript, restored: usize, replay: Transcript) -> usize {
    let from = stored.entries().len();
    let theirs = turns(replay.entries(), replay.entries().len());
    let ours = turns(stored.entries(), restored);
    let known = known_turns(stored, &ours, &replay, &theirs);
    let Some(last) = known.checked_sub(1) else {
        if ours.iter().all(|turn| turn.prompt.is_none()) {
            append(stored, replay, 0);
        }
        return from;
    };
    // The last turn both know may have gone on after we stopped to hear.
    let turn = &theirs[last];
    let begin = our_last(&ours).unwrap_or(0);
    let mut new_from = turn.end;
    for at in (turn.begin..turn.end).rev() {
        let theirs = &replay.entries()[at];
        if turn.prompt == Some(at) {
            new_from = at + 1;
            break;
        }
        if let Some(ours) = find_same(stored, begin, theirs) {
            let more = stored.get(ours).and_then(|known| {
                let more = theirs.text.strip_prefix(known.text.trim_end())?;
                (known.streams() && !more.trim().is_empty() && known.text.trim() != "")
                    .then(|| more.to_owned())
            });
            if let Some(more) = more {
                let kept = stored
                    .get(ours)
                    .map_or(0, |known| known.text.trim_end().len());
                stored.regrow(ours, kept, &more);
            }
            new_from = at + 1;
            break;
        }
        new_from = at;
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

fn our_last(ours: &[Turn]) -> Option<usize> {
    ours.iter()
        .rev()
        .find(|turn| turn.prompt.is_some())
        .map(|turn| turn.begin)
}

/// How many turns of the replay, from its first on, are stored: up to the last whose prompt is.
fn known_turns(stored: &Transcript, ours: &[Turn], replay: &Transcript, theirs: &[Turn]) -> usize {
    let prompt = |of: &Transcript, turn: &Turn| {
        let text = of.get(turn.prompt?).map(|entry| entry.text.as_str())?;
        Some(normal(text))
    };
    let our_prompts: Vec<String> = ours
        .iter()
        .filter_map(|turn| prompt(stored, turn))
        .collect();
    let mut next = 0;
    let mut known = 0;
    let mut asked = 0;
    for (at, turn) in theirs.iter().enumerate() {
        let Some(text) = prompt(replay, turn) else {
            continue;
        };
        asked += 1;
        let rest = our_prompts.get(next..).unwrap_or_default();
        if let Some(found) = rest.iter().position(|ours| same_prompt(ours, &text)) {
            next += found + 1;
            known = at + 1;
        }
    }
    if known == 0 && asked > 0 && !our_prompts.is_empty() {
        // Its prompts are spelled otherwise: then they are counted.
        let theirs_with_prompt: Vec<usize> = (0..theirs.len())
            .filter(|at| theirs[*at].prompt.is_some())
            .collect();
        let last = our_prompts.len().min(theirs_with_prompt.len());
        known = theirs_with_prompt
            .get(last.wrapping_sub(1))
            .map_or(0, |at| at + 1);
    }
    known
}

/// Whether a prompt is the one that was sent: agents add what was attached, and some wrap it.
fn same_prompt(ours: &str, theirs: &str) -> bool {
    let begin = |text: &str| text.chars().take(SAME_CHARS).collect::<String>();
    let start = begin(ours);
    if start.is_empty() {
        return theirs.is_empty();
    }
    theirs.starts_with(&start)
        || (start.chars().count() >= 8 && theirs.contains(&start))
        || ours == theirs
}

fn normal(text: &str) -> String {
    let inner = text
        .split_once("<user_query>")
        .and_then(|(_, rest)| rest.split_once("</user_query>"))
        .map_or(text, |(inner, _)| inner);
    inner.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The stored entry that a replayed one tells of, in the turn that begins there.
fn find_same(stored: &Transcript, begin: usize, theirs: &Entry) -> Option<usize> {
    if let Some(tool) = theirs.tool() {
        if let Some(at) = stored.tool(&tool.id).filter(|at| *at >= begin) {
            return Some(at);
        }
        let same = |entry: &Entry| {
            entry
                .tool()
                .is_some_and(|known| known.title == tool.title && known.kind == tool.kind)
        };
        return (begin..stored.entries().len())
            .rev()
            .find(|at| stored.get(*at).is_some_and(same));
    }
    let text = normal(&theirs.text);
    let same = |entry: &Entry| {
        if entry.parent.is_some() || entry.kind() != theirs.kind() {
            return false;
        }
        let known = normal(&entry.text);
        !known.is_empty()
            && (text.starts_with(&known) || known.ends_with(&text) || known.contains(&text))
            || matches!(entry.body, Body::Todos { .. })
    };
    (begin..stored.entries().len())
        .rev()
        .find(|at| stored.get(*at).is_some_and(same))
}

/// Adds entries of a replay from a place on; what belongs to a task that stays behind belongs to none.
fn append(stored: &mut Transcript, replay: Transcript, from: usize) {
    let shift = stored.entries().len();
    for mut entry in replay.into_entries().into_iter().skip(from) {
        entry.parent = entry
            .parent
            .and_then(|parent| Some(parent.checked_sub(from)? + shift));
        stored.take_in_new(entry);
    }
}
