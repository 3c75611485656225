//! What a client's prompt says.

use serde_json::Value;

/// The text blocks of a prompt.
pub fn prompt_text(params: &Value) -> String {
    let blocks = params["prompt"].as_array().into_iter().flatten();
    let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

/// A session's title: the first words of its first prompt.
pub fn title_of(text: &str) -> String {
    const CHARS: usize = 60;
    let first = text.lines().next().unwrap_or_default();
    first.chars().take(CHARS).collect()
}
