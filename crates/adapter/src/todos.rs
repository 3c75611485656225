//! The todos of a session, which the protocol calls a plan.

use acp::Object;
use acp::types::{Plan, PlanEntry, PlanPriority, PlanStatus};
use serde_json::Value;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Todo {
    id: String,
    content: String,
    status: Status,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Pending,
    InProgress,
    Completed,
    Cancelled,
}

/// The list as it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Todos(Vec<Todo>);

impl Todos {
    /// Takes the `todos` of a call or of its result. With `merge`, what is named changes and the rest stays.
    /// Says whether there was a list.
    pub fn take(&mut self, from: &Value, merge: bool) -> bool {
        let Some(Value::Array(items)) = from.get("todos") else {
            return false;
        };
        if !merge {
            self.0.clear();
        }
        for (number, item) in items.iter().enumerate() {
            let text = |keys: &[&str]| {
                let found = keys.iter().find_map(|key| item.get(*key)?.as_str());
                found.filter(|text| !text.is_empty())
            };
            let content = text(&["content", "title", "description"]);
            let id = match item.get("id") {
                Some(Value::String(id)) => id.clone(),
                Some(Value::Number(id)) => id.to_string(),
                _ => content.map_or_else(|| number.to_string(), str::to_owned),
            };
            let status = text(&["status"]).map(Status::read);
            match self.0.iter_mut().find(|todo| todo.id == id) {
                Some(todo) => {
                    if let Some(content) = content {
                        content.clone_into(&mut todo.content);
                    }
                    todo.status = status.unwrap_or(todo.status);
                }
                None => {
                    if let Some(content) = content {
                        self.0.push(Todo {
                            id,
                            content: content.to_owned(),
                            status: status.unwrap_or(Status::Pending),
                        });
                    }
                }
            }
        }
        true
    }

    /// The list as the protocol has it. It knows no cancelled step: such a one is over, and says so.
    pub fn plan(&self) -> Plan {
        let entry = |todo: &Todo| PlanEntry {
            content: match todo.status {
                Status::Cancelled => format!("{} (cancelled)", todo.content),
                _ => todo.content.clone(),
            },
            priority: Some(PlanPriority::Medium),
            status: match todo.status {
                Status::Pending => PlanStatus::Pending,
                Status::InProgress => PlanStatus::InProgress,
                Status::Completed | Status::Cancelled => PlanStatus::Completed,
            },
            meta: None,
            extra: Object::new(),
        };
        Plan {
            entries: self.0.iter().map(entry).collect(),
            meta: None,
            extra: Object::new(),
        }
    }
}

impl Status {
    /// `TODO_STATUS_IN_PROGRESS`, `in_progress`, `inProgress`.
    fn read(text: &str) -> Self {
        let plain: String = text
            .trim_start_matches("TODO_STATUS_")
            .chars()
            .filter(char::is_ascii_alphabetic)
            .map(|char| char.to_ascii_lowercase())
            .collect();
        match plain.as_str() {
            "inprogress" => Self::InProgress,
            "completed" | "done" => Self::Completed,
            "cancelled" | "canceled" => Self::Cancelled,
            _ => Self::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(todos: &Todos) -> Vec<(String, String)> {
        let plan = todos.plan();
        let entries = plan.entries.into_iter();
        entries
            .map(|entry| (entry.content, entry.status.to_string()))
            .collect()
    }

    fn rows(rows: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(a, b): &(&str, &str)| ((*a).to_owned(), (*b).to_owned());
        rows.iter().map(owned).collect()
    }

    #[test]
    fn lists_replace_and_merge() {
        let mut todos = Todos::default();
        let first = json!({ "todos": [
            { "id": "1", "content": "read", "status": "TODO_STATUS_IN_PROGRESS" },
            { "id": "2", "content": "write", "status": "TODO_STATUS_PENDING" },
            { "id": "3", "title": "test", "status": "inProgress" },
        ] });
        assert!(todos.take(&first, false));
        let change = json!({ "todos": [
            { "id": "1", "status": "completed" },
            { "id": "3", "status": "TODO_STATUS_CANCELLED" },
            { "id": "4", "content": "ship" },
            { "id": "5", "status": "pending" },
        ] });
        assert!(todos.take(&change, true));
        assert_eq!(
            shown(&todos),
            rows(&[
                ("read", "completed"),
                ("write", "pending"),
                ("test (cancelled)", "completed"),
                ("ship", "pending"),
            ])
        );
        assert!(todos.take(
            &json!({ "todos": [{ "content": "alone", "status": 3 }] }),
            false
        ));
        assert_eq!(shown(&todos), rows(&[("alone", "pending")]));
        assert!(!todos.take(&json!({}), false));
        assert_eq!(shown(&todos), rows(&[("alone", "pending")]));
    }
}
