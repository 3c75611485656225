//! Tests of what the driver leaves running, and of the order in which it writes files.

#![allow(clippy::unwrap_used)]

use engine::agents::agent::AgentSpec;
use engine::agents::launch::Launch;
use engine::ids::EditorId;
use engine::sessions::session::Wanted;

use super::*;

fn wait_for(what: impl Fn() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(10);
    while !what() {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// An agent that exits at EOF and leaves a process behind that ignores SIGTERM.
fn with_leftover(driver: &Driver) -> u32 {
    let script =
        "(trap '' TERM; exec sleep 1000) </dev/null >/dev/null 2>&1 & read line; read line";
    let spec = AgentSpec {
        command: ["sh", "-c", script].map(str::to_owned).to_vec(),
        cwd: "/".to_owned(),
        ..AgentSpec::default()
    };
    driver
        .with(|engine| engine.open(spec, Wanted::default()))
        .unwrap();
    let pid = || {
        let state = driver.shared.state.lock();
        state.agents.values().next().and_then(|agent| agent.pid)
    };
    assert!(wait_for(|| pid().is_some()));
    pid().unwrap()
}

#[test]
fn at_exit_what_an_agent_left_in_its_group_is_killed_in_time() {
    let driver = Driver::start(|| {}).unwrap();
    let group = with_leftover(&driver);
    let started = Instant::now();
    driver.shutdown(Duration::from_millis(300));
    // Sooner than the leftover process would have ended by itself.
    assert!(started.elapsed() < Duration::from_secs(10));
    assert!(wait_for(|| !process::group_lives(group)));
}

#[test]
fn what_an_agent_left_in_its_group_is_killed_when_it_stops() {
    let driver = Driver::start(|| {}).unwrap();
    let group = with_leftover(&driver);
    let key = driver.with(|engine| engine.keys().next().unwrap());
    driver.with(|engine| engine.stop(key)).unwrap();
    assert!(wait_for(|| !process::group_lives(group)));
    assert!(wait_for(|| driver.shared.state.lock().agents.is_empty()));
    driver.shutdown(Duration::from_millis(300));
}

#[test]
fn of_a_released_terminal_nothing_is_kept() {
    let driver = Driver::start(|| {}).unwrap();
    for terminal in 0..20 {
        let launch = Launch {
            command: ["sh", "-c", "sleep 1000 & sleep 1000 & wait"]
                .map(str::to_owned)
                .to_vec(),
            cwd: "/".to_owned(),
            ..Launch::default()
        };
        let perform = |effect| {
            let later = driver.perform(&mut driver.shared.state.lock(), effect);
            later.into_iter().for_each(Later::run);
        };
        perform(Effect::StartTerminal { terminal, launch });
        let runs = || {
            driver.shared.state.lock().terminals[&terminal]
                .pid
                .is_some()
        };
        assert!(wait_for(runs));
        perform(Effect::ReleaseTerminal { terminal });
    }
    assert!(wait_for(|| driver.shared.state.lock().terminals.is_empty()));
    driver.shutdown(Duration::from_millis(300));
}

#[test]
fn writes_of_one_file_are_done_in_the_order_they_were_asked_for() {
    let driver = Driver::start(|| {}).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| dir.path().join(name).to_string_lossy().into_owned());
    for number in 0..100 {
        for path in &paths {
            let op = DiskOp::Write {
                path: path.clone(),
                content: number.to_string(),
            };
            let request = EditorId(number);
            driver.perform(
                &mut driver.shared.state.lock(),
                Effect::Disk {
                    request,
                    op,
                    real: None,
                },
            );
        }
    }
    assert!(wait_for(|| driver.shared.state.lock().disk.is_empty()));
    for path in &paths {
        assert_eq!(std::fs::read_to_string(path).unwrap(), "99");
    }
    driver.shutdown(Duration::from_millis(300));
}
