//! What agents send: updates of sessions, and requests passed to those who serve them.

use acp::message::RpcError;
use acp::peer::Ticket;
use acp::types::{self as wire, ContentBlock, SessionUpdate};
use acp::{FromValue, methods};
use serde_json::{Value, json};

use crate::agents::agent::{Link, Stage, Waiter};
use crate::effect::{DiffJob, Effect};
use crate::engine::{Engine, News};
use crate::ids::{AgentId, Key, Proc};
use crate::policy::paths::absolute;
use crate::screen::outbox::Wake;
use crate::sessions::entry::Level;
use crate::sessions::session::Phase;
use crate::sessions::subagents;
use crate::sessions::todos::{self, Todo};
use crate::sessions::transcript::{Transcript, Voice};
use crate::tools::tool_call::{Content, ToolCall};

impl Engine {
    /// A notification arrived.
    pub(crate) fn on_notification(&mut self, proc: Proc, method: &str, params: Value) {
        match method {
            methods::SESSION_UPDATE => match wire::SessionNotification::from_value(params) {
                Ok(update) => self.on_update(proc, update),
                Err(params) => self.unknown_notification(proc, method, &params),
            },
            methods::ELICITATION_COMPLETE => {
                // The page did its work; the request it belongs to was answered when it was opened.
                self.log("info", format!("elicitation complete: {params}"));
            }
            // A login that lacks shows when a session or a prompt is refused; every session begins with one of these.
            methods::AUTH_STATUS_UPDATE | methods::AUTH_STATUS_UPDATE_EXTENSION => {}
            _ if method.starts_with("cursor/") => self.on_cursor(proc, None, method, params),
            _ => self.unknown_notification(proc, method, &params),
        }
    }

    fn unknown_notification(&mut self, proc: Proc, method: &str, params: &Value) {
        let id = params
            .get("sessionId")
            .and_then(Value::as_str)
            .map(wire::SessionId::from);
        let key = id
            .and_then(|id| self.place(proc, &id).map(|(key, _)| key))
            .or_else(|| self.busy_session(proc.agent));
        self.log("info", format!("unknown notification {method}"));
        if let Some(key) = key {
            self.show_unknown(key, None, method);
        }
    }

    /// Shows something nobody knows, once per session and kind.
    pub(crate) fn show_unknown(&mut self, key: Key, parent: Option<usize>, kind: &str) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        if session.unknown_seen.insert(kind.to_owned()) {
            let text = format!(
                "the agent sent \"{kind}\", which this plugin does not know; :CursorAgent log has it"
            );
            self.add_notice_in(key, parent, Level::Info, "unknown", text);
        }
    }

    fn on_update(&mut self, proc: Proc, notification: wire::SessionNotification) {
        let from = &notification.session_id;
        if !subagents::is_work(&notification.update)
            && self.is_stranger(proc, from)
            && !self.is_making_one(proc.agent)
        {
            // What a session nobody knows can do is of no use to anybody.
            return;
        }
        match self.place(proc, from) {
            Some((key, parent)) => match notification.update {
                SessionUpdate::Subagent(news) => {
                    self.on_subagent(proc, (key, parent), from, &news);
                }
                SessionUpdate::SessionMessage(message) => {
                    self.on_session_message(proc, (key, parent), from, *message, true);
                }
                SessionUpdate::SessionMessageChunk(message) => {
                    self.on_session_message(proc, (key, parent), from, *message, false);
                }
                update => {
                    let agent = self.agents.get(&proc.agent);
                    let own = agent.is_some_and(|agent| agent.sessions.contains_key(from));
                    let told = (own && self.takes_updates(key))
                        .then(|| self.told_parent(key, notification.meta.as_ref(), &update))
                        .flatten();
                    let parent = parent.or(told);
                    if let Some(task) = parent {
                        self.heard_from(key, task);
                    }
                    if own && told.is_none() {
                        self.apply(key, None, update);
                    } else {
                        self.apply_of_subagent(key, parent, update);
                    }
                }
            },
            None => {
                let Some(agent) = self.live(proc) else { return };
                if !agent.closed.contains(&notification.session_id) {
                    // Some agents speak of a session before they have answered session/new.
                    agent.push_early(notification);
                }
            }
        }
    }

    /// What was kept while a session was being made and is not that session's: perhaps a subagent's.
    pub(crate) fn place_early(&mut self, proc: Proc) {
        if self.is_making_one(proc.agent) {
            return;
        }
        let kept = self
            .live(proc)
            .map(|agent| std::mem::take(&mut agent.early))
            .unwrap_or_default();
        for notification in kept {
            self.on_update(proc, notification);
        }
    }

    /// Whether `session/new` waits for its answer, perhaps for a session that was closed meanwhile.
    pub(crate) fn is_making_one(&self, id: AgentId) -> bool {
        let agent = self.agents.get(&id);
        agent.is_some_and(|agent| {
            let mut waiters = agent.peer.waiters();
            waiters.any(|waiter| matches!(waiter, Waiter::New(_)))
        })
    }

    /// The session whose turn runs; of several the one that began last, of none the newest session.
    pub(crate) fn busy_session(&self, id: AgentId) -> Option<Key> {
        let mine = || {
            self.sessions
                .values()
                .filter(move |session| session.agent == id && session.phase != Phase::Lost)
        };
        let running = mine().filter(|session| session.turn.is_some());
        running
            .max_by_key(|session| {
                session
                    .turn
                    .as_ref()
                    .map(|turn| (turn.started_ms, session.key))
            })
            .or_else(|| mine().next_back())
            .map(|session| session.key)
    }

    /// Whether what comes for a session goes into its transcript: of a replay it has already, nothing does.
    fn takes_updates(&self, key: Key) -> bool {
        let session = self.sessions.get(&key);
        session.is_some_and(|session| session.phase != (Phase::Loading { discard: true }))
    }

    /// Takes an update of a subagent into the session it works for: what it does, not what it says of itself.
    fn apply_of_subagent(&mut self, key: Key, parent: Option<usize>, update: SessionUpdate) {
        match update {
            SessionUpdate::SessionInfo(info) => {
                // A name of its own, where the agent gave it none.
                if let (Some(task), wire::Patch::Set(title)) = (parent, info.title) {
                    self.name_of_session(key, task, title);
                }
            }
            update if !subagents::is_work(&update) => {}
            SessionUpdate::Plan(_) if !self.takes_updates(key) => {}
            SessionUpdate::Plan(plan) => {
                let mut list = Vec::new();
                todos::update(&mut list, todos_of(plan), false);
                self.show_todos(key, parent, &list);
            }
            other => self.apply(key, parent, other),
        }
    }

    /// Takes an update into a session. `parent` is the task entry of the subagent it comes from.
    pub(crate) fn apply(&mut self, key: Key, parent: Option<usize>, update: SessionUpdate) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        session.heard += 1;
        if session.is_asked_for() && session.error.take().is_some() {
            // It was late, and its replay goes on.
            self.outbox.status(key);
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
        match update {
            SessionUpdate::AgentMessageChunk(chunk) if !discard => {
                self.chunk(key, Voice::Agent, chunk, parent)
            }
            SessionUpdate::AgentThoughtChunk(chunk) if !discard => {
                self.chunk(key, Voice::Thought, chunk, parent)
            }
            SessionUpdate::UserMessageChunk(chunk) if !discard => {
                let prompt = session.turn.as_ref().map(|turn| turn.text.as_str());
                if parent.is_some() || !is_echo(prompt, &chunk) {
                    self.chunk(key, Voice::User, chunk, parent);
                }
            }
            SessionUpdate::ToolCall(call) if !discard => {
                session.transcript.announce_tool(call.id.as_str(), parent);
                self.alias_call(key, parent, &call);
                self.upsert_tool(key, parent, call, true);
            }
            SessionUpdate::ToolCallUpdate(call) if !discard => {
                self.alias_call(key, parent, &call);
                self.upsert_tool(key, parent, call, false);
            }
            SessionUpdate::AgentMessageChunk(_)
            | SessionUpdate::AgentThoughtChunk(_)
            | SessionUpdate::UserMessageChunk(_)
            | SessionUpdate::ToolCall(_)
            | SessionUpdate::ToolCallUpdate(_) => {}
            SessionUpdate::Plan(plan) => {
                self.update_todos(key, todos_of(plan), false, !discard);
            }
            SessionUpdate::AvailableCommands(commands) => {
                session.commands = commands.commands;
                self.outbox.status(key);
            }
            SessionUpdate::CurrentMode(mode) => {
                session.set_current_mode(&mode.mode_id);
                self.outbox.status(key);
            }
            SessionUpdate::ConfigOptions(options) => {
                session.take_options(options.options);
                self.outbox.status(key);
            }
            SessionUpdate::SessionInfo(info) => {
                match info.title {
                    wire::Patch::Set(title) => session.title = Some(title),
                    wire::Patch::Clear => session.title = None,
                    wire::Patch::Keep => {}
                }
                self.outbox.status(key);
            }
            SessionUpdate::Usage(usage) => {
                session.tells_usage |= usage.used.is_some();
                let kept = &mut session.usage;
                kept.used = usage.used.or(kept.used);
                kept.size = usage.size.or(kept.size);
                if let Some(cost) = usage.cost {
                    kept.cost = Some(cost.amount);
                    kept.currency = cost.currency;
                }
                self.outbox.status(key);
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
                self.add_notice_in(key, parent, level, "agent", text.clone());
                if let Some(notify) = notify {
                    self.tell(key, notify, text);
                }
            }
            SessionUpdate::Compaction(news) => self.compaction(key, parent, news),
            SessionUpdate::CompactionSummaryChunk(chunk) => {
                let text = block_text(&chunk.content);
                let entry = self.compaction_entry(key, parent, &chunk.compaction_id);
                if let Some(entry) = entry
                    && let Some(shown) = self
                        .sessions
                        .get_mut(&key)
                        .and_then(|s| s.transcript.get_mut(entry))
                {
                    // The summary stands below the line that says what happens.
                    if !shown.text.contains('\n') {
                        shown.text.push('\n');
                    }
                    shown.text.push_str(&text);
                    self.outbox.entry(key, entry);
                }
            }
            SessionUpdate::Unknown(unknown) => {
                self.log("info", format!("unknown update {}", unknown.kind));
                self.show_unknown(key, parent, &unknown.kind);
            }
            // Placed before they come here.
            SessionUpdate::Subagent(_)
            | SessionUpdate::SessionMessage(_)
            | SessionUpdate::SessionMessageChunk(_) => {}
        }
    }

    fn chunk(&mut self, key: Key, voice: Voice, chunk: wire::MessageChunk, parent: Option<usize>) {
        let now = self.now.wall_ms;
        let text = match chunk.content {
            ContentBlock::Text(content) => content.text,
            other => block_text(&other),
        };
        if text.is_empty() {
            return;
        }
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let (touched, ended) =
            session
                .transcript
                .chunk(voice, &text, chunk.message_id.as_deref(), parent, now);
        if let Some(entry) = ended {
            self.outbox.entry(key, entry);
        }
        self.touched(key, touched);
    }

    /// Takes news of a tool call, from an update or a permission; the number of its entry.
    pub(crate) fn upsert_tool(
        &mut self,
        key: Key,
        parent: Option<usize>,
        news: wire::ToolCall,
        announced: bool,
    ) -> Option<usize> {
        let now = self.now.wall_ms;
        self.adopt_row(key, parent, &news);
        let session = self.sessions.get_mut(&key)?;
        let of_cursor = self
            .agents
            .get(&session.agent)
            .is_some_and(|agent| agent.is_cursor() && !agent.headless);
        // Of what was done long ago the output may be left out.
        let tells_all = of_cursor && !session.is_replaying();
        let id = news.id.as_str().to_owned();
        let known = known_tool(&session.transcript, &id, parent, announced);
        let known = known.or_else(|| {
            let at = subagents::task_before_call(&session.transcript, parent, &news)?;
            session.transcript.alias_tool(&id, parent, at);
            Some(at)
        });
        let at = known.unwrap_or_else(|| {
            // What the agent says after a tool call is a new message, below it.
            if let Some(entry) = session.transcript.end_message(parent, now) {
                self.outbox.entry(key, entry);
            }
            session.transcript.add_tool(&id, parent, now)
        });
        let entry = session.transcript.get_mut(at)?;
        let was_over = entry.tool().is_some_and(ToolCall::is_over);
        let tool = entry.tool_mut()?;
        tool.begun |= known.is_some() && !was_over;
        let had_changed = if was_over && tool.has_edited() {
            tool.changed_paths()
        } else {
            Vec::new()
        };
        let named = crate::sessions::watching::named(tool);
        let open = tool.apply(news);
        tool.judge(tells_all);
        let doubted = tool.doubted;
        let over = tool.is_over();
        let late = was_over && tool.changed_paths() != had_changed;
        let todos = tool.take_todos();
        let terminals: Vec<String> = tool
            .content
            .iter()
            .filter_map(|content| match content {
                Content::Terminal { id, .. } => Some(id.clone()),
                _ => None,
            })
            .collect();
        entry.text = entry
            .tool()
            .map(|tool| tool.title.clone())
            .unwrap_or_default();
        if over && !was_over {
            entry.done = true;
            entry.duration_ms = Some(now.saturating_sub(entry.started_ms));
        } else if !over {
            entry.done = false;
        }
        for diff in open {
            let job = DiffJob {
                key,
                entry: at,
                content: diff.content,
                path: absolute(&session.cwd, self.policy.home(), &diff.path),
                near: diff.near,
                old: diff.old,
                new: diff.new,
            };
            self.effects.push(Effect::Diff(Box::new(job)));
        }
        for terminal in terminals {
            self.show_terminal(key, at, &terminal);
        }
        self.outbox.entry(key, at);
        self.watch_call(key, at, &named);
        self.recheck_decisions(key, at);
        if over && (!was_over || late) {
            self.note_edits(key, at, &had_changed);
        }
        if over && !was_over {
            self.watch_call_end(key, at);
        }
        if doubted {
            self.doubt(key, at);
        }
        if let Some(update) = todos {
            self.take_todos(key, parent, update);
        }
        let is_task = self
            .sessions
            .get(&key)
            .is_some_and(|session| session.transcript.task(at).is_some());
        if is_task {
            self.name_task(key, at);
        }
        Some(at)
    }

    /// A tool call that changes files has ended: buffers of those files have to look again. Of what it changed in
    /// `known`, and of what it had the editor write, the event was fired.
    pub(crate) fn note_edits(&mut self, key: Key, at: usize, known: &[String]) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        // A replayed call did its work long ago.
        if session.is_replaying() {
            return;
        }
        let Some(tool) = session.transcript.get(at).and_then(|entry| entry.tool()) else {
            return;
        };
        if !tool.has_edited() {
            return;
        }
        let edits: Vec<Reported> = tool
            .changed_paths()
            .into_iter()
            .map(|path| {
                let told = known.contains(&path);
                let made = tool.content.iter().any(|content| {
                    matches!(content, Content::Diff { path: p, old: None, .. } if *p == path)
                });
                let gone = tool.content.iter().any(|content| {
                    matches!(content, Content::Diff { path: p, deleted: true, .. } if *p == path)
                });
                let hunks = tool.hunks_of(&path);
                let state = match tool.kind.as_str() {
                    "delete" => "deleted",
                    _ if gone => "deleted",
                    _ if made => "created",
                    _ => "modified",
                };
                let said = crate::sessions::watching::said(tool, &path);
                let full = absolute(&session.cwd, self.policy.home(), &path);
                (full, hunks, state, told, said)
            })
            .collect();
        for (path, hunks, state, told, said) in edits {
            self.watch_edit(key, &path, said);
            let written = self
                .sessions
                .get_mut(&key)
                .is_some_and(|session| session.take_write(&path, at));
            self.look_again(key, &path, hunks, state);
            if !told && !written {
                self.event(key, "CursorAgentEdit", json!({ "path": path }));
            }
        }
    }

    /// The editor wrote a file for the agent.
    pub(crate) fn written(&mut self, key: Key, path: &str) {
        if let Some(session) = self.sessions.get_mut(&key) {
            session.note_write(path);
        }
        self.watch_edit(key, path, None);
        self.look_again(key, path, Vec::new(), "modified");
        self.event(key, "CursorAgentEdit", json!({ "path": path }));
    }

    /// A file was changed by the agent: its buffer has to look again.
    pub(crate) fn look_again(
        &mut self,
        key: Key,
        path: &str,
        hunks: Vec<crate::tools::diff::Hunk>,
        state: &'static str,
    ) {
        if let Some(session) = self.sessions.get_mut(&key) {
            session.note_change(path, hunks, state);
        }
        self.outbox.push(
            News::Edited {
                key,
                path: path.to_owned(),
            },
            Wake::Now,
        );
    }

    /// Takes the todos of a tool call: an agent's into the session's list, a subagent's are its own.
    fn take_todos(&mut self, key: Key, parent: Option<usize>, update: wire::cursor::UpdateTodos) {
        let news = crate::inbound::cursor::from_wire(update.todos);
        if parent.is_none() {
            return self.update_todos(key, news, update.merge, true);
        }
        let mut list = Vec::new();
        todos::update(&mut list, news, false);
        self.show_todos(key, parent, &list);
    }

    /// Takes todos into the session's list and shows them.
    pub(crate) fn update_todos(&mut self, key: Key, list: Vec<Todo>, merge: bool, show: bool) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let before = session.todos.clone();
        todos::update(&mut session.todos, list, merge);
        // The same update may come by two ways, as a tool call and as a request.
        if show && !(before == session.todos && session.transcript.shows_todos(None)) {
            let todos = session.todos.clone();
            self.show_todos(key, None, &todos);
        }
        self.outbox.status(key);
    }

    fn show_todos(&mut self, key: Key, parent: Option<usize>, list: &[Todo]) {
        let now = self.now.wall_ms;
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        if let Some(entry) = session.transcript.end_message(parent, now) {
            self.outbox.entry(key, entry);
        }
        let entry = session.transcript.show_todos(list, parent, now);
        self.outbox.entry(key, entry);
    }

    fn compaction_entry(&mut self, key: Key, parent: Option<usize>, id: &str) -> Option<usize> {
        let known = self.sessions.get(&key)?.compactions.get(id).copied();
        if known.is_some() {
            return known;
        }
        self.add_notice_in(
            key,
            parent,
            Level::Info,
            "compaction",
            "The conversation is being summarised to make room".to_owned(),
        );
        let session = self.sessions.get_mut(&key)?;
        let entry = session.transcript.entries().len().checked_sub(1)?;
        session.compactions.insert(id.to_owned(), entry);
        Some(entry)
    }

    fn compaction(&mut self, key: Key, parent: Option<usize>, news: wire::CompactionUpdate) {
        let Some(entry) = self.compaction_entry(key, parent, &news.compaction_id) else {
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
                let shown = self
                    .sessions
                    .get(&key)
                    .and_then(|s| s.transcript.get(entry))
                    .map(|e| e.text.clone());
                let shown = shown.unwrap_or_default();
                shown.replacen(
                    "is being summarised to make room",
                    "was summarised to make room",
                    1,
                )
            }
            _ => return,
        };
        if let Some(shown) = self
            .sessions
            .get_mut(&key)
            .and_then(|s| s.transcript.get_mut(entry))
        {
            shown.text = text;
            self.outbox.entry(key, entry);
        }
    }

    /// The agent takes a request of its own back. It still owes an answer, and a waiting decision goes away.
    pub(crate) fn on_withdrawn(&mut self, proc: Proc, ticket: Ticket) {
        let decision = self
            .decisions
            .values()
            .find(|d| d.proc == proc && d.ticket == Some(ticket))
            .map(|d| d.id);
        if let Some(id) = decision {
            self.finish_decision(id, Some(Err(RpcError::cancelled())), "withdrawn", None);
            return;
        }
        // A ticket's number says nothing without its process.
        for terminal in self.terminals.all_mut().filter(|t| t.proc == proc) {
            terminal.waiting.retain(|waiting| *waiting != ticket);
        }
        self.withdraw_calls(|call| (call.proc, call.ticket) == (proc, ticket));
        self.take_accesses(|access| (access.proc, access.ticket) == (proc, ticket));
        self.respond(proc, ticket, Err(RpcError::cancelled()));
        self.serve_judged(proc);
    }

    /// Whether the agent's login is what everybody waits for.
    pub(crate) fn needs_login(&self, id: AgentId) -> bool {
        self.agents
            .get(&id)
            .is_some_and(|agent| agent.link == Link::Starting(Stage::Login))
    }
}

/// A file a call changed: its path, hunks and state, whether that was told, and what the call says it was.
type Reported = (
    String,
    Vec<crate::tools::diff::Hunk>,
    &'static str,
    bool,
    Option<crate::sessions::watching::Said>,
);

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

/// Whether a value is this text, or has it somewhere inside.
pub(crate) fn mentions(value: &Value, id: &str) -> bool {
    match value {
        Value::String(text) => text == id,
        Value::Array(items) => items.iter().any(|item| mentions(item, id)),
        Value::Object(fields) => fields.values().any(|field| mentions(field, id)),
        _ => false,
    }
}

fn todos_of(plan: wire::Plan) -> Vec<Todo> {
    let todo = |entry: wire::PlanEntry| Todo {
        id: String::new(),
        content: entry.content,
        status: entry.status.as_str().to_owned(),
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
    #![allow(clippy::unwrap_used)]

    use crate::agents::agent::AgentSpec;
    use crate::sessions::session::Wanted;

    use super::*;

    #[test]
    fn what_an_agent_says_of_its_login_is_no_news_for_the_user_and_what_nobody_knows_is() {
        let mut engine = Engine::default();
        let spec = AgentSpec {
            command: vec!["agent".to_owned()],
            ..AgentSpec::default()
        };
        let key = engine.open(spec, Wanted::default()).unwrap();
        let proc = engine.agents.values().next().unwrap().proc();
        let said = json!({ "authStatus": { "kind": "api_key" } });
        engine.on_notification(proc, "_auth/status_update", said.clone());
        engine.on_notification(proc, "auth/status_update", said.clone());
        assert_eq!(engine.transcript(key).unwrap().len(), 0);
        engine.on_notification(proc, "_other/status_update", said);
        assert_eq!(engine.transcript(key).unwrap().len(), 1);
    }
}
