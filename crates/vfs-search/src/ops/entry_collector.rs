//! Entries of a walk up to a limit, collected on the caller's thread or on a pool.

use std::future::poll_fn;
use std::ops::ControlFlow;
use std::sync::Arc;

use vfs_core::search::Skipped;
use vfs_core::tree::Tree;
use vfs_core::{FileInfo, OpContext, Problem, Result, TruncationReason, VfsPath};

use crate::engine::ordered_receiver::OrderedReceiver;
use crate::engine::ordered_task_queue::RunAheadLimits;
use crate::engine::pool::Pool;
use crate::engine::search_visitor::SearchVisitor;
use crate::ops::grep::try_push;
use crate::ops::problem_collector::ProblemCollector;
use crate::search_item::{SearchCounts, SearchItem};
use crate::walk::dir_entries::{FilterDecision, WalkEntry};
use crate::walk::sequential_walk::{Walk, WalkItem};
use crate::walk::walk_options::{MAX_ENTRIES, WalkControl};

/// Collects, on the caller's thread, the entries that the visitor of `req` keeps, at most `limit`.
pub(crate) fn walk_entries<V: SearchVisitor>(
    tree: &Arc<dyn Tree>,
    cx: &OpContext,
    req: &V::Request,
    limit: Option<u64>,
) -> Result<EntryCollector> {
    cx.check()?;
    let (visitor, path) = (V::new(req)?, V::path(req));
    let entry = Arc::clone(tree).lookup(path).map_err(|error| error.or_path(path))?;
    let dir = entry.into_dir(path)?;
    let check = || cx.check();
    let control = WalkControl { filter: &visitor, check: &check };
    let mut walk = Walk::start(tree, control, dir, path, visitor.options(), MAX_ENTRIES)?;
    let mut collected = EntryCollector::new(limit);
    while let Some(next) = walk.next(tree, control)? {
        let (entries, step) = match next {
            WalkItem::Entry(entries, step) => (entries, step),
            WalkItem::Problem(problem) => {
                let _ = collected.put(SearchItem::Problem(problem));
                continue;
            }
        };
        let entry = WalkEntry::of(&entries, step);
        let item = match visitor.filter_entry(entry) {
            // Check the limit before describing the entry: an entry beyond the limit needs no description.
            Ok(FilterDecision::Keep) if collected.is_full() => break,
            Ok(FilterDecision::Keep) => {
                cx.check()?;
                SearchItem::describe(entry)
            }
            Ok(FilterDecision::Drop | FilterDecision::SkipLink) => continue,
            Err(error) => SearchItem::Problem(entry.problem(error)),
        };
        if collected.put(item).is_break() {
            break;
        }
    }
    let _ = collected.put(SearchItem::Counts(SearchCounts::from_findings(&walk.take_findings())));
    Ok(collected)
}

/// Does the same as [`walk_entries`] on the workers of `pool`.
pub(crate) async fn walk_entries_on<V: SearchVisitor>(
    pool: &Pool,
    tree: Arc<dyn Tree>,
    cx: OpContext,
    req: V::Request,
    limit: Option<u64>,
) -> Result<EntryCollector> {
    let limits = RunAheadLimits::for_workers(pool.workers());
    let mut receiver = OrderedReceiver::<V>::new(tree, cx, req, pool.clone(), limits);
    let mut collected = EntryCollector::new(limit);
    while let Some(item) = poll_fn(|task| receiver.poll_item(task)).await? {
        if collected.put(item).is_break() {
            break;
        }
    }
    Ok(collected)
}

/// Collects entries up to a limit.
pub(crate) struct EntryCollector {
    limit: Option<u64>,
    entries: Vec<FileInfo>,
    truncated: Option<TruncationReason>,
    skipped: Skipped,
    problems: ProblemCollector,
}

impl EntryCollector {
    fn new(limit: Option<u64>) -> Self {
        Self {
            limit,
            entries: Vec::new(),
            truncated: None,
            skipped: Skipped::default(),
            problems: ProblemCollector::default(),
        }
    }

    /// Returns whether one more entry would exceed the limit, and marks the result as truncated if so.
    fn is_full(&mut self) -> bool {
        let is_full = self.limit.is_some_and(|limit| self.entries.len() as u64 >= limit);
        if is_full {
            self.truncated = Some(TruncationReason::Limit);
        }
        is_full
    }

    /// Adds `item`, or returns `Break` if it exceeds the limit.
    fn put(&mut self, item: SearchItem) -> ControlFlow<()> {
        match item {
            SearchItem::Entry(_) if self.is_full() => return ControlFlow::Break(()),
            SearchItem::Entry(info) => return self.push_entry(info),
            SearchItem::Problem(problem) => self.problems.push(problem),
            SearchItem::Counts(counts) => {
                self.skipped += counts.skipped;
                self.truncated = self.truncated.or(counts.truncated());
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn push_entry(&mut self, info: FileInfo) -> ControlFlow<()> {
        if try_push(&mut self.entries, info) {
            return ControlFlow::Continue(());
        }
        self.truncated = Some(TruncationReason::Memory);
        ControlFlow::Break(())
    }

    /// Returns the parts of the result of a walk that started at `start`.
    pub(crate) fn into_parts(
        self,
        start: &VfsPath,
    ) -> (Vec<FileInfo>, Option<TruncationReason>, Skipped, Vec<Problem>) {
        (self.entries, self.truncated, self.skipped, self.problems.into_vec(start))
    }
}
