//! Who is logged in, and the commands of Cursor's CLI around it: `status`, `login`, `logout`, `about`, `models`.

use std::{
    env, fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{cursor, error::Error};

const USER: &str = "demo@example.com";

/// Where logins and sessions are kept.
const STATE_VARIABLE: &str = "CURSOR_AGENT_DEMO_STATE";

/// Signed out until `login` has been run.
const SIGNED_OUT_VARIABLE: &str = "CURSOR_AGENT_DEMO_SIGNED_OUT";

/// Either signs in without a login.
const KEY_VARIABLES: &[&str] = &["CURSOR_API_KEY", "CURSOR_AUTH_TOKEN"];
const KEY_OPTIONS: &[&str] = &["--api-key", "--auth-token"];

/// The directory that outlives the program.
pub fn state_dir() -> PathBuf {
    let given = |name: &str| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    given(STATE_VARIABLE).unwrap_or_else(|| {
        given("XDG_STATE_HOME")
            .or_else(|| given("HOME").map(|home| home.join(".local/state")))
            .unwrap_or_else(env::temp_dir)
            .join("cursor-agent-demo")
    })
}

/// Whether this process was started with a key: Cursor's variables, or its options, with something in them.
pub fn has_key() -> bool {
    let in_environment = KEY_VARIABLES
        .iter()
        .any(|name| env::var_os(name).is_some_and(|value| !value.is_empty()));
    let args: Vec<String> = env::args().skip(1).collect();
    in_environment || key_in(&args)
}

fn key_in(args: &[String]) -> bool {
    KEY_OPTIONS.iter().any(|option| {
        let apart = args
            .windows(2)
            .any(|pair| pair[0] == *option && !pair[1].is_empty());
        let in_one = args.iter().any(|arg| {
            let value = arg
                .strip_prefix(option)
                .and_then(|rest| rest.strip_prefix('='));
            value.is_some_and(|value| !value.is_empty())
        });
        apart || in_one
    })
}

#[derive(Debug, Clone)]
pub struct Login {
    file: PathBuf,
    /// What holds until the next login or logout.
    signed_in_at_first: bool,
}

impl Login {
    pub fn from_env() -> Self {
        let signed_out =
            env::var(SIGNED_OUT_VARIABLE).is_ok_and(|value| !matches!(value.as_str(), "" | "0"));
        Self::new(&state_dir(), !signed_out)
    }

    pub fn new(state_dir: &Path, signed_in_at_first: bool) -> Self {
        Self {
            file: state_dir.join("login.json"),
            signed_in_at_first,
        }
    }

    /// Read again each time: `login` is another process.
    pub fn is_signed_in(&self) -> bool {
        fs::read(&self.file)
            .ok()
            .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok())
            .and_then(|login| login["signedIn"].as_bool())
            .unwrap_or(self.signed_in_at_first)
    }

    fn set(&self, signed_in: bool) -> io::Result<()> {
        let text = json!({ "signedIn": signed_in }).to_string();
        crate::private::replace(&self.file, text.as_bytes())
    }
}

/// Runs one of the commands; false when `name` is none of them.
pub fn run(name: &str, args: &[String], out: &mut impl Write) -> Result<bool, Error> {
    let login = Login::from_env();
    let as_json = args.windows(2).any(|pair| pair == ["--format", "json"]);
    match name {
        "status" | "whoami" => status(&login, as_json, out)?,
        "login" => {
            login.set(true)?;
            writeln!(out, "✓ Logged in as {USER}")?;
        }
        "logout" => {
            login.set(false)?;
            writeln!(out, "Logged out")?;
        }
        "about" => about(&login, as_json, out)?,
        "models" => models(out)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn status(login: &Login, as_json: bool, out: &mut impl Write) -> io::Result<()> {
    match (login.is_signed_in(), as_json) {
        (true, true) => writeln!(out, "{}", json!({ "isAuthenticated": true, "email": USER })),
        (false, true) => writeln!(out, "{}", json!({ "isAuthenticated": false })),
        (true, false) => writeln!(out, "✓ Logged in as {USER}"),
        (false, false) => writeln!(out, "Not logged in"),
    }
}

fn about(login: &Login, as_json: bool, out: &mut impl Write) -> io::Result<()> {
    let user = login.is_signed_in().then_some(USER);
    let (version, model) = (env!("CARGO_PKG_VERSION"), cursor::DEFAULT_MODEL_NAME);
    if as_json {
        let about = json!({ "cliVersion": version, "model": model, "subscriptionTier": "Demo", "userEmail": user });
        return writeln!(out, "{about}");
    }
    writeln!(out, "CLI Version         {version}")?;
    writeln!(out, "Model               {model}")?;
    writeln!(out, "Subscription Tier   Demo")?;
    writeln!(
        out,
        "User Email          {}",
        user.unwrap_or("Not logged in")
    )
}

fn models(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "Available models\n")?;
    for (index, (id, name)) in cursor::model_names().enumerate() {
        let marker = if index == 0 { " (default)" } else { "" };
        writeln!(out, "{id} - {name}{marker}")?;
    }
    writeln!(out, "\nTip: use --model <id> to switch.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_among_the_arguments() {
        let check = |args: &[&str], expected: bool| {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            assert_eq!(key_in(&args), expected, "{args:?}");
        };
        check(&["--api-key", "k", "acp"], true);
        check(&["acp", "--auth-token=t"], true);
        check(&["--api-key", "", "acp"], false);
        check(&["--api-key=", "acp"], false);
        check(&["acp", "--api-key"], false);
        check(&["--api-keys=k", "acp"], false);
    }
}
