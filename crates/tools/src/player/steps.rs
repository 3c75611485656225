//! The steps of a scenario, each carried out.

use std::{
    collections::BTreeMap,
    future::Future,
    io::{self, Write},
    path::{Path, PathBuf},
    pin::Pin,
    time::Duration,
};

use acp::RpcError;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{
    Player,
    context::{Context, Flow, Kind, Named},
};
use crate::{
    host, process,
    profile::merge,
    scenario::{BigText, Chunks, Hang, Ids, Request, Step},
    session_store,
    wire::{ClientAnswer, call},
};

/// Chunks go out in writes of about this size.
const WRITE_BYTES: usize = 64 * 1024;

/// A client must answer what is pending when it cancels a turn; this long it is waited for.
const ANSWER_AFTER_CANCEL: Duration = Duration::from_secs(2);

/// A text of this size is not kept for `session/load`.
const REMEMBERED_BYTES: u64 = 1024 * 1024;

impl Player {
    pub fn steps<'a>(
        &'a self,
        context: &'a mut Context,
        steps: &'a [Step],
    ) -> Pin<Box<dyn Future<Output = Flow> + 'a>> {
        Box::pin(async move {
            for step in steps {
                if context.obeys_cancel && context.is_cancelled() {
                    return Flow::Ended;
                }
                if self.step(context, step).await == Flow::Ended {
                    return Flow::Ended;
                }
            }
            Flow::On
        })
    }

    async fn step(&self, context: &mut Context, step: &Step) -> Flow {
        match step {
            Step::Chunk {
                kind,
                text,
                message_id,
                session,
            } => {
                let text = context.vars.fill_text(text);
                let mut update = chunk(kind.update_name(), &text);
                if let Some(id) = message_id {
                    update["messageId"] = json!(context.vars.fill_text(id));
                }
                self.update(context, session.as_deref(), &update);
            }
            Step::Update { update, session } => {
                let update = context.vars.fill(update);
                self.update(context, session.as_deref(), &update);
            }
            Step::Chunks(chunks) => return self.chunks(context, chunks).await,
            Step::BigText(big) => self.big_text(context, big),
            Step::Request {
                request,
                id,
                name,
                wait,
                then,
            } => {
                let id = match id {
                    Some(id) => context.vars.fill(id),
                    None => self.own_id(),
                };
                let answer = self.ask(context, &id, request);
                if !wait {
                    if let Some(name) = name {
                        let answer = Some(answer);
                        context.named.insert(name.clone(), Named { id, answer });
                    }
                    return Flow::On;
                }
                if let Some(name) = name {
                    let named = Named {
                        id: id.clone(),
                        answer: None,
                    };
                    context.named.insert(name.clone(), named);
                }
                return self.answered(context, &id, answer, then).await;
            }
            Step::Join { name, then } => {
                let named = context.named.get_mut(name);
                let Some((id, answer)) =
                    named.and_then(|named| Some((named.id.clone(), named.answer.take()?)))
                else {
                    self.fail(&format!("join: no request named {name} waits"));
                };
                return self.answered(context, &id, answer, then).await;
            }
            Step::Withdraw(name) => {
                let Some(named) = context.named.get(name) else {
                    self.fail(&format!("withdraw: no request named {name}"));
                };
                let params = json!({ "requestId": named.id });
                self.wire.notify("$/cancel_request", Some(params));
            }
            Step::Notify(Request { method, params }) => {
                let params = params.as_ref().map(|params| context.vars.fill(params));
                self.wire.notify(method, params);
            }
            Step::Raw(text) => self.wire.raw(context.vars.fill_text(text).as_bytes()),
            Step::RawBytes(bytes) => self.wire.raw(bytes),
            Step::RawRepeat(raw) => self.wire.raw_repeat(raw.text.as_bytes(), raw.times),
            Step::Repeat { times, steps } => {
                for n in 0..*times {
                    context.vars.n = n;
                    if self.steps(context, steps).await == Flow::Ended {
                        return Flow::Ended;
                    }
                    tokio::task::yield_now().await;
                }
            }
            Step::WaitMs(ms) => {
                let pause = tokio::time::sleep(Duration::from_millis(*ms));
                if context.unless_cancelled(pause).await.is_none() {
                    return Flow::Ended;
                }
            }
            Step::WaitCancel => {
                let cancelled = context.cancelled.wait_for(|cancelled| *cancelled);
                if cancelled.await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
            Step::Expect { method, timeout_ms } => {
                return self.expect(context, method, *timeout_ms).await;
            }
            Step::Stop { reason, with } => {
                let mut result = json!({ "stopReason": reason });
                merge(&mut result, &context.vars.fill(with));
                self.reply(context, &Ok(result));
            }
            Step::Reply(value) => {
                let result = context.vars.fill(value);
                self.reply(context, &Ok(result));
            }
            Step::Error(error) => {
                let error = context.vars.fill(error);
                context.answered = true;
                let id = &context.request;
                self.wire
                    .send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
            Step::Profile => {
                let id = context.request.clone();
                if let (Some(reaction), Some(id)) = (context.reaction.take(), id) {
                    context.answered = true;
                    host::perform(&self.wire, &self.login, id, reaction);
                }
            }
            Step::WriteFile(file) => {
                let path = in_cwd(context, &file.path);
                let text = context.vars.fill_text(&file.text);
                if let Err(error) = write_file(&path, &text) {
                    self.fail(&format!("write_file: {}: {error}", path.display()));
                }
            }
            Step::RemoveFile(path) => {
                let path = in_cwd(context, path);
                if let Err(error) = std::fs::remove_file(&path) {
                    self.fail(&format!("remove_file: {}: {error}", path.display()));
                }
            }
            Step::Store(usage) => {
                let id = context.vars.fill_text("${session}");
                if let Some(path) = session_store::path(&id)
                    && let Err(error) = session_store::write(&path, *usage)
                {
                    self.fail(&format!("store: {}: {error}", path.display()));
                }
            }
            Step::Stderr(text) => {
                let text = context.vars.fill_text(text);
                let _ = io::stderr().write_all(text.as_bytes());
            }
            Step::Note(text) => self.wire.record().note(text, json!({})),
            Step::Exit(code) => process::exit(&self.wire, *code),
            Step::Signal(signal) => process::die_of(&self.wire, *signal),
            Step::Hang(what) => {
                if *what == Hang::Process {
                    self.manners.deaf.set();
                }
                std::future::pending::<()>().await;
            }
            Step::IgnoreEof => self.manners.ignore_eof.set(true),
            Step::IgnoreSigterm => self.manners.ignore_sigterm.set(true),
            // What it means for the turn was seen when the turn began.
            Step::IgnoreCancel => {}
            Step::CloseStdout => {
                if let Err(error) = self.wire.close_stdout() {
                    self.fail(&format!("close_stdout: {error}"));
                }
            }
            Step::Spawn {
                command,
                inherit,
                own_group,
            } => match process::spawn(command, *inherit, *own_group) {
                Ok(pid) => self
                    .wire
                    .record()
                    .note("spawned", json!({ "pid": pid, "command": command })),
                Err(error) => self.fail(&format!("spawn: {}: {error}", command.join(" "))),
            },
        }
        Flow::On
    }

    fn reply(&self, context: &mut Context, answer: &Result<Value, RpcError>) {
        context.answered = true;
        let id = context.request.clone().unwrap_or_default();
        self.wire.answer(&id, answer);
    }

    fn update(&self, context: &Context, session: Option<&str>, update: &Value) {
        let session = match session {
            Some(session) => context.vars.fill_text(session),
            None => context.vars.session.clone(),
        };
        self.wire.update(&session, update);
        if context.kind == Kind::Turn && is_history(update) {
            self.profile
                .borrow_mut()
                .sessions()
                .remember(&session, update);
        }
    }

    async fn chunks(&self, context: &Context, chunks: &Chunks) -> Flow {
        let session = &context.vars.session;
        let (before, after) = around_text(session, chunks.kind.update_name());
        let numbered = chunks.text.contains("${n}");
        let message = json!({
            "jsonrpc": "2.0", "method": "session/update",
            "params": { "sessionId": session, "update": chunk(chunks.kind.update_name(), &chunks.text) },
        });
        self.wire.record().sent(&message, chunks.count);
        let mut vars = context.vars.clone();
        let mut text = json_inside(&vars.fill_text(&chunks.text));
        let mut block = Vec::with_capacity(WRITE_BYTES + 1024);
        for n in 0..chunks.count {
            if numbered {
                vars.n = n;
                text = json_inside(&vars.fill_text(&chunks.text));
            }
            block.extend_from_slice(&before);
            block.extend_from_slice(text.as_bytes());
            block.extend_from_slice(&after);
            if chunks.every_ms > 0 {
                self.wire.lines(&block);
                block.clear();
                let pause = tokio::time::sleep(Duration::from_millis(chunks.every_ms));
                if context.unless_cancelled(pause).await.is_none() {
                    return Flow::Ended;
                }
            } else if chunks.single_writes || block.len() >= WRITE_BYTES {
                self.wire.lines(&block);
                block.clear();
                // A cancel may have come meanwhile.
                tokio::task::yield_now().await;
                if context.obeys_cancel && context.is_cancelled() {
                    return Flow::Ended;
                }
            }
        }
        self.wire.lines(&block);
        let bytes = chunks.count.saturating_mul(chunks.text.len() as u64);
        if context.kind == Kind::Turn && !numbered && bytes < REMEMBERED_BYTES {
            let times = usize::try_from(chunks.count).unwrap_or(0);
            let said = chunk(chunks.kind.update_name(), &chunks.text.repeat(times));
            self.profile
                .borrow_mut()
                .sessions()
                .remember(session, &said);
        }
        Flow::On
    }

    fn big_text(&self, context: &Context, big: &BigText) {
        let (before, after) = around_text(&context.vars.session, big.kind.update_name());
        let text = json_inside(&big.text);
        self.wire
            .big_message(&before, text.as_bytes(), big.times, &after);
    }

    fn own_id(&self) -> Value {
        match self.scenario.ids {
            Ids::Number => json!(self.wire.next_id()),
            Ids::String => json!(format!("agent-{}", self.wire.next_id())),
            Ids::Same => self.latest_client_id.borrow().clone(),
        }
    }

    fn ask(
        &self,
        context: &Context,
        id: &Value,
        request: &Request,
    ) -> oneshot::Receiver<ClientAnswer> {
        let params = request
            .params
            .as_ref()
            .map(|params| context.vars.fill(params));
        self.wire.request(id, &request.method, params)
    }

    /// Waits for the client's answer, then plays what the scenario has for it.
    async fn answered(
        &self,
        context: &mut Context,
        id: &Value,
        mut answer: oneshot::Receiver<ClientAnswer>,
        then: &BTreeMap<String, Vec<Step>>,
    ) -> Flow {
        let mut got = context.unless_cancelled(&mut answer).await;
        if got.is_none() {
            // Cancelled: the client still owes this answer, and ours waits for it.
            got = tokio::time::timeout(ANSWER_AFTER_CANCEL, answer).await.ok();
        }
        let Some(Ok(answer)) = got else {
            self.wire.record().note("unanswered", json!({ "id": id }));
            return Flow::Ended;
        };
        let key = answer_key(&answer);
        let steps = then.get(&key).or_else(|| then.get("*"));
        let Some(steps) = steps else { return Flow::On };
        // What a cancelled decision leads to belongs to the turn that is being cancelled.
        let obeys = context.obeys_cancel;
        context.obeys_cancel = obeys && key != "cancelled";
        let flow = self.steps(context, steps).await;
        context.obeys_cancel = obeys;
        flow
    }

    async fn expect(&self, context: &mut Context, method: &str, timeout_ms: Option<u64>) -> Flow {
        let mut more = self.heard_more.subscribe();
        let from = context.heard;
        let found = async {
            loop {
                let found = {
                    let heard = self.heard.borrow();
                    let unseen = heard.iter().enumerate().skip(from);
                    unseen
                        .into_iter()
                        .find(|(_, heard)| *heard == method)
                        .map(|(index, _)| index)
                };
                if let Some(index) = found {
                    return index;
                }
                if more.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        let limit = timeout_ms.map_or(Duration::MAX, Duration::from_millis);
        match context
            .unless_cancelled(tokio::time::timeout(limit, found))
            .await
        {
            Some(Ok(index)) => {
                context.heard = index + 1;
                Flow::On
            }
            Some(Err(_)) => self.fail(&format!("expect: no {method} came in {limit:?}")),
            None => Flow::Ended,
        }
    }

    /// The scenario cannot be played as written: loud, so that the test fails for the right reason.
    fn fail(&self, message: &str) -> ! {
        process::complain(message);
        self.wire
            .record()
            .note("failed", json!({ "message": message }));
        process::exit(&self.wire, 2)
    }
}

fn write_file(path: &Path, text: &str) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    std::fs::write(path, text)
}

fn in_cwd(context: &Context, path: &str) -> PathBuf {
    Path::new(&context.vars.cwd).join(context.vars.fill_text(path))
}

/// Whether a step is in the list, at any depth.
pub fn contains(steps: &[Step], wanted: &impl Fn(&Step) -> bool) -> bool {
    steps.iter().any(|step| {
        wanted(step)
            || match step {
                Step::Repeat { steps, .. } => contains(steps, wanted),
                Step::Request { then, .. } | Step::Join { then, .. } => {
                    then.values().any(|steps| contains(steps, wanted))
                }
                _ => false,
            }
    })
}

/// Under which key of `then` an answer stands: the chosen option, the outcome, or `error`.
fn answer_key(answer: &ClientAnswer) -> String {
    let Ok(result) = answer else {
        return "error".to_owned();
    };
    let outcome = &result["outcome"];
    outcome["optionId"]
        .as_str()
        .or_else(|| outcome["outcome"].as_str())
        .or_else(|| result["action"].as_str())
        .unwrap_or("result")
        .to_owned()
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } })
}

/// The line of a chunk, cut where its text stands.
fn around_text(session: &str, kind: &str) -> (Vec<u8>, Vec<u8>) {
    // No session id and no method has this in it, and JSON does not escape it.
    const MARK: &str = "<the text>";
    let params = json!({ "sessionId": session, "update": chunk(kind, MARK) });
    let line = call(None, "session/update", Some(params)).to_string();
    match line.split_once(MARK) {
        Some((before, after)) => (before.into(), format!("{after}\n").into()),
        None => (line.into(), b"\n".to_vec()),
    }
}

/// A text as it stands between the quotes of a JSON string.
fn json_inside(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or_default()
        .to_owned()
}

/// Whether a later `session/load` replays it.
fn is_history(update: &Value) -> bool {
    matches!(
        update["sessionUpdate"].as_str(),
        Some(
            "agent_message_chunk"
                | "agent_thought_chunk"
                | "user_message_chunk"
                | "tool_call"
                | "tool_call_update"
                | "plan"
        )
    )
}
