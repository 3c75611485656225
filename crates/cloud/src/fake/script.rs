//! What the fake's agents do: the events of a run, made from its prompt.

use serde_json::{Value, json};

/// How a run ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Well, with these last words.
    Finished(String),
    /// With this reason.
    Failed(String),
    /// Not by itself.
    Never,
}

/// A run: its updates, then its end.
#[derive(Debug, Clone)]
pub struct Script {
    /// `interaction_update`s, oldest first.
    pub updates: Vec<Value>,
    /// How it ends.
    pub end: End,
    /// Whether it changes something, so that there is a branch.
    pub changes: bool,
}

fn tool(id: &str, kind: &str, args: &Value, value: &Value) -> [Value; 2] {
    let call = json!({ "type": kind, "args": args });
    let result =
        json!({ "type": kind, "args": args, "result": { "status": "success", "value": value } });
    [
        json!({ "type": "tool-call-started", "callId": id, "modelCallId": id, "toolCall": call }),
        json!({ "type": "tool-call-completed", "callId": id, "modelCallId": id, "toolCall": result }),
    ]
}

fn words(text: &str) -> Vec<Value> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let at = rest
            .char_indices()
            .skip(9)
            .find(|(_, c)| *c == ' ')
            .map_or(rest.len(), |(at, _)| at);
        pieces.push(json!({ "type": "text-delta", "text": &rest[..at] }));
        rest = &rest[at..];
    }
    pieces
}

/// What an agent makes of a prompt. Words in it choose: `fail`, `hang`, `question`, `ask`.
#[must_use]
pub fn play(agent: &str, prompt: &str, mode: Option<&str>) -> Script {
    let mut updates = vec![json!({
        "type": "user-message-appended",
        "userMessage": { "type": "user_message", "session_id": agent, "text": prompt },
    })];
    let lower = prompt.to_lowercase();
    let says = |wanted: &str| {
        lower
            .split(|c: char| !c.is_alphanumeric())
            .any(|word| word == wanted)
    };
    updates.push(json!({ "type": "step-started", "stepId": 1 }));
    updates.push(json!({ "type": "thinking-delta", "text": "I'll look at the project first — what is there, " }));
    updates.push(json!({ "type": "thinking-delta", "text": "and what the tests say." }));
    updates.push(json!({ "type": "thinking-completed", "thinkingDurationMs": 1200 }));
    updates.extend(words(
        "I'll look at how lists are parsed first, “naïvely” or not: it says ✓ either way. ",
    ));
    updates.push(json!({ "type": "token-delta", "tokens": 24 }));
    let read = json!({ "path": "/workspace/src/parser.rs" });
    let source = "fn list(&mut self) -> Result<Vec<Expr>> {\n    let item = self.expr()?;\n}\n";
    updates.extend(tool(
        "call-read",
        "read",
        &read,
        &json!({ "content": source, "totalLines": 3, "fileSize": source.len() }),
    ));
    if says("fail") {
        updates.extend(words("That is as far as I get."));
        let end = End::Failed("The quota of this month is used up".to_owned());
        return Script {
            updates,
            end,
            changes: false,
        };
    }
    if mode == Some("plan") {
        updates.extend(tool(
            "call-plan",
            "createPlan",
            &json!({ "name": "Trailing commas", "plan": "1. Parse\n2. Test", "todos": [], "isProject": false }),
            &json!({}),
        ));
        updates.extend(words("The plan is ready: say the word and I'll start."));
        updates.push(json!({ "type": "turn-ended", "usage": usage() }));
        let end = End::Finished("The plan is ready: say the word and I'll start.".to_owned());
        return Script {
            updates,
            end,
            changes: false,
        };
    }
    updates.extend(tool(
        "call-edit",
        "edit",
        &json!({ "path": "/workspace/src/parser.rs" }),
        &json!({
            "linesAdded": 1,
            "linesRemoved": 0,
            "diffString": "@@ -1,3 +1,4 @@\n fn list(&mut self) -> Result<Vec<Expr>> {\n     let item = self.expr()?;\n+    self.eat(Token::Comma);\n }\n",
        }),
    ));
    let command = json!({ "command": "cargo test parser", "workingDirectory": "/workspace" });
    let output = json!({ "exitCode": 0, "signal": "", "stdout": "test parser ... ok\n", "stderr": "", "executionTime": 2400 });
    updates.extend(tool("call-shell", "shell", &command, &output));
    if says("ask") {
        let question = json!({ "id": "store", "prompt": "Which store should sessions use?", "options": [
            { "id": "sqlite", "label": "SQLite" }, { "id": "lines", "label": "JSON lines" },
        ] });
        let args = json!({ "title": "Sessions", "questions": [question] });
        let [asked, _] = tool("call-ask", "askQuestion", &args, &Value::Null);
        updates.push(asked);
        return Script {
            updates,
            end: End::Never,
            changes: false,
        };
    }
    if says("hang") {
        return Script {
            updates,
            end: End::Never,
            changes: false,
        };
    }
    let last = if says("question") {
        "Which store should sessions use: SQLite or JSON lines?"
    } else {
        "Lists accept a trailing comma now. The tests pass."
    };
    updates.extend(words(last));
    updates.push(json!({ "type": "step-completed", "stepId": 1, "stepDurationMs": 4000 }));
    updates.push(json!({ "type": "turn-ended", "usage": usage() }));
    Script {
        updates,
        end: End::Finished(last.to_owned()),
        changes: true,
    }
}

fn usage() -> Value {
    json!({ "inputTokens": 12000, "outputTokens": 800, "cacheReadTokens": 9000, "cacheWriteTokens": 500 })
}

/// The same in the older family of events: its name and its data.
#[must_use]
pub fn older(update: &Value) -> Option<(&'static str, Value)> {
    let kind = update.get("type")?.as_str()?;
    let call = update.get("toolCall");
    let name = call.and_then(|call| call.get("type")).cloned();
    match kind {
        "text-delta" => Some(("assistant", json!({ "text": update["text"] }))),
        "thinking-delta" => Some(("thinking", json!({ "text": update["text"] }))),
        "tool-call-started" => {
            let data = json!({ "callId": update["callId"], "name": name, "status": "running", "args": call?["args"] });
            Some(("tool_call", data))
        }
        "tool-call-completed" => {
            let data = json!({
                "callId": update["callId"], "name": name, "status": "completed",
                "args": call?["args"], "result": call?["result"],
            });
            Some(("tool_call", data))
        }
        _ => None,
    }
}
