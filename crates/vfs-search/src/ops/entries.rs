//! Collector of the entries of a walk, up to a limit.

use std::ops::ControlFlow;

use vfs_core::tree::Tree;
use vfs_core::{FileInfo, Problem, Skipped, Truncation, VfsPath};

use crate::item::{Item, ItemSink};
use crate::ops::grep::try_push;
use crate::ops::problems::ProblemCollector;
use crate::walk::dir_entries::WalkEntry;

/// Returns the description of the entry, or the problem that prevents one.
fn describe_entry<T: Tree>(tree: &T, entry: WalkEntry<'_, T::Dir>) -> Item {
    match entry.path().and_then(|path| tree.info(&entry.context().dir, entry.name(), path)) {
        Ok(info) => Item::Entry(info),
        Err(error) => Item::Problem(entry.problem(error)),
    }
}

/// Visits an entry by emitting its description.
pub(crate) fn emit_entry<T: Tree>(tree: &T, entry: WalkEntry<'_, T::Dir>, item_sink: &mut dyn ItemSink) {
    // If the item is refused, the visit ends; the sink knows that.
    if item_sink.put(describe_entry(tree, entry)).is_continue() {
        let _ = item_sink.put(Item::Done { searched: false, left_early: false, skipped: Skipped::default() });
    }
}

/// Collects entries up to a limit.
pub(crate) struct EntryCollector {
    limit: Option<u64>,
    entries: Vec<FileInfo>,
    truncated: Option<Truncation>,
    skipped: Skipped,
    problems: ProblemCollector,
}

impl EntryCollector {
    pub(crate) fn new(limit: Option<u64>) -> Self {
        Self {
            limit,
            entries: Vec::new(),
            truncated: None,
            skipped: Skipped::default(),
            problems: ProblemCollector::default(),
        }
    }

    /// Returns whether one more entry would exceed the limit, and marks the result as truncated if so.
    pub(crate) fn is_full(&mut self) -> bool {
        let is_full = self.limit.is_some_and(|limit| self.entries.len() as u64 >= limit);
        if is_full {
            self.truncated = Some(Truncation::Limit);
        }
        is_full
    }

    /// Adds `item`, or returns `Break` if it exceeds the limit.
    pub(crate) fn put(&mut self, item: Item) -> ControlFlow<()> {
        match item {
            Item::Entry(_) if self.is_full() => return ControlFlow::Break(()),
            Item::Entry(info) => return self.push_entry(info),
            Item::Problem(problem) => self.problems.push(problem),
            Item::Counts(counts) => {
                self.skipped += counts.skipped;
                self.truncated = self.truncated.or(counts.truncated());
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    /// Adds the description of `entry`, or the problem that prevents one. The caller ensures that there is room for
    /// it.
    pub(crate) fn put_entry<T: Tree>(&mut self, tree: &T, entry: WalkEntry<'_, T::Dir>) -> ControlFlow<()> {
        match entry.path().and_then(|path| tree.info(&entry.context().dir, entry.name(), path)) {
            Ok(info) => return self.push_entry(info),
            Err(error) => self.problems.push(entry.problem(error)),
        }
        ControlFlow::Continue(())
    }

    fn push_entry(&mut self, info: FileInfo) -> ControlFlow<()> {
        if try_push(&mut self.entries, info) {
            return ControlFlow::Continue(());
        }
        self.truncated = Some(Truncation::Memory);
        ControlFlow::Break(())
    }

    /// Returns the parts of the result of a walk that started at `start`.
    pub(crate) fn into_parts(self, start: &VfsPath) -> (Vec<FileInfo>, Option<Truncation>, Skipped, Vec<Problem>) {
        (self.entries, self.truncated, self.skipped, self.problems.into_vec(start))
    }
}
