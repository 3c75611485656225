//! The secrets that all logs, exports and reports of this process leave out: from our own environment and from
//! every agent.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use engine::secrets::Secrets;
use parking_lot::RwLock;

static KNOWN: LazyLock<RwLock<Arc<Secrets>>> =
    LazyLock::new(|| RwLock::new(Arc::new(Secrets::inherited(&own_env()))));

pub fn known() -> Arc<Secrets> {
    // The panic hook calls this too, and the thread that panicked may hold the lock.
    KNOWN
        .try_read_for(Duration::from_millis(50))
        .map_or_else(Arc::default, |known| known.clone())
}

/// Adds secrets.
pub fn hide(secrets: &Secrets) {
    let mut known = KNOWN.write();
    let mut all = Secrets::clone(&known);
    all.learn(secrets);
    *known = Arc::new(all);
}

/// Neovim's current environment.
pub fn own_env() -> Vec<(String, String)> {
    std::env::vars_os()
        .map(|(name, value)| {
            let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
            (text(name), text(value))
        })
        .collect()
}
