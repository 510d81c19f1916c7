//! Searching one file.

use std::io::{self, Read};
use std::time::Instant;

use grep_regex::RegexMatcher;
use grep_searcher::Searcher;
use vfs_core::{BinaryMode, Error, ErrorKind, Problem, Result, Skipped, VfsPath};

use crate::pace::{Halt, Pace, PacedReader};
use crate::plan::{HEAP_LIMIT, Plan};
use crate::sink::{FileSink, Item, Outlet};
use crate::tree::Opened;

/// How much of a file is looked at for NUL bytes; those beyond are text.
const BINARY_WINDOW: usize = 1 << 20;

/// How much of a reader is taken into memory at first, growing up to the window for NUL bytes.
const FIRST_READ: usize = 64 << 10;

const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// What a worker needs to search one file after another.
pub(crate) struct FileSearcher {
    matcher: RegexMatcher,
    searcher: Searcher,
    buffer: Vec<u8>,
    found: Vec<(usize, usize)>,
    pace: Pace,
}

/// What came of a file, beside its matches.
enum Outcome {
    Searched,
    Skipped(Skipped),
}

/// Why a file was not searched to its end.
enum Stop {
    Interrupted,
    Problem(Error),
}

impl FileSearcher {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            // A clone has its own cache, which threads need not wait for.
            matcher: plan.matcher.clone(),
            searcher: plan.searcher(),
            buffer: Vec::new(),
            found: Vec::new(),
            pace: Pace::new(),
        }
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
        let Self { matcher, searcher, buffer, found, pace } = self;
        let mut sink = FileSink {
            plan,
            matcher,
            make_path,
            path: None,
            outlet,
            mark: 0,
            matches: 0,
            left_early: false,
            failure: None,
            found: std::mem::take(found),
        };
        let mut run = Run { plan, searcher, buffer, pace, interrupted };
        let outcome = opened.map_err(Stop::Problem).and_then(|opened| run.content(opened, &mut sink));
        let outcome = match sink.failure.take() {
            Some(error) => Err(Stop::Problem(error)),
            None => outcome,
        };
        sink.finish();
        *found = std::mem::take(&mut sink.found);
        let (searched, skipped, problem) = match outcome {
            Ok(Outcome::Searched) => (true, Skipped::default(), None),
            Ok(Outcome::Skipped(skipped)) => (false, skipped, None),
            Err(Stop::Interrupted) => return,
            Err(Stop::Problem(error)) => (sink.matches > 0, Skipped::default(), Some(error)),
        };
        let left_early = sink.left_early;
        if let Some(error) = problem {
            let (path, error) = match make_path() {
                Ok(path) => (path.to_string(), error.with_path(&path)),
                Err(invalid) => (invalid.path().unwrap_or_default().to_owned(), invalid),
            };
            let _ = outlet.put(Item::Problem(Problem::new(path, &error)));
            // A line that was too long has left a large buffer behind.
            *searcher = plan.searcher();
        }
        let _ = outlet.put(Item::Done { searched, left_early, skipped });
    }
}

/// The search of one file.
struct Run<'a> {
    plan: &'a Plan,
    searcher: &'a mut Searcher,
    buffer: &'a mut Vec<u8>,
    pace: &'a mut Pace,
    interrupted: &'a dyn Fn() -> bool,
}

impl Run<'_> {
    fn content(&mut self, opened: Opened, sink: &mut FileSink<'_>) -> Result<Outcome, Stop> {
        let max = self.plan.max_file_size.unwrap_or(u64::MAX);
        let too_large = || Ok(Outcome::Skipped(skipped(|skipped| &mut skipped.too_large)));
        match opened {
            Opened::Bytes(bytes) if bytes.len() as u64 > max => too_large(),
            Opened::Bytes(bytes) => self.haystack(&bytes, None, sink),
            Opened::Reader { size, .. } if size > max => too_large(),
            Opened::Reader { mut reader, .. } => {
                let mut buffer = std::mem::take(self.buffer);
                let result = match fill(&mut buffer, &mut *reader, self.interrupted) {
                    Err(stop) => Err(stop),
                    Ok((filled, _)) if filled as u64 > max => too_large(),
                    Ok((filled, Ended::Yes)) => self.haystack(&buffer[..filled], None, sink),
                    Ok((filled, Ended::No)) => self.haystack(&buffer[..filled], Some(&mut *reader), sink),
                };
                *self.buffer = buffer;
                result
            }
        }
    }

    /// Searches `head` and what `rest` has after it.
    fn haystack(
        &mut self,
        head: &[u8],
        rest: Option<&mut (dyn Read + Send)>,
        sink: &mut FileSink<'_>,
    ) -> Result<Outcome, Stop> {
        let is_utf16 = head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff");
        let window = &head[..head.len().min(BINARY_WINDOW)];
        if self.plan.binary == BinaryMode::Skip && !is_utf16 && memchr::memchr(0, window).is_some() {
            return Ok(Outcome::Skipped(skipped(|skipped| &mut skipped.binary)));
        }
        let text = head.strip_prefix(UTF8_MARK).unwrap_or(head);
        sink.mark = (head.len() - text.len()) as u64;
        match rest {
            Some(rest) => self.reader(text.chain(rest), sink)?,
            None if self.is_in_one_go(text, sink.matcher) => self.slice(text, sink)?,
            None => self.reader(text, sink)?,
        }
        Ok(Outcome::Searched)
    }

    /// Whether `text` is searched where it is: it is short, or a multiline search would have to copy all of it.
    fn is_in_one_go(&self, text: &[u8], matcher: &RegexMatcher) -> bool {
        text.len() <= self.pace.bytes() || (text.len() <= HEAP_LIMIT && self.searcher.multi_line_with_matcher(matcher))
    }

    fn slice(&mut self, text: &[u8], sink: &mut FileSink<'_>) -> Result<(), Stop> {
        if (self.interrupted)() {
            return Err(Stop::Interrupted);
        }
        let start = Instant::now();
        let matcher = sink.matcher;
        let result = self.searcher.search_slice(matcher, text, &mut *sink);
        self.pace.took(text.len(), start.elapsed());
        result.map_err(|error| Stop::Problem(self.beyond_limit(matcher, error)))
    }

    fn reader(&mut self, text: impl Read, sink: &mut FileSink<'_>) -> Result<(), Stop> {
        let room = self.plan.max_file_size.unwrap_or(u64::MAX);
        let mut reader = PacedReader::new(text, self.pace, self.interrupted, room);
        let matcher = sink.matcher;
        let result = self.searcher.search_reader(matcher, &mut reader, &mut *sink);
        let halt = reader.into_halt();
        match (result, halt) {
            (Ok(()), _) => Ok(()),
            (Err(_), Some(Halt::Interrupted)) => Err(Stop::Interrupted),
            (Err(_), Some(Halt::TooLarge)) => {
                Err(Stop::Problem(Error::new(ErrorKind::TooLarge, "it grew over the size limit while it was searched")))
            }
            (Err(_), Some(Halt::Io(error))) => Err(Stop::Problem(read_error(error))),
            (Err(error), None) => Err(Stop::Problem(self.beyond_limit(matcher, error))),
        }
    }

    /// The one way in which a search fails by itself.
    fn beyond_limit(&self, matcher: &RegexMatcher, error: io::Error) -> Error {
        let what = if self.searcher.multi_line_with_matcher(matcher) {
            "it is over 64 MiB, too large for a multiline search"
        } else {
            "it has a line of over 64 MiB"
        };
        Error::new(ErrorKind::TooLarge, what).with_source(error)
    }
}

/// One file that was left out, counted in `field`.
fn skipped(field: impl Fn(&mut Skipped) -> &mut u64) -> Skipped {
    let mut skipped = Skipped::default();
    *field(&mut skipped) = 1;
    skipped
}

/// Whether all of a reader is in the buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Yes,
    No,
}

/// Reads the beginning of `reader`, up to the window for NUL bytes.
fn fill(buffer: &mut Vec<u8>, reader: &mut dyn Read, interrupted: &dyn Fn() -> bool) -> Result<(usize, Ended), Stop> {
    let mut filled = 0;
    loop {
        if interrupted() {
            return Err(Stop::Interrupted);
        }
        if filled == buffer.len() {
            if filled >= BINARY_WINDOW {
                return Ok((filled, Ended::No));
            }
            buffer.resize((filled * 2).clamp(FIRST_READ, BINARY_WINDOW), 0);
        }
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => return Ok((filled, Ended::Yes)),
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Stop::Problem(read_error(error))),
        }
    }
}

/// What a failed read means, in words that name no host path.
pub(crate) fn read_error(error: io::Error) -> Error {
    if let Some(inner) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        return inner.clone();
    }
    let (kind, message) = match error.kind() {
        io::ErrorKind::NotFound => (ErrorKind::NotFound, "it is gone"),
        io::ErrorKind::PermissionDenied => (ErrorKind::PermissionDenied, "permission denied"),
        io::ErrorKind::IsADirectory => (ErrorKind::IsADirectory, "it is a directory"),
        _ => (ErrorKind::Unavailable, "it could not be read"),
    };
    Error::new(kind, message).with_source(error)
}
