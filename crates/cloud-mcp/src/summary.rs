//! `summarizeAgents`: filters first, then counts.

use cloud::clock;
use cloud::v0::{Agent, Agents, Status};
use serde_json::{Map, Value, json};

use crate::schema::STATES;
use crate::text;

/// How many are shown as recent.
const RECENT: usize = 5;

/// What to count.
#[derive(Debug, Clone, Default)]
pub struct Filters {
    pub status: Option<String>,
    pub repository: Option<String>,
    pub limit: Option<u32>,
    pub cursor: Option<String>,
}

/// The text and the structured content.
pub fn summarize(page: &Agents, filters: &Filters, now_ms: i64) -> (String, Value) {
    let wanted = filters.repository.as_ref().map(|text| text.to_lowercase());
    let mut agents: Vec<&Agent> = page
        .agents
        .iter()
        .filter(|agent| {
            filters
                .status
                .as_ref()
                .is_none_or(|status| agent.status.as_str() == status)
        })
        .filter(|agent| {
            wanted
                .as_ref()
                .is_none_or(|part| agent.source.repository.to_lowercase().contains(part))
        })
        .collect();
    agents.sort_by_key(|agent| std::cmp::Reverse(clock::parse_ms(&agent.created_at)));

    let mut counts: Map<String, Value> = STATES
        .iter()
        .map(|state| ((*state).to_owned(), json!(0)))
        .collect();
    for agent in &agents {
        let count = counts.entry(agent.status.as_str()).or_insert(json!(0));
        *count = json!(count.as_u64().unwrap_or(0) + 1);
    }
    let short = |agent: &Agent| {
        json!({
            "id": agent.id, "name": text::name(agent), "status": agent.status.as_str(),
            "repository": agent.source.repository,
        })
    };
    let age =
        |agent: &Agent| clock::parse_ms(&agent.created_at).map(|ms| ((now_ms - ms) / 1000).max(0));
    let works: Vec<&&Agent> = agents
        .iter()
        .filter(|agent| matches!(agent.status, Status::Creating | Status::Running))
        .collect();
    let recent = agents.iter().take(RECENT);

    let mut lines = Vec::new();
    let mut named = Vec::new();
    if let Some(status) = &filters.status {
        named.push(format!("status {status}"));
    }
    if let Some(repository) = &filters.repository {
        named.push(format!("repository containing {repository}"));
    }
    if !named.is_empty() {
        lines.push(format!("Only: {}", named.join(", ")));
    }
    lines.push(format!("Agents: {}", agents.len()));
    let mix: Vec<String> = counts
        .iter()
        .map(|(state, count)| format!("{state}: {count}"))
        .collect();
    lines.push(mix.join(" | "));
    if !agents.is_empty() {
        lines.push("\nRecent:".to_owned());
        lines.extend(recent.clone().map(|agent| {
            format!(
                "- {}: {} ({})",
                text::name(agent),
                agent.status,
                text::time(&agent.created_at)
            )
        }));
    }
    if !works.is_empty() {
        lines.push("\nIn progress:".to_owned());
        lines.extend(works.iter().map(|agent| {
            let since = age(agent).map_or_else(|| "?".to_owned(), text::span);
            format!("- {}: {since}", text::name(agent))
        }));
    }
    if let Some(cursor) = &page.next_cursor {
        lines.push(format!(
            "\nMore agents: call summarizeAgents with cursor {cursor}"
        ));
    }
    let recent: Vec<Value> = recent
        .map(|agent| {
            let mut fields = short(agent);
            fields["timestamp"] = json!(clock::parse_ms(&agent.created_at));
            fields
        })
        .collect();
    let works: Vec<Value> = works
        .iter()
        .map(|agent| {
            let mut fields = short(agent);
            fields["startedAt"] = json!(agent.created_at);
            fields["ageSeconds"] = json!(age(agent));
            fields
        })
        .collect();
    let structured = json!({
        "filters": {
            "status": filters.status, "repository": filters.repository,
            "limit": filters.limit, "cursor": filters.cursor,
        },
        "totals": { "totalAgents": agents.len() },
        "statusCounts": counts,
        "recentAgents": recent,
        "inProgressAgents": works,
        "pagination": { "nextCursor": page.next_cursor },
    });
    (lines.join("\n"), structured)
}
