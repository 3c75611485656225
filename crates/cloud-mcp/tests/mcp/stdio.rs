//! The program over stdin and stdout: its words, its end.

use cloud::fake::Options;
use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::kit::{KEY, SECRET, StdioClient, command, fake, hello, in_time};

#[tokio::test(flavor = "multi_thread")]
async fn help_version_and_wrong_words() {
    for (words, code, part) in [
        (&["--help"][..], 0, "CURSOR_API_KEY"),
        (&["http", "--help"][..], 0, "--allow-host"),
        (
            &["--version"][..],
            0,
            concat!("cursor-agent-mcp ", env!("CARGO_PKG_VERSION")),
        ),
        (&["serve"][..], 2, "expected stdio, http or token"),
        (&["http", "--port", "x"][..], 2, "--port"),
    ] {
        let output = command("http://127.0.0.1:9")
            .args(words)
            .output()
            .await
            .unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}");
        let said = if code == 0 {
            &output.stdout
        } else {
            &output.stderr
        };
        let said = String::from_utf8_lossy(said);
        assert!(said.contains(part), "{words:?}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_before_the_end_of_stdin_are_answered() {
    let fake = fake(Options::default()).await;
    let mut child = command(&fake.url()).arg("stdio").spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let lines = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello() }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "getMe" } }),
    ];
    for line in lines {
        stdin
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
    }
    drop(stdin);
    let output = in_time(child.wait_with_output()).await.unwrap();
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(said.contains("ada@example.org"), "{said}");
    assert_eq!(output.stderr, b"");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_with_its_client_and_by_signals() {
    let fake = fake(Options::default()).await;
    let mut client = StdioClient::start(command(&fake.url())).await;
    drop(client.stdin.take());
    assert_eq!(in_time(client.child.wait()).await.unwrap().code(), Some(0));
    for signal in ["-TERM", "-INT"] {
        let mut client = StdioClient::start(command(&fake.url())).await;
        let id = client.child.id().unwrap().to_string();
        let sent = std::process::Command::new("kill")
            .args([signal, &id])
            .status();
        assert!(sent.unwrap().success());
        assert_eq!(
            in_time(client.child.wait()).await.unwrap().code(),
            Some(0),
            "{signal}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_needs_a_secret_and_a_key() {
    let token = |secret: Option<&str>, key: Option<&str>| {
        let mut command = command("http://127.0.0.1:9");
        command.arg("token");
        if let Some(secret) = secret {
            command.env("TOKEN_SECRET", secret);
        }
        match key {
            Some(key) => command.env("CURSOR_API_KEY", key),
            None => command.env_remove("CURSOR_API_KEY"),
        };
        async move { command.output().await.unwrap() }
    };
    let made = token(Some(SECRET), Some(KEY)).await;
    assert!(made.status.success());
    let said = String::from_utf8(made.stdout).unwrap();
    assert!(
        said.starts_with("cat1_") && said.ends_with('\n') && !said.contains(KEY),
        "{said}"
    );
    assert!(String::from_utf8_lossy(&made.stderr).contains("the token expires at "));
    for (secret, key, part) in [
        (None, Some(KEY), "TOKEN_SECRET is not set"),
        (Some(SECRET), None, "CURSOR_API_KEY"),
    ] {
        let refused = token(secret, key).await;
        assert_eq!(refused.status.code(), Some(1));
        assert!(refused.stdout.is_empty());
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains(part), "{said}");
    }
}
