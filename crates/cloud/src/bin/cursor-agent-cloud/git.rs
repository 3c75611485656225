//! What git knows of a directory: where it is pushed to, and what is checked out.

use std::path::Path;
use std::process::Stdio;

use crate::usage::Error;

/// A repository on a server, and a branch of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Place {
    pub url: String,
    pub branch: Option<String>,
}

async fn git(cwd: &Path, arguments: &[&str]) -> Option<String> {
    let output = tokio::process::Command::new("git")
        .arg("-C")
        .arg(cwd)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// The remote of this directory and its branch, when that was pushed.
pub async fn place(cwd: &Path) -> Result<Place, Error> {
    let Some(remote) = git(cwd, &["remote", "get-url", "origin"]).await else {
        return Err(Error::NoRemote(cwd.to_owned()));
    };
    let url = web_url(&remote);
    let branch = git(cwd, &["symbolic-ref", "--short", "HEAD"]).await;
    let pushed = match &branch {
        Some(name) => git(
            cwd,
            &[
                "rev-parse",
                "--verify",
                "--quiet",
                &format!("refs/remotes/origin/{name}"),
            ],
        )
        .await
        .is_some(),
        None => false,
    };
    Ok(Place {
        url,
        branch: branch.filter(|_| pushed),
    })
}

/// `https://host/owner/name` for the forms git takes; credentials are left out.
pub fn web_url(remote: &str) -> String {
    let bare = remote.trim().trim_end_matches('/');
    let bare = bare.strip_suffix(".git").unwrap_or(bare);
    let rest = match bare.split_once("://") {
        Some(("https" | "http" | "ssh" | "git", rest)) => {
            let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = host.split(':').next().unwrap_or(host);
            format!("{host}/{path}")
        }
        Some(_) => return bare.to_owned(),
        None => match bare.split_once(':') {
            // git@host:owner/name
            Some((host, path)) if !host.contains('/') => {
                let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
                format!("{host}/{}", path.trim_start_matches('/'))
            }
            _ => return bare.to_owned(),
        },
    };
    format!("https://{rest}")
}

#[cfg(test)]
mod tests {
    use super::web_url;

    #[test]
    fn remotes_become_addresses_without_credentials() {
        for remote in [
            "git@github.com:acme/app.git",
            "https://github.com/acme/app",
            "https://user:token@github.com/acme/app.git",
            "ssh://git@github.com:22/acme/app.git/",
        ] {
            assert_eq!(web_url(remote), "https://github.com/acme/app", "{remote}");
        }
        assert_eq!(web_url("/srv/git/app.git"), "/srv/git/app");
    }
}
