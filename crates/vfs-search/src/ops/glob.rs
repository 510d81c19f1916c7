//! Glob operation: finds entries by name.

use std::sync::Arc;

use vfs_core::search::LinkMode;
use vfs_core::tree::{ChildKind, Tree};
use vfs_core::{GlobRequest, GlobResult, OpContext, Result, VfsPath};

use crate::engine::pool::Pool;
use crate::engine::search_visitor::SearchVisitor;
use crate::glob::{GlobPattern, HiddenEntryVisibility};
use crate::ops::entry_collector::{EntryCollector, walk_entries, walk_entries_on};
use crate::query::file_filter::only_directories;
use crate::walk::dir_entries::{FilterDecision, WalkEntry};
use crate::walk::visibility::VisibilitySettings;
use crate::walk::walk_options::{DirectoryYieldMode, WalkFilter, WalkOptions};

/// Finds the entries below `req.path` of `tree` that match a pattern, as defined by [`GlobPattern`], on the caller's
/// thread.
///
/// # Behaviour
///
/// * Entries are sorted by the bytes of the full path. Only directories that the pattern can reach are listed. If
///   it has literal names for a directory, a tree that supports it is asked for these in place of a listing.
/// * Hidden and ignored entries are left out unless the request includes them, and those that the walk encounters are
///   counted in `skipped`. A hidden name is found if the pattern has a literal leading dot: `.env*` finds `.env`, `*`
///   does not. With [`HiddenNames::Spelled`](vfs_core::search::HiddenNames::Spelled), a pattern without a `/` is
///   matched in hidden directories, too.
/// * FIFOs, sockets and devices are neither files nor directories and never match.
/// * A link that matches, or that has to be followed, is in `problems` if it leads nowhere, outside or in a circle.
/// * At most 1,000 problems are returned. If there are more, one further problem says how many.
/// * With `limit`, `truncated` says whether there is at least one more entry.
///
/// # Errors
///
/// [`InvalidPattern`](vfs_core::ErrorKind::InvalidPattern), [`NotFound`](vfs_core::ErrorKind::NotFound),
/// [`NotADirectory`](vfs_core::ErrorKind::NotADirectory), the errors of listing the directory itself, and the
/// context's [`Cancelled`](vfs_core::ErrorKind::Cancelled) and [`Timeout`](vfs_core::ErrorKind::Timeout).
pub fn glob(tree: Arc<dyn Tree>, cx: &OpContext, req: &GlobRequest) -> Result<GlobResult> {
    let collected = walk_entries::<GlobVisitor>(&tree, cx, req, req.limit)?;
    Ok(glob_result(collected, &req.path))
}

/// Does the same as [`glob`] on the workers of `pool`, for async code over a tree that does more than look into memory.
///
/// # Behaviour
///
/// The same as for [`glob`]. Dropping the future ends the search.
///
/// # Errors
///
/// The errors of [`glob`], and [`ErrorKind::Busy`](vfs_core::ErrorKind::Busy) if 4,096 time slices of searches are queued already.
pub async fn glob_on(pool: &Pool, tree: Arc<dyn Tree>, cx: OpContext, req: GlobRequest) -> Result<GlobResult> {
    let (path, limit) = (req.path.clone(), req.limit);
    let collected = walk_entries_on::<GlobVisitor>(pool, tree, cx, req, limit).await?;
    Ok(glob_result(collected, &path))
}

fn glob_result(collected: EntryCollector, start: &VfsPath) -> GlobResult {
    let mut result = GlobResult::default();
    (result.entries, result.truncated, result.skipped, result.problems) = collected.into_parts(start);
    result
}

/// Visits the entries that match a glob.
#[derive(Debug)]
pub(crate) struct GlobVisitor {
    pattern: GlobPattern,
    options: WalkOptions,
    /// Whether files are results, and whether directories are.
    files: bool,
    directories: bool,
}

impl SearchVisitor for GlobVisitor {
    type Request = GlobRequest;
    type WorkerState = ();

    fn new(req: &GlobRequest) -> Result<Self> {
        let pattern = GlobPattern::for_search(&req.pattern, req.hidden)?;
        if pattern.is_only_directories() && !req.kinds.directories() {
            return Err(only_directories());
        }
        let options = WalkOptions {
            visibility: VisibilitySettings { hidden: req.hidden, ignore: req.ignore },
            links: req.links,
            max_depth: None,
            directories: if req.kinds.directories() {
                DirectoryYieldMode::Yielded
            } else {
                DirectoryYieldMode::OnlyEntered
            },
        };
        let files = req.kinds.files() && !pattern.is_only_directories();
        Ok(Self { pattern, options, files, directories: req.kinds.directories() })
    }

    fn path(req: &GlobRequest) -> &VfsPath {
        &req.path
    }

    fn options(&self) -> WalkOptions {
        self.options
    }

    fn filter_entry(&self, entry: WalkEntry<'_>) -> Result<FilterDecision> {
        let (relative, name) = (entry.context().relative(), entry.name());
        let is_link = entry.kind() == ChildKind::Link;
        let matches = self.pattern.matches_entry(relative, name);
        // A link that has to be followed is resolved even if it is no result, to report a link that leads nowhere.
        let leads_on = is_link && self.options.links == LinkMode::Follow && self.pattern.reaches_entry(relative, name);
        if !matches && !leads_on {
            return Ok(FilterDecision::Drop);
        }
        let kind = if is_link { entry.dir().follow_link(name)? } else { entry.kind() };
        let is_result = match kind {
            ChildKind::File => self.files,
            ChildKind::Directory => self.directories,
            ChildKind::Link | ChildKind::Other => false,
        };
        Ok(if matches && is_result { FilterDecision::Keep } else { FilterDecision::Drop })
    }

    fn new_worker_state(&self) {}
}

impl WalkFilter for GlobVisitor {
    fn should_enter(&self, relative: &str, name: &str) -> bool {
        self.pattern.reaches_entry(relative, name)
    }

    fn names_in(&self, relative: &str) -> Option<Vec<String>> {
        self.pattern.names_in(relative)
    }

    fn hidden_override(&self, relative: &str, name: &str) -> HiddenEntryVisibility {
        self.pattern.hidden_override(relative, name)
    }
}
