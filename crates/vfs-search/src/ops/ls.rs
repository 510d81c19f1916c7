//! Listing a directory.

use std::future::poll_fn;
use std::sync::Arc;

use vfs_core::tree::{Located, Tree};
use vfs_core::{Error, ErrorKind, LinkMode, LsRequest, LsResult, OpContext, Result, VfsPath};

use crate::engine::ordered_queue::Tuning;
use crate::engine::pool::Pool;
use crate::engine::receiver::Feed;
use crate::engine::visitor::{Named, Quest};
use crate::glob::Shown;
use crate::item::{Item, Outlet, Tally};
use crate::ops::entries::{Entries, put_described};
use crate::walk::dir_entries::{Entry, Judgement};
use crate::walk::options::{Directories, Guide, MAX_ENTRIES, WalkOptions};
use crate::walk::sequential::{Found, Walk};
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
    let guide = Everywhere { cx, recursive: req.recursive };
    let mut walk = Walk::start(tree, &guide, dir, &req.path, options, MAX_ENTRIES)?;
    let mut found = Entries::new(req.limit);
    while let Some(next) = walk.next(tree, &guide)? {
        let put = match next {
            // Looked at before the entry is described: one that is over the limit need not be.
            Found::Entry(..) if found.is_full() => break,
            Found::Entry(level, step) => {
                cx.check()?;
                found.put_entry(tree, Entry::of(&level, step))
            }
            Found::Problem(problem) => found.put(Item::Problem(problem)),
        };
        if put.is_break() {
            break;
        }
    }
    let _ = found.put(Item::Tally(Tally::of(&walk.take_findings())));
    Ok(ls_result(found, &req.path))
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
    let mut feed = Feed::<T, Everything>::new(tree, cx, req, pool.clone(), tuning);
    let mut found = Entries::new(limit);
    while let Some(item) = poll_fn(|task| feed.poll_item(task)).await? {
        if found.put(item).is_break() {
            break;
        }
    }
    Ok(ls_result(found, &path))
}

fn ls_result(found: Entries, start: &VfsPath) -> LsResult {
    let mut result = LsResult::default();
    (result.entries, result.truncated, _, result.problems) = found.into_parts(start);
    result
}

/// What a listing looks for.
pub(crate) struct Everything {
    recursive: bool,
    max_depth: Option<u32>,
}

impl Quest for Everything {
    type Request = LsRequest;
    type Tools = ();

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

    fn enters(&self, _: &str, _: &str) -> bool {
        self.recursive
    }

    fn names(&self, _: &str) -> Option<Vec<String>> {
        None
    }

    fn asks_dotted(&self, _: &str, _: &str) -> Shown {
        Shown::WithContents
    }

    fn judge<T: Tree>(&self, _tree: &T, _entry: Entry<'_, T::Dir>) -> Result<Judgement> {
        Ok(Judgement::Take)
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

/// Goes down every directory of a recursive listing.
struct Everywhere<'a> {
    cx: &'a OpContext,
    recursive: bool,
}

impl Guide for Everywhere<'_> {
    fn enters(&self, _: &str, _: &str) -> bool {
        self.recursive
    }

    fn check(&self) -> Result<()> {
        self.cx.check()
    }
}
