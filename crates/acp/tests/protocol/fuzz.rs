//! Fuzz targets of the protocol: recorded lines, damaged and cut anywhere.

use acp::types::SessionNotification;
use acp::{Frame, FromValue, LineBuffer, Message};
use proptest::prelude::*;
use serde_json::Value;

const RECORDINGS: &[&str] = &[
    include_str!("../wire/claude-agent-acp.jsonl"),
    include_str!("../wire/gemini-cli.jsonl"),
    include_str!("../wire/goose.jsonl"),
];

/// What real agents wrote, a line each.
fn recorded() -> Vec<Vec<u8>> {
    let records = RECORDINGS.iter().flat_map(|recording| recording.lines());
    let records = records.map(|line| serde_json::from_str::<Value>(line).unwrap());
    records
        .filter(|record| record["dir"] == "<-")
        .map(|record| record["msg"].to_string().into_bytes())
        .collect()
}

/// The lines that come out, in any order of pushes and takes.
fn lines(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut buffer = LineBuffer::new(4_000);
    let mut lines = Vec::new();
    let mut keep = |frame: Frame<'_>| match frame {
        Frame::Line(line) => lines.push(line.to_vec()),
        Frame::TooLong { bytes } => lines.push(format!("too long: {bytes}").into_bytes()),
    };
    for piece in pieces {
        buffer.push(piece);
        while let Some(frame) = buffer.next_frame() {
            keep(frame);
        }
    }
    while let Some(frame) = buffer.finish() {
        keep(frame);
    }
    lines
}

#[test]
fn fuzz_framing() {
    let stream = prop::collection::vec(fuzz::damaged(recorded()), 1..5);
    let cuts = prop::collection::vec(any::<usize>(), 0..20);
    fuzz::run("framing", &(stream, cuts), |(stream, cuts)| {
        let bytes = stream.join(&b'\n');
        prop_assert_eq!(lines(&fuzz::pieces(&bytes, &cuts)), lines(&[&bytes]));
        Ok(())
    });
}

#[test]
fn fuzz_messages() {
    fuzz::run("messages", &fuzz::damaged(recorded()), |line| {
        let messages = Message::parse_all(&line);
        prop_assert!(!messages.is_empty());
        for message in messages.into_iter().flatten() {
            // What was read can be written, and reads the same again.
            let again = Message::parse(&message.to_line());
            prop_assert_eq!(again.as_ref(), Ok(&message));
            if let Message::Notification { params, .. } = message {
                let _ = SessionNotification::from_value(params);
            }
        }
        Ok(())
    });
}
