//! The client: one request with its time-outs, its errors by kind, and repeats of what is safe to repeat.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::backoff::Backoff;
use crate::clock;
use crate::error::{Error, Kind};
use crate::key::{Key, KeySource};

/// Where the API is, unless told otherwise.
pub const DEFAULT_URL: &str = "https://api.cursor.com";

/// Ours and the MCP server's; then that of Cursor's own SDK.
pub const URL_VARIABLES: [&str; 2] = ["CURSOR_API_URL", "CURSOR_BACKEND_URL"];

/// A larger answer is not one of this API.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// How much of an answer that is no JSON is shown.
const SHOWN_CHARS: usize = 200;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TEAM_ID: HeaderName = HeaderName::from_static("x-cursor-team-id");
const STREAMING: HeaderName = HeaderName::from_static("x-cursor-streaming");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// To connect.
    pub connect: Duration,
    /// A request with its whole answer.
    pub request: Duration,
    /// Creating an agent or a run with the whole answer.
    pub create: Duration,
    /// Between two bytes of a stream or of a download; a stream has heartbeats.
    pub silence: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            request: Duration::from_secs(30),
            create: Duration::from_secs(90),
            silence: Duration::from_secs(60),
        }
    }
}

/// How the API is reached.
#[derive(Debug, Default)]
pub struct Config {
    /// [`DEFAULT_URL`] without it.
    pub url: Option<String>,
    /// Where the key comes from.
    pub key: KeySource,
    /// For the keys of teams.
    pub team_id: Option<String>,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// How long to wait between tries.
    pub backoff: Backoff,
    /// How a stream is taken up again.
    pub resume: Resume,
}

impl Config {
    /// From `CURSOR_API_URL` or `CURSOR_BACKEND_URL`, `CURSOR_API_KEY` or `CURSOR_API_KEY_COMMAND`, and `CURSOR_TEAM_ID`.
    #[must_use]
    pub fn from_env() -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        Self {
            url: URL_VARIABLES.iter().find_map(|name| variable(name)),
            key: KeySource::from_env(),
            team_id: variable("CURSOR_TEAM_ID"),
            ..Self::default()
        }
    }
}

/// How a stream is taken up again after a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resume {
    /// The first wait; each is twice the one before.
    pub first: Duration,
    /// No wait is longer.
    pub longest: Duration,
    /// So often; a stream that brings something new starts counting again.
    pub tries: u32,
    /// Afterwards the run is asked for at this interval.
    pub poll: Duration,
}

impl Default for Resume {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(30),
            tries: 6,
            poll: Duration::from_secs(15),
        }
    }
}

/// A client of the API. A cheap handle.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    http: reqwest::Client,
    /// For artifacts: other hosts, no key, redirects allowed.
    files: reqwest::Client,
    base: Url,
    key: KeySource,
    team_id: Option<HeaderValue>,
    timeouts: Timeouts,
    backoff: Backoff,
    resume: Resume,
    /// How far the server's clock is ahead of ours.
    skew_ms: AtomicI64,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("base", &self.base())
            .finish_non_exhaustive()
    }
}

/// A request, and whether it may be sent twice.
#[derive(Debug)]
pub(crate) struct Call {
    pub method: Method,
    /// Segments of the path: what they hold cannot leave its place.
    pub path: Vec<String>,
    pub query: Vec<(&'static str, String)>,
    pub body: Option<Value>,
    pub idempotency_key: Option<String>,
    pub safe: bool,
}

impl Call {
    pub fn get(path: &[&str]) -> Self {
        Self::new(Method::GET, path, true)
    }

    pub fn new(method: Method, path: &[&str], safe: bool) -> Self {
        Self {
            method,
            path: path.iter().map(|&segment| segment.to_owned()).collect(),
            query: Vec::new(),
            body: None,
            idempotency_key: None,
            safe,
        }
    }

    pub fn query(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        if let Some(value) = value {
            self.query.push((name, value.to_string()));
        }
        self
    }
}

/// An answer with its JSON not yet read.
pub(crate) struct Answer {
    pub status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Client {
    /// A client; nothing is sent yet, and no command for the key is run.
    ///
    /// # Errors
    /// When the URL cannot be used.
    pub fn new(config: Config) -> Result<Self, Error> {
        let base = base_url(config.url.as_deref().unwrap_or(DEFAULT_URL))?;
        let team_id = config
            .team_id
            .as_deref()
            .map(|id| {
                HeaderValue::from_str(id).map_err(|_| Error::new(Kind::Config, "Invalid team id"))
            })
            .transpose()?;
        // Fails when another provider was installed before, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = |redirect| {
            reqwest::Client::builder()
                .user_agent(concat!("cursor-agent.nvim/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(config.timeouts.connect)
                .read_timeout(config.timeouts.silence)
                .redirect(redirect)
        };
        let build = |redirect: fn() -> reqwest::redirect::Policy| {
            builder(redirect())
                .build()
                // Without any certificates, loopback can still be reached.
                .or_else(|error| match base.scheme() {
                    "http" => builder(redirect())
                        .tls_certs_only(std::iter::empty())
                        .build(),
                    _ => Err(error),
                })
                .map_err(|error| {
                    let why = causes(&error);
                    let hint = if why.contains("CA certificates") {
                        "; install your system's CA certificates, or set SSL_CERT_FILE"
                    } else {
                        ""
                    };
                    Error::new(Kind::Config, format!("Could not set up HTTPS: {why}{hint}"))
                })
        };
        Ok(Self(Arc::new(Inner {
            // The key goes to the API only, not to where it may point.
            http: build(reqwest::redirect::Policy::none)?,
            files: build(|| reqwest::redirect::Policy::limited(5))?,
            base,
            key: config.key,
            team_id,
            timeouts: config.timeouts,
            backoff: config.backoff,
            resume: config.resume,
            skew_ms: AtomicI64::new(0),
        })))
    }

    /// A client with the environment's settings.
    ///
    /// # Errors
    /// When the URL cannot be used.
    pub fn from_env() -> Result<Self, Error> {
        Self::new(Config::from_env())
    }

    /// Where the API is.
    #[must_use]
    pub fn base(&self) -> &str {
        self.0.base.as_str().trim_end_matches('/')
    }

    /// Now, by the server's clock, in ms since 1970: the API's times are compared with this.
    #[must_use]
    pub fn server_now_ms(&self) -> i64 {
        clock::now_ms() + self.0.skew_ms.load(Ordering::Relaxed)
    }

    pub(crate) fn resume(&self) -> Resume {
        self.0.resume
    }

    fn url(&self, call: &Call) -> Result<Url, Error> {
        let mut url = self.0.base.clone();
        if call
            .path
            .iter()
            .any(|segment| segment.is_empty() || segment == "." || segment == "..")
        {
            return Err(Error::new(Kind::Invalid, "An id is missing").unsent());
        }
        url.path_segments_mut()
            .map_err(|()| Error::new(Kind::Config, "The URL of the API has no path"))?
            .pop_if_empty()
            .extend(&call.path);
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        Ok(url)
    }

    /// The request, and the key it carries.
    async fn request(&self, call: &Call) -> Result<(reqwest::RequestBuilder, Key), Error> {
        let inner = &*self.0;
        let url = self.url(call)?;
        let key = inner.key.key().await.map_err(Error::unsent)?;
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", key.expose()))
            .map_err(|_| Error::new(Kind::NoKey, "The Cursor API key cannot be sent").unsent())?;
        bearer.set_sensitive(true);
        let mut request = inner
            .http
            .request(call.method.clone(), url)
            .header(header::AUTHORIZATION, bearer);
        if let Some(team) = &inner.team_id {
            request = request.header(TEAM_ID, team);
        }
        if let Some(key) = &call.idempotency_key {
            request = request.header(IDEMPOTENCY_KEY, key);
        }
        if let Some(body) = &call.body {
            request = request.json(body);
        }
        Ok((request, key))
    }

    /// Sends once, reads the whole answer.
    pub(crate) async fn send_once(&self, call: &Call) -> Result<Answer, Error> {
        let timeouts = self.0.timeouts;
        let limit = if call.idempotency_key.is_some() {
            timeouts.create
        } else {
            timeouts.request
        };
        let (request, key) = self.request(call).await?;
        let request = request
            .header(header::ACCEPT, "application/json")
            .timeout(limit);
        let mut response = request.send().await.map_err(|error| self.network(&error))?;
        self.learn_clock(response.headers());
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break,
                // The status is known and says more than the cut does.
                Err(_) if response.status().is_client_error() => break,
                Err(error) => {
                    let id = self.request_id(response.headers());
                    return Err(self.network(&error).with_request_id(id));
                }
            }
            if body.len() > MAX_BODY_BYTES {
                return Err(Error::new(Kind::Malformed, "The response is too large"));
            }
        }
        let answer = Answer {
            status: response.status(),
            headers: response.headers().clone(),
            body,
        };
        if answer.status.is_success() {
            Ok(answer)
        } else {
            Err(self.refused(&key, &answer).await)
        }
    }

    /// Sends, and again after a while where that is safe and may help.
    pub(crate) async fn send(&self, call: &Call) -> Result<Answer, Error> {
        let mut failures = 0;
        loop {
            let error = match self.send_once(call).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            failures += 1;
            let repeat = call.safe || !error.may_have_happened();
            match self.wait_for(&error, failures) {
                Some(wait) if repeat => tokio::time::sleep(wait).await,
                _ => return Err(error),
            }
        }
    }

    /// How long to wait after this failure; None: do not try again.
    pub(crate) fn wait_for(&self, error: &Error, failures: u32) -> Option<Duration> {
        let backoff = self.0.backoff;
        if !error.is_transient() || failures >= backoff.tries {
            return None;
        }
        let wait = backoff.wait(failures);
        match error.retry_after() {
            // Never earlier than asked; jitter only adds.
            Some(after) if after <= backoff.patience => Some(after + wait / 4),
            Some(_) => None,
            None => Some(wait),
        }
    }

    /// Sends, and reads what came as JSON. An answer that is none counts as a failure that may be repeated.
    pub(crate) async fn json<T: DeserializeOwned>(&self, call: &Call) -> Result<T, Error> {
        let mut failures = 0;
        loop {
            let answer = self.send(call).await?;
            let error = match self.read(&answer) {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            failures += 1;
            match self.wait_for(&error, failures) {
                Some(wait) if call.safe => tokio::time::sleep(wait).await,
                _ => return Err(error),
            }
        }
    }

    pub(crate) fn read<T: DeserializeOwned>(&self, answer: &Answer) -> Result<T, Error> {
        serde_json::from_slice(&answer.body).map_err(|error| {
            let shown = self.shown(&answer.body);
            Error::new(
                Kind::Malformed,
                format!("Could not read the response ({error}): {shown}"),
            )
            .with_status(answer.status.as_u16())
            .with_request_id(self.request_id(&answer.headers))
        })
    }

    /// Opens a stream of events.
    pub(crate) async fn open_stream(
        &self,
        path: &[&str],
        last_id: Option<&str>,
    ) -> Result<reqwest::Response, Error> {
        let (request, key) = self.request(&Call::get(path)).await?;
        let mut request = request
            .header(header::ACCEPT, "text/event-stream")
            .header(STREAMING, "true");
        if let Some(id) = last_id {
            request = request.header(LAST_EVENT_ID, id);
        }
        // The headers have their limit; what follows may take hours.
        let sent = tokio::time::timeout(self.0.timeouts.request, request.send()).await;
        let response = sent
            .map_err(|_| Error::new(Kind::Timeout, "The stream did not start in time"))?
            .map_err(|error| self.network(&error))?;
        self.learn_clock(response.headers());
        if response.status().is_success() {
            return Ok(response);
        }
        let (status, headers) = (response.status(), response.headers().clone());
        let body = tokio::time::timeout(self.0.timeouts.request, response.bytes()).await;
        let body = body
            .ok()
            .and_then(Result::ok)
            .map(Vec::from)
            .unwrap_or_default();
        let answer = Answer {
            status,
            headers,
            body,
        };
        Err(self.refused(&key, &answer).await)
    }

    /// Reads a file from where an artifact is. The key is not sent there.
    pub(crate) async fn open_file(&self, url: &str) -> Result<reqwest::Response, Error> {
        let url = Url::parse(url)
            .map_err(|_| Error::new(Kind::Malformed, "The artifact has no valid URL"))?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(Error::new(
                Kind::Malformed,
                "The artifact's URL is not http or https",
            ));
        }
        let response = self
            .0
            .files
            .get(url)
            .send()
            .await
            .map_err(|error| self.network(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let kind = if status == 403 || status == 410 {
            Kind::Gone
        } else {
            kind_of(status, None)
        };
        Err(Error::new(kind, format!("The file's server answered {status}")).with_status(status))
    }

    fn learn_clock(&self, headers: &HeaderMap) {
        if let Some(skew) =
            text_of(headers, &header::DATE).and_then(|date| clock::skew_ms(&date, clock::now_ms()))
        {
            self.0.skew_ms.store(skew, Ordering::Relaxed);
        }
    }

    /// What an answer that is no success says, to a request with this key.
    async fn refused(&self, key: &Key, answer: &Answer) -> Error {
        if answer.status == StatusCode::UNAUTHORIZED {
            self.0.key.refused(key).await;
        }
        self.refusal(answer)
    }

    fn refusal(&self, answer: &Answer) -> Error {
        let status = answer.status.as_u16();
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let inner = body
            .get("error")
            .filter(|inner| inner.is_object())
            .unwrap_or(&body);
        let field = |name: &str| {
            inner
                .get(name)
                .and_then(Value::as_str)
                .map(|text| self.redact(text))
        };
        let code = field("code");
        let kind = kind_of(status, code.as_deref());
        let said = field("message")
            .or_else(|| {
                body.get("error")
                    .and_then(Value::as_str)
                    .map(|text| self.redact(text))
            })
            .filter(|text| !text.is_empty())
            .unwrap_or_else(|| {
                if body.is_null() && !answer.body.is_empty() {
                    self.shown(&answer.body)
                } else {
                    answer
                        .status
                        .canonical_reason()
                        .unwrap_or("no reason given")
                        .to_owned()
                }
            });
        let said = match field("provider").filter(|name| !name.is_empty()) {
            Some(provider) => format!("{said} (provider: {provider})"),
            None => said,
        };
        let message = match kind {
            Kind::Unauthorized => format!("Cursor did not accept the API key (401): {said}"),
            Kind::Forbidden => format!("The API key is not allowed to do this ({status}): {said}"),
            Kind::NotFound => format!("Not found (404): {said}"),
            Kind::Busy => format!("The agent is still working (409): {said}"),
            Kind::RateLimited => format!("Too many requests (429): {said}"),
            Kind::Server => format!("Cursor's server failed ({status}): {said}"),
            Kind::Malformed => format!("The response is not from Cursor's API ({status}): {said}"),
            _ => format!("Cursor refused the request ({status}): {said}"),
        };
        let after = text_of(&answer.headers, &header::RETRY_AFTER).and_then(|value| {
            clock::retry_after(&value, text_of(&answer.headers, &header::DATE).as_deref())
        });
        Error::new(kind, message)
            .with_status(status)
            .with_code(code)
            .with_request_id(self.request_id(&answer.headers))
            .with_help_url(field("helpUrl"))
            .with_retry_after(after)
    }

    pub(crate) fn network(&self, error: &reqwest::Error) -> Error {
        if error.is_timeout() {
            let unsent = error.is_connect();
            let what = if unsent {
                "Connection timed out"
            } else {
                "The response timed out"
            };
            let failure = Error::new(Kind::Timeout, format!("{what} from {}", self.host()));
            return if unsent { failure.unsent() } else { failure };
        }
        let why = self.redact(&causes(error));
        // It would be the same the next time.
        if why.contains("peer certificate") {
            let advice = "If your organisation issued it, add its CA certificate to SSL_CERT_FILE or SSL_CERT_DIR";
            let what = format!(
                "The certificate of {} is not trusted ({why}). {advice}",
                self.host()
            );
            return Error::new(Kind::Config, what).unsent();
        }
        let failure = Error::new(
            Kind::Network,
            format!("No response from {}: {why}", self.host()),
        );
        if error.is_connect() || error.is_builder() {
            failure.unsent()
        } else {
            failure
        }
    }

    fn host(&self) -> String {
        let base = &self.0.base;
        let host = base.host_str().unwrap_or("the API");
        base.port()
            .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    fn request_id(&self, headers: &HeaderMap) -> Option<String> {
        text_of(headers, &REQUEST_ID).map(|id| self.redact(&id))
    }

    pub(crate) fn redact(&self, text: &str) -> String {
        self.0.key.redact(text)
    }

    fn shown(&self, body: &[u8]) -> String {
        let text = self.redact(&String::from_utf8_lossy(body));
        let mut shown: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if shown.chars().count() > SHOWN_CHARS {
            shown = shown.chars().take(SHOWN_CHARS).collect();
            shown.push('…');
        }
        shown
    }
}

fn base_url(text: &str) -> Result<Url, Error> {
    let bad = |why: &str| Error::new(Kind::Config, format!("The URL of Cursor's API {why}"));
    let mut url = Url::parse(text.trim()).map_err(|_| bad("is not a URL"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("must not contain a user name or password"));
    }
    let loopback = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => return Err(bad("has no host")),
    };
    match url.scheme() {
        "https" => {}
        "http" if loopback => {}
        "http" => {
            return Err(bad(
                "must begin with https://; otherwise the key would be sent in the clear",
            ));
        }
        _ => return Err(bad("must begin with https://")),
    }
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

fn kind_of(status: u16, code: Option<&str>) -> Kind {
    match (status, code) {
        (409, Some("agent_busy")) => Kind::Busy,
        (400 | 413 | 415 | 422, _) => Kind::Invalid,
        (401, _) => Kind::Unauthorized,
        (402 | 403, _) => Kind::Forbidden,
        (404, _) => Kind::NotFound,
        (408 | 504, _) => Kind::Timeout,
        (409, _) => Kind::Conflict,
        (410, _) => Kind::Gone,
        (429, _) => Kind::RateLimited,
        (500.., _) => Kind::Server,
        (300..400, _) => Kind::Malformed,
        _ => Kind::Invalid,
    }
}

fn text_of(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

/// The innermost causes of a failure, without the URL, which may be signed.
fn causes(error: &reqwest::Error) -> String {
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(error);
    let mut texts: Vec<String> = Vec::new();
    while let Some(inner) = cause {
        let text = inner.to_string();
        if !texts.last().is_some_and(|last| last.contains(&text)) {
            texts.push(text);
        }
        cause = inner.source();
    }
    match texts.as_slice() {
        [] => "the request failed".to_owned(),
        [.., _, _] => texts.split_off(texts.len() - 2).join(": "),
        [one] => one.clone(),
    }
}
