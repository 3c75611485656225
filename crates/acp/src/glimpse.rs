//! Looks for the id and the method of a message that cannot be read: nested deeper than the parser goes, with a number
//! no `f64` holds, or no JSON in some place. Whoever waits for its answer has to have one.

use serde_json::Value;

use crate::lenient::FromValue;
use crate::message::Id;

/// What stands at the top of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Glimpse {
    /// The id of a request or a response.
    pub id: Option<Id>,
    /// The method of a request or a notification.
    pub method: Option<String>,
    /// It says that it is a message.
    pub is_message: bool,
}

/// The parts of a batch. None when it is none or has no end.
pub fn items(line: &[u8]) -> Option<Vec<&[u8]>> {
    let mut items = Vec::new();
    let mut rest = trim(line).strip_prefix(b"[")?;
    loop {
        rest = trim(rest);
        let item = token(rest)?;
        items.push(item);
        rest = trim(rest.get(item.len()..)?);
        match rest.first()? {
            b',' => rest = rest.get(1..)?,
            b']' => return Some(items),
            _ => return None,
        }
    }
}

/// Reads the top of an object without going into what it holds. None when it is no object or has no end.
pub fn at(line: &[u8]) -> Option<Glimpse> {
    let mut found = Glimpse::default();
    let mut rest = trim(line).strip_prefix(b"{")?;
    loop {
        rest = trim(rest);
        if rest.first() == Some(&b'}') {
            return Some(found);
        }
        let key = token(rest)?;
        rest = trim(rest.get(key.len()..)?).strip_prefix(b":")?;
        rest = trim(rest);
        let value = token(rest)?;
        let small = || serde_json::from_slice::<Value>(value).ok();
        match key {
            b"\"id\"" => found.id = small().and_then(|id| Id::from_value(id).ok()),
            b"\"method\"" => {
                found.method = small().and_then(|method| method.as_str().map(str::to_owned));
            }
            b"\"jsonrpc\"" => found.is_message = true,
            _ => {}
        }
        rest = trim(rest.get(value.len()..)?);
        match rest.first()? {
            b',' => rest = rest.get(1..)?,
            b'}' => return Some(found),
            _ => return None,
        }
    }
}

fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii_start()
}

/// The value that starts here: a string, what brackets hold, or a word.
fn token(text: &[u8]) -> Option<&[u8]> {
    let mut depth = 0_usize;
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => at = string_end(text, at)?,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            _ if depth > 0 => {}
            _ => {
                let word = text.get(at..)?;
                let ends = |byte: &u8| b",}]: \t\r\n\"".contains(byte);
                let end = word.iter().position(ends)?;
                return (end > 0).then(|| text.get(..at + end)).flatten();
            }
        }
        at += 1;
        if depth == 0 {
            return text.get(..at);
        }
    }
}

/// Where the string ends that starts here.
fn string_end(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from + 1;
    loop {
        match text.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at),
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glimpse(line: &str) -> Option<(Option<String>, Option<String>)> {
        at(line.as_bytes()).map(|found| (found.id.map(|id| id.to_string()), found.method))
    }

    #[test]
    fn the_top_is_seen_whatever_is_below() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let some = |id: Option<&str>, method: Option<&str>| {
            Some((id.map(str::to_owned), method.map(str::to_owned)))
        };
        for (line, seen) in [
            (
                format!(
                    r#"{{"jsonrpc":"2.0", "id" : 7,"params":{{"id":1,"a":{deep}}},"method":"m"}}"#
                ),
                some(Some("7"), Some("m")),
            ),
            (
                format!(r#"{{"params":{deep},"method":"a\"b","id":"x}}"}}"#),
                some(Some("x}"), Some("a\"b")),
            ),
            (
                r#"{"id":null,"x":1e999}"#.to_owned(),
                some(Some("null"), None),
            ),
            (
                r#"{"x":"\\","method":"m"}"#.to_owned(),
                some(None, Some("m")),
            ),
            ("{}".to_owned(), some(None, None)),
            (r#"{"id":1"#.to_owned(), None),
            (r#"{"id":}"#.to_owned(), None),
            ("[1]".to_owned(), None),
            ("npm WARN {".to_owned(), None),
        ] {
            assert_eq!(glimpse(&line), seen, "{}", &line[..line.len().min(60)]);
        }
    }

    #[test]
    fn a_batch_is_seen_in_parts() {
        let parts = |line: &'static str| {
            let all = items(line.as_bytes())?;
            Some(
                all.iter()
                    .map(|item| String::from_utf8_lossy(item).into_owned())
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(
            parts(r#" [{"a":[1]} , 2,"]"] "#).unwrap(),
            [r#"{"a":[1]}"#, "2", r#""]""#]
        );
        assert_eq!(parts("[1"), None);
        assert_eq!(parts("{}"), None);
    }

    proptest::proptest! {
        #[test]
        fn nothing_makes_it_panic(line in "[{}\\[\\]\",:\\\\ a1id]{0,40}") {
            let _ = at(line.as_bytes());
            let _ = items(line.as_bytes());
        }
    }
}
