//! What an answer means and the response to the agent, in the shape it expects. Which option is meant is
//! decided here, for keys, rules and Lua alike.

use std::collections::BTreeMap;

use acp::message::RpcError;
use acp::types::PermissionKind;
use serde_json::{Map, Value, json};

use crate::decide::decision::{Answer, Choice, Decision, PermissionOption, Question, Subject};
use crate::error::Misfit;
use crate::inbound::access::Access;

impl Decision {
    /// The result of an answer. One that does not fit is refused with an explanation.
    pub fn reply(&self, agent: &str, answer: &Answer) -> Result<Reply, Misfit> {
        let result = match &self.subject {
            Subject::Permission { options } => return permission(agent, options, answer),
            Subject::Access { options, access } => {
                return by_editor(agent, options, access, answer);
            }
            Subject::Questions { questions } => cursor_questions(questions, answer)?,
            Subject::Pick { questions } => pick(questions, answer)?,
            Subject::Form { questions } => form(questions, answer)?,
            Subject::Url { .. } => json!({ "action": action(answer)? }),
            Subject::Plan(_) => plan(answer)?,
            Subject::Conflict { .. } => json!(crate::decide::conflict::choice(answer)?),
        };
        Ok(Reply {
            result: Some(Ok(result)),
            rejected: match &self.subject {
                Subject::Pick { .. } => None,
                Subject::Conflict { .. } => {
                    crate::decide::conflict::choice(answer)?.map(|id| id != "theirs")
                }
                _ => (!answer.cancel).then_some(answer.reject),
            },
            ..Reply::default()
        })
    }
}

/// The result of an answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// The response to the agent; None if the request must be carried out first.
    pub result: Option<Result<Value, RpcError>>,
    /// Whether the user said no; None if nothing was decided.
    pub rejected: Option<bool>,
    /// An "always" option was chosen.
    pub always: bool,
    /// For the user: the response differs from what was chosen.
    pub warning: Option<String>,
}

/// The option an answer selects.
enum Chosen<'a> {
    Option(&'a PermissionOption),
    /// Neither yes nor no: it was cancelled, or no option means that.
    Cancelled {
        rejected: Option<bool>,
    },
    /// An option whose id also belongs to another one.
    Ambiguous(&'a PermissionOption),
}

/// Finds the option an answer means, for keys, rules and Lua alike. By kind, never by position; ids differ
/// between agents (`allow-once`, `once`, `proceed_once`, `allow_once`). A one-time answer never selects an
/// "always" option.
fn choose<'a>(
    agent: &str,
    options: &'a [PermissionOption],
    answer: &Answer,
) -> Result<Chosen<'a>, Misfit> {
    if answer.cancel {
        return Ok(Chosen::Cancelled { rejected: None });
    }
    let kind = match (&answer.option, &answer.kind) {
        (Some(id), _) => {
            let Some(option) = options.iter().find(|option| option.id == *id) else {
                return Err(expected(options));
            };
            return Ok(certain(options, option));
        }
        (None, Some(kind)) => PermissionKind::from(kind.as_str()),
        (None, None) if answer.accept => PermissionKind::AllowOnce,
        (None, None) if answer.reject => PermissionKind::RejectOnce,
        (None, None) => return Err(expected(options)),
    };
    match options.iter().find(|option| option.kind == kind) {
        Some(option) => Ok(certain(options, option)),
        // An agent without a reject option understands a cancellation.
        None if kind == PermissionKind::RejectOnce => Ok(Chosen::Cancelled {
            rejected: Some(true),
        }),
        None => Err(Misfit::KindNotOffered {
            agent: agent.to_owned(),
            kind: kind.to_string(),
            options: ids(options),
        }),
    }
}

fn certain<'a>(options: &'a [PermissionOption], option: &'a PermissionOption) -> Chosen<'a> {
    let other = |one: &PermissionOption| {
        one.id == option.id && (&one.kind, &one.name) != (&option.kind, &option.name)
    };
    if option.id.is_empty() || options.iter().any(other) {
        Chosen::Ambiguous(option)
    } else {
        Chosen::Option(option)
    }
}

/// An id that both allows and rejects: the agent could take any answer for its opposite.
pub fn collision(options: &[PermissionOption]) -> Option<&str> {
    let rejects = |id: &str| {
        let mut others = options.iter().filter(|option| option.id == id);
        others.any(PermissionOption::rejects)
    };
    let mut allowing = options.iter().filter(|option| option.allows());
    allowing
        .find(|option| rejects(&option.id))
        .map(|option| option.id.as_str())
}

fn ambiguous(agent: &str, id: &str) -> String {
    if id.is_empty() {
        format!("{agent} gave this option no id; answered as cancelled")
    } else {
        format!("{agent} uses the id \"{id}\" for different options; answered as cancelled")
    }
}

/// The warning for a permission with such an id.
pub fn collision_warning(agent: &str, id: &str) -> String {
    if id.is_empty() {
        format!("{agent} gave the options to allow and to reject no ids; answered as cancelled")
    } else {
        format!("{agent} uses the id \"{id}\" to allow and to reject; answered as cancelled")
    }
}

fn expected(options: &[PermissionOption]) -> Misfit {
    Misfit::Permission {
        options: ids(options),
    }
}

fn ids(options: &[PermissionOption]) -> Vec<String> {
    options.iter().map(|option| option.id.clone()).collect()
}

fn permission(agent: &str, options: &[PermissionOption], answer: &Answer) -> Result<Reply, Misfit> {
    let cancelled = || Some(Ok(json!({ "outcome": { "outcome": "cancelled" } })));
    Ok(match choose(agent, options, answer)? {
        Chosen::Option(option) => Reply {
            result: Some(Ok(
                json!({ "outcome": { "outcome": "selected", "optionId": option.id } }),
            )),
            rejected: Some(option.rejects()),
            always: option.is_for_good(),
            warning: None,
        },
        // Without an answer there is no permission.
        Chosen::Cancelled { .. } => Reply {
            result: cancelled(),
            rejected: Some(true),
            ..Reply::default()
        },
        Chosen::Ambiguous(option) => Reply {
            result: cancelled(),
            rejected: Some(true),
            always: false,
            warning: Some(ambiguous(agent, &option.id)),
        },
    })
}

fn by_editor(
    agent: &str,
    options: &[PermissionOption],
    access: &Access,
    answer: &Answer,
) -> Result<Reply, Misfit> {
    Ok(match choose(agent, options, answer)? {
        Chosen::Option(option) if option.allows() => Reply {
            result: None,
            rejected: Some(false),
            always: option.is_for_good(),
            warning: None,
        },
        Chosen::Option(_) | Chosen::Ambiguous(_) => Reply {
            result: Some(Err(access.refusal(answer.reason.as_deref()))),
            rejected: Some(true),
            ..Reply::default()
        },
        Chosen::Cancelled { rejected } => Reply {
            result: Some(Err(RpcError::cancelled())),
            rejected,
            ..Reply::default()
        },
    })
}

fn cursor_questions(questions: &[Question], answer: &Answer) -> Result<Value, Misfit> {
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
        let ids = questions.iter().map(|question| question.id.clone());
        let questions = ids.collect();
        return Err(Misfit::Questions { questions });
    };
    Ok(json!({ "outcome": outcome }))
}

/// The option that skips a question Cursor asks as a permission.
pub const SKIP_OPTION: &str = "__ask_question_skip__";

/// Whether the options of a permission are the answers to a question.
pub fn is_question(options: &[PermissionOption]) -> bool {
    options.iter().any(|option| option.id == SKIP_OPTION)
}

/// The answers among the options of such a permission: those that allow once, without duplicates.
pub fn choices(options: &[PermissionOption]) -> Vec<Choice> {
    let is_answer = |option: &&PermissionOption| option.id != SKIP_OPTION;
    let once = options.iter().filter(is_answer);
    let mut chosen: Vec<&PermissionOption> = once
        .filter(|o| o.kind == PermissionKind::AllowOnce)
        .collect();
    if chosen.is_empty() {
        // The kinds are useless: offer all options rather than none.
        chosen = options.iter().filter(is_answer).collect();
    }
    let mut list: Vec<Choice> = Vec::new();
    for option in chosen {
        if list.iter().all(|known| known.id != option.id) {
            list.push(Choice {
                id: option.id.clone(),
                label: option.name.clone(),
            });
        }
    }
    list
}

fn pick(questions: &[Question], answer: &Answer) -> Result<Value, Misfit> {
    let selected = |id: &str| json!({ "outcome": { "outcome": "selected", "optionId": id } });
    if answer.cancel {
        return Ok(json!({ "outcome": { "outcome": "cancelled" } }));
    }
    if answer.skip || answer.reject || answer.option.as_deref() == Some(SKIP_OPTION) {
        return Ok(selected(SKIP_OPTION));
    }
    let offered = || questions.iter().flat_map(|question| &question.options);
    if let Some(option) = &answer.option
        && offered().any(|choice| choice.id == *option)
    {
        return Ok(selected(option));
    }
    let none = BTreeMap::new();
    let given = answer.answers.as_ref().unwrap_or(&none);
    check_choices(questions, given)?;
    match given.values().flatten().next() {
        Some(option) => Ok(selected(option)),
        None => {
            let first = questions.first();
            Err(Misfit::Pick {
                question: first.map_or_else(String::new, |question| question.id.clone()),
                options: offered().map(|choice| choice.id.clone()).collect(),
            })
        }
    }
}

fn plan(answer: &Answer) -> Result<Value, Misfit> {
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
        return Err(Misfit::Plan);
    };
    Ok(json!({ "outcome": outcome }))
}

fn with_reason(outcome: &str, answer: &Answer) -> Value {
    match &answer.reason {
        Some(reason) => json!({ "outcome": outcome, "reason": reason }),
        None => json!({ "outcome": outcome }),
    }
}

fn action(answer: &Answer) -> Result<&'static str, Misfit> {
    if answer.cancel {
        Ok("cancel")
    } else if answer.skip || answer.reject {
        Ok("decline")
    } else if answer.accept || answer.answers.is_some() {
        Ok("accept")
    } else {
        Err(Misfit::Form)
    }
}

fn form(questions: &[Question], answer: &Answer) -> Result<Value, Misfit> {
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
                return Err(Misfit::Required(question.prompt.clone()));
            }
            None => {}
        }
    }
    Ok(json!({ "action": "accept", "content": content }))
}

/// The chosen texts as the type the form asked for.
fn typed(question: &Question, chosen: &[String]) -> Result<Value, Misfit> {
    let first = chosen.first().map(String::as_str).unwrap_or_default();
    let wrong = |wanted| Misfit::WrongType {
        question: question.prompt.clone(),
        wanted,
        given: first.to_owned(),
    };
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

/// Whether a default has the type its own field asks for.
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
) -> Result<(), Misfit> {
    for (id, chosen) in given {
        let Some(question) = questions.iter().find(|question| question.id == *id) else {
            return Err(Misfit::NoQuestion(id.clone()));
        };
        if chosen.len() > 1 && !question.multiple {
            return Err(Misfit::OneAnswer(question.prompt.clone()));
        }
        let known = |choice: &String| question.options.iter().any(|option| option.id == *choice);
        if let Some(stray) = chosen
            .iter()
            .find(|choice| !question.free_text && !known(choice))
        {
            return Err(Misfit::NoOption {
                question: question.prompt.clone(),
                option: stray.clone(),
            });
        }
    }
    Ok(())
}
