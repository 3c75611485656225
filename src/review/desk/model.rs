//! An editor, a disk, two agents and reports that come late, in any order: what was before the agents comes back, and no
//! line of the user's is lost.

use std::collections::{BTreeSet, VecDeque};

use super::*;
use engine::ids::Key;
use proptest::prelude::*;
use review::three_way;

const PATH: &str = "/f";

/// What the user, the agents and the machine do. Numbers choose among what there is.
#[derive(Debug, Clone)]
enum Step {
    Type(u8),
    TypeTwo(u8, u8),
    Agent(u8, Vec<(u8, u8)>),
    Report(u8),
    Hear,
    Look(u8),
    Save(u8),
    SaveAnyway,
    Edit,
    EditAnyway,
    Close,
    Open,
    Undo(u8),
    UndoAll,
    Keep(u8),
    KeepAll,
}

fn any_step() -> impl Strategy<Value = Step> {
    let agent = || {
        let edits = proptest::collection::vec((any::<u8>(), any::<u8>()), 1..4);
        (any::<u8>(), edits).prop_map(|(who, edits)| Step::Agent(who, edits))
    };
    prop_oneof![
        4 => any::<u8>().prop_map(Step::Type),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(a, b)| Step::TypeTwo(a, b)),
        6 => agent(),
        3 => any::<u8>().prop_map(Step::Report),
        5 => Just(Step::Hear),
        4 => any::<u8>().prop_map(Step::Look),
        3 => any::<u8>().prop_map(Step::Save),
        1 => Just(Step::SaveAnyway),
        1 => Just(Step::Edit),
        1 => Just(Step::EditAnyway),
        1 => Just(Step::Close),
        2 => Just(Step::Open),
        2 => any::<u8>().prop_map(Step::Undo),
        1 => Just(Step::UndoAll),
        2 => any::<u8>().prop_map(Step::Keep),
        1 => Just(Step::KeepAll),
    ]
}

/// A buffer, as `files/loaded.lua` and `review/buffers.lua` know it.
#[derive(Debug, Clone)]
struct Buffer {
    lines: Vec<String>,
    modified: bool,
    /// The state of the disk it has, and what the disk had then.
    known: u64,
    base: Option<Vec<String>>,
    told: bool,
}

#[derive(Debug)]
struct World {
    desk: Desk,
    disk: Vec<String>,
    state: u64,
    buffer: Option<Buffer>,
    /// Reports of agents, which come some time after they wrote.
    words: VecDeque<Author>,
    /// What the disk was when it was seen last.
    kept: Vec<String>,
    /// What is there without anything that is undecided, and without the user's lines.
    original: Vec<String>,
    /// The user's lines that have to be there.
    mine: BTreeSet<String>,
    number: usize,
    last_agent: Author,
}

fn snapshot(lines: &[String]) -> Snapshot {
    Snapshot::File {
        bytes: join(lines).into(),
        mode: 0o644,
    }
}

fn join(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn text(lines: &[String]) -> Text {
    Text::new(join(lines))
}

fn cut(text: &Text) -> Vec<String> {
    text.lines().iter().map(|line| bare(line)).collect()
}

fn without_mine(lines: &[String]) -> Vec<String> {
    let others = lines.iter().filter(|line| !line.starts_with("user"));
    others.cloned().collect()
}

fn all() -> Select {
    Select {
        all: true,
        ..Select::default()
    }
}

fn agent(who: u8) -> Author {
    Author {
        key: Key(u64::from(who % 2) + 1),
        turn: 1,
    }
}

impl World {
    fn new(lines: Vec<String>) -> Self {
        Self {
            desk: Desk::default(),
            disk: lines.clone(),
            state: 1,
            buffer: None,
            words: VecDeque::new(),
            kept: lines.clone(),
            original: lines,
            mine: BTreeSet::new(),
            number: 0,
            last_agent: agent(0),
        }
    }

    fn name(&mut self, who: &str) -> String {
        self.number += 1;
        format!("{who} {}", self.number)
    }

    fn write(&mut self, lines: Vec<String>) {
        self.disk = lines;
        self.state += 1;
    }

    fn tracked(&self) -> Option<&Tracked> {
        self.desk.files.get(Path::new(PATH))
    }

    fn tell(&mut self, before: Option<Text>, holds: Holds, by: Option<Author>) {
        let Some(buffer) = &mut self.buffer else {
            return;
        };
        let took = Took {
            disk: Some(snapshot(&self.disk)),
            state: self.state.to_string(),
            was: Some(snapshot(&self.kept)),
            base: buffer
                .base
                .as_deref()
                .filter(|_| buffer.known > 0)
                .map(snapshot),
            before,
            holds,
            by,
        };
        if self.desk.took(Path::new(PATH), took) {
            buffer.told = true;
        }
        (buffer.known, buffer.base) = (self.state, Some(self.disk.clone()));
        self.kept = self.disk.clone();
    }

    /// The buffer takes in what is on disk; where both collide, the user decides, or does later.
    fn look(&mut self, choice: u8) {
        let Some(buffer) = &mut self.buffer else {
            return;
        };
        if buffer.known == self.state {
            return;
        }
        let by = Some(self.last_agent);
        let before = text(&buffer.lines);
        if buffer.base.as_ref() == Some(&self.disk) {
            return match buffer.modified {
                true => self.tell(Some(before), Holds::Same, by),
                false => self.tell(None, Holds::Disk, None),
            };
        }
        if !buffer.modified || buffer.lines == self.disk {
            buffer.lines = self.disk.clone();
            buffer.modified = false;
            return self.tell(Some(before), Holds::Disk, by);
        }
        let base = buffer.base.as_deref().map(text);
        let merged = base.and_then(|base| three_way(&base, &before, &text(&self.disk)).clean());
        match (merged, choice % 3) {
            (Some(merged), _) => {
                buffer.lines = cut(&merged);
                self.tell(Some(before), Holds::Text(merged), by);
            }
            (None, 0) => self.tell(Some(before), Holds::Same, by),
            (None, 1) => {
                buffer.lines = self.disk.clone();
                buffer.modified = false;
                self.tell(Some(before), Holds::Disk, by);
                self.let_go();
            }
            _ => {}
        }
    }

    /// The user let go of what is nowhere any more.
    fn let_go(&mut self) {
        let here = self
            .buffer
            .as_ref()
            .map_or(&self.disk, |buffer| &buffer.lines);
        self.mine.retain(|line| here.contains(line));
    }

    fn type_at(&mut self, at: u8, count: usize) {
        let lines: Vec<String> = (0..count).map(|_| self.name("user")).collect();
        let Some(buffer) = &mut self.buffer else {
            return;
        };
        let at = usize::from(at) % (buffer.lines.len() + 1);
        buffer.lines.splice(at..at, lines.clone());
        buffer.modified = true;
        if buffer.told {
            let bytes: Vec<Vec<u8>> = lines.iter().map(|line| line.clone().into()).collect();
            self.desk.typed(Path::new(PATH), at, at, &bytes);
        }
        self.mine.extend(lines);
    }

    fn agent_writes(&mut self, who: u8, edits: &[(u8, u8)]) {
        let mut lines = self.disk.clone();
        for (at, how) in edits {
            let at = usize::from(*at) % lines.len().max(1);
            let line = match how / 3 % 3 {
                0 => "same".to_owned(),
                1 => String::new(),
                _ => self.name("agent"),
            };
            let is_mine = lines.get(at).is_some_and(|line| line.starts_with("user"));
            match how % 3 {
                0 => lines.insert(at, line),
                1 if !is_mine && !lines.is_empty() => lines[at] = line,
                2 if !is_mine && lines.len() > 2 => drop(lines.remove(at)),
                _ => {}
            }
        }
        self.last_agent = agent(who);
        self.write(lines);
    }

    /// The watcher hears one word, and the editor what came of it.
    fn hear(&mut self) {
        if let Some(author) = self.words.pop_front() {
            self.became(author);
        }
        self.sync();
    }

    fn hear_all(&mut self) {
        while !self.words.is_empty() {
            self.hear();
        }
    }

    fn became(&mut self, author: Author) {
        let before = std::mem::replace(&mut self.kept, self.disk.clone());
        if before != self.disk {
            let (path, state) = (Path::new(PATH), self.state.to_string());
            let (before, after) = (Some(snapshot(&before)), snapshot(&self.disk));
            self.desk.agent_wrote(path, before, after, &state, author);
        }
        self.look(2);
    }

    /// Reports a buffer that the desk does not know yet.
    fn sync(&mut self) {
        let untold = self.desk.has_buffer(Path::new(PATH)) == Some(false);
        if let Some(buffer) = &self.buffer
            && untold
            && buffer.known == self.state
        {
            let holds = match buffer.modified {
                true => Holds::Text(text(&buffer.lines)),
                false => Holds::Disk,
            };
            self.tell(None, holds, None);
        }
    }

    fn save(&mut self, choice: u8, anyway: bool) {
        if !anyway {
            self.look(choice);
        }
        let Some(buffer) = &mut self.buffer else {
            return;
        };
        if !anyway && buffer.known != self.state {
            return;
        }
        let lines = buffer.lines.clone();
        self.disk = lines.clone();
        self.state += 1;
        // What was written is read again, which may come too late.
        let base = (choice < 128).then(|| lines.clone());
        (buffer.modified, buffer.known, buffer.base) = (false, self.state, base);
        let state = self.state.to_string();
        self.desk.saved(Path::new(PATH), snapshot(&lines), &state);
        self.kept = lines;
    }

    fn edit(&mut self, anyway: bool) {
        let Some(buffer) = &mut self.buffer else {
            return;
        };
        if buffer.modified && !anyway {
            return;
        }
        buffer.lines = self.disk.clone();
        buffer.modified = false;
        let by = Some(self.last_agent);
        // What it had is forgotten when it is unloaded.
        buffer.known = 0;
        self.tell(None, Holds::Disk, by);
        self.let_go();
    }

    fn close(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            if buffer.told {
                self.desk.buffer_gone(Path::new(PATH));
            }
            self.let_go();
        }
    }

    fn open(&mut self) {
        if self.buffer.is_none() {
            self.buffer = Some(Buffer {
                lines: Vec::new(),
                modified: false,
                known: 0,
                base: None,
                told: false,
            });
            self.edit(false);
        }
    }

    /// Whether hunks are where the desk says, once everything that can be is taken in.
    fn in_step(&mut self) -> bool {
        self.look(2);
        self.sync();
        if self.desk.is_guessed(Path::new(PATH)) {
            self.hear_all();
        }
        if let Some(buffer) = &self.buffer {
            let told = self.desk.has_buffer(Path::new(PATH)) == Some(true);
            return told && buffer.known == self.state;
        }
        let disk = snapshot(&self.disk);
        if self.desk.disk(Path::new(PATH)) != Some(&disk) {
            self.hear_all();
        }
        self.desk.disk(Path::new(PATH)) == Some(&disk)
    }

    fn pick(&self, which: u8) -> Option<Select> {
        let hunks = self.desk.hunks(&all(), false);
        let hunk = hunks.get(usize::from(which) % hunks.len().max(1))?;
        Some(Select {
            hunk: Some(hunk.id),
            ..Select::default()
        })
    }

    fn undo(&mut self, select: &Select) {
        if !self.in_step() {
            return;
        }
        let here = self
            .buffer
            .as_ref()
            .map_or(&self.disk, |buffer| &buffer.lines);
        let inside: Vec<String> = self
            .desk
            .hunks(select, false)
            .iter()
            .flat_map(|hunk| {
                let first = hunk.new.line.saturating_sub(1);
                here[first..first + hunk.new.count].to_vec()
            })
            .collect();
        let unsaved: Vec<String> = match &self.buffer {
            Some(buffer) => {
                let new = buffer.lines.iter().filter(|line| !self.disk.contains(line));
                new.filter(|line| line.starts_with("user"))
                    .cloned()
                    .collect()
            }
            None => Vec::new(),
        };
        for undo in self.desk.undo(select).1 {
            assert_eq!(undo.from, snapshot(&self.disk), "it is what was compared");
            let Snapshot::File { bytes, .. } = &undo.to else {
                panic!("a file")
            };
            let to = cut(&Text::new(bytes));
            for line in &unsaved {
                assert!(
                    !to.contains(line),
                    "{line} was saved behind the user's back"
                );
            }
            if let Some(buffer) = &mut self.buffer {
                for edit in undo.edits {
                    buffer.lines.splice(edit.first..edit.last, edit.lines);
                }
                if !buffer.modified {
                    assert_eq!(buffer.lines, to, "the buffer has what is on disk");
                }
            }
            self.write(to.clone());
            if let Some(buffer) = &mut self.buffer {
                (buffer.known, buffer.base) = (self.state, Some(to.clone()));
            }
            let state = self.state.to_string();
            self.desk.put_back(Path::new(PATH), state);
            self.kept = to;
        }
        for line in inside {
            self.mine.remove(&line);
        }
    }

    fn keep(&mut self, select: &Select) {
        if !self.in_step() {
            return;
        }
        // What is shown counts; where unsaved lines hide something of the disk's, that is not decided on.
        if self.buffer.as_ref().is_some_and(|buffer| buffer.modified) {
            self.save(0, false);
        }
        self.desk.keep(select);
        let base = match self.tracked().and_then(|tracked| tracked.lines.as_ref()) {
            Some(lines) => cut(lines.shown().base()),
            None => self.disk.clone(),
        };
        self.original = without_mine(&base);
    }

    fn play(&mut self, step: &Step) {
        match step {
            Step::Type(at) => self.type_at(*at, 1),
            Step::TypeTwo(at, other) => {
                self.type_at(*at, 2);
                self.type_at(*other, 1);
            }
            Step::Agent(who, edits) => self.agent_writes(*who, edits),
            Step::Report(who) => {
                self.words.push_back(agent(*who));
                self.look(2);
            }
            Step::Hear => self.hear(),
            Step::Look(choice) => self.look(*choice),
            Step::Save(choice) => self.save(*choice, false),
            Step::SaveAnyway => {
                // Only where nothing of the agents' is written over: that would be the user's decision about it.
                let current = self.buffer.as_ref().map(|buffer| buffer.known);
                if current == Some(self.state) {
                    self.save(0, true);
                }
            }
            Step::Edit => self.edit(false),
            Step::EditAnyway => self.edit(true),
            Step::Close => self.close(),
            Step::Open => self.open(),
            Step::Undo(which) => {
                if let Some(select) = self.pick(*which) {
                    self.undo(&select);
                }
            }
            Step::UndoAll => self.undo(&all()),
            Step::Keep(which) => {
                if let Some(select) = self.pick(*which) {
                    self.keep(&select);
                }
            }
            Step::KeepAll => self.keep(&all()),
        }
    }

    /// What holds at every moment.
    fn check(&self) {
        let here = self
            .buffer
            .as_ref()
            .map_or(&self.disk, |buffer| &buffer.lines);
        for line in &self.mine {
            assert!(here.contains(line), "{line} is lost");
        }
        let Some(tracked) = self.tracked().filter(|tracked| !tracked.guessed) else {
            return;
        };
        let Some(lines) = &tracked.lines else { return };
        let base = cut(lines.shown().base());
        assert_eq!(without_mine(&base), self.original, "what is shown");
        let base = cut(lines.on_disk.base());
        assert_eq!(without_mine(&base), self.original, "what is on disk");
        if let Some(buffer) = &self.buffer
            && tracked.buffer
        {
            assert_eq!(
                cut(lines.shown().current()),
                buffer.lines,
                "what the buffer has"
            );
        }
    }

    /// Everything is reported, processed and saved.
    fn rest(&mut self) {
        for round in 0..3 {
            self.words.push_back(self.last_agent);
            self.hear_all();
            self.look(round);
            self.check();
            self.save(0, false);
        }
    }
}

fn any_lines() -> impl Strategy<Value = Vec<String>> {
    let line = prop_oneof![
        Just("same".to_owned()),
        Just(String::new()),
        Just("end".to_owned()),
        "[a-f]",
    ];
    proptest::collection::vec(line, 3..14)
}

/// The agent takes its own write back before the buffer, which has unsaved lines, has heard of either.
#[test]
fn a_write_that_is_taken_back_before_the_buffer_hears_of_it_is_no_line_of_the_users() {
    let lines = ["", "", "same"].map(str::to_owned).to_vec();
    let mut world = World::new(lines);
    world.open();
    for step in [
        Step::Agent(0, vec![(45, 29)]),
        Step::Type(1),
        Step::Report(0),
        Step::Hear,
        Step::Agent(0, vec![(0, 111)]),
        Step::Look(0),
    ] {
        world.play(&step);
        world.check();
    }
    world.rest();
    world.undo(&all());
    assert_eq!(without_mine(&world.disk), world.original);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn whatever_the_order_undo_gives_back_what_was_and_keep_what_is(
        lines in any_lines(),
        steps in proptest::collection::vec(any_step(), 1..40),
        opened in any::<bool>(),
        keep in any::<bool>(),
    ) {
        let mut world = World::new(lines);
        if opened {
            world.open();
        }
        for step in &steps {
            world.play(step);
            world.check();
        }
        world.rest();
        world.check();
        let before = world.disk.clone();
        if keep {
            world.keep(&all());
            prop_assert_eq!(&world.disk, &before);
        } else {
            world.undo(&all());
            prop_assert_eq!(without_mine(&world.disk), world.original.clone());
        }
        prop_assert!(world.desk.files(None, None).is_empty());
        world.check();
    }
}
