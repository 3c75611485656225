//! Decisions: what an agent asks the user, and the possible answers. `reply.rs` builds the response.
//!
//! A decision is answered exactly once: by the user, by a rule, or as cancelled when its turn, session, agent
//! or editor ends.

use std::collections::BTreeMap;

use acp::peer::Ticket;
use acp::types::PermissionKind;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::decide::decided::Kind;
use crate::ids::{DecisionId, EditorId, Key, Proc};
use crate::inbound::access::Access;
use crate::policy::Judged;
use crate::policy::paths::Place;
use crate::sessions::todos::Todo;
use crate::tracked::Owned;

/// A decision for the user.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Our number for it.
    pub id: DecisionId,
    /// The session it belongs to.
    pub key: Key,
    /// The process to answer.
    pub proc: Proc,
    /// The request to answer; None if the editor answers it, or no agent waits.
    pub ticket: Option<Ticket>,
    /// The question, in one line.
    pub title: String,
    /// The tool call it is about.
    pub entry: Option<usize>,
    /// The task of the subagent that asks.
    pub subagent: Option<usize>,
    /// When it was asked, wall clock.
    pub asked_ms: u64,
    /// What is asked.
    pub subject: Subject,
    /// The rules were checked and leave it to the user.
    pub checked: bool,
    /// The verdict of the rules, until it is this decision's turn.
    pub judged: Option<Judged>,
    /// Counts changes of the tool call: an answer to an earlier revision is not accepted.
    pub revision: u64,
    /// What is shown of the call, to detect changes.
    pub shown: String,
    /// The files the call is about, with links resolved.
    pub places: Vec<Place>,
}

/// The kinds of decision.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// May a tool run? Answered by one of the agent's options.
    Permission { options: Vec<PermissionOption> },
    /// May the agent access a file or run a command through the editor? The options are ours.
    Access {
        options: Vec<PermissionOption>,
        access: Box<Access>,
    },
    /// Cursor's multiple-choice questions.
    Questions { questions: Vec<Question> },
    /// Such a question asked as a permission: the options are the answers.
    Pick { questions: Vec<Question> },
    /// An elicitation by form: the properties of its schema as questions.
    Form { questions: Vec<Question> },
    /// An elicitation with a page to open.
    Url { url: String },
    /// Cursor's plan, to be accepted or rejected.
    Plan(Box<Plan>),
    /// Unsaved text that conflicts with an agent's write, pending or already on disk.
    Conflict {
        path: String,
        call: Option<EditorId>,
    },
}

/// One of the answers a permission offers.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PermissionOption {
    /// Sent back to the agent.
    pub id: String,
    /// The agent's label.
    pub name: String,
    /// What it means.
    #[cfg_attr(test, schemars(with = "String", extend("x-lua" = crate::contract::open(PermissionKind::NAMES))))]
    pub kind: PermissionKind,
}

impl PermissionOption {
    /// Whether it means yes.
    pub(super) fn allows(&self) -> bool {
        match &self.kind {
            PermissionKind::AllowOnce | PermissionKind::AllowAlways => true,
            PermissionKind::RejectOnce | PermissionKind::RejectAlways => false,
            PermissionKind::Other(kind) => kind.starts_with("allow"),
        }
    }

    /// Whether it means no.
    pub(super) fn rejects(&self) -> bool {
        match &self.kind {
            PermissionKind::RejectOnce | PermissionKind::RejectAlways => true,
            PermissionKind::AllowOnce | PermissionKind::AllowAlways => false,
            PermissionKind::Other(kind) => kind.starts_with("reject"),
        }
    }

    /// Whether it means "always".
    pub(super) fn is_for_good(&self) -> bool {
        match &self.kind {
            PermissionKind::AllowAlways | PermissionKind::RejectAlways => true,
            PermissionKind::AllowOnce | PermissionKind::RejectOnce => false,
            PermissionKind::Other(kind) => kind.ends_with("_always"),
        }
    }
}

#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Question {
    /// Sent back to the agent.
    pub id: String,
    /// What is asked.
    pub prompt: String,
    /// What can be chosen.
    pub options: Vec<Choice>,
    /// More than one may be chosen.
    pub multiple: bool,
    /// The user may type an answer.
    pub free_text: bool,
    /// It cannot be left out.
    pub required: bool,
    /// `string`, `number`, `integer`, `boolean`, `array`: the type the form expects.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub value_type: Option<String>,
    /// The form's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("x-lua" = "any")))]
    pub default: Option<Value>,
}

/// One choice of a question.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// Sent back to the agent.
    pub id: String,
    /// What is shown.
    pub label: String,
}

#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// In a few sentences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overview: Option<String>,
    /// The plan itself, markdown.
    pub text: String,
    /// What is to be done.
    pub todos: Vec<Todo>,
    /// The same, grouped.
    pub phases: Vec<Phase>,
}

/// A group of a plan's todos.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Phase {
    pub name: String,
    /// What belongs to it.
    pub todos: Vec<Todo>,
}

/// An answer as the editor gives it: `{ option = … }`, `{ answers = … }`, `{ skip = true }`, `{ accept = true }`,
/// `{ reject = true, reason = … }`, `{ cancel = true }`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Answer {
    /// A permission's option.
    pub option: Option<String>,
    /// A kind of option: `allow_once`, `allow_always`, `reject_once`, `reject_always`.
    pub kind: Option<String>,
    /// The revision the user was looking at.
    pub revision: Option<u64>,
    /// When it was given, as a person reads it.
    pub at: Option<String>,
    /// Chosen options by question.
    #[serde(deserialize_with = "chosen")]
    pub answers: Option<BTreeMap<String, Vec<String>>>,
    /// Questions are left out.
    pub skip: bool,
    /// Yes.
    pub accept: bool,
    /// No.
    pub reject: bool,
    /// Neither.
    pub cancel: bool,
    /// Why.
    pub reason: Option<String>,
    /// Where the accepted plan was saved.
    pub plan_uri: Option<String>,
    /// The plan as the user edited it, markdown.
    pub plan: Option<String>,
}

impl Answer {
    /// Neither yes nor no.
    pub fn cancelled() -> Self {
        Self {
            cancel: true,
            ..Self::default()
        }
    }
}

impl Owned for Decision {
    type Owner = Key;

    fn owner(&self) -> Key {
        self.key
    }
}

impl Decision {
    /// What kind of decision it is.
    pub fn kind(&self) -> Kind {
        match &self.subject {
            Subject::Permission { .. } | Subject::Access { .. } => Kind::Permission,
            Subject::Questions { .. }
            | Subject::Pick { .. }
            | Subject::Form { .. }
            | Subject::Url { .. } => Kind::Question,
            Subject::Plan(_) => Kind::Plan,
            Subject::Conflict { .. } => Kind::Conflict,
        }
    }

    /// Whether an agent waits for the answer.
    pub fn is_awaited(&self) -> bool {
        !matches!(self.subject, Subject::Conflict { call: None, .. })
    }
}

/// A single option may be given bare: `{ answers = { q1 = "yes" } }`.
fn chosen<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, Vec<String>>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        One(String),
        Many(Vec<String>),
        // An empty Lua table may arrive as a map.
        None(#[allow(dead_code, reason = "only its shape counts")] Map<String, Value>),
    }
    let given = Option::<BTreeMap<String, Given>>::deserialize(deserializer)?;
    Ok(given.map(|given| {
        let list = |given| match given {
            Given::One(one) => vec![one],
            Given::Many(many) => many,
            Given::None(_) => Vec::new(),
        };
        given
            .into_iter()
            .map(|(id, given)| (id, list(given)))
            .collect()
    }))
}
