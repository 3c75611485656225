//! How Cursor is signed in without a login: the key or token it is started with, and its source.

use std::collections::BTreeMap;

use serde::Serialize;

/// Cursor's option, its variable, and what they hold; the first that has a value counts.
const WAYS: [(&str, &str, &str); 2] = [
    ("--api-key", "CURSOR_API_KEY", "key"),
    ("--auth-token", "CURSOR_AUTH_TOKEN", "token"),
];

/// A key or a token, without its value.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Given {
    /// "key" or "token".
    #[cfg_attr(test, schemars(extend("x-lua" = "\"key\"|\"token\"")))]
    pub kind: &'static str,
    /// "arguments" (of the command), "options" (`agents.x`) or "environment" (Neovim's own).
    #[cfg_attr(test, schemars(extend("x-lua" = "\"arguments\"|\"options\"|\"environment\"")))]
    pub place: &'static str,
    /// The option or the variable.
    pub name: &'static str,
}

impl Given {
    /// The source, in words.
    pub fn source(&self, agent: &str) -> String {
        let name = self.name;
        match self.place {
            // Not the option: the word after it would be masked as a secret.
            "arguments" => format!("`agents.{agent}.command`"),
            "options" => format!("{name} in the options of `agents.{agent}`"),
            _ => format!("{name} in Neovim's environment"),
        }
    }
}

/// What signs an agent in: its arguments first, then its own variables, then inherited ones.
pub fn given(
    command: &[String],
    env: &BTreeMap<String, String>,
    inherited: impl Fn(&str) -> Option<String>,
) -> Option<Given> {
    let words = words(command);
    let by_argument = WAYS.iter().find_map(|&(option, variable, kind)| {
        let place = "arguments";
        if has_option(&words, option) {
            let name = option;
            return Some(Given { kind, place, name });
        }
        let name = variable;
        has_assignment(&words, variable).then_some(Given { kind, place, name })
    });
    by_argument.or_else(|| {
        WAYS.iter().find_map(|&(_, name, kind)| {
            // An empty variable of its own hides the inherited one.
            let (place, value) = match env.get(name) {
                Some(value) => ("options", value.clone()),
                None => ("environment", inherited(name)?),
            };
            (!value.trim().is_empty()).then_some(Given { kind, place, name })
        })
    })
}

/// The arguments, and the words of a script for a shell among them.
fn words(command: &[String]) -> Vec<&str> {
    let mut words = Vec::new();
    let mut is_script = false;
    for argument in command.iter().skip(1) {
        if is_script {
            words.extend(argument.split_whitespace());
        } else {
            words.push(argument.as_str());
        }
        is_script =
            argument.starts_with('-') && !argument.starts_with("--") && argument.ends_with('c');
    }
    words
}

/// `--api-key X` or `--api-key=X`.
fn has_option(words: &[&str], option: &str) -> bool {
    let apart = words
        .windows(2)
        .any(|pair| pair[0] == option && is_value(pair[1]));
    let in_one = words.iter().any(|word| {
        let rest = word.strip_prefix(option);
        rest.and_then(|rest| rest.strip_prefix('='))
            .is_some_and(is_value)
    });
    apart || in_one
}

/// `env CURSOR_API_KEY=X agent acp`.
fn has_assignment(words: &[&str], variable: &str) -> bool {
    words.iter().any(|word| {
        let rest = word.strip_prefix(variable);
        rest.and_then(|rest| rest.strip_prefix('='))
            .is_some_and(is_value)
    })
}

fn is_value(word: &str) -> bool {
    !word.trim_matches(['"', '\'', ' ']).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &str, env: &[(&str, &str)], inherited: &[(&str, &str)], expected: &str) {
        let command: Vec<String> = command.split('|').map(str::to_owned).collect();
        let own: BTreeMap<String, String> = env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let found = given(&command, &own, |name| {
            let mut all = inherited.iter();
            all.find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        });
        let found = found.map_or_else(String::new, |given| {
            format!("{} {} {}", given.kind, given.place, given.name)
        });
        assert_eq!(found, expected, "{command:?} {env:?} {inherited:?}");
    }

    #[test]
    fn in_the_arguments() {
        let key = "key arguments --api-key";
        check("agent|--api-key|k|acp", &[], &[], key);
        check("agent|acp|--api-key=k", &[], &[], key);
        check(
            "agent|--auth-token|t|acp",
            &[],
            &[],
            "token arguments --auth-token",
        );
        check("agent|--auth-token=t|--api-key|k|acp", &[], &[], key);
        check("sh|-c|exec agent --api-key \"$KEY\" acp", &[], &[], key);
        check("sh|-lc|agent --api-key=$KEY acp", &[], &[], key);
        let variable = "key arguments CURSOR_API_KEY";
        check("env|CURSOR_API_KEY=k|agent|acp", &[], &[], variable);
        check("sh|-c|CURSOR_API_KEY=k agent acp", &[], &[], variable);
        for none in [
            "agent|acp",
            "agent|--api-key||acp",
            "agent|--api-key=|acp",
            "agent|acp|--api-key",
            "agent|--api-keys=k|acp",
            "agent|--model|api-key|acp",
            "sh|-c|agent --api-key '' acp",
            "agent|-H|X-Name: --api-key k|acp",
            "--api-key=k",
            "",
        ] {
            check(none, &[], &[], "");
        }
    }

    #[test]
    fn in_the_environment() {
        let (key, token) = (("CURSOR_API_KEY", "k"), ("CURSOR_AUTH_TOKEN", "t"));
        check("agent", &[key], &[], "key options CURSOR_API_KEY");
        check("agent", &[], &[key], "key environment CURSOR_API_KEY");
        check(
            "agent",
            &[],
            &[token],
            "token environment CURSOR_AUTH_TOKEN",
        );
        check("agent", &[token], &[key], "key environment CURSOR_API_KEY");
        check("agent", &[], &[("CURSOR_API_KEY", "")], "");
        check("agent", &[("CURSOR_API_KEY", " ")], &[], "");
        check("agent", &[("CURSOR_API_KEY", "")], &[key], "");
        check(
            "agent",
            &[("CURSOR_API_KEY", "")],
            &[token],
            "token environment CURSOR_AUTH_TOKEN",
        );
        check(
            "agent|--api-key|a",
            &[key],
            &[token],
            "key arguments --api-key",
        );
    }
}
