//! A session at a glance, as Lua sees it (`lua/cursor_agent/bridge/types.lua` describes the table), and how names and long texts
//! are cut for a screen.

use acp::types as wire;
use serde::Serialize;
use serde_json::Value;

use crate::agents::agent::{Link, Login};
use crate::agents::protocol_log::ProtocolLog;
use crate::agents::sign_in::Given;
use crate::decide::decision::Decision;
use crate::engine::Engine;
use crate::ids::{Key, PromptId};
use crate::secrets::Secrets;
use crate::sessions::session::{FileChange, Phase, Session, Usage};
use crate::sessions::todos::Todo;
use crate::text::{MESSAGE_BYTES, label, passage, visible};

/// A longer name or title is cut; ids never are, they go back to the agent.
const NAME_CHARS: usize = 200;

/// Of more todos, the rest is only counted: they are all drawn at once.
const SHOWN_TODOS: usize = 1000;

/// A longer description, question or command is cut where it is not shown whole.
pub(super) const PASSAGE_BYTES: usize = 4 * 1024;

/// How a session is.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Its agent does not run.
    Stopped,
    /// It cannot take prompts yet.
    Starting,
    /// It can.
    Idle,
    /// A turn runs.
    Running,
    /// The user has to decide something.
    Waiting,
    /// Its agent failed, or refused it.
    Failed,
}

/// A session at a glance.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    key: Key,
    state: State,
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
    /// What it is called: by the user, by the agent, or else after the first prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Who named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("x-lua" = "\"user\"|\"agent\"|\"prompt\"")))]
    title_from: Option<&'static str>,
    /// An old conversation that is attached to the next prompt, as the transcript will name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    carry: Option<String>,
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
    /// Commands we run for the agent that have not ended; they may outlast the turn.
    commands_running: usize,
    /// It waits for `:CursorAgent login`.
    needs_login: bool,
    /// What login would run.
    #[serde(skip_serializing_if = "Option::is_none")]
    login: Option<Login>,
    /// The ways to log in there are, to choose from.
    logins: Vec<Login>,
    /// The key or token that signs Cursor in.
    #[serde(skip_serializing_if = "Option::is_none")]
    sign_in: Option<Given>,
    /// Cursor's CLI has no `acp`, and its headless mode is used instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("x-lua" = "\"headless\"")))]
    backend: Option<&'static str>,
    /// What the agent can do.
    capabilities: Capabilities,
    /// The message a person reads: why the agent or the last turn failed; while it is starting: that the agent has not answered for long.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What an agent can do beside prompts: with sessions, and with what is attached.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    load: bool,
    list: bool,
    resume: bool,
    close: bool,
    delete: bool,
    fork: bool,
    logout: bool,
    image: bool,
    embedded: bool,
    audio: bool,
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

impl Status {
    /// The agent failed.
    pub fn has_failed(&self) -> bool {
        self.state == State::Failed
    }
}

impl Engine {
    /// A session at a glance.
    pub fn status(&self, key: Key) -> Option<Status> {
        let session = self.sessions.get(&key)?;
        let agent = self.agents.get(&session.agent())?;
        let mine = |decision: &&Decision| decision.key == key && decision.checked;
        let pending = self.decisions.values().filter(mine).count();
        let awaited = self.decisions.values().filter(mine);
        let awaited = awaited.filter(|decision| decision.is_awaited()).count();
        let caps = agent.caps();
        let capabilities = Capabilities {
            load: caps.load_session,
            list: caps.session.list,
            resume: caps.session.resume,
            close: caps.session.close,
            delete: caps.session.delete,
            fork: caps.session.fork,
            logout: caps.logout,
            image: caps.prompt.image,
            embedded: caps.prompt.embedded_context,
            audio: caps.prompt.audio,
        };
        let needs_login = self.needs_login(agent.id()) || session.is_signed_out();
        Some(Status {
            key,
            state: state(session, agent.link(), awaited),
            session_id: session.session_id().map(|id| id.as_str().to_owned()),
            agent: agent.spec().agent.clone(),
            agent_title: agent.title().map(name),
            cwd: session.cwd().to_owned(),
            mode: session
                .mode()
                .map(str::to_owned)
                .or_else(|| session.wanted().mode.clone()),
            model: session
                .model()
                .map(str::to_owned)
                .or_else(|| session.wanted().model.clone()),
            modes: modes(session),
            models: models(session),
            options: session.options().iter().map(option_view).collect(),
            commands: session
                .commands()
                .iter()
                .map(|command| CommandView {
                    name: command.name.clone(),
                    description: described(&command.description),
                    hint: command.hint.as_deref().map(name),
                })
                .collect(),
            pending,
            queued: session.queue().len(),
            queue: session
                .queue()
                .iter()
                .map(|p| Queued {
                    id: p.id,
                    text: p.spec.text.clone(),
                })
                .collect(),
            title: session.shown_title().as_deref().map(name),
            title_from: session.title_from(),
            carry: session.carry_label().map(str::to_owned),
            usage: (*session.usage() != Usage::default()).then(|| Usage {
                currency: session
                    .usage()
                    .currency
                    .as_deref()
                    .map(|currency| label(currency, 12)),
                ..session.usage().clone()
            }),
            todos: shown_todos(session.todos()),
            turns: session.turns(),
            turn_started_ms: session.turn().map(|turn| turn.started_ms),
            cancelling: session.turn().is_some_and(|turn| turn.cancelling),
            stuck: session.turn().is_some_and(|turn| turn.stuck),
            not_reading: agent.is_stalled() && agent.is_up(),
            commands_running: self
                .terminals
                .matching(|terminal| terminal.key == key && terminal.exit.is_none())
                .len(),
            needs_login,
            backend: agent.has_fallen_back().then_some("headless"),
            login: agent
                .login()
                .cloned()
                .or_else(|| agent.logins().into_iter().next())
                .filter(|login| needs_login || !login.command.is_empty()),
            logins: agent.logins(),
            sign_in: agent.key(),
            capabilities,
            error: session.error().map(|error| passage(error, MESSAGE_BYTES)),
        })
    }

    /// The files the agent changed.
    pub fn changed_files(&self, key: Key) -> Option<Vec<FileChange>> {
        Some(self.sessions.get(&key)?.changed_files().to_vec())
    }

    /// The protocol log of a session's agent, and what is to be left out of it. Reading it takes long: not under a lock.
    pub fn protocol_log(&self, key: Key) -> Option<(ProtocolLog, Secrets)> {
        let agent = self.agents.get(&self.sessions.get(&key)?.agent())?;
        Some((agent.protocol_log().clone(), agent.secrets().clone()))
    }
}

fn state(session: &Session, link: &Link, pending: usize) -> State {
    match (&session.phase(), link) {
        (Phase::Lost, _) if session.error().is_some() => State::Failed,
        (Phase::Lost, _) | (_, Link::Stopped) => State::Stopped,
        (_, Link::Failed(_)) => State::Failed,
        _ if session.turn().is_some() && pending > 0 => State::Waiting,
        _ if session.turn().is_some() => State::Running,
        (Phase::Ready, _) if session.is_setting() => State::Starting,
        (Phase::Ready, _) if pending > 0 => State::Waiting,
        (Phase::Ready, _) => State::Idle,
        _ => State::Starting,
    }
}

fn modes(session: &Session) -> Vec<Named> {
    let modes = &session.modes().available_modes;
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
    session
        .models()
        .available_models
        .iter()
        .map(named)
        .collect()
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
pub(super) fn name(text: &str) -> String {
    label(text, NAME_CHARS)
}

/// A description as it is shown.
pub(super) fn described(text: &str) -> String {
    visible(&passage(text, PASSAGE_BYTES))
}

/// Todos as they are shown.
pub(super) fn shown_todos(todos: &[Todo]) -> Vec<Todo> {
    let shown = |todo: &Todo| Todo {
        content: described(&todo.content),
        ..todo.clone()
    };
    let mut list: Vec<Todo> = todos.iter().take(SHOWN_TODOS).map(shown).collect();
    if let Some(left) = todos.get(SHOWN_TODOS..).filter(|left| !left.is_empty()) {
        list.push(Todo {
            content: format!("… and {} more", left.len()),
            ..Todo::default()
        });
    }
    list
}
