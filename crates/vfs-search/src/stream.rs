//! The consumer's end of a search.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;
use futures::future::BoxFuture;
use vfs_core::{Error, ErrorKind, GrepEvent, GrepOutput, GrepRequest, GrepSummary, OpContext, Result, Truncation};

use crate::alarm::Alarm;
use crate::engine::{Search, Taken};
use crate::pool::Pool;
use crate::sink::{self, Item};
use crate::slots::Tuning;
use crate::tree::Tree;

/// Events in order, as they are found. Dropping it ends the search.
pub(crate) struct GrepEvents<T: Tree> {
    search: Arc<Search<T>>,
    ready: VecDeque<Item>,
    summary: GrepSummary,
    /// Whether the file that is being reported is in the summary already.
    file_counted: bool,
    /// How many lines of context may still follow the last match.
    after_left: u32,
    stage: Stage,
    cancelled: Option<BoxFuture<'static, ()>>,
    alarm: Option<Alarm>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nobody has polled yet.
    New,
    Running,
    /// The end or an error was given out.
    Over,
}

impl<T: Tree> GrepEvents<T> {
    pub(crate) fn new(tree: Arc<T>, cx: OpContext, req: GrepRequest, pool: Pool, tuning: Tuning) -> Self {
        Self {
            search: Arc::new(Search::new(tree, cx, req, pool, tuning)),
            ready: VecDeque::new(),
            summary: GrepSummary::default(),
            file_counted: false,
            after_left: 0,
            stage: Stage::New,
            cancelled: None,
            alarm: None,
        }
    }

    /// Ends the search here; what came across so far.
    pub(crate) fn stop(mut self, why: Truncation) -> GrepSummary {
        self.summary.truncated = Some(why);
        std::mem::take(&mut self.summary)
    }

    fn next_event(&mut self, task: &mut Context<'_>) -> Poll<Result<GrepEvent>> {
        self.search.context().check()?;
        if self.stage == Stage::New {
            self.stage = Stage::Running;
            self.alarm = self.search.context().deadline().map(|deadline| Alarm::set(deadline, &self.search));
            self.search.begin()?;
        }
        loop {
            while let Some(item) = self.ready.pop_front() {
                if let Some(event) = self.event(item)? {
                    return Poll::Ready(Ok(event));
                }
            }
            match self.search.take(&mut self.ready, task.waker()) {
                Taken::Items => {}
                Taken::Finished => return Poll::Ready(Ok(self.end())),
                Taken::Pending => break,
            }
        }
        let token = self.search.context().cancel_token();
        let cancelled = self.cancelled.get_or_insert_with(|| {
            let token = token.clone();
            Box::pin(async move { token.cancelled().await })
        });
        let _ = cancelled.as_mut().poll(task);
        // Looked at once more, now that everything that can happen from here on wakes this task.
        self.search.context().check()?;
        Poll::Pending
    }

    /// What the consumer sees of an item, if anything.
    fn event(&mut self, item: Item) -> Result<Option<GrepEvent>> {
        let at_limit = self.search.request().limit.is_some_and(|limit| self.reported() >= limit);
        Ok(match item {
            Item::Match(line) if at_limit && self.after_left > 0 => {
                self.summary.truncated = Some(Truncation::Limit);
                Some(GrepEvent::Match(sink::as_context(line, &mut self.after_left)))
            }
            Item::Match(_) | Item::File(_) if at_limit => {
                self.summary.truncated = Some(Truncation::Limit);
                Some(self.end())
            }
            Item::Match(line) => {
                self.summary.matches += 1;
                self.after_left = self.search.request().after;
                self.count_file();
                Some(GrepEvent::Match(line))
            }
            Item::File(file) => {
                self.summary.matches += file.count.unwrap_or(1);
                self.count_file();
                Some(GrepEvent::File(file))
            }
            // At the limit these belong to a match that is over it.
            Item::Before(_) if at_limit => None,
            Item::After(_) if at_limit && self.after_left == 0 => None,
            Item::Before(line) => Some(GrepEvent::Match(line)),
            Item::After(line) => Some(GrepEvent::Match(sink::as_context(line, &mut self.after_left))),
            Item::Problem(problem) => Some(GrepEvent::Problem(problem)),
            Item::Done { searched, left_early, skipped } => {
                let counted = std::mem::take(&mut self.file_counted);
                self.summary.files_searched += u64::from(searched && !counted);
                self.summary.skipped += skipped;
                if left_early {
                    self.summary.truncated = Some(Truncation::Limit);
                }
                self.after_left = 0;
                // Another match was seen, and the lines after the last one that counts are all given out.
                (at_limit && self.summary.truncated == Some(Truncation::Limit)).then(|| self.end())
            }
            Item::Walked { skipped, too_deep } => {
                self.summary.skipped += skipped;
                if too_deep && self.summary.truncated.is_none() {
                    self.summary.truncated = Some(Truncation::Depth);
                }
                None
            }
            Item::Failed(error) => return Err(error),
        })
    }

    /// How much counts towards the limit.
    fn reported(&self) -> u64 {
        match self.search.request().output {
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
        let request = self.search.request();
        if request.limit == Some(0) || request.limit_per_file == Some(0) {
            self.summary.truncated = Some(Truncation::Limit);
        }
        self.stage = Stage::Over;
        GrepEvent::End(std::mem::take(&mut self.summary))
    }

    fn close(&mut self) {
        self.stage = Stage::Over;
        self.alarm = None;
        self.cancelled = None;
        self.search.close();
        self.ready.clear();
    }
}

impl<T: Tree> Stream for GrepEvents<T> {
    type Item = Result<GrepEvent>;

    fn poll_next(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let events = self.get_mut();
        if events.stage == Stage::Over {
            return Poll::Ready(None);
        }
        let Poll::Ready(event) = events.next_event(task) else {
            return Poll::Pending;
        };
        if event.is_err() || events.stage == Stage::Over {
            events.close();
        }
        Poll::Ready(Some(event.map_err(|error| in_context(error, events.search.context()))))
    }
}

/// A worker that was stopped cannot know why; the context does.
fn in_context(error: Error, cx: &OpContext) -> Error {
    if error.kind() == ErrorKind::Cancelled { cx.check().err().unwrap_or(error) } else { error }
}

impl<T: Tree> Drop for GrepEvents<T> {
    fn drop(&mut self) {
        self.close();
    }
}
