//! The files the tour edits: those of the demo's project, or its own where there are none.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A directory with this file in it is a scratch project: the tour may write there without asking.
const MARKER: &str = ".cursor-agent-demo";

/// A place in a file that is known, and what it becomes.
struct Rewrite {
    file: &'static str,
    old: &'static str,
    new: &'static str,
}

/// One `edit` of the tour each.
const ROUNDS: &[&[Rewrite]] = &[
    &[
        Rewrite {
            file: "src/greet.lua",
            old: "function M.greet(name)\n  return \"Hello, \" .. name\nend\n",
            new: "function M.greet(name)\n  if name == nil or name == \"\" then\n    name = \"world\"\n  end\n  return (\"Hello, %s!\"):format(name)\nend\n",
        },
        Rewrite {
            file: "README.md",
            old: "- `src/greet.lua` builds the greeting\n",
            new: "- `src/greet.lua` builds the greeting; without a name, it greets the world\n",
        },
        Rewrite {
            file: "demo.py",
            old: "def greet(name):\n    return \"Hello, \" + name\n",
            new: "def greet(name=\"world\"):\n    return f\"Hello, {name}!\"\n",
        },
        Rewrite {
            file: "tour.md",
            old: "- greet a person\n",
            new: "- greet a person, or the world when no name is given\n",
        },
    ],
    &[
        Rewrite {
            file: "greet.sh",
            old: "echo \"Hello, ${1:-world}\"\n",
            new: "for name in \"${@:-world}\"; do\n  echo \"Hello, $name!\"\ndone\n",
        },
        Rewrite {
            file: "demo.py",
            old: "if __name__ == \"__main__\":\n    print(greet(\"Ada\"))\n",
            new: "if __name__ == \"__main__\":\n    for name in (\"Ada\", \"Grace\"):\n        print(greet(name))\n",
        },
    ],
];

/// What the tour makes where it finds nothing it knows.
const STARTERS: &[(&str, &str)] = &[
    (
        "demo.py",
        "\"\"\"Greets people; the tour edits this file.\"\"\"\n\n\ndef greet(name):\n    return \"Hello, \" + name\n\n\nif __name__ == \"__main__\":\n    print(greet(\"Ada\"))\n",
    ),
    ("tour.md", "# What the demo does\n\n- greet a person\n"),
];

/// A file before and after.
#[derive(Debug, PartialEq, Eq)]
pub struct Change {
    pub path: PathBuf,
    /// Relative to the project, as it is shown.
    pub name: String,
    /// None for a new file.
    pub old: Option<String>,
    pub new: String,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Edit {
    Forward(Vec<Change>),
    /// Every rewrite was made before; these take them back.
    Back(Vec<Change>),
    New(Vec<Change>),
    /// The files exist, but their text is not the tour's.
    Unknown,
}

pub fn is_scratch(cwd: &Path) -> bool {
    cwd.join(MARKER).exists()
}

/// What the next `edit` does. Looks, writes nothing.
pub fn next_edit(cwd: &Path) -> Edit {
    for round in ROUNDS {
        let changes = apply(
            cwd,
            round
                .iter()
                .map(|rewrite| (rewrite.file, rewrite.old, rewrite.new)),
        );
        if !changes.is_empty() {
            return Edit::Forward(changes);
        }
    }
    let backwards = ROUNDS.iter().flat_map(|round| round.iter());
    let changes = apply(
        cwd,
        backwards.map(|rewrite| (rewrite.file, rewrite.new, rewrite.old)),
    );
    if !changes.is_empty() {
        return Edit::Back(changes);
    }
    if STARTERS.iter().any(|(file, _)| cwd.join(file).exists()) {
        return Edit::Unknown;
    }
    let made = STARTERS.iter().map(|(file, text)| Change {
        path: cwd.join(file),
        name: (*file).to_owned(),
        old: None,
        new: (*text).to_owned(),
    });
    Edit::New(made.collect())
}

/// The changes of those rewrites whose text is there, one for each file.
fn apply<'a>(
    cwd: &Path,
    rewrites: impl Iterator<Item = (&'a str, &'a str, &'a str)>,
) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for (file, old, new) in rewrites {
        if let Some(change) = changes.iter_mut().find(|change| change.name == file) {
            change.new = change.new.replacen(old, new, 1);
            continue;
        }
        let path = cwd.join(file);
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        if text.contains(old) {
            changes.push(Change {
                path,
                name: file.to_owned(),
                new: text.replacen(old, new, 1),
                old: Some(text),
            });
        }
    }
    changes
}

pub fn write(change: &Change) -> io::Result<()> {
    if let Some(dir) = change.path.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(&change.path, &change.new)
}

/// A file to show in the welcome: one that the tour knows.
pub fn known_file(cwd: &Path) -> Option<(PathBuf, String)> {
    let files = ROUNDS.iter().flat_map(|round| round.iter());
    let mut texts = files.filter_map(|rewrite| {
        let path = cwd.join(rewrite.file);
        let text = fs::read_to_string(&path).ok()?;
        (text.contains(rewrite.old) || text.contains(rewrite.new)).then_some((path, text))
    });
    texts.next()
}

/// The command of the `run` station: one that means something here.
pub fn command(cwd: &Path) -> &'static str {
    if cwd.join("greet.sh").exists() {
        "sh greet.sh Ada"
    } else {
        "ls -l"
    }
}

/// A command that fails everywhere, and says so on stderr.
pub const FAILING_COMMAND: &str = "ls no-such-file";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;

    fn do_edit(cwd: &Path) -> Edit {
        let edit = next_edit(cwd);
        if let Edit::Forward(changes) | Edit::Back(changes) | Edit::New(changes) = &edit {
            for change in changes {
                write(change).unwrap();
            }
        }
        edit
    }

    fn names(edit: &Edit) -> (&'static str, Vec<&str>) {
        let (kind, changes) = match edit {
            Edit::Forward(changes) => ("forward", changes),
            Edit::Back(changes) => ("back", changes),
            Edit::New(changes) => ("new", changes),
            Edit::Unknown => return ("unknown", Vec::new()),
        };
        (
            kind,
            changes.iter().map(|change| change.name.as_str()).collect(),
        )
    }

    #[test]
    fn edits_go_forward_round_by_round_and_then_back() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path();
        assert_eq!(names(&do_edit(cwd)), ("new", vec!["demo.py", "tour.md"]));
        let first = fs::read_to_string(cwd.join("demo.py")).unwrap();
        assert_eq!(
            names(&do_edit(cwd)),
            ("forward", vec!["demo.py", "tour.md"])
        );
        assert_eq!(names(&do_edit(cwd)), ("forward", vec!["demo.py"]));
        assert_eq!(names(&do_edit(cwd)), ("back", vec!["demo.py", "tour.md"]));
        assert_eq!(fs::read_to_string(cwd.join("demo.py")).unwrap(), first);
    }

    #[test]
    fn the_demos_project_is_known() {
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/demo-project");
        let Edit::Forward(changes) = next_edit(&project) else {
            panic!("nothing to edit");
        };
        let names: Vec<&str> = changes.iter().map(|change| change.name.as_str()).collect();
        assert_eq!(names, ["src/greet.lua", "README.md"]);
        assert!(ROUNDS[1][0].old.lines().all(|line| {
            fs::read_to_string(project.join("greet.sh"))
                .unwrap()
                .contains(line)
        }));
        assert!(is_scratch(&project));
    }

    #[test]
    fn somebody_elses_files_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("demo.py"), "print(1)\n").unwrap();
        assert_eq!(next_edit(dir.path()), Edit::Unknown);
    }
}
