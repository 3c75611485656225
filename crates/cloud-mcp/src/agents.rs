//! The calls behind the tools: by today's API, and by the older one for what that lacks (webhooks, branch names, states in lists,
//! conversations, follow-ups to an agent that works) and for agents only it knows.
//!
//! Agents are shown as the older API writes them: with one state, that of the newest run.

use cloud::v0::{self, Made, Source, Status};
use cloud::{
    Client, CreateAgent, CreateRun, Created, Error, Event, Kind, ListAgents, Me, ModelChoice,
    Prompt, Repo, Repository, Run, RunStatus, Update,
};
use futures_util::StreamExt;

/// Runs that are asked for at once.
const AT_ONCE: usize = 8;

/// A run that says nothing for this long has said all there is now.
const QUIET: std::time::Duration = std::time::Duration::from_millis(1500);

/// What a new agent is to do.
#[derive(Debug, Clone, Default)]
pub struct Order {
    pub prompt: Prompt,
    /// None: Cursor's own choice.
    pub model: Option<String>,
    pub repository: String,
    pub reference: Option<String>,
    pub auto_create_pr: bool,
    pub branch: Option<String>,
    pub webhook: Option<v0::Webhook>,
}

/// A new agent, and the run to ask for where it was made by today's API.
#[derive(Debug, Clone)]
pub struct Begun {
    pub agent: v0::Agent,
    pub run: Option<String>,
}

/// Creates an agent; one with `id`, where the API takes it.
pub async fn create(client: &Client, order: &Order, id: &str) -> Result<Begun, Error> {
    if order.webhook.is_none() && order.branch.is_none() {
        let create = CreateAgent {
            agent_id: Some(id.to_owned()),
            prompt: order.prompt.clone(),
            model: order.model.as_deref().map(ModelChoice::id),
            repos: vec![Repo {
                url: order.repository.clone(),
                starting_ref: order.reference.clone(),
                pr_url: None,
            }],
            auto_create_pr: Some(order.auto_create_pr),
            ..CreateAgent::default()
        };
        match client.create(&create).await {
            Ok(Created { agent, run }) => {
                return Ok(Begun {
                    run: Some(run.id.clone()),
                    agent: as_one(agent, Some(&run)),
                });
            }
            // A server of the older API only: nothing was created.
            Err(error) if is_unknown(&error) => {}
            Err(error) => return Err(error),
        }
    }
    let create = v0::Create {
        prompt: order.prompt.clone(),
        model: order.model.clone(),
        source: Source {
            repository: order.repository.clone(),
            reference: order.reference.clone(),
        },
        target: Some(v0::Target {
            auto_create_pr: Some(order.auto_create_pr),
            branch_name: order.branch.clone(),
            ..v0::Target::default()
        }),
        webhook: order.webhook.clone(),
    };
    let agent = client.create_v0(&create).await?;
    Ok(Begun { agent, run: None })
}

/// A page of agents with their states: the older API has them in one answer; today's, where it is alone, an answer for each.
pub async fn list(client: &Client, limit: u32, cursor: Option<&str>) -> Result<v0::Agents, Error> {
    match client.agents_v0(Some(limit), cursor).await {
        Err(error) if is_unknown(&error) => {
            let list = ListAgents {
                limit: Some(limit),
                cursor: cursor.map(str::to_owned),
                ..ListAgents::default()
            };
            match client.agents(&list).await {
                Ok(page) => Ok(v0::Agents {
                    agents: futures_util::stream::iter(page.items)
                        .map(|agent| async move {
                            let run = newest(client, &agent).await.unwrap_or_default();
                            as_one(agent, run.as_ref())
                        })
                        .buffered(AT_ONCE)
                        .collect()
                        .await,
                    next_cursor: page.next_cursor,
                }),
                Err(second) if is_unknown(&second) => Err(error),
                Err(second) => Err(second),
            }
        }
        other => other,
    }
}

/// The newest run of an agent.
async fn newest(client: &Client, agent: &cloud::Agent) -> Result<Option<Run>, Error> {
    match &agent.latest_run_id {
        Some(run) => client.run(&agent.id, run).await.map(Some),
        None => {
            let page = client.runs(&agent.id, Some(1), None).await?;
            Ok(page.items.into_iter().next())
        }
    }
}

/// An agent.
pub async fn get(client: &Client, id: &str) -> Result<v0::Agent, Error> {
    let agent = match client.agent(id).await {
        Ok(agent) => agent,
        Err(error) => return older(error, client.agent_v0(id)).await,
    };
    let run = newest(client, &agent).await?;
    Ok(as_one(agent, run.as_ref()))
}

/// How far a new agent is.
pub async fn state(client: &Client, begun: &Begun) -> Result<Status, Error> {
    match &begun.run {
        Some(run) => Ok(status(&client.run(&begun.agent.id, run).await?.status)),
        None => Ok(client.agent_v0(&begun.agent.id).await?.status),
    }
}

/// Deletes an agent.
pub async fn delete(client: &Client, id: &str) -> Result<(), Error> {
    match client.delete(id).await {
        Ok(()) => Ok(()),
        Err(error) => older(error, client.delete_v0(id)).await,
    }
}

/// Asks an agent for more. Today's API refuses while it works, and has done nothing then; the older one may take it.
pub async fn follow_up(client: &Client, id: &str, prompt: &Prompt) -> Result<(), Error> {
    let create = CreateRun {
        prompt: prompt.clone(),
        ..CreateRun::default()
    };
    match client.follow_up(id, &create).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == Kind::Busy || is_unknown(&error) => {
            match client.followup_v0(id, prompt).await {
                // The first answer says more.
                Err(second) if is_unknown(&second) => Err(error),
                other => other,
            }
        }
        Err(error) => Err(error),
    }
}

/// What was said. Today's API has no call for it: where it is alone, the runs tell.
pub async fn conversation(client: &Client, id: &str) -> Result<v0::Conversation, Error> {
    match client.conversation(id).await {
        Err(error) if is_unknown(&error) => match client.all_runs(id).await {
            Ok(runs) => {
                let mut messages = Vec::new();
                for run in runs {
                    messages.extend(said(client, id, &run).await);
                }
                Ok(v0::Conversation {
                    id: id.to_owned(),
                    messages,
                })
            }
            Err(second) if is_unknown(&second) => Err(error),
            Err(second) => Err(second),
        },
        other => other,
    }
}

/// The messages of a run: its events, as far as they are there now, or its last words.
async fn said(client: &Client, id: &str, run: &Run) -> Vec<v0::ConversationMessage> {
    let message = |kind: &str, text: String| v0::ConversationMessage {
        id: format!("{}-{kind}", run.id),
        kind: kind.to_owned(),
        text,
    };
    let (mut asked, mut answer) = (String::new(), String::new());
    let mut stream = client.stream(id, &run.id);
    // A run that goes on has no end to wait for.
    while let Ok(Some(Ok(event))) = tokio::time::timeout(QUIET, stream.next()).await {
        match event {
            Event::Update(Update::UserMessage(text)) => asked.push_str(&text),
            Event::Update(Update::Text(text)) => answer.push_str(&text),
            Event::Ended(_) => break,
            _ => {}
        }
    }
    if answer.is_empty() {
        answer = run.result.clone().unwrap_or_default();
    }
    [("user_message", asked), ("assistant_message", answer)]
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(kind, text)| message(kind, text))
        .collect()
}

/// Whose key it is.
pub async fn me(client: &Client) -> Result<Me, Error> {
    match client.me().await {
        Ok(me) => Ok(me),
        Err(error) => older(error, client.me_v0()).await,
    }
}

/// Ids of models.
pub async fn models(client: &Client) -> Result<Vec<String>, Error> {
    match client.models().await {
        Ok(models) => Ok(models.into_iter().map(|model| model.id).collect()),
        Err(error) => older(error, client.models_v0()).await,
    }
}

/// Repositories.
pub async fn repositories(client: &Client) -> Result<Vec<Repository>, Error> {
    match client.repositories().await {
        Ok(list) => Ok(list),
        Err(error) => {
            let list = older(error, client.repositories_v0()).await?;
            let url = |repository: v0::Repository| Repository {
                url: repository.repository,
            };
            Ok(list.into_iter().map(url).collect())
        }
    }
}

/// After a 404 of today's API: what the older one says; its own 404 adds nothing.
async fn older<T>(error: Error, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    if !is_unknown(&error) {
        return Err(error);
    }
    match call.await {
        Err(second) if is_unknown(&second) => Err(error),
        other => other,
    }
}

/// Whether the server does not know what was asked for, or the call itself.
fn is_unknown(error: &Error) -> bool {
    error.kind() == Kind::NotFound || matches!(error.status(), Some(405 | 501))
}

fn as_one(agent: cloud::Agent, run: Option<&Run>) -> v0::Agent {
    let repo = agent.repos.into_iter().next().unwrap_or_default();
    let branch = run.and_then(|run| run.branches().first());
    v0::Agent {
        id: agent.id,
        name: agent.name,
        status: run.map_or_else(
            || Status::Other(agent.status.as_str().to_owned()),
            |run| status(&run.status),
        ),
        source: Source {
            repository: repo.url,
            reference: repo.starting_ref,
        },
        target: Made {
            branch_name: branch.and_then(|branch| branch.branch.clone()),
            url: agent.url,
            pr_url: branch
                .and_then(|branch| branch.pr_url.clone())
                .or(repo.pr_url),
            auto_create_pr: agent.auto_create_pr,
        },
        created_at: agent.created_at,
        summary: run.and_then(|run| run.failure().or_else(|| run.result.clone())),
    }
}

fn status(status: &RunStatus) -> Status {
    match status {
        RunStatus::Creating => Status::Creating,
        RunStatus::Running => Status::Running,
        RunStatus::Finished => Status::Finished,
        RunStatus::Error => Status::Error,
        RunStatus::Cancelled => Status::Stopped,
        RunStatus::Expired => Status::Expired,
        RunStatus::Other(other) => Status::Other(other.clone()),
    }
}
