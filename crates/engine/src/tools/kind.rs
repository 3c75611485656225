//! What a tool call does and how far it is, and a subagent behind it: the words of the protocol, ours beside them, and what else an agent may say.

acp::string_enum!(
    /// What a tool call does.
    #[derive(Default)]
    ToolKind {
        /// Reads files or data.
        Read = "read",
        /// Changes files.
        Edit = "edit",
        /// Removes files.
        Delete = "delete",
        /// Moves or renames files.
        Move = "move",
        /// Searches.
        Search = "search",
        /// Runs a command.
        Execute = "execute",
        /// Thinks, or has a subagent do so.
        Think = "think",
        /// Gets something from the network.
        Fetch = "fetch",
        /// Changes the session's mode.
        SwitchMode = "switch_mode",
        /// Proposes a plan: Cursor's.
        Plan = "plan",
        /// None of these, or it is not said.
        #[default]
        Unspecified = "other",
    }
);

acp::string_enum!(
    /// How far a tool call is.
    #[derive(Default)]
    ToolStatus {
        /// Not begun: it is still being written, or needs approval.
        #[default]
        Pending = "pending",
        /// It runs.
        InProgress = "in_progress",
        /// It is done.
        Completed = "completed",
        /// It went wrong.
        Failed = "failed",
        /// Ours: it was stopped with its turn.
        Cancelled = "cancelled",
        /// Ours: it was not allowed to run. Only shown: the agent calls such a call completed.
        Rejected = "rejected",
    }
);

acp::string_enum!(
    /// What a subagent does.
    TaskState {
        /// It works.
        Running = "running",
        /// It needs the user.
        RequiresAction = "requires_action",
        /// It is done, and may be given more to do.
        Idle = "idle",
        /// The agent does not know.
        Unknown = "unknown",
        /// Ours: it is gone with its agent.
        Ended = "ended",
    }
);

impl TaskState {
    /// Whether it is over, for all that was said.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Idle | Self::Ended)
    }
}

impl ToolKind {
    /// Whether the files it names are changed by it.
    pub fn changes_files(&self) -> bool {
        matches!(self, Self::Edit | Self::Delete | Self::Move)
    }
}

impl From<&acp::types::ToolKind> for ToolKind {
    fn from(kind: &acp::types::ToolKind) -> Self {
        Self::from(kind.as_str())
    }
}

impl From<&acp::types::ToolStatus> for ToolStatus {
    fn from(status: &acp::types::ToolStatus) -> Self {
        Self::from(status.as_str())
    }
}
