//! Takes secrets out of what is shown, logged or saved.

use serde_json::Value;

/// What stands in a secret's place.
const MASK: &str = "•••";

/// Values shorter than this are not searched for in text: they would blot out ordinary words.
const MIN_SECRET_BYTES: usize = 6;

/// Knows what must not be seen: the values of secret environment variables, and anything that looks like a key.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    values: Vec<String>,
}

impl Secrets {
    /// Those of an environment: every variable whose name says that its value is secret.
    pub fn of_env<'a>(env: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        let mut values: Vec<String> = env
            .into_iter()
            .filter(|(name, value)| is_secret_name(name) && value.len() >= MIN_SECRET_BYTES)
            .map(|(_, value)| value.clone())
            .collect();
        // The longest first: a key may be part of another.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self { values }
    }

    /// Takes note of more, as `of_env` does.
    pub fn add_env<'a>(&mut self, env: impl IntoIterator<Item = (&'a String, &'a String)>) {
        self.values.extend(Self::of_env(env).values);
        self.values
            .sort_by_key(|value| std::cmp::Reverse(value.len()));
        self.values.dedup();
    }

    /// A command as a person would type it, without what follows an option whose name says that it is secret.
    pub fn mask_command(&self, command: &[String]) -> String {
        let shown: Vec<String> = mask_arguments(command.iter().map(String::as_str));
        self.mask(&shown.join(" "))
    }

    /// The text without them.
    pub fn mask(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for value in &self.values {
            out = out.replace(value.as_str(), MASK);
        }
        mask_tokens(&out)
    }

    /// The value without them: by name of its fields, and in every string.
    pub fn mask_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.mask(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_value(item)),
            Value::Object(fields) => {
                // ACP's environment lists: {"name": "API_KEY", "value": "…"}.
                let named = fields
                    .get("name")
                    .and_then(Value::as_str)
                    .is_some_and(is_secret_name);
                for (name, field) in fields.iter_mut() {
                    if name == "mcpServers" {
                        mask_servers(field);
                    }
                    let hide = is_secret_name(name) || (named && name == "value");
                    if hide && field.is_string() {
                        *field = Value::String(MASK.to_owned());
                    } else {
                        self.mask_value(field);
                    }
                }
            }
            _ => {}
        }
    }
}

/// MCP servers are given their secrets under names of their own choice: none of the values they get is shown.
fn mask_servers(servers: &mut Value) {
    for server in servers.as_array_mut().into_iter().flatten() {
        for list in ["env", "headers"] {
            match server.get_mut(list) {
                Some(Value::Array(items)) => {
                    for value in items.iter_mut().filter_map(|item| item.get_mut("value")) {
                        *value = Value::String(MASK.to_owned());
                    }
                }
                Some(Value::Object(fields)) => {
                    for (_, value) in fields.iter_mut() {
                        *value = Value::String(MASK.to_owned());
                    }
                }
                _ => {}
            }
        }
        if let Some(Value::Array(args)) = server.get_mut("args") {
            let shown = mask_arguments(args.iter().map(|arg| arg.as_str().unwrap_or_default()));
            *args = shown.into_iter().map(Value::String).collect();
        }
        if let Some(Value::String(url)) = server.get_mut("url")
            && let Some(at) = url.find('?')
        {
            url.truncate(at + 1);
            url.push_str(MASK);
        }
    }
}

/// `--api-key=…` and `--api-key …` without the value.
fn mask_arguments<'a>(args: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut hide = false;
    args.map(|arg| {
        if std::mem::take(&mut hide) {
            return MASK.to_owned();
        }
        match arg.split_once('=') {
            Some((name, _)) if name.starts_with('-') && is_secret_name(name) => {
                format!("{name}={MASK}")
            }
            _ => {
                hide = arg.starts_with('-') && is_secret_name(arg);
                arg.to_owned()
            }
        }
    })
    .collect()
}

/// Whether a variable, header or field of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    if ["_key", "-key", "_pat", "_pass"]
        .iter()
        .any(|end| name.ends_with(end))
    {
        return true;
    }
    let name = name.replace(['-', '_'], "");
    [
        "apikey",
        "authtoken",
        "accesstoken",
        "refreshtoken",
        "secret",
        "password",
        "passwd",
        "passphrase",
        "credential",
        "authorization",
        "cookie",
        "privatekey",
    ]
    .iter()
    .any(|part| name.contains(part))
        || name.ends_with("token")
        || name == "key"
}

/// Masks what looks like a key wherever it stands: well-known prefixes followed by a long run of key characters.
fn mask_tokens(text: &str) -> String {
    const PREFIXES: [&str; 9] = [
        "sk-",
        "key_",
        "crsr_",
        "ghp_",
        "gho_",
        "github_pat_",
        "xoxb-",
        "AIza",
        "Bearer ",
    ];
    const MIN_RUN: usize = 16;
    let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, prefix)) = PREFIXES
        .iter()
        .filter_map(|p| rest.find(p).map(|at| (at, *p)))
        .min()
    {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let run = &from[prefix.len()..];
        let end = run.find(|c| !is_key(c)).unwrap_or(run.len());
        let inside_word = before.ends_with(|c: char| c.is_ascii_alphanumeric());
        if end >= MIN_RUN && !inside_word {
            out.push_str(prefix);
            out.push_str(MASK);
            rest = &run[end..];
        } else {
            out.push_str(prefix);
            rest = run;
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_names_and_shapes_are_masked() {
        let env = [
            ("CURSOR_API_KEY", "abcdef123"),
            ("PATH", "/usr/bin:/bin"),
            ("PIN_TOKEN", "123"),
        ]
        .map(|(n, v)| (n.to_owned(), v.to_owned()));
        let secrets = Secrets::of_env(env.iter().map(|(n, v)| (n, v)));
        assert_eq!(
            secrets.mask("key abcdef123 in /usr/bin:/bin 123"),
            "key ••• in /usr/bin:/bin 123"
        );
        assert_eq!(
            secrets.mask("Authorization: Bearer abcdefghijklmnopq.rst end"),
            "Authorization: Bearer ••• end"
        );
        assert_eq!(
            secrets.mask("sk-0123456789abcdefgh, desk-lamp, sk-short"),
            "sk-•••, desk-lamp, sk-short"
        );
        for name in [
            "OPENAI_KEY",
            "GITHUB_PAT",
            "DB_PASS",
            "db-passwd",
            "x-api-key",
            "accessToken",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["monkey", "keyboard", "PATH", "maxTokens", "toolCallId"] {
            assert!(!is_secret_name(name), "{name}");
        }
        let command = ["agent", "--api-key", "abc", "--auth-token=def", "acp"].map(str::to_owned);
        assert_eq!(
            Secrets::default().mask_command(&command),
            "agent --api-key ••• --auth-token=••• acp"
        );
        let mut value = json!({"mcpServers": [
            {"name": "db", "command": "x", "args": ["--token", "t", "y"], "env": [{"name": "DATABASE_URL", "value": "pg://u:p@h"}]},
            {"type": "http", "name": "h", "url": "https://h/mcp?k=v", "headers": [{"name": "X-Mine", "value": "w"}]},
        ]});
        secrets.mask_value(&mut value);
        assert_eq!(
            value,
            json!({"mcpServers": [
                {"name": "db", "command": "x", "args": ["--token", "•••", "y"], "env": [{"name": "DATABASE_URL", "value": "•••"}]},
                {"type": "http", "name": "h", "url": "https://h/mcp?•••", "headers": [{"name": "X-Mine", "value": "•••"}]},
            ]})
        );
        let mut value = json!({
            "env": [{"name": "MY_API_KEY", "value": "v"}, {"name": "LANG", "value": "C"}],
            "headers": {"Authorization": "x", "Accept": "abcdef123"},
            "tokens": 12, "maxTokens": 5, "key": "k"
        });
        secrets.mask_value(&mut value);
        assert_eq!(
            value,
            json!({
                "env": [{"name": "MY_API_KEY", "value": "•••"}, {"name": "LANG", "value": "C"}],
                "headers": {"Authorization": "•••", "Accept": "•••"},
                "tokens": 12, "maxTokens": 5, "key": "•••"
            })
        );
    }
}
