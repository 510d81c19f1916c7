//! The items of a search as the events that its consumer sees.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};
use vfs_core::tree::Tree;
use vfs_core::{GrepEvent, GrepMatch, GrepOutput, GrepRequest, GrepSummary, OpContext, Result, Truncation};

use crate::engine::ordered_queue::Tuning;
use crate::engine::pool::Pool;
use crate::engine::receiver::OrderedReceiver;
use crate::item::Item;
use crate::query::compiled::CompiledQuery;

/// Finds text in the files of `tree`, and gives it out as it is found.
///
/// # Behaviour
///
/// * Events come sorted by path (bytes), then line; the last is [`GrepEvent::End`], or an error.
/// * Work begins at the first poll, on the workers of [`Pool::global`], and never far ahead of the consumer. Dropping the
///   stream ends it; so do the context's token and deadline, without the workers' help.
/// * What visibility, binary detection, links and limits leave out is counted in the summary. A file that the request names
///   is searched whatever visibility, globs and types say, as ripgrep does.
/// * A file with a NUL in its first mebibyte is binary; a byte order mark of UTF-16 makes it text.
/// * A literal that holds a line break makes the search multiline and matches `\r\n` too. `$` matches before `\r\n`.
/// * `limit` and `limit_per_file` set `truncated` only where there is at least one match more. A limit of 0 finds nothing
///   and is truncated.
/// * A line of over 64 MiB, and a file of over 64 MiB in a multiline search, is a problem. So is less with an expression
///   that repeats a lot: 1 GiB divided by what its counted repetitions expand to, about 105 KiB for the largest.
/// * A file that has over 64 MiB more than it claims is a problem.
/// * Counted repetitions that expand to over 10,000 places (`(a{100}){101}`) are an invalid pattern.
///
/// # Errors
///
/// As its last item: [`InvalidArgument`](vfs_core::ErrorKind::InvalidArgument),
/// [`InvalidPattern`](vfs_core::ErrorKind::InvalidPattern), [`NotFound`](vfs_core::ErrorKind::NotFound), what listing the
/// directory itself gives, [`Cancelled`](vfs_core::ErrorKind::Cancelled), [`Timeout`](vfs_core::ErrorKind::Timeout),
/// [`Busy`](vfs_core::ErrorKind::Busy) where 4,096 turns of searches wait already, and
/// [`Internal`](vfs_core::ErrorKind::Internal) where a worker panicked.
pub fn grep_stream<T: Tree>(tree: Arc<T>, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
    grep_stream_on(Pool::global(), tree, cx, req)
}

/// As [`grep_stream`], on the workers of `pool`.
pub fn grep_stream_on<T: Tree>(
    pool: &Pool,
    tree: Arc<T>,
    cx: OpContext,
    req: GrepRequest,
) -> BoxStream<'static, Result<GrepEvent>> {
    GrepEventStream::new(tree, cx, req, pool.clone(), Tuning::for_workers(pool.workers())).boxed()
}

/// Events in order, as they are found. Dropping it ends the search.
pub(crate) struct GrepEventStream<T: Tree> {
    receiver: OrderedReceiver<T, CompiledQuery>,
    summary: GrepSummary,
    /// Whether the file that is being reported is in the summary already.
    file_counted: bool,
    /// Whether the end or an error was given out.
    is_over: bool,
}

impl<T: Tree> GrepEventStream<T> {
    pub(crate) fn new(tree: Arc<T>, cx: OpContext, req: GrepRequest, pool: Pool, tuning: Tuning) -> Self {
        Self {
            receiver: OrderedReceiver::new(tree, cx, req, pool, tuning),
            summary: GrepSummary::default(),
            file_counted: false,
            is_over: false,
        }
    }

    /// The next event, if it is another match of the same file, has come already, and is `wanted`: what costs least where
    /// there are many.
    #[inline]
    pub(crate) fn next_match_if(&mut self, wanted: impl FnOnce(&GrepMatch) -> bool) -> Option<GrepMatch> {
        if !self.file_counted || self.receiver.request().limit.is_some() {
            return None;
        }
        let line = self.receiver.next_match_if(wanted)?;
        self.summary.matches += 1;
        Some(line)
    }

    /// Ends the search here; what came across so far.
    pub(crate) fn stop(mut self, why: Truncation) -> GrepSummary {
        self.summary.truncated = Some(why);
        std::mem::take(&mut self.summary)
    }

    #[inline]
    fn next_event(&mut self, task: &mut Context<'_>) -> Poll<Result<GrepEvent>> {
        loop {
            match self.receiver.poll_item(task)? {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(Ok(self.end())),
                Poll::Ready(Some(item)) => {
                    if let Some(event) = self.event(item) {
                        return Poll::Ready(Ok(event));
                    }
                }
            }
        }
    }

    /// What the consumer sees of an item, if anything.
    #[inline]
    fn event(&mut self, item: Item) -> Option<GrepEvent> {
        let at_limit = self.receiver.request().limit.is_some_and(|limit| self.reported() >= limit);
        match item {
            Item::Match(_) | Item::File(_) if at_limit => {
                self.summary.truncated = Some(Truncation::Limit);
                Some(self.end())
            }
            Item::Match(line) => {
                self.summary.matches += 1;
                self.count_file();
                Some(GrepEvent::Match(line))
            }
            Item::File(file) => {
                self.summary.matches += file.count.unwrap_or(1);
                self.count_file();
                Some(GrepEvent::File(file))
            }
            // At the limit it belongs to a match that is over it.
            Item::Before(_) if at_limit => None,
            Item::Before(line) | Item::After(line) => Some(GrepEvent::Match(line)),
            Item::Problem(problem) => Some(GrepEvent::Problem(problem)),
            Item::Done { searched, left_early, skipped } => {
                let counted = std::mem::take(&mut self.file_counted);
                self.summary.files_searched += u64::from(searched && !counted);
                self.summary.skipped += skipped;
                if left_early {
                    self.summary.truncated = Some(Truncation::Limit);
                }
                // Another match was seen, and the lines after the last one that counts are all given out.
                (at_limit && self.summary.truncated == Some(Truncation::Limit)).then(|| self.end())
            }
            Item::Counts(counts) => {
                self.summary.files_searched += counts.searched;
                self.summary.skipped += counts.skipped;
                self.summary.truncated = self.summary.truncated.or(counts.truncated());
                None
            }
            // Errors end the feed, and entries are what a glob is after.
            Item::Failed(_) | Item::Entry(_) => None,
        }
    }

    /// How much counts towards the limit.
    fn reported(&self) -> u64 {
        match self.receiver.request().output {
            GrepOutput::Matches => self.summary.matches,
            _ => self.summary.files_matched,
        }
    }

    fn count_file(&mut self) {
        if !std::mem::replace(&mut self.file_counted, true) {
            self.summary.files_matched += 1;
            self.summary.files_searched += 1;
        }
    }

    fn end(&mut self) -> GrepEvent {
        let request = self.receiver.request();
        if request.limit == Some(0) || request.limit_per_file == Some(0) {
            self.summary.truncated = Some(Truncation::Limit);
        }
        self.is_over = true;
        GrepEvent::End(std::mem::take(&mut self.summary))
    }
}

impl<T: Tree> Stream for GrepEventStream<T> {
    type Item = Result<GrepEvent>;

    fn poll_next(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let events = self.get_mut();
        if events.is_over {
            return Poll::Ready(None);
        }
        let Poll::Ready(event) = events.next_event(task) else {
            return Poll::Pending;
        };
        if event.is_err() || events.is_over {
            events.is_over = true;
            events.receiver.close();
        }
        Poll::Ready(Some(event))
    }
}
