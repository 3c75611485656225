//! Converts between a file's bytes and lines of text: encoding, line ends, byte order mark.
//!
//! A form is only used if it round-trips: decoding and encoding again gives the same bytes.

use review::Text;
use store::checkpoint::Snapshot;

const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Utf8 {
        mark: bool,
    },
    Utf16 {
        little: bool,
    },
    /// One byte per character.
    Latin1,
}

/// How bytes become lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    encoding: Encoding,
    /// Every line ends in CR LF.
    crlf: bool,
}

impl Form {
    /// The form that fits a file before and after, and both texts. None if one of them is not text.
    pub fn of_both(before: &Snapshot, after: &Snapshot) -> Option<(Self, Text, Text)> {
        let first = match (before, after) {
            (Snapshot::File { bytes, .. }, _) | (_, Snapshot::File { bytes, .. }) => bytes,
            _ => return None,
        };
        let encoding = encoding_of(first)?;
        // If their line ends differ, the ends are part of the lines.
        let forms = [true, false].map(|crlf| Self { encoding, crlf });
        forms
            .into_iter()
            .find_map(|form| Some((form, form.read(before)?, form.read(after)?)))
    }

    /// The text of a file, with LF line ends. An absent file is empty.
    pub fn read(self, snapshot: &Snapshot) -> Option<Text> {
        let bytes = match snapshot {
            Snapshot::Absent => return Some(Text::default()),
            Snapshot::File { bytes, .. } => bytes,
            Snapshot::Link { .. } => return None,
        };
        if !matches!(self.encoding, Encoding::Utf16 { .. }) && bytes.contains(&0) {
            return None;
        }
        let decoded = match self.encoding {
            Encoding::Utf8 { mark: true } => {
                // An empty file has no mark either.
                String::from_utf8(bytes.strip_prefix(UTF8_MARK)?.to_vec()).ok()?
            }
            Encoding::Utf8 { mark: false } => String::from_utf8(bytes.clone()).ok()?,
            Encoding::Utf16 { little } => {
                let (pairs, rest) = bytes.as_chunks::<2>();
                let unit = |pair: &[u8; 2]| match little {
                    true => u16::from_le_bytes(*pair),
                    false => u16::from_be_bytes(*pair),
                };
                let units: Vec<u16> = pairs.iter().map(unit).collect();
                if !rest.is_empty() || units.first() != Some(&0xfeff) {
                    return None;
                }
                String::from_utf16(&units[1..]).ok()?
            }
            Encoding::Latin1 => bytes.iter().map(|byte| char::from(*byte)).collect(),
        };
        let text = if self.crlf {
            Text::new(decoded.replace("\r\n", "\n"))
        } else {
            Text::new(decoded)
        };
        (self.bytes(&text)? == *bytes).then_some(text)
    }

    /// A file with this text.
    pub fn write(self, text: &Text, mode: u32) -> Snapshot {
        // Text the user typed may not fit latin1: write UTF-8 rather than lose it.
        let bytes = self.bytes(text).unwrap_or_else(|| text.to_bytes());
        Snapshot::File { bytes, mode }
    }

    fn bytes(self, text: &Text) -> Option<Vec<u8>> {
        let mut plain = text.to_bytes();
        if self.crlf {
            plain = String::from_utf8(plain)
                .ok()?
                .replace('\n', "\r\n")
                .into_bytes();
        }
        match self.encoding {
            Encoding::Utf8 { mark: false } => Some(plain),
            Encoding::Utf8 { mark: true } => Some([UTF8_MARK, &plain].concat()),
            Encoding::Utf16 { little } => {
                let text = String::from_utf8(plain).ok()?;
                let units = std::iter::once(0xfeff).chain(text.encode_utf16());
                Some(
                    units
                        .flat_map(|unit: u16| match little {
                            true => unit.to_le_bytes(),
                            false => unit.to_be_bytes(),
                        })
                        .collect(),
                )
            }
            Encoding::Latin1 => {
                let text = String::from_utf8(plain).ok()?;
                text.chars()
                    .map(|c| u8::try_from(u32::from(c)).ok())
                    .collect()
            }
        }
    }
}

/// The encoding of a text, as Neovim would guess; None for binary.
fn encoding_of(bytes: &[u8]) -> Option<Encoding> {
    if bytes.starts_with(UTF8_MARK) {
        return Some(Encoding::Utf8 { mark: true });
    }
    match bytes {
        [0xff, 0xfe, ..] => return Some(Encoding::Utf16 { little: true }),
        [0xfe, 0xff, ..] => return Some(Encoding::Utf16 { little: false }),
        _ => {}
    }
    if bytes.contains(&0) {
        return None;
    }
    Some(if std::str::from_utf8(bytes).is_ok() {
        Encoding::Utf8 { mark: false }
    } else {
        Encoding::Latin1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> Snapshot {
        Snapshot::File {
            bytes: bytes.to_vec(),
            mode: 0o644,
        }
    }

    #[test]
    fn every_form_gives_back_its_bytes() {
        for (bytes, lines) in [
            (&b"a\nb\n"[..], "a\nb\n"),
            (b"a\nb", "a\nb"),
            (b"a\r\nb\r\n", "a\nb\n"),
            (b"a\r\nb\n", "a\r\nb\n"),
            (b"\xef\xbb\xbfa\n", "a\n"),
            (b"caf\xe9\r\n", "caf\u{e9}\n"),
            (b"\xff\xfea\0\r\0\n\0", "a\n"),
            (b"\xfe\xff\0a\0\n\x01\x0a", "a\n\u{10a}"),
            (b"", ""),
        ] {
            let (form, before, after) = Form::of_both(&file(bytes), &file(bytes)).expect("a form");
            assert_eq!(before, Text::new(lines), "{bytes:?}");
            assert_eq!(before, after);
            assert_eq!(form.write(&before, 0o644), file(bytes));
        }
    }

    #[test]
    fn what_is_no_text_has_no_form() {
        let none =
            |before: &[u8], after: &[u8]| Form::of_both(&file(before), &file(after)).is_none();
        assert!(none(b"\x7fELF\0", b"\x7fELF\0"));
        assert!(none(b"a\n", b"a\0"), "turned binary");
        assert!(none(b"caf\xc3\xa9", b"caf\xe9"), "another encoding");
        assert!(Form::of_both(&Snapshot::Absent, &Snapshot::Absent).is_none());
        let link = Snapshot::Link { target: "x".into() };
        assert!(Form::of_both(&link, &file(b"a")).is_none());
        let made = Form::of_both(&Snapshot::Absent, &file(b"a\r\n")).expect("a form");
        assert_eq!((made.1, made.2), (Text::default(), Text::new("a\n")));
    }
}
