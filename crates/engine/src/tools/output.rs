//! Text that grows: a tool's output kept whole, with the preview a screen needs.

/// Lines a preview shows at each end.
pub const PREVIEW_LINES: usize = 12;
/// A longer line is cut in a preview.
pub const PREVIEW_LINE_BYTES: usize = 400;

/// An output as it stands. Agents send it whole each time it grows; only the new end costs anything here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    text: String,
    breaks: usize,
}

/// What of an output is shown: the first lines, the last ones, and how many there are in all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preview {
    /// The first lines.
    pub head: Vec<String>,
    /// The last lines that are not in `head`.
    pub tail: Vec<String>,
    /// How many lines there are.
    pub lines: usize,
}

impl Output {
    /// An output with this text.
    pub fn new(text: String) -> Self {
        let breaks = count_breaks(&text);
        Self { text, breaks }
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The whole text, for good.
    pub fn into_text(self) -> String {
        self.text
    }

    /// Adds to the end.
    pub fn append(&mut self, more: &str) {
        self.breaks += count_breaks(more);
        self.text.push_str(more);
    }

    /// Lets go of all but the last `bytes`, from the beginning of a line or else of a character on.
    pub fn keep_last(&mut self, bytes: usize) {
        let from = self
            .text
            .ceil_char_boundary(self.text.len().saturating_sub(bytes));
        let line = self.text.as_bytes()[from..]
            .iter()
            .take(PREVIEW_LINE_BYTES)
            .position(|byte| *byte == b'\n');
        self.text.drain(..line.map_or(from, |at| from + at + 1));
        self.breaks = count_breaks(&self.text);
    }

    /// Takes the newest whole text. Says whether anything changed.
    pub fn replace(&mut self, text: String) -> bool {
        if let Some(more) = text.strip_prefix(self.text.as_str()) {
            self.breaks += count_breaks(more);
            let grew = !more.is_empty();
            self.text = text;
            return grew;
        }
        *self = Self::new(text);
        true
    }

    /// How many lines there are; a last one without its end counts.
    pub fn lines(&self) -> usize {
        self.breaks + usize::from(!self.text.is_empty() && !self.text.ends_with('\n'))
    }

    /// The two ends, at a cost that does not depend on what is between.
    pub fn preview(&self) -> Preview {
        let lines = self.lines();
        let head: Vec<String> = self
            .text
            .split('\n')
            .take(PREVIEW_LINES.min(lines))
            .map(cut)
            .collect();
        let wanted = PREVIEW_LINES.min(lines - head.len());
        let body = self.text.strip_suffix('\n').unwrap_or(&self.text);
        let mut tail: Vec<String> = body.rsplit('\n').take(wanted).map(cut).collect();
        tail.reverse();
        Preview { head, tail, lines }
    }
}

fn count_breaks(text: &str) -> usize {
    text.bytes().filter(|b| *b == b'\n').count()
}

/// A line fit for a screen: cut at a character, without its carriage return.
fn cut(line: &str) -> String {
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.len() <= PREVIEW_LINE_BYTES {
        return line.to_owned();
    }
    format!("{}…", &line[..line.floor_char_boundary(PREVIEW_LINE_BYTES)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn previews_show_both_ends_once() {
        let preview = |text: &str| {
            let p = Output::new(text.to_owned()).preview();
            (p.head.join(","), p.tail.join(","), p.lines)
        };
        assert_eq!(preview(""), (String::new(), String::new(), 0));
        assert_eq!(preview("a"), ("a".into(), String::new(), 1));
        assert_eq!(preview("a\r\nb\n"), ("a,b".into(), String::new(), 2));
        assert_eq!(preview("\n\n"), (",".into(), String::new(), 2));
        let long: String = (1..=30).map(|n| format!("{n}\n")).collect();
        assert_eq!(
            preview(&long),
            (
                "1,2,3,4,5,6,7,8,9,10,11,12".into(),
                "19,20,21,22,23,24,25,26,27,28,29,30".into(),
                30
            )
        );
        let middle: String = (1..=14).map(|n| format!("{n}\n")).collect();
        assert_eq!(
            preview(middle.trim_end()),
            ("1,2,3,4,5,6,7,8,9,10,11,12".into(), "13,14".into(), 14)
        );
        let wide = "é".repeat(PREVIEW_LINE_BYTES);
        assert_eq!(
            Output::new(wide).preview().head[0].chars().count(),
            PREVIEW_LINE_BYTES / 2 + 1
        );
    }

    proptest::proptest! {
        #[test]
        fn growing_is_the_same_as_new(pieces in proptest::collection::vec("[a\n]{0,5}", 0..8), other in "[ab\n]{0,9}") {
            let mut grown = Output::default();
            let mut appended = Output::default();
            let mut whole = String::new();
            for piece in &pieces {
                whole.push_str(piece);
                proptest::prop_assert_eq!(grown.replace(whole.clone()), !piece.is_empty());
                appended.append(piece);
            }
            proptest::prop_assert_eq!(&grown, &Output::new(whole.clone()));
            proptest::prop_assert_eq!(&appended, &grown);
            grown.replace(other.clone());
            proptest::prop_assert_eq!(&grown, &Output::new(other));
        }
    }
}
