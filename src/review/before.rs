//! Reconstructs what a file was before an agent changed it, from the agent's report afterwards.

/// The file before `old` was replaced by `new`. The agent may have sent whole files or only the replaced part;
/// `near` is the line of that part (1-based), if given. None unless the file contains the new text exactly
/// once, or where the agent said.
pub fn undo_replacement(disk: &str, old: &str, new: &str, near: Option<u32>) -> Option<String> {
    if disk == new {
        return Some(old.to_owned());
    }
    if new.is_empty() {
        // There is no way to tell where something was removed.
        return None;
    }
    let mut places = disk.match_indices(new).map(|(at, _)| at);
    let first = places.next()?;
    let at = match (places.next(), near) {
        (None, _) => first,
        (Some(_), None) => return None,
        (Some(second), Some(near)) => {
            let line_of = |at: usize| disk[..at].matches('\n').count() + 1;
            let all = [first, second].into_iter().chain(places);
            all.min_by_key(|at| line_of(*at).abs_diff(near as usize))?
        }
    };
    Some([&disk[..at], old, &disk[at + new.len()..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_text_is_put_back_where_the_new_one_stands() {
        let check = |disk: &str, old: &str, new: &str, near, expected: Option<&str>| {
            assert_eq!(undo_replacement(disk, old, new, near).as_deref(), expected);
        };
        check(
            "a\nB\nc\n",
            "a\nb\nc\n",
            "a\nB\nc\n",
            None,
            Some("a\nb\nc\n"),
        );
        check("a\nB\nc\n", "b", "B", None, Some("a\nb\nc\n"));
        check("B\nx\nB\n", "b", "B", None, None);
        check("B\nx\nB\n", "b", "B", Some(3), Some("B\nx\nb\n"));
        check("a\nc\n", "b\n", "", None, None);
        check("a\n", "x", "y", None, None);
        check("", "all of it", "", None, Some("all of it"));
    }
}
