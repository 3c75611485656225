//! What the CLI is called with, and prompts of every length and content.

use serde_json::json;

use crate::kit::{Client, Double, message, result};

fn answering() -> Double {
    Double::saying(&[message("ok"), result("ok")])
}

#[test]
fn a_turn_is_one_call_of_the_headless_mode() {
    let double = answering();
    let (mut client, session) = Client::in_session(&double, &[]);
    client.prompt(&session, "say hi").unwrap();
    assert_eq!(
        double.args(1),
        [
            "--print",
            "--output-format",
            "stream-json",
            "--stream-partial-output",
            "--trust",
            "--approve-mcps",
            "--workspace",
            &double.work(),
            "--resume",
            &session,
            "say hi",
        ]
    );
    assert!(double.note("1.stdin").is_empty());
    let work = std::fs::canonicalize(double.work()).unwrap();
    assert_eq!(double.line("1.cwd"), work.to_str().unwrap());
    assert_eq!(double.line("create-chat.cwd"), work.to_str().unwrap());
}

#[test]
fn options_reach_the_cli() {
    let double = answering();
    double.script(
        "cursor-agent",
        &std::fs::read_to_string(double.program()).unwrap(),
    );
    std::fs::remove_file(double.program()).unwrap();
    // `cursor-agent` is taken where there is no `agent`.
    let (mut client, session) =
        Client::in_session(&double, &["--model", "gpt-5", "--mode", "plan", "--force"]);
    client.prompt(&session, "say hi").unwrap();
    assert_eq!(
        double.args(1)[6..],
        [
            "--workspace",
            &double.work(),
            "--model",
            "gpt-5",
            "--mode",
            "plan",
            "--resume",
            &session,
            "--force",
            "say hi",
        ]
    );
}

#[test]
fn what_follows_two_dashes_is_passed_on() {
    let double = answering();
    // The double knows its commands by the first argument.
    let inner = std::fs::read_to_string(double.program()).unwrap();
    double.script(
        "agent",
        &inner.replacen("command=$1", "[ \"$1\" != -k ] || shift; command=$1", 1),
    );
    let (mut client, session) = Client::in_session(&double, &["--", "-k"]);
    client.prompt(&session, "say hi").unwrap();
    assert!(
        double.note("commands").starts_with(b"create-chat") || !double.note("commands").is_empty()
    );
    assert_eq!(double.args(1)[0], "--print");
}

#[test]
fn prompts_arrive_whole() {
    let double = answering();
    let (mut client, session) = Client::in_session(&double, &[]);
    let long = "a line of the prompt\n".repeat(20_000);
    let at_limit = "x".repeat(131_072);
    let cases = [
        "plain",
        "two\nlines\n\nand a blank one",
        "\"quotes\" 'and' $variables `ticks` \\ * ? | ; &",
        "emoji 🙂 and ünïcödé",
        "tabs\tand\rreturns\r\n",
        "/summarize",
        "--help",
        "-p --force",
        "--",
        "-",
        "login",
        "update",
        "nul \0 inside",
        "\u{1b}[31mred",
        &long,
        &at_limit,
    ];
    for (number, prompt) in cases.iter().enumerate() {
        client.prompt(&session, prompt).unwrap();
        let args = double.args(number + 1);
        let stdin = String::from_utf8(double.note(&format!("{}.stdin", number + 1))).unwrap();
        let at = args.iter().position(|arg| arg == "--resume").unwrap() + 2;
        let arrived = match args.get(at) {
            Some(arg) => {
                assert_eq!(stdin, "", "twice");
                assert_eq!(args.len(), at + 1);
                arg.clone()
            }
            None => stdin,
        };
        assert!(
            arrived == *prompt,
            "case {number}: {} bytes of {}",
            arrived.len(),
            prompt.len()
        );
        if prompt.starts_with('-') || ["login", "update"].contains(prompt) {
            assert_eq!(
                args.len(),
                at,
                "{prompt} could be taken for an option or a command"
            );
        }
    }
}

#[test]
fn a_cli_that_does_not_read_its_prompt_is_no_trouble() {
    let double = answering();
    double.script("agent", "#!/bin/sh\ncase $1 in create-chat) echo 11111111-2222-4333-8444-555555555555 ;; models) exit 1 ;; *) echo 'too long for me' >&2; exit 1 ;; esac\n");
    let (mut client, session) = Client::in_session(&double, &[]);
    let error = client.prompt(&session, &"x".repeat(3_000_000)).unwrap_err();
    assert_eq!(error["message"], "too long for me");
}

#[test]
fn files_and_images_are_named_by_their_path() {
    let double = answering();
    let (mut client, session) = Client::in_session(&double, &[]);
    let shot = double.home().join("my shot.png");
    std::fs::write(&shot, "png").unwrap();
    let link = format!("file://{}/my%20shot.png", double.home().display());
    client
        .call(
            "session/prompt",
            json!({ "sessionId": session, "prompt": [
                { "type": "text", "text": "compare " },
                { "type": "resource_link", "uri": link, "name": "shot" },
                { "type": "text", "text": " with" },
                { "type": "image", "data": "aGVsbG8=", "mimeType": "image/png" },
                { "type": "resource_link", "uri": "https://example.com/x", "name": "x" },
            ] }),
        )
        .unwrap();
    let prompt = double.args(1).pop().unwrap();
    let start = format!("compare {} with\nImage: ", shot.display());
    assert!(prompt.starts_with(&start), "{prompt}");
    assert!(prompt.ends_with("\nhttps://example.com/x"), "{prompt}");
    let image = prompt[start.len()..].lines().next().unwrap();
    assert_eq!(std::fs::read(image).unwrap(), b"hello");
    assert!(image.ends_with(".png"));
    // For the user's eyes only.
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(image).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0);
}
