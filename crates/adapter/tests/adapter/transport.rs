//! The transport: one line for each message, stdout for messages only, nothing lost or reordered.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::{Value, json};

use crate::kit::{Client, Double, command, init, message, piece, result};

#[test]
fn help_and_version_are_printed() {
    let double = Double::empty();
    let print = |arg: &str| {
        let output = command(&double).arg(arg).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let help = print("--help");
    for option in [
        "--command PROGRAM",
        "--model ID",
        "--mode MODE",
        "--force",
        "--log FILE",
        "--help",
        "--version",
    ] {
        assert!(help.contains(option), "{option}");
    }
    assert_eq!(
        print("--version"),
        format!("cursor-agent-acp {}\n", env!("CARGO_PKG_VERSION"))
    );
    let output = command(&double).arg("--frob").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("unknown argument `--frob`")
    );
}

#[test]
fn input_before_it_is_ready_and_the_end_right_behind_are_answered() {
    let double = Double::running("exit 1");
    let mut child = command(&double).spawn().unwrap();
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": 1 } });
    let list = json!({ "jsonrpc": "2.0", "id": "two", "method": "session/list" });
    // The last line has no end of its own.
    std::io::Write::write_all(
        child.stdin.as_mut().unwrap(),
        format!("{hello}\n{list}").as_bytes(),
    )
    .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let lines: Vec<Value> = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(
        (&lines[0]["id"], &lines[1]["id"]),
        (&json!(1), &json!("two"))
    );
    assert_eq!(lines[0]["result"]["protocolVersion"], 1);
    assert_eq!(lines[1]["result"]["sessions"], json!([]));
}

#[test]
fn what_is_no_message_is_answered_and_it_goes_on() {
    let double = Double::running("exit 1");
    let mut client = Client::start(&double, &[]);
    client.write(b"this is not JSON\n");
    client.write(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\n");
    client.write(b"\n\r\n  \n");
    client.write(b"[1,2]\n{\"jsonrpc\":\"2.0\"}\n42\n\xff\xfe\n");
    client.write(b"{\"id\":{},\"method\":\"initialize\"}\n");
    client.initialize();
    let codes: Vec<i64> = client
        .seen
        .iter()
        .filter(|m| m["id"].is_null())
        .map(|m| m["error"]["code"].as_i64().unwrap())
        .collect();
    assert_eq!(codes[..2], [-32700, -32700]);
    assert!(
        codes[2..]
            .iter()
            .all(|code| [-32700, -32600].contains(code)),
        "{codes:?}"
    );
    assert!(codes.contains(&-32600));
    // Answers to nothing and unknown notifications are no reason to speak.
    let before = client.seen.len();
    client.write(b"{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}\n");
    client.notify("session/unheard_of", json!({}));
    client.notify("session/cancel", json!({ "sessionId": "nobody" }));
    client.initialize();
    assert_eq!(client.seen.len(), before + 1);
}

#[test]
fn messages_may_come_in_pieces() {
    let double = Double::running("exit 1");
    let mut client = Client::start(&double, &[]);
    let hello = "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"initialize\",\"params\":{\"clientInfo\":{\"name\":\"ü\",\"version\":\"1\"}}}\r\n";
    for byte in hello.as_bytes() {
        client.write(&[*byte]);
    }
    client.wait_for("the answer", |message| message["id"] == "x");
}

#[test]
fn torn_and_huge_lines_of_the_cli_are_whole_for_the_client() {
    let double = Double::empty();
    let big = "ä🙂\n\"\\".repeat(400_000);
    assert!(big.len() > 3_000_000);
    let before = "b".repeat(3_000_000);
    let edit = json!({ "type": "tool_call", "subtype": "completed", "call_id": "c1", "tool_call": { "editToolCall": {
        "args": { "path": "/w/a" }, "result": { "success": { "path": "/w/a", "beforeFullFileContent": before, "afterFullFileContent": "x" } } } } });
    let file = double.file(format!("{}\n{edit}\n", piece(&big)).as_bytes());
    let torn = piece(" end").to_string();
    let (left, right) = torn.split_at(torn.len() / 2);
    let (left, right) = (double.file(left.as_bytes()), double.file(right.as_bytes()));
    let last = double.file(result("").to_string().as_bytes());
    double.turns(&format!(
        "say {file}; say {left}; sleep 0.1; say {right}; echo; sleep 0.1; say {last}"
    ));
    let (mut client, session) = Client::in_session(&double, &[]);
    let answer = client.prompt(&session, "x").unwrap();
    assert_eq!(answer["stopReason"], "end_turn");
    assert!(client.text() == format!("{big} end"));
    let call = client.tool_call("c1");
    assert!(call["content"][0]["oldText"] == before.as_str());
}

#[test]
fn junk_of_the_cli_stays_out_of_the_protocol() {
    let double = Double::empty();
    let (first, last) = (
        double.file(format!("{}\n", init("s")).as_bytes()),
        double.file(format!("{}\n{}\n", message("fine"), result("fine")).as_bytes()),
    );
    double.turns(&format!(
        "echo 'Update available!'; say {first}; echo 'warning: slow' >&2; printf '\\377\\376\\n{{\"type\":\\n[]\\n{{}}\\n\"text\"\\n\\n'; say {last}"
    ));
    let (mut client, session) = Client::in_session(&double, &[]);
    client.prompt(&session, "x").unwrap();
    assert_eq!(client.text(), "fine");
    client.close();
    let (_, stderr) = client.end();
    // But not out of the log.
    assert!(
        stderr.contains("Update available!") && stderr.contains("warning: slow"),
        "{stderr}"
    );
}

#[test]
fn the_log_goes_to_its_file_and_nowhere_else() {
    let double = Double::empty();
    let file = double.file(format!("{}\n{}\n", message("fine"), result("fine")).as_bytes());
    double.turns(&format!("echo 'warning: slow' >&2; say {file}"));
    let log = double.home().join("adapter.log");
    std::fs::write(&log, "").unwrap();
    std::fs::set_permissions(&log, std::fs::Permissions::from_mode(0o644)).unwrap();
    let (mut client, session) = Client::in_session(&double, &["--log", log.to_str().unwrap()]);
    client.prompt(&session, "my secret prompt").unwrap();
    client.close();
    let (_, stderr) = client.end();
    assert_eq!(stderr, "");
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(
        text.contains("warning: slow") && text.contains("session/prompt"),
        "{text}"
    );
    assert!(!text.contains("my secret prompt"), "{text}");
    let mode = std::fs::metadata(&log).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let output = command(&double)
        .args(["--log", "/no/such/dir/log"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("/no/such/dir/log")
    );
}

#[test]
fn no_secret_is_in_the_log_or_in_an_error() {
    let token = format!("ghp_{}", "16C7e42F292c6912E7710c838347Ae178B4a");
    let key = "MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfnygWyF0sGQ";
    let double = Double::empty();
    let kind = "RSA PRIVATE";
    let said = [
        format!("token {token}"),
        "agent --api-key option-hunter-1 acp".to_owned(),
        "https://me:url-hunter-2@host/x".to_owned(),
        "it was given-hunter-3".to_owned(),
        format!("-----BEGIN {kind} KEY-----"),
        key.to_owned(),
        format!("-----END {kind} KEY-----"),
        // The cut of a long line falls into a token.
        format!("{} {token}", "x".repeat(1984)),
    ];
    let said = double.file(format!("{}\n", said.join("\n")).as_bytes());
    // On stdout, where no event is one, too.
    let junk = double.file(format!("{} {token}\n", "y".repeat(184)).as_bytes());
    double.turns(&format!("say {said} >&2; say {junk}; exit 3"));
    let log = double.home().join("adapter.log");
    let mut command = command(&double);
    command
        .args(["--log", log.to_str().unwrap()])
        .env("CURSOR_API_KEY", "given-hunter-3");
    let mut client = Client::spawn(&mut command);
    client.initialize();
    let session = client.new_session(&double.work());
    let error = client.prompt(&session, "x").unwrap_err().to_string();
    client.close();
    let (_, stderr) = client.end();
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("xxxx") && text.contains("yyyy"), "{text}");
    for place in [&text, &error, &stderr] {
        for secret in [&token[..20], "hunter", &key[..12]] {
            assert!(!place.contains(secret), "{secret} in {place}");
        }
    }
}

/// The memory a process has, in bytes.
#[cfg(target_os = "linux")]
fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        * 1024
}

#[cfg(target_os = "linux")]
#[test]
fn a_client_that_does_not_read_loses_nothing_and_costs_little() {
    use std::io::{BufRead, BufReader, Write};
    let double = Double::empty();
    // 60 MB of pieces, each with its number.
    let pieces = 6000;
    let filler = "x".repeat(10_000);
    let template = piece("NUMBER FILLER").to_string();
    let (before, after) = template.split_once("NUMBER FILLER").unwrap();
    let filler_file = double.file(filler.as_bytes());
    let last = double.file(format!("{}\n", result("")).as_bytes());
    double.turns(&format!(
        "f=$(say {filler_file}); n=0; while [ $n -lt {pieces} ]; do printf '%s%s %s%s\\n' '{before}' $n \"$f\" '{after}'; n=$((n + 1)); done; say {last}"
    ));
    let mut child = command(&double).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut read = || {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        serde_json::from_str::<Value>(&line).unwrap()
    };
    let mut send = |message: Value| {
        stdin.write_all(format!("{message}\n").as_bytes()).unwrap();
    };
    send(
        json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": { "cwd": double.work(), "mcpServers": [] } }),
    );
    let session = read()["result"]["sessionId"].clone();
    send(
        json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": { "sessionId": session, "prompt": [{ "type": "text", "text": "a b" }] } }),
    );
    // The CLI stands still when everything between it and us is full.
    let pid = double.pid(1);
    let waiting = || {
        let wchan = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let mut fields = wchan.rsplit_once(')').unwrap().1.split_whitespace();
        (
            fields.next().unwrap().to_owned(),
            fields.nth(10).unwrap().to_owned(),
        )
    };
    let mut still = 0;
    let mut seen = waiting();
    let until = std::time::Instant::now() + crate::kit::LIMIT;
    while still < 10 {
        assert!(
            std::time::Instant::now() < until,
            "the CLI is never held back"
        );
        std::thread::sleep(Duration::from_millis(50));
        let now = waiting();
        still = if now == seen && now.0 == "S" {
            still + 1
        } else {
            0
        };
        seen = now;
    }
    assert!(
        memory(child.id()) < 60_000_000,
        "{} bytes",
        memory(child.id())
    );
    // It still listens, and answers in its turn.
    send(json!({ "jsonrpc": "2.0", "id": 3, "method": "initialize", "params": {} }));
    let mut next = 0;
    let mut answers = Vec::new();
    while answers.len() < 2 {
        let message = read();
        if let Some(text) = message["params"]["update"]["content"]["text"].as_str() {
            let number: usize = text.split(' ').next().unwrap().parse().unwrap();
            assert_eq!(number, next, "in order");
            assert_eq!(text.len(), number.to_string().len() + 1 + filler.len());
            next += 1;
        } else if message["id"].is_number() {
            answers.push(message["id"].clone());
        }
    }
    assert_eq!(next, pieces);
    assert_eq!(answers, [json!(3), json!(2)]);
    drop(stdin);
    child.wait().unwrap();
}

#[test]
fn a_blocked_client_can_still_cancel_and_leave() {
    let double = Double::empty();
    let file = double.file(format!("{}\n", piece(&"x".repeat(10_000))).as_bytes());
    double.turns(&format!("while :; do say {file} || exit; done"));
    let mut child = command(&double).spawn().unwrap();
    let mut send = |message: Value| {
        let stdin = child.stdin.as_mut().unwrap();
        std::io::Write::write_all(stdin, format!("{message}\n").as_bytes()).unwrap();
    };
    send(
        json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": { "cwd": double.work(), "mcpServers": [] } }),
    );
    let session = "11111111-2222-4333-8444-000000000001";
    // The answer is not read, but it is known.
    crate::kit::eventually("the session", || {
        double
            .home()
            .join(".local/state/cursor-agent-acp/sessions")
            .join(session)
            .join("meta.json")
            .exists()
    });
    send(
        json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": { "sessionId": session, "prompt": [{ "type": "text", "text": "a b" }] } }),
    );
    let pid = double.pid(1);
    std::thread::sleep(Duration::from_millis(200));
    send(
        json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } }),
    );
    crate::kit::eventually("the end of the CLI", || !crate::kit::is_alive(pid));
    drop(child.stdin.take());
    let until = std::time::Instant::now() + crate::kit::LIMIT;
    while child.try_wait().unwrap().is_none() {
        assert!(std::time::Instant::now() < until, "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
}
