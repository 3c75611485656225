//! What is handed out to be stored: everything once, in order, with the end of each turn; and what was stored, brought back.

use std::collections::HashSet;

use engine::ids::Key;
use engine::sessions::memory::{Noted, Piece, Recalled};
use engine::sessions::session::Wanted;
use serde_json::{Value, json};

use crate::kit::{Profile, World, text_chunk};

/// A session that is remembered, and of which all there is was handed out.
fn remembered() -> (World, Key) {
    let (mut world, key) = World::plain();
    world.act(|engine| engine.remember_sessions(true));
    (world, key)
}

fn take(world: &mut World, busy: &HashSet<(Key, usize)>) -> Vec<Noted> {
    let mut all = Vec::new();
    loop {
        let (noted, more) = world.act(|engine| engine.take_memory(busy));
        all.extend(noted);
        if !more {
            return all;
        }
    }
}

/// What is handed out, in words: `3 whole`, `3 + text`, `sync`, `closed`.
fn news(world: &mut World, busy: &[(Key, usize)]) -> Vec<String> {
    let busy = busy.iter().copied().collect();
    let mut all = Vec::new();
    for noted in take(world, &busy) {
        for (at, piece) in noted.entries {
            all.push(match piece {
                Piece::Whole(entry) => format!("{at} {}: {}", entry.kind(), entry.text),
                Piece::Text(text) => format!("{at} + {text}"),
            });
        }
        all.extend(noted.sync.then(|| "sync".to_owned()));
        all.extend(noted.closed.then(|| "closed".to_owned()));
    }
    all
}

fn call(status: &str, output: &str) -> Value {
    json!({
        "sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "run", "kind": "execute", "status": status,
        "content": [{ "type": "content", "content": { "type": "text", "text": output } }],
    })
}

#[test]
fn what_is_said_is_handed_out_once_and_each_turn_ends_with_a_sync() {
    let (mut world, key) = remembered();
    assert!(news(&mut world, &[]).is_empty(), "nothing was said yet");
    let prompt = world.prompt(key, "hi");
    world.say("s-1", "Yes");
    assert_eq!(news(&mut world, &[]), ["0 user: hi", "1 agent: Yes"]);
    world.say("s-1", ", of");
    world.say("s-1", " course");
    assert_eq!(news(&mut world, &[]), ["1 + , of course"]);
    assert!(news(&mut world, &[]).is_empty());
    world.end_turn(&prompt, "end_turn");
    let end = news(&mut world, &[]);
    assert_eq!(end.last().map(String::as_str), Some("sync"), "{end:?}");
    // One that begins and ends between two looks has an end too, and the same is not handed out twice.
    let prompt = world.prompt(key, "again");
    world.say("s-1", "No");
    world.end_turn(&prompt, "end_turn");
    let end = news(&mut world, &[]);
    assert!(end.contains(&"sync".to_owned()), "{end:?}");
    assert!(news(&mut world, &[]).is_empty());
    world.act(|engine| engine.remember_again(key));
    let all = news(&mut world, &[]);
    assert!(all.contains(&"0 user: hi".to_owned()), "{all:?}");
    assert!(all.contains(&"sync".to_owned()), "{all:?}");
    world.act(|engine| engine.close(key)).unwrap();
    assert_eq!(news(&mut world, &[]), ["closed"]);
}

#[test]
fn a_call_that_is_busy_waits_until_it_is_over_and_nothing_else_does() {
    let (mut world, key) = remembered();
    let prompt = world.prompt(key, "run it");
    world.update("s-1", call("in_progress", "one"));
    assert_eq!(news(&mut world, &[]), ["0 user: run it", "1 tool: run"]);
    let busy = [(key, 1)];
    world.update("s-1", call("in_progress", "two"));
    world.say("s-1", "Wait");
    assert_eq!(news(&mut world, &busy), ["2 agent: Wait"]);
    assert!(news(&mut world, &busy).is_empty());
    assert_eq!(
        news(&mut world, &[]),
        ["1 tool: run"],
        "it is left for later"
    );
    world.update("s-1", call("in_progress", "three"));
    world.update("s-1", call("completed", "four"));
    assert_eq!(news(&mut world, &busy), ["1 tool: run"], "it is over");
    world.update("s-1", call("in_progress", "five"));
    world.end_turn(&prompt, "end_turn");
    let end = news(&mut world, &busy);
    assert!(end.contains(&"1 tool: run".to_owned()), "{end:?}");
}

#[test]
fn a_replay_after_the_answer_is_compared_as_well() {
    let mut world = World::new(Some(Profile::cursor()));
    world.act(|engine| engine.remember_sessions(true));
    let key = world.open(Wanted {
        load: Some("old".to_owned()),
        ..Wanted::default()
    });
    let (mut first, of) = remembered();
    let prompt = first.prompt(of, "fix it");
    first.say("s-1", "Fixed.");
    first.end_turn(&prompt, "end_turn");
    let mut entries = Vec::new();
    for noted in take(&mut first, &HashSet::new()) {
        for (_, piece) in noted.entries {
            if let Piece::Whole(entry) = piece {
                entries.push(Some(*entry));
            }
        }
    }
    let stored = Recalled {
        goes_on: true,
        ..Recalled::of(entries)
    };
    world.act(|engine| engine.on_recalled(key, Some(stored)));
    let before = world.texts(key);
    world.advance(5_000);
    assert_eq!(world.state(key), "idle");
    for (kind, text) in [
        ("user_message_chunk", "fix it"),
        ("agent_message_chunk", "Fixed."),
        ("user_message_chunk", "and on"),
        ("agent_message_chunk", "Yes."),
    ] {
        world.update("old", text_chunk(kind, text));
        world.advance(2_000);
    }
    let after = world.texts(key);
    assert_eq!(after[..before.len()], before);
    assert_eq!(after[before.len()..], ["user: and on", "agent: Yes."]);
}
