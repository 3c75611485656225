//! Finds secrets in running text: tokens by their shape, values by the name before them, keys by their frame.
//!
//! One pass from left to right. Nothing is looked at more than a constant number of times, whatever the text is.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::MASK;
use super::name::{self, Strength};
use super::programs::{self, Invocation, Way};

/// What a token looks like after its first letters.
enum Shape {
    /// At least this many of `A-Za-z0-9_-`, which do not read like words.
    Mixed(usize),
    /// At least this many letters and digits.
    Plain(usize),
    /// Exactly this many capitals and digits.
    Capitals(usize),
    /// Three parts in base64, parted by dots; five, one of them empty, where it is encrypted.
    Jwt,
    /// At least so many characters of base64, with those that stand for bits.
    Base64(usize),
}

/// Well-known first letters. Where one begins with another, the longer comes first.
const TOKENS: &[(&str, Shape)] = &[
    ("sk_org_live_", Shape::Plain(8)),
    ("sk_org_test_", Shape::Plain(8)),
    ("ek_live_", Shape::Plain(8)),
    ("sk_live_", Shape::Plain(8)),
    ("sk_test_", Shape::Plain(8)),
    ("rk_live_", Shape::Plain(8)),
    ("rk_test_", Shape::Plain(8)),
    ("sk-", Shape::Mixed(16)),
    ("whsec_", Shape::Mixed(12)),
    ("key_", Shape::Plain(16)),
    ("crsr_", Shape::Mixed(16)),
    ("ghp_", Shape::Mixed(16)),
    ("gho_", Shape::Mixed(16)),
    ("ghu_", Shape::Mixed(16)),
    ("ghs_", Shape::Mixed(16)),
    ("ghr_", Shape::Mixed(16)),
    ("github_pat_", Shape::Mixed(16)),
    ("glpat-", Shape::Mixed(16)),
    ("gldt-", Shape::Mixed(16)),
    ("glrt-", Shape::Mixed(16)),
    ("glrtr-", Shape::Mixed(16)),
    ("glwt-", Shape::Mixed(16)),
    ("glptt-", Shape::Mixed(16)),
    ("glcbt-", Shape::Mixed(16)),
    ("glft-", Shape::Mixed(16)),
    ("glimt-", Shape::Mixed(16)),
    ("glagent-", Shape::Mixed(16)),
    ("glsoat-", Shape::Mixed(16)),
    ("gloas-", Shape::Mixed(16)),
    ("glffct-", Shape::Mixed(16)),
    ("glsa_", Shape::Mixed(16)),
    ("gsk_", Shape::Plain(16)),
    ("xapp-", Shape::Mixed(10)),
    ("xoxa-", Shape::Mixed(10)),
    ("xoxb-", Shape::Mixed(10)),
    ("xoxc-", Shape::Mixed(10)),
    ("xoxd-", Shape::Mixed(10)),
    ("xoxe-", Shape::Mixed(10)),
    ("xoxe.", Shape::Mixed(10)),
    ("xoxo-", Shape::Mixed(10)),
    ("xoxp-", Shape::Mixed(10)),
    ("xoxr-", Shape::Mixed(10)),
    ("xoxs-", Shape::Mixed(10)),
    ("xwfp-", Shape::Mixed(10)),
    ("hf_", Shape::Plain(16)),
    ("api_org_", Shape::Plain(16)),
    ("npm_", Shape::Plain(16)),
    ("pypi-", Shape::Mixed(32)),
    ("dckr_pat_", Shape::Mixed(16)),
    ("dop_v1_", Shape::Plain(32)),
    ("doo_v1_", Shape::Plain(32)),
    ("dor_v1_", Shape::Plain(32)),
    ("tskey-", Shape::Mixed(16)),
    ("sgp_", Shape::Mixed(32)),
    ("ATATT3", Shape::Mixed(32)),
    ("PMAK-", Shape::Mixed(24)),
    ("hvs.", Shape::Mixed(20)),
    ("lin_api_", Shape::Plain(16)),
    ("shpat_", Shape::Plain(16)),
    ("shpca_", Shape::Plain(16)),
    ("shppa_", Shape::Plain(16)),
    ("shpss_", Shape::Plain(16)),
    ("nvapi-", Shape::Mixed(20)),
    ("r8_", Shape::Plain(30)),
    ("xai-", Shape::Mixed(20)),
    ("AIza", Shape::Mixed(30)),
    ("ya29.", Shape::Mixed(16)),
    ("GOCSPX-", Shape::Mixed(16)),
    ("AKIA", Shape::Capitals(16)),
    ("ASIA", Shape::Capitals(16)),
    ("ABIA", Shape::Capitals(16)),
    ("ACCA", Shape::Capitals(16)),
    ("SG.", Shape::Mixed(16)),
    ("AGE-SECRET-KEY-", Shape::Mixed(40)),
    ("pplx-", Shape::Plain(30)),
    ("pscale_tkn_", Shape::Mixed(20)),
    ("rubygems_", Shape::Plain(30)),
    ("sbp_", Shape::Plain(30)),
    ("ntn_", Shape::Plain(20)),
    ("sntrys_", Shape::Mixed(20)),
    ("figd_", Shape::Mixed(20)),
    ("GR1348941", Shape::Mixed(16)),
    ("eyJ", Shape::Jwt),
    // `-----BEGIN `, in base64.
    ("LS0tLS1CRUdJTi", Shape::Base64(32)),
];

/// The same by their first letter.
static BY_LETTER: LazyLock<Vec<Vec<&(&str, Shape)>>> = LazyLock::new(|| {
    let of = |letter: u8| {
        let mine = TOKENS.iter();
        mine.filter(move |(prefix, _)| prefix.as_bytes().first() == Some(&letter))
    };
    (0..128).map(|letter| of(letter).collect()).collect()
});

/// Addresses whose path is the secret.
const HOOKS: [&str; 8] = [
    "hooks.slack.com/services/",
    "hooks.slack.com/workflows/",
    "hooks.slack.com/triggers/",
    "hooks.slack-gov.com/services/",
    "hooks.slack-gov.com/workflows/",
    "hooks.slack-gov.com/triggers/",
    "discord.com/api/webhooks/",
    "discordapp.com/api/webhooks/",
];

/// How far behind an AWS key id its secret is looked for.
const AWS_REACH: usize = 400;
/// The length of an AWS secret, in characters.
const AWS_SECRET: usize = 40;
/// How far the end of a quoted value is looked for before it is taken for one that ends with its line.
const QUOTED_REACH: usize = 64 * 1024;
/// How much of an address stands before its host, at most.
const USER_REACH: usize = 256;
/// So much of a value tells what it is.
const HEAD: usize = 256;
/// A private key is no longer than this.
const KEY_REACH: usize = 64 * 1024;

/// What is carried from one piece of a text to the next.
#[derive(Debug, Clone, Copy, Default)]
pub struct Carried {
    /// It ends inside a private key.
    in_key: bool,
    /// An AWS key id was in it, and its secret may stand in so many bytes of what follows.
    aws: usize,
    /// It ends with an option whose value is secret.
    after_option: bool,
}

impl Carried {
    /// For a text that is no line behind the last one.
    pub fn end_line(&mut self) {
        self.after_option = false;
    }
}

/// The text without secrets.
pub fn mask<'a>(text: &'a str, carried: &mut Carried) -> Cow<'a, str> {
    let shown = mask_plain(text, carried);
    let Some(plain) = without_colours(&shown) else {
        return shown;
    };
    match mask_plain(&plain, &mut Carried::default()) {
        masked if masked == plain => shown,
        masked => Cow::Owned(masked.into_owned()),
    }
}

/// The ways in which the character that begins a colour for the terminal is written.
const ESCAPES: [&str; 5] = ["\u{1b}[", "\\u001b[", "\\x1b[", "\\033[", "\\e["];

/// The text without colours for the terminal, if it has any: they stand right before names, and in values.
fn without_colours(text: &str) -> Option<String> {
    let mut plain = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = memchr::memchr2(0x1b, b'\\', &text.as_bytes()[at..]) {
        let begin = at + found;
        at = begin + 1;
        let rest = &text[begin..];
        // By their first bytes, as most of what begins with a backslash is something else.
        let starts = |escape: &&&str| {
            rest.get(..escape.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(escape))
        };
        let Some(escape) = ESCAPES.iter().find(starts) else {
            continue;
        };
        let numbers = rest[escape.len()..].bytes();
        let numbers = numbers
            .take_while(|byte| matches!(byte, b'0'..=b'?'))
            .count();
        let end = begin + escape.len() + numbers;
        if matches!(text.as_bytes().get(end), Some(b'@'..=b'~')) {
            plain.push_str(&text[copied..begin]);
            copied = end + 1;
            at = copied;
        }
    }
    (copied > 0).then(|| {
        plain.push_str(&text[copied..]);
        plain
    })
}

fn mask_plain<'a>(text: &'a str, carried: &mut Carried) -> Cow<'a, str> {
    /// Where secrets stand in one another, what masking one leaves may look like another.
    const MAX_ROUNDS: usize = 4;
    let mut shown = mask_once(text, carried);
    for _ in 0..MAX_ROUNDS {
        if shown == text {
            break;
        }
        match mask_once(&shown, &mut Carried::default()) {
            Cow::Owned(again) if again != shown => shown = Cow::Owned(again),
            _ => break,
        }
    }
    shown
}

fn mask_once<'a>(text: &'a str, carried: &mut Carried) -> Cow<'a, str> {
    let before = std::mem::take(carried);
    let mut scan = Scan::new(text, before.aws);
    let begin = if before.in_key {
        scan.rest_of_key(0)
    } else if before.after_option {
        scan.value_of_line(0).unwrap_or(0)
    } else {
        0
    };
    scan.run(begin);
    carried.in_key = scan.open_key;
    carried.aws = scan.aws_until.saturating_sub(text.len() + 1);
    carried.after_option = scan.open_option;
    scan.finish()
}

/// The secrets in a text.
pub fn secrets_in(text: &str) -> Vec<&str> {
    let mut scan = Scan::new(text, 0);
    scan.run(0);
    scan.found
        .iter()
        .map(|(from, to)| &text[*from..*to])
        .collect()
}

struct Scan<'a> {
    text: &'a [u8],
    source: &'a str,
    out: String,
    /// What was masked.
    found: Vec<(usize, usize)>,
    /// So much of the text is in `out`.
    copied: usize,
    /// The last run of `A-Za-z0-9_-` that was measured.
    run: (usize, usize),
    /// The last value without quotation marks that was measured.
    bare: (usize, usize),
    /// Up to here a run is known to read like words.
    dull: usize,
    /// Where the next private key ends, once it was looked for.
    key_end: Option<usize>,
    /// Where the next `@` stands, if not before this.
    next_at: usize,
    /// No digit stands between these two places.
    digit: (usize, usize),
    /// The last name that was looked at, and how sure it is.
    name: (&'a str, Strength),
    /// Up to here an AWS secret may stand.
    aws_until: usize,
    /// The words up to here were read,
    words_to: usize,
    /// and this is what they run.
    invocation: Invocation,
    /// The text ends inside a private key.
    open_key: bool,
    /// The text ends with an option whose value is secret.
    open_option: bool,
}

/// A value that follows a name.
struct Found {
    from: usize,
    to: usize,
    quoted: bool,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str, aws_until: usize) -> Self {
        Self {
            text: text.as_bytes(),
            source: text,
            out: String::new(),
            found: Vec::new(),
            copied: 0,
            run: (0, 0),
            bare: (0, 0),
            dull: 0,
            key_end: None,
            next_at: 0,
            digit: (0, 0),
            name: ("", Strength::None),
            aws_until,
            words_to: 0,
            invocation: Invocation::default(),
            open_key: false,
            open_option: false,
        }
    }

    fn at(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }

    fn starts(&self, at: usize, part: &str) -> bool {
        self.text[at.min(self.text.len())..].starts_with(part.as_bytes())
    }

    /// Both ends stand beside ASCII or at an end of the text.
    fn hide(&mut self, from: usize, to: usize) {
        if from >= to || from < self.copied {
            return;
        }
        self.found.push((from, to));
        self.out.push_str(&self.source[self.copied..from]);
        self.out.push_str(MASK);
        self.copied = to;
    }

    fn finish(mut self) -> Cow<'a, str> {
        if self.copied == 0 && self.out.is_empty() {
            return Cow::Borrowed(self.source);
        }
        self.out.push_str(&self.source[self.copied..]);
        Cow::Owned(self.out)
    }

    fn run(&mut self, begin: usize) {
        let mut at = begin;
        // Where the name that is being walked through ends: its parts are tokens at most, no names.
        let mut name_end = begin;
        // Nothing before `at` belongs to the same word.
        let mut fresh = true;
        while at < self.text.len() {
            let byte = self.text[at];
            match byte {
                0x1b => {
                    at = self.after_colour(at + 1);
                    fresh = true;
                }
                b'\\' => {
                    at = self.after_escape(at);
                    fresh = true;
                }
                // As in an address: its digits are not part of the word behind it.
                b'%' if self.after_percent(at).is_some() => {
                    at += 3;
                    fresh = true;
                }
                b'-' if self.starts(at, "-----BEGIN ") => {
                    at = self.private_key(at);
                    fresh = true;
                }
                _ if is_word(byte) && fresh => {
                    if let Some(end) = self.token(at) {
                        at = end;
                        name_end = name_end.max(at);
                        fresh = false;
                        continue;
                    }
                    if at >= name_end {
                        name_end = at + length(&self.text[at..], is_name);
                        if let Some(end) = self.named(at, name_end) {
                            at = end;
                            name_end = end;
                            fresh = true;
                            continue;
                        }
                    }
                    fresh = byte == b'_';
                    at += 1;
                }
                _ => {
                    fresh = !byte.is_ascii_alphanumeric();
                    at += 1;
                }
            }
        }
    }

    /// After the rest of an escape sequence that colours a terminal.
    fn after_colour(&self, at: usize) -> usize {
        if self.at(at) != b'[' {
            return at;
        }
        let params = length(&self.text[at + 1..], |b| (0x20..0x40).contains(&b));
        let end = at + 1 + params;
        end + usize::from((0x40..0x7f).contains(&self.at(end)))
    }

    /// After a backslash and what it escapes: the `n` of a line break is not part of the word behind it.
    fn after_escape(&self, at: usize) -> usize {
        let digits = |from: usize, count: usize| {
            length(&self.text[from.min(self.text.len())..], |b| {
                b.is_ascii_hexdigit()
            }) >= count
        };
        let end = match self.at(at + 1) {
            b'n' | b'r' | b't' | b'b' | b'f' | b'"' | b'\'' | b'\\' | b'/' => return at + 2,
            b'u' if digits(at + 2, 4) => at + 6,
            b'x' if digits(at + 2, 2) => at + 4,
            b'0' if self.starts(at, "\\033") => at + 4,
            b'e' if self.at(at + 2) == b'[' => at + 2,
            _ => return at + 1,
        };
        self.after_colour(end)
    }

    /// The end of a token that begins here, masked.
    fn token(&mut self, at: usize) -> Option<usize> {
        let rest = &self.text[at..];
        let found = BY_LETTER[usize::from(rest[0] & 0x7f)]
            .iter()
            .find(|(prefix, _)| rest.starts_with(prefix.as_bytes()));
        if let Some((prefix, shape)) = found {
            let from = at + prefix.len();
            let to = match shape {
                Shape::Mixed(least) => self.mixed(from, *least),
                Shape::Plain(least) => self.plain(from, *least),
                Shape::Capitals(count) => self.capitals(from, *count),
                Shape::Jwt => self.jwt(from),
                Shape::Base64(least) => self.base64(from, *least),
            };
            if let Some(to) = to {
                self.hide(from, to);
                if matches!(shape, Shape::Capitals(_)) {
                    self.aws_until = to + AWS_REACH;
                }
                return Some(to);
            }
        }
        if at < self.aws_until {
            let rest = &self.text[at..self.text.len().min(at + AWS_SECRET + 1)];
            let is_secret = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'+');
            let run = &rest[..length(rest, is_secret)];
            let holds = |what: fn(&u8) -> bool| run.iter().any(what);
            if run.len() == AWS_SECRET
                && holds(u8::is_ascii_uppercase)
                && holds(u8::is_ascii_lowercase)
            {
                self.hide(at, at + AWS_SECRET);
                return Some(at + AWS_SECRET);
            }
        }
        match self.text[at] {
            b'B' | b'b' => self.bearer(at),
            b'h' | b'd' | b'H' | b'D' => self.hook(at),
            _ => None,
        }
    }

    /// The end of the run of `A-Za-z0-9_-` this is part of.
    fn run_end(&mut self, at: usize) -> usize {
        if !(self.run.0..self.run.1).contains(&at) {
            self.run = (at, at + length(&self.text[at..], is_token));
        }
        self.run.1
    }

    fn mixed(&mut self, from: usize, least: usize) -> Option<usize> {
        let end = self.run_end(from);
        if end < from + least || from < self.dull {
            return None;
        }
        let run = &self.text[from..end];
        let longest = run
            .split(|b| matches!(b, b'-' | b'_'))
            .map(<[u8]>::len)
            .max();
        let reads_like_words = !run
            .iter()
            .any(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
            && longest < Some(16);
        if reads_like_words {
            // And so does what is left of it behind any later beginning.
            self.dull = end;
            return None;
        }
        Some(self.after_dots(end))
    }

    /// Some tokens have parts: the end of all that are there.
    fn after_dots(&self, mut end: usize) -> usize {
        loop {
            // Slack's cookies are written as in an address.
            let is_base64 = ["%2B", "%2F", "%3D", "%2b", "%2f", "%3d"].iter();
            if is_base64.clone().any(|sign| self.starts(end, sign)) {
                let after = end + 3;
                let part = length(&self.text[after..], is_token);
                end = after + part;
                continue;
            }
            if self.at(end) != b'.' {
                break;
            }
            let part = length(&self.text[end + 1..], is_token);
            let next = end + 1 + part;
            // One of GitLab's has a short part in the middle.
            let last = length(self.text.get(next + 1..).unwrap_or_default(), is_token);
            if part == 2 && self.at(next) == b'.' && last >= 7 {
                return next + 1 + last;
            } else if part < 8 {
                break;
            }
            end = next;
        }
        end
    }

    fn plain(&mut self, from: usize, least: usize) -> Option<usize> {
        let run = &self.text[from..];
        let run = &run[..length(run, |b| b.is_ascii_alphanumeric())];
        let is_one = run.len() >= least
            && (run
                .iter()
                .any(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
                || run.len() >= 20);
        is_one.then(|| self.run_end(from))
    }

    fn capitals(&self, from: usize, count: usize) -> Option<usize> {
        let rest = &self.text[from..self.text.len().min(from + count + 1)];
        let run = length(rest, |b| b.is_ascii_uppercase() || b.is_ascii_digit());
        let ends = !rest
            .get(count)
            .copied()
            .is_some_and(|b| b.is_ascii_alphanumeric());
        (run == count && ends).then_some(from + count)
    }

    fn jwt(&mut self, from: usize) -> Option<usize> {
        let head = self.run_end(from);
        if head < from + 8 || self.at(head) != b'.' {
            return None;
        }
        let body = head + 1 + length(&self.text[head + 1..], is_token);
        let end = self.after_dots(body);
        let is_one = body >= head + 9 || (body == head + 1 && end >= body + 9);
        is_one.then_some(end)
    }

    fn base64(&self, from: usize, least: usize) -> Option<usize> {
        let run = length(&self.text[from..], |b| {
            b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=')
        });
        (run >= least).then_some(from + run)
    }

    fn bearer(&mut self, at: usize) -> Option<usize> {
        let word = self.text.get(at..at + 6)?;
        if !word.eq_ignore_ascii_case(b"bearer") || !matches!(self.at(at + 6), b' ' | b'\t') {
            return None;
        }
        let from = at + 7;
        let run = &self.text[from..];
        let run = &run[..length(run, is_credential)];
        let is_one = run.len() >= 16 || (run.len() >= 8 && run.iter().any(u8::is_ascii_digit));
        is_one.then(|| {
            let to = from + run.len();
            self.hide(from, to);
            to
        })
    }

    fn hook(&mut self, at: usize) -> Option<usize> {
        let from = HOOKS.iter().find_map(|hook| self.after_address(at, hook))?;
        let mut to = from;
        loop {
            to += length(&self.text[to..], is_token);
            match self.after_slash(to).or_else(|| self.after_percent(to)) {
                Some(after) => to = after,
                None => break,
            }
        }
        self.hide(from, to);
        Some(to)
    }

    /// After an address that begins here, however its case and its slashes are written.
    fn after_address(&self, at: usize, address: &str) -> Option<usize> {
        let mut at = at;
        for byte in address.bytes() {
            at = match byte {
                b'/' => self.after_slash(at)?,
                _ if self.at(at).eq_ignore_ascii_case(&byte) => at + 1,
                _ => return None,
            };
        }
        Some(at)
    }

    /// After a slash: plain, escaped as in JSON, or as an address has it in another.
    fn after_slash(&self, at: usize) -> Option<usize> {
        let spelled = ["/", "\\/", "%2F", "%2f"];
        let found = spelled.iter().find(|slash| self.starts(at, slash))?;
        Some(at + found.len())
    }

    /// After a byte that an address has as two digits.
    fn after_percent(&self, at: usize) -> Option<usize> {
        let is_one = self.at(at) == b'%'
            && self.at(at + 1).is_ascii_hexdigit()
            && self.at(at + 2).is_ascii_hexdigit();
        is_one.then_some(at + 3)
    }

    /// What follows a name, if that says that it is secret: the end of what was masked.
    fn named(&mut self, at: usize, end: usize) -> Option<usize> {
        if self.starts(end, "://") {
            return self.password_of_url(end + 3);
        } else if self.starts(end, ":/") {
            // An address that was taken for a path and tidied.
            return self.password_of_url(end + 2);
        }
        let name = self.source[at..end].trim_end_matches(['.', '-']);
        let end = at + name.len();
        let is_option = self.is_option(at);
        if is_option && matches!(name, "u" | "user" | "proxy-user") {
            return self.user_and_password(end);
        }
        if is_option
            && name.len() < 64
            && let Some(end) = self.option_of_program(at, end)
        {
            return Some(end);
        }
        if self.at(end) == b'>' && at > 0 && self.text[at - 1] == b'<' {
            return self.element(name, end + 1);
        }
        // Looked at only where a value follows: most words end here.
        let quoted_name = self.after_quote(end);
        // `environ["API_KEY"] = …`
        let bracket = quoted_name
            .filter(|at| self.at(*at) == b']')
            .map(|at| at + 1);
        let after = bracket.or(quoted_name).unwrap_or(end);
        let sign = after + length(&self.text[after..], is_blank);
        let assigned = match self.at(sign) {
            b'=' => !matches!(self.at(sign + 1), b'=' | b'~'),
            b':' => self.at(sign + 1) != b':',
            _ => false,
        };
        let listed = quoted_name.is_some()
            && (self.at(sign) == b',' || (sign > after && self.starts(sign, "value=")));
        if !assigned && !is_option && !listed {
            return (sign > end)
                .then(|| self.said_value(at, name, sign))
                .flatten();
        }
        let strength = self.strength(name);
        if strength == Strength::None {
            return None;
        }
        if is_option && !assigned {
            return self.option_value(end);
        }
        if listed {
            return self.listed_value(sign + usize::from(self.at(sign) == b','));
        }
        let colon = self.at(sign) == b':';
        let mut from = sign + 1;
        while matches!(self.at(from), b'=' | b'>') && from < sign + 3 {
            from += 1;
        }
        let gap = length(&self.text[from..], is_blank);
        let spaced = gap > 0 || sign > after;
        from += gap;
        if colon && name::is_authorization(name) {
            return self.authorization(from);
        }
        let shouted = !name.bytes().any(|b| b.is_ascii_lowercase()) && !colon && !spaced;
        if (strength == Strength::Strong || shouted)
            && let Some(scheme) = self.after_scheme(from)
        {
            return self.authorization(scheme);
        }
        if colon && name::is_cookie(name) {
            let from = self.after_quote(from).unwrap_or(from);
            if !self.head_of_header(from).contains(&b'=') {
                return None;
            }
            return self.rest_of_header(from);
        }
        let Some(found) = self.value(from) else {
            return colon.then(|| self.typed_value(from)).flatten();
        };
        let is_key =
            name.len() >= 3 && name.as_bytes()[name.len() - 3..].eq_ignore_ascii_case(b"key");
        let context = Context {
            strength,
            is_key,
            shouted,
            colon,
            spaced,
            option: is_option,
            quoted: found.quoted,
        };
        let digit = !context.needs_digit() || self.next_digit(found.from) < found.to;
        if !digit || !context.is_secret(self.head(&found), self.at(found.to)) {
            // `password: &str = "…"`
            return colon.then(|| self.typed_value(from)).flatten();
        }
        self.hide(found.from, found.to);
        Some(found.to)
    }

    /// `login me password …`, as a `.netrc` has it, `the password is …`, and `config set api_key …`.
    fn said_value(&mut self, at: usize, name: &'a str, from: usize) -> Option<usize> {
        const NAMES: [&str; 4] = ["password", "passwd", "token", "secret"];
        let is_plain = NAMES.iter().any(|known| name.eq_ignore_ascii_case(known));
        let may_be = is_plain || (name.contains('_') && self.strength(name) == Strength::Strong);
        if !may_be {
            return None;
        }
        if is_plain && self.follows_login(at) {
            let found = self.value(from)?;
            if is_placeholder(self.head(&found)) {
                return None;
            }
            self.hide(found.from, found.to);
            return Some(found.to);
        }
        let from = from + if self.starts(from, "is ") { 3 } else { 0 };
        if self.after_quote(from).is_some() {
            return None;
        }
        let found = self.value(from)?;
        let value = self.head(&found);
        let has = |what: fn(&u8) -> bool| value.iter().any(what);
        let is_one = value.len() >= 12
            && has(u8::is_ascii_digit)
            && has(u8::is_ascii_lowercase)
            && (has(u8::is_ascii_uppercase) || value.len() >= 24)
            && value.iter().all(|b| is_credential(*b))
            && (value.len() == AWS_SECRET || !has(|b| matches!(b, b'=' | b'/')));
        is_one.then(|| {
            self.hide(found.from, found.to);
            found.to
        })
    }

    /// Whether the name that begins here stands behind `machine HOST login NAME`, as a `.netrc` has it.
    fn follows_login(&self, at: usize) -> bool {
        let before = &self.text[at.saturating_sub(HEAD)..at];
        let words = before.rsplit(u8::is_ascii_whitespace);
        let mut words = words.filter(|word| !word.is_empty()).skip(1);
        words.next() == Some(b"login")
            && (words.next() == Some(b"default") || words.next() == Some(b"machine"))
    }

    /// `<password>…</password>`, behind the beginning.
    fn element(&mut self, name: &'a str, from: usize) -> Option<usize> {
        let strength = self.strength(name);
        let to = from + length(&self.text[from..], |b| !matches!(b, b'<' | b'\n'));
        let found = Found {
            from,
            to,
            quoted: true,
        };
        let value = self.head(&found);
        let is_one = match strength {
            Strength::Strong => !value.trim_ascii().is_empty(),
            Strength::Weak => looks_random(value),
            Strength::None => false,
        };
        if !is_one || self.at(to) != b'<' || is_placeholder(value) {
            return None;
        }
        self.hide(from, to);
        Some(to)
    }

    /// Where the scheme begins that stands here in front of credentials.
    fn after_scheme(&self, from: usize) -> Option<usize> {
        let begin = self.after_quote(from).unwrap_or(from);
        let word = length(&self.text[begin..self.text.len().min(begin + 8)], |b| {
            b.is_ascii_alphabetic()
        });
        let is_scheme = [b"bearer".as_slice(), b"basic"]
            .iter()
            .any(|scheme| self.text[begin..begin + word].eq_ignore_ascii_case(scheme));
        (is_scheme && is_blank(self.at(begin + word))).then_some(begin)
    }

    /// `sshpass -p …`, `docker login -p …`, `mysql -p…`: what is a password for some programs only.
    fn option_of_program(&mut self, at: usize, end: usize) -> Option<usize> {
        let letter = self.text[at];
        if !programs::has(letter) || self.at(at.wrapping_sub(2)) == b'-' {
            return None;
        }
        self.read_words(at - 1);
        match self.invocation.way(letter) {
            Way::Apart => (end == at + 1).then(|| self.option_value(end)).flatten(),
            Way::Attached => {
                let found = self.value(at + 1)?;
                if is_placeholder(self.head(&found)) {
                    return None;
                }
                self.hide(found.from, found.to);
                Some(found.to)
            }
            Way::None => None,
        }
    }

    /// Takes note of the words before this place: which program they run.
    fn read_words(&mut self, to: usize) {
        let is_part =
            |b: u8| !(b.is_ascii_whitespace() || is_quote(b) || b",[]();|&\\\0".contains(&b));
        let mut at = self.words_to;
        while at < to {
            let word = length(&self.text[at..to], is_part);
            if word > 0 {
                self.invocation.word(&self.text[at..at + word]);
                at += word;
                continue;
            }
            let continues = || matches!(self.at(at.wrapping_sub(1)), b',' | b'\\');
            match self.text[at] {
                b';' | b'|' | b'&' => self.invocation = Invocation::default(),
                b'\n' if !continues() => self.invocation = Invocation::default(),
                _ => {}
            }
            at += 1;
        }
        self.words_to = self.words_to.max(to);
    }

    /// How sure a name is. The same one often comes many times.
    fn strength(&mut self, name: &'a str) -> Strength {
        if self.name.0 != name {
            self.name = (name, name::strength(name));
        }
        self.name.1
    }

    /// Where the next digit stands, from here on.
    fn next_digit(&mut self, from: usize) -> usize {
        if !(self.digit.0..=self.digit.1).contains(&from) {
            let rest = self.text.get(from..).unwrap_or_default();
            self.digit = (from, from + length(rest, |b| !b.is_ascii_digit()));
        }
        self.digit.1
    }

    /// `{"name": "API_KEY", "value": "…"}`, behind the name.
    fn listed_value(&mut self, from: usize) -> Option<usize> {
        let from = from + length(&self.text[from..], |b| b.is_ascii_whitespace());
        let sign = if self.starts(from, "value=") {
            // An attribute.
            from + 5
        } else {
            let name = self.after_quote(from)?;
            if !self.starts(name, "value") {
                return None;
            }
            let after = self.after_quote(name + 5)?;
            after + length(&self.text[after..], is_blank)
        };
        if !matches!(self.at(sign), b':' | b'=') {
            return None;
        }
        let from = sign + 1 + length(&self.text[sign + 1..], is_blank);
        let found = self.value(from).filter(|found| found.quoted)?;
        self.hide(found.from, found.to);
        Some(found.to)
    }

    /// What a constant is set to, behind its type.
    fn typed_value(&mut self, from: usize) -> Option<usize> {
        let reach = &self.text[from..self.text.len().min(from + 48)];
        let area = length(reach, |b| {
            !matches!(b, b'=' | b'\n' | b',' | b';' | b')' | b'{')
        });
        let sign = from + area;
        if self.at(sign) != b'=' || self.at(sign + 1) == b'=' {
            return None;
        }
        let from = sign + 1 + length(&self.text[sign + 1..], is_blank);
        let found = self.value(from).filter(|found| found.quoted)?;
        if is_placeholder(self.head(&found)) {
            return None;
        }
        self.hide(found.from, found.to);
        Some(found.to)
    }

    /// So much of a value as tells what it is.
    fn head(&self, found: &Found) -> &'a [u8] {
        &self.text[found.from..found.to.min(found.from + HEAD)]
    }

    /// Whether the name that begins here is an option's: dashes before it, and nothing of a word before those.
    fn is_option(&self, at: usize) -> bool {
        let before = |back: usize| at.checked_sub(back).map(|at| self.text[at]);
        let dashes = match (before(1), before(2)) {
            (Some(b'-'), Some(b'-')) => 2,
            (Some(b'-'), _) => 1,
            _ => return false,
        };
        let dash = at - dashes;
        before(dashes + 1).is_none_or(|b| !b.is_ascii_alphanumeric() && b != b'-')
            || self.text[..dash].ends_with(b"\\u0000")
    }

    /// After a quotation mark and the backslashes before it.
    fn after_quote(&self, at: usize) -> Option<usize> {
        // A quotation mark inside of others, as a shell has it.
        if self.starts(at, "'\\''") {
            return Some(at + 4);
        }
        let slashes = length(&self.text[at.min(self.text.len())..], |b| b == b'\\').min(8);
        is_quote(self.at(at + slashes)).then_some(at + slashes + 1)
    }

    /// `--api-key VALUE`, also as two items of a list and over the end of a line.
    fn option_value(&mut self, end: usize) -> Option<usize> {
        let closed = self.after_quote(end);
        let mut from = closed.unwrap_or(end);
        if closed.is_some() && self.at(from) == b',' {
            from += 1;
        }
        let gap = from;
        loop {
            match self.at(from) {
                b' ' | b'\t' => from += 1,
                // As in `/proc/1/cmdline`.
                0 if from < self.text.len() => from += 1,
                b'\\' if self.at(from + 1) == b'\n' => from += 2,
                b'\\' if self.starts(from, "\\u0000") => from += 6,
                b'\n' | b'\r' if closed.is_some() => from += 1,
                _ => break,
            }
        }
        let is_end = matches!(self.at(from), b'\n' | b'\r') || from == self.text.len();
        if is_end && self.is_alone(end) {
            self.open_option = from == self.text.len();
            let line = from + length(&self.text[from..], |b| matches!(b, b'\n' | b'\r'));
            return self.value_of_line(line);
        }
        if from == gap && closed.is_none() {
            return None;
        }
        let found = self.value(from)?;
        let value = self.head(&found);
        if is_placeholder(value) || value.starts_with(b"-") {
            return None;
        }
        self.hide(found.from, found.to);
        Some(found.to)
    }

    /// Whether nothing stands before the option that ends here, on its line, but what begins an item of a list.
    fn is_alone(&self, end: usize) -> bool {
        let before = &self.text[end.saturating_sub(HEAD)..end];
        let line = before.rsplit(|b| matches!(b, b'\n' | b'\r')).next();
        let line = line.unwrap_or_default().trim_ascii_start();
        let line = line.strip_prefix(b"- ").unwrap_or(line);
        let word = line
            .strip_prefix(b"\"")
            .or(line.strip_prefix(b"'"))
            .unwrap_or(line);
        !word.contains(&b' ')
    }

    /// A value that has a line for itself, masked.
    fn value_of_line(&mut self, at: usize) -> Option<usize> {
        let mut from = at + length(&self.text[at..], is_blank);
        if self.starts(from, "- ") {
            from += 2 + length(&self.text[from + 2..], is_blank);
        }
        let found = self.value(from)?;
        let value = self.head(&found);
        let after = self.after_quote(found.to).unwrap_or(found.to);
        let rest = &self.text[after..];
        let rest = &rest[length(rest, |b| is_blank(b) || b == b',')..];
        let ends = rest.first().is_none_or(|b| matches!(b, b'\n' | b'\r'));
        if !ends || is_placeholder(value) || value.starts_with(b"-") {
            return None;
        }
        self.hide(found.from, found.to);
        Some(found.to)
    }

    /// `-u name:password`.
    fn user_and_password(&mut self, end: usize) -> Option<usize> {
        let mut from = end + usize::from(self.at(end) == b'=');
        from += length(&self.text[from..], is_blank);
        if from == end {
            return None;
        }
        let found = self.value(from)?;
        let value = self.head(&found);
        let colon = value.iter().position(|b| *b == b':')?;
        let password = &value[colon + 1..];
        // `-u 1000:1000` is a user and a group.
        if password.iter().all(u8::is_ascii_digit)
            || is_placeholder(password)
            || !value[..colon].iter().all(|b| is_name(*b) || *b == b'@')
        {
            return None;
        }
        let user = if is_token_as_user(&value[..colon]) {
            0
        } else {
            colon + 1
        };
        self.hide(found.from + user, found.to);
        Some(found.to)
    }

    /// `Bearer …`, `Basic …`, or anything else up to the end of the header.
    fn authorization(&mut self, from: usize) -> Option<usize> {
        let from = self.after_quote(from).unwrap_or(from);
        let scheme = length(&self.text[from..], |b| {
            b.is_ascii_alphanumeric() || b == b'-'
        });
        let word = self.text[from..from + scheme].to_ascii_lowercase();
        let gap = length(&self.text[from + scheme..], is_blank);
        let known = ["bearer", "basic", "token", "apikey", "negotiate", "ntlm"];
        if gap > 0 && known.iter().any(|known| known.as_bytes() == word) {
            let found = self
                .value(from + scheme + gap)
                .filter(|found| !found.quoted)?;
            if is_placeholder(self.head(&found)) {
                return None;
            }
            self.hide(found.from, found.to);
            return Some(found.to);
        }
        if gap > 0 {
            // Digest and AWS's have parts.
            let from = from + scheme + gap;
            if !self.head_of_header(from).contains(&b'=')
                || is_placeholder(self.head_of_header(from))
            {
                return None;
            }
            return self.rest_of_header(from);
        }
        let found = self.value(from).filter(|found| !found.quoted)?;
        let value = self.head(&found);
        let is_one = value.len() >= 8
            && value.iter().any(u8::is_ascii_digit)
            && !is_placeholder(value)
            && !is_code(value, self.at(found.to), true, true);
        is_one.then(|| {
            self.hide(found.from, found.to);
            found.to
        })
    }

    fn head_of_header(&self, from: usize) -> &'a [u8] {
        let head = &self.text[from..self.text.len().min(from + HEAD)];
        &head[..length(head, |b| !is_end_of_header(b))]
    }

    fn rest_of_header(&mut self, from: usize) -> Option<usize> {
        let to = from + length(&self.text[from..], |b| !is_end_of_header(b));
        self.hide(from, to);
        Some(to)
    }

    /// The value that begins here, without its quotation marks.
    fn value(&mut self, at: usize) -> Option<Found> {
        if let Some(from) = self.after_quote(at) {
            let mark = &self.text[at..from];
            let reach = self.text.len().min(from + QUOTED_REACH);
            let mut end = from;
            while end < reach {
                if self.text[end..].starts_with(mark) {
                    return Some(Found {
                        from,
                        to: end,
                        quoted: true,
                    });
                }
                // Within plain quotation marks a backslash escapes one.
                let step = if mark.len() == 1 && self.text[end] == b'\\' {
                    2
                } else {
                    1
                };
                end += step;
            }
            let to = from + length(&self.text[from..], |b| b != b'\n');
            return (to > from).then_some(Found {
                from,
                to,
                quoted: true,
            });
        }
        if !(self.bare.0..self.bare.1).contains(&at) {
            let rest = &self.text[at.min(self.text.len())..];
            self.bare = (at, at + length(rest, |b| !is_end_of_value(b)));
        }
        let to = self.bare.1;
        (to > at).then_some(Found {
            from: at,
            to,
            quoted: false,
        })
    }

    /// `scheme://user:password@host`.
    fn password_of_url(&mut self, from: usize) -> Option<usize> {
        if self.next_at < from {
            let rest = &self.text[from..];
            let found = rest.iter().position(|b| *b == b'@');
            self.next_at = found.map_or(usize::MAX, |at| from + at);
        }
        if self.next_at > from + USER_REACH {
            return None;
        }
        let reach = self.text.len().min(from + USER_REACH);
        let area = &self.text[from..reach];
        let area = &area[..length(area, |b| !is_end_of_url(b))];
        let host = length(area, |b| !matches!(b, b'/' | b'?' | b'#'));
        let authority = &area[..host];
        let colon = authority.iter().position(|b| *b == b':');
        let mark = authority.iter().rposition(|b| *b == b'@').or_else(|| {
            // A password with a slash in it. A port would be a number.
            let port = &authority[colon? + 1..];
            if port.iter().all(u8::is_ascii_digit) {
                return None;
            }
            area.iter().position(|b| *b == b'@')
        })?;
        let (begin, end) = match colon.filter(|colon| *colon < mark) {
            // `https://TOKEN:x-oauth-basic@github.com`
            Some(colon) if matches!(&area[colon + 1..mark], b"" | b"x-oauth-basic") => (0, colon),
            Some(colon) if is_token_as_user(&area[..colon]) => (0, mark),
            Some(colon) => (colon + 1, mark),
            // `https://TOKEN@github.com`, and not `ssh://git@github.com`.
            None if mark >= 20 => (0, mark),
            None => return None,
        };
        if is_placeholder(&area[begin..end]) {
            return None;
        }
        self.hide(from + begin, from + end);
        Some(from + mark)
    }

    /// After a private key; its frame stays.
    fn private_key(&mut self, at: usize) -> usize {
        let head = at + 11;
        let title = length(&self.text[head..self.text.len().min(head + 64)], |b| {
            b.is_ascii_uppercase() || b.is_ascii_digit() || b == b' '
        });
        let body = head + title;
        let is_key = self.source[head..body].contains("PRIVATE KEY");
        if !is_key || !self.starts(body, "-----") {
            return at + 5;
        }
        self.rest_of_key(body + 5)
    }

    /// Masks the rest of a private key: where its end is, or where what could be part of it ends.
    fn rest_of_key(&mut self, from: usize) -> usize {
        if self.key_end.is_none_or(|end| end < from) {
            let found = self.source[from..].find("-----END ");
            self.key_end = Some(found.map_or(usize::MAX, |at| from + at));
        }
        let end = self.key_end.unwrap_or(usize::MAX);
        if end <= from.saturating_add(KEY_REACH) {
            if self.source[from..end].trim() != "" {
                self.hide(from, end);
            }
            return end + length(&self.text[end..], |b| b == b'-');
        }
        let mut to = from;
        loop {
            let line = &self.text[to..];
            if !is_key_material(&line[..length(&line[..line.len().min(HEAD)], |b| b != b'\n')]) {
                break;
            }
            to += length(line, |b| b != b'\n');
            if to == self.text.len() {
                self.open_key = true;
                break;
            }
            to += 1;
        }
        if self.source[from..to].trim() != "" {
            self.hide(from, to);
        }
        to
    }
}

/// Where a value stands.
struct Context {
    strength: Strength,
    /// The name is that of a key, which may be one of a table.
    is_key: bool,
    /// `NAME=value`, as in an environment.
    shouted: bool,
    /// After a colon, not an equals sign.
    colon: bool,
    /// With blanks around the sign.
    spaced: bool,
    option: bool,
    quoted: bool,
}

impl Context {
    /// Whether a value without a digit is none, whatever else it has.
    fn needs_digit(&self) -> bool {
        self.strength == Strength::Weak && !self.option && !self.shouted
    }

    /// Whether a value is a secret and not code that deals with one.
    fn is_secret(&self, value: &[u8], next: u8) -> bool {
        if value.is_empty() || is_placeholder(value) {
            return false;
        }
        if self.option {
            return true;
        }
        if self.strength == Strength::Weak && !(self.shouted && value.len() >= 4) {
            return looks_random(value) && !(self.is_key && is_hash(value));
        }
        if self.quoted {
            return true;
        }
        if self.shouted {
            let number = value.len() < 4 && value.iter().all(u8::is_ascii_digit);
            return !number && !matches!(next, b'(' | b'[');
        }
        !is_code(value, next, self.colon, self.spaced)
    }
}

/// Long, without blanks, and not of letters alone.
fn looks_random(value: &[u8]) -> bool {
    value.len() >= 16
        && value.iter().any(u8::is_ascii_digit)
        && value.iter().any(u8::is_ascii_alphabetic)
        && value.iter().all(|b| is_credential(*b))
}

/// A user's name that is a token.
fn is_token_as_user(user: &[u8]) -> bool {
    user.len() >= 16 && user.iter().any(u8::is_ascii_digit)
}

/// A sum or a UUID.
fn is_hash(value: &[u8]) -> bool {
    value.iter().all(|b| b.is_ascii_hexdigit() || *b == b'-')
}

/// A placeholder for a value, such as a masked one.
fn is_placeholder(value: &[u8]) -> bool {
    value.starts_with(MASK.as_bytes())
        || match value.first() {
            None | Some(b'{' | b'<') => true,
            Some(b'$') => is_variable(&value[1..]),
            // And not a sign as an address has it.
            Some(b'%') => !value
                .get(1..3)
                .is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)),
            _ => false,
        }
        || value.iter().all(|b| matches!(b, b'*' | b'.' | b'x' | b'X'))
}

/// What follows the sign of a variable.
fn is_variable(rest: &[u8]) -> bool {
    let name = length(rest, |b| {
        b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':')
    });
    rest.is_empty() || matches!(rest[0], b'{' | b'(' | b'$' | b'@') || name == rest.len()
}

/// Whether what stands without quotation marks behind `password =` reads like code.
fn is_code(value: &[u8], next: u8, colon: bool, spaced: bool) -> bool {
    const WORDS: [&str; 34] = [
        "str",
        "string",
        "bytes",
        "none",
        "null",
        "nil",
        "undefined",
        "true",
        "false",
        "bool",
        "boolean",
        "int",
        "number",
        "any",
        "unknown",
        "void",
        "self",
        "this",
        "new",
        "await",
        "async",
        "function",
        "fn",
        "lambda",
        "return",
        "required",
        "optional",
        "input",
        "value",
        "text",
        "in",
        "is",
        "and",
        "or",
    ];
    let letters = value
        .iter()
        .all(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'.' | b':' | b'?' | b'!'));
    if !letters {
        // `password=$x`, `&str`, `*const`, `#{…}`: signs that begin no password as often as they begin code.
        return matches!(next, b'(' | b'[')
            || matches!(
                value.first(),
                Some(b'&' | b'*' | b'@' | b'#' | b'!' | b'-' | b'=' | b'/' | b'.')
            )
            || value.windows(2).any(|pair| pair == b"::" || pair == b"->");
    }
    let lower = String::from_utf8_lossy(value).to_ascii_lowercase();
    let word = lower.trim_end_matches(['?', '!', ':', '.']);
    matches!(next, b'(' | b'[' | b'<' | b'{' | b')')
        || word.contains(['.', ':'])
        || WORDS.contains(&word)
        || ["pass", "token", "secret", "key", "cred", "auth", "env"].iter().any(|part| word.contains(part))
        || (colon && value.first().is_some_and(u8::is_ascii_uppercase))
        || word.len() < 4
        // Behind a blank a word is a value only where nothing follows it.
        || ((colon || spaced) && !matches!(next, b'\n' | b'\r' | 0 | b'"' | b'\'' | b'\\'))
}

/// Whether a line could be one of a private key.
fn is_key_material(line: &[u8]) -> bool {
    let is_base64 = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
    let mut longest = 0;
    let mut run = 0;
    let mut plain = true;
    for byte in line {
        if is_base64(*byte) {
            run += 1;
            longest = longest.max(run);
        } else {
            run = 0;
            plain &= matches!(
                byte,
                b' ' | b'\t' | b'\r' | b'"' | b'\'' | b',' | b'\\' | b'|' | b'>' | b'-' | b'#'
            );
        }
    }
    let words = line
        .split(|b| b.is_ascii_whitespace())
        .filter(|word| !word.is_empty())
        .count();
    longest >= 32
        || (plain && words <= 2)
        || line.starts_with(b"Proc-Type:")
        || line.starts_with(b"DEK-Info:")
}

fn length(bytes: &[u8], belongs: impl Fn(u8) -> bool) -> usize {
    bytes
        .iter()
        .position(|b| !belongs(*b))
        .unwrap_or(bytes.len())
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn is_credential(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'~' | b'+' | b'/' | b'=')
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

fn is_end_of_value(byte: u8) -> bool {
    byte.is_ascii_whitespace()
        || byte == 0
        || is_quote(byte)
        || matches!(
            byte,
            b',' | b';'
                | b'&'
                | b'<'
                | b'>'
                | b'|'
                | b'('
                | b')'
                | b'{'
                | b'}'
                | b'['
                | b']'
                | b'\\'
        )
}

fn is_end_of_header(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r' | b'\\') || is_quote(byte)
}

fn is_end_of_url(byte: u8) -> bool {
    byte.is_ascii_whitespace()
        || byte == 0
        || is_quote(byte)
        || matches!(byte, b'<' | b'>' | b'\\' | b'|')
}
