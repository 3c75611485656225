//! `cursor-agent-cloud rpc`: what the dashboard asks, as lines of JSON-RPC on stdio.
//!
//! A list is answered as soon as the agents are known; the state of each comes after, in `rows` notifications, from its newest run.
//! `watch` names the agents whose runs are followed; with none named, nothing is asked of the server.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use acp::{Incoming, RpcError};
use cloud::fake::Fake;
use cloud::stream::ToolStage;
use cloud::{
    Agent, AgentStatus, Client, CreateAgent, CreateRun, Error, Event, Image, Kind, ListAgents,
    ModelChoice, Prompt, Repo, Run, RunBranch, RunStatus, Update, clock, v0,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::{AbortHandle, JoinSet};

use crate::stdio::{self, Peers, rpc_error};
use crate::updates;

/// Runs asked for at once.
const PARALLEL: usize = 8;

/// Rows are told together when they come within this time.
const GATHER: Duration = Duration::from_millis(40);

/// The server allows few calls for repositories.
const REPOSITORIES_FOR: Duration = Duration::from_secs(600);

/// Runs that are followed by their streams at once; the others are looked at until a stream is free.
const STREAMS: usize = 16;

/// A run that cannot be followed is looked at after this time, then at twice that, up to ten minutes.
const LOOK_FIRST: Duration = Duration::from_secs(15);
const LOOK_LONGEST: Duration = Duration::from_secs(600);

struct Service {
    client: Client,
    demo: bool,
    peers: Peers,
    tasks: RefCell<JoinSet<()>>,
    /// Runs that are over, by id: they do not change.
    over: RefCell<HashMap<String, Run>>,
    watched: RefCell<BTreeMap<String, AbortHandle>>,
    streams: Semaphore,
    /// What watched agents ask in the middle of their runs, by agent.
    asking: RefCell<HashMap<String, String>>,
    repositories: RefCell<Option<(Instant, Value)>>,
}

pub async fn serve(client: Client, fake: Option<Fake>) -> std::io::Result<()> {
    let service: RefCell<Option<Rc<Service>>> = RefCell::new(None);
    let peers = stdio::serve(|peers, incoming| {
        let service = Rc::clone(service.borrow_mut().get_or_insert_with(|| {
            Rc::new(Service {
                client: client.clone(),
                demo: fake.is_some(),
                peers: peers.clone(),
                tasks: RefCell::default(),
                over: RefCell::default(),
                watched: RefCell::default(),
                streams: Semaphore::new(STREAMS),
                asking: RefCell::default(),
                repositories: RefCell::default(),
            })
        }));
        if let Incoming::Request {
            ticket,
            method,
            params,
        } = incoming
        {
            let answering = Rc::clone(&service);
            service.spawn(async move {
                let result = answering.call(&method, params).await;
                answering.peers.answer(ticket, result);
            });
        }
    })
    .await?;
    drop(service.into_inner());
    drop(fake);
    stdio::flush(peers).await;
    Ok(())
}

#[derive(Deserialize)]
struct ById {
    id: String,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct List {
    limit: Option<u32>,
    cursor: Option<String>,
    archived: bool,
}

#[derive(Deserialize)]
struct Watch {
    ids: Vec<String>,
}

#[derive(Deserialize)]
struct Download {
    id: String,
    path: String,
    to: PathBuf,
}

#[derive(Deserialize)]
struct Follow {
    id: String,
    text: String,
    #[serde(default)]
    images: Vec<Image>,
}

/// What `cloud new` and `cloud send` ask for.
#[derive(Deserialize, Default)]
#[serde(default)]
struct New {
    text: String,
    images: Vec<Image>,
    /// Files that are read here.
    image_paths: Vec<PathBuf>,
    repo: Option<String>,
    #[serde(rename = "ref")]
    reference: Option<String>,
    model: Option<String>,
    mode: Option<String>,
    auto_pr: Option<bool>,
    name: Option<String>,
    branch: Option<String>,
    webhook: Option<v0::Webhook>,
}

fn read<T: for<'a> Deserialize<'a>>(params: Value) -> Result<T, RpcError> {
    serde_json::from_value(params).map_err(|error| RpcError::invalid_params(error.to_string()))
}

impl Service {
    fn spawn(&self, task: impl Future<Output = ()> + 'static) -> AbortHandle {
        let mut tasks = self.tasks.borrow_mut();
        while tasks.try_join_next().is_some() {}
        tasks.spawn_local(task)
    }

    async fn call(self: &Rc<Self>, method: &str, params: Value) -> Result<Value, RpcError> {
        let client = &self.client;
        let failed = |error: Error| rpc_error(&error);
        match method {
            "hello" => Ok(
                json!({ "version": env!("CARGO_PKG_VERSION"), "url": client.base(), "demo": self.demo }),
            ),
            "me" => client.me().await.map(|me| json!(me)).map_err(failed),
            "models" => client
                .models()
                .await
                .map(|models| json!(models))
                .map_err(failed),
            "repos" => self.repositories().await.map_err(failed),
            "list" => self.list(&read(params)?).await.map_err(failed),
            "get" => {
                let ById { id } = read(params)?;
                let agent = client.agent(&id).await.map_err(failed)?;
                let run = self.newest(&agent).await.map_err(failed)?;
                Ok(self.row(&agent, run.as_ref()))
            }
            "create" => self.create(read(params)?).await.map_err(failed),
            "follow" => {
                let Follow { id, text, images } = read(params)?;
                let create = CreateRun {
                    prompt: Prompt { text, images },
                    ..CreateRun::default()
                };
                // Asked for first: once the follow-up is sent, nothing that fails may look as if it was not.
                let agent = client.agent(&id).await.map_err(failed)?;
                let run = client.follow_up(&id, &create).await.map_err(failed)?;
                Ok(self.row(&agent, Some(&run)))
            }
            "stop" => {
                let ById { id } = read(params)?;
                self.stop(&id).await.map_err(failed)
            }
            "archive" | "unarchive" | "delete" => {
                let ById { id } = read(params)?;
                match method {
                    "archive" => client.archive(&id).await,
                    "unarchive" => client.unarchive(&id).await,
                    _ => client.delete(&id).await,
                }
                .map(|()| json!({ "id": id }))
                .map_err(failed)
            }
            "artifacts" => {
                let ById { id } = read(params)?;
                client
                    .artifacts(&id)
                    .await
                    .map(|list| json!(list))
                    .map_err(failed)
            }
            "download" => {
                let Download { id, path, to } = read(params)?;
                client
                    .download(&id, &path, &to)
                    .await
                    .map(|bytes| json!({ "bytes": bytes, "to": to }))
                    .map_err(failed)
            }
            "usage" => {
                let ById { id } = read(params)?;
                client
                    .usage(&id, None)
                    .await
                    .map(|usage| json!(usage))
                    .map_err(failed)
            }
            "watch" => {
                let Watch { ids } = read(params)?;
                self.watch(&ids);
                Ok(json!({ "watched": ids.len() }))
            }
            other => Err(RpcError::method_not_found(other)),
        }
    }

    async fn repositories(&self) -> Result<Value, Error> {
        if let Some((at, known)) = &*self.repositories.borrow()
            && at.elapsed() < REPOSITORIES_FOR
        {
            return Ok(known.clone());
        }
        let list = json!(self.client.repositories().await?);
        *self.repositories.borrow_mut() = Some((Instant::now(), list.clone()));
        Ok(list)
    }

    async fn list(self: &Rc<Self>, list: &List) -> Result<Value, Error> {
        let page = self
            .client
            .agents(&ListAgents {
                limit: list.limit,
                cursor: list.cursor.clone(),
                include_archived: list.archived.then_some(true),
                pr_url: None,
            })
            .await?;
        let rows: Vec<Value> = page
            .items
            .iter()
            .map(|agent| {
                let known = agent
                    .latest_run_id
                    .as_ref()
                    .and_then(|id| self.over.borrow().get(id).cloned());
                let mut row = self.row(agent, known.as_ref());
                if known.is_none() {
                    row["state"] = json!("loading");
                }
                row
            })
            .collect();
        let unknown: Vec<Agent> = page
            .items
            .into_iter()
            .filter(|agent| {
                let id = agent.latest_run_id.as_ref();
                id.is_none_or(|id| !self.over.borrow().contains_key(id))
            })
            .collect();
        let service = Rc::clone(self);
        self.spawn(async move { service.tell_states(unknown).await });
        Ok(json!({ "rows": rows, "next": page.next_cursor, "now": self.client.server_now_ms() }))
    }

    /// Asks for the newest run of each agent, a few at a time, and tells their rows in batches.
    async fn tell_states(self: &Rc<Self>, agents: Vec<Agent>) {
        let mut waiting = agents.into_iter();
        let mut asking = JoinSet::new();
        let mut rows: Vec<Value> = Vec::new();
        let mut told = Instant::now();
        loop {
            while asking.len() < PARALLEL
                && let Some(agent) = waiting.next()
            {
                let client = self.client.clone();
                asking.spawn(async move {
                    let run = newest_of(&client, &agent).await.unwrap_or_default();
                    (agent, run)
                });
            }
            let Some(done) = asking.join_next().await else {
                break;
            };
            if let Ok((agent, run)) = done {
                rows.push(self.row(&agent, run.as_ref()));
                run.into_iter().for_each(|run| self.remember(run));
            }
            if told.elapsed() >= GATHER && !rows.is_empty() {
                self.tell(&std::mem::take(&mut rows));
                told = Instant::now();
            }
        }
        if !rows.is_empty() {
            self.tell(&rows);
        }
    }

    fn tell(&self, rows: &[Value]) {
        self.peers.notify(
            "rows",
            json!({ "rows": rows, "now": self.client.server_now_ms() }),
        );
    }

    fn remember(&self, run: Run) {
        if run.status.is_over() {
            self.over.borrow_mut().insert(run.id.clone(), run);
        }
    }

    async fn newest(&self, agent: &Agent) -> Result<Option<Run>, Error> {
        let run = newest_of(&self.client, agent).await?;
        run.iter().for_each(|run| self.remember(run.clone()));
        Ok(run)
    }

    async fn create(self: &Rc<Self>, new: New) -> Result<Value, Error> {
        let mut prompt = Prompt {
            text: new.text,
            images: new.images,
        };
        for path in &new.image_paths {
            prompt.images.push(read_image(path).await?);
        }
        // Only the older API takes these.
        if new.branch.is_some() || new.webhook.is_some() {
            let create = v0::Create {
                prompt,
                model: new.model,
                source: v0::Source {
                    repository: new.repo.unwrap_or_default(),
                    reference: new.reference,
                },
                target: Some(v0::Target {
                    auto_create_pr: new.auto_pr,
                    branch_name: new.branch,
                    ..v0::Target::default()
                }),
                webhook: new.webhook,
            };
            let made = self.client.create_v0(&create).await?;
            // It exists: what fails from here on is no reason to create it again.
            let shown = async {
                let agent = self.client.agent(&made.id).await?;
                let run = self.newest(&agent).await?;
                Ok::<Value, Error>(self.row(&agent, run.as_ref()))
            };
            return Ok(shown.await.unwrap_or_else(|_| made_row(&made)));
        }
        let create = CreateAgent {
            prompt,
            repos: new
                .repo
                .map(|url| Repo {
                    url,
                    starting_ref: new.reference,
                    pr_url: None,
                })
                .into_iter()
                .collect(),
            model: new.model.map(ModelChoice::id),
            mode: new.mode,
            auto_create_pr: new.auto_pr,
            name: new.name,
            ..CreateAgent::default()
        };
        let created = self.client.create(&create).await?;
        Ok(self.row(&created.agent, Some(&created.run)))
    }

    async fn stop(&self, id: &str) -> Result<Value, Error> {
        let agent = self.client.agent(id).await?;
        let Some(run) = self.newest(&agent).await? else {
            return Err(Error::new(Kind::Conflict, "The agent has no run to stop"));
        };
        if run.status.is_over() {
            return Err(Error::new(Kind::Conflict, "This agent has no running run"));
        }
        self.client.cancel(id, &run.id).await?;
        // It is stopped, whether or not it can be looked at now.
        let run = self.client.run(id, &run.id).await.unwrap_or_else(|_| Run {
            status: RunStatus::Cancelled,
            ..run
        });
        let row = self.row(&agent, Some(&run));
        self.remember(run);
        Ok(row)
    }

    /// Follows these agents, and no others.
    fn watch(self: &Rc<Self>, ids: &[String]) {
        let mut watched = self.watched.borrow_mut();
        watched.retain(|id, task| {
            let keep = ids.contains(id) && !task.is_finished();
            if !keep {
                task.abort();
                self.asking.borrow_mut().remove(id);
            }
            keep
        });
        for id in ids {
            if !watched.contains_key(id) {
                let (service, agent) = (Rc::clone(self), id.clone());
                let task = self.spawn(async move { service.follow(&agent).await });
                watched.insert(id.clone(), task);
            }
        }
    }

    /// Until the newest run of an agent ends: tells its state, its questions and its end.
    async fn follow(self: &Rc<Self>, id: &str) {
        let mut wait = LOOK_FIRST;
        loop {
            match self.follow_once(id).await {
                Ok(()) => return,
                Err(error) if error.is_transient() => {
                    tokio::time::sleep(cloud::backoff::jitter(wait)).await;
                    wait = (wait * 2).min(LOOK_LONGEST);
                }
                Err(error) => {
                    self.peers.notify("lost", json!({ "id": id, "message": error.to_string(), "kind": error.kind().as_str() }));
                    return;
                }
            }
        }
    }

    async fn follow_once(self: &Rc<Self>, id: &str) -> Result<(), Error> {
        let agent = self.client.agent(id).await?;
        let Some(mut run) = self.newest(&agent).await? else {
            return Ok(());
        };
        self.tell(&[self.row(&agent, Some(&run))]);
        let _stream = self.wait_for_stream(&agent, &mut run).await?;
        let ended = if run.status.is_over() {
            run
        } else {
            let mut stream = self.client.stream(id, &run.id);
            let mut ended = None;
            // The question that was told last.
            let mut asked: Option<String> = None;
            while let Some(event) = stream.next().await {
                match event? {
                    Event::Status(status) => {
                        run.status = status;
                        self.tell(&[self.row(&agent, Some(&run))]);
                    }
                    Event::Update(Update::Tool {
                        id: call_id,
                        call,
                        stage,
                    }) if call.is_question() => {
                        let text = updates::question(&call);
                        if stage == ToolStage::Completed {
                            self.asking.borrow_mut().remove(id);
                            self.tell(&[self.row(&agent, Some(&run))]);
                        } else if asked.as_ref() != Some(&call_id) && !text.is_empty() {
                            asked = Some(call_id);
                            self.asking.borrow_mut().insert(id.to_owned(), text);
                            let row = self.row(&agent, Some(&run));
                            let now = self.client.server_now_ms();
                            self.peers
                                .notify("asked", json!({ "row": row, "now": now }));
                        }
                    }
                    Event::Ended(run) => ended = Some(*run),
                    Event::Update(_) | Event::Interrupted(_) => {}
                }
            }
            ended.ok_or_else(|| Error::new(Kind::Network, "The stream ended before the run did"))?
        };
        self.asking.borrow_mut().remove(id);
        let agent = self.client.agent(id).await.unwrap_or(agent);
        let row = self.row(&agent, Some(&ended));
        self.remember(ended);
        self.peers.notify(
            "ended",
            json!({ "row": row, "now": self.client.server_now_ms() }),
        );
        Ok(())
    }

    /// Until a stream is free, or the run is over: it is looked at now and then.
    async fn wait_for_stream(
        &self,
        agent: &Agent,
        run: &mut Run,
    ) -> Result<Option<SemaphorePermit<'_>>, Error> {
        let mut wait = LOOK_FIRST;
        while !run.status.is_over() {
            let free = tokio::time::timeout(cloud::backoff::jitter(wait), self.streams.acquire());
            if let Ok(permit) = free.await {
                return Ok(permit.ok());
            }
            wait = (wait * 2).min(LOOK_LONGEST);
            let now = self.client.run(&agent.id, &run.id).await?;
            let changed = now.status != run.status;
            *run = now;
            if changed {
                self.tell(&[self.row(agent, Some(run))]);
            }
        }
        Ok(None)
    }

    fn row(&self, agent: &Agent, run: Option<&Run>) -> Value {
        let asking = self.asking.borrow();
        let question = asking.get(&agent.id);
        let state = match run.map(|run| &run.status) {
            Some(status) if question.is_some() && !status.is_over() => "asks",
            Some(RunStatus::Creating) => "creating",
            Some(RunStatus::Running) => "running",
            Some(RunStatus::Finished) if run.is_some_and(asks) => "asks",
            Some(RunStatus::Finished) => "finished",
            Some(RunStatus::Error) => "error",
            Some(RunStatus::Cancelled) => "stopped",
            Some(RunStatus::Expired) => "expired",
            Some(RunStatus::Other(_)) => "running",
            // Its run cannot be had.
            None if agent.status == AgentStatus::Active => "active",
            None => "idle",
        };
        let repo = agent.repos.first();
        let branch = run.and_then(|run| {
            let branches = run.branches();
            let ours = |branch: &&RunBranch| {
                repo.is_some_and(|repo| short_repo(&repo.url) == short_repo(&branch.repo_url))
            };
            branches.iter().find(ours).or(branches.first())
        });
        let now = self.client.server_now_ms();
        let ms = |text: &str| clock::parse_ms(text);
        let elapsed = run.and_then(|run| match run.duration_ms {
            Some(took) if run.status.is_over() => Some(took),
            _ if !run.status.is_over() => {
                ms(&run.created_at).map(|from| (now - from).max(0) as f64)
            }
            _ => None,
        });
        let mut row = json!({
            "id": agent.id,
            "name": agent.name.as_deref().filter(|name| !name.is_empty()).unwrap_or("Untitled"),
            "state": state,
            "archived": agent.status == AgentStatus::Archived,
            "url": agent.url,
        });
        let mut put = |name: &str, value: Value| {
            if !value.is_null() {
                row[name] = value;
            }
        };
        put("repo_url", json!(repo.map(|repo| &repo.url)));
        put("repo", json!(repo.map(|repo| short_repo(&repo.url))));
        put(
            "ref",
            json!(repo.and_then(|repo| repo.starting_ref.as_ref())),
        );
        put(
            "branch",
            json!(branch.and_then(|branch| branch.branch.as_ref())),
        );
        put(
            "pr",
            json!(
                branch
                    .and_then(|branch| branch.pr_url.as_ref())
                    .or(repo.and_then(|repo| repo.pr_url.as_ref()))
            ),
        );
        put("run", json!(run.map(|run| &run.id)));
        put("created_ms", json!(ms(&agent.created_at)));
        put("updated_ms", json!(ms(&agent.updated_at)));
        put("elapsed_ms", json!(elapsed));
        put("started_ms", json!(run.and_then(|run| ms(&run.created_at))));
        put("why", json!(run.and_then(Run::failure)));
        let result = run.and_then(|run| run.result.as_ref());
        put("result", json!(result.or(question)));
        row
    }
}

/// An agent of the older API that cannot be looked at by today's now.
fn made_row(made: &v0::Agent) -> Value {
    json!({
        "id": made.id,
        "name": made.name.as_deref().filter(|name| !name.is_empty()).unwrap_or("Untitled"),
        "state": "creating",
        "archived": false,
        "url": made.target.url,
        "repo_url": made.source.repository,
        "repo": short_repo(&made.source.repository),
        "created_ms": clock::parse_ms(&made.created_at),
    })
}

async fn newest_of(client: &Client, agent: &Agent) -> Result<Option<Run>, Error> {
    match &agent.latest_run_id {
        Some(id) => client.run(&agent.id, id).await.map(Some),
        None => {
            let page = client.runs(&agent.id, Some(1), None).await?;
            Ok(page.items.into_iter().next())
        }
    }
}

async fn read_image(path: &Path) -> Result<Image, Error> {
    use base64::Engine;
    let refuse = |why: String| Error::new(Kind::Invalid, format!("{}: {why}", path.display()));
    let size = tokio::fs::metadata(path)
        .await
        .map_err(|error| refuse(error.to_string()))?
        .len();
    if size > cloud::MAX_IMAGE_BYTES as u64 {
        return Err(refuse("an image can be at most 15 MB".to_owned()));
    }
    let bytes = tokio::fs::read(path)
        .await
        .map_err(|error| refuse(error.to_string()))?;
    let mime = Image::type_of(&bytes)
        .ok_or_else(|| refuse("not a PNG, JPEG, GIF or WebP image".to_owned()))?;
    Ok(Image {
        data: Some(base64::engine::general_purpose::STANDARD.encode(&bytes)),
        mime_type: Some(mime.to_owned()),
        ..Image::default()
    })
}

/// Whether the agent's last words are a question to the user. The API has no state for that: a question mark at the end is all there is.
fn asks(run: &Run) -> bool {
    let last = run
        .result
        .as_deref()
        .unwrap_or_default()
        .trim_end_matches(['*', '_', ' ', '\n', '"', '”', ')']);
    last.ends_with('?')
}

/// `owner/name`.
fn short_repo(url: &str) -> String {
    let bare = url.trim_end_matches('/');
    let bare = bare.strip_suffix(".git").unwrap_or(bare);
    let words: Vec<&str> = bare.rsplit(['/', ':']).take(2).collect();
    words.into_iter().rev().collect::<Vec<_>>().join("/")
}
