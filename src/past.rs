//! Past conversations: ours, those of Cursor's CLI and those an agent lists, without duplicates; full-text
//! search; titles.

use std::collections::{BTreeMap, HashMap};

use engine::ids::Key;
use engine::sessions::entry::Entry;
use engine::sessions::stored;
use serde::{Deserialize, Serialize};
use store::cursor::chats;
use store::transcript::read;
use store::transcript::search::{self, Needle};
use store::transcript::shelf::{Shelf, Stored};

use crate::error::Error;

/// Lines in the preview of a conversation.
const PREVIEW_LINES: usize = 60;
/// Longer lines are cut in the preview.
const PREVIEW_LINE_BYTES: usize = 200;

/// A past conversation, as Lua sees it.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Past {
    /// The agent's session id.
    pub id: String,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Where the title comes from; `prompt`: it is the first prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("x-lua" = "\"user\"|\"agent\"|\"prompt\"")))]
    pub title_from: Option<String>,
    /// Its working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The agent's name in the options.
    pub agent: String,
    /// Time of the last activity, in ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// The same in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_ms: Option<u64>,
    /// Where it is known from: the agent's list, our store, or Cursor's CLI.
    #[cfg_attr(test, schemars(extend("x-lua" = "\"agent\"|\"stored\"|\"cli\"")))]
    pub source: String,
    /// It is open now.
    pub live: bool,
    /// Its key, if it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<u64>", extend("x-lua" = "cursor_agent.Key")))]
    pub key: Option<Key>,
    /// How many entries are stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<usize>,
    /// How it can be continued: by the agent, by the headless adapter, or only in a new session.
    #[cfg_attr(test, schemars(extend("x-lua" = "\"load\"|\"resume\"|\"show\"")))]
    pub how: String,
}

/// Which conversations to list.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Which {
    /// Only those of this workspace; without it, all.
    pub cwd: Option<String>,
    /// Include the chats of Cursor's CLI, given its agent name in the options and its variables.
    pub cli: Option<Cli>,
}

/// An agent that is Cursor's CLI.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cli {
    /// Its name in the options.
    pub agent: String,
    /// The agent that continues chats of the terminal, if there is one.
    pub headless: Option<String>,
    /// Its variables, on top of the inherited ones.
    pub env: BTreeMap<String, String>,
}

impl From<Stored> for Past {
    fn from(stored: Stored) -> Self {
        let meta = stored.meta;
        Self {
            title: meta.shown_title().map(str::to_owned),
            title_from: meta.title_from().map(str::to_owned),
            id: meta.id,
            cwd: Some(meta.cwd),
            agent: meta.agent,
            updated_at: Some(moment::iso(meta.updated_ms.cast_signed())),
            updated_ms: Some(meta.updated_ms),
            source: "stored".to_owned(),
            live: false,
            key: None,
            entries: Some(meta.entries),
            how: "load".to_owned(),
        }
    }
}

impl Past {
    /// Rank of its title: set by the user, then by the agent, then from the first prompt.
    fn title_rank(&self) -> u8 {
        match (&self.title, self.title_from.as_deref()) {
            (None, _) => 0,
            (_, Some("user")) => 3,
            (_, Some("agent")) => 2,
            _ => 1,
        }
    }
}

/// Stored conversations, as Lua sees them.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Default, Serialize)]
pub struct OnDisk {
    /// Without duplicates, newest first.
    sessions: Vec<Past>,
    /// Why some of ours cannot be read.
    problems: Vec<String>,
}

/// Stored conversations, ours and the CLI's.
pub fn stored(shelf: Option<&Shelf>, which: &Which) -> OnDisk {
    let mut all = Vec::new();
    let mut unread = Vec::new();
    if let Some(shelf) = shelf {
        let (found, problems) = shelf.list(which.cwd.as_deref());
        for problem in problems {
            crate::log::write(
                "info",
                &format!("a stored conversation was skipped: {problem}"),
            );
            unread.push(problem.to_string());
        }
        all.extend(found.into_iter().map(Past::from));
    }
    if let Some(cli) = &which.cli {
        all.extend(crate::cli_chats::list(which.cwd.as_deref(), cli));
    }
    OnDisk {
        sessions: merge(all, Vec::new(), &HashMap::new()),
        problems: unread,
    }
}

/// Open sessions by id, with their keys and titles.
pub type Open = HashMap<String, (Key, Option<String>)>;

/// Merges both lists without duplicates: the store knows most, the agent's list is newest. Live ones first,
/// then newest first.
pub fn merge(stored: Vec<Past>, listed: Vec<Past>, open: &Open) -> Vec<Past> {
    let mut all: Vec<Past> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for mut one in stored.into_iter().chain(listed) {
        one.updated_ms = one
            .updated_ms
            .or_else(|| u64::try_from(moment::parse(one.updated_at.as_deref()?)?).ok());
        one.title = one.title.filter(|title| chats::is_title(title));
        if one.source == "agent" && one.title.is_some() {
            one.title_from = Some("agent".to_owned());
        }
        if let Some(&at) = places.get(&one.id) {
            let known = &mut all[at];
            let is_better = one.title_rank() > 0 && one.title_rank() >= known.title_rank();
            if one.updated_ms > known.updated_ms {
                known.updated_ms = one.updated_ms;
                known.updated_at = one.updated_at;
            }
            if is_better {
                (known.title, known.title_from) = (one.title, one.title_from);
            }
            known.cwd = known.cwd.take().or(one.cwd);
            if known.source == "cli" && one.source == "agent" {
                // The agent lists it, so it can load it itself.
                known.how = "load".to_owned();
            }
            continue;
        }
        places.insert(one.id.clone(), all.len());
        all.push(one);
    }
    for one in &mut all {
        let live = open.get(&one.id);
        one.key = live.map(|(key, _)| *key);
        one.live = live.is_some();
        if let Some((_, Some(title))) = live {
            one.title = Some(title.clone());
        }
    }
    all.sort_by_key(|one| std::cmp::Reverse((one.live, one.updated_ms)));
    all
}

/// A matching line, as Lua sees it.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hit {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_ms: Option<u64>,
    #[cfg_attr(test, schemars(extend("x-lua" = "\"stored\"|\"cli\"")))]
    source: String,
    /// The entry of the conversation, from 1.
    entry: usize,
    /// The line of that entry's text, from 1.
    line: usize,
    /// The line itself.
    text: String,
}

/// Searches for a text.
pub fn search(shelf: Option<&Shelf>, text: &str, which: &Which) -> Result<Vec<Hit>, Error> {
    let needle = Needle::new(text).ok_or(Error::NoNeedle)?;
    let Some(shelf) = shelf else {
        return Err(Error::MemoryOff);
    };
    let (found, problems) = search::search(shelf, which.cwd.as_deref(), &needle, &stored::text_of);
    for problem in problems {
        crate::log::write(
            "info",
            &format!("a stored conversation was skipped: {problem}"),
        );
    }
    let mut hits = Vec::new();
    for found in found {
        let of = Past::from(found.stored);
        hits.extend(found.hits.into_iter().map(|hit| Hit {
            id: of.id.clone(),
            title: of.title.clone(),
            agent: of.agent.clone(),
            cwd: of.cwd.clone(),
            updated_at: of.updated_at.clone(),
            updated_ms: of.updated_ms,
            source: of.source.clone(),
            entry: hit.entry + 1,
            line: hit.line + 1,
            text: hit.text,
        }));
    }
    Ok(hits)
}

/// The last lines of a conversation.
pub fn preview(shelf: Option<&Shelf>, id: &str, which: &Which) -> Result<Vec<String>, Error> {
    let found = shelf.and_then(|shelf| shelf.find(None, id));
    let entries: Vec<Entry> = if let Some(found) = found {
        let contents = read::read(&found.path)?;
        let kept = contents.entries.into_iter().flatten();
        kept.filter_map(|kept| stored::decode(&kept.whole(), &kept.more))
            .collect()
    } else {
        let cli = which.cli.as_ref();
        let shown = cli.and_then(|cli| crate::cli_chats::show(id, cli));
        shown.ok_or(Error::NotStored)??
    };
    let mut blocks: Vec<Vec<String>> = Vec::new();
    let mut lines = 0;
    for entry in entries.into_iter().rev() {
        let lead = match entry.kind() {
            "user" => "> ",
            "tool" => "· ",
            "notice" => "! ",
            _ => "",
        };
        let text = if entry.kind() == "tool" {
            entry.text.lines().take(1).collect::<String>()
        } else {
            entry.text.clone()
        };
        let cut = |line: &str| {
            let end = line.floor_char_boundary(PREVIEW_LINE_BYTES.min(line.len()));
            format!("{lead}{}", &line[..end])
        };
        let mut block: Vec<String> = text.trim().lines().map(cut).collect();
        if block.is_empty() {
            continue;
        }
        block.push(String::new());
        lines += block.len();
        blocks.push(block);
        if lines >= PREVIEW_LINES {
            break;
        }
    }
    blocks.reverse();
    let mut all: Vec<String> = blocks.into_iter().flatten().collect();
    all.pop();
    let from = all.len().saturating_sub(PREVIEW_LINES);
    Ok(all.split_off(from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(id: &str, source: &str, title: Option<(&str, &str)>, updated_ms: u64) -> Past {
        Past {
            id: id.to_owned(),
            source: source.to_owned(),
            title: title.map(|(_, title)| title.to_owned()),
            title_from: title.map(|(from, _)| from.to_owned()),
            updated_ms: Some(updated_ms),
            ..Past::default()
        }
    }

    #[test]
    fn each_is_there_once_with_the_title_that_counts() {
        let live = (Key(1), Some("As it is called".to_owned()));
        let open = Open::from([("live".to_owned(), live)]);
        let shown = |stored: Vec<Past>, listed: Vec<Past>| {
            let all = merge(stored, listed, &open);
            let all = all.into_iter();
            all.map(|one| (one.id, one.source, one.title.unwrap_or_default()))
                .collect::<Vec<_>>()
        };
        let row = |id: &str, source: &str, title: &str| {
            (id.to_owned(), source.to_owned(), title.to_owned())
        };
        let listed = |title: &str| past("a", "agent", Some(("", title)), 5);
        let title = |from: &str| past("a", "stored", Some((from, "Ours")), 1);
        for (stored, theirs, expected) in [
            (title("prompt"), "Theirs", "Theirs"),
            (title("agent"), "Theirs", "Theirs"),
            (title("user"), "Theirs", "Ours"),
            (title("prompt"), "New Agent", "Ours"),
            (title("prompt"), " ", "Ours"),
            (past("a", "cli", None, 1), "Theirs", "Theirs"),
        ] {
            let source = stored.source.clone();
            let all = shown(vec![stored], vec![listed(theirs)]);
            assert_eq!(all, [row("a", &source, expected)], "{theirs}");
        }
        let stored = vec![
            past("new", "stored", None, 9),
            past("live", "stored", None, 1),
            past("new", "cli", Some(("prompt", "Its prompt")), 12),
            past("old", "cli", None, 2),
        ];
        assert_eq!(
            shown(stored, vec![past("newest", "agent", None, 20)]),
            [
                row("live", "stored", "As it is called"),
                row("newest", "agent", ""),
                row("new", "stored", "Its prompt"),
                row("old", "cli", ""),
            ]
        );
    }
}
