//! Which names say that what they name is secret: of variables, options, headers and fields.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

/// How sure a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// It says nothing of the kind.
    None,
    /// `key`, `token`: in code these are often something else.
    Weak,
    /// `password`, `api_key`, `GITHUB_TOKEN`.
    Strong,
}

/// A longer name is none.
const MAX_NAME_BYTES: usize = 80;

/// What says it wherever it stands, the words of a name written together.
const PARTS: [&str; 24] = [
    "apikey",
    "authtoken",
    "accesstoken",
    "refreshtoken",
    "sessiontoken",
    "securitytoken",
    "bearertoken",
    "idtoken",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "authorization",
    "cookie",
    "privatekey",
    "accesskey",
    "accountkey",
    "signingkey",
    "encryptionkey",
    "masterkey",
    "sharedkey",
    "licensekey",
    "signature",
];

/// A last word that makes the name one of something about a secret.
const ABOUT: [&str; 44] = [
    "file",
    "path",
    "dir",
    "stdin",
    "limit",
    "limits",
    "count",
    "counts",
    "length",
    "len",
    "size",
    "name",
    "names",
    "type",
    "types",
    "url",
    "uri",
    "endpoint",
    "prompt",
    "hint",
    "label",
    "policy",
    "required",
    "enabled",
    "expires",
    "expiry",
    "ttl",
    "id",
    "ids",
    "field",
    "helper",
    "provider",
    "manager",
    "at",
    "pattern",
    "format",
    "usage",
    "budget",
    "env",
    "placeholder",
    "kind",
    "parser",
    "store",
    "algorithm",
];

/// Words before `token` or `key` of which everybody knows that they are none of ours.
const PLAIN: [&str; 22] = [
    "next",
    "page",
    "prev",
    "previous",
    "cancel",
    "sync",
    "eos",
    "bos",
    "pad",
    "unk",
    "max",
    "min",
    "primary",
    "foreign",
    "cache",
    "sort",
    "partition",
    "index",
    "map",
    "dict",
    "shortcut",
    "lookup",
];

/// Finds any of `PARTS`.
static ANY_PART: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| AhoCorasick::new(PARTS).ok());

/// How sure a name is that what it names is secret.
pub fn strength(name: &str) -> Strength {
    if name.len() > MAX_NAME_BYTES || !may_be_secret(name.as_bytes()) {
        return Strength::None;
    }
    let Words {
        joined,
        last,
        before,
    } = words(name);
    let (before, last) = (&joined[before..last], &joined[last..]);
    if last.is_empty() || ABOUT.contains(&last) {
        return Strength::None;
    }
    let known = ANY_PART
        .as_ref()
        .is_none_or(|parts| parts.is_match(&joined));
    if known && !joined.contains("secretary") {
        return Strength::Strong;
    }
    match (last, before) {
        ("token" | "key", word) if PLAIN.contains(&word) => Strength::Weak,
        ("token" | "pass" | "pwd" | "pat" | "auth", word) if !word.is_empty() => Strength::Strong,
        ("key" | "token" | "auth" | "pass", _) => Strength::Weak,
        (last, _) if last.ends_with("token") => Strength::Weak,
        // `PGPASS`, and not `compass`.
        ("pgpass" | "userpass" | "dbpass", _) => Strength::Strong,
        _ => Strength::None,
    }
}

/// Whether three letters of it are those of a word that would say so: most names are not looked at any further.
fn may_be_secret(name: &[u8]) -> bool {
    const BEGINNINGS: [&[u8; 3]; 10] = [
        b"key", b"tok", b"sec", b"pas", b"pwd", b"cre", b"aut", b"coo", b"pat", b"sig",
    ];
    let compact = name.iter().filter(|b| b.is_ascii_alphanumeric());
    let mut last = [0_u8; 3];
    for byte in compact {
        last = [last[1], last[2], byte.to_ascii_lowercase()];
        if matches!(last[0], b'a' | b'c' | b'k' | b'p' | b's' | b't') && BEGINNINGS.contains(&&last)
        {
            return true;
        }
    }
    false
}

/// Whether the name is one of a header whose whole value is secret.
pub fn is_cookie(name: &str) -> bool {
    name.eq_ignore_ascii_case("cookie") || name.eq_ignore_ascii_case("set-cookie")
}

/// Whether the name is that of a header with a scheme and credentials.
pub fn is_authorization(name: &str) -> bool {
    name.eq_ignore_ascii_case("authorization") || name.eq_ignore_ascii_case("proxy-authorization")
}

/// The words of a name.
struct Words {
    /// All of them, in small letters.
    joined: String,
    /// Where the last one begins.
    last: usize,
    /// Where the one before begins.
    before: usize,
}

/// The words of a name: parted by signs or by capitals.
fn words(name: &str) -> Words {
    let mut words = Words {
        joined: String::with_capacity(name.len()),
        last: 0,
        before: 0,
    };
    let mut begins = true;
    let mut previous = ' ';
    let mut chars = name.chars().peekable();
    while let Some(char) = chars.next() {
        let before = std::mem::replace(&mut previous, char);
        if !char.is_alphanumeric() {
            begins = true;
            continue;
        }
        let hump = char.is_uppercase()
            && (before.is_lowercase()
                || before.is_ascii_digit()
                || (before.is_uppercase()
                    && chars.peek().is_some_and(|after| after.is_lowercase())));
        if (begins || hump) && words.joined.len() > words.last {
            words.before = words.last;
            words.last = words.joined.len();
        }
        begins = false;
        words.joined.extend(char.to_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        for name in ["OPENAI_KEY", "key", "token", "AUTH", "nextPageToken"] {
            assert_ne!(strength(name), Strength::None, "{name}");
        }
        for name in [
            "GITHUB_PAT",
            "DB_PASS",
            "MYSQL_PWD",
            "PGPASSWORD",
            "db-passwd",
            "x-api-key",
            "accessToken",
            "apikey",
            "API_KEY",
            "CI_JOB_TOKEN",
            "client_secret",
            "secret_key_base",
            "Proxy-Authorization",
            "set-cookie",
            "_authToken",
            "APIKey",
            "aws_secret_access_key",
            "X-Amz-Security-Token",
        ] {
            assert_eq!(strength(name), Strength::Strong, "{name}");
        }
        for name in [
            "monkey",
            "keyboard",
            "PATH",
            "PWD",
            "maxTokens",
            "tokens",
            "toolCallId",
            "SSH_AUTH_SOCK",
            "password_file",
            "tokenType",
            "authorization_endpoint",
            "secretary",
            "compass",
            "author",
            "",
        ] {
            assert_eq!(strength(name), Strength::None, "{name}");
        }
    }
}
