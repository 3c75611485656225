//! A client for the tests: starts the agent, talks to it line by line, and reads its record.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::needless_pass_by_value,
    dead_code
)]

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Nothing here takes this long; a test that reaches it has failed.
pub const LIMIT: Duration = Duration::from_secs(20);

pub struct Agent {
    pub dir: TempDir,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    stderr: Option<thread::JoinHandle<String>>,
    next_id: i64,
    /// Everything that came, in order; what was waited for included.
    pub seen: Vec<Value>,
    /// Lines that were no JSON.
    pub junk: Vec<String>,
}

/// Where a test's agent runs and keeps its state.
pub fn scratch() -> TempDir {
    tempfile::tempdir().unwrap()
}

pub fn command(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cursor-agent-demo"));
    command
        .current_dir(dir)
        .env("CURSOR_AGENT_DEMO_STATE", dir.join("state"))
        .env("CURSOR_AGENT_DEMO_SPEED", "fast")
        .env_remove("CURSOR_AGENT_DEMO_SIGNED_OUT");
    command
}

impl Agent {
    pub fn play(scenario: &Value) -> Self {
        Self::play_in(scratch(), scenario)
    }

    pub fn play_in(dir: TempDir, scenario: &Value) -> Self {
        fs::write(dir.path().join("scenario.json"), scenario.to_string()).unwrap();
        Self::start(dir, &["play", "scenario.json", "--record", "record.jsonl"])
    }

    pub fn start(dir: TempDir, args: &[&str]) -> Self {
        let mut command = command(dir.path());
        command.args(args);
        Self::spawn(dir, command)
    }

    pub fn spawn(dir: TempDir, mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::with_capacity(1 << 16, child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            loop {
                let mut line = Vec::new();
                match stdout.read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => return,
                    Ok(_) if sender.send(line).is_err() => return,
                    Ok(_) => {}
                }
            }
        });
        let mut stderr = child.stderr.take().unwrap();
        let stderr = thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stderr.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        Self {
            stdin: child.stdin.take(),
            dir,
            child,
            lines,
            stderr: Some(stderr),
            next_id: 0,
            seen: Vec::new(),
            junk: Vec::new(),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    pub fn send_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request; its id.
    pub fn ask(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub fn reply(&mut self, request: &Value, result: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    }

    /// The next line, whole; none at the end of the stream.
    pub fn line(&mut self) -> Option<Vec<u8>> {
        match self.lines.recv_timeout(LIMIT) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing came; so far: {:#?}", self.tail()),
        }
    }

    /// The next message, past any junk.
    pub fn next(&mut self) -> Option<Value> {
        loop {
            let line = self.line()?;
            match serde_json::from_slice::<Value>(&line) {
                Ok(message) => {
                    self.seen.push(message.clone());
                    return Some(message);
                }
                Err(_) => self.junk.push(String::from_utf8_lossy(&line).into_owned()),
            }
        }
    }

    pub fn wait_for(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let started = Instant::now();
        loop {
            assert!(
                started.elapsed() < LIMIT,
                "no {what}; so far: {:#?}",
                self.tail()
            );
            match self.next() {
                Some(message) if wanted(&message) => return message,
                Some(_) => {}
                None => panic!("ended without {what}; so far: {:#?}", self.tail()),
            }
        }
    }

    /// Nothing comes for this long.
    pub fn silent_for(&mut self, time: Duration) -> bool {
        match self.lines.recv_timeout(time) {
            Ok(line) => {
                let message = serde_json::from_slice(&line);
                self.seen.push(message.unwrap_or_default());
                false
            }
            Err(_) => true,
        }
    }

    /// The answer to a request of ours.
    pub fn answer(&mut self, id: i64) -> Value {
        self.wait_for("an answer", |message| {
            message["id"] == id && message["method"].is_null()
        })
    }

    /// Asks and waits: the result.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.answer(id);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The agent's next request of this method.
    pub fn request(&mut self, method: &str) -> Value {
        self.wait_for(method, |message| {
            message["method"] == method && !message["id"].is_null()
        })
    }

    pub fn update(&mut self, kind: &str) -> Value {
        let message = self.wait_for(kind, |message| {
            message["params"]["update"]["sessionUpdate"] == kind
        });
        message["params"]["update"].clone()
    }

    /// Initialize, authenticate and a new session, as Cursor's client does it; the session's id.
    pub fn handshake(&mut self) -> String {
        let picker = json!({ "_meta": { "parameterizedModelPicker": true } });
        self.call(
            "initialize",
            json!({ "protocolVersion": 1, "clientCapabilities": picker }),
        );
        self.call("authenticate", json!({ "methodId": "cursor_login" }));
        let cwd = self.dir.path().to_path_buf();
        let session = self.call("session/new", json!({ "cwd": cwd, "mcpServers": [] }));
        session["sessionId"].as_str().unwrap().to_owned()
    }

    pub fn prompt(&mut self, session: &str, text: &str) -> i64 {
        self.ask(
            "session/prompt",
            json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] }),
        )
    }

    /// The end of a turn: its stop reason.
    pub fn stop_reason(&mut self, prompt: i64) -> String {
        let answer = self.answer(prompt);
        answer["result"]["stopReason"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}"))
            .to_owned()
    }

    /// What the agent has said so far, chunks put together.
    pub fn said(&self) -> String {
        self.texts("agent_message_chunk")
    }

    pub fn texts(&self, kind: &str) -> String {
        self.seen
            .iter()
            .map(|message| &message["params"]["update"])
            .filter(|update| update["sessionUpdate"] == kind)
            .filter_map(|update| update["content"]["text"].as_str())
            .collect()
    }

    pub fn close_stdin(&mut self) {
        self.stdin.take();
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for the end of the process: how it ended and what it said on stderr.
    pub fn end(&mut self) -> (ExitStatus, String) {
        let status = self.exit_status();
        (status, self.stderr.take().unwrap().join().unwrap())
    }

    pub fn exit_status(&mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(started.elapsed() < LIMIT, "does not end");
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    pub fn record_file(&self) -> PathBuf {
        self.dir.path().join("record.jsonl")
    }

    pub fn record(&self) -> Vec<Value> {
        read_record(&self.record_file())
    }

    pub fn notes(&self, what: &str) -> Vec<Value> {
        let mut record = self.record();
        record.retain(|line| line["note"] == what);
        record
    }

    /// Waits until the record has a note.
    pub fn noted(&self, what: &str) -> Value {
        let started = Instant::now();
        loop {
            if let Some(note) = self.notes(what).pop() {
                return note;
            }
            assert!(
                started.elapsed() < LIMIT,
                "no note {what}: {:#?}",
                self.record()
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn tail(&self) -> Vec<Value> {
        let from = self.seen.len().saturating_sub(8);
        self.seen[from..].to_vec()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn read_record(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
