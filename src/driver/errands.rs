//! Runs errands: our own commands, run to completion for their output.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use engine::Engine;
use engine::ids::ResultId;
use rustix::process::Signal;

use super::Driver;
use super::child::{STDERR_WAIT, await_family, signal_family};
use crate::errand::{self, Errand, Outcome};
use crate::error::Error;
use crate::process;

impl Driver {
    /// Runs a command and returns the number under which the editor gets its output as a `result`.
    pub fn run(&self, errand: Errand) -> ResultId {
        let id = self.with(Engine::promise);
        self.spawn(move |driver| async move {
            let result = driver.run_errand(&errand).await;
            let result = result.and_then(|done| Ok(serde_json::to_value(done)?));
            let result = result.map_err(|error| error.to_string());
            driver.with(|engine| engine.tell_result(id, result));
        });
        id
    }

    async fn run_errand(&self, errand: &Errand) -> Result<Outcome, Error> {
        let family = self.shared.families.found();
        let program = errand.command.first().cloned().unwrap_or_default();
        let mut child = process::spawn(&errand.launch(), &family)
            .map_err(|source| Error::Command { program, source })?;
        let pid = child.id();
        if let Some(pid) = pid {
            self.shared.keeper.watch(pid);
            self.shared.state.lock().errands.insert(pid);
        }
        // It gets no input.
        drop(child.stdin.take());
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let mut exited = None;
        let ended = {
            let reading = async {
                let mut out = pin!(errand::collect(stdout, &mut out));
                let mut err = pin!(errand::collect(stderr, &mut err));
                let mut open = (true, true);
                poll_fn(|context| {
                    open.0 = open.0 && out.as_mut().poll(context).is_pending();
                    open.1 = open.1 && err.as_mut().poll(context).is_pending();
                    if open == (false, false) {
                        Poll::Ready(())
                    } else {
                        Poll::Pending
                    }
                })
                .await;
            };
            let ending = async {
                exited = process::until_gone(&mut child, reading, STDERR_WAIT).await;
                if exited.is_none() {
                    exited = child.wait().await.ok();
                }
            };
            tokio::time::timeout(errand.timeout(), ending).await
        };
        if ended.is_err() {
            signal_family(pid, family.clone(), Signal::KILL).await;
            exited = child.wait().await.ok();
        }
        // Its background processes are of no use.
        signal_family(pid, family.clone(), Signal::TERM).await;
        if let Some(pid) = pid {
            self.spawn(move |driver| async move {
                await_family(pid, &family).await;
                driver.shared.keeper.forget(pid);
                driver.shared.state.lock().errands.remove(&pid);
            });
        }
        let exit = process::exit(exited, Vec::new());
        Ok(Outcome::new(&exit, ended.is_err(), &out, &err))
    }
}
