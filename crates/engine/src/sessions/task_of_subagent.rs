//! Which tool call a subagent belongs to, by all that was said of both: pure.

use acp::types as wire;
use serde_json::Value;

use crate::sessions::transcript::Transcript;
use crate::tools::kind::ToolKind;
use crate::tools::tool_call::{Task, ToolCall};

/// How tools that start subagents are called.
const LAUNCHERS: [&str; 6] = [
    "task",
    "agent",
    "subagent",
    "spawn_agent",
    "spawnagent",
    "delegate",
];

/// The task a subagent's session belongs to, of those there are.
pub(super) fn find_task(
    transcript: &Transcript,
    owner: Option<Option<usize>>,
    id: &str,
    news: Option<&wire::SubagentUpdate>,
) -> Option<usize> {
    let also = news.and_then(|news| news.agent_id.as_deref());
    let called = |task: &Task| task.is_called(id) || also.is_some_and(|id| task.is_called(id));
    if let Some((at, _)) = transcript.tasks().rev().find(|(_, task)| called(task)) {
        return Some(at);
    }
    if let Some(call) = news.and_then(|news| news.tool_call_id.as_ref()) {
        let known = transcript.tool_of(call.as_str(), owner.flatten());
        return known.filter(|at| is_free(transcript, *at));
    }
    let calls = || {
        let entries = transcript.entries().iter().enumerate();
        let free = entries.filter(|(at, _)| is_free(transcript, *at));
        free.filter_map(|(at, entry)| Some((at, entry, entry.tool()?)))
            .filter(|(_, entry, _)| owner.is_none_or(|owner| entry.parent == owner))
    };
    let names = |tool: &ToolCall| {
        let input = tool.raw_input.as_ref();
        input.is_some_and(|input| mentions(input, id))
            || tool.extra.values().any(|value| mentions(value, id))
    };
    if let Some((at, ..)) = calls().rfind(|(.., tool)| names(tool)) {
        return Some(at);
    }
    let running = || calls().filter(|(.., tool)| !tool.is_over());
    let titles = news.map(titles_of).unwrap_or_default();
    let by_title = running().find(|(.., tool)| {
        let said = [Some(tool.title.as_str()), input_text(tool, "description")];
        may_launch(tool)
            && said
                .into_iter()
                .flatten()
                .any(|said| titles.iter().any(|title| title == said))
    });
    let by_tool = || running().find(|(.., tool)| is_launcher(tool));
    // In the schema's form the subagent stands in the place of the call that started it.
    let by_kind = || {
        let shows_calls = news.is_none_or(|news| news.draft);
        running().find(|(.., tool)| shows_calls && may_launch(tool))
    };
    by_title
        .or_else(by_tool)
        .or_else(by_kind)
        .map(|(at, ..)| at)
}

/// The task of a subagent that a tool call started which is only told of now: it names it, or is called the same.
pub(crate) fn task_before_call(
    transcript: &Transcript,
    parent: Option<usize>,
    news: &wire::ToolCall,
) -> Option<usize> {
    let call = ToolCall {
        title: news.title.clone().unwrap_or_default(),
        name: news.name.clone(),
        kind: news.kind.as_ref().map(ToolKind::from).unwrap_or_default(),
        raw_input: news.raw_input.clone(),
        extra: news
            .meta
            .iter()
            .map(|meta| ("_meta".to_owned(), Value::Object(meta.clone())))
            .collect(),
        ..ToolCall::default()
    };
    if !may_launch(&call) {
        return None;
    }
    let mut waiting = transcript.tasks().filter(|(at, task)| {
        let entry = transcript.get(*at);
        task.by_itself && entry.is_some_and(|entry| entry.parent == parent && !entry.done)
    });
    let said = [Some(call.title.as_str()), input_text(&call, "description")];
    let same = |task: &Task| {
        let names = [&task.title, &task.purpose, &task.named];
        let called =
            |said: &str| !said.is_empty() && names.iter().any(|name| name.as_deref() == Some(said));
        let id = task.session_id.as_deref();
        said.iter().flatten().any(|said| called(said))
            || call
                .raw_input
                .as_ref()
                .zip(id)
                .is_some_and(|(input, id)| mentions(input, id))
    };
    waiting.find(|(_, task)| same(task)).map(|(at, _)| at)
}

fn titles_of(news: &wire::SubagentUpdate) -> Vec<String> {
    let set = |patch: &wire::Patch<String>| match patch {
        wire::Patch::Set(text) if !text.is_empty() => Some(text.clone()),
        _ => None,
    };
    [set(&news.title), set(&news.description)]
        .into_iter()
        .flatten()
        .collect()
}

fn input_text<'a>(tool: &'a ToolCall, name: &str) -> Option<&'a str> {
    let text = tool.raw_input.as_ref()?.get(name)?.as_str()?;
    Some(text).filter(|text| !text.is_empty())
}

/// Whether an entry can become the task of a subagent: it is no other one's yet.
fn is_free(transcript: &Transcript, at: usize) -> bool {
    transcript
        .task(at)
        .is_none_or(|task| task.session_id.is_none())
}

/// Whether the tool is one that starts subagents, as far as its name says.
fn is_launcher(tool: &ToolCall) -> bool {
    if tool.task.is_some() {
        return true;
    }
    let meta = tool.extra.get("_meta").and_then(Value::as_object);
    let of_meta = meta.and_then(|meta| {
        let named = |fields: &acp::Object| Some(fields.get("toolName")?.as_str()?.to_owned());
        named(meta).or_else(|| meta.values().filter_map(Value::as_object).find_map(named))
    });
    let names = [
        tool.name.clone(),
        input_text(tool, "_toolName").map(str::to_owned),
        of_meta,
    ];
    names.into_iter().flatten().any(|name| {
        let name = name.to_ascii_lowercase();
        let name = name.strip_suffix("toolcall").unwrap_or(&name);
        LAUNCHERS.contains(&name)
    })
}

/// Whether the call may have started a subagent: it is none of the kinds that do something of their own.
fn may_launch(tool: &ToolCall) -> bool {
    is_launcher(tool) || matches!(tool.kind, ToolKind::Think | ToolKind::Unspecified)
}

/// Whether a value is this text, or has it somewhere inside.
fn mentions(value: &Value, id: &str) -> bool {
    match value {
        Value::String(text) => text == id,
        Value::Array(items) => items.iter().any(|item| mentions(item, id)),
        Value::Object(fields) => fields.values().any(|field| mentions(field, id)),
        _ => false,
    }
}
