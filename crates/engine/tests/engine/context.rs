//! The context used: Cursor's CLI never says it, so its store is looked at; what an agent says itself counts more.

use engine::effect::Effect;
use engine::sessions::context::Context;
use serde_json::json;

use crate::kit::World;

/// The sessions whose stores the engine wants to have looked at, and forgets them.
fn looks(world: &mut World) -> Vec<String> {
    let mut found = Vec::new();
    world.effects.retain(|effect| match effect {
        Effect::ReadContext { session_id, .. } => {
            found.push(session_id.clone());
            false
        }
        _ => true,
    });
    found
}

#[test]
fn cursors_store_is_looked_at_after_each_turn_and_again_a_moment_later() {
    let (mut world, key) = World::cursor();
    assert_eq!(looks(&mut world).len(), 0, "a new session has none");
    let id = world.status(key)["session_id"].as_str().unwrap().to_owned();
    let prompt = world.prompt(key, "hello");
    world.end_turn(&prompt, "end_turn");
    let seen = looks(&mut world);
    assert_eq!(seen, [id.as_str()]);
    let told = |world: &mut World, id: &str, used, size| {
        let id = id.to_owned();
        world.act(|engine| engine.on_context(key, &id, Context { used, size }));
    };
    told(&mut world, &id, 50, 200);
    assert_eq!(
        world.status(key)["usage"],
        json!({ "used": 50, "size": 200 })
    );
    world.advance(2_000);
    assert_eq!(looks(&mut world).len(), 1);
    told(&mut world, &id, 60, 0);
    assert_eq!(world.status(key)["usage"], json!({ "used": 60 }));
    // Of another session, or too late.
    told(&mut world, "other", 1, 2);
    assert_eq!(world.status(key)["usage"], json!({ "used": 60 }));
    // The agent says it itself.
    world.update(
        &id,
        json!({ "sessionUpdate": "usage_update", "used": 7, "size": 9 }),
    );
    told(&mut world, &id, 50, 200);
    assert_eq!(world.status(key)["usage"], json!({ "used": 7, "size": 9 }));
    let prompt = world.prompt(key, "again");
    world.end_turn(&prompt, "end_turn");
    world.advance(2_000);
    assert_eq!(looks(&mut world).len(), 0);
}

#[test]
fn no_store_of_other_agents_is_looked_at() {
    let (mut world, key) = World::plain();
    let prompt = world.prompt(key, "hello");
    world.end_turn(&prompt, "end_turn");
    world.advance(2_000);
    assert_eq!(looks(&mut world).len(), 0);
}
