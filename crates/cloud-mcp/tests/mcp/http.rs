//! The program over HTTP: who gets in, and what is where.

use std::time::Duration;

use cloud::fake::{Fault, Options, What};
use serde_json::{Value, json};

use crate::kit::{HttpServer, KEY, SECRET, command, fake, hello, in_time, order};

async fn token(url: &str, lasts: &str) -> String {
    let output = command(url)
        .env("TOKEN_SECRET", SECRET)
        .args(["token", "--expires-in", lasts])
        .output()
        .await
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_needs_a_bearer() {
    let fake = fake(Options::default()).await;
    let server = HttpServer::start(command(&fake.url())).await;
    let basic = "Basic a2V5Og==";
    for (method, path) in [
        ("GET", "/"),
        ("GET", "/health"),
        ("GET", "/sse"),
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
        ("OPTIONS", "/mcp"),
        ("GET", "/else"),
    ] {
        for bearer in [
            None,
            Some("Bearer"),
            Some("Bearer "),
            Some(basic),
            Some("Bearer key_that_cursor_refuses"),
            Some("Bearer cat1_AAAA"),
        ] {
            let headers: Vec<(&str, &str)> = bearer
                .iter()
                .map(|value| ("authorization", *value))
                .collect();
            let (status, headers, body) = server.raw(method, path, &headers, None).await;
            assert_eq!(status, 401, "{method} {path} {bearer:?}: {body}");
            assert!(
                headers["www-authenticate"]
                    .as_str()
                    .unwrap()
                    .starts_with("Bearer")
            );
        }
    }
    // A key in the URL is no bearer, and is not in the log.
    let (status, ..) = server
        .raw("GET", &format!("/{KEY}?key={KEY}"), &[], None)
        .await;
    assert_eq!(status, 401);
    let log = server.stderr.holds("(another path) 401").await;
    assert!(
        !log.contains(KEY) && !log.contains("key_that_cursor"),
        "{log}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_routes_are_these() {
    let fake = fake(Options::default()).await;
    let server = HttpServer::start(command(&fake.url())).await;
    let (status, health) = server.get("/health").await;
    assert_eq!((status, &health["status"]), (200, &json!("ok")));
    let (status, about) = server.get("/").await;
    assert_eq!(status, 200);
    assert_eq!(about["endpoints"]["mcp"], "/mcp");
    assert_eq!(about["tools"].as_array().unwrap().len(), 14);
    let (status, gone) = server.get("/sse").await;
    assert_eq!(status, 410);
    assert!(gone.to_string().contains("/mcp"), "{gone}");
    assert_eq!(server.get("/else").await.0, 404);
    assert_eq!(server.get("/mcp").await.0, 405);
    let bearer = format!("Bearer {KEY}");
    let (status, ..) = server
        .raw("POST", "/health", &[("authorization", &bearer)], None)
        .await;
    assert_eq!(status, 405);
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut params = hello();
        params["protocolVersion"] = json!(version);
        let answer = server.request(KEY, "initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
    }
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(server.post(KEY, &note).await.0, 202);
    let (status, _) = server.post(KEY, &json!("nonsense")).await;
    assert!((400..500).contains(&status), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_hosts_and_origins_are_refused() {
    let fake = fake(Options::default()).await;
    let server = HttpServer::start(command(&fake.url())).await;
    let bearer = format!("Bearer {KEY}");
    let check = async |name: &str, value: &str, expected: u16| {
        for path in ["/", "/health", "/mcp", "/sse"] {
            let headers = [("authorization", bearer.as_str()), (name, value)];
            let (status, ..) = server.raw("GET", path, &headers, None).await;
            let refused = status == 403;
            assert_eq!(refused, expected == 403, "{name} {value} {path}: {status}");
        }
    };
    check("host", "evil.example:3000", 403).await;
    check("host", "127.0.0.1.evil.example", 403).await;
    check("host", "localhost:1", 200).await;
    check("origin", "https://evil.example", 403).await;
    check("origin", "null", 403).await;
    check("origin", "http://localhost:6274", 200).await;
    // Before the bearer is looked at: a page learns nothing.
    let (status, ..) = server
        .raw(
            "GET",
            "/health",
            &[("origin", "https://evil.example")],
            None,
        )
        .await;
    assert_eq!(status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_listens_on_the_loopback() {
    let fake = fake(Options::default()).await;
    let server = HttpServer::start(command(&fake.url())).await;
    assert!(
        server.url.starts_with("http://127.0.0.1:"),
        "{}",
        server.url
    );
    let port = server.url.rsplit(':').next().unwrap();
    let taken = command(&fake.url())
        .env("PORT", port)
        .arg("http")
        .output()
        .await
        .unwrap();
    assert_eq!(taken.status.code(), Some(1));
    let said = String::from_utf8_lossy(&taken.stderr).into_owned();
    assert!(said.contains(port), "{said}");
    assert!(said.contains("choose another with --port"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_message_is_refused_as_json_rpc_has_it() {
    let fake = fake(Options::default()).await;
    let server = HttpServer::start(command(&fake.url())).await;
    let bearer = format!("Bearer {KEY}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    for (body, code) in [
        ("", -32700),
        ("{\"jsonrpc\":", -32700),
        ("[]", -32600),
        (
            "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
            -32600,
        ),
        ("{}", -32600),
        ("7", -32600),
        ("{\"id\":1,\"method\":\"ping\"}", -32600),
    ] {
        let (status, _, text) = server
            .raw("POST", "/mcp", &headers, Some(body.to_owned()))
            .await;
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (status, &answer["error"]["code"]),
            (400, &json!(code)),
            "{body}: {text}"
        );
        assert_eq!(answer["id"], Value::Null);
    }
    let answer = server.request(KEY, "ping", json!({})).await;
    assert_eq!(answer["result"], json!({}), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_clients_get_json() {
    let fake = fake(Options::default()).await;
    let server = HttpServer::start(command(&fake.url())).await;
    let bearer = format!("Bearer {KEY}");
    let call = |tool: &str, arguments: Value| {
        let params = json!({ "name": tool, "arguments": arguments });
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
    };
    for accept in [
        "*/*",
        "application/json",
        "application/*;q=0.9",
        "text/html, */*",
    ] {
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
            ("accept", accept),
        ];
        for body in [
            call("getMe", json!({})),
            call("createAndWait", order("Fix it")),
        ] {
            let (status, headers, text) = server
                .raw("POST", "/mcp", &headers, Some(body.clone()))
                .await;
            assert_eq!(status, 200, "{accept}: {text}");
            assert_eq!(headers["content-type"], "application/json");
            let answer: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(answer["result"]["isError"], false, "{text}");
        }
    }
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("accept", "text/html"),
    ];
    let body = call("getMe", json!({}));
    let (status, ..) = server.raw("POST", "/mcp", &headers, Some(body)).await;
    assert_eq!(status, 406);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_stands_for_its_key() {
    let fake = fake(Options::default()).await;
    let mut with_secret = command(&fake.url());
    with_secret
        .env("TOKEN_SECRET", SECRET)
        .env_remove("CURSOR_API_KEY");
    let server = HttpServer::start(with_secret).await;
    let good = token(&fake.url(), "1h").await;
    let answer = server
        .request(&good, "tools/call", json!({ "name": "getMe" }))
        .await;
    assert_eq!(
        answer["result"]["structuredContent"]["apiKeyName"], "Neovim",
        "{answer}"
    );

    let short = token(&fake.url(), "1s").await;
    in_time(async {
        while server.post(&short, &json!({})).await.0 != 401 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let bearer = format!("Bearer {short}");
    let (_, _, said) = server
        .raw("GET", "/health", &[("authorization", &bearer)], None)
        .await;
    assert!(said.contains("expired"), "{said}");

    // Another server's secret, and none.
    let mut other = command(&fake.url());
    other.env("TOKEN_SECRET", "another secret of about forty characters");
    let bearer = format!("Bearer {good}");
    for command in [other, command(&fake.url())] {
        let server = HttpServer::start(command).await;
        let (status, _, said) = server
            .raw("GET", "/health", &[("authorization", &bearer)], None)
            .await;
        assert_eq!(status, 401);
        assert!(said.contains("TOKEN_SECRET"), "{said}");
        assert!(!said.contains(SECRET) && !said.contains(KEY));
    }
    let log = server.stderr.text();
    assert!(
        !log.contains(&good) && !log.contains(KEY) && !log.contains(SECRET),
        "{log}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_has_a_line_per_request_and_no_more() {
    let fake = fake(Options::default()).await;
    let server = HttpServer::start(command(&fake.url())).await;
    let params = json!({ "name": "createAgent", "arguments": order("planted prompt") });
    server.request(KEY, "tools/call", params).await;
    server
        .request(
            KEY,
            "tools/call",
            json!({ "name": "getMe", "arguments": {} }),
        )
        .await;
    server
        .post(
            KEY,
            &json!({ "jsonrpc": "2.0", "id": 1, "method": "planted/method" }),
        )
        .await;
    let log = server.stderr.holds("another method").await;
    assert!(
        log.contains("POST /mcp tools/call createAgent 200 "),
        "{log}"
    );
    assert!(log.contains("POST /mcp tools/call getMe 200 "), "{log}");
    assert!(!log.contains("planted") && !log.contains("acme"), "{log}");
    assert_eq!(log.lines().count(), 4, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_lets_what_runs_end() {
    let fake = fake(Options {
        pace: Duration::from_secs(3600),
        ..Options::default()
    })
    .await;
    for signal in ["-TERM", "-INT"] {
        let mut server = HttpServer::start(command(&fake.url())).await;
        let before = fake.agent_count();
        let message = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "createAndWait", "arguments": order("Fix it") },
        });
        let id = server.child.id().unwrap().to_string();
        let stop = async {
            in_time(async {
                while fake.agent_count() == before {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            })
            .await;
            let sent = std::process::Command::new("kill")
                .args([signal, &id])
                .status();
            assert!(sent.unwrap().success());
        };
        let ((status, messages), ()) = tokio::join!(server.post(KEY, &message), stop);
        assert_eq!(status, 200);
        let ended = &messages.last().unwrap()["result"]["structuredContent"];
        assert_eq!(ended["status"], "CANCELLED", "{messages:?}");
        assert!(ended["agentId"].is_string());
        assert_eq!(in_time(server.child.wait()).await.unwrap().code(), Some(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_shown_to_the_api_once() {
    let fake = fake(Options::default()).await;
    let server = HttpServer::start(command(&fake.url())).await;
    for _ in 0..3 {
        assert_eq!(server.get("/health").await.0, 200);
    }
    assert_eq!(fake.requests().len(), 1);
    // An API that is down locks no client out; the tools say what is wrong.
    let server = HttpServer::start(command(&fake.url())).await;
    fake.fault(Fault {
        what: What::Refuse {
            status: 503,
            code: "down".to_owned(),
            retry_after: Some("60".to_owned()),
        },
        ..Fault::default()
    });
    assert_eq!(server.get("/health").await.0, 200);
    // Nor does one that never answers.
    let server = HttpServer::start(command(&fake.url())).await;
    fake.heal();
    fake.fault(Fault {
        what: What::Hang,
        ..Fault::default()
    });
    assert_eq!(server.get("/health").await.0, 200);
}
