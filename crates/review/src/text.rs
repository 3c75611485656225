//! A text as lines with their ends, byte for byte.

use std::ops::Range;
use std::sync::Arc;

/// A line with its end; the last one of a text may have none.
pub type Line = Arc<[u8]>;

/// Lines that are a text when put together. Clones share their lines.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Text {
    lines: Vec<Line>,
}

impl Text {
    /// Cuts a text after each line feed. A carriage return stays at the end of its line.
    pub fn new(bytes: impl AsRef<[u8]>) -> Self {
        let lines = bytes.as_ref().split_inclusive(|byte| *byte == b'\n');
        Self {
            lines: lines.map(Line::from).collect(),
        }
    }

    /// The lines.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// How many lines there are.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there is not a byte in it.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// All of it.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.lines.concat()
    }

    /// Some of its lines; what lies beyond the end is left out.
    pub fn slice(&self, range: Range<usize>) -> &[Line] {
        let end = range.end.min(self.lines.len());
        &self.lines[range.start.min(end)..end]
    }

    /// Puts `with` in place of some of its lines.
    pub fn splice(&mut self, range: Range<usize>, with: impl IntoIterator<Item = Line>) {
        self.lines.splice(range, with);
    }
}

impl Text {
    /// Puts others in place of several stretches of lines, given from top to bottom, in one go.
    pub fn splice_all(&mut self, parts: impl IntoIterator<Item = (Range<usize>, Vec<Line>)>) {
        let mut out = Vec::with_capacity(self.lines.len());
        let mut at = 0;
        for (range, with) in parts {
            out.extend_from_slice(self.slice(at..range.start.max(at)));
            out.extend(with);
            at = range.end.max(at);
        }
        out.extend_from_slice(self.slice(at..self.lines.len()));
        self.lines = out;
    }
}

impl FromIterator<Line> for Text {
    fn from_iter<I: IntoIterator<Item = Line>>(lines: I) -> Self {
        Self {
            lines: lines.into_iter().collect(),
        }
    }
}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.to_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_back_byte_for_byte() {
        for bytes in [
            &b""[..],
            b"\n",
            b"a",
            b"a\nb",
            b"a\r\nb\r\n",
            b"\xff\xfea\0\n\0b\0",
            b"\0\n\n\xe9",
        ] {
            assert_eq!(Text::new(bytes).to_bytes(), bytes);
        }
        assert_eq!(Text::new("a\nb").len(), 2);
        assert_eq!(Text::new("a\nb\n").len(), 2);
        assert!(Text::new("").is_empty());
    }
}
