//! A write that collides with unsaved text: a decision, and one answer to the agent whatever ends it.

use serde_json::{Value, json};

use super::kit::World;
use engine::ids::{DecisionId, Key};

fn write() -> Value {
    json!({ "sessionId": "s-1", "path": "/project/a.txt", "content": "new\n" })
}

/// A write that waits for the user: the world, the session, the prompt, the request, the editor's number for it.
fn asked() -> (World, Key, Value, u64, u64) {
    let (mut world, key) = World::plain();
    let prompt = world.prompt(key, "write");
    let id = world.ask("fs/write_text_file", write());
    let (number, _) = world.editor_request();
    world.editor_replies(number, json!({ "ok": false, "ask": true }));
    (world, key, prompt, id, number)
}

fn decision_id(world: &World) -> u64 {
    world.decision()["id"].as_u64().unwrap()
}

#[test]
fn it_is_listed_and_the_agent_waits() {
    let (mut world, key, _, id, number) = asked();
    let decision = world.decision();
    assert_eq!(decision["kind"], "conflict");
    assert_eq!(decision["path"], "/project/a.txt");
    assert_eq!(decision["session_id"], "s-1");
    assert_eq!(decision["request"], number);
    let options = decision["options"].as_array().unwrap();
    let ids: Vec<&Value> = options.iter().map(|option| &option["id"]).collect();
    assert_eq!(ids, ["mine", "theirs", "both"]);
    assert_eq!(world.state(key), "waiting");
    assert_eq!(world.status(key)["pending"], 1);
    assert_eq!(world.answered(id), None);
    // Asked twice, it is one question.
    world.editor_replies(number, json!({ "ok": false, "ask": true }));
    assert_eq!(world.decision(), decision);
}

#[test]
fn what_the_user_chose_the_editor_does_and_answers() {
    let done = json!({ "ok": true });
    let refused = json!({ "ok": false, "error": "kept" });
    for (answer, reply) in [
        (json!({ "option": "mine" }), &refused),
        (json!({ "reject": true }), &refused),
        (json!({ "cancel": true }), &refused),
        (json!({ "option": "both" }), &refused),
        (json!({ "option": "theirs" }), &done),
        (json!({ "accept": true }), &done),
    ] {
        let (mut world, key, prompt, id, number) = asked();
        let decision = decision_id(&world);
        assert!(world.decide(decision, json!({ "option": "no" })).is_err());
        assert!(world.decide(decision, json!({})).is_err());
        world.decide(decision, answer.clone()).unwrap();
        assert!(world.mirror.pending.is_empty());
        assert!(world.mirror.withdrawn.is_empty());
        assert_eq!(world.answered(id), None, "{answer}: the editor answers");
        assert_eq!(world.state(key), "running");
        world.editor_replies(number, reply.clone());
        if reply["ok"] == true {
            assert_eq!(world.result_of(id), json!({}));
        } else {
            assert_eq!(world.error_of(id)["message"], "kept");
        }
        assert!(world.decide(decision, answer).is_err(), "it is decided");
        world.end_turn(&prompt, "end_turn");
    }
}

#[test]
fn whatever_ends_it_answers_once() {
    type End = fn(&mut World, Key, &Value);
    let ends: [(&str, End); 4] = [
        ("cancel", |world, key, _| {
            world.act(|engine| engine.cancel(key)).unwrap();
        }),
        ("close", |world, key, _| {
            world.act(|engine| engine.close(key)).unwrap();
        }),
        ("end of the turn", |world, _, prompt| {
            world.end_turn(prompt, "end_turn");
        }),
        ("shutdown", |world, _, _| {
            world.act(engine::Engine::shutdown);
        }),
    ];
    for (name, end) in ends {
        let (mut world, key, prompt, id, number) = asked();
        let decision = decision_id(&world);
        end(&mut world, key, &prompt);
        let error = world.error_of(id);
        assert_eq!(error["code"], -32800, "{name}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("nothing was written"), "{name}: {message}");
        assert_eq!(world.mirror.withdrawn, [number], "{name}");
        assert!(world.mirror.pending.is_empty(), "{name}");
        // Too late; the kit would see a second answer.
        assert!(world.decide(decision, json!({ "accept": true })).is_err());
        world.editor_replies(number, json!({ "ok": true }));
        world.editor_replies(number, json!({ "ok": false, "ask": true }));
        assert!(world.mirror.pending.is_empty(), "{name}");
    }
}

#[test]
fn it_goes_with_its_agent_and_with_the_unsaved_text() {
    let (mut world, _, _, _, number) = asked();
    let proc = world.proc();
    world.exit(proc, 1, &[]);
    assert!(world.mirror.pending.is_empty());
    assert_eq!(world.mirror.withdrawn, [number]);

    // The user threw the unsaved text away: it is written as any other.
    let (mut world, _, _, id, number) = asked();
    world.editor_replies(number, json!({ "ok": true }));
    assert_eq!(world.result_of(id), json!({}));
    assert!(world.mirror.pending.is_empty());
}

#[test]
fn a_request_that_is_taken_back_is_no_decision_any_more() {
    let (mut world, _, _, id, number) = asked();
    world.notify("$/cancel_request", json!({ "requestId": id }));
    assert_eq!(world.error_of(id)["code"], -32800);
    assert!(world.mirror.pending.is_empty());
    assert_eq!(world.mirror.withdrawn, [number]);
}

#[test]
fn no_rule_answers_it() {
    let (mut world, _, _, id, _) = asked();
    let decision = DecisionId(decision_id(&world));
    let accept = serde_json::from_value(json!({ "accept": true })).unwrap();
    let by_rule = world.act(|engine| engine.answer(decision, &accept, Some("rule 1".to_owned())));
    assert!(by_rule.is_err());
    assert_eq!(world.answered(id), None);
    assert_eq!(world.mirror.pending.len(), 1);
}

#[test]
fn a_write_of_a_turn_that_is_being_stopped_is_not_asked_about() {
    let (mut world, key) = World::plain();
    let prompt = world.prompt(key, "write");
    world.act(|engine| engine.cancel(key)).unwrap();
    let id = world.ask("fs/write_text_file", write());
    let (number, _) = world.editor_request();
    world.editor_replies(number, json!({ "ok": false, "ask": true }));
    assert_eq!(world.error_of(id)["code"], -32800);
    assert!(world.mirror.pending.is_empty());
    world.end_turn(&prompt, "cancelled");
}

#[test]
fn what_is_on_disk_is_asked_about_and_nobody_waits() {
    let (mut world, key) = World::plain();
    let prompt = world.prompt(key, "edit");
    let id = world
        .act(|engine| engine.conflict(key, "/project/a.txt"))
        .unwrap();
    assert_eq!(world.decision()["kind"], "conflict");
    assert_eq!(world.status(key)["pending"], 1);
    assert_eq!(world.state(key), "running", "the agent goes on");
    world.end_turn(&prompt, "end_turn");
    assert_eq!(decision_id(&world), id.0, "it outlives the turn");
    assert_eq!(world.state(key), "idle");
    world.decide(id.0, json!({ "option": "mine" })).unwrap();
    assert_eq!(world.status(key)["pending"], 0);

    let id = world
        .act(|engine| engine.conflict(key, "/project/a.txt"))
        .unwrap();
    world.act(|engine| engine.conflict_over(id));
    assert!(world.mirror.pending.is_empty());

    world
        .act(|engine| engine.conflict(key, "/project/a.txt"))
        .unwrap();
    world.act(|engine| engine.close(key)).unwrap();
    assert!(world.mirror.pending.is_empty(), "it ends with its session");
    assert!(
        world
            .act(|engine| engine.conflict(key, "/project/a.txt"))
            .is_err()
    );
}
