//! Prompts and turns: sent, queued, cancelled, over.

use acp::message::RpcError;
use acp::types::{self as wire, ContentBlock};
use acp::{FromValue, methods};
use serde_json::{Value, json};

use crate::agents::agent::{Agent, Link, Waiter};
use crate::agents::connect::rpc_message;
use crate::decide::decision::Decision;
use crate::effect::{Effect, Timer};
use crate::engine::Engine;
use crate::error::Error;
use crate::ids::{Key, PromptId};
use crate::sessions::attachments::{Block, BlockKind, to_wire};
use crate::sessions::entry::{Body, Level, Notice};
use crate::sessions::session::{Phase, Prompt, PromptSpec, Turn};
use crate::sessions::told_failure::{self, Kind, Told};
use crate::text::label;
use crate::tools::kind::ToolStatus;

/// How long a cancelled turn may take to end before the user is told.
const CANCEL_NOTICE_MS: u64 = 5_000;
/// As much of a command as a notice repeats, in characters.
const COMMAND_CHARS: usize = 80;

impl Engine {
    /// Sends a prompt, or queues it while it cannot be sent. A process that is gone is started again.
    pub fn prompt(&mut self, key: Key, spec: PromptSpec) -> Result<PromptId, Error> {
        not_empty(&spec)?;
        self.session(key)?;
        let id = self.next_prompt();
        let knows = self.screen.knows_failure(key);
        if let Some(session) = self.sessions.get_mut(&key) {
            session.queue.push_back(Prompt { id, spec });
        }
        // Asked before the editor heard that the agent failed: another try would only say the same again.
        if knows || !self.failed(key) {
            self.send_or_start(key);
        }
        Ok(id)
    }

    /// Sends the last prompt again, with all that was attached to it.
    pub fn retry(&mut self, key: Key) -> Result<PromptId, Error> {
        let session = self.session(key)?;
        if session.turn.is_some() {
            return Err(Error::TurnRuns);
        }
        let Some(spec) = session.last_prompt.clone() else {
            return Err(Error::NoPrompt);
        };
        let id = self.prompt(key, spec)?;
        // Before what waits, unless it is on its way.
        let _ = self.queue_move(key, id, 1);
        Ok(id)
    }

    fn failed(&self, key: Key) -> bool {
        let agent = self.sessions.get(&key).map(|session| session.agent);
        agent
            .and_then(|agent| self.agents.get(&agent))
            .is_some_and(|agent| matches!(agent.link(), Link::Failed(_)))
    }

    /// Sends what waits; for a session whose agent is gone that begins with the agent.
    fn send_or_start(&mut self, key: Key) {
        let Some(session) = self.sessions.get(&key) else {
            return;
        };
        let (agent, lost) = (session.agent, session.phase == Phase::Lost);
        match self.agents.get(&agent).map(|agent| agent.link()) {
            Some(Link::Stopped | Link::Failed(_)) => self.start(agent),
            Some(Link::Ready) if lost => self.begin(key),
            _ => self.send_next(key),
        }
    }

    /// Replaces a prompt that waits.
    pub fn queue_edit(&mut self, key: Key, id: PromptId, spec: PromptSpec) -> Result<(), Error> {
        not_empty(&spec)?;
        self.queued(key, id)?.spec = spec;
        Ok(())
    }

    /// Takes a prompt out of the queue.
    pub fn queue_remove(&mut self, key: Key, id: PromptId) -> Result<(), Error> {
        self.queued(key, id)?;
        if let Some(session) = self.sessions.get_mut(&key) {
            session.queue.retain(|prompt| prompt.id != id);
        }
        Ok(())
    }

    /// Puts a prompt at another place of the queue, counted from 1.
    pub fn queue_move(&mut self, key: Key, id: PromptId, to: usize) -> Result<(), Error> {
        let prompt = self.queued(key, id)?.clone();
        if let Some(session) = self.sessions.get_mut(&key) {
            session.queue.retain(|other| other.id != id);
            let at = to.saturating_sub(1).min(session.queue.len());
            session.queue.insert(at, prompt);
        }
        Ok(())
    }

    /// Sends a queued prompt next, ending the turn that runs.
    pub fn queue_send_now(&mut self, key: Key, id: PromptId) -> Result<(), Error> {
        self.queue_move(key, id, 1)?;
        let running = self.session(key)?.turn.is_some();
        if running {
            // An answer to a cancel that is under way will do as well.
            let _ = self.cancel(key);
        } else {
            self.send_or_start(key);
        }
        Ok(())
    }

    fn queued(&mut self, key: Key, id: PromptId) -> Result<&mut Prompt, Error> {
        self.session(key)?;
        let queue = self
            .sessions
            .get_mut(&key)
            .map(|session| &mut session.queue);
        queue
            .into_iter()
            .flatten()
            .find(|prompt| prompt.id == id)
            .ok_or(Error::NotQueued(id))
    }

    /// Sends the first prompt of the queue, if the session can take one.
    pub(crate) fn send_next(&mut self, key: Key) {
        let now = self.now().wall_ms;
        let closing = self.is_closing();
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let ready = session.phase == Phase::Ready && !session.setting;
        if !ready || session.turn.is_some() || closing {
            return;
        }
        let Some(session_id) = session.session_id.clone() else {
            return;
        };
        let Some(mut prompt) = session.queue.pop_front() else {
            return;
        };
        let Some(caps) = self
            .agents
            .get(&session.agent)
            .map(|agent| agent.caps().prompt)
        else {
            return;
        };
        let id = session.agent;
        if let Some(carry) = session.carry.take() {
            prompt.spec.blocks.push(Block {
                kind: BlockKind::Text,
                label: Some(carry.label),
                text: Some(carry.text),
                ..Block::default()
            });
        }
        session.last_prompt = Some(prompt.spec.clone());
        let context: Vec<String> = prompt
            .spec
            .blocks
            .iter()
            .filter_map(|block| block.label.clone())
            .collect();
        session.transcript.end_turn(now);
        let body = Body::User {
            context,
            prompt: Some(prompt.id),
            message_id: None,
        };
        session
            .transcript
            .add_done(prompt.spec.text.clone(), body, now);

        let mut blocks = Vec::new();
        let mut left_out = Vec::new();
        if !prompt.spec.text.is_empty() {
            blocks.push(ContentBlock::text(prompt.spec.text.clone()));
        }
        for block in prompt.spec.blocks {
            match to_wire(block, &caps) {
                Ok(block) => blocks.push(block),
                Err(why) => left_out.push(why.to_string()),
            }
        }
        for why in left_out {
            self.add_notice(key, Level::Warning, "agent", why);
        }
        if blocks.is_empty() {
            // Nothing of it can be sent.
            return self.send_next(key);
        }
        let turn = self.sessions.get_mut(&key).map_or(0, |session| {
            session.turns += 1;
            session.shadow = None;
            session.error = None;
            session.signed_out = false;
            session.turns
        });
        self.watch_turn(key, turn, &prompt.spec.text, prompt.spec.open);
        let params = wire::PromptRequest {
            session_id,
            prompt: blocks,
        };
        let call = self.request(
            id,
            methods::SESSION_PROMPT,
            params,
            Waiter::Prompt { key, turn },
        );
        if let (Some(call), Some(session)) = (call, self.sessions.get_mut(&key)) {
            let text = prompt.spec.text;
            session.turn = Some(Turn {
                number: turn,
                call: Some(call),
                text,
                started_ms: now,
                cancelling: false,
                stuck: false,
            });
        }
        self.event(key, "CursorAgentTurnStart", json!({}));
    }

    /// Stops the turn: what waits for the user is answered as cancelled, the text so far stays.
    pub fn cancel(&mut self, key: Key) -> Result<(), Error> {
        let session = self.session(key)?;
        let (id, session_id) = (session.agent, session.session_id.clone());
        let Some(turn) = &session.turn else {
            return Err(Error::NoTurn);
        };
        let number = turn.number;
        // Said first: an agent that sees its question cancelled may else go on with something new.
        if let Some(session_id) = session_id {
            self.notify(
                id,
                methods::SESSION_CANCEL,
                wire::SessionRequest { session_id },
            );
        }
        self.end_decisions(|decision| decision.key == key);
        if let Some(proc) = self.agents.get(&id).map(Agent::proc) {
            self.cancel_calls(key, proc);
        }
        if let Some(turn) = self
            .sessions
            .get_mut(&key)
            .and_then(|session| session.turn.as_mut())
        {
            turn.cancelling = true;
        }
        self.effect(Effect::After {
            ms: CANCEL_NOTICE_MS,
            timer: Timer::Cancel { key, turn: number },
        });
        Ok(())
    }

    /// Whether the turn is being stopped: what it asks now is answered as cancelled.
    pub(crate) fn is_cancelling(&self, key: Key) -> bool {
        self.sessions
            .get(&key)
            .and_then(|session| session.turn.as_ref())
            .is_some_and(|turn| turn.cancelling)
    }

    /// A cancelled turn should be over by now.
    pub(crate) fn on_cancel_timer(&mut self, key: Key, number: u64) {
        let name = self.agent_name(key);
        let turn = self
            .sessions
            .get_mut(&key)
            .and_then(|session| session.turn.as_mut());
        let Some(turn) =
            turn.filter(|turn| turn.number == number && turn.cancelling && !turn.stuck)
        else {
            return;
        };
        turn.stuck = true;
        if turn.call.is_none() {
            // No answer is owed for it: what waits is sent.
            self.end_turn(key, "cancelled", None, None);
            return self.send_next(key);
        }
        let text = format!(
            "{name} has not ended the cancelled turn\n  :CursorAgent restart restarts it and continues this conversation"
        );
        self.add_notice(key, Level::Warning, "agent", text.clone());
        self.tell(key, "warn", text);
    }

    /// The agent works without having been asked by us, or has stopped: a turn like any other, without a prompt.
    pub(crate) fn on_state(&mut self, key: Key, news: &wire::StateUpdate) {
        let Some(session) = self.sessions.get(&key) else {
            return;
        };
        let loading = matches!(session.phase, Phase::Loading { .. });
        let answered = loading && session.session_id.is_some();
        match (&news.state, &session.turn) {
            (wire::SessionState::Running | wire::SessionState::RequiresAction, None)
                if answered || session.phase == Phase::Ready =>
            {
                if answered {
                    self.end_replay(key);
                }
                self.begin_turn_of_agent(key);
                if answered {
                    self.set_wanted(key);
                }
            }
            (wire::SessionState::Idle, Some(turn)) if turn.call.is_none() => {
                let reason = match (&news.error, &news.stop_reason) {
                    (Some(_), _) => "error",
                    (None, Some(reason)) => reason.as_str(),
                    (None, None) => "end_turn",
                };
                self.end_turn(key, reason, None, news.error.clone());
                self.send_next(key);
            }
            _ => {}
        }
    }

    fn begin_turn_of_agent(&mut self, key: Key) {
        let now = self.now().wall_ms;
        if let Some(session) = self.sessions.get_mut(&key) {
            session.transcript.end_turn(now);
            session.turns += 1;
            session.error = None;
            session.turn = Some(Turn {
                number: session.turns,
                call: None,
                text: String::new(),
                started_ms: now,
                cancelling: false,
                stuck: false,
            });
        }
        self.event(key, "CursorAgentTurnStart", json!({}));
    }

    /// `session/prompt` was answered.
    pub(crate) fn on_turn_over(&mut self, key: Key, number: u64, result: Result<Value, RpcError>) {
        let running = self
            .sessions
            .get(&key)
            .and_then(|session| session.turn.as_ref());
        if running.is_none_or(|turn| turn.number != number) {
            return;
        }
        let response = result.map(|value| match wire::PromptResponse::from_value(value) {
            Ok(response) => response,
            // An answer that is not even an object still ends the turn.
            Err(_) => wire::PromptResponse {
                stop_reason: wire::StopReason::EndTurn,
                usage: None,
                meta: None,
                extra: acp::Object::new(),
            },
        });
        match response {
            Ok(response) => {
                let tokens = response.usage.as_ref().and_then(|usage| {
                    usage.total_tokens.or_else(|| {
                        let output = usage.output_tokens.unwrap_or(0);
                        Some(usage.input_tokens?.saturating_add(output))
                    })
                });
                if let (Some(usage), Some(session)) = (response.usage, self.sessions.get_mut(&key))
                {
                    session.usage.input_tokens = usage.input_tokens;
                    session.usage.output_tokens = usage.output_tokens;
                }
                let told = (response.stop_reason == wire::StopReason::EndTurn)
                    .then(|| self.told_failure(key))
                    .flatten();
                match told {
                    Some(told) if told.kind == Kind::Cancelled && self.is_cancelling(key) => {
                        self.end_turn(key, "cancelled", tokens, None);
                    }
                    Some(told) => {
                        self.end_turn(key, "error", tokens, Some(told.message()));
                        self.note_signed_out(key, told.kind == Kind::Login);
                    }
                    None => self.end_turn(key, response.stop_reason.as_str(), tokens, None),
                }
            }
            Err(error) => {
                if self.is_cancelling(key)
                    && (error.code == RpcError::REQUEST_CANCELLED
                        || error.message.to_lowercase().contains("cancel"))
                {
                    // Some agents answer a cancelled prompt with an error.
                    self.end_turn(key, "cancelled", None, None);
                } else {
                    let login = if error.is_auth_required() {
                        format!("\n  {}", self.login_step(key))
                    } else {
                        String::new()
                    };
                    self.end_turn(
                        key,
                        "error",
                        None,
                        Some(format!("{}{login}", rpc_message(&error))),
                    );
                    self.note_signed_out(key, error.is_auth_required());
                }
            }
        }
        self.send_next(key);
    }

    fn note_signed_out(&mut self, key: Key, signed_out: bool) {
        if let Some(session) = self.sessions.get_mut(&key) {
            session.signed_out = signed_out;
        }
    }

    /// The failure the turn's last message tells of.
    fn told_failure(&self, key: Key) -> Option<Told> {
        let session = self.sessions.get(&key)?;
        let words = session.transcript.last_words()?;
        let prompt = session.turn.as_ref().map(|turn| turn.text.as_str());
        let agent = self.agents.get(&session.agent);
        let of_cursor = agent.is_some_and(Agent::is_cursor);
        told_failure::find(words, prompt.unwrap_or_default(), of_cursor)
    }

    /// The process is gone in the middle of a turn.
    pub(crate) fn abort_turn(&mut self, key: Key, error: Option<&str>) {
        if self
            .sessions
            .get(&key)
            .is_some_and(|session| session.turn.is_some())
        {
            match error {
                Some(error) => self.end_turn(key, "error", None, Some(error.to_owned())),
                None => self.end_turn(key, "cancelled", None, None),
            }
        }
    }

    /// What to say of commands a cancelled turn leaves behind: the agent did not say that it ended them.
    fn commands_that_run_on(&self, key: Key, reason: &str) -> Option<String> {
        let session = self.sessions.get(&key).filter(|_| reason == "cancelled")?;
        let entries = session.transcript().entries().iter();
        let open = entries
            .filter(|entry| !entry.done)
            .filter_map(|entry| entry.tool());
        let commands: Vec<String> = open
            .filter(|tool| tool.may_run_on())
            .map(|tool| tool.command().unwrap_or_else(|| tool.title.clone()))
            .map(|command| format!("`{}`", label(&command, COMMAND_CHARS)))
            .collect();
        (!commands.is_empty()).then(|| {
            format!(
                "{} may still be running: {} did not say that it ended\n  :CursorAgent restart ends everything it started",
                commands.join(", "),
                self.agent_name(key)
            )
        })
    }

    /// All tool calls of a session that have not ended are over: the turn is. Subagents that are at work go on.
    pub(crate) fn end_tools(&mut self, key: Key, status: &ToolStatus) {
        let now = self.now().wall_ms;
        let completed = *status == ToolStatus::Completed;
        let Some(session) = self.sessions.get(&key) else {
            return;
        };
        let goes_on = |at: usize| completed && session.transcript().is_at_work(at);
        let open: Vec<usize> = session
            .transcript()
            .entries()
            .iter()
            .enumerate()
            .filter(|(at, entry)| {
                let open =
                    !entry.done && matches!(&entry.body, Body::Tool(tool) if !tool.is_over());
                open && !goes_on(*at)
            })
            .map(|(at, _)| at)
            .collect();
        for &at in &open {
            self.assume_ended(key, at, !completed);
            let session = self.sessions.get_mut(&key);
            if let Some(entry) = session.and_then(|session| session.transcript_mut().get_mut(at)) {
                entry.done = true;
                entry.duration_ms = Some(entry.took(now));
                if let Some(tool) = entry.tool_mut() {
                    // Gemini says nothing more of a call the user said no to.
                    tool.status = if tool.rejected {
                        ToolStatus::Cancelled
                    } else {
                        status.clone()
                    };
                }
            }
        }
        if completed {
            for at in open {
                self.note_edits(key, at, &[]);
            }
        }
    }

    fn end_turn(&mut self, key: Key, reason: &str, tokens: Option<u64>, error: Option<String>) {
        let now = self.now().wall_ms;
        let stopped = error.is_some() || reason == "cancelled";
        // A subagent in the background asks on its own account: it may go on long after the turn.
        let workers = !stopped && self.has_workers(key);
        let asks_on = |decision: &Decision| {
            let goes_on = decision.subagent.is_some() || (workers && decision.entry.is_some());
            // What is on disk is in conflict with unsaved text whether the turn is over or not.
            (!stopped && goes_on) || !decision.is_awaited()
        };
        self.end_decisions(|decision| decision.key == key && !asks_on(decision));
        self.show_held_messages(key);
        let open_tools = match (&error, reason) {
            (Some(_), _) => ToolStatus::Failed,
            (None, "cancelled") => ToolStatus::Cancelled,
            // The agent is done and just did not say so of each call.
            _ => ToolStatus::Completed,
        };
        let run_on = self.commands_that_run_on(key, reason);
        self.end_tools(key, &open_tools);
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let took = session
            .turn
            .take()
            .map(|turn| now.saturating_sub(turn.started_ms));
        session.transcript.end_turn(now);
        if reason != "end_turn" {
            let level = if error.is_some() {
                Level::Error
            } else {
                Level::Info
            };
            let text = error.clone().unwrap_or_else(|| reason_text(reason));
            let notice = Notice {
                level,
                about: "turn_end",
                stop_reason: Some(reason.to_owned()),
                tokens,
            };
            let entry = session.transcript.add_done(text, Body::Notice(notice), now);
            if let Some(entry) = session.transcript.get_mut(entry) {
                entry.duration_ms = took;
            }
        }
        if error.is_some() {
            session.error.clone_from(&error);
        }
        if let Some(text) = run_on {
            self.add_notice(key, Level::Warning, "agent", text);
        }
        let mut data = json!({ "stop_reason": reason, "duration_ms": took });
        if let (Value::Object(data), Some(error)) = (&mut data, error) {
            data.insert("error".to_owned(), json!(error));
        }
        self.watch_turn_end(key);
        self.event(key, "CursorAgentTurnEnd", data);
        self.look_for_context(key);
    }
}

fn not_empty(spec: &PromptSpec) -> Result<(), Error> {
    if spec.text.trim().is_empty() && spec.blocks.is_empty() {
        return Err(Error::EmptyPrompt);
    }
    Ok(())
}

fn reason_text(reason: &str) -> String {
    match reason {
        "max_tokens" => "the answer reached the model's length limit".to_owned(),
        "max_turn_requests" => "the turn reached the agent's limit of requests".to_owned(),
        "refusal" => "the agent refused to continue; it will not remember this prompt".to_owned(),
        "cancelled" => "cancelled".to_owned(),
        other => other.to_owned(),
    }
}
