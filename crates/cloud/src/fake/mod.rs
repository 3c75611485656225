//! The API itself on loopback, with its faults: for tests, for the demo, and to be tried with Cursor's own SDK.
//!
//! [`world`] answers, [`script`] plays what agents do, [`faults`] is what goes wrong, [`http`] the bytes.
//! Tests in other languages make faults with `POST /fake`, or with a line on stdin of `cursor-agent-cloud fake`: an object with `faults`,
//! `expire_key`, `expire_streams` and `forget_keys`, each optional. The answer has all `agents` and `requests` so far.

pub mod faults;
mod http;
mod script;
mod world;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;

pub use faults::{Fault, What};
use http::{Request, Wire};
use world::{Reply, World, refuse};

/// How the fake is set up.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The key it accepts; `key_fake` without it.
    pub key: Option<String>,
    /// How many agents there are.
    pub agents: usize,
    /// Between two events of a run.
    pub pace: Duration,
    /// 0: any.
    pub port: u16,
    /// How far its clock is ahead of ours.
    pub skew_ms: i64,
}

/// The fake. It ends when this is dropped.
#[derive(Debug)]
pub struct Fake {
    shared: Arc<Shared>,
    address: SocketAddr,
    server: tokio::task::JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    world: Mutex<World>,
    faults: Mutex<Vec<Fault>>,
    requests: Mutex<Vec<Asked>>,
    streams: AtomicUsize,
    /// Something happened in a run.
    news: Notify,
    pace: Duration,
}

/// A request the fake has got.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Asked {
    /// `GET` and so on.
    pub method: String,
    /// Without the query.
    pub path: String,
    /// `Idempotency-Key`.
    pub idempotency_key: Option<String>,
    /// `Last-Event-ID`.
    pub last_event_id: Option<String>,
    /// The body as text.
    pub body: String,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Fake {
    /// Starts it on a port of the loopback.
    ///
    /// # Errors
    /// When the port cannot be had.
    pub async fn start(options: Options) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", options.port)).await?;
        let address = listener.local_addr()?;
        let mut world = World::new(options.key.as_deref().unwrap_or("key_fake"));
        world.skew_ms = options.skew_ms;
        world.base = format!("http://{address}");
        world.fill(options.agents);
        let shared = Arc::new(Shared {
            world: Mutex::new(world),
            faults: Mutex::default(),
            requests: Mutex::default(),
            streams: AtomicUsize::new(0),
            news: Notify::new(),
            pace: options.pace,
        });
        let serving = Arc::clone(&shared);
        let server = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let _ = socket.set_nodelay(true);
                let shared = Arc::clone(&serving);
                while connections.try_join_next().is_some() {}
                connections.spawn(async move {
                    let _ = connection(shared, Wire::new(socket)).await;
                });
            }
        });
        Ok(Self {
            shared,
            address,
            server,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Makes something go wrong from now on.
    pub fn fault(&self, fault: Fault) {
        lock(&self.shared.faults).push(fault);
    }

    /// Nothing goes wrong any more.
    pub fn heal(&self) {
        lock(&self.shared.faults).clear();
    }

    /// Whether something has yet to go wrong.
    #[must_use]
    pub fn has_faults(&self) -> bool {
        let faults = lock(&self.shared.faults);
        faults.iter().any(|fault| fault.what != What::Nothing)
    }

    /// The key is no longer accepted.
    pub fn expire_key(&self) {
        lock(&self.shared.world).key_expired = true;
    }

    /// Idempotency keys are forgotten at once: a repeated creation is refused by its agent's id.
    pub fn forget_keys(&self) {
        lock(&self.shared.world).forgets_keys = true;
    }

    /// The streams of all runs so far can no longer be read.
    pub fn expire_streams(&self) {
        for agent in &mut lock(&self.shared.world).agents {
            for run in &mut agent.runs {
                run.expired = true;
            }
        }
        self.shared.news.notify_waiters();
    }

    /// Does what a line of JSON asks for, as `POST /fake` does; see the top of this file.
    #[must_use]
    pub fn control(&self, line: &str) -> String {
        obey(&self.shared, line.as_bytes()).to_string()
    }

    /// How many agents there are.
    #[must_use]
    pub fn agent_count(&self) -> usize {
        lock(&self.shared.world).agents.len()
    }

    /// How many runs an agent has.
    #[must_use]
    pub fn run_count(&self, agent: &str) -> usize {
        lock(&self.shared.world)
            .agent(agent)
            .map_or(0, |agent| agent.runs.len())
    }

    /// The ids of the agents, newest first.
    #[must_use]
    pub fn agent_ids(&self) -> Vec<String> {
        lock(&self.shared.world)
            .agents
            .iter()
            .map(|agent| agent.id.clone())
            .collect()
    }

    /// How many streams are open.
    #[must_use]
    pub fn stream_count(&self) -> usize {
        self.shared.streams.load(Ordering::Relaxed)
    }

    /// What it was asked.
    #[must_use]
    pub fn requests(&self) -> Vec<Asked> {
        lock(&self.shared.requests).clone()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// What tests in other languages set.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Control {
    faults: Option<Vec<Fault>>,
    expire_key: bool,
    expire_streams: bool,
    forget_keys: bool,
}

async fn connection(shared: Arc<Shared>, mut wire: Wire) -> io::Result<()> {
    loop {
        // A fault may come while the connection is idle.
        wire.client_gone().await;
        let limit = lock(&shared.faults)
            .iter_mut()
            .find_map(|fault| match fault.what {
                What::CutRequest { bytes } => Some(bytes),
                _ => None,
            });
        let Some(request) = wire.request(limit).await? else {
            if limit.is_some() {
                lock(&shared.faults).retain(|fault| !matches!(fault.what, What::CutRequest { .. }));
            }
            return Ok(());
        };
        if request.path.first().map(String::as_str) == Some("fake") {
            control(&shared, &mut wire, &request).await?;
            continue;
        }
        lock(&shared.requests).push(Asked {
            method: request.method.clone(),
            path: request.raw_path.clone(),
            idempotency_key: request.headers.get("idempotency-key").cloned(),
            last_event_id: request.headers.get("last-event-id").cloned(),
            body: String::from_utf8_lossy(&request.body).into_owned(),
        });
        let what = lock(&shared.faults)
            .iter_mut()
            .find_map(|fault| {
                let what = fault.what.clone();
                (!matches!(what, What::CutRequest { .. }) && fault.meets(&request)).then_some(what)
            })
            .unwrap_or_default();
        if let What::Hang = what {
            wire.client_gone().await;
            return Ok(());
        }
        if let What::Refuse {
            status,
            code,
            retry_after,
        } = &what
        {
            let headers = retry_after
                .iter()
                .map(|after| format!("Retry-After: {after}\r\n"))
                .collect::<String>();
            let code = if code.is_empty() { "fault" } else { code };
            let body =
                json!({ "error": { "code": code, "message": "A fault of the fake" } }).to_string();
            send(
                &shared,
                &mut wire,
                *status,
                "application/json",
                &headers,
                body.as_bytes(),
                &What::Nothing,
            )
            .await?;
            continue;
        }
        let reply = answer(&shared, &request);
        match what {
            What::LoseAnswer => return Ok(()),
            What::CutAnswer { bytes } => wire.write_budget = Some(bytes),
            _ => {}
        }
        match reply {
            Reply::Json(status, body) => {
                let body = match what {
                    What::Malformed => {
                        let text = body.to_string();
                        text.chars().take(text.chars().count() / 2).collect()
                    }
                    What::Html => "<html><body>Bad gateway</body></html>".to_owned(),
                    _ => body.to_string(),
                };
                send(
                    &shared,
                    &mut wire,
                    status,
                    "application/json",
                    "",
                    body.as_bytes(),
                    &what,
                )
                .await?;
            }
            Reply::File(bytes) => {
                send(
                    &shared,
                    &mut wire,
                    200,
                    "application/octet-stream",
                    "",
                    &bytes,
                    &what,
                )
                .await?
            }
            Reply::Stream { agent, run, from } => {
                shared.streams.fetch_add(1, Ordering::Relaxed);
                let sent = stream(&shared, &mut wire, &agent, &run, from, &what).await;
                shared.streams.fetch_sub(1, Ordering::Relaxed);
                sent?;
            }
        }
        if wire.write_budget.is_some() {
            return Ok(());
        }
    }
}

fn answer(shared: &Arc<Shared>, request: &Request) -> Reply {
    let mut world = lock(&shared.world);
    if request.path.first().map(String::as_str) == Some("files") {
        return world.file(request);
    }
    if !world.admits(request) {
        return refuse(401, "unauthorized", "Invalid or expired API key");
    }
    let reply = world.answer(request);
    shared.news.notify_waiters();
    // A new run plays by itself.
    let begun: Vec<(String, String)> = world
        .agents
        .iter()
        .flat_map(|agent| agent.runs.iter().map(move |run| (agent, run)))
        .filter(|(_, run)| run.status == "CREATING" && run.events.is_empty())
        .map(|(agent, run)| (agent.id.clone(), run.id.clone()))
        .collect();
    for (agent, run) in &begun {
        if let Some(agent) = world.agents.iter_mut().find(|known| known.id == *agent)
            && let Some(run) = agent.runs.iter_mut().find(|known| known.id == *run)
        {
            run.status = "RUNNING";
        }
    }
    drop(world);
    for (agent, run) in begun {
        let shared = Arc::clone(shared);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(shared.pace).await;
                let more = lock(&shared.world).step(&agent, &run);
                shared.news.notify_waiters();
                if !more {
                    break;
                }
            }
        });
    }
    reply
}

fn head(shared: &Shared, status: u16, kind: &str, headers: &str) -> String {
    let skew = lock(&shared.world).skew_ms;
    let now = SystemTime::now();
    let shift = Duration::from_millis(skew.unsigned_abs());
    let date = if skew < 0 { now - shift } else { now + shift };
    format!(
        "HTTP/1.1 {status} {}\r\nContent-Type: {kind}\r\nDate: {}\r\nx-request-id: req-{}\r\n{headers}",
        if status < 400 { "OK" } else { "Refused" },
        httpdate::fmt_http_date(date),
        uuid::Uuid::new_v4(),
    )
}

async fn send(
    shared: &Shared,
    wire: &mut Wire,
    status: u16,
    kind: &str,
    headers: &str,
    body: &[u8],
    what: &What,
) -> io::Result<()> {
    let head = head(shared, status, kind, headers);
    let head = format!("{head}Content-Length: {}\r\n\r\n", body.len());
    if let What::Slow { piece, pause_ms } = what {
        wire.write(head.as_bytes()).await?;
        for piece in body.chunks((*piece).max(1)) {
            tokio::time::sleep(Duration::from_millis(*pause_ms)).await;
            wire.write(piece).await?;
        }
        return Ok(());
    }
    let mut whole = head.into_bytes();
    whole.extend_from_slice(body);
    wire.write(&whole).await
}

/// Sends the events of a run, those to come too.
async fn stream(
    shared: &Arc<Shared>,
    wire: &mut Wire,
    agent: &str,
    run: &str,
    from: Option<usize>,
    what: &What,
) -> io::Result<()> {
    let headers = "Cache-Control: no-cache\r\nX-Cursor-Stream-Retention-Seconds: 3600\r\nTransfer-Encoding: chunked\r\n\r\n";
    let head = head(shared, 200, "text/event-stream", headers);
    wire.write(head.as_bytes()).await?;
    let Some(mut sent) = from else {
        let data =
            json!({ "code": "invalid_last_event_id", "message": "Not an event of this run" });
        frame(wire, None, "error", &data, what).await?;
        return wire.write(b"0\r\n\r\n").await;
    };
    let short = world::short(run);
    let mut first = true;
    loop {
        let news = shared.news.notified();
        tokio::pin!(news);
        news.as_mut().enable();
        let (status, fresh, end) = {
            let world = lock(&shared.world);
            let Some(run) = world.run(agent, run) else {
                return Ok(());
            };
            let fresh: Vec<Value> = run.events.iter().skip(sent).cloned().collect();
            let end = run.is_over().then(|| {
                let mut end = world.run_json(agent, &run.id);
                if let Some(text) = &run.result {
                    end["text"] = json!(text);
                }
                end
            });
            (run.status, fresh, end)
        };
        if first {
            first = false;
            frame(wire, None, "status", &json!({ "status": status }), what).await?;
        }
        for update in fresh {
            sent += 1;
            let id = format!("{short}-{sent}");
            if let Some((event, data)) = script::older(&update) {
                frame(wire, Some(&id), event, &data, what).await?;
            }
            frame(wire, Some(&id), "interaction_update", &update, what).await?;
        }
        if let Some(end) = end {
            frame(wire, None, "result", &end, what).await?;
            frame(wire, None, "done", &json!({}), what).await?;
            return wire.write(b"0\r\n\r\n").await;
        }
        tokio::select! {
            () = news => {}
            () = tokio::time::sleep(Duration::from_secs(5)) => frame(wire, None, "heartbeat", &json!({}), what).await?,
            () = wire.client_gone() => return Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }
}

async fn frame(
    wire: &mut Wire,
    id: Option<&str>,
    event: &str,
    data: &Value,
    what: &What,
) -> io::Result<()> {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    let text = format!("{id}event: {event}\ndata: {data}\n\n");
    if let What::Slow { piece, pause_ms } = what {
        for piece in text.as_bytes().chunks((*piece).max(1)) {
            tokio::time::sleep(Duration::from_millis(*pause_ms)).await;
            chunk(wire, piece).await?;
        }
        return Ok(());
    }
    chunk(wire, text.as_bytes()).await
}

async fn chunk(wire: &mut Wire, bytes: &[u8]) -> io::Result<()> {
    let mut whole = format!("{:x}\r\n", bytes.len()).into_bytes();
    whole.extend_from_slice(bytes);
    whole.extend_from_slice(b"\r\n");
    wire.write(&whole).await
}

async fn control(shared: &Shared, wire: &mut Wire, request: &Request) -> io::Result<()> {
    let body = obey(shared, &request.body);
    send(
        shared,
        wire,
        200,
        "application/json",
        "",
        body.to_string().as_bytes(),
        &What::Nothing,
    )
    .await
}

/// Does what a test asks for, and says what there is and what was asked so far.
fn obey(shared: &Shared, text: &[u8]) -> Value {
    let control = match serde_json::from_slice::<Control>(text) {
        Ok(control) => control,
        Err(error) => return json!({ "problem": error.to_string() }),
    };
    if let Some(faults) = control.faults {
        *lock(&shared.faults) = faults;
    }
    let mut world = lock(&shared.world);
    world.key_expired |= control.expire_key;
    world.forgets_keys |= control.forget_keys;
    if control.expire_streams {
        for agent in &mut world.agents {
            for run in &mut agent.runs {
                run.expired = true;
            }
        }
    }
    let agents: Vec<Value> = world
        .agents
        .iter()
        .map(|agent| json!({ "id": agent.id, "name": agent.name, "repo": agent.repo, "runs": agent.runs.len() }))
        .collect();
    json!({ "agents": agents, "requests": *lock(&shared.requests) })
}
