//! Turns that end well by the protocol and in an error by their text, as Cursor's do.

use engine::ids::Key;
use serde_json::json;

use crate::kit::World;

const ERROR: &str = "I will look.\n\nError: RetriableError: [unavailable] Error";

fn turn(said: &[&str], reason: &str) -> (World, Key) {
    let (mut world, key) = World::cursor();
    let prompt = world.prompt(key, "hello");
    for text in said {
        world.say("s-1", text);
    }
    world.end_turn(&prompt, reason);
    (world, key)
}

fn end(world: &World) -> serde_json::Value {
    let mut events = world.mirror.events.iter().rev();
    let ended = events.find(|(name, _)| name == "CursorAgentTurnEnd");
    ended.unwrap().1.clone()
}

#[test]
fn a_failure_told_as_text_is_a_failed_turn() {
    let (mut world, key) = turn(&[ERROR], "end_turn");
    let ended = end(&world);
    assert_eq!(ended["stop_reason"], "error");
    let error = ended["error"].as_str().unwrap();
    assert!(
        error.starts_with("RetriableError: [unavailable] Error\n"),
        "{error}"
    );
    assert!(error.contains(":CursorAgent retry"), "{error}");
    assert_eq!(world.status(key)["error"], error);
    assert_eq!(world.state(key), "idle");
    let transcript = world.transcript(key);
    let notice = transcript.last().unwrap();
    assert_eq!(
        (&notice["notice"], &notice["level"]),
        (&json!("turn_end"), &json!("error"))
    );
    assert_eq!(notice["text"], error);
    assert_eq!(transcript[1]["text"], ERROR, "what it said stays");
    // The next turn is a new one.
    let prompt = world.prompt(key, "again");
    assert_eq!(world.status(key).get("error"), None);
    world.say("s-1", "Fine.");
    world.end_turn(&prompt, "end_turn");
    assert_eq!(end(&world).get("error"), None);
}

#[test]
fn wherever_the_text_is_split() {
    for at in 0..=ERROR.len() {
        let (head, tail) = ERROR.split_at(at);
        let (world, _) = turn(&[head, tail], "end_turn");
        assert_eq!(end(&world)["stop_reason"], "error", "{head:?} {tail:?}");
    }
    let letters: Vec<String> = ERROR.chars().map(String::from).collect();
    let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
    assert_eq!(end(&turn(&letters, "end_turn").0)["stop_reason"], "error");
}

#[test]
fn only_the_last_message_of_the_turn_counts() {
    // Something was done after it.
    let (mut world, key) = World::cursor();
    let prompt = world.prompt(key, "hello");
    world.say("s-1", ERROR);
    world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "Read", "kind": "read", "status": "completed", "rawOutput": { "content": ERROR } }));
    world.end_turn(&prompt, "end_turn");
    assert_eq!(end(&world).get("error"), None);
    // A message after a tool call is the last one; todos between are nothing.
    let prompt = world.prompt(key, "again");
    world.update("s-1", json!({ "sessionUpdate": "tool_call", "toolCallId": "u", "title": "Read", "kind": "read", "status": "in_progress" }));
    world.say("s-1", "\n\nError: RetriableError: x");
    world.update("s-1", json!({ "sessionUpdate": "plan", "entries": [{ "content": "a", "priority": "low", "status": "pending" }] }));
    world.end_turn(&prompt, "end_turn");
    assert!(end(&world)["error"].is_string());
    let open = world
        .transcript(key)
        .into_iter()
        .find(|entry| entry["tool"]["id"] == "u")
        .unwrap();
    assert_eq!(
        open["tool"]["status"], "failed",
        "what was open failed with its turn"
    );
    // A turn without a message has no old one.
    let prompt = world.prompt(key, "again");
    world.end_turn(&prompt, "end_turn");
    assert_eq!(end(&world).get("error"), None);
    // Thoughts and what the user said are no answer.
    let prompt = world.prompt(key, "again");
    world.update("s-1", json!({ "sessionUpdate": "agent_thought_chunk", "content": { "type": "text", "text": ERROR } }));
    world.end_turn(&prompt, "end_turn");
    assert_eq!(end(&world).get("error"), None);
    let error = "What is this?\n\nError: RetriableError: x";
    let prompt = world.prompt(key, error);
    world.say("s-1", &format!("You said: {error}"));
    world.end_turn(&prompt, "end_turn");
    assert_eq!(end(&world).get("error"), None);
}

#[test]
fn another_reason_to_stop_stays_what_it_is() {
    for reason in ["max_tokens", "refusal", "cancelled"] {
        let (world, _) = turn(&[ERROR], reason);
        assert_eq!(end(&world)["stop_reason"], reason);
        assert_eq!(end(&world).get("error"), None);
    }
}

#[test]
fn a_cancelled_error_under_a_cancel_is_a_cancel() {
    for (cancel, reason) in [(true, "cancelled"), (false, "error")] {
        let (mut world, key) = World::cursor();
        let prompt = world.prompt(key, "hello");
        world.say("s-1", "a\n\nError: CancelledError: aborted");
        if cancel {
            world.act(|engine| engine.cancel(key)).unwrap();
        }
        world.end_turn(&prompt, "end_turn");
        assert_eq!(end(&world)["stop_reason"], reason);
        assert_eq!(end(&world).get("error").is_some(), !cancel);
    }
}

#[test]
fn the_queue_goes_on_as_after_any_failed_turn() {
    let (mut world, key) = World::cursor();
    let prompt = world.prompt(key, "hello");
    world.queue(key, "next");
    world.say("s-1", ERROR);
    world.end_turn(&prompt, "end_turn");
    let next = world.take("session/prompt");
    assert_eq!(next["params"]["prompt"][0]["text"], "next");
}

#[test]
fn an_error_answer_is_in_the_status_too() {
    let (mut world, key) = World::cursor();
    let prompt = world.prompt(key, "hello");
    world.refuse(&prompt, -32603, "model overloaded");
    let error = world.status(key)["error"].as_str().unwrap().to_owned();
    assert!(error.contains("model overloaded"), "{error}");
    assert_eq!(world.state(key), "idle");
}

#[test]
fn a_login_after_such_a_failure_starts_the_agent_again() {
    for (said, restarts) in [("Please sign in to continue", true), (ERROR, false)] {
        let (mut world, key) = turn(&[said], "end_turn");
        let before = world.proc();
        world.act(|engine| engine.logged_in(key)).unwrap();
        assert_eq!(world.proc() != before, restarts, "{said}");
    }
}

#[test]
fn the_last_prompt_can_be_sent_again_with_what_was_attached() {
    let (mut world, key) = World::cursor();
    world
        .act(|engine| engine.retry(key))
        .expect_err("nothing was sent yet");
    let blocks = json!([{ "type": "file", "path": "/project/a.rs", "label": "@a.rs" }]);
    let sent = world.prompt_with(key, "hello", blocks);
    world.act(|engine| engine.retry(key)).unwrap();
    world
        .act(|engine| engine.retry(key))
        .expect_err("a turn runs");
    let again = world.take("session/prompt");
    assert_eq!(again["params"]["prompt"], json!(sent));
    let texts = world.texts(key);
    assert_eq!(
        texts.iter().filter(|text| *text == "user: hello").count(),
        2,
        "{texts:?}"
    );
    assert_eq!(world.status(key).get("error"), None);
}
