//! The list of todos: one per session, fed by Cursor's `update_todos` and by ACP's `plan`.

use serde::Serialize;

/// One thing to do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Todo {
    /// The agent's id, or its place in the list when it gave none.
    pub id: String,
    /// What is to be done.
    pub content: String,
    /// `pending`, `in_progress`, `completed`, `cancelled`, or what the agent said.
    pub status: String,
    /// `high`, `medium`, `low`; ACP's plans have it, Cursor's todos do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
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
        if todo.id.is_empty() {
            // What has no id is the one of the list that says the same, else a new one that goes by its place.
            let known = list.get(..before).unwrap_or_default();
            let same = known.iter().find(|known| known.content == todo.content);
            todo.id = same.map_or_else(|| free_id(list, &named), |known| known.id.clone());
        }
        if let Some(known) = list.iter_mut().find(|known| known.id == todo.id) {
            if !todo.content.is_empty() {
                known.content = todo.content;
            }
            if !todo.status.is_empty() {
                known.status = todo.status;
            }
            continue;
        }
        if let Some(before) = old.iter().find(|before| before.id == todo.id)
            && todo.content.is_empty()
        {
            todo.content.clone_from(&before.content);
        }
        if todo.status.is_empty() {
            "pending".clone_into(&mut todo.status);
        }
        list.push(todo);
    }
}

/// The number of the next place that is nobody's id.
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
        let mark = match todo.status.as_str() {
            "completed" => "x",
            "in_progress" => "~",
            "cancelled" => "-",
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
    use super::*;

    fn todo(id: &str, content: &str, status: &str) -> Todo {
        Todo {
            id: id.into(),
            content: content.into(),
            status: status.into(),
            priority: None,
        }
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
            list,
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
            list,
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
            list,
            [todo("1", "same", "pending"), todo("2", "same", "completed")]
        );
        // An id of its own is nobody's place.
        update(
            &mut list,
            vec![todo("2", "one", "pending"), todo("", "two", "pending")],
            false,
        );
        assert_eq!(
            list,
            [todo("2", "one", "pending"), todo("3", "two", "pending")]
        );
    }
}
