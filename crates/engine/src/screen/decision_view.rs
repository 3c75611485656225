//! A decision as Lua sees it: what the user is asked, with all that bears on the answer.

use serde::Serialize;

use crate::decide::conflict;
use crate::decide::decision::{Choice, Decision, PermissionOption, Plan, Question, Subject};
use crate::engine::Engine;
use crate::ids::{DecisionId, EditorId, Key};
use crate::policy::facts::Facts;
use crate::policy::paths::Place;
use crate::screen::entry_view::{Depth, ToolView, tool_view};
use crate::screen::view::{described, name};
use crate::text::passage;

/// So much is shown of all questions of a decision, of one of them however many there are, and of a choice.
const QUESTIONS_BYTES: usize = 64 * 1024;
const QUESTION_BYTES: usize = 1024;
const CHOICE_BYTES: usize = 400;

/// What the user is asked.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
pub struct DecisionView {
    id: DecisionId,
    key: Key,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    agent: String,
    #[serde(flatten)]
    about: AboutView,
    title: String,
    /// Wall clock.
    asked_ms: u64,
    /// The tool call's entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<usize>,
    /// What the subagent that asks is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    subagent: Option<String>,
    /// The tool call it is about, whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<ToolView>,
    /// The files it is about; `path` has links followed.
    places: Vec<Place>,
    /// Counts how often the call changed since it was asked about.
    revision: u64,
    /// A file or a command an agent wants to reach by way of the editor.
    by_editor: bool,
    cwd: String,
}

/// What only some kinds of decision have.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AboutView {
    Permission {
        options: Vec<PermissionOption>,
        #[serde(skip_serializing_if = "Option::is_none")]
        facts: Option<Facts>,
    },
    Question {
        questions: Vec<Question>,
        /// Of an elicitation in url mode.
        #[serde(skip_serializing_if = "Option::is_none")]
        url: Option<String>,
    },
    Plan {
        plan: Box<Plan>,
    },
    Conflict {
        options: Vec<PermissionOption>,
        /// The file.
        path: String,
        /// The write that waits for it.
        #[serde(skip_serializing_if = "Option::is_none")]
        request: Option<EditorId>,
    },
}

impl Engine {
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

    /// A decision, as the user is asked for it.
    pub fn decision_view(&self, decision: &Decision) -> DecisionView {
        let session = self.sessions.get(&decision.key);
        let entry = decision.entry.and_then(|at| session?.transcript().get(at));
        let tool =
            entry.and_then(|entry| Some(tool_view(entry.tool()?, entry.duration_ms, Depth::Whole)));
        let about = match &decision.subject {
            Subject::Permission { options } | Subject::Access { options, .. } => {
                let shown = |option: &PermissionOption| PermissionOption {
                    name: name(&option.name),
                    ..option.clone()
                };
                let facts = entry.and_then(|entry| entry.tool()).map(Facts::of);
                AboutView::Permission {
                    options: options.iter().map(shown).collect(),
                    facts: facts.map(|facts| facts.each(described)),
                }
            }
            Subject::Questions { questions }
            | Subject::Pick { questions }
            | Subject::Form { questions } => AboutView::Question {
                questions: shown_questions(questions),
                url: None,
            },
            Subject::Url { url } => AboutView::Question {
                questions: Vec::new(),
                url: Some(url.clone()),
            },
            Subject::Plan(plan) => AboutView::Plan { plan: plan.clone() },
            Subject::Conflict { path, call } => AboutView::Conflict {
                options: conflict::options(),
                path: path.clone(),
                request: *call,
            },
        };
        DecisionView {
            id: decision.id,
            key: decision.key,
            session_id: session
                .and_then(|s| s.session_id())
                .map(|id| id.as_str().to_owned()),
            agent: self.agent_name(decision.key),
            about,
            title: described(&decision.title),
            asked_ms: decision.asked_ms,
            entry: decision.entry.map(|at| at + 1),
            subagent: decision
                .subagent
                .and_then(|at| session?.transcript().task(at))
                .map(|task| task.description.clone()),
            tool,
            places: decision.places.clone(),
            revision: decision.revision,
            by_editor: matches!(
                decision.subject,
                Subject::Access { .. } | Subject::Conflict { call: Some(_), .. }
            ),
            cwd: session
                .map(|session| session.cwd().to_owned())
                .unwrap_or_default(),
        }
    }
}

/// Questions as they are shown: the more there are, the less of each.
fn shown_questions(questions: &[Question]) -> Vec<Question> {
    let each = (QUESTIONS_BYTES / questions.len().max(1)).max(QUESTION_BYTES);
    let shown = |question: &Question| Question {
        prompt: passage(&question.prompt, each),
        options: question
            .options
            .iter()
            .map(|choice| Choice {
                id: choice.id.clone(),
                label: passage(&choice.label, CHOICE_BYTES),
            })
            .collect(),
        ..question.clone()
    };
    questions.iter().map(shown).collect()
}
