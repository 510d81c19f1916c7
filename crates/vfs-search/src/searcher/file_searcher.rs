//! Search of one file, by `LiteralSearch` or ripgrep's `Searcher`, in bounded memory and time.

#[cfg(test)]
mod tests;

use std::io::{self, Read};
use std::time::Instant;

use grep_matcher::Matcher as _;
use grep_searcher::Searcher;
use memchr::memmem::Finder;
use memchr::memrchr;
use vfs_core::search::{BinaryMode, Skipped};
use vfs_core::tree::{SearchableContent, SketchCallback};
use vfs_core::{Error, ErrorKind, Problem, Result, VfsPath};

use crate::query::compiled_grep_request::CompiledGrepRequest;
use crate::query::pattern_matcher::PatternMatcher;
use crate::read_error::read_error;
use crate::search_item::{ItemSink, SearchItem};
use crate::searcher::aligned_buffer::AlignedBuffer;
use crate::searcher::cancellable_matcher::CancellableMatcher;
use crate::searcher::cancellable_reader::{AdaptiveChunkSize, CancellableReader, ReaderStopReason};
use crate::searcher::encoding::{UTF8_MARK, is_binary, is_transcoded};
use crate::searcher::file_outcome::{FileOutcome, skipped};
use crate::searcher::file_sink::{FileSink, SinkBuffers};
use crate::searcher::line_chunks::{FileSearchAbort, LineChunks, ReachedEnd, read_head};
use crate::searcher::literal_search::LiteralSearch;
use crate::searcher::prefilter::{Prefilter, SketchRecorder};
use crate::walk::dir_entries::WalkEntry;

/// Maximum number of bytes that a file may have beyond its stated size. A file whose stated size is 0 may be endless.
const MAX_EXCESS_BYTES: u64 = 64 << 20;

/// Minimum size in bytes of a text whose search time is measured.
const MIN_TIMED_BYTES: usize = 16 << 10;

/// Number of bytes that are searched for a literal between two checks for an interruption.
const LITERAL_CHUNK_BYTES: usize = 256 << 10;

/// The state with which a worker searches one file after another.
pub(crate) struct FileSearcher {
    matcher: PatternMatcher,
    searcher: Searcher,
    buffer: AlignedBuffer,
    /// The chunks of a long file after its head.
    chunks: AlignedBuffer,
    buffers: SinkBuffers,
    chunk_size: AdaptiveChunkSize,
    prefilter: Prefilter,
    recorder: SketchRecorder,
}

impl FileSearcher {
    pub(crate) fn new(query: &CompiledGrepRequest) -> Self {
        Self {
            // A clone has its own cache, so that threads do not contend for one.
            matcher: query.matcher.clone(),
            searcher: query.searcher(),
            buffer: AlignedBuffer::default(),
            chunks: AlignedBuffer::default(),
            buffers: SinkBuffers::default(),
            chunk_size: AdaptiveChunkSize::new(),
            prefilter: Prefilter::default(),
            recorder: SketchRecorder::default(),
        }
    }

    /// Searches the file `entry` like [`search`](Self::search), unless a cached sketch shows that nothing matches.
    pub(crate) fn visit(
        &mut self,
        query: &CompiledGrepRequest,
        entry: WalkEntry<'_>,
        item_sink: &mut dyn ItemSink,
        is_interrupted: &dyn Fn() -> bool,
    ) {
        if let Some(outcome) = self.prefilter.lookup(query, entry) {
            // If the consumer has dropped the search, the caller notices that before the next file.
            let _ = item_sink.put(outcome.into_item(false));
            return;
        }
        let opened = entry.dir().open_file(entry.name(), entry.kind());
        self.search(query, opened, &|| entry.path(), item_sink, is_interrupted);
    }

    /// Searches a file and puts its items into `item_sink`. The last one is [`SearchItem::Done`], unless the search was
    /// interrupted.
    pub(crate) fn search(
        &mut self,
        query: &CompiledGrepRequest,
        opened: Result<SearchableContent>,
        make_path: &dyn Fn() -> Result<VfsPath>,
        item_sink: &mut dyn ItemSink,
        is_interrupted: &dyn Fn() -> bool,
    ) {
        let Self { matcher, searcher, buffer, chunks, buffers, chunk_size, recorder, .. } = self;
        let matching = CancellableMatcher::new(query, matcher, is_interrupted);
        let mut sink = FileSink::new(query, &matching, make_path, item_sink, buffers);
        let mut search = FileSearch { query, searcher, buffer, chunks, chunk_size, recorder, is_interrupted };
        let outcome =
            opened.map_err(FileSearchAbort::Problem).and_then(|opened| search.search_content(opened, &mut sink));
        if matching.is_stopped() {
            return;
        }
        let outcome = match sink.failure.take() {
            Some(error) => Err(FileSearchAbort::Problem(error)),
            None => outcome,
        };
        sink.finish();
        let (matches, left_early) = (sink.matches, sink.left_early);
        let (outcome, problem) = match outcome {
            Ok(outcome) => (outcome, None),
            Err(FileSearchAbort::Interrupted) => return,
            Err(FileSearchAbort::Problem(error)) if matches > 0 => (FileOutcome::Searched, Some(error)),
            Err(FileSearchAbort::Problem(error)) => (FileOutcome::Skipped(Skipped::default()), Some(error)),
        };
        if let Some(error) = problem {
            let (path, error) = match make_path() {
                Ok(path) => (path.to_string(), error.with_path(&path)),
                Err(invalid) => (invalid.path().unwrap_or_default().to_owned(), invalid),
            };
            let _ = item_sink.put(SearchItem::Problem(Problem::new(path, &error)));
            // If a line was too long, its buffer is large; release it.
            *searcher = query.searcher();
            *chunks = AlignedBuffer::default();
        }
        let _ = item_sink.put(outcome.into_item(left_early));
    }
}

/// Whether more text follows the part that is searched.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextContinuation {
    None,
    More,
}

/// The search of one file.
struct FileSearch<'a> {
    query: &'a CompiledGrepRequest,
    searcher: &'a mut Searcher,
    buffer: &'a mut AlignedBuffer,
    chunks: &'a mut AlignedBuffer,
    chunk_size: &'a mut AdaptiveChunkSize,
    recorder: &'a mut SketchRecorder,
    is_interrupted: &'a dyn Fn() -> bool,
}

impl FileSearch<'_> {
    fn search_content(
        &mut self,
        opened: SearchableContent,
        sink: &mut FileSink<'_>,
    ) -> Result<FileOutcome, FileSearchAbort> {
        let max = self.query.max_file_size.unwrap_or(u64::MAX);
        let too_large = || Ok(FileOutcome::Skipped(skipped(|skipped| &mut skipped.too_large)));
        match opened {
            SearchableContent::Bytes { bytes, .. } if bytes.len() as u64 > max => too_large(),
            SearchableContent::Bytes { bytes, is_binary, learn } => {
                let size = bytes.len() as u64;
                let learn = self.recorder.accept(self.query, learn, size);
                let outcome = self.search_haystack(&bytes, is_binary, None, size, sink)?;
                self.learn(learn, &bytes, &outcome);
                Ok(outcome)
            }
            SearchableContent::Reader { size, .. } if size > max => too_large(),
            SearchableContent::Reader { reader, size, learn } => {
                let learn = self.recorder.accept(self.query, learn, size);
                let mut buffer = std::mem::take(self.buffer);
                let result = self.read_and_search(&mut buffer, reader, size, learn, sink);
                *self.buffer = buffer;
                result
            }
        }
    }

    /// Searches the contents of `reader`, whose stated size is `size` bytes.
    fn read_and_search(
        &mut self,
        buffer: &mut AlignedBuffer,
        mut reader: Box<dyn Read + Send>,
        size: u64,
        learn: Option<SketchCallback>,
        sink: &mut FileSink<'_>,
    ) -> Result<FileOutcome, FileSearchAbort> {
        let max = self.query.max_file_size.unwrap_or(u64::MAX);
        let room = size.saturating_add(MAX_EXCESS_BYTES).min(max);
        let (filled, ended) = read_head(buffer, &mut *reader, size, self.is_interrupted)?;
        let head = &buffer.bytes()[..filled];
        match (ended, learn) {
            _ if filled as u64 > max => Ok(FileOutcome::Skipped(skipped(|skipped| &mut skipped.too_large))),
            (ReachedEnd::Yes, learn) => {
                let outcome = self.search_haystack(head, None, None, room, sink)?;
                self.learn(learn, head, &outcome);
                Ok(outcome)
            }
            (ReachedEnd::No, Some(learn)) if !is_transcoded(head) => {
                let mut recorder = std::mem::take(self.recorder);
                let mut sketching_reader = recorder.wrap_reader(size, head, reader);
                let outcome = self.search_haystack(head, None, Some(&mut sketching_reader), room, sink);
                if let Ok(outcome) = &outcome {
                    sketching_reader.finish_into(learn, size, outcome);
                }
                *self.recorder = recorder;
                outcome
            }
            (ReachedEnd::No, _) => self.search_haystack(head, None, Some(&mut *reader), room, sink),
        }
    }

    fn learn(&mut self, learn: Option<SketchCallback>, content: &[u8], outcome: &FileOutcome) {
        if let Some(learn) = learn {
            self.recorder.learn_whole(learn, content, outcome, self.is_interrupted);
        }
    }

    /// Searches `head` followed by `rest`, at most `room` bytes in all. `detected_binary` is the result of an earlier
    /// binary detection, if there was one.
    fn search_haystack(
        &mut self,
        head: &[u8],
        detected_binary: Option<bool>,
        rest: Option<&mut (dyn Read + Send)>,
        room: u64,
        sink: &mut FileSink<'_>,
    ) -> Result<FileOutcome, FileSearchAbort> {
        if self.query.binary == BinaryMode::Skip && detected_binary.unwrap_or_else(|| is_binary(head)) {
            return Ok(FileOutcome::binary());
        }
        let text = head.strip_prefix(UTF8_MARK).unwrap_or(head);
        sink.mark = (head.len() - text.len()) as u64;
        let matcher = sink.matcher.inner();
        match (rest, matcher.finder()) {
            (Some(rest), Some(finder)) if self.can_use_literal_search(text) => {
                self.search_literal_in_chunks(finder, text, rest, room, sink)?;
            }
            (Some(rest), _) => self.search_reader(text, rest, room, sink)?,
            (None, Some(finder)) if self.can_use_literal_search(text) => {
                self.search_literal(&mut LiteralSearch::new(finder), text, TextContinuation::None, sink)?;
            }
            (None, _) if self.cannot_match(text, matcher)? => {}
            (None, _) if self.fits_one_call(text) => self.search_slice(text, sink)?,
            (None, _) => self.search_reader(text, io::empty(), room, sink)?,
        }
        Ok(FileOutcome::Searched)
    }

    /// Returns whether a literal can be searched in `text` without ripgrep's `Searcher`: the text needs no transcoding,
    /// and the request selects only the lines with the literal.
    fn can_use_literal_search(&self, text: &[u8]) -> bool {
        // The `Searcher` would remove a second byte order mark, too.
        let needs_no_transcoding = !is_transcoded(text) && !text.starts_with(UTF8_MARK);
        self.query.is_plain() && needs_no_transcoding && text.len() <= self.query.heap_limit
    }

    /// Searches whole lines for a literal. Returns whether the search continues.
    fn search_literal(
        &mut self,
        search: &mut LiteralSearch<'_>,
        lines: &[u8],
        following: TextContinuation,
        sink: &mut FileSink<'_>,
    ) -> Result<bool, FileSearchAbort> {
        let mut rest = lines;
        loop {
            if (self.is_interrupted)() {
                return Err(FileSearchAbort::Interrupted);
            }
            let (piece, after) = rest.split_at(length_of_lines(rest, LITERAL_CHUNK_BYTES));
            if !search.search(piece, sink) {
                return Ok(false);
            }
            if after.is_empty() && following == TextContinuation::None {
                return Ok(true);
            }
            search.advance_past(piece, sink);
            if after.is_empty() {
                return Ok(true);
            }
            rest = after;
        }
    }

    /// Searches `head` followed by `rest` for a literal.
    fn search_literal_in_chunks(
        &mut self,
        finder: &Finder<'_>,
        head: &[u8],
        rest: &mut (dyn Read + Send),
        room: u64,
        sink: &mut FileSink<'_>,
    ) -> Result<(), FileSearchAbort> {
        let mut search = LiteralSearch::new(finder);
        let (lines, start) = head.split_at(memrchr(b'\n', head).map_or(0, |end| end + 1));
        if !self.search_literal(&mut search, lines, TextContinuation::More, sink)? {
            return Ok(());
        }
        let left = room.saturating_sub(head.len() as u64);
        let mut reader = CancellableReader::new(rest, self.chunk_size, self.is_interrupted, left);
        let mut chunks = LineChunks::new(self.chunks, start, &mut reader, self.query.heap_limit);
        let result = loop {
            let lines = match chunks.next() {
                Ok(Some(lines)) => lines,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            if !search.search(lines, sink) {
                break Ok(());
            }
            search.advance_past(lines, sink);
        };
        let stop_reason = reader.into_stop_reason();
        self.finish_reading(result, stop_reason, room)
    }

    /// Returns whether `text` is searched in place: it is short, or a multiline search would have to copy all of it.
    fn fits_one_call(&self, text: &[u8]) -> bool {
        text.len() <= self.query.heap_limit && (self.query.multiline || text.len() <= self.chunk_size.bytes())
    }

    fn search_slice(&mut self, text: &[u8], sink: &mut FileSink<'_>) -> Result<(), FileSearchAbort> {
        if (self.is_interrupted)() {
            return Err(FileSearchAbort::Interrupted);
        }
        // Reading the clock costs too much for short texts.
        let start = (text.len() >= MIN_TIMED_BYTES).then(Instant::now);
        let matcher = sink.matcher;
        let result = self.searcher.search_slice(matcher, text, &mut *sink);
        if let Some(start) = start {
            self.chunk_size.record(text.len(), start.elapsed());
        }
        result.map_err(|error| FileSearchAbort::Problem(self.limit_error(error)))
    }

    /// Returns whether no line of `text` can match. This is so for most texts, which then need no searcher and no line
    /// count.
    ///
    /// A long text is checked only for a literal: with a costlier pattern, a text that matches after all would be
    /// searched twice.
    fn cannot_match(&self, text: &[u8], matcher: &PatternMatcher) -> Result<bool, FileSearchAbort> {
        let is_by_line = matcher.line_terminator().is_some() && !self.query.multiline;
        let is_cheap =
            text.len() < MIN_TIMED_BYTES || (matcher.finder().is_some() && text.len() <= self.query.heap_limit);
        if !is_by_line || is_transcoded(text) || !is_cheap || self.query.invert {
            return Ok(false);
        }
        let mut rest = text;
        while !rest.is_empty() {
            if (self.is_interrupted)() {
                return Err(FileSearchAbort::Interrupted);
            }
            let (piece, after) = rest.split_at(length_of_lines(rest, LITERAL_CHUNK_BYTES));
            if !matches!(matcher.find_candidate_line(piece), Ok(None)) {
                return Ok(false);
            }
            rest = after;
        }
        Ok(true)
    }

    fn search_reader(
        &mut self,
        head: &[u8],
        rest: impl Read,
        room: u64,
        sink: &mut FileSink<'_>,
    ) -> Result<(), FileSearchAbort> {
        // Lines are measured before transcoding: in UTF-16 a character takes up to twice as many bytes as in UTF-8.
        let max_bytes =
            if is_transcoded(head) { self.query.heap_limit.saturating_mul(2) } else { self.query.heap_limit };
        let line_limit = self.query.buffers_context().then_some(max_bytes);
        let mut reader = CancellableReader::new(head.chain(rest), self.chunk_size, self.is_interrupted, room)
            .with_line_limit(line_limit);
        let matcher = sink.matcher;
        let result = self.searcher.search_reader(matcher, &mut reader, &mut *sink);
        let stop_reason = reader.into_stop_reason();
        self.finish_reading(result, stop_reason, room)
    }

    /// Returns the outcome of reading to the end, which `stop_reason` may have prevented; at most `room` bytes were
    /// allowed.
    fn finish_reading(
        &self,
        result: io::Result<()>,
        stop_reason: Option<ReaderStopReason>,
        room: u64,
    ) -> Result<(), FileSearchAbort> {
        match (result, stop_reason) {
            (Ok(()), _) => Ok(()),
            (Err(_), Some(ReaderStopReason::Interrupted)) => Err(FileSearchAbort::Interrupted),
            (Err(_), Some(ReaderStopReason::TooLarge)) => {
                let message = if self.query.max_file_size == Some(room) {
                    "the file grew beyond the size limit while it was searched"
                } else {
                    "the file has over 64 MiB more than its claimed size; the rest was not searched"
                };
                Err(FileSearchAbort::Problem(Error::new(ErrorKind::TooLarge, message)))
            }
            (Err(_), Some(ReaderStopReason::LongLine)) => Err(FileSearchAbort::Problem(self.long_line_error())),
            (Err(_), Some(ReaderStopReason::Io(error))) => Err(FileSearchAbort::Problem(read_error(error))),
            (Err(error), None) => Err(FileSearchAbort::Problem(self.limit_error(error))),
        }
    }

    /// Returns the error for a text that exceeds the searcher's limit on memory, the only way in which the searcher
    /// fails by itself.
    fn limit_error(&self, error: io::Error) -> Error {
        let message = if self.query.multiline {
            let limit = self.query.heap_limit;
            format!("the file is over {limit} bytes, too large for a multiline search with this pattern")
        } else if self.query.buffers_context() {
            let limit = self.query.heap_limit.saturating_add(self.query.context_limit);
            format!("a line and its lines of context are over {limit} bytes; ask for fewer lines of context")
        } else {
            return self.long_line_error().with_source(error);
        };
        Error::new(ErrorKind::TooLarge, message).with_source(error)
    }

    fn long_line_error(&self) -> Error {
        let limit = self.query.heap_limit;
        Error::new(ErrorKind::TooLarge, format!("the file has a line of over {limit} bytes, too long for this pattern"))
    }
}

/// Returns the length of the fewest whole lines at the start of `text` that exceed `min_bytes`, or of all lines.
fn length_of_lines(text: &[u8], min_bytes: usize) -> usize {
    let after = text.get(min_bytes..).unwrap_or_default();
    memchr::memchr(b'\n', after).map_or(text.len(), |end| min_bytes + end + 1)
}
