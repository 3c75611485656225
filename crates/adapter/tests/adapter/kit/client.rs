//! A client: starts the adapter, talks to it line by line, and holds everything that passes against the schema.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Double, schema};

/// Nothing here takes this long; a test that reaches it has failed.
pub const LIMIT: Duration = Duration::from_secs(30);

pub struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    stderr: Option<thread::JoinHandle<String>>,
    next_id: i64,
    methods: HashMap<i64, String>,
    /// Everything that came, in order.
    pub seen: Vec<Value>,
    /// Answers that came while another was waited for.
    answers: HashMap<i64, Value>,
}

/// The adapter's command, in the double's home.
pub fn command(double: &Double) -> Command {
    let home = double.home();
    let path = format!("{}:/usr/bin:/bin", home.join("bin").display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_cursor-agent-acp"));
    command
        .current_dir(home)
        .env("HOME", home)
        .env("PATH", path)
        .env_remove("XDG_STATE_HOME")
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("CURSOR_CONFIG_DIR")
        .env_remove("CURSOR_AGENT_ACP_RUN")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

impl Client {
    /// Starts the adapter with these arguments.
    pub fn start(double: &Double, args: &[&str]) -> Self {
        Self::spawn(command(double).args(args))
    }

    /// Starts the adapter by this command.
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        thread::spawn(move || {
            let mut reader = BufReader::new(stdout);
            loop {
                let mut line = Vec::new();
                if reader.read_until(b'\n', &mut line).unwrap_or(0) == 0
                    || sender.send(line).is_err()
                {
                    return;
                }
            }
        });
        let mut stderr = child.stderr.take().unwrap();
        let stderr = thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            stderr: Some(stderr),
            next_id: 0,
            methods: HashMap::new(),
            seen: Vec::new(),
            answers: HashMap::new(),
        }
    }

    /// Starts the adapter and says hello.
    pub fn ready(double: &Double, args: &[&str]) -> Self {
        let mut client = Self::start(double, args);
        client.initialize();
        client
    }

    /// Starts the adapter and opens a session.
    pub fn in_session(double: &Double, args: &[&str]) -> (Self, String) {
        let mut client = Self::ready(double, args);
        let session = client.new_session(&double.work());
        (client, session)
    }

    pub fn initialize(&mut self) -> Value {
        self.call("initialize", json!({ "protocolVersion": 1 }))
            .unwrap()
    }

    pub fn new_session(&mut self, cwd: &str) -> String {
        let answer = self
            .call("session/new", json!({ "cwd": cwd, "mcpServers": [] }))
            .unwrap();
        answer["sessionId"].as_str().unwrap().to_owned()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes bytes as they are.
    pub fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        schema::check_call(method, &params);
        let line = json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string();
        self.write(format!("{line}\n").as_bytes());
    }

    /// Sends a request; its answer is got with `answer`.
    pub fn send(&mut self, method: &str, params: Value) -> i64 {
        schema::check_call(method, &params);
        self.send_unchecked(method, params)
    }

    /// Likewise, with params no client should send.
    pub fn send_unchecked(&mut self, method: &str, params: Value) -> i64 {
        self.next_id += 1;
        let id = self.next_id;
        self.methods.insert(id, method.to_owned());
        let line =
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
        self.write(format!("{line}\n").as_bytes());
        id
    }

    /// Waits for the answer to a request.
    pub fn answer(&mut self, id: i64) -> Result<Value, Value> {
        let until = Instant::now() + LIMIT;
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return match answer.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(answer["result"].clone()),
                };
            }
            assert!(
                self.take(until),
                "no answer to {}: {:#?}",
                self.methods[&id],
                self.seen
            );
        }
    }

    pub fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// One prompt, and what it is answered with.
    pub fn prompt(&mut self, session: &str, text: &str) -> Result<Value, Value> {
        let id = self.send_prompt(session, text);
        self.answer(id)
    }

    pub fn send_prompt(&mut self, session: &str, text: &str) -> i64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.send(
            "session/prompt",
            json!({ "sessionId": session, "prompt": prompt }),
        )
    }

    /// Waits until something that came fits.
    pub fn wait_for(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + LIMIT;
        loop {
            if let Some(found) = self.seen.iter().find(|message| fits(message)) {
                return found.clone();
            }
            assert!(self.take(until), "never came: {what}: {:#?}", self.seen);
        }
    }

    /// Waits until a text is among what the agent said.
    pub fn wait_for_text(&mut self, text: &str) {
        let until = Instant::now() + LIMIT;
        while !self.text().contains(text) {
            assert!(self.take(until), "never said: {text}: {:#?}", self.seen);
        }
    }

    /// The updates so far.
    pub fn updates(&self) -> Vec<Value> {
        let updates = self.seen.iter();
        updates
            .filter(|message| message["method"] == "session/update")
            .map(|message| message["params"]["update"].clone())
            .collect()
    }

    /// The updates of a kind.
    pub fn updates_of(&self, kind: &str) -> Vec<Value> {
        let mut updates = self.updates();
        updates.retain(|update| update["sessionUpdate"] == kind);
        updates
    }

    /// What the agent said, joined.
    pub fn text(&self) -> String {
        join(&self.updates_of("agent_message_chunk"))
    }

    /// What the agent thought, joined.
    pub fn thoughts(&self) -> String {
        join(&self.updates_of("agent_thought_chunk"))
    }

    /// A tool call as all news of it make it.
    pub fn tool_call(&self, id: &str) -> Value {
        let mut call = json!({});
        for update in self.updates() {
            if update["toolCallId"] == id {
                for (key, value) in update.as_object().unwrap() {
                    call[key] = value.clone();
                }
            }
        }
        call
    }

    /// Closes stdin.
    pub fn close(&mut self) {
        self.stdin = None;
    }

    /// Kills the adapter as the system does.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the adapter's end; its code and what it wrote to stderr.
    pub fn end(mut self) -> (ExitStatus, String) {
        let until = Instant::now() + LIMIT;
        let status = loop {
            // Whatever still comes is read, so that nothing waits for us.
            self.take(Instant::now());
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < until, "it does not end");
            thread::sleep(Duration::from_millis(5));
        };
        let stderr = self.stderr.take().unwrap().join().unwrap();
        (status, stderr)
    }

    /// Stops reading stdout, and waits for the adapter's end.
    pub fn end_without_reader(mut self) -> (ExitStatus, String) {
        let (_, nobody) = channel();
        // The reading thread ends with the next line, and the pipe with it.
        self.lines = nobody;
        self.end()
    }

    /// Takes one line; false when none came in time, or none can come any more.
    fn take(&mut self, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        let line = match self.lines.recv_timeout(left) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return false,
        };
        assert_eq!(line.last(), Some(&b'\n'), "a line without an end");
        assert!(!line.contains(&b'\r'), "a carriage return");
        let message: Value = serde_json::from_slice(&line)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&line)));
        assert_eq!(message["jsonrpc"], "2.0");
        match (message.get("method"), message["id"].as_i64()) {
            (Some(method), None) => {
                schema::check_notification(method.as_str().unwrap(), &message["params"]);
            }
            (None, Some(id)) => {
                match message.get("error") {
                    Some(error) => schema::check_error(error),
                    None => schema::check_result(&self.methods[&id], &message["result"]),
                }
                let before = self.answers.insert(id, message.clone());
                assert_eq!(before, None, "answered twice");
            }
            (None, None) if message["id"].is_null() => schema::check_error(&message["error"]),
            (None, None) => {}
            (Some(_), Some(_)) => panic!("the adapter asks nothing: {message}"),
        }
        self.seen.push(message);
        true
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn join(chunks: &[Value]) -> String {
    let texts = chunks.iter();
    texts
        .map(|chunk| chunk["content"]["text"].as_str().unwrap())
        .collect()
}
