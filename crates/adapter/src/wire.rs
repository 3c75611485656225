//! The connection to the client: lines in from stdin, lines out to stdout, each on a thread of its own.
//!
//! What goes out waits in a queue, so that a client that does not read blocks nothing that listens to it. The queue is bounded:
//! turns wait for room in it before they read more of the CLI, and stdin is left alone while it is far too full.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use acp::{Frame, Junk, LineBuffer, Message};
use tokio::sync::{Notify, mpsc};

/// How much is read at once.
const BLOCK_BYTES: usize = 64 * 1024;

/// Lines are written together up to here.
const BATCH_BYTES: usize = 64 * 1024;

/// A turn waits while more than this is unsent. One message may be larger.
const TURN_BYTES: usize = 2 * 1024 * 1024;

/// Nothing more is read from the client while more than this is unsent.
const INPUT_BYTES: usize = 16 * 1024 * 1024;

/// Messages that were read and not yet handled.
const INPUT_MESSAGES: usize = 16;

/// What came from the client.
#[derive(Debug)]
pub enum Arrived {
    /// A message.
    Message(Message),
    /// A line that is none.
    Junk(Junk),
}

/// Reads stdin. The channel ends when stdin does.
///
/// # Errors
/// When no thread can be had.
pub fn read_stdin() -> io::Result<mpsc::Receiver<Arrived>> {
    let (sender, receiver) = mpsc::channel(INPUT_MESSAGES);
    thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            let mut stdin = io::stdin().lock();
            let mut lines = LineBuffer::default();
            let mut block = vec![0; BLOCK_BYTES];
            loop {
                match stdin.read(&mut block) {
                    Ok(0) => break,
                    Ok(read) => lines.push(&block[..read]),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(_) => break,
                }
                while let Some(frame) = lines.next_frame() {
                    if !pass_on(frame, &sender) {
                        return;
                    }
                }
            }
            while let Some(frame) = lines.finish() {
                if !pass_on(frame, &sender) {
                    return;
                }
            }
        })?;
    Ok(receiver)
}

fn pass_on(frame: Frame<'_>, sender: &mpsc::Sender<Arrived>) -> bool {
    let messages = match frame {
        Frame::Line(line) => Message::parse_all(line),
        Frame::TooLong { bytes } => {
            let why = format!("a line of {bytes} bytes is too long");
            vec![Err(Junk::NotJson(why))]
        }
    };
    messages.into_iter().all(|message| {
        let arrived = match message {
            Ok(message) => Arrived::Message(message),
            Err(junk) => Arrived::Junk(junk),
        };
        sender.blocking_send(arrived).is_ok()
    })
}

/// What goes out. A cheap handle.
#[derive(Debug, Clone)]
pub struct ToClient(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// There is something to write.
    filled: Condvar,
    /// Something was written, or nothing more can be.
    drained: Notify,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<Vec<u8>>,
    /// In the queue and in the hands of the writer.
    bytes: usize,
    /// How much was written so far.
    written: u64,
    /// The client does not read any more.
    closed: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ToClient {
    /// Writes to stdout from now on.
    ///
    /// # Errors
    /// When no thread can be had.
    pub fn to_stdout() -> io::Result<Self> {
        let to_client = Self(Arc::default());
        let shared = Arc::clone(&to_client.0);
        thread::Builder::new()
            .name("stdout".to_owned())
            .spawn(move || write_out(&shared, &mut io::stdout()))?;
        Ok(to_client)
    }

    /// Puts a line at the end of the queue.
    pub fn send(&self, line: Vec<u8>) {
        let mut state = self.0.state();
        if state.closed {
            return;
        }
        state.bytes += line.len();
        state.lines.push_back(line);
        self.0.filled.notify_one();
    }

    /// Waits until a turn may say more.
    pub async fn room(&self) {
        self.until(|state| state.closed || state.bytes <= TURN_BYTES)
            .await;
    }

    /// Waits until the client may say more.
    pub async fn room_for_answers(&self) {
        self.until(|state| state.closed || state.bytes <= INPUT_BYTES)
            .await;
    }

    /// Waits until the client is gone.
    pub async fn closed(&self) {
        self.until(|state| state.closed).await;
    }

    /// Waits until everything is written, as long as anything is within `pause`.
    pub async fn flush(&self, pause: Duration) {
        let mut last = (0, Instant::now());
        loop {
            {
                let state = self.0.state();
                if state.closed || state.bytes == 0 {
                    return;
                }
                if state.written != last.0 {
                    last = (state.written, Instant::now());
                }
            }
            let left = pause.saturating_sub(last.1.elapsed());
            if left.is_zero() {
                return;
            }
            let drained = self.until(|state| state.closed || state.bytes == 0);
            let _ = tokio::time::timeout(left.min(Duration::from_millis(50)), drained).await;
        }
    }

    async fn until(&self, done: impl Fn(&State) -> bool) {
        loop {
            let mut drained = pin!(self.0.drained.notified());
            // Counted from here on, so that nothing between the look and the wait is missed.
            drained.as_mut().enable();
            if done(&self.0.state()) {
                return;
            }
            drained.await;
        }
    }
}

fn write_out(shared: &Shared, out: &mut impl Write) {
    loop {
        let mut batch = Vec::new();
        {
            let mut state = shared.state();
            while state.lines.is_empty() {
                state = shared
                    .filled
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            while let Some(line) = state.lines.pop_front() {
                if batch.is_empty() {
                    batch = line;
                } else {
                    batch.extend_from_slice(&line);
                }
                if batch.len() >= BATCH_BYTES {
                    break;
                }
            }
        }
        for block in batch.chunks(BATCH_BYTES) {
            let written = out.write_all(block).and_then(|()| out.flush());
            let mut state = shared.state();
            state.bytes = state.bytes.saturating_sub(block.len());
            state.written += block.len() as u64;
            if written.is_err() {
                state.closed = true;
                state.lines.clear();
            }
            drop(state);
            shared.drained.notify_waiters();
            if written.is_err() {
                return;
            }
        }
    }
}
