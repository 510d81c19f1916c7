//! What one file's matches become.

use std::io;

use grep_matcher::{Match, Matcher as _};
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkError as _, SinkMatch};
use vfs_core::{Error, FileCount, GrepMatch, GrepOutput, LineKind, Result, VfsPath};

use crate::item::{Item, Outlet};
use crate::query::compiled::Plan;
use crate::searcher::cancellable_matcher::Watched;
use crate::searcher::line;
use crate::searcher::line_arena::Texts;
use crate::searcher::multiline_block::Block;
use crate::searcher::submatches::{MOST_PLACES, Places, allowance};

/// Turns the matches of one file into items.
pub(crate) struct FileSink<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) matcher: &'a Watched<'a>,
    /// Makes the file's path, once, where there is a match.
    pub(crate) make_path: &'a dyn Fn() -> Result<VfsPath>,
    pub(crate) path: Option<VfsPath>,
    pub(crate) outlet: &'a mut dyn Outlet,
    /// Bytes of a byte order mark that were taken off the front.
    pub(crate) mark: u64,
    pub(crate) matches: u64,
    pub(crate) left_early: bool,
    pub(crate) failure: Option<Error>,
    pub(crate) scratch: &'a mut Scratch,
}

/// What one file after another is reported with.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Where in the line that is reported the pattern is.
    found: Vec<(usize, usize)>,
    texts: Texts,
}

impl<'a> FileSink<'a> {
    /// For a file of which nothing is found yet.
    pub(crate) fn new(
        plan: &'a Plan,
        matcher: &'a Watched<'a>,
        make_path: &'a dyn Fn() -> Result<VfsPath>,
        outlet: &'a mut dyn Outlet,
        scratch: &'a mut Scratch,
    ) -> Self {
        Self {
            plan,
            matcher,
            make_path,
            path: None,
            outlet,
            mark: 0,
            matches: 0,
            left_early: false,
            failure: None,
            scratch,
        }
    }
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

    fn line(&mut self, path: VfsPath, lines: &Lines<'_>) -> GrepMatch {
        let bytes = line::without_ending(lines.bytes);
        let Scratch { found, texts } = &mut *self.scratch;
        found.retain(|(start, _)| *start <= bytes.len());
        let text = line::text_of(bytes, self.plan.max_line_bytes, found, texts);
        let mut line = GrepMatch::new(path, lines.number.unwrap_or_default(), text.text);
        line.submatches = text.submatches;
        line.cut = text.cut;
        line.byte_offset = if lines.offset == 0 { 0 } else { lines.offset + self.mark };
        line
    }

    fn is_at_limit(&self) -> bool {
        self.plan.limit_per_file.is_some_and(|limit| self.matches >= limit)
    }

    /// Reports a match, whose ranges are in `found`; whether the search goes on.
    fn report(&mut self, lines: &Lines<'_>, column: u64) -> bool {
        if self.is_at_limit() {
            // Context of the last match ends here, too: this line is no context, as it matches.
            self.left_early = true;
            return false;
        }
        self.matches += 1;
        match self.plan.output {
            GrepOutput::Files => return false,
            GrepOutput::Counts => return true,
            _ => {}
        }
        let Some(path) = self.path() else {
            return false;
        };
        let mut line = self.line(path, lines);
        line.column = column;
        // One more than the limit is looked for, so that the result can say whether there is more.
        self.outlet.put(Item::Match(line)).is_continue() && self.plan.limit.is_none_or(|limit| self.matches <= limit)
    }

    /// Whether lines are counted.
    pub(crate) fn numbers_lines(&self) -> bool {
        self.plan.output == GrepOutput::Matches
    }

    /// Reports a line with the places of what was found in it, as far as they are told; whether the search goes on.
    pub(crate) fn report_found(&mut self, line: &Lines<'_>, places: impl Iterator<Item = (usize, usize)>) -> bool {
        let text = line::without_ending(line.bytes).len();
        let reach = self.plan.max_line_bytes.min(text);
        let mut column = 0;
        self.scratch.found.clear();
        // Nothing is told of where in a line it is but with the line.
        let told = if self.numbers_lines() { MOST_PLACES } else { 0 };
        for (start, end) in places.take(told) {
            if column == 0 {
                column = start as u64 + 1;
            }
            if start > reach {
                break;
            }
            self.scratch.found.push((start, end.min(text)));
        }
        self.report(line, column)
    }

    /// Finds the pattern again in a matching line; the result is the column.
    ///
    /// The line is looked at alone, as it was when it was found.
    fn find_submatches(&mut self, line: &[u8]) -> io::Result<u64> {
        let text = line::without_ending(line).len();
        let reach = self.plan.max_line_bytes.min(text);
        let watched = self.matcher;
        let mut column = 0;
        let allowed = allowance(line.len(), self.plan.expansion);
        let mut places = Places::new(&mut self.scratch.found, MOST_PLACES, reach, allowed);
        let mut take = |submatch: Match| {
            if column == 0 {
                column = submatch.start() as u64 + 1;
            }
            let again = watched.again(line, submatch);
            places.take(submatch.start(), submatch.end().min(text), again) && watched.goes_on(again)
        };
        let matcher = watched.unwatched();
        let result = match line.strip_suffix(b"\n") {
            Some(line) => matcher.find_iter(line, &mut take),
            None => matcher.find_iter_in_last_line(line, &mut take),
        };
        result.map_err(io::Error::error_message)?;
        Ok(column)
    }

    /// Reports the matches of a multiline search that lie in a block of adjacent lines; whether the search goes on.
    fn report_block(&mut self, found: &SinkMatch<'_>) -> io::Result<bool> {
        let mut rest =
            Lines { bytes: found.bytes(), number: found.line_number(), offset: found.absolute_byte_offset() };
        if self.plan.output == GrepOutput::Files {
            return Ok(self.report(&rest, 0));
        }
        let allowed = allowance(rest.bytes.len(), self.plan.expansion);
        let most = if self.numbers_lines() { MOST_PLACES } else { 0 };
        let mut block = Block::new(self.matcher, found.buffer(), found.bytes_range_in_buffer());
        loop {
            let places = Places::new(&mut self.scratch.found, most, self.plan.max_line_bytes, allowed);
            let Some(next) = block.next(places).map_err(io::Error::error_message)? else { return Ok(true) };
            if self.matcher.is_stopped() || !self.report(&rest.first(next.length), next.column) {
                return Ok(false);
            }
            if next.length == rest.bytes.len() {
                return Ok(true);
            }
            rest = rest.skip(next.length);
        }
    }
}

/// Whole lines of a file.
#[derive(Clone, Copy)]
pub(crate) struct Lines<'a> {
    pub(crate) bytes: &'a [u8],
    /// The number of the first one, where lines are counted.
    pub(crate) number: Option<u64>,
    pub(crate) offset: u64,
}

impl Lines<'_> {
    /// What follows the first `length` bytes, which are whole lines.
    fn skip(self, length: usize) -> Self {
        let (skipped, bytes) = self.bytes.split_at(length);
        let number = self.number.map(|number| number + memchr::memchr_iter(b'\n', skipped).count() as u64);
        Self { bytes, number, offset: self.offset + length as u64 }
    }

    /// The first `length` bytes, which are whole lines.
    fn first(self, length: usize) -> Self {
        Self { bytes: &self.bytes[..length], ..self }
    }
}

impl Sink for FileSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if self.matcher.is_stopped() {
            return Ok(false);
        }
        if !self.plan.invert && self.plan.multiline {
            return self.report_block(found);
        }
        self.scratch.found.clear();
        let shows_column = self.plan.output == GrepOutput::Matches && !self.plan.invert;
        let column = if shows_column { self.find_submatches(found.bytes())? } else { 0 };
        if self.matcher.is_stopped() {
            return Ok(false);
        }
        let lines = Lines { bytes: found.bytes(), number: found.line_number(), offset: found.absolute_byte_offset() };
        Ok(self.report(&lines, column))
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        if self.matcher.is_stopped() {
            return Ok(false);
        }
        let is_after = *context.kind() == SinkContextKind::After;
        if self.is_at_limit() && !is_after {
            // Context of a match that is over the limit: the match that follows says so.
            return Ok(true);
        }
        let Some(path) = self.path() else {
            return Ok(false);
        };
        self.scratch.found.clear();
        let lines =
            Lines { bytes: context.bytes(), number: context.line_number(), offset: context.absolute_byte_offset() };
        let mut line = self.line(path, &lines);
        line.kind = LineKind::Context;
        let item = if is_after { Item::After(line) } else { Item::Before(line) };
        Ok(self.outlet.put(item).is_continue())
    }
}
