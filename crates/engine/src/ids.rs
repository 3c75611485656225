//! Ids as newtypes, so that one kind is never mistaken for another.

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        pub struct $name(pub u64);

        impl $name {
            /// The next one.
            pub fn advance(&mut self) -> Self {
                self.0 += 1;
                *self
            }
        }
    };
}

id!(
    /// A session, from the moment it is requested; the agent's own id comes later.
    Key
);
id!(
    /// One agent in one working directory.
    AgentId
);
id!(
    /// A decision for the user.
    DecisionId
);
id!(
    /// A prompt the user sent or queued.
    PromptId
);
id!(
    /// A request to the editor, answered by `reply`.
    EditorId
);
id!(
    /// A file or a command an agent wants to access through the editor.
    AccessId
);
id!(
    /// A call of the user's whose answer comes as a `result`.
    ResultId
);

/// One process of an agent: a restart makes another, and messages of the old one no longer count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Proc {
    /// Whose process.
    pub agent: AgentId,
    /// Number of processes before it.
    pub generation: u32,
}
