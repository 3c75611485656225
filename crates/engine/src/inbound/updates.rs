//! Updates of sessions, and the side effects they have.

use acp::message::RpcError;
use acp::peer::Ticket;
use acp::types::{self as wire, SessionUpdate};
use acp::{FromValue, methods};
use serde_json::{Value, json};

use crate::agents::agent::{Agent, Link, Stage, Waiter};
use crate::effect::{DiffJob, Effect};
use crate::engine::Engine;
use crate::ids::{AgentId, Key, Proc};
use crate::policy::paths::absolute;
use crate::screen::news::News;
use crate::screen::outbox::Wake;
use crate::sessions::session::{FileChanged, Phase};
use crate::sessions::subagents;
use crate::sessions::todos::{self, Todo};
use crate::sessions::update::{self, Changed, ChangedCall, Update};
use crate::tools::kind::ToolKind;
use crate::tools::tool_call::Content;

impl Engine {
    /// A notification arrived.
    pub(crate) fn on_notification(&mut self, proc: Proc, method: &str, params: Value) {
        match method {
            methods::SESSION_UPDATE => match wire::SessionNotification::from_value(params) {
                Ok(update) => self.on_update(proc, update),
                Err(_) => self.unknown_notification(method),
            },
            methods::ELICITATION_COMPLETE => {
                // The page did its work; the request it belongs to was answered when it was opened.
                self.log("info", format!("elicitation complete: {params}"));
            }
            // A missing login shows when a session or a prompt is refused; every session starts with one of
            // these.
            methods::AUTH_STATUS_UPDATE | methods::AUTH_STATUS_UPDATE_EXTENSION => {}
            _ if method.starts_with("cursor/") => self.on_cursor(proc, None, method, params),
            _ => self.unknown_notification(method),
        }
    }

    /// The protocol says to ignore unknown notifications: agents send them for their own clients.
    pub(crate) fn unknown_notification(&mut self, method: &str) {
        self.log("info", format!("unknown notification {method}"));
    }

    /// Shows something that is not known here, once per session and kind.
    pub(crate) fn show_unknown(&mut self, key: Key, parent: Option<usize>, kind: &str) {
        let now = self.now().wall_ms;
        if let Some(session) = self.sessions.get_mut(&key) {
            session.show_unknown(parent, kind, now);
        }
    }

    fn on_update(&mut self, proc: Proc, notification: wire::SessionNotification) {
        let from = &notification.session_id;
        if !subagents::is_work(&notification.update)
            && self.is_stranger(proc, from)
            && !self.is_making_one(proc.agent)
        {
            // What an unknown session can do is of no use.
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
                    let own = agent.is_some_and(|agent| agent.owner_of(from).is_some());
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
                if !agent.is_closed(&notification.session_id) {
                    // Some agents send updates for a session before they answer session/new.
                    agent.push_early(notification);
                }
            }
        }
    }

    /// Updates kept while a session was being created that are not for that session: perhaps a subagent's.
    pub(crate) fn place_early(&mut self, proc: Proc) {
        if self.is_making_one(proc.agent) {
            return;
        }
        let kept = self
            .live(proc)
            .map(Agent::take_all_early)
            .unwrap_or_default();
        for notification in kept {
            self.on_update(proc, notification);
        }
    }

    /// Whether `session/new` is unanswered, perhaps for a session that was closed meanwhile.
    pub(crate) fn is_making_one(&self, id: AgentId) -> bool {
        let agent = self.agents.get(&id);
        agent.is_some_and(|agent| {
            let mut waiters = agent.peer().waiters();
            waiters.any(|waiter| matches!(waiter, Waiter::New(_)))
        })
    }

    /// The session whose turn runs; among several the latest, with none the newest session.
    pub(crate) fn busy_session(&self, id: AgentId) -> Option<Key> {
        let mine = || {
            self.sessions
                .values()
                .filter(move |session| session.agent() == id && session.phase() != Phase::Lost)
        };
        let running = mine().filter(|session| session.turn().is_some());
        running
            .max_by_key(|session| session.turn().map(|turn| (turn.started_ms, session.key())))
            .or_else(|| mine().next_back())
            .map(|session| session.key())
    }

    /// Whether updates go into the transcript: not during a replay of what it already has.
    fn takes_updates(&self, key: Key) -> bool {
        let session = self.sessions.get(&key);
        session.is_some_and(|session| session.phase() != (Phase::Loading { discard: true }))
    }

    /// Applies an update of a subagent to its session: what it does, not its own session info.
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
                todos::update(&mut list, update::todos_of(plan), false);
                let now = self.now().wall_ms;
                if let Some(session) = self.sessions.get_mut(&key) {
                    session.show_todos(parent, &list, now);
                }
            }
            other => self.apply(key, parent, other),
        }
    }

    /// Applies an update to a session, and its side effects. `parent` is the task entry of the sending
    /// subagent.
    pub(crate) fn apply(&mut self, key: Key, parent: Option<usize>, update: SessionUpdate) {
        let (policy, now) = (self.policy(), self.now());
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let agent = self.agents.get(&session.agent());
        let update = Update {
            parent,
            tells_all: agent.is_some_and(|agent| agent.is_cursor() && !agent.is_headless()),
            home: policy.home(),
            news: update,
        };
        for change in update::apply(session, update, now) {
            self.see_to(key, change);
        }
        self.expect_rest_of_replay(key);
    }

    /// Applies news of a tool call, from an update or a permission; returns its entry.
    pub(crate) fn upsert_tool(
        &mut self,
        key: Key,
        parent: Option<usize>,
        news: wire::ToolCall,
        announced: bool,
    ) -> Option<usize> {
        let (policy, now) = (self.policy(), self.now());
        let session = self.sessions.get_mut(&key)?;
        let agent = self.agents.get(&session.agent());
        let told = update::ToldCall {
            parent,
            tells_all: agent.is_some_and(|agent| agent.is_cursor() && !agent.is_headless()),
            home: policy.home(),
            announced,
        };
        let change = session.tell_call(&told, news, now.wall_ms)?;
        let at = change.at;
        self.see_to(key, Changed::Call(change));
        Some(at)
    }

    /// The side effects of an update beyond its session.
    fn see_to(&mut self, key: Key, change: Changed) {
        match change {
            Changed::Call(call) => self.see_to_call(key, call),
            Changed::Tell { level, text } => self.tell(key, level, text),
            Changed::State(news) => self.on_state(key, &news),
            Changed::Unknown { kind } => self.log("info", format!("unknown update {kind}")),
        }
    }

    fn see_to_call(&mut self, key: Key, call: ChangedCall) {
        let at = call.at;
        let cwd = self
            .sessions
            .get(&key)
            .map(|session| session.cwd().to_owned());
        let cwd = cwd.unwrap_or_default();
        for diff in call.diffs {
            let job = DiffJob {
                key,
                entry: at,
                content: diff.content,
                path: absolute(&cwd, self.policy().home(), &diff.path),
                near: diff.near,
                old: diff.old,
                new: diff.new,
            };
            self.effect(Effect::Diff(Box::new(job)));
        }
        for terminal in call.terminals {
            self.show_terminal(key, at, &terminal);
        }
        self.watch_call(key, at, &call.named);
        self.recheck_decisions(key, at);
        if call.over && (!call.was_over || call.late) {
            self.note_edits(key, at, &call.had_changed);
        }
        if call.over && !call.was_over {
            self.watch_call_end(key, at);
        }
        if call.doubted {
            self.doubt(key, at);
        }
    }

    /// Has the diffs of an entry compared that were not yet.
    pub(crate) fn compare_diffs(&mut self, key: Key, at: usize) {
        let policy = self.policy();
        let Some(session) = self.sessions.get(&key) else {
            return;
        };
        let Some(tool) = session.transcript().get(at).and_then(|entry| entry.tool()) else {
            return;
        };
        let mut jobs = Vec::new();
        for (content, shown) in tool.content.iter().enumerate() {
            if let Content::Diff {
                path,
                old,
                new,
                diff: None,
                ..
            } = shown
            {
                jobs.push(DiffJob {
                    key,
                    entry: at,
                    content,
                    path: absolute(session.cwd(), policy.home(), path),
                    near: None,
                    old: old.clone().unwrap_or_default(),
                    new: new.clone(),
                });
            }
        }
        for job in jobs {
            self.effect(Effect::Diff(Box::new(job)));
        }
    }

    /// A tool call that changes files has ended: their buffers must check them again. For files in `known`, and
    /// those written through the editor, the event was already fired.
    pub(crate) fn note_edits(&mut self, key: Key, at: usize, known: &[String]) {
        let policy = self.policy();
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        // A replayed call did its work long ago.
        if session.is_replaying() {
            return;
        }
        let Some(tool) = session.transcript().get(at).and_then(|entry| entry.tool()) else {
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
                let state = match &tool.kind {
                    ToolKind::Delete => FileChanged::Deleted,
                    _ if gone => FileChanged::Deleted,
                    _ if made => FileChanged::Created,
                    _ => FileChanged::Modified,
                };
                let said = crate::sessions::watching::said(tool, &path);
                let full = absolute(session.cwd(), policy.home(), &path);
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
        self.look_again(key, path, Vec::new(), FileChanged::Modified);
        self.event(key, "CursorAgentEdit", json!({ "path": path }));
    }

    /// A long diff was computed.
    pub fn on_diff(&mut self, job: &DiffJob, result: crate::tools::diff::Diff) {
        let policy = self.policy();
        // It may have been replaced, or equal what is already shown.
        let session = self.sessions.get(&job.key);
        let tool = session.and_then(|session| session.transcript().get(job.entry)?.tool());
        let is_news = tool
            .and_then(|tool| tool.content.get(job.content))
            .is_some_and(|content| match content {
                Content::Diff { old, new, diff, .. } => {
                    old.as_deref().unwrap_or_default() == job.old
                        && *new == job.new
                        && diff.as_ref() != Some(&result)
                }
                _ => false,
            });
        let Some(session) = self.sessions.get_mut(&job.key).filter(|_| is_news) else {
            return;
        };
        let tool = session
            .transcript_mut()
            .get_mut(job.entry)
            .and_then(|entry| entry.tool_mut());
        let Some(tool) = tool else { return };
        let Some(Content::Diff { path, diff, .. }) = tool.content.get_mut(job.content) else {
            return;
        };
        *diff = Some(result);
        let path = path.clone();
        let hunks = tool.has_edited().then(|| tool.hunks_of(&path));
        let decision = tool.decision;
        if let Some(hunks) = hunks {
            let path = absolute(session.cwd(), policy.home(), &path);
            session.set_hunks(&path, hunks);
        }
        if let Some(id) = decision
            && self
                .decisions
                .get(id)
                .is_some_and(|decision| decision.checked)
        {
            self.announce(id);
        }
    }

    /// The agent changed a file: its buffer must check it.
    pub(crate) fn look_again(
        &mut self,
        key: Key,
        path: &str,
        hunks: Vec<crate::tools::diff::Hunk>,
        how: FileChanged,
    ) {
        if let Some(session) = self.sessions.get_mut(&key) {
            session.note_change(path, hunks, how);
        }
        self.push(
            News::Edited {
                key,
                path: path.to_owned(),
            },
            Wake::Now,
        );
    }

    /// Takes todos into the session's list and shows them.
    pub(crate) fn update_todos(&mut self, key: Key, list: Vec<Todo>, merge: bool) {
        let now = self.now().wall_ms;
        if let Some(session) = self.sessions.get_mut(&key) {
            session.update_todos(list, merge, true, now);
        }
    }

    /// The agent withdraws a request. It still gets an answer, and its decision goes away.
    pub(crate) fn on_withdrawn(&mut self, proc: Proc, ticket: Ticket) {
        if self.withdraw_decision(proc, ticket) {
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

    /// Whether all sessions wait for the agent's login.
    pub(crate) fn needs_login(&self, id: AgentId) -> bool {
        self.agents
            .get(&id)
            .is_some_and(|agent| *agent.link() == Link::Starting(Stage::Login))
    }
}

/// A file a call changed: its path, hunks and state, whether that was told, and what the call says it was.
type Reported = (
    String,
    Vec<crate::tools::diff::Hunk>,
    FileChanged,
    bool,
    Option<crate::sessions::watching::Said>,
);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::agents::agent::AgentSpec;
    use crate::effect::Effect;
    use crate::sessions::session::Wanted;

    use super::*;

    #[test]
    fn unknown_notifications_are_logged_and_those_of_the_login_are_known() {
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
        let logged = |engine: &mut Engine| {
            let effects = engine.take_effects().into_iter();
            let logged = effects.filter(|effect| matches!(effect, Effect::Log { .. }));
            logged.count()
        };
        assert_eq!(logged(&mut engine), 0);
        engine.on_notification(proc, "_other/status_update", said);
        assert_eq!(logged(&mut engine), 1);
        assert_eq!(engine.transcript(key).unwrap().len(), 0);
    }
}
