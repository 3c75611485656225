//! A request to stop, which tasks on this thread wait for.

use std::cell::Cell;
use std::pin::pin;

use tokio::sync::Notify;

/// Who wants it stopped, which decides how it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// `session/cancel`, `session/close`, or the end of the connection.
    Session,
    /// `$/cancel_request`.
    Request,
}

/// Set at most once.
#[derive(Debug, Default)]
pub struct Cancel {
    why: Cell<Option<Why>>,
    set: Notify,
}

impl Cancel {
    /// Asks to stop. The first to ask counts.
    pub fn set(&self, why: Why) {
        if self.why.get().is_none() {
            self.why.set(Some(why));
            self.set.notify_waiters();
        }
    }

    /// Who asked, if anybody did.
    pub fn why(&self) -> Option<Why> {
        self.why.get()
    }

    /// Waits until a cancel is asked for.
    pub async fn wait(&self) {
        let mut set = pin!(self.set.notified());
        set.as_mut().enable();
        if self.why.get().is_none() {
            set.await;
        }
    }
}
