//! Small things about text: what a terminal would do with it, what fits into a line, what markdown leaves alone.

/// The text without the escapes by which programs colour and clear a terminal.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' => skip_escape(&mut chars),
            // Over the same line again: what stood there is gone on a screen, but not in a log.
            '\r' if chars.peek() != Some(&'\n') => plain.push('\n'),
            '\r' | '\u{7}' | '\u{8}' => {}
            _ => plain.push(char),
        }
    }
    plain
}

fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.next() {
        Some('[') => {
            // CSI: parameters, then one letter.
            for char in chars.by_ref() {
                if ('@'..='~').contains(&char) {
                    break;
                }
            }
        }
        Some(']') => {
            // OSC: up to BEL or ESC \.
            while let Some(char) = chars.next() {
                if char == '\u{7}' {
                    break;
                }
                if char == '\u{1b}' {
                    chars.next();
                    break;
                }
            }
        }
        _ => {}
    }
}

/// The first line, cut to `limit` characters, with a mark when that is not all.
pub fn headline(text: &str, limit: usize) -> String {
    let text = text.trim();
    let line = text.lines().next().unwrap_or_default().trim_end();
    let mut cut: String = line.chars().take(limit).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}

/// The text as a block of code, whatever backticks are in it.
pub fn fenced(language: &str, text: &str) -> String {
    let longest = text
        .split(|char| char != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}")
}

/// The text as code inside a line.
pub fn code(text: &str) -> String {
    if text.contains('`') {
        format!("`` {text} ``")
    } else {
        format!("`{text}`")
    }
}

/// At most `limit` bytes of the text, whole characters, and how many bytes are left out.
pub fn cut(text: &str, limit: usize) -> (&str, usize) {
    if text.len() <= limit {
        return (text, 0);
    }
    let mut end = limit;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (&text[..end], text.len() - end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_terminals_are_left_out() {
        for (given, expected) in [
            ("plain", "plain"),
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{1b}[2K\u{1b}[GLoading\rdone", "Loading\ndone"),
            (
                "\u{1b}]8;;https://x\u{7}link\u{1b}]8;;\u{1b}\\ after",
                "link after",
            ),
            ("a\r\nb", "a\nb"),
            ("end\u{1b}", "end"),
        ] {
            assert_eq!(plain(given), expected, "{given:?}");
        }
    }

    #[test]
    fn headlines_are_one_line() {
        assert_eq!(headline("  fix it  ", 20), "fix it");
        assert_eq!(headline("one\ntwo", 20), "one…");
        assert_eq!(headline("äöüäöü", 3), "äöü…");
        assert_eq!(headline("", 3), "");
    }

    #[test]
    fn fences_are_longer_than_what_is_inside() {
        assert_eq!(fenced("", "a"), "```\na\n```");
        assert_eq!(fenced("json", "a\n"), "```json\na\n```");
        assert_eq!(fenced("", "```\nx\n```\n"), "````\n```\nx\n```\n````");
        assert_eq!(code("a b"), "`a b`");
        assert_eq!(code("a `b`"), "`` a `b` ``");
    }

    #[test]
    fn cuts_are_between_characters() {
        assert_eq!(cut("abc", 3), ("abc", 0));
        assert_eq!(cut("aäc", 2), ("a", 3));
    }
}
