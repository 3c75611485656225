//! The name of every method, by who calls it.

/// Either side: stop working on a request. A notification.
pub const CANCEL_REQUEST: &str = "$/cancel_request";

// Client to agent.

/// Versions and capabilities.
pub const INITIALIZE: &str = "initialize";
/// Login by one of the agent's methods.
pub const AUTHENTICATE: &str = "authenticate";
/// The end of the login.
pub const LOGOUT: &str = "logout";
/// A new session.
pub const SESSION_NEW: &str = "session/new";
/// A past session, replayed.
pub const SESSION_LOAD: &str = "session/load";
/// A past session, without replay.
pub const SESSION_RESUME: &str = "session/resume";
/// Past sessions.
pub const SESSION_LIST: &str = "session/list";
/// A past session goes away.
pub const SESSION_DELETE: &str = "session/delete";
/// A live session ends.
pub const SESSION_CLOSE: &str = "session/close";
/// Another mode.
pub const SESSION_SET_MODE: &str = "session/set_mode";
/// Another model. No longer in the schema, still spoken.
pub const SESSION_SET_MODEL: &str = "session/set_model";
/// Another value of a config option.
pub const SESSION_SET_CONFIG_OPTION: &str = "session/set_config_option";
/// A prompt; answered when its turn ends.
pub const SESSION_PROMPT: &str = "session/prompt";
/// Stop the turn. A notification.
pub const SESSION_CANCEL: &str = "session/cancel";
/// A copy of a session. Unstable.
pub const SESSION_FORK: &str = "session/fork";
/// Cursor: models with their options. Undocumented.
pub const CURSOR_LIST_AVAILABLE_MODELS: &str = "cursor/list_available_models";

// Agent to client.

/// News of a session. A notification.
pub const SESSION_UPDATE: &str = "session/update";
/// May a tool call go on?
pub const SESSION_REQUEST_PERMISSION: &str = "session/request_permission";
/// A file's text.
pub const FS_READ_TEXT_FILE: &str = "fs/read_text_file";
/// A file's new text.
pub const FS_WRITE_TEXT_FILE: &str = "fs/write_text_file";
/// A command is started.
pub const TERMINAL_CREATE: &str = "terminal/create";
/// What it printed.
pub const TERMINAL_OUTPUT: &str = "terminal/output";
/// Answered when it ends.
pub const TERMINAL_WAIT_FOR_EXIT: &str = "terminal/wait_for_exit";
/// It is killed; its output stays.
pub const TERMINAL_KILL: &str = "terminal/kill";
/// It is killed and forgotten.
pub const TERMINAL_RELEASE: &str = "terminal/release";
/// The user is asked to fill in a form, or to visit a page.
pub const ELICITATION_CREATE: &str = "elicitation/create";
/// What the page was for is done. A notification.
pub const ELICITATION_COMPLETE: &str = "elicitation/complete";
/// Whether the user is logged in. Unstable; a notification.
pub const AUTH_STATUS_UPDATE: &str = "auth/status_update";
/// The same, as agents send it that knew it before the schema did.
pub const AUTH_STATUS_UPDATE_EXTENSION: &str = "_auth/status_update";
/// Cursor: multiple-choice questions.
pub const CURSOR_ASK_QUESTION: &str = "cursor/ask_question";
/// Cursor: a plan to accept or reject.
pub const CURSOR_CREATE_PLAN: &str = "cursor/create_plan";
/// Cursor: the list of todos.
pub const CURSOR_UPDATE_TODOS: &str = "cursor/update_todos";
/// Cursor: a subagent's task.
pub const CURSOR_TASK: &str = "cursor/task";
/// Cursor: an image was made.
pub const CURSOR_GENERATE_IMAGE: &str = "cursor/generate_image";
