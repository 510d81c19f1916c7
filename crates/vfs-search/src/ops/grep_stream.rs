//! Event stream of a search: converts items to the events that the consumer sees.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};
use vfs_core::search::GrepSummary;
use vfs_core::tree::Tree;
use vfs_core::{GrepEvent, GrepMatch, GrepOutput, GrepRequest, OpContext, Result, TruncationReason};

use crate::engine::ordered_receiver::OrderedReceiver;
use crate::engine::ordered_task_queue::RunAheadLimits;
use crate::engine::pool::Pool;
use crate::query::compiled_grep_request::CompiledGrepRequest;
use crate::search_item::SearchItem;

/// Finds text in the files of `tree`, and returns the matches as they are found.
///
/// # Behaviour
///
/// * Matches are sorted by path (bytes), then line. The problems of listing a directory precede its entries. The last
///   event is [`GrepEvent::End`] or an error.
/// * The search starts at the first poll, on the workers of [`Pool::global`], and never runs far ahead of the
///   consumer. Dropping the stream ends it. The context's token and deadline end it too, even if the workers are
///   stuck, and release the workers even if nothing polls the stream.
/// * The summary counts the entries that visibility, binary detection, links and limits leave out. A file that the
///   request names is searched even if visibility, globs or types would exclude it, as in ripgrep.
/// * A file with a NUL in its first mebibyte is binary, unless a byte order mark of UTF-16 makes it text.
/// * A literal that contains a line break makes the search multiline and also matches `\r\n`. `$` matches before
///   `\r\n`.
/// * `limit` and `limit_per_file` set `truncated` only if there is at least one further match. With a limit of 0 the
///   result is empty and truncated.
/// * A line of over 64 MiB is a problem, and in a multiline search a file of over 64 MiB. The bound is lower for an
///   expression with many repetitions: 1 GiB divided by the number of places to which its counted repetitions expand,
///   about 105 KiB for the largest.
/// * A file whose content exceeds its stated size by more than 64 MiB is a problem.
/// * A pattern whose counted repetitions expand to over 10,000 places, such as `(a{100}){101}`, is invalid.
///
/// # Errors
///
/// The last item can be [`InvalidArgument`](vfs_core::ErrorKind::InvalidArgument),
/// [`InvalidPattern`](vfs_core::ErrorKind::InvalidPattern), [`NotFound`](vfs_core::ErrorKind::NotFound), an error of
/// listing the directory itself, [`Cancelled`](vfs_core::ErrorKind::Cancelled),
/// [`Timeout`](vfs_core::ErrorKind::Timeout), [`Busy`](vfs_core::ErrorKind::Busy) if 4,096 time slices of searches are
/// queued already, or [`Internal`](vfs_core::ErrorKind::Internal) if a worker panicked.
pub fn grep_stream(tree: Arc<dyn Tree>, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
    grep_stream_on(Pool::global(), tree, cx, req)
}

/// Does the same as [`grep_stream`] on the workers of `pool`.
pub fn grep_stream_on(
    pool: &Pool,
    tree: Arc<dyn Tree>,
    cx: OpContext,
    req: GrepRequest,
) -> BoxStream<'static, Result<GrepEvent>> {
    GrepEventStream::new(tree, cx, req, pool.clone(), RunAheadLimits::for_workers(pool.workers())).boxed()
}

/// Events in order, as they are found. Dropping the stream ends the search.
pub(crate) struct GrepEventStream {
    receiver: OrderedReceiver<CompiledGrepRequest>,
    summary: GrepSummary,
    /// Whether the summary already includes the file that is being reported.
    file_counted: bool,
    /// Whether the end or an error was returned.
    is_over: bool,
}

impl GrepEventStream {
    pub(crate) fn new(
        tree: Arc<dyn Tree>,
        cx: OpContext,
        req: GrepRequest,
        pool: Pool,
        limits: RunAheadLimits,
    ) -> Self {
        Self {
            receiver: OrderedReceiver::new(tree, cx, req, pool, limits),
            summary: GrepSummary::default(),
            file_counted: false,
            is_over: false,
        }
    }

    /// Returns the next event if it is another match of the same file, has arrived already, and `predicate` accepts
    /// it. This is the cheapest way to take many matches.
    #[inline]
    pub(crate) fn next_match_if(&mut self, predicate: impl FnOnce(&GrepMatch) -> bool) -> Option<GrepMatch> {
        if !self.file_counted || self.receiver.request().limit.is_some() {
            return None;
        }
        let line = self.receiver.next_match_if(predicate)?;
        self.summary.matches += 1;
        Some(line)
    }

    /// Ends the search, and returns the summary so far, marked as truncated by `truncation`.
    pub(crate) fn stop(mut self, truncation: TruncationReason) -> GrepSummary {
        self.summary.truncated = Some(truncation);
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

    /// Returns the event that the consumer sees for an item, if any.
    #[inline]
    fn event(&mut self, item: SearchItem) -> Option<GrepEvent> {
        let at_limit = self.receiver.request().limit.is_some_and(|limit| self.reported() >= limit);
        match item {
            SearchItem::Match(_) | SearchItem::File(_) if at_limit => {
                self.summary.truncated = Some(TruncationReason::Limit);
                Some(self.end())
            }
            SearchItem::Match(line) => {
                self.summary.matches += 1;
                self.count_file();
                Some(GrepEvent::Match(line))
            }
            SearchItem::File(file) => {
                self.summary.matches += file.count.unwrap_or(1);
                self.count_file();
                Some(GrepEvent::File(file))
            }
            // At the limit, this context belongs to a match beyond it.
            SearchItem::Before(_) if at_limit => None,
            SearchItem::Before(line) | SearchItem::After(line) => Some(GrepEvent::Match(line)),
            SearchItem::Problem(problem) => Some(GrepEvent::Problem(problem)),
            SearchItem::Done { searched, left_early, skipped } => {
                let counted = std::mem::take(&mut self.file_counted);
                self.summary.files_searched += u64::from(searched && !counted);
                self.summary.skipped += skipped;
                if left_early {
                    self.summary.truncated = Some(TruncationReason::Limit);
                }
                // Another match was seen, and the context after the last match within the limit is complete.
                (at_limit && self.summary.truncated == Some(TruncationReason::Limit)).then(|| self.end())
            }
            SearchItem::Counts(counts) => {
                self.summary.files_searched += counts.searched;
                self.summary.skipped += counts.skipped;
                self.summary.truncated = self.summary.truncated.or(counts.truncated());
                None
            }
            // Errors end the receiver, and entries occur only in globs and listings.
            SearchItem::Failed(_) | SearchItem::Entry(_) => None,
        }
    }

    /// Returns the number that counts towards the limit.
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
            self.summary.truncated = Some(TruncationReason::Limit);
        }
        self.is_over = true;
        GrepEvent::End(std::mem::take(&mut self.summary))
    }
}

impl Stream for GrepEventStream {
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
