//! Reads from the stores of Cursor's CLI how full a session's context is.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use engine::sessions::context::Context;
use store::cursor::{paths, usage};

/// Reads the first store found for a session. `env` holds the agent's variables on top of the inherited ones.
/// Blocks. Read errors are only logged.
pub fn read(session_id: &str, env: &BTreeMap<String, String>) -> Option<Context> {
    let var = |name: &str| {
        let own = env.get(name).map(OsString::from);
        own.or_else(|| std::env::var_os(name))
    };
    let mut stores = paths::roots(var)
        .into_iter()
        .filter_map(|root| paths::acp_store(&root, session_id));
    let store: PathBuf = stores.find(|store| store.exists())?;
    match usage::read(&store) {
        Ok(context) => context.map(|usage::Context { used, size }| Context { used, size }),
        Err(error) => {
            crate::log::write("info", &format!("{}: {error}", store.display()));
            None
        }
    }
}
