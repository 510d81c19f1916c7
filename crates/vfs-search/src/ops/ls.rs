//! Listing a directory.

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

/// Lists what the directory `req.path` of `tree` holds.
///
/// # Behaviour
///
/// * Every entry is listed, hidden and ignored ones too, sorted by the bytes of the full path.
/// * A link inside the tree is described by what it leads to; it is not gone down.
/// * An entry that cannot be described is in `problems`.
/// * At most 1,000 problems are kept; where there are more, one more says how many.
/// * With `limit`, what is not returned is not described either.
///
/// # Errors
///
/// [`ErrorKind::NotFound`], [`ErrorKind::NotADirectory`], what listing the directory itself gives, and the context's
/// [`ErrorKind::Cancelled`] and [`ErrorKind::Timeout`].
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
            // Looked at before the entry is described: one that is over the limit need not be.
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

/// As [`ls`], on the workers of `pool`: for trees that take long to list.
///
/// # Behaviour
///
/// As [`ls`]. Dropping the future ends the listing.
///
/// # Errors
///
/// As [`ls`], and [`ErrorKind::Busy`] where 4,096 turns of searches wait already.
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

/// What a listing looks for.
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

/// Goes down every directory of a recursive listing.
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
