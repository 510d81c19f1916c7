//! Searching one file.

#[cfg(test)]
mod tests;

use std::io::{self, Read};
use std::time::Instant;

use grep_matcher::Matcher as _;
use grep_searcher::Searcher;
use memchr::memmem::Finder;
use memchr::memrchr;
use vfs_core::tree::{Learn, Opened, Tree};
use vfs_core::{BinaryMode, Error, ErrorKind, Problem, Result, Skipped, VfsPath};

use crate::item::{Item, Outlet};
use crate::query::compiled::Plan;
use crate::query::matcher::LineMatcher;
use crate::read_error::read_error;
use crate::searcher::buffer::Buffer;
use crate::searcher::cancellable_matcher::Watched;
use crate::searcher::chunks::{Ended, Pieces, Stop, fill};
use crate::searcher::encoding::{UTF8_MARK, is_binary, is_transcoded};
use crate::searcher::literal::LiteralSearch;
use crate::searcher::outcome::{Outcome, skipped};
use crate::searcher::paced_reader::{Halt, Pace, PacedReader};
use crate::searcher::prefilter::{Learning, Recall};
use crate::searcher::sink::{FileSink, Scratch};
use crate::walk::dir_entries::Entry;

/// How much more than it claims a file may have. What claims nothing may go on for ever.
const MOST_UNCLAIMED: u64 = 64 << 20;

/// How long a file is, in bytes, that tells something of the pace.
const TIMED: usize = 16 << 10;

/// How much is looked through for a literal between two looks whether to go on, in bytes.
const PIECE: usize = 256 << 10;

/// What a worker needs to search one file after another.
pub(crate) struct FileSearcher {
    matcher: LineMatcher,
    searcher: Searcher,
    buffer: Buffer,
    /// Of a long file, what is read after its beginning.
    pieces: Buffer,
    scratch: Scratch,
    pace: Pace,
    recall: Recall,
    learning: Learning,
}

impl FileSearcher {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            // A clone has its own cache, which threads need not wait for.
            matcher: plan.matcher.clone(),
            searcher: plan.searcher(),
            buffer: Buffer::default(),
            pieces: Buffer::default(),
            scratch: Scratch::default(),
            pace: Pace::new(),
            recall: Recall::default(),
            learning: Learning::default(),
        }
    }

    /// Searches the file `entry`, as [`search`](Self::search) does, unless it is known already that nothing is in it.
    pub(crate) fn visit<T: Tree>(
        &mut self,
        plan: &Plan,
        tree: &T,
        entry: Entry<'_, T::Dir>,
        outlet: &mut dyn Outlet,
        interrupted: &dyn Fn() -> bool,
    ) {
        if let Some(outcome) = self.recall.outcome(plan, tree, entry) {
            // A consumer that is gone is noticed by whoever goes on to the next file.
            let _ = outlet.put(outcome.into_item(false));
            return;
        }
        let opened = tree.open(&entry.place().dir, entry.name(), entry.kind());
        self.search(plan, opened, &|| entry.path(), outlet, interrupted);
    }

    /// Searches a file; its items go to `outlet`, the last being [`Item::Done`] unless it was interrupted.
    pub(crate) fn search(
        &mut self,
        plan: &Plan,
        opened: Result<Opened>,
        make_path: &dyn Fn() -> Result<VfsPath>,
        outlet: &mut dyn Outlet,
        interrupted: &dyn Fn() -> bool,
    ) {
        let Self { matcher, searcher, buffer, pieces, scratch, pace, learning, .. } = self;
        let watched = Watched::new(plan, matcher, interrupted);
        let mut sink = FileSink::new(plan, &watched, make_path, outlet, scratch);
        let mut run = Run { plan, searcher, buffer, pieces, pace, learning, interrupted };
        let outcome = opened.map_err(Stop::Problem).and_then(|opened| run.content(opened, &mut sink));
        if watched.is_stopped() {
            return;
        }
        let outcome = match sink.failure.take() {
            Some(error) => Err(Stop::Problem(error)),
            None => outcome,
        };
        sink.finish();
        let (matches, left_early) = (sink.matches, sink.left_early);
        let (outcome, problem) = match outcome {
            Ok(outcome) => (outcome, None),
            Err(Stop::Interrupted) => return,
            Err(Stop::Problem(error)) if matches > 0 => (Outcome::Searched, Some(error)),
            Err(Stop::Problem(error)) => (Outcome::Skipped(Skipped::default()), Some(error)),
        };
        if let Some(error) = problem {
            let (path, error) = match make_path() {
                Ok(path) => (path.to_string(), error.with_path(&path)),
                Err(invalid) => (invalid.path().unwrap_or_default().to_owned(), invalid),
            };
            let _ = outlet.put(Item::Problem(Problem::new(path, &error)));
            // A line that was too long has left a large buffer behind.
            *searcher = plan.searcher();
            *pieces = Buffer::default();
        }
        let _ = outlet.put(outcome.into_item(left_early));
    }
}

/// What is behind a part of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behind {
    Nothing,
    More,
}

/// The search of one file.
struct Run<'a> {
    plan: &'a Plan,
    searcher: &'a mut Searcher,
    buffer: &'a mut Buffer,
    pieces: &'a mut Buffer,
    pace: &'a mut Pace,
    learning: &'a mut Learning,
    interrupted: &'a dyn Fn() -> bool,
}

impl Run<'_> {
    fn content(&mut self, opened: Opened, sink: &mut FileSink<'_>) -> Result<Outcome, Stop> {
        let max = self.plan.max_file_size.unwrap_or(u64::MAX);
        let too_large = || Ok(Outcome::Skipped(skipped(|skipped| &mut skipped.too_large)));
        match opened {
            Opened::Bytes { bytes, .. } if bytes.len() as u64 > max => too_large(),
            Opened::Bytes { bytes, is_binary, learn } => {
                let size = bytes.len() as u64;
                let learn = self.learning.taken(self.plan, learn, size);
                let outcome = self.haystack(&bytes, is_binary, None, size, sink)?;
                self.learn(learn, &bytes, &outcome);
                Ok(outcome)
            }
            Opened::Reader { size, .. } if size > max => too_large(),
            Opened::Reader { reader, size, learn } => {
                let learn = self.learning.taken(self.plan, learn, size);
                let mut buffer = std::mem::take(self.buffer);
                let result = self.read(&mut buffer, reader, size, learn, sink);
                *self.buffer = buffer;
                result
            }
        }
    }

    /// Searches what `reader` gives, which claims `size` bytes.
    fn read(
        &mut self,
        buffer: &mut Buffer,
        mut reader: Box<dyn Read + Send>,
        size: u64,
        learn: Option<Learn>,
        sink: &mut FileSink<'_>,
    ) -> Result<Outcome, Stop> {
        let max = self.plan.max_file_size.unwrap_or(u64::MAX);
        let room = size.saturating_add(MOST_UNCLAIMED).min(max);
        let (filled, ended) = fill(buffer, &mut *reader, size, self.interrupted)?;
        let head = &buffer.bytes()[..filled];
        match (ended, learn) {
            _ if filled as u64 > max => Ok(Outcome::Skipped(skipped(|skipped| &mut skipped.too_large))),
            (Ended::Yes, learn) => {
                let outcome = self.haystack(head, None, None, room, sink)?;
                self.learn(learn, head, &outcome);
                Ok(outcome)
            }
            (Ended::No, Some(learn)) if !is_transcoded(head) => {
                let mut learning = std::mem::take(self.learning);
                let mut learned = learning.as_read(size, head, reader);
                let outcome = self.haystack(head, None, Some(&mut learned), room, sink);
                if let Ok(outcome) = &outcome {
                    learned.give(learn, size, outcome);
                }
                *self.learning = learning;
                outcome
            }
            (Ended::No, _) => self.haystack(head, None, Some(&mut *reader), room, sink),
        }
    }

    fn learn(&mut self, learn: Option<Learn>, content: &[u8], outcome: &Outcome) {
        if let Some(learn) = learn {
            self.learning.whole(learn, content, outcome, self.interrupted);
        }
    }

    /// Searches `head` and what `rest` has after it, of which there may be `room` bytes in all.
    fn haystack(
        &mut self,
        head: &[u8],
        known_binary: Option<bool>,
        rest: Option<&mut (dyn Read + Send)>,
        room: u64,
        sink: &mut FileSink<'_>,
    ) -> Result<Outcome, Stop> {
        if self.plan.binary == BinaryMode::Skip && known_binary.unwrap_or_else(|| is_binary(head)) {
            return Ok(Outcome::binary());
        }
        let text = head.strip_prefix(UTF8_MARK).unwrap_or(head);
        sink.mark = (head.len() - text.len()) as u64;
        let matcher = sink.matcher.unwatched();
        match (rest, matcher.finder()) {
            (Some(rest), Some(finder)) if self.is_literal_enough(text) => {
                self.literal_in_pieces(finder, text, rest, room, sink)?;
            }
            (Some(rest), _) => self.reader(text, rest, room, sink)?,
            (None, Some(finder)) if self.is_literal_enough(text) => {
                self.literal(&mut LiteralSearch::new(finder), text, Behind::Nothing, sink)?;
            }
            (None, _) if self.is_hopeless(text, matcher)? => {}
            (None, _) if self.is_in_one_go(text) => self.slice(text, sink)?,
            (None, _) => self.reader(text, io::empty(), room, sink)?,
        }
        Ok(Outcome::Searched)
    }

    /// Whether `text` is searched for a literal as it is, and nothing beside the lines that hold it is asked for.
    fn is_literal_enough(&self, text: &[u8]) -> bool {
        // The searcher takes a second mark off, too.
        let is_as_it_is = !is_transcoded(text) && !text.starts_with(UTF8_MARK);
        self.plan.is_plain() && is_as_it_is && text.len() <= self.plan.heap_limit
    }

    /// Searches whole lines for a literal; whether the search goes on.
    fn literal(
        &mut self,
        search: &mut LiteralSearch<'_>,
        lines: &[u8],
        behind: Behind,
        sink: &mut FileSink<'_>,
    ) -> Result<bool, Stop> {
        let mut rest = lines;
        loop {
            if (self.interrupted)() {
                return Err(Stop::Interrupted);
            }
            let (piece, after) = rest.split_at(whole_lines(rest, PIECE));
            if !search.search(piece, sink) {
                return Ok(false);
            }
            if after.is_empty() && behind == Behind::Nothing {
                return Ok(true);
            }
            search.pass(piece, sink);
            if after.is_empty() {
                return Ok(true);
            }
            rest = after;
        }
    }

    /// Searches `head` and what `rest` has after it for a literal.
    fn literal_in_pieces(
        &mut self,
        finder: &Finder<'_>,
        head: &[u8],
        rest: &mut (dyn Read + Send),
        room: u64,
        sink: &mut FileSink<'_>,
    ) -> Result<(), Stop> {
        let mut search = LiteralSearch::new(finder);
        let (lines, start) = head.split_at(memrchr(b'\n', head).map_or(0, |end| end + 1));
        if !self.literal(&mut search, lines, Behind::More, sink)? {
            return Ok(());
        }
        let left = room.saturating_sub(head.len() as u64);
        let mut reader = PacedReader::new(rest, self.pace, self.interrupted, left);
        let mut pieces = Pieces::new(self.pieces, start, &mut reader, self.plan.heap_limit);
        let result = loop {
            let lines = match pieces.next() {
                Ok(Some(lines)) => lines,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            if !search.search(lines, sink) {
                break Ok(());
            }
            search.pass(lines, sink);
        };
        let halt = reader.into_halt();
        self.ended(result, halt, room)
    }

    /// Whether `text` is searched where it is: it is short, or a multiline search would have to copy all of it.
    fn is_in_one_go(&self, text: &[u8]) -> bool {
        text.len() <= self.plan.heap_limit && (self.plan.multiline || text.len() <= self.pace.bytes())
    }

    fn slice(&mut self, text: &[u8], sink: &mut FileSink<'_>) -> Result<(), Stop> {
        if (self.interrupted)() {
            return Err(Stop::Interrupted);
        }
        // Short ones are not worth a look at the clock.
        let start = (text.len() >= TIMED).then(Instant::now);
        let matcher = sink.matcher;
        let result = self.searcher.search_slice(matcher, text, &mut *sink);
        if let Some(start) = start {
            self.pace.took(text.len(), start.elapsed());
        }
        result.map_err(|error| Stop::Problem(self.beyond_limit(error)))
    }

    /// Whether no line of `text` can match. Most texts have none that does, and then nothing is to be set up or counted.
    ///
    /// What costs more than a literal is not looked for twice in a text that is long.
    fn is_hopeless(&self, text: &[u8], matcher: &LineMatcher) -> Result<bool, Stop> {
        let is_by_line = matcher.line_terminator().is_some() && !self.plan.multiline;
        let is_cheap = text.len() < TIMED || (matcher.finder().is_some() && text.len() <= self.plan.heap_limit);
        if !is_by_line || is_transcoded(text) || !is_cheap || self.plan.invert {
            return Ok(false);
        }
        let mut rest = text;
        while !rest.is_empty() {
            if (self.interrupted)() {
                return Err(Stop::Interrupted);
            }
            let (piece, after) = rest.split_at(whole_lines(rest, PIECE));
            if !matches!(matcher.find_candidate_line(piece), Ok(None)) {
                return Ok(false);
            }
            rest = after;
        }
        Ok(true)
    }

    fn reader(&mut self, head: &[u8], rest: impl Read, room: u64, sink: &mut FileSink<'_>) -> Result<(), Stop> {
        // Lines are looked at as they are read: in UTF-16 a letter is up to twice as long as in UTF-8.
        let most = if is_transcoded(head) { self.plan.heap_limit.saturating_mul(2) } else { self.plan.heap_limit };
        let line_limit = self.plan.holds_context().then_some(most);
        let mut reader =
            PacedReader::new(head.chain(rest), self.pace, self.interrupted, room).with_line_limit(line_limit);
        let matcher = sink.matcher;
        let result = self.searcher.search_reader(matcher, &mut reader, &mut *sink);
        let halt = reader.into_halt();
        self.ended(result, halt, room)
    }

    /// What came of reading to the end, which `halt` may have kept from it; there was `room` for so many bytes in all.
    fn ended(&self, result: io::Result<()>, halt: Option<Halt>, room: u64) -> Result<(), Stop> {
        match (result, halt) {
            (Ok(()), _) => Ok(()),
            (Err(_), Some(Halt::Interrupted)) => Err(Stop::Interrupted),
            (Err(_), Some(Halt::TooLarge)) => {
                let what = if self.plan.max_file_size == Some(room) {
                    "it grew over the size limit while it was searched"
                } else {
                    "it has over 64 MiB more than it claims; the rest was not searched"
                };
                Err(Stop::Problem(Error::new(ErrorKind::TooLarge, what)))
            }
            (Err(_), Some(Halt::LongLine)) => Err(Stop::Problem(self.long_line())),
            (Err(_), Some(Halt::Io(error))) => Err(Stop::Problem(read_error(error))),
            (Err(error), None) => Err(Stop::Problem(self.beyond_limit(error))),
        }
    }

    /// The one way in which a search fails by itself.
    fn beyond_limit(&self, error: io::Error) -> Error {
        let what = if self.plan.multiline {
            let limit = self.plan.heap_limit;
            format!("it is over {limit} bytes, too large for a multiline search with this pattern")
        } else if self.plan.holds_context() {
            let limit = self.plan.heap_limit.saturating_add(self.plan.context_limit);
            format!("a line and its lines of context are over {limit} bytes; ask for fewer lines of context")
        } else {
            return self.long_line().with_source(error);
        };
        Error::new(ErrorKind::TooLarge, what).with_source(error)
    }

    fn long_line(&self) -> Error {
        let limit = self.plan.heap_limit;
        Error::new(ErrorKind::TooLarge, format!("it has a line of over {limit} bytes, too long for this pattern"))
    }
}

/// How long the lines at the front of `text` are that are over `most` bytes together, or all of them.
fn whole_lines(text: &[u8], most: usize) -> usize {
    let after = text.get(most..).unwrap_or_default();
    memchr::memchr(b'\n', after).map_or(text.len(), |end| most + end + 1)
}
