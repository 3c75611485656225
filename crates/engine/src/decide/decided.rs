//! The record of a decision: the question, the answer, and who or what answered.

use serde::{Deserialize, Serialize};

use crate::decide::decision::{Answer, Decision, Plan, Question, Subject};
use crate::sessions::todos;

acp::string_enum!(
    /// What kind of decision it is.
    #[derive(Default)]
    Kind {
        /// May a call go on?
        #[default]
        Permission = "permission",
        /// A question, a form or a page.
        Question = "question",
        /// Cursor's plan.
        Plan = "plan",
        /// Unsaved text an agent would write over.
        Conflict = "conflict",
    }
);

acp::string_enum!(
    /// The outcome of a decision.
    #[derive(Default)]
    Outcome {
        /// It may go on.
        Allowed = "allowed",
        /// The answer was no.
        Rejected = "rejected",
        /// Questions were answered.
        Answered = "answered",
        /// Questions were skipped.
        Skipped = "skipped",
        /// The plan was accepted.
        Accepted = "accepted",
        /// It ended with its turn, or the user cancelled.
        #[default]
        Cancelled = "cancelled",
        /// An answer was no longer needed.
        Withdrawn = "withdrawn",
    }
);

acp::string_enum!(
    /// Who or what answered a decision.
    #[derive(Default)]
    By {
        /// The user.
        User = "user",
        /// A rule, or an earlier "always" answer.
        Rule = "rule",
        /// Nothing did: its turn ended.
        #[default]
        Turn = "turn",
    }
);

/// A decision that is over.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// What kind of decision it was.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "String", extend("x-lua" = crate::contract::open(Kind::NAMES))))]
    pub kind: Kind,
    /// The question, in one line.
    #[serde(default)]
    pub title: String,
    /// The outcome.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "String", extend("x-lua" = crate::contract::open(Outcome::NAMES))))]
    pub outcome: Outcome,
    /// The answer was "always".
    #[serde(default)]
    pub always: bool,
    /// Who or what answered.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "String", extend("x-lua" = crate::contract::open(By::NAMES))))]
    pub by: By,
    /// The rule, or the earlier "always" answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why, in the user's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Questions with what was answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answered>,
    /// The plan as it was accepted or rejected, markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Wall clock, in milliseconds.
    #[serde(default)]
    pub at_ms: u64,
}

/// A question and its answer.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// What was asked.
    #[serde(default)]
    pub question: String,
    /// The chosen or typed answers, as shown.
    #[serde(default)]
    pub answers: Vec<String>,
}

impl Decided {
    /// The record of a decision that ends with this answer, or with none.
    pub fn new(decision: &Decision, answer: Option<&Answer>, end: &End<'_>) -> Self {
        let none = Answer::cancelled();
        let given = answer.unwrap_or(&none);
        let by = match (answer, end.rule) {
            (None, _) => By::Turn,
            (Some(_), Some(_)) => By::Rule,
            (Some(_), None) => By::User,
        };
        let (mut answers, mut plan) = (Vec::new(), None);
        let outcome = match &decision.subject {
            _ if answer.is_none() && end.how == How::Withdrawn => Outcome::Withdrawn,
            _ if answer.is_none() || given.cancel => Outcome::Cancelled,
            Subject::Permission { .. } | Subject::Access { .. } => match end.rejected {
                Some(true) => Outcome::Rejected,
                Some(false) => Outcome::Allowed,
                None => Outcome::Cancelled,
            },
            Subject::Questions { questions }
            | Subject::Pick { questions }
            | Subject::Form { questions } => {
                if given.skip || given.reject || given.option.as_deref() == Some(SKIP) {
                    Outcome::Skipped
                } else {
                    answers = answered(questions, given);
                    Outcome::Answered
                }
            }
            Subject::Url { .. } if given.skip || given.reject => Outcome::Rejected,
            Subject::Url { .. } => Outcome::Accepted,
            Subject::Plan(_) if given.reject || given.skip => Outcome::Rejected,
            Subject::Plan(_) => Outcome::Accepted,
            Subject::Conflict { .. } => match end.rejected {
                Some(true) => Outcome::Rejected,
                _ => Outcome::Accepted,
            },
        };
        if let Subject::Plan(proposed) = &decision.subject {
            let edited = given.plan.clone().filter(|text| !text.trim().is_empty());
            plan = Some(edited.unwrap_or_else(|| markdown(proposed)));
        }
        Self {
            kind: decision.kind(),
            title: decision.title.clone(),
            outcome,
            always: end.always,
            by,
            rule: end.rule.map(str::to_owned),
            reason: given.reason.clone().filter(|why| !why.trim().is_empty()),
            answers,
            plan,
            at_ms: end.at_ms,
        }
    }

    /// In words, as the transcript shows it.
    pub fn summary(&self) -> String {
        let mut text = match self.kind {
            Kind::Question => {
                let mut lines: Vec<String> = Vec::new();
                for one in &self.answers {
                    lines.push(format!("{} → {}", one.question, one.answers.join(", ")));
                }
                if lines.is_empty() {
                    lines.push(format!("{} → {}", self.title, self.outcome));
                }
                lines.join("\n")
            }
            Kind::Plan => format!("plan {}: {}", self.outcome, self.title),
            Kind::Conflict => format!("{}: {}", self.title, self.outcome),
            _ => match self.by {
                By::Rule => format!(
                    "{} by {}",
                    self.outcome,
                    self.rule.as_deref().unwrap_or("a rule")
                ),
                By::User if self.always => format!("{} always, by you", self.outcome),
                By::User => format!("{} by you", self.outcome),
                _ => self.outcome.to_string(),
            },
        };
        if let Some(reason) = &self.reason {
            text.push_str(": ");
            text.push_str(reason);
        }
        if let Some(plan) = &self.plan {
            text.push_str("\n\n");
            text.push_str(plan.trim_end());
        }
        text
    }
}

/// What ended a decision.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The user's answer.
    User,
    /// A rule, or an earlier "always" answer.
    Policy,
    /// The end of its turn, session, agent or editor.
    #[default]
    Cancelled,
    /// The agent, or whatever asked, no longer needs an answer.
    Withdrawn,
}

/// How a decision ended.
#[derive(Debug, Clone, Copy, Default)]
pub struct End<'a> {
    pub how: How,
    /// Whether the answer was no; None if nothing was decided.
    pub rejected: Option<bool>,
    /// The answer was "always".
    pub always: bool,
    /// The rule that answered.
    pub rule: Option<&'a str>,
    /// Wall clock.
    pub at_ms: u64,
}

const SKIP: &str = crate::decide::reply::SKIP_OPTION;

fn answered(questions: &[Question], given: &Answer) -> Vec<Answered> {
    let shown = |question: &Question, id: &String| {
        let known = question.options.iter().find(|option| option.id == *id);
        known.map_or_else(|| id.clone(), |option| option.label.clone())
    };
    let chosen = |question: &Question| {
        let by_id = given.answers.as_ref().and_then(|all| all.get(&question.id));
        let ids = by_id.cloned().or_else(|| Some(vec![given.option.clone()?]));
        let ids = ids.unwrap_or_default();
        Answered {
            question: question.prompt.clone(),
            answers: ids.iter().map(|id| shown(question, id)).collect(),
        }
    };
    let all = questions.iter().map(chosen);
    all.filter(|one| !one.answers.is_empty()).collect()
}

/// A plan as it was proposed.
fn markdown(plan: &Plan) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(plan.overview.clone().filter(|text| !text.is_empty()));
    parts.push(plan.text.clone());
    if !plan.todos.is_empty() && plan.phases.is_empty() {
        parts.push(todos::markdown(&plan.todos));
    }
    for phase in &plan.phases {
        parts.push(format!(
            "### {}\n\n{}",
            phase.name,
            todos::markdown(&phase.todos)
        ));
    }
    parts.retain(|part| !part.trim().is_empty());
    parts.join("\n\n")
}
