//! The program against a server of WebSocket's: messages both ways, the bearer, and every way a connection ends.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Message, WebSocket, accept_hdr};

type Peer = WebSocket<std::net::TcpStream>;

/// A server for one connection; reports what came with the request.
fn serve(work: impl FnOnce(Peer) + Send + 'static) -> (String, Receiver<(String, Option<String>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        #[expect(clippy::result_large_err, reason = "the library's own signature")]
        let look = |request: &Request, response: Response| {
            let bearer = request.headers().get("authorization");
            let bearer = bearer.map(|value| value.to_str().unwrap().to_owned());
            let refused = bearer.as_deref() == Some("Bearer wrong");
            tell.send((request.uri().to_string(), bearer)).unwrap();
            if refused {
                let mut error = ErrorResponse::new(None);
                *error.status_mut() = 401.try_into().unwrap();
                return Err(error);
            }
            Ok(response)
        };
        if let Ok(peer) = accept_hdr(stream, look) {
            work(peer);
        }
    });
    (url, told)
}

fn start(url: &str, args: &[&str], token: Option<&str>) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cursor-agent-connect"));
    command.arg(url).args(args).env_remove("ACP_TOKEN");
    if let Some(token) = token {
        command.env("ACP_TOKEN", token);
    }
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Its end: exit code, what is left on stdout, stderr.
fn end(mut child: Child) -> (Option<i32>, String, String) {
    let until = Instant::now() + Duration::from_secs(20);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let (mut out, mut err) = (String::new(), String::new());
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_string(&mut out).unwrap();
    }
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    (child.wait().unwrap().code(), out, err)
}

#[test]
fn messages_go_both_ways_whole_and_in_order() {
    const COUNT: usize = 200;
    let big = "x".repeat(3_000_000);
    let sent = big.clone();
    let (url, told) = serve(move |mut peer| {
        for number in 0..COUNT {
            let got = peer.read().unwrap().into_text().unwrap();
            assert_eq!(got.as_str(), format!("{{\"n\":{number}}}"));
        }
        assert_eq!(
            peer.read().unwrap().into_text().unwrap().len(),
            sent.len() + 2
        );
        // Binary frames mean nothing; a message may have line breaks between its parts.
        peer.send(Message::Binary(vec![1, 2, 3].into())).unwrap();
        peer.send(Message::Ping(Vec::new().into())).unwrap();
        peer.send(Message::text("{\n  \"a\":\r\n 1\n}")).unwrap();
        peer.send(Message::text(format!("\"{sent}\""))).unwrap();
        // Until the client closes.
        while let Ok(message) = peer.read() {
            if message.is_close() {
                break;
            }
        }
        let _ = peer.flush();
    });
    let mut child = start(&url, &[], None);
    let mut stdin = child.stdin.take().unwrap();
    for number in 0..COUNT {
        // Torn in the middle.
        let line = format!("{{\"n\":{number}}}\n");
        stdin.write_all(&line.as_bytes()[..3]).unwrap();
        stdin.flush().unwrap();
        stdin.write_all(&line.as_bytes()[3..]).unwrap();
    }
    writeln!(stdin, "\"{big}\"").unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "{   \"a\":   1 }");
    assert_eq!(lines.next().unwrap().unwrap().len(), big.len() + 2);
    assert_eq!(told.recv().unwrap(), ("/acp".to_owned(), None));
    drop(stdin);
    let (code, _, err) = end(child);
    assert_eq!((code, err.as_str()), (Some(0), ""));
}

#[test]
fn the_bearer_comes_from_a_command_or_the_environment() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("token");
    std::fs::write(
        &script,
        "#!/bin/sh\nprintf '\\n of-the-command \\nmore\\n'\n",
    )
    .unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let command = ["--token-command", script.to_str().unwrap()];
    for (args, token, expected) in [
        (&command[..], Some("of-the-env"), "Bearer of-the-command"),
        (&[], Some(" of-the-env\n"), "Bearer of-the-env"),
    ] {
        let (url, told) = serve(|mut peer| {
            let _ = peer.close(None);
            while peer.read().is_ok() {}
        });
        let child = start(&format!("{url}/deep?x=1"), args, token);
        assert_eq!(
            told.recv().unwrap(),
            ("/deep?x=1".to_owned(), Some(expected.to_owned()))
        );
        assert_eq!(end(child).0, Some(0));
    }
}

#[test]
fn every_failure_is_said_on_stderr() {
    let (url, _told) = serve(|_| {});
    let (code, out, err) = end(start(&url, &[], Some("wrong")));
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(
        err.contains("401") && err.contains("check the token"),
        "{err}"
    );
    assert!(!err.contains("wrong"), "{err}");

    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let (code, _, err) = end(start(&format!("ws://{free}"), &[], None));
    assert_eq!(code, Some(1));
    assert!(
        err.contains(&format!("cannot connect to ws://{free}/acp")),
        "{err}"
    );

    let (url, _told) = serve(|mut peer| {
        let frame = CloseFrame {
            code: CloseCode::Error,
            reason: "out of memory".into(),
        };
        let _ = peer.close(Some(frame));
        while peer.read().is_ok() {}
    });
    let (code, _, err) = end(start(&url, &[], None));
    assert_eq!(code, Some(1));
    assert!(err.contains("out of memory"), "{err}");

    // Gone without a word.
    let (url, _told) = serve(drop);
    let (code, _, err) = end(start(&url, &[], None));
    assert_eq!(code, Some(1));
    assert!(err.contains("lost"), "{err}");

    let (url, _told) = serve(drop);
    let (code, _, err) = end(start(&url, &["--token-command", "false"], None));
    assert_eq!(code, Some(1));
    assert!(err.contains("the token command failed: false"), "{err}");

    let (code, _, err) = end(start("nonsense", &[], None));
    assert_eq!(code, Some(2));
    assert!(err.contains("usage:"), "{err}");
}

#[test]
fn a_server_that_does_not_read_or_close_does_not_keep_it() {
    let (url, _told) = serve(|peer| {
        std::thread::sleep(Duration::from_secs(30));
        drop(peer);
    });
    let mut child = start(&url, &[], None);
    std::thread::sleep(Duration::from_millis(200));
    drop(child.stdin.take());
    let started = Instant::now();
    assert_eq!(end(child).0, Some(0));
    assert!(started.elapsed() < Duration::from_secs(5));
}
