//! Each call, and what a server may answer instead.

use std::time::Instant;

use cloud::fake::{Fault, Options, What};
use cloud::{Client, Config, CreateRun, KeySource, Kind, ListAgents, Prompt, RunStatus, v0};

use crate::kit::{ask, client, config, fake, hear, ms};

#[tokio::test]
async fn every_call_of_v1() {
    let fake = fake(Options::default()).await;
    let client = client(&fake);
    assert_eq!(
        client.me().await.unwrap().user_email.as_deref(),
        Some("ada@example.org")
    );
    assert_eq!(client.models().await.unwrap()[0].id, "composer-2.5");
    assert!(
        client.repositories().await.unwrap()[0]
            .url
            .ends_with("acme/app")
    );

    let created = client.create(&ask("Fix the parser")).await.unwrap();
    let id = &created.agent.id;
    let (heard, run) = hear(&mut client.stream(id, &created.run.id)).await;
    assert_eq!(heard[0], "user Fix the parser");
    let run = run.unwrap();
    assert_eq!(run.status, RunStatus::Finished);
    assert!(
        run.branches()[0]
            .pr_url
            .as_deref()
            .unwrap()
            .contains("/pull/")
    );

    let follow = CreateRun {
        prompt: Prompt::text("hang on"),
        ..CreateRun::default()
    };
    let second = client.follow_up(id, &follow).await.unwrap();
    assert_eq!(
        client.follow_up(id, &follow).await.unwrap_err().kind(),
        Kind::Busy
    );
    client.cancel(id, &second.id).await.unwrap();
    assert_eq!(
        client.run(id, &second.id).await.unwrap().status,
        RunStatus::Cancelled
    );
    client.cancel(id, &second.id).await.unwrap();
    assert_eq!(
        client.cancel(id, &created.run.id).await.unwrap_err().code(),
        Some("run_not_cancellable")
    );
    let runs = client.all_runs(id).await.unwrap();
    assert_eq!(
        runs.iter().map(|run| &run.id).collect::<Vec<_>>(),
        [&created.run.id, &second.id]
    );

    let artifacts = client.artifacts(id).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("report.md");
    assert_eq!(
        client.download(id, &artifacts[0].path, &to).await.unwrap(),
        26
    );
    assert!(
        std::fs::read_to_string(&to)
            .unwrap()
            .contains("All tests pass")
    );
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&to).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let again = client
        .download(id, &artifacts[0].path, &to)
        .await
        .unwrap_err();
    assert!(again.to_string().contains("already exists"), "{again}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);

    let usage = client.usage(id, None).await.unwrap();
    assert_eq!(usage.runs.len(), 2);
    assert_eq!(usage.cost.unwrap().charged_cents, 20.0);
    assert_eq!(
        client.usage(id, Some(&second.id)).await.unwrap().runs.len(),
        1
    );

    client.archive(id).await.unwrap();
    assert!(
        client
            .agents(&ListAgents::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    let with = ListAgents {
        include_archived: Some(true),
        ..ListAgents::default()
    };
    assert_eq!(client.agents(&with).await.unwrap().items.len(), 1);
    client.unarchive(id).await.unwrap();
    let pr = ListAgents {
        pr_url: run.branches()[0].pr_url.clone(),
        ..ListAgents::default()
    };
    assert_eq!(client.agents(&pr).await.unwrap().items.len(), 1);
    client.delete(id).await.unwrap();
    assert_eq!(client.agent(id).await.unwrap_err().kind(), Kind::NotFound);
}

#[tokio::test]
async fn every_call_of_v0() {
    let fake = fake(Options::default()).await;
    let client = client(&fake);
    let create = v0::Create {
        prompt: Prompt::text("Fix the parser"),
        source: v0::Source {
            repository: "https://github.com/acme/app".to_owned(),
            reference: Some("main".to_owned()),
        },
        target: Some(v0::Target {
            branch_name: Some("fix/parser".to_owned()),
            ..v0::Target::default()
        }),
        webhook: Some(v0::Webhook {
            url: "https://example.org/hook".to_owned(),
            secret: Some("s".repeat(32)),
        }),
        ..v0::Create::default()
    };
    assert!(!format!("{create:?}").contains("sss"));
    let made = client.create_v0(&create).await.unwrap();
    let agent = loop {
        let agent = client.agent_v0(&made.id).await.unwrap();
        if agent.status == v0::Status::Finished {
            break agent;
        }
    };
    assert_eq!(agent.target.branch_name.as_deref(), Some("fix/parser"));
    client
        .followup_v0(&made.id, &Prompt::text("hang"))
        .await
        .unwrap();
    client.stop_v0(&made.id).await.unwrap();
    assert_eq!(
        client.agents_v0(Some(5), None).await.unwrap().agents[0].status,
        v0::Status::Stopped
    );
    let said = client.conversation(&made.id).await.unwrap().messages;
    assert_eq!(
        (said[0].kind.as_str(), said[0].text.as_str()),
        ("user_message", "Fix the parser")
    );
    assert_eq!(client.me_v0().await.unwrap().api_key_name, "Neovim");
    assert!(
        client
            .models_v0()
            .await
            .unwrap()
            .contains(&"gpt-5".to_owned())
    );
    assert_eq!(client.repositories_v0().await.unwrap()[0].owner, "acme");
    client.delete_v0(&made.id).await.unwrap();
}

#[tokio::test]
async fn a_thousand_agents_in_pages() {
    let fake = fake(Options {
        agents: 1000,
        ..Options::default()
    })
    .await;
    let client = client(&fake);
    let mut list = ListAgents {
        limit: Some(100),
        ..ListAgents::default()
    };
    let mut ids = Vec::new();
    loop {
        let page = client.agents(&list).await.unwrap();
        ids.extend(page.items.into_iter().map(|agent| agent.id));
        match page.next_cursor {
            Some(cursor) => list.cursor = Some(cursor),
            None => break,
        }
        // One that is new between two pages does not move them.
        if ids.len() == 300 {
            client.create(&ask("hang")).await.unwrap();
        }
    }
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((count, ids.len()), (1000, 1000));
}

#[tokio::test]
async fn refusals_by_kind_with_words_and_the_request_id() {
    let fake = fake(Options::default()).await;
    let client = client(&fake);
    for (status, code, kind, word) in [
        (400, "invalid_request", Kind::Invalid, "Change the request"),
        (401, "unauthorized", Kind::Unauthorized, "CURSOR_API_KEY"),
        (402, "payment_required", Kind::Forbidden, "plan"),
        (403, "forbidden", Kind::Forbidden, "not allowed to do this"),
        (404, "not_found", Kind::NotFound, "refresh the list"),
        (409, "agent_busy", Kind::Busy, "stop it"),
        (409, "other", Kind::Conflict, "Refresh"),
        (410, "stream_expired", Kind::Gone, "no longer available"),
        (302, "", Kind::Malformed, "proxy"),
    ] {
        fake.fault(Fault {
            times: 0,
            ..Fault::once(
                "/me",
                What::Refuse {
                    status,
                    code: code.to_owned(),
                    retry_after: None,
                },
            )
        });
        let asked = fake.requests().len();
        let error = client.me().await.unwrap_err();
        assert_eq!(error.kind(), kind, "{status}");
        let text = error.to_string();
        assert!(
            text.contains(word) && text.contains("(request req-"),
            "{text}"
        );
        if kind != Kind::Malformed {
            assert_eq!(fake.requests().len(), asked + 1, "{status} was repeated");
        }
        fake.heal();
    }
}

#[tokio::test]
async fn retry_after_is_honoured_and_not_outwaited() {
    let fake = fake(Options::default()).await;
    let client = client(&fake);
    let busy = |after: &str| What::Refuse {
        status: 429,
        code: String::new(),
        retry_after: Some(after.to_owned()),
    };
    fake.fault(Fault::once("/me", busy("1")));
    let began = Instant::now();
    client.me().await.unwrap();
    assert!(began.elapsed() >= ms(1000), "{:?}", began.elapsed());
    fake.fault(Fault::once("/me", busy("3600")));
    let error = client.me().await.unwrap_err();
    assert_eq!(error.kind(), Kind::RateLimited);
    assert!(error.to_string().contains("Try again in 3600 s"), "{error}");
}

#[tokio::test]
async fn a_retry_after_date_is_read_by_the_servers_clock() {
    let fake = fake(Options {
        skew_ms: -7_200_000,
        ..Options::default()
    })
    .await;
    let client = client(&fake);
    let soon = std::time::SystemTime::now() - std::time::Duration::from_secs(7200) + ms(1500);
    let after = Some(httpdate::fmt_http_date(soon));
    fake.fault(Fault::once(
        "/me",
        What::Refuse {
            status: 429,
            code: String::new(),
            retry_after: after,
        },
    ));
    client.me().await.unwrap();
}

#[tokio::test]
async fn skewed_clocks_do_not_make_agents_older_or_younger() {
    for skew_ms in [-86_400_000, 86_400_000] {
        let fake = fake(Options {
            skew_ms,
            ..Options::default()
        })
        .await;
        let client = client(&fake);
        let agent = client.create(&ask("hang")).await.unwrap().agent;
        let created = cloud::clock::parse_ms(&agent.created_at).unwrap();
        let age = client.server_now_ms() - created;
        assert!((-1500..5000).contains(&age), "{age}");
    }
}

#[tokio::test]
async fn what_is_safe_is_repeated_and_what_is_not_is_sent_once() {
    let fake = fake(Options::default()).await;
    let client = client(&fake);
    let broken = What::Refuse {
        status: 500,
        code: String::new(),
        retry_after: None,
    };
    fake.fault(Fault {
        times: 3,
        ..Fault::once("/me", broken.clone())
    });
    client.me().await.unwrap();
    fake.fault(Fault {
        times: 0,
        ..Fault::once("/me", broken.clone())
    });
    assert_eq!(client.me().await.unwrap_err().kind(), Kind::Server);
    fake.heal();

    let create = v0::Create {
        prompt: Prompt::text("x"),
        ..v0::Create::default()
    };
    for what in [
        broken,
        What::LoseAnswer,
        What::Malformed,
        What::CutAnswer { bytes: 20 },
    ] {
        fake.fault(Fault::once("/v0/agents", what));
        let before = fake.requests().len();
        let error = client.create_v0(&create).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Unconfirmed, "{error}");
        assert!(
            error.to_string().contains("Refresh the list before"),
            "{error}"
        );
        assert_eq!(fake.requests().len(), before + 1);
        fake.heal();
    }
}

#[tokio::test]
async fn slow_and_malformed_bodies() {
    let fake = fake(Options {
        agents: 3,
        ..Options::default()
    })
    .await;
    let client = client(&fake);
    fake.fault(Fault::once(
        "/agents",
        What::Slow {
            piece: 200,
            pause_ms: 5,
        },
    ));
    assert_eq!(
        client
            .agents(&ListAgents::default())
            .await
            .unwrap()
            .items
            .len(),
        3
    );
    fake.fault(Fault {
        times: 2,
        ..Fault::once("/agents", What::Malformed)
    });
    assert_eq!(
        client
            .agents(&ListAgents::default())
            .await
            .unwrap()
            .items
            .len(),
        3
    );
    fake.fault(Fault {
        times: 0,
        ..Fault::once("/me", What::Html)
    });
    let error = client.me().await.unwrap_err();
    assert_eq!(error.kind(), Kind::Malformed);
    assert!(error.to_string().contains("Bad gateway"), "{error}");

    let mut hasty = config(&fake);
    hasty.timeouts.request = ms(100);
    hasty.backoff.tries = 2;
    let hasty = Client::new(hasty).unwrap();
    fake.fault(Fault {
        times: 0,
        ..Fault::once(
            "/agents",
            What::Slow {
                piece: 1,
                pause_ms: 50,
            },
        )
    });
    assert_eq!(
        hasty
            .agents(&ListAgents::default())
            .await
            .unwrap_err()
            .kind(),
        Kind::Timeout
    );
    fake.fault(Fault {
        times: 0,
        ..Fault::once("/models", What::Hang)
    });
    assert_eq!(hasty.models().await.unwrap_err().kind(), Kind::Timeout);
}

#[tokio::test]
async fn a_delete_whose_answer_was_lost_is_done() {
    let fake = fake(Options {
        agents: 1,
        ..Options::default()
    })
    .await;
    let client = client(&fake);
    let id = fake.agent_ids().remove(0);
    fake.fault(Fault::once(&id, What::LoseAnswer));
    client.delete(&id).await.unwrap();
    assert_eq!(client.delete(&id).await.unwrap_err().kind(), Kind::NotFound);
}

#[tokio::test]
async fn addresses_that_would_give_the_key_away_are_refused() {
    for (url, why) in [
        ("http://example.org", "https://"),
        ("https://user:pass@example.org", "password"),
        ("nonsense", "not a URL"),
        ("ftp://127.0.0.1", "https://"),
    ] {
        let config = Config {
            url: Some(url.to_owned()),
            key: KeySource::given("key_x"),
            ..Config::default()
        };
        let error = Client::new(config).unwrap_err();
        assert_eq!(error.kind(), Kind::Config);
        assert!(
            error.to_string().contains(why) && !error.to_string().contains("pass@"),
            "{error}"
        );
    }
    let nowhere = Config {
        url: Some("http://127.0.0.1:1".to_owned()),
        key: KeySource::given("key_x"),
        ..Config::default()
    };
    let nowhere = Config {
        backoff: cloud::backoff::Backoff {
            tries: 1,
            ..Default::default()
        },
        ..nowhere
    };
    let error = Client::new(nowhere).unwrap().me().await.unwrap_err();
    assert_eq!(error.kind(), Kind::Network);
    assert!(error.to_string().contains("127.0.0.1:1"), "{error}");
}
