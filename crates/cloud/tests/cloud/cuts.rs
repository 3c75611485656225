//! The connection cut at any byte of any exchange: a clear state, never a second agent, no event lost or doubled.

use std::collections::BTreeSet;

use cloud::fake::{Fault, Options, What};
use cloud::{CreateRun, Kind, ListAgents, Prompt};

use crate::kit::{ask, client, fake, hear};

/// Bytes to cut at: all of the beginning, then some, and the end of what any exchange here has.
fn places() -> impl Iterator<Item = usize> {
    (0..40).chain((40..1600).step_by(13))
}

#[tokio::test]
async fn creating_an_agent() {
    let fake = fake(Options::default()).await;
    let client = client(&fake);
    let mut known = BTreeSet::new();
    for bytes in places() {
        for what in [What::CutAnswer { bytes }, What::CutRequest { bytes }] {
            let path = matches!(what, What::CutAnswer { .. }).then(|| "/v1/agents".to_owned());
            fake.fault(Fault {
                times: 1,
                path,
                what,
                ..Fault::default()
            });
            let created = client.create(&ask("hang")).await.unwrap();
            assert!(known.insert(created.agent.id));
            fake.heal();
        }
    }
    let there: BTreeSet<String> = fake.agent_ids().into_iter().collect();
    assert_eq!(there, known);
}

#[tokio::test]
async fn every_try_of_a_creation() {
    for forgets in [false, true] {
        let fake = fake(Options::default()).await;
        if forgets {
            fake.forget_keys();
        }
        let client = client(&fake);
        for bytes in places().step_by(9) {
            let before = fake.agent_count();
            let what = What::CutAnswer { bytes };
            fake.fault(Fault {
                times: 0,
                method: Some("POST".to_owned()),
                what,
                ..Fault::default()
            });
            match client.create(&ask("hang")).await {
                Ok(created) => assert!(fake.agent_ids().contains(&created.agent.id)),
                Err(error) => assert_eq!(error.kind(), Kind::Unconfirmed, "{error}"),
            }
            assert_eq!(fake.agent_count(), before + 1, "cut at {bytes}");
            fake.heal();
        }
    }
}

#[tokio::test]
async fn a_follow_up_a_stop_and_a_list() {
    let fake = fake(Options {
        agents: 2,
        ..Options::default()
    })
    .await;
    let client = client(&fake);
    let agent = fake.agent_ids().remove(1);
    let mut runs = fake.run_count(&agent);
    for bytes in places().step_by(3) {
        let cut = |end: &str| Fault::once(end, What::CutAnswer { bytes });
        fake.fault(cut("/runs"));
        let follow = CreateRun {
            prompt: Prompt::text("hang"),
            ..CreateRun::default()
        };
        let run = client.follow_up(&agent, &follow).await.unwrap();
        runs += 1;
        assert_eq!(fake.run_count(&agent), runs);
        fake.fault(cut("/cancel"));
        client.cancel(&agent, &run.id).await.unwrap();
        fake.fault(cut("/v1/agents"));
        assert_eq!(
            client
                .agents(&ListAgents::default())
                .await
                .unwrap()
                .items
                .len(),
            2
        );
        fake.heal();
    }
}

#[tokio::test]
async fn a_stream_inside_an_event_and_inside_a_character() {
    let fake = fake(Options::default()).await;
    let client = client(&fake);
    let created = client
        .create(&ask("Fix the “parser”, naïvely ✓"))
        .await
        .unwrap();
    let (agent, run) = (&created.agent.id, &created.run.id);
    let (whole, _) = hear(&mut client.stream(agent, run)).await;
    assert!(
        whole.len() > 15 && whole.iter().any(|text| text.contains('✓')),
        "{whole:?}"
    );
    for bytes in (0..300).step_by(3).chain((300..12_000).step_by(71)) {
        fake.fault(Fault::once("/stream", What::CutAnswer { bytes }));
        let (heard, end) = hear(&mut client.stream(agent, run)).await;
        assert_eq!(heard, whole, "cut at {bytes}");
        assert!(end.is_some());
        fake.heal();
    }
}

#[tokio::test]
async fn a_stream_cut_again_and_again_while_it_runs() {
    let fake = fake(Options {
        pace: crate::kit::ms(1),
        ..Options::default()
    })
    .await;
    let client = client(&fake);
    for bytes in [450, 700, 1111, 2048] {
        let quiet = client.create(&ask("Fix the parser")).await.unwrap();
        let (whole, _) = hear(&mut client.stream(&quiet.agent.id, &quiet.run.id)).await;
        fake.fault(Fault {
            times: 0,
            ..Fault::once("/stream", What::CutAnswer { bytes })
        });
        let created = client.create(&ask("Fix the parser")).await.unwrap();
        let (heard, end) = hear(&mut client.stream(&created.agent.id, &created.run.id)).await;
        fake.heal();
        assert!(end.is_some());
        // Each connection brings only so much: with too little, the rest is given up in the end, but never doubled.
        assert_eq!(heard, whole[..heard.len()], "cut at {bytes}");
        if bytes > 1000 {
            assert_eq!(heard.len(), whole.len(), "cut at {bytes}");
        }
    }
}
