//! What the assistant has said in a turn, so that each word of it reaches the client once.
//!
//! With partial output, text comes as pieces (`timestamp_ms`, no `model_call_id`); then a recap repeats what came since the last
//! tool call (both fields), and a last message repeats the end or all of it (neither field). Without partial output only whole
//! messages come, one for each stretch between tool calls. The result line holds everything again.

/// The words of one turn.
#[derive(Debug, Default)]
pub struct Said {
    /// Everything, in order.
    all: String,
    /// Where the stretch since the last recap or tool call begins.
    stretch: usize,
    /// In how many events the stretch came.
    events: usize,
    /// Pieces were seen: whole messages are repetitions then, unless proven otherwise.
    pieces: bool,
}

impl Said {
    /// A piece. It is new whatever it says: "ha", "ha", "ha" are three of them.
    pub fn piece<'a>(&mut self, text: &'a str) -> &'a str {
        self.pieces = true;
        self.add(text);
        text
    }

    /// A whole message, a recap or a repetition. Hands back what of it is new.
    pub fn message<'a>(&mut self, text: &'a str) -> &'a str {
        let new = self.new_of(text);
        self.add(new);
        if self.pieces {
            self.close();
        }
        new
    }

    /// The text of the result line. Hands back what no event brought.
    pub fn result<'a>(&mut self, text: &'a str) -> &'a str {
        let new = if self.all.is_empty() {
            text
        } else {
            // The stretches are joined there without what may stand between them here, so only a plain prefix counts.
            text.strip_prefix(self.all.as_str()).unwrap_or_default()
        };
        self.add(new);
        new
    }

    /// Something else happened, so that the same words again would be new words.
    pub fn close(&mut self) {
        self.stretch = self.all.len();
        self.events = 0;
    }

    /// Whether anything was said.
    pub fn is_empty(&self) -> bool {
        self.all.trim().is_empty()
    }

    fn add(&mut self, text: &str) {
        if !text.is_empty() {
            self.all.push_str(text);
            self.events += 1;
        }
    }

    fn new_of<'a>(&self, text: &'a str) -> &'a str {
        let stretch = &self.all[self.stretch..];
        if !self.pieces {
            // Messages are new, but for one that repeats those before it, with nothing in between.
            let repeats = self.events > 0 && (text == stretch || text == self.all);
            return if repeats { "" } else { text };
        }
        // Of the whole turn, or of the stretch.
        for known in [self.all.as_str(), stretch] {
            if !known.is_empty()
                && let Some(rest) = text.strip_prefix(known)
            {
                return rest;
            }
        }
        let same = |known: &str| known.split_whitespace().eq(text.split_whitespace());
        if stretch.is_empty() {
            // Nothing came since the recap: what is anywhere in the turn was said.
            return if self.all.contains(text.trim()) || same(&self.all) {
                ""
            } else {
                text
            };
        }
        if same(stretch) || same(&self.all) || self.all.ends_with(text) {
            ""
        } else {
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    enum Event {
        Piece(&'static str),
        Whole(&'static str),
        Tool,
        Result(&'static str),
    }
    use Event::{Piece, Result, Tool, Whole};

    fn play(events: &[Event]) -> String {
        let mut said = Said::default();
        let mut text = String::new();
        for event in events {
            match event {
                Piece(piece) => text.push_str(said.piece(piece)),
                Whole(message) => text.push_str(said.message(message)),
                Tool => said.close(),
                Result(result) => text.push_str(said.result(result)),
            }
        }
        text
    }

    #[test]
    fn each_word_is_said_once() {
        let cases: &[(&[Event], &str)] = &[
            // Pieces, the message that repeats them, the result.
            (
                &[Piece("Hel"), Piece("lo"), Whole("Hello"), Result("Hello")],
                "Hello",
            ),
            // A recap before a tool call, and a last message with the end only.
            (
                &[
                    Piece("One. "),
                    Whole("One. "),
                    Tool,
                    Piece("Two."),
                    Whole("Two."),
                    Whole("Two."),
                    Result("One. Two."),
                ],
                "One. Two.",
            ),
            // The last message repeats the whole turn.
            (
                &[
                    Piece("One. "),
                    Tool,
                    Piece("Two."),
                    Whole("One. Two."),
                    Result("One. Two."),
                ],
                "One. Two.",
            ),
            // No recap before the tool call.
            (
                &[Piece("One. "), Tool, Piece("Two."), Whole("Two.")],
                "One. Two.",
            ),
            // Only whole messages.
            (&[Whole("Hello"), Result("Hello")], "Hello"),
            (
                &[Whole("Done."), Tool, Whole("Done."), Result("Done.Done.")],
                "Done.Done.",
            ),
            (
                &[Whole("One."), Tool, Whole("Two."), Whole("One.Two.")],
                "One.Two.",
            ),
            (&[Whole("Hel"), Whole("lo"), Whole("Hello")], "Hello"),
            // Only the result.
            (&[Result("Hello")], "Hello"),
            (&[Tool, Result("Hello")], "Hello"),
            // The end of the pieces was lost.
            (&[Piece("Hel"), Whole("Hello")], "Hello"),
            (&[Piece("Hel"), Result("Hello")], "Hello"),
            // Pieces that repeat themselves.
            (
                &[Piece("ha"), Piece("ha"), Piece("ha"), Whole("hahaha")],
                "hahaha",
            ),
            (&[Piece("ha"), Tool, Piece("ha"), Whole("ha")], "haha"),
            (
                &[Piece("\n"), Piece("\n"), Piece("a"), Whole("\n\na")],
                "\n\na",
            ),
            // Blanks at the ends are sometimes trimmed.
            (&[Piece("Hello"), Piece(" \n"), Whole("Hello")], "Hello \n"),
            // A message without pieces among others with them.
            (
                &[Piece("One."), Whole("One."), Tool, Whole("Two.")],
                "One.Two.",
            ),
            (&[], ""),
        ];
        for (number, (events, expected)) in cases.iter().enumerate() {
            assert_eq!(play(events), *expected, "case {number}");
        }
    }

    proptest::proptest! {
        /// However the text is cut and wherever tools run, what arrives is what was said.
        #[test]
        fn pieces_with_recaps_are_said_once(
            stretches in proptest::collection::vec(proptest::collection::vec("[a-c \n]{1,3}", 1..5), 1..4),
            recaps in proptest::bool::ANY,
            whole_turn in proptest::bool::ANY,
        ) {
            let mut said = Said::default();
            let mut text = String::new();
            let expected: String = stretches.iter().flatten().map(String::as_str).collect();
            let count = stretches.len();
            for (number, pieces) in stretches.iter().enumerate() {
                let last = number + 1 == count;
                let stretch: String = pieces.concat();
                for piece in pieces {
                    text.push_str(said.piece(piece));
                }
                if last {
                    text.push_str(said.message(if whole_turn { &expected } else { &stretch }));
                } else {
                    if recaps {
                        text.push_str(said.message(&stretch));
                    }
                    said.close();
                }
            }
            text.push_str(said.result(&expected));
            proptest::prop_assert_eq!(text, expected);
        }

        /// Without pieces, messages between tool calls arrive as they are.
        #[test]
        fn messages_between_tools_are_said_once(messages in proptest::collection::vec("[a-b]{1,3}", 1..5)) {
            let mut said = Said::default();
            let mut text = String::new();
            for message in &messages {
                text.push_str(said.message(message));
                said.close();
            }
            let expected = messages.concat();
            text.push_str(said.result(&expected));
            proptest::prop_assert_eq!(text, expected);
        }
    }
}
