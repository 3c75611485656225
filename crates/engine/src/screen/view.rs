//! What Lua sees of sessions, entries and decisions: plain tables, which `lua/cursor_agent/bridge/types.lua` describes.

use std::collections::BTreeMap;

use acp::types as wire;
use serde::Serialize;
use serde_json::Value;

use crate::agents::agent::{Link, Login};
use crate::agents::sign_in::Given;
use crate::agents::wire_log::WireLog;
use crate::decide::decision::{Ask, Decision, PermissionOption, Plan, Question};
use crate::engine::Engine;
use crate::ids::{DecisionId, EditorId, Key, PromptId};
use crate::policy::call::Facts;
use crate::policy::paths::Place;
use crate::secrets::Secrets;
use crate::sessions::entry::{Body, Entry};
use crate::sessions::session::{FileChange, Phase, Session, Usage};
use crate::sessions::todos::Todo;
use crate::text::{MESSAGE_BYTES, label, passage, visible};
use crate::tools::diff::Hunk;
use crate::tools::diff_words::Words;
use crate::tools::tool_call::{Content, Image, Location, Task, ToolCall};

/// Lines of a diff that a change carries; `entry` has them all.
const DIFF_PREVIEW_LINES: usize = 80;
/// A longer line of a diff is cut in a change.
const DIFF_LINE_BYTES: usize = 400;
/// A longer name or title is cut; ids never are, they go back to the agent.
const NAME_CHARS: usize = 200;
/// A longer description, question or command is cut where it is not shown whole.
const PASSAGE_BYTES: usize = 4 * 1024;
/// So many places of a call are shown; `entry` has them all.
const PREVIEW_PLACES: usize = 100;

/// A session at a glance.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    key: Key,
    #[cfg_attr(test, schemars(extend("x-lua" = "cursor_agent.State")))]
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    agent: String,
    /// What the agent calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_title: Option<String>,
    cwd: String,
    /// Id of the current mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    /// Id of the current model.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    modes: Vec<Named>,
    models: Vec<Named>,
    /// Every config option the agent offers, mode and model included.
    options: Vec<OptionView>,
    /// Slash commands.
    commands: Vec<CommandView>,
    /// Decisions that wait.
    pending: usize,
    queued: usize,
    queue: Vec<Queued>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    todos: Vec<Todo>,
    /// How many turns there were.
    turns: u64,
    /// Wall clock, while a turn runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_started_ms: Option<u64>,
    /// Cancel was sent and the turn has not ended.
    cancelling: bool,
    /// The agent did not end a cancelled turn in time.
    stuck: bool,
    /// The agent does not read what is sent to it.
    not_reading: bool,
    /// It waits for `:CursorAgent login`.
    needs_login: bool,
    /// What login would run.
    #[serde(skip_serializing_if = "Option::is_none")]
    login: Option<Login>,
    /// The key or token that signs Cursor in.
    #[serde(skip_serializing_if = "Option::is_none")]
    sign_in: Option<Given>,
    /// Cursor's CLI has no `acp`, and its headless mode is used instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("x-lua" = "\"headless\"")))]
    backend: Option<&'static str>,
    #[cfg_attr(test, schemars(extend("x-lua" = "{ load: boolean, list: boolean, resume: boolean, close: boolean, delete: boolean, logout: boolean, image: boolean, embedded: boolean, audio: boolean }")))]
    capabilities: BTreeMap<&'static str, bool>,
    /// The message a person reads: why the agent or the last turn failed; while it is starting: that the agent has not answered for long.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A mode, a model or a value of an option.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Named {
    id: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
}

/// A config option.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OptionView {
    id: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<String>,
    #[serde(rename = "type")]
    #[cfg_attr(test, schemars(extend("x-lua" = "\"select\"|\"boolean\"|string")))]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("x-lua" = "string|boolean")))]
    value: Option<Value>,
    values: Vec<Named>,
}

/// A slash command.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CommandView {
    name: String,
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// A prompt that waits.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Queued {
    id: PromptId,
    text: String,
}

/// An entry.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Default, Serialize)]
pub struct EntryView {
    #[cfg_attr(test, schemars(extend("x-lua" = "\"user\"|\"agent\"|\"thought\"|\"tool\"|\"plan\"|\"notice\"")))]
    kind: &'static str,
    /// Whole (in a change: empty when all of a message's text was handed out already); for a tool call its title, for a plan its todos as markdown.
    text: String,
    /// Nothing more will be appended.
    pub done: bool,
    /// Wall clock.
    started_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    /// The entry of the subagent's task this one belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<usize>,
    /// Labels of what went along with a user's prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Vec<String>>,
    /// Number of the user's prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<PromptId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<ToolView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    todos: Option<Vec<Todo>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("x-lua" = "\"info\"|\"warning\"|\"error\"")))]
    level: Option<&'static str>,
    /// What a notice is about: turn_end, policy, unknown, compaction, agent, error, restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<&'static str>,
    /// Of a turn_end.
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<String>,
    /// Of a turn_end.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
}

/// A tool call.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
pub struct ToolView {
    /// The agent's id.
    id: String,
    title: String,
    #[cfg_attr(test, schemars(extend("x-lua" = "\"read\"|\"edit\"|\"delete\"|\"move\"|\"search\"|\"execute\"|\"think\"|\"fetch\"|\"switch_mode\"|\"plan\"|\"other\"|string")))]
    kind: String,
    /// What the agent calls completed and was not allowed to run is `rejected`, or `cancelled` with its turn.
    #[cfg_attr(test, schemars(extend("x-lua" = "\"pending\"|\"in_progress\"|\"completed\"|\"failed\"|\"cancelled\"|\"rejected\"|string")))]
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The decision that waits for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<DecisionId>,
    /// The user said no.
    rejected: bool,
    /// Of an execute call.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// Of a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    /// At most 100 in a change, all in native.entry.
    locations: Vec<Location>,
    /// How many were left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    more_locations: Option<usize>,
    content: Vec<ContentView>,
    /// It is a subagent's: what the subagent says and does has this entry as its `parent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<Task>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<Image>,
    /// Pretty JSON; only from `native.entry`.
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_input: Option<String>,
    /// Likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_output: Option<String>,
}

/// A piece of what a tool call shows.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Default, Serialize)]
pub struct ContentView {
    #[serde(rename = "type")]
    #[cfg_attr(test, schemars(extend("x-lua" = "\"text\"|\"diff\"|\"terminal\"|\"image\"|\"audio\"|\"link\"|\"unknown\"")))]
    kind: &'static str,
    /// Whole (native.entry only).
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// At most 12 lines of at most 400 bytes each; ANSI escapes kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<Vec<String>>,
    /// At most 12 more lines: the last ones, none of them in `head`.
    #[serde(skip_serializing_if = "Option::is_none")]
    tail: Option<Vec<String>>,
    /// How many lines there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<usize>,
    /// Of a diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// Of a diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    added: Option<usize>,
    /// Of a diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<usize>,
    /// Of a diff: at most 80 lines in a change, all in native.entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    hunks: Option<Vec<Hunk>>,
    /// Lines of the diff left out of `hunks`.
    #[serde(skip_serializing_if = "Option::is_none")]
    hidden: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    terminal_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<usize>,
    /// Base64 (native.entry only).
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
}

/// A decision.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
pub struct DecisionView {
    id: DecisionId,
    key: Key,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    agent: String,
    #[cfg_attr(test, schemars(extend("x-lua" = "\"permission\"|\"question\"|\"plan\"|\"conflict\"")))]
    kind: &'static str,
    title: String,
    /// Wall clock.
    asked_ms: u64,
    /// The tool call's entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<usize>,
    /// What the subagent that asks is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    subagent: Option<String>,
    /// Of a permission, whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<ToolView>,
    /// Of a permission.
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<Facts>,
    /// Of a permission: the files it is about; `path` has links followed.
    places: Vec<Place>,
    /// Counts how often the call changed since it was asked about.
    revision: u64,
    /// A file or a command an agent wants to reach by way of the editor.
    by_editor: bool,
    cwd: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Vec<PermissionOption>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    questions: Option<Vec<Question>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<Plan>,
    /// Of an elicitation in url mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// The file of a conflict.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// The write that waits for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<EditorId>,
}

/// How much of an entry is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// What a screen needs.
    Preview,
    /// Everything.
    Whole,
}

impl Status {
    /// The agent failed.
    pub fn has_failed(&self) -> bool {
        self.state == "failed"
    }
}

impl Engine {
    /// A session at a glance.
    pub fn status(&self, key: Key) -> Option<Status> {
        let session = self.sessions.get(&key)?;
        let agent = self.agents.get(&session.agent)?;
        let mine = |decision: &&Decision| decision.key == key && decision.checked;
        let pending = self.decisions.values().filter(mine).count();
        let awaited = self.decisions.values().filter(mine);
        let awaited = awaited.filter(|decision| decision.is_awaited()).count();
        let caps = &agent.caps;
        let capabilities = [
            ("load", caps.load_session),
            ("list", caps.session.list),
            ("resume", caps.session.resume),
            ("close", caps.session.close),
            ("delete", caps.session.delete),
            ("logout", caps.logout),
            ("image", caps.prompt.image),
            ("audio", caps.prompt.audio),
            ("embedded", caps.prompt.embedded_context),
        ];
        let needs_login = self.needs_login(agent.id);
        Some(Status {
            key,
            state: state(session, &agent.link, awaited),
            session_id: session.session_id.as_ref().map(|id| id.as_str().to_owned()),
            agent: agent.spec.agent.clone(),
            agent_title: agent.title.as_deref().map(name),
            cwd: session.cwd.clone(),
            mode: session
                .mode()
                .map(str::to_owned)
                .or_else(|| session.wanted.mode.clone()),
            model: session
                .model()
                .map(str::to_owned)
                .or_else(|| session.wanted.model.clone()),
            modes: modes(session),
            models: models(session),
            options: session.options.iter().map(option_view).collect(),
            commands: session
                .commands
                .iter()
                .map(|command| CommandView {
                    name: command.name.clone(),
                    description: described(&command.description),
                    hint: command.hint.as_deref().map(name),
                })
                .collect(),
            pending,
            queued: session.queue.len(),
            queue: session
                .queue
                .iter()
                .map(|p| Queued {
                    id: p.id,
                    text: p.spec.text.clone(),
                })
                .collect(),
            title: session.title.as_deref().map(name),
            usage: (session.usage != Usage::default()).then(|| Usage {
                currency: session
                    .usage
                    .currency
                    .as_deref()
                    .map(|currency| label(currency, 12)),
                ..session.usage.clone()
            }),
            todos: shown_todos(&session.todos),
            turns: session.turns,
            turn_started_ms: session.turn.as_ref().map(|turn| turn.started_ms),
            cancelling: session.turn.as_ref().is_some_and(|turn| turn.cancelling),
            stuck: session.turn.as_ref().is_some_and(|turn| turn.stuck),
            not_reading: agent.stalled && agent.is_up(),
            needs_login,
            backend: agent.fallen_back.then_some("headless"),
            login: agent
                .login
                .clone()
                .or_else(|| Some(agent.login_by(None)).filter(|login| !login.command.is_empty())),
            sign_in: agent.key(),
            capabilities: capabilities.into(),
            error: session
                .error
                .as_deref()
                .map(|error| passage(error, MESSAGE_BYTES)),
        })
    }

    /// Decisions that wait, oldest first.
    pub fn pending(&self, key: Option<Key>) -> Vec<DecisionView> {
        let mine =
            |decision: &&Decision| decision.checked && key.is_none_or(|key| decision.key == key);
        self.decisions
            .values()
            .filter(mine)
            .map(|decision| self.decision_view(decision))
            .collect()
    }

    /// The whole conversation.
    pub fn transcript(&self, key: Key) -> Option<Vec<EntryView>> {
        let entries = self.sessions.get(&key)?.transcript.entries();
        Some(
            entries
                .iter()
                .map(|entry| entry_view(entry, entry.text.clone(), Depth::Whole))
                .collect(),
        )
    }

    /// The private keys in the texts of its diffs: a diff shows a part of one, without what tells that it is a key.
    pub fn keys_in_diffs(&self, key: Key) -> Secrets {
        let mut keys = Secrets::default();
        let entries = self.sessions.get(&key);
        let entries = entries.map(|session| session.transcript.entries());
        let tools = entries
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.tool());
        for content in tools.flat_map(|tool| &tool.content) {
            if let Content::Diff { old, new, .. } = content {
                keys.add_keys(old.as_deref().unwrap_or_default());
                keys.add_keys(new);
            }
        }
        keys
    }

    /// One entry, whole; entries are counted from 1.
    pub fn entry(&self, key: Key, entry: usize) -> Option<EntryView> {
        let found = self
            .sessions
            .get(&key)?
            .transcript
            .get(entry.checked_sub(1)?)?;
        Some(entry_view(found, found.text.clone(), Depth::Whole))
    }

    /// One entry as far as the editor was told of it, for another buffer that shows it; entries are counted from 1.
    pub fn told(&self, key: Key, entry: usize) -> Option<EntryView> {
        let found = self
            .sessions
            .get(&key)?
            .transcript
            .get(entry.checked_sub(1)?)?;
        let text = if found.streams() {
            found.text.get(..found.sent).unwrap_or_default()
        } else {
            &found.text
        };
        Some(entry_view(found, text.to_owned(), Depth::Preview))
    }

    /// The files the agent changed.
    pub fn changes(&self, key: Key) -> Option<Vec<FileChange>> {
        Some(self.sessions.get(&key)?.changes.clone())
    }

    /// The wire log of a session's agent, and what is to be left out of it. Reading it takes long: not under a lock.
    pub fn wire(&self, key: Key) -> Option<(WireLog, Secrets)> {
        let agent = self.agents.get(&self.sessions.get(&key)?.agent)?;
        Some((agent.log.clone(), agent.secrets.clone()))
    }

    /// A decision, as the user is asked for it.
    pub fn decision_view(&self, decision: &Decision) -> DecisionView {
        let session = self.sessions.get(&decision.key);
        let entry = decision.entry.and_then(|at| session?.transcript.get(at));
        let tool =
            entry.and_then(|entry| Some(tool_view(entry.tool()?, entry.duration_ms, Depth::Whole)));
        let facts = entry.and_then(|entry| entry.tool()).map(Facts::of);
        let facts = facts.map(|facts| facts.each(described));
        let mut view = DecisionView {
            id: decision.id,
            key: decision.key,
            session_id: session
                .and_then(|s| s.session_id.as_ref())
                .map(|id| id.as_str().to_owned()),
            agent: self.agent_name(decision.key),
            kind: decision.kind(),
            title: described(&decision.title),
            asked_ms: decision.asked_ms,
            entry: decision.entry.map(|at| at + 1),
            subagent: decision
                .subagent
                .and_then(|at| session?.transcript.task(at))
                .map(|task| task.description.clone()),
            tool,
            facts: facts.filter(|_| decision.kind() == "permission"),
            places: decision.places.clone(),
            revision: decision.revision,
            by_editor: matches!(
                decision.ask,
                Ask::Access { .. } | Ask::Conflict { call: Some(_), .. }
            ),
            cwd: session
                .map(|session| session.cwd.clone())
                .unwrap_or_default(),
            options: None,
            questions: None,
            plan: None,
            url: None,
            path: None,
            request: None,
        };
        match &decision.ask {
            Ask::Permission { options } | Ask::Access { options, .. } => {
                let shown = |option: &PermissionOption| PermissionOption {
                    name: name(&option.name),
                    ..option.clone()
                };
                view.options = Some(options.iter().map(shown).collect());
            }
            Ask::Questions { questions } | Ask::Pick { questions } | Ask::Form { questions } => {
                view.questions = Some(questions.clone())
            }
            Ask::Url { url } => {
                view.questions = Some(Vec::new());
                view.url = Some(url.clone());
            }
            Ask::Plan(plan) => view.plan = Some((**plan).clone()),
            Ask::Conflict { path, call } => {
                view.options = Some(crate::decide::conflict::options());
                view.path = Some(path.clone());
                view.request = *call;
            }
        }
        view
    }
}

fn state(session: &Session, link: &Link, pending: usize) -> &'static str {
    match (&session.phase, link) {
        (Phase::Lost, _) if session.error.is_some() => "failed",
        (Phase::Lost, _) | (_, Link::Stopped) => "stopped",
        (_, Link::Failed(_)) => "failed",
        _ if session.turn.is_some() && pending > 0 => "waiting",
        _ if session.turn.is_some() => "running",
        (Phase::Ready, _) if session.settling => "starting",
        (Phase::Ready, _) if pending > 0 => "waiting",
        (Phase::Ready, _) => "idle",
        _ => "starting",
    }
}

fn modes(session: &Session) -> Vec<Named> {
    let modes = &session.modes.available_modes;
    if modes.is_empty() {
        return session
            .option_of(&wire::ConfigCategory::Mode)
            .map(choices)
            .unwrap_or_default();
    }
    let named = |mode: &wire::SessionMode| Named {
        id: mode.id.clone(),
        name: name(&mode.name),
        description: mode.description.as_deref().map(described),
        group: None,
    };
    modes.iter().map(named).collect()
}

fn models(session: &Session) -> Vec<Named> {
    if let Some(option) = session.option_of(&wire::ConfigCategory::Model) {
        return choices(option);
    }
    let named = |model: &wire::SessionModel| Named {
        id: model.model_id.clone(),
        name: name(&model.name),
        description: model.description.as_deref().map(described),
        group: None,
    };
    session.models.available_models.iter().map(named).collect()
}

fn choices(option: &wire::ConfigOption) -> Vec<Named> {
    let wire::ConfigKind::Select { choices, .. } = &option.kind else {
        return Vec::new();
    };
    let named = |choice: &wire::ConfigChoice| Named {
        id: choice.value.clone(),
        name: name(&choice.name),
        description: choice.description.as_deref().map(described),
        group: choice.group.as_deref().map(name),
    };
    choices.iter().map(named).collect()
}

fn option_view(option: &wire::ConfigOption) -> OptionView {
    let (kind, value) = match &option.kind {
        wire::ConfigKind::Select { current, .. } => ("select", current.clone().map(Value::String)),
        wire::ConfigKind::Boolean { current } => ("boolean", Some(Value::Bool(*current))),
        wire::ConfigKind::Unknown { kind } => (kind.as_str(), None),
    };
    OptionView {
        id: option.id.clone(),
        name: name(&option.name),
        description: option.description.as_deref().map(described),
        category: option
            .category
            .as_ref()
            .map(|category| category.as_str().to_owned()),
        kind: kind.to_owned(),
        value,
        values: choices(option),
    }
}

/// A name as it is shown.
fn name(text: &str) -> String {
    label(text, NAME_CHARS)
}

/// A description as it is shown.
fn described(text: &str) -> String {
    visible(&passage(text, PASSAGE_BYTES))
}

/// Todos as they are shown.
fn shown_todos(todos: &[Todo]) -> Vec<Todo> {
    let shown = |todo: &Todo| Todo {
        content: described(&todo.content),
        ..todo.clone()
    };
    todos.iter().map(shown).collect()
}

pub fn entry_view(entry: &Entry, text: String, depth: Depth) -> EntryView {
    let mut view = EntryView {
        kind: entry.kind(),
        text,
        done: entry.done,
        started_ms: entry.started_ms,
        duration_ms: entry.duration_ms,
        parent: entry.parent.map(|at| at + 1),
        ..EntryView::default()
    };
    match &entry.body {
        Body::User {
            context, prompt, ..
        } => {
            view.context = Some(context.clone());
            view.prompt = *prompt;
        }
        Body::Agent { .. } | Body::Thought { .. } => {}
        Body::Tool(tool) => view.tool = Some(tool_view(tool, entry.duration_ms, depth)),
        Body::Plan { todos } => view.todos = Some(shown_todos(todos)),
        Body::Notice(notice) => {
            view.level = Some(notice.level.name());
            view.notice = Some(notice.about);
            view.stop_reason = notice.stop_reason.as_deref().map(name);
            view.tokens = notice.tokens;
        }
    }
    view
}

fn tool_view(tool: &ToolCall, duration_ms: Option<u64>, depth: Depth) -> ToolView {
    let pretty = |value: &Option<Value>| {
        let value = value.as_ref().filter(|_| depth == Depth::Whole)?;
        serde_json::to_string_pretty(value).ok()
    };
    let whole = depth == Depth::Whole;
    let cut = |text: &str| passage(text, if whole { usize::MAX } else { PASSAGE_BYTES });
    let places = if whole { usize::MAX } else { PREVIEW_PLACES };
    ToolView {
        id: tool.id.clone(),
        title: cut(&tool.title),
        kind: name(&tool.kind),
        status: name(tool.shown_status()),
        name: tool.name.as_deref().map(name),
        decision: tool.decision,
        rejected: tool.is_rejected(),
        command: tool.command().map(|command| cut(&command)),
        exit_code: tool.exit.as_ref().and_then(|exit| exit.code),
        signal: tool.exit.as_ref().and_then(|exit| exit.signal.clone()),
        duration_ms,
        query: tool.query().map(&cut),
        more_locations: tool
            .places()
            .len()
            .checked_sub(places)
            .filter(|more| *more > 0),
        locations: tool
            .places()
            .into_iter()
            .take(places)
            .map(|location| Location {
                path: cut(&location.path),
                ..location
            })
            .collect(),
        content: tool
            .content
            .iter()
            .map(|content| content_view(content, depth))
            .chain(
                tool.shown_result
                    .as_ref()
                    .map(|result| output_view("text", result, depth)),
            )
            .collect(),
        task: tool.task.clone(),
        image: tool.image.clone(),
        raw_input: pretty(&tool.raw_input),
        raw_output: pretty(&tool.raw_output),
    }
}

fn output_view(
    kind: &'static str,
    output: &crate::tools::output::Output,
    depth: Depth,
) -> ContentView {
    let preview = output.preview();
    ContentView {
        kind,
        text: (depth == Depth::Whole).then(|| output.text().to_owned()),
        head: Some(preview.head),
        tail: Some(preview.tail),
        lines: Some(preview.lines),
        ..ContentView::default()
    }
}

fn content_view(content: &Content, depth: Depth) -> ContentView {
    let whole = depth == Depth::Whole;
    let output = |kind, text| output_view(kind, text, depth);
    match content {
        Content::Text(text) => output("text", text),
        Content::Terminal {
            id,
            output: printed,
            exit,
        } => ContentView {
            terminal_id: Some(id.clone()),
            exit_code: exit.as_ref().and_then(|exit| exit.code),
            signal: exit.as_ref().and_then(|exit| exit.signal.clone()),
            running: Some(exit.is_none()),
            ..output("terminal", printed)
        },
        Content::Diff {
            path, new, diff, ..
        } => {
            let all = diff
                .as_ref()
                .map(|diff| diff.hunks.as_slice())
                .unwrap_or_default();
            let (hunks, hidden) = if whole {
                (all.to_vec(), 0)
            } else {
                first_lines(all, DIFF_PREVIEW_LINES)
            };
            ContentView {
                kind: "diff",
                path: Some(path.clone()),
                added: diff.as_ref().map(|diff| diff.added),
                removed: diff.as_ref().map(|diff| diff.removed),
                hunks: Some(hunks),
                hidden: Some(hidden),
                text: whole.then(|| new.clone()),
                ..ContentView::default()
            }
        }
        Content::Image { mime, data, uri } => ContentView {
            kind: "image",
            mime: Some(mime.clone()),
            bytes: Some(data.len() / 4 * 3),
            uri: uri.clone(),
            data: whole.then(|| data.clone()),
            ..ContentView::default()
        },
        Content::Audio { mime, data } => ContentView {
            kind: "audio",
            mime: Some(mime.clone()),
            bytes: Some(data.len() / 4 * 3),
            data: whole.then(|| data.clone()),
            ..ContentView::default()
        },
        Content::Link { uri, name } => ContentView {
            kind: "link",
            uri: Some(uri.clone()),
            name: Some(name.clone()),
            ..ContentView::default()
        },
        Content::Unknown(value) => output(
            "unknown",
            &crate::tools::output::Output::new(value.to_string()),
        ),
    }
}

/// The marked words of a hunk's first lines, in what is left of these.
fn words_within(hunk: &Hunk, lines: usize) -> Words {
    let end = |&(from, to): &(usize, usize)| {
        let to = to.min(DIFF_LINE_BYTES);
        (from < to).then_some((from, to))
    };
    hunk.words
        .range(..=lines)
        .map(|(line, ranges)| (*line, ranges.iter().filter_map(end).collect()))
        .collect()
}

/// The first `max` lines of a diff, long ones cut, and how many are left out.
fn first_lines(hunks: &[Hunk], max: usize) -> (Vec<Hunk>, usize) {
    let total: usize = hunks.iter().map(|hunk| hunk.lines.len()).sum();
    let mut left = max;
    let mut shown = Vec::new();
    for hunk in hunks {
        if left == 0 {
            break;
        }
        let lines: Vec<_> = hunk
            .lines
            .iter()
            .take(left)
            .map(|(sign, line)| {
                (
                    *sign,
                    line[..line.floor_char_boundary(DIFF_LINE_BYTES)].to_owned(),
                )
            })
            .collect();
        left -= lines.len();
        shown.push(Hunk {
            old: hunk.old,
            new: hunk.new,
            words: words_within(hunk, lines.len()),
            lines,
        });
    }
    (shown, total - (max - left))
}
