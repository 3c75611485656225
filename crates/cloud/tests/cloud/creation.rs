//! A lost answer never makes a second agent.

use cloud::fake::{Fault, Options, What};
use cloud::{CreateRun, EnvVars, Kind, Prompt};

use crate::kit::{ask, client, fake};

#[tokio::test]
async fn a_lost_answer_is_found_again_by_the_idempotency_key() {
    let fake = fake(Options::default()).await;
    let client = client(&fake);
    fake.fault(Fault {
        times: 2,
        ..Fault::once("/v1/agents", What::LoseAnswer)
    });
    let created = client.create(&ask("hang")).await.unwrap();
    assert_eq!(fake.agent_ids(), [created.agent.id]);
    let asked = fake.requests();
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|one| one.idempotency_key == asked[0].idempotency_key && one.body == asked[0].body));
}

#[tokio::test]
async fn a_server_that_forgets_the_key_is_taken_at_the_agents_id() {
    let fake = fake(Options::default()).await;
    fake.forget_keys();
    let client = client(&fake);
    fake.fault(Fault::once("/v1/agents", What::LoseAnswer));
    let created = client.create(&ask("hang")).await.unwrap();
    assert_eq!(
        created.agent.latest_run_id.as_deref(),
        Some(created.run.id.as_str())
    );
    assert_eq!(fake.agent_ids(), [created.agent.id]);
}

#[tokio::test]
async fn an_agent_of_another_is_not_taken_over() {
    let fake = fake(Options {
        agents: 1,
        ..Options::default()
    })
    .await;
    let client = client(&fake);
    let mut create = ask("hang");
    create.agent_id = fake.agent_ids().pop();
    let error = client.create(&create).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.code()),
        (Kind::Conflict, Some("agent_id_conflict"))
    );
    assert_eq!(fake.agent_count(), 1);
}

#[tokio::test]
async fn the_last_try_looks_whether_it_is_there() {
    let fake = fake(Options::default()).await;
    let client = client(&fake);
    fake.fault(Fault {
        times: 0,
        method: Some("POST".to_owned()),
        ..Fault::once("/v1/agents", What::LoseAnswer)
    });
    let created = client.create(&ask("hang")).await.unwrap();
    assert_eq!(fake.agent_ids(), [created.agent.id]);
    fake.heal();

    let broken = What::Refuse {
        status: 503,
        code: String::new(),
        retry_after: None,
    };
    fake.fault(Fault {
        times: 0,
        method: Some("POST".to_owned()),
        ..Fault::once("/v1/agents", broken)
    });
    let error = client.create(&ask("hang")).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Server);
    assert!(
        error.to_string().starts_with("The agent was not created"),
        "{error}"
    );
    fake.heal();

    fake.fault(Fault {
        times: 0,
        what: What::LoseAnswer,
        ..Fault::default()
    });
    let error = client.create(&ask("hang")).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unconfirmed);
    assert!(
        error.to_string().contains("may have been created"),
        "{error}"
    );
    assert_eq!(fake.agent_count(), 2);
}

#[tokio::test]
async fn secrets_of_the_environment_go_without_an_id_of_ours() {
    let fake = fake(Options::default()).await;
    let client = client(&fake);
    let mut create = ask("hang");
    create.env_vars = Some(EnvVars([("TOKEN".to_owned(), "hunter2".to_owned())].into()));
    assert!(!format!("{create:?}").contains("hunter2"));
    fake.fault(Fault::once("/v1/agents", What::LoseAnswer));
    client.create(&create).await.unwrap();
    assert_eq!(fake.agent_count(), 1);
    // A refusal of the repeat does not say that the first one did nothing.
    fake.fault(Fault::once("/v1/agents", What::LoseAnswer));
    fake.fault(Fault::once(
        "/v1/agents",
        What::Refuse {
            status: 401,
            code: String::new(),
            retry_after: None,
        },
    ));
    let error = client.create(&create).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unconfirmed, "{error}");
    assert!(error.request_id().is_some(), "{error:?}");
    assert_eq!(fake.agent_count(), 2);
}

#[tokio::test]
async fn a_follow_up_whose_answer_was_lost_is_one_run() {
    let fake = fake(Options {
        agents: 2,
        ..Options::default()
    })
    .await;
    let client = client(&fake);
    let agent = fake.agent_ids().remove(1);
    fake.fault(Fault {
        times: 2,
        ..Fault::once("/runs", What::LoseAnswer)
    });
    let follow = CreateRun {
        prompt: Prompt::text("hang"),
        ..CreateRun::default()
    };
    client.follow_up(&agent, &follow).await.unwrap();
    assert_eq!(fake.run_count(&agent), 2);
}

#[tokio::test]
async fn a_follow_up_that_may_have_arrived_says_so() {
    let fake = fake(Options {
        agents: 2,
        ..Options::default()
    })
    .await;
    fake.forget_keys();
    let client = client(&fake);
    let agent = fake.agent_ids().remove(1);
    fake.fault(Fault::once("/runs", What::LoseAnswer));
    let follow = CreateRun {
        prompt: Prompt::text("hang"),
        ..CreateRun::default()
    };
    let error = client.follow_up(&agent, &follow).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unconfirmed, "{error}");
    assert!(error.request_id().is_some(), "{error:?}");
    assert_eq!(fake.run_count(&agent), 2);
}

#[tokio::test]
async fn prompts_the_api_would_refuse_stay_here() {
    let fake = fake(Options::default()).await;
    let client = client(&fake);
    let image = |data: String| cloud::Image {
        data: Some(data),
        mime_type: Some("image/png".to_owned()),
        ..Default::default()
    };
    let mut many = ask("x");
    many.prompt.images = vec![image("AAAA".to_owned()); 6];
    let mut large = ask("x");
    large.prompt.images = vec![image("A".repeat(22 * 1024 * 1024))];
    for create in [ask(" "), many, large] {
        assert_eq!(
            client.create(&create).await.unwrap_err().kind(),
            Kind::Invalid
        );
    }
    assert!(fake.requests().is_empty());
}
