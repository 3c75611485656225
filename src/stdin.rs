//! Writes to an agent: in order, without dropping anything, and reports when the agent stops reading.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::unix::pipe;
use tokio::process::ChildStdin;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How long an agent may leave input unread before that is reported.
const STALL_WAIT: Duration = Duration::from_millis(if cfg!(test) { 50 } else { 10_000 });
/// While more than this is unwritten, nothing is read from the agent: its requests would only add to it.
const MAX_WAITING_BYTES: usize = 16 * 1024 * 1024;
/// How often to check whether it has shrunk.
const POLL: Duration = Duration::from_millis(20);
/// Size of a single write, small enough to see whether any of it is read.
const PIECE_BYTES: usize = 64 * 1024;

/// How often to check again whether a pipe that seemed closed really is.
const CLOSED_POLL: Duration = Duration::from_secs(1);

/// How writing to a process ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// We closed it.
    Closed,
    /// The process no longer reads.
    Lost,
}

/// The sending end. Dropping it closes the pipe once all lines are written.
#[derive(Debug)]
pub struct Sender {
    lines: UnboundedSender<Vec<u8>>,
    waiting: Waiting,
}

/// The receiving end.
#[derive(Debug)]
pub struct Receiver {
    lines: UnboundedReceiver<Vec<u8>>,
    waiting: Waiting,
}

/// Bytes queued between the two.
#[derive(Debug, Clone, Default)]
pub struct Waiting(Arc<AtomicUsize>);

pub fn channel() -> (Sender, Receiver) {
    let (sender, receiver) = unbounded_channel();
    let waiting = Waiting::default();
    (
        Sender {
            lines: sender,
            waiting: waiting.clone(),
        },
        Receiver {
            lines: receiver,
            waiting,
        },
    )
}

impl Sender {
    /// Queues a line. The process may be gone; its exit is noticed on stdout.
    pub fn send(&self, line: Vec<u8>) {
        self.waiting.0.fetch_add(line.len(), Ordering::Relaxed);
        if self.lines.send(line).is_err() {
            self.waiting.0.store(0, Ordering::Relaxed);
        }
    }
}

impl Waiting {
    pub fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits until few enough are queued to read on.
    pub async fn room(&self) {
        while self.bytes() > MAX_WAITING_BYTES {
            tokio::time::sleep(POLL).await;
        }
    }
}

impl Receiver {
    pub fn waiting(&self) -> Waiting {
        self.waiting.clone()
    }

    /// Writes lines until the sender is dropped, then closes the pipe. `stalled` is called with the number of
    /// queued bytes when the agent reads none of them, and with None when it reads again.
    pub async fn write_to(self, stdin: ChildStdin, stalled: impl FnMut(Option<usize>)) -> End {
        match stdin.into_owned_fd().and_then(pipe::Sender::from_owned_fd) {
            Ok(pipe) => self.write_to_pipe(pipe, stalled).await,
            Err(_) => End::Lost,
        }
    }

    /// The next line, or None at the end; an error when the other side closes its end, which is noticed even
    /// when there is nothing to write.
    async fn next(&mut self, pipe: &pipe::Sender) -> Result<Option<Vec<u8>>, ()> {
        let mut closed = pin!(closed_by_reader(pipe));
        let mut next = pin!(self.lines.recv());
        poll_fn(|context| match next.as_mut().poll(context) {
            Poll::Ready(line) => Poll::Ready(Ok(line)),
            Poll::Pending => closed.as_mut().poll(context).map(Err),
        })
        .await
    }

    async fn write_to_pipe(
        mut self,
        mut stdin: pipe::Sender,
        mut stalled: impl FnMut(Option<usize>),
    ) -> End {
        let mut is_stalled = false;
        loop {
            let mut batch = match self.next(&stdin).await {
                Err(()) => return End::Lost,
                Ok(None) => return End::Closed,
                Ok(Some(line)) => line,
            };
            // Queued lines go out in one write.
            while batch.len() < PIECE_BYTES {
                let Ok(line) = self.lines.try_recv() else {
                    break;
                };
                batch.extend_from_slice(&line);
            }
            let mut rest = batch.as_slice();
            while !rest.is_empty() {
                let piece = &rest[..rest.len().min(PIECE_BYTES)];
                let written = match tokio::time::timeout(STALL_WAIT, stdin.write(piece)).await {
                    Err(_) => {
                        if !is_stalled {
                            is_stalled = true;
                            stalled(Some(self.waiting.bytes()));
                        }
                        continue;
                    }
                    Ok(Ok(0) | Err(_)) => return End::Lost,
                    Ok(Ok(written)) => written,
                };
                self.waiting.0.fetch_sub(written, Ordering::Relaxed);
                rest = rest.get(written..).unwrap_or_default();
                if is_stalled {
                    is_stalled = false;
                    stalled(None);
                }
            }
        }
    }
}

/// Waits until the reader has closed the pipe.
async fn closed_by_reader(pipe: &pipe::Sender) {
    loop {
        match pipe.ready(Interest::ERROR).await {
            Ok(ready) if ready.is_error() || ready.is_write_closed() => return,
            Ok(_) => tokio::time::sleep(CLOSED_POLL).await,
            // Then a write will fail instead.
            Err(_) => std::future::pending::<()>().await,
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // Nothing is queued for a closed pipe.
        self.waiting.0.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use tokio::io::AsyncReadExt;

    #[test]
    fn who_does_not_read_is_named_and_loses_nothing() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        // Fail rather than hang if the file never shows up.
        let deadline = Duration::from_secs(30);
        let ended = runtime.block_on(async { tokio::time::timeout(deadline, stall()).await });
        assert!(ended.is_ok(), "within {deadline:?}");
    }

    async fn stall() {
        let (sender, receiver) = channel();
        let (writer, mut reader) = pipe::pipe().unwrap();
        let waiting = receiver.waiting();
        let (told, mut heard) = unbounded_channel();
        let writing = tokio::spawn(receiver.write_to_pipe(writer, move |bytes| {
            let _ = told.send(bytes);
        }));
        let line = vec![b'x'; 700_000];
        for _ in 0..30 {
            sender.send(line.clone());
        }
        let bytes = heard.recv().await.unwrap().unwrap();
        assert!(bytes > 20_000_000, "{bytes}");
        assert!(
            tokio::time::timeout(Duration::from_millis(200), waiting.room())
                .await
                .is_err()
        );
        let mut first = vec![0; 100_000];
        reader.read_exact(&mut first).await.unwrap();
        assert_eq!(heard.recv().await, Some(None));
        drop(sender);
        let mut all = Vec::new();
        reader.read_to_end(&mut all).await.unwrap();
        assert_eq!(all.len() + 100_000, 30 * 700_000);
        assert_eq!(writing.await.unwrap(), End::Closed);
        waiting.room().await;
        assert_eq!(waiting.bytes(), 0);
    }
}
