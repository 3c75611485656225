//! Takes secrets out of what is logged or reported in an error, always before it is cut.

use std::sync::LazyLock;

use secrets::{Pieces, Secrets};

/// What the environment and our own arguments name as secret.
static KNOWN: LazyLock<Secrets> = LazyLock::new(|| {
    let env: Vec<(String, String)> = std::env::vars_os()
        .map(|(name, value)| (lossy(&name), lossy(&value)))
        .collect();
    let args: Vec<String> = std::env::args_os().map(|arg| lossy(&arg)).collect();
    let mut known = Secrets::inherited(&env);
    known.add_command(&args);
    known
});

fn lossy(text: &std::ffi::OsStr) -> String {
    text.to_string_lossy().into_owned()
}

/// The text without secrets.
pub fn mask(text: &str) -> String {
    KNOWN.mask(text)
}

/// A line of a text that comes line by line, without secrets.
pub fn mask_line(line: &str, pieces: &mut Pieces) -> String {
    KNOWN.mask_piece(line, pieces)
}
