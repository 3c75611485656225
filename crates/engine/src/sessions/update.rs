//! What an update does to a session: a pure function of both and the time. What it means for others comes back as changes,
//! so that it can be tested, fuzzed and replayed alone.

use acp::types::{self as wire, ContentBlock, SessionUpdate};

use crate::engine::Now;
use crate::inbound::access::says_the_same;
use crate::inbound::permissions::{says_same, web_kind};
use crate::sessions::entry::Level;
use crate::sessions::session::{Phase, Session};
use crate::sessions::task_of_subagent;
use crate::sessions::todos::{self, Todo};
use crate::sessions::transcript::{Transcript, Voice};
use crate::text;
use crate::tools::kind::ToolKind;
use crate::tools::tool_call::{Content, OpenDiff, ToolCall};

/// An update, and what has to be known of where it comes from.
#[derive(Debug)]
pub struct Update<'a> {
    /// The task entry of the subagent it comes from.
    pub parent: Option<usize>,
    /// The agent says of each call what came of it: one it says nothing of did not run. Cursor does.
    pub tells_all: bool,
    /// The directory `~` expands to.
    pub home: &'a str,
    /// What it says.
    pub news: SessionUpdate,
}

/// What is known of where news of a tool call come from.
#[derive(Debug)]
pub(crate) struct ToldCall<'a> {
    pub parent: Option<usize>,
    pub tells_all: bool,
    pub home: &'a str,
    /// The call begins, as the agent says.
    pub announced: bool,
}

/// What came of an update, for others to see to.
#[derive(Debug, PartialEq)]
pub enum Changed {
    /// News of a tool call.
    Call(ChangedCall),
    /// The user is to hear this at once.
    Tell { level: &'static str, text: String },
    /// The agent works by itself, or no longer.
    State(wire::StateUpdate),
    /// A kind of update that is not known here.
    Unknown { kind: String },
}

/// What news of a tool call changed.
#[derive(Debug, Default, PartialEq)]
pub struct ChangedCall {
    /// Its entry.
    pub at: usize,
    /// Diffs that are still to be computed.
    pub diffs: Vec<OpenDiff>,
    /// The terminals it shows.
    pub terminals: Vec<String>,
    /// The files it named before.
    pub named: Vec<String>,
    /// The files it had changed, when it was over before.
    pub had_changed: Vec<String>,
    /// It was over before, and is now.
    pub was_over: bool,
    pub over: bool,
    /// It says of other files than before, although it was over.
    pub late: bool,
    /// Whether it ran is not clear from what the agent says.
    pub doubted: bool,
}

/// Takes an update into a session.
pub fn apply(session: &mut Session, update: Update<'_>, now: Now) -> Vec<Changed> {
    if let (SessionUpdate::State(news), None) = (&update.news, update.parent) {
        return vec![Changed::State(news.clone())];
    }
    if session.shadow.is_some() && session.is_replaying() || session.may_still_replay() {
        return apply_aside(session, update, now);
    }
    let (now_ms, parent) = (now.wall_ms, update.parent);
    session.heard += 1;
    session.replayed |= matches!(
        update.news,
        SessionUpdate::UserMessageChunk(_)
            | SessionUpdate::AgentMessageChunk(_)
            | SessionUpdate::AgentThoughtChunk(_)
            | SessionUpdate::ToolCall(_)
            | SessionUpdate::ToolCallUpdate(_)
    );
    if session.is_asked_for() {
        // It was late, and its replay goes on.
        session.error = None;
    }
    let discard = match (session.phase, &mut session.replay) {
        (Phase::Loading { discard: true }, _) => true,
        (Phase::Loading { .. }, Some(replay)) if replay.skip > 0 => {
            replay.skip -= 1;
            true
        }
        (Phase::Loading { .. }, Some(replay)) => {
            replay.taken += 1;
            false
        }
        _ => false,
    };
    let told = |announced| ToldCall {
        parent,
        tells_all: update.tells_all,
        home: update.home,
        announced,
    };
    match update.news {
        SessionUpdate::AgentMessageChunk(chunk) if !discard => {
            session.chunk(Voice::Agent, chunk, parent, now_ms);
        }
        SessionUpdate::AgentThoughtChunk(chunk) if !discard => {
            session.chunk(Voice::Thought, chunk, parent, now_ms);
        }
        SessionUpdate::UserMessageChunk(chunk) if !discard => {
            let asked = session.turn.as_ref().filter(|turn| turn.call.is_some());
            let prompt = asked.map(|turn| turn.text.as_str());
            if parent.is_some() || !is_echo(prompt, &chunk) {
                session.chunk(Voice::User, chunk, parent, now_ms);
            }
        }
        SessionUpdate::ToolCall(call) if !discard => {
            session.transcript.announce_tool(call.id.as_str(), parent);
            session.alias_call(parent, &call);
            let change = session.tell_call(&told(true), call, now_ms);
            return change.map(Changed::Call).into_iter().collect();
        }
        SessionUpdate::ToolCallUpdate(call) if !discard => {
            session.alias_call(parent, &call);
            let change = session.tell_call(&told(false), call, now_ms);
            return change.map(Changed::Call).into_iter().collect();
        }
        SessionUpdate::AgentMessageChunk(_)
        | SessionUpdate::AgentThoughtChunk(_)
        | SessionUpdate::UserMessageChunk(_)
        | SessionUpdate::ToolCall(_)
        | SessionUpdate::ToolCallUpdate(_) => {}
        SessionUpdate::Plan(plan) => session.update_todos(todos_of(plan), false, !discard, now_ms),
        SessionUpdate::AvailableCommands(commands) => session.commands = commands.commands,
        SessionUpdate::CurrentMode(mode) => session.set_current_mode(&mode.mode_id),
        SessionUpdate::ConfigOptions(options) => session.set_options(options.options),
        SessionUpdate::SessionInfo(info) => match info.title {
            wire::Patch::Set(title) => session.title = Some(title),
            wire::Patch::Clear => session.title = None,
            wire::Patch::Keep => {}
        },
        SessionUpdate::Usage(usage) => {
            session.tells_usage |= usage.used.is_some();
            let kept = &mut session.usage;
            kept.used = usage.used.or(kept.used);
            kept.size = usage.size.or(kept.size);
            if let Some(cost) = usage.cost {
                kept.cost = Some(cost.amount);
                kept.currency = cost.currency;
            }
        }
        SessionUpdate::Notice(notice) => {
            let (level, notify) = match notice.severity {
                wire::NoticeSeverity::Error => (Level::Error, Some("error")),
                wire::NoticeSeverity::Warning => (Level::Warning, Some("warn")),
                _ => (Level::Info, None),
            };
            let text = match notice.description {
                Some(more) => format!("{}\n{more}", notice.title),
                None => notice.title,
            };
            session.notice(parent, level, "agent", text.clone(), now_ms);
            let tell = notify.map(|level| Changed::Tell { level, text });
            return tell.into_iter().collect();
        }
        // A subagent's says nothing of the session; the session's own was seen to above.
        SessionUpdate::State(_) => {}
        SessionUpdate::Compaction(news) => session.compaction(parent, news, now_ms),
        SessionUpdate::CompactionSummaryChunk(chunk) => {
            let text = block_text(&chunk.content);
            let entry = session.compaction_entry(parent, &chunk.compaction_id, now_ms);
            if let Some(shown) = entry.and_then(|entry| session.transcript.get_mut(entry)) {
                // The summary stands below the line that says what happens.
                if !shown.text.contains('\n') {
                    shown.text.push('\n');
                }
                shown.text.push_str(&text);
            }
        }
        SessionUpdate::Unknown(unknown) => {
            session.show_unknown(parent, &unknown.kind, now_ms);
            return vec![Changed::Unknown { kind: unknown.kind }];
        }
        // Placed before they come here.
        SessionUpdate::Subagent(_)
        | SessionUpdate::SessionMessage(_)
        | SessionUpdate::SessionMessageChunk(_) => {}
    }
    Vec::new()
}

/// Takes an update of a replay into a transcript beside the one that is stored: the two are compared when it is over.
fn apply_aside(session: &mut Session, update: Update<'_>, now: Now) -> Vec<Changed> {
    let Some(shadow) = session.shadow.take() else {
        return Vec::new();
    };
    let stored = std::mem::replace(&mut session.transcript, shadow);
    let phase = std::mem::replace(&mut session.phase, Phase::Loading { discard: false });
    apply(session, update, now);
    session.phase = phase;
    session.shadow = Some(std::mem::replace(&mut session.transcript, stored));
    // It was said and done long ago.
    Vec::new()
}

impl Session {
    /// Adds a notice, of a subagent's task or of the session.
    pub(crate) fn notice(
        &mut self,
        parent: Option<usize>,
        level: Level,
        about: &'static str,
        text: String,
        now_ms: u64,
    ) {
        self.transcript.end_message(parent, now_ms);
        let text = text::message(text);
        self.transcript.notice(parent, level, about, text, now_ms);
    }

    /// Shows something that is not known here, once per kind.
    pub(crate) fn show_unknown(&mut self, parent: Option<usize>, kind: &str, now_ms: u64) {
        if self.unknown_seen.insert(kind.to_owned()) {
            let text =
                format!("the agent sent an unknown update, \"{kind}\"; :CursorAgent log has it");
            self.notice(parent, Level::Info, "unknown", text, now_ms);
        }
    }

    fn chunk(
        &mut self,
        voice: Voice,
        chunk: wire::MessageChunk,
        parent: Option<usize>,
        now_ms: u64,
    ) {
        let text = match chunk.content {
            ContentBlock::Text(content) => content.text,
            other => block_text(&other),
        };
        if !text.is_empty() {
            let message_id = chunk.message_id.as_deref();
            self.transcript
                .chunk(voice, &text, message_id, parent, now_ms);
        }
    }

    /// Takes news of a tool call.
    pub(crate) fn tell_call(
        &mut self,
        told: &ToldCall<'_>,
        news: wire::ToolCall,
        now_ms: u64,
    ) -> Option<ChangedCall> {
        let parent = told.parent;
        let cancelling = self.turn.as_ref().is_some_and(|turn| turn.cancelling);
        self.adopt_row(parent, &news, told.home);
        // Of what was done long ago the output may be left out.
        let tells_all = told.tells_all && !self.is_replaying();
        let id = news.id.as_str().to_owned();
        let known = known_tool(&self.transcript, &id, parent, told.announced);
        let known = known.or_else(|| {
            let at = task_of_subagent::task_before_call(&self.transcript, parent, &news)?;
            self.transcript.alias_tool(&id, parent, at);
            Some(at)
        });
        let at = known.unwrap_or_else(|| {
            // What the agent says after a tool call is a new message, below it.
            self.transcript.end_message(parent, now_ms);
            self.transcript.add_tool(&id, parent, now_ms)
        });
        let entry = self.transcript.get_mut(at)?;
        let was_over = entry.tool().is_some_and(ToolCall::is_over);
        let tool = entry.tool_mut()?;
        tool.begun |= known.is_some() && !was_over;
        let had_changed = if was_over && tool.has_edited() {
            tool.changed_paths()
        } else {
            Vec::new()
        };
        let named = crate::sessions::watching::named(tool);
        let diffs = tool.apply(news);
        tool.note_task();
        if cancelling && !was_over {
            tool.note_cancel();
        }
        tool.judge(tells_all);
        let doubted = tool.doubted;
        let over = tool.is_over();
        let late = was_over && tool.changed_paths() != had_changed;
        let todos = tool.take_todos();
        let terminals = tool.content.iter().filter_map(|content| match content {
            Content::Terminal { id, .. } => Some(id.clone()),
            _ => None,
        });
        let terminals = terminals.collect();
        entry.text = entry
            .tool()
            .map(|tool| tool.title.clone())
            .unwrap_or_default();
        if over && !was_over {
            entry.done = true;
            entry.duration_ms = Some(entry.took(now_ms));
        } else if !over {
            entry.done = false;
        }
        if let Some(update) = todos {
            let news = crate::inbound::cursor::from_wire(update.todos);
            if parent.is_none() {
                self.update_todos(news, update.merge, true, now_ms);
            } else {
                // A subagent's are its own.
                let mut list = Vec::new();
                todos::update(&mut list, news, false);
                self.show_todos(parent, &list, now_ms);
            }
        }
        if self.transcript.task(at).is_some() {
            self.name_task(at);
        }
        Some(ChangedCall {
            at,
            diffs,
            terminals,
            named,
            had_changed,
            was_over,
            over,
            late,
            doubted,
        })
    }

    /// Takes todos into the list, and shows them.
    pub(crate) fn update_todos(&mut self, list: Vec<Todo>, merge: bool, show: bool, now_ms: u64) {
        let before = self.todos.clone();
        todos::update(&mut self.todos, list, merge);
        // The same update may come by two ways, as a tool call and as a request.
        if show && !(before == self.todos && self.transcript.shows_todos(None)) {
            let todos = self.todos.clone();
            self.show_todos(None, &todos, now_ms);
        }
    }

    pub(crate) fn show_todos(&mut self, parent: Option<usize>, list: &[Todo], now_ms: u64) {
        self.transcript.end_message(parent, now_ms);
        self.transcript.show_todos(list, parent, now_ms);
    }

    fn compaction_entry(&mut self, parent: Option<usize>, id: &str, now_ms: u64) -> Option<usize> {
        if let Some(known) = self.compactions.get(id) {
            return Some(*known);
        }
        let text = "The conversation is being summarised to make room".to_owned();
        self.notice(parent, Level::Info, "compaction", text, now_ms);
        let entry = self.transcript.entries().len().checked_sub(1)?;
        self.compactions.insert(id.to_owned(), entry);
        Some(entry)
    }

    fn compaction(&mut self, parent: Option<usize>, news: wire::CompactionUpdate, now_ms: u64) {
        let Some(entry) = self.compaction_entry(parent, &news.compaction_id, now_ms) else {
            return;
        };
        let text = match (&news.status, news.summary, news.error) {
            (wire::CompactionStatus::Failed, _, wire::Patch::Set(error)) => {
                format!("The conversation could not be summarised: {error}")
            }
            (wire::CompactionStatus::Failed, ..) => {
                "The conversation could not be summarised".to_owned()
            }
            (wire::CompactionStatus::Cancelled, ..) => {
                "Summarising the conversation was cancelled".to_owned()
            }
            (wire::CompactionStatus::Completed, wire::Patch::Set(blocks), _) => {
                let summary: Vec<String> = blocks.iter().map(block_text).collect();
                format!(
                    "The conversation was summarised to make room\n{}",
                    summary.join("\n")
                )
            }
            (wire::CompactionStatus::Completed, ..) => {
                let shown = self.transcript.get(entry).map(|shown| shown.text.clone());
                shown.unwrap_or_default().replacen(
                    "is being summarised to make room",
                    "was summarised to make room",
                    1,
                )
            }
            _ => return,
        };
        if let Some(shown) = self.transcript.get_mut(entry) {
            shown.text = text;
        }
    }

    /// Works out what a task is called from all that was said of it, and has it drawn again.
    pub(crate) fn name_task(&mut self, at: usize) {
        let Some(entry) = self.transcript.get_mut(at) else {
            return;
        };
        if let Some(tool) = entry.tool_mut() {
            let input = |name: &str| {
                let given = tool.raw_input.as_ref()?.get(name)?.as_str()?;
                Some(given.to_owned()).filter(|given| !given.is_empty())
            };
            let (described, kind) = (input("description"), input("subagent_type"));
            let title = Some(tool.title.clone()).filter(|_| !tool.id.starts_with("subagent:"));
            let title = title.filter(|title| !title.is_empty());
            if let Some(task) = &mut tool.task {
                let named = [
                    task.title.clone(),
                    task.named.clone(),
                    task.purpose.clone(),
                    described,
                    title,
                ];
                let named = named.into_iter().flatten().find(|name| !name.is_empty());
                task.description = named.unwrap_or_else(|| "Subagent".to_owned());
                let about = task.purpose.clone();
                task.about = about.filter(|about| *about != task.description);
                if task.subagent.is_empty() {
                    task.subagent = kind.unwrap_or_default();
                }
                if task.by_itself {
                    tool.title.clone_from(&task.description);
                }
            }
            if tool.title.is_empty()
                && let Some(task) = &tool.task
            {
                tool.title.clone_from(&task.description);
            }
            entry.text = entry
                .tool()
                .map(|tool| tool.title.clone())
                .unwrap_or_default();
        }
    }

    /// The same the other way round: a web call that is first told of after it was asked about.
    pub(crate) fn alias_call(&mut self, parent: Option<usize>, call: &wire::ToolCall) {
        let kind = call.kind.as_ref().map(ToolKind::from);
        let is_new = self.transcript.tool_of(call.id.as_str(), parent).is_none();
        let title = call.title.as_deref().unwrap_or_default();
        if !is_new || title.is_empty() || !matches!(kind, Some(ToolKind::Fetch | ToolKind::Search))
        {
            return;
        }
        let asked = |tool: &ToolCall| {
            web_kind(&tool.id) == kind && !tool.is_over() && says_same(&tool.title, title)
        };
        let entries = self.transcript.entries();
        let found = entries
            .iter()
            .position(|entry| !entry.done && entry.tool().is_some_and(asked));
        if let Some(at) = found.filter(|at| !self.transcript.has_alias(*at)) {
            let id = call.id.as_str();
            self.transcript.alias_tool(id, parent, at);
        }
    }

    /// A command the agent announces after the fact goes on in the row that is there, when it says the same.
    pub(crate) fn adopt_row(&mut self, parent: Option<usize>, news: &wire::ToolCall, home: &str) {
        let id = news.id.as_str();
        if self.rows.is_empty() || self.transcript.own_tool(id, parent).is_some() {
            return;
        }
        let mut said = ToolCall::default();
        said.apply(news.clone());
        let shows = |tool: &ToolCall| {
            tool.content.iter().any(|content| {
                matches!(content, Content::Terminal { id, .. }
                    if said.content.iter().any(|c| matches!(c, Content::Terminal { id: shown, .. } if shown == id)))
            })
        };
        let from = self.transcript.turn();
        let found = self.rows.iter().rposition(|&at| {
            let tool = self.transcript.get(at).and_then(|entry| entry.tool());
            let tool =
                tool.filter(|tool| at >= from && tool.kind == ToolKind::Execute && !tool.rejected);
            tool.is_some_and(|tool| {
                let same = says_the_same(&said, tool, &self.cwd, home);
                same || (said.command().is_none() && shows(tool))
            })
        });
        if let Some(at) = found {
            let row = self.rows.remove(at);
            self.transcript.alias_tool(id, parent, row);
        }
    }
}

/// The entry of a call that is spoken of. A call that is announced is its session's own; any other may be one of another
/// session, as long as it runs. In the session's own name, subagents' calls are spoken of even after they have ended.
fn known_tool(
    transcript: &Transcript,
    id: &str,
    parent: Option<usize>,
    announced: bool,
) -> Option<usize> {
    let own = transcript.own_tool(id, parent);
    if own.is_some() || announced {
        return own;
    }
    let runs = |at: &usize| {
        let tool = transcript.get(*at).and_then(|entry| entry.tool());
        tool.is_some_and(|tool| !tool.is_over())
    };
    transcript
        .tool_of(id, parent)
        .filter(|at| parent.is_none() || runs(at))
}

pub(crate) fn todos_of(plan: wire::Plan) -> Vec<Todo> {
    let todo = |entry: wire::PlanEntry| Todo {
        id: String::new(),
        content: entry.content,
        status: entry.status.as_str().into(),
        priority: entry.priority.map(|priority| priority.as_str().to_owned()),
        placed: false,
    };
    plan.entries.into_iter().map(todo).collect()
}

/// Some agents repeat the prompt that was just sent; the transcript has it already.
fn is_echo(prompt: Option<&str>, chunk: &wire::MessageChunk) -> bool {
    prompt.is_some_and(|prompt| match &chunk.content {
        ContentBlock::Text(text) => prompt.contains(text.text.trim()),
        // What went along with the prompt comes back with it.
        _ => true,
    })
}

/// A block that is not text, as one line of markdown.
pub(crate) fn block_text(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => match &image.uri {
            Some(uri) => format!("\n![image]({uri})\n"),
            None => format!(
                "\n[image {}, {} bytes]\n",
                image.mime_type,
                image.data.len() / 4 * 3
            ),
        },
        ContentBlock::Audio(audio) => format!(
            "\n[audio {}, {} bytes]\n",
            audio.mime_type,
            audio.data.len() / 4 * 3
        ),
        ContentBlock::ResourceLink(link) => format!("[{}]({})", link.name, link.uri),
        ContentBlock::Resource(embedded) => match &embedded.resource.body {
            wire::ResourceBody::Text(text) => format!(
                "\n{}:\n```\n{}\n```\n",
                embedded.resource.uri,
                text.trim_end()
            ),
            wire::ResourceBody::Blob(_) => format!("[{0}]({0})", embedded.resource.uri),
        },
        ContentBlock::Unknown(unknown) => format!("\n```json\n{}\n```\n", unknown.raw),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]

    use acp::FromValue;
    use serde_json::{Value, json};

    use crate::ids::{AgentId, Key};
    use crate::sessions::session::Wanted;

    use super::*;

    fn tell(session: &mut Session, news: Value) -> Vec<Changed> {
        let mut news = json!({ "sessionId": "s", "update": news });
        let news = wire::SessionNotification::from_value(news.take()).unwrap();
        let update = Update {
            parent: None,
            tells_all: false,
            home: "/home/me",
            news: news.update,
        };
        apply(
            session,
            update,
            Now {
                mono_ms: 5,
                wall_ms: 1_005,
            },
        )
    }

    #[test]
    fn what_comes_of_an_update_is_told_and_nothing_else_is_touched() {
        let wanted = Wanted::default();
        let mut session = Session::new(Key(1), AgentId(1), "/w".to_owned(), wanted);
        let text = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "Hi" } });
        assert_eq!(tell(&mut session, text), []);
        assert_eq!(session.transcript.entries()[0].text, "Hi");
        let changes = tell(
            &mut session,
            json!({
                "sessionUpdate": "tool_call", "toolCallId": "t", "kind": "edit", "title": "Edit", "status": "completed",
                "content": [{ "type": "diff", "path": "a.rs", "oldText": "1\n", "newText": "2\n" }, { "type": "terminal", "terminalId": "x" }],
            }),
        );
        let [Changed::Call(call)] = &changes[..] else {
            panic!("{changes:?}");
        };
        assert_eq!((call.at, call.over, call.was_over), (1, true, false));
        assert_eq!(call.terminals, ["x"]);
        assert!(session.transcript.entries()[0].done, "its message ended");
        let unknown = json!({ "sessionUpdate": "odd_news" });
        let kind = "odd_news".to_owned();
        assert_eq!(
            tell(&mut session, unknown.clone()),
            [Changed::Unknown { kind: kind.clone() }]
        );
        assert_eq!(tell(&mut session, unknown), [Changed::Unknown { kind }]);
        assert_eq!(session.transcript.entries().len(), 3, "shown once");
    }

    #[test]
    fn the_same_updates_make_the_same_session() {
        let updates = [
            json!({ "sessionUpdate": "agent_thought_chunk", "content": { "type": "text", "text": "hm" } }),
            json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "Run", "kind": "execute" }),
            json!({ "sessionUpdate": "plan", "entries": [{ "content": "a", "status": "pending" }] }),
            json!({ "sessionUpdate": "current_mode_update", "currentModeId": "ask" }),
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "failed" }),
        ];
        let play = || {
            let mut session = Session::new(Key(1), AgentId(1), "/w".to_owned(), Wanted::default());
            let changes: Vec<_> = updates
                .iter()
                .flat_map(|news| tell(&mut session, news.clone()))
                .collect();
            format!("{changes:?} {session:?}").len()
        };
        assert_eq!(play(), play());
    }
}
