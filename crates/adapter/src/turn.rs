//! One turn: one run of the CLI, its lines as they come, and how it ended.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use acp::types::{SessionUpdate, TokenUsage};
use acp::{Frame, LineBuffer};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::time::Instant;

use crate::cancel::Cancel;
use crate::cli::{self, describe_exit};
use crate::error::Error;
use crate::log;
use crate::options::{Mode, Options};
use crate::process::{self, Launch, Running};
use crate::prompt::fits_argument;
use crate::redact;
use crate::text;
use crate::todos::Todos;
use crate::translate::{Line, Translator};

/// How much is read at once.
const BLOCK_BYTES: usize = 64 * 1024;

/// How long the CLI may take to end after its result.
const AFTER_RESULT: Duration = Duration::from_secs(3);

/// How long it may run on when it has closed its output.
const AFTER_OUTPUT: Duration = Duration::from_secs(3);

/// How long its output may stay open when it has ended.
const AFTER_EXIT: Duration = Duration::from_millis(500);

/// Lines of complaint that an error shows, and how long they may be.
const TAIL_LINES: usize = 40;
const TAIL_LINE_BYTES: usize = 2000;
/// So much of a line is read: of a secret behind a cut, half would be left.
const LINE_BYTES: usize = 64 * 1024;

/// Flags an older CLI may not know. It is asked again without them then.
const OPTIONAL_FLAGS: [&str; 3] = ["--stream-partial-output", "--trust", "--approve-mcps"];

/// What a turn is about.
#[derive(Debug)]
pub struct Request {
    /// The session's directory.
    pub cwd: PathBuf,
    /// The prompt, as one text.
    pub prompt: String,
    /// The chat it goes on with.
    pub chat: String,
    /// The session's mode.
    pub mode: Mode,
    /// The session's model, when one was chosen.
    pub model: Option<String>,
    /// The session's todos.
    pub todos: Todos,
}

/// What a turn that went well leaves.
#[derive(Debug, Default)]
pub struct Done {
    /// The tokens it took.
    pub usage: Option<TokenUsage>,
    /// The CLI's id of the request.
    pub request_id: Option<String>,
}

/// What a turn leaves in any case.
#[derive(Debug)]
pub struct Ended {
    /// How it ended. None when it was cancelled.
    pub outcome: Option<Result<Done, Error>>,
    /// The session's todos now.
    pub todos: Todos,
    /// The chat the CLI worked in, if it said so.
    pub chat: Option<String>,
}

/// Where the updates of a turn go.
pub trait Sink {
    /// Takes one.
    fn update(&self, update: SessionUpdate);
    /// Waits until there is room for more.
    fn room(&self) -> impl Future<Output = ()>;
}

/// Flags that this CLI turned out not to know.
#[derive(Debug, Default, Clone)]
pub struct Unsupported(Vec<&'static str>);

/// Runs one turn to its end.
pub async fn run(
    options: &Options,
    request: Request,
    unsupported: &mut Unsupported,
    sink: &impl Sink,
    cancel: &Cancel,
) -> Ended {
    let mut by_stdin = !fits_argument(&request.prompt);
    let todos = request.todos.clone();
    loop {
        let translator = Translator::new(
            request.cwd.clone(),
            request.mode,
            options.force,
            todos.clone(),
        );
        if cancel.why().is_some() {
            // Before anything began: nothing is spent on it.
            return Ended {
                outcome: None,
                todos: translator.todos,
                chat: None,
            };
        }
        let program = match cli::find(options) {
            Ok(program) => program,
            Err(error) => return Ended::failed(translator, error),
        };
        let launch = launch(options, &program, &request, unsupported, by_stdin);
        log::debug(&format!(
            "turn: {} in {}, a prompt of {} bytes by {}",
            program.display(),
            request.cwd.display(),
            request.prompt.len(),
            if by_stdin { "stdin" } else { "argument" }
        ));
        let running = match process::spawn(&launch) {
            Ok(running) => running,
            Err(error) if error.kind() == std::io::ErrorKind::ArgumentListTooLong && !by_stdin => {
                // The limit counts the environment too, and is not the same everywhere.
                by_stdin = true;
                continue;
            }
            Err(error) => return Ended::failed(translator, cli::spawn_error(&program, &error)),
        };
        let mut run = Run {
            translator,
            running,
            stderr: Tail::default(),
            junk: Tail::default(),
            status: None,
        };
        let cancelled = run.follow(sink, cancel).await;
        if !cancelled && let Some(flag) = run.unknown_flag(unsupported) {
            log::warn(&format!(
                "this CLI does not support {flag}: continuing without it"
            ));
            unsupported.0.push(flag);
            continue;
        }
        return run.end(cancelled, sink);
    }
}

/// The command of a turn.
fn launch(
    options: &Options,
    program: &Path,
    request: &Request,
    unsupported: &Unsupported,
    by_stdin: bool,
) -> Launch {
    let mut args: Vec<OsString> = options.passed_on.iter().map(OsString::from).collect();
    let known = |flag: &&str| !unsupported.0.contains(flag);
    args.extend(["--print", "--output-format", "stream-json"].map(OsString::from));
    args.extend(
        OPTIONAL_FLAGS
            .iter()
            .filter(|f| known(f))
            .map(OsString::from),
    );
    args.push("--workspace".into());
    args.push(request.cwd.clone().into());
    if let Some(model) = &request.model {
        args.extend(["--model", model].map(OsString::from));
    }
    if request.mode != Mode::Agent {
        args.extend(["--mode", request.mode.id()].map(OsString::from));
    }
    args.extend(["--resume", &request.chat].map(OsString::from));
    if options.force {
        args.push("--force".into());
    }
    let stdin = by_stdin.then(|| request.prompt.clone().into_bytes());
    if !by_stdin {
        args.push(request.prompt.clone().into());
    }
    Launch {
        program: program.to_owned(),
        args,
        cwd: request.cwd.clone(),
        stdin,
    }
}

/// A run under way.
struct Run {
    translator: Translator,
    running: Running,
    stderr: Tail,
    /// Lines on stdout that are no events: some failures are only told there.
    junk: Tail,
    status: Option<ExitStatus>,
}

impl Run {
    /// Reads the run to its end, and sees to it that nothing of it is left. Says whether it was cancelled.
    async fn follow(&mut self, sink: &impl Sink, cancel: &Cancel) -> bool {
        let cancelled = tokio::select! {
            biased;
            () = cancel.wait() => true,
            () = self.read(sink) => false,
        };
        if cancelled {
            self.running.stop().await;
        } else if self.status.is_none() {
            // It has said all it had to say and does not leave.
            self.running.stop().await;
        } else {
            self.running.sweep();
        }
        cancelled
    }

    async fn read(&mut self, sink: &impl Sink) {
        let mut lines = LineBuffer::default();
        let mut block = vec![0; BLOCK_BYTES];
        let mut errors = vec![0; 8 * 1024];
        let (mut stdout, mut stderr) = (self.running.stdout.take(), self.running.stderr.take());
        let mut exited = false;
        // When to stop waiting for what is missing.
        let mut deadline: Option<Instant> = None;
        loop {
            if exited && stdout.is_none() && stderr.is_none() {
                break;
            }
            let (out_open, err_open) = (stdout.is_some(), stderr.is_some());
            tokio::select! {
                biased;
                // What was printed comes before what became of the printer.
                read = read_some(stdout.as_mut(), &mut block), if out_open => match read {
                    0 => {
                        stdout = None;
                        deadline = sooner(deadline, if exited { AFTER_EXIT } else { AFTER_OUTPUT });
                    }
                    read => {
                        lines.push(&block[..read]);
                        while let Some(frame) = lines.next_frame() {
                            if self.take(frame, sink).await {
                                deadline = sooner(deadline, AFTER_RESULT);
                            }
                        }
                    }
                },
                read = read_some(stderr.as_mut(), &mut errors), if err_open => match read {
                    0 => stderr = None,
                    read => self.stderr.push(&errors[..read], |line| log::warn(&format!("cli: {line}"))),
                },
                status = self.running.exited(), if !exited => {
                    exited = true;
                    self.status = status;
                    // What it started and left would keep its output open.
                    self.running.sweep();
                    deadline = sooner(None, AFTER_EXIT);
                },
                () = sleep_until(deadline), if deadline.is_some() => break,
            }
        }
        while let Some(frame) = lines.finish() {
            self.take(frame, sink).await;
        }
        self.stderr
            .finish(|line| log::warn(&format!("cli: {line}")));
        self.junk.finish(|_| {});
    }

    /// Takes a line. Says whether it was the result.
    async fn take(&mut self, frame: Frame<'_>, sink: &impl Sink) -> bool {
        let line = match frame {
            Frame::Line(line) => line,
            Frame::TooLong { bytes } => {
                log::warn(&format!(
                    "a line of {bytes} bytes from the CLI was left out"
                ));
                return false;
            }
        };
        let had_result = self.translator.result.is_some();
        match self.translator.line(line) {
            Line::Event(updates) => {
                for update in updates {
                    sink.room().await;
                    sink.update(update);
                }
            }
            Line::Junk => {
                let shown = redact::mask(&text::plain(&String::from_utf8_lossy(line)));
                log::warn(&format!("not an event: {}", text::headline(&shown, 200)));
                self.junk.push(shown.as_bytes(), |_| {});
                self.junk.push(b"\n", |_| {});
            }
        }
        !had_result && self.translator.result.is_some()
    }

    /// A flag this CLI refused to know, before it did anything.
    fn unknown_flag(&self, unsupported: &Unsupported) -> Option<&'static str> {
        if self.translator.began {
            return None;
        }
        let said = self.stderr.text();
        let complains = said.contains("unknown option") || said.contains("unexpected argument");
        let flag = OPTIONAL_FLAGS
            .iter()
            .find(|flag| complains && said.contains(**flag) && !unsupported.0.contains(flag));
        flag.copied()
    }

    fn end(mut self, cancelled: bool, sink: &impl Sink) -> Ended {
        let outcome = (!cancelled).then(|| self.outcome());
        let ok = matches!(outcome, Some(Ok(_)));
        for update in self.translator.finish(ok) {
            sink.update(update);
        }
        Ended {
            outcome,
            chat: self.translator.chat,
            todos: self.translator.todos,
        }
    }

    fn outcome(&mut self) -> Result<Done, Error> {
        let (exit, mut detail) = describe_exit(self.status);
        let stderr = self.stderr.text();
        if !stderr.is_empty() {
            detail["stderr"] = Value::String(stderr.clone());
        }
        let said = [
            self.translator.complaint.clone().unwrap_or_default(),
            stderr,
            self.junk.text(),
        ];
        let said = said
            .iter()
            .map(|text| text.trim())
            .find(|text| !text.is_empty());
        match self.translator.result.take() {
            Some(result) => match result.error {
                None => {
                    if !self.status.is_some_and(|status| status.success()) {
                        log::warn(&format!(
                            "the CLI exited with {exit} after a successful result"
                        ));
                    }
                    Ok(Done {
                        usage: result.usage,
                        request_id: result.request_id,
                    })
                }
                Some(error) => {
                    if let Some(id) = result.request_id {
                        detail["requestId"] = json!(id);
                    }
                    let reason = match (error.trim(), said) {
                        ("", Some(said)) => said.to_owned(),
                        ("", None) => {
                            format!("Cursor's CLI failed ({exit}) without giving a reason.")
                        }
                        (error, _) => error.to_owned(),
                    };
                    Err(Error::failed(reason, detail))
                }
            },
            None => {
                let what = if self.translator.is_silent() {
                    format!("Cursor's CLI ended without an answer ({exit}).")
                } else {
                    format!(
                        "Cursor's CLI ended in the middle of its answer ({exit}): it may be incomplete."
                    )
                };
                let reason = match said {
                    // A clean failure says itself what is wrong.
                    Some(said) if !self.translator.began => said.to_owned(),
                    Some(said) => format!("{said}\n{what}"),
                    None => what,
                };
                Err(Error::failed(reason, detail))
            }
        }
    }
}

impl Ended {
    fn failed(translator: Translator, error: Error) -> Self {
        Self {
            outcome: Some(Err(error)),
            todos: translator.todos,
            chat: None,
        }
    }
}

/// Reads what there is; 0 at the end.
async fn read_some(
    from: Option<&mut (impl tokio::io::AsyncRead + Unpin)>,
    block: &mut [u8],
) -> usize {
    match from {
        Some(from) => from.read(block).await.unwrap_or_default(),
        None => 0,
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn sooner(deadline: Option<Instant>, from_now: Duration) -> Option<Instant> {
    let new = Instant::now() + from_now;
    Some(deadline.map_or(new, |old| old.min(new)))
}

/// The last lines of a stream, cut to a readable length.
#[derive(Debug, Default)]
struct Tail {
    lines: VecDeque<String>,
    part: Vec<u8>,
    /// What the last line says about the next one.
    pieces: secrets::Pieces,
}

impl Tail {
    /// Takes what was read; calls `line` with each line that is complete now.
    fn push(&mut self, mut bytes: &[u8], mut line: impl FnMut(&str)) {
        while let Some(at) = bytes.iter().position(|byte| *byte == b'\n') {
            self.grow(&bytes[..at]);
            self.end_line(&mut line);
            bytes = &bytes[at + 1..];
        }
        self.grow(bytes);
    }

    fn finish(&mut self, mut line: impl FnMut(&str)) {
        self.end_line(&mut line);
    }

    fn grow(&mut self, bytes: &[u8]) {
        let room = LINE_BYTES.saturating_sub(self.part.len());
        self.part.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end_line(&mut self, line: &mut impl FnMut(&str)) {
        let text = text::plain(&String::from_utf8_lossy(&self.part));
        self.part.clear();
        let text = redact::mask_line(&text, &mut self.pieces);
        let text = text::cut(text.trim_end(), TAIL_LINE_BYTES).0;
        if text.trim().is_empty() {
            return;
        }
        line(text);
        if self.lines.len() == TAIL_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(text.to_owned());
    }

    fn text(&self) -> String {
        Vec::from_iter(self.lines.iter().map(String::as_str)).join("\n")
    }
}
