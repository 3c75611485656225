//! Failures of the API and the network, by kind, and that messages about them contain no secrets.

use cloud::fake::{Fault, Options, What};
use serde_json::json;

use crate::kit::{Client, KEY, StdioClient, changed, command, fake, order};

fn refuse(status: u16, code: &str) -> What {
    What::Refuse {
        status,
        code: code.to_owned(),
        retry_after: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_status_has_its_kind() {
    let fake = fake(Options {
        agents: 1,
        ..Options::default()
    })
    .await;
    let id = fake.agent_ids()[0].clone();
    let mut client = Client::stdio(&fake).await;
    for (status, code, kind) in [
        (400, "invalid_request", "VALIDATION_ERROR"),
        (401, "unauthorized", "UNAUTHORIZED"),
        (403, "forbidden", "FORBIDDEN"),
        (404, "agent_not_found", "NOT_FOUND"),
        (409, "agent_busy", "CONFLICT"),
        (409, "conflict", "CONFLICT"),
        (410, "gone", "GONE"),
        (500, "internal", "SERVER_ERROR"),
        (503, "unavailable", "SERVER_ERROR"),
    ] {
        fake.heal();
        fake.fault(Fault {
            what: refuse(status, code),
            ..Fault::default()
        });
        let (tool, input) = if code == "agent_busy" {
            (
                "addFollowup",
                json!({ "id": id, "prompt": { "text": "more" } }),
            )
        } else {
            ("getAgent", json!({ "id": id }))
        };
        let (text, error) = client.bad(tool, input).await;
        assert!(
            text.starts_with(&format!("API Error ({status}): ")),
            "{text}"
        );
        assert!(text.ends_with(&format!("[{kind}]")), "{text}");
        assert_eq!(error["kind"], kind);
        assert_eq!(error["status"], status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_one_of_the_two_apis_is_enough() {
    let fake = fake(Options {
        agents: 4,
        ..Options::default()
    })
    .await;
    let id = fake.agent_ids()[1].clone();
    let mut client = Client::stdio(&fake).await;
    let (_, both) = client.good("listAgents", json!({ "limit": 3 })).await;
    let (_, said) = client
        .good("getAgentConversation", json!({ "id": id }))
        .await;
    let without = |path: &str| {
        fake.fault(Fault {
            path: Some(path.to_owned()),
            what: refuse(404, "not_found"),
            ..Fault::default()
        });
    };
    // Without the older one.
    without("/v0/agents");
    without("/conversation");
    let (_, today) = client.good("listAgents", json!({ "limit": 3 })).await;
    let states = |list: &serde_json::Value| -> Vec<(String, String)> {
        let agents = list["agents"].as_array().unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        agents
            .iter()
            .map(|agent| (text(&agent["id"]), text(&agent["status"])))
            .collect()
    };
    assert_eq!(states(&today), states(&both));
    assert_eq!(today["nextCursor"], both["nextCursor"]);
    let (_, counted) = client.good("summarizeAgents", json!({})).await;
    assert_eq!(counted["totals"]["totalAgents"], 4);
    let (_, told) = client
        .good("getAgentConversation", json!({ "id": id }))
        .await;
    let texts = |talk: &serde_json::Value| -> Vec<String> {
        let messages = talk["messages"].as_array().unwrap();
        messages.iter().map(|one| one["text"].to_string()).collect()
    };
    assert_eq!(texts(&told), texts(&said));
    fake.heal();
    // Without today's.
    for path in ["/v1/agents", "/v1/me", "/v1/models", "/v1/repositories"] {
        without(path);
    }
    client.good("createAgent", order("Go")).await;
    for tool in ["getMe", "listModels", "listRepositories"] {
        client.good(tool, json!({})).await;
    }
    assert_eq!(fake.agent_count(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_says_when_to_come_back() {
    let fake = fake(Options::default()).await;
    let mut client = Client::stdio(&fake).await;
    fake.fault(Fault {
        what: What::Refuse {
            status: 429,
            code: "rate_limited".to_owned(),
            retry_after: Some("45".to_owned()),
        },
        ..Fault::default()
    });
    let (text, error) = client.bad("listRepositories", json!({})).await;
    assert!(
        text.starts_with("API Error (429): ") && text.ends_with("[RATE_LIMIT_EXCEEDED]"),
        "{text}"
    );
    assert_eq!(error["retryAfterSeconds"], 45);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_makes_no_second_agent() {
    let fake = fake(Options::default()).await;
    let mut client = Client::stdio(&fake).await;
    fake.fault(Fault::once("/v1/agents", What::LoseAnswer));
    client.good("createAgent", order("Go")).await;
    assert_eq!(fake.agent_count(), 1);
    // The older API has no way to repeat it: the text says so.
    fake.fault(Fault::once("/v0/agents", What::LoseAnswer));
    let input = changed(order("Go"), "/target", json!({ "branchName": "x" }));
    let (text, error) = client.bad("createAgent", input).await;
    assert!(
        text.starts_with("Network Error: The agent may have been created"),
        "{text}"
    );
    assert_eq!(error["kind"], "UNCONFIRMED");
    assert_eq!(fake.agent_count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_not_the_apis_is_named() {
    let fake = fake(Options::default()).await;
    let mut client = Client::stdio(&fake).await;
    fake.fault(Fault {
        what: What::Html,
        ..Fault::default()
    });
    let (text, error) = client.bad("getMe", json!({})).await;
    assert!(text.starts_with("Network Error: "), "{text}");
    assert_eq!(error["kind"], "MALFORMED_RESPONSE");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_that_is_not_there_is_a_network_error() {
    let gone = fake(Options::default()).await.url();
    let mut client = Client::Stdio(Box::new(StdioClient::start(command(&gone)).await));
    let (text, error) = client.bad("getMe", json!({})).await;
    assert!(
        text.starts_with("Network Error: ") && text.ends_with("[NETWORK_ERROR]"),
        "{text}"
    );
    assert!(error.get("status").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_tools_say_what_to_do() {
    let fake = fake(Options::default()).await;
    let mut command = command(&fake.url());
    command.env_remove("CURSOR_API_KEY");
    let mut client = Client::Stdio(Box::new(StdioClient::start(command).await));
    client.good("documentation", json!({})).await;
    let (text, error) = client.bad("getMe", json!({})).await;
    assert!(
        text.starts_with("Configuration Error: ") && text.contains("CURSOR_API_KEY"),
        "{text}"
    );
    assert_eq!(error["kind"], "NO_API_KEY");
    assert!(fake.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_in_an_error_or_the_log() {
    let fake = fake(Options::default()).await;
    for mut client in Client::both(&fake).await {
        client.good("getMe", json!({})).await;
        let secret = "planted-webhook-secret-of-40-characters!";
        let webhook = json!({ "url": "https://example.com/planted-path", "secret": secret });
        let input = changed(order("planted prompt"), "/webhook", webhook);
        let mut said = String::new();
        for what in [refuse(401, KEY), refuse(500, secret), What::Html] {
            fake.heal();
            fake.fault(Fault {
                path: Some("/v0/agents".to_owned()),
                what,
                ..Fault::default()
            });
            let (text, error) = client.bad("createAgent", input.clone()).await;
            said.push_str(&text);
            said.push_str(&error.to_string());
        }
        fake.heal();
        let log = client.stderr();
        for planted in [KEY, secret, "planted-path", "planted prompt"] {
            assert!(!said.contains(planted), "{planted}: {said}");
            assert!(!log.contains(planted), "{planted}: {log}");
        }
    }
}
