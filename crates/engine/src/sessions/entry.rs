//! The entries a transcript is made of.

use crate::decide::decided::Decided;
use crate::ids::{DecisionId, PromptId};
use crate::sessions::todos::Todo;
use crate::tools::tool_call::ToolCall;

/// One entry. Its number in the transcript never changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What is said: the message, the thought, the notice. A tool call's is its title.
    pub text: String,
    /// What kind of entry it is, with what only that kind has.
    pub body: Body,
    /// Nothing more will be appended.
    pub done: bool,
    /// Wall clock, milliseconds since 1970.
    pub started_ms: u64,
    /// How long it took, once it is done, without what it waited for the user.
    pub duration_ms: Option<u64>,
    /// How long it has waited for the user's decisions.
    pub waited_ms: u64,
    /// Since when a decision about it has been open, wall clock.
    pub asked_ms: Option<u64>,
    /// The task entry of the subagent this entry belongs to.
    pub parent: Option<usize>,
    /// What was decided about it, in order.
    pub decided: Vec<Decided>,
    /// How many bytes of the text the editor has been given.
    pub sent: usize,
}

/// The kinds of entry.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// A prompt of the user's.
    User {
        context: Vec<String>,
        prompt: Option<PromptId>,
        message_id: Option<String>,
    },
    /// Text of the agent's, markdown.
    Agent { message_id: Option<String> },
    /// What the agent thinks aloud.
    Thought { message_id: Option<String> },
    /// A tool call.
    Tool(Box<ToolCall>),
    /// The list of todos as it stands.
    Todos { todos: Vec<Todo> },
    /// A line of ours or the agent's about what happened.
    Notice(Notice),
}

/// What a notice is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notice {
    /// How grave it is.
    pub level: Level,
    /// Its subject: `turn_end`, `policy`, `unknown`, `compaction`, `agent`, `error`, `restart`, `review`,
    /// `decision`, `memory`.
    pub about: &'static str,
    /// Why the turn ended, for a `turn_end`.
    pub stop_reason: Option<String>,
    /// What the turn used, when the agent said.
    pub tokens: Option<u64>,
}

/// How grave a notice is.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// For the record.
    #[default]
    Info,
    /// Worth a look.
    Warning,
    /// Something failed.
    Error,
}

impl Level {
    /// As the editor spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl Entry {
    /// A new entry that is still open.
    pub fn new(text: String, body: Body, now_ms: u64) -> Self {
        Self {
            text,
            body,
            done: false,
            started_ms: now_ms,
            duration_ms: None,
            waited_ms: 0,
            asked_ms: None,
            parent: None,
            decided: Vec::new(),
            sent: 0,
        }
    }

    /// A decision about it was asked for.
    pub fn note_asked(&mut self, now_ms: u64) {
        self.asked_ms.get_or_insert(now_ms);
    }

    /// The last open decision about it has ended.
    pub fn note_decided(&mut self, now_ms: u64) {
        if let Some(asked) = self.asked_ms.take() {
            self.waited_ms += now_ms.saturating_sub(asked);
        }
    }

    /// How long it has taken: the time it waited for the user is not its own.
    pub fn took(&self, now_ms: u64) -> u64 {
        let until = self.asked_ms.unwrap_or(now_ms);
        until.saturating_sub(self.started_ms + self.waited_ms)
    }

    /// The kind as the editor spells it.
    pub fn kind(&self) -> &'static str {
        match &self.body {
            Body::User { .. } => "user",
            Body::Agent { .. } => "agent",
            Body::Thought { .. } => "thought",
            Body::Tool(_) => "tool",
            Body::Todos { .. } => "plan",
            Body::Notice(_) => "notice",
        }
    }

    /// Whether its text only ever grows, and is handed out as it does.
    pub fn streams(&self) -> bool {
        matches!(
            self.body,
            Body::Agent { .. } | Body::Thought { .. } | Body::User { prompt: None, .. }
        )
    }

    /// The tool call, if it is one.
    pub fn tool(&self) -> Option<&ToolCall> {
        match &self.body {
            Body::Tool(tool) => Some(tool),
            _ => None,
        }
    }

    /// The tool call, if it is one, to change.
    pub fn tool_mut(&mut self) -> Option<&mut ToolCall> {
        match &mut self.body {
            Body::Tool(tool) => Some(tool),
            _ => None,
        }
    }

    /// The decision this entry waits for.
    pub fn decision(&self) -> Option<DecisionId> {
        self.tool().and_then(|tool| tool.decision)
    }
}
