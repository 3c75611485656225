//! Failures that an agent tells as text: Cursor ends such a turn as if all went well, its last message ends in the error.
//!
//! Only the end of the last message counts, and only a paragraph that is nothing but an error, as Cursor writes it. An
//! answer that speaks of errors, quotes one or shows one in a code block is an answer.

/// What kind of failure it is, which decides what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nobody is logged in.
    Login,
    /// The plan does not cover it.
    Plan,
    /// There is no way to pay.
    Payment,
    /// A setting of the account is in the way.
    Settings,
    /// Something else is to be done in the account first.
    Action,
    /// It may work the next time.
    Retry,
    /// It will not work the next time either.
    Final,
    /// It was stopped.
    Cancelled,
}

/// A failure as it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// What kind it is.
    pub kind: Kind,
    /// The agent's words.
    pub words: String,
}

/// Cursor's classes of error.
const ERRORS: [(&str, Kind); 4] = [
    ("RetriableError", Kind::Retry),
    ("NonRetriableError", Kind::Final),
    ("ActionRequiredError", Kind::Action),
    ("CancelledError", Kind::Cancelled),
];

/// What Cursor asks for, in its words.
const REQUESTS: [(&str, Kind); 4] = [
    ("Please sign in to continue", Kind::Login),
    ("Upgrade your plan to continue", Kind::Plan),
    ("Add a payment method to continue", Kind::Payment),
    ("Check your settings to continue", Kind::Settings),
];

const UNAUTHENTICATED: &str = "[unauthenticated]";

/// What follows an error's name in a sentence about it.
const VERBS: [&str; 26] = [
    "is",
    "are",
    "was",
    "were",
    "means",
    "mean",
    "says",
    "said",
    "indicates",
    "signals",
    "tells",
    "happens",
    "occurs",
    "comes",
    "stands",
    "can",
    "may",
    "will",
    "should",
    "and",
    "or",
    "which",
    "when",
    "if",
    "while",
    "because",
];

impl Told {
    /// The words, and below them what to do.
    pub fn message(&self) -> String {
        let step = match self.kind {
            Kind::Login => {
                ":CursorAgent login logs in\n  :CursorAgent retry sends the prompt again"
            }
            Kind::Plan => {
                "Upgrade your plan at https://cursor.com/dashboard, or choose another model\n  :CursorAgent retry sends the prompt again"
            }
            Kind::Payment => {
                "Add a payment method at https://cursor.com/dashboard\n  :CursorAgent retry sends the prompt again"
            }
            Kind::Settings => {
                "Check your settings at https://cursor.com/dashboard\n  :CursorAgent retry sends the prompt again"
            }
            Kind::Action => {
                "Your account needs attention: see https://cursor.com/dashboard\n  :CursorAgent retry sends the prompt again"
            }
            Kind::Final => {
                "Trying again will not help: change the prompt or the model\n  :CursorAgent log shows what was sent"
            }
            Kind::Retry | Kind::Cancelled => {
                "Try again in a moment\n  :CursorAgent retry sends the prompt again"
            }
        };
        format!("{}\n  {step}", self.words)
    }
}

/// What stands before the word for a missing login where it is an error.
const FAILED: [&str; 3] = ["error", "failed", "failure"];

/// The failure a turn's last message ends in. What the prompt says itself may be quoted.
pub fn find(message: &str, prompt: &str) -> Option<Told> {
    let mut paragraphs = paragraphs(message);
    // The number of the request is for Cursor's support.
    while paragraphs
        .last()
        .is_some_and(|last| last.to_lowercase().starts_with("request id"))
    {
        paragraphs.pop();
    }
    let last = *paragraphs.last()?;
    let mut kind = kind_of(last)?;
    let mut words = plain(last).to_owned();
    // What to do may stand below the error, in a paragraph of its own.
    let before = paragraphs
        .len()
        .checked_sub(2)
        .and_then(|at| paragraphs.get(at));
    if let Some(above) = before.filter(|above| error_kind(above).is_some()) {
        words = format!("{}\n{words}", plain(above));
    }
    // Only where it is introduced or all is repeated: who sends a failure in again may meet the same one.
    let (error, prompt) = (last.trim(), prompt.trim());
    let is_introduced = before.is_some_and(|above| above.trim_end().ends_with(':'));
    let is_repeated = prompt != error && message.trim_end().ends_with(prompt);
    if prompt.contains(error) && (is_introduced || is_repeated) {
        return None;
    }
    // What it asks for says more than the class of the error.
    if let Some((_, asked)) = REQUESTS
        .iter()
        .find(|(words_of, _)| words.contains(words_of))
    {
        kind = *asked;
    } else if words.contains(UNAUTHENTICATED) {
        kind = Kind::Login;
    }
    Some(Told { kind, words })
}

/// The paragraphs of a text; lines of one that are indented like code stay so.
fn paragraphs(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start: Option<usize> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim().is_empty() {
            if let Some(from) = start.take() {
                found.push(text[from..at].trim_end());
            }
        } else if start.is_none() {
            start = Some(at);
        }
        at += line.len();
    }
    if let Some(from) = start {
        found.push(text[from..].trim_end());
    }
    found
}

/// A paragraph without the word "Error: " and the number of the request.
fn plain(paragraph: &str) -> &str {
    let paragraph = paragraph.trim();
    let end = paragraph.to_ascii_lowercase().find("\nrequest id");
    let paragraph = end.map_or(paragraph, |end| &paragraph[..end]).trim_end();
    paragraph.strip_prefix("Error: ").unwrap_or(paragraph)
}

/// What a paragraph tells of, if it is nothing but an error.
fn kind_of(paragraph: &str) -> Option<Kind> {
    // Indented like code, or the end of a code block.
    let is_code = paragraph.starts_with("    ")
        || paragraph.starts_with('\t')
        || paragraph.lines().any(|line| {
            let line = line.trim_start();
            line.starts_with("```") || line.starts_with("~~~")
        });
    if is_code {
        return None;
    }
    error_kind(paragraph)
        .or_else(|| unauthenticated(paragraph))
        .or_else(|| request_kind(paragraph))
}

/// `Error: RetriableError…` at the very start.
fn error_kind(paragraph: &str) -> Option<Kind> {
    let rest = paragraph.trim_start_matches(' ').strip_prefix("Error: ")?;
    let (rest, kind) = ERRORS
        .iter()
        .find_map(|(name, kind)| Some((rest.strip_prefix(name)?, *kind)))?;
    stands_alone(rest).then_some(kind)
}

/// `[unauthenticated]` at the start, perhaps below the names of errors: `Error: ConnectError: [unauthenticated] …`.
fn unauthenticated(paragraph: &str) -> Option<Kind> {
    let mut rest = paragraph.trim_start_matches(' ');
    while let Some((_, after)) = rest
        .split_once(": ")
        .filter(|(name, _)| is_error_name(name))
    {
        rest = after;
    }
    if paragraph.starts_with("Error: ") {
        let at = rest.find(UNAUTHENTICATED)?;
        let is_quoted = rest[..at].ends_with(['`', '"', '\'', '“', '‘']);
        let rest = &rest[at + UNAUTHENTICATED.len()..];
        return (!is_quoted && stands_alone(rest)).then_some(Kind::Login);
    }
    let (before, rest) = rest.split_once(UNAUTHENTICATED)?;
    (is_failed(before) && stands_alone(rest)).then_some(Kind::Login)
}

/// Nothing, or a few words that say no more than that something failed: `Authentication error `.
fn is_failed(before: &str) -> bool {
    let words: Vec<&str> = before.split_whitespace().collect();
    words.last().is_none_or(|last| {
        let last = last.trim_end_matches(':').to_lowercase();
        words.len() <= 3 && before.ends_with(' ') && FAILED.contains(&last.as_str())
    })
}

/// One of Cursor's requests as the last sentence.
fn request_kind(paragraph: &str) -> Option<Kind> {
    let text = plain(paragraph);
    let (at, request, kind) = REQUESTS
        .iter()
        .find_map(|(request, kind)| Some((text.rfind(request)?, *request, *kind)))?;
    let (before, after) = (&text[..at], &text[at + request.len()..]);
    let below_error = paragraph.starts_with("Error: ") && before.ends_with(": ");
    ((below_error || begins_sentence(before)) && ends_text(after)).then_some(kind)
}

/// Whether a name is one of an error's: `Error`, `ConnectError`, or what a minifier left of it.
fn is_error_name(name: &str) -> bool {
    let is_word = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || "_$".contains(c));
    is_word && (name.ends_with("Error") || name.len() <= 2)
}

/// Whether a name goes on as an error does, not as a sentence about it.
fn stands_alone(rest: &str) -> bool {
    match rest.chars().next() {
        None => true,
        Some(c) if c.is_alphanumeric() || "_`'\"”’".contains(c) => false,
        Some(' ') => {
            let word = rest.split_whitespace().next().unwrap_or_default();
            let word = word.trim_end_matches([',', '.', ';', ':']);
            !VERBS.contains(&word)
        }
        Some(c) => !",;()".contains(c),
    }
}

/// Whether a sentence begins after this text.
fn begins_sentence(before: &str) -> bool {
    if before.ends_with('\n') {
        return true;
    }
    let bare = before.trim_end_matches(['*', '_', '[']);
    let bare = bare.trim_end_matches(' ');
    if bare.is_empty() || bare.ends_with('\n') {
        return true;
    }
    if bare.len() == before.len() {
        // Right after a character that is neither a space nor emphasis.
        return false;
    }
    if let Some(names) = bare.strip_suffix(':') {
        return names.split(": ").all(is_error_name);
    }
    bare.ends_with(['.', '!', '?', ']', '—', '–', '·']) || bare.ends_with(" -")
}

/// Whether nothing follows but an address.
fn ends_text(after: &str) -> bool {
    let rest = after.trim_start_matches(['*', '_', '.', '!', ':', ']', '(', ')', '<', ' ', '\n']);
    let rest = rest.strip_prefix("at ").unwrap_or(rest);
    let first = after.trim_start_matches(['*', '_', ']']).chars().next();
    if first.is_some_and(|c| !".!:( \n<".contains(c)) {
        return false;
    }
    rest.is_empty()
        || (rest.starts_with("https://") || rest.starts_with("http://"))
            && rest.split_whitespace().count() == 1
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn cursors_failures_are_known() {
        for (message, kind, words) in [
            ("Error: RetriableError", Kind::Retry, "RetriableError"),
            ("\n\nError: RetriableError…", Kind::Retry, "RetriableError…"),
            (
                "I will look.\n\nError: RetriableError: [unavailable] Error",
                Kind::Retry,
                "RetriableError: [unavailable] Error",
            ),
            (
                "I will look:\n\nError: RetriableError: [unavailable] Error\n\n",
                Kind::Retry,
                "RetriableError: [unavailable] Error",
            ),
            (
                "a\r\n\r\nError: RetriableError: lost\r\n",
                Kind::Retry,
                "RetriableError: lost",
            ),
            (
                "a\n\nError: RetriableError [unavailable]",
                Kind::Retry,
                "RetriableError [unavailable]",
            ),
            (
                "a\n\nError: RetriableError connection lost",
                Kind::Retry,
                "RetriableError connection lost",
            ),
            (
                "a\n\nError: NonRetriableError: bad model",
                Kind::Final,
                "NonRetriableError: bad model",
            ),
            (
                "a\n\nError: ActionRequiredError: see the web",
                Kind::Action,
                "ActionRequiredError: see the web",
            ),
            (
                "a\n\nError: CancelledError",
                Kind::Cancelled,
                "CancelledError",
            ),
            (
                "a\n\nError: ActionRequiredError: [unauthenticated] Error",
                Kind::Login,
                "ActionRequiredError: [unauthenticated] Error",
            ),
            // The stream broke off in a code block.
            (
                "```rust\nfn main() {\n\nError: RetriableError: x",
                Kind::Retry,
                "RetriableError: x",
            ),
            ("[unauthenticated]", Kind::Login, "[unauthenticated]"),
            (
                "a\n\n[unauthenticated] Error",
                Kind::Login,
                "[unauthenticated] Error",
            ),
            (
                "a\n\nError: [unauthenticated] no token",
                Kind::Login,
                "[unauthenticated] no token",
            ),
            (
                "a\n\nError: S: [unauthenticated] Error",
                Kind::Login,
                "S: [unauthenticated] Error",
            ),
            (
                "Error: Request failed: [unauthenticated]",
                Kind::Login,
                "Request failed: [unauthenticated]",
            ),
            (
                "Error: Limit reached: Upgrade your plan to continue",
                Kind::Plan,
                "Limit reached: Upgrade your plan to continue",
            ),
            (
                "Authentication error [unauthenticated]",
                Kind::Login,
                "Authentication error [unauthenticated]",
            ),
            (
                "a\n\nRequest failed: [unauthenticated] Error",
                Kind::Login,
                "Request failed: [unauthenticated] Error",
            ),
            (
                "You've hit your limit — Upgrade your plan to continue",
                Kind::Plan,
                "You've hit your limit — Upgrade your plan to continue",
            ),
            (
                "You've hit your limit - Upgrade your plan to continue",
                Kind::Plan,
                "You've hit your limit - Upgrade your plan to continue",
            ),
            (
                "ConnectError: [unauthenticated]",
                Kind::Login,
                "ConnectError: [unauthenticated]",
            ),
            (
                "Please sign in to continue",
                Kind::Login,
                "Please sign in to continue",
            ),
            (
                "a\n\nPlease sign in to continue.",
                Kind::Login,
                "Please sign in to continue.",
            ),
            (
                "Error: [unauthenticated] Please sign in to continue",
                Kind::Login,
                "[unauthenticated] Please sign in to continue",
            ),
            (
                "Your usage limit is reached. Upgrade your plan to continue.",
                Kind::Plan,
                "Your usage limit is reached. Upgrade your plan to continue.",
            ),
            (
                "a\n\n**Upgrade your plan to continue**",
                Kind::Plan,
                "**Upgrade your plan to continue**",
            ),
            (
                "a\n\n[Upgrade your plan to continue](https://cursor.com/dashboard)",
                Kind::Plan,
                "[Upgrade your plan to continue](https://cursor.com/dashboard)",
            ),
            (
                "Upgrade your plan to continue: https://cursor.com/dashboard",
                Kind::Plan,
                "Upgrade your plan to continue: https://cursor.com/dashboard",
            ),
            (
                "Error: ActionRequiredError: limit\n\nUpgrade your plan to continue",
                Kind::Plan,
                "ActionRequiredError: limit\nUpgrade your plan to continue",
            ),
            (
                "a\n\nError: ActionRequiredError: Add a payment method to continue",
                Kind::Payment,
                "ActionRequiredError: Add a payment method to continue",
            ),
            (
                "Add a payment method to continue",
                Kind::Payment,
                "Add a payment method to continue",
            ),
            (
                "Check your settings to continue",
                Kind::Settings,
                "Check your settings to continue",
            ),
            (
                "a\n\nError: RetriableError: x\nRequest ID: 12-34",
                Kind::Retry,
                "RetriableError: x",
            ),
            (
                "a\n\nError: RetriableError: x\n\nRequest ID: 12-34",
                Kind::Retry,
                "RetriableError: x",
            ),
            (
                "Please sign in to continue.\nRequest ID: 12-34",
                Kind::Login,
                "Please sign in to continue.",
            ),
        ] {
            let told = find(message, "hello").unwrap_or_else(|| panic!("{message:?}"));
            assert_eq!(
                (told.kind, told.words.as_str()),
                (kind, words),
                "{message:?}"
            );
        }
    }

    #[test]
    fn an_answer_that_speaks_of_errors_is_an_answer() {
        for message in [
            "",
            "\n\n",
            "All done.",
            "Error: something else",
            "a\n\nError: TypeError: x is undefined",
            "a\n\nError: RetriableErrors are retried",
            "a\n\nError: RetriableError means that the request can be sent again.",
            "a\n\nError: RetriableError, which is thrown by the client",
            "A RetriableError is thrown when the connection is lost.",
            "The log says Error: RetriableError: [unavailable]",
            "The log says:\nError: RetriableError: [unavailable]",
            "a\n\n`Error: RetriableError: x`",
            "a\n\n```\nError: RetriableError: x\n```",
            "a\n\n```\nlog:\n\nError: RetriableError: x\n```\n",
            "a\n\n~~~\nError: RetriableError: x\n~~~",
            "a\n\n    Error: RetriableError: x",
            "a\n\n\tError: RetriableError: x",
            "a\n\n> Error: RetriableError: x",
            "a\n\n- Error: RetriableError: x",
            "a\n\n1. Error: RetriableError: x",
            "a\n\n\"Error: RetriableError: x\"",
            "Error: RetriableError: x\n\nI tried again and it worked.",
            "Error: the server said `[unauthenticated]`",
            "a\n\nerror: RetriableError: x",
            "The code `[unauthenticated]` means that the token is gone.",
            "[unauthenticated] means that the token is gone.",
            "Your test prints:\n\n[unauthenticated] when the token is missing",
            "I handle the error [unauthenticated] now",
            "I fixed what failed [unauthenticated]",
            "The error`[unauthenticated]`",
            "Note: [unauthenticated] comes from the server",
            "The server answers [unauthenticated]",
            "[unauthenticated](https://example.com/codes) has more.",
            "I changed the label to Please sign in to continue",
            "I changed the label to \"Please sign in to continue\"",
            "I changed the label to 'Please sign in to continue'.",
            "The dialog reads: Please sign in to continue",
            "`Please sign in to continue`",
            "> Please sign in to continue",
            "- Please sign in to continue",
            "Please sign in to continue with the tutorial.",
            "Please sign in to continue, then run the tests.",
            "Please sign in to continue\n\nThat is what the page says now.",
            "please sign in to continue",
            "Upgrade your plan to continuea",
            "Check your settings to continue. Then run `make`.",
            "| a | Upgrade your plan to continue |",
        ] {
            assert_eq!(find(message, "hello"), None, "{message:?}");
        }
    }

    #[test]
    fn what_the_prompt_says_may_be_quoted() {
        let error = "Error: RetriableError: x";
        let prompt = format!("What is this?\n\n{error}");
        assert_eq!(find(&format!("You asked:\n\n{error}"), &prompt), None);
        assert_eq!(find(&format!("You said: {prompt}"), &prompt), None);
        // The same failure once more.
        assert!(find(error, error).is_some());
        for again in ["", "I will look.\n\n"] {
            assert!(find(&format!("{again}{error}"), &prompt).is_some());
        }
        assert!(find(&format!("a\n\n{error} y"), &prompt).is_some());
    }

    #[test]
    fn each_kind_says_what_to_do() {
        for (message, step) in [
            ("Please sign in to continue", ":CursorAgent login"),
            (
                "Upgrade your plan to continue",
                "Upgrade your plan at https://",
            ),
            (
                "Add a payment method to continue",
                "Add a payment method at https://",
            ),
            (
                "Check your settings to continue",
                "Check your settings at https://",
            ),
            (
                "Error: RetriableError",
                "Try again in a moment\n  :CursorAgent retry",
            ),
            ("Error: NonRetriableError", "will not help"),
            ("Error: ActionRequiredError", "Your account needs attention"),
            ("Error: CancelledError", ":CursorAgent retry"),
        ] {
            let said = find(message, "").unwrap().message();
            assert!(said.contains(step), "{said}");
        }
    }
}
