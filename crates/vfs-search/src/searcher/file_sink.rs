//! Sink of one file's matches, which converts them to items.

use std::io;

use grep_matcher::{Match, Matcher as _};
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkError as _, SinkMatch};
use vfs_core::search::{LineKind, MatchedFile};
use vfs_core::{Error, GrepMatch, GrepOutput, Result, VfsPath};

use crate::query::compiled_grep_request::CompiledGrepRequest;
use crate::search_item::{ItemSink, SearchItem};
use crate::searcher::cancellable_matcher::CancellableMatcher;
use crate::searcher::line_arena::LineArena;
use crate::searcher::multiline_block::MultilineBlock;
use crate::searcher::rendered_line;
use crate::searcher::submatch_collector::{MAX_SUBMATCHES, SubmatchCollector, rescan_allowance};

/// Converts the matches of one file to items.
pub(crate) struct FileSink<'a> {
    pub(crate) query: &'a CompiledGrepRequest,
    pub(crate) matcher: &'a CancellableMatcher<'a>,
    /// Builds the file's path, once, when there is a match.
    pub(crate) make_path: &'a dyn Fn() -> Result<VfsPath>,
    pub(crate) path: Option<VfsPath>,
    pub(crate) item_sink: &'a mut dyn ItemSink,
    /// Length in bytes of the byte order mark that was removed from the start.
    pub(crate) mark: u64,
    pub(crate) matches: u64,
    pub(crate) left_early: bool,
    pub(crate) failure: Option<Error>,
    pub(crate) buffers: &'a mut SinkBuffers,
}

/// Buffers that are reused from file to file.
#[derive(Debug, Default)]
pub(crate) struct SinkBuffers {
    /// Ranges of the pattern in the reported line.
    found: Vec<(usize, usize)>,
    arena: LineArena,
}

impl<'a> FileSink<'a> {
    /// Creates the sink of a file without matches so far.
    pub(crate) fn new(
        query: &'a CompiledGrepRequest,
        matcher: &'a CancellableMatcher<'a>,
        make_path: &'a dyn Fn() -> Result<VfsPath>,
        item_sink: &'a mut dyn ItemSink,
        buffers: &'a mut SinkBuffers,
    ) -> Self {
        Self {
            query,
            matcher,
            make_path,
            path: None,
            item_sink,
            mark: 0,
            matches: 0,
            left_early: false,
            failure: None,
            buffers,
        }
    }
}

impl FileSink<'_> {
    /// Reports the file as one item, if the output of the request is files or counts.
    pub(crate) fn finish(&mut self) {
        let count = match self.query.output {
            GrepOutput::Files => None,
            GrepOutput::Counts => Some(self.matches),
            _ => return,
        };
        if self.matches > 0
            && let Some(path) = self.path()
        {
            // If the consumer has dropped the search, the caller notices that before the next file.
            let _ = self.item_sink.put(SearchItem::File(MatchedFile::new(path, count)));
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

    fn line(&mut self, path: VfsPath, lines: &FileLines<'_>) -> GrepMatch {
        let bytes = rendered_line::strip_line_ending(lines.bytes);
        let SinkBuffers { found, arena } = &mut *self.buffers;
        found.retain(|(start, _)| *start <= bytes.len());
        let text = rendered_line::render_line(bytes, self.query.max_line_bytes, found, arena);
        let mut line = GrepMatch::new(path, lines.number.unwrap_or_default(), text.text);
        line.submatches = text.submatches;
        line.cut = text.cut;
        line.byte_offset = if lines.offset == 0 { 0 } else { lines.offset + self.mark };
        line
    }

    fn is_at_limit(&self) -> bool {
        self.query.limit_per_file.is_some_and(|limit| self.matches >= limit)
    }

    /// Reports a match, whose ranges are in `found`. Returns whether the search continues.
    fn report(&mut self, lines: &FileLines<'_>, column: u64) -> bool {
        if self.is_at_limit() {
            // The context of the last match ends here, too: this line matches, so it is no context.
            self.left_early = true;
            return false;
        }
        self.matches += 1;
        match self.query.output {
            GrepOutput::Files => return false,
            GrepOutput::Counts => return true,
            _ => {}
        }
        let Some(path) = self.path() else {
            return false;
        };
        let mut line = self.line(path, lines);
        line.column = column;
        // Continue to one match beyond the limit, so that the result can say whether there are more.
        self.item_sink.put(SearchItem::Match(line)).is_continue()
            && self.query.limit.is_none_or(|limit| self.matches <= limit)
    }

    /// Returns whether line numbers are needed.
    pub(crate) fn numbers_lines(&self) -> bool {
        self.query.output == GrepOutput::Matches
    }

    /// Reports a line with the ranges `ranges`, up to the limit on submatches. Returns whether the search continues.
    pub(crate) fn report_line(&mut self, line: &FileLines<'_>, ranges: impl Iterator<Item = (usize, usize)>) -> bool {
        let text = rendered_line::strip_line_ending(line.bytes).len();
        let reach = self.query.max_line_bytes.min(text);
        let mut column = 0;
        self.buffers.found.clear();
        // Ranges are reported only together with the line.
        let max_ranges = if self.numbers_lines() { MAX_SUBMATCHES } else { 0 };
        for (start, end) in ranges.take(max_ranges) {
            if column == 0 {
                column = start as u64 + 1;
            }
            if start > reach {
                break;
            }
            self.buffers.found.push((start, end.min(text)));
        }
        self.report(line, column)
    }

    /// Finds the submatches in a matching line, and returns the column of the first.
    ///
    /// The line is matched by itself, without its surroundings, as in the search that found it.
    fn find_submatches(&mut self, line: &[u8]) -> io::Result<u64> {
        let text = rendered_line::strip_line_ending(line).len();
        let reach = self.query.max_line_bytes.min(text);
        let cancellable = self.matcher;
        let mut column = 0;
        let allowance = rescan_allowance(line.len(), self.query.expansion);
        let mut ranges = SubmatchCollector::new(&mut self.buffers.found, MAX_SUBMATCHES, reach, allowance);
        let mut take = |submatch: Match| {
            if column == 0 {
                column = submatch.start() as u64 + 1;
            }
            let rescan_cost = cancellable.rescan_cost(line, submatch);
            ranges.take(submatch.start(), submatch.end().min(text), rescan_cost)
                && cancellable.record_match(rescan_cost)
        };
        let matcher = cancellable.inner();
        let result = match line.strip_suffix(b"\n") {
            Some(line) => matcher.find_iter(line, &mut take),
            None => matcher.find_iter_in_last_line(line, &mut take),
        };
        result.map_err(io::Error::error_message)?;
        Ok(column)
    }

    /// Reports the matches of a multiline search in a block of adjacent lines. Returns whether the search continues.
    fn report_block(&mut self, found: &SinkMatch<'_>) -> io::Result<bool> {
        let mut rest =
            FileLines { bytes: found.bytes(), number: found.line_number(), offset: found.absolute_byte_offset() };
        if self.query.output == GrepOutput::Files {
            return Ok(self.report(&rest, 0));
        }
        let allowance = rescan_allowance(rest.bytes.len(), self.query.expansion);
        let max_count = if self.numbers_lines() { MAX_SUBMATCHES } else { 0 };
        let mut block = MultilineBlock::new(self.matcher, found.buffer(), found.bytes_range_in_buffer());
        loop {
            let ranges =
                SubmatchCollector::new(&mut self.buffers.found, max_count, self.query.max_line_bytes, allowance);
            let Some(next) = block.next(ranges).map_err(io::Error::error_message)? else { return Ok(true) };
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
pub(crate) struct FileLines<'a> {
    pub(crate) bytes: &'a [u8],
    /// The number of the first line, if lines are counted.
    pub(crate) number: Option<u64>,
    pub(crate) offset: u64,
}

impl FileLines<'_> {
    /// Returns the lines after the first `length` bytes, which are whole lines.
    fn skip(self, length: usize) -> Self {
        let (skipped, bytes) = self.bytes.split_at(length);
        let number = self.number.map(|number| number + memchr::memchr_iter(b'\n', skipped).count() as u64);
        Self { bytes, number, offset: self.offset + length as u64 }
    }

    /// Returns the first `length` bytes, which are whole lines.
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
        if !self.query.invert && self.query.multiline {
            return self.report_block(found);
        }
        self.buffers.found.clear();
        let shows_column = self.query.output == GrepOutput::Matches && !self.query.invert;
        let column = if shows_column { self.find_submatches(found.bytes())? } else { 0 };
        if self.matcher.is_stopped() {
            return Ok(false);
        }
        let lines =
            FileLines { bytes: found.bytes(), number: found.line_number(), offset: found.absolute_byte_offset() };
        Ok(self.report(&lines, column))
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        if self.matcher.is_stopped() {
            return Ok(false);
        }
        let is_after = *context.kind() == SinkContextKind::After;
        if self.is_at_limit() && !is_after {
            // This context belongs to a match beyond the limit. That match follows, and ends the search.
            return Ok(true);
        }
        let Some(path) = self.path() else {
            return Ok(false);
        };
        self.buffers.found.clear();
        let lines =
            FileLines { bytes: context.bytes(), number: context.line_number(), offset: context.absolute_byte_offset() };
        let mut line = self.line(path, &lines);
        line.kind = LineKind::Context;
        let item = if is_after { SearchItem::After(line) } else { SearchItem::Before(line) };
        Ok(self.item_sink.put(item).is_continue())
    }
}
