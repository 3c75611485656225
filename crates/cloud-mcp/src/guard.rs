//! Host and Origin: a web page whose name was pointed at this machine (DNS rebinding) is refused.

use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Uri};

/// Which names and origins are accepted.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// Names, or names with ports.
    hosts: Vec<String>,
    /// Scheme, name and port as browsers write them.
    origins: Vec<String>,
}

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

impl Guard {
    /// The loopback's, the address listened on, and these.
    pub fn new(listens: &str, hosts: &[String], origins: &[String]) -> Self {
        let mut names: Vec<String> = LOOPBACK.map(str::to_owned).to_vec();
        // A wildcard is no name.
        if !matches!(listens, "0.0.0.0" | "::" | "[::]") {
            names.push(if listens.contains(':') && !listens.starts_with('[') {
                format!("[{listens}]")
            } else {
                listens.to_owned()
            });
        }
        names.extend(hosts.iter().cloned());
        Self {
            hosts: names.iter().map(|name| name.to_ascii_lowercase()).collect(),
            origins: origins
                .iter()
                .map(|origin| origin.trim_end_matches('/').to_ascii_lowercase())
                .collect(),
        }
    }

    /// Whether a request may go on; otherwise why not, for 403.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), &'static str> {
        let host = match one(headers, &HOST)? {
            Some(host) => host.to_ascii_lowercase(),
            None => uri
                .authority()
                .map(|authority| authority.as_str().to_ascii_lowercase())
                .ok_or("the Host header is missing")?,
        };
        if !self.knows(&host) {
            return Err("this Host is not accepted; see --allow-host");
        }
        let Some(origin) = one(headers, &ORIGIN)? else {
            return Ok(());
        };
        let origin = origin.to_ascii_lowercase();
        if self.origins.contains(&origin) {
            return Ok(());
        }
        let name = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        let ours = name
            .and_then(|name| Authority::try_from(name).ok())
            .is_some_and(|authority| {
                !authority.as_str().contains('@') && LOOPBACK.contains(&authority.host())
            });
        if ours {
            Ok(())
        } else {
            Err("this Origin is not accepted; see --allow-origin")
        }
    }

    fn knows(&self, host: &str) -> bool {
        let Ok(authority) = Authority::try_from(host) else {
            return false;
        };
        if host.contains('@') {
            return false;
        }
        self.hosts
            .iter()
            .any(|known| known == host || known == authority.host())
    }
}

/// The header, when there is exactly one.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, &'static str> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value
            .to_str()
            .map(Some)
            .map_err(|_| "the Host or Origin header cannot be read"),
        _ => Err("the Host or Origin header is repeated"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(guard: &Guard, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        guard.check(&Uri::from_static("/mcp"), &headers).is_ok()
    }

    #[test]
    fn only_the_loopback_by_default() {
        let guard = Guard::new("127.0.0.1", &[], &[]);
        for host in ["localhost", "LOCALHOST:3000", "127.0.0.1:1", "[::1]:3000"] {
            assert!(check(&guard, host, None), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:3000",
            "localhost@evil.example",
            "evil.example:80@localhost",
            "",
        ] {
            assert!(!check(&guard, host, None), "{host}");
        }
        for origin in [
            "http://localhost",
            "http://localhost:6274",
            "https://127.0.0.1:1",
            "http://[::1]:8080",
        ] {
            assert!(check(&guard, "localhost", Some(origin)), "{origin}");
        }
        for origin in [
            "null",
            "https://evil.example",
            "http://localhost.evil.example",
            "http://localhost@evil.example",
            "http://evil.example@localhost",
            "file://",
            "",
        ] {
            assert!(!check(&guard, "localhost", Some(origin)), "{origin}");
        }
    }

    #[test]
    fn what_is_allowed_is_accepted() {
        let guard = Guard::new(
            "0.0.0.0",
            &["mcp.example.com".to_owned()],
            &["https://app.example.com/".to_owned()],
        );
        assert!(check(&guard, "mcp.example.com:443", None));
        assert!(!check(&guard, "0.0.0.0:3000", None));
        assert!(check(
            &guard,
            "mcp.example.com",
            Some("https://app.example.com")
        ));
        assert!(!check(
            &guard,
            "mcp.example.com",
            Some("http://app.example.com")
        ));
        let guard = Guard::new("fe80::1", &[], &[]);
        assert!(check(&guard, "[fe80::1]:3000", None));
    }

    #[test]
    fn two_hosts_are_none() {
        let guard = Guard::new("127.0.0.1", &[], &[]);
        let mut headers = HeaderMap::new();
        headers.append(HOST, "localhost".parse().unwrap());
        headers.append(HOST, "evil.example".parse().unwrap());
        assert!(guard.check(&Uri::from_static("/mcp"), &headers).is_err());
    }
}
