//! The transcript: entries in the order they began, and the rules by which chunks join them.

use std::collections::HashMap;

use crate::sessions::entry::{Body, Entry, Level, Notice};
use crate::sessions::todos::{self, Todo};
use crate::tools::tool_call::{Task, ToolCall};

/// Which kind of message a chunk belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// The user's, when a session is replayed.
    User,
    /// The agent's.
    Agent,
    /// The agent's thoughts.
    Thought,
}

/// What a change did to the entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touched {
    /// An entry grew at its end; it was `from` bytes long.
    Grew { entry: usize, from: usize },
    /// An entry is new or looks different now.
    Entry(usize),
}

/// The entries of a session.
#[derive(Debug, Default)]
pub struct Transcript {
    entries: Vec<Entry>,
    /// Tool calls by the agent's id, with the subagent task they belong to: each session counts its calls by itself. Of
    /// two with one id in one session the newest.
    tools: HashMap<String, Vec<(Option<usize>, usize)>>,
    /// The entry each voice's chunks go to, by the subagent task they belong to: nothing has come after it yet.
    open: HashMap<Option<usize>, usize>,
    /// The entries that show the todos of this turn, by the subagent task they belong to.
    todo_lists: HashMap<Option<usize>, usize>,
    /// Where the entries of this turn begin.
    turn: usize,
    /// What was changed since it was last asked for, in order.
    touched: Vec<Touched>,
}

impl Transcript {
    /// A conversation of these entries, all of them over.
    pub fn of(entries: Vec<Entry>) -> Self {
        let mut transcript = Self::default();
        for entry in entries {
            transcript.take_in(entry);
        }
        transcript
    }

    /// Adds an entry of another conversation that the editor need not hear of by itself.
    pub fn take_in(&mut self, mut entry: Entry) {
        let at = self.entries.len();
        entry.sent = 0;
        if let Some(id) = entry.tool().map(|tool| tool.id.clone()) {
            self.alias_tool(&id, entry.parent, at);
        }
        self.entries.push(entry);
        self.turn = self.entries.len();
    }

    /// The same, for the editor to hear of.
    pub fn take_in_new(&mut self, entry: Entry) {
        self.take_in(entry);
        self.touch(Touched::Entry(self.entries.len() - 1));
    }

    /// Cuts the text of an entry and adds to what is left.
    pub fn regrow(&mut self, entry: usize, kept: usize, more: &str) {
        if let Some(entry) = self.get_mut(entry) {
            let kept = entry.text.floor_char_boundary(kept);
            // What the editor has of it cannot be taken back: there is only white space behind.
            if entry.sent <= kept {
                entry.text.truncate(kept);
            } else {
                entry.text.truncate(entry.sent);
            }
            entry.text.push_str(more);
        }
    }

    /// All entries.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// One entry.
    pub fn get(&self, entry: usize) -> Option<&Entry> {
        self.entries.get(entry)
    }

    /// One entry, to change: it is drawn again.
    pub fn get_mut(&mut self, entry: usize) -> Option<&mut Entry> {
        if entry < self.entries.len() {
            self.touch(Touched::Entry(entry));
        }
        self.entries.get_mut(entry)
    }

    /// One entry, to note how much of it the editor has.
    pub fn get_unseen(&mut self, entry: usize) -> Option<&mut Entry> {
        self.entries.get_mut(entry)
    }

    /// Adds text at the end of an entry.
    pub fn grow(&mut self, entry: usize, text: &str) {
        if let Some(grown) = self.entries.get_mut(entry) {
            let from = grown.text.len();
            grown.text.push_str(text);
            self.touch(Touched::Grew { entry, from });
        }
    }

    /// What was changed since the last call.
    pub fn take_touched(&mut self) -> Vec<Touched> {
        std::mem::take(&mut self.touched)
    }

    fn touch(&mut self, touched: Touched) {
        if self.touched.last() != Some(&touched) {
            self.touched.push(touched);
        }
    }

    /// Where the entries of this turn begin.
    pub fn turn(&self) -> usize {
        self.turn
    }

    /// The entry of a tool call: of the agent's own, or else of any subagent.
    pub fn tool(&self, id: &str) -> Option<usize> {
        self.tool_of(id, None)
    }

    /// The entry of a tool call that this subagent speaks of: its own, else the agent's, else of any other subagent. A
    /// permission may be asked in another session than the one the call runs in.
    pub fn tool_of(&self, id: &str, parent: Option<usize>) -> Option<usize> {
        let known = self.tools.get(id)?;
        let of = |owner| known.iter().rfind(|(parent, _)| *parent == owner);
        of(parent)
            .or_else(|| of(None))
            .or_else(|| known.last())
            .map(|(_, at)| *at)
    }

    /// The entry of a tool call of this subagent alone.
    pub fn own_tool(&self, id: &str, parent: Option<usize>) -> Option<usize> {
        let known = self.tools.get(id)?;
        known
            .iter()
            .rfind(|(owner, _)| *owner == parent)
            .map(|(_, at)| *at)
    }

    /// The task an entry belongs to, the task that belongs to, and so on.
    pub fn ancestors(&self, entry: usize) -> impl Iterator<Item = usize> {
        let parent = |at: usize| self.get(at).and_then(|entry| entry.parent);
        std::iter::successors(parent(entry), move |at| parent(*at))
    }

    /// Adds a piece of a message. It joins the message before it unless something came between, or the
    /// agent says that it is another message.
    pub fn chunk(
        &mut self,
        voice: Voice,
        text: &str,
        message_id: Option<&str>,
        parent: Option<usize>,
        now_ms: u64,
    ) -> Touched {
        if let Some(&open) = self.open.get(&parent)
            && let Some(entry) = self.entries.get_mut(open)
            && joins(&entry.body, voice, message_id)
        {
            let touched = Touched::Grew {
                entry: open,
                from: entry.text.len(),
            };
            entry.text.push_str(text);
            self.touch(touched);
            return touched;
        }
        self.end_message(parent, now_ms);
        let message_id = message_id.map(str::to_owned);
        let body = match voice {
            Voice::User => Body::User {
                context: Vec::new(),
                prompt: None,
                message_id,
            },
            Voice::Agent => Body::Agent { message_id },
            Voice::Thought => Body::Thought { message_id },
        };
        let mut entry = Entry::new(text.to_owned(), body, now_ms);
        entry.parent = parent;
        let at = self.add(entry);
        self.open.insert(parent, at);
        if voice == Voice::User && parent.is_none() {
            self.turn = at;
        }
        Touched::Entry(at)
    }

    /// The agent's last message of this turn, if nothing was done after it.
    pub fn last_words(&self) -> Option<&str> {
        let of_turn = self.entries.get(self.turn..)?.iter().rev();
        let mut own = of_turn.filter(|entry| entry.parent.is_none());
        let last = own.find(|entry| !matches!(entry.body, Body::Todos { .. } | Body::Notice(_)))?;
        matches!(last.body, Body::Agent { .. }).then_some(last.text.as_str())
    }

    /// Ends the message that is being written, if any; the number of its entry.
    pub fn end_message(&mut self, parent: Option<usize>, now_ms: u64) -> Option<usize> {
        let at = self.open.remove(&parent)?;
        let entry = self.get_mut(at)?;
        entry.done = true;
        entry.duration_ms = Some(now_ms.saturating_sub(entry.started_ms));
        Some(at)
    }

    /// Adds an entry that is complete.
    pub fn add_done(&mut self, text: String, body: Body, now_ms: u64) -> usize {
        let mut entry = Entry::new(text, body, now_ms);
        entry.done = true;
        self.add(entry)
    }

    /// Adds a notice, of a subagent's task or of the session.
    pub fn notice(
        &mut self,
        parent: Option<usize>,
        level: Level,
        about: &'static str,
        text: String,
        now_ms: u64,
    ) -> usize {
        let notice = Notice {
            level,
            about,
            ..Notice::default()
        };
        let at = self.add_done(text, Body::Notice(notice), now_ms);
        if let Some(entry) = self.entries.get_mut(at) {
            entry.parent = parent;
        }
        at
    }

    /// A call is announced: one of this id that ended in an earlier turn is another one. Some agents count their
    /// calls again in each turn.
    pub fn announce_tool(&mut self, id: &str, parent: Option<usize>) {
        let known = self.own_tool(id, parent);
        let ended = known.filter(|at| *at < self.turn).is_some_and(|at| {
            let tool = self.get(at).and_then(Entry::tool);
            tool.is_none_or(ToolCall::is_over)
        });
        if let (true, Some(known)) = (ended, self.tools.get_mut(id)) {
            known.retain(|(owner, _)| *owner != parent);
        }
    }

    /// Makes the tool call of this id.
    pub fn add_tool(&mut self, id: &str, parent: Option<usize>, now_ms: u64) -> usize {
        let tool = ToolCall {
            id: id.to_owned(),
            ..ToolCall::default()
        };
        let mut entry = Entry::new(String::new(), Body::Tool(Box::new(tool)), now_ms);
        entry.parent = parent;
        let at = self.add(entry);
        self.alias_tool(id, parent, at);
        at
    }

    /// Another id of the same tool call: some agents ask permission under a name of its own.
    pub fn alias_tool(&mut self, id: &str, parent: Option<usize>, entry: usize) {
        let known = self.tools.entry(id.to_owned()).or_default();
        known.retain(|(owner, _)| *owner != parent);
        known.push((parent, entry));
    }

    /// Whether a tool call goes by more than one id.
    pub fn has_alias(&self, entry: usize) -> bool {
        let ids = self.tools.values().flatten();
        ids.filter(|(_, at)| *at == entry).count() > 1
    }

    /// Whether this turn has an entry for the todos.
    pub fn shows_todos(&self, parent: Option<usize>) -> bool {
        self.todo_lists.contains_key(&parent)
    }

    /// Shows the todos: in this turn's entry for them, or a new one.
    pub fn show_todos(&mut self, list: &[Todo], parent: Option<usize>, now_ms: u64) -> usize {
        let text = todos::markdown(list);
        if let Some(&at) = self.todo_lists.get(&parent)
            && let Some(entry) = self.entries.get_mut(at)
        {
            entry.text = text;
            entry.body = Body::Todos {
                todos: list.to_vec(),
            };
            self.touch(Touched::Entry(at));
            return at;
        }
        let todos = list.to_vec();
        let mut entry = Entry::new(text, Body::Todos { todos }, now_ms);
        entry.done = true;
        entry.parent = parent;
        let at = self.add(entry);
        self.todo_lists.insert(parent, at);
        at
    }

    /// A turn begins or ends: the next todos are shown again, and no message goes on over it but those of subagents that
    /// are still at work.
    pub fn end_turn(&mut self, now_ms: u64) -> Vec<usize> {
        let ends = |parent: &Option<usize>| !parent.is_some_and(|task| self.is_at_work(task));
        let gone: Vec<Option<usize>> = self.todo_lists.keys().copied().filter(ends).collect();
        let open: Vec<Option<usize>> = self.open.keys().copied().filter(ends).collect();
        for parent in gone {
            self.todo_lists.remove(&parent);
        }
        self.turn = self.entries.len();
        open.into_iter()
            .filter_map(|parent| self.end_message(parent, now_ms))
            .collect()
    }

    /// Whether the subagent of a task has said that it works, or one above it has.
    pub fn is_at_work(&self, task: usize) -> bool {
        std::iter::once(task)
            .chain(self.ancestors(task))
            .any(|at| self.task(at).is_some_and(Task::is_live))
    }

    /// The task of an entry, if it is one's.
    pub fn task(&self, entry: usize) -> Option<&Task> {
        self.get(entry)?.tool()?.task.as_ref()
    }

    /// All tasks, oldest first.
    pub fn tasks(&self) -> impl DoubleEndedIterator<Item = (usize, &Task)> {
        let entries = self.entries.iter().enumerate();
        entries.filter_map(|(at, entry)| Some((at, entry.tool()?.task.as_ref()?)))
    }

    /// The tasks of the turn that runs, or of the last one.
    pub fn tasks_of_turn(&self) -> impl DoubleEndedIterator<Item = (usize, &Task)> {
        let is_prompt =
            |entry: &Entry| entry.parent.is_none() && matches!(entry.body, Body::User { .. });
        let begin = self.entries.iter().rposition(is_prompt).unwrap_or_default();
        self.tasks().filter(move |(at, _)| *at >= begin)
    }

    fn add(&mut self, entry: Entry) -> usize {
        self.entries.push(entry);
        let at = self.entries.len() - 1;
        self.touch(Touched::Entry(at));
        at
    }
}

/// Whether a chunk goes on with a message: same voice, and not said to be of another message.
fn joins(body: &Body, voice: Voice, id: Option<&str>) -> bool {
    let own = match (body, voice) {
        (
            Body::User {
                message_id,
                prompt: None,
                ..
            },
            Voice::User,
        )
        | (Body::Agent { message_id }, Voice::Agent)
        | (Body::Thought { message_id }, Voice::Thought) => message_id,
        _ => return false,
    };
    match (own.as_deref(), id) {
        (Some(own), Some(id)) => own == id,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_join_until_something_comes_between() {
        let mut t = Transcript::default();
        let mut add = |voice, text: &str, id: Option<&str>| t.chunk(voice, text, id, None, 5);
        assert_eq!(add(Voice::Agent, "a", None), Touched::Entry(0));
        assert_eq!(
            add(Voice::Agent, "bc", None),
            Touched::Grew { entry: 0, from: 1 }
        );
        assert_eq!(add(Voice::Thought, "hm", None), Touched::Entry(1));
        assert_eq!(add(Voice::Agent, "d", Some("m1")), Touched::Entry(2));
        assert_eq!(
            add(Voice::Agent, "e", Some("m1")),
            Touched::Grew { entry: 2, from: 1 }
        );
        assert_eq!(add(Voice::Agent, "f", Some("m2")), Touched::Entry(3));
        assert_eq!(t.end_message(None, 9), Some(3));
        assert_eq!(t.add_tool("x", None, 9), 4);
        assert_eq!((t.tool("x"), t.own_tool("x", Some(4))), (Some(4), None));
        assert_eq!(t.chunk(Voice::Agent, "g", None, None, 9), Touched::Entry(5));
        // A subagent's message does not break the agent's own.
        assert_eq!(
            t.chunk(Voice::Agent, "sub", None, Some(4), 9),
            Touched::Entry(6)
        );
        assert_eq!(
            t.chunk(Voice::Agent, "h", None, None, 9),
            Touched::Grew { entry: 5, from: 1 }
        );
        let texts: Vec<&str> = t.entries().iter().map(|e| e.text.as_str()).collect();
        assert_eq!(texts, ["abc", "hm", "de", "f", "", "gh", "sub"]);
        assert_eq!(t.entries()[3].duration_ms, Some(4));
    }

    #[test]
    fn todos_are_shown_once_a_turn() {
        let mut t = Transcript::default();
        let list = |status: &str| {
            vec![Todo {
                id: "1".into(),
                content: "c".into(),
                status: status.into(),
                ..Todo::default()
            }]
        };
        assert_eq!(t.show_todos(&list("pending"), None, 0), 0);
        assert_eq!(t.show_todos(&list("completed"), None, 0), 0);
        t.end_turn(0);
        assert_eq!(t.show_todos(&list("completed"), None, 0), 1);
        assert_eq!(t.entries()[0].text, "- [x] c");
    }
}
