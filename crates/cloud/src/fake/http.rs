//! As much of HTTP/1.1 as the fake needs, written by hand so that it can be broken at any byte.

use std::collections::BTreeMap;
use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const MAX_HEAD_BYTES: usize = 64 * 1024;
const MAX_BODY_BYTES: usize = 128 * 1024 * 1024;

/// A request.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// `GET` and so on.
    pub method: String,
    /// Decoded segments of the path.
    pub path: Vec<String>,
    /// The path as it came, without the query.
    pub raw_path: String,
    /// Decoded.
    pub query: BTreeMap<String, String>,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
}

/// A connection that may be limited to a number of bytes.
#[derive(Debug)]
pub struct Wire {
    socket: TcpStream,
    read: Vec<u8>,
    /// Bytes that may still be written.
    pub write_budget: Option<usize>,
}

impl Wire {
    /// Over this socket.
    #[must_use]
    pub fn new(socket: TcpStream) -> Self {
        Self {
            socket,
            read: Vec::new(),
            write_budget: None,
        }
    }

    /// Writes as much as may be written; an error when that was not all.
    ///
    /// # Errors
    /// When the connection is gone or has to end here.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let allowed = self
            .write_budget
            .map_or(bytes.len(), |budget| budget.min(bytes.len()));
        self.socket.write_all(&bytes[..allowed]).await?;
        if let Some(budget) = &mut self.write_budget {
            *budget -= allowed;
        }
        if allowed < bytes.len() {
            self.socket.flush().await?;
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }

    /// The next request; None when the client has no more. With `limit`, None as soon as that many bytes have arrived.
    ///
    /// # Errors
    /// When the connection breaks or what comes is no request.
    pub async fn request(&mut self, limit: Option<usize>) -> io::Result<Option<Request>> {
        let bad = |why: &'static str| io::Error::new(io::ErrorKind::InvalidData, why);
        let end = loop {
            if let Some(at) = self
                .read
                .windows(4)
                .position(|window| window == b"\r\n\r\n")
            {
                break at;
            }
            if self.read.len() > MAX_HEAD_BYTES {
                return Err(bad("head too large"));
            }
            if !self.more(limit).await? {
                return Ok(None);
            }
        };
        let head = String::from_utf8_lossy(&self.read[..end]).into_owned();
        self.read.drain(..end + 4);
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return Err(bad("no request line"));
        };
        let (raw_path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut request = Request {
            method: method.to_owned(),
            path: raw_path
                .split('/')
                .filter(|segment| !segment.is_empty())
                .map(decode)
                .collect(),
            raw_path: raw_path.to_owned(),
            query: query
                .split('&')
                .filter_map(|pair| pair.split_once('='))
                .map(|(name, value)| (decode(name), decode(&value.replace('+', " "))))
                .collect(),
            ..Request::default()
        };
        for line in lines {
            if let Some((name, value)) = line.split_once(':') {
                request
                    .headers
                    .insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
            }
        }
        let length = request
            .headers
            .get("content-length")
            .and_then(|value| value.parse::<usize>().ok());
        let spent = end + 4;
        if let Some(length) = length {
            if length > MAX_BODY_BYTES {
                return Err(bad("body too large"));
            }
            while self.read.len() < length {
                if !self
                    .more(limit.map(|limit| limit.saturating_sub(spent)))
                    .await?
                {
                    return Ok(None);
                }
            }
            request.body = self.read.drain(..length).collect();
        } else if request
            .headers
            .get("transfer-encoding")
            .is_some_and(|value| value.contains("chunked"))
        {
            loop {
                let line = loop {
                    if let Some(at) = self.read.windows(2).position(|window| window == b"\r\n") {
                        break at;
                    }
                    if !self.more(None).await? {
                        return Ok(None);
                    }
                };
                let size = String::from_utf8_lossy(&self.read[..line]).into_owned();
                let size =
                    usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16)
                        .map_err(|_| bad("no chunk size"))?;
                while self.read.len() < line + 2 + size + 2 {
                    if !self.more(None).await? {
                        return Ok(None);
                    }
                }
                request
                    .body
                    .extend_from_slice(&self.read[line + 2..line + 2 + size]);
                self.read.drain(..line + 2 + size + 2);
                if size == 0 {
                    break;
                }
            }
        }
        Ok(Some(request))
    }

    async fn more(&mut self, limit: Option<usize>) -> io::Result<bool> {
        let mut block = [0; 16 * 1024];
        let wanted = match limit {
            Some(limit) if self.read.len() >= limit => return Ok(false),
            Some(limit) => (limit - self.read.len()).min(block.len()),
            None => block.len(),
        };
        let read = self.socket.read(&mut block[..wanted]).await?;
        self.read.extend_from_slice(&block[..read]);
        Ok(read > 0)
    }

    /// Until the client is gone, or says something.
    pub async fn client_gone(&mut self) {
        if !self.read.is_empty() {
            return;
        }
        let mut byte = [0; 1];
        let _ = self.socket.peek(&mut byte).await;
    }
}

fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = text
            .get(at + 1..at + 3)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (bytes[at], hex) {
            (b'%', Some(byte)) => {
                decoded.push(byte);
                at += 3;
            }
            (byte, _) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
