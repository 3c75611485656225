//! The connection to the client: lines in from stdin, lines out to stdout, and which of our requests wait for an answer.
//!
//! `acp::Peer` would see to it that ids differ and that everything is answered once. An agent that has to misbehave on request needs the
//! opposite: any id, an answer twice, none at all, half a line. So requests are matched here by the id as it stands on the wire.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, VecDeque},
    fs::File,
    io::{self, Read, Write},
    os::fd::AsFd,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use acp::{Frame, LineBuffer, Message, RpcError};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::record::Record;

/// How much is read, and written of long things, at once.
const BLOCK_BYTES: usize = 64 * 1024;

/// Raw bytes are shown in the record up to here.
const RECORDED_RAW_BYTES: usize = 200;

pub type ClientAnswer = Result<Value, RpcError>;

/// A cheap handle to the one connection.
#[derive(Debug, Clone)]
pub struct Wire(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    record: Record,
    /// None after stdout was closed, by us or by the client.
    out: RefCell<Option<File>>,
    next_id: Cell<i64>,
    /// By the id as JSON; several when the same one was used again.
    waiting: RefCell<HashMap<String, VecDeque<oneshot::Sender<ClientAnswer>>>>,
    /// Updates that come a moment after an answer: session and update.
    late: RefCell<Vec<(String, Value)>>,
}

impl Wire {
    pub fn new(record: Record) -> io::Result<Self> {
        let out = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Self(Rc::new(Inner {
            record,
            out: RefCell::new(Some(File::from(out))),
            next_id: Cell::new(0),
            waiting: RefCell::default(),
            late: RefCell::default(),
        })))
    }

    pub fn record(&self) -> &Record {
        &self.0.record
    }

    pub fn send(&self, message: &Value) {
        // First, so that a test which saw the message finds it in the record.
        self.0.record.sent(message, 1);
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        self.write(&line);
    }

    pub fn notify(&self, method: &str, params: Option<Value>) {
        self.send(&call(None, method, params));
    }

    pub fn update(&self, session: &str, update: &Value) {
        self.notify(
            "session/update",
            Some(json!({ "sessionId": session, "update": update })),
        );
    }

    /// Keeps an update back until `send_late`.
    pub fn hold_back(&self, session: String, update: Value) {
        self.0.late.borrow_mut().push((session, update));
    }

    /// Sends what was held back, if that has not happened yet.
    pub fn send_late(&self) {
        for (session, update) in self.0.late.take() {
            self.update(&session, &update);
        }
    }

    pub fn answer(&self, id: &Value, answer: &Result<Value, RpcError>) {
        self.send(&match answer {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        });
    }

    /// Sends a request; the receiver gets the answer, or is closed when the connection is.
    pub fn request(
        &self,
        id: &Value,
        method: &str,
        params: Option<Value>,
    ) -> oneshot::Receiver<ClientAnswer> {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.0.waiting.borrow_mut();
        waiting.entry(id.to_string()).or_default().push_back(sender);
        drop(waiting);
        self.send(&call(Some(id), method, params));
        receiver
    }

    /// Hands a response to its request; to the oldest if the id was used twice.
    pub fn resolve(&self, id: &Value, answer: ClientAnswer) -> bool {
        let mut waiting = self.0.waiting.borrow_mut();
        let key = id.to_string();
        let Some(queue) = waiting.get_mut(&key) else {
            return false;
        };
        let sender = queue.pop_front();
        if queue.is_empty() {
            waiting.remove(&key);
        }
        // The waiting task may have been cancelled meanwhile; its response still counts as in time.
        sender.is_some_and(|sender| sender.send(answer).is_ok())
    }

    /// 0, 1, 2 …: from the numbers a client uses as well.
    pub fn next_id(&self) -> i64 {
        self.0.next_id.replace(self.0.next_id.get() + 1)
    }

    pub fn raw(&self, bytes: &[u8]) {
        let shown = bytes.get(..RECORDED_RAW_BYTES).unwrap_or(bytes);
        let text = String::from_utf8_lossy(shown);
        self.0
            .record
            .note("raw", json!({ "text": text, "bytes": bytes.len() }));
        self.write(bytes);
    }

    /// Writes `text` `times` times, in blocks: 100 MB are never in memory.
    pub fn raw_repeat(&self, text: &[u8], times: u64) {
        if text.is_empty() {
            return;
        }
        let bytes = times.saturating_mul(text.len() as u64);
        self.0.record.note("raw", json!({ "bytes": bytes }));
        self.write_repeated(text, times);
    }

    /// One message with a long text in it: `before`, `text` repeated `times` times, `after`.
    pub fn big_message(&self, before: &[u8], text: &[u8], times: u64, after: &[u8]) {
        let bytes = times
            .saturating_mul(text.len() as u64)
            .saturating_add((before.len() + after.len()) as u64);
        self.0.record.note("big_text", json!({ "bytes": bytes }));
        self.write(before);
        self.write_repeated(text, times);
        self.write(after);
    }

    /// Lines that were put together beforehand. The caller records them.
    pub fn lines(&self, bytes: &[u8]) {
        self.write(bytes);
    }

    /// The client sees the end of the stream while the process lives on.
    pub fn close_stdout(&self) -> io::Result<()> {
        self.0.record.note("stdout closed", json!({}));
        self.0.out.borrow_mut().take();
        let nowhere = File::options().write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdout(nowhere)?;
        Ok(())
    }

    fn write_repeated(&self, text: &[u8], times: u64) {
        let at_once = (BLOCK_BYTES / text.len().max(1)).max(1) as u64;
        let block = text.repeat(usize::try_from(at_once.min(times)).unwrap_or(1));
        for _ in 0..times / at_once {
            self.write(&block);
        }
        for _ in 0..times % at_once {
            self.write(text);
        }
    }

    fn write(&self, bytes: &[u8]) {
        let mut out = self.0.out.borrow_mut();
        let Some(file) = out.as_mut() else { return };
        if let Err(error) = file.write_all(bytes) {
            // The client is gone. EOF on stdin will tell us shortly.
            self.0
                .record
                .note("stdout lost", json!({ "error": error.to_string() }));
            out.take();
        }
    }
}

/// A request with an id, a notification without.
pub fn call(id: Option<&Value>, method: &str, params: Option<Value>) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "method": method });
    if let Some(id) = id {
        message["id"] = id.clone();
    }
    if let Some(params) = params {
        message["params"] = params;
    }
    message
}

/// What came from the client.
#[derive(Debug)]
pub enum Arrived {
    Message(Value, Message),
    Junk(String),
    Eof,
}

/// Stops reading stdin permanently.
#[derive(Debug, Clone, Default)]
pub struct Deaf(Arc<AtomicBool>);

impl Deaf {
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Reads stdin on a thread of its own, so that a client which does not read us can still be heard.
pub fn read_stdin(deaf: Deaf) -> io::Result<mpsc::UnboundedReceiver<Arrived>> {
    let (sender, receiver) = mpsc::unbounded_channel();
    thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            let mut stdin = io::stdin().lock();
            let mut lines = LineBuffer::default();
            let mut block = vec![0; BLOCK_BYTES];
            loop {
                while deaf.is_set() {
                    thread::park();
                }
                match stdin.read(&mut block) {
                    Ok(0) => break,
                    Ok(read) => lines.push(&block[..read]),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
                while let Some(frame) = lines.next_frame() {
                    if sender.send(read_frame(frame)).is_err() {
                        return;
                    }
                }
            }
            if let Some(frame) = lines.finish() {
                let _ = sender.send(read_frame(frame));
            }
            let _ = sender.send(Arrived::Eof);
        })?;
    Ok(receiver)
}

fn read_frame(frame: Frame<'_>) -> Arrived {
    let line = match frame {
        Frame::Line(line) => line,
        Frame::TooLong { bytes } => return Arrived::Junk(format!("a line of {bytes} bytes")),
    };
    let text = || String::from_utf8_lossy(line).into_owned();
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        return Arrived::Junk(text());
    };
    match Message::from_value(value.clone()) {
        Ok(message) => Arrived::Message(value, message),
        Err(_) => Arrived::Junk(text()),
    }
}
