//! Command lines as rules see them: the whole for a rule that allows, each command in it for one that asks or rejects.

use super::globs::TextGlob;

/// What runs the command that follows it.
const WRAPPERS: [&str; 36] = [
    "sudo", "doas", "env", "command", "builtin", "exec", "eval", "nohup", "nice", "time", "xargs",
    "setsid", "stdbuf", "timeout", "ionice", "busybox", "then", "do", "else", "if", "while",
    "elif", "until", "coproc", "trap", "parallel", "flock", "chroot", "unshare", "nsenter",
    "strace", "watch", "script", "su", "runuser", "ssh",
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

/// What a command line comes to without quotes, paths, variables, redirections and wrappers in front of its program.
fn unwrap(piece: &str, all: &mut Vec<String>) {
    let bare = spaced(piece);
    let words: Vec<&str> = bare.split(' ').filter(|word| !word.is_empty()).collect();
    let mut at = 0;
    loop {
        match &words[at.min(words.len())..] {
            [] => return,
            [">", ..] => at += 2,
            [first, ">", ..] if first.bytes().all(|b| b.is_ascii_digit()) => at += 3,
            [first, ..] if is_assignment(first) => at += 1,
            [_, ..] => break,
        }
    }
    let program = push_command(&words[at..], piece, all);
    // Which of the words that follow a wrapper is the program is not known: any of the first ones.
    if WRAPPERS.contains(&program) || SHELLS.contains(&program) {
        for from in (at + 1..words.len()).take(WRAPPED_WORDS) {
            push_command(&words[from..], piece, all);
        }
    }
    let runs = words.iter().enumerate();
    let runs = runs.filter(|(_, word)| matches!(**word, "-exec" | "-execdir" | "-ok" | "-okdir"));
    for (from, _) in runs.take(WRAPPED_WORDS) {
        push_command(&words[from + 1..], piece, all);
    }
}

/// The text without quotes, its words parted by one blank each; what redirects is a word of its own.
fn spaced(piece: &str) -> String {
    let mut bare = String::with_capacity(piece.len());
    for char in piece.chars() {
        match char {
            '\'' | '"' | '\\' => {}
            '<' | '>' => bare.push_str(" > "),
            _ if char.is_whitespace() => bare.push(' '),
            _ => bare.push(char),
        }
    }
    bare
}

/// Adds a command, its program without the path.
fn push_command<'a>(words: &[&'a str], piece: &str, all: &mut Vec<String>) -> &'a str {
    let Some((first, rest)) = words.split_first() else {
        return "";
    };
    let program = first.rsplit('/').next().unwrap_or(first);
    let mut plain = program.to_owned();
    for word in rest {
        plain.push(' ');
        plain.push_str(word);
    }
    if plain != piece {
        all.push(plain);
    }
    program
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
            "rm\tx",
            "  rm   x",
            ">log rm x",
            "2>log rm x",
            "rm<in x",
            "find . -name x -exec rm {} +",
            "flock lock rm x",
            "su me -c 'rm x'",
            "ssh host rm x",
            "until rm x",
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
            "ls > rm",
        ] {
            assert!(!any_matches(&globs, &candidates(line)), "{line}");
        }
    }
}
