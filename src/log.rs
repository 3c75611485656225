//! The log file: what went wrong where nobody was looking, panics included.
//!
//! Stdout and stderr belong to the terminal Neovim draws in, so nothing may be printed there.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

/// Past this size the file is begun anew, the old one kept beside it as `.old`.
const MAX_LOG_BYTES: u64 = 4 * 1024 * 1024;

static LOG: Mutex<Option<File>> = Mutex::new(None);

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
        // A log that cannot be written is no reason to refuse the plugin.
        let _ = std::fs::create_dir_all(dir);
    }
    if std::fs::metadata(path).is_ok_and(|meta| meta.len() > MAX_LOG_BYTES) {
        let mut old: PathBuf = path.to_path_buf();
        old.as_mut_os_string().push(".old");
        let _ = std::fs::rename(path, old);
    }
    *LOG.lock() = OpenOptions::new().create(true).append(true).open(path).ok();
}

/// Writes one line. Line breaks in `text` are kept: a stack trace should read like one.
pub fn write(level: &str, text: &str) {
    let Some(mut log) = LOG.try_lock_for(std::time::Duration::from_millis(50)) else {
        return;
    };
    if let Some(file) = log.as_mut() {
        let seconds = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| d.as_secs());
        let _ = writeln!(file, "{seconds} {level} {text}");
    }
}
