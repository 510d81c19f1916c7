//! List operation: the entries of a directory.

use std::sync::Arc;

use vfs_core::search::LinkMode;
use vfs_core::tree::Tree;
use vfs_core::{LsRequest, LsResult, OpContext, Result, VfsPath};

use crate::engine::pool::Pool;
use crate::engine::search_visitor::SearchVisitor;
use crate::ops::entry_collector::{EntryCollector, walk_entries, walk_entries_on};
use crate::walk::dir_entries::{FilterDecision, WalkEntry};
use crate::walk::visibility::VisibilitySettings;
use crate::walk::walk_options::{DirectoryYieldMode, WalkFilter, WalkOptions};

/// Lists the entries of the directory `req.path` of `tree`.
///
/// # Behaviour
///
/// * Every entry is listed, including hidden and ignored ones, sorted by the bytes of the full path.
/// * A link inside the tree is described by its target, and not followed.
/// * An entry that cannot be described is in `problems`.
/// * At most 1,000 problems are returned. If there are more, one further problem says how many.
/// * With `limit`, entries that are not returned are not described either.
///
/// # Errors
///
/// [`NotFound`](vfs_core::ErrorKind::NotFound), [`NotADirectory`](vfs_core::ErrorKind::NotADirectory), the errors of
/// listing the directory itself, and the context's [`Cancelled`](vfs_core::ErrorKind::Cancelled) and
/// [`Timeout`](vfs_core::ErrorKind::Timeout).
pub fn ls(tree: Arc<dyn Tree>, cx: &OpContext, req: &LsRequest) -> Result<LsResult> {
    let collected = walk_entries::<LsVisitor>(&tree, cx, req, req.limit)?;
    Ok(ls_result(collected, &req.path))
}

/// Does the same as [`ls`] on the workers of `pool`, for async code over a tree that does more than look into memory.
///
/// # Behaviour
///
/// The same as for [`ls`], but the workers may describe some entries beyond `limit`. Dropping the future ends the listing.
///
/// # Errors
///
/// The errors of [`ls`], and [`ErrorKind::Busy`](vfs_core::ErrorKind::Busy) if 4,096 time slices of searches are queued already.
pub async fn ls_on(pool: &Pool, tree: Arc<dyn Tree>, cx: OpContext, req: LsRequest) -> Result<LsResult> {
    let (path, limit) = (req.path.clone(), req.limit);
    let collected = walk_entries_on::<LsVisitor>(pool, tree, cx, req, limit).await?;
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
            visibility: VisibilitySettings::ALL,
            links: LinkMode::Skip,
            max_depth: self.max_depth,
            directories: DirectoryYieldMode::Yielded,
        }
    }

    fn filter_entry(&self, _entry: WalkEntry<'_>) -> Result<FilterDecision> {
        Ok(FilterDecision::Keep)
    }

    fn new_worker_state(&self) {}
}

impl WalkFilter for LsVisitor {
    fn should_enter(&self, _: &str, _: &str) -> bool {
        self.recursive
    }
}
