//! The stations of the tour: what happens in each.

use std::path::Path;

use serde_json::{Value, json};

use super::{
    project::{self, Change, Edit},
    texts,
    turn::{Played, Turn},
};
use crate::cursor;

/// The welcome shows this much of a file.
const SHOWN_LINES: usize = 10;

/// Enough paragraphs to give time to cancel.
const LONG_PARAGRAPHS: usize = 60;

/// The option that makes a permission a question, and leaves it out.
const SKIP_OPTION: &str = "__ask_question_skip__";

/// What a todo seems to take.
const TODO_MS: u64 = 900;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Station {
    Welcome,
    Edit,
    Run,
    Ask,
    Plan,
    Todos,
    Task,
    Modes,
    Fail,
    Long,
    End,
    Help,
}

/// The way **next** takes. `Help` lies beside it.
pub const WAY: &[Station] = &[
    Station::Welcome,
    Station::Edit,
    Station::Run,
    Station::Ask,
    Station::Plan,
    Station::Todos,
    Station::Task,
    Station::Modes,
    Station::Fail,
    Station::Long,
    Station::End,
];

/// The words that lead to a station, also as slash commands.
const WORDS: &[(&str, Station, &str)] = &[
    ("edit", Station::Edit, "Change files, with a diff to review"),
    ("run", Station::Run, "Run a command, after asking"),
    ("ask", Station::Ask, "Ask a multiple-choice question"),
    ("plan", Station::Plan, "Propose a plan"),
    ("todos", Station::Todos, "Keep a list of todos"),
    ("task", Station::Task, "Start a subagent"),
    ("modes", Station::Modes, "Show mode, model and options"),
    ("fail", Station::Fail, "Fail once, to try a retry"),
    (
        "long",
        Station::Long,
        "Give a long answer, to try stopping it",
    ),
    ("help", Station::Help, "List the keys and commands"),
];

impl Station {
    /// The one a prompt asks for by its first word.
    pub fn named_in(prompt: &str) -> Option<Self> {
        let first = prompt.split_whitespace().next()?;
        let word: String = first
            .chars()
            .filter(|char| char.is_alphanumeric())
            .collect();
        let word = word.to_lowercase();
        WORDS
            .iter()
            .find_map(|(name, station, _)| (*name == word).then_some(*station))
    }

    pub async fn play(self, turn: &Turn) -> Played {
        match self {
            Self::Welcome => welcome(turn).await,
            Self::Edit => edit(turn).await,
            Self::Run => run(turn).await,
            Self::Ask => ask(turn).await,
            Self::Plan => plan(turn).await,
            Self::Todos => todos(turn).await,
            Self::Task => task(turn).await,
            Self::Modes => modes(turn).await,
            Self::Fail => fail(turn).await,
            Self::Long => long(turn).await,
            Self::End => turn.say(texts::END).await,
            Self::Help => help(turn).await,
        }
    }
}

/// As `available_commands_update` lists them.
pub fn slash_commands() -> Vec<Value> {
    WORDS
        .iter()
        .map(|(name, _, description)| json!({ "name": name, "description": description }))
        .collect()
}

async fn welcome(turn: &Turn) -> Played {
    turn.think(texts::WELCOME_THOUGHT).await?;
    turn.say(texts::WELCOME).await?;
    match project::known_file(&turn.cwd) {
        Some((path, text)) => {
            turn.read(&path, &relative(&turn.cwd, &path)).await?;
            turn.say(texts::WELCOME_FILE).await?;
            let language = path
                .extension()
                .and_then(|extension| extension.to_str())
                .unwrap_or_default();
            let lines: Vec<&str> = text.lines().take(SHOWN_LINES).collect();
            turn.say_literally(&format!("```{language}\n{}\n```\n\n", lines.join("\n")))
                .await?;
        }
        None => turn.say(texts::WELCOME_NO_FILE).await?,
    }
    turn.say(texts::STATIONS).await?;
    turn.say(texts::WELCOME_END).await
}

async fn edit(turn: &Turn) -> Played {
    if !turn.tour.may_write(&turn.session) {
        return turn.say(texts::NO_WRITING).await;
    }
    turn.think(texts::EDIT_THOUGHT).await?;
    let (text, changes) = match project::next_edit(&turn.cwd) {
        Edit::Forward(changes) => (texts::EDIT, changes),
        Edit::Back(changes) => (texts::EDIT_BACK, changes),
        Edit::New(changes) => (texts::EDIT_NEW, changes),
        Edit::Unknown => return turn.say(texts::EDIT_UNKNOWN).await,
    };
    turn.say(text).await?;
    let ask = !project::is_scratch(&turn.cwd);
    if ask {
        turn.say(texts::EDIT_OUTSIDE).await?;
    }
    if make(turn, &changes, ask).await? {
        turn.say(texts::EDIT_DONE).await
    } else {
        turn.say(texts::EDIT_REJECTED).await
    }
}

/// Makes the changes; whether any was made.
async fn make(turn: &Turn, changes: &[Change], ask: bool) -> Played<bool> {
    let mut made = false;
    for change in changes {
        if change.old.is_some() {
            turn.read(&change.path, &change.name).await?;
        }
        made |= turn.edit(change, ask).await?;
    }
    Ok(made)
}

async fn run(turn: &Turn) -> Played {
    if !turn.tour.may_write(&turn.session) {
        return turn.say(texts::NO_WRITING).await;
    }
    turn.think(texts::RUN_THOUGHT).await?;
    turn.say(texts::RUN).await?;
    if !turn.run(project::command(&turn.cwd)).await? {
        return turn.say(texts::RUN_REJECTED).await;
    }
    turn.say(texts::RUN_SECOND).await?;
    turn.run(project::FAILING_COMMAND).await?;
    turn.say(texts::RUN_DONE).await
}

async fn ask(turn: &Turn) -> Played {
    turn.say(texts::ASK).await?;
    let option = |id: &str, label: &str| json!({ "id": id, "label": label });
    let params = json!({
        "toolCallId": turn.tour.next_call_id(),
        "title": "How should it look?",
        "questions": [
            {
                "id": "indent", "prompt": "Which indentation do you prefer?",
                "options": [option("tabs", "Tabs"), option("two", "Two spaces"), option("four", "Four spaces")],
            },
            {
                "id": "extras", "prompt": "What else should the program include?", "allowMultiple": true,
                "options": [option("tests", "Tests"), option("docs", "Documentation"), option("colours", "Colours")],
            },
        ],
    });
    let answer = turn.request("cursor/ask_question", params).await?;
    match cursor::outcome(&answer) {
        ("answered", outcome) => {
            turn.say("You answered:\n\n").await?;
            for answer in outcome["answers"].as_array().into_iter().flatten() {
                let chosen = answer["selectedOptionIds"].as_array().into_iter().flatten();
                let chosen: Vec<&str> = chosen.filter_map(Value::as_str).collect();
                let chosen = if chosen.is_empty() {
                    "nothing".to_owned()
                } else {
                    chosen.join(", ")
                };
                let question = answer["questionId"].as_str().unwrap_or("?");
                turn.say_literally(&format!("- {question}: **{chosen}**\n"))
                    .await?;
            }
        }
        ("skipped", _) => turn.say(texts::ASK_SKIPPED).await?,
        _ => turn.say(texts::ASK_CANCELLED).await?,
    }
    turn.say(texts::ASK_AGAIN).await?;
    ask_as_permission(turn).await?;
    turn.say(texts::ASK_END).await
}

/// A question in the other shape the real one gives it: a permission whose options are the answers.
async fn ask_as_permission(turn: &Turn) -> Played {
    let option =
        |id: &str, name: &str, kind: &str| json!({ "optionId": id, "name": name, "kind": kind });
    let id = turn.tour.next_call_id();
    let params = json!({
        "sessionId": turn.session,
        "toolCall": { "toolCallId": id, "title": "Which colour should the greeting be?", "kind": "other", "status": "pending" },
        "options": [
            option("green", "Green", "allow_once"),
            option("blue", "Blue", "allow_once"),
            option(SKIP_OPTION, "Skip", "reject_once"),
        ],
    });
    let chosen = turn.choice(params).await?;
    turn.tool_update(&id, json!({ "status": "completed" }));
    match chosen.filter(|option| option != SKIP_OPTION) {
        Some(colour) => {
            turn.say_literally(&format!("- colour: **{colour}**\n"))
                .await
        }
        None => turn.say(texts::ASK_NO_COLOUR).await,
    }
}

async fn plan(turn: &Turn) -> Played {
    turn.think(texts::PLAN_THOUGHT).await?;
    turn.say(texts::PLAN).await?;
    let todos = [
        todo("look", "Look at how greetings are built", "pending"),
        todo(
            "default",
            "Greet the world when no name is given",
            "pending",
        ),
        todo("try", "Try it with two names", "pending"),
    ];
    let params = json!({
        "toolCallId": turn.tour.next_call_id(),
        "name": "A friendlier greeting",
        "overview": "A greeting without a name should still read well.",
        "plan": "## Why\n\nWithout a name, the greeting stops at the comma.\n\n## How\n\n1. Look at `greet`.\n2. Give the name a default.\n3. Try it.\n\n```sh\nsh greet.sh\n```\n",
        "todos": todos,
        "isProject": false,
        "phases": [
            { "name": "Understand", "todos": [todos[0]] },
            { "name": "Change", "todos": [todos[1], todos[2]] },
        ],
    });
    let answer = turn.request("cursor/create_plan", params).await?;
    match cursor::outcome(&answer) {
        ("accepted", _) if !turn.tour.may_write(&turn.session) => {
            turn.say(texts::PLAN_ACCEPTED_IN_PLAN_MODE).await?;
        }
        ("accepted", outcome) => {
            if let Some(uri) = outcome["planUri"].as_str() {
                turn.say_literally(&format!("The plan is at `{uri}`. "))
                    .await?;
            }
            turn.say(texts::PLAN_ACCEPTED).await?;
            update_todos(turn, json!(todos), false).await?;
            work_through(turn, &todos).await?;
        }
        ("rejected", outcome) => {
            let reason = outcome["reason"].as_str().unwrap_or("no reason given");
            turn.say_literally(&format!("Rejected: {reason}. I'll think again.\n\n"))
                .await?;
        }
        _ => turn.say(texts::PLAN_CANCELLED).await?,
    }
    turn.say(texts::PLAN_END).await
}

async fn todos(turn: &Turn) -> Played {
    turn.say(texts::TODOS).await?;
    let todos = [
        todo("read", "Read the code", "pending"),
        todo("write", "Write the change", "pending"),
        todo("check", "Check it", "pending"),
        todo("boast", "Announce it", "pending"),
    ];
    update_todos(turn, json!(todos), false).await?;
    work_through(turn, &todos[..3]).await?;
    let dropped = json!([{ "id": "boast", "status": "cancelled" }]);
    update_todos(turn, dropped, true).await?;
    turn.say(texts::TODOS_END).await
}

/// Each todo as it is begun and done: one at a time, merged by its id.
async fn work_through(turn: &Turn, todos: &[Value]) -> Played {
    for todo in todos {
        for status in ["in_progress", "completed"] {
            let changed = json!({ "id": todo["id"], "status": status });
            update_todos(turn, json!([changed]), true).await?;
            turn.pause(TODO_MS).await?;
        }
    }
    Ok(())
}

/// A list as the real one writes it: a tool call with the whole of it, and a request with an id though the documentation
/// calls it a notification. What changes later is a request alone, with nothing but what changed.
async fn update_todos(turn: &Turn, todos: Value, merge: bool) -> Played {
    let id = turn.tour.next_call_id();
    if !merge {
        let mut input = json!({ "_toolName": "updateTodos", "todos": todos, "merge": merge });
        for todo in input["todos"].as_array_mut().into_iter().flatten() {
            let status = todo["status"].as_str().unwrap_or_default().to_uppercase();
            todo["status"] = json!(format!("TODO_STATUS_{status}"));
        }
        let mut call = cursor::placeholder(&id, "Update TODOs", "other");
        call["rawInput"] = input;
        turn.update(&call);
        turn.tool_update(&id, json!({ "status": "completed" }));
    }
    let params = json!({ "toolCallId": id, "todos": todos, "merge": merge });
    let _ = turn.request("cursor/update_todos", params).await?;
    Ok(())
}

fn todo(id: &str, content: &str, status: &str) -> Value {
    json!({ "id": id, "content": content, "status": status })
}

async fn task(turn: &Turn) -> Played {
    turn.say(texts::TASK).await?;
    let (description, prompt) = (
        "Explore the project",
        "Count the files and say what each is for.",
    );
    let id = turn.tool_call("Task", "other").await?;
    turn.tool_update(
        &id,
        json!({
            "title": description, "status": "in_progress",
            "rawInput": { "description": description, "prompt": prompt, "subagentType": "explore" },
        }),
    );
    // It has a session of its own, in which it speaks and works.
    let agent_id = format!("agent-{id}");
    turn.update(&json!({
        "sessionUpdate": "subagent_spawned", "subagentSessionId": agent_id, "name": description, "parentToolCallId": id,
    }));
    let said = json!({ "type": "text", "text": "Listing the files first." });
    turn.update_of(
        &agent_id,
        &json!({ "sessionUpdate": "agent_message_chunk", "content": said }),
    );
    turn.pause(TODO_MS).await?;
    turn.update_of(
        &agent_id,
        &json!({
            "sessionUpdate": "tool_call", "toolCallId": "1", "title": "ls", "kind": "search", "status": "completed",
        }),
    );
    turn.pause(TODO_MS).await?;
    turn.update(&json!({
        "sessionUpdate": "subagent_state_update", "subagentSessionId": agent_id, "state": "completed",
    }));
    let files = std::fs::read_dir(&turn.cwd).map_or(0, |entries| entries.flatten().count());
    let params = json!({
        "toolCallId": id, "description": description, "prompt": prompt, "subagentType": "explore",
        "agentId": agent_id, "durationMs": TODO_MS * 2,
    });
    let _ = turn.request("cursor/task", params).await?;
    let report = format!("This project has {files} entries at the top level.");
    let content = json!([{ "type": "content", "content": { "type": "text", "text": report } }]);
    turn.tool_update(&id, json!({ "status": "completed", "content": content }));
    turn.say(texts::TASK_END).await
}

async fn modes(turn: &Turn) -> Played {
    let (mode, model) = turn.tour.mode_and_model(&turn.session);
    turn.say_literally(&format!(
        "I'm in **{mode}** mode with the model **{model}** (the demo has no real one).\n\n"
    ))
    .await?;
    turn.say(texts::MODES_END).await
}

/// Fails the first time, as the real one does: by its text. The same prompt again leads here again.
async fn fail(turn: &Turn) -> Played {
    let failed = turn.tour.failed.replace(!turn.tour.failed.get());
    if failed {
        return turn.say(texts::FAIL_AGAIN).await;
    }
    let here = WAY.iter().position(|station| *station == Station::Fail);
    turn.tour.with_session(&turn.session, |session| {
        session.station = here.unwrap_or(session.station);
    });
    turn.say(texts::FAIL).await
}

async fn long(turn: &Turn) -> Played {
    turn.say(texts::LONG).await?;
    for number in 1..=LONG_PARAGRAPHS {
        turn.say_literally(&format!("{number}. {}", texts::LONG_PARAGRAPH))
            .await?;
        // Slow even without pauses: the tests need time to cancel it.
        turn.breathe().await?;
    }
    turn.say(texts::LONG_END).await
}

async fn help(turn: &Turn) -> Played {
    turn.say(texts::HELP).await?;
    turn.say(texts::STATIONS).await
}

fn relative(cwd: &Path, path: &Path) -> String {
    path.strip_prefix(cwd).unwrap_or(path).display().to_string()
}
