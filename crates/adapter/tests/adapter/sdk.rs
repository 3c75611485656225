//! The client of the published SDK completes turns with the adapter.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::kit::{Double, init, message, piece, result, tool};

/// Node and the SDK's directory; None, and a word of why, where npm cannot bring them.
fn sdk() -> Option<(String, String)> {
    let install = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/real/install");
    let output = Command::new(install)
        .arg("sdk")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let words = String::from_utf8(output.stdout).unwrap();
    let mut words = words.lines();
    match (output.status.success(), words.next(), words.next()) {
        (true, Some(node), Some(file)) => {
            let dir = Path::new(file).parent().unwrap();
            Some((node.to_owned(), dir.to_str().unwrap().to_owned()))
        }
        _ => {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            #[expect(
                clippy::print_stderr,
                reason = "the only way a test can say it was skipped"
            )]
            {
                eprintln!("skipped: {why}");
            }
            None
        }
    }
}

#[test]
fn the_client_of_the_sdk_completes_turns() {
    let Some((node, sdk)) = sdk() else { return };
    let shell = json!({ "args": { "command": "ls" }, "result": { "success": { "exitCode": 0, "stdout": "a\n" } } });
    let todos =
        json!({ "todos": [{ "id": "1", "content": "read", "status": "TODO_STATUS_PENDING" }] });
    let edit = json!({ "args": { "path": "a" }, "result": { "success": { "path": "a", "beforeFullFileContent": "1", "afterFullFileContent": "2" } } });
    let events = [
        init("s"),
        json!({ "type": "thinking", "subtype": "delta", "text": "hm" }),
        piece("Hel"),
        piece("lo"),
        tool(
            "started",
            "c1",
            json!({ "shellToolCall": { "args": { "command": "ls" } } }),
        ),
        tool("completed", "c1", json!({ "shellToolCall": shell })),
        tool(
            "started",
            "c2",
            json!({ "updateTodosToolCall": { "args": todos } }),
        ),
        tool("completed", "c3", json!({ "editToolCall": edit })),
        message("Hello"),
        result("Hello"),
    ];
    let double = Double::empty();
    let file = |events: &[Value]| {
        let lines: Vec<String> = events.iter().map(|event| format!("{event}\n")).collect();
        double.file(lines.concat().as_bytes())
    };
    let (whole, hanging) = (file(&events), file(&[piece("hanging")]));
    double.turns(&format!(
        "for last do :; done
case $last in
fail*) echo 'no credits left' >&2; exit 1 ;;
hang*) say {hanging}; sleep 1000 ;;
*) say {whole} ;;
esac"
    ));
    let output = crate::kit::command(&double)
        .get_envs()
        .fold(Command::new(node), |mut node, (key, value)| {
            match value {
                Some(value) => node.env(key, value),
                None => node.env_remove(key),
            };
            node
        })
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk/client.mjs"))
        .args([&sdk, &double.work(), env!("CARGO_BIN_EXE_cursor-agent-acp")])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["agent"], "cursor-agent-acp");
    assert_eq!(report["options"], json!(["mode", "model"]));
    assert_eq!(report["model"], "gpt-5");
    assert_eq!(
        report["stops"],
        json!(["end_turn", "cancelled", "end_turn"])
    );
    assert_eq!(report["failure"], json!([-32603, "no credits left"]));
    assert_eq!(report["listed"], json!([true]));
    assert_eq!(report["code"], 0);
    assert_eq!(
        report["kinds"],
        json!([
            "agent_message_chunk",
            "agent_thought_chunk",
            "config_option_update",
            "plan",
            "session_info_update",
            "tool_call",
            "tool_call_update",
            "user_message_chunk",
        ])
    );
    assert!(report["checked"].as_u64().unwrap() > 40, "{report}");
}
