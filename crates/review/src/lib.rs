//! What agents changed and the user has not decided on yet, as pure functions of texts. No IO, no Neovim.
//!
//! - [`text`] — a text as lines with their ends, byte for byte.
//! - [`edit`] — which lines of one text became which lines of another, found by diff.
//! - [`file`] — a file under review: its base, its current text, and the hunks between them.
//! - [`merge`] — two texts that grew from one, put together again; conflicts where both changed the same place.
//! - [`merging`] — unsaved text and an agent's put together: what becomes of a buffer.
//! - [`words`] — what changed within lines, for highlighting.
//!
//! Nothing here ever alters a byte of a line: texts are only cut between lines and put together again.

pub mod edit;
pub mod file;
pub mod merge;
pub mod merging;
pub mod text;
pub mod words;

pub use edit::{Edit, diff};
pub use file::{FileReview, Hunk, HunkId};
pub use merge::{Merge, Piece, three_way, two_way};
pub use text::Text;
