//! Rules and the fence around the workspace: what a call may do without a question. Pure; links are asked of a [`Disk`].
//!
//! The first rule that matches decides; without one the user is asked, or for what agents do by way of the editor, the
//! fence decides. A rule that allows has to match everything a call touches, one that asks or rejects anything of it.

pub mod call;
pub mod commands;
pub mod facts;
pub mod globs;
pub mod paths;

use std::sync::Arc;

use serde::{Deserialize, Deserializer};

use crate::error::{BadRule, Error};
use crate::tools::kind::ToolKind;

pub use call::Call;
use globs::{PathGlob, TextGlob};
use paths::{Place, Root, below, resolve, tidy, without_fragment};

/// More rules than these are refused.
pub(crate) const MAX_RULES: usize = 1000;

/// What rules have to know of the disk.
pub trait Disk {
    /// What a link holds; None for what is no link.
    fn link(&self, path: &str) -> Option<String>;
    /// Whether upper and lower case are the same there.
    fn ignores_case(&self, path: &str) -> bool;
}

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Yes, this once.
    Allow,
    /// The user is asked.
    Ask,
    /// No.
    Reject,
}

/// A rule as the user wrote it. Absent means any.
#[derive(Debug, Clone, Deserialize)]
pub struct RuleSpec {
    action: Action,
    name: Option<String>,
    #[serde(default, deserialize_with = "one_or_many")]
    agent: Option<Vec<String>>,
    #[serde(default, deserialize_with = "one_or_many")]
    kind: Option<Vec<String>>,
    #[serde(default, deserialize_with = "one_or_many")]
    tool: Option<Vec<String>>,
    #[serde(default, deserialize_with = "one_or_many")]
    command: Option<Vec<String>>,
    #[serde(default, deserialize_with = "one_or_many")]
    path: Option<Vec<String>>,
}

/// What the user configured, as Lua hands it over.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicySpec {
    /// In order.
    pub rules: Vec<RuleSpec>,
    /// Directories agents may work in beside their own.
    pub roots: Vec<String>,
    /// The directory `~` expands to.
    pub home: String,
}

#[derive(Debug)]
struct Rule {
    action: Action,
    /// For the line in the transcript.
    title: String,
    agent: Option<Vec<String>>,
    kind: Option<Vec<String>>,
    tool: Option<Vec<TextGlob>>,
    command: Option<Vec<TextGlob>>,
    path: Option<Vec<PathGlob>>,
}

/// The rules, ready to be used.
#[derive(Debug, Default)]
pub struct Policy {
    rules: Vec<Rule>,
    roots: Vec<String>,
    home: String,
}

/// What the rules say about a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judged {
    /// What the first rule that matches says, and what to call that rule.
    pub rule: Option<(Action, String)>,
    /// The files and directories the call is about.
    pub places: Vec<Place>,
}

impl Judged {
    /// When nothing could be found out: the user is asked.
    pub fn unknown() -> Self {
        Self {
            rule: Some((Action::Ask, String::new())),
            places: Vec::new(),
        }
    }

    /// Whether something it touches is outside the workspace.
    pub fn is_outside(&self) -> bool {
        self.places.iter().any(|place| !place.inside)
    }
}

/// A call to be judged, with all that is needed for it; done without the engine's lock.
#[derive(Debug, Clone)]
pub struct Case {
    /// The rules at the time.
    pub policy: Arc<Policy>,
    /// The call.
    pub call: Call,
    /// The session's directory.
    pub cwd: String,
    /// The session's other directories.
    pub directories: Vec<String>,
}

impl PartialEq for Case {
    fn eq(&self, other: &Self) -> bool {
        let all = |case: &Self| {
            (
                case.call.clone(),
                case.cwd.clone(),
                case.directories.clone(),
            )
        };
        Arc::ptr_eq(&self.policy, &other.policy) && all(self) == all(other)
    }
}

impl Case {
    /// What the rules say.
    pub fn judge(&self, disk: &impl Disk) -> Judged {
        let home = &self.policy.home;
        let dirs = std::iter::once(&self.cwd)
            .chain(&self.directories)
            .chain(&self.policy.roots);
        let roots: Vec<Root> = dirs
            .filter(|dir| !dir.is_empty())
            .map(|dir| Root::find(&self.cwd, home, dir, disk))
            .collect();
        let places: Vec<Place> = self
            .call
            .paths
            .iter()
            .map(String::as_str)
            .chain(
                self.call
                    .paths
                    .iter()
                    .filter_map(|path| without_fragment(path)),
            )
            .map(|path| Place::find(&self.cwd, home, path, &roots, disk))
            .collect();
        let scene = Scene {
            call: &self.call,
            candidates: std::cell::OnceCell::new(),
            places: &places,
            roots: &roots,
            home,
            disk,
        };
        let rule = self
            .policy
            .rules
            .iter()
            .find(|rule| scene.is_matched_by(rule))
            .map(|rule| (rule.action, rule.title.clone()));
        Judged { rule, places }
    }
}

impl Policy {
    /// Compiles rules; what is wrong with them, one line each.
    pub fn new(spec: PolicySpec) -> Result<Self, Vec<Error>> {
        let mut problems = Vec::new();
        if spec.rules.len() > MAX_RULES {
            problems.push(Error::TooManyRules);
        }
        let mut rules = Vec::new();
        for (at, rule) in spec.rules.into_iter().take(MAX_RULES).enumerate() {
            match Rule::new(rule, at + 1) {
                Ok(rule) => rules.push(rule),
                Err(why) => problems.push(Error::Rule {
                    number: at + 1,
                    why,
                }),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self {
            rules,
            roots: spec.roots,
            home: spec.home,
        })
    }

    /// The directory `~` expands to.
    pub fn home(&self) -> &str {
        &self.home
    }
}

impl Rule {
    fn new(spec: RuleSpec, number: usize) -> Result<Self, BadRule> {
        let title = title(&spec, number);
        let careful = spec.action == Action::Allow;
        let all = |globs: Option<Vec<String>>,
                   parse: &dyn Fn(&str) -> Result<TextGlob, BadRule>| {
            globs
                .map(|globs| globs.iter().map(|glob| parse(glob)).collect())
                .transpose()
        };
        let path = spec.path.map(|globs| {
            let parsed: Result<Vec<_>, _> =
                globs.iter().map(|glob| PathGlob::parse(glob)).collect();
            parsed.map(|all| all.into_iter().flatten().collect())
        });
        Ok(Self {
            action: spec.action,
            title,
            agent: spec.agent,
            kind: spec.kind,
            tool: all(spec.tool, &TextGlob::name)?,
            command: all(spec.command, &|glob| TextGlob::command(glob, careful))?,
            path: path.transpose()?,
        })
    }
}

/// What to call a rule in the transcript.
fn title(spec: &RuleSpec, number: usize) -> String {
    if let Some(name) = &spec.name {
        return format!("rule `{name}`");
    }
    let fields = [
        &spec.agent,
        &spec.kind,
        &spec.tool,
        &spec.command,
        &spec.path,
    ];
    let words: Vec<String> = fields
        .into_iter()
        .flatten()
        .map(|list| list.join("|"))
        .collect();
    if words.is_empty() {
        format!("rule {number}")
    } else {
        format!("rule {number} ({})", words.join(" "))
    }
}

/// A call and where it happens.
struct Scene<'a, D> {
    call: &'a Call,
    /// The commands in it.
    candidates: std::cell::OnceCell<Vec<String>>,
    places: &'a [Place],
    roots: &'a [Root],
    home: &'a str,
    disk: &'a D,
}

impl<D: Disk> Scene<'_, D> {
    fn is_matched_by(&self, rule: &Rule) -> bool {
        let call = self.call;
        let one_of = |list: &Option<Vec<String>>, value: &str| {
            list.as_ref()
                .is_none_or(|list| list.iter().any(|one| one == value))
        };
        if !one_of(&rule.agent, &call.agent) {
            return false;
        }
        if let Some(tools) = &rule.tool
            && !call
                .names()
                .iter()
                .any(|name| tools.iter().any(|tool| tool.matches(name)))
        {
            return false;
        }
        if rule.action == Action::Allow {
            one_of(&rule.kind, call.kind.as_str()) && self.is_allowed_by(rule)
        } else {
            (one_of(&rule.kind, call.kind.as_str()) || one_of(&rule.kind, call.said_kind.as_str()))
                && self.is_stopped_by(rule)
        }
    }

    fn is_stopped_by(&self, rule: &Rule) -> bool {
        let command = rule.command.as_ref().is_none_or(|globs| {
            let candidates = self.candidates.get_or_init(|| {
                let kinds = [&self.call.kind, &self.call.said_kind];
                let runs = kinds.contains(&&ToolKind::Execute);
                let title = Some(self.call.title.trim().trim_matches('`')).filter(|_| runs);
                let lines = self.call.commands.iter().map(String::as_str).chain(title);
                lines.flat_map(commands::candidates).collect()
            });
            commands::any_matches(globs, candidates)
        });
        let path = rule.path.as_ref().is_none_or(|globs| {
            // What is kept from the agent is kept by either name: its own and that of what it leads to.
            self.places.iter().any(|place| {
                globs.iter().any(|glob| {
                    self.matches(glob, &place.path, place.ignore_case, true)
                        || self.matches(glob, &place.written, place.ignore_case, false)
                })
            })
        });
        command && path
    }

    fn is_allowed_by(&self, rule: &Rule) -> bool {
        let call = self.call;
        let named = rule.tool.is_some();
        // What a server's tool does is not known by its kind, its path or its input.
        let selects = rule.kind.is_some() || rule.path.is_some() || rule.command.is_some();
        if call.is_vast || (call.mcp.is_some() && !named && selects) {
            return false;
        }
        if let Some(globs) = &rule.command {
            // `PATH=x cargo test` is not what `cargo test` allows, however the variable is set.
            let is_named = |line: &String| globs.iter().any(|glob| glob.matches(line.trim()));
            if call.commands.is_empty()
                || !call.commands.iter().all(is_named)
                || call.sets_environment
            {
                return false;
            }
        }
        let acts = matches!(call.kind, ToolKind::Execute | ToolKind::Fetch);
        if rule.path.is_some() && acts && rule.command.is_none() && !named {
            return false;
        }
        let mut outside_named = true;
        for place in self.places {
            let mut found = rule.path.is_none();
            let mut by_name = false;
            for glob in rule.path.iter().flatten() {
                if self.matches(glob, &place.path, place.ignore_case, true) {
                    found = true;
                    by_name |= self.names_a_directory(glob);
                }
            }
            if !found {
                return false;
            }
            outside_named &= place.inside || by_name;
        }
        if !self.places.is_empty() {
            // What is outside is allowed only by a rule that says where.
            return outside_named;
        }
        if rule.path.is_some() {
            return false;
        }
        // Where it happens is not known.
        named
            || matches!(
                call.kind,
                ToolKind::Execute
                    | ToolKind::Search
                    | ToolKind::Think
                    | ToolKind::Fetch
                    | ToolKind::SwitchMode
            )
    }

    /// The absolute directories or files a glob begins with.
    fn bases(&self, glob: &PathGlob) -> Vec<String> {
        let fixed = &glob.fixed;
        let home = fixed == "~" || fixed.starts_with("~/");
        if fixed.starts_with('/') || home {
            return vec![paths::absolute("/", self.home, fixed)];
        }
        let below = |root: &Root| format!("{}/{fixed}", root.given);
        self.roots.iter().map(below).collect()
    }

    fn matches(&self, glob: &PathGlob, path: &str, ignore_case: bool, follow: bool) -> bool {
        self.bases(glob).iter().any(|base| {
            let base = if follow {
                resolve(base, self.disk)
            } else {
                tidy(base)
            };
            below(path, &base, ignore_case).is_some_and(|rest| glob.matches(rest, ignore_case))
        })
    }

    /// Whether a glob says which directory, from the root on.
    fn names_a_directory(&self, glob: &PathGlob) -> bool {
        let fixed = &glob.fixed;
        let absolute = fixed.starts_with('/') || fixed == "~" || fixed.starts_with("~/");
        absolute
            && self
                .bases(glob)
                .iter()
                .all(|base| resolve(base, self.disk) != "/")
    }
}

fn one_or_many<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        One(String),
        Many(Vec<String>),
    }
    Ok(
        Option::<Given>::deserialize(from)?.map(|given| match given {
            Given::One(one) => vec![one],
            Given::Many(many) => many,
        }),
    )
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]

    use std::collections::HashMap;

    use serde_json::{Value, json};

    use super::*;
    use crate::tools::tool_call::ToolCall;

    /// A disk of links only.
    #[derive(Debug, Default)]
    pub struct Links {
        links: HashMap<String, String>,
        ignore_case: bool,
    }

    impl Links {
        pub fn new(links: &[(&str, &str)]) -> Self {
            let own = |(from, to): &(&str, &str)| ((*from).to_owned(), (*to).to_owned());
            Self {
                links: links.iter().map(own).collect(),
                ignore_case: false,
            }
        }
    }

    impl Disk for Links {
        fn link(&self, path: &str) -> Option<String> {
            self.links.get(path).cloned()
        }

        fn ignores_case(&self, _: &str) -> bool {
            self.ignore_case
        }
    }

    fn disk() -> Links {
        Links::new(&[
            ("/src/app/link", "/secret"),
            ("/src/app/up", "../../secret"),
            ("/src/app/chain", "src/../up"),
            ("/src/app/round", "round"),
            ("/src/app/within", "src/real"),
            ("/src/app/.env", "/secret/env"),
        ])
    }

    fn call(kind: &str, fields: Value) -> Call {
        let text = |key: &str| fields[key].as_str().map(str::to_owned);
        let mcp = text("mcp").map(|name| {
            let (server, tool) = name.split_once('/').unwrap();
            call::McpTool {
                server: server.to_owned(),
                tool: tool.to_owned(),
            }
        });
        Call {
            agent: text("agent").unwrap_or_else(|| "cursor".to_owned()),
            said_kind: text("said").unwrap_or_else(|| kind.to_owned()).into(),
            kind: kind.into(),
            commands: text("command").into_iter().collect(),
            sets_environment: false,
            is_vast: false,
            title: text("title").unwrap_or_default(),
            paths: serde_json::from_value(fields["paths"].clone()).unwrap_or_default(),
            tool: text("tool"),
            mcp,
        }
    }

    fn policy(rules: Value) -> Policy {
        Policy::new(PolicySpec {
            rules: serde_json::from_value(rules).unwrap(),
            roots: vec!["/more".to_owned()],
            home: "/home/me".to_owned(),
        })
        .unwrap()
    }

    fn judge(call: &Call, rules: Value, disk: &Links) -> Option<Action> {
        let case = Case {
            policy: Arc::new(policy(rules)),
            call: call.clone(),
            cwd: "/src/app".to_owned(),
            directories: Vec::new(),
        };
        case.judge(disk).rule.map(|(action, _)| action)
    }

    /// `rules` is one rule, or a list of them.
    fn check(kind: &str, fields: Value, rules: Value, expected: Option<Action>) {
        let list = if rules.is_array() {
            rules.clone()
        } else {
            json!([rules])
        };
        let said = judge(&call(kind, fields.clone()), list, &disk());
        assert_eq!(said, expected, "{kind} {fields} {rules}");
    }

    const ALLOW: Option<Action> = Some(Action::Allow);
    const ASK: Option<Action> = Some(Action::Ask);
    const REJECT: Option<Action> = Some(Action::Reject);

    #[test]
    fn the_first_rule_that_matches_decides() {
        let ls = || json!({ "command": "ls" });
        check("execute", ls(), json!([]), None);
        check("execute", ls(), json!({ "action": "allow" }), ALLOW);
        check(
            "execute",
            ls(),
            json!({ "action": "allow", "kind": "read" }),
            None,
        );
        check(
            "execute",
            ls(),
            json!({ "action": "allow", "kind": ["read", "execute"] }),
            ALLOW,
        );
        check(
            "execute",
            ls(),
            json!({ "action": "allow", "agent": "goose" }),
            None,
        );
        check(
            "execute",
            json!({ "command": "ls", "agent": "goose" }),
            json!({ "action": "allow", "agent": "goose" }),
            ALLOW,
        );
        check(
            "read",
            json!({ "paths": ["/src/app/a"] }),
            json!([{ "action": "ask" }, { "action": "allow" }]),
            ASK,
        );
        check(
            "execute",
            json!({ "command": "rm x" }),
            json!([{ "action": "reject", "command": "rm *" }, { "action": "allow" }]),
            REJECT,
        );
    }

    #[test]
    fn a_command_is_allowed_as_a_whole() {
        let run = |command: &str, glob: &str, expected| {
            check(
                "execute",
                json!({ "command": command }),
                json!({ "action": "allow", "command": glob }),
                expected,
            );
        };
        run("cargo test", "cargo test *", ALLOW);
        run("cargo test -p x", "cargo test *", ALLOW);
        run("cargo testify", "cargo test *", None);
        run("xcargo test", "cargo test *", None);
        run("make a.b", "make a?b", ALLOW);
        run("make axb", "make a.b", None);
        run("cargo test; rm -rf /", "cargo test*", None);
        run("cargo test && rm x", "cargo *", None);
        run("cargo test | sh", "cargo *", None);
        run("cargo test > /etc/x", "cargo *", None);
        run("cargo test $(rm x)", "cargo *", None);
        run("cargo test `rm x`", "cargo *", None);
        run("cargo test\nrm x", "cargo *", None);
        run("a && b", "a && b", ALLOW);
        // A command that is not known cannot be allowed by a pattern.
        check(
            "execute",
            json!({ "title": "Terminal" }),
            json!({ "action": "allow", "command": "*" }),
            None,
        );
    }

    #[test]
    fn nothing_rides_beside_an_allowed_command() {
        let of = |input: Value| {
            Call::of(
                "cursor",
                &ToolCall {
                    kind: ToolKind::Execute,
                    raw_input: Some(input),
                    ..ToolCall::default()
                },
            )
        };
        let rule = || json!([{ "action": "allow", "command": "cargo test *" }]);
        let allows = |input: Value| judge(&of(input), rule(), &disk()) == ALLOW;
        assert!(allows(json!({ "command": "cargo test" })));
        assert!(allows(
            json!({ "command": "cargo", "args": ["test", "-p", "x"] })
        ));
        assert!(allows(
            json!({ "command": "cargo test", "env": { "CI": "1", "LC_ALL": "C" } })
        ));
        assert!(allows(
            json!({ "command": "cargo test", "cwd": "/src/app/sub", "shell": "/usr/bin/bash" })
        ));
        for rider in [
            json!({ "script": "rm x" }),
            json!({ "cmd": ["rm", "x"] }),
            json!({ "args": "; rm x" }),
            json!({ "args": [";", "rm x"] }),
            json!({ "then": [{ "command": "rm x" }] }),
            json!({ "env": { "PATH": "/tmp" } }),
            json!({ "env": ["LD_PRELOAD=/tmp/x.so"] }),
            json!({ "options": { "env": [{ "name": "PATH", "value": "/tmp" }] } }),
            json!({ "cwd": "/etc" }),
            json!({ "steps": [{ "env": { "PATH": "/tmp" } }] }),
            json!({ "extra_env": { "PATH": "/tmp" } }),
            json!({ "processEnv": ["PATH=/tmp"] }),
            json!({ "shell": "/tmp/sh" }),
            json!({ "pre_command": "rm x" }),
            json!({ "postCommand": ["rm", "x"] }),
            json!({ "a": { "a": { "a": { "a": { "a": { "a": { "command": "rm x" } } } } } } }),
            json!({ "steps": (0..200).map(|i| json!({ "command": format!("cargo test {i}") })).collect::<Vec<_>>() }),
            json!({ "a": [[[[[[[[[[[[[[{ "command": "rm x" }]]]]]]]]]]]]]] }),
        ] {
            let mut input = json!({ "command": "cargo test" });
            for (key, value) in rider.as_object().unwrap() {
                input[key] = value.clone();
            }
            assert!(!allows(input.clone()), "{input}");
        }
        let reject = json!([{ "action": "reject", "command": "rm *" }]);
        let two = of(json!({ "command": "ls", "script": "rm x" }));
        assert_eq!(judge(&two, reject, &disk()), REJECT);
    }

    #[test]
    fn a_command_is_rejected_wherever_it_is_written() {
        let rule = || json!({ "action": "reject", "command": "rm *" });
        for command in [
            "cd x && rm -rf y",
            "echo $(rm -rf y)",
            "a\nrm y",
            "/bin/rm x",
        ] {
            check("execute", json!({ "command": command }), rule(), REJECT);
        }
        check("execute", json!({ "title": "rm x" }), rule(), REJECT);
        check("execute", json!({ "title": "`rm x`" }), rule(), REJECT);
        // Called a read, it is a command all the same.
        check(
            "execute",
            json!({ "said": "read", "command": "rm x" }),
            json!({ "action": "allow", "kind": "read" }),
            None,
        );
        check(
            "execute",
            json!({ "said": "read", "command": "rm x" }),
            json!({ "action": "reject", "kind": "read" }),
            REJECT,
        );
        check(
            "execute",
            json!({ "said": "read", "command": "rm x" }),
            json!({ "action": "reject", "kind": "execute" }),
            REJECT,
        );
    }

    #[test]
    fn all_paths_are_allowed_or_none() {
        let edit = |paths: &[&str], glob: Value, expected| {
            check(
                "edit",
                json!({ "paths": paths }),
                json!({ "action": "allow", "path": glob }),
                expected,
            );
        };
        edit(&["/src/app/src/a.lua"], json!("src/**"), ALLOW);
        edit(&["src/deep/er/a.lua"], json!("src/**"), ALLOW);
        edit(&["file:///src/app/src/a%20b"], json!("src/a b"), ALLOW);
        edit(&["/src/app/src/a.lua"], json!("src"), ALLOW);
        edit(&["/src/app/srcs/a.lua"], json!("src"), None);
        edit(&["/src/app/src/x/a.lua"], json!("src/*.lua"), None);
        edit(&["/src/app/src/a.lua"], json!("**/*.{lua,rs}"), ALLOW);
        edit(&["/src/app/src/a.py"], json!("**/*.{lua,rs}"), None);
        edit(&["src/a", "doc/b"], json!("src/**"), None);
        edit(&["src/a", "doc/b"], json!(["src/**", "doc/**"]), ALLOW);
        edit(&["src/a", "/etc/x"], json!("src/**"), None);
        edit(&["/more/x"], json!("**"), ALLOW);
        // Outside, the rule has to say where.
        edit(&["/etc/hosts"], json!("**"), None);
        edit(&["/etc/hosts"], json!("/**"), None);
        edit(&["/etc/hosts"], json!("/etc/hosts"), ALLOW);
        edit(&["/tmp/x/y"], json!("/tmp/**"), ALLOW);
        edit(&["/home/me/n/x"], json!("~/n/**"), ALLOW);
        edit(&["../other/x"], json!("**"), None);
        edit(&["src/../../other/x"], json!("src/**"), None);
        edit(&["link/x"], json!("link/**"), None);
        edit(&["within/x"], json!("src/**"), ALLOW);
        let any = |kind: &str, paths: &[&str], expected| {
            check(
                kind,
                json!({ "paths": paths }),
                json!({ "action": "allow" }),
                expected,
            );
            check(
                kind,
                json!({ "paths": paths }),
                json!({ "action": "allow", "kind": kind }),
                expected,
            );
        };
        any("edit", &["/src/app/x"], ALLOW);
        for outside in [
            "/etc/hosts",
            "/src/application/x",
            "link",
            "up/new",
            "chain/new",
            "link/../app/x",
            "round/x",
            "~/.bashrc",
            "file:///etc/x",
            "file:///src/app/%2e%2e/x",
        ] {
            for kind in ["read", "edit", "delete", "move", "search", "surprise"] {
                any(kind, &[outside], None);
            }
        }
        any("move", &["src/a", "/etc/a"], None);
    }

    #[test]
    fn one_path_is_enough_to_reject() {
        let reject = |paths: &[&str], glob: &str, expected| {
            check(
                "edit",
                json!({ "paths": paths }),
                json!({ "action": "reject", "path": glob }),
                expected,
            );
        };
        reject(&["src/a", ".env"], ".env", REJECT);
        reject(&["src/a"], ".env", None);
        // By its own name and by what it leads to.
        reject(&["/src/app/.env"], "**/.env", REJECT);
        reject(&["/src/app/.env"], "/secret/**", REJECT);
        reject(&["file:///src/app/%2Eenv"], ".env", REJECT);
        reject(&["x/../.env"], ".env", REJECT);
        reject(&["./x/.././.env"], ".env", REJECT);
        reject(&["//src//app/.env"], ".env", REJECT);
        reject(&[".env/"], ".env", REJECT);
        reject(&["FILE://localhost/src/app/.env#L3"], ".env", REJECT);
        reject(&["file:///src/app/.env?v=1"], ".env", REJECT);
        reject(&["file:///src/app/.env#top"], ".env", REJECT);
        reject(&["file:/src/app/x/%2e%2e/%2Eenv"], ".env", REJECT);
        reject(&["~/../../src/app/.env"], ".env", REJECT);
        reject(&["~/.ssh/id"], "~/.ssh", REJECT);
        let mut folding = disk();
        folding.ignore_case = true;
        let shout = call("edit", json!({ "paths": ["/SRC/app/src/A.ENV"] }));
        let rule = json!([{ "action": "reject", "path": "**/*.env" }]);
        assert_eq!(judge(&shout, rule.clone(), &folding), REJECT);
        assert_eq!(judge(&shout, rule, &disk()), None);
    }

    #[test]
    fn a_path_allows_no_command_and_no_fetch() {
        for kind in ["execute", "fetch"] {
            check(
                kind,
                json!({ "paths": ["src/a"], "command": "x" }),
                json!({ "action": "allow", "path": "src/**" }),
                None,
            );
            check(
                kind,
                json!({ "paths": ["src/a"], "command": "x" }),
                json!({ "action": "allow", "kind": kind, "path": "src/**" }),
                None,
            );
        }
        check(
            "execute",
            json!({ "paths": ["src"], "command": "x" }),
            json!({ "action": "allow", "command": "x", "path": "src/**" }),
            ALLOW,
        );
        check(
            "execute",
            json!({ "paths": ["/etc"], "command": "x" }),
            json!({ "action": "allow", "command": "x" }),
            None,
        );
    }

    #[test]
    fn a_kind_needs_what_it_implies() {
        for kind in ["read", "edit", "delete", "move", "other", "surprise"] {
            check(kind, json!({}), json!({ "action": "allow" }), None);
            check(
                kind,
                json!({}),
                json!({ "action": "allow", "kind": kind }),
                None,
            );
            check(
                kind,
                json!({}),
                json!({ "action": "reject", "kind": kind }),
                REJECT,
            );
        }
        for kind in ["search", "fetch", "think", "switch_mode"] {
            check(
                kind,
                json!({}),
                json!({ "action": "allow", "kind": kind }),
                ALLOW,
            );
        }
    }

    #[test]
    fn tools_of_servers_are_allowed_by_name_only() {
        let github = |kind: &str, rule: Value, expected| {
            check(
                kind,
                json!({ "mcp": "github/list_issues", "tool": "mcp__github__list_issues", "paths": [] }),
                rule,
                expected,
            );
        };
        for kind in ["read", "search", "fetch", "other"] {
            github(kind, json!({ "action": "allow", "kind": kind }), None);
            github(
                kind,
                json!({ "action": "allow", "tool": "github/*" }),
                ALLOW,
            );
            github(
                kind,
                json!({ "action": "allow", "tool": "*/list_issues" }),
                ALLOW,
            );
            github(kind, json!({ "action": "allow", "tool": "other/*" }), None);
            github(
                kind,
                json!({ "action": "allow", "kind": kind, "tool": "github/list_issues" }),
                ALLOW,
            );
            github(
                kind,
                json!({ "action": "reject", "tool": "github/*" }),
                REJECT,
            );
            github(kind, json!({ "action": "reject", "kind": kind }), REJECT);
        }
        check(
            "read",
            json!({ "mcp": "fs/read", "paths": ["src/a"] }),
            json!({ "action": "allow", "kind": "read" }),
            None,
        );
        check(
            "read",
            json!({ "mcp": "fs/read", "paths": ["src/a"] }),
            json!({ "action": "allow", "path": "**" }),
            None,
        );
        check(
            "edit",
            json!({ "mcp": "fs/write", "paths": ["/etc/a"] }),
            json!({ "action": "allow", "tool": "fs/*" }),
            None,
        );
        check(
            "other",
            json!({ "tool": "mytool" }),
            json!({ "action": "allow", "tool": "my*" }),
            ALLOW,
        );
    }

    #[test]
    fn rules_are_refused_with_a_reason() {
        let wrong = |rules: Value| {
            let rules = serde_json::from_value(rules).unwrap();
            Policy::new(PolicySpec {
                rules,
                ..PolicySpec::default()
            })
            .unwrap_err()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n")
        };
        let long = "x".repeat(5000);
        assert!(
            wrong(json!([{ "action": "ask" }, { "action": "allow", "command": long }]))
                .contains("rule 2: a pattern is longer")
        );
        assert!(
            wrong(json!([{ "action": "allow", "path": "{a,b}".repeat(30) }])).contains("choices")
        );
    }

    #[test]
    fn a_rule_is_named_in_the_transcript() {
        let name = |rule: Value| title(&serde_json::from_value(rule).unwrap(), 2);
        assert_eq!(
            name(json!({ "action": "allow", "name": "tests" })),
            "rule `tests`"
        );
        assert_eq!(
            name(json!({ "action": "reject", "kind": "execute", "command": "rm *" })),
            "rule 2 (execute rm *)"
        );
        assert_eq!(name(json!({ "action": "ask" })), "rule 2");
    }
}
