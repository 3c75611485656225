//! The updates of a turn as they are kept for a later replay: pieces joined, calls in their last state, nothing huge.

use acp::types::{ContentBlock, SessionUpdate, ToolCall, ToolContent};
use serde_json::Value;

/// What one tool call may take.
const CALL_BYTES: usize = 256 * 1024;

/// What the calls of one turn may take; later ones are kept without their content.
const TURN_BYTES: usize = 8 * 1024 * 1024;

/// The most that the texts of one turn may take; later text is left out.
const TEXT_BYTES: usize = 4 * 1024 * 1024;

/// Collects the updates of one turn.
#[derive(Debug, Default)]
pub struct History {
    updates: Vec<SessionUpdate>,
    call_bytes: usize,
    text_bytes: usize,
}

impl History {
    /// Takes an update that was sent.
    pub fn note(&mut self, update: &SessionUpdate) {
        match update {
            SessionUpdate::ToolCall(call) | SessionUpdate::ToolCallUpdate(call) => {
                self.note_call(call);
            }
            SessionUpdate::Plan(_) => {
                // The last one is the one that counts.
                self.updates
                    .retain(|update| !matches!(update, SessionUpdate::Plan(_)));
                self.updates.push(update.clone());
            }
            SessionUpdate::AgentMessageChunk(_)
            | SessionUpdate::AgentThoughtChunk(_)
            | SessionUpdate::UserMessageChunk(_) => {
                self.text_bytes += text_size(update);
                if self.text_bytes > TEXT_BYTES {
                    return;
                }
                let last = self.updates.last_mut();
                let goes_on = last.is_some_and(|last| joined(last, update));
                if !goes_on {
                    self.updates.push(update.clone());
                }
            }
            _ => {}
        }
    }

    /// Hands out what was collected.
    pub fn take(&mut self) -> Vec<SessionUpdate> {
        (self.call_bytes, self.text_bytes) = (0, 0);
        std::mem::take(&mut self.updates)
    }

    fn note_call(&mut self, news: &ToolCall) {
        let mut news = news.clone();
        let bytes = size(&news);
        if bytes > CALL_BYTES || self.call_bytes + bytes > TURN_BYTES {
            strip(&mut news);
        } else {
            self.call_bytes += bytes;
        }
        let known = self
            .updates
            .iter_mut()
            .rev()
            .find_map(|update| match update {
                SessionUpdate::ToolCall(call) if call.id == news.id => Some(call),
                _ => None,
            });
        match known {
            Some(call) => merge(call, news),
            None => self.updates.push(SessionUpdate::ToolCall(news)),
        }
    }
}

fn text_size(update: &SessionUpdate) -> usize {
    match update {
        SessionUpdate::AgentMessageChunk(chunk)
        | SessionUpdate::AgentThoughtChunk(chunk)
        | SessionUpdate::UserMessageChunk(chunk) => chunk.content.as_text().map_or(0, str::len),
        _ => 0,
    }
}

/// Adds a piece to the message it goes on with.
fn joined(last: &mut SessionUpdate, update: &SessionUpdate) -> bool {
    use SessionUpdate::{AgentMessageChunk, AgentThoughtChunk};
    match (last, update) {
        (AgentMessageChunk(last), AgentMessageChunk(more))
        | (AgentThoughtChunk(last), AgentThoughtChunk(more)) => {
            match (&mut last.content, &more.content) {
                (ContentBlock::Text(last), ContentBlock::Text(more)) => {
                    last.text.push_str(&more.text);
                    true
                }
                _ => false,
            }
        }
        _ => false,
    }
}

fn merge(call: &mut ToolCall, news: ToolCall) {
    call.title = news.title.or(call.title.take());
    call.kind = news.kind.or(call.kind.take());
    call.status = news.status.or(call.status.take());
    call.content = news.content.or(call.content.take());
    call.locations = news.locations.or(call.locations.take());
    call.raw_input = news.raw_input.or(call.raw_input.take());
    call.raw_output = news.raw_output.or(call.raw_output.take());
}

/// How much a call takes, nearly.
fn size(call: &ToolCall) -> usize {
    let content = call.content.iter().flatten().map(|content| match content {
        ToolContent::Content(ContentBlock::Text(text)) => text.text.len(),
        ToolContent::Content(ContentBlock::Image(image)) => image.data.len(),
        ToolContent::Diff(diff) => {
            diff.new_text.len() + diff.old_text.as_ref().map_or(0, String::len)
        }
        _ => 0,
    });
    let raw = [&call.raw_input, &call.raw_output];
    let raw = raw.into_iter().flatten().map(value_size);
    content.sum::<usize>() + raw.sum::<usize>()
}

fn value_size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(value_size).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| key.len() + value_size(value))
            .sum(),
        _ => 8,
    }
}

fn strip(call: &mut ToolCall) {
    call.raw_input = None;
    call.raw_output = None;
    call.content = call.content.as_ref().map(|_| {
        let note = "Too large to be stored with the session.";
        vec![ToolContent::Content(ContentBlock::text(note))]
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use acp::types::ToolStatus;

    use super::*;
    use crate::translate::chunk;

    fn call(id: &str, status: ToolStatus, text: &str) -> ToolCall {
        ToolCall {
            id: id.into(),
            title: Some(id.to_owned()),
            status: Some(status),
            content: Some(vec![ToolContent::Content(ContentBlock::text(text))]),
            ..ToolCall::default()
        }
    }

    #[test]
    fn pieces_are_joined_and_calls_are_merged() {
        let mut history = History::default();
        for update in [
            SessionUpdate::AgentThoughtChunk(chunk("hm".to_owned())),
            SessionUpdate::AgentMessageChunk(chunk("a".to_owned())),
            SessionUpdate::AgentMessageChunk(chunk("b".to_owned())),
            SessionUpdate::ToolCall(call("c", ToolStatus::InProgress, "")),
            SessionUpdate::AgentMessageChunk(chunk("d".to_owned())),
            SessionUpdate::ToolCallUpdate(call("c", ToolStatus::Completed, "out")),
        ] {
            history.note(&update);
        }
        let kept = history.take();
        assert_eq!(
            kept,
            [
                SessionUpdate::AgentThoughtChunk(chunk("hm".to_owned())),
                SessionUpdate::AgentMessageChunk(chunk("ab".to_owned())),
                SessionUpdate::ToolCall(call("c", ToolStatus::Completed, "out")),
                SessionUpdate::AgentMessageChunk(chunk("d".to_owned())),
            ]
        );
        assert!(history.take().is_empty());
    }

    #[test]
    fn what_is_huge_is_left_out() {
        let mut history = History::default();
        let big = "x".repeat(CALL_BYTES + 1);
        history.note(&SessionUpdate::ToolCall(call(
            "big",
            ToolStatus::Completed,
            &big,
        )));
        let almost = "x".repeat(CALL_BYTES);
        for number in 0..40 {
            let id = format!("c{number}");
            history.note(&SessionUpdate::ToolCall(call(
                &id,
                ToolStatus::Completed,
                &almost,
            )));
        }
        let kept = serde_json::to_string(&history.take()).unwrap();
        assert!(kept.len() < TURN_BYTES + 64 * 1024);
        assert!(kept.contains("\"big\"") && kept.contains("\"c39\""));
        for _ in 0..100 {
            history.note(&SessionUpdate::AgentMessageChunk(chunk(almost.clone())));
        }
        assert!(serde_json::to_string(&history.take()).unwrap().len() < TEXT_BYTES + 1024);
    }
}
