//! What Cursor's CLI keeps of a project's servers: which it was allowed to use, and which are switched off. Read only.

use serde_json::Value;

/// The name of a project's directory below `~/.cursor/projects`: what is no letter or digit becomes `-`, squeezed and trimmed.
pub fn slug(root: &str) -> String {
    let mut slug = String::with_capacity(root.len());
    for c in root.chars() {
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.trim_end_matches('-').to_owned()
}

/// The entries of such a file; none where it is not a list of texts.
pub fn entries(text: &str) -> Vec<String> {
    match serde_json::from_str(text) {
        Ok(Value::Array(entries)) => {
            let texts = entries.into_iter().filter_map(|entry| match entry {
                Value::String(text) => Some(text),
                _ => None,
            });
            texts.collect()
        }
        _ => Vec::new(),
    }
}

/// Whether the entries name a server: by its name, or by its name and a hash of what it was when it was approved.
pub fn names(entries: &[String], server: &str) -> bool {
    entries.iter().any(|entry| {
        entry == server
            || entry
                .strip_prefix(server)
                .and_then(|rest| rest.strip_prefix('-'))
                .is_some_and(|hash| hash.len() >= 8 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_the_name_cursor_gives_it() {
        assert_eq!(slug("/home/me/src/my_app.rs"), "home-me-src-my-app-rs");
        assert_eq!(slug("/a//b--c/"), "a-b-c");
        assert_eq!(slug("/"), "");
        assert_eq!(slug("/früh"), "fr-h");
    }

    #[test]
    fn an_entry_names_its_server_and_no_other() {
        let approved = entries(r#"["git-0123456789abcdef", "docs", 1]"#);
        assert!(names(&approved, "git"));
        assert!(names(&approved, "docs"));
        assert!(!names(&approved, "gi"));
        assert!(!names(&entries(r#"["git-hub"]"#), "git"));
        for text in ["", "{}", "nothing"] {
            assert!(entries(text).is_empty());
        }
    }
}
