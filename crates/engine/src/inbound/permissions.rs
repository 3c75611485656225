//! `session/request_permission`: a permission as a decision, and which tool call it is about.

use acp::peer::Ticket;
use acp::types as wire;
use serde_json::Value;

use crate::decide::decision::{PermissionOption, Question, Subject};
use crate::decide::reply;
use crate::engine::Engine;
use crate::ids::{Key, Proc};
use crate::sessions::entry::Level;
use crate::tools::kind::ToolKind;
use crate::tools::tool_call::{Content, ToolCall};

impl Engine {
    pub(super) fn on_permission(
        &mut self,
        proc: Proc,
        ticket: Ticket,
        request: wire::PermissionRequest,
    ) {
        let Some((key, mut parent)) = self.place(proc, &request.session_id) else {
            // There is no user left to ask.
            return self.respond_with(proc, ticket, &wire::PermissionOutcome::Cancelled);
        };
        let mut call = request.tool_call;
        if call.id.as_str().is_empty() {
            call.id = format!("permission-{}", ticket.number()).into();
        }
        if parent.is_none()
            && let Some(id) = wire::parent_call(call.meta.as_ref())
        {
            parent = self.task_of_call(key, &id);
        }
        if parent.is_none() && self.is_new_call(key, call.id.as_str()) {
            parent = self.lone_worker(key);
        }
        if let Some(task) = parent {
            self.heard_from(key, task);
        } else if self.is_new_call(key, call.id.as_str()) {
            parent = self.lone_delegate(key);
        }
        if let Some(session) = self.sessions.get_mut(&key) {
            session
                .transcript_mut()
                .announce_tool(call.id.as_str(), parent);
        }
        self.alias_permission(key, parent, &call);
        let entry = self.upsert_tool(key, parent, call, false);
        if self.is_cancelling(key) {
            return self.respond_with(proc, ticket, &wire::PermissionOutcome::Cancelled);
        }
        let tool = self
            .sessions
            .get(&key)
            .and_then(|s| s.transcript().get(entry?)?.tool());
        let title = tool.map(title_of).unwrap_or_default();
        let options: Vec<PermissionOption> = request
            .options
            .into_iter()
            .map(|option| PermissionOption {
                id: option.option_id,
                name: option.name,
                kind: option.kind,
            })
            .collect();
        if let Some(id) = reply::collision(&options) {
            let warning = reply::collision_warning(&self.agent_name(key), id);
            return self.refuse_colliding(proc, ticket, key, entry, warning);
        }
        let subject = if reply::is_question(&options) {
            // No rule and no “always” may answer a question.
            let question = tool.map(|tool| asked_by(tool, &title, &options));
            let questions = question.into_iter().collect();
            Subject::Pick { questions }
        } else {
            Subject::Permission { options }
        };
        self.ask(proc, Some(ticket), key, title, entry, parent, subject);
    }

    /// No answer to this permission would be reliable: the user is told instead of asked.
    fn refuse_colliding(
        &mut self,
        proc: Proc,
        ticket: Ticket,
        key: Key,
        entry: Option<usize>,
        warning: String,
    ) {
        let session = self.sessions.get_mut(&key);
        let tool = session.and_then(|session| session.transcript_mut().get_mut(entry?)?.tool_mut());
        if let Some(tool) = tool {
            tool.rejected = true;
        }
        self.add_notice(key, Level::Warning, "policy", warning.clone());
        self.tell(key, "warn", warning);
        self.respond_with(proc, ticket, &wire::PermissionOutcome::Cancelled);
    }

    /// Whether nothing was said of a tool call yet.
    fn is_new_call(&self, key: Key, id: &str) -> bool {
        let session = self.sessions.get(&key);
        session.is_some_and(|session| session.transcript().tool(id).is_none())
    }

    /// Cursor asks about a web fetch or search under a separate id: it is the pending call of the same kind and
    /// title, or the newest of that kind.
    fn alias_permission(&mut self, key: Key, parent: Option<usize>, call: &wire::ToolCall) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let known = session.transcript().tool_of(call.id.as_str(), parent);
        let known = known.and_then(|at| session.transcript().get(at)?.tool());
        // The id of a finished call is reused.
        if known.is_some_and(|tool| !tool.is_over()) {
            return;
        }
        let of_web = web_kind(call.id.as_str());
        let is_web = of_web.is_some();
        let kind = call.kind.as_ref().map(ToolKind::from).or(of_web);
        let waits = |tool: &ToolCall| {
            !tool.is_over() && tool.decision.is_none() && kind.as_ref() == Some(&tool.kind)
        };
        let same = |tool: &ToolCall| {
            waits(tool)
                && call
                    .title
                    .as_ref()
                    .is_some_and(|title| *title == tool.title)
        };
        let entries = session.transcript().entries();
        let find = |fits: &dyn Fn(&ToolCall) -> bool| {
            entries
                .iter()
                .rposition(|entry| !entry.done && entry.tool().is_some_and(fits))
        };
        let title = call.title.as_deref().unwrap_or_default();
        let vague = |tool: &ToolCall| waits(tool) && is_web && may_be(tool, title);
        let found = find(&same).or_else(|| find(&vague));
        if let Some(at) = found {
            let id = call.id.as_str();
            session.transcript_mut().alias_tool(id, parent, at);
        }
    }
}

/// Whether a web call may be the one a permission with this title is about: nothing contradicts it.
fn may_be(tool: &ToolCall, title: &str) -> bool {
    let input = tool.raw_input.as_ref();
    let about = input.and_then(|input| {
        ["url", "query"]
            .iter()
            .find_map(|key| input.get(*key)?.as_str())
    });
    if let Some(about) = about.filter(|_| !title.is_empty()) {
        return title.to_lowercase().contains(&about.to_lowercase());
    }
    says_same(title, &tool.title)
}

/// Whether two titles may belong to one web call: one contains the other, or they do not name different URLs.
pub(crate) fn says_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.to_lowercase(), other.to_lowercase());
    let is_fetch = one.contains("fetch") || other.contains("fetch");
    one.contains(&other)
        || other.contains(&one)
        || is_fetch && !(one.contains("://") && other.contains("://"))
}

/// The kind of call Cursor asks about under an id of this shape: `web_fetch_0`, `web_search_<id>`.
pub(crate) fn web_kind(id: &str) -> Option<ToolKind> {
    if id.starts_with("web_fetch_") {
        Some(ToolKind::Fetch)
    } else {
        id.starts_with("web_search_").then_some(ToolKind::Search)
    }
}

/// The question a tool call asks by the options of its permission. What is asked stands in its input, its content or
/// its title.
fn asked_by(tool: &ToolCall, title: &str, options: &[PermissionOption]) -> Question {
    let input = tool.raw_input.as_ref();
    let asked = |from: &Value| {
        let text = ["prompt", "question"]
            .iter()
            .find_map(|key| from.get(*key)?.as_str());
        text.map(str::to_owned)
    };
    let first = input.and_then(|input| input.get("questions")?.get(0));
    let shown = || {
        tool.content.iter().find_map(|content| match content {
            Content::Text(text) => Some(text.text().trim().to_owned()),
            _ => None,
        })
    };
    let prompt = first
        .and_then(asked)
        .or_else(|| input.and_then(asked))
        .or_else(shown)
        .filter(|prompt| !prompt.is_empty())
        .unwrap_or_else(|| title.to_owned());
    Question {
        id: tool.id.clone(),
        prompt,
        options: reply::choices(options),
        multiple: false,
        free_text: false,
        required: false,
        value_type: None,
        default: None,
    }
}

/// What a permission is about, in a line.
pub(crate) fn title_of(tool: &ToolCall) -> String {
    tool.command().unwrap_or_else(|| tool.title.clone())
}
