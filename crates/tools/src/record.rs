//! The record of a run: what came in, what went out and what happened, one JSON object a line.
//!
//! Each line is on disk before the program goes on, so that a test may read it while the program runs and after it was killed. The file is
//! appended to: a client that starts the program again finds both runs in it.

use std::{
    cell::RefCell,
    fs::{File, OpenOptions},
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    time::Instant,
};

use serde_json::{Value, json};

use crate::error::Error;

#[derive(Debug)]
pub struct Record {
    file: Option<RefCell<File>>,
    started: Instant,
}

impl Record {
    pub fn open(path: Option<&Path>) -> Result<Self, Error> {
        let file = path
            .map(|path| {
                OpenOptions::new()
                    .create(true)
                    .append(true)
                    .mode(0o600)
                    .open(path)
                    .map_err(|source| Error::File {
                        file: path.to_path_buf(),
                        source,
                    })
            })
            .transpose()?;
        Ok(Self {
            file: file.map(RefCell::new),
            started: Instant::now(),
        })
    }

    pub fn received(&self, message: &Value) {
        self.line("in", message, None);
    }

    /// `times`: how often the same message was sent in a row.
    pub fn sent(&self, message: &Value, times: u64) {
        self.line(
            "out",
            message,
            (times > 1).then(|| json!({ "times": times })),
        );
    }

    pub fn note(&self, what: &str, more: Value) {
        self.line("note", &Value::from(what), Some(more));
    }

    fn line(&self, key: &str, value: &Value, more: Option<Value>) {
        let Some(file) = &self.file else { return };
        let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut line = json!({ "t": elapsed, key: value });
        if let (Some(line), Some(Value::Object(more))) = (line.as_object_mut(), more) {
            line.extend(more);
        }
        let mut bytes = line.to_string().into_bytes();
        bytes.push(b'\n');
        // A record that cannot be written must not change what the client sees; the test that reads it fails by itself.
        let _ = file.borrow_mut().write_all(&bytes);
    }
}

/// How often a program has been started with this record, before now.
pub fn earlier_runs(path: &Path) -> usize {
    let Ok(text) = std::fs::read_to_string(path) else {
        return 0;
    };
    text.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|line| line["note"] == "start")
        .count()
}
