//! Commands run for agents: their output goes to the engine; their background processes are killed on release.

use engine::agents::launch::{Exit, Launch};
use rustix::process::Signal;

use super::Driver;
use super::child::{Child, STDERR_WAIT, signal_family};
use crate::family::Family;
use crate::process;

impl Driver {
    pub(super) fn child_of_terminal(&self, terminal: u64) -> Option<(Option<u32>, Family)> {
        self.shared
            .state
            .lock()
            .terminals
            .get(&terminal)
            .map(Child::handle)
    }

    pub(super) async fn run_terminal(&self, terminal: u64, launch: Launch, family: &Family) {
        let exit = match process::spawn_merged(&launch, family) {
            Err(error) => {
                let message = format!("{}: {error}\n", launch.command.join(" "));
                self.with(|engine| engine.on_terminal_output(terminal, message.as_bytes()));
                // As a shell reports a command it cannot run.
                Exit {
                    code: Some(127),
                    ..Exit::default()
                }
            }
            Ok((mut child, output)) => {
                if let Some(pid) = child.id() {
                    self.shared.keeper.watch(pid);
                }
                let doomed = {
                    let mut state = self.shared.state.lock();
                    let entry = state.terminals.get_mut(&terminal);
                    entry.is_some_and(|entry| {
                        entry.pid = child.id();
                        entry.doomed
                    })
                };
                if let Some(pid) = child.id().filter(|_| doomed) {
                    process::signal_group(pid, Signal::KILL);
                }
                let reader = self.clone();
                let mut read = tokio::spawn(async move {
                    process::read_all(output, |piece| {
                        reader.with(|engine| engine.on_terminal_output(terminal, piece));
                    })
                    .await;
                });
                let status = child.wait().await.ok();
                // A background process can hold the pipe open: take what has been read so far.
                let _ = tokio::time::timeout(STDERR_WAIT, &mut read).await;
                process::exit(status, Vec::new())
            }
        };
        self.with(|engine| engine.on_terminal_exit(terminal, &exit));
        let left = {
            let family = family.clone();
            tokio::task::spawn_blocking(move || family.lives(&[])).await
        };
        let Some((pid, doomed)) = self.end_terminal(terminal, left.unwrap_or(false)) else {
            return;
        };
        if doomed {
            signal_family(None, family.clone(), Signal::KILL).await;
        }
        // The whole group is dead, even if the system has not reaped it yet.
        pid.inspect(|pid| self.shared.keeper.forget(*pid));
    }

    /// A command has exited; `left`: some of its processes still run. Returns its group and whether it was to
    /// be terminated, unless it is kept: background processes are killed on release.
    fn end_terminal(&self, terminal: u64, left: bool) -> Option<(Option<u32>, bool)> {
        let mut state = self.shared.state.lock();
        let child = state.terminals.get_mut(&terminal)?;
        child.exited = true;
        let (pid, doomed) = (child.pid, child.doomed);
        // Do not mistake a later group with the same number for this one.
        child.pid = pid.filter(|pid| process::group_lives(*pid));
        if !doomed && (child.pid.is_some() || left) {
            return None;
        }
        state.terminals.remove(&terminal);
        Some((pid, doomed))
    }
}
