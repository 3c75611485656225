//! A double of Cursor's CLI: a shell script that notes how it was called and then does what the test says.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// What every call does first. `TURN` counts the turns; what came as arguments and on stdin is noted.
const BEGIN: &str = r#"#!/bin/sh
here=${0%/*}
home=$here/..
note=$home/notes
mkdir -p "$note"
command=$1
case $command in
  create-chat|models|--list-models|login|logout)
    printf '%s\n' "$command" >>"$note/commands"
    pwd -P >"$note/$command.cwd"
    ;;
  *)
    turns=0
    [ ! -f "$note/turns" ] || turns=$(cat "$note/turns")
    TURN=$((turns + 1))
    echo "$TURN" >"$note/turns"
    for arg do printf '%s\0' "$arg"; done >"$note/$TURN.args"
    cat >"$note/$TURN.stdin"
    pwd -P >"$note/$TURN.cwd"
    echo $$ >"$note/$TURN.pid"
    command=turn
    ;;
esac
# say FILE prints a prepared file.
say() { cat "$home/$1"; }
"#;

/// A home directory with the double in its `bin`.
pub struct Double {
    dir: TempDir,
    files: std::cell::Cell<usize>,
}

impl Double {
    /// One whose turns print these events.
    pub fn saying(events: &[Value]) -> Self {
        let lines: Vec<String> = events.iter().map(Value::to_string).collect();
        Self::printing(&(lines.join("\n") + "\n"))
    }

    /// One whose turns print this text.
    pub fn printing(text: &str) -> Self {
        let double = Self::empty();
        let file = double.file(text.as_bytes());
        double.turns(&format!("say {file}"));
        double
    }

    /// One whose turns run this shell script.
    pub fn running(turn: &str) -> Self {
        let double = Self::empty();
        double.turns(turn);
        double
    }

    /// A home without a CLI.
    pub fn empty() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["bin", "work", "other"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        Self {
            dir,
            files: std::cell::Cell::new(0),
        }
    }

    /// What each turn does.
    pub fn turns(&self, turn: &str) {
        self.commands(
            turn,
            "echo 11111111-2222-4333-8444-$(printf %012d $(grep -c create-chat \"$note/commands\"))",
            "echo 'Available models'; echo; echo 'auto - Auto (default)'; echo 'gpt-5 - GPT-5'; echo 'Tip: x'",
        );
    }

    /// What turns, `create-chat` and `models` do.
    pub fn commands(&self, turn: &str, create_chat: &str, models: &str) {
        let script = format!(
            "{BEGIN}\ncase $command in\ncreate-chat)\n{create_chat}\n;;\nmodels)\n{models}\n;;\nturn)\n{turn}\n;;\n*) exit 1 ;;\nesac\n"
        );
        self.script("agent", &script);
    }

    /// A program of any name in `bin`, written whole so that none that runs is changed.
    pub fn script(&self, name: &str, script: &str) {
        let path = self.dir.path().join("bin").join(name);
        let beside = path.with_extension("new");
        std::fs::write(&beside, script).unwrap();
        std::fs::set_permissions(&beside, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::rename(beside, path).unwrap();
    }

    /// A file the script can print with `say NAME`.
    pub fn file(&self, bytes: &[u8]) -> String {
        let name = format!("file{}", self.files.replace(self.files.get() + 1));
        std::fs::write(self.dir.path().join(&name), bytes).unwrap();
        name
    }

    /// The home directory.
    pub fn home(&self) -> &Path {
        self.dir.path()
    }

    /// Where sessions work.
    pub fn work(&self) -> String {
        self.dir.path().join("work").to_str().unwrap().to_owned()
    }

    /// Where they do not.
    pub fn other(&self) -> String {
        self.dir.path().join("other").to_str().unwrap().to_owned()
    }

    /// The program.
    pub fn program(&self) -> PathBuf {
        self.dir.path().join("bin/agent")
    }

    /// What a call noted, once it is there.
    pub fn note(&self, name: &str) -> Vec<u8> {
        let path = self.dir.path().join("notes").join(name);
        let until = Instant::now() + super::LIMIT;
        loop {
            match std::fs::read(&path) {
                Ok(bytes) => return bytes,
                Err(_) if Instant::now() < until => std::thread::sleep(Duration::from_millis(10)),
                Err(error) => panic!("{}: {error}", path.display()),
            }
        }
    }

    /// A note that is one line.
    pub fn line(&self, name: &str) -> String {
        let mut text = String::new();
        super::eventually(name, || {
            text = String::from_utf8(self.note(name)).unwrap();
            text.ends_with('\n')
        });
        text.trim_end().to_owned()
    }

    /// The arguments of a turn.
    pub fn args(&self, turn: usize) -> Vec<String> {
        // Written before the note of the pid.
        self.line(&format!("{turn}.pid"));
        let bytes = self.note(&format!("{turn}.args"));
        let mut args: Vec<String> = bytes
            .split(|byte| *byte == 0)
            .map(|arg| String::from_utf8(arg.to_vec()).unwrap())
            .collect();
        args.pop();
        args
    }

    /// The process of a turn.
    pub fn pid(&self, turn: usize) -> u32 {
        self.line(&format!("{turn}.pid")).parse().unwrap()
    }
}

/// The events a turn begins with.
pub fn init(chat: &str) -> Value {
    json!({
        "type": "system", "subtype": "init", "apiKeySource": "login", "cwd": "/", "session_id": chat,
        "model": "Auto", "permissionMode": "default",
    })
}

/// A piece of the answer.
pub fn piece(text: &str) -> Value {
    json!({
        "type": "assistant", "session_id": "s", "timestamp_ms": 1,
        "message": { "role": "assistant", "content": [{ "type": "text", "text": text }] },
    })
}

/// A whole message.
pub fn message(text: &str) -> Value {
    json!({
        "type": "assistant", "session_id": "s",
        "message": { "role": "assistant", "content": [{ "type": "text", "text": text }] },
    })
}

/// A tool call's event.
pub fn tool(subtype: &str, id: &str, call: Value) -> Value {
    json!({ "type": "tool_call", "subtype": subtype, "call_id": id, "tool_call": call, "session_id": "s" })
}

/// The last event.
pub fn result(text: &str) -> Value {
    json!({
        "type": "result", "subtype": "success", "duration_ms": 5, "duration_api_ms": 5, "is_error": false,
        "result": text, "session_id": "s", "request_id": "req-1",
        "usage": { "inputTokens": 10, "outputTokens": 2, "cacheReadTokens": 3, "cacheWriteTokens": 0 },
    })
}
