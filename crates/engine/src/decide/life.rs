//! A decision's life: asked, judged by the rules, shown, answered or withdrawn, recorded in the transcript. It ends once.

use acp::message::RpcError;
use acp::peer::Ticket;
use serde_json::Value;

use crate::decide::decision::{Answer, Ask, Decision};
use crate::effect::{Effect, Judging};
use crate::engine::{Engine, News, Refused};
use crate::ids::{DecisionId, Key, Proc};
use crate::inbound::serve::title_of;
use crate::policy::{Action, call};
use crate::screen::outbox::Wake;
use crate::sessions::entry::Level;

impl Engine {
    /// Puts a decision before the user; of a permission the rules are asked first. `asker` is the task of the subagent that asks, where that is known; else
    /// it is the one whose tool call is asked about.
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
        ask: Ask,
    ) {
        let id = self.last_decision.advance();
        let transcript = self.sessions.get(&key).map(|session| &session.transcript);
        let subagent = asker.or_else(|| transcript?.get(entry?)?.parent);
        let places = match &ask {
            Ask::Access { access, .. } => {
                access.judged.as_ref().map(|judged| judged.places.clone())
            }
            _ => None,
        };
        let session = self.sessions.get_mut(&key);
        let tool = session.and_then(|session| session.transcript.get_mut(entry?)?.tool_mut());
        let is_permission = matches!(ask, Ask::Permission { .. });
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
            asked_ms: self.now.wall_ms,
            ask,
            checked,
            judged: None,
            revision: 0,
            shown,
            places: places.unwrap_or_default(),
        };
        self.decisions.insert(id, decision);
        if checked {
            self.announce(id);
        } else {
            self.judge_decision(id);
        }
    }

    /// The user is to hear of a decision, or that the call it is about changed.
    pub(crate) fn announce(&mut self, id: DecisionId) {
        if let Some(decision) = self.decisions.get(&id) {
            let (key, subagent) = (decision.key, decision.subagent);
            if let Some(task) = subagent {
                self.count_waiting(key, task);
            }
            self.push(News::Decision { id }, Wake::Now);
        }
    }

    fn judge_decision(&mut self, id: DecisionId) {
        let Some(decision) = self.decisions.get(&id) else {
            return;
        };
        let session = self.sessions.get(&decision.key);
        let tool = decision
            .entry
            .and_then(|at| session?.transcript.get(at)?.tool());
        if let Some(tool) = tool {
            let case = Box::new(self.case(decision.key, tool));
            let revision = decision.revision;
            let whose = Judging::Decision { id, revision };
            self.effects.push(Effect::Judge { whose, case });
        }
    }

    /// A call may have changed while its permission waits: it is judged and shown again, and what was typed for the
    /// old one decides nothing.
    pub(crate) fn recheck_decisions(&mut self, key: Key, entry: usize) {
        let session = self.sessions.get(&key);
        let Some(tool) = session.and_then(|session| session.transcript.get(entry)?.tool()) else {
            return;
        };
        if tool.decision.is_none() {
            return;
        }
        let shown = call::shown(tool);
        let title = title_of(tool);
        let outdated = |decision: &&Decision| {
            let is_its = decision.key == key && decision.entry == Some(entry);
            is_its && matches!(decision.ask, Ask::Permission { .. }) && decision.shown != shown
        };
        let outdated = self.decisions.values().filter(outdated);
        let changed: Vec<DecisionId> = outdated.map(|decision| decision.id).collect();
        for decision in &changed {
            if let Some(decision) = self.decisions.get_mut(decision) {
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

    /// The rules have judged it: they answer it, or the user is asked.
    pub(crate) fn decide_permission(&mut self, id: DecisionId) {
        let Some(decision) = self.decisions.get_mut(&id) else {
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
                let tool = session.transcript.get(entry?)?.tool()?;
                session.always.get(&call::signature(tool)).cloned()
            }),
        };
        if let Some((action, rule)) = said
            && self.answer_by_rule(id, action, rule)
        {
            return;
        }
        self.announce(id);
    }

    /// Answers a decision.
    pub fn answer(
        &mut self,
        id: DecisionId,
        answer: &Answer,
        how: &'static str,
    ) -> Result<(), Refused> {
        self.answer_by(id, answer, how, None)
    }

    /// Answers a decision for the user; an answer given by a rule leaves a line that names it.
    pub fn answer_by(
        &mut self,
        id: DecisionId,
        answer: &Answer,
        how: &'static str,
        rule: Option<String>,
    ) -> Result<(), Refused> {
        let decision = self.decisions.get(&id).filter(|decision| decision.checked);
        let decision = decision.ok_or_else(|| {
            format!(
                "there is no decision {}: it was answered or withdrawn",
                id.0
            )
        })?;
        if rule.is_some() && matches!(decision.ask, Ask::Conflict { .. }) {
            return Err("no rule decides about unsaved text".to_owned());
        }
        if answer
            .revision
            .is_some_and(|seen| seen != decision.revision)
        {
            return Err("the call changed while you decided; nothing was answered".to_owned());
        }
        let (key, title, entry) = (decision.key, decision.title.clone(), decision.entry);
        let reply = decision.reply(&self.agent_name(key), answer)?;
        let own_words = match (&decision.ask, &answer.reason) {
            (Ask::Pick { .. }, Some(words)) if answer.skip => Some(words.clone()),
            _ => None,
        };
        let mut access = None;
        match &decision.ask {
            Ask::Access { access: asked, .. } if reply.result.is_none() => {
                access = Some((**asked).clone());
            }
            Ask::Permission { .. } if reply.always && how == "user" => {
                let at = answer.at.as_deref().unwrap_or("before");
                self.remember(key, entry, reply.rejected == Some(true), at);
            }
            _ => {}
        }
        if let Some(text) = own_words.filter(|text| !text.trim().is_empty()) {
            // A permission's answer has no place for words: they are the next prompt. Queued first, since the answer may
            // end the turn.
            let spec = crate::sessions::session::PromptSpec {
                text,
                ..Default::default()
            };
            let prompt = self.prompt(key, spec)?;
            let _ = self.queue_move(key, prompt, 1);
        }
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

    /// Answers by a rule, or by what the user said for good. What is allowed by one is allowed once: an agent that does
    /// not offer that has to ask.
    pub(crate) fn answer_by_rule(&mut self, id: DecisionId, action: Action, rule: String) -> bool {
        let answer = Answer {
            accept: action == Action::Allow,
            reject: action == Action::Reject,
            ..Answer::default()
        };
        self.answer_by(id, &answer, "policy", Some(rule)).is_ok()
    }

    /// Remembers an answer that was meant for good: some agents forget it.
    fn remember(&mut self, key: Key, entry: Option<usize>, rejected: bool, at: &str) {
        let Some(session) = self.sessions.get_mut(&key) else {
            return;
        };
        let tool = entry.and_then(|at| session.transcript.get(at)?.tool());
        if let Some(tool) = tool {
            let action = if rejected {
                Action::Reject
            } else {
                Action::Allow
            };
            let said = format!("your “always” of {at}");
            session.always.insert(call::signature(tool), (action, said));
        }
    }

    /// Ends the decisions that match, each answered as cancelled.
    pub(crate) fn end_decisions(&mut self, matches: impl Fn(&Decision) -> bool, how: &'static str) {
        let ids: Vec<DecisionId> = self
            .decisions
            .values()
            .filter(|d| matches(d))
            .map(|d| d.id)
            .collect();
        for id in ids {
            let reply = self
                .decisions
                .get(&id)
                .and_then(|decision| decision.reply("", &Answer::cancelled()).ok());
            self.finish_decision(id, reply.and_then(|reply| reply.result), how, None);
        }
    }

    /// Takes a decision off the list; with a result its request is answered. `rejected` is what was decided, if
    /// anything was.
    pub(crate) fn finish_decision(
        &mut self,
        id: DecisionId,
        result: Option<Result<Value, RpcError>>,
        how: &'static str,
        rejected: Option<bool>,
    ) {
        let Some(decision) = self.decisions.remove(&id) else {
            return;
        };
        let answered = result.is_some();
        match (decision.ticket, result) {
            (Some(ticket), Some(result)) => self.respond(decision.proc, ticket, result),
            _ => self.end_conflict(&decision, answered && how != "user"),
        }
        if let (Ask::Access { .. }, Some(at), true) = (&decision.ask, decision.entry, answered) {
            let said_no = rejected == Some(true);
            let status = if said_no { "failed" } else { "cancelled" };
            self.end_row(decision.key, at, status, said_no);
        }
        if let Some(entry) = decision.entry
            && let Some(session) = self.sessions.get_mut(&decision.key)
            && let Some(tool) = session
                .transcript
                .get_mut(entry)
                .and_then(|entry| entry.tool_mut())
        {
            // It may be asked about more than once; the last word counts.
            let mut others = self.decisions.values().rev();
            tool.decision = others
                .find(|other| other.key == decision.key && other.entry == Some(entry))
                .map(|other| other.id);
            tool.rejected = rejected.unwrap_or(tool.rejected);
            tool.allowed = rejected.map_or(tool.allowed, |rejected| !rejected);
            if matches!(decision.ask, Ask::Permission { .. }) {
                tool.cancelled = how == "cancelled";
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

    /// The agent takes back what it asked: whether that was a decision.
    pub(crate) fn withdraw_decision(&mut self, proc: Proc, ticket: Ticket) -> bool {
        let mut all = self.decisions.values();
        let its = all.find(|decision| decision.proc == proc && decision.ticket == Some(ticket));
        let Some(id) = its.map(|decision| decision.id) else {
            return false;
        };
        self.finish_decision(id, Some(Err(RpcError::cancelled())), "withdrawn", None);
        true
    }
}
