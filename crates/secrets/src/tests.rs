//! The redactor against every shape, in every place, and against ordinary text.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// First letters and the rest, apart so that no scanner takes these for real ones.
const TOKENS: [(&str, &str); 45] = [
    ("sk_org_live_", "4eC39HqLyjWDarjtT1zdp7dc"),
    ("glptt-", "aBcDeFgHiJkLmNoPqRsT"),
    ("gldt-", "aBcDeFgHiJkLmNoPqRsT"),
    ("glpat-", "aBcDeFgHiJkLmNoPqRsTuVwXyZ0.0z0w1a2b3"),
    ("glft-", "aBcDeFgHiJkLmNoPqRsT"),
    ("xoxe.", "xoxp-1-Mi0yLTEyMzQ1Njc4OTAxMjM0"),
    ("xoxe-", "1-My0xLTEyMzQ1Njc4OTAxMjM0"),
    ("xoxd-", "aBcDeFgHiJkL%2FmNoPqRsT%2B0123%3D"),
    ("xwfp-", "1234567890-1234567890-AbCdEfGhIjKl"),
    ("rk_test_", "4eC39HqLyjWDarjtT1zdp7dc"),
    ("api_org_", "abcdefghijklmnopqrstuvwxyzABCDEFGH"),
    (
        "ghs_",
        "1234567_eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiIxMjM0NTY3In0.dozjgNryP4J3jVmNHl0w5N",
    ),
    (
        "eyJ",
        "hbGciOiJkaXIiLCJlbmMiOiJBMTI4R0NNIn0..48V1_ALb6US04U3b.5eym8TW_c8SuK0ltJ3rpYI.XFBoMYUZodetZdvT",
    ),
    ("ABIA", "IOSFODNN7EXAMPLE"),
    ("ACCA", "IOSFODNN7EXAMPLE"),
    ("GR1348941", "aBcDeFgHiJkLmNoP4RsT"),
    (
        "AGE-SECRET-KEY-",
        "1QJH4H2XZGDCBLAC2E3UPWMNNXRFPIZB5DFG4PC7OR3ICKPKGYBGD57AR",
    ),
    ("ghp_", "16C7e42F292c6912E7710c838347Ae178B4a"),
    ("gho_", "16C7e42F292c6912E7710c838347Ae178B4a"),
    ("ghu_", "16C7e42F292c6912E7710c838347Ae178B4a"),
    ("ghs_", "16C7e42F292c6912E7710c838347Ae178B4a"),
    ("ghr_", "16C7e42F292c6912E7710c838347Ae178B4a"),
    (
        "github_pat_",
        "11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ0123456789",
    ),
    ("glpat-", "aBcDeFgHiJkLmNoPqRsT"),
    ("xoxb-", "123456789012-1234567890123-AbCdEfGhIjKl"),
    ("xoxp-", "123456789012-1234567890123-AbCdEfGhIjKl"),
    ("xapp-", "1-A0123-1234-abcdef0123456789"),
    ("sk_live_", "4eC39HqLyjWDarjtT1zdp7dc"),
    ("rk_live_", "4eC39HqLyjWDarjtT1zdp7dc"),
    ("sk_test_", "4eC39HqLyjWDarjtT1zdp7dc"),
    ("whsec_", "4eC39HqLyjWDarjtT1zdp7dc"),
    ("hf_", "abcdefghijklmnopqrstuvwxyzABCDEFGH"),
    ("npm_", "abcdefghijklmnopqrstuvwxyz0123456789"),
    ("sk-", "abcdefghijklmnopqrstuvwxyz0123456789"),
    ("sk-", "ant-api03-abcdEFGH0123_abcd-efghIJKL"),
    ("sk-", "proj-abcdefghijklmnopqrst"),
    ("AIza", "SyA1234567890abcdefghijklmnopqrstuv"),
    ("AKIA", "IOSFODNN7EXAMPLE"),
    ("ASIA", "IOSFODNN7EXAMPLE"),
    ("key_", "0123456789abcdef0123456789abcdef"),
    ("crsr_", "0123456789abcdef0123456789abcdef"),
    ("glrt-", "t3_aBcDeFgHiJkLmNoPqRsT"),
    ("glpat-", "aBcDeFgHiJkLmNoPqRsTuVwXyZ0.01.0w1a2b3c4"),
    ("hvs.", "CAESIJabcdefgh0123456789"),
    (
        "eyJ",
        "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    ),
];

fn mask(text: &str) -> String {
    Secrets::default().mask(text)
}

#[test]
fn colours_for_the_terminal_hide_nothing() {
    for escape in [
        "\u{1b}[", "\\u001b[", "\\u001B[", "\\x1b[", "\\033[", "\\e[",
    ] {
        for secret in [
            "--api-key {}hunter2hunter2",
            "--token={}hunter2hunter2",
            "DB_PASSWORD={}hunter2hunter2",
            "X-Api-Key: {}hunter2hunter2",
            "{}password: hunter2hunter2",
            "postgres://me:{}hunter2hunter2@db/x",
            "the key is s{}k-hunter2hunter2hunter2hunter2",
        ] {
            let line = secret.replace("{}", &format!("{escape}1;31m"));
            let text = format!("{escape}31m{line}{escape}0m and {escape}mmore{escape}K");
            let shown = mask(&text);
            assert!(!shown.contains("hunter2"), "{text:?} became {shown:?}");
            assert!(shown.contains("more"), "{text:?} became {shown:?}");
        }
        let text = format!("{escape}31merror{escape}0m: nothing here, {escape}");
        assert_eq!(mask(&text), text);
    }
}

#[test]
fn tokens_are_known_by_their_shape_wherever_they_stand() {
    for (prefix, rest) in TOKENS {
        let token = format!("{prefix}{rest}");
        for (before, after) in [
            ("", ""),
            ("the key is ", ", said the agent."),
            ("\"", "\""),
            ("(", ")."),
            ("line\\n", "\\nline"),
            ("\u{1b}[33m", "\u{1b}[0m"),
            ("\\u001b[33m", "\\u001b[0m"),
            ("x=", "&y=1"),
            ("päss ", " wörd"),
            ("https://host/", "/path"),
            ("token:", "\n"),
            ("?x=Bearer%20", "%26y"),
            ("- ", ""),
        ] {
            let shown = mask(&format!("{before}{token}{after}"));
            // All of it, and nothing else; what a name says may take its prefix, too.
            let whole = format!("{before}{prefix}{MASK}{after}");
            let named = format!("{before}{MASK}{after}");
            assert!(shown == whole || shown == named, "{shown}");
            assert_eq!(mask(&shown), shown);
        }
    }
}

#[test]
fn values_are_known_by_what_stands_before_them() {
    for (text, expected) in [
        (
            "Authorization: Bearer abc.def-1",
            "Authorization: Bearer •••",
        ),
        (
            "authorization: Basic dXNlcjpwYXNz",
            "authorization: Basic •••",
        ),
        (
            "curl -H 'Authorization: Bearer abc1' x",
            "curl -H 'Authorization: Bearer •••' x",
        ),
        (
            "curl -H \"X-Api-Key: abc1\" x",
            "curl -H \"X-Api-Key: •••\" x",
        ),
        (
            "Authorization: Digest username=\"u\"",
            "Authorization: Digest •••\"u\"",
        ),
        (
            "Cookie: session=abc; other=def\nHost: h",
            "Cookie: •••\nHost: h",
        ),
        ("agent --api-key abc acp", "agent --api-key ••• acp"),
        ("agent --api-key=abc acp", "agent --api-key=••• acp"),
        ("agent --token=abc", "agent --token=•••"),
        ("agent --token abc", "agent --token •••"),
        ("agent --password 'a b c' x", "agent --password '•••' x"),
        (
            "agent --password \\\n  abc x",
            "agent --password \\\n  ••• x",
        ),
        ("agent --token --verbose", "agent --token --verbose"),
        (
            r#"["--api-key", "abc", "x"]"#,
            r#"["--api-key", "•••", "x"]"#,
        ),
        (r#"["--api-key=abc", "x"]"#, r#"["--api-key=•••", "x"]"#),
        ("- --api-key\n- abc\n- x", "- --api-key\n- •••\n- x"),
        (
            "args:\n  - --token\n  - \"abc\"\n",
            "args:\n  - --token\n  - \"•••\"\n",
        ),
        ("--api-key\nabc\nacp", "--api-key\n•••\nacp"),
        (
            "agent\0--api-key\0abc\0acp\0",
            "agent\0--api-key\0•••\0acp\0",
        ),
        ("A_TOKEN=abcd\0B=x", "A_TOKEN=•••\0B=x"),
        (
            r"agent\u0000--api-key\u0000abc\u0000acp",
            r"agent\u0000--api-key\u0000•••\u0000acp",
        ),
        ("sshpass -p abc ssh h", "sshpass -p ••• ssh h"),
        ("sshpass -p 'a b' ssh h", "sshpass -p '•••' ssh h"),
        (
            "docker login -u me -p abc host",
            "docker login -u me -p ••• host",
        ),
        (
            r#"["docker","login","-p","abc","host"]"#,
            r#"["docker","login","-p","•••","host"]"#,
        ),
        ("mysql -u me -pabc db", "mysql -u me -p••• db"),
        (
            "/usr/bin/mysqldump -p'abc' db",
            "/usr/bin/mysqldump -p'•••' db",
        ),
        ("redis-cli -h x -a abc ping", "redis-cli -h x -a ••• ping"),
        ("7z x -pabc a.7z", "7z x -p••• a.7z"),
        ("TOKEN=Bearer abcdef", "TOKEN=Bearer •••"),
        (
            "HTTP_AUTHORIZATION=Basic dXNlcg==",
            "HTTP_AUTHORIZATION=Basic •••",
        ),
        ("<password>a b</password>", "<password>•••</password>"),
        ("<ApiKey>abc</ApiKey>", "<ApiKey>•••</ApiKey>"),
        (
            r#"<add key="ApiKey" value="abc"/>"#,
            r#"<add key="ApiKey" value="•••"/>"#,
        ),
        (
            r#"os.environ["API_KEY"] = "abc""#,
            r#"os.environ["API_KEY"] = "•••""#,
        ),
        (
            "machine h login me password abc",
            "machine h login me password •••",
        ),
        (
            "machine h\n  login me\n  password abc\n",
            "machine h\n  login me\n  password •••\n",
        ),
        (
            "aws configure set aws_secret_access_key wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "aws configure set aws_secret_access_key •••",
        ),
        (
            "npm config set //r/:_authToken 01234567-89ab-cdef-0123-456789abcdef",
            "npm config set //r/:_authToken •••",
        ),
        ("postgres://me:%40bc@host/db", "postgres://me:•••@host/db"),
        ("https://me:$3cret!@host/x", "https://me:•••@host/x"),
        ("password='$tr0ng!pass'", "password='•••'"),
        ("agent --api-key %61bc1", "agent --api-key •••"),
        (
            "https:\\/\\/hooks.slack.com\\/services\\/T0\\/B0\\/abc",
            "https:\\/\\/hooks.slack.com\\/services\\/•••",
        ),
        (
            "u=https%3A%2F%2FHooks.Slack.com%2Fservices%2FT0%2FB0%2Fabc&x=1",
            "u=https%3A%2F%2FHooks.Slack.com%2Fservices%2F•••&x=1",
        ),
        (
            "https://hooks.slack-gov.com/services/T0/B0/abc",
            "https://hooks.slack-gov.com/services/•••",
        ),
        ("curl -u name:abc https://h", "curl -u name:••• https://h"),
        ("docker run -u 1000:1000 x", "docker run -u 1000:1000 x"),
        ("NAME_TOKEN=abcd run", "NAME_TOKEN=••• run"),
        ("export OPENAI_API_KEY='a b'", "export OPENAI_API_KEY='•••'"),
        ("PGPASSWORD=x1 psql", "PGPASSWORD=••• psql"),
        ("GITHUB_TOKEN=$OTHER run", "GITHUB_TOKEN=$OTHER run"),
        ("password: hunter2", "password: •••"),
        ("password: swordfish\nuser: me", "password: •••\nuser: me"),
        ("password=swordfish", "password=•••"),
        ("db_password = \"hunter2\"", "db_password = \"•••\""),
        (r#"{"apiKey":"abc","n":1}"#, r#"{"apiKey":"•••","n":1}"#),
        (r#"{\"apiKey\": \"abc\"}"#, r#"{\"apiKey\": \"•••\"}"#),
        (
            r#"{"name": "API_KEY", "value": "abc"}"#,
            r#"{"name": "API_KEY", "value": "•••"}"#,
        ),
        ("?api_key=abc1&page=2", "?api_key=•••&page=2"),
        (
            "//registry.example/:_authToken=abc1",
            "//registry.example/:_authToken=•••",
        ),
        (
            "const SECRET: &str = \"abc\";",
            "const SECRET: &str = \"•••\";",
        ),
        ("postgres://me:p@ss@host/db", "postgres://me:•••@host/db"),
        ("https://me:abc/def@host/x", "https://me:•••@host/x"),
        ("redis://:abc@host:6379/0", "redis://:•••@host:6379/0"),
        (
            "https://abcdefghij0123456789abcd@github.com/x",
            "https://•••@github.com/x",
        ),
        (
            "https://hooks.slack.com/services/T0/B0/abc",
            "https://hooks.slack.com/services/•••",
        ),
        (
            "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "AWS_SECRET_ACCESS_KEY=•••",
        ),
        (
            "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "aws_secret_access_key = •••",
        ),
    ] {
        assert_eq!(mask(text), expected);
        assert_eq!(mask(expected), expected);
    }
    let encoded = "BSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlFcEFJQkFBS0NBUUVBMFozVlM1SkpjZHMzeGZuCg==";
    let shown = mask(&format!("client-key-data: LS0tLS1CRUdJTi{encoded}\nx"));
    assert_eq!(shown, "client-key-data: LS0tLS1CRUdJTi•••\nx");
    let pair = format!(
        "{}IOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "AKIA"
    );
    assert_eq!(mask(&pair), "AKIA••• •••");
}

/// Each line by itself, one after the other, as from stderr.
fn mask_lines(text: &str) -> String {
    let mut pieces = Pieces::default();
    let lines = text.split('\n');
    let masked: Vec<String> = lines
        .map(|line| Secrets::default().mask_piece(line, &mut pieces))
        .collect();
    masked.join("\n")
}

#[test]
fn what_a_line_begins_is_masked_in_the_next() {
    for (text, expected) in [
        ("- --api-key\n- abc\n- x", "- --api-key\n- •••\n- x"),
        (
            "[\n\"--token\",\n\"abc\",\n\"x\"\n]",
            "[\n\"--token\",\n\"•••\",\n\"x\"\n]",
        ),
        ("--token\n--verbose\nx", "--token\n--verbose\nx"),
        ("use --token\nabc", "use --token\nabc"),
        (
            "--password\n    the password to use",
            "--password\n    the password to use",
        ),
    ] {
        assert_eq!(mask_lines(text), expected);
        assert_eq!(mask(text), expected);
    }
    let pair = "AWS Access Key ID: AKIAIOSFODNN7EXAMPLE\nAWS Secret: wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n";
    assert_eq!(
        mask_lines(pair),
        "AWS Access Key ID: AKIA•••\nAWS Secret: •••\n"
    );
    // The next field of a message is no next line.
    let mut value = json!({ "text": "--token", "type": "text" });
    Secrets::default().mask_value(&mut value);
    assert_eq!(value, json!({ "text": "--token", "type": "text" }));
}

#[test]
fn keys_of_every_program_are_masked() {
    let body = "lQOYBGVyZm8BCADQw1bq2kz0Z3VS5JJcds3xfnygWyF0sGQdZk1J5hoaLcsLSQkV\nZ3Ag1zVqnyyrS9ub0HbXkZ8lQOYBGVyZm8BCADQw1bq2kz0Z3VS5JJcds3xfnyg";
    for title in [
        "PRIVATE KEY",
        "RSA PRIVATE KEY",
        "EC PRIVATE KEY",
        "DSA PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ] {
        let key = format!("-----BEGIN {title}-----\n{body}\n-----END {title}-----");
        let hidden = format!("-----BEGIN {title}-----•••-----END {title}-----");
        assert_eq!(mask(&format!("a {key} b")), format!("a {hidden} b"));
        let mut known = Secrets::default();
        known.add_keys(&key);
        assert!(!known.mask(&body[66..]).contains("Z3Ag1zVq"), "{title}");
        assert!(!mask_lines(&key).contains("Z3Ag1zVq"), "{title}");
    }
}

#[test]
fn private_keys_are_masked_whole_also_in_pieces() {
    let begin = format!("-----BEGIN {} KEY-----", "RSA PRIVATE");
    let end = format!("-----END {} KEY-----", "RSA PRIVATE");
    let body = ["MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn", "ygWyF0sGQdZk1J5", "ab=="];
    for between in ["\n", "\\n", "\r\n", "\n  ", "\n+"] {
        let key = format!("{begin}{between}{}{between}{end}", body.join(between));
        let shown = mask(&format!("a {key} b"));
        assert_eq!(shown, format!("a {begin}•••{end} b"));
        assert_eq!(mask(&shown), shown);
        // Cut off.
        let at = key.find("ygW").unwrap();
        assert_eq!(mask(&key[..at + 6]), format!("{begin}•••"));
    }
    let mut pieces = Pieces::default();
    let lines: Vec<String> = ["before", begin.as_str()]
        .into_iter()
        .chain(body)
        .chain([end.as_str(), "after that"])
        .map(|line| Secrets::default().mask_piece(line, &mut pieces))
        .collect();
    assert_eq!(
        lines,
        ["before", &begin, "•••", "•••", "•••", &end, "after that"]
    );
    let mut value = json!([
        ["+", begin],
        ["+", body[0]],
        ["+", body[1]],
        ["+", end],
        ["+", "after"]
    ]);
    Secrets::default().mask_value(&mut value);
    assert_eq!(
        value,
        json!([
            ["+", begin],
            ["+", "•••"],
            ["+", "•••"],
            ["+", end],
            ["+", "after"]
        ])
    );
    let public = "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqh\n-----END PUBLIC KEY-----";
    assert_eq!(mask(public), public);
}

#[test]
fn passwords_that_are_said_are_known() {
    for text in [
        "machine host login me password {}",
        "the password is {}, said the agent",
        "Token {} was made",
        "passwd\t{}\n",
        "pass={} x",
    ] {
        let shown = mask(&text.replace("{}", "Zx9Qw8Er7Ty6Ui5O"));
        assert!(!shown.contains("Qw8"), "{shown}");
        assert_eq!(mask(&shown), shown);
    }
}

#[test]
fn ordinary_text_stays() {
    for text in [
        "the password is required, the token was identified, a secret base64-encoded",
        "token src/lexer2/tokens.rs:12, password $PASSWORD1234567",
        "commit 4b5aa76c0f367aeec642d779e58c2427853abcde",
        "550e8400-e29b-41d4-a716-446655440000",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "desk-lamp, sk-short, sk-toggleable-content-wrap, task-force-one-two-three",
        "let token = tokens.next();",
        "fn check(password: &str, key: &Key) -> bool {",
        "password: string;",
        "this.password = password;",
        "def login(user, password=None, token=token):",
        "apiKey: process.env.API_KEY,",
        "key_press_event_handler(key_value_store_manager)",
        "npm_config_registry npm_package_version hf_hub_download",
        "for key, value in pairs(t) do t[key] = value end",
        "\"key\": \"name\", \"token\": \"identifier\"",
        "primary_key = true, cache_key: user_id",
        "https://example.com:8080/path?x=1 ssh://git@github.com/a/b",
        "maxTokens=4096 max_tokens: 4096 \"tokens\": 12",
        "Authorization: the process of granting rights.",
        "https://user@host/ mailto:a@b.c",
        "the Bearer of news; Bearer token",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "if token == \"end\" then return end",
        "std::env::var(\"CURSOR_API_KEY\")",
        "eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbXX0=",
        "--max-tokens 100 --token-limit 5 --key-file a.pem",
        "mkdir -p a/b && cp -p c d; docker run -p 8080:80 x; grep -a x; mysql -p db",
        "docker login registry; mkdir -p secret-place",
        "the user changed password settings, the login page password field",
        "<label>password</label> <Key>{value}</Key>",
        "the access_token parameter, a secret_key is needed, my_password_field other",
        "password=%s token=%d --token $TOKEN --token ${TOKEN} --api-key %API_KEY%",
        "  --token\n    the token to use\n  --password\n    a password",
    ] {
        assert_eq!(mask(text), text);
    }
}

/// Our own sources are ordinary code: hardly a line of them is taken for a secret.
#[test]
fn our_own_sources_stay() {
    let mut lines = 0;
    let mut changed = Vec::new();
    let mut dirs = vec![std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                if !name.starts_with('.') && !["target", "lib", "secrets"].contains(&name.as_str())
                {
                    dirs.push(path);
                }
                continue;
            }
            let is_code = [".rs", ".lua", ".md", ".toml", ".lock"]
                .iter()
                .any(|end| name.ends_with(end));
            if !is_code || name.contains("secret") {
                continue;
            }
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                lines += 1;
                let shown = mask(line);
                if shown != line {
                    changed.push(format!("{name}: {shown}"));
                }
            }
        }
    }
    assert!(lines > 10_000);
    // Tests plant a few on purpose.
    assert!(
        changed.len() * 500 < lines,
        "{} of {lines}:\n{}",
        changed.len(),
        changed.join("\n")
    );
}

#[test]
fn values_are_found_in_every_spelling() {
    let env = [
        ("A_TOKEN", "pass\"wort/ünd 1"),
        ("B_KEY", "first-line-of-a-key\nsecond-line-of-a-key"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut secrets = Secrets::of_env(env.iter().map(|(name, value)| (name, value)));
    secrets.add_command(&["a", "--api-key", "given-1", "--token=given-2"].map(str::to_owned));
    for command in [
        &["sh", "-c", "a --api-key given-3 && b --token='given-4'"][..],
        &["docker", "login", "-p", "given-5"],
        &["mysql", "-pgiven-6"],
        &["curl", "-u", "me:given-7", "https://me:given-8@host"],
        &["docker", "run", "-e", "A_TOKEN=given-9", "-p", "8080:80"],
    ] {
        let command: Vec<String> = command.iter().map(|arg| (*arg).to_owned()).collect();
        secrets.add_command(&command);
    }
    for text in [
        "pass\"wort/ünd 1",
        r#"pass\"wort/ünd 1"#,
        "pass%22wort%2F%C3%BCnd%201",
        "first-line-of-a-key",
        "second-line-of-a-key",
        "given-1",
        "given-2",
        "given-3",
        "given-4",
        "given-5",
        "given-6",
        "given-7",
        "given-8",
        "given-9",
    ] {
        assert_eq!(secrets.mask(&format!("x{text}y")), "x•••y");
    }
    assert_eq!(secrets.mask("8080:80 A_TOKEN"), "8080:80 A_TOKEN");
}

#[test]
fn fields_are_known_by_their_names() {
    let mut value = json!({
        "credentials": {"user": "me", "pin": 1234, "list": ["a"]},
        "args": ["--token", "abc", "--verbose", "--api-key=def"],
        "more": [["sshpass", "-p", "mno"], ["mysql", "-ppqr"], ["curl", "-u", "me:stu"], ["mkdir", "-p", "a"]],
        "env": [{"key": "DB_PASS", "value": "ghi"}],
        "text": "NAME_TOKEN=jklm",
        "usage": {"inputTokens": 5},
    });
    Secrets::default().mask_value(&mut value);
    assert_eq!(
        value,
        json!({
            "credentials": {"user": "•••", "pin": "•••", "list": ["•••"]},
            "args": ["--token", "•••", "--verbose", "--api-key=•••"],
            "more": [["sshpass", "-p", "•••"], ["mysql", "-p•••"], ["curl", "-u", "me:•••"], ["mkdir", "-p", "a"]],
            "env": [{"key": "DB_PASS", "value": "•••"}],
            "text": "NAME_TOKEN=•••",
            "usage": {"inputTokens": 5},
        })
    );
}

/// Pieces that make trouble next to one another.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "password",
        "API_KEY",
        "token",
        "=",
        ":",
        "://",
        "@",
        "\"",
        "'",
        "\\",
        "\\n",
        "\n",
        " ",
        "--",
        "-u ",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "sk-",
        "ghp_",
        "eyJ",
        "AKIA",
        ".",
        ",",
        "0123456789abcdefGHIJ",
        "abc",
        "Authorization",
        "Bearer ",
        "Cookie",
        "•••",
        "ü",
        "\u{1b}[0m",
        "value",
        "&",
        "IOSFODNN7EXAMPLE",
        "{",
        "[",
        "$",
        "hooks.slack.com/services/",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn masking_twice_is_masking_once(text in pieces()) {
        let once = mask(&text);
        let twice = mask(&once);
        prop_assert_eq!(twice, once, "{}", text);
    }

    #[test]
    fn any_text_is_taken(text in "\\PC*") {
        mask(&text);
    }

    #[test]
    fn a_token_between_anything_is_masked(before in pieces(), after in pieces()) {
        let rest = "16C7e42F292c6912E7710c838347Ae178B4a";
        let shown = mask(&format!("{before} ghp_{rest} {after}"));
        prop_assert!(!shown.contains(rest), "{}", shown);
    }
}

/// Twice the text takes twice the time, whatever it is made of.
#[test]
fn time_grows_with_the_text() {
    let bytes: usize = if cfg!(debug_assertions) {
        400_000
    } else {
        5_000_000
    };
    for part in [
        "a ",
        "\u{1b}[",
        "\\u001b[3",
        "\u{1b}[3m",
        "a-",
        "sk-",
        "sk-a-",
        "eyJ-",
        "eyJ.",
        "://",
        "a://b:c/",
        "password=.",
        "password=",
        "password: ",
        "password=\"",
        "password='\"",
        "--token ",
        "--token=",
        "Authorization:$",
        "Authorization: a ",
        "Cookie: ",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY----- a b c ",
        "-----BEGIN PRIVATE KEY-----\n",
        "\\",
        "\\\"",
        "\u{1b}[",
        "key_",
        "AKIA",
        "hf_",
        "npm_a",
        "Bearer ",
        "\"token\",",
        "token:a",
        "-u ",
        "aB3/",
        "iVBORw0KGgo+/",
        "hooks.slack.com/services/",
        "_",
        ".",
        "key=\"key='key=`",
        "token ",
        "password is ",
        "token \"",
        "sk-a1b2c3d4e5f6g7h8.01.",
        "-p ",
        "mysql -p",
        "docker login -p ",
        "--token\n",
        "--token\n\"",
        "--token\0",
        "<token>",
        "machine a login b password ",
        "api_key ",
        "a[\"token\"] = ",
        "token=bearer ",
        "hooks.slack.com%2F",
        "xoxd-aB1cD2eF3g%2F",
        "LS0tLS1CRUdJTi",
        "eyJ0eXAiOiJKV..",
    ] {
        let text = part.repeat(bytes / part.len());
        let started = std::time::Instant::now();
        mask(&text);
        let took = started.elapsed();
        assert!(took < Duration::from_secs(5), "{part:?}: {took:?}");
    }
}

#[test]
fn values_names_and_shapes_are_masked() {
    let env = [
        ("CURSOR_API_KEY", "abcdef123"),
        ("PATH", "/usr/bin:/bin"),
        ("PIN_TOKEN", "123"),
    ]
    .map(|(n, v)| (n.to_owned(), v.to_owned()));
    let secrets = Secrets::of_env(env.iter().map(|(n, v)| (n, v)));
    assert_eq!(
        secrets.mask("key abcdef123 in /usr/bin:/bin 123"),
        "key ••• in /usr/bin:/bin 123"
    );
    assert_eq!(
        secrets.mask("Authorization: Bearer abcdefghijklmnopq.rst end"),
        "Authorization: Bearer ••• end"
    );
    assert_eq!(
        secrets.mask("sk-0123456789abcdefgh, desk-lamp, sk-short"),
        "sk-•••, desk-lamp, sk-short"
    );
    for name in [
        "OPENAI_KEY",
        "GITHUB_PAT",
        "DB_PASS",
        "db-passwd",
        "x-api-key",
        "accessToken",
    ] {
        assert!(is_secret_name(name), "{name}");
    }
    for name in ["monkey", "keyboard", "PATH", "maxTokens", "toolCallId"] {
        assert!(!is_secret_name(name), "{name}");
    }
    let command = ["agent", "--api-key", "abc", "--auth-token=def", "acp"].map(str::to_owned);
    assert_eq!(
        Secrets::default().mask_command(&command),
        "agent --api-key ••• --auth-token=••• acp"
    );
    let mut value = json!({"mcpServers": [
        {"name": "db", "command": "x", "args": ["--token", "t", "y"], "env": [{"name": "DATABASE_URL", "value": "pg://u:p@h"}]},
        {"type": "http", "name": "h", "url": "https://h/mcp?k=v", "headers": [{"name": "X-Mine", "value": "w"}]},
    ]});
    secrets.mask_value(&mut value);
    assert_eq!(
        value,
        json!({"mcpServers": [
            {"name": "db", "command": "x", "args": ["--token", "•••", "y"], "env": [{"name": "DATABASE_URL", "value": "•••"}]},
            {"type": "http", "name": "h", "url": "https://h/mcp?•••", "headers": [{"name": "X-Mine", "value": "•••"}]},
        ]})
    );
    let mut value = json!({
        "env": [{"name": "MY_API_KEY", "value": "v"}, {"name": "LANG", "value": "C"}],
        "headers": {"Authorization": "x", "Accept": "abcdef123"},
        "tokens": 12, "maxTokens": 5, "key": "k"
    });
    secrets.mask_value(&mut value);
    assert_eq!(
        value,
        json!({
            "env": [{"name": "MY_API_KEY", "value": "•••"}, {"name": "LANG", "value": "C"}],
            "headers": {"Authorization": "•••", "Accept": "•••"},
            "tokens": 12, "maxTokens": 5, "key": "•••"
        })
    );
}

#[test]
fn secrets_that_were_quoted_or_tidied_are_found() {
    for (text, expected) in [
        (
            r"echo 'tool --password '\''hunter2x'\'' on'",
            r"echo 'tool --password '\''•••'\'' on'",
        ),
        (
            "/proj/https:/bob:hunter2x@example.org/x: not found",
            "/proj/https:/bob:•••@example.org/x: not found",
        ),
        ("file:/tmp/a:b/c@d", "file:/tmp/a:b/c@d"),
    ] {
        assert_eq!(mask(text), expected);
    }
}

#[test]
fn a_part_of_a_known_private_key_is_hidden() {
    let line = "MIIEowIBAAKCAQEA7bq0cH2JdVRGQyHk5Yt3iG1n";
    let text = format!(
        "a\n-----BEGIN RSA PRIVATE KEY-----\n{line}\n{line}Z\n-----END RSA PRIVATE KEY-----\n\
         between the two of them\n-----BEGIN PRIVATE KEY-----\n{line}Y\n-----END PRIVATE KEY-----\nafter it all was said"
    );
    let mut secrets = Secrets::default();
    secrets.add_keys(&text);
    for known in [line.to_owned(), format!("{line}Z"), format!("{line}Y")] {
        assert!(
            !secrets.mask(&format!(" {known}")).contains("MIIE"),
            "{known}"
        );
    }
    secrets.add_keys(
        "if line.contains(\"PRIVATE KEY-----\") {\n    return an_ordinary_answer(line);\n}",
    );
    for other in [
        "between the two of them",
        "after it all was said",
        "return an_ordinary_answer(line);",
    ] {
        assert_eq!(secrets.mask(other), other);
    }
}

/// Secrets by their shape, and the part of each that must not be seen.
const PLANTED: &[(&str, &str)] = &[
    (
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "16C7e42F292c6912E7710c838347Ae178B4a",
    ),
    ("glpat-Zx9y8W7v6U5t4S3r2Q1p", "Zx9y8W7v6U5t4S3r2Q1p"),
    ("AKIAQ3EGRPTZ5WLXVNB2", "Q3EGRPTZ5WLXVNB2"),
    (
        "postgres://bob:hunter2xhunter2x@db.example.org/x",
        "hunter2xhunter2x",
    ),
    ("--api-key VmsT7mz9Fq2Lw8Rk4Yb6", "VmsT7mz9Fq2Lw8Rk4Yb6"),
    ("--token=VmsT7mz9Fq2Lw8Rk4Yb6", "VmsT7mz9Fq2Lw8Rk4Yb6"),
];

#[test]
fn fuzz_redactor() {
    let planted = prop::sample::select(PLANTED);
    fuzz::run(
        "redactor",
        &(pieces(), planted, pieces()),
        |(before, (secret, part), after)| {
            let shown = mask(&format!("{before}\n{secret}\n{after}"));
            prop_assert!(!shown.contains(part), "{}", shown);
            prop_assert_eq!(mask(&shown), shown);
            Ok(())
        },
    );
}
