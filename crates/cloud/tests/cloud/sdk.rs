//! Cursor's own SDK takes the fake for the API, so that it cannot drift.

use std::path::Path;
use std::process::Stdio;

use cloud::fake::Options;
use serde_json::{Value, json};

use crate::kit::{KEY, fake, ms};

/// Node and the SDK's directory; None, and a word of why, where npm cannot bring them.
fn sdk() -> Option<(String, String)> {
    let install = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/real/install");
    let output = std::process::Command::new(install)
        .arg("cursor-sdk")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let words = String::from_utf8(output.stdout).unwrap();
    let mut words = words.lines();
    match (output.status.success(), words.next(), words.next()) {
        (true, Some(node), Some(file)) => {
            let dir = Path::new(file).parent().unwrap();
            Some((node.to_owned(), dir.to_str().unwrap().to_owned()))
        }
        _ => {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            #[expect(
                clippy::print_stderr,
                reason = "the only way a test can say it was skipped"
            )]
            {
                eprintln!("skipped: {why}");
            }
            None
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sdk_creates_lists_streams_follows_up_and_cancels() {
    let Some((node, sdk)) = sdk() else { return };
    let fake = fake(Options {
        agents: 10,
        pace: ms(2),
        ..Options::default()
    })
    .await;
    let output = tokio::process::Command::new(node)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk/client.mjs"))
        .arg(sdk)
        .env("CURSOR_BACKEND_URL", fake.url())
        .env("CURSOR_API_KEY", KEY)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let check = |name: &str, expected: Value| assert_eq!(report[name], expected, "{name}");
    check("me", json!("ada@example.org"));
    check("models", json!(["composer-2.5", "gpt-5", "claude-opus"]));
    check("minted", json!(true));
    check("more", json!("string"));
    check("got", json!("Fix the parser, naïvely ✓"));
    check("busy", json!("AgentBusyError"));
    check("cancelled", json!("cancelled"));
    check("runs", json!(4));
    check("artifact", json!("# Report\n\nAll tests pass.\n"));
    check("refused", json!("AuthenticationError"));
    check("limited", json!("RateLimitError"));
    check("archived", json!(true));
    check("deleted", json!("ConfigurationError"));
    assert_eq!(
        report["listed"][0],
        json!([true, null, ["https://github.com/acme/app"]])
    );

    let whole = &report["whole"];
    assert_eq!(whole["status"], "finished");
    assert!(
        whole["said"].as_str().unwrap().ends_with("The tests pass."),
        "{whole}"
    );
    assert_eq!(whole["said"], whole["deltas"]);
    assert!(whole["pr"].as_str().unwrap().contains("/pull/"), "{whole}");
    assert_eq!(
        whole["kinds"].as_array().unwrap().len(),
        10,
        "the SDK did not take an update: {whole}"
    );
    for cut in report["cut"].as_array().unwrap() {
        for part in ["status", "said", "deltas", "tools"] {
            assert_eq!(cut[part], whole[part], "{part} after a cut");
        }
    }
    // The SDK took both streams up again where they were cut.
    let resumed = fake
        .requests()
        .iter()
        .filter(|one| one.last_event_id.is_some())
        .count();
    assert_eq!(resumed, 2);
}
