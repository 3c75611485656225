//! Requests from agents: dispatches each to the file that serves it. Each is answered once, even an unknown
//! one.

use acp::message::RpcError;
use acp::peer::Ticket;
use acp::types as wire;
use acp::{FromValue, methods};
use serde_json::Value;

use crate::engine::Engine;
use crate::ids::Proc;

impl Engine {
    /// Handles a request. It is always answered: now, or after a decision.
    pub(crate) fn on_request(&mut self, proc: Proc, ticket: Ticket, method: &str, params: Value) {
        match method {
            methods::SESSION_REQUEST_PERMISSION => {
                self.typed(proc, ticket, params, Self::on_permission)
            }
            methods::FS_READ_TEXT_FILE => {
                self.typed(proc, ticket, params, |engine, proc, ticket, request| {
                    engine.on_read(proc, ticket, &request)
                })
            }
            methods::FS_WRITE_TEXT_FILE => self.typed(proc, ticket, params, Self::on_write),
            methods::TERMINAL_CREATE => self.typed(proc, ticket, params, Self::on_terminal_create),
            methods::TERMINAL_OUTPUT
            | methods::TERMINAL_WAIT_FOR_EXIT
            | methods::TERMINAL_KILL
            | methods::TERMINAL_RELEASE => match wire::TerminalRequest::from_value(params) {
                Ok(request) => self.on_terminal(proc, ticket, method, &request),
                Err(_) => self.respond(
                    proc,
                    ticket,
                    Err(RpcError::invalid_params("terminalId is missing")),
                ),
            },
            methods::ELICITATION_CREATE => self.typed(proc, ticket, params, Self::on_elicitation),
            _ if method.starts_with("cursor/") => {
                self.on_cursor(proc, Some(ticket), method, params)
            }
            _ => {
                self.log("info", format!("unknown request {method}"));
                self.respond(proc, ticket, Err(RpcError::method_not_found(method)));
            }
        }
    }

    fn typed<T: FromValue>(
        &mut self,
        proc: Proc,
        ticket: Ticket,
        params: Value,
        serve: fn(&mut Self, Proc, Ticket, T),
    ) {
        match T::from_value(params) {
            Ok(request) => serve(self, proc, ticket, request),
            Err(params) => {
                let text = format!("a required field is missing or of the wrong type in {params}");
                self.respond(proc, ticket, Err(RpcError::invalid_params(text)));
            }
        }
    }
}
