//! A conversation of two peers over line buffers: every layer of the crate at once.

use acp::types::{
    ContentBlock, PromptRequest, PromptResponse, SessionNotification, SessionUpdate, StopReason,
};
use acp::{Frame, FromValue, Incoming, LineBuffer, Message, Peer, methods};
use serde_json::json;

/// Cuts the bytes into single bytes, to be unkind.
fn messages(bytes: &[u8]) -> Vec<Message> {
    let mut buffer = LineBuffer::default();
    let mut messages = Vec::new();
    for byte in bytes {
        buffer.push(&[*byte]);
        while let Some(frame) = buffer.next_frame() {
            match frame {
                Frame::Line(line) => messages.push(Message::parse(line).unwrap()),
                Frame::TooLong { bytes } => panic!("too long: {bytes}"),
            }
        }
    }
    messages
}

#[test]
fn a_prompt_is_answered_while_its_text_streams() {
    let mut client: Peer<&str> = Peer::new();
    let mut agent: Peer<()> = Peer::new();

    let prompt = PromptRequest {
        session_id: "s".into(),
        prompt: vec![ContentBlock::text("hello\nthere")],
    };
    let (call, line) = client.request(methods::SESSION_PROMPT, &prompt, "the prompt");

    let Incoming::Request {
        ticket,
        method,
        params,
    } = agent.receive(messages(&line).remove(0))
    else {
        panic!("no request");
    };
    assert_eq!(method, "session/prompt");
    assert_eq!(
        params,
        json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "hello\nthere" }] })
    );

    let mut stream = agent.notify(
        methods::SESSION_UPDATE,
        json!({ "sessionId": "s", "update": { "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "Grüß Gott" } } }),
    );
    stream.extend(
        agent
            .answer(ticket, Ok(json!({ "stopReason": "end_turn" })))
            .unwrap(),
    );
    assert_eq!(agent.answer(ticket, Ok(json!({}))), None);

    let mut incoming = messages(&stream)
        .into_iter()
        .map(|message| client.receive(message));
    let Some(Incoming::Notification { params, .. }) = incoming.next() else {
        panic!("no notification");
    };
    let news = SessionNotification::from_value(params).unwrap();
    let SessionUpdate::AgentMessageChunk(chunk) = news.update else {
        panic!("no chunk");
    };
    assert_eq!(chunk.content.as_text(), Some("Grüß Gott"));

    let Some(Incoming::Response {
        call: answered,
        waiter,
        result,
    }) = incoming.next()
    else {
        panic!("no response");
    };
    assert_eq!((answered, waiter), (call, "the prompt"));
    let response = PromptResponse::from_value(result.unwrap()).unwrap();
    assert_eq!(response.stop_reason, StopReason::EndTurn);
}
