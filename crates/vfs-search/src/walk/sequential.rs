//! An ordered walk: entries by the bytes of their full paths, without recursion; and the directories that a walk enters
//! through links.
//!
//! A link into the searched tree is not followed: what it leads to is found under its own path. A directory outside of
//! the searched tree is entered once, under the smallest path that leads there. So a search enters each directory at most
//! once, however many links lead to one another.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use vfs_core::tree::{Located, Tree};
use vfs_core::{Error, ErrorKind, LinkMode, Problem, Result, VfsPath};

use crate::glob::Shown;
use crate::walk::dir_entries::{Findings, Level, Stage, Step};
use crate::walk::dir_reader::{Opener, WalkState};
use crate::walk::options::{CHECK_EVERY, Directories, Guide, WalkOptions};

/// One step of a walk.
#[derive(Debug)]
pub(crate) enum Found<D> {
    /// An entry that is shown.
    Entry(Arc<Level<D>>, Step),
    /// One that could not be.
    Problem(Problem),
}

/// A walk in progress.
#[derive(Debug)]
pub(crate) struct Walk<D> {
    options: WalkOptions,
    state: WalkState<D>,
    frames: Vec<Frame<D>>,
    problems: VecDeque<Problem>,
    findings: Findings,
    steps_taken: usize,
}

/// A directory whose steps are not all done yet.
#[derive(Debug)]
struct Frame<D> {
    level: Arc<Level<D>>,
    next: usize,
}

impl<D: Clone + Send + Sync + 'static> Walk<D> {
    /// Begins at the directory `dir` at `path`; enters no directory once `max_entries` were listed.
    ///
    /// # Errors
    ///
    /// What listing that directory gives.
    pub(crate) fn start<T: Tree<Dir = D>>(
        tree: &T,
        guide: &dyn Guide,
        dir: D,
        path: &VfsPath,
        options: WalkOptions,
        max_entries: u64,
    ) -> Result<Self> {
        let mut findings = Findings::default();
        let follow = (options.links == LinkMode::Follow).then(|| Follow::ordered(tree, path));
        let state = WalkState::new(follow, max_entries);
        let level = Opener { tree, guide, options, state: &state }.start(dir, path, &mut findings)?;
        let frames = level.map(Frame::new).into_iter().collect();
        Ok(Self { options, state, frames, problems: VecDeque::new(), findings, steps_taken: 0 })
    }

    /// The next entry or problem.
    ///
    /// # Errors
    ///
    /// Only what the guide's check gives.
    pub(crate) fn next<T: Tree<Dir = D>>(&mut self, tree: &T, guide: &dyn Guide) -> Result<Option<Found<D>>> {
        loop {
            self.problems.extend(self.findings.problems.drain(..));
            if let Some(problem) = self.problems.pop_front() {
                return Ok(Some(Found::Problem(problem)));
            }
            let Some(frame) = self.frames.last_mut() else {
                return Ok(None);
            };
            let level = Arc::clone(&frame.level);
            // Given up before going down, so that a chain of single directories holds one of them at a time.
            let index = frame.next;
            frame.next += 1;
            if frame.next >= level.len() {
                self.frames.pop();
            }
            if index >= level.len() {
                continue;
            }
            // Most entries may be of no interest, so that the caller has no occasion to look.
            self.steps_taken = self.steps_taken.wrapping_add(1);
            if self.steps_taken.is_multiple_of(CHECK_EVERY) {
                guide.check()?;
            }
            let step = level.step(index);
            match step.stage {
                Stage::Entry => return Ok(Some(Found::Entry(level, step))),
                Stage::Problem(index) => return Ok(Some(Found::Problem(level.problem(index).clone()))),
                Stage::Descent => {
                    let opener = Opener { tree, guide, options: self.options, state: &self.state };
                    let below = opener.descend(&level, step, &mut self.findings)?;
                    self.frames.extend(below.map(Frame::new));
                }
            }
        }
    }

    /// The path under which the directory at `real`, which is outside of the searched tree, was entered.
    pub(crate) fn recorded(&self, real: &VfsPath) -> Option<VfsPath> {
        self.state.follow.as_ref()?.recorded(real)
    }

    /// Whether directories were left out, since the last [`take_findings`](Self::take_findings), because too many entries were
    /// listed.
    pub(crate) fn is_cut(&self) -> bool {
        self.findings.too_many
    }

    /// What was left out since the last call.
    pub(crate) fn take_findings(&mut self) -> Findings {
        std::mem::take(&mut self.findings)
    }
}

impl<D> Frame<D> {
    fn new(level: Level<D>) -> Self {
        Self { level: Arc::new(level), next: 0 }
    }
}

/// Decides where the walk of a search that follows links goes outside of the searched tree.
pub(crate) struct Follow<D> {
    /// Where the searched tree really begins.
    start: VfsPath,
    entries: Entries<D>,
}

/// The path under which each directory outside of the searched tree is entered.
enum Entries<D> {
    /// By where the directory really is. An ordered walk comes to each directory by its smallest path first.
    Recorded(Mutex<HashMap<VfsPath, VfsPath>>),
    /// A walk by several workers asks an ordered one of as many entries, which begins when the first link leads outside and
    /// goes only as far as the others have asked.
    Planned { path: VfsPath, max_entries: u64, walk: Mutex<Option<Box<Walk<D>>>> },
}

/// Whether a directory outside of the searched tree is entered under a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entering {
    Yes,
    No,
    /// That was not found out before too many entries were listed.
    TooMany,
}

impl<D: Clone + Send + Sync + 'static> Follow<D> {
    /// For an ordered walk from `path` down.
    pub(crate) fn ordered<T: Tree<Dir = D>>(tree: &T, path: &VfsPath) -> Self {
        Self { start: real_path(tree, path), entries: Entries::Recorded(Mutex::default()) }
    }

    /// For a walk from `path` down whose directories are entered in any order; about `max_entries` are listed to put them in
    /// order.
    pub(crate) fn parallel<T: Tree<Dir = D>>(tree: &T, path: &VfsPath, max_entries: u64) -> Self {
        let entries = Entries::Planned { path: path.clone(), max_entries, walk: Mutex::default() };
        Self { start: real_path(tree, path), entries }
    }

    /// Whether the directory at `real` belongs to the searched tree.
    pub(crate) fn is_within(&self, real: &VfsPath) -> bool {
        real.starts_with(&self.start)
    }

    /// Whether the directory at `real`, which is outside of the searched tree, is entered under `path`.
    ///
    /// # Errors
    ///
    /// What ends the search meanwhile.
    pub(crate) fn enters<T: Tree<Dir = D>>(
        &self,
        real: &VfsPath,
        path: &VfsPath,
        tree: &T,
        guide: &dyn Guide,
        options: WalkOptions,
    ) -> Result<Entering> {
        let is_first = match &self.entries {
            Entries::Recorded(paths) => {
                let mut paths = paths.lock().unwrap_or_else(PoisonError::into_inner);
                paths.entry(real.clone()).or_insert_with(|| path.clone()) == path
            }
            Entries::Planned { path: start, max_entries, walk } => {
                let (guide, mut walk) = (Planning(guide), walk.lock().unwrap_or_else(PoisonError::into_inner));
                let walk = match &mut *walk {
                    Some(walk) => walk,
                    none => none.insert(Box::new(begin(tree, &guide, start, options, *max_entries)?)),
                };
                // Once the directory is come by, so are all smaller paths that lead there.
                while walk.recorded(real).is_none() && walk.next(tree, &guide)?.is_some() {}
                match walk.recorded(real) {
                    Some(first) => first == *path,
                    None if walk.is_cut() => return Ok(Entering::TooMany),
                    None => false,
                }
            }
        };
        Ok(if is_first { Entering::Yes } else { Entering::No })
    }

    /// The path under which an ordered walk has entered the directory at `real`.
    pub(crate) fn recorded(&self, real: &VfsPath) -> Option<VfsPath> {
        match &self.entries {
            Entries::Recorded(paths) => paths.lock().unwrap_or_else(PoisonError::into_inner).get(real).cloned(),
            Entries::Planned { .. } => None,
        }
    }
}

impl<D> fmt::Debug for Follow<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follow").field("start", &self.start).finish_non_exhaustive()
    }
}

/// Begins to walk all directories from `start` down in order.
fn begin<T: Tree>(
    tree: &T,
    guide: &dyn Guide,
    start: &VfsPath,
    options: WalkOptions,
    max_entries: u64,
) -> Result<Walk<T::Dir>> {
    let Located::Directory(dir) = tree.locate(start)? else {
        return Err(Error::at(ErrorKind::NotADirectory, start));
    };
    let options = WalkOptions { directories: Directories::OnlyEntered, ..options };
    Walk::start(tree, guide, dir, start, options, max_entries)
}

/// Steers the ordered walk beside another, which it holds up.
struct Planning<'a>(&'a dyn Guide);

impl Guide for Planning<'_> {
    fn enters(&self, relative: &str, name: &str) -> bool {
        self.0.enters(relative, name)
    }

    fn names(&self, relative: &str) -> Option<Vec<String>> {
        self.0.names(relative)
    }

    fn asks_dotted(&self, relative: &str, name: &str) -> Shown {
        self.0.asks_dotted(relative, name)
    }

    fn check(&self) -> Result<()> {
        self.0.check_aside()
    }
}

/// Returns `path` without links; `path` itself where that is not known, so that links to what is below it count as leading
/// outside, and are followed once.
fn real_path<T: Tree>(tree: &T, path: &VfsPath) -> VfsPath {
    let (Some(parent), Some(name)) = (path.parent(), path.name()) else { return path.clone() };
    match tree.locate(&parent) {
        Ok(Located::Directory(dir)) => tree.resolve(&dir, name).map_or_else(|_| path.clone(), |resolved| resolved.path),
        _ => path.clone(),
    }
}

#[cfg(test)]
mod tests {
    use vfs_core::LinkMode;

    use super::*;
    use crate::testing::{Node, TestTree, path};
    use crate::walk::options::MAX_ENTRIES;
    use crate::walk::testing::{EVERYWHERE, OPTIONS};

    #[test]
    fn the_smallest_path_is_planned_unless_too_many_entries_lie_before() {
        let link = Node::Link("/far");
        let tree = TestTree::new([("/s/a/file", ""), ("/s/b/file", ""), ("/far/file", "")]);
        let tree = tree.with("/s/y/link", link.clone()).with("/s/z/link", link);
        let options = WalkOptions { links: LinkMode::Follow, ..OPTIONS };
        for (max_entries, expected) in [
            (MAX_ENTRIES, [Entering::No, Entering::Yes]),
            (7, [Entering::No, Entering::Yes]),
            (6, [Entering::TooMany, Entering::TooMany]),
            (0, [Entering::TooMany, Entering::TooMany]),
        ] {
            let follow = Follow::parallel(&tree, &path("/s"), max_entries);
            let enters = |at: &str| follow.enters(&path("/far"), &path(at), &tree, &EVERYWHERE, options);
            let entered = ["/s/z/link", "/s/y/link"].map(|at| enters(at).expect("it goes on"));
            assert_eq!(entered, expected, "{max_entries}");
        }
    }
}
