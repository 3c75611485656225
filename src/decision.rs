//! Decisions: what an agent asks the user, and the answer in the shape that agent expects.
//!
//! A decision is answered exactly once: by the user, by a rule, or as cancelled when its turn, session,
//! agent or editor ends.

use std::collections::BTreeMap;

use acp::peer::Ticket;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use crate::ids::{DecisionId, Key, Proc};
use crate::todos::Todo;

/// Something that waits for the user.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Ours.
    pub id: DecisionId,
    /// The session it belongs to.
    pub key: Key,
    /// Who is to be answered.
    pub proc: Proc,
    /// The request that is to be answered.
    pub ticket: Ticket,
    /// What is asked, in a line.
    pub title: String,
    /// The tool call it is about.
    pub entry: Option<usize>,
    /// When it was asked, wall clock.
    pub asked_ms: u64,
    /// What is asked.
    pub ask: Ask,
}

/// The kinds of decision.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// May a tool run? Answered by one of the agent's options.
    Permission { options: Vec<PermissionOption> },
    /// Cursor's multiple-choice questions.
    Questions { questions: Vec<Question> },
    /// An elicitation by form: the properties of its schema as questions.
    Form { questions: Vec<Question> },
    /// An elicitation by a page to open.
    Url { url: String },
    /// Cursor's plan, to be accepted or rejected.
    Plan(Box<Plan>),
}

/// One of the answers a permission offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PermissionOption {
    /// What goes back.
    pub id: String,
    /// In the agent's words.
    pub name: String,
    /// `allow_once`, `allow_always`, `reject_once`, `reject_always`, or what the agent said.
    pub kind: String,
}

/// One question.
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
    pub default: Option<Value>,
}

/// One choice of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// What goes back.
    pub id: String,
    /// What is shown.
    pub label: String,
}

/// A plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Its name.
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Phase {
    /// Its name.
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

impl Decision {
    /// `permission`, `question` or `plan`.
    pub fn kind(&self) -> &'static str {
        match &self.ask {
            Ask::Permission { .. } => "permission",
            Ask::Questions { .. } | Ask::Form { .. } | Ask::Url { .. } => "question",
            Ask::Plan(_) => "plan",
        }
    }

    /// Whether the answer means no.
    pub fn is_rejection(&self, answer: &Answer) -> bool {
        let chosen = answer.option.as_ref();
        let says_no = |options: &[PermissionOption]| {
            options
                .iter()
                .any(|option| Some(&option.id) == chosen && option.kind.starts_with("reject"))
        };
        answer.reject || matches!(&self.ask, Ask::Permission { options } if says_no(options))
    }

    /// The result that goes back to the agent. An answer that does not fit is refused with what would.
    pub fn result(&self, answer: &Answer) -> Result<Value, String> {
        match &self.ask {
            Ask::Permission { options } => permission(options, answer),
            Ask::Questions { questions } => cursor_questions(questions, answer),
            Ask::Form { questions } => form(questions, answer),
            Ask::Url { .. } => Ok(json!({ "action": action(answer)? })),
            Ask::Plan(_) => plan(answer),
        }
    }
}

fn permission(options: &[PermissionOption], answer: &Answer) -> Result<Value, String> {
    if answer.cancel {
        return Ok(json!({ "outcome": { "outcome": "cancelled" } }));
    }
    let wanted = if let Some(id) = &answer.option {
        options.iter().find(|option| option.id == *id)
    } else if answer.accept {
        of_kind(options, &["allow_once", "allow_always"])
    } else if answer.reject {
        of_kind(options, &["reject_once", "reject_always"])
    } else {
        None
    };
    match wanted {
        Some(option) => Ok(json!({ "outcome": { "outcome": "selected", "optionId": option.id } })),
        // An agent that offers no way to say no understands this one.
        None if answer.reject => Ok(json!({ "outcome": { "outcome": "cancelled" } })),
        None => {
            let ids: Vec<&str> = options.iter().map(|option| option.id.as_str()).collect();
            Err(format!(
                "answer with {{ option = … }}, one of: {}",
                ids.join(", ")
            ))
        }
    }
}

/// By kind, never by id or place: ids differ between agents (`allow-once`, `once`, `proceed_once`, `allow_once`).
fn of_kind<'a>(options: &'a [PermissionOption], kinds: &[&str]) -> Option<&'a PermissionOption> {
    kinds
        .iter()
        .find_map(|kind| options.iter().find(|option| option.kind == *kind))
}

fn cursor_questions(questions: &[Question], answer: &Answer) -> Result<Value, String> {
    let outcome = if answer.cancel {
        json!({ "outcome": "cancelled" })
    } else if answer.skip || answer.reject {
        with_reason("skipped", answer)
    } else if let Some(given) = &answer.answers {
        check_choices(questions, given)?;
        let answers: Vec<Value> = questions
            .iter()
            .filter_map(|question| Some((question, given.get(&question.id)?)))
            .map(|(question, chosen)| json!({ "questionId": question.id, "selectedOptionIds": chosen }))
            .collect();
        json!({ "outcome": "answered", "answers": answers })
    } else {
        let ids: Vec<&str> = questions
            .iter()
            .map(|question| question.id.as_str())
            .collect();
        return Err(format!(
            "answer with {{ answers = {{ [question] = {{ option, … }} }} }} for: {}",
            ids.join(", ")
        ));
    };
    Ok(json!({ "outcome": outcome }))
}

fn plan(answer: &Answer) -> Result<Value, String> {
    let outcome = if answer.cancel {
        json!({ "outcome": "cancelled" })
    } else if answer.reject || answer.skip {
        with_reason("rejected", answer)
    } else if answer.accept {
        match &answer.plan_uri {
            Some(uri) => json!({ "outcome": "accepted", "planUri": uri }),
            None => json!({ "outcome": "accepted" }),
        }
    } else {
        return Err("answer a plan with { accept = true }, { reject = true, reason = … } or { cancel = true }".to_owned());
    };
    Ok(json!({ "outcome": outcome }))
}

fn with_reason(outcome: &str, answer: &Answer) -> Value {
    match &answer.reason {
        Some(reason) => json!({ "outcome": outcome, "reason": reason }),
        None => json!({ "outcome": outcome }),
    }
}

fn action(answer: &Answer) -> Result<&'static str, String> {
    if answer.cancel {
        Ok("cancel")
    } else if answer.skip || answer.reject {
        Ok("decline")
    } else if answer.accept || answer.answers.is_some() {
        Ok("accept")
    } else {
        Err("answer with { accept = true }, { reject = true } or { cancel = true }".to_owned())
    }
}

fn form(questions: &[Question], answer: &Answer) -> Result<Value, String> {
    let action = action(answer)?;
    if action != "accept" {
        return Ok(json!({ "action": action }));
    }
    let none = BTreeMap::new();
    let given = answer.answers.as_ref().unwrap_or(&none);
    check_choices(questions, given)?;
    let mut content = Map::new();
    for question in questions {
        let chosen = given
            .get(&question.id)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let value = if chosen.is_empty() {
            question
                .default
                .clone()
                .filter(|value| fits(question, value))
        } else {
            Some(typed(question, chosen)?)
        };
        match value {
            Some(value) => {
                content.insert(question.id.clone(), value);
            }
            None if question.required => {
                return Err(format!("\"{}\" needs an answer", question.prompt));
            }
            None => {}
        }
    }
    Ok(json!({ "action": "accept", "content": content }))
}

/// The chosen texts as the type the form asked for.
fn typed(question: &Question, chosen: &[String]) -> Result<Value, String> {
    let first = chosen.first().map(String::as_str).unwrap_or_default();
    let wrong = |what: &str| format!("\"{}\" wants {what}, not \"{first}\"", question.prompt);
    match question.value_type.as_deref() {
        Some("array") => Ok(json!(chosen)),
        Some("boolean") => first
            .parse::<bool>()
            .map(Value::from)
            .map_err(|_| wrong("true or false")),
        Some("integer") => first
            .trim()
            .parse::<i64>()
            .map(Value::from)
            .map_err(|_| wrong("a whole number")),
        Some("number") => first
            .trim()
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
            .map(Value::from)
            .ok_or_else(|| wrong("a number")),
        _ => Ok(json!(first)),
    }
}

/// Whether a default is of the type its own field asks for.
fn fits(question: &Question, value: &Value) -> bool {
    match question.value_type.as_deref() {
        Some("array") => value
            .as_array()
            .is_some_and(|items| items.iter().all(Value::is_string)),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        _ => value.is_string(),
    }
}

fn check_choices(
    questions: &[Question],
    given: &BTreeMap<String, Vec<String>>,
) -> Result<(), String> {
    for (id, chosen) in given {
        let Some(question) = questions.iter().find(|question| question.id == *id) else {
            return Err(format!("there is no question \"{id}\""));
        };
        if chosen.len() > 1 && !question.multiple {
            return Err(format!("\"{}\" takes one answer", question.prompt));
        }
        let known = |choice: &String| question.options.iter().any(|option| option.id == *choice);
        if let Some(stray) = chosen
            .iter()
            .find(|choice| !question.free_text && !known(choice))
        {
            return Err(format!("\"{}\" has no option \"{stray}\"", question.prompt));
        }
    }
    Ok(())
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
