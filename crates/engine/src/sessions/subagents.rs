//! Subagents: sessions an agent starts inside ours. Each is one task entry of the transcript, and all it says and does
//! belongs to that entry, whatever else comes between.
//!
//! The speaker is known by the session's id, by a tool call named in `_meta`, or by both sides of a message. An id that was
//! never announced gets a task as well: its words belong to no other.

use acp::types::{self as wire, SessionUpdate, SubagentState};

use crate::engine::Engine;
use crate::ids::{AgentId, Key, Proc};
use crate::sessions::entry::{Body, Entry};
use crate::sessions::session::Phase;
use crate::sessions::task_of_subagent::find_task;
use crate::sessions::transcript::{Touched, Voice};
use crate::sessions::update::block_text;
use crate::tools::kind::{TaskState, ToolKind, ToolStatus};
use crate::tools::tool_call::{Task, ToolCall};

/// A message between sessions, as far as it is known.
#[derive(Debug, Clone, Default)]
pub struct Told {
    sender: Option<wire::SessionId>,
    recipient: Option<wire::SessionId>,
    /// Where it is shown.
    entry: Option<usize>,
    /// It is shown already, from the other side's transcript.
    linked: bool,
    /// What was said of it before it was known who says it to whom.
    held: String,
}

impl Engine {
    /// Where a session id belongs: to a session of ours, or to a subagent's task in one.
    pub(crate) fn place(
        &mut self,
        proc: Proc,
        id: &wire::SessionId,
    ) -> Option<(Key, Option<usize>)> {
        let agent = self.live(proc)?;
        if let Some(key) = agent.owner_of(id) {
            return Some((key, None));
        }
        if let Some((key, task)) = agent.subagent(id) {
            return Some((key, Some(task)));
        }
        // While a session is being made an unknown id may be its own.
        if agent.is_closed(id) || self.is_making_one(proc.agent) {
            return None;
        }
        let key = self.home_of_strangers(proc.agent)?;
        let session = self.sessions.get(&key)?;
        if session.phase == (Phase::Loading { discard: true }) {
            // The transcript has it all already.
            let known = session.transcript.tasks();
            let known = known.rev().find(|(_, task)| task.is_called(id.as_str()));
            return Some((key, known.map(|(at, _)| at)));
        }
        Some((key, self.task_of(key, None, id, None)))
    }

    /// Whether this id is known: a session's, or a subagent's.
    pub(crate) fn is_stranger(&self, proc: Proc, id: &wire::SessionId) -> bool {
        self.agents
            .get(&proc.agent)
            .is_none_or(|agent| agent.owner_of(id).is_none() && agent.subagent(id).is_none())
    }

    /// The session in which an unknown id may have been started: the one whose turn runs, or which is being loaded.
    fn home_of_strangers(&self, id: AgentId) -> Option<Key> {
        let mut mine = self.sessions.values().filter(|s| s.agent == id);
        let key = self.busy_session(id)?;
        if self.sessions.get(&key)?.turn.is_some() {
            return Some(key);
        }
        let loading = mine.find(|session| matches!(session.phase, Phase::Loading { .. }));
        let key = loading.map_or(key, |session| session.key);
        // One that was never asked anything has started none.
        let session = self.sessions.get(&key)?;
        (session.turns > 0 || loading.is_some()).then_some(key)
    }

    /// The task of a subagent, made when there is none. `owner` is the task of the subagent that started it, where that is
    /// known.
    pub(crate) fn task_of(
        &mut self,
        key: Key,
        owner: Option<Option<usize>>,
        id: &wire::SessionId,
        news: Option<&wire::SubagentUpdate>,
    ) -> Option<usize> {
        let now = self.now().wall_ms;
        let session = self.sessions.get_mut(&key)?;
        let agent = session.agent;
        let found = find_task(&session.transcript, owner, id.as_str(), news);
        let (at, fresh) = match found {
            Some(at) => (at, false),
            None => {
                let owner = owner.flatten();
                // What the agent says after it has started one is a new message. Words of one that was not announced
                // may come in the middle of a word of its own.
                if news.is_some() {
                    session.transcript.end_message(owner, now);
                }
                let call = news.and_then(|news| news.tool_call_id.as_ref());
                let call = call.map_or_else(|| format!("subagent:{id}"), ToString::to_string);
                let at = session.transcript.add_tool(&call, owner, now);
                (at, true)
            }
        };
        let session = self.sessions.get_mut(&key)?;
        if let Some(tool) = session
            .transcript
            .get_mut(at)
            .and_then(|entry| entry.tool_mut())
        {
            if fresh {
                tool.kind = ToolKind::Think;
                tool.status = ToolStatus::InProgress;
            }
            let task = task_in(tool);
            task.by_itself |= fresh;
            task.session_id = Some(id.to_string());
        }
        self.name_task(key, at);
        if let Some(agent) = self.agents.get_mut(&agent) {
            agent.add_subagent(id.clone(), key, at);
        }
        Some(at)
    }

    /// The task whose subagent an update comes from, where only its `_meta` says so.
    pub(crate) fn told_parent(
        &mut self,
        key: Key,
        meta: Option<&acp::Object>,
        update: &SessionUpdate,
    ) -> Option<usize> {
        let own = match update {
            SessionUpdate::UserMessageChunk(chunk)
            | SessionUpdate::AgentMessageChunk(chunk)
            | SessionUpdate::AgentThoughtChunk(chunk) => chunk.meta.as_ref(),
            SessionUpdate::ToolCall(call) | SessionUpdate::ToolCallUpdate(call) => {
                call.meta.as_ref()
            }
            SessionUpdate::Plan(plan) => plan.meta.as_ref(),
            SessionUpdate::Notice(notice) => notice.meta.as_ref(),
            SessionUpdate::Subagent(_)
            | SessionUpdate::SessionMessage(_)
            | SessionUpdate::SessionMessageChunk(_) => return None,
            _ => None,
        };
        let call = wire::parent_call(own).or_else(|| wire::parent_call(meta))?;
        self.task_of_call(key, &call)
    }

    /// The task that a tool call is, made when it was not announced.
    pub(crate) fn task_of_call(&mut self, key: Key, call: &wire::ToolCallId) -> Option<usize> {
        let now = self.now().wall_ms;
        let session = self.sessions.get_mut(&key)?;
        let known = session.transcript.tool(call.as_str());
        let at = known.unwrap_or_else(|| session.transcript.add_tool(call.as_str(), None, now));
        let tool = session.transcript.get_mut(at)?.tool_mut()?;
        let is_task = tool.task.is_some();
        task_in(tool);
        if known.is_none() {
            tool.kind = ToolKind::Think;
            tool.status = ToolStatus::InProgress;
        }
        if !is_task {
            self.name_task(key, at);
        }
        Some(at)
    }

    /// Works out what a task is called from all that was said of it.
    pub(crate) fn name_task(&mut self, key: Key, at: usize) {
        if let Some(session) = self.sessions.get_mut(&key) {
            session.name_task(at);
        }
    }

    /// News of a subagent, told in the session that started it.
    pub(crate) fn on_subagent(
        &mut self,
        proc: Proc,
        owner: (Key, Option<usize>),
        from: &wire::SessionId,
        news: &wire::SubagentUpdate,
    ) {
        let (key, owner) = owner;
        let Some(session) = self.sessions.get(&key) else {
            return;
        };
        if session.phase == (Phase::Loading { discard: true }) {
            return;
        }
        let is_own = |id: &wire::SessionId| {
            let agent = self.agents.get(&proc.agent);
            agent.is_some_and(|agent| agent.owner_of(id).is_some())
        };
        // Some speak of a subagent in its own session, or leave out which one is meant.
        let id = news.session_id.clone().unwrap_or_else(|| from.clone());
        if is_own(&id) {
            return self.show_unknown(key, owner, "subagent_update");
        }
        let known = self.agents.get(&proc.agent);
        let known = known.and_then(|agent| agent.subagent(&id));
        let at = match known {
            Some((home, at)) if home == key => at,
            _ => {
                let owner = (id != *from).then_some(owner);
                let Some(at) = self.task_of(key, owner, &id, Some(news)) else {
                    return;
                };
                at
            }
        };
        if let Some(agent_id) = &news.agent_id
            && let Some(agent) = self.agents.get_mut(&proc.agent)
        {
            let also = wire::SessionId::from(agent_id.as_str());
            if agent.subagent(&also).is_none() {
                agent.add_subagent(also, key, at);
            }
        }
        self.tell_task(key, at, news);
        if let Some(prompt) = &news.prompt {
            self.say_once(key, at, Voice::User, prompt);
        }
    }

    fn tell_task(&mut self, key: Key, at: usize, news: &wire::SubagentUpdate) {
        let now = self.now().wall_ms;
        let Some(entry) = self
            .sessions
            .get_mut(&key)
            .and_then(|session| session.transcript.get_mut(at))
        else {
            return;
        };
        let Some(tool) = entry.tool_mut() else { return };
        let task = task_in(tool);
        patch(&mut task.title, &news.title);
        patch(&mut task.purpose, &news.description);
        task.agent_id = news.agent_id.clone().or(task.agent_id.take());
        task.model = news.model.clone().or(task.model.take());
        task.duration_ms = news.duration_ms.or(task.duration_ms);
        if let Some(kind) = &news.kind {
            task.subagent.clone_from(kind);
        }
        match &news.state {
            wire::Patch::Set(state) => set_state(entry, state, now),
            wire::Patch::Clear => {
                (task.state, task.stop_reason, task.error) = (None, None, None);
            }
            // The draft says when it begins by telling of it, and how it ends.
            wire::Patch::Keep if news.draft && task.by_itself && task.state.is_none() => {
                let state = SubagentState {
                    state: "running".to_owned(),
                    ..SubagentState::default()
                };
                set_state(entry, &state, now);
            }
            wire::Patch::Keep => {}
        }
        let over = self.sessions.get(&key).is_some_and(|session| {
            session
                .transcript
                .task(at)
                .is_some_and(|task| task.state.as_ref().is_some_and(TaskState::is_over))
        });
        if over {
            self.end_words(key, at);
        }
        self.name_task(key, at);
    }

    /// What a subagent's own session is called: its name, where the agent gave it none.
    pub(crate) fn name_of_session(&mut self, key: Key, at: usize, title: String) {
        let session = self.sessions.get_mut(&key);
        let tool = session
            .and_then(|session| session.transcript.get_mut(at))
            .and_then(|entry| entry.tool_mut());
        let Some(task) = tool.and_then(|tool| tool.task.as_mut()) else {
            return;
        };
        if task.title.is_none() && task.purpose.is_none() && task.named.is_none() {
            task.title = Some(title);
            self.name_task(key, at);
        }
    }

    /// A subagent has ended its work: what it was writing is whole.
    fn end_words(&mut self, key: Key, at: usize) {
        let now = self.now().wall_ms;
        if let Some(session) = self.sessions.get_mut(&key) {
            session.transcript.end_message(Some(at), now);
        }
    }

    /// A subagent is heard of: one that was only taken to have ended has not.
    pub(crate) fn heard_from(&mut self, key: Key, at: usize) {
        let now = self.now().wall_ms;
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let assumed = session.transcript.task(at).is_some_and(|task| task.assumed);
        if !assumed || session.phase == Phase::Lost {
            return;
        }
        let Some(entry) = session.transcript.get_mut(at) else {
            return;
        };
        let over = entry.tool().is_some_and(ToolCall::is_over);
        let Some(task) = entry.tool_mut().and_then(|tool| tool.task.as_mut()) else {
            return;
        };
        task.assumed = false;
        let told = task.state.is_some();
        if told {
            task.state = Some(TaskState::Running);
            task.stop_reason = None;
        }
        if over {
            go_on(entry, now);
        }
    }

    /// A message between sessions: it stands in the block of the subagent it is for, or else of the one that wrote it.
    pub(crate) fn on_session_message(
        &mut self,
        proc: Proc,
        place: (Key, Option<usize>),
        from: &wire::SessionId,
        message: wire::SessionMessage,
        whole: bool,
    ) {
        let (key, owner) = place;
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        if session.phase == (Phase::Loading { discard: true }) {
            return;
        }
        let name = |id: &wire::SessionId, message: &str| (id.to_string(), message.to_owned());
        let mine = name(from, &message.message_id);
        let mut told = session.messages.get(&mine).cloned().unwrap_or_default();
        told.sender = message.sender.or(told.sender);
        told.recipient = message.recipient.or(told.recipient);
        let text: String = message.content.iter().map(block_text).collect();
        // The same message in the other transcript.
        let links = [
            told.recipient.as_ref().zip(message.recipient_message_id),
            told.sender.as_ref().zip(message.sender_message_id),
        ];
        for (id, other) in links.into_iter().flatten() {
            let other = name(id, &other);
            if told.entry.is_none()
                && other != mine
                && let Some(entry) = session.messages.get(&other).and_then(|told| told.entry)
            {
                told.entry = Some(entry);
                told.linked = true;
            }
        }
        let block = self.block_of_message(proc, key, owner, &told);
        let text = std::mem::take(&mut told.held) + &text;
        match (block, told.entry) {
            (None, _) => told.held = text,
            (Some(_), Some(_)) if told.linked => {}
            (Some(_), Some(entry)) => self.say_more(key, entry, &text, whole),
            (Some((at, voice)), None) if !text.is_empty() => {
                told.entry = if whole {
                    self.say_once(key, at, voice, &text)
                } else {
                    self.say(key, at, voice, &text)
                };
            }
            (Some(_), None) => {}
        }
        if let Some(session) = self.sessions.get_mut(&key) {
            session.messages.insert(mine, told);
        }
    }

    /// Whose block a message stands in, and whose voice it is there.
    fn block_of_message(
        &mut self,
        proc: Proc,
        key: Key,
        owner: Option<usize>,
        told: &Told,
    ) -> Option<(usize, Voice)> {
        let mut task_of = |id: &Option<wire::SessionId>| {
            let (home, task) = self.place(proc, id.as_ref()?)?;
            task.filter(|_| home == key)
        };
        let (sender, recipient) = (task_of(&told.sender), task_of(&told.recipient));
        match (sender, recipient) {
            // The prompt as the child shows it, or as its parent does.
            (_, Some(at)) if sender != recipient && !self.is_above(key, at, sender) => {
                Some((at, Voice::User))
            }
            (Some(at), _) => Some((at, Voice::Agent)),
            _ => owner.map(|at| (at, Voice::User)),
        }
    }

    /// Whether one task is above another.
    fn is_above(&self, key: Key, above: usize, task: Option<usize>) -> bool {
        let (Some(session), Some(task)) = (self.sessions.get(&key), task) else {
            return false;
        };
        session.transcript.ancestors(task).any(|at| at == above)
    }

    /// Adds an entry to a subagent's block.
    fn say(&mut self, key: Key, task: usize, voice: Voice, text: &str) -> Option<usize> {
        let now = self.now().wall_ms;
        self.heard_from(key, task);
        let session = self.sessions.get_mut(&key)?;
        // It is a message of its own, below what is being written and above what comes.
        session.transcript.end_message(Some(task), now);
        let touched = session.transcript.chunk(voice, text, None, Some(task), now);
        session.transcript.end_message(Some(task), now);
        match touched {
            Touched::Entry(entry) | Touched::Grew { entry, .. } => Some(entry),
        }
    }

    /// Adds an entry to a subagent's block unless it says just that already: an answer comes as the subagent's own words
    /// and as a message to its parent.
    fn say_once(&mut self, key: Key, task: usize, voice: Voice, text: &str) -> Option<usize> {
        let session = self.sessions.get(&key)?;
        let bare = without_notes(text);
        let same = |entry: &Entry| {
            let spoken = match voice {
                Voice::User => matches!(entry.body, Body::User { .. }),
                Voice::Agent => matches!(entry.body, Body::Agent { .. }),
                Voice::Thought => false,
            };
            spoken && entry.parent == Some(task) && entry.text.trim() == bare
        };
        let known = session.transcript.entries().iter().rposition(same);
        known.or_else(|| self.say(key, task, voice, text))
    }

    /// More of a message, or all of it again.
    fn say_more(&mut self, key: Key, entry: usize, text: &str, whole: bool) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let Some(shown) = session.transcript.get(entry).map(|shown| &shown.text) else {
            return;
        };
        let new = if !whole {
            text.to_owned()
        } else if let Some(rest) = text.strip_prefix(shown.as_str()) {
            rest.to_owned()
        } else if shown.starts_with(text) {
            String::new()
        } else {
            // Another text in its place: what was said stays, as everywhere.
            format!("\n{text}")
        };
        if !new.is_empty() {
            session.transcript.grow(entry, &new);
        }
    }

    /// Shows messages of which it was not said whose they are: the turn is over.
    pub(crate) fn show_held_messages(&mut self, key: Key) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let mut held: Vec<((String, String), String)> = Vec::new();
        for (name, told) in &mut session.messages {
            if !told.held.trim().is_empty() {
                held.push((name.clone(), std::mem::take(&mut told.held)));
            }
        }
        held.sort();
        for (name, text) in held {
            let id = wire::SessionId::from(format!("message {}", name.1));
            let Some(at) = self.task_of(key, Some(None), &id, None) else {
                continue;
            };
            let entry = self.say(key, at, Voice::Agent, &text);
            if let Some(session) = self.sessions.get_mut(&key)
                && let Some(told) = session.messages.get_mut(&name)
            {
                told.entry = entry;
            }
        }
    }

    /// The only subagent at work, when the agent itself is not: then it is the one who asks.
    pub(crate) fn lone_worker(&self, key: Key) -> Option<usize> {
        let session = self.sessions.get(&key).filter(|s| s.turn.is_none())?;
        let mut live = session
            .transcript
            .tasks()
            .filter(|(_, task)| task.is_live());
        let (at, _) = live.next()?;
        // Those it has started itself work for it.
        live.all(|(other, _)| session.transcript.ancestors(other).any(|above| above == at))
            .then_some(at)
    }

    /// The only task that Cursor started in the background in the last turn: it says nothing of how those stand, but after
    /// the turn only they ask.
    pub(crate) fn lone_delegate(&self, key: Key) -> Option<usize> {
        let session = self.sessions.get(&key).filter(|s| s.turn.is_none())?;
        let mut launched = session.transcript.tasks_of_turn().filter(|(_, task)| {
            // One that is only reported at its end says how long it took.
            task.named.is_some() && task.duration_ms.is_none() && task.state.is_none()
        });
        let (at, _) = launched.next()?;
        launched.next().is_none().then_some(at)
    }

    /// Whether any subagent of a session works on.
    pub(crate) fn has_workers(&self, key: Key) -> bool {
        let session = self.sessions.get(&key);
        session.is_some_and(|session| session.transcript.tasks().any(|(_, task)| task.is_live()))
    }

    /// Counts the decisions that wait at a task and those above it.
    pub(crate) fn count_waiting(&mut self, key: Key, task: usize) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let chain: Vec<usize> = std::iter::once(task)
            .chain(session.transcript.ancestors(task))
            .collect();
        for at in chain {
            let transcript = &session.transcript;
            let below =
                |asker: usize| asker == at || transcript.ancestors(asker).any(|above| above == at);
            let waiting = self
                .decisions
                .values()
                .filter(|decision| decision.key == key && decision.checked)
                .filter(|decision| decision.subagent.is_some_and(below))
                .count();
            let known = session.transcript.task(at).map(|task| task.waiting);
            if known.is_none_or(|known| known == waiting) {
                continue;
            }
            let tool = session
                .transcript
                .get_mut(at)
                .and_then(|entry| entry.tool_mut());
            if let Some(task) = tool.and_then(|tool| tool.task.as_mut()) {
                task.waiting = waiting;
            }
        }
    }

    /// The turn is over, or was cancelled: subagents that did not say how they stand are taken to have ended.
    pub(crate) fn assume_ended(&mut self, key: Key, at: usize, cancelled: bool) {
        let session = self.sessions.get_mut(&key);
        let tool = session
            .and_then(|session| session.transcript.get_mut(at))
            .and_then(|entry| entry.tool_mut());
        if let Some(task) = tool.and_then(|tool| tool.task.as_mut()) {
            task.assumed = true;
            if cancelled && task.is_live() {
                task.state = Some(TaskState::Idle);
                task.stop_reason = Some("cancelled".to_owned());
            }
        }
    }

    /// The agent is gone, and its subagents with it.
    pub(crate) fn end_subagents(&mut self, key: Key) {
        self.end_tools(key, &ToolStatus::Cancelled);
        self.show_held_messages(key);
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let gone: Vec<usize> = session
            .transcript
            .tasks()
            .filter(|(_, task)| {
                let told = task
                    .state
                    .as_ref()
                    .is_some_and(|state| *state != TaskState::Ended);
                told && (task.is_live() || task.assumed)
            })
            .map(|(at, _)| at)
            .collect();
        for at in gone {
            let tool = session
                .transcript
                .get_mut(at)
                .and_then(|entry| entry.tool_mut());
            if let Some(task) = tool.and_then(|tool| tool.task.as_mut()) {
                task.state = Some(TaskState::Ended);
            }
        }
    }
}

/// A text without what Claude's adapter puts before an answer for its model: `<tools-used-…>…</tools-used-…>`.
fn without_notes(text: &str) -> &str {
    let mut rest = text.trim();
    while let Some((name, after)) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'))
        && let Some((_, after)) = after.split_once(&format!("</{name}>"))
        && !after.trim().is_empty()
    {
        rest = after.trim_start();
    }
    rest
}

/// Takes a field of an upsert.
fn patch(field: &mut Option<String>, patch: &wire::Patch<String>) {
    match patch {
        wire::Patch::Set(text) => *field = Some(text.clone()),
        wire::Patch::Clear => *field = None,
        wire::Patch::Keep => {}
    }
}

/// The task of a tool call, which is one from now on.
pub(crate) fn task_in(tool: &mut ToolCall) -> &mut Task {
    tool.task.get_or_insert_default()
}

/// Brings an entry in line with what its subagent does.
fn set_state(entry: &mut Entry, state: &SubagentState, now_ms: u64) {
    let Some(tool) = entry.tool_mut() else { return };
    let task = task_in(tool);
    task.state = Some(state.state.as_str().into());
    task.stop_reason.clone_from(&state.stop_reason);
    task.error.clone_from(&state.error);
    task.assumed = false;
    if state.is_over() {
        tool.status = match state.stop_reason.as_deref() {
            _ if state.has_failed() => ToolStatus::Failed,
            Some("cancelled") => ToolStatus::Cancelled,
            _ if state.state == "ended" => ToolStatus::Cancelled,
            _ => ToolStatus::Completed,
        };
        entry.done = true;
        let took = entry.took(now_ms);
        entry.duration_ms.get_or_insert(took);
    } else {
        go_on(entry, now_ms);
    }
}

/// A subagent works, perhaps again: the time it rested is not counted.
fn go_on(entry: &mut Entry, now_ms: u64) {
    if let Some(tool) = entry.tool_mut() {
        tool.status = ToolStatus::InProgress;
    }
    entry.done = false;
    if let Some(worked) = entry.duration_ms.take() {
        entry.started_ms = now_ms.saturating_sub(worked);
        entry.waited_ms = 0;
    }
}

/// Whether an update says something of a subagent's work, and not just of its session.
pub(crate) fn is_work(update: &SessionUpdate) -> bool {
    !matches!(
        update,
        SessionUpdate::AvailableCommands(_)
            | SessionUpdate::CurrentMode(_)
            | SessionUpdate::ConfigOptions(_)
            | SessionUpdate::SessionInfo(_)
            | SessionUpdate::Usage(_)
            | SessionUpdate::State(_)
    )
}
