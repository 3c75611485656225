//! Real clients and the conformance suite, from npm and PyPI; installed into the cache, and skipped with a word where that fails.

use std::path::PathBuf;
use std::process::Stdio;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::response::Response;
use cloud::fake::Options;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::kit::{HttpServer, KEY, command, fake};

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The words of a command that `tests/real/install…` brings; None, and a word of why, where it cannot.
async fn install(script: &str, package: &str) -> Option<Vec<String>> {
    let output = Command::new(here().join("../../tests/real").join(script))
        .arg(package)
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    if output.status.success() {
        let words = String::from_utf8(output.stdout).unwrap();
        return Some(words.lines().map(str::to_owned).collect());
    }
    #[expect(
        clippy::print_stderr,
        reason = "the only way a test can say it was skipped"
    )]
    {
        eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr));
    }
    None
}

#[derive(Clone)]
struct Proxy {
    http: reqwest::Client,
    to: String,
}

/// Passes everything on with a bearer: the suite cannot send one.
async fn with_bearer(to: &str) -> String {
    let proxy = Proxy {
        http: reqwest::Client::builder().no_proxy().build().unwrap(),
        to: to.to_owned(),
    };
    let pass = async |State(proxy): State<Proxy>, request: Request| -> Response {
        let (parts, body) = request.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        let answer = proxy
            .http
            .request(parts.method, format!("{}{}", proxy.to, parts.uri.path()))
            .headers(parts.headers)
            .header(AUTHORIZATION, format!("Bearer {KEY}"))
            .body(body)
            .send()
            .await
            .unwrap();
        let mut response = Response::new(Body::empty());
        *response.status_mut() = answer.status();
        *response.headers_mut() = answer.headers().clone();
        response.headers_mut().remove("transfer-encoding");
        *response.body_mut() = Body::from(answer.bytes().await.unwrap());
        response
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let routes = Router::new().fallback(pass).with_state(proxy);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    format!("http://{address}")
}

/// All scenarios run; those in `conformance.yaml`, which has the reasons, must fail, and all others pass.
#[tokio::test(flavor = "multi_thread")]
async fn the_conformance_suite_passes_where_it_applies() {
    let Some(words) = install("install", "conformance").await else {
        return;
    };
    let fake = fake(Options::default()).await;
    let server = HttpServer::start(command(&fake.url())).await;
    let url = format!("{}/mcp", with_bearer(&server.url).await);
    let output = Command::new(&words[0])
        .args(&words[1..])
        .args([
            "server",
            "--suite",
            "all",
            "--url",
            &url,
            "--expected-failures",
        ])
        .arg(here().join("tests/mcp/conformance.yaml"))
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let more = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}\n{more}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_of_the_python_sdk_works_over_both_transports() {
    let Some(words) = install("install", "mcp").await else {
        return;
    };
    let fake = fake(Options::default()).await;
    let server = HttpServer::start(command(&fake.url())).await;
    let url = format!("{}/mcp", server.url);
    let program = env!("CARGO_BIN_EXE_cursor-agent-mcp");
    for (kind, place) in [("stdio", program), ("http", url.as_str())] {
        let before = fake.agent_count();
        let output = Command::new(&words[0])
            .args(&words[1..])
            .arg(here().join("tests/python/client.py"))
            .args([kind, place])
            .env("CURSOR_API_KEY", KEY)
            .env("CURSOR_API_URL", fake.url())
            .env("BEARER", KEY)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null())
            .output()
            .await
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{kind}: {stderr}");
        let reports: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let protocols: Vec<&str> = reports
            .iter()
            .map(|report| report["protocol"].as_str().unwrap())
            .collect();
        match kind {
            "stdio" => assert_eq!(protocols, ["2026-07-28"]),
            _ => assert_eq!(protocols, ["2026-07-28", "2025-11-25"]),
        }
        for (number, report) in reports.iter().enumerate() {
            let agents = before + 2 * (number + 1);
            assert_eq!(report["server"], "cursor-agent-mcp");
            assert_eq!(report["tools"].as_array().unwrap().len(), 14);
            assert_eq!(report["schemas"], true);
            assert_eq!(report["created"], json!([false, true, true]));
            assert_eq!(report["waited"], "FINISHED");
            assert_eq!(report["progress"], true);
            assert_eq!(report["listed"], agents);
            assert_eq!(report["total"], agents);
            assert_eq!(report["wrong"], json!([true, "prompt.text"]));
            assert_eq!(report["missing"], json!([true, 404]));
        }
    }
}
