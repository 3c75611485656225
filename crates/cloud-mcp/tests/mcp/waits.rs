//! `createAndWait` and `cancelCreateAndWait`.

use std::time::{Duration, Instant};

use cloud::fake::{Fault, Options, What};
use serde_json::{Value, json};

use crate::kit::{Client, HttpServer, KEY, StdioClient, command, fake, in_time, order};

fn patient(text: &str) -> Value {
    let mut input = order(text);
    input["pollIntervalMs"] = json!(250);
    input["jitterRatio"] = json!(0);
    input
}

/// Runs that do not end while a test looks.
fn endless() -> Options {
    Options {
        pace: Duration::from_secs(3600),
        ..Options::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_with_the_agent() {
    let fake = fake(Options {
        pace: Duration::from_millis(20),
        ..Options::default()
    })
    .await;
    for mut client in Client::both(&fake).await {
        let (text, ended) = client.good("createAndWait", patient("Fix it")).await;
        assert_eq!(ended["status"], "FINISHED", "{ended}");
        assert_eq!(ended["agent"]["status"], "FINISHED");
        assert!(ended["agent"]["summary"].is_string());
        assert!(text.contains("FINISHED"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn transient_errors_go_on_and_others_end_it() {
    let fake = fake(Options::default()).await;
    let mut client = Client::stdio(&fake).await;
    fake.fault(Fault {
        method: Some("GET".to_owned()),
        times: 4,
        what: What::Refuse {
            status: 503,
            code: "unavailable".to_owned(),
            retry_after: None,
        },
        ..Fault::default()
    });
    let (_, ended) = client.good("createAndWait", patient("Fix it")).await;
    assert_eq!(ended["status"], "FINISHED");
    fake.heal();
    fake.fault(Fault {
        method: Some("GET".to_owned()),
        what: What::Refuse {
            status: 401,
            code: "unauthorized".to_owned(),
            retry_after: None,
        },
        ..Fault::default()
    });
    let (_, error) = client.bad("createAndWait", patient("Fix it")).await;
    assert_eq!(error["kind"], "UNAUTHORIZED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_has_its_limit() {
    let fake = fake(endless()).await;
    let mut client = Client::http(&fake).await;
    let mut input = patient("Fix it");
    input["timeoutMs"] = json!(5000);
    let started = Instant::now();
    let (text, ended) = client.good("createAndWait", input).await;
    let took = started.elapsed().as_millis();
    assert!((4900..9000).contains(&took), "{took}");
    assert_eq!(ended["status"], "TIMEOUT");
    assert_eq!(fake.agent_ids(), [ended["agentId"].as_str().unwrap()]);
    assert!(text.contains("keeps running"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_token_ends_the_wait_and_not_the_agent() {
    let fake = fake(endless()).await;
    let mut client = StdioClient::start(command(&fake.url())).await;
    let mut input = patient("Fix it");
    input["cancelToken"] = json!("mine");
    let call = |name: &str, input: &Value| json!({ "name": name, "arguments": input });
    let waiting = client
        .begin("tools/call", call("createAndWait", &input))
        .await;
    in_time(async {
        while fake.agent_count() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    // The same token a second time.
    let second = client
        .request("tools/call", call("createAndWait", &input))
        .await;
    let error = &second["result"]["structuredContent"]["error"];
    assert_eq!(error["field"], "cancelToken", "{second}");
    let cancel = call("cancelCreateAndWait", &json!({ "cancelToken": "mine" }));
    let cancelled = client.begin("tools/call", cancel.clone()).await;
    let ended = client.answer(waiting).await;
    assert_eq!(
        ended["result"]["structuredContent"]["status"], "CANCELLED",
        "{ended}"
    );
    assert_eq!(ended["result"]["isError"], false);
    assert_eq!(fake.agent_count(), 1);
    let answer = client
        .heard
        .iter()
        .find(|message| message["id"] == cancelled);
    assert!(answer.is_none() || answer.unwrap()["result"]["isError"] == false);
    let again = client.request("tools/call", cancel).await;
    assert_eq!(
        again["result"]["structuredContent"]["error"]["kind"],
        "NOT_FOUND"
    );
    assert!(
        !fake
            .requests()
            .iter()
            .any(|asked| asked.path.ends_with("/cancel"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_one_account_cannot_cancel_anothers_wait() {
    let fake = fake(endless()).await;
    let server = HttpServer::start(command(&fake.url())).await;
    let mut input = patient("Fix it");
    input["cancelToken"] = json!("mine");
    let call = |name: &str, input: &Value| {
        json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": name, "arguments": input },
        })
    };
    let wait = call("createAndWait", &input);
    let cancel = call("cancelCreateAndWait", &json!({ "cancelToken": "mine" }));
    let outsider = async {
        in_time(async {
            while fake.agent_count() == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        // The API cannot say whose key it is: it is let in, and finds nothing of others.
        fake.fault(Fault {
            path: Some("/me".to_owned()),
            what: What::Refuse {
                status: 404,
                code: "off".to_owned(),
                retry_after: None,
            },
            ..Fault::default()
        });
        let (_, other) = server.post("key_of_another_person", &cancel).await;
        assert_eq!(other[0]["result"]["isError"], true, "{other:?}");
        let (_, own) = server.post(KEY, &cancel).await;
        assert_eq!(own[0]["result"]["isError"], false, "{own:?}");
    };
    let ((_, ended), ()) = tokio::join!(server.post(KEY, &wait), outsider);
    let ended = ended.last().unwrap();
    assert_eq!(ended["result"]["structuredContent"]["status"], "CANCELLED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_asks_for_progress_hears_of_it() {
    let fake = fake(Options {
        pace: Duration::from_millis(30),
        ..Options::default()
    })
    .await;
    let params = json!({
        "name": "createAndWait", "arguments": patient("Fix it"), "_meta": { "progressToken": "p1" },
    });
    let mut client = StdioClient::start(command(&fake.url())).await;
    client.request("tools/call", params.clone()).await;
    let server = HttpServer::start(command(&fake.url())).await;
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let (_, messages) = server.post(KEY, &message).await;
    for heard in [&client.heard, &messages] {
        let first = &heard[0];
        assert_eq!(first["method"], "notifications/progress", "{first}");
        assert_eq!(first["params"]["progressToken"], "p1");
        assert!(first["params"]["message"].is_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_request_ends_the_wait() {
    let fake = fake(endless()).await;
    let mut client = StdioClient::start(command(&fake.url())).await;
    let mut input = patient("Fix it");
    input["cancelToken"] = json!("mine");
    let params = json!({ "name": "createAndWait", "arguments": input });
    let id = client.begin("tools/call", params.clone()).await;
    in_time(async {
        while fake.agent_count() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    client
        .send(&json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id },
        }))
        .await;
    // Its token is free again.
    in_time(async {
        loop {
            let answer = client
                .request(
                    "tools/call",
                    json!({ "name": "cancelCreateAndWait", "arguments": { "cancelToken": "mine" } }),
                )
                .await;
            if answer["result"]["isError"] == true {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
