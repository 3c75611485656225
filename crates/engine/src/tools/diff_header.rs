//! Diffs of new and deleted files as Cursor sends them: a unified diff's headers, one sign short, taken for the text.
//!
//! A new file comes as `oldText: "-- /dev/null"` and `newText: "++ b/<path>\n<content>"`.

use acp::types::Diff;

/// A diff without such headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plain {
    /// The text before; none for a new file.
    pub old: Option<String>,
    /// The text after.
    pub new: String,
    /// The file is gone.
    pub deleted: bool,
}

/// Takes the headers off. A text is taken for one only where the other side says `/dev/null` and it names the diff's
/// own file: any other text that begins like a header is a file's.
pub fn strip(diff: &Diff) -> Plain {
    let old = diff.old_text.as_deref().unwrap_or_default();
    if is_dev_null(old, '-')
        && let Some(content) = after_header(&diff.new_text, '+', 'b', &diff.path)
    {
        return Plain {
            old: None,
            new: content.to_owned(),
            deleted: false,
        };
    }
    if is_dev_null(&diff.new_text, '+')
        && let Some(content) = after_header(old, '-', 'a', &diff.path)
    {
        return Plain {
            old: Some(content.to_owned()),
            new: String::new(),
            deleted: true,
        };
    }
    Plain {
        old: diff.old_text.clone(),
        new: diff.new_text.clone(),
        deleted: false,
    }
}

/// The header's text without its two or three signs.
fn after_signs(line: &str, sign: char) -> Option<&str> {
    let rest = line.trim_start_matches(sign);
    let signs = line.len() - rest.len();
    rest.strip_prefix(' ')
        .filter(|_| (2..=3).contains(&signs))
        .map(|rest| rest.trim_end_matches(['\r', '\n']))
}

fn is_dev_null(text: &str, sign: char) -> bool {
    after_signs(text, sign).is_some_and(|rest| rest.trim_end() == "/dev/null")
}

/// What follows a first line that is a header of this file.
fn after_header<'a>(text: &'a str, sign: char, side: char, path: &str) -> Option<&'a str> {
    let (line, content) = text.split_once('\n').unwrap_or((text, ""));
    let named = after_signs(line, sign)?
        .strip_prefix(side)?
        .strip_prefix('/')?;
    // Some writers of diffs put a date after a tab.
    let named = named.split('\t').next().unwrap_or(named).trim_end();
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    // The directories may be told otherwise: from the repository's root, or through a link.
    (!named.is_empty() && name(named) == name(path)).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strip_texts(path: &str, old: Option<&str>, new: &str) -> (Option<String>, String, bool) {
        let plain = strip(&Diff {
            path: path.to_owned(),
            old_text: old.map(str::to_owned),
            new_text: new.to_owned(),
            meta: None,
        });
        (plain.old, plain.new, plain.deleted)
    }

    #[test]
    fn headers_are_taken_off_a_new_file() {
        let null = "-- /dev/null";
        for (path, old, new, content) in [
            (
                "/p/src/a.rs",
                null,
                "++ b/src/a.rs\none\ntwo\n",
                "one\ntwo\n",
            ),
            ("/p/src/a.rs", "--- /dev/null", "+++ b/src/a.rs\none", "one"),
            (
                "/p/src/a.rs",
                "-- /dev/null\n",
                "++ b/p/src/a.rs\none\n",
                "one\n",
            ),
            (
                "/p/src/a.rs",
                "-- /dev/null\r\n",
                "++ b/src/a.rs\r\none\r\n",
                "one\r\n",
            ),
            ("/p/src/a.rs", null, "++ b//p/src/a.rs\none\n", "one\n"),
            ("src/a.rs", null, "++ b/src/a.rs\none\n", "one\n"),
            ("/p/a b/c d.txt", null, "++ b/a b/c d.txt\n \n", " \n"),
            ("/p/a.rs", null, "++ b/a.rs\t2026-10-01\none\n", "one\n"),
            ("/p/é.md", null, "++ b/é.md\né\n", "é\n"),
            // Empty, with and without the end of the header's line.
            ("/p/a.rs", null, "++ b/a.rs", ""),
            ("/p/a.rs", null, "++ b/a.rs\n", ""),
            ("/p/a.rs", null, "++ b/a.rs\n\n", "\n"),
            // A link on the way: only the name is the same.
            ("/private/p/a.rs", null, "++ b/var/p/a.rs\none\n", "one\n"),
            // Only one header is one.
            ("/p/a.rs", null, "++ b/a.rs\n++ b/a.rs\n", "++ b/a.rs\n"),
        ] {
            assert_eq!(
                strip_texts(path, Some(old), new),
                (None, content.to_owned(), false),
                "{path} {old:?} {new:?}"
            );
        }
    }

    #[test]
    fn headers_are_taken_off_a_deleted_file() {
        for (old, new) in [
            ("-- a/src/a.rs\none\n", "++ /dev/null"),
            ("--- a/src/a.rs\none\n", "+++ /dev/null\n"),
        ] {
            assert_eq!(
                strip_texts("/p/src/a.rs", Some(old), new),
                (Some("one\n".to_owned()), String::new(), true)
            );
        }
    }

    #[test]
    fn a_text_that_only_looks_like_a_header_stays() {
        let null = Some("-- /dev/null");
        for (path, old, new) in [
            ("/p/a.rs", null, "++ b/other.rs\none\n"),
            ("/p/a.rs", null, "one\n"),
            ("/p/a.rs", null, ""),
            ("/p/a.rs", null, "++ b/\none\n"),
            ("/p/a.rs", null, "++b/a.rs\none\n"),
            ("/p/a.rs", null, "++++ b/a.rs\none\n"),
            ("/p/a.rs", null, "+ b/a.rs\none\n"),
            ("/p/a.rs", null, "++ a/a.rs\none\n"),
            ("/p/a.rs", Some("one\n"), "++ b/a.rs\none\n"),
            ("/p/a.rs", Some("-- /dev/null\nmore\n"), "++ b/a.rs\none\n"),
            ("/p/a.rs", Some("-- /dev/nullx"), "++ b/a.rs\none\n"),
            ("/p/a.rs", Some(""), "++ b/a.rs\none\n"),
            ("/p/a.rs", None, "++ b/a.rs\none\n"),
            ("/p/a.rs", Some("-- a/other.rs\none\n"), "++ /dev/null"),
            ("/p/a.rs", Some("one\n"), "++ /dev/null"),
            ("/p/a.rs", Some("one\n"), "two\n"),
        ] {
            assert_eq!(
                strip_texts(path, old, new),
                (old.map(str::to_owned), new.to_owned(), false),
                "{old:?} {new:?}"
            );
        }
    }

    proptest::proptest! {
        /// Whatever a new file holds is what is left of it.
        #[test]
        fn the_content_is_untouched(content in "[-+ ab/\n]{0,40}", dir in "[a-c /]{0,8}", name in "[a-c .]{0,6}x") {
            let path = format!("{dir}/{name}");
            let new = format!("++ b/{path}\n{content}");
            proptest::prop_assert_eq!(strip_texts(&path, Some("-- /dev/null"), &new), (None, content, false));
        }
    }
}
