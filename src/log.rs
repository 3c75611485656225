//! The log file: background errors, including panics. One thread writes it, so that no caller waits for the
//! disk.
//!
//! Stdout and stderr belong to the terminal Neovim draws in, so nothing may be printed there.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crossbeam_channel::{Receiver, Sender, bounded};
use once_cell::sync::OnceCell;

/// Past this size a new file is started; the old one is kept next to it as `.old`.
const MAX_LOG_BYTES: u64 = 4 * 1024 * 1024;
/// Longer messages are cut.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// How many lines may wait for the writer; more are dropped.
const MAX_WAITING: usize = 4096;
/// How long a panic and the exit wait for the writer.
const FLUSH_WAIT: Duration = Duration::from_millis(100);
const THREAD_NAME: &str = "cursor-agent-log";

static WRITER: OnceCell<Sender<Message>> = OnceCell::new();

enum Message {
    Line {
        seconds: u64,
        level: &'static str,
        text: String,
    },
    /// Answered once everything before it is written.
    Flush(Sender<()>),
}

/// The open log file.
struct Log {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// Masking state carried over from the previous message.
    pieces: engine::secrets::Pieces,
}

impl Log {
    /// Opens the file, rotating it first if it is full.
    fn open(path: &Path) -> Option<Self> {
        let size = || std::fs::metadata(path).map_or(0, |meta| meta.len());
        if size() > MAX_LOG_BYTES {
            let mut old: PathBuf = path.to_path_buf();
            old.as_mut_os_string().push(".old");
            let _ = std::fs::rename(path, old);
        }
        // A log that cannot be written must not stop the plugin.
        let file = crate::private::append(path).ok()?;
        Some(Self {
            path: path.to_path_buf(),
            file,
            bytes: size(),
            pieces: engine::secrets::Pieces::default(),
        })
    }

    fn write(&mut self, line: &str) {
        // Another Neovim may have rotated it meanwhile; then this process goes on writing the old file until
        // that is full too.
        if self.bytes > MAX_LOG_BYTES
            && let Some(next) = Self::open(&self.path)
        {
            let pieces = self.pieces;
            *self = Self { pieces, ..next };
        }
        self.bytes += line.len() as u64;
        let _ = self.file.write_all(line.as_bytes());
    }
}

/// Sends panics to the log.
pub fn catch_panics() {
    std::panic::set_hook(Box::new(|info| {
        write("panic", &info.to_string());
        write("panic", &std::backtrace::Backtrace::capture().to_string());
        flush();
    }));
}

/// Sets the path of the log and starts its writer.
pub fn init(path: &Path) {
    let path = path.to_path_buf();
    // A log that cannot be written must not stop the plugin.
    let _ = WRITER.get_or_try_init(|| -> std::io::Result<Sender<Message>> {
        let (sender, lines) = bounded(MAX_WAITING);
        std::thread::Builder::new()
            .name(THREAD_NAME.to_owned())
            .spawn(move || write_all(&path, &lines))?;
        Ok(sender)
    });
}

/// Adds a line. Never blocks.
pub fn write(level: &'static str, text: &str) {
    let Some(writer) = WRITER.get() else { return };
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let _ = writer.try_send(Message::Line {
        seconds,
        level,
        text: text.to_owned(),
    });
}

/// Waits briefly until pending lines are written.
pub fn flush() {
    let Some(writer) = WRITER.get() else { return };
    // The writer itself would wait forever.
    if std::thread::current().name() == Some(THREAD_NAME) {
        return;
    }
    let (done, written) = bounded(1);
    if writer
        .send_timeout(Message::Flush(done), FLUSH_WAIT)
        .is_ok()
    {
        let _ = written.recv_timeout(FLUSH_WAIT);
    }
}

fn write_all(path: &Path, lines: &Receiver<Message>) {
    if let Some(dir) = path.parent() {
        let _ = crate::private::create_dir(dir);
    }
    let mut log = Log::open(path);
    for message in lines {
        match message {
            Message::Line {
                seconds,
                level,
                text,
            } => {
                let Some(log) = &mut log else { continue };
                // A private key may arrive line by line.
                let text = crate::known_secrets::known().mask_piece(&text, &mut log.pieces);
                let text = engine::text::passage(&text, MAX_TEXT_BYTES);
                log.write(&format!("{seconds} {level} {text}\n"));
            }
            Message::Flush(done) => drop(done.send(())),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_log_stays_small_while_it_grows() {
        let dir = std::env::temp_dir().join(format!("cursor-agent-log-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("log");
        let mut log = Log::open(&path).unwrap();
        let line = format!("{}\n", "x".repeat(99_999));
        for _ in 0..200 {
            log.write(&line);
        }
        log.write("the last\n");
        let size = |name: &str| std::fs::metadata(dir.join(name)).unwrap().len();
        assert!(size("log") <= MAX_LOG_BYTES + 200_000, "{}", size("log"));
        assert!(size("log.old") <= MAX_LOG_BYTES + 200_000);
        assert!(
            std::fs::read_to_string(&path)
                .unwrap()
                .ends_with("the last\n")
        );
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
