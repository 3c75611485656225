//! The list of todos: one per session, fed by Cursor's `update_todos`, by tool calls that write it, and by ACP's `plan`.

use acp::FromValue;
use acp::types::cursor::{TodoStatus, UpdateTodos};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing to do.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Todo {
    /// The agent's id, or its place in the list when it gave none.
    pub id: String,
    /// What is to be done.
    pub content: String,
    /// How far it is.
    #[cfg_attr(test, schemars(with = "String", extend("x-lua" = crate::contract::open(TodoStatus::NAMES))))]
    pub status: TodoStatus,
    /// `high`, `medium`, `low`; ACP's plans have it, Cursor's todos do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// Its id is its place: the agent gave none.
    #[serde(skip)]
    pub placed: bool,
}

/// The todos a tool call's input sets. Cursor's call says `_toolName: "updateTodos"`; those of other agents hold nothing
/// but the list. A plan's todos are none until it is accepted.
pub fn of_input(input: &Value) -> Option<UpdateTodos> {
    let fields = input.as_object()?;
    let name = fields.get("_toolName").and_then(Value::as_str);
    let is_update = match name {
        Some(name) => {
            let plain = name.to_ascii_lowercase().replace('_', "");
            let plain = plain.strip_suffix("toolcall").unwrap_or(&plain).to_owned();
            matches!(plain.as_str(), "updatetodos" | "todowrite" | "writetodos")
        }
        None => fields.keys().all(|key| key == "todos" || key == "merge"),
    };
    let list = fields.get("todos").filter(|_| is_update)?.as_array()?;
    let update = UpdateTodos::from_value(input.clone()).ok()?;
    // A list of something else is no list of todos.
    (list.is_empty() || !update.todos.is_empty()).then_some(update)
}

/// Takes an update: into the list by id, or in its place. An entry without content keeps what the list says of it.
pub fn update(list: &mut Vec<Todo>, news: Vec<Todo>, merge: bool) {
    let old = if merge {
        Vec::new()
    } else {
        std::mem::take(list)
    };
    let before = list.len();
    let named: Vec<String> = news.iter().map(|todo| todo.id.clone()).collect();
    for mut todo in news {
        if !todo.id.is_empty() && list.iter().all(|known| known.id != todo.id) {
            // The same todo, told before by a way that gives no ids.
            let same = |known: &&mut Todo| known.placed && known.content == todo.content;
            if let Some(known) = list.iter_mut().find(same) {
                known.id.clone_from(&todo.id);
                known.placed = false;
            }
        }
        if todo.id.is_empty() {
            // What has no id is the one of the list that says the same, else a new one that goes by its place.
            let known = list.get(..before).unwrap_or_default();
            let same = known.iter().find(|known| known.content == todo.content);
            todo.placed = same.is_none_or(|known| known.placed);
            todo.id = same.map_or_else(|| free_id(list, &named), |known| known.id.clone());
        }
        if let Some(known) = list.iter_mut().find(|known| known.id == todo.id) {
            if !todo.content.is_empty() {
                known.content = todo.content;
            }
            if todo.status.is_said() {
                known.status = todo.status;
            }
            continue;
        }
        if let Some(before) = old.iter().find(|before| before.id == todo.id)
            && todo.content.is_empty()
        {
            todo.content.clone_from(&before.content);
        }
        if todo.content.is_empty() {
            // News of a todo that was never told of: there is nothing to show.
            continue;
        }
        if !todo.status.is_said() {
            todo.status = TodoStatus::Pending;
        }
        list.push(todo);
    }
}

/// The number of the next place that is no id.
fn free_id(list: &[Todo], named: &[String]) -> String {
    (list.len() + 1..)
        .map(|place| place.to_string())
        .find(|id| !named.contains(id) && list.iter().all(|known| known.id != *id))
        .unwrap_or_default()
}

/// The list as markdown check boxes, for those who read the transcript as text.
pub fn markdown(list: &[Todo]) -> String {
    let mut out = String::new();
    for todo in list {
        let mark = match todo.status {
            TodoStatus::Completed => "x",
            TodoStatus::InProgress => "~",
            TodoStatus::Cancelled => "-",
            _ => " ",
        };
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&format!("- [{mark}] {}", todo.content));
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn todo(id: &str, content: &str, status: &str) -> Todo {
        Todo {
            id: id.into(),
            content: content.into(),
            status: status.into(),
            ..Todo::default()
        }
    }

    /// The list, whoever gave the ids.
    fn bare(list: &[Todo]) -> Vec<Todo> {
        let mut list = list.to_vec();
        list.iter_mut().for_each(|todo| todo.placed = false);
        list
    }

    #[test]
    fn updates_merge_by_id_or_replace() {
        let mut list = Vec::new();
        update(
            &mut list,
            vec![todo("a", "one", "pending"), todo("b", "two", "")],
            true,
        );
        update(
            &mut list,
            vec![
                todo("b", "", "completed"),
                todo("c", "three", "in_progress"),
            ],
            true,
        );
        assert_eq!(
            bare(&list),
            [
                todo("a", "one", "pending"),
                todo("b", "two", "completed"),
                todo("c", "three", "in_progress")
            ]
        );
        update(
            &mut list,
            vec![todo("c", "", "completed"), todo("", "new", "pending")],
            false,
        );
        assert_eq!(
            bare(&list),
            [todo("c", "three", "completed"), todo("2", "new", "pending")]
        );
        assert_eq!(markdown(&list), "- [x] three\n- [ ] new");
        update(&mut list, Vec::new(), false);
        assert!(list.is_empty());
        update(
            &mut list,
            vec![todo("", "same", "pending"), todo("", "same", "completed")],
            false,
        );
        assert_eq!(
            bare(&list),
            [todo("1", "same", "pending"), todo("2", "same", "completed")]
        );
        // An id of its own is no place.
        update(
            &mut list,
            vec![todo("2", "one", "pending"), todo("", "two", "pending")],
            false,
        );
        assert_eq!(
            bare(&list),
            [todo("2", "one", "pending"), todo("3", "two", "pending")]
        );
    }

    #[test]
    fn the_same_update_by_another_way_changes_nothing() {
        let told = [todo("a", "one", "completed"), todo("b", "two", "pending")];
        // Without ids first, with ids first, and only what changed.
        for (first, then, merge) in [
            (
                vec![todo("", "one", "completed"), todo("", "two", "pending")],
                told.to_vec(),
                true,
            ),
            (
                told.to_vec(),
                vec![todo("", "one", "completed"), todo("", "two", "pending")],
                true,
            ),
            (told.to_vec(), told.to_vec(), false),
            (told.to_vec(), vec![todo("a", "", "completed")], true),
            // What was never told of has nothing to show.
            (told.to_vec(), vec![todo("z", "", "completed")], true),
        ] {
            let mut list = Vec::new();
            update(&mut list, first, false);
            update(&mut list, then, merge);
            assert_eq!(bare(&list), told);
        }
    }

    #[test]
    fn a_tool_call_that_sets_todos_is_known_by_its_input() {
        let one = json!([{ "id": "1", "content": "c", "status": "TODO_STATUS_IN_PROGRESS" }]);
        for (input, found) in [
            (
                json!({ "_toolName": "updateTodos", "todos": one, "merge": true }),
                true,
            ),
            (
                json!({ "_toolName": "update_todos", "todos": one, "x": 1 }),
                true,
            ),
            (
                json!({ "_toolName": "updateTodosToolCall", "todos": one }),
                true,
            ),
            (json!({ "_toolName": "todo_write", "todos": one }), true),
            (json!({ "_toolName": "updateTodos", "todos": [] }), true),
            (json!({ "todos": one }), true),
            (json!({ "todos": one, "merge": false }), true),
            (json!({ "_toolName": "updateTodos" }), false),
            (
                json!({ "_toolName": "updateTodos", "todos": "soon" }),
                false,
            ),
            (
                json!({ "_toolName": "createPlan", "todos": one, "plan": "p" }),
                false,
            ),
            (json!({ "todos": one, "plan": "p" }), false),
            (json!({ "todos": [1, 2] }), false),
            (json!({}), false),
            (json!("todos"), false),
        ] {
            let update = of_input(&input);
            assert_eq!(update.is_some(), found, "{input}");
            if let Some(todo) = update.as_ref().and_then(|update| update.todos.first()) {
                let status = todo.status.as_ref().map(ToString::to_string);
                assert_eq!(status.as_deref(), Some("in_progress"));
            }
        }
    }
}
