//! Everything the tour says. Keys and commands stand in one table, so that they are easy to correct when the plugin's change.

/// What `{name}` in a text stands for.
const KEYS: &[(&str, &str)] = &[
    ("accept", "`:CursorAgent accept`"),
    ("reject", "`:CursorAgent reject`"),
    ("decisions", "`:CursorAgent decisions`"),
    ("cancel", "`:CursorAgent cancel`"),
    ("review", "`:CursorAgent review`"),
    ("todos", "`:CursorAgent todos`"),
    ("mode_agent", "`:CursorAgent mode agent`"),
    ("mode_plan", "`:CursorAgent mode plan`"),
    ("mode_ask", "`:CursorAgent mode ask`"),
    ("model", "`:CursorAgent model`"),
    ("option", "`:CursorAgent option`"),
    ("sessions", "`:CursorAgent sessions`"),
    ("new", "`:CursorAgent new`"),
    ("log", "`:CursorAgent log`"),
    ("export", "`:CursorAgent export`"),
    ("toggle", "`:CursorAgent`"),
    ("with_range", "`:'<,'>CursorAgent prompt`"),
    ("context", "`:CursorAgent context`"),
    ("allow_key", "`a`"),
    ("always_key", "`A`"),
    ("reject_key", "`r`"),
    ("reject_why_key", "`e`"),
    ("choose_key", "`<Space>`"),
    ("answer_key", "`<CR>`"),
    ("skip_key", "`s`"),
    ("later_key", "`q`"),
    ("plan_accept_key", "`gA`"),
    ("plan_reject_key", "`gR`"),
    ("go_key", "`<CR>`"),
    ("explain_key", "`K`"),
    ("keys_key", "`g?`"),
    ("retry", "`:CursorAgent retry`"),
    ("retry_key", "`R`"),
];

/// A text as it is said: with the keys in it.
pub fn with_keys(text: &str) -> String {
    let mut text = text.to_owned();
    for (name, key) in KEYS {
        text = text.replace(&format!("{{{name}}}"), key);
    }
    text
}

pub const WELCOME_THOUGHT: &str =
    "A new user. I will look at the project first, then list what there is to try.";

pub const WELCOME: &str = "\
# Welcome

I am the **demo agent**: no account, no network, no model. What I say is written down beforehand; the files I edit and the commands I \
run are real.

";

pub const WELCOME_FILE: &str = "This project has a file I know. It starts like this:\n\n";

pub const WELCOME_NO_FILE: &str =
    "An answer may have code in it:\n\n```lua\nprint(\"hello from the tour\")\n```\n\n";

pub const STATIONS: &str = "\
Send one of these words, or **next** to be led:

- **edit**: I change files, you look at the difference
- **run**: I run a command, and ask you first
- **ask**: I ask you a multiple-choice question
- **plan**: I propose a plan, you accept or reject it
- **todos**: I keep a list while I work
- **task**: I send a subagent
- **modes**: modes, models and their options
- **fail**: an answer that fails, to try sending the prompt again
- **long**: a long answer, to try stopping me
- **help**: the keys and commands of this plugin

";

pub const WELCOME_END: &str =
    "{keys_key} lists the keys of the window you are in. Now send **next**.\n";

pub const EDIT_THOUGHT: &str =
    "I read before I write, then change what has to change and nothing else.";
pub const EDIT: &str = "I will read the file first, then edit it on disk, as Cursor does.\n\n";
pub const EDIT_BACK: &str = "Everything I know was changed before, so I put it back.\n\n";
pub const EDIT_NEW: &str =
    "There is nothing here that I know, so I begin with files of my own.\n\n";
pub const EDIT_OUTSIDE: &str = "\
This directory is not the demo's scratch project, so I ask before I touch anything: {allow_key} in the permission window allows it once, \
{reject_key} rejects it.

";
pub const EDIT_UNKNOWN: &str = "\
The files I would edit are here, but with a text I do not know. I leave them alone. `make demo` has a project for me.

";
pub const EDIT_DONE: &str = "\
Done. The files changed on disk and open buffers show the new text: undo and the cursor are still yours.

- {go_key} on the edit's row above goes to the change, {explain_key} explains it
- {review} walks through everything I changed

Send **edit** again for another change, or **next**: I will run a command.
";
pub const EDIT_REJECTED: &str = "You said no: nothing was written. Send **next** to go on.\n";

pub const NO_WRITING: &str = "\
In this mode I write nothing and run nothing. {mode_agent} lets me; then say it again.
";

pub const RUN_THOUGHT: &str = "The command is harmless, but it has not been allowed yet.";
pub const RUN: &str = "\
I would like to run a command, and it needs your approval: {allow_key} on the card allows it once, {always_key} always, {reject_key} \
rejects it, {reject_why_key} rejects it with a reason. {accept} and {reject} do the same from anywhere, {decisions} goes to the open decisions.

";
pub const RUN_SECOND: &str = "And one that fails, since there is no such file.\n\n";
pub const RUN_DONE: &str = "\
Its exit code and its output are in the row above; {go_key} there opens all of it.

**next**: I have a question.
";
pub const RUN_REJECTED: &str = "You rejected it, so it did not run. An agent takes that as an answer and goes on.\n\n**next**: I have a question.\n";

pub const ASK: &str = "\
Two questions. {choose_key} chooses, {answer_key} answers, {skip_key} skips, {later_key} leaves it for later ({decisions} brings it back).

";
pub const ASK_SKIPPED: &str = "You skipped it, so I decide: tabs, and nothing else.\n";
pub const ASK_CANCELLED: &str = "Never mind, I do not have to know.\n";
pub const ASK_AGAIN: &str =
    "\nOne more. It comes in the shape of a permission, but no rule of yours may answer it.\n\n";
pub const ASK_NO_COLOUR: &str = "Then without a colour.\n";
pub const ASK_END: &str = "\n**next**: I make a plan.\n";

pub const PLAN_THOUGHT: &str = "Three small steps, in an order that can be stopped after each.";
pub const PLAN: &str = "\
A plan, before I do anything. It opens as a buffer you may edit: {plan_accept_key} accepts it, {plan_reject_key} rejects it with a \
reason, {later_key} leaves it for later.

";
pub const PLAN_ACCEPTED: &str = "Accepted. I work through it; the todos follow.\n\n";
pub const PLAN_ACCEPTED_IN_PLAN_MODE: &str =
    "Accepted. In this mode I only plan: {mode_agent} and I would begin.\n\n";
pub const PLAN_CANCELLED: &str = "Then without a plan.\n\n";
pub const PLAN_END: &str = "**next**: the todos by themselves.\n";

pub const TODOS: &str =
    "I keep a list while I work. {todos} shows it whole; the chat shows how far I am.\n\n";
pub const TODOS_END: &str = "All done. **next**: I start a subagent.\n";

pub const TASK: &str = "A subagent looks around while I wait. Everything it does is one block, folded when it finishes; `<CR>` on it opens it alone.\n\n";
pub const TASK_END: &str = "It is back. **next**: modes and models.\n";

pub const MODES_END: &str = "\
- {mode_plan} and {mode_ask}: I read, but write and run nothing. {mode_agent} brings me back
- {model} chooses the model, {option} its effort, speed and whatever else it has; the list changes with the model

**next**: an answer that fails.
";

pub const FAIL: &str = "\
Now and then a model does not answer. Cursor says so in its text, and the turn counts as failed: {retry}, or {retry_key} in the chat, \
sends the same prompt again, and **next** does here too.

Error: RetriableError: [unavailable] The model provider is overloaded";
pub const FAIL_AGAIN: &str = "This time it worked. **next**: a long answer, to try stopping me.\n";

pub const LONG: &str = "\
This answer is long. {cancel} stops it: what was said stays, and the next prompt goes on from there. Or write the next prompt now: it \
waits in the queue until I am done.

";
pub const LONG_PARAGRAPH: &str = "\
Streaming text is appended where it belongs, and the window follows only while you are at its end. Scroll up and it stays where you are; \
your cursor, your windows and your typing are yours.
";
pub const LONG_END: &str = "\nYou let me finish. **next** ends the tour.\n";

pub const END: &str = "\
That was the tour. What it did not show:

- {sessions} goes back to an earlier conversation, this one too
- {with_range} with a selection attaches it, {context} shows what is attached
- {log} shows the protocol log, {export} saves the conversation

**next** begins again, **help** lists the keys.
";

pub const HELP: &str = "\
- open or close the chat: {toggle}
- list the keys of a window: {keys_key}
- allow once, always, reject: {allow_key}, {always_key}, {reject_key} on the card
- allow or reject from anywhere: {accept}, {reject}
- see what needs approval: {decisions}
- stop the turn: {cancel}
- look at what was changed: {review}
- see the todos: {todos}
- send the last prompt again: {retry}
- change mode, model, options: {mode_plan}, {model}, {option}
- start a new chat, go back to an earlier one: {new}, {sessions}

";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_known() {
        let source = include_str!("texts.rs");
        let texts = source.split("#[cfg(test)]").next().unwrap_or_default();
        let mut names = 0;
        for (_, text) in texts
            .match_indices(": &str = ")
            .map(|(at, found)| texts.split_at(at + found.len()))
        {
            let text = text.split("\";\n").next().unwrap_or_default();
            let filled = with_keys(text);
            assert!(!filled.contains('{'), "{filled}");
            names += text.matches('{').count();
        }
        assert!(names > 30, "the texts were found");
    }

    #[test]
    fn every_key_is_used() {
        let source = include_str!("texts.rs");
        for (name, _) in KEYS {
            assert!(source.contains(&format!("{{{name}}}")), "{name}");
        }
    }
}
