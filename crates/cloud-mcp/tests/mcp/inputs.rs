//! What an input gets wrong: an `isError` result that names the field, and nothing is sent.

use cloud::fake::Options;
use serde_json::{Value, json};

use crate::kit::{Client, PNG, changed, fake, order};

#[tokio::test(flavor = "multi_thread")]
async fn each_wrong_field_is_named() {
    let fake = fake(Options::default()).await;
    let mut client = Client::stdio(&fake).await;
    let go = || order("Go");
    let long = |count: usize| "x".repeat(count);
    let with = |pointer: &str, value: Value| changed(go(), pointer, value);
    let images = |count: usize| json!(vec![json!({ "data": PNG }); count]);
    let wait =
        |field: &str, value: Value| ("createAndWait", changed(go(), &format!("/{field}"), value));
    let template = |name: &str, params: Value| {
        let input = json!({
            "template": name, "params": params, "source": { "repository": "https://github.com/acme/app" },
        });
        ("createAgentFromTemplate", input)
    };
    let create = |pointer: &str, value: Value| ("createAgent", with(pointer, value));
    let cases: Vec<((&str, Value), &str)> = vec![
        (("createAgent", json!({})), "prompt"),
        (create("/prompt", Value::Null), "prompt"),
        (create("/prompt", json!("Go")), "prompt"),
        (create("/prompt/text", Value::Null), "prompt.text"),
        (create("/prompt/text", json!("")), "prompt.text"),
        (create("/prompt/text", json!(" \n\t")), "prompt.text"),
        (create("/prompt/text", json!(1)), "prompt.text"),
        (create("/prompt/images", json!({})), "prompt.images"),
        (create("/prompt/images", images(6)), "prompt.images"),
        (
            create("/prompt/images", json!([{}])),
            "prompt.images[0].data",
        ),
        (
            create("/prompt/images", json!([{ "data": "" }])),
            "prompt.images[0].data",
        ),
        (
            create(
                "/prompt/images",
                json!([{ "data": PNG }, { "data": "not base64!" }]),
            ),
            "prompt.images[1].data",
        ),
        (
            create(
                "/prompt/images",
                json!([{ "data": PNG, "dimension": { "width": 1 } }]),
            ),
            "prompt.images[0].dimension.height",
        ),
        (
            create(
                "/prompt/images",
                json!([{ "data": PNG, "dimension": { "width": 0, "height": 1 } }]),
            ),
            "prompt.images[0].dimension.width",
        ),
        (create("/model", json!("")), "model"),
        (create("/model", json!({})), "model"),
        (create("/source", Value::Null), "source"),
        (
            create("/source/repository", Value::Null),
            "source.repository",
        ),
        (
            create("/source/repository", json!("acme")),
            "source.repository",
        ),
        (
            create("/source/repository", json!("https://github.com/acme")),
            "source.repository",
        ),
        (
            create(
                "/source/repository",
                json!("https://user:secret@github.com/acme/app"),
            ),
            "source.repository",
        ),
        (
            create("/source/repository", json!("file:///etc/passwd/x")),
            "source.repository",
        ),
        (create("/source/ref", json!("")), "source.ref"),
        (create("/source/ref", json!("a b")), "source.ref"),
        (create("/target", json!(true)), "target"),
        (
            create("/target", json!({ "autoCreatePr": "yes" })),
            "target.autoCreatePr",
        ),
        (
            create("/target", json!({ "autoCreatePR": true })),
            "target.autoCreatePR",
        ),
        (
            create("/target", json!({ "branchName": "" })),
            "target.branchName",
        ),
        (
            create("/target", json!({ "branchName": "a b" })),
            "target.branchName",
        ),
        (
            create("/target", json!({ "branchName": "a..b" })),
            "target.branchName",
        ),
        (
            create("/target", json!({ "branchName": "-x" })),
            "target.branchName",
        ),
        (
            create("/target", json!({ "branchName": long(245) })),
            "target.branchName",
        ),
        (create("/webhook", json!({})), "webhook.url"),
        (
            create("/webhook", json!({ "url": "example.com" })),
            "webhook.url",
        ),
        (
            create(
                "/webhook",
                json!({ "url": "https://e.com", "secret": long(31) }),
            ),
            "webhook.secret",
        ),
        (
            create(
                "/webhook",
                json!({ "url": "https://e.com", "secret": long(257) }),
            ),
            "webhook.secret",
        ),
        (create("/promt", json!("x")), "promt"),
        (wait("pollIntervalMs", json!(249)), "pollIntervalMs"),
        (wait("pollIntervalMs", json!(60_001)), "pollIntervalMs"),
        (wait("pollIntervalMs", json!("2000")), "pollIntervalMs"),
        (wait("pollIntervalMs", json!(300.5)), "pollIntervalMs"),
        (wait("timeoutMs", json!(4999)), "timeoutMs"),
        (wait("timeoutMs", json!(86_400_001)), "timeoutMs"),
        (wait("jitterRatio", json!(-0.1)), "jitterRatio"),
        (wait("jitterRatio", json!(0.51)), "jitterRatio"),
        (wait("cancelToken", json!("")), "cancelToken"),
        (wait("prompt", json!({ "text": "" })), "prompt.text"),
        (("cancelCreateAndWait", json!({})), "cancelToken"),
        (
            ("cancelCreateAndWait", json!({ "cancelToken": "none" })),
            "cancelToken",
        ),
        (("listAgents", json!({ "limit": 0 })), "limit"),
        (("listAgents", json!({ "limit": 101 })), "limit"),
        (("listAgents", json!({ "limit": "10" })), "limit"),
        (("listAgents", json!({ "cursor": 1 })), "cursor"),
        (("summarizeAgents", json!({ "status": "DONE" })), "status"),
        (("summarizeAgents", json!({ "limit": 1000 })), "limit"),
        (
            ("summarizeAgents", json!({ "repository": "" })),
            "repository",
        ),
        (("getAgent", json!({})), "id"),
        (("getAgent", json!({ "id": "" })), "id"),
        (("getAgent", json!({ "id": "../../v1/me" })), "id"),
        (("deleteAgent", json!({ "id": 7 })), "id"),
        (("getAgentConversation", json!({ "id": "a/b" })), "id"),
        (("addFollowup", json!({ "prompt": { "text": "x" } })), "id"),
        (("addFollowup", json!({ "id": "bc-1" })), "prompt"),
        (
            (
                "addFollowup",
                json!({ "id": "bc-1", "prompt": { "text": "" } }),
            ),
            "prompt.text",
        ),
        (("getMe", json!({ "verbose": true })), "verbose"),
        (
            ("createAgentFromTemplate", json!({ "template": "docAudit" })),
            "source",
        ),
        (template("audit", json!({})), "template"),
        (template("docAudit", json!({})), "params.docPaths"),
        (
            template("docAudit", json!({ "docPaths": [] })),
            "params.docPaths",
        ),
        (
            template("docAudit", json!({ "docPaths": [""] })),
            "params.docPaths[0]",
        ),
        (
            template("docAudit", json!({ "docPaths": ["a"], "area": "x" })),
            "params.area",
        ),
        (
            template("typeCleanup", json!({ "strictMode": "yes" })),
            "params.strictMode",
        ),
        (template("bugHunt", json!({ "flaky": true })), "params.area"),
        (("documentation", json!({ "format": "xml" })), "format"),
    ];
    for ((tool, input), field) in cases {
        let (text, error) = client.bad(tool, input.clone()).await;
        let named = field == "cancelToken"
            || (text.starts_with("Validation Error: ") && text.contains(&format!("{field}: ")));
        assert!(named, "{tool} {input}: {text}");
        let all = text.contains("; ");
        assert!(error["field"] == field || all, "{tool} {input}: {error}");
        let kind = &error["kind"];
        assert!(kind == "VALIDATION_ERROR" || kind == "NOT_FOUND", "{error}");
    }
    assert!(fake.requests().is_empty(), "{:?}", fake.requests());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_value_is_not_repeated() {
    let fake = fake(Options::default()).await;
    for mut client in Client::both(&fake).await {
        let secret = "planted-short-secret";
        let webhook = json!({ "url": "https://example.com", "secret": secret });
        let (text, error) = client
            .bad("createAgent", changed(order("Go"), "/webhook", webhook))
            .await;
        assert!(
            text.contains("webhook.secret: must have at least 32 characters"),
            "{text}"
        );
        assert!(!text.contains(secret) && !error.to_string().contains(secret));
        assert!(!client.stderr().contains(secret));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_themselves_are_accepted() {
    let fake = fake(Options {
        agents: 1,
        ..Options::default()
    })
    .await;
    let mut client = Client::stdio(&fake).await;
    for limit in [json!(1), json!(100), json!(50.0)] {
        client.good("listAgents", json!({ "limit": limit })).await;
    }
    let mut input = changed(order("Go"), "/model", Value::Null);
    input["pollIntervalMs"] = json!(250);
    input["timeoutMs"] = json!(5000);
    input["jitterRatio"] = json!(0.5);
    client.good("createAndWait", input).await;
    let webhook = json!({ "url": "https://example.com", "secret": "x".repeat(256) });
    client
        .good("createAgent", changed(order("Go"), "/webhook", webhook))
        .await;
    let mut images = json!(vec![json!({ "data": PNG }); 5]);
    // A type that is not known here may be known there.
    images[1]["data"] = json!("aGVsbG8gd29ybGQ=");
    client
        .good(
            "createAgent",
            changed(order("Go"), "/prompt/images", images),
        )
        .await;
}
