//! Text from Lua, where a string may hold any bytes.

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
