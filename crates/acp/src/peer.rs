//! One end of a JSON-RPC connection, as a state machine: which calls wait for an answer, which requests owe one.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::Value;

use crate::lenient::FromValue;
use crate::message::{Id, Message, RpcError, call_line, error_line, result_line};
use crate::methods;
use crate::types::CancelRequest;

/// A call of ours that waits, or waited, for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(i64);

/// A request of the other side that owes, or owed, an answer.
///
/// It is our own number, so two open requests with the same id on the wire are two tickets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(u64);

impl CallId {
    /// The id on the wire.
    pub fn number(self) -> i64 {
        self.0
    }
}

impl Ticket {
    /// A number that is this ticket's alone on this connection.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// What a message means here.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming<W> {
    /// To be answered once, with the ticket.
    Request {
        /// What to answer with.
        ticket: Ticket,
        /// The method.
        method: String,
        /// Its params.
        params: Value,
    },
    /// Not to be answered.
    Notification {
        /// The method.
        method: String,
        /// Its params.
        params: Value,
    },
    /// The answer to a call of ours.
    Response {
        /// The call.
        call: CallId,
        /// What was noted when it was made.
        waiter: W,
        /// The result or error.
        result: Result<Value, RpcError>,
    },
    /// The other side no longer wants this one answered with more than `RpcError::cancelled()`. It still owes that.
    Cancelled {
        /// The request.
        ticket: Ticket,
    },
    /// A response to no request, or the cancellation of a request that is not open. Nothing to do.
    Stray {
        /// The id it names.
        id: Id,
    },
}

/// What was open when the connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed<W> {
    /// Calls that will get no answer, oldest first.
    pub waiters: Vec<(CallId, W)>,
    /// Requests that cannot be answered any more, oldest first.
    pub unanswered: Vec<Ticket>,
}

/// One end of a connection, either side. `W` is what the caller noted about why it asked.
///
/// Each waiter comes back exactly once: by `receive`, `forget` or `close`. Each ticket is answered at most once.
#[derive(Debug)]
pub struct Peer<W> {
    last_call: i64,
    calls: HashMap<i64, W>,
    last_ticket: u64,
    open: BTreeMap<Ticket, Id>,
    closed: bool,
}

impl<W> Default for Peer<W> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W> Peer<W> {
    /// A connection on which nothing was said yet.
    pub fn new() -> Self {
        Self {
            last_call: 0,
            calls: HashMap::new(),
            last_ticket: 0,
            open: BTreeMap::new(),
            closed: false,
        }
    }

    /// Makes a call: the line to write, and the id under which its answer comes.
    ///
    /// On a closed connection the waiter is kept too: the next `close` hands it back.
    pub fn request(
        &mut self,
        method: &str,
        params: impl Serialize,
        waiter: W,
    ) -> (CallId, Vec<u8>) {
        self.last_call += 1;
        let call = self.last_call;
        self.calls.insert(call, waiter);
        (
            CallId(call),
            call_line(Some(&Id::Number(call)), method, &params),
        )
    }

    /// The line of a notification.
    pub fn notify(&self, method: &str, params: impl Serialize) -> Vec<u8> {
        call_line(None, method, &params)
    }

    /// The line that asks to cancel a call, while it waits. Its answer still comes.
    pub fn cancel_call(&self, call: CallId) -> Option<Vec<u8>> {
        let waits = self.calls.contains_key(&call.0) && !self.closed;
        waits.then(|| {
            let request_id = Id::Number(call.0);
            self.notify(methods::CANCEL_REQUEST, CancelRequest { request_id })
        })
    }

    /// Takes a message in.
    pub fn receive(&mut self, message: Message) -> Incoming<W> {
        match message {
            Message::Request { id, method, params } => {
                self.last_ticket += 1;
                let ticket = Ticket(self.last_ticket);
                if !self.closed {
                    self.open.insert(ticket, id);
                }
                Incoming::Request {
                    ticket,
                    method,
                    params,
                }
            }
            Message::Notification { method, params } if method == methods::CANCEL_REQUEST => {
                self.cancelled(method, params)
            }
            Message::Notification { method, params } => Incoming::Notification { method, params },
            Message::Response { id, result } => {
                let found = own_number(&id)
                    .and_then(|call| Some((CallId(call), self.calls.remove(&call)?)));
                match found {
                    Some((call, waiter)) => Incoming::Response {
                        call,
                        waiter,
                        result,
                    },
                    None => Incoming::Stray { id },
                }
            }
        }
    }

    /// The line that answers a request. None when it was answered before, or the connection is closed.
    pub fn answer(&mut self, ticket: Ticket, result: Result<Value, RpcError>) -> Option<Vec<u8>> {
        match result {
            Ok(result) => self.answer_ok(ticket, &result),
            Err(error) => self.answer_err(ticket, &error),
        }
    }

    /// Like `answer`, with a result that is written as it is.
    pub fn answer_ok(&mut self, ticket: Ticket, result: &impl Serialize) -> Option<Vec<u8>> {
        let id = self.open.remove(&ticket)?;
        Some(result_line(&id, result))
    }

    /// Like `answer`, with an error.
    pub fn answer_err(&mut self, ticket: Ticket, error: &RpcError) -> Option<Vec<u8>> {
        let id = self.open.remove(&ticket)?;
        Some(error_line(&id, error))
    }

    /// The lines that answer every open request, oldest first: the other side is about to be let go.
    pub fn answer_all(&mut self, error: &RpcError) -> Vec<Vec<u8>> {
        let open = std::mem::take(&mut self.open);
        open.values().map(|id| error_line(id, error)).collect()
    }

    /// What was noted about each call that waits, in no order.
    pub fn waiters(&self) -> impl Iterator<Item = &W> {
        self.calls.values()
    }

    /// Whether the request still owes an answer.
    pub fn is_open(&self, ticket: Ticket) -> bool {
        self.open.contains_key(&ticket)
    }

    /// What was noted about a call that waits.
    pub fn waiter(&self, call: CallId) -> Option<&W> {
        self.calls.get(&call.0)
    }

    /// How many calls wait.
    pub fn waiting(&self) -> usize {
        self.calls.len()
    }

    /// Stops waiting for a call, after a time-out: its answer will be a stray.
    pub fn forget(&mut self, call: CallId) -> Option<W> {
        self.calls.remove(&call.0)
    }

    /// The connection ended: what can be neither answered nor hoped for any more.
    pub fn close(&mut self) -> Closed<W> {
        self.closed = true;
        let mut waiters: Vec<_> = self
            .calls
            .drain()
            .map(|(call, waiter)| (CallId(call), waiter))
            .collect();
        waiters.sort_by_key(|(call, _)| *call);
        Closed {
            waiters,
            unanswered: std::mem::take(&mut self.open).into_keys().collect(),
        }
    }

    fn cancelled(&self, method: String, params: Value) -> Incoming<W> {
        match CancelRequest::from_value(params) {
            // Of two open requests with one id the newest is cancelled: the sender has lost track of the older
            // one.
            Ok(CancelRequest { request_id }) => {
                let newest = self.open.iter().rev().find(|(_, id)| **id == request_id);
                match newest {
                    Some((&ticket, _)) => Incoming::Cancelled { ticket },
                    None => Incoming::Stray { id: request_id },
                }
            }
            Err(params) => Incoming::Notification { method, params },
        }
    }
}

/// The number we gave out, also from an agent that turned it into `"7"` or `7.0`.
fn own_number(id: &Id) -> Option<i64> {
    match id {
        Id::Number(number) => Some(*number),
        Id::String(text) => text.parse().ok(),
        Id::OtherNumber(number) => i64::from_value(Value::Number(number.clone())).ok(),
        Id::Null => None,
    }
}
