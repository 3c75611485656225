//! Command lines as rules see them: the whole for a rule that allows, each command in it for one that asks or rejects.

use super::globs::TextGlob;

/// What runs the command that follows it.
const WRAPPERS: [&str; 21] = [
    "sudo", "doas", "env", "command", "builtin", "exec", "eval", "nohup", "nice", "time", "xargs",
    "setsid", "stdbuf", "timeout", "ionice", "busybox", "then", "do", "else", "if", "while",
];
const SHELLS: [&str; 7] = ["sh", "bash", "zsh", "dash", "ksh", "fish", "ash"];
/// Behind a wrapper, so many words are looked at: it may have options of its own.
const WRAPPED_WORDS: usize = 8;

/// A program and its arguments as a line for a shell.
pub fn quote(words: &[String]) -> String {
    let mut line = String::new();
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        let plain = |char: char| char.is_alphanumeric() || "_-./:=@%+,~".contains(char);
        if !word.is_empty() && word.chars().all(plain) {
            line.push_str(word);
        } else {
            line.push('\'');
            line.push_str(&word.replace('\'', r"'\''"));
            line.push('\'');
        }
    }
    line
}

/// The texts a rule that asks or rejects is held against: the line, each command of it as far as operators tell, and
/// what shells and the like would run. This finds what is written plainly; a list of forbidden commands always leaks.
pub fn candidates(line: &str) -> Vec<String> {
    let mut all = vec![line.trim().to_owned()];
    let operators = [';', '&', '|', '(', ')', '`', '\r', '\n'];
    for piece in line.split(operators) {
        let piece = piece.trim_start_matches(|c: char| c.is_whitespace() || "{$!".contains(c));
        let piece = piece.trim_end();
        if piece.is_empty() {
            continue;
        }
        if piece != all[0] {
            all.push(piece.to_owned());
        }
        unwrap(piece, &mut all);
    }
    all
}

/// What a command line comes to without quotes, paths, variables and wrappers in front of its program.
fn unwrap(piece: &str, all: &mut Vec<String>) {
    let bare: String = piece
        .chars()
        .filter(|char| !matches!(char, '\'' | '"' | '\\'))
        .collect();
    let mut rest = bare.as_str();
    let mut left = 64;
    loop {
        rest = rest.trim_start();
        let (first, after) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
        left -= 1;
        if first.is_empty() || left == 0 {
            return;
        }
        if is_assignment(first) {
            rest = after;
            continue;
        }
        let program = first.rsplit('/').next().unwrap_or(first);
        let plain = format!("{program}{after}");
        if plain != piece {
            all.push(plain);
        }
        if !WRAPPERS.contains(&program) && !SHELLS.contains(&program) {
            return;
        }
        // Which of the words that follow is the program is not known: any of the first ones.
        let mut words = after;
        for _ in 0..WRAPPED_WORDS {
            words = words.trim_start();
            if words.is_empty() {
                break;
            }
            let end = words.find(char::is_whitespace).unwrap_or(words.len());
            let name = words[..end].rsplit('/').next().unwrap_or_default();
            all.push(format!("{name}{}", &words[end..]));
            words = &words[end..];
        }
        return;
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
    })
}

/// Whether one of the globs matches one of the commands.
pub fn any_matches(globs: &[TextGlob], candidates: &[String]) -> bool {
    globs
        .iter()
        .any(|glob| candidates.iter().any(|candidate| glob.matches(candidate)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        let check = |words: &[&str], expected: &str| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(quote(&words), expected);
        };
        check(&["cargo", "test", "-p", "a_b"], "cargo test -p a_b");
        check(&["sh", "-c", "rm x"], "sh -c 'rm x'");
        check(&["echo", "", "it's"], r"echo '' 'it'\''s'");
    }

    #[test]
    fn a_forbidden_command_is_found_where_it_is_written_plainly() {
        let globs = [TextGlob::command("rm *", false).unwrap()];
        for line in [
            "rm x",
            "rm",
            " rm  -rf / ",
            "cd x && rm -rf y",
            "a;rm y",
            "a\nrm y",
            "echo $(rm -rf y)",
            "echo `rm y`",
            "/bin/rm x",
            r"\rm x",
            "'rm' x",
            "FOO=1 rm x",
            "sudo -u me rm x",
            "env A=b rm x",
            "xargs -0 rm -f",
            "bash -lc 'rm -rf x'",
            "sh -c 'cd a && rm x'",
            "timeout 5 /usr/bin/rm x",
            "if true; then rm x; fi",
            "! rm x",
        ] {
            assert!(any_matches(&globs, &candidates(line)), "{line}");
        }
        for line in [
            "ls",
            "farm x",
            "cargo rm x",
            "git rm x",
            "grep rm file",
            "rmdir x",
        ] {
            assert!(!any_matches(&globs, &candidates(line)), "{line}");
        }
    }
}
