//! The program itself: `acp` against a server that tells less than Cursor's, `rpc` with more to watch than it has streams.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

use cloud::fake::{Fake, Options};

use crate::kit::{KEY, ask, client, fake, ms};
use crate::raw::{Raw, events, json};

const AGENT: &str = "/v1/agents/bc-1";

/// Everything a loaded session says, as kind and text.
async fn load(url: &str) -> Vec<(String, String)> {
    let texts = load_all(url).await.into_iter().map(|update| {
        let kind = update["sessionUpdate"].as_str().unwrap().to_owned();
        let text = update["content"]["text"].as_str().unwrap_or_default();
        (kind, text.to_owned())
    });
    texts.collect()
}

/// Everything a loaded session says.
async fn load_all(url: &str) -> Vec<Value> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_cursor-agent-cloud"))
        .arg("acp")
        .env("CURSOR_API_URL", url)
        .env("CURSOR_API_KEY", KEY)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let load = json!({ "jsonrpc": "2.0", "id": 1, "method": "session/load", "params": { "sessionId": "bc-1", "cwd": "/", "mcpServers": [] } });
    stdin
        .write_all(format!("{load}\n").as_bytes())
        .await
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut said = Vec::new();
    loop {
        let line = tokio::time::timeout(ms(20_000), lines.next_line()).await;
        let message: Value = serde_json::from_str(&line.unwrap().unwrap().unwrap()).unwrap();
        if message["id"] == 1 {
            assert!(message["error"].is_null(), "{message}");
            return said;
        }
        said.push(message["params"]["update"].clone());
    }
}

#[tokio::test]
async fn the_users_words_come_from_the_conversation_when_the_events_lack_them() {
    let run = |id: &str, at: &str| json!({ "id": id, "agentId": "bc-1", "status": "FINISHED", "createdAt": at });
    let raw = Raw::start(move |asked, _| {
        let path = asked.line.trim_start_matches("GET ");
        let first = run("run-1", "2026-01-01T00:00:00Z");
        let second = run("run-2", "2026-01-02T00:00:00Z");
        match path.trim_start_matches(AGENT) {
            "" => json(200, &json!({ "id": "bc-1", "status": "IDLE" })),
            "/runs?limit=100" => json(200, &json!({ "items": [second, first] })),
            "/runs/run-1" => json(200, &first),
            "/runs/run-2" => json(200, &second),
            "/runs/run-1/stream" => events("event: assistant\ndata: {\"text\":\"One.\"}\n\nevent: done\ndata: {}\n\n"),
            "/runs/run-2/stream" => events("event: interaction_update\ndata: {\"type\":\"step-started\"}\n\nevent: interaction_update\ndata: {\"type\":\"text-delta\",\"text\":\"Two.\"}\n\nevent: done\ndata: {}\n\n"),
            _ if path == "/v0/agents/bc-1/conversation" => json(200, &json!({ "id": "bc-1", "messages": [
                { "type": "user_message", "text": "First?" }, { "type": "assistant_message", "text": "One." },
                { "type": "user_message", "text": "Second?" }, { "type": "assistant_message", "text": "Two." },
            ] })),
            other => unreachable!("{other}"),
        }
    })
    .await;
    let said: Vec<(String, String)> = load(&raw.url).await;
    let expected = [
        ("user_message_chunk", "First?"),
        ("agent_message_chunk", "One."),
        ("user_message_chunk", "Second?"),
        ("agent_message_chunk", "Two."),
    ];
    assert_eq!(
        said,
        expected.map(|(kind, text)| (kind.to_owned(), text.to_owned()))
    );
}

#[tokio::test]
async fn the_answers_of_two_runs_are_two_messages() {
    let raw = Raw::start(move |asked, _| {
        let run = |id: &str, at: &str| json!({ "id": id, "status": "FINISHED", "createdAt": at });
        let first = run("run-1", "2026-01-01T00:00:00Z");
        let second = run("run-2", "2026-01-02T00:00:00Z");
        let path = asked.line.trim_start_matches("GET ");
        match path.trim_start_matches(AGENT) {
            "" => json(200, &json!({ "id": "bc-1", "status": "IDLE" })),
            "/runs?limit=100" => json(200, &json!({ "items": [second, first] })),
            "/runs/run-1" => json(200, &first),
            "/runs/run-2" => json(200, &second),
            stream if stream.ends_with("/stream") => {
                let said =
                    |text: &str| format!("event: assistant\ndata: {{\"text\":\"{text}\"}}\n\n");
                events(&format!(
                    "{}{}event: done\ndata: {{}}\n\n",
                    said("An "),
                    said("answer.")
                ))
            }
            _ => json(404, &json!({})),
        }
    })
    .await;
    let ids: Vec<Value> = load_all(&raw.url)
        .await
        .into_iter()
        .filter(|update| update["sessionUpdate"] == "agent_message_chunk")
        .map(|update| update["messageId"].clone())
        .collect();
    assert_eq!(ids.len(), 4);
    assert!(
        ids[0].is_string() && ids[0] == ids[1] && ids[2] == ids[3] && ids[1] != ids[2],
        "{ids:?}"
    );
}

#[tokio::test]
async fn a_run_without_events_has_its_last_words() {
    let raw = Raw::start(move |asked, _| {
        let run = json!({ "id": "run-1", "status": "FINISHED", "result": "All done." });
        let path = asked.line.trim_start_matches("GET ");
        match path.trim_start_matches(AGENT) {
            "" => json(200, &json!({ "id": "bc-1", "status": "IDLE" })),
            "/runs?limit=100" => json(200, &json!({ "items": [run] })),
            "/runs/run-1" => json(200, &run),
            "/runs/run-1/stream" => events("event: done\ndata: {}\n\n"),
            _ => json(404, &json!({})),
        }
    })
    .await;
    let last = ("agent_message_chunk".to_owned(), "All done.".to_owned());
    assert_eq!(load(&raw.url).await, [last]);
}

#[tokio::test]
async fn a_look_for_new_runs_while_loading_tells_nothing_twice() {
    let fake = fake(Options::default()).await;
    let client = client(&fake);
    let created = client.create(&ask("Fix the parser")).await.unwrap();
    crate::kit::hear(&mut client.stream(&created.agent.id, &created.run.id)).await;
    fake.fault(cloud::fake::Fault::once(
        "/runs",
        cloud::fake::What::Slow {
            piece: 100,
            pause_ms: 60,
        },
    ));
    let mut child = Command::new(env!("CARGO_BIN_EXE_cursor-agent-cloud"))
        .arg("acp")
        .env("CURSOR_API_URL", fake.url())
        .env("CURSOR_API_KEY", KEY)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let ask = |id: u32, method: &str, params: Value| {
        let asked = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        format!("{asked}\n")
    };
    let neovim = json!({ "protocolVersion": 1, "clientInfo": { "name": "cursor-agent.nvim", "version": "1" } });
    let load = json!({ "sessionId": created.agent.id, "cwd": "/", "mcpServers": [] });
    let asked = [
        ask(1, "initialize", neovim),
        ask(2, "session/load", load),
        ask(3, "session/list", json!({})),
    ];
    stdin.write_all(asked.concat().as_bytes()).await.unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (mut answered, mut prompts) = (0, 0);
    while answered < 4 {
        let line = tokio::time::timeout(ms(20_000), lines.next_line()).await;
        let message: Value = serde_json::from_str(&line.unwrap().unwrap().unwrap()).unwrap();
        let update = &message["params"]["update"]["sessionUpdate"];
        prompts += usize::from(update == "user_message_chunk");
        answered += usize::from(message["id"].is_number());
        // By then, a second watcher would have reported something.
        if answered == 3 && message["id"].is_number() {
            stdin
                .write_all(ask(4, "session/list", json!({})).as_bytes())
                .await
                .unwrap();
        }
    }
    assert_eq!(prompts, 1);
}

#[tokio::test]
async fn a_conversation_that_was_closed_is_no_longer_listened_to() {
    let fake = fake(Options::default()).await;
    let created = client(&fake).create(&ask("hang")).await.unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_cursor-agent-cloud"))
        .arg("acp")
        .env("CURSOR_API_URL", fake.url())
        .env("CURSOR_API_KEY", KEY)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for (id, method) in [(1, "session/load"), (2, "session/close")] {
        let params = json!({ "sessionId": created.agent.id, "cwd": "/", "mcpServers": [] });
        let asked = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let asked = format!("{asked}\n");
        stdin.write_all(asked.as_bytes()).await.unwrap();
        loop {
            let line = tokio::time::timeout(ms(20_000), lines.next_line()).await;
            let message: Value = serde_json::from_str(&line.unwrap().unwrap().unwrap()).unwrap();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{message}");
                break;
            }
        }
    }
    for _ in 0..400 {
        if fake.stream_count() == 0 {
            return;
        }
        tokio::time::sleep(ms(25)).await;
    }
    unreachable!("the stream is still open");
}

/// Streams that were opened so far.
fn streams(fake: &Fake) -> usize {
    let requests = fake.requests();
    let opened = |path: &str| path.ends_with("/stream");
    requests.iter().filter(|one| opened(&one.path)).count()
}

async fn wait_streams(fake: &Fake, count: usize) {
    for _ in 0..400 {
        if streams(fake) == count {
            return;
        }
        tokio::time::sleep(ms(50)).await;
    }
    unreachable!("{} streams, not {count}", streams(fake));
}

#[tokio::test]
async fn more_agents_than_streams_are_watched() {
    let fake = fake(Options::default()).await;
    let client = client(&fake);
    let mut created = Vec::new();
    for _ in 0..18 {
        created.push(client.create(&ask("hang")).await.unwrap());
    }
    let ids: Vec<&str> = created.iter().map(|one| one.agent.id.as_str()).collect();
    let mut child = Command::new(env!("CARGO_BIN_EXE_cursor-agent-cloud"))
        .arg("rpc")
        .env("CURSOR_API_URL", fake.url())
        .env("CURSOR_API_KEY", KEY)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A request with bytes that are no UTF-8 is answered too.
    let watch = json!({ "jsonrpc": "2.0", "id": 1, "method": "watch", "params": { "ids": ids, "note": "?" } });
    let mut line = format!("{watch}\n").into_bytes();
    let at = line.iter().rposition(|&byte| byte == b'?').unwrap();
    line[at] = 0xe9;
    stdin.write_all(&line).await.unwrap();
    wait_streams(&fake, 16).await;
    tokio::time::sleep(ms(200)).await;
    assert_eq!(streams(&fake), 16);
    // One that ends makes room for the next.
    let followed = fake
        .requests()
        .into_iter()
        .find(|one| one.path.ends_with("/stream"))
        .unwrap();
    let ended = created
        .iter()
        .find(|one| followed.path.contains(&one.agent.id))
        .unwrap();
    client.cancel(&ended.agent.id, &ended.run.id).await.unwrap();
    wait_streams(&fake, 17).await;
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    loop {
        let line = tokio::time::timeout(ms(20_000), lines.next_line()).await;
        let message: Value = serde_json::from_str(&line.unwrap().unwrap().unwrap()).unwrap();
        if message["method"] == "ended" {
            assert_eq!(message["params"]["row"]["id"], json!(ended.agent.id));
            assert_eq!(message["params"]["row"]["state"], "stopped");
            break;
        }
    }
}
