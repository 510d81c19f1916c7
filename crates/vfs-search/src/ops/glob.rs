//! Finding entries by name.

use std::future::poll_fn;
use std::sync::Arc;

use vfs_core::tree::{ChildKind, Located, Tree};
use vfs_core::{Error, ErrorKind, GlobRequest, GlobResult, LinkMode, OpContext, Result, VfsPath};

use crate::engine::ordered_queue::Tuning;
use crate::engine::pool::Pool;
use crate::engine::receiver::Feed;
use crate::engine::visitor::{Named, Quest};
use crate::glob::{GlobPattern, Shown};
use crate::item::{Item, Outlet, Tally};
use crate::ops::entries::{Entries, put_described};
use crate::query::file_filter::only_directories;
use crate::walk::dir_entries::{Entry, Judgement};
use crate::walk::options::{Directories, Guide, MAX_ENTRIES, WalkOptions};
use crate::walk::sequential::{Found, Walk};
use crate::walk::visibility::Visibility;

/// Finds the entries below `req.path` of `tree` that match a pattern, as [`GlobPattern`] matches, on the caller's thread.
///
/// # Behaviour
///
/// * Sorted by the bytes of the full path. Only directories that the pattern can reach are listed, and where it spells the
///   names in one, these are looked up instead.
/// * Hidden and ignored entries are left out, and counted in `skipped` where they were come by, unless the request includes
///   them. A hidden name whose leading dot the pattern spells is asked for: `.env*` finds `.env`, `*` does not. With
///   [`HiddenNames::Spelled`](vfs_core::HiddenNames::Spelled) a pattern without a `/` is matched in hidden directories, too.
/// * FIFOs, sockets and devices are neither files nor directories and never match.
/// * A link that matches, or that has to be followed, and leads nowhere, outside or in a circle is in `problems`.
/// * At most 1,000 problems are kept; where there are more, one more says how many.
/// * With `limit`, `truncated` says whether there is at least one more.
///
/// # Errors
///
/// [`ErrorKind::InvalidPattern`], [`ErrorKind::NotFound`], [`ErrorKind::NotADirectory`], what listing the directory itself
/// gives, and the context's [`ErrorKind::Cancelled`] and [`ErrorKind::Timeout`].
pub fn glob<T: Tree>(tree: &T, cx: &OpContext, req: &GlobRequest) -> Result<GlobResult> {
    cx.check()?;
    let sought = Sought::new(req)?;
    let dir = match tree.locate(&req.path).map_err(|error| error.or_path(&req.path))? {
        Located::Directory(dir) => dir,
        Located::File { .. } => return Err(Error::at(ErrorKind::NotADirectory, &req.path)),
    };
    let guide = Reachable { cx, sought: &sought };
    let mut walk = Walk::start(tree, &guide, dir, &req.path, sought.options(), MAX_ENTRIES)?;
    let mut found = Entries::new(req.limit);
    while let Some(next) = walk.next(tree, &guide)? {
        let (level, step) = match next {
            Found::Entry(level, step) => (level, step),
            Found::Problem(problem) => {
                let _ = found.put(Item::Problem(problem));
                continue;
            }
        };
        let entry = Entry::of(&level, step);
        match sought.judge(tree, entry) {
            Ok(Judgement::Take) => {}
            Ok(Judgement::Pass | Judgement::SkipLink) => continue,
            Err(error) => {
                let _ = found.put(Item::Problem(entry.problem(error)));
                continue;
            }
        }
        // Looked at before the entry is described: one that is over the limit need not be.
        if found.is_full() {
            break;
        }
        cx.check()?;
        if found.put_entry(tree, entry).is_break() {
            break;
        }
    }
    let _ = found.put(Item::Tally(Tally::of(&walk.take_findings())));
    Ok(glob_result(found, &req.path))
}

/// As [`glob`], on the workers of `pool`: for trees that take long to list.
///
/// # Behaviour
///
/// As [`glob`]. Dropping the future ends the search.
///
/// # Errors
///
/// As [`glob`], and [`ErrorKind::Busy`] where 4,096 turns of searches wait already.
pub async fn glob_on<T: Tree>(pool: &Pool, tree: Arc<T>, cx: OpContext, req: GlobRequest) -> Result<GlobResult> {
    let tuning = Tuning::for_workers(pool.workers());
    let mut feed = Feed::<T, Sought>::new(tree, cx, req, pool.clone(), tuning);
    let mut found = Entries::new(feed.request().limit);
    while let Some(item) = poll_fn(|task| feed.poll_item(task)).await? {
        if found.put(item).is_break() {
            break;
        }
    }
    Ok(glob_result(found, &feed.request().path))
}

fn glob_result(found: Entries, start: &VfsPath) -> GlobResult {
    let mut result = GlobResult::default();
    (result.entries, result.truncated, result.skipped, result.problems) = found.into_parts(start);
    result
}

/// What a glob looks for.
#[derive(Debug)]
pub(crate) struct Sought {
    pattern: GlobPattern,
    options: WalkOptions,
    files: Want,
    directories: Want,
}

/// Whether entries of a kind are results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Want {
    Yes,
    No,
}

impl Want {
    fn when(wanted: bool) -> Self {
        if wanted { Self::Yes } else { Self::No }
    }
}

impl Quest for Sought {
    type Request = GlobRequest;
    type Tools = ();

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
        let files = Want::when(req.kinds.files() && !pattern.is_only_directories());
        Ok(Self { pattern, options, files, directories: Want::when(req.kinds.directories()) })
    }

    fn path(req: &GlobRequest) -> &VfsPath {
        &req.path
    }

    fn options(&self) -> WalkOptions {
        self.options
    }

    fn enters(&self, relative: &str, name: &str) -> bool {
        self.pattern.reaches_entry(relative, name)
    }

    fn names(&self, relative: &str) -> Option<Vec<String>> {
        self.pattern.names_in(relative)
    }

    fn asks_dotted(&self, relative: &str, name: &str) -> Shown {
        self.pattern.shows_dotted(relative, name)
    }

    fn judge<T: Tree>(&self, tree: &T, entry: Entry<'_, T::Dir>) -> Result<Judgement> {
        let (relative, name) = (entry.place().relative(), entry.name());
        let is_link = entry.kind() == ChildKind::Link;
        let matches = self.pattern.matches_entry(relative, name);
        // A link that has to be followed is looked at even where it is no result, to tell where it leads nowhere.
        let leads_on = is_link && self.options.links == LinkMode::Follow && self.pattern.reaches_entry(relative, name);
        if !matches && !leads_on {
            return Ok(Judgement::Pass);
        }
        let kind = if is_link { tree.follow(&entry.place().dir, name)? } else { entry.kind() };
        let want = match kind {
            ChildKind::File => self.files,
            ChildKind::Directory => self.directories,
            ChildKind::Link | ChildKind::Other => Want::No,
        };
        Ok(if matches && want == Want::Yes { Judgement::Take } else { Judgement::Pass })
    }

    fn tools(&self) {}

    fn visit<T: Tree>(
        &self,
        (): &mut (),
        tree: &T,
        entry: Entry<'_, T::Dir>,
        outlet: &mut dyn Outlet,
        _interrupted: &dyn Fn() -> bool,
    ) {
        put_described(tree, entry, outlet);
    }

    fn visit_named<T: Tree>(
        &self,
        (): &mut (),
        _tree: &T,
        file: &Named<T::Dir>,
        _outlet: &mut dyn Outlet,
        _interrupted: &dyn Fn() -> bool,
    ) -> Result<()> {
        Err(Error::at(ErrorKind::NotADirectory, &file.path))
    }
}

/// Goes down the directories that a pattern can reach.
struct Reachable<'a> {
    cx: &'a OpContext,
    sought: &'a Sought,
}

impl Guide for Reachable<'_> {
    fn enters(&self, relative: &str, name: &str) -> bool {
        self.sought.enters(relative, name)
    }

    fn names(&self, relative: &str) -> Option<Vec<String>> {
        self.sought.names(relative)
    }

    fn asks_dotted(&self, relative: &str, name: &str) -> Shown {
        self.sought.asks_dotted(relative, name)
    }

    fn check(&self) -> Result<()> {
        self.cx.check()
    }
}
