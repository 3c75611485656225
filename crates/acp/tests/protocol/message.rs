//! Lines are read as messages leniently, and written strictly.

use acp::{Id, Junk, Message, RpcError};
use proptest::prelude::*;
use serde_json::{Number, Value, json};

fn request(id: Id, method: &str, params: Value) -> Message {
    let method = method.to_owned();
    Message::Request { id, method, params }
}

fn notification(method: &str, params: Value) -> Message {
    let method = method.to_owned();
    Message::Notification { method, params }
}

fn response(id: Id, result: Result<Value, RpcError>) -> Message {
    Message::Response { id, result }
}

fn text(id: &str) -> Id {
    Id::String(id.to_owned())
}

#[test]
fn messages_by_example() {
    let big: Number = serde_json::from_str("18446744073709551615").unwrap();
    let half: Number = serde_json::from_str("1.5").unwrap();
    let cases = [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}"#,
            request(Id::Number(1), "m", json!({ "a": 1 })),
        ),
        (
            r#"{"id":"u-1","method":"m"}"#,
            request(text("u-1"), "m", Value::Null),
        ),
        (
            r#"{"id":null,"method":"m"}"#,
            request(Id::Null, "m", Value::Null),
        ),
        (
            r#"{"id":-7,"method":"m"}"#,
            request(Id::Number(-7), "m", Value::Null),
        ),
        (
            r#"{"id":18446744073709551615,"method":"m"}"#,
            request(Id::OtherNumber(big), "m", Value::Null),
        ),
        (
            r#"{"id":1.5,"method":"m"}"#,
            request(Id::OtherNumber(half), "m", Value::Null),
        ),
        // What has a method asks, also with a result beside it.
        (
            r#"{"id":1,"method":"m","result":{}}"#,
            request(Id::Number(1), "m", Value::Null),
        ),
        (
            r#"{"method":"m","params":[1,2]}"#,
            notification("m", json!([1, 2])),
        ),
        (
            r#"{"method":"m","params":null}"#,
            notification("m", Value::Null),
        ),
        (
            r#"{"id":1,"result":{"a":1}}"#,
            response(Id::Number(1), Ok(json!({ "a": 1 }))),
        ),
        (
            r#"{"id":1,"result":null}"#,
            response(Id::Number(1), Ok(Value::Null)),
        ),
        (
            r#"{"id":1,"result":{},"error":null}"#,
            response(Id::Number(1), Ok(json!({}))),
        ),
        (
            r#"{"id":1,"method":null,"result":{}}"#,
            response(Id::Number(1), Ok(json!({}))),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1}"#,
            response(Id::Number(1), Ok(Value::Null)),
        ),
        (
            r#"{"id":1,"error":{"code":-32601,"message":"no"}}"#,
            response(Id::Number(1), Err(RpcError::new(-32601, "no"))),
        ),
        (
            r#"{"id":1,"error":{"code":400,"message":"no","data":{"why":1}}}"#,
            response(
                Id::Number(1),
                Err(RpcError::new(400, "no").with_data(json!({ "why": 1 }))),
            ),
        ),
        (
            r#"{"id":1,"error":{"message":"no","details":"d"}}"#,
            response(
                Id::Number(1),
                Err(RpcError::internal("no").with_data(json!({ "details": "d" }))),
            ),
        ),
        (
            r#"{"id":1,"error":"no"}"#,
            response(Id::Number(1), Err(RpcError::internal("no"))),
        ),
        (
            r#"{"error":{"code":-32700,"message":"Parse error"}}"#,
            response(Id::Null, Err(RpcError::new(-32700, "Parse error"))),
        ),
        ("[{\"method\":\"m\"}]", notification("m", Value::Null)),
        ("\u{feff}{\"method\":\"m\"}", notification("m", Value::Null)),
    ];
    for (line, expected) in cases {
        assert_eq!(Message::parse(line.as_bytes()), Ok(expected), "{line}");
    }
}

#[test]
fn junk_is_told_from_messages() {
    for line in [
        "Loading config…",
        "{",
        "",
        "{\"method\":\"m\"} trailing",
        "NaN",
    ] {
        let junk = Message::parse(line.as_bytes()).unwrap_err();
        assert!(matches!(junk, Junk::NotJson(_)), "{line}: {junk}");
    }
    let shapes = [
        "5",
        "null",
        "\"text\"",
        "{}",
        "[]",
        "[{\"method\":\"a\"},{\"method\":\"b\"}]",
        "{\"method\":5}",
        "{\"id\":{},\"method\":\"m\"}",
        "{\"id\":true,\"result\":1}",
        "{\"result\":1}",
        // A log line that happens to have an id is not a response.
        "{\"level\":\"info\",\"id\":3,\"msg\":\"started\"}",
    ];
    for line in shapes {
        let junk = Message::parse(line.as_bytes()).unwrap_err();
        assert!(matches!(junk, Junk::NotMessage(_)), "{line}: {junk}");
    }
}

#[test]
fn a_batch_is_read_item_by_item() {
    let all = Message::parse_all(br#"[{"method":"a"}, 5, {"id":1,"result":2}]"#);
    let [Ok(first), Err(Junk::NotMessage(_)), Ok(last)] = all.as_slice() else {
        panic!("{all:?}");
    };
    assert_eq!(first, &notification("a", Value::Null));
    assert_eq!(last, &response(Id::Number(1), Ok(json!(2))));
}

#[test]
fn broken_text_does_not_cost_the_line() {
    let cases: [(&[u8], &str); 8] = [
        (b"a\xffb", "a\u{fffd}b"),
        (b"\xe2\x82", "\u{fffd}"),
        (br"a\ud83d", "a\u{fffd}"),
        (br"\ude00b", "\u{fffd}b"),
        (br"\ud83d\ud83d\ude00", "\u{fffd}😀"),
        (br"\\ud83d \ud83dx", "\\ud83d \u{fffd}x"),
        (br"\ud83d\n", "\u{fffd}\n"),
        (b"\\ud83d\xff", "\u{fffd}\u{fffd}"),
    ];
    for (inside, expected) in cases {
        let line = [b"{\"method\":\"m\",\"params\":\"", inside, b"\"}"].concat();
        assert_eq!(
            Message::parse(&line),
            Ok(notification("m", json!(expected))),
            "{}",
            String::from_utf8_lossy(&line)
        );
    }
}

#[test]
fn lines_are_written_with_nothing_that_is_absent() {
    let cases = [
        (
            request(Id::Number(1), "m", json!({ "text": "a\nb" })),
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"text\":\"a\\nb\"}}\n",
        ),
        (
            request(Id::Null, "m", Value::Null),
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"m\"}\n",
        ),
        (
            notification("m", Value::Null),
            "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n",
        ),
        (
            // Not to be mistaken for params that are null.
            notification("m", json!({ "params": null })),
            "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"params\":null}}\n",
        ),
        (
            response(text("a"), Ok(Value::Null)),
            "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":null}\n",
        ),
        (
            response(Id::Number(1), Err(RpcError::method_not_found("x/y"))),
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,\"message\":\"Method not found: x/y\"}}\n",
        ),
    ];
    for (message, line) in cases {
        assert_eq!(String::from_utf8(message.to_line()).unwrap(), line);
        assert_eq!(
            format!("{}\n", serde_json::to_string(&message).unwrap()),
            line
        );
    }
}

/// JSON without what does not come back the same: floats that are no short binary fraction.
pub fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1000_i32..1000).prop_map(|n| Value::from(f64::from(n) / 4.0)),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map("[a-zA-Z_]{0,8}", inner, 0..6)
                .prop_map(|fields| fields.into_iter().collect::<Value>()),
        ]
    })
}

pub fn id() -> impl Strategy<Value = Id> {
    prop_oneof![
        any::<i64>().prop_map(Id::Number),
        (i64::MAX as u64 + 1..).prop_map(|n| Id::OtherNumber(n.into())),
        ".{0,12}".prop_map(Id::String),
        Just(Id::Null),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let error =
        (any::<i64>(), ".{0,12}", prop::option::of(json())).prop_map(|(code, message, data)| {
            RpcError {
                code,
                message,
                data: data.filter(|data| !data.is_null()),
            }
        });
    prop_oneof![
        (id(), ".{0,12}", json()).prop_map(|(id, method, params)| Message::Request {
            id,
            method,
            params
        }),
        (".{0,12}", json()).prop_map(|(method, params)| Message::Notification { method, params }),
        (id(), json()).prop_map(|(id, result)| response(id, Ok(result))),
        (id(), error).prop_map(|(id, error)| response(id, Err(error))),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_the_same(message in message()) {
        let line = message.to_line();
        let (newline, line) = line.split_last().unwrap();
        prop_assert_eq!(*newline, b'\n');
        prop_assert!(!line.contains(&b'\n'));
        prop_assert_eq!(Message::parse(line), Ok(message));
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(!Message::parse_all(&bytes).is_empty());
    }

    #[test]
    fn no_almost_message_panics(message in message(), at in 0_usize..200, byte: u8) {
        let mut line = message.to_line();
        let at = at % line.len();
        line[at] = byte;
        prop_assert!(!Message::parse_all(&line).is_empty());
        line.truncate(at);
        prop_assert!(!Message::parse_all(&line).is_empty());
    }

    #[test]
    fn no_json_panics(value in json()) {
        prop_assert!(!Message::parse_all(value.to_string().as_bytes()).is_empty());
    }

    /// Any mixture of escapes, surrogates and text between quotes is mended to something that can be read.
    #[test]
    fn any_mixture_of_surrogates_is_read(parts in prop::collection::vec(
        prop_oneof![
            Just(r"\ud83d"), Just(r"\ude00"), Just(r"\\"), Just(r"\n"), Just("é"), Just("u"), Just(r"\u0041")
        ], 0..12,
    )) {
        let line = format!("{{\"method\":\"m\",\"params\":\"{}\"}}", parts.concat());
        let message = Message::parse(line.as_bytes());
        prop_assert!(message.is_ok(), "{line}: {message:?}");
    }
}
