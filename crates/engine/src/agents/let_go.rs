//! Lets an agent's process go: answers its requests, fails calls that wait for it, and gives it time to exit.

use acp::message::RpcError;

use crate::agents::agent::Waiter;
use crate::effect::Effect;
use crate::engine::Engine;
use crate::ids::{AgentId, Proc};
use crate::screen::news::News;
use crate::screen::outbox::Wake;

/// How long a process may take to exit before it is killed.
const END_GRACE_MS: u64 = 2_000;

impl Engine {
    /// Lets the process go: closes its stdin, and kills it if it does not exit.
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

    /// Answers the requests of the process, closes its stdin, and fails calls that wait for it.
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

    /// Calls to a process that is gone get no response: the user's own get an error instead.
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
