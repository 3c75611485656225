//! Cursor's own methods. Its documentation calls three of them notifications; in practice they come as requests
//! that must be answered, in the nested `outcome` shape. Both forms are accepted.

use acp::FromValue;
use acp::message::RpcError;
use acp::methods;
use acp::peer::Ticket;
use acp::types::cursor;
use serde_json::Value;

use crate::decide::decision::{Choice, Phase, Plan, Question, Subject};
use crate::engine::Engine;
use crate::ids::{Key, Proc};
use crate::sessions::entry::Level;
use crate::sessions::todos::Todo;
use crate::tools::kind::{TaskState, ToolKind, ToolStatus};
use crate::tools::output::Output;
use crate::tools::tool_call::{Content, Image};

/// Where one of Cursor's messages belongs.
struct CursorPlace {
    /// The session.
    key: Key,
    /// The tool call it names.
    entry: Option<usize>,
    /// The task of the subagent it comes from.
    asker: Option<usize>,
}

impl Engine {
    /// Handles one of Cursor's methods; `ticket` is None for a notification.
    pub(crate) fn on_cursor(
        &mut self,
        proc: Proc,
        ticket: Option<Ticket>,
        method: &str,
        params: Value,
    ) {
        let wrong =
            match method {
                methods::CURSOR_ASK_QUESTION => cursor::AskQuestion::from_value(params)
                    .map(|p| self.on_question(proc, ticket, p)),
                methods::CURSOR_CREATE_PLAN => {
                    cursor::CreatePlan::from_value(params).map(|p| self.on_plan(proc, ticket, p))
                }
                methods::CURSOR_UPDATE_TODOS => {
                    cursor::UpdateTodos::from_value(params).map(|p| self.on_todos(proc, ticket, p))
                }
                methods::CURSOR_TASK => {
                    cursor::Task::from_value(params).map(|p| self.on_task(proc, ticket, p))
                }
                methods::CURSOR_GENERATE_IMAGE => cursor::GenerateImage::from_value(params)
                    .map(|p| self.on_image(proc, ticket, p)),
                _ => {
                    match ticket {
                        Some(ticket) => {
                            self.respond(proc, ticket, Err(RpcError::method_not_found(method)))
                        }
                        None => self.unknown_notification(method),
                    }
                    return;
                }
            };
        if let (Err(params), Some(ticket)) = (wrong, ticket) {
            let text = format!("a required field is missing or of the wrong type in {params}");
            self.respond(proc, ticket, Err(RpcError::invalid_params(text)));
        }
    }

    /// According to the documentation none of them names a session: use the tool call, else the running turn.
    fn cursor_place(&mut self, proc: Proc, place: &cursor::Place) -> Option<CursorPlace> {
        let by_id = place
            .session_id
            .as_ref()
            .and_then(|id| self.place(proc, id));
        let call = place.tool_call_id.as_ref().map(|id| id.as_str());
        let by_call = || {
            let mine = self
                .sessions
                .values()
                .filter(|session| session.agent() == proc.agent);
            mine.filter(|session| call.is_some_and(|id| session.transcript().tool(id).is_some()))
                .map(|s| s.key())
                .next_back()
        };
        let asker = by_id.and_then(|(_, asker)| asker);
        let key = by_id
            .map(|(key, _)| key)
            .or_else(by_call)
            .or_else(|| self.busy_session(proc.agent))?;
        let entry = call.and_then(|id| self.sessions.get(&key)?.transcript().tool_of(id, asker));
        Some(CursorPlace { key, entry, asker })
    }

    fn on_question(&mut self, proc: Proc, ticket: Option<Ticket>, asked: cursor::AskQuestion) {
        let place = self.cursor_place(proc, &asked.place);
        let Some(ticket) = ticket else {
            // A question without a request cannot be answered, only shown.
            if let Some(CursorPlace { key, .. }) = place {
                let prompts = asked.questions.into_iter().map(|question| question.prompt);
                let lines: Vec<String> = asked.title.into_iter().chain(prompts).collect();
                self.add_notice(key, Level::Info, "agent", lines.join("\n"));
            }
            return;
        };
        let place = place.filter(|place| !self.is_cancelling(place.key));
        let Some(CursorPlace { key, entry, asker }) = place else {
            return self.respond_with(proc, ticket, &cursor::QuestionOutcome::Cancelled);
        };
        let questions: Vec<Question> = asked
            .questions
            .into_iter()
            .map(|question| Question {
                id: question.id,
                prompt: question.prompt,
                options: question
                    .options
                    .into_iter()
                    .map(|o| Choice {
                        id: o.id,
                        label: o.label,
                    })
                    .collect(),
                multiple: question.allow_multiple,
                free_text: false,
                required: false,
                value_type: None,
                default: None,
            })
            .collect();
        let title = asked
            .title
            .or_else(|| questions.first().map(|q| q.prompt.clone()))
            .unwrap_or_default();
        self.ask(
            proc,
            Some(ticket),
            key,
            title,
            entry,
            asker,
            Subject::Questions { questions },
        );
    }

    fn on_plan(&mut self, proc: Proc, ticket: Option<Ticket>, plan: cursor::CreatePlan) {
        let place = self.cursor_place(proc, &plan.place);
        let place = place.filter(|place| !self.is_cancelling(place.key));
        let Some(CursorPlace { key, entry, asker }) = place else {
            if let Some(ticket) = ticket {
                self.respond_with(proc, ticket, &cursor::PlanOutcome::Cancelled);
            }
            return;
        };
        // Keeps its place in the conversation, even after it is answered.
        let entry = entry.or_else(|| self.make_tool(key, &plan.place, ticket, "plan"));
        let title = plan.name.clone().unwrap_or_else(|| "Plan".to_owned());
        self.change_tool(key, entry, |tool| {
            if tool.title.is_empty() {
                tool.title.clone_from(&title);
            }
            if tool.kind == ToolKind::Unspecified {
                tool.kind = ToolKind::Plan;
            }
            if tool.content.is_empty() {
                let overview = plan.overview.iter().map(String::as_str);
                let parts: Vec<&str> = overview.chain([plan.plan.as_str()]).collect();
                let text = parts.join("\n\n");
                tool.content = vec![Content::Text(Output::new(text))];
            }
        });
        let todos = from_wire(plan.todos);
        let phases: Vec<Phase> = plan
            .phases
            .into_iter()
            .map(|phase| Phase {
                name: phase.name,
                todos: from_wire(phase.todos),
            })
            .collect();
        let Some(ticket) = ticket else {
            // A notification, not a question.
            if !todos.is_empty() {
                self.update_todos(key, todos, false);
            }
            return;
        };
        let plan = Plan {
            name: plan.name,
            overview: plan.overview,
            text: plan.plan,
            todos,
            phases,
        };
        let subject = Subject::Plan(Box::new(plan));
        self.ask(proc, Some(ticket), key, title, entry, asker, subject);
    }

    fn on_todos(&mut self, proc: Proc, ticket: Option<Ticket>, update: cursor::UpdateTodos) {
        let Some(CursorPlace { key, .. }) = self.cursor_place(proc, &update.place) else {
            if let Some(ticket) = ticket {
                self.respond_with(proc, ticket, &cursor::TodosOutcome::Cancelled);
            }
            return;
        };
        self.update_todos(key, from_wire(update.todos), update.merge);
        if let Some(ticket) = ticket {
            let list = self
                .sessions
                .get(&key)
                .map(|session| session.todos().to_vec())
                .unwrap_or_default();
            let todos = list
                .into_iter()
                .map(|todo| cursor::Todo {
                    id: Some(todo.id),
                    content: Some(todo.content),
                    status: Some(todo.status),
                })
                .collect();
            self.respond_with(proc, ticket, &cursor::TodosOutcome::Accepted { todos });
        }
    }

    fn on_task(&mut self, proc: Proc, ticket: Option<Ticket>, news: cursor::Task) {
        if let Some(CursorPlace { key, entry, asker }) = self.cursor_place(proc, &news.place) {
            // A known subagent already has its block, whatever the call is named.
            let told = self.told_task(key, asker, &news);
            let at = told
                .or(entry)
                .or_else(|| self.make_tool(key, &news.place, ticket, "task"));
            if let (Some(at), Some(call)) = (at, &news.place.tool_call_id)
                && entry.is_none()
                && let Some(session) = self.sessions.get_mut(&key)
            {
                session
                    .transcript_mut()
                    .alias_tool(call.as_str(), asker, at);
            }
            let kind = news.subagent_type.as_str();
            self.change_tool(key, at, |tool| {
                let task = crate::sessions::subagents::task_in(tool);
                task.named = Some(news.description.clone()).filter(|text| !text.is_empty());
                if task.subagent.is_empty() || kind != "unspecified" {
                    kind.clone_into(&mut task.subagent);
                }
                task.model = news.model.clone().or(task.model.take());
                task.agent_id = news.agent_id.clone().or(task.agent_id.take());
                task.duration_ms = news.duration_ms.or(task.duration_ms);
                if news.duration_ms.is_some() && task.is_live() {
                    task.state = Some(TaskState::Idle);
                }
                if tool.title.is_empty() {
                    tool.title.clone_from(&news.description);
                }
                if tool.kind == ToolKind::Unspecified {
                    tool.kind = ToolKind::Think;
                }
                if news.duration_ms.is_some() && !tool.is_over() {
                    tool.status = ToolStatus::Completed;
                } else if tool.status == ToolStatus::Pending {
                    tool.status = ToolStatus::InProgress;
                }
                if tool.raw_input.is_none() {
                    tool.raw_input = Some(serde_json::json!({ "prompt": news.prompt }));
                }
            });
            if let Some(at) = at {
                self.name_task(key, at);
            }
        }
        if let Some(ticket) = ticket {
            let outcome = cursor::TaskOutcome::Completed {
                agent_id: news.agent_id,
                duration_ms: news.duration_ms,
            };
            self.respond_with(proc, ticket, &outcome);
        }
    }

    /// The block of the subagent a task is about, if there is one: it has the id the task names, or it has no
    /// call and the same name.
    fn told_task(&self, key: Key, asker: Option<usize>, news: &cursor::Task) -> Option<usize> {
        let transcript = &self.sessions.get(&key)?.transcript();
        let by_id = news.agent_id.as_deref().and_then(|id| {
            let mut tasks = transcript.tasks().rev();
            tasks.find(|(_, task)| task.is_called(id))
        });
        let same = |name: &Option<String>| name.as_deref() == Some(news.description.as_str());
        let by_name = || {
            transcript.tasks().find(|(at, task)| {
                let entry = transcript.get(*at);
                task.by_itself
                    && task.named.is_none()
                    && entry.is_some_and(|entry| entry.parent == asker)
                    && (same(&task.title) || same(&task.purpose))
            })
        };
        by_id.or_else(by_name).map(|(at, _)| at)
    }

    fn on_image(&mut self, proc: Proc, ticket: Option<Ticket>, news: cursor::GenerateImage) {
        if let Some(CursorPlace { key, entry, .. }) = self.cursor_place(proc, &news.place) {
            let at = entry.or_else(|| self.make_tool(key, &news.place, ticket, "image"));
            let image = Image {
                path: news.file_path.clone().map(crate::policy::paths::local),
                description: news.description.clone(),
            };
            self.change_tool(key, at, |tool| {
                if tool.title.is_empty() {
                    tool.title = format!("Image: {}", image.description);
                }
                tool.status = ToolStatus::Completed;
                tool.image = Some(image);
            });
        }
        if let Some(ticket) = ticket {
            let outcome = match news.file_path {
                Some(file_path) => cursor::ImageOutcome::Generated { file_path },
                None => cursor::ImageOutcome::Rejected {
                    reason: Some("no file path was given".to_owned()),
                },
            };
            self.respond_with(proc, ticket, &outcome);
        }
    }

    /// The tool call a task or an image belongs to, when it was not announced before.
    fn make_tool(
        &mut self,
        key: Key,
        place: &cursor::Place,
        ticket: Option<Ticket>,
        what: &str,
    ) -> Option<usize> {
        let entries = self.sessions.get(&key)?.transcript().entries().len();
        let own = match ticket {
            Some(ticket) => format!("{what}-{}", ticket.number()),
            None => format!("{what}-told-{entries}"),
        };
        let id = place.tool_call_id.clone().unwrap_or_else(|| own.into());
        self.upsert_tool(
            key,
            None,
            acp::types::ToolCall {
                id,
                ..acp::types::ToolCall::default()
            },
            false,
        )
    }

    fn change_tool(
        &mut self,
        key: Key,
        at: Option<usize>,
        change: impl FnOnce(&mut crate::tools::tool_call::ToolCall),
    ) {
        let now = self.now().wall_ms;
        let Some(at) = at else { return };
        let Some(entry) = self
            .sessions
            .get_mut(&key)
            .and_then(|s| s.transcript_mut().get_mut(at))
        else {
            return;
        };
        if let Some(tool) = entry.tool_mut() {
            change(tool);
            let (title, over) = (tool.title.clone(), tool.is_over());
            entry.text = title;
            if over && !entry.done {
                entry.done = true;
                entry.duration_ms = Some(entry.took(now));
            }
        }
    }
}

/// Todos as they are kept.
pub(crate) fn from_wire(todos: Vec<cursor::Todo>) -> Vec<Todo> {
    todos
        .into_iter()
        .map(|todo| Todo {
            id: todo.id.unwrap_or_default(),
            content: todo.content.unwrap_or_default(),
            status: todo.status.unwrap_or_default(),
            ..Todo::default()
        })
        .collect()
}
