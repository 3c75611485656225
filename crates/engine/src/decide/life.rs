//! The life of a decision: asked, judged by the rules, shown, answered or withdrawn, recorded in the
//! transcript. It ends once.

use std::collections::BTreeSet;
use std::collections::btree_map::Values;

use acp::message::RpcError;
use acp::peer::Ticket;
use serde_json::Value;

use crate::decide::decided::{Decided, End, How};
use crate::decide::decision::{Answer, Decision, Subject};
use crate::effect::{Effect, Judging};
use crate::engine::Engine;
use crate::error::Error;
use crate::ids::{DecisionId, Key, Proc};
use crate::inbound::permissions::title_of;
use crate::policy::{Action, Judged, call};
use crate::screen::news::News;
use crate::screen::outbox::Wake;
use crate::sessions::entry::Level;
use crate::tools::kind::ToolStatus;
use crate::tracked::Tracked;

/// All open decisions. Readable everywhere; only this file adds, changes and ends them.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    all: Tracked<DecisionId, Decision>,
    last: DecisionId,
}

impl Decisions {
    pub(crate) fn get(&self, id: DecisionId) -> Option<&Decision> {
        self.all.get(&id)
    }

    /// Oldest first.
    pub(crate) fn values(&self) -> Values<'_, DecisionId, Decision> {
        self.all.values()
    }

    /// The sessions whose decisions changed since the last call.
    pub(crate) fn take_touched(&mut self) -> BTreeSet<Key> {
        self.all.take_touched()
    }
}

impl Engine {
    /// Adds a decision for the user; permissions go through the rules first. `asker` is the task of the asking
    /// subagent, if known; otherwise it is derived from the tool call.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is a part of the decision made of them"
    )]
    pub(crate) fn ask(
        &mut self,
        proc: Proc,
        ticket: Option<Ticket>,
        key: Key,
        title: String,
        entry: Option<usize>,
        asker: Option<usize>,
        subject: Subject,
    ) -> DecisionId {
        let id = self.decisions.last.advance();
        let transcript = self.sessions.get(&key).map(|session| session.transcript());
        let subagent = asker.or_else(|| transcript?.get(entry?)?.parent);
        let places = match &subject {
            Subject::Access { access, .. } => {
                access.judged.as_ref().map(|judged| judged.places.clone())
            }
            _ => None,
        };
        let now = self.now().wall_ms;
        let session = self.sessions.get_mut(&key);
        let asked = session.and_then(|session| session.transcript_mut().get_mut(entry?));
        let tool = asked.and_then(|entry| {
            entry.note_asked(now);
            entry.tool_mut()
        });
        let is_permission = matches!(subject, Subject::Permission { .. });
        let shown = tool.as_deref().map(call::shown).unwrap_or_default();
        let checked = !is_permission || tool.is_none();
        if let Some(tool) = tool {
            tool.decision = Some(id);
        }
        let decision = Decision {
            id,
            key,
            proc,
            ticket,
            title,
            entry,
            subagent,
            asked_ms: now,
            subject,
            checked,
            judged: None,
            revision: 0,
            shown,
            places: places.unwrap_or_default(),
        };
        self.decisions.all.insert(id, decision);
        if checked {
            self.announce(id);
        } else {
            self.judge_decision(id);
        }
        id
    }

    /// Shows a decision to the user, or that its call changed.
    pub(crate) fn announce(&mut self, id: DecisionId) {
        if let Some(decision) = self.decisions.get(id) {
            let (key, subagent) = (decision.key, decision.subagent);
            if let Some(task) = subagent {
                self.count_waiting(key, task);
            }
            self.push(News::Decision { id }, Wake::Now);
        }
    }

    fn judge_decision(&mut self, id: DecisionId) {
        let Some(decision) = self.decisions.get(id) else {
            return;
        };
        let session = self.sessions.get(&decision.key);
        let tool = decision
            .entry
            .and_then(|at| session?.transcript().get(at)?.tool());
        if let Some(tool) = tool {
            let case = Box::new(self.case(decision.key, tool));
            let revision = decision.revision;
            let whose = Judging::Decision { id, revision };
            self.effect(Effect::Judge { whose, case });
        }
    }

    /// A call may have changed while its permission is pending: it is judged and shown again, and answers to
    /// the old one are not accepted.
    pub(crate) fn recheck_decisions(&mut self, key: Key, entry: usize) {
        let session = self.sessions.get(&key);
        let Some(tool) = session.and_then(|session| session.transcript().get(entry)?.tool()) else {
            return;
        };
        if tool.decision.is_none() {
            return;
        }
        let shown = call::shown(tool);
        let title = title_of(tool);
        let outdated = |decision: &&Decision| {
            let is_its = decision.key == key && decision.entry == Some(entry);
            is_its
                && matches!(decision.subject, Subject::Permission { .. })
                && decision.shown != shown
        };
        let outdated = self.decisions.values().filter(outdated);
        let changed: Vec<DecisionId> = outdated.map(|decision| decision.id).collect();
        for decision in &changed {
            if let Some(decision) = self.decisions.all.get_mut(decision) {
                decision.shown.clone_from(&shown);
                decision.title.clone_from(&title);
                decision.judged = None;
                decision.revision += 1;
            }
        }
        for id in changed {
            self.judge_decision(id);
        }
    }

    /// A permission was judged. If it changed meanwhile, it is judged again.
    pub(crate) fn on_judged_decision(&mut self, id: DecisionId, revision: u64, judged: Judged) {
        let Some(decision) = self.decisions.all.get_mut(&id) else {
            return;
        };
        if decision.revision != revision {
            return;
        }
        decision.judged = Some(judged);
        let proc = decision.proc;
        if decision.checked {
            return self.decide_permission(id);
        }
        self.serve_judged(proc);
    }

    /// The rules have judged it: they answer it, or the user is asked.
    pub(crate) fn decide_permission(&mut self, id: DecisionId) {
        let Some(decision) = self.decisions.all.get_mut(&id) else {
            return;
        };
        let judged = decision.judged.take().unwrap_or_default();
        decision.places = judged.places;
        decision.checked = true;
        let (key, entry) = (decision.key, decision.entry);
        let said = match judged.rule {
            Some((Action::Ask, _)) => None,
            Some(said) => Some(said),
            None => self.sessions.get(&key).and_then(|session| {
                let tool = session.transcript().get(entry?)?.tool()?;
                session.remembered(&call::signature(tool)).cloned()
            }),
        };
        if let Some((action, rule)) = said
            && self.answer_by_rule(id, action, rule)
        {
            return;
        }
        self.announce(id);
    }

    /// Answers a decision, for the user or by a rule; a rule's answer leaves a line that names it.
    pub fn answer(
        &mut self,
        id: DecisionId,
        answer: &Answer,
        rule: Option<String>,
    ) -> Result<(), Error> {
        let how = match rule {
            Some(_) => How::Policy,
            None => How::User,
        };
        let decision = self.decisions.get(id).filter(|decision| decision.checked);
        let decision = decision.ok_or(Error::NoDecision(id))?;
        if rule.is_some() && matches!(decision.subject, Subject::Conflict { .. }) {
            return Err(Error::RuleOnConflict);
        }
        if answer
            .revision
            .is_some_and(|seen| seen != decision.revision)
        {
            return Err(Error::CallChanged);
        }
        let (key, title, entry) = (decision.key, decision.title.clone(), decision.entry);
        let reply = decision.reply(&self.agent_name(key), answer)?;
        let own_words = match (&decision.subject, &answer.reason) {
            (Subject::Pick { .. }, Some(words)) if answer.skip => Some(words.clone()),
            _ => None,
        };
        let mut access = None;
        match &decision.subject {
            Subject::Access { access: asked, .. } if reply.result.is_none() => {
                access = Some((**asked).clone());
            }
            Subject::Permission { .. } if reply.always && how == How::User => {
                let at = answer.at.as_deref().unwrap_or("before");
                self.remember(key, entry, reply.rejected == Some(true), at);
            }
            _ => {}
        }
        if let Some(text) = own_words.filter(|text| !text.trim().is_empty()) {
            // A permission response has no room for text, so the text becomes the next prompt. Queued first,
            // since the answer may end the turn.
            let spec = crate::sessions::session::PromptSpec {
                text,
                ..Default::default()
            };
            let prompt = self.prompt(key, spec)?;
            let _ = self.queue_move(key, prompt, 1);
        }
        let end = End {
            how,
            rejected: reply.rejected,
            always: reply.always,
            rule: rule.as_deref(),
            at_ms: self.now().wall_ms,
        };
        self.record_decision(id, Some(answer), &end);
        self.finish_decision(id, reply.result, how, reply.rejected);
        if let Some(warning) = reply.warning {
            self.add_notice(key, Level::Warning, "policy", warning.clone());
            self.tell(key, "warn", warning);
        } else if let Some(rule) = rule {
            let done = if reply.rejected == Some(true) {
                "rejected"
            } else {
                "allowed"
            };
            let text = format!("{done} by {rule}: {title}");
            self.add_notice(key, Level::Info, "policy", text);
        }
        if let Some(access) = access {
            self.access_allowed(access, reply.always);
        }
        Ok(())
    }

    /// Answers by a rule or an earlier "always". The call is allowed once: if the agent does not offer that,
    /// the user is asked.
    pub(crate) fn answer_by_rule(&mut self, id: DecisionId, action: Action, rule: String) -> bool {
        let answer = Answer {
            accept: action == Action::Allow,
            reject: action == Action::Reject,
            ..Answer::default()
        };
        self.answer(id, &answer, Some(rule)).is_ok()
    }

    /// Remembers an "always" answer: some agents forget it.
    fn remember(&mut self, key: Key, entry: Option<usize>, rejected: bool, at: &str) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let tool = entry.and_then(|at| session.transcript().get(at)?.tool());
        if let Some(tool) = tool {
            let action = if rejected {
                Action::Reject
            } else {
                Action::Allow
            };
            let said = format!("your “always” of {at}");
            let signature = call::signature(tool);
            session.remember(signature, action, said);
        }
    }

    /// Ends the decisions that match, each answered as cancelled.
    pub(crate) fn end_decisions(&mut self, matches: impl Fn(&Decision) -> bool) {
        let ids: Vec<DecisionId> = self
            .decisions
            .values()
            .filter(|d| matches(d))
            .map(|d| d.id)
            .collect();
        for id in ids {
            let reply = self
                .decisions
                .get(id)
                .and_then(|decision| decision.reply("", &Answer::cancelled()).ok());
            let end = End {
                how: How::Cancelled,
                at_ms: self.now().wall_ms,
                ..End::default()
            };
            self.record_decision(id, None, &end);
            self.finish_decision(
                id,
                reply.and_then(|reply| reply.result),
                How::Cancelled,
                None,
            );
        }
    }

    /// Decisions of a process that is gone: there is no agent to answer.
    pub(crate) fn withdraw_decisions(&mut self, proc: Proc) {
        let ids: Vec<_> = self
            .decisions
            .values()
            .filter(|d| d.proc == proc)
            .map(|d| d.id)
            .collect();
        for id in ids {
            self.finish_decision(id, None, How::Cancelled, None);
        }
    }

    /// Records the decision: with its tool call, or in a line of its own.
    fn record_decision(&mut self, id: DecisionId, answer: Option<&Answer>, end: &End<'_>) {
        let Some(decision) = self.decisions.get(id) else {
            return;
        };
        let (key, parent) = (decision.key, decision.subagent);
        let decided = Decided::new(decision, answer, end);
        let is_row = matches!(
            decision.subject,
            Subject::Permission { .. } | Subject::Access { .. }
        );
        let (entry, is_conflict) = (
            decision.entry,
            matches!(decision.subject, Subject::Conflict { .. }),
        );
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        if let Some(entry) = entry.and_then(|at| session.transcript_mut().get_mut(at)) {
            entry.decided.push(decided);
        } else if answer.is_some() && !is_row && !is_conflict {
            let parent = parent.filter(|at| session.transcript().task(*at).is_some());
            let text = decided.summary();
            session.transcript_mut().end_message(parent, end.at_ms);
            let at =
                session
                    .transcript_mut()
                    .notice(parent, Level::Info, "decision", text, end.at_ms);
            if let Some(entry) = session.transcript_mut().get_mut(at) {
                entry.decided.push(decided);
            }
        }
    }

    /// Removes a decision; with a result its request is answered. `rejected` is the outcome, if anything was
    /// decided.
    pub(crate) fn finish_decision(
        &mut self,
        id: DecisionId,
        result: Option<Result<Value, RpcError>>,
        how: How,
        rejected: Option<bool>,
    ) {
        let Some(decision) = self.decisions.all.remove(&id) else {
            return;
        };
        let answered = result.is_some();
        match (decision.ticket, result) {
            (Some(ticket), Some(result)) => self.respond(decision.proc, ticket, result),
            _ => self.end_conflict(&decision, answered && how != How::User),
        }
        if let (Subject::Access { .. }, Some(at), true) =
            (&decision.subject, decision.entry, answered)
        {
            let said_no = rejected == Some(true);
            let status = if said_no {
                ToolStatus::Failed
            } else {
                ToolStatus::Cancelled
            };
            self.end_row(decision.key, at, status, said_no);
        }
        let now = self.now().wall_ms;
        if let Some(at) = decision.entry
            && let Some(session) = self.sessions.get_mut(&decision.key)
            && let Some(entry) = session.transcript_mut().get_mut(at)
        {
            // There may be several decisions for it; the last one counts.
            let mut others = self.decisions.values().rev();
            let other = others
                .find(|other| other.key == decision.key && other.entry == Some(at))
                .map(|other| other.id);
            if other.is_none() {
                entry.note_decided(now);
            }
            if let Some(tool) = entry.tool_mut() {
                tool.decision = other;
                tool.rejected = rejected.unwrap_or(tool.rejected);
                tool.allowed = rejected.map_or(tool.allowed, |rejected| !rejected);
                if matches!(decision.subject, Subject::Permission { .. }) {
                    tool.cancelled = how == How::Cancelled;
                }
            }
        }
        if let Some(task) = decision.subagent {
            self.count_waiting(decision.key, task);
        }
        self.push(
            News::Decided {
                id,
                key: decision.key,
                how,
            },
            Wake::Now,
        );
        if !decision.checked {
            self.serve_judged(decision.proc);
        }
    }

    /// The agent withdraws a request; returns whether it was a decision.
    pub(crate) fn withdraw_decision(&mut self, proc: Proc, ticket: Ticket) -> bool {
        let mut all = self.decisions.values();
        let its = all.find(|decision| decision.proc == proc && decision.ticket == Some(ticket));
        let Some(id) = its.map(|decision| decision.id) else {
            return false;
        };
        let end = End {
            how: How::Withdrawn,
            at_ms: self.now().wall_ms,
            ..End::default()
        };
        self.record_decision(id, None, &end);
        self.finish_decision(id, Some(Err(RpcError::cancelled())), How::Withdrawn, None);
        true
    }
}
