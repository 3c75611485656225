//! What can be made to go wrong, and when.

use serde::{Deserialize, Serialize};

use super::http::Request;

/// A fault that the next requests of a kind meet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Fault {
    /// Only this method.
    pub method: Option<String>,
    /// Only paths that end in this.
    pub path: Option<String>,
    /// How many matching requests pass first.
    pub after: u32,
    /// How many are hit by it; 0 for all.
    pub times: u32,
    /// What happens.
    pub what: What,
}

/// What happens to a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Nothing.
    #[default]
    Nothing,
    /// It is refused, and nothing is done.
    Refuse {
        /// The HTTP status.
        status: u16,
        /// The code in the body.
        #[serde(default)]
        code: String,
        /// `Retry-After`.
        #[serde(default)]
        retry_after: Option<String>,
    },
    /// It is done, and the connection ends without an answer.
    LoseAnswer,
    /// The connection ends before the request is read further than this, and nothing is done.
    CutRequest {
        /// Bytes of it that are read.
        bytes: usize,
    },
    /// It is done, and this many bytes of the answer are sent.
    CutAnswer {
        /// Bytes of it that are sent.
        bytes: usize,
    },
    /// The answer comes in small pieces with pauses.
    Slow {
        /// Bytes of a piece.
        piece: usize,
        /// Between two.
        pause_ms: u64,
    },
    /// It is done, and the answer's JSON is cut short, the HTTP around it being right.
    Malformed,
    /// It is done, and the answer is something else altogether.
    Html,
    /// There is no answer, and the connection stays.
    Hang,
}

impl Fault {
    /// The next one that ends in this path.
    #[must_use]
    pub fn once(path: &str, what: What) -> Self {
        Self {
            path: Some(path.to_owned()),
            times: 1,
            what,
            ..Self::default()
        }
    }

    /// Whether this request meets it; counts.
    pub(super) fn meets(&mut self, request: &Request) -> bool {
        let method = self
            .method
            .as_ref()
            .is_none_or(|method| method.eq_ignore_ascii_case(&request.method));
        let path = self
            .path
            .as_ref()
            .is_none_or(|path| request.raw_path.ends_with(path.as_str()));
        if !method || !path || self.what == What::Nothing {
            return false;
        }
        if self.after > 0 {
            self.after -= 1;
            return false;
        }
        match self.times {
            0 => {}
            1 => self.what = What::Nothing,
            _ => self.times -= 1,
        }
        true
    }
}
