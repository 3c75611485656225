//! The log file: what went wrong where nobody was looking, panics included.
//!
//! Stdout and stderr belong to the terminal Neovim draws in, so nothing may be printed there.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

/// Past this size the file is begun anew, the old one kept beside it as `.old`.
const MAX_LOG_BYTES: u64 = 4 * 1024 * 1024;
/// So much of one text is written.
const MAX_TEXT_BYTES: usize = 64 * 1024;

static LOG: Mutex<Option<Log>> = Mutex::new(None);

/// The file as it stands.
struct Log {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// What the last text leaves open.
    pieces: engine::secrets::Pieces,
}

impl Log {
    /// Opens the file. A full one is put aside first.
    fn open(path: &Path) -> Option<Self> {
        let size = || std::fs::metadata(path).map_or(0, |meta| meta.len());
        if size() > MAX_LOG_BYTES {
            let mut old: PathBuf = path.to_path_buf();
            old.as_mut_os_string().push(".old");
            let _ = std::fs::rename(path, old);
        }
        // A log that cannot be written is no reason to refuse the plugin.
        let file = crate::private::append(path).ok()?;
        Some(Self {
            path: path.to_path_buf(),
            file,
            bytes: size(),
            pieces: engine::secrets::Pieces::default(),
        })
    }

    fn write(&mut self, line: &str) {
        // Another Neovim may have put it aside meanwhile; then this one's is the old one, until it is full as well.
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

/// Keeps panics off stderr, where the screen is: they go to the log, once there is one.
pub fn catch_panics() {
    std::panic::set_hook(Box::new(|info| {
        write("panic", &info.to_string());
        write("panic", &std::backtrace::Backtrace::capture().to_string());
    }));
}

/// Opens the log at `path`.
pub fn init(path: &Path) {
    if let Some(dir) = path.parent() {
        let _ = crate::private::create_dir(dir);
    }
    *LOG.lock() = Log::open(path);
}

/// Writes one line. Line breaks in `text` are kept: a stack trace should read like one.
pub fn write(level: &str, text: &str) {
    let Some(mut log) = LOG.try_lock_for(std::time::Duration::from_millis(50)) else {
        return;
    };
    if let Some(log) = log.as_mut() {
        // A private key may come line by line.
        let text = crate::known_secrets::known().mask_piece(text, &mut log.pieces);
        let seconds = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| d.as_secs());
        let text = engine::text::passage(&text, MAX_TEXT_BYTES);
        log.write(&format!("{seconds} {level} {text}\n"));
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
