//! List operation: the entries of a directory.

use std::future::poll_fn;
use std::sync::Arc;

use vfs_core::tree::{Located, Tree};
use vfs_core::{Error, ErrorKind, LinkMode, LsRequest, LsResult, OpContext, Result, VfsPath};

use crate::engine::ordered_queue::Tuning;
use crate::engine::pool::Pool;
use crate::engine::receiver::OrderedReceiver;
use crate::engine::visitor::{NamedFile, SearchVisitor};
use crate::glob::DotVisibility;
use crate::item::{Counts, Item, ItemSink};
use crate::ops::entries::{EntryCollector, emit_entry};
use crate::walk::dir_entries::{FilterDecision, WalkEntry};
use crate::walk::options::{Directories, MAX_ENTRIES, WalkControl, WalkOptions};
use crate::walk::sequential::{Walk, WalkItem};
use crate::walk::visibility::Visibility;

/// Lists the entries of the directory `req.path` of `tree`.
///
/// # Behaviour
///
/// * Every entry is listed, including hidden and ignored ones, sorted by the bytes of the full path.
/// * A link inside the tree is described by its target, and not followed.
/// * An entry that cannot be described is in `problems`.
/// * At most 1,000 problems are kept. If there are more, one further problem says how many.
/// * With `limit`, entries that are not returned are not described either.
///
/// # Errors
///
/// [`ErrorKind::NotFound`], [`ErrorKind::NotADirectory`], the errors of listing the directory itself, and the
/// context's [`ErrorKind::Cancelled`] and [`ErrorKind::Timeout`].
pub fn ls<T: Tree>(tree: &T, cx: &OpContext, req: &LsRequest) -> Result<LsResult> {
    cx.check()?;
    let dir = match tree.locate(&req.path).map_err(|error| error.or_path(&req.path))? {
        Located::Directory(dir) => dir,
        Located::File { .. } => return Err(Error::at(ErrorKind::NotADirectory, &req.path)),
    };
    let options = WalkOptions {
        visibility: Visibility::ALL,
        links: LinkMode::Skip,
        max_depth: req.depth(),
        directories: Directories::Yielded,
    };
    let control = LsWalkControl { cx, recursive: req.recursive };
    let mut walk = Walk::start(tree, &control, dir, &req.path, options, MAX_ENTRIES)?;
    let mut collected = EntryCollector::new(req.limit);
    while let Some(next) = walk.next(tree, &control)? {
        let put = match next {
            // Check before describing the entry: an entry over the limit needs no description.
            WalkItem::Entry(..) if collected.is_full() => break,
            WalkItem::Entry(entries, step) => {
                cx.check()?;
                collected.put_entry(tree, WalkEntry::of(&entries, step))
            }
            WalkItem::Problem(problem) => collected.put(Item::Problem(problem)),
        };
        if put.is_break() {
            break;
        }
    }
    let _ = collected.put(Item::Counts(Counts::from_findings(&walk.take_findings())));
    Ok(ls_result(collected, &req.path))
}

/// Does the same as [`ls`] on the workers of `pool`, for trees that take long to list.
///
/// # Behaviour
///
/// The same as for [`ls`]. Dropping the future ends the listing.
///
/// # Errors
///
/// The errors of [`ls`], and [`ErrorKind::Busy`] if 4,096 time slices of searches are queued already.
pub async fn ls_on<T: Tree>(pool: &Pool, tree: Arc<T>, cx: OpContext, req: LsRequest) -> Result<LsResult> {
    let tuning = Tuning::for_workers(pool.workers());
    let (path, limit) = (req.path.clone(), req.limit);
    let mut receiver = OrderedReceiver::<T, LsVisitor>::new(tree, cx, req, pool.clone(), tuning);
    let mut collected = EntryCollector::new(limit);
    while let Some(item) = poll_fn(|task| receiver.poll_item(task)).await? {
        if collected.put(item).is_break() {
            break;
        }
    }
    Ok(ls_result(collected, &path))
}

fn ls_result(collected: EntryCollector, start: &VfsPath) -> LsResult {
    let mut result = LsResult::default();
    (result.entries, result.truncated, _, result.problems) = collected.into_parts(start);
    result
}

/// Visits every entry of a listing.
pub(crate) struct LsVisitor {
    recursive: bool,
    max_depth: Option<u32>,
}

impl SearchVisitor for LsVisitor {
    type Request = LsRequest;
    type WorkerState = ();

    fn new(req: &LsRequest) -> Result<Self> {
        Ok(Self { recursive: req.recursive, max_depth: req.depth() })
    }

    fn path(req: &LsRequest) -> &VfsPath {
        &req.path
    }

    fn options(&self) -> WalkOptions {
        WalkOptions {
            visibility: Visibility::ALL,
            links: LinkMode::Skip,
            max_depth: self.max_depth,
            directories: Directories::Yielded,
        }
    }

    fn should_enter(&self, _: &str, _: &str) -> bool {
        self.recursive
    }

    fn names_in(&self, _: &str) -> Option<Vec<String>> {
        None
    }

    fn hidden_override(&self, _: &str, _: &str) -> DotVisibility {
        DotVisibility::Full
    }

    fn filter_entry<T: Tree>(&self, _tree: &T, _entry: WalkEntry<'_, T::Dir>) -> Result<FilterDecision> {
        Ok(FilterDecision::Keep)
    }

    fn new_worker_state(&self) {}

    fn visit<T: Tree>(
        &self,
        (): &mut (),
        tree: &T,
        entry: WalkEntry<'_, T::Dir>,
        item_sink: &mut dyn ItemSink,
        _is_interrupted: &dyn Fn() -> bool,
    ) {
        emit_entry(tree, entry, item_sink);
    }

    fn visit_named<T: Tree>(
        &self,
        (): &mut (),
        _tree: &T,
        file: &NamedFile<T::Dir>,
        _outlet: &mut dyn ItemSink,
        _is_interrupted: &dyn Fn() -> bool,
    ) -> Result<()> {
        Err(Error::at(ErrorKind::NotADirectory, &file.path))
    }
}

/// Enters every directory of a recursive listing.
struct LsWalkControl<'a> {
    cx: &'a OpContext,
    recursive: bool,
}

impl WalkControl for LsWalkControl<'_> {
    fn should_enter(&self, _: &str, _: &str) -> bool {
        self.recursive
    }

    fn check(&self) -> Result<()> {
        self.cx.check()
    }
}
