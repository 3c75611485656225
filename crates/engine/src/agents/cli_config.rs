//! Cursor's own settings file, `cli-config.json`: where it is and what it says about approval. Never written.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

/// The settings we read.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CliConfig {
    /// Where it is, or would be.
    pub path: String,
    /// The file exists.
    pub found: bool,
    /// Why nothing was read although the file exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// "unrestricted": nothing needs approval. "allowlist", the default: whatever is not on the allowlist does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_mode: Option<String>,
    /// Max Mode is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_mode: Option<bool>,
}

/// Where Cursor's CLI looks for the file, given its variables on top of the inherited ones.
pub fn path(
    env: &BTreeMap<String, String>,
    inherited: impl Fn(&str) -> Option<String>,
) -> Option<PathBuf> {
    let value = |name: &str| {
        let value = env.get(name).cloned().or_else(|| inherited(name));
        value.filter(|value| !value.is_empty()).map(PathBuf::from)
    };
    let dir = value("CURSOR_CONFIG_DIR")
        .or_else(|| value("XDG_CONFIG_HOME").map(|dir| dir.join("cursor")))
        .or_else(|| value("HOME").map(|home| home.join(".cursor")))?;
    Some(dir.join("cli-config.json"))
}

/// Reads the settings we use. Values of an unexpected type are ignored.
pub fn parse(config: &mut CliConfig, text: &str) {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return;
    }
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => match serde_json::from_str(&plain_json(text)) {
            Ok(value) => value,
            Err(_) => {
                config.problem = Some(format!("not JSON: {error}"));
                return;
            }
        },
    };
    if !value.is_object() {
        config.problem = Some("not a JSON object".to_owned());
        return;
    }
    config.approval_mode = value["approvalMode"]
        .as_str()
        .map(|mode| mode.chars().take(64).collect());
    config.max_mode = value["maxMode"].as_bool();
}

/// JSON without the comments and the trailing commas people write into it.
fn plain_json(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut in_string = false;
    while let Some(char) = chars.next() {
        if in_string {
            plain.push(char);
            match char {
                '\\' => plain.extend(chars.next()),
                '"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match (char, chars.peek()) {
            ('/', Some('/')) => {
                for char in chars.by_ref() {
                    if char == '\n' {
                        plain.push('\n');
                        break;
                    }
                }
            }
            ('/', Some('*')) => {
                chars.next();
                let mut last = ' ';
                for char in chars.by_ref() {
                    if last == '*' && char == '/' {
                        break;
                    }
                    last = char;
                }
                plain.push(' ');
            }
            (']' | '}', _) => {
                let kept = plain.trim_end().len();
                if plain[..kept].ends_with(',') {
                    plain.truncate(kept - 1);
                }
                plain.push(char);
            }
            _ => {
                in_string = char == '"';
                plain.push(char);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_directory_follows_cursors_rules() {
        let check = |own: &[(&str, &str)], inherited: &[(&str, &str)], expected: &str| {
            let own: BTreeMap<String, String> = own
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            let found = path(&own, |name| {
                let mut all = inherited.iter();
                all.find(|(known, _)| *known == name)
                    .map(|(_, value)| (*value).to_owned())
            });
            let found = found.map(|path| path.display().to_string());
            assert_eq!(found.as_deref().unwrap_or_default(), expected);
        };
        let home = ("HOME", "/home/me");
        check(&[], &[home], "/home/me/.cursor/cli-config.json");
        let xdg = ("XDG_CONFIG_HOME", "/x");
        check(&[], &[home, xdg], "/x/cursor/cli-config.json");
        let given = ("CURSOR_CONFIG_DIR", "/c");
        check(&[], &[home, xdg, given], "/c/cli-config.json");
        check(&[given], &[home, xdg], "/c/cli-config.json");
        check(
            &[("CURSOR_CONFIG_DIR", "")],
            &[home, given],
            "/home/me/.cursor/cli-config.json",
        );
        check(
            &[("HOME", "/other")],
            &[home],
            "/other/.cursor/cli-config.json",
        );
        check(&[], &[], "");
    }

    #[test]
    fn what_it_says_and_what_it_does_not() {
        let check = |text: &str, mode: Option<&str>, max: Option<bool>, problem: &str| {
            let mut config = CliConfig::default();
            parse(&mut config, text);
            assert_eq!(config.approval_mode.as_deref(), mode, "{text}");
            assert_eq!(config.max_mode, max, "{text}");
            let found = config.problem.unwrap_or_default();
            assert!(found.starts_with(problem), "{text}: {found}");
            assert_eq!(found.is_empty(), problem.is_empty(), "{text}: {found}");
        };
        check(
            r#"{"approvalMode":"unrestricted","maxMode":true}"#,
            Some("unrestricted"),
            Some(true),
            "",
        );
        check(
            "\u{feff}{\"approvalMode\":\"allowlist\"}",
            Some("allowlist"),
            None,
            "",
        );
        check(
            "// mine\n{ /* all */ \"approvalMode\": \"allowlist\", // [\n \"url\": \"http://x/*\", \"maxMode\": false,\n}\n",
            Some("allowlist"),
            Some(false),
            "",
        );
        check(
            r#"{"a":"\"}//","list":[1,2,],"approvalMode":"x",}"#,
            Some("x"),
            None,
            "",
        );
        check(r#"{"approvalMode":5,"maxMode":"yes"}"#, None, None, "");
        check(r#"{"approvalMode":null}"#, None, None, "");
        check("{}", None, None, "");
        check("  \n", None, None, "");
        check("[1]", None, None, "not a JSON object");
        check("\"unrestricted\"", None, None, "not a JSON object");
        check("{\"approvalMode\":\"unrestricted\"", None, None, "not JSON");
        check("/* never closed", None, None, "not JSON");
    }
}
