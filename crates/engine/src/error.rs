//! The engine's errors, with the messages users read; these are written nowhere else.

use std::io::ErrorKind;

use crate::ids::{DecisionId, Key, PromptId};
use crate::policy::MAX_RULES;
use crate::policy::globs::{MAX_CHOICES, MAX_GLOB_BYTES};

/// Why a call of the editor's cannot be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("Neovim is closing")]
    Closing,
    #[error("agents.{agent}.command is empty: set it to a program and its arguments")]
    NoCommand { agent: String },
    #[error("session {id} is already open")]
    OpenAlready { id: String },
    #[error("unknown session {}; :CursorAgent new starts one", .0.0)]
    NoSession(Key),
    #[error("the session has not started yet")]
    NotStarted,
    #[error("the agent is not running")]
    NotRunning,
    #[error("the agent has stopped")]
    AgentGone,
    #[error("{agent} is not running yet")]
    NotRunningYet { agent: String },
    #[error("{agent} cannot {what}")]
    NotOffered { agent: String, what: &'static str },
    #[error("{agent} has no login method `{method}`; :CursorAgent login lists them")]
    NoLogin { agent: String, method: String },
    #[error("HOME is not set: Cursor's settings cannot be found")]
    NoHome,

    #[error("{agent} cannot fork a conversation; :CursorAgent new starts another one")]
    CannotFork { agent: String },
    #[error("cannot fork during a turn; :CursorAgent cancel stops it")]
    ForkInTurn,
    #[error("the agent has not started this session yet")]
    NotReady,
    #[error("no conversation is attached")]
    NoCarry,
    #[error("the prompt is empty")]
    EmptyPrompt,
    #[error("a turn is running: :CursorAgent cancel stops it")]
    TurnRuns,
    #[error("nothing is running")]
    NoTurn,
    #[error("no prompt has been sent in this chat yet")]
    NoPrompt,
    #[error("prompt {} is not in the queue: it was sent or removed", .0.0)]
    NotQueued(PromptId),

    #[error("this agent has no modes")]
    NoModes,
    #[error("this agent does not let you choose the model")]
    NoModels,
    #[error("this agent has no options")]
    NoOptions,
    #[error("unknown {what} {name}; this agent has: {}", known.join(", "))]
    Unknown {
        what: Setting,
        name: String,
        known: Vec<String>,
    },
    #[error("{option} must be true or false, not {value}")]
    NotBoolean { option: String, value: String },
    #[error("{option} cannot be {value}; it can be: {}", choices.join(", "))]
    NotAChoice {
        option: String,
        value: String,
        choices: Vec<String>,
    },
    #[error("{option} is of an unknown kind: {kind}")]
    UnknownKind { option: String, kind: String },

    #[error("decision {} was already answered or withdrawn", .0.0)]
    NoDecision(DecisionId),
    #[error("rules cannot decide about unsaved text")]
    RuleOnConflict,
    #[error("the request changed while you were deciding; nothing was answered")]
    CallChanged,
    #[error(transparent)]
    Answer(#[from] Misfit),

    #[error("more than {MAX_RULES} rules")]
    TooManyRules,
    #[error("rule {number}: {why}")]
    Rule { number: usize, why: BadRule },

    #[error("this agent does not accept images: {name} was left out")]
    NoImages { name: String },
    #[error("{name} was left out: this agent does not accept {kind}")]
    NotTaken { name: String, kind: &'static str },
}

/// What an agent lets the user set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    Mode,
    Model,
    Option,
}

impl std::fmt::Display for Setting {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Mode => "mode",
            Self::Model => "model",
            Self::Option => "option",
        })
    }
}

/// Why an answer does not fit its decision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    #[error("answer with {{ option = … }}, one of: {}", options.join(", "))]
    Permission { options: Vec<String> },
    #[error(
        "{agent} has no option to {} here; answer with {{ option = … }}, one of: {}",
        kind.replace('_', " "),
        options.join(", ")
    )]
    KindNotOffered {
        agent: String,
        kind: String,
        options: Vec<String>,
    },
    #[error("answer with {{ option = … }}, one of: mine, theirs, both; or {{ cancel = true }}")]
    Conflict,
    #[error(
        "answer with {{ answers = {{ [question] = {{ option, … }} }} }} for: {}",
        questions.join(", ")
    )]
    Questions { questions: Vec<String> },
    #[error(
        "answer with {{ answers = {{ [\"{question}\"] = {{ option }} }} }}, one of: {}; or {{ skip = true }}",
        options.join(", ")
    )]
    Pick {
        question: String,
        options: Vec<String>,
    },
    #[error(
        "answer a plan with {{ accept = true }}, {{ reject = true, reason = … }} or {{ cancel = true }}"
    )]
    Plan,
    #[error("answer with {{ accept = true }}, {{ reject = true }} or {{ cancel = true }}")]
    Form,
    #[error("unknown question \"{0}\"")]
    NoQuestion(String),
    #[error("\"{0}\" needs an answer")]
    Required(String),
    #[error("\"{0}\" takes one answer")]
    OneAnswer(String),
    #[error("\"{question}\" has no option \"{option}\"")]
    NoOption { question: String, option: String },
    #[error("\"{question}\" takes {wanted}, not \"{given}\"")]
    WrongType {
        question: String,
        wanted: &'static str,
        given: String,
    },
}

/// Why a rule cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRule {
    #[error("a pattern is longer than {MAX_GLOB_BYTES} bytes")]
    TooLong,
    #[error("a pattern has more than {MAX_CHOICES} choices")]
    TooManyChoices,
    #[error("a pattern is too large")]
    TooLarge,
}

/// Why a file could not be read or written for an agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct FileError {
    /// For the agent: a missing file is not a failure.
    pub kind: ErrorKind,
    /// In words.
    pub why: String,
}

impl FileError {
    /// As reported by the editor.
    pub fn of_editor(why: Option<String>) -> Self {
        Self {
            kind: ErrorKind::Other,
            why: why.unwrap_or_else(|| "the editor could not do that".to_owned()),
        }
    }
}
