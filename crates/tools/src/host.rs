//! What every face of the agent does alike: listen until the client is gone, and carry out what a profile answers.

use std::{cell::Cell, io, rc::Rc, time::Duration};

use acp::Message;
use serde_json::{Value, json};
use tokio::{
    signal::unix::{SignalKind, signal},
    task::spawn_local,
};

use crate::{
    login::Login,
    process,
    profile::{Answer, Reaction, Update},
    wire::{Arrived, Deaf, Wire, read_stdin},
};

/// How long after an answer the updates come that a client may take for the next thing.
const AFTER_ANSWER: Duration = Duration::from_millis(20);

/// How often a signed-out `authenticate` looks whether the user has logged in.
const LOGIN_LOOK: Duration = Duration::from_millis(100);

/// The exit code of a process that SIGTERM ended, as a shell has it.
const SIGTERM_EXIT: i32 = 143;

/// What a scenario may switch off.
#[derive(Debug, Default)]
pub struct Manners {
    pub ignore_eof: Cell<bool>,
    pub ignore_sigterm: Cell<bool>,
    pub deaf: Deaf,
}

/// Listens to the client and hands on each message; ends the process when stdin ends or SIGTERM comes.
pub async fn listen(
    wire: &Wire,
    manners: &Rc<Manners>,
    mut on_message: impl FnMut(Value, Message),
) -> io::Result<()> {
    let mut arrived = read_stdin(manners.deaf.clone())?;
    loop {
        let arrived = arrived.recv().await;
        if manners.deaf.is_set() {
            // Not even input that was already read.
            std::future::pending::<()>().await;
        }
        match arrived {
            Some(Arrived::Message(value, message)) => {
                wire.record().received(&value);
                // What an earlier answer left for later never comes amidst what this message causes.
                wire.send_late();
                on_message(value, message);
            }
            Some(Arrived::Junk(line)) => wire.record().note("junk", json!({ "line": line })),
            Some(Arrived::Eof) => {
                wire.record().note("eof", json!({}));
                if !manners.ignore_eof.get() {
                    process::exit(wire, 0);
                }
            }
            // The reader ended after its eof: only a signal can come now.
            None => std::future::pending().await,
        }
    }
}

/// Records SIGTERM and obeys it, unless the scenario says otherwise. From the very start: a scenario may ignore
/// it before anything is read.
pub fn watch_sigterm(wire: &Wire, manners: &Rc<Manners>) -> io::Result<()> {
    let mut terms = signal(SignalKind::terminate())?;
    let (wire, manners) = (wire.clone(), manners.clone());
    spawn_local(async move {
        while terms.recv().await.is_some() {
            wire.record().note("sigterm", json!({}));
            if !manners.ignore_sigterm.get() {
                process::exit(&wire, SIGTERM_EXIT);
            }
        }
    });
    Ok(())
}

/// Sends what a request caused: updates, the answer, and a moment later the rest.
pub fn perform(wire: &Wire, login: &Login, id: Value, reaction: Reaction) {
    send_updates(wire, &reaction.before);
    let after = reaction.after;
    let wire = wire.clone();
    match reaction.answer {
        Answer::Now(answer) => {
            wire.answer(&id, &answer);
            if !after.is_empty() {
                for update in after {
                    wire.hold_back(update.session, update.update);
                }
                spawn_local(async move {
                    tokio::time::sleep(AFTER_ANSWER).await;
                    wire.send_late();
                });
            }
        }
        Answer::WhenLoggedIn(value) => {
            let login = login.clone();
            spawn_local(async move {
                while !login.is_signed_in() {
                    tokio::time::sleep(LOGIN_LOOK).await;
                }
                wire.answer(&id, &Ok(value));
                send_updates(&wire, &after);
            });
        }
    }
}

fn send_updates(wire: &Wire, updates: &[Update]) {
    for update in updates {
        wire.update(&update.session, &update.update);
    }
}
