//! The files of a workspace for `@`, listed and matched on their own thread; respects `.gitignore`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, bounded, unbounded};
use ignore::WalkBuilder;
use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use once_cell::sync::OnceCell;
use parking_lot::Mutex;

/// The most files that are listed.
const MAX_FILES: usize = 100_000;
/// How long a listing is reused; after that a new one is made while the old one is still served.
const FRESH: Duration = Duration::from_secs(10);
/// How long a search may block the editor; later matches are ready for the next key.
const SEARCH_WAIT: Duration = Duration::from_millis(8);
/// Skipped outside git repositories, where there is no `.gitignore`.
const SKIPPED: [&str; 3] = ["node_modules", "target", ".venv"];

static FILES: Mutex<Option<HashMap<PathBuf, Listing>>> = Mutex::new(None);
static SEARCHES: OnceCell<Sender<Search>> = OnceCell::new();

#[derive(Default)]
struct Listing {
    files: Arc<Vec<String>>,
    listed: Option<Instant>,
    listing: bool,
    /// Results of the last search.
    last: Vec<String>,
}

struct Search {
    dir: PathBuf,
    word: String,
    max: usize,
    answer: Sender<Vec<String>>,
}

/// All files below a directory, relative to it, as far as the background listing has got.
pub fn list(dir: &Path) -> Arc<Vec<String>> {
    let mut all = FILES.lock();
    let listing = all
        .get_or_insert_default()
        .entry(dir.to_path_buf())
        .or_default();
    let stale = listing.listed.is_none_or(|at| at.elapsed() >= FRESH);
    if stale && !listing.listing {
        let dir = dir.to_path_buf();
        let work = move || {
            let files = Arc::new(walk(&dir));
            if let Some(listing) = FILES.lock().as_mut().and_then(|all| all.get_mut(&dir)) {
                (listing.files, listing.listed) = (files, Some(Instant::now()));
                listing.listing = false;
            }
        };
        let thread = std::thread::Builder::new().name("cursor-agent-files".to_owned());
        listing.listing = thread.spawn(work).is_ok();
    }
    listing.files.clone()
}

/// The files that match a word, best first. If that takes too long, the results of the last search.
pub fn search(dir: &Path, word: &str, max: usize) -> Vec<String> {
    let files = list(dir);
    if word.is_empty() {
        return files.iter().take(max).cloned().collect();
    }
    let searches = SEARCHES.get_or_try_init(|| {
        let (sender, searches) = unbounded::<Search>();
        std::thread::Builder::new()
            .name("cursor-agent-search".to_owned())
            .spawn(move || {
                for mut search in &searches {
                    // Only the latest word typed matters.
                    if let Some(newer) = searches.try_iter().last() {
                        search = newer;
                    }
                    let found = best(&list(&search.dir), &search.word, search.max);
                    if let Some(listing) = FILES
                        .lock()
                        .as_mut()
                        .and_then(|all| all.get_mut(&search.dir))
                    {
                        listing.last.clone_from(&found);
                    }
                    let _ = search.answer.send(found);
                }
            })
            .map(|_| sender)
    });
    let (answer, found) = bounded(1);
    let asked = searches.is_ok_and(|searches| {
        let search = Search {
            dir: dir.to_path_buf(),
            word: word.to_owned(),
            max,
            answer,
        };
        searches.send(search).is_ok()
    });
    let in_time = asked
        .then(|| found.recv_timeout(SEARCH_WAIT).ok())
        .flatten();
    in_time.unwrap_or_else(|| {
        let all = FILES.lock();
        let listing = all.as_ref().and_then(|all| all.get(dir));
        listing
            .map(|listing| listing.last.clone())
            .unwrap_or_default()
    })
}

/// Ranks files: those whose name or path starts with the word come first.
fn best(files: &[String], word: &str, max: usize) -> Vec<String> {
    let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
    let pattern = Pattern::new(
        word,
        CaseMatching::Ignore,
        Normalization::Smart,
        AtomKind::Fuzzy,
    );
    let lower = word.to_lowercase();
    let mut chars = Vec::new();
    let mut found: Vec<(bool, u32, &String)> = files
        .iter()
        .filter_map(|file| {
            let score = pattern.score(Utf32Str::new(file, &mut chars), &mut matcher)?;
            let path = file.to_lowercase();
            let name = path.rsplit('/').next().unwrap_or_default();
            let begins = path.starts_with(&lower) || name.starts_with(&lower);
            Some((begins, score, file))
        })
        .collect();
    // Among equal scores the shorter one first, then by name.
    let order = |(begins, score, file): &(bool, u32, &String)| {
        (!*begins, u32::MAX - *score, file.len(), (*file).clone())
    };
    if found.len() > max && max > 0 {
        found.select_nth_unstable_by_key(max - 1, order);
        found.truncate(max);
    }
    found.sort_by_cached_key(order);
    found
        .into_iter()
        .take(max)
        .map(|(_, _, file)| file.clone())
        .collect()
}

fn walk(dir: &Path) -> Vec<String> {
    let in_git = dir.ancestors().any(|dir| dir.join(".git").exists());
    let entries = WalkBuilder::new(dir)
        .hidden(false)
        .require_git(false)
        .filter_entry(move |entry| {
            let name = entry.file_name().to_string_lossy();
            let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
            name != ".git" && !(is_dir && !in_git && SKIPPED.contains(&name.as_ref()))
        })
        .build();
    let mut files: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.file_type().is_some_and(|kind| !kind.is_dir()))
        .filter_map(|entry| {
            let path = entry.path().strip_prefix(dir).ok()?;
            Some(path.to_string_lossy().into_owned())
        })
        .take(MAX_FILES)
        .collect();
    files.sort_unstable();
    files
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn workspace(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn what_gitignore_names_is_left_out_at_every_level() {
        let dir = workspace(&[
            (".git/HEAD", ""),
            (".gitignore", "*.log\nbuild/\n"),
            (".github/a.yml", ""),
            ("a.log", ""),
            ("build/out", ""),
            ("sub/.gitignore", "/own\n!kept.log\n"),
            ("sub/own", ""),
            ("sub/kept.log", ""),
            ("sub/node_modules/x.js", ""),
            ("é ü/b c.lua", ""),
        ]);
        assert_eq!(
            walk(dir.path()),
            [
                ".github/a.yml",
                ".gitignore",
                "sub/.gitignore",
                "sub/kept.log",
                "sub/node_modules/x.js",
                "é ü/b c.lua",
            ]
        );
        let plain = workspace(&[
            ("node_modules/x.js", ""),
            ("target/y", ""),
            (".gitignore", "z"),
            ("z", ""),
            ("a", ""),
        ]);
        assert_eq!(walk(plain.path()), [".gitignore", "a"]);
    }

    #[test]
    fn the_best_come_first() {
        let check = |files: &[&str], word: &str, expected: &[&str]| {
            let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
            assert_eq!(best(&files, word, 2), expected, "{word}");
        };
        check(
            &["greet.sh", "area.lua", "README.md"],
            "re",
            &["README.md", "area.lua"],
        );
        check(
            &["001_in_it_x.lua", "002_in_it_x.lua", "zeta/init.lua"],
            "init",
            &["zeta/init.lua", "001_in_it_x.lua"],
        );
        check(&["a\"b.lua", "x.lua"], "ab", &["a\"b.lua"]);
        check(&["あ.lua", "b"], "あ", &["あ.lua"]);
        check(&["a b/c d.lua", "e"], "a b/c", &["a b/c d.lua"]);
        check(&["a"], "b", &[]);
    }

    #[test]
    fn a_search_answers_in_time() {
        let dir = workspace(&[("src/parser.rs", "")]);
        let until = Instant::now() + Duration::from_secs(10);
        while search(dir.path(), "parser", 5) != ["src/parser.rs"] {
            assert!(Instant::now() < until);
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(*list(dir.path()), ["src/parser.rs"]);
    }
}
