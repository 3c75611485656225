//! How a process is started and how it exited: the data exchanged with the driver.

use std::collections::BTreeMap;

/// Longer stderr lines are cut, after masking: half a secret is not recognized as one.
const STDERR_LINE_BYTES: usize = 2000;

/// What to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Set on top of Neovim's own environment.
    pub env: BTreeMap<String, String>,
    /// Where it runs.
    pub cwd: String,
    /// A program to run instead, if it exists: agents send either a program or a whole command line, and
    /// `command` is a shell with that line.
    pub program: Option<String>,
}

/// How a process ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code, if it exited by itself.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The last lines it wrote to stderr.
    pub stderr: Vec<String>,
}

impl Exit {
    /// "exit 1", "signal 9", or that it is unknown.
    pub fn describe(&self) -> String {
        match (self.code, self.signal) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "no exit status".to_owned(),
        }
    }
}

/// A line of stderr cut to the length that is shown.
pub fn cut_line(mut line: String) -> String {
    line.truncate(line.floor_char_boundary(STDERR_LINE_BYTES));
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_are_described() {
        let exit = |code, signal| {
            Exit {
                code,
                signal,
                stderr: Vec::new(),
            }
            .describe()
        };
        assert_eq!(exit(Some(3), None), "exit 3");
        assert_eq!(exit(None, Some(9)), "signal 9");
        assert_eq!(exit(None, None), "no exit status");
    }

    #[test]
    fn a_line_is_cut_at_a_character() {
        let line = cut_line(format!("x{}", "é".repeat(1500)));
        assert_eq!(line.len(), STDERR_LINE_BYTES - 1);
    }
}
