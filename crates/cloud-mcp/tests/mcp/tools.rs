//! Each tool, over both transports.

use cloud::fake::Options;
use serde_json::json;

use crate::kit::{Client, PNG, changed, fake, order};

const TOOLS: [&str; 14] = [
    "createAgent",
    "createAndWait",
    "cancelCreateAndWait",
    "listAgents",
    "summarizeAgents",
    "getAgent",
    "deleteAgent",
    "addFollowup",
    "getAgentConversation",
    "getMe",
    "listModels",
    "listRepositories",
    "createAgentFromTemplate",
    "documentation",
];

#[tokio::test(flavor = "multi_thread")]
async fn the_fourteen_are_listed_with_schemas() {
    let fake = fake(Options::default()).await;
    for mut client in Client::both(&fake).await {
        let listed = client.request("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap();
        let names: Vec<&str> = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, TOOLS);
        for tool in tools {
            for schema in ["inputSchema", "outputSchema"] {
                assert_eq!(tool[schema]["type"], "object", "{tool}");
                assert!(jsonschema::meta::is_valid(&tool[schema]), "{tool}");
            }
            assert_eq!(tool["inputSchema"]["additionalProperties"], false);
        }
        let create = &tools[0]["inputSchema"];
        assert_eq!(create["required"], json!(["prompt", "model", "source"]));
        assert_eq!(create["properties"]["model"]["default"], "default");
        assert_eq!(tools[6]["annotations"]["destructiveHint"], true);
        assert_eq!(tools[3]["annotations"]["readOnlyHint"], true);
    }
    // Listing asks the API for nothing but whose key it is.
    assert!(fake.requests().iter().all(|asked| asked.path == "/v1/me"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_created_shown_steered_and_deleted() {
    let fake = fake(Options::default()).await;
    for mut client in Client::both(&fake).await {
        let (text, agent) = client.good("createAgent", order("Fix the tests")).await;
        let id = agent["id"].as_str().unwrap().to_owned();
        assert!(text.contains(&id), "{text}");
        assert_eq!(
            agent["source"],
            json!({ "repository": "https://github.com/acme/app", "ref": "main" })
        );
        let sent = fake.requests();
        let created = sent
            .iter()
            .rfind(|asked| asked.method == "POST" && asked.path == "/v1/agents")
            .unwrap();
        let body: serde_json::Value = serde_json::from_str(&created.body).unwrap();
        // A pull request unless told otherwise; "default" is no model.
        assert_eq!(body["autoCreatePR"], true);
        assert!(body.get("model").is_none());
        assert!(created.idempotency_key.is_some());

        let (text, shown) = client.good("getAgent", json!({ "id": id })).await;
        assert_eq!(shown["id"], id.as_str());
        assert!(text.contains("Repository: https://github.com/acme/app"));

        // Until the run has ended.
        let ended = loop {
            let (_, agent) = client.good("getAgent", json!({ "id": id })).await;
            if agent["status"] == "FINISHED" {
                break agent;
            }
        };
        assert!(ended["target"]["branchName"].is_string(), "{ended}");
        let (text, _) = client
            .good(
                "addFollowup",
                json!({ "id": id, "prompt": { "text": "Now the docs" } }),
            )
            .await;
        assert!(text.contains("Now the docs"), "{text}");
        assert_eq!(fake.run_count(&id), 2);

        let (text, said) = client
            .good("getAgentConversation", json!({ "id": id }))
            .await;
        assert_eq!(said["messages"][0]["text"], "Fix the tests");
        assert!(
            text.contains("User: Fix the tests") && text.contains("Assistant: "),
            "{text}"
        );

        let (_, gone) = client.good("deleteAgent", json!({ "id": id })).await;
        assert_eq!(gone, json!({ "id": id, "deleted": true }));
        let (text, error) = client.bad("getAgent", json!({ "id": id })).await;
        assert!(
            text.starts_with("API Error (404): ") && text.ends_with("[NOT_FOUND]"),
            "{text}"
        );
        assert_eq!(
            (&error["kind"], &error["status"]),
            (&json!("NOT_FOUND"), &json!(404))
        );
        assert_eq!(fake.agent_count(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_and_branch_names_go_to_the_older_api() {
    let fake = fake(Options::default()).await;
    let mut client = Client::stdio(&fake).await;
    let secret = "0123456789abcdef0123456789abcdef";
    let input = changed(
        changed(
            changed(
                order("Go"),
                "/target",
                json!({ "branchName": "fix/types", "autoCreatePr": false }),
            ),
            "/webhook",
            json!({ "url": "https://example.com/hook", "secret": secret }),
        ),
        "/prompt/images",
        json!([{ "data": PNG, "dimension": { "width": 1, "height": 1 } }]),
    );
    let input = changed(input, "/model", json!("gpt-5"));
    let (_, agent) = client.good("createAgent", input).await;
    assert_eq!(agent["target"]["branchName"], "fix/types");
    let sent = fake.requests();
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!(sent[0].path, "/v0/agents");
    let body: serde_json::Value = serde_json::from_str(&sent[0].body).unwrap();
    assert_eq!(
        body,
        json!({
            "prompt": { "text": "Go", "images": [{ "data": PNG, "dimension": { "width": 1.0, "height": 1.0 } }] },
            "model": "gpt-5",
            "source": { "repository": "https://github.com/acme/app", "ref": "main" },
            "target": { "autoCreatePr": false, "branchName": "fix/types" },
            "webhook": { "url": "https://example.com/hook", "secret": secret },
        })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn images_reach_todays_api_with_their_type() {
    let fake = fake(Options::default()).await;
    let mut client = Client::stdio(&fake).await;
    let input = changed(order("Look"), "/prompt/images", json!([{ "data": PNG }]));
    client.good("createAgent", input).await;
    let body: serde_json::Value = serde_json::from_str(&fake.requests()[0].body).unwrap();
    assert_eq!(
        body["prompt"]["images"],
        json!([{ "data": PNG, "mimeType": "image/png" }])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_read_in_pages() {
    let fake = fake(Options {
        agents: 130,
        ..Options::default()
    })
    .await;
    for mut client in Client::both(&fake).await {
        let (text, page) = client.good("listAgents", json!({})).await;
        assert_eq!(page["agents"].as_array().unwrap().len(), 100);
        let cursor = page["nextCursor"].as_str().unwrap();
        assert!(
            text.starts_with("100 agents:") && text.contains(cursor),
            "{text}"
        );
        let (_, rest) = client
            .good("listAgents", json!({ "cursor": cursor, "limit": 50 }))
            .await;
        assert_eq!(rest["agents"].as_array().unwrap().len(), 30);
        assert!(rest.get("nextCursor").is_none());
        let (text, error) = client
            .bad("listAgents", json!({ "cursor": "nonsense" }))
            .await;
        assert!(text.starts_with("API Error (400): "), "{text}");
        assert_eq!(error["field"], "cursor");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_summary_counts_what_passes_the_filters() {
    let fake = fake(Options {
        agents: 40,
        ..Options::default()
    })
    .await;
    let mut client = Client::stdio(&fake).await;
    let (text, all) = client.good("summarizeAgents", json!({})).await;
    assert_eq!(all["totals"]["totalAgents"], 40);
    let counts = all["statusCounts"].as_object().unwrap();
    assert_eq!(
        counts
            .values()
            .filter_map(serde_json::Value::as_u64)
            .sum::<u64>(),
        40
    );
    assert!(text.starts_with("Agents: 40\n"), "{text}");
    assert_eq!(all["recentAgents"].as_array().unwrap().len(), 5);
    assert_eq!(
        all["filters"],
        json!({ "status": null, "repository": null, "limit": 100, "cursor": null })
    );
    assert_eq!(all["pagination"], json!({ "nextCursor": null }));

    let finished = counts["FINISHED"].as_u64().unwrap();
    let (text, some) = client
        .good("summarizeAgents", json!({ "status": "FINISHED" }))
        .await;
    assert_eq!(some["totals"]["totalAgents"], finished);
    assert_eq!(some["statusCounts"]["RUNNING"], 0);
    assert!(text.starts_with("Only: status FINISHED\n"), "{text}");
    assert!(some["inProgressAgents"].as_array().unwrap().is_empty());

    let (_, docs) = client
        .good("summarizeAgents", json!({ "repository": "ACME/docs" }))
        .await;
    let of_docs = docs["totals"]["totalAgents"].as_u64().unwrap();
    assert!(of_docs > 0 && of_docs < 40);
    for agent in docs["recentAgents"].as_array().unwrap() {
        assert_eq!(agent["repository"], "https://github.com/acme/docs");
    }
    let (_, few) = client.good("summarizeAgents", json!({ "limit": 7 })).await;
    assert_eq!(few["totals"]["totalAgents"], 7);
    assert!(few["pagination"]["nextCursor"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_account_its_models_and_its_repositories_are_shown() {
    let fake = fake(Options::default()).await;
    for mut client in Client::both(&fake).await {
        let (text, me) = client.good("getMe", json!({})).await;
        assert_eq!(me["apiKeyName"], "Neovim");
        assert!(text.contains("ada@example.org"), "{text}");
        let (text, models) = client.good("listModels", json!({})).await;
        let first = models["models"][0].as_str().unwrap();
        assert!(text.contains(first), "{text}");
        let before = asked(&fake);
        for _ in 0..3 {
            let (_, list) = client.good("listRepositories", json!({})).await;
            assert_eq!(
                list["repositories"][0],
                json!({ "owner": "acme", "name": "app", "repository": "https://github.com/acme/app" })
            );
        }
        // The API allows one such call a minute.
        assert_eq!(asked(&fake), before + 1);
    }
}

fn asked(fake: &cloud::fake::Fake) -> usize {
    fake.requests()
        .iter()
        .filter(|asked| asked.path.ends_with("/repositories"))
        .count()
}

#[tokio::test(flavor = "multi_thread")]
async fn templates_make_prompts() {
    let fake = fake(Options::default()).await;
    let mut client = Client::stdio(&fake).await;
    for (template, params, parts) in [
        (
            "docAudit",
            json!({ "docPaths": ["README.md", "doc/"], "guidelines": "Plain words" }),
            vec!["- README.md\n- doc/\n", "Plain words"],
        ),
        (
            "typeCleanup",
            json!({ "strictMode": true, "includeDirs": ["src"] }),
            vec!["strict mode", "- src\n"],
        ),
        (
            "bugHunt",
            json!({ "area": "the parser", "flaky": true }),
            vec!["the parser", "repeatedly"],
        ),
    ] {
        let input = json!({
            "template": template, "params": params, "source": { "repository": "https://github.com/acme/app" },
        });
        client.good("createAgentFromTemplate", input).await;
        let sent = fake.requests();
        let body: serde_json::Value = serde_json::from_str(&sent.last().unwrap().body).unwrap();
        let prompt = body["prompt"]["text"].as_str().unwrap();
        for part in parts {
            assert!(prompt.contains(part), "{template}: {prompt}");
        }
    }
    let input = json!({ "template": "typeCleanup", "source": { "repository": "https://github.com/acme/app" } });
    client.good("createAgentFromTemplate", input).await;
    assert_eq!(fake.agent_count(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documentation_names_every_tool() {
    let fake = fake(Options::default()).await;
    let mut client = Client::stdio(&fake).await;
    let (markdown, structured) = client.good("documentation", json!({})).await;
    for tool in TOOLS {
        assert!(markdown.contains(&format!("### {tool}\n")), "{tool}");
    }
    assert_eq!(structured["tools"].as_array().unwrap().len(), 14);
    let (text, _) = client
        .good("documentation", json!({ "format": "json" }))
        .await;
    let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(parsed, structured);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_tool_is_a_protocol_error() {
    let fake = fake(Options::default()).await;
    for mut client in Client::both(&fake).await {
        let answer = client
            .request(
                "tools/call",
                json!({ "name": "createagent", "arguments": {} }),
            )
            .await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(
            answer["error"]["message"]
                .as_str()
                .unwrap()
                .contains("createagent")
        );
        let pong = client.request("ping", json!({})).await;
        assert_eq!(pong["result"], json!({}));
    }
}
