//! The program, a fake of the API, and clients that speak to it without a library.

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloud::fake::{Fake, Options};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

pub const KEY: &str = "key_planted_0123456789";
pub const SECRET: &str = "a-token-secret-of-forty-characters-or-so";
const PATIENCE: Duration = Duration::from_secs(30);

pub async fn fake(options: Options) -> Fake {
    Fake::start(Options {
        key: Some(KEY.to_owned()),
        ..options
    })
    .await
    .unwrap()
}

pub async fn in_time<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what)
        .await
        .expect("no end in time")
}

/// The program with nothing of the environment but what a test gives it.
pub fn command(url: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cursor-agent-mcp"));
    for name in [
        "CURSOR_API_KEY_COMMAND",
        "CURSOR_BACKEND_URL",
        "CURSOR_TEAM_ID",
        "PORT",
        "TOKEN_SECRET",
        "HTTP_PROXY",
        "http_proxy",
        "ALL_PROXY",
        "all_proxy",
    ] {
        command.env_remove(name);
    }
    command
        .env("CURSOR_API_URL", url)
        .env("CURSOR_API_KEY", KEY)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// What a child writes to stderr.
#[derive(Clone, Default)]
pub struct Stderr(Arc<Mutex<String>>);

impl Stderr {
    fn follow(child: &mut Child) -> Self {
        let all = Self::default();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let kept = all.clone();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                let mut text = kept.0.lock().unwrap();
                text.push_str(&line);
                text.push('\n');
            }
        });
        all
    }

    pub fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    /// Waits until it holds this.
    pub async fn holds(&self, part: &str) -> String {
        in_time(async {
            loop {
                let text = self.text();
                if text.contains(part) {
                    return text;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
    }
}

/// A client over stdin and stdout.
pub struct StdioClient {
    pub child: Child,
    pub stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    pub stderr: Stderr,
    next: u64,
    /// Notifications that came between.
    pub heard: Vec<Value>,
}

impl StdioClient {
    pub async fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut client = Self {
            stdin: child.stdin.take(),
            lines: BufReader::new(child.stdout.take().unwrap()).lines(),
            stderr: Stderr::follow(&mut child),
            child,
            next: 0,
            heard: Vec::new(),
        };
        let hello = client.request("initialize", hello()).await;
        assert_eq!(hello["result"]["serverInfo"]["name"], "cursor-agent-mcp");
        client
            .send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        client
    }

    pub async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).await.unwrap();
        stdin.flush().await.unwrap();
    }

    pub async fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        self.send(
            &json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }),
        )
        .await;
        self.next
    }

    pub async fn answer(&mut self, id: u64) -> Value {
        loop {
            let line = in_time(self.lines.next_line()).await.unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
            self.heard.push(message);
        }
    }

    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        self.answer(id).await
    }
}

/// The server over HTTP.
pub struct HttpServer {
    pub child: Child,
    pub url: String,
    pub stderr: Stderr,
    http: reqwest::Client,
}

impl HttpServer {
    pub async fn start(mut command: Command) -> Self {
        command.args(["http", "--port", "0"]);
        let mut child = command.spawn().unwrap();
        let stderr = Stderr::follow(&mut child);
        let text = stderr.holds("listening on ").await;
        let (_, rest) = text.split_once("listening on ").unwrap();
        let url = rest.split("/mcp").next().unwrap().to_owned();
        // As the client of the API needs it, and reqwest is built for that one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self {
            child,
            url,
            stderr,
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
        }
    }

    /// A request with these headers.
    pub async fn raw(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<String>,
    ) -> (u16, Value, String) {
        let mut request = self
            .http
            .request(method.parse().unwrap(), format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.body(body);
        }
        let response = in_time(request.send()).await.unwrap();
        let status = response.status().as_u16();
        let headers = json!(
            response
                .headers()
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
                .collect::<std::collections::BTreeMap<_, _>>()
        );
        (status, headers, in_time(response.text()).await.unwrap())
    }

    pub async fn get(&self, path: &str) -> (u16, Value) {
        let bearer = format!("Bearer {KEY}");
        let (status, _, text) = self
            .raw("GET", path, &[("authorization", &bearer)], None)
            .await;
        (status, serde_json::from_str(&text).unwrap_or_default())
    }

    /// Messages a POST brings: one as JSON, or several as events.
    pub async fn post(&self, bearer: &str, message: &Value) -> (u16, Vec<Value>) {
        let bearer = format!("Bearer {bearer}");
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        let (status, headers, text) = self
            .raw("POST", "/mcp", &headers, Some(message.to_string()))
            .await;
        let kind = headers["content-type"].as_str().unwrap_or_default();
        let messages = if kind.starts_with("text/event-stream") {
            text.lines()
                .filter_map(|line| line.strip_prefix("data:"))
                .filter_map(|data| serde_json::from_str(data).ok())
                .collect()
        } else {
            serde_json::from_str(&text).into_iter().collect()
        };
        (status, messages)
    }

    pub async fn request(&self, bearer: &str, method: &str, params: Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let (status, messages) = self.post(bearer, &message).await;
        assert_eq!(status, 200, "{messages:?}");
        messages.last().unwrap().clone()
    }
}

pub fn hello() -> Value {
    json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    })
}

/// Either of them.
pub enum Client {
    Stdio(Box<StdioClient>),
    Http(Box<HttpServer>),
}

impl Client {
    pub async fn stdio(fake: &Fake) -> Self {
        Self::Stdio(Box::new(StdioClient::start(command(&fake.url())).await))
    }

    pub async fn http(fake: &Fake) -> Self {
        let mut command = command(&fake.url());
        command.env_remove("CURSOR_API_KEY");
        Self::Http(Box::new(HttpServer::start(command).await))
    }

    pub async fn both(fake: &Fake) -> [Self; 2] {
        [Self::stdio(fake).await, Self::http(fake).await]
    }

    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        match self {
            Self::Stdio(client) => client.request(method, params).await,
            Self::Http(server) => server.request(KEY, method, params).await,
        }
    }

    /// The result of a tool, checked against its schema where it is one.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self
            .request(
                "tools/call",
                json!({ "name": tool, "arguments": arguments }),
            )
            .await;
        let result = answer["result"].clone();
        assert!(result.is_object(), "{answer}");
        let tools = self.request("tools/list", json!({})).await;
        let listed = tools["result"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .find(|listed| listed["name"] == tool)
            .unwrap();
        let schema = jsonschema::validator_for(&listed["outputSchema"]).unwrap();
        let structured = &result["structuredContent"];
        assert!(schema.is_valid(structured), "{tool}: {structured}");
        for block in result["content"].as_array().unwrap() {
            assert_eq!(block["type"], "text");
            assert!(!block["text"].as_str().unwrap().is_empty());
        }
        result
    }

    /// What a tool gives when all goes well: text and structured content.
    pub async fn good(&mut self, tool: &str, arguments: Value) -> (String, Value) {
        let result = self.call(tool, arguments).await;
        assert_eq!(result["isError"], false, "{tool}: {result}");
        (text(&result), result["structuredContent"].clone())
    }

    /// What a tool gives when something goes wrong: text and error.
    pub async fn bad(&mut self, tool: &str, arguments: Value) -> (String, Value) {
        let result = self.call(tool, arguments).await;
        assert_eq!(result["isError"], true, "{tool}: {result}");
        (text(&result), result["structuredContent"]["error"].clone())
    }

    pub fn stderr(&self) -> String {
        match self {
            Self::Stdio(client) => client.stderr.text(),
            Self::Http(server) => server.stderr.text(),
        }
    }
}

fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

/// An input of createAgent.
pub fn order(text: &str) -> Value {
    json!({
        "prompt": { "text": text }, "model": "default",
        "source": { "repository": "https://github.com/acme/app", "ref": "main" },
    })
}

/// The same with this instead.
pub fn changed(mut input: Value, pointer: &str, value: Value) -> Value {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = input.pointer_mut(parent).unwrap();
    match value {
        Value::Null => {
            parent.as_object_mut().unwrap().remove(name);
        }
        value => parent[name] = value,
    }
    input
}

/// A small PNG in base64.
pub const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
