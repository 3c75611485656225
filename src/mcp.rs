//! Cursor's `mcp.json` files on disk, and what its CLI stores about their servers. Read, never written.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use mcp::file::{File, MAX_BYTES, Problem, Transport};
use mcp::servers::{Entry, Scope, merge, pass};
use mcp::variables::{self, Variables};
use serde::{Deserialize, Serialize};

use engine::sessions::mcp::{Choice, Read as Passing, ServersWanted};

use crate::error::Problem as Unread;
use crate::known_secrets;

/// Where to look for servers.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Place {
    /// The session's working directory.
    pub cwd: String,
    /// Set on top of Neovim's own environment.
    pub env: BTreeMap<String, String>,
}

/// A file as the editor shows it.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
pub struct Source {
    #[cfg_attr(test, schemars(with = "String", extend("x-lua" = "\"project\"|\"user\"")))]
    scope: Scope,
    /// Where the file is, or would be.
    path: String,
    /// The file exists.
    found: bool,
    #[cfg_attr(test, schemars(with = "Vec<String>", extend("x-lua" = "cursor_agent.mcp.Problem[]")))]
    problems: Vec<Problem>,
}

/// A server as the editor shows it. Contains no values of its environment or headers.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
pub struct Listed {
    name: String,
    #[cfg_attr(test, schemars(with = "String", extend("x-lua" = "\"project\"|\"user\"")))]
    scope: Scope,
    path: String,
    /// Line of its definition, from 1.
    line: usize,
    /// From 1.
    column: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("x-lua" = "\"stdio\"|\"http\"|\"sse\"")))]
    transport: Option<&'static str>,
    /// The command or the address as written, with secrets removed.
    target: String,
    /// Its definition has no mistakes.
    usable: bool,
    /// Disabled, by the file or by `agent mcp disable`.
    disabled: bool,
    /// Approved for Cursor's CLI.
    approved: bool,
    /// The user's file has a server with this name too.
    hides: bool,
}

/// All servers of a place.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
pub struct Overview {
    files: Vec<Source>,
    servers: Vec<Listed>,
    /// The most tools Cursor offers to a model.
    max_tools: usize,
}

/// The parsed files of a place.
struct Files {
    project: Option<(PathBuf, Result<Option<File>, Unread>)>,
    user: Option<(PathBuf, Result<Option<File>, Unread>)>,
    approved: Vec<String>,
    disabled: Vec<String>,
}

impl Place {
    fn var(&self, name: &str) -> Option<String> {
        let inherited = || std::env::var_os(name).map(|v| v.to_string_lossy().into_owned());
        self.env.get(name).cloned().or_else(inherited)
    }

    fn home(&self) -> Option<PathBuf> {
        let home = self.var("HOME").filter(|home| !home.is_empty());
        home.map(PathBuf::from)
    }

    /// The root of the repository, or the directory itself if there is none.
    fn root(&self) -> PathBuf {
        let cwd = Path::new(&self.cwd);
        let root = cwd.ancestors().find(|dir| dir.join(".git").exists());
        root.unwrap_or(cwd).to_owned()
    }

    /// Where the project's file is, or would be: the nearest one, searching up to the root of the repository.
    pub fn project_path(&self) -> PathBuf {
        let root = self.root();
        let user = self.user_path();
        let inside = Path::new(&self.cwd)
            .ancestors()
            .take_while(|dir| dir.starts_with(&root));
        let mut files = inside.map(|dir| dir.join(".cursor/mcp.json"));
        files
            .find(|path| Some(path) != user.as_ref() && path.exists())
            .unwrap_or_else(|| root.join(".cursor/mcp.json"))
    }

    /// Where the user's file is, or would be.
    pub fn user_path(&self) -> Option<PathBuf> {
        self.home().map(|home| home.join(".cursor/mcp.json"))
    }

    fn read(&self) -> Files {
        let (project, user) = (self.project_path(), self.user_path());
        let kept = |name: &str| {
            let home = self.home()?;
            // As it is, and with links resolved.
            let root = self.root();
            let real = root.canonicalize().unwrap_or_else(|_| root.clone());
            [real, root].into_iter().find_map(|root| {
                let slug = mcp::approvals::slug(&root.to_string_lossy());
                let dir = home.join(".cursor/projects").join(slug);
                read_text(&dir.join(name)).ok().flatten()
            })
        };
        let kept = |name| mcp::approvals::entries(&kept(name).unwrap_or_default());
        let parsed = |path: PathBuf| {
            let file = read_text(&path).map(|text| text.map(|text| mcp::file::parse(&text)));
            (path, file)
        };
        Files {
            // In the home directory there is only the user's file.
            project: (Some(&project) != user.as_ref()).then(|| parsed(project)),
            user: user.map(parsed),
            approved: kept("mcp-approvals.json"),
            disabled: kept("mcp-disabled.json"),
        }
    }

    /// Everything the editor shows about the servers.
    pub fn overview(&self) -> Overview {
        let files = self.read();
        let env = |name: &str| self.var(name);
        let home = self.home().unwrap_or_default();
        let variables = Variables {
            env: &env,
            workspace: &self.cwd,
            home: &home.to_string_lossy(),
        };
        let sources = files.sources().map(|(scope, path, file)| Source {
            scope,
            path: path.display().to_string(),
            found: !matches!(file, Ok(None)),
            problems: problems(file, &variables),
        });
        let known = known_secrets::known();
        let servers = files.merged().into_iter().map(|entry| {
            let server = &entry.server;
            let target = match &server.transport {
                Some(Transport::Stdio { command, args, .. }) => {
                    let words = std::iter::once(command).chain(args);
                    let words: Vec<String> = words.map(|word| word.raw.clone()).collect();
                    known.mask_command(&words)
                }
                Some(Transport::Url { url, .. }) => known.mask(&url.raw),
                None => String::new(),
            };
            Listed {
                scope: entry.scope,
                path: files.path(entry.scope).display().to_string(),
                line: server.place.line,
                column: server.place.column,
                transport: server.transport.as_ref().map(Transport::name),
                target,
                usable: server.usable && missing(server, &variables).is_empty(),
                disabled: files.is_disabled(&entry),
                approved: mcp::approvals::names(&files.approved, &server.name),
                hides: entry.hides,
                name: entry.server.name,
            }
        });
        Overview {
            servers: servers.collect(),
            files: sources.collect(),
            max_tools: mcp::MAX_TOOLS,
        }
    }

    /// Mistakes in a text that is about to become one of the files.
    pub fn check(&self, text: &str) -> Vec<Problem> {
        let env = |name: &str| self.var(name);
        let home = self.home().unwrap_or_default();
        let variables = Variables {
            env: &env,
            workspace: &self.cwd,
            home: &home.to_string_lossy(),
        };
        problems(&Ok(Some(mcp::file::parse(text))), &variables)
    }
}

impl Files {
    fn sources(
        &self,
    ) -> impl Iterator<Item = (Scope, &PathBuf, &Result<Option<File>, Unread>)> + '_ {
        let project = self
            .project
            .iter()
            .map(|(path, file)| (Scope::Project, path, file));
        let user = self
            .user
            .iter()
            .map(|(path, file)| (Scope::User, path, file));
        project.chain(user)
    }

    fn merged(&self) -> Vec<Entry> {
        let nothing = File::default();
        let file = |source: &Option<(PathBuf, Result<Option<File>, Unread>)>| match source {
            Some((_, Ok(Some(file)))) => file.clone(),
            _ => nothing.clone(),
        };
        merge(&file(&self.project), &file(&self.user))
    }

    fn path(&self, scope: Scope) -> &Path {
        let source = match scope {
            Scope::Project => &self.project,
            Scope::User => &self.user,
        };
        source.as_ref().map_or(Path::new(""), |(path, _)| path)
    }

    fn is_disabled(&self, entry: &Entry) -> bool {
        entry.server.disabled || mcp::approvals::names(&self.disabled, &entry.server.name)
    }
}

/// The servers from the files that are passed to an agent.
pub fn passing(asked: &ServersWanted) -> Passing {
    let place = Place {
        cwd: asked.cwd.clone(),
        env: asked.env.clone(),
    };
    let files = place.read();
    let env = |name: &str| place.var(name);
    let home = place.home().unwrap_or_default();
    let variables = Variables {
        env: &env,
        workspace: &asked.workspace,
        home: &home.to_string_lossy(),
    };
    let mut read = Passing::default();
    let shown = |path: &Path| match path.strip_prefix(&home) {
        Ok(rest) if !home.as_os_str().is_empty() => format!("~/{}", rest.display()),
        _ => path.display().to_string(),
    };
    for entry in files.merged() {
        let (server, name) = (&entry.server, &entry.server.name);
        read.names.push(name.clone());
        let chosen = match &asked.choice {
            Choice::None => false,
            Choice::All => true,
            Choice::User => entry.scope == Scope::User,
            Choice::Names(names) => names.contains(name),
        };
        if !chosen || files.is_disabled(&entry) {
            continue;
        }
        let path = files.path(entry.scope);
        let env_file = match &server.transport {
            Some(Transport::Stdio {
                env_file: Some(file),
                ..
            }) => {
                let named = variables::resolve(&file.raw, &variables).text;
                let at = Path::new(&asked.cwd).join(named);
                match read_text(&at) {
                    Ok(Some(text)) => Some(text),
                    Ok(None) | Err(_) => {
                        let place = format!("{}:{}", shown(path), file.place.line);
                        read.left_out
                            .push(format!("`{name}`: {place}: its `envFile` cannot be read"));
                        continue;
                    }
                }
            }
            _ => None,
        };
        match pass(server, env_file.as_deref(), &variables) {
            Ok(passed) => {
                if entry.scope == Scope::Project {
                    read.of_project.push(name.clone());
                }
                read.secrets.extend(passed.secrets);
                read.servers.push(passed.server);
            }
            Err(missing) => {
                let of_file = file_problems(&files, entry.scope);
                let mine = of_file
                    .iter()
                    .filter(|p| p.fatal && p.server.as_ref() == Some(name));
                let why = missing.iter().chain(mine).next();
                let why = why.map_or_else(String::new, |problem| {
                    format!(
                        ": {}:{}: {}",
                        shown(path),
                        problem.place.line,
                        problem.message
                    )
                });
                read.left_out.push(format!("`{name}`{why}"));
            }
        }
    }
    // Files that yield nothing because of a mistake.
    if asked.choice != Choice::None {
        for (_, path, file) in files.sources() {
            let whole = match file {
                Err(problem) => Some(format!("{}: {problem}", shown(path))),
                Ok(Some(file)) => {
                    let mut fatal = file
                        .problems
                        .iter()
                        .filter(|p| p.fatal && p.server.is_none());
                    fatal.next().map(|problem| {
                        format!(
                            "{}:{}: {}",
                            shown(path),
                            problem.place.line,
                            problem.message
                        )
                    })
                }
                Ok(None) => None,
            };
            read.left_out.extend(whole);
        }
    }
    read
}

fn file_problems(files: &Files, scope: Scope) -> Vec<Problem> {
    let mut sources = files.sources();
    let found = sources.find(|(of, ..)| *of == scope);
    match found {
        Some((_, _, Ok(Some(file)))) => file.problems.clone(),
        _ => Vec::new(),
    }
}

fn missing(server: &mcp::file::Server, variables: &Variables<'_>) -> Vec<Problem> {
    let texts = server.transport.iter().flat_map(Transport::texts);
    let found = texts.flat_map(|text| variables::problems(&server.name, text, variables));
    found.collect()
}

fn problems(file: &Result<Option<File>, Unread>, variables: &Variables<'_>) -> Vec<Problem> {
    match file {
        Ok(None) => Vec::new(),
        Ok(Some(file)) => {
            let missing = file
                .servers
                .iter()
                .flat_map(|server| missing(server, variables));
            let mut all: Vec<Problem> = file.problems.iter().cloned().chain(missing).collect();
            all.sort_by_key(|problem| problem.place);
            all
        }
        Err(error) => vec![Problem {
            place: mcp::file::Place {
                line: 1,
                column: 1,
                end_line: 1,
                end_column: 1,
            },
            message: error.to_string(),
            server: None,
            fatal: true,
        }],
    }
}

/// The text of a file; None if there is none. Pipes and devices are not read: they might never reach EOF.
fn read_text(path: &Path) -> Result<Option<String>, Unread> {
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Unread::Unreadable(error)),
    };
    if !meta.is_file() {
        return Err(Unread::NotRegular);
    }
    let mut bytes = Vec::new();
    // One byte more, to tell a file that is too large from one that just fits.
    let limit = MAX_BYTES as u64 + 1;
    std::fs::File::open(path)
        .and_then(|file| file.take(limit).read_to_end(&mut bytes))
        .map_err(Unread::Unreadable)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A home directory with a repository below it that contains a project.
    fn place(dir: &Path) -> Place {
        let app = dir.join("home/src/app");
        std::fs::create_dir_all(app.join("deep/er")).unwrap();
        std::fs::create_dir_all(app.join(".git")).unwrap();
        let mut env = BTreeMap::new();
        env.insert("HOME".to_owned(), dir.join("home").display().to_string());
        env.insert("TOKEN".to_owned(), "s3cret-of-mine".to_owned());
        Place {
            cwd: app.display().to_string(),
            env,
        }
    }

    fn asked(place: &Place, choice: Choice) -> ServersWanted {
        ServersWanted {
            cwd: place.cwd.clone(),
            env: place.env.clone(),
            workspace: place.cwd.clone(),
            choice,
        }
    }

    fn names(read: &Passing) -> Vec<String> {
        let servers = serde_json::to_value(&read.servers).unwrap();
        let named = servers.as_array().unwrap().iter();
        named
            .map(|server| server["name"].as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn the_nearest_file_of_the_repository_is_the_projects() {
        let dir = tempfile::tempdir().unwrap();
        let mut place = place(dir.path());
        let app = PathBuf::from(&place.cwd);
        place.cwd = app.join("deep/er").display().to_string();
        assert_eq!(place.project_path(), app.join(".cursor/mcp.json"));
        write(&app.join("deep/.cursor/mcp.json"), "{}");
        assert_eq!(place.project_path(), app.join("deep/.cursor/mcp.json"));
        // In the home directory itself there is only the user's file.
        place.cwd = dir.path().join("home").display().to_string();
        write(
            &dir.path().join("home/.cursor/mcp.json"),
            "{\"mcpServers\":{}}",
        );
        assert_eq!(place.overview().files.len(), 1);
    }

    #[test]
    fn servers_are_passed_by_choice_and_never_one_that_is_off() {
        let dir = tempfile::tempdir().unwrap();
        let place = place(dir.path());
        let app = PathBuf::from(&place.cwd);
        let home = dir.path().join("home");
        write(
            &app.join(".cursor/mcp.json"),
            "{\"mcpServers\":{\"git\":{\"command\":\"ours\",\"args\":[\"${workspaceFolder}\"]},\n\"off\":{\"command\":\"x\"},\n\"no\":{\"command\":\"x\",\"env\":{\"A\":\"${env:NO}\"}},\n\"wrong\":{\"command\":1}}}",
        );
        write(
            &home.join(".cursor/mcp.json"),
            "{\"mcpServers\":{\"git\":{\"command\":\"mine\"},\"docs\":{\"url\":\"http://x\",\"headers\":{\"A\":\"${env:TOKEN}\"}}}}",
        );
        let slug = mcp::approvals::slug(&app.canonicalize().unwrap().to_string_lossy());
        let kept = home.join(".cursor/projects").join(slug);
        write(&kept.join("mcp-disabled.json"), "[\"off\"]");
        write(
            &kept.join("mcp-approvals.json"),
            "[\"git-0123456789abcdef\"]",
        );

        let all = passing(&asked(&place, Choice::All));
        assert_eq!(names(&all), ["docs", "git"]);
        assert!(all.secrets.contains(&"s3cret-of-mine".to_owned()));
        let servers = serde_json::to_value(&all.servers).unwrap();
        assert_eq!(servers[1]["command"], "ours");
        assert_eq!(servers[1]["args"][0], place.cwd);
        assert_eq!(
            all.left_out,
            [
                "`no`: ~/src/app/.cursor/mcp.json:3: the variable NO is not set",
                "`wrong`: ~/src/app/.cursor/mcp.json:4: `command` must be a string, got a number",
            ]
        );
        assert_eq!(names(&passing(&asked(&place, Choice::User))), ["docs"]);
        let some = Choice::Names(vec!["git".to_owned(), "off".to_owned()]);
        assert_eq!(names(&passing(&asked(&place, some))), ["git"]);
        let none = passing(&asked(&place, Choice::None));
        assert!(names(&none).is_empty() && none.left_out.is_empty());
        assert_eq!(none.names, ["docs", "git", "no", "off", "wrong"]);

        let overview = serde_json::to_value(place.overview()).unwrap();
        let servers = overview["servers"].as_array().unwrap();
        let git = &servers[1];
        assert_eq!(git["approved"], true);
        assert_eq!(git["hides"], true);
        assert_eq!(git["target"], "ours ${workspaceFolder}");
        assert_eq!(servers[3]["disabled"], true);
        assert_eq!(servers[2]["usable"], false);
        assert!(!overview.to_string().contains("s3cret"));
    }

    #[test]
    fn a_file_that_cannot_be_read_breaks_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let place = place(dir.path());
        let app = PathBuf::from(&place.cwd);
        write(&dir.path().join("home/.cursor/mcp.json"), "{\n oops");
        std::fs::create_dir_all(app.join(".cursor/mcp.json")).unwrap();
        let read = passing(&asked(&place, Choice::All));
        assert_eq!(read.servers, []);
        assert_eq!(read.left_out.len(), 2, "{:?}", read.left_out);
        assert_eq!(
            read.left_out[0],
            "~/src/app/.cursor/mcp.json: not a regular file"
        );
        assert!(read.left_out[1].starts_with("~/.cursor/mcp.json:2: not JSON"));
    }
}
