//! Everything the tour says. Keys and commands are in one table, so that they are easy to update when the plugin's change.

/// The values of `{name}` in a text.
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
    ("allow_chord", "`<M-y>`"),
    ("reject_chord", "`<M-n>`"),
    ("card_key", "`gd`"),
    ("stop_key", "`<C-c>`"),
    ("now_key", "`<M-s>`"),
    ("next_hunk_key", "`]h`"),
    ("keep_key", "`<M-k>`"),
    ("undo_key", "`<M-u>`"),
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

/// A text with the keys filled in.
pub fn with_keys(text: &str) -> String {
    let mut text = text.to_owned();
    for (name, key) in KEYS {
        text = text.replace(&format!("{{{name}}}"), key);
    }
    text
}

pub const WELCOME_THOUGHT: &str =
    "A new user. Look at the project first, then list what there is to try.";

pub const WELCOME: &str = "\
# Welcome

I'm the **demo agent**: no account, no network, no model. My answers are scripted; the files I edit and the commands I run are real.

";

pub const WELCOME_FILE: &str = "This project has a file I know. It starts like this:\n\n";

pub const WELCOME_NO_FILE: &str =
    "Answers can contain code:\n\n```lua\nprint(\"hello from the tour\")\n```\n\n";

pub const STATIONS: &str = "\
Send one of these words, or **next** for the guided tour:

- **edit**: I change files, you review the diff
- **run**: I run a command, after asking you
- **ask**: I ask you a multiple-choice question
- **plan**: I propose a plan, you accept or reject it
- **todos**: I keep a todo list while I work
- **task**: I start a subagent
- **modes**: modes, models and their options
- **fail**: an answer that fails, so that you can try a retry
- **long**: a long answer, so that you can try stopping me
- **help**: the plugin's keys and commands

";

pub const WELCOME_END: &str =
    "{keys_key} lists the keys of the window you are in. Now send **next**.\n";

pub const EDIT_THOUGHT: &str = "Read before writing, and change only what has to change.";
pub const EDIT: &str = "I'll read the file first, then edit it on disk, as Cursor does.\n\n";
pub const EDIT_BACK: &str = "I have already made all my changes here, so I'll revert them.\n\n";
pub const EDIT_NEW: &str = "I don't recognise any file here, so I'll start with two of my own.\n\n";
pub const EDIT_OUTSIDE: &str = "\
This directory is not the demo's scratch project, so I ask before I touch anything: {allow_chord} allows it once, {reject_chord} rejects it.

";
pub const EDIT_UNKNOWN: &str = "\
The files I would edit exist here, but they are not the ones I know, so I'll leave them alone. `make demo` sets up a project for me.

";
pub const EDIT_DONE: &str = "\
Done. The files have changed on disk, and open buffers show the new text with your cursor and undo history intact.

- {next_hunk_key} in the code goes to the next change, {keep_key} keeps it, {undo_key} undoes it
- {go_key} on the edit's row above goes to the change, {explain_key} explains it
- {review} lists everything I changed

Send **edit** again for another change, or **next**: I will run a command.
";
pub const EDIT_REJECTED: &str = "Rejected: nothing was written. Send **next** to continue.\n";

pub const NO_WRITING: &str = "\
In this mode I don't write files or run commands. Switch with {mode_agent}, then send that again.
";

pub const RUN_THOUGHT: &str = "The command is harmless, but it has not been allowed yet.";
pub const RUN: &str = "\
I'd like to run a command, and it needs your approval: {allow_chord} allows it and {reject_chord} rejects it, wherever you are. On the card \
itself ({card_key} or {decisions} goes there), {allow_key} allows once, {always_key} always, {reject_key} rejects, {reject_why_key} rejects \
with a reason. The commands are {accept} and {reject}.

";
pub const RUN_SECOND: &str = "And one that fails, because the file does not exist.\n\n";
pub const RUN_DONE: &str = "\
The exit code and the output are in the row above; {go_key} there opens all of it.

**next**: I have a question.
";
pub const RUN_REJECTED: &str = "You rejected it, so it did not run. An agent takes that as an answer and carries on.\n\n**next**: I have a question.\n";

pub const ASK: &str = "\
Two questions. {choose_key} chooses, {answer_key} answers, {skip_key} skips, {later_key} leaves it for later ({decisions} brings it back).

";
pub const ASK_SKIPPED: &str = "You skipped it, so I'll decide: tabs, and nothing else.\n";
pub const ASK_CANCELLED: &str = "Never mind, I don't need to know.\n";
pub const ASK_AGAIN: &str =
    "\nOne more. It arrives as a permission request, but none of your rules may answer it.\n\n";
pub const ASK_NO_COLOUR: &str = "No colour, then.\n";
pub const ASK_END: &str = "\n**next**: I'll make a plan.\n";

pub const PLAN_THOUGHT: &str = "Three small steps; it is safe to stop after each one.";
pub const PLAN: &str = "\
A plan, before I do anything. It opens in a buffer you can edit: {plan_accept_key} accepts it, {plan_reject_key} rejects it with a \
reason, {later_key} leaves it for later.

";
pub const PLAN_ACCEPTED: &str = "Accepted. I'll work through it; watch the todos.\n\n";
pub const PLAN_ACCEPTED_IN_PLAN_MODE: &str =
    "Accepted. In this mode I only plan; {mode_agent} would let me start.\n\n";
pub const PLAN_CANCELLED: &str = "No plan, then.\n\n";
pub const PLAN_END: &str = "**next**: todos without a plan.\n";

pub const TODOS: &str =
    "I keep a list while I work. {todos} shows it; the chat shows my progress.\n\n";
pub const TODOS_END: &str = "All done. **next**: I'll start a subagent.\n";

pub const TASK: &str = "A subagent looks around while I wait. Everything it does is in one block, folded when it finishes; `<CR>` on it opens it in its own buffer.\n\n";
pub const TASK_END: &str = "It's back. **next**: modes and models.\n";

pub const MODES_END: &str = "\
- {mode_plan} and {mode_ask}: I read, but don't write files or run commands. {mode_agent} switches back
- {model} chooses the model, {option} its effort, speed and other options, which depend on the model

**next**: an answer that fails.
";

pub const FAIL: &str = "\
Sometimes a model does not answer. Cursor reports that in its text, and the turn counts as failed: {retry}, or {retry_key} in the chat, \
sends the same prompt again. Here, **next** does too.

Error: RetriableError: [unavailable] The model provider is overloaded";
pub const FAIL_AGAIN: &str = "This time it worked. **next**: a long answer, to try stopping me.\n";

pub const LONG: &str = "\
This answer is long. {stop_key} in the prompt or the chat stops it, and so does {cancel}: what I have written so far stays, and your next prompt continues from there. Or write \
the next prompt now: it is queued until I finish, or {now_key} sends it right away.

";
pub const LONG_PARAGRAPH: &str = "\
Streaming text is appended without moving anything, and the window follows only while you are at its end. Scroll up and it stays where you \
are; your cursor, your windows and your typing are left alone.
";
pub const LONG_END: &str = "\nYou let me finish. **next** ends the tour.\n";

pub const END: &str = "\
That was the tour. What it did not show:

- {sessions} goes back to an earlier conversation, including this one
- {with_range} with a selection attaches it, {context} shows what is attached
- {log} shows the protocol log, {export} saves the conversation

**next** starts over, **help** lists the keys.
";

pub const HELP: &str = "\
- open or close the chat: {toggle}
- list the keys of a window: {keys_key}
- allow or reject from anywhere: {allow_chord}, {reject_chord}, or {accept}, {reject}
- on the card, allow once, always, reject: {allow_key}, {always_key}, {reject_key}
- go to what needs approval: {decisions}
- stop the turn: {stop_key}, or {cancel}
- review the changes: {review}
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
