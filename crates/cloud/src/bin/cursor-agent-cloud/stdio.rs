//! Lines of JSON-RPC: in from stdin, out to stdout, each on a thread of its own.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::rc::Rc;
use std::sync::mpsc as threads;
use std::thread;
use std::time::Duration;

use acp::{Frame, Id, Incoming, Junk, LineBuffer, Message, Peer, RpcError, Ticket};
use serde::Serialize;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// How long the last lines may take to be read.
const FLUSH: Duration = Duration::from_secs(1);

/// The other side. A cheap handle.
#[derive(Clone)]
pub struct Peers {
    peer: Rc<RefCell<Peer<()>>>,
    lines: threads::Sender<Vec<u8>>,
}

impl Peers {
    pub fn notify(&self, method: &str, params: impl Serialize) {
        let line = self.peer.borrow().notify(method, params);
        let _ = self.lines.send(line);
    }

    pub fn answer(&self, ticket: Ticket, result: Result<Value, RpcError>) {
        let line = self.peer.borrow_mut().answer(ticket, result);
        if let Some(line) = line {
            let _ = self.lines.send(line);
        }
    }
}

/// Hands each request and notification to `handle`, until stdin ends or a signal comes.
pub async fn serve(mut handle: impl FnMut(&Peers, Incoming<()>)) -> io::Result<Peers> {
    let (lines, to_write) = threads::channel::<Vec<u8>>();
    let (arrived, mut arriving) = mpsc::channel(64);
    thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || read(&arrived))?;
    let (gone, mut writer_gone) = mpsc::channel::<()>(1);
    thread::Builder::new()
        .name("stdout".to_owned())
        .spawn(move || {
            let mut stdout = io::stdout();
            while let Ok(line) = to_write.recv() {
                if stdout
                    .write_all(&line)
                    .and_then(|()| stdout.flush())
                    .is_err()
                {
                    break;
                }
            }
            drop(gone);
        })?;
    let peers = Peers {
        peer: Rc::default(),
        lines,
    };
    // Ended in order, so that a command which is asked for the key ends too.
    let mut term = signal(SignalKind::terminate())?;
    loop {
        let message = tokio::select! {
            message = arriving.recv() => match message {
                Some(message) => message,
                None => break,
            },
            _ = writer_gone.recv() => break,
            _ = term.recv() => break,
        };
        match message {
            Ok(message) => {
                let incoming = peers.peer.borrow_mut().receive(message);
                handle(&peers, incoming);
            }
            Err(junk) => {
                let error = RpcError::new(RpcError::PARSE_ERROR, junk.to_string());
                let answer = Message::Response {
                    id: Id::Null,
                    result: Err(error),
                };
                let _ = peers.lines.send(answer.to_line());
            }
        }
    }
    Ok(peers)
}

/// Gives the writer a moment for what is left. To be called when nothing else holds the peers.
pub async fn flush(peers: Peers) {
    drop(peers);
    tokio::time::sleep(FLUSH / 20).await;
}

fn read(arrived: &mpsc::Sender<Result<Message, Junk>>) {
    let mut stdin = io::stdin().lock();
    let mut lines = LineBuffer::default();
    let mut block = vec![0; 64 * 1024];
    loop {
        match stdin.read(&mut block) {
            Ok(0) => break,
            Ok(read) => lines.push(&block[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        }
        while let Some(frame) = lines.next_frame() {
            if !pass_on(frame, arrived) {
                return;
            }
        }
    }
    while let Some(frame) = lines.finish() {
        if !pass_on(frame, arrived) {
            return;
        }
    }
}

fn pass_on(frame: Frame<'_>, arrived: &mpsc::Sender<Result<Message, Junk>>) -> bool {
    let messages = match frame {
        // Text from a file in another encoding: a question that cannot be read would never be answered.
        Frame::Line(line) => Message::parse_all(String::from_utf8_lossy(line).as_bytes()),
        Frame::TooLong { bytes } => vec![Err(Junk::NotJson(format!(
            "a line of {bytes} bytes is too long"
        )))],
    };
    messages
        .into_iter()
        .all(|message| arrived.blocking_send(message).is_ok())
}

/// A failure for the other side, with its kind and what identifies it.
pub fn rpc_error(error: &cloud::Error) -> RpcError {
    let code = match error.kind() {
        cloud::Kind::NoKey | cloud::Kind::Unauthorized => RpcError::AUTH_REQUIRED,
        cloud::Kind::NotFound => RpcError::RESOURCE_NOT_FOUND,
        cloud::Kind::Invalid => RpcError::INVALID_PARAMS,
        _ => RpcError::INTERNAL_ERROR,
    };
    RpcError::new(code, error.to_string()).with_data(serde_json::json!({
        "kind": error.kind().as_str(),
        "status": error.status(),
        "code": error.code(),
        "requestId": error.request_id(),
    }))
}
