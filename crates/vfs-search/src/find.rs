//! Finding entries by name.

use vfs_core::{Error, ErrorKind, GlobRequest, GlobResult, LinkMode, OpContext, Result, Truncation};

use crate::filter::only_directories;
use crate::glob::GlobPattern;
use crate::problems::Problems;
use crate::tree::{ChildKind, Located, Tree};
use crate::visibility::Visibility;
use crate::walk::{Directories, Entry, Found, Guide, Walk, WalkOptions};

/// Finds the entries below `req.path` of `tree` that match a pattern, as [`GlobPattern`] matches.
///
/// # Behaviour
///
/// * Sorted by the bytes of the full path. Only directories that the pattern can reach are listed.
/// * Hidden and ignored entries are left out and counted in `skipped` unless the request includes them, also where the
///   pattern itself starts with a dot.
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
    let pattern = GlobPattern::new(&req.pattern)?;
    if pattern.is_only_directories() && !req.kinds.directories() {
        return Err(only_directories());
    }
    let dir = match tree.locate(&req.path).map_err(|error| error.or_path(&req.path))? {
        Located::Directory(dir) => dir,
        Located::File { .. } => return Err(Error::at(ErrorKind::NotADirectory, &req.path)),
    };
    let directories = if req.kinds.directories() { Directories::Yielded } else { Directories::OnlyEntered };
    let visibility = Visibility { hidden: req.hidden, no_ignore: req.no_ignore };
    let options = WalkOptions { visibility, links: req.links, max_depth: None, directories };
    let guide = Reachable { cx, pattern: &pattern };
    let mut walk = Walk::start(tree, &guide, dir, &req.path, options)?;
    let mut result = GlobResult::default();
    let mut problems = Problems::default();
    while let Some(found) = walk.next(tree, &guide)? {
        let entry = match found {
            Found::Entry(entry) => entry,
            Found::Problem(problem) => {
                problems.push(problem);
                continue;
            }
        };
        match wanted(tree, req, &pattern, &entry) {
            Ok(false) => continue,
            Ok(true) => {}
            Err(error) => {
                problems.push(entry.problem(error));
                continue;
            }
        }
        if req.limit.is_some_and(|limit| result.entries.len() as u64 >= limit) {
            result.truncated = Some(Truncation::Limit);
            break;
        }
        cx.check()?;
        match entry.path().and_then(|path| tree.info(&entry.place.dir, &entry.name, path)) {
            Ok(info) => result.entries.push(info),
            Err(error) => problems.push(entry.problem(error)),
        }
    }
    let report = walk.take_report();
    result.skipped = report.skipped;
    if result.truncated.is_none() && report.too_deep {
        result.truncated = Some(Truncation::Depth);
    }
    result.problems = problems.into_vec(&req.path);
    Ok(result)
}

/// Whether `entry` is a result.
fn wanted<T: Tree>(tree: &T, req: &GlobRequest, pattern: &GlobPattern, entry: &Entry<T::Dir>) -> Result<bool> {
    let relative = entry.place.relative();
    let matches = pattern.matches_entry(relative, &entry.name);
    let leads_on =
        req.links == LinkMode::Follow && entry.kind == ChildKind::Link && reaches(pattern, relative, &entry.name);
    if !matches && !leads_on {
        return Ok(false);
    }
    let kind = match entry.kind {
        ChildKind::Link => tree.follow(&entry.place.dir, &entry.name)?,
        kind => kind,
    };
    Ok(matches
        && match kind {
            ChildKind::File => req.kinds.files() && !pattern.is_only_directories(),
            ChildKind::Directory => req.kinds.directories(),
            ChildKind::Link | ChildKind::Other => false,
        })
}

fn reaches(pattern: &GlobPattern, relative: &str, name: &str) -> bool {
    if relative.is_empty() { pattern.reaches(name) } else { pattern.reaches(&format!("{relative}/{name}")) }
}

/// Goes down the directories that a pattern can reach.
struct Reachable<'a> {
    cx: &'a OpContext,
    pattern: &'a GlobPattern,
}

impl Guide for Reachable<'_> {
    fn enters(&self, relative: &str, name: &str) -> bool {
        reaches(self.pattern, relative, name)
    }

    fn check(&self) -> Result<()> {
        self.cx.check()
    }
}
