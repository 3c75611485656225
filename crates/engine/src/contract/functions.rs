//! Checks the functions Lua calls: `types.lua` and the registrations in `src/nvim/` must agree in names,
//! parameters, and which parameters and results may be nil.

use std::collections::BTreeMap;

use regex::Regex;

const BRIDGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../src/nvim");

#[test]
fn the_functions_lua_calls_are_those_that_are_registered() {
    let registered = registered();
    let described = described(&std::fs::read_to_string(super::FILE).unwrap());
    assert!(registered.len() > 50, "{}", registered.len());
    let mut wrong: Vec<String> = Vec::new();
    for name in described.keys() {
        if !registered.contains_key(name) {
            wrong.push(format!("{name}: described, not registered"));
        }
    }
    for (name, real) in &registered {
        match described.get(name) {
            None => wrong.push(format!("{name}: registered, not described")),
            Some(said) => wrong.extend(real.differs(said).map(|why| format!("{name}: {why}"))),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A function as registered in Rust.
struct Registered {
    /// The parameter types.
    takes: Vec<String>,
    gives: Gives,
}

/// What a function returns.
#[derive(PartialEq)]
enum Gives {
    /// True, or nil and a message.
    Done,
    /// A value, or nil and a message.
    Answer,
    /// A value, or nil.
    View,
    /// Not visible from the registration.
    Other,
}

/// A function as described for Lua: parameter and result types.
struct Described {
    takes: Vec<String>,
    gives: Vec<String>,
}

impl Registered {
    fn differs(&self, said: &Described) -> Option<String> {
        if self.takes.len() != said.takes.len() {
            return Some(format!("takes {:?}, not {:?}", self.takes, said.takes));
        }
        for (real, said) in self.takes.iter().zip(&said.takes) {
            let inner = real
                .strip_prefix("Option<")
                .and_then(|rest| rest.strip_suffix('>'));
            if real != "Value" && inner.is_some() != said.ends_with('?') {
                return Some(format!("{said} is {real}"));
            }
            let said = said.trim_end_matches('?');
            let fits = match inner.unwrap_or(real).trim_start_matches("mlua::") {
                "u64" | "usize" => matches!(said, "integer" | "cursor_agent.Key"),
                "bool" => said == "boolean",
                "String" | "LuaString" => said == "string" || said.starts_with('"'),
                "Vec<String>" | "Vec<LuaString>" => said == "string[]",
                _ => true,
            };
            if !fits {
                return Some(format!("{said} is {real}"));
            }
        }
        let gives: Vec<&str> = said.gives.iter().map(String::as_str).collect();
        let nil = |at: usize| gives.get(at).is_some_and(|said| said.ends_with('?'));
        let right = match self.gives {
            Gives::Done => gives == ["boolean?", "string?"],
            Gives::Answer => gives.len() == 2 && nil(0) && gives[1] == "string?",
            Gives::View => gives.len() == 1 && nil(0),
            Gives::Other => true,
        };
        (!right).then(|| format!("gives {gives:?}"))
    }
}

/// Every `module.set` of a function.
fn registered() -> BTreeMap<String, Registered> {
    let mut all = BTreeMap::new();
    let set = Regex::new(r#"module\.set\(\s*"(\w+)",\s*"#).unwrap();
    let closure = Regex::new(r"^lua\.create_function\(\s*\|\w+,\s*").unwrap();
    let named = Regex::new(r"^lua\.create_function\((\w+)\)").unwrap();
    for file in std::fs::read_dir(BRIDGE).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let starts: Vec<_> = set.captures_iter(&text).collect();
        for (at, start) in starts.iter().enumerate() {
            let from = start.get(0).unwrap().end();
            let to = starts
                .get(at + 1)
                .map_or(text.len(), |next| next.get(0).unwrap().start());
            // Without what follows the last one.
            let body = text[from..to].split("\n}\n").next().unwrap();
            let (head, body) = if body.starts_with("simple(") || body.starts_with("view(") {
                ("key: u64|".to_owned(), body)
            } else if let Some(found) = closure.find(body) {
                (body[found.end()..].to_owned(), body)
            } else if let Some(found) = named.captures(body) {
                let begin = text.find(&format!("\nfn {}(", &found[1])).unwrap();
                let rest = &text[begin..];
                let head = &rest[rest.find(", ").unwrap() + 2..];
                let head = head.replacen(") -> ", "|", 1);
                (head, rest.split("\n}\n").next().unwrap())
            } else {
                continue;
            };
            let has = |call: &str| body.contains(call);
            let gives = if body.starts_with("simple(") || has("done(") {
                Gives::Done
            } else if body.starts_with("view(") {
                Gives::View
            } else if has("answer(") || has("answer_table(") {
                Gives::Answer
            } else {
                Gives::Other
            };
            let takes = types(&head);
            all.insert(start[1].to_owned(), Registered { takes, gives });
        }
    }
    all
}

/// The types in the head of a closure, from its second parameter on: `(key, id): (u64, String)|`.
fn types(head: &str) -> Vec<String> {
    let head = head.split('|').next().unwrap().trim();
    if head.starts_with("()") {
        return Vec::new();
    }
    let list = head.split_once(": ").unwrap().1.trim();
    let list = match list.strip_prefix('(') {
        Some(inner) => inner.trim_end_matches(')'),
        None => list,
    };
    split(list)
}

/// Every `---@field name fun(…): …` of the library's class.
fn described(file: &str) -> BTreeMap<String, Described> {
    let class = file
        .split("---@class (exact) cursor_agent.Native\n")
        .nth(1)
        .unwrap();
    let lines = class.lines().take_while(|line| line.starts_with("---@"));
    let lines = lines.filter_map(|line| line.strip_prefix("---@field ")?.split_once(" fun("));
    lines
        .map(|(name, rest)| {
            let end = closing(rest);
            let takes = split(&rest[..end])
                .iter()
                .map(|param| param.split_once(": ").unwrap().1.to_owned())
                .collect();
            let gives = rest[end + 1..]
                .strip_prefix(": ")
                .map_or_else(Vec::new, |rest| {
                    // A type contains no space outside brackets; the description follows the last one.
                    let mut gives: Vec<String> = Vec::new();
                    for part in split(rest) {
                        let end = outer_space(&part).unwrap_or(part.len());
                        gives.push(part[..end].to_owned());
                        if end < part.len() {
                            break;
                        }
                    }
                    gives
                });
            (name.to_owned(), Described { takes, gives })
        })
        .collect()
}

/// The position of the matching closing bracket.
fn closing(text: &str) -> usize {
    let mut depth = 1;
    text.find(|char| {
        match char {
            '(' | '{' | '[' | '<' => depth += 1,
            ')' | '}' | ']' | '>' => depth -= 1,
            _ => {}
        }
        depth == 0
    })
    .unwrap()
}

fn outer_space(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.find(|char| {
        match char {
            '(' | '{' | '[' | '<' => depth += 1,
            ')' | '}' | ']' | '>' => depth -= 1,
            _ => {}
        }
        depth == 0 && char == ' '
    })
}

/// Splits at commas outside brackets.
fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0;
    for char in text.chars() {
        match char {
            '(' | '{' | '[' | '<' => depth += 1,
            ')' | '}' | ']' | '>' => depth -= 1,
            _ => {}
        }
        if char == ',' && depth == 0 {
            parts.push(String::new());
        } else if let Some(last) = parts.last_mut() {
            last.push(char);
        }
    }
    let parts = parts.iter().map(|part| part.trim().to_owned());
    parts.filter(|part| !part.is_empty()).collect()
}
