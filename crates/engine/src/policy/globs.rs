//! Globs of rules: compiled once, matched in time linear in the text.
//!
//! Not by `globset`: it writes `(?-u)` before each pattern, so that `?` and `*` stand for bytes and only ASCII letters fold.
//! There a rule for `?.txt` would miss `é.txt`, and on a disk that ignores case one for `É` would miss `é`; and a rule that is
//! missed allows or asks where it should reject. It also knows nothing of commands, where `*` stops at what a shell reads, and takes `[id].ts` for a pattern.

use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};

use crate::error::BadRule;

/// A longer glob is refused.
pub const MAX_GLOB_BYTES: usize = 1024;
/// More choices than these in `{a,b}` are refused.
pub const MAX_CHOICES: usize = 256;
/// What a compiled glob may take.
const MAX_COMPILED_BYTES: usize = 4 * 1024 * 1024;

/// What lets a shell do more than one command: a `*` of a rule that allows does not stand for these.
const SHELL: &str = r";&|<>$`()\r\n";

/// A text to match; `*` matches any text.
#[derive(Debug, Clone)]
pub struct TextGlob(Regex);

impl TextGlob {
    /// For commands. `careful` ones do not take a second command for an argument.
    pub fn command(glob: &str, careful: bool) -> Result<Self, BadRule> {
        let any = if careful {
            format!("[^{SHELL}]")
        } else {
            "(?s:.)".to_owned()
        };
        let full = translate(glob, &any)?;
        // `cargo test *` means the command without arguments too.
        let bare = glob
            .strip_suffix('*')
            .filter(|head| head.ends_with(char::is_whitespace))
            .map(str::trim_end)
            .filter(|bare| !bare.is_empty());
        match bare {
            Some(bare) => compile(&format!("{full}|{}", translate(bare, &any)?), false),
            None => compile(&full, false),
        }
        .map(Self)
    }

    /// For names; `*` does not stand for the `/` between a server and its tool.
    pub fn name(glob: &str) -> Result<Self, BadRule> {
        compile(&translate(glob, "[^/]")?, true).map(Self)
    }

    /// Whether all of a text matches.
    pub fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// One of the paths a glob matches: a directory or file, and what may follow below it.
#[derive(Debug)]
pub struct PathGlob {
    /// The part without wildcards.
    pub fixed: String,
    /// The rest, from there on. Without one, everything below is meant.
    wild: Option<Wild>,
}

#[derive(Debug)]
struct Wild {
    exact: Regex,
    source: String,
    any_case: OnceLock<Option<Regex>>,
}

impl PathGlob {
    /// A glob as one for each choice of its braces.
    pub fn parse(glob: &str) -> Result<Vec<Self>, BadRule> {
        check_length(glob)?;
        let mut all = Vec::new();
        expand(glob, &mut all)?;
        all.iter().map(|one| Self::one(one)).collect()
    }

    fn one(glob: &str) -> Result<Self, BadRule> {
        let Some(star) = glob.find(['*', '?']) else {
            return Ok(Self {
                fixed: glob.to_owned(),
                wild: None,
            });
        };
        let from = glob[..star].rfind('/').map_or(0, |slash| slash + 1);
        let source = wild_source(&glob[from..]);
        Ok(Self {
            fixed: glob[..from].to_owned(),
            wild: Some(Wild {
                exact: compile(&source, false)?,
                source,
                any_case: OnceLock::new(),
            }),
        })
    }

    /// Whether the rest of a path below `fixed` matches.
    pub fn matches(&self, rest: &str, ignore_case: bool) -> bool {
        let Some(wild) = &self.wild else { return true };
        if !ignore_case {
            return wild.exact.is_match(rest);
        }
        let any_case = wild
            .any_case
            .get_or_init(|| compile(&wild.source, true).ok());
        any_case
            .as_ref()
            .is_some_and(|pattern| pattern.is_match(rest))
    }
}

/// `**` matches any number of directories, `*` and `?` text within one.
fn wild_source(glob: &str) -> String {
    let parts: Vec<&str> = glob.split('/').collect();
    let mut source = String::new();
    let mut joint = "";
    for (at, part) in parts.iter().enumerate() {
        let last = at + 1 == parts.len();
        match (*part, last) {
            ("**", true) if joint.is_empty() => source.push_str("(?s:.*)"),
            ("**", true) => source.push_str("(?s:/.*)?"),
            ("**", false) => {
                source.push_str(joint);
                source.push_str("(?s:.*/)?");
                joint = "";
            }
            (part, _) => {
                source.push_str(joint);
                push_text(&mut source, part, "[^/]");
                joint = "/";
            }
        }
    }
    source
}

fn push_text(source: &mut String, text: &str, any: &str) {
    let mut starred = false;
    for char in text.chars() {
        match char {
            '*' if starred => continue,
            '*' => {
                source.push_str(any);
                source.push('*');
            }
            '?' => source.push_str(any),
            other => source.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
        starred = char == '*';
    }
}

fn translate(glob: &str, any: &str) -> Result<String, BadRule> {
    check_length(glob)?;
    let mut source = String::new();
    push_text(&mut source, glob, any);
    Ok(source)
}

fn check_length(glob: &str) -> Result<(), BadRule> {
    if glob.len() > MAX_GLOB_BYTES {
        return Err(BadRule::TooLong);
    }
    Ok(())
}

fn compile(source: &str, ignore_case: bool) -> Result<Regex, BadRule> {
    RegexBuilder::new(&format!("^(?:{source})$"))
        .case_insensitive(ignore_case)
        .size_limit(MAX_COMPILED_BYTES)
        .build()
        .map_err(|_| BadRule::TooLarge)
}

/// `{a,b}` in a glob as globs without it; braces may hold braces.
fn expand(glob: &str, out: &mut Vec<String>) -> Result<(), BadRule> {
    if out.len() >= MAX_CHOICES {
        return Err(BadRule::TooManyChoices);
    }
    let Some((open, close)) = first_braces(glob) else {
        out.push(glob.to_owned());
        return Ok(());
    };
    let (before, inside, after) = (&glob[..open], &glob[open + 1..close], &glob[close + 1..]);
    for choice in choices(inside) {
        expand(&format!("{before}{choice}{after}"), out)?;
    }
    Ok(())
}

fn first_braces(glob: &str) -> Option<(usize, usize)> {
    let open = glob.find('{')?;
    let mut depth = 0;
    for (at, char) in glob[open..].char_indices() {
        match char {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((open, open + at));
        }
    }
    None
}

fn choices(inside: &str) -> Vec<&str> {
    let mut depth = 0;
    inside
        .split(|char| {
            match char {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            char == ',' && depth == 0
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use super::*;

    fn path(glob: &str, rest: &str) -> bool {
        PathGlob::parse(glob)
            .unwrap()
            .iter()
            .any(|one| one.matches(rest, false))
    }

    #[test]
    fn a_star_stays_in_its_directory_and_two_do_not() {
        let yes = [
            ("*.lua", "a.lua"),
            ("**/*.lua", "a.lua"),
            ("**/*.lua", "x/y/a.lua"),
            ("**", ""),
            ("**", "x/y"),
            ("*/**", "x"),
            ("*/**", "x/y/z"),
            ("**/x/**/y", "x/y"),
            ("**/x/**/y", "a/x/b/c/y"),
            ("**/*.{lua,rs}", "a.rs"),
            ("**/{a,b{c,d}}?", "bdx"),
            ("?.x", "é.x"),
            ("**/[id].ts", "p/[id].ts"),
        ];
        for (glob, text) in yes {
            assert!(path(glob, text), "{glob} {text}");
        }
        let no = [
            ("*.lua", "x/a.lua"),
            ("*.lua", "a.luac"),
            ("**/x/**/y", "xy"),
            ("**/x/**/y", "ax/y"),
            ("?.x", "/.x"),
            ("**/*.{lua,rs}", "a.py"),
            ("**/[id].ts", "p/i.ts"),
        ];
        for (glob, text) in no {
            assert!(!path(glob, text), "{glob} {text}");
        }
        for (glob, text) in [("*.ENV", "x.env"), ("*É", "xé")] {
            assert!(PathGlob::parse(glob).unwrap()[0].matches(text, true));
        }
    }

    #[test]
    fn matching_takes_linear_time() {
        // In a thread: what takes forever is to fail, not to hang.
        let (done, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            match_long_texts();
            let _ = done.send(());
        });
        assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok(()));
    }

    fn match_long_texts() {
        let long = "a".repeat(200_000);
        let stars = "*a".repeat(200) + "*b";
        assert!(!TextGlob::command(&stars, false).unwrap().matches(&long));
        assert!(!TextGlob::command(&stars, true).unwrap().matches(&long));
        let deep = "a/".repeat(20_000) + "c";
        let globs = "**/a/".repeat(50) + "b";
        assert!(!path(&globs, &deep));
    }

    #[test]
    fn a_pattern_has_bounds() {
        assert!(TextGlob::command(&"x".repeat(2000), true).is_err());
        assert!(PathGlob::parse(&"{a,b}".repeat(20)).is_err());
        assert!(PathGlob::parse(&format!("{}x", "{".repeat(1000))).is_ok());
    }
}
