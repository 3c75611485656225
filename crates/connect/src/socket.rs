//! The connection: one message is one line here and one text frame there, in order, both ways at once.

use std::time::Duration;

use acp::framing::{Frame as Line, LineBuffer, MAX_LINE_BYTES};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode, header};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{self, Message, protocol::WebSocketConfig};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use crate::error::Error;

/// How long connecting may take.
const CONNECT_WAIT: Duration = Duration::from_secs(20);
/// How long the server may take to close after it was asked to.
const CLOSE_WAIT: Duration = Duration::from_millis(500);
/// A ping after this long keeps proxies from taking the connection for dead.
const PING_EVERY: Duration = Duration::from_secs(25);

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Carries messages until one side has ended.
pub async fn carry(url: &str, token: Option<&str>) -> Result<(), Error> {
    // The only provider there is; a second call changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (mut sink, mut stream) = connect(url, token).await?.split();
    let ended = tokio::select! {
        ended = receive(&mut stream) => ended,
        sent = send(&mut sink) => {
            sent?;
            // Stdin has ended: what is on its way still arrives.
            let _ = sink.send(Message::Close(None)).await;
            let _ = tokio::time::timeout(CLOSE_WAIT, receive(&mut stream)).await;
            Ok(())
        }
    };
    ended
}

async fn connect(url: &str, token: Option<&str>) -> Result<Socket, Error> {
    let failed = |why: String| Error::Connect {
        url: url.to_owned(),
        why,
    };
    let mut request = url
        .into_client_request()
        .map_err(|error| failed(error.to_string()))?;
    if let Some(token) = token {
        let mut bearer = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| {
            Error::Token("the token has characters a header cannot have".to_owned())
        })?;
        bearer.set_sensitive(true);
        request.headers_mut().insert(header::AUTHORIZATION, bearer);
    }
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_LINE_BYTES))
        .max_frame_size(Some(MAX_LINE_BYTES));
    let connecting = connect_async_with_config(request, Some(config), true);
    match tokio::time::timeout(CONNECT_WAIT, connecting).await {
        Err(_) => Err(failed(format!(
            "no answer for {} s",
            CONNECT_WAIT.as_secs()
        ))),
        Ok(Ok((socket, _))) => Ok(socket),
        Ok(Err(tungstenite::Error::Http(response))) => Err(Error::Refused {
            url: url.to_owned(),
            status: response.status().to_string(),
            hint: match response.status() {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "; check the token",
                StatusCode::NOT_FOUND => "; check the path of the URL",
                _ => "",
            },
        }),
        Ok(Err(error)) => Err(failed(error.to_string())),
    }
}

/// From the server to stdout, until it closes.
async fn receive(stream: &mut SplitStream<Socket>) -> Result<(), Error> {
    let mut out = tokio::io::stdout();
    while let Some(message) = stream.next().await {
        match message {
            Ok(Message::Text(text)) => {
                out.write_all(one_line(text.as_str()).as_bytes()).await?;
                out.write_all(b"\n").await?;
                out.flush().await?;
            }
            Ok(Message::Close(Some(frame)))
                if frame.code != CloseCode::Normal && frame.code != CloseCode::Away =>
            {
                return Err(Error::Closed(
                    format!("{} {}", frame.code, frame.reason).trim().to_owned(),
                ));
            }
            Ok(Message::Close(_)) => return Ok(()),
            // Pings are answered by the library; binary frames mean nothing in this protocol.
            Ok(_) => {}
            Err(tungstenite::Error::ConnectionClosed) => return Ok(()),
            Err(error) => return Err(Error::Lost(error.to_string())),
        }
    }
    Ok(())
}

/// A message without line breaks: between the parts of JSON they mean nothing, and inside a string there are none.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// From stdin to the server, until stdin ends.
async fn send(sink: &mut SplitSink<Socket, Message>) -> Result<(), Error> {
    let lost = |error: tungstenite::Error| Error::Lost(error.to_string());
    let mut stdin = tokio::io::stdin();
    let mut lines = LineBuffer::new(MAX_LINE_BYTES);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = match tokio::time::timeout(PING_EVERY, stdin.read(&mut buffer)).await {
            Ok(read) => read?,
            Err(_) => {
                sink.send(Message::Ping(Vec::new().into()))
                    .await
                    .map_err(lost)?;
                continue;
            }
        };
        if read == 0 {
            if let Some(Line::Line(line)) = lines.finish() {
                let text = String::from_utf8_lossy(line).into_owned();
                sink.send(Message::text(text)).await.map_err(lost)?;
            }
            return Ok(());
        }
        lines.push(&buffer[..read]);
        while let Some(line) = lines.next_frame() {
            if let Line::Line(line) = line {
                let text = String::from_utf8_lossy(line).into_owned();
                sink.feed(Message::text(text)).await.map_err(lost)?;
            }
        }
        sink.flush().await.map_err(lost)?;
    }
}
