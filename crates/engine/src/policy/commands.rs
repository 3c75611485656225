//! Command lines as rules see them: the whole for a rule that allows, each command in it for one that asks or rejects.

use std::borrow::Cow;

use super::globs::TextGlob;

/// What runs the command that follows it.
const WRAPPERS: [&str; 53] = [
    "sudo",
    "doas",
    "env",
    "command",
    "builtin",
    "exec",
    "eval",
    "nohup",
    "nice",
    "time",
    "xargs",
    "setsid",
    "stdbuf",
    "timeout",
    "ionice",
    "busybox",
    "toybox",
    "then",
    "do",
    "else",
    "if",
    "while",
    "elif",
    "until",
    "coproc",
    "trap",
    "parallel",
    "flock",
    "chroot",
    "unshare",
    "nsenter",
    "strace",
    "ltrace",
    "watch",
    "script",
    "su",
    "runuser",
    "ssh",
    "pkexec",
    "run0",
    "gosu",
    "systemd-run",
    "systemd-inhibit",
    "taskset",
    "chrt",
    "prlimit",
    "setpriv",
    "bwrap",
    "firejail",
    "unbuffer",
    "rlwrap",
    "fakeroot",
    "entr",
];
const SHELLS: [&str; 15] = [
    "sh", "bash", "zsh", "dash", "ksh", "mksh", "fish", "ash", "csh", "tcsh", "yash", "nu", "pwsh",
    "elvish", "xonsh",
];
/// Behind one of these stands a command, whatever the program is.
const RUNS_NEXT: [&str; 6] = [
    "-exec",
    "-execdir",
    "-ok",
    "-okdir",
    "--exec",
    "--exec-batch",
];
/// How many words are examined after a wrapper, not counting options and variables: it may have arguments of its own.
const WRAPPED_WORDS: usize = 8;
/// So many commands that a command runs are looked for.
const MAX_RUN: usize = 3;

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
    for piece in plain(line).split(operators) {
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

/// The line without what a shell takes out before it looks for commands, and with redirections that hold no operator.
fn plain(line: &str) -> Cow<'_, str> {
    const SPELLED: [(&str, &str); 9] = [
        ("\\\n", ""),
        ("\\\r\n", ""),
        ("${IFS}", " "),
        ("$IFS$9", " "),
        ("$IFS", " "),
        ("&>", ">"),
        (">&", ">"),
        ("<&", "<"),
        (">|", ">"),
    ];
    let mut plain = Cow::Borrowed(line);
    for (from, to) in SPELLED {
        if plain.contains(from) {
            plain = Cow::Owned(plain.replace(from, to));
        }
    }
    plain
}

/// What a command line comes to without quotes, paths, variables, redirections and wrappers in front of its program.
fn unwrap(piece: &str, all: &mut Vec<String>) {
    let bare = spaced(piece);
    let words: Vec<&str> = bare.split(' ').filter(|word| !word.is_empty()).collect();
    push_commands(&words, piece, true, all);
    // `{rm,-rf,x}`, of which the first brace is gone already.
    if let Some(first) = words.first().filter(|word| word.contains(',')) {
        let list = first.replace(['{', '}', ','], " ");
        let words: Vec<&str> = list.split_whitespace().collect();
        push_commands(&words, piece, true, all);
    }
}

/// Adds the command these words begin with, and those it runs.
fn push_commands(words: &[&str], piece: &str, outer: bool, all: &mut Vec<String>) {
    let words = without_prefix(words);
    let program = push_command(words, piece, all);
    let is_fd = matches!(program, "fd" | "fdfind");
    let runs_next = |word: &str| {
        RUNS_NEXT.contains(&word) || word == "{" || (is_fd && matches!(word, "-x" | "-X"))
    };
    if outer {
        let next = words.iter().enumerate().filter(|(_, word)| runs_next(word));
        for (from, _) in next.take(MAX_RUN) {
            push_commands(&words[from + 1..], piece, false, all);
        }
    }
    // Which of the words that follow a wrapper is the program is not known: any of the first ones.
    if WRAPPERS.contains(&program) || SHELLS.contains(&program) {
        let is_own = |word: &str| word.starts_with('-') || is_assignment(word);
        let next = words.iter().enumerate().skip(1);
        for (from, _) in next.filter(|(_, word)| !is_own(word)).take(WRAPPED_WORDS) {
            push_command(&words[from..], piece, all);
        }
    }
}

/// The words without redirections and variables in front of the program.
fn without_prefix<'a, 'b>(words: &'a [&'b str]) -> &'a [&'b str] {
    let mut words = words;
    loop {
        words = match words {
            // Of `<<<` and `>>` each sign is a word.
            [">", ">", ..] => &words[1..],
            [">", _, rest @ ..] => rest,
            [first, ">", ..] if is_descriptor(first) => &words[1..],
            [first, rest @ ..] if is_assignment(first) => rest,
            _ => return words,
        };
    }
}

/// The `2` of `2>log`, or the `{fd}` of `{fd}>log`.
fn is_descriptor(word: &str) -> bool {
    word.bytes().all(|b| b.is_ascii_digit()) || word.ends_with('}')
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
    // `$'rm'` without its quotes.
    let first = first.trim_start_matches('$');
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
            "r\\\nm x",
            "rm \\\n  -rf x",
            "rm$IFS-rf$IFS/",
            "rm${IFS}x",
            "{rm,-rf,x}",
            "$'rm' x",
            "sh -c $'rm x'",
            "2>&1 rm x",
            "&>log rm x",
            "3>|log rm x",
            "{fd}>log rm x",
            "<<<x rm y",
            "<<EOF rm y",
            ">>log 2>>log rm x",
            "A=1 >log B=2 rm x",
            "function f { rm x; }",
            "f() { rm x; }",
            "f() { ls; rm x; }",
            "env A=1 B=2 C=3 D=4 E=5 F=6 G=7 H=8 I=9 rm x",
            "sudo -n -E -H -S -k -P -b -A -i rm x",
            "find . -exec sh -c 'rm x' ';'",
            "find . -exec sudo rm x +",
            "fd -x rm",
            "busybox rm x",
            "toybox rm x",
            "systemd-run --user rm x",
            "nu -c 'rm x'",
            "python3 -c \"os.system('rm x')\"",
            "awk 'BEGIN { system(\"rm x\") }'",
            "sh <<< 'rm x'",
            "sh <<EOF\nrm x\nEOF",
            "A=1 sh -c 'B=2 rm x'",
            "./rm x",
            "../../bin/rm x",
            "echo x | xargs -I {} rm {}",
            "[ -e x ] && rm x",
            "case x in x) rm x;; esac",
            "for x in *; do rm $x; done",
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
            "ls 2>&1 > rm",
            "echo {a,rm}",
            "grep -c rm x",
            "grep -x rm x",
            "find . -name rm",
            "sudo ls",
        ] {
            assert!(!any_matches(&globs, &candidates(line)), "{line}");
        }
    }
}
