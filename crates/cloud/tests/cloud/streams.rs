//! Streams: taken up again by their rules.

use cloud::fake::{Fault, Options, What};
use cloud::{Event, Kind, RunStatus, Update};

use crate::kit::{ask, client, fake, hear, ms};

#[tokio::test]
async fn a_run_is_heard_once_though_it_is_told_twice() {
    let fake = fake(Options::default()).await;
    let client = client(&fake);
    let created = client.create(&ask("Fix the parser")).await.unwrap();
    let (heard, run) = hear(&mut client.stream(&created.agent.id, &created.run.id)).await;
    let said: String = heard
        .iter()
        .filter_map(|text| text.strip_prefix("text "))
        .collect();
    assert!(
        said.ends_with("Lists accept a trailing comma now. The tests pass."),
        "{said}"
    );
    assert_eq!(said.matches("trailing comma").count(), 1);
    assert_eq!(
        heard
            .iter()
            .filter(|text| text.starts_with("tool call-edit"))
            .count(),
        2
    );
    assert_eq!(run.unwrap().status, RunStatus::Finished);
}

#[tokio::test]
async fn the_last_id_is_sent_and_a_wrong_one_starts_from_the_beginning() {
    let fake = fake(Options::default()).await;
    let client = client(&fake);
    let created = client.create(&ask("Fix the parser")).await.unwrap();
    let (whole, _) = hear(&mut client.stream(&created.agent.id, &created.run.id)).await;
    fake.fault(Fault::once("/stream", What::CutAnswer { bytes: 3000 }));
    // The answer to the second connection says that the id is none of this run.
    let wrong = What::Refuse {
        status: 400,
        code: "invalid_last_event_id".to_owned(),
        retry_after: None,
    };
    fake.fault(Fault::once("/stream", wrong));
    let (heard, _) = hear(&mut client.stream(&created.agent.id, &created.run.id)).await;
    assert_eq!(heard, whole);
    let ids: Vec<_> = fake
        .requests()
        .into_iter()
        .filter(|one| one.path.ends_with("/stream"))
        .map(|one| one.last_event_id)
        .collect();
    assert_eq!(ids.len(), 4, "{ids:?}");
    assert!(
        ids[1].is_none() && ids[2].is_some() && ids[3].is_none(),
        "{ids:?}"
    );
}

#[tokio::test]
async fn an_expired_stream_says_so_and_one_that_expires_meanwhile_ends() {
    let fake = fake(Options::default()).await;
    let client = client(&fake);
    let created = client.create(&ask("Fix the parser")).await.unwrap();
    hear(&mut client.stream(&created.agent.id, &created.run.id)).await;
    fake.expire_streams();
    let error = client
        .stream(&created.agent.id, &created.run.id)
        .next()
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(error.kind(), Kind::Gone);

    let created = client.create(&ask("hang")).await.unwrap();
    let mut stream = client.stream(&created.agent.id, &created.run.id);
    while !matches!(
        stream.next().await,
        Some(Ok(Event::Update(Update::Tool { .. })))
    ) {}
    fake.expire_streams();
    fake.fault(Fault::once("/stream", What::LoseAnswer));
    let stop = {
        let (client, agent, run) = (
            client.clone(),
            created.agent.id.clone(),
            created.run.id.clone(),
        );
        async move {
            tokio::time::sleep(ms(50)).await;
            client.cancel(&agent, &run).await.unwrap();
        }
    };
    let ((_, run), ()) = tokio::join!(hear(&mut stream), stop);
    assert_eq!(run.unwrap().status, RunStatus::Cancelled);
}

#[tokio::test]
async fn what_a_key_may_not_do_ends_a_stream() {
    let fake = fake(Options {
        pace: ms(5),
        ..Options::default()
    })
    .await;
    let client = client(&fake);
    let created = client.create(&ask("hang")).await.unwrap();
    fake.fault(Fault::once("/stream", What::CutAnswer { bytes: 900 }));
    let mut stream = client.stream(&created.agent.id, &created.run.id);
    assert!(stream.next().await.unwrap().is_ok());
    fake.expire_key();
    let error = loop {
        if let Err(error) = stream.next().await.unwrap() {
            break error;
        }
    };
    assert_eq!(error.kind(), Kind::Unauthorized);
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_stream_that_cannot_be_had_is_polled() {
    let fake = fake(Options {
        pace: ms(3),
        ..Options::default()
    })
    .await;
    let client = client(&fake);
    let created = client.create(&ask("Fix the parser")).await.unwrap();
    let broken = What::Refuse {
        status: 502,
        code: String::new(),
        retry_after: None,
    };
    fake.fault(Fault {
        times: 0,
        ..Fault::once("/stream", broken)
    });
    let (heard, run) = hear(&mut client.stream(&created.agent.id, &created.run.id)).await;
    assert!(heard.is_empty());
    assert_eq!(
        run.unwrap().result.as_deref(),
        Some("Lists accept a trailing comma now. The tests pass.")
    );
}

/// A stream that cannot be had so often, and a run that ends then: all of it is heard in the end.
async fn ends_after(failures: u32) {
    let fake = fake(Options::default()).await;
    let client = client(&fake);
    let created = client.create(&ask("hang")).await.unwrap();
    let (agent, run) = (created.agent.id.as_str(), created.run.id.as_str());
    let broken = What::Refuse {
        status: 502,
        code: String::new(),
        retry_after: None,
    };
    fake.fault(Fault {
        times: failures,
        ..Fault::once("/stream", broken)
    });
    let tries = || {
        let requests = fake.requests();
        let streams = requests.iter().filter(|one| one.path.ends_with("/stream"));
        streams.count()
    };
    let stop = async {
        while tries() < failures as usize {
            tokio::time::sleep(ms(1)).await;
        }
        client.cancel(agent, run).await.unwrap();
    };
    let mut stream = client.stream(agent, run);
    let ((heard, ended), ()) = tokio::join!(hear(&mut stream), stop);
    assert_eq!(ended.unwrap().status, RunStatus::Cancelled, "{failures}");
    let (all, _) = hear(&mut client.stream(agent, run)).await;
    assert!(!all.is_empty());
    assert_eq!(heard, all, "{failures}");
}

#[tokio::test]
async fn what_happened_while_a_stream_could_not_be_had_is_heard_at_the_end() {
    // While it is tried again, and when it is no longer tried: the first try and six more.
    for failures in [3, 5, 7] {
        ends_after(failures).await;
    }
}

#[tokio::test]
async fn a_stream_in_small_pieces() {
    let fake = fake(Options::default()).await;
    let client = client(&fake);
    let created = client.create(&ask("Fix the parser")).await.unwrap();
    let (whole, _) = hear(&mut client.stream(&created.agent.id, &created.run.id)).await;
    fake.fault(Fault::once(
        "/stream",
        What::Slow {
            piece: 7,
            pause_ms: 0,
        },
    ));
    let (heard, _) = hear(&mut client.stream(&created.agent.id, &created.run.id)).await;
    assert_eq!(heard, whole);
}
