//! What a cloud agent does, as an ACP agent would tell it. Pure.

use cloud::stream::{ToolCall, ToolStage};
use cloud::{Run, RunStatus, Update};
use serde_json::{Value, json};

/// The root of the repository on the agent's machine: paths are shown without it.
const WORKSPACE: &str = "/workspace/";

/// Updates of a session for an update of a run. `prompted`: the client has shown the user's words itself.
pub fn of_update(run: &str, update: &Update, prompted: bool) -> Vec<Value> {
    let chunk = |kind: &str, text: &str| json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } });
    match update {
        Update::Text(text) if !text.is_empty() => vec![chunk("agent_message_chunk", text)],
        Update::Thinking(text) if !text.is_empty() => vec![chunk("agent_thought_chunk", text)],
        Update::UserMessage(text) if !prompted && !text.is_empty() => {
            vec![chunk("user_message_chunk", text)]
        }
        Update::Summary(text) if !text.is_empty() => vec![chunk(
            "agent_thought_chunk",
            &format!("Summary of the conversation so far:\n{text}\n"),
        )],
        Update::Tool { id, call, stage } => tool(&call_id(run, id), call, *stage),
        _ => Vec::new(),
    }
}

/// Calls of different runs may have the same id.
fn call_id(run: &str, id: &str) -> String {
    let short: String = run.trim_start_matches("run-").chars().take(8).collect();
    format!("{short}-{id}")
}

/// What a person said, in a conversation whose events are gone.
pub fn of_message(kind: &str, text: &str) -> Value {
    let kind = if kind == "user_message" {
        "user_message_chunk"
    } else {
        "agent_message_chunk"
    };
    json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } })
}

fn tool(id: &str, call: &ToolCall, stage: ToolStage) -> Vec<Value> {
    if call.kind == "updateTodos" {
        return plan(call).into_iter().collect();
    }
    let (title, kind) = title(call);
    let failed = call
        .result
        .as_ref()
        .and_then(|result| result["status"].as_str())
        == Some("error");
    let exit = call
        .result
        .as_ref()
        .and_then(|result| result["value"]["exitCode"].as_i64());
    let status = match stage {
        ToolStage::Partial => "pending",
        ToolStage::Started => "in_progress",
        ToolStage::Completed if failed || exit.is_some_and(|code| code != 0) => "failed",
        ToolStage::Completed => "completed",
    };
    let mut update = json!({
        // An upsert either way: the first of a call may be any of its stages.
        "sessionUpdate": if stage == ToolStage::Completed { "tool_call_update" } else { "tool_call" },
        "toolCallId": id,
        "title": title,
        "kind": kind,
        "status": status,
    });
    if !call.args.is_null() {
        update["rawInput"] = call.args.clone();
    }
    if let Some(path) = path(call) {
        update["locations"] = json!([{ "path": path }]);
    }
    if call.is_question() && call.result.is_none() {
        let text = choices(call);
        update["content"] =
            json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
    }
    if let Some(result) = &call.result {
        let content = content(call, result);
        if !content.is_empty() {
            update["content"] = json!(content);
        }
        update["rawOutput"] = result.clone();
    }
    vec![update]
}

fn plan(call: &ToolCall) -> Option<Value> {
    let todos = call.args["todos"].as_array()?;
    let entries: Vec<Value> = todos
        .iter()
        .map(|todo| {
            let status = match todo["status"].as_str().unwrap_or_default() {
                "inProgress" | "in_progress" => "in_progress",
                "completed" | "cancelled" => "completed",
                _ => "pending",
            };
            json!({ "content": todo["content"], "priority": "medium", "status": status })
        })
        .collect();
    Some(json!({ "sessionUpdate": "plan", "entries": entries }))
}

fn path(call: &ToolCall) -> Option<&str> {
    ["path", "targetFile", "filePath"]
        .iter()
        .find_map(|name| call.args[*name].as_str())
}

fn title(call: &ToolCall) -> (String, &'static str) {
    let shown = |text: &str| text.strip_prefix(WORKSPACE).unwrap_or(text).to_owned();
    let file = path(call).map(shown).unwrap_or_default();
    let arg = |name: &str| call.args[name].as_str().unwrap_or_default().to_owned();
    let named = |verb: &str, what: &str| {
        if what.is_empty() {
            verb.to_owned()
        } else {
            format!("{verb} {what}")
        }
    };
    match call.kind.as_str() {
        "shell" => (format!("`{}`", arg("command")), "execute"),
        "read" => (named("Read", &file), "read"),
        "edit" => (named("Edit", &file), "edit"),
        "write" => (named("Write", &file), "edit"),
        "delete" => (named("Delete", &file), "delete"),
        "ls" => (named("List", &file), "search"),
        "glob" => (named("Find", &arg("globPattern")), "search"),
        "grep" => (named("Search for", &arg("pattern")), "search"),
        "semSearch" => (named("Search for", &arg("query")), "search"),
        "readLints" => ("Read diagnostics".to_owned(), "read"),
        "task" => (named("Task:", &arg("description")), "think"),
        _ if call.is_question() => (named("Ask:", &first_line(&question(call))), "think"),
        "createPlan" => (named("Plan:", &arg("name")), "think"),
        "mcp" => (named("Call", &arg("toolName")), "other"),
        "generateImage" => ("Draw an image".to_owned(), "other"),
        "recordScreen" => ("Record the screen".to_owned(), "other"),
        "" => ("Tool".to_owned(), "other"),
        other => (other.to_owned(), "other"),
    }
}

/// What a tool call asks the user.
pub fn question(call: &ToolCall) -> String {
    let questions = call.args["questions"].as_array();
    let prompts: Vec<&str> = questions
        .into_iter()
        .flatten()
        .filter_map(|question| question["prompt"].as_str())
        .collect();
    if prompts.is_empty() {
        return call.args["title"].as_str().unwrap_or_default().to_owned();
    }
    prompts.join("\n")
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// The questions with their choices, as a list.
fn choices(call: &ToolCall) -> String {
    let mut lines: Vec<String> = Vec::new();
    for question in call.args["questions"].as_array().into_iter().flatten() {
        lines.push(question["prompt"].as_str().unwrap_or_default().to_owned());
        for option in question["options"].as_array().into_iter().flatten() {
            lines.push(format!(
                "- {}",
                option["label"].as_str().unwrap_or_default()
            ));
        }
    }
    lines.join("\n")
}

fn content(call: &ToolCall, result: &Value) -> Vec<Value> {
    let text =
        |text: &str| json!({ "type": "content", "content": { "type": "text", "text": text } });
    if result["status"] == "error" {
        let why = match &result["error"] {
            Value::String(why) => why.clone(),
            Value::Null => "It failed".to_owned(),
            other => other["message"]
                .as_str()
                .or(other["error"].as_str())
                .map_or_else(|| other.to_string(), str::to_owned),
        };
        return vec![text(&why)];
    }
    let value = &result["value"];
    match call.kind.as_str() {
        "shell" => {
            let output = format!("{}{}", value["stdout"].as_str().unwrap_or_default(), value["stderr"].as_str().unwrap_or_default());
            if output.is_empty() { Vec::new() } else { vec![text(&output)] }
        }
        "edit" => value["diffString"]
            .as_str()
            .map(|diff| hunks(diff).into_iter().map(|(old, new)| {
                json!({ "type": "diff", "path": path(call).unwrap_or_default(), "oldText": old, "newText": new })
            }).collect())
            .unwrap_or_default(),
        "write" => vec![json!({
            "type": "diff", "path": path(call).unwrap_or_default(), "oldText": Value::Null,
            "newText": call.args["fileText"].as_str().unwrap_or_default(),
        })],
        "createPlan" => vec![text(call.args["plan"].as_str().unwrap_or_default())],
        "task" => value["result"].as_str().or(value["finalMessage"].as_str()).map(text).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The old and the new text of each hunk of a unified diff.
fn hunks(diff: &str) -> Vec<(String, String)> {
    let mut hunks: Vec<(String, String)> = Vec::new();
    for line in diff.lines() {
        if line.starts_with("@@") {
            hunks.push((String::new(), String::new()));
            continue;
        }
        if (line.starts_with("--- ") || line.starts_with("+++ ")) && hunks.is_empty() {
            continue;
        }
        if hunks.is_empty() {
            hunks.push((String::new(), String::new()));
        }
        let Some((old, new)) = hunks.last_mut() else {
            continue;
        };
        let (sign, rest) = match line.chars().next() {
            Some(sign @ ('+' | '-' | ' ')) => (sign, &line[1..]),
            Some('\\') => continue,
            _ => (' ', line),
        };
        if sign != '+' {
            old.push_str(rest);
            old.push('\n');
        }
        if sign != '-' {
            new.push_str(rest);
            new.push('\n');
        }
    }
    hunks.retain(|(old, new)| old != new);
    hunks
}

/// How a run ended, in words, unless it ended well.
pub fn ending(run: &Run) -> Option<String> {
    match &run.status {
        RunStatus::Finished | RunStatus::Cancelled => None,
        RunStatus::Error => Some(
            run.failure()
                .unwrap_or_else(|| "The run failed without giving a reason".to_owned()),
        ),
        RunStatus::Expired => Some("The run took too long and was stopped".to_owned()),
        other => Some(format!("The run ended: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diffs_become_old_and_new_text() {
        let diff = "--- a\n+++ b\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n@@ -9 +9,2 @@\n x\n+y\n\\ No newline at end of file\n";
        let expected = vec![
            ("a\nb\n".to_owned(), "a\nc\n".to_owned()),
            ("x\n".to_owned(), "x\ny\n".to_owned()),
        ];
        assert_eq!(hunks(diff), expected);
    }

    #[test]
    fn calls_of_two_runs_do_not_mix() {
        assert_ne!(
            call_id("run-aaaaaaaa-1", "call"),
            call_id("run-bbbbbbbb-1", "call")
        );
    }

    #[test]
    fn a_failed_command_is_failed() {
        let call = ToolCall {
            kind: "shell".to_owned(),
            args: json!({ "command": "false" }),
            result: Some(
                json!({ "status": "success", "value": { "exitCode": 1, "stdout": "", "stderr": "no" } }),
            ),
        };
        let update = &tool("1", &call, ToolStage::Completed)[0];
        assert_eq!(
            (&update["status"], &update["title"]),
            (&json!("failed"), &json!("`false`"))
        );
        assert_eq!(update["content"][0]["content"]["text"], "no");
    }
}
