//! Text on its way: from Lua, where a string may hold any bytes, and to the screen, where it has to have an end.

use serde::de::{Deserializer, Visitor};

/// Reads a string; what is no UTF-8 is replaced, so that a stray byte never costs the user's prompt.
pub fn lossy<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    struct Text;
    impl Visitor<'_> for Text {
        type Value = String;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<E>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }

        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<String, E> {
            Ok(String::from_utf8_lossy(bytes).into_owned())
        }
    }
    deserializer.deserialize_any(Text)
}

/// The same for a string that may be missing.
pub fn lossy_option<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    lossy(deserializer).map(Some)
}

/// This many bytes of an error or a notice are shown; the protocol log has all of it.
pub const MESSAGE_BYTES: usize = 8 * 1024;

/// A name or a title as a line of at most `max` characters: control characters as Vim shows them, line breaks as spaces.
pub fn label(text: &str, max: usize) -> String {
    let mut out = String::new();
    for (at, char) in text.trim().chars().enumerate() {
        if at >= max {
            out.push('…');
            break;
        }
        match char {
            '\n' | '\r' | '\t' => out.push(' '),
            '\0'..='\x1f' => out.extend(['^', char::from(char as u8 + b'@')]),
            '\x7f' => out.push_str("^?"),
            _ => out.push(char),
        }
    }
    out
}

/// The same text with its control characters as Vim shows them, line breaks and tabs kept: what is drawn beside the text
/// of a buffer reaches the terminal as it is.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' | '\t' => out.push(char),
            '\0'..='\x1f' => out.extend(['^', char::from(char as u8 + b'@')]),
            '\x7f' => out.push_str("^?"),
            _ => out.push(char),
        }
    }
    out
}

/// A message of at most `MESSAGE_BYTES`.
pub fn message(text: String) -> String {
    if text.len() <= MESSAGE_BYTES {
        return text;
    }
    passage(&text, MESSAGE_BYTES)
}

/// A text of at most `max` bytes, which says how much of it there was.
pub fn passage(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let shown = &text[..text.floor_char_boundary(max)];
    format!("{shown}… ({} kB in all)", text.len() / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_one_short_line() {
        assert_eq!(label(" a\0b\tc\nd\x1b[0m\x7f ", 80), "a^@b c d^[[0m^?");
        assert_eq!(label(&"é".repeat(1_000_000), 3), "ééé…");
        assert_eq!(label("", 3), "");
    }

    #[test]
    fn passages_end_at_a_character() {
        assert_eq!(visible("a\n\tb\0\x1b"), "a\n\tb^@^[");
        assert_eq!(passage("a\nb", 3), "a\nb");
        assert_eq!(passage(&"é".repeat(1000), 3), "é… (2 kB in all)");
    }
}
