//! Lines come out whole and the same, however the bytes were cut.

use acp::{Frame, LineBuffer};
use proptest::prelude::*;

/// A frame that outlives its buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Owned {
    Line(Vec<u8>),
    TooLong(usize),
}

impl From<Frame<'_>> for Owned {
    fn from(frame: Frame<'_>) -> Self {
        match frame {
            Frame::Line(line) => Self::Line(line.to_vec()),
            Frame::TooLong { bytes } => Self::TooLong(bytes),
        }
    }
}

fn line(text: &str) -> Owned {
    Owned::Line(text.as_bytes().to_vec())
}

/// Pushes piece after piece, taking frames after each, as a reader does.
fn frames<'a>(cap: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Owned> {
    let mut buffer = LineBuffer::new(cap);
    let mut frames = Vec::new();
    for piece in pieces {
        buffer.push(piece);
        while let Some(frame) = buffer.next_frame() {
            frames.push(frame.into());
        }
    }
    while let Some(frame) = buffer.finish() {
        frames.push(frame.into());
    }
    frames
}

/// What the frames of a stream are, by definition.
fn expected(cap: usize, bytes: &[u8]) -> Vec<Owned> {
    let lines = bytes.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| {
            if line.len() > cap {
                return Some(Owned::TooLong(line.len()));
            }
            let blank = line.iter().all(u8::is_ascii_whitespace);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            (!blank).then(|| Owned::Line(line.to_vec()))
        })
        .collect()
}

#[test]
fn lines_by_example() {
    let cases: [(&str, &[u8], Vec<Owned>); 9] = [
        ("two lines", b"a\nb\n", vec![line("a"), line("b")]),
        ("no newline at the end", b"a\nb", vec![line("a"), line("b")]),
        ("CRLF", b"a\r\nb\r\n", vec![line("a"), line("b")]),
        ("a CR inside", b"a\rb\n", vec![line("a\rb")]),
        ("blank lines", b"\n\r\n \t\na\n\n", vec![line("a")]),
        ("nothing", b"", vec![]),
        (
            "as long as the cap",
            b"12345678\nb\n",
            vec![line("12345678"), line("b")],
        ),
        (
            "one byte longer",
            b"123456789\nb\n",
            vec![Owned::TooLong(9), line("b")],
        ),
        (
            "too long at the end",
            b"a\n1234567890",
            vec![line("a"), Owned::TooLong(10)],
        ),
    ];
    for (what, bytes, expected) in cases {
        assert_eq!(frames(8, [bytes]), expected, "{what}, in one piece");
        assert_eq!(frames(8, bytes.chunks(1)), expected, "{what}, byte by byte");
    }
}

#[test]
fn a_character_cut_in_two_is_whole_again() {
    let bytes = "{\"text\":\"Grüße 👋\"}\n".as_bytes();
    for cut in 0..bytes.len() {
        let (left, right) = bytes.split_at(cut);
        assert_eq!(
            frames(100, [left, right]),
            [line("{\"text\":\"Grüße 👋\"}")]
        );
    }
}

/// Looking at each byte again for each piece would take hours here, not milliseconds.
#[test]
fn a_long_line_in_small_pieces_takes_linear_time_and_its_memory_is_given_back() {
    const LONG: usize = 32 * 1024 * 1024;
    let mut buffer = LineBuffer::default();
    let piece = [b'x'; 16];
    for _ in 0..LONG / piece.len() {
        buffer.push(&piece);
        assert_eq!(buffer.next_frame(), None);
    }
    buffer.push(b"\nshort\nbegun");
    assert!(matches!(buffer.next_frame(), Some(Frame::Line(line)) if line.len() == LONG));
    assert_eq!(buffer.next_frame(), Some(Frame::Line(b"short")));
    assert_eq!(buffer.next_frame(), None);
    assert!(
        buffer.capacity() <= 1024 * 1024,
        "{} bytes kept",
        buffer.capacity()
    );
    buffer.push(b" and ended\n");
    assert_eq!(buffer.next_frame(), Some(Frame::Line(b"begun and ended")));
}

#[test]
fn a_line_beyond_the_cap_is_not_kept_in_memory() {
    let mut buffer = LineBuffer::new(1000);
    for _ in 0..10_000 {
        buffer.push(&[b'x'; 500]);
        assert_eq!(buffer.next_frame(), None);
        assert!(buffer.capacity() <= 4000);
    }
    assert_eq!(buffer.skipping(), Some(5_000_000));
    buffer.push(b"\nnext\n");
    assert_eq!(
        buffer.next_frame(),
        Some(Frame::TooLong { bytes: 5_000_000 })
    );
    assert_eq!(buffer.next_frame(), Some(Frame::Line(b"next")));
    assert_eq!(buffer.next_frame(), None);
    assert_eq!(buffer.skipping(), None);
}

/// Many lines in one piece: what was handed out is not moved again for each.
#[test]
fn many_lines_in_one_piece_take_linear_time() {
    let many = b"line\n".repeat(1_000_000);
    assert_eq!(frames(100, [many.as_slice()]).len(), 1_000_000);
}

/// Bytes in which ends of lines are frequent.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        3 => Just(b'\n'),
        2 => Just(b'\r'),
        1 => Just(b' '),
        6 => any::<u8>(),
    ];
    prop::collection::vec(byte, 0..300)
}

proptest! {
    #[test]
    fn any_cut_of_any_bytes_gives_the_same_frames(
        bytes in bytes(),
        cuts in prop::collection::vec(1_usize..20, 0..60),
        cap in 0_usize..40,
    ) {
        let mut rest = bytes.as_slice();
        let mut pieces = Vec::new();
        for cut in cuts {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces.push(rest);
        prop_assert_eq!(frames(cap, pieces), expected(cap, &bytes));
    }

    /// Frames need not be taken after each push.
    #[test]
    fn frames_may_be_taken_late(bytes in bytes(), cap in 0_usize..40, cut in 0_usize..300) {
        let (left, right) = bytes.split_at(cut.min(bytes.len()));
        let mut buffer = LineBuffer::new(cap);
        buffer.push(left);
        buffer.push(right);
        let mut frames = Vec::new();
        while let Some(frame) = buffer.finish() {
            frames.push(Owned::from(frame));
        }
        prop_assert_eq!(frames, expected(cap, &bytes));
    }
}
