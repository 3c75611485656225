//! One session: its transcript, its turn, its queue, and what the agent lets the user switch.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use acp::peer::CallId;
use acp::types as wire;
use serde::{Deserialize, Serialize};

use crate::ids::{AgentId, Key, PromptId};
use crate::inbound::access::Grant;
use crate::policy::Action;
use crate::sessions::attachments::Block;
use crate::sessions::mcp::{Choice, Read};
use crate::sessions::subagents::Told;
use crate::sessions::todos::Todo;
use crate::sessions::transcript::Transcript;
use crate::tools::diff::Hunk;
use crate::tracked::Owned;

#[derive(Debug)]
pub struct Session {
    /// Ours.
    pub(super) key: Key,
    /// Who plays it.
    pub(super) agent: AgentId,
    /// Where it works.
    pub(super) cwd: String,
    /// The agent's own id, once there is one.
    pub(super) session_id: Option<wire::SessionId>,
    /// Where it stands with the agent.
    pub(super) phase: Phase,
    /// What to set once it is there.
    pub(super) wanted: Wanted,
    /// What Cursor's files say of MCP servers, from when they were read until the session is asked for.
    pub(super) mcp: Option<Read>,
    /// Something of it was sent and is not answered yet: prompts wait for that.
    pub(super) setting: bool,
    /// How many settings were sent because they were wanted.
    pub(super) settings: u64,
    /// What was said.
    pub(super) transcript: Transcript,
    /// The turn that runs.
    pub(super) turn: Option<Turn>,
    /// How many turns there were.
    pub(super) turns: u64,
    /// Prompts that wait for their turn.
    pub(super) queue: VecDeque<Prompt>,
    /// The prompt that was sent last, to be sent again.
    pub(super) last_prompt: Option<PromptSpec>,
    /// The modes it can be in, and the one it is in.
    pub(super) modes: wire::SessionModes,
    /// The models it can use, from agents without config options.
    pub(super) models: wire::SessionModels,
    /// What else can be set.
    pub(super) options: Vec<wire::ConfigOption>,
    /// Slash commands.
    pub(super) commands: Vec<wire::AvailableCommand>,
    /// What it is called.
    pub(super) title: Option<String>,
    /// How full the context is and what it cost.
    pub(super) usage: Usage,
    /// The agent says itself how full the context is: nothing else is looked at.
    pub(super) tells_usage: bool,
    /// What is to be done.
    pub(super) todos: Vec<Todo>,
    /// Files the agent changed, in the order it first did.
    pub(super) changed_files: Vec<FileChange>,
    /// Files the editor wrote for the agent, and how many entries there were by then.
    pub(super) writes: BTreeMap<String, usize>,
    /// Unknown update kinds that were already shown.
    pub(super) unknown_seen: HashSet<String>,
    /// Messages between it and its subagents, by the session they were told in and their id there.
    pub(super) messages: HashMap<(String, String), Told>,
    /// Rows of what agents did by way of the editor and announced no call for.
    pub(super) rows: Vec<usize>,
    /// What the user answered for good: by the whole call, what to do and when that was said.
    pub(super) always: HashMap<String, (Action, String)>,
    /// Folders outside the workspace the user has opened.
    pub(super) grants: Vec<Grant>,
    /// The entry of each compaction.
    pub(super) compactions: BTreeMap<String, usize>,
    /// What went wrong, as a person reads it; also that the agent has not answered for long.
    pub(super) error: Option<String>,
    /// Its last turn failed because the user is signed out.
    pub(super) signed_out: bool,
    /// How many updates have arrived.
    pub(super) heard: u64,
    /// Something of the conversation has come since it was asked to be loaded.
    pub(super) replayed: bool,
    /// What is stored of it is being read: it is asked for at the agent afterwards.
    pub(super) recalling: bool,
    /// How many entries were stored before.
    pub(super) restored: usize,
    /// Its file is there, and goes on.
    pub(super) stored: bool,
    /// What the user calls it.
    pub(super) name: Option<String>,
    /// The id it is stored under, until the session that replaces it has its first message.
    pub(super) known_as: Option<String>,
    /// It is a chat of Cursor's terminal that was brought back.
    pub(super) terminal: Option<crate::sessions::memory::Terminal>,
    /// What the agent replays of a conversation that is stored, to be compared with it. Kept until something is asked:
    /// agents go on replaying after they have said that it is loaded.
    pub(super) shadow: Option<Transcript>,
    /// More of it came after it was compared.
    pub(super) late: bool,
    /// An old conversation that is attached to the next prompt.
    pub(super) carry: Option<Carry>,
    /// A replay that did not come to its end, and how much of it the transcript has.
    pub(super) replay: Option<Replay>,
}

/// An old conversation that the agent does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carry {
    /// How the transcript names it.
    pub label: String,
    /// What of it is attached.
    pub text: String,
}

/// How far a replay is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Replay {
    /// How many of its updates are in the transcript.
    pub taken: u64,
    /// How many updates still to come are there already, from an earlier replay that broke off.
    pub skip: u64,
}

/// Where a session stands with its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The agent is not ready yet.
    Waiting,
    /// `session/new` was sent.
    Creating,
    /// `session/load` was sent, or answered and the replay may go on. With `discard` the transcript has it all already.
    Loading { discard: bool },
    /// `session/resume` was sent.
    Resuming,
    /// It can take prompts.
    Ready,
    /// Its agent is gone or refused it.
    Lost,
}

/// What the user asked for when the session was opened.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// A past session to go on with.
    pub load: Option<String>,
    /// What the agent calls that in its list.
    pub title: Option<String>,
    /// A session of the agent's that this one begins as a copy of.
    pub fork: Option<wire::SessionId>,
    pub mode: Option<String>,
    pub model: Option<String>,
    /// Config options.
    pub options: BTreeMap<String, OptionValue>,
    /// MCP servers for it.
    pub mcp_servers: Vec<wire::McpServer>,
    /// Which servers of Cursor's files it is given too, where the agent does not read them itself.
    pub mcp_files: Choice,
    /// More directories to work in.
    pub directories: Vec<String>,
    /// Only to look something up: the agent makes no session for it.
    pub lookup: bool,
}

/// The value of a config option as the editor gives it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum OptionValue {
    /// Yes or no.
    Bool(bool),
    /// One of several.
    Text(String),
}

/// A turn that runs.
#[derive(Debug)]
pub struct Turn {
    pub number: u64,
    /// The call of `session/prompt`; none when the agent began it by itself.
    pub call: Option<CallId>,
    /// What was asked, to know an echo of it.
    pub text: String,
    /// When it began.
    pub started_ms: u64,
    /// Cancel was sent.
    pub cancelling: bool,
    /// Cancel was sent and nothing came of it in time.
    pub stuck: bool,
}

/// A prompt of the user's.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// Ours.
    pub id: PromptId,
    /// What was typed and what is attached.
    pub spec: PromptSpec,
}

/// What the editor hands over to be sent.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptSpec {
    /// What the user typed.
    #[serde(deserialize_with = "crate::text::lossy")]
    pub text: String,
    /// What is attached.
    #[serde(default)]
    pub blocks: Vec<Block>,
    /// Files that buffers have: the first to be kept as they are.
    #[serde(default)]
    pub open: Vec<String>,
}

/// How full the context is and what it cost, as far as the agent says.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Tokens in the context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// Tokens it can hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Money.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Which money.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Tokens read in the last turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens written in the last turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
}

/// A file the agent changed.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// Absolute.
    pub path: String,
    /// What the last reported edit did.
    pub hunks: Vec<Hunk>,
    /// What became of it.
    pub state: FileChanged,
}

/// What became of a file.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChanged {
    /// It was not there before.
    Created,
    /// It has another text.
    Modified,
    /// It is gone.
    Deleted,
}

impl Owned for Session {
    type Owner = Key;

    fn owner(&self) -> Key {
        self.key
    }
}

impl Session {
    /// How the transcript will name the old conversation that is attached to the next prompt.
    pub fn carry_label(&self) -> Option<&str> {
        self.carry.as_ref().map(|carry| carry.label.as_str())
    }

    /// A session that was just asked for.
    pub fn new(key: Key, agent: AgentId, cwd: String, mut wanted: Wanted) -> Self {
        let title = wanted.title.take();
        Self {
            key,
            agent,
            cwd,
            session_id: None,
            phase: Phase::Waiting,
            wanted,
            mcp: None,
            setting: false,
            settings: 0,
            transcript: Transcript::default(),
            turn: None,
            turns: 0,
            queue: VecDeque::new(),
            last_prompt: None,
            modes: wire::SessionModes::default(),
            models: wire::SessionModels::default(),
            options: Vec::new(),
            commands: Vec::new(),
            title,
            usage: Usage::default(),
            tells_usage: false,
            todos: Vec::new(),
            changed_files: Vec::new(),
            writes: BTreeMap::new(),
            unknown_seen: HashSet::new(),
            messages: HashMap::new(),
            rows: Vec::new(),
            always: HashMap::new(),
            grants: Vec::new(),
            compactions: BTreeMap::new(),
            error: None,
            signed_out: false,
            heard: 0,
            replayed: false,
            recalling: false,
            restored: 0,
            stored: false,
            name: None,
            known_as: None,
            terminal: None,
            shadow: None,
            late: false,
            carry: None,
            replay: None,
        }
    }

    /// Ours.
    pub fn key(&self) -> Key {
        self.key
    }

    /// Who plays it.
    pub fn agent(&self) -> AgentId {
        self.agent
    }

    /// Where it works.
    pub fn cwd(&self) -> &str {
        &self.cwd
    }

    /// The agent's own id, once there is one.
    pub fn session_id(&self) -> Option<&wire::SessionId> {
        self.session_id.as_ref()
    }

    /// Where it stands with the agent.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// What to set once it is there.
    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Something that was wanted is being set: prompts wait for that.
    pub fn is_setting(&self) -> bool {
        self.setting
    }

    /// What was said.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// What was said, to be changed: what changes of it the editor hears.
    pub(crate) fn transcript_mut(&mut self) -> &mut Transcript {
        &mut self.transcript
    }

    /// The turn that runs.
    pub fn turn(&self) -> Option<&Turn> {
        self.turn.as_ref()
    }

    /// How many turns there were.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// Prompts that wait for their turn.
    pub fn queue(&self) -> &VecDeque<Prompt> {
        &self.queue
    }

    /// The modes it can be in, and the one it is in.
    pub fn modes(&self) -> &wire::SessionModes {
        &self.modes
    }

    /// The models it can use, from agents without config options.
    pub fn models(&self) -> &wire::SessionModels {
        &self.models
    }

    /// What else can be set.
    pub fn options(&self) -> &[wire::ConfigOption] {
        &self.options
    }

    /// Slash commands.
    pub fn commands(&self) -> &[wire::AvailableCommand] {
        &self.commands
    }

    /// What it is called.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// How full the context is and what it cost.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// What is to be done.
    pub fn todos(&self) -> &[Todo] {
        &self.todos
    }

    /// Files the agent changed, in the order it first did.
    pub fn changed_files(&self) -> &[FileChange] {
        &self.changed_files
    }

    /// What the last reported edit of a file did, known later than the edit.
    pub(crate) fn set_hunks(&mut self, path: &str, hunks: Vec<Hunk>) {
        if let Some(change) = self.changed_files.iter_mut().find(|c| c.path == path) {
            change.hunks = hunks;
        }
    }

    /// What went wrong, as a person reads it.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    pub(crate) fn set_error(&mut self, message: &str) {
        self.error = Some(message.to_owned());
    }

    /// The user has logged in since.
    pub(crate) fn signed_in(&mut self) {
        self.signed_out = false;
    }

    /// Its last turn failed because the user is signed out.
    pub fn is_signed_out(&self) -> bool {
        self.signed_out
    }

    /// Its agent is being started.
    pub(crate) fn wait_for_agent(&mut self) {
        self.phase = Phase::Waiting;
        self.error = None;
    }

    /// Its agent is gone.
    pub(crate) fn lose(&mut self, error: Option<&str>) {
        self.phase = Phase::Lost;
        self.error = error.map(str::to_owned);
    }

    /// The model was set, for agents without config options.
    pub(crate) fn set_current_model(&mut self, id: String) {
        self.models.current_model_id = Some(id);
    }

    /// What the user answered for good about a call, and when that was said.
    pub fn remembered(&self, signature: &str) -> Option<&(Action, String)> {
        self.always.get(signature)
    }

    /// The user answered for good.
    pub(crate) fn remember(&mut self, signature: String, action: Action, said: String) {
        self.always.insert(signature, (action, said));
    }

    /// Folders outside the workspace the user has opened.
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// The user has opened a folder.
    pub(crate) fn grant(&mut self, grant: Grant) {
        self.grants.push(grant);
    }

    /// An entry shows what the agent did by way of the editor and announced no call for.
    pub(crate) fn add_row(&mut self, at: usize) {
        self.rows.push(at);
    }

    /// Whether an entry is such a row.
    pub fn is_row(&self, at: usize) -> bool {
        self.rows.contains(&at)
    }

    /// Whether this is the agent's id of it, or will be once it is loaded.
    pub fn is_called(&self, id: &str) -> bool {
        let loading = self.wanted.load.as_deref();
        self.session_id
            .as_ref()
            .map_or(loading, |id| Some(id.as_str()))
            == Some(id)
    }

    /// Whether the agent was told to make, load or resume it, and it does not take prompts yet.
    pub fn is_asked_for(&self) -> bool {
        matches!(
            self.phase,
            Phase::Creating | Phase::Loading { .. } | Phase::Resuming
        )
    }

    /// Whether what arrives was said and done long ago.
    pub fn is_replaying(&self) -> bool {
        matches!(self.phase, Phase::Loading { .. })
    }

    /// Whether what arrives may be the rest of a replay that was taken to be over.
    pub fn may_still_replay(&self) -> bool {
        self.shadow.is_some() && self.phase == Phase::Ready && self.turn.is_none()
    }

    /// The option that holds the mode or the model.
    pub fn option_of(&self, category: &wire::ConfigCategory) -> Option<&wire::ConfigOption> {
        self.options
            .iter()
            .find(|option| option.category.as_ref() == Some(category))
    }

    pub fn mode(&self) -> Option<&str> {
        self.modes
            .current_mode_id
            .as_deref()
            .or_else(|| current(self.option_of(&wire::ConfigCategory::Mode)?))
    }

    /// The model it uses.
    pub fn model(&self) -> Option<&str> {
        self.option_of(&wire::ConfigCategory::Model)
            .and_then(current)
            .or(self.models.current_model_id.as_deref())
    }

    /// Takes what the agent says of a session that was made, loaded or resumed.
    pub fn apply_response(&mut self, response: wire::SessionResponse) {
        if let Some(modes) = response.modes {
            self.modes = modes;
        }
        if let Some(models) = response.models {
            self.models = models;
        }
        if let Some(options) = response.config_options {
            self.set_options(options);
        }
    }

    /// Takes the complete list of config options. The mode may be told by both ways; they are kept the same.
    pub fn set_options(&mut self, options: Vec<wire::ConfigOption>) {
        self.options = options;
        let mode = self
            .option_of(&wire::ConfigCategory::Mode)
            .and_then(current)
            .map(str::to_owned);
        if let Some(mode) = mode
            && self.modes.current_mode_id.is_some()
        {
            self.modes.current_mode_id = Some(mode);
        }
    }

    /// The mode changed by the other way than config options.
    pub fn set_current_mode(&mut self, id: &str) {
        self.modes.current_mode_id = Some(id.to_owned());
        for option in &mut self.options {
            if option.category == Some(wire::ConfigCategory::Mode)
                && let wire::ConfigKind::Select { current, .. } = &mut option.kind
            {
                *current = Some(id.to_owned());
            }
        }
    }

    /// Notes that the editor wrote a file for the agent.
    pub fn note_write(&mut self, path: &str) {
        let entries = self.transcript.entries().len();
        self.writes.insert(path.to_owned(), entries);
    }

    /// Whether the editor wrote a file while the tool call of this entry ran: then both are the same change, and the
    /// next that reports it is another.
    pub fn take_write(&mut self, path: &str, tool: usize) -> bool {
        let ran = self.writes.get(path).is_some_and(|entries| tool < *entries);
        if ran {
            self.writes.remove(path);
        }
        ran
    }

    /// Notes that a file was changed.
    pub fn note_change(&mut self, path: &str, hunks: Vec<Hunk>, state: FileChanged) {
        if let Some(change) = self
            .changed_files
            .iter_mut()
            .find(|change| change.path == path)
        {
            if !hunks.is_empty() {
                change.hunks = hunks;
            }
            // A file the agent made is its own until it is deleted.
            if [state, change.state].contains(&FileChanged::Deleted) {
                change.state = state;
            }
            return;
        }
        self.changed_files.push(FileChange {
            path: path.to_owned(),
            hunks,
            state,
        });
    }
}

/// The value a select has.
pub fn current(option: &wire::ConfigOption) -> Option<&str> {
    match &option.kind {
        wire::ConfigKind::Select { current, .. } => current.as_deref(),
        _ => None,
    }
}
