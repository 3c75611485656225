//! Signing in and out, by the CLI's own commands.

use std::rc::Rc;
use std::time::Duration;

use acp::Object;
use acp::types::{AuthKind, AuthMethod, AuthenticateRequest, Empty, TerminalLogin};
use serde_json::Value;

use crate::cancel::Cancel;
use crate::cli;
use crate::error::Error;
use crate::server::Server;

/// How long a login in a browser may take.
const LOGIN_LIMIT: Duration = Duration::from_secs(10 * 60);

/// The only way to sign in, which Cursor's own agent offers too.
const LOGIN: &str = "cursor_login";

/// The login as `initialize` offers it: in a terminal of the client's where it has one.
pub fn method(in_terminal: bool) -> AuthMethod {
    AuthMethod {
        id: LOGIN.to_owned(),
        name: "Cursor Login".to_owned(),
        description: Some("Runs `agent login`, which opens a browser".to_owned()),
        kind: if in_terminal {
            AuthKind::Terminal(TerminalLogin {
                args: vec!["login".to_owned()],
                ..TerminalLogin::default()
            })
        } else {
            AuthKind::Agent
        },
        meta: None,
        extra: Object::new(),
    }
}

impl Server {
    pub(crate) async fn authenticate(
        self: Rc<Self>,
        request: AuthenticateRequest,
        cancel: Rc<Cancel>,
    ) -> Result<Empty, Error> {
        if request.method_id != LOGIN {
            return Err(Error::Params(format!(
                "Unknown login method `{}`; expected `{LOGIN}`.",
                request.method_id
            )));
        }
        self.account("login", cancel).await
    }

    pub(crate) async fn logout(
        self: Rc<Self>,
        _: Value,
        cancel: Rc<Cancel>,
    ) -> Result<Empty, Error> {
        self.account("logout", cancel).await
    }

    pub(crate) async fn account(&self, command: &str, cancel: Rc<Cancel>) -> Result<Empty, Error> {
        let home = std::env::home_dir().unwrap_or_else(|| "/".into());
        let args = [command];
        let printed = cli::ask(&self.options, &args, &home, LOGIN_LIMIT, cancel.wait()).await?;
        if printed.code != Some(0) {
            return Err(printed.failure(command));
        }
        // Whose models they were may have changed.
        *self.models.borrow_mut() = Rc::new([]);
        Ok(Empty {})
    }
}
