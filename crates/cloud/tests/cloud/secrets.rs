//! The key is nowhere but in the header.

use cloud::fake::{Fault, Options, What};
use cloud::{Client, Config, Key, KeySource, Kind};

use crate::kit::{KEY, client, config, fake};

#[tokio::test]
async fn no_debug_and_no_error_has_the_key() {
    let fake = fake(Options::default()).await;
    let client = client(&fake);
    client.me().await.unwrap();
    assert!(!format!("{client:?} {:?} {:?}", config(&fake), Key::new(KEY)).contains(KEY));
    // A server, or a proxy, that repeats what it was sent.
    fake.fault(Fault::once(
        "/me",
        What::Refuse {
            status: 403,
            code: KEY.to_owned(),
            retry_after: None,
        },
    ));
    let error = client.me().await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains(KEY), "{error:?}");
    assert_eq!(error.code(), Some("[key]"));
}

#[tokio::test]
async fn keys_come_from_commands() {
    let fake = fake(Options::default()).await;
    let with = |words: &[&str]| {
        let key = KeySource::command(words.iter().map(|&word| word.to_owned()).collect());
        Client::new(Config {
            key,
            ..config(&fake)
        })
        .unwrap()
    };
    with(&["sh", "-c", &format!("echo; printf ' {KEY} \nnotes\n'")])
        .me()
        .await
        .unwrap();
    for (words, why) in [
        (
            vec!["sh", "-c", "echo half-a-secret; exit 3"],
            "failed (exit status: 3)",
        ),
        (vec!["/nonexistent/pass"], "did not start"),
        (vec!["true"], "is empty"),
        (vec![], "is empty"),
        (vec!["echo", "not a key"], "characters that no key has"),
    ] {
        let error = with(&words).me().await.unwrap_err();
        let text = error.to_string();
        assert_eq!(error.kind(), Kind::NoKey);
        assert!(
            text.contains(why) && !text.contains("half-a-secret"),
            "{text}"
        );
    }
    assert_eq!(fake.requests().len(), 1);
}

#[tokio::test]
async fn without_a_key_nothing_is_sent() {
    let fake = fake(Options::default()).await;
    let client = Client::new(Config {
        key: KeySource::default(),
        ..config(&fake)
    })
    .unwrap();
    let error = client.me().await.unwrap_err();
    assert_eq!(error.kind(), Kind::NoKey);
    assert!(error.to_string().contains("CURSOR_API_KEY"), "{error}");
    assert!(fake.requests().is_empty());
}
