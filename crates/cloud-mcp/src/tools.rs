//! The fourteen tools: what they are called, what they are for, and what they do.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use cloud::v0::Webhook;
use cloud::{Dimension, Image, Prompt};
use jsonschema::Validator;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ToolAnnotations};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::account::Account;
use crate::agents::{self, Order};
use crate::failure::Failure;
use crate::summary::{self, Filters};
use crate::wait::{Patience, Progress, Waits};
use crate::{check, documentation, schema, templates, text};

/// A tool.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    pub name: &'static str,
    title: &'static str,
    pub description: &'static str,
    does: Does,
}

/// What a tool does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Read,
    Add,
    Destroy,
}

/// All of them.
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "createAgent",
        title: "Create an agent",
        description: "Creates a cloud agent that works on a repository. Returns immediately; use getAgent to check its progress.",
        does: Does::Add,
    },
    Tool {
        name: "createAndWait",
        title: "Create an agent and wait",
        description: "Creates a cloud agent and waits until it ends (FINISHED, ERROR, EXPIRED, CANCELLED) or timeoutMs passes (TIMEOUT).",
        does: Does::Add,
    },
    Tool {
        name: "cancelCreateAndWait",
        title: "Stop waiting",
        description: "Ends a running createAndWait by its cancelToken. The agent itself keeps running.",
        does: Does::Add,
    },
    Tool {
        name: "listAgents",
        title: "List agents",
        description: "Lists cloud agents, newest first.",
        does: Does::Read,
    },
    Tool {
        name: "summarizeAgents",
        title: "Summarize agents",
        description: "Counts cloud agents by status and shows the recent and the running ones. Filters are applied before counting.",
        does: Does::Read,
    },
    Tool {
        name: "getAgent",
        title: "Show an agent",
        description: "Shows a cloud agent: status, branch, pull request and summary.",
        does: Does::Read,
    },
    Tool {
        name: "deleteAgent",
        title: "Delete an agent",
        description: "Deletes a cloud agent permanently.",
        does: Does::Destroy,
    },
    Tool {
        name: "addFollowup",
        title: "Send a follow-up",
        description: "Sends a follow-up instruction to a cloud agent.",
        does: Does::Add,
    },
    Tool {
        name: "getAgentConversation",
        title: "Read a conversation",
        description: "Reads the conversation with a cloud agent.",
        does: Does::Read,
    },
    Tool {
        name: "getMe",
        title: "Show the API key",
        description: "Shows the name, owner and creation time of the API key, not the key itself.",
        does: Does::Read,
    },
    Tool {
        name: "listModels",
        title: "List models",
        description: "Lists the models a cloud agent can use.",
        does: Does::Read,
    },
    Tool {
        name: "listRepositories",
        title: "List repositories",
        description: "Lists the repositories a cloud agent can work on. The API limits this call, so the answer is cached for a minute.",
        does: Does::Read,
    },
    Tool {
        name: "createAgentFromTemplate",
        title: "Create an agent from a template",
        description: "Creates a cloud agent with a ready-made prompt: docAudit, typeCleanup or bugHunt.",
        does: Does::Add,
    },
    Tool {
        name: "documentation",
        title: "Documentation",
        description: "Describes this server, its tools, their inputs and its errors.",
        does: Does::Read,
    },
];

impl Tool {
    /// What it takes.
    pub fn input(&self) -> Value {
        schema::input(self.name)
    }

    /// As MCP lists it.
    pub fn listed(&self) -> rmcp::model::Tool {
        let schema = |value: Value| -> Arc<JsonObject> {
            match value {
                Value::Object(fields) => Arc::new(fields),
                _ => Arc::default(),
            }
        };
        let mut tool = rmcp::model::Tool::new(
            Cow::Borrowed(self.name),
            Cow::Borrowed(self.description),
            schema(self.input()),
        );
        tool.title = Some(self.title.to_owned());
        tool.output_schema = Some(schema(schema::output(self.name)));
        tool.annotations = Some(ToolAnnotations::from_raw(
            Some(self.title.to_owned()),
            Some(self.does == Does::Read),
            Some(self.does == Does::Destroy),
            Some(self.does != Does::Add),
            Some(self.name != "documentation"),
        ));
        tool
    }
}

/// Who asks, and how it can be reached and stopped.
pub struct Caller<'a> {
    pub account: &'a Account,
    pub waits: &'a Waits,
    /// The client cancelled the request, or is gone.
    pub cancelled: &'a CancellationToken,
    pub progress: Progress,
}

static VALIDATORS: LazyLock<HashMap<&'static str, (Value, Option<Validator>)>> =
    LazyLock::new(|| {
        TOOLS
            .iter()
            .map(|tool| {
                let schema = tool.input();
                let validator = check::validator(&schema);
                (tool.name, (schema, validator))
            })
            .collect()
    });

/// Calls a tool; None when there is none of this name.
pub async fn call(
    caller: &Caller<'_>,
    name: &str,
    arguments: JsonObject,
) -> Option<CallToolResult> {
    let tool = TOOLS.iter().find(|tool| tool.name == name)?;
    let (schema, validator) = VALIDATORS.get(tool.name)?;
    let mut arguments = arguments;
    check::fill(schema, &mut arguments);
    let input = Value::Object(arguments);
    let wrong = validator
        .as_ref()
        .map(|validator| check::check(validator, &input))
        .unwrap_or_default();
    if !wrong.is_empty() {
        return Some(Failure::input(name, &wrong).result());
    }
    let result = match perform(caller, tool.name, &input).await {
        Ok((text, structured)) => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = Some(structured);
            result
        }
        Err(failure) => {
            let secret = input["webhook"]["secret"].as_str().map(str::to_owned);
            failure
                .without(&secret.into_iter().collect::<Vec<_>>())
                .result()
        }
    };
    Some(result)
}

/// The text and the structured content. The input was checked.
async fn perform(
    caller: &Caller<'_>,
    name: &'static str,
    input: &Value,
) -> Result<(String, Value), Failure> {
    let client = &caller.account.client;
    let word = |field: &str| input[field].as_str().unwrap_or_default();
    let optional = |field: &str| input[field].as_str().map(str::to_owned);
    let limit = input["limit"]
        .as_f64()
        .map(|limit| limit as u32)
        .unwrap_or(cloud::v1::MAX_PAGE);
    Ok(match name {
        "createAgent" | "createAgentFromTemplate" => {
            let prompt = if name == "createAgent" {
                prompt(name, &input["prompt"])?
            } else {
                Prompt::text(templates::prompt(word("template"), &input["params"]))
            };
            let order = order(input, prompt);
            let begun = agents::create(client, &order, &cloud::new_agent_id()).await?;
            (text::created(&begun.agent), json!(begun.agent))
        }
        "createAndWait" => {
            let order = order(input, prompt(name, &input["prompt"])?);
            let ms = |field: &str| {
                Duration::from_secs_f64(input[field].as_f64().unwrap_or_default() / 1000.0)
            };
            let patience = Patience {
                interval: ms("pollIntervalMs"),
                limit: ms("timeoutMs"),
                jitter: input["jitterRatio"].as_f64().unwrap_or_default(),
            };
            let token = input["cancelToken"].as_str();
            let wait = caller
                .waits
                .begin(&caller.account.id, token, caller.cancelled)
                .ok_or_else(|| {
                    Failure::field(name, "cancelToken", "is in use by another createAndWait")
                })?;
            let ended = wait.run(client, order, patience, &caller.progress).await?;
            let elapsed = u64::try_from(ended.elapsed.as_millis()).unwrap_or(u64::MAX);
            let mut structured =
                json!({ "status": ended.status, "agentId": ended.id, "elapsedMs": elapsed });
            if let Some(agent) = &ended.agent {
                structured["agent"] = json!(agent);
            }
            let text = text::waited(
                ended.status,
                &ended.id,
                elapsed,
                ended.why,
                ended.agent.as_ref(),
            );
            (text, structured)
        }
        "cancelCreateAndWait" => {
            let token = word("cancelToken");
            if !caller.waits.cancel(&caller.account.id, token) {
                return Err(Failure::missing(
                    "cancelToken",
                    "No createAndWait with this cancelToken is running",
                ));
            }
            (
                "Stopped waiting. The agent keeps running.".to_owned(),
                json!({ "cancelToken": token, "cancelled": true }),
            )
        }
        "listAgents" => {
            let page = agents::list(client, limit, input["cursor"].as_str()).await?;
            (text::list(&page), json!(page))
        }
        "summarizeAgents" => {
            let filters = Filters {
                status: optional("status"),
                repository: optional("repository"),
                limit: Some(limit),
                cursor: optional("cursor"),
            };
            let page = agents::list(client, limit, filters.cursor.as_deref()).await?;
            summary::summarize(&page, &filters, client.server_now_ms())
        }
        "getAgent" => {
            let agent = agents::get(client, word("id")).await?;
            (text::agent(&agent), json!(agent))
        }
        "deleteAgent" => {
            agents::delete(client, word("id")).await?;
            let id = word("id");
            (text::deleted(id), json!({ "id": id, "deleted": true }))
        }
        "addFollowup" => {
            let prompt = prompt(name, &input["prompt"])?;
            agents::follow_up(client, word("id"), &prompt).await?;
            let id = word("id");
            (text::followed_up(id, &prompt.text), json!({ "id": id }))
        }
        "getAgentConversation" => {
            let conversation = agents::conversation(client, word("id")).await?;
            (text::conversation(&conversation), json!(conversation))
        }
        "getMe" => {
            let me = agents::me(client).await?;
            (text::me(&me), json!(me))
        }
        "listModels" => {
            let models = agents::models(client).await?;
            (text::models(&models), json!({ "models": models }))
        }
        "listRepositories" => {
            let list = caller.account.repositories().await?;
            let each: Vec<Value> = list
                .iter()
                .map(|repository| {
                    let url = repository.url.trim_end_matches(".git");
                    let mut parts = url.rsplit('/');
                    let name = parts.next().unwrap_or_default();
                    let owner = parts.next().unwrap_or_default();
                    json!({ "owner": owner, "name": name, "repository": repository.url })
                })
                .collect();
            (text::repositories(&list), json!({ "repositories": each }))
        }
        _ => {
            let structured = documentation::structured();
            let text = if word("format") == "json" {
                serde_json::to_string_pretty(&structured).unwrap_or_default()
            } else {
                documentation::markdown()
            };
            (text, structured)
        }
    })
}

fn order(input: &Value, prompt: Prompt) -> Order {
    let word = |value: &Value| value.as_str().map(|text| text.trim().to_owned());
    let model = word(&input["model"]).filter(|model| model != "default");
    let webhook = &input["webhook"];
    Order {
        prompt,
        model,
        repository: word(&input["source"]["repository"]).unwrap_or_default(),
        reference: word(&input["source"]["ref"]),
        auto_create_pr: input["target"]["autoCreatePr"].as_bool().unwrap_or(true),
        branch: word(&input["target"]["branchName"]),
        webhook: webhook["url"].as_str().map(|url| Webhook {
            url: url.to_owned(),
            secret: webhook["secret"].as_str().map(str::to_owned),
        }),
    }
}

/// A prompt; its images are looked into.
fn prompt(tool: &str, input: &Value) -> Result<Prompt, Failure> {
    let mut prompt = Prompt::text(input["text"].as_str().unwrap_or_default());
    for (number, image) in input["images"].as_array().into_iter().flatten().enumerate() {
        let data = image["data"].as_str().unwrap_or_default();
        let kind = check::image_type(data)
            .map_err(|why| Failure::field(tool, &format!("prompt.images[{number}].data"), why))?;
        prompt.images.push(Image {
            url: None,
            data: Some(data.to_owned()),
            mime_type: Some(kind.to_owned()),
            dimension: image.get("dimension").map(|sides| Dimension {
                width: sides["width"].as_f64().unwrap_or_default(),
                height: sides["height"].as_f64().unwrap_or_default(),
            }),
        });
    }
    Ok(prompt)
}
