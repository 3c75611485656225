//! The key is nowhere but in the header.

use cloud::fake::{Fault, Options, What};
use cloud::{Client, Config, Key, KeySource, Kind};

use crate::kit::{KEY, client, config, fake, ms};
use crate::raw::{Raw, Say, events};

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
        (
            vec!["true"],
            "`true`, which should print the Cursor API key, printed nothing",
        ),
        (vec!["printf", "\\n  \\n"], "printed nothing"),
        (vec![], "is empty"),
        (vec!["echo", "not a key"], "printed invalid characters"),
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
async fn a_command_that_hangs_is_ended() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let script = format!("echo $$ > {}; exec sleep 600", pid.display());
    let words = ["sh", "-c", &script].map(str::to_owned).to_vec();
    let source = KeySource::command(words).within(ms(1500));
    let error = source.key().await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("took more than 1.5 s"), "{text}");
    assert!(!text.contains(&script), "{text}");
    let pid = std::fs::read_to_string(pid).unwrap();
    let alive = std::path::PathBuf::from(format!("/proc/{}/fd", pid.trim()));
    for _ in 0..100 {
        if std::fs::read_dir(&alive).map_or(true, |mut files| files.next().is_none()) {
            return;
        }
        tokio::time::sleep(ms(50)).await;
    }
    unreachable!("the command still runs");
}

#[tokio::test]
async fn a_command_that_fails_is_asked_once_for_those_that_wait() {
    let fake = fake(Options::default()).await;
    let dir = tempfile::tempdir().unwrap();
    let ran = dir.path().join("ran");
    let script = format!("echo . >> {}; sleep 0.3; exit 1", ran.display());
    let words = ["sh", "-c", &script].map(str::to_owned).to_vec();
    let client = Client::new(Config {
        key: KeySource::command(words),
        ..config(&fake)
    })
    .unwrap();
    let (first, second, third) = tokio::join!(client.me(), client.models(), client.repositories());
    for error in [first.unwrap_err(), second.unwrap_err(), third.unwrap_err()] {
        assert_eq!(error.kind(), Kind::NoKey);
    }
    assert_eq!(std::fs::read_to_string(&ran).unwrap().lines().count(), 1);
    // A later try asks again.
    client.me().await.unwrap_err();
    assert_eq!(std::fs::read_to_string(&ran).unwrap().lines().count(), 2);
}

#[tokio::test]
async fn a_command_is_asked_again_when_the_api_has_refused_its_key() {
    let fake = fake(Options::default()).await;
    let dir = tempfile::tempdir().unwrap();
    let ran = dir.path().join("ran");
    // The first key was revoked meanwhile.
    let old = "key_revoked_0123456789";
    let script = format!(
        "echo . >> {0}; if [ $(wc -l < {0}) = 1 ]; then echo {old}; else echo {KEY}; fi",
        ran.display()
    );
    let words = ["sh", "-c", &script].map(str::to_owned).to_vec();
    let client = Client::new(Config {
        key: KeySource::command(words),
        ..config(&fake)
    })
    .unwrap();
    let (first, second, third) = tokio::join!(client.me(), client.models(), client.repositories());
    for error in [first.unwrap_err(), second.unwrap_err(), third.unwrap_err()] {
        assert_eq!(error.kind(), Kind::Unauthorized);
    }
    let (first, second, third) = tokio::join!(client.me(), client.models(), client.repositories());
    first.unwrap();
    second.unwrap();
    third.unwrap();
    assert_eq!(std::fs::read_to_string(&ran).unwrap().lines().count(), 2);
    // An error that repeats the older one does not show it either.
    fake.fault(Fault::once(
        "/me",
        What::Refuse {
            status: 403,
            code: old.to_owned(),
            retry_after: None,
        },
    ));
    assert_eq!(client.me().await.unwrap_err().code(), Some("[key]"));
}

#[tokio::test]
async fn a_server_that_repeats_the_key_in_a_header_or_a_stream() {
    let raw = Raw::start(|asked, _| {
        if asked.line.ends_with("/stream") {
            let data = format!("{{\"code\":\"unauthorized\",\"message\":\"not {KEY}\"}}");
            events(&format!("event: error\ndata: {data}\n\n"))
        } else {
            let body = format!("{{\"error\":\"not {KEY}\"}}");
            Say {
                bytes: format!(
                    "HTTP/1.1 403 X\r\nx-request-id: {KEY}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                )
                .into_bytes(),
                ..Say::default()
            }
        }
    })
    .await;
    let client = raw.client();
    let error = client.me().await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains(KEY), "{error:?}");
    let error = client
        .stream("bc-1", "run-1")
        .next()
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(error.kind(), Kind::Unauthorized);
    assert!(!format!("{error} {error:?}").contains(KEY), "{error:?}");
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
