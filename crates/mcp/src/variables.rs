//! `${env:NAME}`, `${workspaceFolder}`, `${userHome}` and their like in the texts of a file.

use crate::file::{Problem, Text};

/// What variables stand for.
pub struct Variables<'a> {
    /// A variable of the environment.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The directory the session works in, as its agent knows it.
    pub workspace: &'a str,
    /// The user's home.
    pub home: &'a str,
}

impl std::fmt::Debug for Variables<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Variables")
            .field("workspace", &self.workspace)
            .finish_non_exhaustive()
    }
}

/// A text with its variables resolved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolved {
    pub text: String,
    /// Values of the environment in it, which may be secrets.
    pub from_env: Vec<String>,
    /// What could not be resolved, in words; the text has nothing in its place.
    pub missing: Vec<String>,
}

/// Resolves a text.
pub fn resolve(raw: &str, variables: &Variables<'_>) -> Resolved {
    let mut resolved = Resolved::default();
    let mut rest = raw;
    while let Some(start) = rest.find("${") {
        let Some(end) = rest[start..].find('}').map(|end| start + end) else {
            break;
        };
        resolved.text.push_str(&rest[..start]);
        let name = &rest[start + 2..end];
        let value = match name {
            "workspaceFolder" => Ok(variables.workspace.to_owned()),
            "workspaceFolderBasename" => {
                let last = variables.workspace.trim_end_matches('/').rsplit('/').next();
                Ok(last.unwrap_or_default().to_owned())
            }
            "userHome" => Ok(variables.home.to_owned()),
            "pathSeparator" | "/" => Ok("/".to_owned()),
            _ => match name.strip_prefix("env:") {
                Some(name) => match (variables.env)(name) {
                    Some(value) => {
                        resolved.from_env.push(value.clone());
                        Ok(value)
                    }
                    None => Err(format!("the variable {name} is not set")),
                },
                None => Err(format!(
                    "`${{{name}}}` is unknown; expected one of ${{env:NAME}}, ${{workspaceFolder}}, ${{userHome}}"
                )),
            },
        };
        match value {
            Ok(value) => resolved.text.push_str(&value),
            Err(missing) => resolved.missing.push(missing),
        }
        rest = &rest[end + 1..];
    }
    resolved.text.push_str(rest);
    resolved
}

/// What cannot be resolved in a text, as problems of its server.
pub fn problems(server: &str, text: &Text, variables: &Variables<'_>) -> Vec<Problem> {
    let missing = resolve(&text.raw, variables).missing.into_iter();
    let named = missing.map(|message| Problem {
        place: text.place,
        message,
        server: Some(server.to_owned()),
        fatal: true,
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: &str, text: &str, from_env: &[&str], missing: &[&str]) {
        let env = |name: &str| match name {
            "TOKEN" => Some("s3cret".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${userHome}".to_owned()),
            _ => None,
        };
        let variables = Variables {
            env: &env,
            workspace: "/src/app",
            home: "/home/me",
        };
        let resolved = resolve(raw, &variables);
        assert_eq!(resolved.text, text, "{raw}");
        assert_eq!(resolved.from_env, from_env, "{raw}");
        assert_eq!(resolved.missing, missing, "{raw}");
    }

    #[test]
    fn variables_are_resolved_once() {
        check("plain $HOME $ {x} $x", "plain $HOME $ {x} $x", &[], &[]);
        check("Bearer ${env:TOKEN}", "Bearer s3cret", &["s3cret"], &[]);
        check("${env:EMPTY}!", "!", &[""], &[]);
        // What a value holds is no variable.
        check("${env:NESTED}", "${userHome}", &["${userHome}"], &[]);
        check(
            "${workspaceFolder}/x:${userHome}",
            "/src/app/x:/home/me",
            &[],
            &[],
        );
        check(
            "${workspaceFolderBasename}${/}${pathSeparator}",
            "app//",
            &[],
            &[],
        );
        check("a ${env:NO", "a ${env:NO", &[], &[]);
        check("é${userHome}é", "é/home/meé", &[], &[]);
    }

    #[test]
    fn what_is_missing_is_named() {
        check("${env:NO}x", "x", &[], &["the variable NO is not set"]);
        check(
            "${input:key}",
            "",
            &[],
            &[
                "`${input:key}` is unknown; expected one of ${env:NAME}, ${workspaceFolder}, ${userHome}",
            ],
        );
        check(
            "${env:A}${env:B}",
            "",
            &[],
            &["the variable A is not set", "the variable B is not set"],
        );
    }
}
