//! The program of the dashboard over HTTPS: certificates of one's own, and proxies.

use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use cloud::fake::{Fake, Options};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::kit::{KEY, fake};

/// TLS in front of a fake, by a certificate for `localhost` of an unknown authority; that authority's certificate.
async fn behind_tls(fake: &Fake) -> (String, String) {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate().unwrap();
    let names = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = names.signed_by(&key, &issuer).unwrap();
    let secret = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], secret)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!(
        "https://localhost:{}",
        listener.local_addr().unwrap().port()
    );
    let to = fake.url().trim_start_matches("http://").to_owned();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (acceptor, to) = (acceptor.clone(), to.clone());
            tokio::spawn(async move {
                if let (Ok(mut outer), Ok(mut inner)) =
                    (acceptor.accept(socket).await, TcpStream::connect(to).await)
                {
                    let _ = tokio::io::copy_bidirectional(&mut outer, &mut inner).await;
                }
            });
        }
    });
    (url, pem)
}

/// A proxy that tunnels, and remembers where to.
async fn proxy() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let heard = Arc::clone(&heard);
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(socket.read_u8().await.unwrap());
                }
                let head = String::from_utf8(head).unwrap();
                let line = head.lines().next().unwrap().to_owned();
                let to = line.split(' ').nth(1).unwrap().to_owned();
                heard.lock().unwrap().push(head);
                if !line.starts_with("CONNECT ") {
                    let answer =
                        b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n";
                    let _ = socket.write_all(answer).await;
                    return;
                }
                let mut inner = TcpStream::connect(to).await.unwrap();
                socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut socket, &mut inner).await;
            });
        }
    });
    (url, asked)
}

/// Who the program says we are, or why it cannot.
async fn me(url: &str, env: &[(&str, &str)]) -> Result<String, String> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_cursor-agent-cloud"))
        .arg("rpc")
        .env_clear()
        .env("CURSOR_API_URL", url)
        .env("CURSOR_API_KEY", KEY)
        .envs(env.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let asked = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"me\",\"params\":{}}\n";
    let _ = stdin.write_all(asked).await;
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).await.unwrap();
    drop(stdin);
    if line.is_empty() {
        let mut why = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut why)
            .await
            .unwrap();
        return Err(why);
    }
    assert!(!line.contains(KEY), "{line}");
    let answer: Value = serde_json::from_str(&line).unwrap();
    match answer["result"]["userEmail"].as_str() {
        Some(email) => Ok(email.to_owned()),
        None => Err(answer["error"]["message"].as_str().unwrap().to_owned()),
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_come_from_ssl_cert_file_and_ssl_cert_dir() {
    let fake = fake(Options::default()).await;
    let (url, pem) = behind_tls(&fake).await;
    let dir = tempfile::tempdir().unwrap();
    let (ours, empty) = (dir.path().join("ours"), dir.path().join("empty"));
    std::fs::create_dir_all(&ours).unwrap();
    std::fs::create_dir_all(&empty).unwrap();
    let file = ours.join("authority.pem");
    std::fs::write(&file, pem).unwrap();
    let known = Ok("ada@example.org".to_owned());
    assert_eq!(me(&url, &[("SSL_CERT_FILE", text(&file))]).await, known);
    assert_eq!(me(&url, &[("SSL_CERT_DIR", text(&ours))]).await, known);

    // Another authority's certificate is not enough.
    let (_, other) = behind_tls(&fake).await;
    let stranger = dir.path().join("stranger.pem");
    std::fs::write(&stranger, other).unwrap();
    let started = std::time::Instant::now();
    let why = me(&url, &[("SSL_CERT_FILE", text(&stranger))])
        .await
        .unwrap_err();
    assert!(
        why.contains("certificate") && why.contains("SSL_CERT_FILE"),
        "{why}"
    );
    // It would be the same the next time.
    assert!(started.elapsed() < std::time::Duration::from_secs(3));

    // Without any, HTTPS says what is missing, and loopback works.
    let none = [("SSL_CERT_DIR", text(&empty))];
    let why = me(&url, &none).await.unwrap_err();
    assert!(why.contains("SSL_CERT_FILE"), "{why}");
    assert_eq!(me(&fake.url(), &none).await, known);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxies_come_from_the_environment() {
    let fake = fake(Options::default()).await;
    let (url, pem) = behind_tls(&fake).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), pem).unwrap();
    let trust = ("SSL_CERT_FILE", text(file.path()));
    let (proxy, asked) = proxy().await;
    let known = Ok("ada@example.org".to_owned());
    let host = url.trim_start_matches("https://");

    for name in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"] {
        assert_eq!(me(&url, &[trust, (name, &proxy)]).await, known, "{name}");
    }
    let through = std::mem::take(&mut *asked.lock().unwrap());
    assert_eq!(through.len(), 3);
    // The key is inside the tunnel only.
    for head in &through {
        assert!(
            head.starts_with(&format!("CONNECT {host} ")) && !head.contains(KEY),
            "{head}"
        );
    }
    assert_eq!(
        me(
            &url,
            &[trust, ("HTTPS_PROXY", &proxy), ("NO_PROXY", "localhost")]
        )
        .await,
        known
    );
    assert!(asked.lock().unwrap().is_empty());
}
