//! Glob operation: finds entries by name.

use std::future::poll_fn;
use std::sync::Arc;

use vfs_core::tree::{ChildKind, Located, Tree};
use vfs_core::{Error, ErrorKind, GlobRequest, GlobResult, LinkMode, OpContext, Result, VfsPath};

use crate::engine::ordered_queue::Tuning;
use crate::engine::pool::Pool;
use crate::engine::receiver::OrderedReceiver;
use crate::engine::visitor::{NamedFile, SearchVisitor};
use crate::glob::{DotVisibility, GlobPattern};
use crate::item::{Counts, Item, ItemSink};
use crate::ops::entries::{EntryCollector, emit_entry};
use crate::query::file_filter::only_directories;
use crate::walk::dir_entries::{FilterDecision, WalkEntry};
use crate::walk::options::{Directories, MAX_ENTRIES, WalkControl, WalkOptions};
use crate::walk::sequential::{Walk, WalkItem};
use crate::walk::visibility::Visibility;

/// Finds the entries below `req.path` of `tree` that match a pattern, as defined by [`GlobPattern`], on the caller's
/// thread.
///
/// # Behaviour
///
/// * Entries are sorted by the bytes of the full path. Only directories that the pattern can reach are listed; if it
///   spells out the names in a directory, these are looked up instead.
/// * Hidden and ignored entries are left out unless the request includes them, and counted in `skipped` as far as the
///   walk meets them. A hidden name is found if the pattern spells its leading dot: `.env*` finds `.env`, `*` does
///   not. With [`HiddenNames::Spelled`](vfs_core::HiddenNames::Spelled), a pattern without a `/` is matched in hidden
///   directories, too.
/// * FIFOs, sockets and devices are neither files nor directories and never match.
/// * A link that matches, or that has to be followed, is in `problems` if it leads nowhere, outside or in a circle.
/// * At most 1,000 problems are kept. If there are more, one further problem says how many.
/// * With `limit`, `truncated` says whether there is at least one more entry.
///
/// # Errors
///
/// [`ErrorKind::InvalidPattern`], [`ErrorKind::NotFound`], [`ErrorKind::NotADirectory`], the errors of listing the
/// directory itself, and the context's [`ErrorKind::Cancelled`] and [`ErrorKind::Timeout`].
pub fn glob<T: Tree>(tree: &T, cx: &OpContext, req: &GlobRequest) -> Result<GlobResult> {
    cx.check()?;
    let visitor = GlobVisitor::new(req)?;
    let dir = match tree.locate(&req.path).map_err(|error| error.or_path(&req.path))? {
        Located::Directory(dir) => dir,
        Located::File { .. } => return Err(Error::at(ErrorKind::NotADirectory, &req.path)),
    };
    let control = GlobWalkControl { cx, visitor: &visitor };
    let mut walk = Walk::start(tree, &control, dir, &req.path, visitor.options(), MAX_ENTRIES)?;
    let mut collected = EntryCollector::new(req.limit);
    while let Some(next) = walk.next(tree, &control)? {
        let (entries, step) = match next {
            WalkItem::Entry(entries, step) => (entries, step),
            WalkItem::Problem(problem) => {
                let _ = collected.put(Item::Problem(problem));
                continue;
            }
        };
        let entry = WalkEntry::of(&entries, step);
        match visitor.filter_entry(tree, entry) {
            Ok(FilterDecision::Keep) => {}
            Ok(FilterDecision::Drop | FilterDecision::SkipLink) => continue,
            Err(error) => {
                let _ = collected.put(Item::Problem(entry.problem(error)));
                continue;
            }
        }
        // Check before describing the entry: an entry over the limit needs no description.
        if collected.is_full() {
            break;
        }
        cx.check()?;
        if collected.put_entry(tree, entry).is_break() {
            break;
        }
    }
    let _ = collected.put(Item::Counts(Counts::from_findings(&walk.take_findings())));
    Ok(glob_result(collected, &req.path))
}

/// Does the same as [`glob`] on the workers of `pool`, for trees that take long to list.
///
/// # Behaviour
///
/// The same as for [`glob`]. Dropping the future ends the search.
///
/// # Errors
///
/// The errors of [`glob`], and [`ErrorKind::Busy`] if 4,096 time slices of searches are queued already.
pub async fn glob_on<T: Tree>(pool: &Pool, tree: Arc<T>, cx: OpContext, req: GlobRequest) -> Result<GlobResult> {
    let tuning = Tuning::for_workers(pool.workers());
    let mut receiver = OrderedReceiver::<T, GlobVisitor>::new(tree, cx, req, pool.clone(), tuning);
    let mut collected = EntryCollector::new(receiver.request().limit);
    while let Some(item) = poll_fn(|task| receiver.poll_item(task)).await? {
        if collected.put(item).is_break() {
            break;
        }
    }
    Ok(glob_result(collected, &receiver.request().path))
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
    files: IsResult,
    directories: IsResult,
}

/// Whether entries of a kind are results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IsResult {
    Yes,
    No,
}

impl IsResult {
    fn when(wanted: bool) -> Self {
        if wanted { Self::Yes } else { Self::No }
    }
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
            visibility: Visibility { hidden: req.hidden, no_ignore: req.no_ignore },
            links: req.links,
            max_depth: None,
            directories: if req.kinds.directories() { Directories::Yielded } else { Directories::OnlyEntered },
        };
        let files = IsResult::when(req.kinds.files() && !pattern.is_only_directories());
        Ok(Self { pattern, options, files, directories: IsResult::when(req.kinds.directories()) })
    }

    fn path(req: &GlobRequest) -> &VfsPath {
        &req.path
    }

    fn options(&self) -> WalkOptions {
        self.options
    }

    fn should_enter(&self, relative: &str, name: &str) -> bool {
        self.pattern.reaches_entry(relative, name)
    }

    fn names_in(&self, relative: &str) -> Option<Vec<String>> {
        self.pattern.names_in(relative)
    }

    fn hidden_override(&self, relative: &str, name: &str) -> DotVisibility {
        self.pattern.hidden_override(relative, name)
    }

    fn filter_entry<T: Tree>(&self, tree: &T, entry: WalkEntry<'_, T::Dir>) -> Result<FilterDecision> {
        let (relative, name) = (entry.context().relative(), entry.name());
        let is_link = entry.kind() == ChildKind::Link;
        let matches = self.pattern.matches_entry(relative, name);
        // A link that has to be followed is resolved even if it is no result, to report a link that leads nowhere.
        let leads_on = is_link && self.options.links == LinkMode::Follow && self.pattern.reaches_entry(relative, name);
        if !matches && !leads_on {
            return Ok(FilterDecision::Drop);
        }
        let kind = if is_link { tree.follow(&entry.context().dir, name)? } else { entry.kind() };
        let is_result = match kind {
            ChildKind::File => self.files,
            ChildKind::Directory => self.directories,
            ChildKind::Link | ChildKind::Other => IsResult::No,
        };
        Ok(if matches && is_result == IsResult::Yes { FilterDecision::Keep } else { FilterDecision::Drop })
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

/// Enters the directories that a pattern can reach.
struct GlobWalkControl<'a> {
    cx: &'a OpContext,
    visitor: &'a GlobVisitor,
}

impl WalkControl for GlobWalkControl<'_> {
    fn should_enter(&self, relative: &str, name: &str) -> bool {
        self.visitor.should_enter(relative, name)
    }

    fn names_in(&self, relative: &str) -> Option<Vec<String>> {
        self.visitor.names_in(relative)
    }

    fn hidden_override(&self, relative: &str, name: &str) -> DotVisibility {
        self.visitor.hidden_override(relative, name)
    }

    fn check(&self) -> Result<()> {
        self.cx.check()
    }
}
