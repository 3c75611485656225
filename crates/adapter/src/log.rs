//! The log: stderr, or the file of `--log`. Stdout belongs to the protocol.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use secrets::Pieces;

use crate::{clock, redact};

static FILE: OnceLock<Mutex<File>> = OnceLock::new();
/// What the last line says about the next one: it may be inside a private key.
static PIECES: Mutex<Option<Pieces>> = Mutex::new(None);

/// Sends the log to a file only its owner can read.
///
/// # Errors
/// When it cannot be opened for writing.
pub fn to_file(path: &Path) -> io::Result<()> {
    let file = File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)?;
    // One that was there already may be open to others.
    if file.metadata()?.is_file() {
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    let _ = FILE.set(Mutex::new(file));
    Ok(())
}

/// For the user who runs the agent.
pub fn warn(text: &str) {
    write("warn", text);
}

/// What only helps to find a mistake: not on stderr, which editors show.
pub fn debug(text: &str) {
    if FILE.get().is_some() {
        write("debug", text);
    }
}

fn write(level: &str, text: &str) {
    let mut line = Vec::new();
    let mut pieces = PIECES
        .lock()
        .map_or_else(|_| Pieces::default(), |known| known.unwrap_or_default());
    for part in text.lines() {
        let part = redact::mask_line(part, &mut pieces);
        let _ = writeln!(line, "{} {level} {part}", clock::iso(clock::now_ms()));
    }
    if let Ok(mut known) = PIECES.lock() {
        *known = Some(pieces);
    }
    // A log that cannot be written must not stop us.
    let _ = match FILE.get() {
        Some(file) => match file.lock() {
            Ok(mut file) => file.write_all(&line),
            Err(_) => Ok(()),
        },
        None => io::stderr().write_all(&line),
    };
}
