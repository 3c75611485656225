//! The secrets every log, export and report of this process leaves out: those of our own environment and of every agent.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use engine::secrets::Secrets;
use parking_lot::RwLock;

static KNOWN: LazyLock<RwLock<Arc<Secrets>>> =
    LazyLock::new(|| RwLock::new(Arc::new(Secrets::inherited(&own_env()))));

/// All of them.
pub fn known() -> Arc<Secrets> {
    // Called by the panic hook as well: the thread that panicked may hold the lock.
    KNOWN
        .try_read_for(Duration::from_millis(50))
        .map_or_else(Arc::default, |known| known.clone())
}

/// Adds to them.
pub fn hide(secrets: &Secrets) {
    let mut known = KNOWN.write();
    let mut all = Secrets::clone(&known);
    all.learn(secrets);
    *known = Arc::new(all);
}

/// Neovim's environment as it is now.
pub fn own_env() -> Vec<(String, String)> {
    std::env::vars_os()
        .map(|(name, value)| {
            let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
            (text(name), text(value))
        })
        .collect()
}
