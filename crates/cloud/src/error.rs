//! What can go wrong, by kind, in words that say what to do.

use std::fmt;
use std::time::Duration;

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// There is no API key, or it cannot be had.
    NoKey,
    /// The configuration cannot work: the URL, a request.
    Config,
    /// 400 and 422: the request is wrong.
    Invalid,
    /// 401: the key is not accepted.
    Unauthorized,
    /// 402 and 403: the key may not do this, or the plan does not include it.
    Forbidden,
    /// 404.
    NotFound,
    /// 409 `agent_busy`: a run of the agent has not ended.
    Busy,
    /// Other 409s.
    Conflict,
    /// 410: a stream that can no longer be read.
    Gone,
    /// 429.
    RateLimited,
    /// 5xx, and what no server should answer.
    Server,
    /// The connection failed or was cut.
    Network,
    /// It took too long.
    Timeout,
    /// The answer is not what the API says.
    Malformed,
    /// The request was sent, its answer was lost, and what came of it could not be found out.
    Unconfirmed,
}

impl Kind {
    /// As in the texts of MCP and RPC errors.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoKey => "NO_API_KEY",
            Self::Config => "CONFIGURATION",
            Self::Invalid => "VALIDATION_ERROR",
            Self::Unauthorized => "UNAUTHORIZED",
            Self::Forbidden => "FORBIDDEN",
            Self::NotFound => "NOT_FOUND",
            Self::Busy => "AGENT_BUSY",
            Self::Conflict => "CONFLICT",
            Self::Gone => "GONE",
            Self::RateLimited => "RATE_LIMIT_EXCEEDED",
            Self::Server => "SERVER_ERROR",
            Self::Network => "NETWORK_ERROR",
            Self::Timeout => "TIMEOUT",
            Self::Malformed => "MALFORMED_RESPONSE",
            Self::Unconfirmed => "UNCONFIRMED",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::NoKey => {
                "Create a key at https://cursor.com/dashboard (API keys), then set CURSOR_API_KEY or the option `cloud.api_key`"
            }
            Self::Config => "",
            Self::Invalid => "Change the request and try again",
            Self::Unauthorized => {
                "The key may have expired or been revoked: create a new one at https://cursor.com/dashboard and set CURSOR_API_KEY or `cloud.api_key`"
            }
            Self::Forbidden => {
                "Check the key's permissions and your plan at https://cursor.com/dashboard"
            }
            Self::NotFound => "It may have been deleted: refresh the list",
            Self::Busy => "Wait for the run to end, or stop it",
            Self::Conflict => "Refresh and check its state",
            Self::Gone => "Its events are no longer available",
            Self::RateLimited => "Try again later",
            Self::Server => "Try again; https://status.cursor.com shows known problems",
            Self::Network => "Check the connection, the proxy, and CURSOR_API_URL",
            Self::Timeout => "Try again",
            Self::Malformed => {
                "A proxy or firewall may have answered instead: check the proxy and CURSOR_API_URL"
            }
            Self::Unconfirmed => "Refresh the list before you try again",
        }
    }
}

/// A failure of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    kind: Kind,
    message: String,
    status: Option<u16>,
    code: Option<String>,
    request_id: Option<String>,
    help_url: Option<String>,
    retry_after: Option<Duration>,
    /// It was refused before anything of it was sent.
    unsent: bool,
}

impl Error {
    /// A failure of this kind; the message is a sentence without its full stop.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            status: None,
            code: None,
            request_id: None,
            help_url: None,
            retry_after: None,
            unsent: false,
        }))
    }

    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.0.status = Some(status);
        self
    }

    pub(crate) fn with_code(mut self, code: Option<String>) -> Self {
        self.0.code = code;
        self
    }

    pub(crate) fn with_request_id(mut self, id: Option<String>) -> Self {
        self.0.request_id = id;
        self
    }

    pub(crate) fn with_help_url(mut self, url: Option<String>) -> Self {
        self.0.help_url = url;
        self
    }

    pub(crate) fn with_retry_after(mut self, after: Option<Duration>) -> Self {
        self.0.retry_after = after;
        self
    }

    pub(crate) fn unsent(mut self) -> Self {
        self.0.unsent = true;
        self
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// What happened, without what to do.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The HTTP status.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// The server's code, such as `agent_busy`.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// `x-request-id` of the answer.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// How long the server wants to be left alone.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Whether a later try of the same request could succeed.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(
            self.kind(),
            Kind::RateLimited | Kind::Server | Kind::Network | Kind::Timeout | Kind::Malformed
        )
    }

    /// Whether the server may have done what was asked, though the answer is missing.
    #[must_use]
    pub fn may_have_happened(&self) -> bool {
        !self.0.unsent
            && matches!(
                self.kind(),
                Kind::Server | Kind::Network | Kind::Timeout | Kind::Malformed
            )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        f.write_str(inner.message.trim_end_matches('.'))?;
        if let Some(after) = inner.retry_after {
            write!(f, ". Try again in {} s", after.as_secs().max(1))?;
        } else if !inner.kind.advice().is_empty() {
            write!(f, ". {}", inner.kind.advice())?;
        }
        if let Some(url) = &inner.help_url {
            write!(f, ". See {url}")?;
        }
        f.write_str(".")?;
        if let Some(id) = &inner.request_id {
            write!(f, " (request {id})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
