//! Lets an agent's process go: what it asked is answered, whoever waits for it is told, and it has some time to end.

use acp::message::RpcError;

use crate::agents::agent::Waiter;
use crate::effect::Effect;
use crate::engine::Engine;
use crate::ids::{AgentId, Proc};
use crate::screen::news::News;
use crate::screen::outbox::Wake;

/// How long a process that is to end may take before it is killed.
const END_GRACE_MS: u64 = 2_000;

impl Engine {
    /// Lets the process go: its stdin is closed, and what does not end by itself is killed.
    pub(crate) fn end_process(&mut self, id: AgentId) {
        let Some(agent) = self.agents.get_mut(&id) else {
            return;
        };
        if agent.is_up() {
            agent.let_go();
            let proc = agent.proc();
            self.let_go(proc, END_GRACE_MS);
        }
    }

    /// Answers what the process still waits for and closes its stdin; whoever waits for it is told.
    pub(crate) fn let_go(&mut self, proc: Proc, grace_ms: u64) {
        let Some(agent) = self.live(proc) else { return };
        let lines = agent.peer_mut().answer_all(&RpcError::cancelled());
        for line in lines {
            self.write(proc.agent, line);
        }
        self.withdraw_calls(|call| call.proc == proc);
        self.take_accesses(|access| access.proc == proc);
        self.effect(Effect::End { proc, grace_ms });
        self.forget_calls(proc);
    }

    /// Calls of a process that is gone will not be answered: the user's own get an error instead.
    pub(crate) fn forget_calls(&mut self, proc: Proc) {
        let Some(agent) = self.live(proc) else { return };
        let name = agent.spec().agent.clone();
        for (_, waiter) in agent.peer_mut().close().waiters {
            if let Waiter::List { result: id, .. }
            | Waiter::Delete { result: id }
            | Waiter::Logout { result: id }
            | Waiter::LogIn { result: id, .. } = waiter
            {
                let result = Err(format!("{name} stopped before answering"));
                self.push(News::Result { id, result }, Wake::Now);
            }
        }
    }
}
