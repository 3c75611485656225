//! Where Cursor's CLI keeps things.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The directories that may be its own, likeliest first. `var` looks a variable of the CLI's environment up.
pub fn roots(var: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let set = |name: &str| {
        var(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    if let Some(own) = set("CURSOR_CONFIG_DIR") {
        return vec![own];
    }
    let of_xdg = set("XDG_CONFIG_HOME").map(|dir| dir.join("cursor"));
    let of_home = set("HOME").map(|dir| dir.join(".cursor"));
    of_xdg.into_iter().chain(of_home).collect()
}

/// The store of a session of `agent acp`; None for an id that is no name of a directory.
pub fn acp_store(root: &Path, session_id: &str) -> Option<PathBuf> {
    is_name(session_id).then(|| root.join("acp-sessions").join(session_id).join("store.db"))
}

/// Whether an id can be the name of a directory.
pub fn is_name(id: &str) -> bool {
    let is_odd = matches!(id, "." | "..") || id.contains(['/', '\0']);
    !id.is_empty() && id.len() <= 255 && !is_odd
}

/// The directories that may hold chats: its own, and one where some installs keep them.
pub fn chat_roots(var: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let mut all = roots(&var);
    if var("CURSOR_CONFIG_DIR").is_none_or(|own| !Path::new(&own).is_absolute())
        && let Some(home) = var("HOME")
            .map(PathBuf::from)
            .filter(|dir| dir.is_absolute())
    {
        let config = var("XDG_CONFIG_HOME").map(PathBuf::from);
        let config = config.filter(|dir| dir.is_absolute());
        all.push(
            config
                .unwrap_or_else(|| home.join(".config"))
                .join("Cursor"),
        );
    }
    all
}

/// Where it keeps what belongs to projects, whatever its own directory is.
pub fn projects(var: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let home = var("HOME").map(PathBuf::from);
    let home = home.filter(|dir| dir.is_absolute());
    home.map(|home| home.join(".cursor/projects"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roots_with(set: &[(&str, &str)]) -> Vec<String> {
        let var = |name: &str| {
            let found = set.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let shown = roots(var).into_iter();
        shown.map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn its_own_directory_wins_over_the_usual_ones() {
        let home = ("HOME", "/home/me");
        assert_eq!(roots_with(&[home]), ["/home/me/.cursor"]);
        assert_eq!(
            roots_with(&[home, ("XDG_CONFIG_HOME", "/x")]),
            ["/x/cursor", "/home/me/.cursor"]
        );
        assert_eq!(
            roots_with(&[home, ("XDG_CONFIG_HOME", "/x"), ("CURSOR_CONFIG_DIR", "/c")]),
            ["/c"]
        );
        assert_eq!(
            roots_with(&[home, ("CURSOR_CONFIG_DIR", ""), ("XDG_CONFIG_HOME", "rel")]),
            ["/home/me/.cursor"]
        );
        assert!(roots_with(&[]).is_empty());
    }

    #[test]
    fn an_id_never_leads_out_of_the_directory() {
        let root = Path::new("/c");
        assert_eq!(
            acp_store(root, "6f1e-2").as_deref(),
            Some(Path::new("/c/acp-sessions/6f1e-2/store.db"))
        );
        for id in ["", ".", "..", "../x", "/etc", "a/b", "a\0b"] {
            assert_eq!(acp_store(root, id), None, "{id:?}");
        }
    }
}
