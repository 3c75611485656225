//! Every request is answered at most once, every waiter comes back exactly once, whatever happens in whatever order.

use std::collections::{BTreeMap, BTreeSet};

use acp::types::{ListSessionsRequest, SessionRequest};
use acp::{CallId, Id, Incoming, Message, Peer, RpcError, Ticket};
use proptest::prelude::*;
use serde_json::{Value, json};

fn read(line: &[u8]) -> Value {
    assert_eq!(line.last(), Some(&b'\n'));
    serde_json::from_slice(line).unwrap()
}

fn request(id: Id) -> Message {
    Message::Request {
        id,
        method: "their/method".to_owned(),
        params: json!({ "a": 1 }),
    }
}

fn response(id: Id) -> Message {
    Message::Response {
        id,
        result: Ok(json!("done")),
    }
}

fn cancel(id: &Value) -> Message {
    Message::Notification {
        method: "$/cancel_request".to_owned(),
        params: json!({ "requestId": id }),
    }
}

fn ticket<W: std::fmt::Debug>(incoming: Incoming<W>) -> Ticket {
    match incoming {
        Incoming::Request { ticket, .. } => ticket,
        other => panic!("no request: {other:?}"),
    }
}

#[test]
fn calls_are_written_and_answered() {
    let mut peer = Peer::new();
    let session_id = "s".into();
    let (first, line) = peer.request("session/close", SessionRequest { session_id }, "close");
    assert_eq!(
        read(&line),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "session/close", "params": { "sessionId": "s" } })
    );
    let (second, line) = peer.request("session/list", ListSessionsRequest::default(), "list");
    assert_eq!(
        read(&line),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "session/list", "params": {} })
    );
    assert_eq!((peer.waiting(), peer.waiter(first)), (2, Some(&"close")));

    // The later one first.
    assert_eq!(
        peer.receive(response(Id::Number(2))),
        Incoming::Response {
            call: second,
            waiter: "list",
            result: Ok(json!("done"))
        }
    );
    assert_eq!(
        peer.receive(response(Id::Number(2))),
        Incoming::Stray { id: Id::Number(2) }
    );
    let failed = Message::Response {
        id: Id::Number(1),
        result: Err(RpcError::internal("no")),
    };
    assert_eq!(
        peer.receive(failed),
        Incoming::Response {
            call: first,
            waiter: "close",
            result: Err(RpcError::internal("no"))
        }
    );
    assert_eq!(peer.waiting(), 0);
}

#[test]
fn an_id_that_came_back_as_text_or_fraction_is_still_ours() {
    for id in [json!("1"), json!(1.0), json!(1)] {
        let mut peer = Peer::new();
        let (call, _) = peer.request("m", Value::Null, ());
        let message = Message::from_value(json!({ "id": id, "result": null })).unwrap();
        let expected = Incoming::Response {
            call,
            waiter: (),
            result: Ok(Value::Null),
        };
        assert_eq!(peer.receive(message), expected, "{id}");
    }
    let mut peer = Peer::new();
    peer.request("m", Value::Null, ());
    for id in [json!(null), json!("one"), json!(1.5), json!(2)] {
        let message = Message::from_value(json!({ "id": id, "result": null })).unwrap();
        assert!(
            matches!(peer.receive(message), Incoming::Stray { .. }),
            "{id}"
        );
    }
    assert_eq!(peer.waiting(), 1);
}

#[test]
fn both_sides_may_use_the_same_ids_at_once() {
    let mut peer = Peer::new();
    let (call, _) = peer.request("ours", Value::Null, ());
    let first = ticket(peer.receive(request(Id::Number(1))));
    let second = ticket(peer.receive(request(Id::Number(1))));
    assert_ne!(first, second);

    let line = peer
        .answer(second, Ok(json!({ "which": "second" })))
        .unwrap();
    assert_eq!(
        read(&line),
        json!({ "jsonrpc": "2.0", "id": 1, "result": { "which": "second" } })
    );
    assert!(
        matches!(peer.receive(response(Id::Number(1))), Incoming::Response { call: answered, .. } if answered == call)
    );
    assert!(peer.is_open(first) && !peer.is_open(second));
    let line = peer
        .answer(first, Err(RpcError::invalid_params("first")))
        .unwrap();
    assert_eq!(
        read(&line)["error"],
        json!({ "code": -32602, "message": "first" })
    );

    assert_eq!(peer.answer(first, Ok(Value::Null)), None);
    assert_eq!(peer.answer_ok(second, &()), None);
    assert_eq!(peer.answer_err(second, &RpcError::cancelled()), None);
}

#[test]
fn ids_go_back_as_they_came() {
    for id in [
        json!(null),
        json!("uuid"),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(u64::MAX),
    ] {
        let mut peer: Peer<()> = Peer::new();
        let message = Message::from_value(json!({ "id": id, "method": "m" })).unwrap();
        let ticket = ticket(peer.receive(message));
        let line = peer.answer_ok(ticket, &json!({})).unwrap();
        assert_eq!(
            read(&line),
            json!({ "jsonrpc": "2.0", "id": id, "result": {} })
        );
    }
}

#[test]
fn cancellation_goes_both_ways() {
    let mut peer = Peer::new();
    let (call, _) = peer.request("m", Value::Null, ());
    let line = peer.cancel_call(call).unwrap();
    assert_eq!(
        read(&line),
        json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": 1 } })
    );
    // It is still waited for.
    assert!(matches!(
        peer.receive(response(Id::Number(1))),
        Incoming::Response { .. }
    ));
    assert_eq!(peer.cancel_call(call), None);

    let older = ticket(peer.receive(request(Id::String("a".to_owned()))));
    let newer = ticket(peer.receive(request(Id::String("a".to_owned()))));
    let null = ticket(peer.receive(request(Id::Null)));
    assert_eq!(
        peer.receive(cancel(&json!("a"))),
        Incoming::Cancelled { ticket: newer }
    );
    assert_eq!(
        peer.receive(cancel(&json!(null))),
        Incoming::Cancelled { ticket: null }
    );
    assert!(peer.answer_err(newer, &RpcError::cancelled()).is_some());
    assert_eq!(
        peer.receive(cancel(&json!("a"))),
        Incoming::Cancelled { ticket: older }
    );
    assert_eq!(
        peer.receive(cancel(&json!("b"))),
        Incoming::Stray {
            id: Id::String("b".to_owned())
        }
    );
    // Not one that can be parsed: other code may know what it means.
    assert!(matches!(
        peer.receive(cancel(&json!({}))),
        Incoming::Notification { .. }
    ));
}

#[test]
fn the_end_of_the_connection_hands_everything_back_in_order() {
    let mut peer = Peer::new();
    let calls: Vec<CallId> = (0..20)
        .map(|n| peer.request("m", Value::Null, n).0)
        .collect();
    let tickets: Vec<Ticket> = (0..20)
        .map(|_| ticket(peer.receive(request(Id::Null))))
        .collect();
    assert_eq!(peer.forget(calls[3]), Some(3));
    assert_eq!(peer.forget(calls[3]), None);
    assert!(peer.answer(tickets[4], Ok(Value::Null)).is_some());

    let closed = peer.close();
    let waiters: Vec<i32> = closed.waiters.iter().map(|(_, waiter)| *waiter).collect();
    assert_eq!(waiters, (0..20).filter(|n| *n != 3).collect::<Vec<_>>());
    let unanswered = tickets
        .iter()
        .copied()
        .filter(|ticket| *ticket != tickets[4]);
    assert_eq!(closed.unanswered, unanswered.collect::<Vec<_>>());

    assert_eq!(peer.answer(tickets[0], Ok(Value::Null)), None);
    assert_eq!(peer.cancel_call(calls[0]), None);
    // What comes too late is owed nothing; who asks too late gets its waiter back.
    let late = ticket(peer.receive(request(Id::Number(9))));
    assert_eq!(peer.answer(late, Ok(Value::Null)), None);
    let (call, _) = peer.request("m", Value::Null, 99);
    let closed = peer.close();
    assert_eq!(
        (closed.waiters, closed.unanswered),
        (vec![(call, 99)], vec![])
    );
}

/// A result that cannot be written is an error to the asker, not silence.
#[test]
fn a_result_that_is_no_json_is_answered_with_an_error() {
    let mut peer: Peer<()> = Peer::new();
    let ticket = ticket(peer.receive(request(Id::Number(1))));
    let no_json = BTreeMap::from([((1, 2), 3)]);
    let line = peer.answer_ok(ticket, &no_json).unwrap();
    assert_eq!(read(&line)["error"]["code"], json!(-32603));
    assert_eq!(peer.answer(ticket, Ok(Value::Null)), None);
}

#[derive(Debug, Clone)]
enum Step {
    Call,
    TheirRequest(u8),
    Answer(usize),
    Response(i64),
    CancelCall(usize),
    TheirCancel(u8),
    Forget(usize),
    Close,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Call),
        6 => (0_u8..4).prop_map(Step::TheirRequest),
        6 => (0_usize..20).prop_map(Step::Answer),
        6 => (-1_i64..20).prop_map(Step::Response),
        2 => (0_usize..20).prop_map(Step::CancelCall),
        2 => (0_u8..4).prop_map(Step::TheirCancel),
        2 => (0_usize..20).prop_map(Step::Forget),
        1 => Just(Step::Close),
    ]
}

/// Few ids, of every type, and those of our own calls among them.
fn wire_id(n: u8) -> Id {
    match n {
        0 => Id::Null,
        1 => Id::String("1".to_owned()),
        n => Id::Number(i64::from(n)),
    }
}

proptest! {
    #[test]
    fn answers_and_waiters_are_conserved(steps in prop::collection::vec(step(), 0..80)) {
        let mut peer: Peer<usize> = Peer::new();
        let mut calls: Vec<CallId> = Vec::new();
        let mut resolved = BTreeSet::new();
        let mut tickets: Vec<(Ticket, Id)> = Vec::new();
        let mut settled = BTreeSet::new();

        for step in steps.into_iter().chain([Step::Close]) {
            match step {
                Step::Call => {
                    let (call, line) = peer.request("m", Value::Null, calls.len());
                    prop_assert_eq!(read(&line)["id"].as_i64(), Some(call.number()));
                    prop_assert!(!calls.contains(&call));
                    calls.push(call);
                }
                Step::TheirRequest(n) => {
                    let ticket = ticket(peer.receive(request(wire_id(n))));
                    prop_assert!(tickets.iter().all(|(other, _)| *other != ticket));
                    tickets.push((ticket, wire_id(n)));
                    if !peer.is_open(ticket) {
                        settled.insert(ticket);
                    }
                }
                Step::Answer(n) => {
                    let Some((ticket, id)) = tickets.get(n) else { continue };
                    let line = peer.answer(*ticket, Ok(Value::Null));
                    prop_assert_eq!(line.is_some(), settled.insert(*ticket));
                    if let Some(line) = line {
                        prop_assert_eq!(&read(&line)["id"], &serde_json::to_value(id).unwrap());
                    }
                }
                Step::Response(n) => match peer.receive(response(Id::Number(n))) {
                    Incoming::Response { call, waiter, .. } => {
                        prop_assert_eq!((call, call.number()), (calls[waiter], n));
                        prop_assert!(resolved.insert(waiter), "{} came back twice", waiter);
                    }
                    Incoming::Stray { id } => {
                        prop_assert_eq!(id, Id::Number(n));
                        let waits = calls.iter().position(|call| call.number() == n);
                        prop_assert!(waits.is_none_or(|call| resolved.contains(&call)));
                    }
                    other => panic!("a response became {other:?}"),
                },
                Step::CancelCall(n) => {
                    let Some(call) = calls.get(n) else { continue };
                    if peer.cancel_call(*call).is_some() {
                        prop_assert!(!resolved.contains(&n));
                    }
                }
                Step::TheirCancel(n) => {
                    let id = serde_json::to_value(wire_id(n)).unwrap();
                    match peer.receive(cancel(&id)) {
                        Incoming::Cancelled { ticket } => prop_assert!(!settled.contains(&ticket)),
                        Incoming::Stray { .. } => {
                            let mut open = tickets.iter().filter(|(ticket, _)| !settled.contains(ticket));
                            prop_assert!(open.all(|(_, id)| *id != wire_id(n)));
                        }
                        other => panic!("a cancellation became {other:?}"),
                    }
                }
                Step::Forget(n) => {
                    let Some(call) = calls.get(n) else { continue };
                    prop_assert_eq!(peer.forget(*call).is_some(), resolved.insert(n));
                }
                Step::Close => {
                    let closed = peer.close();
                    for (call, waiter) in closed.waiters {
                        prop_assert_eq!(call, calls[waiter]);
                        prop_assert!(resolved.insert(waiter), "{} came back twice", waiter);
                    }
                    for ticket in closed.unanswered {
                        prop_assert!(settled.insert(ticket), "{:?} was answered", ticket);
                    }
                }
            }
        }
        prop_assert_eq!(resolved.len(), calls.len());
        prop_assert_eq!(settled.len(), tickets.len());
        prop_assert_eq!(peer.waiting(), 0);
    }
}
