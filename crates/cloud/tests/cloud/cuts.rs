//! The connection cut at any byte of any exchange: a clear state, never a second agent, no event lost or doubled.

use cloud::fake::{Fake, Fault, Options, What};
use cloud::{Client, CreateRun, Kind, ListAgents, Prompt};

use crate::kit::{ask, client, fake, hear};

/// Workers, each with a server of its own and its share of the bytes.
const SHARES: usize = 4;

/// Does it again and again, cut one byte later each time, until it goes through uncut, which `work` says with false.
async fn at_every_byte(
    agents: usize,
    work: impl AsyncFn(&Fake, &Client, usize) -> bool + Copy,
) -> usize {
    let share = |first: usize| async move {
        let fake = fake(Options {
            agents,
            ..Options::default()
        })
        .await;
        let client = client(&fake);
        let mut bytes = first;
        while work(&fake, &client, bytes).await {
            bytes += SHARES;
        }
        bytes
    };
    let ends = futures_util::future::join_all((0..SHARES).map(share)).await;
    ends.into_iter().max().unwrap()
}

/// Does it with its answer cut once; whether it was cut, and so asked for more than once.
async fn cut_answer<T>(
    fake: &Fake,
    path: &str,
    bytes: usize,
    work: impl Future<Output = T>,
) -> (T, bool) {
    let count = || {
        let asked = fake.requests();
        asked.iter().filter(|one| one.path.ends_with(path)).count()
    };
    let before = count();
    fake.fault(Fault::once(path, What::CutAnswer { bytes }));
    let done = work.await;
    fake.heal();
    (done, count() > before + 1)
}

#[tokio::test]
async fn creating_an_agent() {
    let most = at_every_byte(0, async |fake, client, bytes| {
        let before = fake.agent_count();
        let (created, cut) =
            cut_answer(fake, "/v1/agents", bytes, client.create(&ask("hang"))).await;
        let id = created.unwrap().agent.id;
        assert_eq!(fake.agent_ids()[0], id);
        assert_eq!(fake.agent_count(), before + 1, "cut at {bytes}");
        cut
    })
    .await;
    assert!(most > 500, "{most}");
}

#[tokio::test]
async fn the_request_for_an_agent() {
    let most = at_every_byte(0, async |fake, client, bytes| {
        let before = fake.agent_count();
        fake.fault(Fault {
            times: 1,
            what: What::CutRequest { bytes },
            ..Fault::default()
        });
        client.create(&ask("hang")).await.unwrap();
        assert_eq!(fake.agent_count(), before + 1, "cut at {bytes}");
        let cut = !fake.has_faults();
        fake.heal();
        cut
    })
    .await;
    assert!(most > 300, "{most}");
}

#[tokio::test]
async fn every_try_of_a_creation() {
    for forgets in [false, true] {
        let fake = fake(Options::default()).await;
        if forgets {
            fake.forget_keys();
        }
        let client = client(&fake);
        for bytes in (0..1200).step_by(37) {
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
async fn a_follow_up_and_a_stop() {
    at_every_byte(2, async |fake, client, bytes| {
        let agent = fake.agent_ids().remove(1);
        let runs = fake.run_count(&agent);
        let follow = CreateRun {
            prompt: Prompt::text("hang"),
            ..CreateRun::default()
        };
        let (run, first) =
            cut_answer(fake, "/runs", bytes, client.follow_up(&agent, &follow)).await;
        let run = run.unwrap();
        assert_eq!(fake.run_count(&agent), runs + 1, "cut at {bytes}");
        let (stopped, second) =
            cut_answer(fake, "/cancel", bytes, client.cancel(&agent, &run.id)).await;
        stopped.unwrap();
        first || second
    })
    .await;
}

#[tokio::test]
async fn what_is_read_archived_and_deleted() {
    at_every_byte(1, async |fake, client, bytes| {
        let agent = fake.agent_ids().remove(0);
        let (list, first) = cut_answer(
            fake,
            "/v1/agents",
            bytes,
            client.agents(&ListAgents::default()),
        )
        .await;
        assert_eq!(list.unwrap().items.len(), 1);
        let (usage, second) = cut_answer(fake, "/usage", bytes, client.usage(&agent, None)).await;
        assert_eq!(usage.unwrap().runs.len(), 1);
        let (put_away, third) = cut_answer(fake, "/archive", bytes, client.archive(&agent)).await;
        put_away.unwrap();
        client.unarchive(&agent).await.unwrap();
        let gone = client.create(&ask("hang")).await.unwrap().agent.id;
        let (deleted, fourth) = cut_answer(fake, &gone, bytes, client.delete(&gone)).await;
        deleted.unwrap();
        assert_eq!(fake.agent_ids(), [agent], "cut at {bytes}");
        first || second || third || fourth
    })
    .await;
}

#[tokio::test]
async fn what_the_older_api_creates_is_sent_once() {
    at_every_byte(0, async |fake, client, bytes| {
        let before = fake.agent_count();
        let create = cloud::v0::Create {
            prompt: Prompt::text("hang"),
            source: cloud::v0::Source {
                repository: "https://github.com/acme/app".to_owned(),
                reference: None,
            },
            ..cloud::v0::Create::default()
        };
        fake.fault(Fault::once("/v0/agents", What::CutAnswer { bytes }));
        let created = client.create_v0(&create).await;
        fake.heal();
        assert_eq!(fake.agent_count(), before + 1, "cut at {bytes}");
        match created {
            Ok(_) => false,
            Err(error) => {
                assert_eq!(error.kind(), Kind::Unconfirmed, "{error}");
                true
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_download_leaves_the_whole_file_or_none() {
    let fake = fake(Options {
        agents: 1,
        ..Options::default()
    })
    .await;
    let client = client(&fake);
    let agent = fake.agent_ids().remove(0);
    let dir = tempfile::tempdir().unwrap();
    for bytes in 0.. {
        let to = dir.path().join(format!("report-{bytes}.md"));
        fake.fault(Fault::once("/files/0", What::CutAnswer { bytes }));
        let done = client
            .download(&agent, "/opt/cursor/artifacts/report.md", &to)
            .await;
        fake.heal();
        assert_eq!(done.is_ok(), to.exists(), "cut at {bytes}");
        let left = std::fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(left, usize::from(done.is_ok()), "cut at {bytes}");
        if done.is_ok() {
            let text = std::fs::read_to_string(to).unwrap();
            assert_eq!(text, "# Report\n\nAll tests pass.\n");
            assert!(bytes > 150, "{bytes}");
            break;
        }
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
