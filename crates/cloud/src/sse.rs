//! Lines of a stream of events as `sse-stream` takes them.
//!
//! The standard has a reader skip what it does not know; `sse-stream` gives up there. Left out are: unknown fields, a second `event` or
//! `id` of the same event, `retry` (the waits are ours) and comments. A field without a colon gets one, and bytes that are not UTF-8 are replaced.

use std::convert::Infallible;

use futures_util::{Stream, StreamExt, stream};

/// A line longer than this is not one of the API: what came of it is dropped up to its end.
const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Lines as they arrive, in pieces of any size.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    line: Vec<u8>,
    /// The last byte was a CR: an LF right after it belongs to it.
    after_cr: bool,
    /// Not the first line of the stream.
    begun: bool,
    /// Fields this event has already.
    event: bool,
    id: bool,
}

impl Lines {
    /// The whole lines of these bytes and of what was left before them.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            let after_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => self.end_line(&mut out),
                _ if self.line.len() < MAX_LINE_BYTES => self.line.push(byte),
                _ => {}
            }
        }
        out
    }

    fn end_line(&mut self, out: &mut Vec<u8>) {
        let whole = std::mem::take(&mut self.line);
        let mut line = whole.as_slice();
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        if line.is_empty() {
            (self.event, self.id) = (false, false);
            out.push(b'\n');
            return;
        }
        let colon = line.iter().position(|&byte| byte == b':');
        let (name, rest) = line.split_at(colon.unwrap_or(line.len()));
        let wanted = match name {
            b"data" => true,
            b"event" => !std::mem::replace(&mut self.event, true),
            b"id" => !std::mem::replace(&mut self.id, true),
            _ => false,
        };
        if wanted {
            out.extend_from_slice(name);
            let rest = String::from_utf8_lossy(rest);
            out.extend_from_slice(if rest.is_empty() {
                b":"
            } else {
                rest.as_bytes()
            });
            out.push(b'\n');
        }
    }
}

/// The same bytes without what `sse-stream` cannot read, and an error as the end: both are a cut.
pub(crate) fn lenient<B: AsRef<[u8]>, E>(
    bytes: impl Stream<Item = Result<B, E>> + Unpin,
) -> impl Stream<Item = Result<std::io::Cursor<Vec<u8>>, Infallible>> {
    let state = (bytes, Lines::default());
    stream::unfold(state, async |(mut bytes, mut lines)| {
        loop {
            let piece = bytes.next().await?.ok()?;
            let out = lines.push(piece.as_ref());
            if !out.is_empty() {
                return Some((Ok(std::io::Cursor::new(out)), (bytes, lines)));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &[u8], expected: &str) {
        for size in 1..=text.len() {
            let mut lines = Lines::default();
            let out: Vec<u8> = text
                .chunks(size)
                .flat_map(|piece| lines.push(piece))
                .collect();
            assert_eq!(
                String::from_utf8(out).unwrap(),
                expected,
                "in pieces of {size}: {:?}",
                String::from_utf8_lossy(text)
            );
        }
    }

    #[test]
    fn line_ends_of_all_three_kinds() {
        for end in ["\n", "\r\n", "\r"] {
            let text = format!("event: a{end}data: 1{end}data: 2{end}{end}data: 3{end}{end}");
            check(text.as_bytes(), "event: a\ndata: 1\ndata: 2\n\ndata: 3\n\n");
        }
    }

    #[test]
    fn what_the_standard_skips_is_left_out() {
        check(
            "\u{feff}: hello\nretry: soon\nid: 1\nid: 2\nevent: a\nevent: b\nfoo: bar\nfoo\ndata: ✓\n\n".as_bytes(),
            "id: 1\nevent: a\ndata: ✓\n\n",
        );
        check(b"data\n\n", "data:\n\n");
        check(b"data: \xff\n\n", "data: \u{fffd}\n\n");
        check(b"data: half a li", "");
    }
}
