//! The one redactor: takes secrets out of what is logged, saved, exported, reported or said in an error.
//!
//! Three ways lead to them: their values, where an environment or a command named them ([`Secrets`]); the names of
//! fields ([`name`]); what they look like and what stands before them in running text ([`shape`], and [`programs`] for
//! options that are secret for some programs only). It is always the
//! whole text that is looked through, and cut afterwards: half a secret looks like none.

mod name;
mod programs;
mod shape;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use name::{Strength, strength};
use programs::{Invocation, Way};

/// What stands in a secret's place.
pub const MASK: &str = "•••";

/// Values shorter than this are not searched for in text: they would blot out ordinary words.
const MIN_SECRET_BYTES: usize = 6;
/// Of a value of several lines, lines of this length are searched for too: they may come one by one.
const MIN_LINE_BYTES: usize = 16;

/// So much of a value's beginning tells that it may follow.
const MIN_BEGUN_BYTES: usize = 4;
/// No more values than this are kept in mind: an agent chooses the environment of its commands.
const MAX_VALUES: usize = 3000;

/// Knows what must not be seen: the values of secret environment variables, and anything that looks like a key.
#[derive(Clone, Default)]
pub struct Secrets {
    values: Vec<String>,
    finder: Option<Arc<AhoCorasick>>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl PartialEq for Secrets {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl Secrets {
    /// Those of an environment: every variable whose name says that its value is secret.
    pub fn of_env<'a>(env: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        let mut secrets = Self::default();
        secrets.add_env(env);
        secrets
    }

    /// Takes note of more, as `of_env` does.
    pub fn add_env<'a>(&mut self, env: impl IntoIterator<Item = (&'a String, &'a String)>) {
        let secret = env
            .into_iter()
            .filter(|(name, _)| is_secret_name(name))
            .map(|(_, value)| value.as_str());
        self.add(secret.collect::<Vec<_>>());
    }

    /// Takes note of what a command is given: `--api-key VALUE` and its like, also in a line for a shell.
    pub fn add_command(&mut self, command: &[String]) {
        let mut found = Vec::new();
        let mut arguments = Arguments::default();
        for arg in command {
            match arguments.next(arg) {
                Some(from) => found.push(&arg[from..]),
                None => found.extend(shape::secrets_in(arg)),
            }
        }
        self.add(found);
    }

    /// Takes note of values that are secret whatever their names are.
    pub fn add_values(&mut self, values: &[String]) {
        self.add(values.iter().map(String::as_str).collect());
    }

    /// Takes note of the private keys in a text: of a part of one, nothing would tell what it is.
    pub fn add_keys(&mut self, text: &str) {
        let mut found = Vec::new();
        let mut rest = text;
        while let Some((_, after)) = rest.split_once("PRIVATE KEY") {
            let after = after.strip_prefix(" BLOCK").unwrap_or(after);
            let Some(after) = after.strip_prefix("-----") else {
                rest = after;
                continue;
            };
            let end = after.find("-----END ").unwrap_or(after.len());
            // Code that deals with keys is none.
            let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
            let lines = after[..end].lines();
            let lines = lines.map(|line| line.trim_matches(|c| !is_base64(c)));
            found.extend(
                lines.filter(|line| line.len() >= MIN_LINE_BYTES && line.chars().all(is_base64)),
            );
            rest = &after[end..];
            // Behind its end the same words stand again.
            rest = rest.strip_prefix("-----END ").unwrap_or_default();
            rest = rest.split_once("-----").map_or("", |(_, rest)| rest);
        }
        self.add(found);
    }

    /// Those of an environment that agents inherit.
    pub fn inherited(env: &[(String, String)]) -> Self {
        // A path to a secret is not one.
        let env = env.iter().filter(|(_, value)| !value.starts_with('/'));
        Self::of_env(env.map(|(name, value)| (name, value)))
    }

    /// Takes in what others know.
    pub fn learn(&mut self, other: &Self) {
        self.add(other.values.iter().map(String::as_str).collect());
    }

    /// The text without the values that are known to be secret. What only looks like one stays.
    pub fn mask_known<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
        match &self.finder {
            Some(finder) if finder.is_match(text) => {
                let masks = vec![MASK; self.values.len()];
                std::borrow::Cow::Owned(finder.replace_all(text, &masks))
            }
            _ => std::borrow::Cow::Borrowed(text),
        }
    }

    /// Whether a text holds a value that is known to be secret.
    pub fn has_known(&self, text: &str) -> bool {
        self.finder
            .as_ref()
            .is_some_and(|finder| finder.is_match(text))
    }

    /// How many bytes at the end of a text may be the beginning of a known value.
    pub fn begun_at_end(&self, text: &str) -> usize {
        let begun = |value: &String| {
            let most = value.len().min(text.len() + 1).saturating_sub(1);
            let mut lengths = (MIN_BEGUN_BYTES..=most).rev();
            lengths.find(|length| text.as_bytes().ends_with(&value.as_bytes()[..*length]))
        };
        let longest = self.values.iter().filter_map(begun).max().unwrap_or(0);
        text.len() - text.floor_char_boundary(text.len() - longest)
    }

    fn add(&mut self, values: Vec<&str>) {
        let before = self.values.len();
        for value in values {
            let lines = value.lines().filter(|line| line.len() >= MIN_LINE_BYTES);
            for part in std::iter::once(value.trim()).chain(lines) {
                if part.len() < MIN_SECRET_BYTES || part.contains(MASK) {
                    continue;
                }
                // As JSON and addresses spell it.
                let quoted = Value::from(part).to_string();
                let escaped = quoted.trim_matches('"').to_owned();
                for spelling in [part.to_owned(), escaped, percent(part)] {
                    if self.values.len() < MAX_VALUES && !self.values.contains(&spelling) {
                        self.values.push(spelling);
                    }
                }
            }
        }
        if self.values.len() > before {
            self.finder = AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .build(&self.values)
                .ok()
                .map(Arc::new);
        }
    }

    /// A command as a person would type it, without what follows an option whose name says that it is secret.
    pub fn mask_command(&self, command: &[String]) -> String {
        let shown: Vec<String> = mask_arguments(command.iter().map(String::as_str));
        self.mask(&shown.join(" "))
    }

    /// The text without them.
    pub fn mask(&self, text: &str) -> String {
        self.mask_piece(text, &mut Pieces::default())
    }

    /// A piece of a text that comes in several, such as a line: `pieces` is kept from one to the next.
    pub fn mask_piece(&self, text: &str, pieces: &mut Pieces) -> String {
        let Some(finder) = &self.finder else {
            return shape::mask(text, &mut pieces.carried).into_owned();
        };
        let mut out = String::new();
        let mut copied = 0;
        for found in finder.find_iter(text) {
            out.push_str(&text[copied..found.start()]);
            out.push_str(MASK);
            copied = found.end();
        }
        if copied == 0 {
            return shape::mask(text, &mut pieces.carried).into_owned();
        }
        out.push_str(&text[copied..]);
        shape::mask(&out, &mut pieces.carried).into_owned()
    }

    /// The value without them: by name of its fields, and in every string.
    pub fn mask_value(&self, value: &mut Value) {
        self.walk(value, &mut Pieces::default());
    }

    fn walk(&self, value: &mut Value, pieces: &mut Pieces) {
        match value {
            // The mark of a line in a diff.
            Value::String(text) if text.len() < 2 => {}
            Value::String(text) => {
                *text = self.mask_piece(text, pieces);
                // The next field is no next line.
                pieces.carried.end_line();
            }
            Value::Array(items) => {
                let mut arguments = Arguments::default();
                for item in items {
                    // A command in a list: what follows `--api-key`.
                    if let Value::String(arg) = &*item
                        && let Some(from) = arguments.next(arg)
                        && !(from == 0 && arg.starts_with('-'))
                    {
                        *item = Value::from(format!("{}{MASK}", &arg[..from]));
                        continue;
                    }
                    self.walk(item, pieces);
                }
            }
            Value::Object(fields) => {
                // ACP's environment lists: {"name": "API_KEY", "value": "…"}.
                let named = ["name", "key"].iter().any(|field| {
                    let name = fields.get(*field).and_then(Value::as_str);
                    name.is_some_and(is_secret_name)
                });
                for (name, field) in fields.iter_mut() {
                    if name == "mcpServers" {
                        mask_servers(field);
                    }
                    let strength = if named && name == "value" {
                        Strength::Strong
                    } else if named && name == "key" {
                        Strength::None
                    } else {
                        strength(name)
                    };
                    if strength == Strength::None {
                        self.walk(field, pieces);
                    } else {
                        hide_all(field, strength == Strength::Strong);
                        self.walk(field, pieces);
                    }
                }
            }
            _ => {}
        }
    }
}

/// What is carried from one piece of a text to the next.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pieces {
    carried: shape::Carried,
}

/// Masks a field whose name says that it is secret; `deep`: what it holds, too.
fn hide_all(value: &mut Value, deep: bool) {
    match value {
        Value::String(text) if !text.is_empty() => *value = Value::from(MASK),
        Value::Number(_) if deep => *value = Value::from(MASK),
        Value::Array(items) if deep => items.iter_mut().for_each(|item| hide_all(item, deep)),
        Value::Object(fields) if deep => {
            fields
                .iter_mut()
                .for_each(|(_, field)| hide_all(field, deep));
        }
        _ => {}
    }
}

/// An argument that is an option for a secret: its name, and the value if it is in the same argument.
fn secret_option(arg: &str) -> Option<(&str, Option<&str>)> {
    let (name, value) = match arg.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (arg, None),
    };
    let is_one =
        name.starts_with('-') && !name.contains(char::is_whitespace) && is_secret_name(name);
    is_one.then_some((name, value))
}

/// As an address spells it.
fn percent(text: &str) -> String {
    const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'_')
        .remove(b'.')
        .remove(b'~');
    utf8_percent_encode(text, PLAIN).to_string()
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

/// The arguments of a command, one after the other.
#[derive(Default)]
struct Arguments {
    invocation: Invocation,
    /// The next one is secret.
    hide: bool,
    /// The next one is `name:password`.
    is_user: bool,
}

impl Arguments {
    /// From where on an argument is secret.
    fn next(&mut self, arg: &str) -> Option<usize> {
        let is_user = std::mem::take(&mut self.is_user);
        if std::mem::take(&mut self.hide) {
            return Some(0);
        }
        if is_user && let Some((name, password)) = arg.split_once(':') {
            // `-u 1000:1000` is a user and a group.
            let is_one = !password.is_empty() && !password.bytes().all(|b| b.is_ascii_digit());
            return is_one.then_some(name.len() + 1);
        }
        if let Some((name, value)) = secret_option(arg) {
            self.hide = value.is_none();
            return value.map(|_| name.len() + 1);
        }
        self.is_user = matches!(arg, "-u" | "--user" | "--proxy-user");
        let letter = arg.as_bytes().get(1).filter(|_| arg.starts_with('-'));
        match letter.map(|letter| self.invocation.way(*letter)) {
            Some(Way::Apart) => self.hide = arg.len() == 2,
            Some(Way::Attached) => return (arg.len() > 2).then_some(2),
            Some(Way::None) => {}
            None => self.invocation.word(arg.as_bytes()),
        }
        None
    }
}

/// A command's arguments without what is secret in them.
fn mask_arguments<'a>(args: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut arguments = Arguments::default();
    args.map(|arg| match arguments.next(arg) {
        Some(from) => format!("{}{MASK}", &arg[..from]),
        None => arg.to_owned(),
    })
    .collect()
}

/// Whether a variable, header or field of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    strength(name) != Strength::None
}
