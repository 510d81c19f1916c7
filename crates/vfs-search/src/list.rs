//! Listing a directory.

use vfs_core::{Error, ErrorKind, LinkMode, LsRequest, LsResult, OpContext, Result, Truncation};

use crate::level::{Directories, Entry, Guide, WalkOptions};
use crate::problems::Problems;
use crate::visibility::Visibility;
use crate::walk::{Found, Walk};
use vfs_core::tree::{Located, Tree};

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
    let mut walk = Walk::start(tree, &guide, dir, &req.path, options)?;
    let mut result = LsResult::default();
    let mut problems = Problems::default();
    while let Some(found) = walk.next(tree, &guide)? {
        let (level, step) = match found {
            Found::Entry(level, step) => (level, step),
            Found::Problem(problem) => {
                problems.push(problem);
                continue;
            }
        };
        let entry = Entry::of(&level, step);
        if req.limit.is_some_and(|limit| result.entries.len() as u64 >= limit) {
            result.truncated = Some(Truncation::Limit);
            break;
        }
        cx.check()?;
        match entry.path().and_then(|path| tree.info(&entry.place().dir, entry.name(), path)) {
            Ok(info) => result.entries.push(info),
            Err(error) => problems.push(entry.problem(error)),
        }
    }
    if result.truncated.is_none() && walk.take_findings().too_deep {
        result.truncated = Some(Truncation::Depth);
    }
    result.problems = problems.into_vec(&req.path);
    Ok(result)
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
