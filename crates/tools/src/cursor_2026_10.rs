//! Cursor's CLI as it is since October 2026: `cursor` with other rules for signing in, and a process that outlives its stdin.
//!
//! A session needs a key or a saved login and is refused without; `authenticate` opens a browser, which fails here at once, also when the
//! key would do. A saved login needs no browser.

use acp::RpcError;
use serde_json::Value;

use crate::{
    cursor::Cursor,
    login::{Login, has_key},
    profile::{Profile, Reaction, required_string},
    sessions::Sessions,
};

#[derive(Debug)]
pub struct Cursor202610 {
    cursor: Cursor,
    /// In the environment or in the arguments.
    key: bool,
    login: Login,
}

impl Cursor202610 {
    pub fn new(sessions: Sessions, commands: Vec<Value>, login: Login) -> Self {
        Self::with_key(sessions, commands, login, has_key())
    }

    fn with_key(sessions: Sessions, commands: Vec<Value>, login: Login, key: bool) -> Self {
        Self {
            cursor: Cursor::new(sessions, commands, None),
            key,
            login,
        }
    }

    fn authenticate(&self, params: &Value) -> Result<Reaction, RpcError> {
        required_string(params, "methodId")?;
        if self.login.is_signed_in() {
            return Ok(Reaction::result(serde_json::json!({})));
        }
        Err(RpcError::invalid_params("Failed to open browser for login"))
    }
}

impl Profile for Cursor202610 {
    fn react(&mut self, method: &str, params: &Value) -> Reaction {
        match method {
            "authenticate" => self.authenticate(params).into(),
            "session/new" | "session/load" | "session/list"
                if !self.key && !self.login.is_signed_in() =>
            {
                Reaction::error(RpcError::new(
                    RpcError::AUTH_REQUIRED,
                    "Authentication required",
                ))
            }
            _ => self.cursor.react(method, params),
        }
    }

    fn sessions(&mut self) -> &mut Sessions {
        self.cursor.sessions()
    }

    fn outlives_stdin(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use serde_json::json;

    use super::*;
    use crate::profile::Answer;

    /// What comes of a method: its error's code and message, or "works".
    fn outcome(cursor: &mut Cursor202610, method: &str) -> String {
        let params = json!({ "methodId": "cursor_login", "cwd": "/p", "mcpServers": [], "sessionId": "past" });
        match cursor.react(method, &params).answer {
            Answer::Now(Ok(_)) => "works".to_owned(),
            Answer::Now(Err(error)) => format!("{} {}", error.code, error.message),
            Answer::WhenLoggedIn(_) => "hangs".to_owned(),
        }
    }

    #[test]
    fn a_key_a_login_and_neither() {
        let dir = tempfile::tempdir().unwrap();
        let (no_browser, refused, unknown) = (
            "-32602 Failed to open browser for login",
            "-32000 Authentication required",
            "-32602 Session not found",
        );
        for (key, signed_in, authenticate, session, load) in [
            (true, false, no_browser, "works", unknown),
            (false, true, "works", "works", unknown),
            (true, true, "works", "works", unknown),
            (false, false, no_browser, refused, refused),
        ] {
            let login = Login::new(dir.path(), signed_in);
            let mut cursor = Cursor202610::with_key(Sessions::in_memory(), Vec::new(), login, key);
            let case = format!("key: {key}, signed in: {signed_in}");
            assert_eq!(outcome(&mut cursor, "initialize"), "works", "{case}");
            assert_eq!(outcome(&mut cursor, "authenticate"), authenticate, "{case}");
            assert_eq!(outcome(&mut cursor, "session/new"), session, "{case}");
            assert_eq!(outcome(&mut cursor, "session/list"), session, "{case}");
            assert_eq!(outcome(&mut cursor, "session/load"), load, "{case}");
        }
    }
}
