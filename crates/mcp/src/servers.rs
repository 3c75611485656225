//! The project's and the user's file as one list, and what of it an agent is given.

use acp::types::{McpServer, McpServerStdio, McpServerUrl, NameValue};

use crate::file::{File, Problem, Server, Transport};
use crate::variables::{Resolved, Variables, resolve};

/// Whose file a server is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Project,
    User,
}

/// A server of the list.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub scope: Scope,
    pub server: Server,
    /// The user's file has one of this name too, which does not count.
    pub hides: bool,
}

/// One list of both, by name; the project's server wins over the user's of the same name.
pub fn merge(project: &File, user: &File) -> Vec<Entry> {
    let of_user = |name: &str| user.servers.iter().any(|server| server.name == name);
    let of_project = |name: &str| project.servers.iter().any(|server| server.name == name);
    let entry = |scope, server: &Server, hides| Entry {
        scope,
        server: server.clone(),
        hides,
    };
    let mut entries: Vec<Entry> = project
        .servers
        .iter()
        .map(|server| entry(Scope::Project, server, of_user(&server.name)))
        .collect();
    entries.extend(
        user.servers
            .iter()
            .filter(|server| !of_project(&server.name))
            .map(|server| entry(Scope::User, server, false)),
    );
    entries.sort_by(|a, b| a.server.name.cmp(&b.server.name));
    entries
}

/// What an agent is given for a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    pub server: McpServer,
    /// Values of variables of the environment in it, which must not be shown; where something lies is no secret.
    pub secrets: Vec<String>,
}

/// A server as an agent is given it; what is missing otherwise. `env_file` has the text of its `envFile`, where there is one.
pub fn pass(
    server: &Server,
    env_file: Option<&str>,
    variables: &Variables<'_>,
) -> Result<Passed, Vec<Problem>> {
    let mut pass = Pass {
        name: &server.name,
        variables,
        secrets: Vec::new(),
        problems: Vec::new(),
    };
    let Some(transport) = server.transport.as_ref().filter(|_| server.usable) else {
        return Err(Vec::new());
    };
    let passed = match transport {
        Transport::Stdio {
            command, args, env, ..
        } => {
            let mut given: Vec<NameValue> = Vec::new();
            for (name, value) in env_file.into_iter().flat_map(env_lines) {
                given.retain(|known| known.name != name);
                given.push(NameValue { name, value });
            }
            for (name, value) in env {
                let value = pass.text(value);
                given.retain(|known| known.name != *name);
                given.push(NameValue {
                    name: name.clone(),
                    value,
                });
            }
            McpServer::Stdio(McpServerStdio {
                name: server.name.clone(),
                command: pass.text(command),
                args: args.iter().map(|arg| pass.text(arg)).collect(),
                env: given,
            })
        }
        Transport::Url { url, headers, sse } => {
            let headers = headers.iter().map(|(name, value)| {
                let value = pass.text(value);
                NameValue {
                    name: name.clone(),
                    value,
                }
            });
            let headers = headers.collect();
            let given = McpServerUrl {
                name: server.name.clone(),
                url: pass.text(url),
                headers,
            };
            if *sse {
                McpServer::Sse(given)
            } else {
                McpServer::Http(given)
            }
        }
    };
    if pass.problems.is_empty() {
        Ok(Passed {
            server: passed,
            secrets: pass.secrets,
        })
    } else {
        Err(pass.problems)
    }
}

struct Pass<'a> {
    name: &'a str,
    variables: &'a Variables<'a>,
    secrets: Vec<String>,
    problems: Vec<Problem>,
}

impl Pass<'_> {
    fn text(&mut self, text: &crate::file::Text) -> String {
        let Resolved {
            text: resolved,
            from_env,
            missing,
        } = resolve(&text.raw, self.variables);
        self.secrets
            .extend(from_env.into_iter().filter(|value| !value.starts_with('/')));
        let named = missing.into_iter().map(|message| Problem {
            place: text.place,
            message,
            server: Some(self.name.to_owned()),
            fatal: true,
        });
        self.problems.extend(named);
        resolved
    }
}

/// The variables of an `.env` file.
fn env_lines(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter_map(|line| {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
        let value = value.trim();
        let quoted = ['"', '\''].into_iter().find_map(|quote| {
            let inner = value.strip_prefix(quote)?;
            inner.strip_suffix(quote)
        });
        let name = name.trim();
        (!name.is_empty()).then(|| (name.to_owned(), quoted.unwrap_or(value).to_owned()))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::file::parse;

    const VARIABLES: Variables<'static> = Variables {
        env: &|name| (name == "TOKEN").then(|| "s3cret".to_owned()),
        workspace: "/src/app",
        home: "/home/me",
    };

    #[test]
    fn the_project_wins_over_the_user() {
        let project = parse(r#"{"mcpServers":{"git":{"command":"ours"},"b":{"command":"x"}}}"#);
        let user = parse(r#"{"mcpServers":{"a":{"url":"http://x"},"git":{"command":"mine"}}}"#);
        let shown: Vec<(String, Scope, bool)> = merge(&project, &user)
            .into_iter()
            .map(|entry| (entry.server.name, entry.scope, entry.hides))
            .collect();
        assert_eq!(
            shown,
            [
                ("a".to_owned(), Scope::User, false),
                ("b".to_owned(), Scope::Project, false),
                ("git".to_owned(), Scope::Project, true)
            ]
        );
    }

    fn passed(text: &str, env_file: Option<&str>) -> Result<Passed, Vec<String>> {
        let file = parse(&format!(r#"{{"mcpServers":{{"a":{text}}}}}"#));
        pass(&file.servers[0], env_file, &VARIABLES).map_err(|problems| {
            let shown = problems.into_iter();
            shown
                .map(|problem| format!("{}: {}", problem.place.line, problem.message))
                .collect()
        })
    }

    #[test]
    fn a_server_is_passed_with_its_variables_resolved() {
        let text = r#"{"command":"${userHome}/bin/x","args":["--root=${workspaceFolder}","${env:TOKEN}"],"env":{"KEY":"v","ROOT":"${workspaceFolder}"},"envFile":".env"}"#;
        let passed = passed(text, Some("# no\nexport KEY='old'\nMORE=1\n\nodd\n")).unwrap();
        assert_eq!(
            serde_json::to_value(&passed.server).unwrap(),
            serde_json::json!({
                "name": "a", "command": "/home/me/bin/x", "args": ["--root=/src/app", "s3cret"],
                "env": [
                    { "name": "MORE", "value": "1" }, { "name": "KEY", "value": "v" },
                    { "name": "ROOT", "value": "/src/app" },
                ],
            })
        );
        assert_eq!(passed.secrets, ["s3cret"]);
    }

    #[test]
    fn an_address_is_passed_by_its_transport() {
        let text =
            r#"{"url":"https://x/${env:TOKEN}","headers":{"Authorization":"Bearer ${env:TOKEN}"}}"#;
        let http = passed(text, None).unwrap();
        assert_eq!(
            serde_json::to_value(&http.server).unwrap(),
            serde_json::json!({
                "type": "http", "name": "a", "url": "https://x/s3cret",
                "headers": [{ "name": "Authorization", "value": "Bearer s3cret" }],
            })
        );
        assert!(http.secrets.iter().any(|known| known == "s3cret"));
        let text = r#"{"type":"sse","url":"https://x"}"#;
        let sse = passed(text, None).unwrap();
        assert!(matches!(sse.server, McpServer::Sse(_)));
    }

    #[test]
    fn a_server_with_a_missing_variable_is_not_passed() {
        let text = "{\"command\":\"x\",\n\"env\":{\n\"KEY\":\"${env:NO}\"}}";
        assert_eq!(
            passed(text, None),
            Err(vec!["3: the variable NO is not set".to_owned()])
        );
        assert_eq!(passed(r#"{"command":1}"#, None), Err(vec![]));
    }
}
