//! A server written from the API's tables alone: it says what a test gives it, byte for byte, and shares nothing with the fake.

use std::sync::{Arc, Mutex};

use cloud::{Client, Config};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::kit::{KEY, base_config, ms};

/// What it was asked: the method and the path with its query, the headers.
#[derive(Debug, Clone)]
pub struct Asked {
    pub line: String,
    pub head: String,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// What it says.
#[derive(Debug, Clone, Default)]
pub struct Say {
    pub bytes: Vec<u8>,
    /// In pieces of this size; 0: at once.
    pub piece: usize,
    /// The connection stays open for this long afterwards.
    pub hold_ms: u64,
}

/// A JSON answer.
pub fn json(status: u16, body: &Value) -> Say {
    let body = body.to_string();
    let bytes = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nx-request-id: raw-7\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    Say {
        bytes: bytes.into_bytes(),
        ..Say::default()
    }
}

/// Events, with the end of the connection as their end.
pub fn events(text: &str) -> Say {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nconnection: close\r\n\r\n";
    Say {
        bytes: format!("{head}{text}").into_bytes(),
        ..Say::default()
    }
}

pub struct Raw {
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    server: tokio::task::JoinHandle<()>,
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Raw {
    /// With a function from a request and its number among those with the same line.
    pub async fn start(answer: impl Fn(&Asked, usize) -> Say + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (answer, heard) = (Arc::new(answer), Arc::clone(&asked));
        let server = tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let (answer, heard) = (Arc::clone(&answer), Arc::clone(&heard));
                tokio::spawn(async move {
                    let mut read = Vec::new();
                    let mut block = [0; 4096];
                    let request = loop {
                        match socket.read(&mut block).await {
                            Ok(0) | Err(_) => return,
                            Ok(count) => read.extend_from_slice(&block[..count]),
                        }
                        if let Some(request) = parse(&read) {
                            break request;
                        }
                    };
                    let number = {
                        let mut heard = heard.lock().unwrap();
                        let number = heard.iter().filter(|one| one.line == request.line).count();
                        heard.push(request.clone());
                        number
                    };
                    let say = answer(&request, number);
                    let piece = if say.piece == 0 {
                        usize::MAX
                    } else {
                        say.piece
                    };
                    for bytes in say.bytes.chunks(piece) {
                        if socket.write_all(bytes).await.is_err() || socket.flush().await.is_err() {
                            return;
                        }
                        if say.piece > 0 {
                            tokio::task::yield_now().await;
                        }
                    }
                    tokio::time::sleep(ms(say.hold_ms)).await;
                });
            }
        });
        Self { url, asked, server }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub fn client(&self) -> Client {
        Client::new(Config {
            url: Some(self.url.clone()),
            key: cloud::KeySource::given(KEY),
            ..base_config()
        })
        .unwrap()
    }
}

fn parse(read: &[u8]) -> Option<Asked> {
    let text = String::from_utf8_lossy(read).into_owned();
    let (head, body) = text.split_once("\r\n\r\n")?;
    let (line, head) = head.split_once("\r\n")?;
    let line = line.rsplit_once(' ')?.0.to_owned();
    let asked = Asked {
        line,
        head: head.to_owned(),
    };
    let length: usize = asked
        .header("content-length")
        .map_or(0, |text| text.parse().unwrap());
    (body.len() >= length).then_some(asked)
}
