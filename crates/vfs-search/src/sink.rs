//! What one file's matches become.

use std::io;
use std::ops::ControlFlow;

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkError as _, SinkMatch};
use vfs_core::{Error, FileCount, GrepMatch, GrepOutput, LineKind, Problem, Result, Skipped, VfsPath};

use crate::line;
use crate::plan::Plan;

/// How far an expression may look beyond a match for word boundaries and the like.
const LOOK_AHEAD: usize = 128;

/// One item of a search on its way from a worker to the consumer.
#[derive(Debug)]
pub(crate) enum Item {
    /// A matching line.
    Match(GrepMatch),
    /// A line of context before a match.
    Before(GrepMatch),
    /// A line of context after a match.
    After(GrepMatch),
    /// A file that matches.
    File(FileCount),
    /// An entry that could not be searched.
    Problem(Problem),
    /// A file is done; it may have been left at its own limit with matches to come.
    Done { searched: bool, left_early: bool, skipped: Skipped },
    /// What the walk left out on the way to the files that follow.
    Walked { skipped: Skipped, too_deep: bool },
    /// The search cannot go on.
    Failed(Error),
}

impl Item {
    /// The number of the line that it is, if it is one. The lines of a file come in order.
    pub(crate) fn line(&self) -> Option<u64> {
        match self {
            Item::Match(line) | Item::Before(line) | Item::After(line) => Some(line.line),
            _ => None,
        }
    }

    /// About how many bytes it takes.
    pub(crate) fn cost(&self) -> usize {
        let text = match self {
            Item::Match(found) | Item::Before(found) | Item::After(found) => {
                found.text.len() + size_of_val(found.submatches.as_slice())
            }
            Item::Problem(problem) => problem.path.len() + problem.message.len(),
            Item::File(_) | Item::Done { .. } | Item::Walked { .. } | Item::Failed(_) => 0,
        };
        size_of::<Self>() + text
    }
}

/// Where items go.
pub(crate) trait Outlet {
    /// Takes `item`; `Break` where nobody wants any more.
    fn put(&mut self, item: Item) -> ControlFlow<()>;
}

/// Turns the matches of one file into items.
pub(crate) struct FileSink<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) matcher: &'a RegexMatcher,
    /// Makes the file's path, once, where there is a match.
    pub(crate) make_path: &'a dyn Fn() -> Result<VfsPath>,
    pub(crate) path: Option<VfsPath>,
    pub(crate) outlet: &'a mut dyn Outlet,
    /// Bytes of a byte order mark that were taken off the front.
    pub(crate) mark: u64,
    pub(crate) matches: u64,
    pub(crate) left_early: bool,
    pub(crate) failure: Option<Error>,
    pub(crate) found: Vec<(usize, usize)>,
}

impl FileSink<'_> {
    /// Reports the whole file, where that is the output.
    pub(crate) fn finish(&mut self) {
        let count = match self.plan.output {
            GrepOutput::Files => None,
            GrepOutput::Counts => Some(self.matches),
            _ => return,
        };
        if self.matches > 0
            && let Some(path) = self.path()
        {
            // A consumer that is gone is noticed by whoever goes on to the next file.
            let _ = self.outlet.put(Item::File(FileCount::new(path, count)));
        }
    }

    fn path(&mut self) -> Option<VfsPath> {
        if self.path.is_none() {
            match (self.make_path)() {
                Ok(path) => self.path = Some(path),
                Err(error) => self.failure = Some(error),
            }
        }
        self.path.clone()
    }

    fn line(&mut self, path: VfsPath, number: Option<u64>, offset: u64, bytes: &[u8]) -> GrepMatch {
        let text = line::text_of(bytes, self.plan.max_line_bytes, &self.found);
        let mut line = GrepMatch::new(path, number.unwrap_or_default(), text.text);
        line.submatches = text.submatches;
        line.cut = text.cut;
        line.byte_offset = if offset == 0 { 0 } else { offset + self.mark };
        line
    }

    /// Finds the pattern again in a matching line, or in the lines of a multiline match; the result is the column.
    fn find_submatches(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<u64> {
        let range = found.bytes_range_in_buffer();
        let text = line::without_ending(found.bytes()).len();
        let max = self.plan.max_line_bytes;
        // A line is looked at alone, as it was when it was found. A match of several may depend on what is around them.
        let (haystack, start, end) = if searcher.multi_line_with_matcher(self.matcher) {
            let buffer = found.buffer();
            (&buffer[..buffer.len().min(range.end.saturating_add(LOOK_AHEAD))], range.start, range.end)
        } else {
            let line = found.bytes().strip_suffix(b"\n").unwrap_or(found.bytes());
            (line, 0, line.len() + 1)
        };
        let mut column = 0;
        let ranges = &mut self.found;
        let result = self.matcher.find_iter_at(haystack, start, |submatch| {
            if submatch.start() >= end {
                return false;
            }
            let (from, to) = (submatch.start() - start, submatch.end() - start);
            if column == 0 {
                column = from as u64 + 1;
            }
            if from > max.min(text) {
                return false;
            }
            ranges.push((from, to.min(text)));
            true
        });
        result.map_err(io::Error::error_message)?;
        Ok(column)
    }
}

impl Sink for FileSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if self.plan.limit_per_file.is_some_and(|limit| self.matches >= limit) {
            self.left_early = true;
            return Ok(false);
        }
        self.matches += 1;
        match self.plan.output {
            GrepOutput::Files => return Ok(false),
            GrepOutput::Counts => return Ok(true),
            _ => {}
        }
        let Some(path) = self.path() else {
            return Ok(false);
        };
        self.found.clear();
        let column = if self.plan.invert { 0 } else { self.find_submatches(searcher, found)? };
        let bytes = line::without_ending(found.bytes());
        let mut line = self.line(path, found.line_number(), found.absolute_byte_offset(), bytes);
        line.column = column;
        // One more than the limit is looked for, so that the result can say whether there is more; no need for a third.
        let enough = self.plan.limit.is_some_and(|limit| self.matches > limit);
        Ok(self.outlet.put(Item::Match(line)).is_continue() && !enough)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        let at_limit = self.plan.limit_per_file.is_some_and(|limit| self.matches >= limit);
        let is_after = *context.kind() == SinkContextKind::After;
        if at_limit && !is_after {
            // Context of a match that is over the limit: the match that follows says so.
            return Ok(true);
        }
        let Some(path) = self.path() else {
            return Ok(false);
        };
        self.found.clear();
        let bytes = line::without_ending(context.bytes());
        let mut line = self.line(path, context.line_number(), context.absolute_byte_offset(), bytes);
        line.kind = LineKind::Context;
        let item = if is_after { Item::After(line) } else { Item::Before(line) };
        Ok(self.outlet.put(item).is_continue())
    }
}
