//! Decisions: what an agent asks the user, and what the user may answer. `reply.rs` says what goes back.
//!
//! A decision is answered exactly once: by the user, by a rule, or as cancelled when its turn, session,
//! agent or editor ends.

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

/// Something that waits for the user.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Ours.
    pub id: DecisionId,
    /// The session it belongs to.
    pub key: Key,
    /// Who is to be answered.
    pub proc: Proc,
    /// The request that is to be answered; none where the editor answers it, or no agent waits.
    pub ticket: Option<Ticket>,
    /// What is asked, in a line.
    pub title: String,
    /// The tool call it is about.
    pub entry: Option<usize>,
    /// The task of the subagent that asks.
    pub subagent: Option<usize>,
    /// When it was asked, wall clock.
    pub asked_ms: u64,
    /// What is asked.
    pub subject: Subject,
    /// The rules were asked, and leave it to the user.
    pub checked: bool,
    /// What the rules said, until it is that decision's turn.
    pub judged: Option<Judged>,
    /// Counts how often the call it is about changed: an answer to an earlier one decides nothing.
    pub revision: u64,
    /// What is shown of the call, to know a change of it.
    pub shown: String,
    /// The files the call is about, links followed.
    pub places: Vec<Place>,
}

/// The kinds of decision.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// May a tool run? Answered by one of the agent's options.
    Permission { options: Vec<PermissionOption> },
    /// May a file be reached or a command be run by way of the editor? The options are ours.
    Access {
        options: Vec<PermissionOption>,
        access: Box<Access>,
    },
    /// Cursor's multiple-choice questions.
    Questions { questions: Vec<Question> },
    /// One of them asked as a permission: the options are the answers.
    Pick { questions: Vec<Question> },
    /// An elicitation by form: the properties of its schema as questions.
    Form { questions: Vec<Question> },
    /// An elicitation by a page to open.
    Url { url: String },
    /// Cursor's plan, to be accepted or rejected.
    Plan(Box<Plan>),
    /// Unsaved text that an agent's text collides with: what it wants to write, or has written to disk itself.
    Conflict {
        path: String,
        call: Option<EditorId>,
    },
}

/// One of the answers a permission offers.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PermissionOption {
    /// What goes back.
    pub id: String,
    /// In the agent's words.
    pub name: String,
    /// What it means.
    #[cfg_attr(test, schemars(with = "String", extend("x-lua" = crate::contract::open(PermissionKind::NAMES))))]
    pub kind: PermissionKind,
}

impl PermissionOption {
    /// Whether it says yes.
    pub(super) fn allows(&self) -> bool {
        match &self.kind {
            PermissionKind::AllowOnce | PermissionKind::AllowAlways => true,
            PermissionKind::RejectOnce | PermissionKind::RejectAlways => false,
            PermissionKind::Other(kind) => kind.starts_with("allow"),
        }
    }

    /// Whether it says no.
    pub(super) fn rejects(&self) -> bool {
        match &self.kind {
            PermissionKind::RejectOnce | PermissionKind::RejectAlways => true,
            PermissionKind::AllowOnce | PermissionKind::AllowAlways => false,
            PermissionKind::Other(kind) => kind.starts_with("reject"),
        }
    }

    /// Whether it is said for good.
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
    /// What goes back.
    pub id: String,
    /// What is asked.
    pub prompt: String,
    /// What can be chosen.
    pub options: Vec<Choice>,
    /// More than one may be chosen.
    pub multiple: bool,
    /// A text of the user's own is taken.
    pub free_text: bool,
    /// It cannot be left out.
    pub required: bool,
    /// `string`, `number`, `integer`, `boolean`, `array`: what the form wants it to be.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub value_type: Option<String>,
    /// What the form would take by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("x-lua" = "any")))]
    pub default: Option<Value>,
}

/// One choice of a question.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// What goes back.
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

    /// Whether the answer is waited for.
    pub fn is_awaited(&self) -> bool {
        !matches!(self.subject, Subject::Conflict { call: None, .. })
    }
}

/// One chosen option may be given bare: `{ answers = { q1 = "yes" } }`.
fn chosen<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, Vec<String>>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        One(String),
        Many(Vec<String>),
        // An empty Lua table may come as a map.
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
