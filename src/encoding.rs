//! Text in files: detects the encoding like Neovim's 'fileencodings', and writes it back byte for byte.

use std::borrow::Cow;

use crate::error::Problem;

/// Neovim's default when the user set nothing.
const DEFAULT: [&str; 4] = ["ucs-bom", "utf-8", "default", "latin1"];

/// An encoding, and whether the file starts with a byte order mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    charset: Charset,
    bom: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Charset {
    Utf8,
    Latin1,
    Utf16 { little: bool },
    Utf32 { little: bool },
    Other(&'static encoding_rs::Encoding),
}

/// UTF-8 without a mark, for new files.
pub const UTF8: Encoding = Encoding {
    charset: Charset::Utf8,
    bom: false,
};

/// Byte order marks; a mark comes before its own prefixes.
const MARKS: [(&[u8], Charset); 5] = [
    (&[0xef, 0xbb, 0xbf], Charset::Utf8),
    (&[0xff, 0xfe, 0, 0], Charset::Utf32 { little: true }),
    (&[0, 0, 0xfe, 0xff], Charset::Utf32 { little: false }),
    (&[0xff, 0xfe], Charset::Utf16 { little: true }),
    (&[0xfe, 0xff], Charset::Utf16 { little: false }),
];

impl Encoding {
    /// The encoding given by the byte order mark, if there is one.
    pub fn of_mark(bytes: &[u8]) -> Option<Self> {
        let (_, charset) = MARKS.iter().find(|(mark, _)| bytes.starts_with(mark))?;
        Some(Self {
            charset: *charset,
            bom: true,
        })
    }

    pub fn mark(self) -> &'static [u8] {
        let found = MARKS.iter().find(|(_, charset)| *charset == self.charset);
        match found {
            Some((mark, _)) if self.bom => mark,
            _ => &[],
        }
    }

    /// The bytes that end a line.
    pub fn newline(self) -> &'static [u8] {
        match self.charset {
            Charset::Utf16 { little: true } => b"\n\0",
            Charset::Utf16 { little: false } => b"\0\n",
            Charset::Utf32 { little: true } => b"\n\0\0\0",
            Charset::Utf32 { little: false } => b"\0\0\0\n",
            _ => b"\n",
        }
    }

    fn name(self) -> Cow<'static, str> {
        match self.charset {
            Charset::Utf8 => "utf-8".into(),
            Charset::Latin1 => "latin1".into(),
            Charset::Utf16 { little: true } => "utf-16le".into(),
            Charset::Utf16 { little: false } => "utf-16".into(),
            Charset::Utf32 { little: true } => "utf-32le".into(),
            Charset::Utf32 { little: false } => "utf-32".into(),
            Charset::Other(encoding) => encoding.name().to_lowercase().into(),
        }
    }

    /// By Neovim's name for it.
    fn named(name: &str) -> Option<Self> {
        let charset = match name.trim().to_lowercase().as_str() {
            "utf-8" | "utf8" | "default" => Charset::Utf8,
            "latin1" | "iso-8859-1" | "iso8859-1" | "8bit-latin1" => Charset::Latin1,
            "utf-16" | "utf-16be" | "ucs-2" | "ucs-2be" | "ucs2be" => {
                Charset::Utf16 { little: false }
            }
            "utf-16le" | "ucs-2le" | "ucs2le" => Charset::Utf16 { little: true },
            "utf-32" | "utf-32be" | "ucs-4" | "ucs-4be" | "ucs4be" => {
                Charset::Utf32 { little: false }
            }
            "utf-32le" | "ucs-4le" | "ucs4le" => Charset::Utf32 { little: true },
            other => {
                let label = match other {
                    "cp932" | "sjis" | "8bit-cp932" => "shift_jis".to_owned(),
                    "cp949" => "euc-kr".to_owned(),
                    "cp936" | "euc-cn" => "gbk".to_owned(),
                    "cp950" => "big5".to_owned(),
                    other => match other.strip_prefix("cp125") {
                        Some(number) => format!("windows-125{number}"),
                        None => other.to_owned(),
                    },
                };
                Charset::Other(encoding_rs::Encoding::for_label(label.as_bytes())?)
            }
        };
        Some(Self {
            charset,
            bom: false,
        })
    }

    /// Decodes bytes without a mark, if they are text in this encoding and can be written back.
    pub fn decode(self, bytes: &[u8]) -> Option<String> {
        let text = match self.charset {
            Charset::Utf8 => std::str::from_utf8(bytes).ok()?.to_owned(),
            Charset::Latin1 => bytes.iter().copied().map(char::from).collect(),
            Charset::Utf16 { little } => {
                let (units, []) = bytes.as_chunks::<2>() else {
                    return None;
                };
                let read = if little {
                    u16::from_le_bytes
                } else {
                    u16::from_be_bytes
                };
                char::decode_utf16(units.iter().copied().map(read))
                    .collect::<Result<String, _>>()
                    .ok()?
            }
            Charset::Utf32 { little } => {
                let (units, []) = bytes.as_chunks::<4>() else {
                    return None;
                };
                let read = if little {
                    u32::from_le_bytes
                } else {
                    u32::from_be_bytes
                };
                units
                    .iter()
                    .map(|unit| char::from_u32(read(*unit)))
                    .collect::<Option<String>>()?
            }
            Charset::Other(encoding) => {
                let text = encoding.decode_without_bom_handling_and_without_replacement(bytes)?;
                let (back, _, _) = encoding.encode(&text);
                if *back != *bytes {
                    return None;
                }
                text.into_owned()
            }
        };
        // Anything with a NUL byte is binary, even if the encoding would accept it.
        (!text.contains('\0')).then_some(text)
    }

    /// Encodes a text, mark included, or says which character this encoding lacks.
    pub fn encode(self, text: &str) -> Result<Vec<u8>, Problem> {
        let text = if self.bom {
            text.strip_prefix('\u{feff}').unwrap_or(text)
        } else {
            text
        };
        let mut bytes = self.mark().to_vec();
        match self.charset {
            Charset::Utf8 => bytes.extend_from_slice(text.as_bytes()),
            Charset::Latin1 => {
                for char in text.chars() {
                    match u8::try_from(char) {
                        Ok(byte) => bytes.push(byte),
                        Err(_) => return Err(self.lacks(text, |c| u8::try_from(c).is_err())),
                    }
                }
            }
            Charset::Utf16 { little } => {
                for unit in text.encode_utf16() {
                    bytes.extend_from_slice(&if little {
                        unit.to_le_bytes()
                    } else {
                        unit.to_be_bytes()
                    });
                }
            }
            Charset::Utf32 { little } => {
                for char in text.chars() {
                    let unit = u32::from(char);
                    bytes.extend_from_slice(&if little {
                        unit.to_le_bytes()
                    } else {
                        unit.to_be_bytes()
                    });
                }
            }
            Charset::Other(encoding) => {
                let (there, _, lacking) = encoding.encode(text);
                if lacking {
                    let lacks = |c: char| encoding.encode(c.encode_utf8(&mut [0; 4])).2;
                    return Err(self.lacks(text, lacks));
                }
                bytes.extend_from_slice(&there);
            }
        }
        Ok(bytes)
    }

    fn lacks(self, text: &str, lacks: impl Fn(char) -> bool) -> Problem {
        let at = text.char_indices().find(|(_, char)| lacks(*char));
        let (line, char) = at.map_or((1, '?'), |(at, char)| {
            (text[..at].matches('\n').count() + 1, char)
        });
        Problem::Unencodable {
            encoding: self.name(),
            char,
            line,
        }
    }
}

/// Decodes a file with the first of `wanted` that fits. None if none of them does.
pub fn decode(bytes: &[u8], wanted: &[String]) -> Option<(String, Encoding)> {
    let default = DEFAULT.map(str::to_owned);
    let wanted = if wanted.iter().all(|name| name.is_empty()) {
        &default[..]
    } else {
        wanted
    };
    wanted.iter().find_map(|name| {
        let encoding = if name == "ucs-bom" {
            Encoding::of_mark(bytes)?
        } else {
            Encoding::named(name)?
        };
        let text = encoding.decode(bytes.get(encoding.mark().len()..)?)?;
        Some((text, encoding))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn back(bytes: &[u8]) -> Option<Vec<u8>> {
        let (text, encoding) = decode(bytes, &[])?;
        encoding.encode(&text).ok()
    }

    #[test]
    fn files_are_written_back_byte_for_byte() {
        let utf16le = "\u{feff}a\r\nß€😀\n".encode_utf16();
        let cases: [&[u8]; 8] = [
            b"plain\n",
            "ß€😀\n".as_bytes(),
            "\u{feff}with a mark\r\n".as_bytes(),
            b"caf\xe9\r\n\x80\xff",
            &utf16le
                .clone()
                .flat_map(u16::to_le_bytes)
                .collect::<Vec<_>>(),
            &utf16le.flat_map(u16::to_be_bytes).collect::<Vec<_>>(),
            &"\u{feff}a\n😀"
                .chars()
                .flat_map(|c| u32::from(c).to_le_bytes())
                .collect::<Vec<_>>(),
            b"",
        ];
        for case in cases {
            assert_eq!(back(case).as_deref(), Some(case));
        }
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for case in [&b"a\0b"[..], b"\x7fELF\x02\x01\x01\0\0", b"\xff\xfea\0b"] {
            assert_eq!(decode(case, &[]), None, "{case:?}");
        }
    }

    #[test]
    fn what_an_encoding_lacks_is_named() {
        let (_, encoding) = decode(b"caf\xe9", &[]).expect("latin1");
        let problem = encoding.encode("one\n20 €").expect_err("no such character");
        let problem = problem.to_string();
        assert!(problem.contains("latin1, has no “€” (line 2)"), "{problem}");
    }

    #[test]
    fn the_users_fileencodings_decide() {
        let wanted = |names: &str| names.split(',').map(str::to_owned).collect::<Vec<_>>();
        let (text, encoding) =
            decode(b"\x93\xfa\n", &wanted("ucs-bom,utf-8,cp932")).expect("Japanese");
        assert_eq!(text, "日\n");
        assert_eq!(
            encoding.encode("日\n").ok().as_deref(),
            Some(&b"\x93\xfa\n"[..])
        );
        assert!(encoding.encode("é€").is_err());
        let (text, _) = decode(b"\x80", &wanted("utf-8,cp1252")).expect("windows");
        assert_eq!(text, "€");
        assert_eq!(decode(b"\x80", &wanted("utf-8,none-such")), None);
    }

    proptest! {
        #[test]
        fn whatever_is_read_is_written_back(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(again) = back(&bytes) {
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
