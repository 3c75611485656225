//! A fake and a client that does not wait long.

use std::time::Duration;

use cloud::backoff::Backoff;
use cloud::client::Resume;
use cloud::fake::{Fake, Options};
use cloud::{
    Client, Config, CreateAgent, Event, KeySource, Prompt, Repo, RunStream, Timeouts, Update,
};

pub const KEY: &str = "key_planted_0123456789";

pub fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

pub async fn fake(options: Options) -> Fake {
    Fake::start(Options {
        key: Some(KEY.to_owned()),
        ..options
    })
    .await
    .unwrap()
}

pub fn config(fake: &Fake) -> Config {
    Config {
        url: Some(fake.url()),
        key: KeySource::given(KEY),
        ..base_config()
    }
}

/// Without a server.
pub fn base_config() -> Config {
    Config {
        timeouts: Timeouts {
            connect: ms(2000),
            request: ms(2000),
            create: ms(2000),
            silence: ms(2000),
        },
        backoff: Backoff {
            first: ms(2),
            longest: ms(10),
            tries: 4,
            patience: ms(3000),
        },
        resume: Resume {
            first: ms(2),
            longest: ms(10),
            tries: 6,
            poll: ms(10),
        },
        ..Config::default()
    }
}

pub fn client(fake: &Fake) -> Client {
    Client::new(config(fake)).unwrap()
}

pub fn ask(prompt: &str) -> CreateAgent {
    CreateAgent {
        prompt: Prompt::text(prompt),
        repos: vec![Repo {
            url: "https://github.com/acme/app".to_owned(),
            starting_ref: Some("main".to_owned()),
            pr_url: None,
        }],
        auto_create_pr: Some(true),
        ..CreateAgent::default()
    }
}

/// Everything of a run, in a form that can be compared: what was heard, and its end.
pub async fn hear(stream: &mut RunStream) -> (Vec<String>, Option<cloud::Run>) {
    let mut heard = Vec::new();
    while let Some(event) = stream.next().await {
        match event.unwrap() {
            Event::Update(Update::Text(text)) => heard.push(format!("text {text}")),
            Event::Update(Update::Thinking(text)) => heard.push(format!("thinking {text}")),
            Event::Update(Update::UserMessage(text)) => heard.push(format!("user {text}")),
            Event::Update(Update::Tool { id, call, stage }) => {
                heard.push(format!("tool {id} {} {stage:?}", call.kind))
            }
            Event::Update(Update::Other(kind, value)) => heard.push(format!("{kind} {value}")),
            Event::Update(other) => heard.push(format!("{other:?}")),
            Event::Ended(run) => return (heard, Some(*run)),
            Event::Status(_) | Event::Interrupted(_) => {}
        }
    }
    (heard, None)
}
