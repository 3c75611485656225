//! An editor without a window: it is woken, drains, and waits for what it expects to see.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime};

use cursor_agent::driver::Driver;
use engine::agents::agent::AgentSpec;
use engine::decide::decision::Answer;
use engine::ids::{DecisionId, EditorId, Key};
use engine::sessions::session::{PromptSpec, Wanted};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::mirror::Mirror;

/// Nothing here takes this long; a test that reaches it has failed.
pub const LIMIT: Duration = Duration::from_secs(30);

/// As the plugin drains.
const DRAIN_BYTES: usize = 64 * 1024;

/// An editor with one session.
pub struct Editor {
    pub driver: Driver,
    pub mirror: Mirror,
    pub dir: TempDir,
    pub key: Key,
    pub env: BTreeMap<String, String>,
    woken: Receiver<()>,
}

impl Editor {
    /// Opens a session on the scripted agent.
    pub fn play(scenario: Value) -> Self {
        Self::play_with(scenario, |_| {})
    }

    /// The same, with something about the agent changed.
    pub fn play_with(scenario: Value, change: impl FnOnce(&mut AgentSpec)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("scenario.json"), scenario.to_string()).unwrap();
        let demo = demo().to_string_lossy().into_owned();
        let words = ["play", "scenario.json", "--record", "record.jsonl"];
        let command = std::iter::once(demo).chain(words.map(str::to_owned));
        Self::open(dir, command.collect(), change)
    }

    /// Opens a session on a shell script that plays an agent.
    pub fn shell(script: &str) -> Self {
        let command = ["/bin/sh", "-c", script].map(str::to_owned);
        Self::open(tempfile::tempdir().unwrap(), command.into(), |_| {})
    }

    pub fn open(dir: TempDir, command: Vec<String>, change: impl FnOnce(&mut AgentSpec)) -> Self {
        let (sender, woken) = channel();
        let driver = Driver::start(move || {
            let _ = sender.send(());
        })
        .unwrap();
        let mut spec = AgentSpec {
            agent: "demo".to_owned(),
            command,
            cwd: dir.path().to_string_lossy().into_owned(),
            ..AgentSpec::default()
        };
        change(&mut spec);
        let env = spec.env.clone();
        let key = driver
            .with(|engine| engine.open(spec, Wanted::default()))
            .unwrap();
        Self {
            driver,
            mirror: Mirror::default(),
            dir,
            key,
            env,
            woken,
        }
    }

    /// Drains whenever it is woken until `seen` has something to show.
    pub fn wait<T>(&mut self, what: &str, mut seen: impl FnMut(&mut Self) -> Option<T>) -> T {
        let started = Instant::now();
        loop {
            self.driver.draining();
            while self
                .driver
                .with(|engine| self.mirror.drain(engine, DRAIN_BYTES))
            {}
            if let Some(found) = seen(self) {
                return found;
            }
            assert!(
                started.elapsed() < LIMIT,
                "no {what}; the state is {}, the record {:#?}",
                self.status(),
                self.record()
            );
            // Woken or not: what is waited for may lie outside, a file or a process.
            let _ = self.woken.recv_timeout(Duration::from_millis(20));
        }
    }

    pub fn wait_for_state(&mut self, state: &str) {
        self.wait(state, |editor| {
            let known = editor.mirror.statuses.get(&editor.key.0)?;
            (known["state"] == state).then_some(())
        });
    }

    pub fn wait_for_event(&mut self, name: &str) -> Value {
        self.wait(name, |editor| {
            let at = editor
                .mirror
                .events
                .iter()
                .position(|(known, _)| known == name)?;
            Some(editor.mirror.events.remove(at).1)
        })
    }

    /// Prompts, and waits for the end of the turn: the event's data.
    pub fn turn(&mut self, text: &str) -> Value {
        self.prompt(text);
        self.wait_for_event("CursorAgentTurnEnd")
    }

    pub fn prompt(&mut self, text: &str) {
        let text = text.to_owned();
        let spec = PromptSpec {
            text,
            blocks: Vec::new(),
            ..Default::default()
        };
        self.driver
            .with(|engine| engine.prompt(self.key, spec))
            .unwrap();
    }

    pub fn decide(&mut self, answer: Value) {
        let answer: Answer = serde_json::from_value(answer).unwrap();
        let id = self.wait("a decision", |editor| {
            editor.mirror.pending.keys().next().copied()
        });
        self.driver
            .with(|engine| engine.answer(DecisionId(id), &answer, None))
            .unwrap();
    }

    /// Answers a request for a file as an editor does that has it in no buffer: its path.
    pub fn leave_file_to_the_disk(&mut self) -> String {
        let (id, request) = self.wait("a request", |editor| editor.mirror.editor.pop());
        let reply = serde_json::from_value(json!({ "ok": true, "disk": true })).unwrap();
        self.driver.with(|engine| engine.reply(EditorId(id), reply));
        request["path"].as_str().unwrap().to_owned()
    }

    pub fn status(&self) -> Value {
        let status = self.driver.with(|engine| engine.status(self.key));
        serde_json::to_value(status).unwrap()
    }

    pub fn error(&self) -> String {
        self.status()["error"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// Texts of the entries the editor has drawn, by kind.
    pub fn texts(&self, kind: &str) -> Vec<String> {
        let entries = self.mirror.sessions.get(&self.key.0);
        entries
            .into_iter()
            .flatten()
            .filter(|entry| entry["kind"] == kind)
            .map(|entry| entry["text"].as_str().unwrap().to_owned())
            .collect()
    }

    /// What the scripted agent wrote down.
    pub fn record(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.dir.path().join("record.jsonl"));
        text.unwrap_or_default()
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Waits for the pid of a child the scripted agent started; with "start", of the agent itself.
    pub fn pid(&mut self, note: &str) -> u32 {
        self.wait(note, |editor| {
            let record = editor.record();
            let line = record.iter().rfind(|line| line["note"] == note)?;
            u32::try_from(line["pid"].as_u64()?).ok()
        })
    }

    /// The agent's own requests and what was answered, in the order they were made.
    pub fn answers(&self) -> Vec<(String, Value)> {
        let record = self.record();
        let asked = record
            .iter()
            .filter(|line| line["out"]["method"].is_string() && !line["out"]["id"].is_null());
        asked
            .map(|line| {
                let answer = record.iter().find(|other| {
                    other["in"]["id"] == line["out"]["id"] && other["in"]["method"].is_null()
                });
                let answer = answer.map(|line| {
                    let answer = &line["in"];
                    answer.get("result").unwrap_or(&answer["error"]).clone()
                });
                let method = line["out"]["method"].as_str().unwrap().to_owned();
                (method, answer.unwrap_or_default())
            })
            .collect()
    }

    /// Waits until a process is gone; how long it took.
    pub fn wait_for_end(&mut self, pid: u32) -> Duration {
        let started = Instant::now();
        self.wait("end of a process", |_| (!is_alive(pid)).then_some(()));
        started.elapsed()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        self.driver.shutdown(Duration::from_millis(300));
    }
}

/// Whether a process runs. One that only waits to be reaped does not.
pub fn is_alive(pid: u32) -> bool {
    if Path::new("/proc/self/stat").exists() {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        // The state follows the name, which may hold anything but ends with the last parenthesis.
        return stat.is_ok_and(|stat| {
            let state = stat.rsplit(')').next().unwrap_or_default();
            !state.trim_start().starts_with(['Z', 'X'])
        });
    }
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::test_kill_process(pid).is_ok()
}

/// The scripted agent. `cargo test --workspace` has built it already; a test of this package alone builds it here.
fn demo() -> &'static Path {
    static DEMO: OnceLock<PathBuf> = OnceLock::new();
    DEMO.get_or_init(|| {
        let this = std::env::current_exe().unwrap();
        // target/PROFILE/deps/driver-HASH
        let built = this.parent().and_then(Path::parent).unwrap();
        let demo = built.join("cursor-agent-demo");
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates");
        let age = |path: &Path| path.metadata().and_then(|meta| meta.modified()).ok();
        if age(&demo) < newest(&crates) {
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let mut build = Command::new(cargo);
            build.args([
                "build",
                "--quiet",
                "--locked",
                "-p",
                "tools",
                "--target-dir",
            ]);
            build.arg(built.parent().unwrap());
            if built.ends_with("release") {
                build.arg("--release");
            }
            assert!(build.status().unwrap().success(), "the scripted agent");
        }
        demo
    })
}

/// When the newest source below a directory was written.
fn newest(dir: &Path) -> Option<SystemTime> {
    let entries = std::fs::read_dir(dir).ok()?.flatten();
    entries
        .filter_map(|entry| {
            let path = entry.path();
            if path.is_dir() && !path.ends_with("tests") {
                newest(&path)
            } else {
                let is_source = path.extension().is_some_and(|ext| ext == "rs");
                is_source.then(|| entry.metadata().ok()?.modified().ok())?
            }
        })
        .max()
}
