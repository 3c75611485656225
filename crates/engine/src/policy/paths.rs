//! Paths as the system sees them: what an agent wrote made absolute, links followed, and whether it is in the workspace.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::Disk;

/// A path that leads through more links than this leads in a circle.
const MAX_LINKS: usize = 40;

/// The target of a path that leads in a circle: outside every workspace.
const NOWHERE: &str = "/";

/// A path as the agent wrote it, absolute: `file://` decoded, `~` and what is relative filled in. Links and `..` stay.
pub fn absolute(cwd: &str, home: &str, written: &str) -> String {
    let decoded = from_uri(written);
    let path = decoded.as_deref().unwrap_or(written);
    if path.starts_with('/') {
        path.to_owned()
    } else if path == "~" && !home.is_empty() {
        home.to_owned()
    } else if let Some(rest) = path.strip_prefix("~/").filter(|_| !home.is_empty()) {
        format!("{}/{rest}", home.trim_end_matches('/'))
    } else {
        format!("{}/{path}", cwd.trim_end_matches('/'))
    }
}

/// The path of a `file:` address; a host is ignored, as the file is opened here.
pub fn from_uri(text: &str) -> Option<String> {
    let scheme = text.get(..5)?;
    if !scheme.eq_ignore_ascii_case("file:") {
        return None;
    }
    let rest = &text[5..];
    let path = match rest.strip_prefix("//") {
        Some(with_host) => &with_host[with_host.find('/').unwrap_or(with_host.len())..],
        None if rest.starts_with('/') => rest,
        None => return None,
    };
    let path = without_line(path);
    Some(percent_decode_str(path).decode_utf8_lossy().into_owned())
}

/// An address without the line it points at: `#L12`, `#L12-L20`, `#12`.
fn without_line(path: &str) -> &str {
    let is_line = |part: &str| {
        part.starts_with(|c: char| c == 'L' || c.is_ascii_digit())
            && part
                .chars()
                .all(|c| c.is_ascii_digit() || "L-,:".contains(c))
    };
    match path.rsplit_once('#') {
        Some((path, fragment)) if is_line(fragment) => path,
        _ => path,
    }
}

/// The same `file:` address without what may be a query or a fragment, or a part of the name.
pub fn without_fragment(written: &str) -> Option<&str> {
    from_uri(written)?;
    let (path, _) = written.split_once(['#', '?'])?;
    Some(path)
}

/// A path an agent names, which some write as a `file:` address.
pub fn local(written: String) -> String {
    from_uri(&written).unwrap_or(written)
}

/// What may stand in the path of an address as it is.
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

/// A path as a `file:` address, of a line where one is given.
pub fn to_uri(path: &str, line: Option<u32>) -> String {
    let path = utf8_percent_encode(path, IN_PATH);
    match line {
        Some(line) => format!("file://{path}#L{line}"),
        None => format!("file://{path}"),
    }
}

/// A path with its links followed as the system would: `..` of a link's target, not of the link. A link to what does
/// not exist leads there all the same, because writing through it creates that file.
pub fn resolve(path: &str, disk: &impl Disk) -> String {
    resolve_links(path, |at| disk.link(at))
}

/// The same for one who does not look: `.` and `..` are taken out, links stay.
pub fn tidy(path: &str) -> String {
    resolve_links(path, |_| None)
}

fn resolve_links(path: &str, link: impl Fn(&str) -> Option<String>) -> String {
    let mut at = String::new();
    let mut links = 0;
    let mut todo: Vec<String> = parts(path).rev().map(str::to_owned).collect();
    while let Some(part) = todo.pop() {
        if part == ".." {
            at.truncate(at.rfind('/').unwrap_or(0));
            continue;
        }
        let length = at.len();
        at.push('/');
        at.push_str(&part);
        let Some(target) = link(&at) else { continue };
        links += 1;
        if links > MAX_LINKS {
            return NOWHERE.to_owned();
        }
        at.truncate(if target.starts_with('/') { 0 } else { length });
        todo.extend(parts(&target).rev().map(str::to_owned));
    }
    if at.is_empty() { "/".to_owned() } else { at }
}

fn parts(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/')
        .filter(|part| !part.is_empty() && *part != ".")
}

/// The rest of a path below a directory; empty for the directory itself.
pub fn below<'a>(path: &'a str, dir: &str, ignore_case: bool) -> Option<&'a str> {
    let dir = dir.trim_end_matches('/');
    let head = path.get(..dir.len())?;
    let same = head == dir || (ignore_case && head.to_lowercase() == dir.to_lowercase());
    let rest = &path[dir.len()..];
    match (same, rest.is_empty()) {
        (false, _) => None,
        (true, true) => Some(rest),
        (true, false) => rest.strip_prefix('/'),
    }
}

/// A directory the user lets agents work in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// As the user wrote it, absolute.
    pub given: String,
    /// With its links followed.
    pub real: String,
}

impl Root {
    /// Looks where a directory is.
    pub fn find(cwd: &str, home: &str, dir: &str, disk: &impl Disk) -> Self {
        let given = tidy(&absolute(cwd, home, dir));
        let real = resolve(&given, disk);
        Self { given, real }
    }
}

/// A place a call is about.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Place {
    /// Absolute, as the agent wrote it, without `..`.
    pub written: String,
    /// With all links followed: what rules and the fence look at.
    pub path: String,
    /// The same file, named as the user names the workspace: what is opened. No link lies below the workspace's root.
    #[serde(skip)]
    pub open: String,
    /// It is in the workspace.
    pub inside: bool,
    /// The disk does not tell upper from lower case there.
    #[serde(skip)]
    pub ignore_case: bool,
}

impl Place {
    /// Looks where a path leads.
    pub fn find(cwd: &str, home: &str, written: &str, roots: &[Root], disk: &impl Disk) -> Self {
        let full = absolute(cwd, home, written);
        let path = resolve(&full, disk);
        let ignore_case = disk.ignores_case(&path);
        let within = roots
            .iter()
            .find_map(|root| Some((root, below(&path, &root.real, ignore_case)?)));
        let open = match within {
            Some((root, "")) => root.given.clone(),
            Some((root, rest)) => format!("{}/{rest}", root.given.trim_end_matches('/')),
            None => path.clone(),
        };
        Self {
            written: tidy(&full),
            inside: within.is_some(),
            path,
            open,
            ignore_case,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Links;
    use super::*;

    #[test]
    fn what_an_agent_writes_is_made_absolute() {
        let check = |written: &str, expected: &str| {
            assert_eq!(
                absolute("/src/app", "/home/me", written),
                expected,
                "{written}"
            );
        };
        check("a/b", "/src/app/a/b");
        check("/etc/x", "/etc/x");
        check("~/x", "/home/me/x");
        check("~", "/home/me");
        check("~you/x", "/src/app/~you/x");
        check("file:///etc/x", "/etc/x");
        check("FILE:///etc/x", "/etc/x");
        check("file:/etc/x", "/etc/x");
        check("file://localhost/etc/x", "/etc/x");
        check("file:///etc/%70asswd%20x", "/etc/passwd x");
        check("file:///src/app/%2e%2e/x", "/src/app/../x");
        check("file:///a/100%", "/a/100%");
        check("file:///a/%zz%C3%A9", "/a/%zzé");
        check("a%20b", "/src/app/a%20b");
        check("file:relative", "/src/app/file:relative");
        check("file:///src/app/a#L12", "/src/app/a");
        check("file:///src/app/a#L12-L20", "/src/app/a");
        check("file:///src/app/a#12", "/src/app/a");
        check("file:///src/C#/a", "/src/C#/a");
        check("file:///src/a%23L1", "/src/a#L1");
        check("/src/a#L1", "/src/a#L1");
    }

    #[test]
    fn links_are_followed_as_the_system_does() {
        let disk = Links::new(&[
            ("/src/app/link", "/secret"),
            ("/src/app/up", "../../secret"),
            ("/src/app/chain", "src/../up"),
            ("/src/app/round", "round"),
            ("/proc/self", "4711"),
            ("/proc/4711/root", "/"),
        ]);
        let check =
            |path: &str, expected: &str| assert_eq!(resolve(path, &disk), expected, "{path}");
        check("/src/app/./a//b/", "/src/app/a/b");
        check("/src/app/../../..", "/");
        check("/src/app/link/x", "/secret/x");
        check("/src/app/link/../x", "/x");
        check("/src/app/up", "/secret");
        check("/src/app/chain/new", "/secret/new");
        check("/src/app/round/x", "/");
        check("/proc/self/root/etc/x", "/etc/x");
    }

    #[test]
    fn a_place_is_opened_where_it_was_found() {
        let disk = Links::new(&[
            ("/ws", "/disk/ws"),
            ("/disk/ws/in", "src/real"),
            ("/disk/ws/out", "/etc"),
            ("/disk/ws/gone", "/nowhere/yet"),
        ]);
        let root = Root::find("/", "/home/me", "/ws", &disk);
        let check = |written: &str, inside: bool, open: &str| {
            let place = Place::find(
                "/ws",
                "/home/me",
                written,
                std::slice::from_ref(&root),
                &disk,
            );
            assert_eq!(
                (place.inside, place.open.as_str()),
                (inside, open),
                "{written}"
            );
        };
        check("a", true, "/ws/a");
        check("", true, "/ws");
        check("/disk/ws/a", true, "/ws/a");
        check("in/a", true, "/ws/src/real/a");
        check("out/a", false, "/etc/a");
        check("gone", false, "/nowhere/yet");
        check("../ws/a", true, "/ws/a");
        check("/wsshop/a", false, "/wsshop/a");
    }

    #[test]
    fn case_counts_unless_the_disk_ignores_it() {
        assert_eq!(below("/Src/App/x", "/src/app", false), None);
        assert_eq!(below("/Src/App/x", "/src/app", true), Some("x"));
        assert_eq!(below("/src/application", "/src/app", false), None);
        assert_eq!(below("/src/app", "/src/app/", false), Some(""));
        assert_eq!(below("/a", "/", false), Some("a"));
    }
}
