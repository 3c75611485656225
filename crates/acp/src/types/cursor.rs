//! Cursor's own methods. Documented in part as notifications, they arrive as requests too: answer those that have a ticket.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{ConfigOption, SessionId, ToolCallId};
use crate::lenient::{Fields, FromValue, Object, string_enum};

/// What all of Cursor's requests may say about where they belong. None of it is certain to be there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// The tool call.
    pub tool_call_id: Option<ToolCallId>,
    /// The session; undocumented.
    pub session_id: Option<SessionId>,
}

impl Place {
    fn take(fields: &mut Object) -> Self {
        Self {
            tool_call_id: fields.take("toolCallId"),
            session_id: fields.take("sessionId"),
        }
    }
}

/// The params of `cursor/ask_question`.
#[derive(Debug, Clone, PartialEq)]
pub struct AskQuestion {
    /// Where it belongs.
    pub place: Place,
    /// What all of them are about.
    pub title: Option<String>,
    /// The questions.
    pub questions: Vec<Question>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for AskQuestion {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take("questions") {
            Some(questions) => Ok(Self {
                place: Place::take(&mut fields),
                title: fields.take("title"),
                questions,
                extra: fields,
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

/// A question with its possible answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Goes back as it came.
    pub id: String,
    /// The question.
    pub prompt: String,
    /// The answers to choose from.
    pub options: Vec<QuestionOption>,
    /// Whether several may be chosen.
    pub allow_multiple: bool,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for Question {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take("id") {
            Some(id) => Ok(Self {
                id,
                prompt: fields
                    .take_any(&["prompt", "question", "title"])
                    .unwrap_or_default(),
                options: fields.take_or_default("options"),
                allow_multiple: fields.take_or_default("allowMultiple"),
                extra: fields,
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

/// A possible answer.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionOption {
    /// Goes back as it came.
    pub id: String,
    /// For people; the id when there is none.
    pub label: String,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for QuestionOption {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take::<String>("id") {
            Some(id) => Ok(Self {
                label: fields
                    .take_any(&["label", "name"])
                    .unwrap_or_else(|| id.clone()),
                id,
                extra: fields,
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

/// The answer to `cursor/ask_question`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionOutcome {
    /// What was chosen.
    Answered {
        /// For each question that was answered.
        answers: Vec<QuestionAnswer>,
    },
    /// The user would rather not say.
    Skipped {
        /// Why.
        reason: Option<String>,
    },
    /// The turn, the session or the editor went away.
    Cancelled,
}

/// The answer to one question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionAnswer {
    /// The question.
    pub question_id: String,
    /// What was chosen.
    pub selected_option_ids: Vec<String>,
}

/// Cursor reads an outcome only inside an outcome; one that is not nested means "cancelled" to it.
fn nested<S: Serializer>(outcome: &str, fields: Value, serializer: S) -> Result<S::Ok, S::Error> {
    let mut inner = Object::new();
    inner.insert("outcome".to_owned(), Value::String(outcome.to_owned()));
    if let Value::Object(fields) = fields {
        inner.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
    }
    json!({ "outcome": inner }).serialize(serializer)
}

impl Serialize for QuestionOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Answered { answers } => {
                nested("answered", json!({ "answers": answers }), serializer)
            }
            Self::Skipped { reason } => nested("skipped", json!({ "reason": reason }), serializer),
            Self::Cancelled => nested("cancelled", Value::Null, serializer),
        }
    }
}

/// The params of `cursor/create_plan`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreatePlan {
    /// Where it belongs.
    pub place: Place,
    /// Its name.
    pub name: Option<String>,
    /// In short.
    pub overview: Option<String>,
    /// In full, markdown.
    pub plan: String,
    /// What is to be done.
    pub todos: Vec<Todo>,
    /// Whether it is a project's.
    pub is_project: bool,
    /// What is to be done, in steps.
    pub phases: Vec<Phase>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for CreatePlan {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        Ok(Self {
            place: Place::take(&mut fields),
            name: fields.take("name"),
            overview: fields.take("overview"),
            plan: fields.take_or_default("plan"),
            todos: fields.take_or_default("todos"),
            is_project: fields.take_or_default("isProject"),
            phases: fields.take_or_default("phases"),
            extra: fields,
        })
    }
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// What is to be done in it.
    pub todos: Vec<Todo>,
}

impl FromValue for Phase {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        Ok(Self {
            name: fields.take_any(&["name", "title"]).unwrap_or_default(),
            todos: fields.take_or_default("todos"),
        })
    }
}

/// The answer to `cursor/create_plan`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanOutcome {
    /// Go ahead.
    Accepted {
        /// Where it was saved.
        plan_uri: Option<String>,
    },
    /// Not like this.
    Rejected {
        /// Why.
        reason: Option<String>,
    },
    /// The turn, the session or the editor went away.
    Cancelled,
}

impl Serialize for PlanOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Accepted { plan_uri } => {
                nested("accepted", json!({ "planUri": plan_uri }), serializer)
            }
            Self::Rejected { reason } => {
                nested("rejected", json!({ "reason": reason }), serializer)
            }
            Self::Cancelled => nested("cancelled", Value::Null, serializer),
        }
    }
}

/// Something to be done. Arrives and is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Todo {
    /// What it is merged by; missing in the wild.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What it is; missing in the wild from updates that only bring a status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// How far it is; none when an update does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<TodoStatus>,
}

impl FromValue for Todo {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = match value {
            Value::Object(fields) => fields,
            Value::String(content) => {
                return Ok(Self {
                    id: None,
                    content: Some(content),
                    status: None,
                });
            }
            other => return Err(other),
        };
        let id = fields.take::<Text>("id").map(|Text(id)| id);
        let content = fields.take_any(&["content", "title", "text", "description"]);
        if id.is_none() && content.is_none() {
            return Err(Value::Object(fields));
        }
        Ok(Self {
            id,
            content,
            status: fields.take("status"),
        })
    }
}

/// A string, or a number's digits.
struct Text(String);

impl FromValue for Text {
    fn from_value(value: Value) -> Result<Self, Value> {
        match value {
            Value::String(text) => Ok(Self(text)),
            Value::Number(number) => Ok(Self(number.to_string())),
            other => Err(other),
        }
    }
}

string_enum!(
    /// How far a todo is.
    TodoStatus {
        /// Not begun.
        Pending = "pending" | "TODO_STATUS_PENDING" | "TODO_STATUS_UNSPECIFIED",
        /// Being done.
        InProgress = "in_progress" | "inProgress" | "TODO_STATUS_IN_PROGRESS",
        /// Done.
        Completed = "completed" | "TODO_STATUS_COMPLETED",
        /// Not to be done any more.
        Cancelled = "cancelled" | "canceled" | "TODO_STATUS_CANCELLED",
    }
);

/// An update that does not say how far a todo is leaves that as it was.
impl Default for TodoStatus {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

impl TodoStatus {
    /// Whether it has any content.
    pub fn is_said(&self) -> bool {
        !self.as_str().is_empty()
    }
}

/// The params of `cursor/update_todos`.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateTodos {
    /// Where it belongs.
    pub place: Place,
    /// The todos.
    pub todos: Vec<Todo>,
    /// Into the list by id, or in its place.
    pub merge: bool,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for UpdateTodos {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        match fields.take("todos") {
            Some(todos) => Ok(Self {
                place: Place::take(&mut fields),
                todos,
                merge: fields.take_or_default("merge"),
                extra: fields,
            }),
            None => Err(Value::Object(fields)),
        }
    }
}

/// The answer to `cursor/update_todos`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TodosOutcome {
    /// Taken.
    Accepted {
        /// The whole list as it is now.
        todos: Vec<Todo>,
    },
    /// The turn, the session or the editor went away.
    Cancelled,
}

impl Serialize for TodosOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Accepted { todos } => nested("accepted", json!({ "todos": todos }), serializer),
            Self::Cancelled => nested("cancelled", Value::Null, serializer),
        }
    }
}

/// The params of `cursor/task`: a subagent's work.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Where it belongs.
    pub place: Place,
    /// In short.
    pub description: String,
    /// What the subagent was told.
    pub prompt: String,
    /// What kind of subagent.
    pub subagent_type: SubagentType,
    /// Its model.
    pub model: Option<String>,
    /// The subagent that goes on.
    pub agent_id: Option<String>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for Task {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        Ok(Self {
            place: Place::take(&mut fields),
            description: fields.take_or_default("description"),
            prompt: fields.take_or_default("prompt"),
            subagent_type: fields
                .take("subagentType")
                .unwrap_or(SubagentType::Unspecified),
            model: fields.take("model"),
            agent_id: fields.take("agentId"),
            duration_ms: fields.take("durationMs"),
            extra: fields,
        })
    }
}

/// What kind of subagent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubagentType {
    /// Not said.
    Unspecified,
    /// One of Cursor's own: `explore`, `shell`, `browser_use` …
    Named(String),
    /// The user's own, by its name.
    Custom(String),
}

impl SubagentType {
    /// Its name, for people.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Unspecified => "unspecified",
            Self::Named(name) | Self::Custom(name) => name,
        }
    }
}

impl FromValue for SubagentType {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = match value {
            Value::String(name) if name == "unspecified" || name.is_empty() => {
                return Ok(Self::Unspecified);
            }
            Value::String(name) => return Ok(Self::Named(name)),
            Value::Object(fields) => fields,
            other => return Err(other),
        };
        let custom = fields.take("custom");
        match custom.or_else(|| fields.get_mut("custom")?.as_object_mut()?.take("name")) {
            Some(name) => Ok(Self::Custom(name)),
            None => Err(Value::Object(fields)),
        }
    }
}

/// The answer to `cursor/task`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskOutcome {
    /// Seen.
    Completed {
        /// The subagent.
        agent_id: Option<String>,
        /// How long it took.
        duration_ms: Option<u64>,
    },
    /// The turn, the session or the editor went away.
    Cancelled,
}

impl Serialize for TaskOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Completed {
                agent_id,
                duration_ms,
            } => {
                let fields = json!({ "agentId": agent_id, "durationMs": duration_ms });
                nested("completed", fields, serializer)
            }
            Self::Cancelled => nested("cancelled", Value::Null, serializer),
        }
    }
}

/// The params of `cursor/generate_image`.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerateImage {
    /// Where it belongs.
    pub place: Place,
    /// What is to be seen.
    pub description: String,
    /// Where the image is.
    pub file_path: Option<String>,
    /// What it was made after.
    pub reference_image_paths: Vec<String>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for GenerateImage {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = Object::from_value(value)?;
        Ok(Self {
            place: Place::take(&mut fields),
            description: fields.take_or_default("description"),
            file_path: fields.take("filePath"),
            reference_image_paths: fields.take_or_default("referenceImagePaths"),
            extra: fields,
        })
    }
}

/// The answer to `cursor/generate_image`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageOutcome {
    /// It is there.
    Generated {
        /// Where.
        file_path: String,
    },
    /// It is not: the request named no file.
    Rejected {
        /// Why.
        reason: Option<String>,
    },
    /// The turn, the session or the editor went away.
    Cancelled,
}

impl Serialize for ImageOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Generated { file_path } => {
                nested("generated", json!({ "filePath": file_path }), serializer)
            }
            Self::Rejected { reason } => {
                nested("rejected", json!({ "reason": reason }), serializer)
            }
            Self::Cancelled => nested("cancelled", Value::Null, serializer),
        }
    }
}

/// The answer to `cursor/list_available_models`, whose params are empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AvailableModels {
    /// All of them.
    pub models: Vec<AvailableModel>,
}

impl FromValue for AvailableModels {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = match value {
            Value::Object(fields) => fields,
            list => return Vec::from_value(list).map(|models| Self { models }),
        };
        match fields.take_any(&["models", "availableModels"]) {
            Some(models) => Ok(Self { models }),
            None => Err(Value::Object(fields)),
        }
    }
}

/// A model Cursor offers. Its shape changed over releases.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AvailableModel {
    /// What it is set by.
    pub value: String,
    /// Its name; the value when it has none.
    pub name: String,
    /// What can be set once it is chosen.
    pub config_options: Vec<ConfigOption>,
    /// Fields this type does not know.
    pub extra: Object,
}

impl FromValue for AvailableModel {
    fn from_value(value: Value) -> Result<Self, Value> {
        let mut fields = match value {
            Value::Object(fields) => fields,
            other => {
                let value = String::from_value(other)?;
                return Ok(Self {
                    name: value.clone(),
                    value,
                    ..Self::default()
                });
            }
        };
        match fields.take_any::<String>(&["value", "modelId", "id"]) {
            Some(value) => Ok(Self {
                name: fields
                    .take_any(&["name", "displayName", "label"])
                    .unwrap_or_else(|| value.clone()),
                value,
                config_options: fields.take_or_default("configOptions"),
                extra: fields,
            }),
            None => Err(Value::Object(fields)),
        }
    }
}
