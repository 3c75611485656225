//! `elicitation/*`: a form the user fills in, or a page to visit, as a decision.

use acp::message::RpcError;
use acp::peer::Ticket;
use acp::types as wire;

use crate::decide::decision::{Choice, Question, Subject};
use crate::engine::Engine;
use crate::ids::Proc;

impl Engine {
    pub(super) fn on_elicitation(
        &mut self,
        proc: Proc,
        ticket: Ticket,
        request: wire::ElicitationRequest,
    ) {
        let place = match &request.session_id {
            Some(id) => self.place(proc, id),
            None => self.busy_session(proc.agent).map(|key| (key, None)),
        };
        let Some((key, asker)) = place.filter(|(key, _)| !self.is_cancelling(*key)) else {
            return self.respond_with(proc, ticket, &wire::ElicitationResponse::Cancel);
        };
        let subject = match request.mode {
            wire::ElicitationMode::Form(form) => Subject::Form {
                questions: form.fields.into_iter().map(question).collect(),
            },
            wire::ElicitationMode::Url { url, .. } => Subject::Url { url },
            wire::ElicitationMode::Unknown { mode } => {
                let error =
                    RpcError::invalid_params(format!("elicitation mode {mode} is not known here"));
                return self.respond(proc, ticket, Err(error));
            }
        };
        let entry = request.tool_call_id.and_then(|id| {
            let transcript = &self.sessions.get(&key)?.transcript();
            transcript.tool_of(id.as_str(), asker)
        });
        self.ask(
            proc,
            Some(ticket),
            key,
            request.message,
            entry,
            asker,
            subject,
        );
    }
}

/// A field of a form as a question.
fn question(field: wire::FormField) -> Question {
    let choice = |choice: wire::FormChoice| Choice {
        id: choice.value,
        label: choice.title,
    };
    let yes_no = || {
        [("true", "Yes"), ("false", "No")].map(|(id, label)| Choice {
            id: id.to_owned(),
            label: label.to_owned(),
        })
    };
    let (value_type, options, multiple) = match field.kind {
        wire::FieldKind::Text { .. } => ("string", Vec::new(), false),
        wire::FieldKind::Select { choices, .. } => {
            ("string", choices.into_iter().map(choice).collect(), false)
        }
        wire::FieldKind::MultiSelect { choices, .. } => {
            ("array", choices.into_iter().map(choice).collect(), true)
        }
        wire::FieldKind::Number { integer, .. } => (
            if integer { "integer" } else { "number" },
            Vec::new(),
            false,
        ),
        wire::FieldKind::Boolean => ("boolean", yes_no().into(), false),
        wire::FieldKind::Unknown { .. } => ("string", Vec::new(), false),
    };
    let prompt = match &field.description {
        Some(description) => format!("{}: {description}", field.title),
        None => field.title,
    };
    Question {
        id: field.key,
        prompt,
        free_text: options.is_empty(),
        options,
        multiple,
        required: field.required,
        value_type: Some(value_type.to_owned()),
        default: field.default,
    }
}
