//! The inputs and outputs of the tools, as JSON schemas. Inputs are validated against exactly these.

use serde_json::{Value, json};

/// States of an agent.
pub const STATES: [&str; 6] = [
    "CREATING", "RUNNING", "FINISHED", "STOPPED", "ERROR", "EXPIRED",
];

/// How a wait can end.
pub const ENDS: [&str; 5] = ["FINISHED", "ERROR", "EXPIRED", "CANCELLED", "TIMEOUT"];

/// The templates.
pub const TEMPLATES: [&str; 3] = ["docAudit", "typeCleanup", "bugHunt"];

const MAX_IMAGE_CHARS: usize = cloud::MAX_IMAGE_BYTES.div_ceil(3) * 4;

/// An object with these properties and no others.
fn object(properties: Value, required: &[&str]) -> Value {
    let mut schema = open(properties, required);
    schema["additionalProperties"] = Value::Bool(false);
    schema
}

fn prompt(about: &str) -> Value {
    let side = |about: &str| json!({ "type": "number", "minimum": 1, "description": about });
    let image = object(
        json!({
            "data": {
                "type": "string", "minLength": 1, "maxLength": MAX_IMAGE_CHARS, "contentEncoding": "base64",
                "description": "The image in base64: PNG, JPEG, GIF or WebP, 15 MB at most",
            },
            "dimension": object(
                json!({ "width": side("In pixels"), "height": side("In pixels") }),
                &["width", "height"],
            ),
        }),
        &["data"],
    );
    object(
        json!({
            "text": { "type": "string", "minLength": 1, "pattern": "\\S", "description": about },
            "images": {
                "type": "array", "maxItems": cloud::MAX_IMAGES, "items": image,
                "description": "Images for the agent, at most 5",
            },
        }),
        &["text"],
    )
}

/// What all tools that create an agent share, without the prompt.
fn order() -> Value {
    json!({
        "model": {
            "type": "string", "minLength": 1, "pattern": "\\S", "default": "default",
            "description": "A model from listModels, or \"default\" to let Cursor choose; defaults to \"default\"",
        },
        "source": object(
            json!({
                "repository": {
                    "type": "string", "pattern": "^https?://[^\\s/@]+/[^\\s/]+/[^\\s]+$",
                    "description": "The repository's URL, such as https://github.com/user/repo",
                },
                "ref": {
                    "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[^\\s]+$",
                    "description": "The branch, tag or commit to start from",
                },
            }),
            &["repository"],
        ),
        "target": object(
            json!({
                "autoCreatePr": {
                    "type": "boolean", "default": true,
                    "description": "Whether to open a pull request when the agent finishes; defaults to true",
                },
                "branchName": {
                    "type": "string", "minLength": 1, "maxLength": 244,
                    "pattern": "^(?![-/.])(?!.*(\\.\\.|//|@\\{))[^\\s~^:?*\\[\\\\]+(?<![/.])$",
                    "description": "The name of the branch to create",
                },
            }),
            &[],
        ),
        "webhook": object(
            json!({
                "url": {
                    "type": "string", "pattern": "^https?://[^\\s/]+", "maxLength": 2048,
                    "description": "URL that is notified when the agent's status changes",
                },
                "secret": {
                    "type": "string", "minLength": 32, "maxLength": 256,
                    "description": "Secret that signs the notifications; 32 to 256 characters",
                },
            }),
            &["url"],
        ),
    })
}

fn with(mut properties: Value, more: Value) -> Value {
    if let (Value::Object(all), Value::Object(more)) = (&mut properties, more) {
        all.extend(more);
    }
    properties
}

fn task() -> Value {
    with(
        order(),
        json!({ "prompt": prompt("The task for the agent") }),
    )
}

fn id() -> Value {
    json!({
        "type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[A-Za-z0-9_-]+$",
        "description": "The agent's id, such as bc-00000000-0000-0000-0000-000000000000",
    })
}

fn cancel_token() -> Value {
    json!({
        "type": "string", "minLength": 1, "maxLength": 128, "pattern": "\\S",
        "description": "A name of your choice for this wait; cancelCreateAndWait takes it to end the wait",
    })
}

fn page() -> Value {
    json!({
        "limit": {
            "type": "integer", "minimum": 1, "maximum": 100, "default": 100,
            "description": "How many agents to return, 1 to 100",
        },
        "cursor": {
            "type": "string", "minLength": 1,
            "description": "nextCursor of the previous page",
        },
    })
}

/// What a tool takes.
pub fn input(tool: &str) -> Value {
    match tool {
        "createAgent" => object(task(), &["prompt", "model", "source"]),
        "createAndWait" => object(
            with(
                task(),
                json!({
                    "pollIntervalMs": {
                        "type": "integer", "minimum": 250, "maximum": 60_000, "default": 2000,
                        "description": "How often to check the status, in milliseconds",
                    },
                    "timeoutMs": {
                        "type": "integer", "minimum": 5000, "maximum": 86_400_000, "default": 600_000,
                        "description": "Maximum time to wait, in milliseconds; the agent keeps running afterwards",
                    },
                    "jitterRatio": {
                        "type": "number", "minimum": 0, "maximum": 0.5, "default": 0.1,
                        "description": "Random variation of the interval, as a fraction of it",
                    },
                    "cancelToken": cancel_token(),
                }),
            ),
            &["prompt", "model", "source"],
        ),
        "cancelCreateAndWait" => object(json!({ "cancelToken": cancel_token() }), &["cancelToken"]),
        "listAgents" => object(page(), &[]),
        "summarizeAgents" => object(
            with(
                page(),
                json!({
                    "status": { "type": "string", "enum": STATES, "description": "Only agents with this status" },
                    "repository": {
                        "type": "string", "minLength": 1,
                        "description": "Only agents whose repository contains this text; case is ignored",
                    },
                }),
            ),
            &[],
        ),
        "getAgent" | "deleteAgent" | "getAgentConversation" => {
            object(json!({ "id": id() }), &["id"])
        }
        "addFollowup" => object(
            json!({ "id": id(), "prompt": prompt("The follow-up instruction") }),
            &["id", "prompt"],
        ),
        "createAgentFromTemplate" => from_template(),
        "documentation" => object(
            json!({
                "format": {
                    "type": "string", "enum": ["markdown", "json"], "default": "markdown",
                    "description": "Format of the text",
                },
            }),
            &[],
        ),
        _ => object(json!({}), &[]),
    }
}

fn from_template() -> Value {
    let words = |about: &str| json!({ "type": "string", "minLength": 1, "pattern": "\\S", "description": about });
    let list = |about: &str, least: usize| {
        json!({
            "type": "array", "minItems": least, "items": { "type": "string", "minLength": 1, "pattern": "\\S" },
            "description": about,
        })
    };
    let flag = |about: &str| json!({ "type": "boolean", "default": false, "description": about });
    let params = [
        object(
            json!({
                "docPaths": list("Files or directories of the documentation", 1),
                "guidelines": words("Guidelines the documentation should follow"),
            }),
            &["docPaths"],
        ),
        object(
            json!({
                "strictMode": flag("Whether to turn on the strictest checks"),
                "includeDirs": list("Only these directories", 0),
            }),
            &[],
        ),
        object(
            json!({
                "area": words("Where to look: a feature, a directory or a symptom"),
                "flaky": flag("Whether the bug is a flaky test"),
            }),
            &["area"],
        ),
    ];
    let mut schema = object(
        with(
            order(),
            json!({
                "template": {
                    "type": "string", "enum": TEMPLATES,
                    "description": "docAudit checks the documentation, typeCleanup improves types, bugHunt finds and fixes a bug",
                },
                "params": {
                    "type": "object",
                    "description": "docAudit: docPaths (required), guidelines. typeCleanup: strictMode, includeDirs. bugHunt: area (required), flaky",
                },
            }),
        ),
        &["template", "source"],
    );
    let cases = TEMPLATES.iter().zip(params).map(|(name, params)| {
        let mut then = json!({ "properties": { "params": params } });
        if params_needed(name) {
            then["required"] = json!(["params"]);
        }
        json!({
            "if": { "properties": { "template": { "const": name } }, "required": ["template"] },
            "then": then,
        })
    });
    schema["allOf"] = cases.collect();
    schema
}

fn params_needed(template: &str) -> bool {
    template != "typeCleanup"
}

/// What a tool gives: this, or an error.
pub fn output(tool: &str) -> Value {
    let text = || json!({ "type": "string" });
    let number = || json!({ "type": "integer" });
    let list = |items: Value| json!({ "type": "array", "items": items });
    let (properties, required): (Value, &[&str]) = match tool {
        "createAgent" | "createAgentFromTemplate" | "getAgent" => {
            (agent(), &["id", "status", "source", "target"])
        }
        "createAndWait" => (
            json!({
                "status": { "type": "string", "enum": ENDS, "description": "How the wait ended" },
                "agentId": text(),
                "elapsedMs": number(),
                "agent": open(agent(), &["id", "status"]),
            }),
            &["status", "agentId", "elapsedMs"],
        ),
        "cancelCreateAndWait" => (
            json!({ "cancelToken": text(), "cancelled": { "type": "boolean" } }),
            &["cancelToken", "cancelled"],
        ),
        "listAgents" => (
            json!({ "agents": list(open(agent(), &["id", "status"])), "nextCursor": text() }),
            &["agents"],
        ),
        "summarizeAgents" => {
            let short = |more: Value| {
                let common = json!({
                    "id": text(), "name": text(), "status": text(), "repository": text(),
                });
                open(with(common, more), &["id", "status"])
            };
            let nullable = |kind: &str| json!({ "type": [kind, "null"] });
            (
                json!({
                    "filters": open(
                        json!({
                            "status": nullable("string"), "repository": nullable("string"),
                            "limit": nullable("integer"), "cursor": nullable("string"),
                        }),
                        &[],
                    ),
                    "totals": open(json!({ "totalAgents": number() }), &["totalAgents"]),
                    "statusCounts": { "type": "object", "additionalProperties": number() },
                    "recentAgents": list(short(json!({ "timestamp": nullable("integer") }))),
                    "inProgressAgents": list(short(json!({ "startedAt": text(), "ageSeconds": nullable("integer") }))),
                    "pagination": open(json!({ "nextCursor": nullable("string") }), &["nextCursor"]),
                }),
                &[
                    "filters",
                    "totals",
                    "statusCounts",
                    "recentAgents",
                    "inProgressAgents",
                    "pagination",
                ],
            )
        }
        "deleteAgent" => (
            json!({ "id": text(), "deleted": { "type": "boolean" } }),
            &["id", "deleted"],
        ),
        "addFollowup" => (json!({ "id": text() }), &["id"]),
        "getAgentConversation" => (
            json!({
                "id": text(),
                "messages": list(open(
                    json!({
                        "id": text(), "text": text(),
                        "type": { "type": "string", "description": "user_message or assistant_message" },
                    }),
                    &["type", "text"],
                )),
            }),
            &["id", "messages"],
        ),
        "getMe" => (
            json!({ "apiKeyName": text(), "userEmail": text(), "createdAt": text() }),
            &["apiKeyName"],
        ),
        "listModels" => (json!({ "models": list(text()) }), &["models"]),
        "listRepositories" => (
            json!({
                "repositories": list(open(
                    json!({ "owner": text(), "name": text(), "repository": text() }),
                    &["repository"],
                )),
            }),
            &["repositories"],
        ),
        _ => (
            json!({
                "name": text(), "version": text(), "description": text(),
                "transports": { "type": "object" }, "authentication": { "type": "object" },
                "environment": { "type": "object" }, "errors": { "type": "object" },
                "tools": list(json!({ "type": "object" })),
            }),
            &["name", "version", "tools"],
        ),
    };
    let error = open(
        json!({
            "kind": { "type": "string", "description": "Such as VALIDATION_ERROR, UNAUTHORIZED, NOT_FOUND" },
            "message": text(),
            "status": { "type": "integer", "description": "The API's HTTP status" },
            "field": { "type": "string", "description": "The field of the input that is wrong" },
            "requestId": text(),
            "retryAfterSeconds": number(),
        }),
        &["kind", "message"],
    );
    let mut schema = open(with(properties, json!({ "error": error })), &[]);
    schema["anyOf"] = json!([{ "required": required }, { "required": ["error"] }]);
    schema
}

/// An object with at least these properties: a newer API may have more.
fn open(properties: Value, required: &[&str]) -> Value {
    let mut schema = json!({ "type": "object" });
    schema["properties"] = properties;
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn agent() -> Value {
    let text = |about: &str| json!({ "type": "string", "description": about });
    json!({
        "id": text("Its id"),
        "name": { "type": ["string", "null"], "description": "What it is called" },
        "status": text("CREATING, RUNNING, FINISHED, STOPPED, ERROR or EXPIRED"),
        "source": open(
            json!({ "repository": text("Its URL"), "ref": text("Where it started") }),
            &["repository"],
        ),
        "target": open(
            json!({
                "branchName": text("Its branch"),
                "url": text("Its page"),
                "prUrl": text("Its pull request"),
                "autoCreatePr": { "type": "boolean" },
            }),
            &[],
        ),
        "createdAt": text("ISO 8601"),
        "summary": text("What it did, or why it failed"),
    })
}
