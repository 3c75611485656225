//! Reading JSON values whose fields have had several names.

use std::path::Path;

use serde_json::Value;

/// The first of several fields that is a text with something in it.
pub fn string<'a>(value: &'a Value, keys: &[&str]) -> Option<&'a str> {
    let found = keys.iter().filter_map(|key| value.get(*key)?.as_str());
    found.into_iter().find(|text| !text.is_empty())
}

/// The first of several fields that is a number, written as one or as a text.
pub fn number(value: &Value, keys: &[&str]) -> Option<i64> {
    keys.iter().find_map(|key| match value.get(*key)? {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    })
}

/// The items at a place, none when there is no list.
pub fn array<'a>(value: &'a Value, at: &str) -> &'a [Value] {
    value
        .pointer(at)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Whether it says nothing.
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// A path as the protocol wants it.
pub fn absolute(path: &str, cwd: &Path) -> String {
    let joined = cwd.join(path.strip_prefix("./").unwrap_or(path));
    joined.to_string_lossy().into_owned()
}

/// A path as people read it: inside the session's directory without that.
pub fn shown(path: &str, cwd: &Path) -> String {
    match Path::new(path).strip_prefix(cwd) {
        Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
        Ok(inside) => inside.to_string_lossy().into_owned(),
        Err(_) => path.to_owned(),
    }
}
