//! Streamable HTTP: `POST /mcp`, `GET /`, `GET /health`. Each request passes the guard, then its bearer is looked at.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::Response;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::bearer::Bearers;
use crate::documentation::NAME;
use crate::error::Error;
use crate::guard::Guard;
use crate::options::Http;
use crate::server::Server;
use crate::tools::TOOLS;
use crate::wait::Waits;
use crate::{SHUT_DOWN, complain, log, signals, token};

/// Five images of 15 MB in base64, and the rest.
const MAX_BODY_BYTES: usize = 110 * 1024 * 1024;

type Mcp = StreamableHttpService<Server, NeverSessionManager>;

struct Shared {
    guard: Guard,
    bearers: Bearers,
    /// Answers with JSON.
    quick: Mcp,
    /// Answers with a stream, which is kept alive while a tool works for minutes.
    slow: Mcp,
}

/// Serves until a signal comes.
pub async fn serve(options: Http) -> Result<ExitCode, Error> {
    let listener = TcpListener::bind((options.host.trim_matches(['[', ']']), options.port))
        .await
        .map_err(|source| Error::Listen {
            host: options.host.clone(),
            port: options.port,
            source,
        })?;
    let address: SocketAddr = listener.local_addr()?;
    // Fails here rather than at each request.
    crate::account::Account::from_env()?;
    if !address.ip().is_loopback() {
        complain(
            "other machines can reach this server, and HTTP is not encrypted: put a TLS proxy in front of it",
        );
    }
    if let Some(warning) = token::weak_secret() {
        complain(&warning);
    }
    let (mut term, mut int) = signals()?;
    let stop = CancellationToken::new();
    let waits = Waits::new(stop.clone());
    let mcp = |json: bool| {
        let waits = waits.clone();
        StreamableHttpService::new(
            move || Ok(Server::new(None, waits.clone())),
            Arc::new(NeverSessionManager::default()),
            StreamableHttpServerConfig::default()
                .with_legacy_session_mode(false)
                .with_json_response(json)
                .with_max_request_body_bytes(MAX_BODY_BYTES)
                // The guard has looked at it, with more names.
                .disable_allowed_hosts(),
        )
    };
    let shared = Arc::new(Shared {
        guard: Guard::new(&options.host, &options.hosts, &options.origins),
        bearers: Bearers::from_env(),
        quick: mcp(true),
        slow: mcp(false),
    });
    let routes = Router::new().fallback(answer).with_state(shared);
    complain(&format!("listening on http://{address}/mcp"));
    let serving = axum::serve(listener, routes)
        .with_graceful_shutdown(stop.clone().cancelled_owned())
        .into_future();
    let serving = tokio::spawn(serving);
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    // Waits answer now, and what is short is finished.
    stop.cancel();
    let _ = tokio::time::timeout(SHUT_DOWN, serving).await;
    complain("stopped");
    Ok(ExitCode::SUCCESS)
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let started = Instant::now();
    let path = match request.uri().path() {
        "/" => "/",
        "/mcp" => "/mcp",
        "/health" => "/health",
        "/sse" => "/sse",
        // A client can put anything there, a key too.
        _ => "(another path)",
    };
    let verb = match *request.method() {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "(another method)",
    };
    let (what, response) = route(&shared, request, path).await;
    log::request(
        verb,
        path,
        what,
        response.status().as_u16(),
        started.elapsed(),
    );
    response
}

type What = Option<(&'static str, Option<&'static str>)>;

async fn route(shared: &Shared, mut request: Request, path: &str) -> (What, Response) {
    if let Err(why) = shared.guard.check(request.uri(), request.headers()) {
        return (None, refuse(StatusCode::FORBIDDEN, why));
    }
    let header = request
        .headers()
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let account = match shared.bearers.account(header).await {
        Ok(account) => account,
        Err(why) => {
            let mut response = refuse(StatusCode::UNAUTHORIZED, why);
            response.headers_mut().insert(
                WWW_AUTHENTICATE,
                HeaderValue::from_static("Bearer realm=\"cursor-agent-mcp\""),
            );
            return (None, response);
        }
    };
    // What MCP hands to the tools has no bearer any more.
    request.headers_mut().remove(AUTHORIZATION);
    request.extensions_mut().insert(account);
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    match path {
        "/mcp" => mcp(shared, request).await,
        "/" if reads => (None, json(StatusCode::OK, &discovery())),
        "/health" if reads => (
            None,
            json(
                StatusCode::OK,
                &json!({ "status": "ok", "name": NAME, "version": env!("CARGO_PKG_VERSION") }),
            ),
        ),
        "/sse" => (
            None,
            refuse(
                StatusCode::GONE,
                "the older HTTP+SSE transport is not served; use streamable HTTP: POST /mcp",
            ),
        ),
        "/" | "/health" => {
            let mut response = refuse(StatusCode::METHOD_NOT_ALLOWED, "use GET");
            response
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            (None, response)
        }
        _ => (
            None,
            refuse(
                StatusCode::NOT_FOUND,
                "unknown path; expected POST /mcp, GET / or GET /health",
            ),
        ),
    }
}

async fn mcp(shared: &Shared, request: Request) -> (What, Response) {
    let (mut parts, body) = request.into_parts();
    let bytes: Bytes = match axum::body::to_bytes(body, MAX_BODY_BYTES).await {
        Ok(bytes) => bytes,
        Err(_) => {
            let why = "the body is too large or was cut off";
            return (None, refuse(StatusCode::PAYLOAD_TOO_LARGE, why));
        }
    };
    let message = serde_json::from_slice::<Value>(&bytes).ok();
    // Said here: the service would answer as if the type of the body were wrong.
    if parts.method == Method::POST
        && let Some((code, why)) = not_a_message(message.as_ref())
    {
        let error = json!({ "code": code, "message": why });
        let answer = json!({ "jsonrpc": "2.0", "id": null, "error": error });
        return (None, json(StatusCode::BAD_REQUEST, &answer));
    }
    // Only what it asks for; the message itself is read by the service.
    let what = message.and_then(|message| log::what(&message));
    let json_only = takes_json_only(&parts.headers);
    if json_only {
        // The protocol wants both named, and plain HTTP clients name neither: JSON is what they get.
        let both = HeaderValue::from_static("application/json, text/event-stream");
        parts.headers.insert(ACCEPT, both);
    }
    let service = if !json_only && matches!(what, Some((_, Some("createAndWait")))) {
        &shared.slow
    } else {
        &shared.quick
    };
    let request = Request::from_parts(parts, Body::from(bytes));
    (what, service.handle(request).await.map(Body::new))
}

/// Whether a client takes JSON and does not name streams.
fn takes_json_only(headers: &HeaderMap) -> bool {
    let given: Vec<String> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|kind| kind.split(';').next().unwrap_or_default())
        .map(|kind| kind.trim().to_ascii_lowercase())
        .filter(|kind| !kind.is_empty())
        .collect();
    let json =
        |kind: &String| matches!(kind.as_str(), "*/*" | "application/*" | "application/json");
    let streams = given.iter().any(|kind| kind == "text/event-stream");
    !streams && (given.is_empty() || given.iter().any(json))
}

/// Why a body is no message of JSON-RPC, with its code.
fn not_a_message(body: Option<&Value>) -> Option<(i32, &'static str)> {
    let Some(body) = body else {
        return Some((-32700, "Parse error: the body is not JSON"));
    };
    if body.is_array() {
        let why = "Invalid Request: send one message at a time; batches are not supported";
        return Some((-32600, why));
    }
    let asks =
        body["method"].is_string() || body.get("result").is_some() || body.get("error").is_some();
    (body["jsonrpc"] != "2.0" || !asks).then_some((
        -32600,
        "Invalid Request: the body is not a JSON-RPC 2.0 message",
    ))
}

fn discovery() -> Value {
    let tools: Vec<Value> = TOOLS
        .iter()
        .map(|tool| json!({ "name": tool.name, "description": tool.description }))
        .collect();
    json!({
        "name": NAME,
        "version": env!("CARGO_PKG_VERSION"),
        "description": "An MCP server for Cursor's cloud agents",
        "transport": "streamable-http",
        "endpoints": { "mcp": "/mcp", "health": "/health" },
        "authentication": "Authorization: Bearer with a Cursor API key, or with a token from `cursor-agent-mcp token`",
        "tools": tools,
    })
}

fn refuse(status: StatusCode, why: &str) -> Response {
    json(status, &json!({ "error": { "message": why } }))
}

fn json(status: StatusCode, value: &Value) -> Response {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
