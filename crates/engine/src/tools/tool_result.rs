//! What a tool call's `rawOutput` says: texts to show, how the command ended, whether it was allowed to run at all.

use serde_json::Value;

use crate::tools::tool_call::CommandExit;

/// A raw output as far as a person wants to see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolResult {
    /// Texts in the order they are shown: what was read or printed, errors, counts.
    pub parts: Vec<String>,
    /// How its command ended.
    pub exit: Option<CommandExit>,
    /// The agent was not allowed to do it.
    pub denied: bool,
    /// Its text repeats what the call shows anyway, in most agents: it counts only where nothing else is shown.
    pub spare: bool,
}

/// Reads a raw output. Cursor's are `{content}` of a read, `{stdout, stderr, exitCode}` of a command,
/// `{totalMatches, truncated}` of a search; an MCP tool's `content` is a list of blocks. Others are `{output}`, Codex's
/// `{aggregated_output, formatted_output}`, or a text.
pub fn read(output: &Value) -> ToolResult {
    if let Some(text) = output.as_str() {
        return ToolResult {
            parts: nonempty(text),
            spare: true,
            ..ToolResult::default()
        };
    }
    let mut result = ToolResult::default();
    for key in ["rejected", "permissionDenied", "denied"] {
        match output.get(key) {
            Some(Value::Object(why)) => {
                result.denied = true;
                let reason = why.get("reason").or_else(|| why.get("error"));
                result.parts.extend(nonempty(text_of(reason)));
            }
            Some(Value::Bool(true)) => result.denied = true,
            _ => {}
        }
    }
    // The headless CLI wraps what came out by how it went.
    let wrapped = ["success", "failure"]
        .iter()
        .find_map(|key| output.get(*key).filter(|inner| inner.is_object()));
    let output = wrapped.unwrap_or(output);
    let code = number(output, &["exitCode", "exit_code"]);
    let signal = output.get("signal").and_then(Value::as_str);
    if code.is_some() || signal.is_some() {
        result.exit = Some(CommandExit {
            code,
            signal: signal.filter(|name| !name.is_empty()).map(str::to_owned),
        });
    }
    for key in ["stdout", "stderr"] {
        result.parts.extend(nonempty(text_of(output.get(key))));
    }
    match output.get("content") {
        Some(Value::Array(blocks)) => {
            for block in blocks {
                let text = block.as_str().unwrap_or_else(|| text_of(block.get("text")));
                result.parts.extend(nonempty(text));
            }
        }
        content => result.parts.extend(nonempty(text_of(content))),
    }
    result.parts.extend(counted(output));
    if result.parts.is_empty() {
        let text = |key: &&str| text_of(output.get(*key));
        let spare = ["error", "output", "aggregated_output", "formatted_output"];
        result.parts = spare
            .iter()
            .map(text)
            .find(|text| !text.is_empty())
            .map_or_else(Vec::new, nonempty);
        result.spare = !result.parts.is_empty();
    }
    result
}

/// What a search found, in words.
fn counted(output: &Value) -> Option<String> {
    let more = output.get("truncated").and_then(Value::as_bool) == Some(true);
    let (count, one, many) = [
        ("totalMatches", "match", "matches"),
        ("totalFiles", "file", "files"),
    ]
    .into_iter()
    .find_map(|(key, one, many)| Some((number(output, &[key])?, one, many)))?;
    let what = if count == 1 { one } else { many };
    let count = if count == 0 {
        "no".to_owned()
    } else {
        count.to_string()
    };
    let cut = if more { ", not all of them shown" } else { "" };
    Some(format!("{count} {what}{cut}"))
}

fn number(output: &Value, keys: &[&str]) -> Option<i64> {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "a whole number that was written as 1.0"
    )]
    let whole = |value: &Value| {
        value.as_i64().or_else(|| {
            value
                .as_f64()
                .filter(|n| n.fract() == 0.0)
                .map(|n| n as i64)
        })
    };
    keys.iter().find_map(|key| output.get(*key).and_then(whole))
}

fn text_of(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

fn nonempty(text: &str) -> Vec<String> {
    if text.is_empty() {
        Vec::new()
    } else {
        vec![text.to_owned()]
    }
}

/// The parts one below the other, each beginning on a line of its own.
pub fn joined<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let mut out = String::new();
    for part in parts {
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(part);
    }
    out
}

/// Whether a text has these lines in it, one after the other and whole.
pub fn has_lines(text: &str, lines: &str) -> bool {
    let lines = lines.trim_matches(['\r', '\n']).trim_end();
    if lines.is_empty() {
        return true;
    }
    let mut from = 0;
    while let Some(found) = text.get(from..).and_then(|rest| rest.find(lines)) {
        let (start, end) = (from + found, from + found + lines.len());
        let begins = start == 0 || text.as_bytes().get(start - 1) == Some(&b'\n');
        let rest = text.get(end..).unwrap_or_default();
        let ends = rest
            .split('\n')
            .next()
            .is_none_or(|line| line.trim().is_empty());
        if begins && ends {
            return true;
        }
        from = end.max(start + 1);
        while !text.is_char_boundary(from) {
            from += 1;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_raw_output_says() {
        let exit = |code: i64| {
            Some(CommandExit {
                code: Some(code),
                signal: None,
            })
        };
        let table: [(Value, &[&str], Option<CommandExit>); 26] = [
            (json!({ "content": "a\nb\n" }), &["a\nb\n"], None),
            (json!({ "content": "" }), &[], None),
            (
                json!({ "content": [{ "type": "text", "text": "a" }, "b", { "type": "image" }] }),
                &["a", "b"],
                None,
            ),
            (
                json!({ "exitCode": 1, "stdout": "o\n", "stderr": "e\n" }),
                &["o\n", "e\n"],
                exit(1),
            ),
            (
                json!({ "exitCode": 0, "stdout": "", "stderr": "" }),
                &[],
                exit(0),
            ),
            (json!({ "exitCode": 2.0 }), &[], exit(2)),
            (json!({ "exit_code": 3, "stdout": "o" }), &["o"], exit(3)),
            (json!({ "exitCode": null, "stdout": "o" }), &["o"], None),
            (
                json!({ "signal": "SIGKILL" }),
                &[],
                Some(CommandExit {
                    code: None,
                    signal: Some("SIGKILL".to_owned()),
                }),
            ),
            (
                json!({ "totalMatches": 12, "truncated": false }),
                &["12 matches"],
                None,
            ),
            (json!({ "totalMatches": 1 }), &["1 match"], None),
            (
                json!({ "totalMatches": 0, "truncated": false }),
                &["no matches"],
                None,
            ),
            (
                json!({ "totalMatches": 500, "truncated": true }),
                &["500 matches, not all of them shown"],
                None,
            ),
            (json!({ "totalFiles": 2 }), &["2 files"], None),
            (
                json!({ "content": "a.rs:1", "totalMatches": 1 }),
                &["a.rs:1", "1 match"],
                None,
            ),
            (
                json!({ "success": { "exitCode": 0, "stdout": "o" } }),
                &["o"],
                exit(0),
            ),
            (json!({ "error": "no such file" }), &["no such file"], None),
            (json!({ "output": "done", "metadata": {} }), &["done"], None),
            (
                json!({ "stdout": "", "aggregated_output": "all", "formatted_output": "all", "exit_code": 0 }),
                &["all"],
                exit(0),
            ),
            (
                json!({ "aggregated_output": "", "formatted_output": "f" }),
                &["f"],
                None,
            ),
            (json!("text"), &["text"], None),
            (json!({}), &[], None),
            (json!(null), &[], None),
            (json!([1, 2]), &[], None),
            (json!({ "totalMatches": "many" }), &[], None),
            (json!({ "stdout": 5, "content": { "a": 1 } }), &[], None),
        ];
        for (output, parts, exit) in table {
            let read = read(&output);
            assert_eq!(
                (read.parts.as_slice(), read.exit),
                (
                    parts
                        .iter()
                        .map(|p| (*p).to_owned())
                        .collect::<Vec<_>>()
                        .as_slice(),
                    exit
                ),
                "{output}"
            );
            assert!(!read.denied, "{output}");
        }
    }

    #[test]
    fn what_was_not_allowed_says_so() {
        for (output, parts) in [
            (
                json!({ "rejected": { "command": "rm", "reason": "in the denylist" } }),
                vec!["in the denylist".to_owned()],
            ),
            (
                json!({ "permissionDenied": { "error": "no" } }),
                vec!["no".to_owned()],
            ),
            (json!({ "rejected": true }), vec![]),
        ] {
            let read = read(&output);
            assert!(read.denied, "{output}");
            assert_eq!(read.parts, parts);
        }
        assert!(!read(&json!({ "rejected": false, "exitCode": 0 })).denied);
    }

    #[test]
    fn lines_are_found_whole() {
        for (text, lines, found) in [
            ("a\nb\nc", "b", true),
            ("a\nb\nc", "b\nc\n", true),
            ("```\nout\n```", "out\n", true),
            ("exit code 1", "1", false),
            ("banana\na", "a", true),
            ("ab\n", "a", false),
            ("a  \nb", "a", true),
            ("é\nb", "b", true),
            ("éb", "b", false),
            ("x", "", true),
            ("", "x", false),
        ] {
            assert_eq!(has_lines(text, lines), found, "{text:?} {lines:?}");
        }
        assert_eq!(joined(["a", "b\n", "c"].into_iter()), "a\nb\nc");
    }
}
