//! What people read of a result.

use cloud::clock;
use cloud::v0::{Agent, Agents, Conversation, Status};
use cloud::{Me, Repository};

/// So much of a message is shown; the whole is in the structured content.
const SHOWN_CHARS: usize = 2000;

/// What follows a name in a list of facts.
fn fact(lines: &mut Vec<String>, name: &str, value: Option<&str>) {
    if let Some(value) = value.filter(|value| !value.is_empty()) {
        lines.push(format!("{name}: {value}"));
    }
}

/// `2026-11-18 01:02 UTC`.
pub fn time(iso: &str) -> String {
    clock::parse_ms(iso).map_or_else(
        || iso.to_owned(),
        |ms| {
            let text = clock::format_ms(ms);
            format!("{} {} UTC", &text[..10], &text[11..16])
        },
    )
}

/// `2h 5m`.
pub fn span(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m"),
        (0, ..) => format!("{hours}h {minutes}m"),
        _ => format!("{days}d {hours}h"),
    }
}

/// A name, or the id where there is none.
pub fn name(agent: &Agent) -> &str {
    agent
        .name
        .as_deref()
        .filter(|name| !name.is_empty())
        .unwrap_or(&agent.id)
}

fn facts(agent: &Agent) -> String {
    let mut lines = Vec::new();
    fact(&mut lines, "Name", agent.name.as_deref());
    fact(&mut lines, "ID", Some(&agent.id));
    fact(&mut lines, "Status", Some(agent.status.as_str()));
    fact(&mut lines, "Created", Some(&time(&agent.created_at)));
    fact(&mut lines, "Repository", Some(&agent.source.repository));
    fact(&mut lines, "Ref", agent.source.reference.as_deref());
    fact(&mut lines, "Branch", agent.target.branch_name.as_deref());
    fact(&mut lines, "Pull request", agent.target.pr_url.as_deref());
    if agent.target.pr_url.is_none() {
        let auto = agent
            .target
            .auto_create_pr
            .map(|auto| if auto { "enabled" } else { "disabled" });
        fact(&mut lines, "Auto-create PR", auto);
    }
    fact(&mut lines, "View", Some(&agent.target.url));
    fact(&mut lines, "Summary", agent.summary.as_deref());
    lines.join("\n")
}

pub fn created(agent: &Agent) -> String {
    format!("Created an agent.\n{}", facts(agent))
}

pub fn agent(agent: &Agent) -> String {
    facts(agent)
}

pub fn list(page: &Agents) -> String {
    let mut lines = vec![match page.agents.len() {
        0 => "No agents.".to_owned(),
        1 => "1 agent:".to_owned(),
        count => format!("{count} agents:"),
    }];
    lines.extend(page.agents.iter().map(|agent| {
        format!(
            "- {} ({}): {}, {}",
            name(agent),
            agent.id,
            agent.status,
            time(&agent.created_at)
        )
    }));
    if let Some(cursor) = &page.next_cursor {
        lines.push(format!("More agents: call listAgents with cursor {cursor}"));
    }
    lines.join("\n")
}

pub fn conversation(conversation: &Conversation) -> String {
    let count = conversation.messages.len();
    let mut parts = vec![match count {
        0 => "No messages yet.".to_owned(),
        1 => "1 message:".to_owned(),
        _ => format!("{count} messages:"),
    }];
    parts.extend(conversation.messages.iter().map(|message| {
        let who = match message.kind.as_str() {
            "user_message" => "User",
            "assistant_message" => "Assistant",
            other => other,
        };
        format!("{who}: {}", short(&message.text))
    }));
    parts.join("\n\n")
}

fn short(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

pub fn followed_up(id: &str, text: &str) -> String {
    format!("Sent the follow-up to {id}:\n{}", short(text))
}

pub fn deleted(id: &str) -> String {
    format!("Deleted the agent {id} permanently.")
}

pub fn me(me: &Me) -> String {
    let mut lines = Vec::new();
    fact(&mut lines, "API key", Some(&me.api_key_name));
    fact(&mut lines, "User", me.user_email.as_deref());
    fact(&mut lines, "Created", Some(&time(&me.created_at)));
    lines.join("\n")
}

pub fn models(models: &[String]) -> String {
    let mut lines = vec![format!("{} models:", models.len())];
    lines.extend(models.iter().map(|model| format!("- {model}")));
    lines.join("\n")
}

pub fn repositories(list: &[Repository]) -> String {
    let mut lines = vec![format!("{} repositories:", list.len())];
    lines.extend(
        list.iter()
            .map(|repository| format!("- {}", repository.url)),
    );
    lines.join("\n")
}

/// How a wait ended.
pub fn waited(
    end: &str,
    id: &str,
    elapsed_ms: u64,
    why: Option<&str>,
    agent: Option<&Agent>,
) -> String {
    let after = span(i64::try_from(elapsed_ms / 1000).unwrap_or(i64::MAX));
    let first = match end {
        "TIMEOUT" => format!(
            "{id} has not finished after {after}. It keeps running; use getAgent to check its progress."
        ),
        "CANCELLED" => match agent.map(|agent| &agent.status) {
            Some(Status::Stopped) => format!("{id} was stopped after {after}."),
            _ => format!(
                "Stopped waiting for {id} after {after}. It keeps running; use getAgent to check its progress."
            ),
        },
        _ => format!("{id} ended after {after}: {end}."),
    };
    let mut parts = vec![first];
    parts.extend(why.map(str::to_owned));
    parts.extend(agent.map(facts));
    parts.join("\n")
}
