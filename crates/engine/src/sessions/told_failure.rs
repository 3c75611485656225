//! Failures that an agent tells as text: Cursor ends such a turn as if all went well, its last message ends in the error.
//!
//! Only the end of the last message counts, and only a paragraph that is nothing but an error, as Cursor writes it. An
//! answer that speaks of errors, quotes one or shows one in a code block is an answer.

/// What kind of failure it is, which decides what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The user is not logged in.
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
const PROSE: &str = "is are was were be means mean says said indicates signals tells happens happened occurs \
    occurred appears appeared comes came stands shows gets got does do did has have had can \
    could may might must will would should and or but which that when if while because as in \
    on at by for from to with here there thrown raised returned exceptions errors class type \
    - – — = -> →";

/// The last word before the colon that introduces a quote.
const INTRODUCES: &str = "says said shows showed reads prints printed reports reported logs logged returns \
    returned answers answered contains has with is was this following error errors message \
    text output like lines line asked wrote";

/// How a failure begins that ends in one of Cursor's requests.
const SUBJECTS: &str = "you you've you’ve you're you’re your usage limit limits quota rate free monthly daily \
    spend plan subscription trial payment billing account authentication authorization \
    unauthenticated unauthorized session login sign-in token access model models max request \
    failed not no this";

/// And what went wrong, in a word.
const TROUBLE: &str = "limit limits reached hit exceeded expired required failed failure error denied disabled \
    unavailable not no isn't isn’t aren't aren’t unpaid declined out used ended blocked \
    restricted invalid overdue unauthenticated unauthorized [unauthenticated]";

/// A longer introduction to a request is an answer.
const MAX_TROUBLE_CHARS: usize = 160;

/// What a phrase about an error begins with.
const ARTICLES: &str =
    "the this that these an a your my its our no each any handle fix fixed got get i";

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

/// The failure a turn's last message ends in. What the prompt says itself may be quoted. The classes of error are
/// Cursor's in any agent; requests are ordinary words that count only where `of_cursor` says whose they are.
pub fn find(message: &str, prompt: &str, of_cursor: bool) -> Option<Told> {
    let mut paragraphs = paragraphs(message);
    // The number of the request is for Cursor's support.
    while paragraphs.last().is_some_and(|last| is_request_id(last)) {
        paragraphs.pop();
    }
    let last = *paragraphs.last()?;
    let mut kind = kind_of(last, of_cursor)?;
    let mut words = plain(last).to_owned();
    // What to do may stand below the error, in a paragraph of its own.
    let before = paragraphs
        .len()
        .checked_sub(2)
        .and_then(|at| paragraphs.get(at).copied());
    if let Some(above) = before.filter(|above| error_kind(above).is_some()) {
        words = format!("{}\n{words}", plain(above));
    }
    if before.is_some_and(introduces) {
        return None;
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

fn has_word(list: &str, word: &str) -> bool {
    list.split(' ').any(|known| known == word)
}

/// Whether what follows is a quote: "The log says:". An agent that was about to do something ends in a colon too.
fn introduces(paragraph: &str) -> bool {
    let bare = paragraph.trim_end_matches([' ', '*', '_', '\n', '\r']);
    let Some(bare) = bare.strip_suffix(':') else {
        return false;
    };
    let last = bare.split_whitespace().next_back().unwrap_or_default();
    let last = last.trim_matches(['*', '_', '`']).to_lowercase();
    has_word(INTRODUCES, &last)
}

fn is_request_id(text: &str) -> bool {
    let text = text.trim_start_matches(['(', '[', '*', '_', ' ']);
    text.get(..10)
        .is_some_and(|start| start.eq_ignore_ascii_case("request id"))
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
    let lower = paragraph.to_ascii_lowercase();
    let id = lower
        .match_indices("request id")
        .map(|(at, _)| at)
        .find(|at| {
            let before = lower[..*at].trim_end_matches(['(', '[', '*', '_']);
            let is_last = lower[*at..].split_whitespace().count() <= 3;
            is_last && before.ends_with([' ', '\n'])
        });
    let paragraph = id.map_or(paragraph, |at| {
        let before = paragraph[..at].trim_end_matches(['(', '[', '*', '_']);
        before.trim_end()
    });
    paragraph.strip_prefix("Error: ").unwrap_or(paragraph)
}

/// What a paragraph tells of, if it is nothing but an error.
fn kind_of(paragraph: &str, of_cursor: bool) -> Option<Kind> {
    // Indented like code or as a part of a list, or the end of a code block.
    let is_inner = paragraph.starts_with([' ', '\t'])
        || paragraph.lines().any(|line| {
            let line = line.trim_start();
            line.starts_with("```") || line.starts_with("~~~")
        });
    if is_inner {
        return None;
    }
    error_kind(paragraph).or_else(|| {
        let asked = || unauthenticated(paragraph).or_else(|| request_kind(paragraph));
        of_cursor.then(asked).flatten()
    })
}

/// `Error: RetriableError…` at the very start.
fn error_kind(paragraph: &str) -> Option<Kind> {
    let rest = paragraph.strip_prefix("Error: ")?;
    let (rest, kind) = ERRORS
        .iter()
        .find_map(|(name, kind)| Some((rest.strip_prefix(name)?, *kind)))?;
    stands_alone(rest).then_some(kind)
}

/// `[unauthenticated]` at the start, perhaps below the names of errors: `Error: ConnectError: [unauthenticated] …`.
fn unauthenticated(paragraph: &str) -> Option<Kind> {
    let mut rest = paragraph;
    while let Some((_, after)) = rest
        .split_once(": ")
        .filter(|(name, _)| is_error_name(name))
    {
        rest = after;
    }
    let at = rest.find(UNAUTHENTICATED)?;
    let (before, after) = (&rest[..at], &rest[at + UNAUTHENTICATED.len()..]);
    let is_told = if paragraph.starts_with("Error: ") {
        !before.ends_with(['`', '"', '\'', '“', '‘'])
    } else {
        is_failed(before)
    };
    // Below a name a colon goes on with the message; after the code it begins an explanation.
    let goes_on = stands_alone(after) && !after.starts_with([':', '=', '-', '–', '—']);
    (is_told && goes_on).then_some(Kind::Login)
}

/// Nothing, or a few words that say no more than that something failed: `Authentication error `.
fn is_failed(before: &str) -> bool {
    let words: Vec<&str> = before.split_whitespace().collect();
    let (Some(first), Some(last)) = (words.first(), words.last()) else {
        return true;
    };
    let last = last.trim_end_matches(':').to_lowercase();
    words.len() <= 3
        && before.ends_with(' ')
        && FAILED.contains(&last.as_str())
        && !has_word(ARTICLES, &first.to_lowercase())
}

/// One of Cursor's requests, alone or as the last sentence of a failure.
fn request_kind(paragraph: &str) -> Option<Kind> {
    let text = plain(paragraph);
    let (at, request, kind) = REQUESTS
        .iter()
        .find_map(|(request, kind)| Some((text.rfind(request)?, *request, *kind)))?;
    let (before, after) = (&text[..at], &text[at + request.len()..]);
    let is_error = paragraph.starts_with("Error: ");
    let begins = begins_sentence(before) || is_error && before.ends_with(": ");
    (begins && (is_error || is_trouble(before)) && ends_text(after)).then_some(kind)
}

/// Nothing, names of errors, or a sentence that says what is wrong with the account.
fn is_trouble(before: &str) -> bool {
    let bare = before.trim_matches(['*', '_', '[', ' ', '\n', '\r']);
    let names = bare.strip_suffix(':').unwrap_or(bare);
    if bare.is_empty() || names.split(": ").all(is_error_name) {
        return true;
    }
    let word = |word: &str| {
        let word = word.trim_matches(['*', '_', '.', ',', ';', ':', '!', '—', '–']);
        word.to_lowercase()
    };
    let words: Vec<String> = bare.split_whitespace().map(word).collect();
    let begins = words.first().is_some_and(|first| has_word(SUBJECTS, first));
    begins
        && bare.chars().count() <= MAX_TROUBLE_CHARS
        && words.iter().any(|word| has_word(TROUBLE, word))
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
        Some(' ') if rest.trim_start().starts_with('(') => rest.trim_end().ends_with(')'),
        Some(' ') => {
            let word = rest.split_whitespace().next().unwrap_or_default();
            let word = word.trim_end_matches([',', '.', ';', ':']);
            !has_word(PROSE, word)
        }
        Some('(') => rest.trim_end().ends_with(')'),
        Some(c) => !",;)".contains(c),
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
    let rest = after.trim_start_matches([
        '*', '_', '.', '…', '!', ':', ']', '(', ')', '<', ' ', '\n', '\r',
    ]);
    let rest = rest.strip_prefix("at ").unwrap_or(rest);
    let first = after.trim_start_matches(['*', '_', ']']).chars().next();
    if first.is_some_and(|c| !".…!:( \r\n<".contains(c)) {
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
            (
                "Upgrade your plan to continue. Request ID: 12-34",
                Kind::Plan,
                "Upgrade your plan to continue.",
            ),
            (
                "a\n\nUpgrade your plan to continue (request id: 12-34)",
                Kind::Plan,
                "Upgrade your plan to continue",
            ),
            (
                "a\n\nError: NonRetriableError: bad (Request ID 12-34)",
                Kind::Final,
                "NonRetriableError: bad",
            ),
            (
                "Check your settings to continue…  \n\n\n",
                Kind::Settings,
                "Check your settings to continue…",
            ),
            (
                "a\n\nAdd a payment method to continue!\r\n",
                Kind::Payment,
                "Add a payment method to continue!",
            ),
            (
                "a\n\nError: CancelledError.",
                Kind::Cancelled,
                "CancelledError.",
            ),
            (
                "a\n\nError: RetriableError (upstream closed the stream)",
                Kind::Retry,
                "RetriableError (upstream closed the stream)",
            ),
            (
                "a\n\nError: NonRetriableError: bad\n    at run (index.js:1:2)\n    at main",
                Kind::Final,
                "NonRetriableError: bad\n    at run (index.js:1:2)\n    at main",
            ),
            // It was about to do something.
            (
                "Let me check the log:\n\nError: RetriableError: x",
                Kind::Retry,
                "RetriableError: x",
            ),
            (
                "You've hit your usage limit.\nUpgrade your plan to continue",
                Kind::Plan,
                "You've hit your usage limit.\nUpgrade your plan to continue",
            ),
            (
                "Authentication required. Please sign in to continue.",
                Kind::Login,
                "Authentication required. Please sign in to continue.",
            ),
            (
                "Your card was declined. Add a payment method to continue",
                Kind::Payment,
                "Your card was declined. Add a payment method to continue",
            ),
            (
                "This model is disabled. Check your settings to continue",
                Kind::Settings,
                "This model is disabled. Check your settings to continue",
            ),
        ] {
            let told = find(message, "hello", true).unwrap_or_else(|| panic!("{message:?}"));
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
            "Server is up. Please sign in to continue.",
            "Server is up.\nPlease sign in to continue.",
            "The server is up at http://localhost:3000. Please sign in to continue",
            "a\n\nI've added the banner. Upgrade your plan to continue.",
            "You can open it now. Please sign in to continue.",
            "Done! Check your settings to continue.",
            "The page says:\n\nPlease sign in to continue.",
            "It fails with this error:\n\nError: RetriableError: [unavailable] Error",
            "The log shows:\n\nError: NonRetriableError: bad model\n",
            "**Output:**\n\n[unauthenticated] Error",
            "- The log:\n\n  Error: RetriableError: x",
            "1. It stops here\n\n   Please sign in to continue",
            "# Please sign in to continue",
            "Error: RetriableError - thrown when the connection is lost",
            "a\n\nError: RetriableError gets thrown by the client",
            "a\n\nError: RetriableError (see the docs) can be sent again",
            "[unauthenticated]: you are not signed in",
            "[unauthenticated] – the token is gone",
            "This error [unauthenticated] appears when the token is gone",
            "The error [unauthenticated]",
            "The CancelledError at the end is harmless.",
            "Request ID: 12-34",
        ] {
            assert_eq!(find(message, "hello", true), None, "{message:?}");
        }
    }

    #[test]
    fn what_the_prompt_says_may_be_quoted() {
        let error = "Error: RetriableError: x";
        let prompt = format!("What is this?\n\n{error}");
        assert_eq!(find(&format!("You asked:\n\n{error}"), &prompt, true), None);
        assert_eq!(find(&format!("You said: {prompt}"), &prompt, true), None);
        // The same failure again.
        assert!(find(error, error, true).is_some());
        for again in ["", "I will look.\n\n"] {
            assert!(find(&format!("{again}{error}"), &prompt, true).is_some());
        }
        assert!(find(&format!("a\n\n{error} y"), &prompt, true).is_some());
    }

    #[test]
    fn requests_of_other_agents_are_their_words() {
        for words in ["Please sign in to continue", "a\n\n[unauthenticated] Error"] {
            assert_eq!(find(words, "", false), None);
        }
        assert!(find("a\n\nError: RetriableError: x", "", false).is_some());
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
            let said = find(message, "", true).unwrap().message();
            assert!(said.contains(step), "{said}");
        }
    }
}
