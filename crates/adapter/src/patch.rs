//! A unified diff, taken apart into the texts before and after, for when that is all the CLI says of an edit.

/// One hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// Where it stands in the new file, from 1.
    pub line: u32,
    /// The lines before.
    pub old: String,
    /// The lines after.
    pub new: String,
}

/// A diff of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Patch {
    /// There was no such file before.
    pub creates: bool,
    /// Its hunks.
    pub hunks: Vec<Hunk>,
}

/// Reads a diff. What is no part of a hunk is skipped.
pub fn parse(text: &str) -> Patch {
    let mut patch = Patch::default();
    // How many lines of the hunk are still to come, before and after.
    let mut left = (0, 0);
    for line in text.lines() {
        if left == (0, 0) {
            if let Some((old, new, at)) = header(line) {
                left = (old, new);
                patch.creates |= old == 0 && patch.hunks.is_empty() && line.starts_with("@@ -0");
                patch.hunks.push(Hunk {
                    line: at.max(1),
                    old: String::new(),
                    new: String::new(),
                });
            } else {
                patch.creates |= line.starts_with("--- /dev/null");
                ending(line, &mut patch);
            }
            continue;
        }
        let Some(hunk) = patch.hunks.last_mut() else {
            continue;
        };
        let (sign, rest) = match line.chars().next() {
            Some(sign @ ('+' | '-' | ' ')) => (sign, &line[1..]),
            Some('\\') => {
                ending(line, &mut patch);
                continue;
            }
            // An empty line of the context, whose blank was trimmed away.
            None => (' ', ""),
            // The hunk is shorter than it says.
            Some(_) => {
                left = (0, 0);
                continue;
            }
        };
        if sign != '+' {
            hunk.old.push_str(rest);
            hunk.old.push('\n');
            left.0 = left.0.saturating_sub(1);
        }
        if sign != '-' {
            hunk.new.push_str(rest);
            hunk.new.push('\n');
            left.1 = left.1.saturating_sub(1);
        }
    }
    patch.hunks.retain(|hunk| hunk.old != hunk.new);
    patch
}

/// `@@ -12,3 +12,4 @@`: how many lines there are before and after, and where they begin after.
fn header(line: &str) -> Option<(usize, usize, u32)> {
    let inner = line.strip_prefix("@@ -")?.split_once(" @@")?.0;
    let (old, new) = inner.split_once(" +")?;
    let range = |text: &str| -> Option<(u32, usize)> {
        match text.split_once(',') {
            Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
            None => Some((text.parse().ok()?, 1)),
        }
    };
    let ((_, old), (at, new)) = (range(old)?, range(new)?);
    Some((old, new, at))
}

/// `\ No newline at end of file`: the last line that was read has none.
fn ending(line: &str, patch: &mut Patch) {
    if !line.starts_with("\\ No newline") {
        return;
    }
    if let Some(hunk) = patch.hunks.last_mut() {
        // It stands after the last line of the old text, of the new one, or of both.
        for text in [&mut hunk.old, &mut hunk.new] {
            if text.ends_with('\n') {
                text.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunk(line: u32, old: &str, new: &str) -> Hunk {
        Hunk {
            line,
            old: old.to_owned(),
            new: new.to_owned(),
        }
    }

    #[test]
    fn hunks_are_taken_apart() {
        let patch = parse(
            "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n@@ -10 +10,2 @@ fn x() {\n-j\n+j1\n+j2\n",
        );
        assert!(!patch.creates);
        assert_eq!(
            patch.hunks,
            [
                hunk(1, "a\nb\nc\n", "a\nB\nc\n"),
                hunk(10, "j\n", "j1\nj2\n")
            ]
        );
    }

    #[test]
    fn a_new_file_has_nothing_before() {
        for text in [
            "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b",
            "@@ -0,0 +1,2 @@\n+a\n+b\n",
        ] {
            let patch = parse(text);
            assert!(patch.creates, "{text}");
            assert_eq!(patch.hunks, [hunk(1, "", "a\nb\n")]);
        }
    }

    #[test]
    fn lines_that_look_like_headers_are_lines_inside_a_hunk() {
        let patch = parse("@@ -1,2 +1,2 @@\n--- a\n-x\n+++ b\n+y\n");
        assert_eq!(patch.hunks, [hunk(1, "-- a\nx\n", "++ b\ny\n")]);
    }

    #[test]
    fn odd_ends_are_forgiven() {
        assert_eq!(parse("").hunks, []);
        assert_eq!(parse("no diff at all").hunks, []);
        assert_eq!(
            parse("@@ -1,9 +1,9 @@\n-a\n+b\nrubbish\n").hunks,
            [hunk(1, "a\n", "b\n")]
        );
        let patch = parse("@@ -1,2 +1,2 @@\n \n-a\n+b\n\\ No newline at end of file\n");
        assert_eq!(patch.hunks, [hunk(1, "\na", "\nb")]);
        // The blank of an empty line of the context is often trimmed away.
        assert_eq!(
            parse("@@ -1,3 +1,3 @@\n-a\n+b\n\n c\n").hunks,
            [hunk(1, "a\n\nc\n", "b\n\nc\n")]
        );
    }
}
