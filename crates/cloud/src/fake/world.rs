//! What the fake knows: agents, their runs and their events, and the answer to each call.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::http::Request;
use super::script::{self, End, Script};
use crate::clock;

/// An answer without its HTTP.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Status and JSON.
    Json(u16, Value),
    /// The stream of a run, from the event after this one.
    Stream {
        /// Whose.
        agent: String,
        /// Which run.
        run: String,
        /// How many events are not sent again; None: an id that is not one of this run.
        from: Option<usize>,
    },
    /// A file.
    File(Vec<u8>),
}

/// An agent.
#[derive(Debug, Clone)]
pub struct Agent {
    pub id: String,
    pub name: String,
    pub archived: bool,
    pub repo: String,
    pub reference: Option<String>,
    pub created_ms: i64,
    pub updated_ms: i64,
    pub auto_create_pr: bool,
    pub branch: Option<String>,
    pub runs: Vec<Run>,
    pub metadata: Option<Value>,
}

/// A run.
#[derive(Debug, Clone)]
pub struct Run {
    pub id: String,
    pub status: &'static str,
    pub prompt: String,
    pub created_ms: i64,
    pub updated_ms: i64,
    pub result: Option<String>,
    pub error: Option<String>,
    pub pr: Option<String>,
    pub branch: Option<String>,
    /// What it has done so far.
    pub events: Vec<Value>,
    /// What it will do.
    pub script: Script,
    /// Its stream can no longer be read.
    pub expired: bool,
}

impl Run {
    pub fn is_over(&self) -> bool {
        !matches!(self.status, "CREATING" | "RUNNING")
    }

    fn json(&self, agent: &Agent) -> Value {
        let mut run = json!({
            "id": self.id,
            "agentId": agent.id,
            "status": self.status,
            "createdAt": clock::format_ms(self.created_ms),
            "updatedAt": clock::format_ms(self.updated_ms),
        });
        if self.is_over() {
            run["durationMs"] = json!(self.updated_ms - self.created_ms);
        }
        if let Some(result) = &self.result {
            run["result"] = json!(result);
        }
        if let Some(error) = &self.error {
            run["error"] = json!({ "code": "run_failed", "message": error });
        }
        if self.branch.is_some() || self.pr.is_some() {
            let mut branch = json!({ "repoUrl": agent.repo });
            if let Some(name) = &self.branch {
                branch["branch"] = json!(name);
            }
            if let Some(pr) = &self.pr {
                branch["prUrl"] = json!(pr);
            }
            run["git"] = json!({ "branches": [branch] });
        }
        run
    }
}

/// Everything.
#[derive(Debug)]
pub struct World {
    pub key: String,
    pub key_expired: bool,
    /// How far the server's clock is ahead.
    pub skew_ms: i64,
    /// The server forgets idempotency keys: a repeat is a conflict.
    pub forgets_keys: bool,
    /// Newest first.
    pub agents: Vec<Agent>,
    answered: BTreeMap<String, Value>,
    /// Where the fake is, for addresses of files.
    pub base: String,
    /// A number for names.
    count: u64,
}

impl World {
    pub fn new(key: &str) -> Self {
        Self {
            key: key.to_owned(),
            key_expired: false,
            skew_ms: 0,
            forgets_keys: false,
            agents: Vec::new(),
            answered: BTreeMap::new(),
            base: String::new(),
            count: 480,
        }
    }

    pub fn now_ms(&self) -> i64 {
        clock::now_ms() + self.skew_ms
    }

    pub fn agent(&self, id: &str) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.id == id)
    }

    pub fn run(&self, agent: &str, run: &str) -> Option<&Run> {
        self.agent(agent)?.runs.iter().find(|known| known.id == run)
    }

    /// A run as the API writes it.
    pub fn run_json(&self, agent: &str, run: &str) -> Value {
        match (self.agent(agent), self.run(agent, run)) {
            (Some(agent), Some(run)) => run.json(agent),
            _ => Value::Null,
        }
    }

    /// Lets a run do its next step. False when there is none.
    pub fn step(&mut self, agent: &str, run: &str) -> bool {
        let now = self.now_ms();
        let number = self.count;
        let Some(agent) = self.agents.iter_mut().find(|known| known.id == agent) else {
            return false;
        };
        let name = agent.name.clone();
        let (repo, auto_pr, wanted) = (
            agent.repo.clone(),
            agent.auto_create_pr,
            agent.branch.clone(),
        );
        let Some(run) = agent.runs.iter_mut().find(|known| known.id == run) else {
            return false;
        };
        if run.is_over() {
            return false;
        }
        run.status = "RUNNING";
        run.updated_ms = now;
        agent.updated_ms = now;
        if let Some(update) = run.script.updates.get(run.events.len()) {
            run.events.push(update.clone());
            return true;
        }
        match &run.script.end {
            End::Never => return false,
            End::Failed(why) => {
                run.status = "ERROR";
                run.error = Some(why.clone());
            }
            End::Finished(last) => {
                run.status = "FINISHED";
                run.result = Some(last.clone());
                if run.script.changes {
                    run.branch =
                        Some(wanted.unwrap_or_else(|| {
                            format!("cursor/{}-{:x}", slug(&name), number % 4096)
                        }));
                    run.pr = auto_pr.then(|| format!("{repo}/pull/{number}"));
                    self.count += 1;
                }
            }
        }
        true
    }

    /// Whether the request has the key.
    pub fn admits(&self, request: &Request) -> bool {
        use base64::Engine;
        let Some(given) = request.headers.get("authorization") else {
            return false;
        };
        let bearer = given.strip_prefix("Bearer ").map(str::to_owned);
        let basic = given.strip_prefix("Basic ").and_then(|text| {
            let bytes = base64::engine::general_purpose::STANDARD
                .decode(text)
                .ok()?;
            let text = String::from_utf8(bytes).ok()?;
            Some(text.trim_end_matches(':').to_owned())
        });
        !self.key_expired && bearer.or(basic).as_deref() == Some(self.key.as_str())
    }

    /// The answer to a request that is allowed.
    pub fn answer(&mut self, request: &Request) -> Reply {
        let path: Vec<&str> = request.path.iter().map(String::as_str).collect();
        let method = request.method.as_str();
        match (method, path.as_slice()) {
            (_, ["v0", rest @ ..]) => self.answer_v0(request, rest),
            ("GET", ["v1", "me"]) => Reply::Json(
                200,
                json!({ "apiKeyName": "Neovim", "userId": 7, "userEmail": "ada@example.org", "createdAt": "2026-01-02T03:04:05.000Z" }),
            ),
            ("GET", ["v1", "models"]) => Reply::Json(200, models()),
            ("GET", ["v1", "repositories"]) => {
                let items: Vec<Value> = REPOSITORIES
                    .iter()
                    .map(|url| json!({ "url": url }))
                    .collect();
                Reply::Json(200, json!({ "items": items }))
            }
            ("POST", ["v1", "agents"]) => self.create(request),
            ("GET", ["v1", "agents"]) => {
                let archived =
                    request.query.get("includeArchived").map(String::as_str) == Some("true");
                let pr = request.query.get("prUrl");
                let matching: Vec<Value> = self
                    .agents
                    .iter()
                    .filter(|agent| archived || !agent.archived)
                    .filter(|agent| {
                        pr.is_none_or(|pr| agent.runs.iter().any(|run| run.pr.as_ref() == Some(pr)))
                    })
                    .map(agent_json)
                    .collect();
                page(request, &matching, "items")
            }
            (method, ["v1", "agents", id, rest @ ..]) => {
                let Some(at) = self.agents.iter().position(|agent| agent.id == *id) else {
                    return refuse(404, "agent_not_found", "There is no such agent");
                };
                self.answer_agent(request, method, at, rest)
            }
            _ => refuse(404, "not_found", "There is no such call"),
        }
    }

    fn answer_agent(&mut self, request: &Request, method: &str, at: usize, rest: &[&str]) -> Reply {
        let now = self.now_ms();
        let base = self.base.clone();
        let id = self.agents[at].id.clone();
        match (method, rest) {
            ("GET", []) => Reply::Json(200, agent_json(&self.agents[at])),
            ("DELETE", []) => {
                self.agents.remove(at);
                Reply::Json(200, json!({ "id": id }))
            }
            ("POST", [verb @ ("archive" | "unarchive")]) => {
                self.agents[at].archived = *verb == "archive";
                Reply::Json(200, json!({ "id": id }))
            }
            ("POST", ["runs"]) => self.create_run(request, at),
            ("GET", ["runs"]) => {
                let agent = &self.agents[at];
                let runs: Vec<Value> = agent.runs.iter().rev().map(|run| run.json(agent)).collect();
                page(request, &runs, "items")
            }
            ("GET", ["artifacts"]) => {
                let items: Vec<Value> = ARTIFACTS
                    .iter()
                    .map(|(path, text)| json!({ "path": path, "sizeBytes": text.len(), "updatedAt": clock::format_ms(now) }))
                    .collect();
                Reply::Json(200, json!({ "items": items }))
            }
            ("GET", ["artifacts", "download"]) => {
                let wanted = request.query.get("path").cloned().unwrap_or_default();
                match ARTIFACTS.iter().position(|(path, _)| *path == wanted) {
                    Some(number) => {
                        let expires = clock::format_ms(now + 900_000);
                        Reply::Json(
                            200,
                            json!({ "url": format!("{base}/files/{number}?signature=s3cr3t"), "expiresAt": expires }),
                        )
                    }
                    None => refuse(404, "artifact_not_found", "There is no such artifact"),
                }
            }
            ("GET", ["usage"]) => {
                let tokens = |runs: usize| {
                    json!({
                        "inputTokens": 12000 * runs, "outputTokens": 800 * runs, "cacheWriteTokens": 500 * runs,
                        "cacheReadTokens": 9000 * runs, "totalTokens": 22300 * runs,
                    })
                };
                let cost = |runs: usize| json!({ "rawCostCents": 12.5 * runs as f64, "chargedCents": 10.0 * runs as f64 });
                let wanted = request.query.get("runId");
                let runs: Vec<Value> = self.agents[at]
                    .runs
                    .iter()
                    .filter(|run| wanted.is_none_or(|id| *id == run.id))
                    .map(|run| json!({ "id": run.id, "usage": tokens(1), "cost": cost(1) }))
                    .collect();
                let count = runs.len();
                Reply::Json(
                    200,
                    json!({ "totalUsage": tokens(count), "cost": cost(count), "runs": runs }),
                )
            }
            (method, ["runs", run, rest @ ..]) => {
                let agent = &mut self.agents[at];
                let Some(run_at) = agent.runs.iter().position(|known| known.id == *run) else {
                    return refuse(404, "run_not_found", "There is no such run");
                };
                match (method, rest) {
                    ("GET", []) => Reply::Json(200, agent.runs[run_at].json(agent)),
                    ("POST", ["cancel"]) => {
                        let run = &mut agent.runs[run_at];
                        if run.is_over() {
                            return refuse(409, "run_not_cancellable", "The run has ended");
                        }
                        run.status = "CANCELLED";
                        run.updated_ms = now;
                        agent.updated_ms = now;
                        Reply::Json(200, json!({ "id": run.id }))
                    }
                    ("GET", ["stream"]) => {
                        let run = &agent.runs[run_at];
                        if run.expired {
                            return refuse(
                                410,
                                "stream_expired",
                                "The events of this run are no longer kept",
                            );
                        }
                        let from = match request.headers.get("last-event-id") {
                            None => Some(0),
                            Some(text) => text
                                .strip_prefix(&format!("{}-", short(&run.id)))
                                .and_then(|number| number.parse::<usize>().ok())
                                .filter(|number| *number <= run.events.len()),
                        };
                        Reply::Stream {
                            agent: id,
                            run: run.id.clone(),
                            from,
                        }
                    }
                    _ => refuse(404, "not_found", "There is no such call"),
                }
            }
            _ => refuse(404, "not_found", "There is no such call"),
        }
    }

    fn create(&mut self, request: &Request) -> Reply {
        let Ok(body) = serde_json::from_slice::<Value>(&request.body) else {
            return refuse(400, "invalid_request", "The body is not JSON");
        };
        let repeated = request
            .headers
            .get("idempotency-key")
            .filter(|_| !self.forgets_keys);
        if let Some(answer) = repeated.and_then(|key| self.answered.get(key)) {
            return Reply::Json(200, answer.clone());
        }
        let Some(text) = body["prompt"]["text"]
            .as_str()
            .filter(|text| !text.is_empty())
        else {
            return refuse(
                400,
                "invalid_request",
                "prompt.text: Prompt text cannot be empty",
            );
        };
        let given = body["agentId"].as_str();
        if given.is_some() && !body["envVars"].is_null() {
            return refuse(400, "invalid_request", "envVars: not with agentId");
        }
        if let Some(id) = given {
            if !id.starts_with("bc-") {
                return refuse(400, "invalid_request", "agentId: must be bc- and a UUID");
            }
            if self.agent(id).is_some() {
                return refuse(409, "agent_id_conflict", "An agent with this id exists");
            }
        }
        if let Some(model) = body["model"]["id"].as_str()
            && !MODELS.iter().any(|(id, ..)| *id == model)
        {
            return refuse(
                400,
                "invalid_model",
                &format!("model.id: Unknown model {model}"),
            );
        }
        let repo = &body["repos"][0];
        let id = given.map_or_else(crate::new_agent_id, str::to_owned);
        let script = script::play(&id, text, body["mode"].as_str());
        let now = self.now_ms();
        let agent = Agent {
            id,
            name: body["name"]
                .as_str()
                .map_or_else(|| title(text), str::to_owned),
            archived: false,
            repo: repo["url"].as_str().unwrap_or_default().to_owned(),
            reference: repo["startingRef"].as_str().map(str::to_owned),
            created_ms: now,
            updated_ms: now,
            auto_create_pr: body["autoCreatePR"].as_bool().unwrap_or(false),
            branch: None,
            runs: vec![new_run(text, script, now)],
            metadata: body
                .get("metadata")
                .filter(|metadata| metadata.is_object())
                .cloned(),
        };
        let answer = json!({ "agent": agent_json(&agent), "run": agent.runs[0].json(&agent) });
        self.agents.insert(0, agent);
        if let Some(key) = request.headers.get("idempotency-key") {
            self.answered.insert(key.clone(), answer.clone());
        }
        Reply::Json(200, answer)
    }

    fn create_run(&mut self, request: &Request, at: usize) -> Reply {
        let Ok(body) = serde_json::from_slice::<Value>(&request.body) else {
            return refuse(400, "invalid_request", "The body is not JSON");
        };
        let repeated = request
            .headers
            .get("idempotency-key")
            .filter(|_| !self.forgets_keys);
        if let Some(answer) = repeated.and_then(|key| self.answered.get(key)) {
            return Reply::Json(200, answer.clone());
        }
        let now = self.now_ms();
        let agent = &mut self.agents[at];
        if agent.runs.last().is_some_and(|run| !run.is_over()) {
            return refuse(409, "agent_busy", "A run of this agent has not ended");
        }
        let Some(text) = body["prompt"]["text"]
            .as_str()
            .filter(|text| !text.is_empty())
        else {
            return refuse(
                400,
                "invalid_request",
                "prompt.text: Prompt text cannot be empty",
            );
        };
        let run = new_run(
            text,
            script::play(&agent.id, text, body["mode"].as_str()),
            now,
        );
        agent.runs.push(run);
        agent.updated_ms = now;
        let answer = json!({ "run": agent.runs[agent.runs.len() - 1].json(agent) });
        if let Some(key) = request.headers.get("idempotency-key") {
            self.answered.insert(key.clone(), answer.clone());
        }
        Reply::Json(200, answer)
    }

    fn answer_v0(&mut self, request: &Request, path: &[&str]) -> Reply {
        let method = request.method.as_str();
        match (method, path) {
            ("GET", ["me"]) => Reply::Json(
                200,
                json!({ "apiKeyName": "Neovim", "createdAt": "2026-01-02T03:04:05.000Z", "userEmail": "ada@example.org" }),
            ),
            ("GET", ["models"]) => {
                let ids: Vec<&str> = MODELS.iter().map(|(id, ..)| *id).collect();
                Reply::Json(200, json!({ "models": ids }))
            }
            ("GET", ["repositories"]) => {
                let list: Vec<Value> = REPOSITORIES
                    .iter()
                    .map(|url| {
                        let mut words = url.rsplit('/');
                        let (name, owner) = (words.next(), words.next());
                        json!({ "owner": owner, "name": name, "repository": url })
                    })
                    .collect();
                Reply::Json(200, json!({ "repositories": list }))
            }
            ("GET", ["agents"]) => {
                let agents: Vec<Value> = self
                    .agents
                    .iter()
                    .filter(|agent| !agent.archived)
                    .map(agent_v0)
                    .collect();
                page(request, &agents, "agents")
            }
            ("POST", ["agents"]) => {
                let Ok(body) = serde_json::from_slice::<Value>(&request.body) else {
                    return refuse(400, "invalid_request", "The body is not JSON");
                };
                let Some(text) = body["prompt"]["text"]
                    .as_str()
                    .filter(|text| !text.is_empty())
                else {
                    return refuse(
                        400,
                        "invalid_request",
                        "prompt.text: Prompt text cannot be empty",
                    );
                };
                let Some(repo) = body["source"]["repository"].as_str() else {
                    return refuse(400, "invalid_request", "source.repository: Required");
                };
                let now = self.now_ms();
                let id = crate::new_agent_id();
                let agent = Agent {
                    name: title(text),
                    archived: false,
                    repo: repo.to_owned(),
                    reference: body["source"]["ref"].as_str().map(str::to_owned),
                    created_ms: now,
                    updated_ms: now,
                    auto_create_pr: body["target"]["autoCreatePr"].as_bool().unwrap_or(false),
                    branch: body["target"]["branchName"].as_str().map(str::to_owned),
                    runs: vec![new_run(text, script::play(&id, text, None), now)],
                    metadata: None,
                    id,
                };
                let answer = agent_v0(&agent);
                self.agents.insert(0, agent);
                Reply::Json(201, answer)
            }
            (method, ["agents", id, rest @ ..]) => {
                let Some(at) = self.agents.iter().position(|agent| agent.id == *id) else {
                    return refuse(404, "agent_not_found", "There is no such agent");
                };
                match (method, rest) {
                    ("GET", []) => Reply::Json(200, agent_v0(&self.agents[at])),
                    ("DELETE", []) => {
                        self.agents.remove(at);
                        Reply::Json(200, json!({ "id": id }))
                    }
                    ("POST", ["followup"]) => match self.create_run(request, at) {
                        Reply::Json(200, _) => Reply::Json(200, json!({ "id": id })),
                        other => other,
                    },
                    ("POST", ["stop"]) => {
                        let now = self.now_ms();
                        if let Some(run) =
                            self.agents[at].runs.last_mut().filter(|run| !run.is_over())
                        {
                            run.status = "CANCELLED";
                            run.updated_ms = now;
                        }
                        Reply::Json(200, json!({ "id": id }))
                    }
                    ("GET", ["conversation"]) => {
                        let mut messages = Vec::new();
                        for run in &self.agents[at].runs {
                            messages.push(json!({ "id": format!("{}-user", run.id), "type": "user_message", "text": run.prompt }));
                            let said: String = run
                                .events
                                .iter()
                                .filter_map(|event| match event["type"].as_str() {
                                    Some("text-delta") => event["text"].as_str(),
                                    _ => None,
                                })
                                .collect();
                            let said = if said.is_empty() {
                                run.result.clone().unwrap_or_default()
                            } else {
                                said
                            };
                            if !said.is_empty() {
                                messages.push(json!({ "id": format!("{}-said", run.id), "type": "assistant_message", "text": said }));
                            }
                        }
                        Reply::Json(200, json!({ "id": id, "messages": messages }))
                    }
                    _ => refuse(404, "not_found", "There is no such call"),
                }
            }
            _ => refuse(404, "not_found", "There is no such call"),
        }
    }

    /// A file of an artifact. Its address is its only key.
    pub fn file(&self, request: &Request) -> Reply {
        let number = request
            .path
            .get(1)
            .and_then(|text| text.parse::<usize>().ok());
        match number.and_then(|number| ARTIFACTS.get(number)) {
            Some((_, text))
                if request.query.get("signature").map(String::as_str) == Some("s3cr3t") =>
            {
                Reply::File(text.as_bytes().to_vec())
            }
            _ => refuse(403, "expired", "The address has expired"),
        }
    }

    /// Many agents, the first of them the newest, as if they had been there for a while.
    pub fn fill(&mut self, count: usize) {
        const NAMES: [&str; 6] = [
            "Fix flaky tests",
            "Docs audit",
            "Type cleanup",
            "Rename the crate",
            "Trailing commas",
            "Speed up startup",
        ];
        let now = self.now_ms();
        for number in 0..count {
            let (status, expired) = match number % 7 {
                0 if number < 14 => ("RUNNING", false),
                2 => ("ERROR", true),
                5 => ("CANCELLED", true),
                _ => ("FINISHED", number > 3),
            };
            let created = now - 600_000 - i64::try_from(number).unwrap_or(0) * 2_400_000;
            let name = NAMES[number % NAMES.len()];
            let id = format!(
                "bc-{:08x}-0000-4000-8000-{:012x}",
                0x00c1_0000 + number,
                number
            );
            let hang = if status == "RUNNING" {
                "hang: "
            } else if status == "ERROR" {
                "fail: "
            } else {
                ""
            };
            let prompt = format!("{hang}{name}");
            let mut run = new_run(&prompt, script::play(&id, &prompt, None), created);
            run.id = format!("run-{number:08x}-0000-4000-8000-000000000000");
            run.prompt = name.to_owned();
            for update in &mut run.script.updates {
                if update["type"] == "user-message-appended" {
                    update["userMessage"]["text"] = json!(name);
                }
            }
            run.status = status;
            run.events = run.script.updates.clone();
            run.expired = expired;
            run.updated_ms = created + 300_000;
            let repo = REPOSITORIES[number % REPOSITORIES.len()].to_owned();
            match status {
                "FINISHED" => {
                    run.result =
                        Some("Lists accept a trailing comma now. The tests pass.".to_owned());
                    run.branch = Some(format!("cursor/{}-{number:x}", slug(name)));
                    run.pr = (number % 2 == 1).then(|| format!("{repo}/pull/{}", 480 + number));
                }
                "ERROR" => run.error = Some("quota exceeded".to_owned()),
                _ => {}
            }
            self.agents.push(Agent {
                name: if count > 60 {
                    format!("{name} {number}")
                } else {
                    name.to_owned()
                },
                id,
                archived: false,
                repo,
                reference: Some("main".to_owned()),
                created_ms: created,
                updated_ms: created + 300_000,
                auto_create_pr: number % 2 == 1,
                branch: None,
                runs: vec![run],
                metadata: None,
            });
        }
    }
}

const REPOSITORIES: [&str; 3] = [
    "https://github.com/acme/app",
    "https://github.com/acme/docs",
    "https://github.com/acme/web",
];

const ARTIFACTS: [(&str, &str); 2] = [
    (
        "/opt/cursor/artifacts/report.md",
        "# Report\n\nAll tests pass.\n",
    ),
    (
        "/opt/cursor/artifacts/logs/test.log",
        "test parser ... ok\n",
    ),
];

const MODELS: [(&str, &str, &str); 3] = [
    ("composer-2.5", "Composer 2.5", "Cursor's own, fast"),
    ("gpt-5", "GPT-5", "For hard questions"),
    ("claude-opus", "Claude Opus", "For long work"),
];

fn models() -> Value {
    let items: Vec<Value> = MODELS
        .iter()
        .map(|(id, name, about)| {
            json!({
                "id": id, "displayName": name, "description": about, "aliases": [],
                "parameters": [{ "id": "thinking", "displayName": "Thinking", "values": [{ "value": "low" }, { "value": "high" }] }],
                "variants": [{ "params": [{ "id": "thinking", "value": "low" }], "displayName": name, "isDefault": true }],
            })
        })
        .collect();
    json!({ "items": items })
}

fn new_run(prompt: &str, script: Script, now: i64) -> Run {
    Run {
        id: format!("run-{}", uuid::Uuid::new_v4()),
        status: "CREATING",
        prompt: prompt.to_owned(),
        created_ms: now,
        updated_ms: now,
        result: None,
        error: None,
        pr: None,
        branch: None,
        events: Vec::new(),
        script,
        expired: false,
    }
}

/// The id of an event is this and its number.
pub fn short(run: &str) -> String {
    run.chars().skip(4).take(8).collect()
}

fn agent_json(agent: &Agent) -> Value {
    let working = agent.runs.last().is_some_and(|run| !run.is_over());
    let status = if agent.archived {
        "ARCHIVED"
    } else if working {
        "ACTIVE"
    } else {
        "IDLE"
    };
    let mut fields = json!({
        "id": agent.id,
        "name": agent.name,
        "status": status,
        "env": { "type": "cloud" },
        "url": format!("https://cursor.com/agents?id={}", agent.id),
        "createdAt": clock::format_ms(agent.created_ms),
        "updatedAt": clock::format_ms(agent.updated_ms),
        "latestRunId": agent.runs.last().map(|run| &run.id),
        "autoCreatePR": agent.auto_create_pr,
    });
    if !agent.repo.is_empty() {
        let mut repo = json!({ "url": agent.repo });
        if let Some(reference) = &agent.reference {
            repo["startingRef"] = json!(reference);
        }
        fields["repos"] = json!([repo]);
    }
    if let Some(metadata) = &agent.metadata {
        fields["metadata"] = metadata.clone();
    }
    fields
}

fn agent_v0(agent: &Agent) -> Value {
    let run = agent.runs.last();
    let status = match run.map_or("FINISHED", |run| run.status) {
        "CANCELLED" => "STOPPED",
        other => other,
    };
    let mut target = json!({ "url": format!("https://cursor.com/agents?id={}", agent.id), "autoCreatePr": agent.auto_create_pr });
    if let Some(branch) = run
        .and_then(|run| run.branch.as_ref())
        .or(agent.branch.as_ref())
    {
        target["branchName"] = json!(branch);
    }
    if let Some(pr) = run.and_then(|run| run.pr.as_ref()) {
        target["prUrl"] = json!(pr);
    }
    let mut fields = json!({
        "id": agent.id, "name": agent.name, "status": status,
        "source": { "repository": agent.repo, "ref": agent.reference },
        "target": target, "createdAt": clock::format_ms(agent.created_ms),
    });
    if let Some(result) = run.and_then(|run| run.result.as_ref()) {
        fields["summary"] = json!(result);
    }
    fields
}

fn page(request: &Request, all: &[Value], name: &str) -> Reply {
    let limit = match request.query.get("limit").map(|text| text.parse::<usize>()) {
        None => 20,
        Some(Ok(limit @ 1..=100)) => limit,
        Some(_) => return refuse(400, "invalid_request", "limit: must be between 1 and 100"),
    };
    // A cursor is the id of the last one, so that new ones do not move the pages.
    let from = match request.query.get("cursor") {
        None => 0,
        Some(cursor) => match all
            .iter()
            .position(|item| item["id"].as_str() == Some(cursor))
        {
            Some(at) => at + 1,
            None => return refuse(400, "invalid_cursor", "cursor: not one of ours"),
        },
    };
    let items: Vec<&Value> = all.iter().skip(from).take(limit).collect();
    let mut fields = json!({ name: items });
    if from + limit < all.len() {
        fields["nextCursor"] = items.last().map_or(Value::Null, |last| last["id"].clone());
    }
    Reply::Json(200, fields)
}

/// A refusal in the API's words.
pub fn refuse(status: u16, code: &str, message: &str) -> Reply {
    Reply::Json(
        status,
        json!({ "error": { "code": code, "message": message } }),
    )
}

fn title(prompt: &str) -> String {
    prompt
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(60)
        .collect()
}

fn slug(text: &str) -> String {
    let words: Vec<String> = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(4)
        .map(str::to_ascii_lowercase)
        .collect();
    words.join("-")
}
