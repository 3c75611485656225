//! Cuts a stream of bytes into lines, in linear time and bounded memory.

/// The longest line that is taken; what is longer is skipped up to its newline.
pub const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// The buffer may keep this much between lines; what a huge line needed beyond it is given back.
const KEEP_BYTES: usize = 1024 * 1024;

/// One line, or the news that one was too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A line without its end (`\n` or `\r\n`). Never blank.
    Line(&'a [u8]),
    /// A line beyond the cap. It was thrown away.
    TooLong {
        /// How long it was, without the newline.
        bytes: usize,
    },
}

/// Collects bytes and hands out lines. Push, then take frames until there are none, then push again.
#[derive(Debug)]
pub struct LineBuffer {
    cap: usize,
    bytes: Vec<u8>,
    /// Where the line that is not yet handed out starts.
    start: usize,
    /// No newline between `start` and here: each byte is scanned once.
    scanned: usize,
    /// Inside a line beyond the cap, how much of it was thrown away. `bytes` is empty then.
    skipping: Option<usize>,
    /// A skipped line ended; to be told before anything in `bytes`.
    skipped: Option<usize>,
}

impl Default for LineBuffer {
    fn default() -> Self {
        Self::new(MAX_LINE_BYTES)
    }
}

/// What `next_range` found, as places in the buffer: the borrow of the line begins only when it is returned.
enum Found {
    Line { from: usize, to: usize },
    TooLong(usize),
}

impl LineBuffer {
    /// A buffer for lines of at most `cap` bytes.
    pub fn new(cap: usize) -> Self {
        Self {
            cap,
            bytes: Vec::new(),
            start: 0,
            scanned: 0,
            skipping: None,
            skipped: None,
        }
    }

    /// Takes what was read, cut anywhere.
    pub fn push(&mut self, mut chunk: &[u8]) {
        if let Some(so_far) = self.skipping {
            let Some(end) = memchr::memchr(b'\n', chunk) else {
                self.skipping = Some(so_far + chunk.len());
                return;
            };
            self.skipping = None;
            self.skipped = Some(so_far + end);
            chunk = chunk.get(end + 1..).unwrap_or_default();
        }
        self.compact();
        self.bytes.extend_from_slice(chunk);
    }

    /// The next whole line, if there is one.
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        let found = self.next_found();
        self.frame(found)
    }

    /// The rest after EOF: whole lines first, then one without a newline. Call it until it returns None.
    pub fn finish(&mut self) -> Option<Frame<'_>> {
        let found = self
            .next_found()
            .or_else(|| self.skipping.take().map(Found::TooLong))
            .or_else(|| {
                let (from, to) = (self.start, self.bytes.len());
                self.start = to;
                self.scanned = to;
                self.judge(from, to)
            });
        self.frame(found)
    }

    /// How much of an overlong line was discarded so far, while its end has not arrived.
    pub fn skipping(&self) -> Option<usize> {
        self.skipping
    }

    /// How much memory the buffer holds.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    fn frame(&self, found: Option<Found>) -> Option<Frame<'_>> {
        match found? {
            Found::Line { from, to } => self.bytes.get(from..to).map(Frame::Line),
            Found::TooLong(bytes) => Some(Frame::TooLong { bytes }),
        }
    }

    fn next_found(&mut self) -> Option<Found> {
        if let Some(bytes) = self.skipped.take() {
            return Some(Found::TooLong(bytes));
        }
        loop {
            let unseen = self.bytes.get(self.scanned..).unwrap_or_default();
            let Some(offset) = memchr::memchr(b'\n', unseen) else {
                self.scanned = self.bytes.len();
                self.end_of_input();
                return None;
            };
            let (from, to) = (self.start, self.scanned + offset);
            self.start = to + 1;
            self.scanned = to + 1;
            let found = self.judge(from, to);
            if found.is_some() {
                return found;
            }
        }
    }

    /// A line from `from` to `to` as it is handed out; nothing when it is blank.
    fn judge(&self, from: usize, to: usize) -> Option<Found> {
        if to - from > self.cap {
            return Some(Found::TooLong(to - from));
        }
        let line = self.bytes.get(from..to)?;
        if line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        let to = if line.ends_with(b"\r") { to - 1 } else { to };
        Some(Found::Line { from, to })
    }

    /// Every whole line was handed out: see what the rest is.
    fn end_of_input(&mut self) {
        let rest = self.bytes.len() - self.start;
        if rest > self.cap {
            self.skipping = Some(rest);
            self.start = self.bytes.len();
        }
        self.compact();
    }

    /// Drops what was handed out. The rest moves only when it is no larger than what is dropped, so that a byte
    /// moves a bounded number of times.
    fn compact(&mut self) {
        let rest = self.bytes.len() - self.start;
        if self.start == 0 || rest > self.start {
            return;
        }
        self.bytes.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        if self.bytes.capacity() > KEEP_BYTES && rest < KEEP_BYTES / 2 {
            self.bytes.shrink_to(KEEP_BYTES);
        }
    }
}
