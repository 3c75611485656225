//! Answers as other servers write them: other ids and orders, fields missing and fields unknown, streams in every form the standard has.

use cloud::{AgentStatus, Event, ListAgents, RunStatus, Update};
use serde_json::json;

use crate::kit::{hear, ms};
use crate::raw::{Raw, Say, events, json};

const RUN: &str = "GET /v1/agents/bc-1/runs/run-z";
const STREAM: &str = "GET /v1/agents/bc-1/runs/run-z/stream";

fn run(status: &str) -> Say {
    json(
        200,
        &json!({ "status": status, "id": "run-z", "agentId": "bc-1", "result": "Done.", "later": { "field": 1 } }),
    )
}

/// Follows the run: what was heard, and how it ended.
async fn follow(raw: &Raw) -> (Vec<String>, Option<RunStatus>) {
    let (heard, end) = hear(&mut raw.client().stream("bc-1", "run-z")).await;
    (heard, end.map(|run| run.status))
}

#[tokio::test]
async fn streams_in_every_form_of_the_standard() {
    let plain = concat!(
        "event: status\ndata: {\"status\":\"RUNNING\"}\n\n",
        "id: e1\nevent: interaction_update\ndata: {\"type\":\"text-delta\",\"text\":\"Né ✓\"}\n\n",
        "id: e2\nevent: interaction_update\ndata: {\"type\":\"thinking-delta\",\ndata: \"text\":\"hm\"}\n\n",
        "event: done\ndata: {}\n\n",
    );
    let odd = plain
        .replace("event: status", ": a comment\nretry: 1000\nevent: status")
        .replace("id: e2", "retry: soon\n:\nunknown: field\nno-colon\nid:e2")
        .replace("data: {\"type", "data:{\"type");
    for text in [
        plain.to_owned(),
        odd.clone(),
        odd.replace('\n', "\r\n"),
        odd.replace('\n', "\r"),
        format!("\u{feff}{odd}"),
        format!("\u{feff}\r\n\r\n{}", plain.replace('\n', "\r\n")),
        // The last event has no empty line, and nothing says that the stream ends.
        plain.trim_end().to_owned(),
    ] {
        for piece in [0, 1, 2, 3, 7] {
            let text = text.clone();
            let raw = Raw::start(move |asked, _| match asked.line.as_str() {
                STREAM => Say {
                    piece,
                    ..events(&text)
                },
                _ => run("FINISHED"),
            })
            .await;
            let expected = (
                vec!["text Né ✓".to_owned(), "thinking hm".to_owned()],
                Some(RunStatus::Finished),
            );
            assert_eq!(follow(&raw).await, expected);
        }
    }
}

#[tokio::test]
async fn the_older_family_alone_is_heard_whole_and_at_once() {
    let text = concat!(
        "event: status\ndata: {\"status\":\"RUNNING\"}\n\n",
        "event: thinking\ndata: {\"text\":\"hm\"}\n\n",
        "event: assistant\ndata: {\"text\":\"Hel\"}\n\n",
        "event: tool_call\ndata: {\"callId\":\"c\",\"name\":\"shell\",\"status\":\"running\",\"args\":{\"command\":\"ls\"}}\n\n",
        "event: tool_call\ndata: {\"callId\":\"c\",\"name\":\"shell\",\"status\":\"completed\",\"result\":{\"exitCode\":0}}\n\n",
        "event: assistant\ndata: {\"text\":\"lo\"}\n\n",
    );
    let whole = [
        "thinking hm",
        "text Hel",
        "tool c shell Started",
        "tool c shell Completed",
        "text lo",
    ];
    // At the end of the stream.
    let raw = Raw::start(move |asked, _| match asked.line.as_str() {
        STREAM => events(&format!(
            "{text}event: result\ndata: {{\"text\":\"Hello\"}}\n\n"
        )),
        _ => run("FINISHED"),
    })
    .await;
    assert_eq!(follow(&raw).await.0, whole);

    // While the run goes on and says nothing more.
    let raw = Raw::start(move |asked, _| match asked.line.as_str() {
        STREAM => Say {
            hold_ms: 60_000,
            ..events(text)
        },
        _ => run("RUNNING"),
    })
    .await;
    let mut stream = raw.client().stream("bc-1", "run-z");
    let mut heard = 0;
    while heard < whole.len() {
        let next = tokio::time::timeout(ms(5000), stream.next()).await;
        if let Event::Update(_) = next.unwrap().unwrap().unwrap() {
            heard += 1;
        }
    }

    // Cut at any byte and begun from the start: nothing twice, nothing lost, and no id, which only the newer family moves.
    let raw = Raw::start(move |asked, number| {
        let (run, stream) = which(&asked.line);
        match (stream, number) {
            (true, 0) => cut(text, run),
            (true, _) => {
                assert_eq!(asked.header("last-event-id"), None);
                events(&format!("{text}event: done\n\nevent: done\ndata: {{}}\n\n"))
            }
            (false, 0) => self::run("RUNNING"),
            (false, _) => self::run("FINISHED"),
        }
    })
    .await;
    let client = raw.client();
    for bytes in 0..text.len() {
        let (heard, _) = hear(&mut client.stream("bc-1", &format!("run-{bytes}"))).await;
        assert_eq!(heard, whole, "cut at {bytes}");
    }
}

/// The number in the run's id, and whether its stream is asked for.
fn which(line: &str) -> (usize, bool) {
    let path = line.trim_end_matches("/stream");
    let number = path.rsplit_once("run-").unwrap().1.parse().unwrap();
    (number, path.len() < line.len())
}

/// This many bytes of these events.
fn cut(text: &str, bytes: usize) -> Say {
    let mut say = events(text);
    say.bytes.truncate(say.bytes.len() - text.len() + bytes);
    say
}

#[tokio::test]
async fn the_newer_family_is_taken_up_again_after_a_cut_at_any_byte() {
    let frame = |id: &str, kind: &str, text: &str| {
        format!(
            "event: interaction_update\r\nid: {id}\r\ndata: {{\"type\":\"{kind}\",\r\ndata: \"text\":\"{text}\"}}\r\n\r\n"
        )
    };
    let frames = [
        frame("x-1", "thinking-delta", "hm ✓"),
        ": still here\r\n\r\nevent: heartbeat\r\ndata: {}\r\n\r\n".to_owned(),
        frame("x-2", "text-delta", "Né"),
        frame("x-3", "text-delta", "e"),
    ];
    let whole = ["thinking hm ✓", "text Né", "text e"];
    let status = "event: status\r\ndata: {\"status\":\"RUNNING\"}\r\n\r\n";
    let text = format!("{status}{}", frames.concat());
    let end = "event: done\r\ndata: {}\r\n\r\n";
    let all = text.clone();
    let raw = Raw::start(move |asked, number| {
        let (run, stream) = which(&asked.line);
        match (stream, number) {
            (true, 0) => cut(&all, run),
            (true, _) => {
                let from = match asked.header("last-event-id") {
                    None => 0,
                    Some("x-1") => 1,
                    Some("x-2") => 3,
                    Some("x-3") => 4,
                    Some(other) => unreachable!("{other}"),
                };
                events(&format!("{status}{}{end}", frames[from..].concat()))
            }
            (false, 0) => self::run("RUNNING"),
            (false, _) => self::run("FINISHED"),
        }
    })
    .await;
    let client = raw.client();
    for bytes in 0..text.len() {
        let (heard, end) = hear(&mut client.stream("bc-1", &format!("run-{bytes}"))).await;
        assert_eq!(heard, whole, "cut at {bytes}");
        assert!(end.is_some());
    }
}

#[tokio::test]
async fn both_families_in_either_order_say_it_once() {
    let older = "event: assistant\nid: e1\ndata: {\"text\":\"Hi\"}\n\n";
    let newer =
        "event: interaction_update\nid: e1\ndata: {\"type\":\"text-delta\",\"text\":\"Hi\"}\n\n";
    for text in [format!("{older}{newer}"), format!("{newer}{older}")] {
        let text = format!("{text}event: done\ndata: {{}}\n\n");
        let raw = Raw::start(move |asked, _| match asked.line.as_str() {
            STREAM => events(&text),
            _ => run("FINISHED"),
        })
        .await;
        assert_eq!(follow(&raw).await.0, ["text Hi"]);
    }
}

#[tokio::test]
async fn trouble_in_a_stream_is_taken_up_again_from_the_last_id() {
    let first = "event: interaction_update\nid: e1\ndata: {\"type\":\"text-delta\",\"text\":\"A\"}\n\nevent: error\ndata: {\"code\":\"upstream\",\"message\":\"lost\"}\n\n";
    let second = "event: status\ndata: {\"status\":\"RUNNING\"}\n\nevent: interaction_update\nid: e2\ndata: {\"type\":\"text-delta\",\"text\":\"B\"}\n\nevent: result\ndata: {\"text\":\"AB\"}\n\n";
    // The run is over a little later than its stream says.
    let raw = Raw::start(move |asked, number| match (asked.line.as_str(), number) {
        (STREAM, 0) => events(first),
        (STREAM, _) => {
            assert_eq!(asked.header("last-event-id"), Some("e1"));
            assert_eq!(asked.header("x-cursor-streaming"), Some("true"));
            events(second)
        }
        (RUN, number) => run(if number < 4 { "RUNNING" } else { "FINISHED" }),
        other => unreachable!("{other:?}"),
    })
    .await;
    let (heard, end) = follow(&raw).await;
    assert_eq!(
        (heard.concat().as_str(), end),
        ("text Atext B", Some(RunStatus::Finished))
    );
}

#[tokio::test]
async fn a_stream_that_only_closes_ends_with_its_run() {
    let text =
        "event: interaction_update\nid: e1\ndata: {\"type\":\"text-delta\",\"text\":\"A\"}\n\n";
    let raw = Raw::start(move |asked, number| match (asked.line.as_str(), number) {
        (STREAM, 0) => events(text),
        (STREAM, _) => events(""),
        _ => run("CANCELLED"),
    })
    .await;
    let (heard, end) = follow(&raw).await;
    assert_eq!(
        (heard, end),
        (vec!["text A".to_owned()], Some(RunStatus::Cancelled))
    );
    let streams = raw.asked().iter().filter(|one| one.line == STREAM).count();
    assert!(streams <= 4, "{streams} connections");
}

#[tokio::test]
async fn a_question_is_a_tool_call() {
    let text = "event: interaction_update\nid: 1\ndata: {\"type\":\"tool-call-started\",\"callId\":\"q\",\"toolCall\":{\"type\":\"askQuestion\",\"args\":{\"questions\":[{\"id\":\"1\",\"prompt\":\"SQLite?\",\"options\":[]}]}}}\n\nevent: done\ndata: {}\n\n";
    let raw = Raw::start(move |asked, _| match asked.line.as_str() {
        STREAM => events(text),
        _ => run("FINISHED"),
    })
    .await;
    let mut stream = raw.client().stream("bc-1", "run-z");
    let call = loop {
        if let Event::Update(Update::Tool { call, .. }) = stream.next().await.unwrap().unwrap() {
            break call;
        }
    };
    assert!(call.is_question());
}

#[tokio::test]
async fn fields_that_are_missing_null_or_unknown() {
    let raw = Raw::start(|asked, _| match asked.line.as_str() {
        "GET /v1/agents?limit=3" => json(
            200,
            &json!({ "next": 1, "nextCursor": "", "items": [
                { "id": "bc-1", "status": "IDLE" },
                { "status": "PAUSED", "id": "bc-2", "name": null, "repos": null, "url": null, "createdAt": null, "updatedAt": null, "latestRunId": null, "autoCreatePR": null, "metadata": null, "new": {} },
                { "id": "bc-3", "status": "ACTIVE", "repos": [{ "url": "https://github.com/a/b", "startingRef": null, "new": 1 }], "metadata": { "n": 1 } },
            ] }),
        ),
        "GET /v1/agents/bc-1/runs/run-z" => json(
            200,
            &json!({ "id": "run-z", "agentId": null, "status": "RUNNING", "durationMs": null, "result": null, "error": null, "git": { "branches": null } }),
        ),
        "GET /v1/agents/bc-1/usage" => json(
            200,
            &json!({ "totalUsage": { "inputTokens": 1.5, "outputTokens": null }, "cost": { "chargedCents": null }, "runs": [{ "id": "r", "usage": null }] }),
        ),
        "GET /v1/agents/bc-1/artifacts" => {
            json(200, &json!({ "items": [{ "path": "a", "sizeBytes": null }] }))
        }
        "GET /v1/me" => json(200, &json!({ "userEmail": null, "apiKeyName": null, "teamId": 3 })),
        "GET /v0/agents/bc-9" => json(
            200,
            &json!({ "id": "bc-9", "status": "PAUSED", "name": null, "source": null, "target": { "url": null, "branchName": null }, "createdAt": null, "summary": null }),
        ),
        other => unreachable!("{other}"),
    })
    .await;
    let client = raw.client();
    let page = client
        .agents(&ListAgents {
            limit: Some(3),
            ..ListAgents::default()
        })
        .await
        .unwrap();
    assert_eq!(page.next_cursor, None);
    let states: Vec<&AgentStatus> = page.items.iter().map(|agent| &agent.status).collect();
    assert_eq!(
        states,
        [
            &AgentStatus::Idle,
            &AgentStatus::Other("PAUSED".to_owned()),
            &AgentStatus::Active
        ]
    );
    assert_eq!(
        client.run("bc-1", "run-z").await.unwrap().status,
        RunStatus::Running
    );
    assert_eq!(
        client
            .usage("bc-1", None)
            .await
            .unwrap()
            .total_usage
            .input_tokens,
        1.5
    );
    assert_eq!(client.artifacts("bc-1").await.unwrap().len(), 1);
    client.me().await.unwrap();
    assert_eq!(
        client.agent_v0("bc-9").await.unwrap().status.as_str(),
        "PAUSED"
    );
}

#[tokio::test]
async fn flat_errors_and_errors_that_are_none() {
    for (say, part) in [
        (
            json(
                404,
                &json!({ "code": "agent_not_found", "message": "Gone" }),
            ),
            "Gone",
        ),
        (json(404, &json!({ "error": "Gone" })), "Gone"),
        (
            json(
                404,
                &json!({ "error": { "code": "x", "message": "Gone", "helpUrl": "https://help.example", "provider": "p" } }),
            ),
            // What to do, and where to read more.
            "Gone (provider: p). It may have been deleted: refresh the list. See https://help.example.",
        ),
        (json(404, &json!([1])), "Not Found"),
    ] {
        let raw = Raw::start(move |_, _| say.clone()).await;
        let text = raw.client().agent("bc-1").await.unwrap_err().to_string();
        assert!(
            text.contains(part) && text.ends_with("(request raw-7)"),
            "{text}"
        );
    }
}
