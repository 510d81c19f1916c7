//! Sequential walk in path order, without recursion, and its policy for links out of the tree.
//!
//! A link into the searched tree is not followed, since its target is found under its own path. A directory outside of
//! the searched tree is entered once, under the smallest path that leads there. So a search enters each directory at
//! most once, however many links refer to one another.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use vfs_core::search::LinkMode;
use vfs_core::tree::{Directory, Tree};
use vfs_core::{Problem, Result, VfsPath};

use crate::walk::dir_entries::{DirEntries, WalkStep, WalkStepKind};
use crate::walk::dir_reader::{DirReader, SharedWalkState};
use crate::walk::walk_findings::WalkFindings;
use crate::walk::walk_options::{CHECK_EVERY, DirectoryYieldMode, WalkControl, WalkOptions};

/// One item of a walk.
#[derive(Debug)]
pub(crate) enum WalkItem {
    /// A visible entry.
    Entry(Arc<DirEntries>, WalkStep),
    /// An entry that could not be read.
    Problem(Problem),
}

/// A walk in progress.
#[derive(Debug)]
pub(crate) struct Walk {
    options: WalkOptions,
    state: SharedWalkState,
    frames: Vec<WalkFrame>,
    problems: VecDeque<Problem>,
    findings: WalkFindings,
    steps_taken: usize,
}

/// A directory with steps left.
#[derive(Debug)]
struct WalkFrame {
    entries: Arc<DirEntries>,
    next: usize,
}

impl Walk {
    /// Starts at the directory `dir` at `path`. The walk enters no directory once `max_entries` were listed.
    ///
    /// # Errors
    ///
    /// The errors of listing the directory.
    pub(crate) fn start(
        tree: &Arc<dyn Tree>,
        control: WalkControl<'_>,
        dir: Arc<dyn Directory>,
        path: &VfsPath,
        options: WalkOptions,
        max_entries: u64,
    ) -> Result<Self> {
        let mut findings = WalkFindings::default();
        let follow = (options.links == LinkMode::Follow).then(|| OutsideDirTracker::for_ordered_walk(tree, path));
        let state = SharedWalkState::new(follow, max_entries);
        let entries = DirReader { tree, control, options, state: &state }.start(dir, path, &mut findings)?;
        let frames = entries.map(WalkFrame::new).into_iter().collect();
        Ok(Self { options, state, frames, problems: VecDeque::new(), findings, steps_taken: 0 })
    }

    /// Returns the next entry or problem.
    ///
    /// # Errors
    ///
    /// Only the errors of the control's check.
    pub(crate) fn next(&mut self, tree: &Arc<dyn Tree>, control: WalkControl<'_>) -> Result<Option<WalkItem>> {
        loop {
            self.problems.extend(self.findings.problems.drain(..));
            if let Some(problem) = self.problems.pop_front() {
                return Ok(Some(WalkItem::Problem(problem)));
            }
            let Some(frame) = self.frames.last_mut() else {
                return Ok(None);
            };
            let entries = Arc::clone(&frame.entries);
            // Release the frame before its last step descends, so that a chain of single directories holds one of them
            // at a time.
            let index = frame.next;
            frame.next += 1;
            if frame.next >= entries.len() {
                self.frames.pop();
            }
            if index >= entries.len() {
                continue;
            }
            // Most entries may be irrelevant, so that the caller gets no opportunity to check the context.
            self.steps_taken = self.steps_taken.wrapping_add(1);
            if self.steps_taken.is_multiple_of(CHECK_EVERY) {
                control.check()?;
            }
            let step = entries.step(index);
            match step.kind {
                WalkStepKind::Entry => return Ok(Some(WalkItem::Entry(entries, step))),
                WalkStepKind::Problem(index) => return Ok(Some(WalkItem::Problem(entries.problem(index).clone()))),
                WalkStepKind::Descent => {
                    let reader = DirReader { tree, control, options: self.options, state: &self.state };
                    let below = reader.descend(&entries, step, &mut self.findings)?;
                    self.frames.extend(below.map(WalkFrame::new));
                }
            }
        }
    }

    /// Returns the path under which the walk entered the directory at `real`, which lies outside of the searched tree.
    pub(crate) fn recorded_path(&self, real: &VfsPath) -> Option<VfsPath> {
        self.state.follow.as_ref()?.recorded_path(real)
    }

    /// Returns whether directories were left out, since the last [`take_findings`](Self::take_findings), because too
    /// many entries were listed.
    pub(crate) fn is_cut(&self) -> bool {
        self.findings.too_many
    }

    /// Returns the findings since the last call.
    pub(crate) fn take_findings(&mut self) -> WalkFindings {
        std::mem::take(&mut self.findings)
    }
}

impl WalkFrame {
    fn new(entries: DirEntries) -> Self {
        Self { entries: Arc::new(entries), next: 0 }
    }
}

/// Decides which directories outside of the searched tree a walk enters through links.
#[derive(Debug)]
pub(crate) struct OutsideDirTracker {
    /// The real path of the searched tree.
    start: VfsPath,
    entry_paths: OutsideEntryPaths,
}

/// The path under which each directory outside of the searched tree is entered.
#[derive(Debug)]
enum OutsideEntryPaths {
    /// Entered paths by real path. A sequential walk reaches each directory by its smallest path first.
    Recorded(Mutex<HashMap<VfsPath, VfsPath>>),
    /// A parallel walk consults a sequential one with the same limit on entries. The sequential walk starts when the
    /// first link leads outside, and advances only as far as the workers need.
    Planned { path: VfsPath, max_entries: u64, walk: Mutex<Option<Box<Walk>>> },
}

/// Whether the walk enters a directory outside of the searched tree under a given path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutsideEntryDecision {
    Yes,
    No,
    /// Too many entries precede the directory to determine whether the walk enters it.
    TooMany,
}

impl OutsideDirTracker {
    /// Creates the policy of a sequential walk from `path` down.
    pub(crate) fn for_ordered_walk(tree: &Arc<dyn Tree>, path: &VfsPath) -> Self {
        Self { start: real_path(tree, path), entry_paths: OutsideEntryPaths::Recorded(Mutex::default()) }
    }

    /// Creates the policy of a walk from `path` down that enters directories in any order. About `max_entries` entries
    /// are listed to put them in order.
    pub(crate) fn for_parallel_walk(tree: &Arc<dyn Tree>, path: &VfsPath, max_entries: u64) -> Self {
        let entry_paths = OutsideEntryPaths::Planned { path: path.clone(), max_entries, walk: Mutex::default() };
        Self { start: real_path(tree, path), entry_paths }
    }

    /// Returns whether the directory at `real` belongs to the searched tree.
    pub(crate) fn is_within(&self, real: &VfsPath) -> bool {
        real.starts_with(&self.start)
    }

    /// Returns whether the walk enters the directory at `real`, which lies outside of the searched tree, under `path`.
    ///
    /// # Errors
    ///
    /// The errors of the control's check, and of starting the sequential walk that decides for a parallel one.
    pub(crate) fn should_enter(
        &self,
        real: &VfsPath,
        path: &VfsPath,
        tree: &Arc<dyn Tree>,
        control: WalkControl<'_>,
        options: WalkOptions,
    ) -> Result<OutsideEntryDecision> {
        let is_first = match &self.entry_paths {
            OutsideEntryPaths::Recorded(paths) => {
                let mut paths = paths.lock().unwrap_or_else(PoisonError::into_inner);
                paths.entry(real.clone()).or_insert_with(|| path.clone()) == path
            }
            OutsideEntryPaths::Planned { path: start, max_entries, walk } => {
                let mut walk = walk.lock().unwrap_or_else(PoisonError::into_inner);
                let walk = match &mut *walk {
                    Some(walk) => walk,
                    none => none.insert(Box::new(start_ordered_walk(tree, control, start, options, *max_entries)?)),
                };
                // A sequential walk reaches the directory by the smallest path that leads there.
                while walk.recorded_path(real).is_none() && walk.next(tree, control)?.is_some() {}
                match walk.recorded_path(real) {
                    Some(first) => first == *path,
                    None if walk.is_cut() => return Ok(OutsideEntryDecision::TooMany),
                    None => false,
                }
            }
        };
        Ok(if is_first { OutsideEntryDecision::Yes } else { OutsideEntryDecision::No })
    }

    /// Returns the path under which a sequential walk entered the directory at `real`.
    pub(crate) fn recorded_path(&self, real: &VfsPath) -> Option<VfsPath> {
        match &self.entry_paths {
            OutsideEntryPaths::Recorded(paths) => {
                paths.lock().unwrap_or_else(PoisonError::into_inner).get(real).cloned()
            }
            OutsideEntryPaths::Planned { .. } => None,
        }
    }
}

/// Starts a sequential walk of all directories from `start` down.
fn start_ordered_walk(
    tree: &Arc<dyn Tree>,
    control: WalkControl<'_>,
    start: &VfsPath,
    options: WalkOptions,
    max_entries: u64,
) -> Result<Walk> {
    let dir = Arc::clone(tree).lookup(start)?.into_dir(start)?;
    let options = WalkOptions { directories: DirectoryYieldMode::OnlyEntered, ..options };
    Walk::start(tree, control, dir, start, options, max_entries)
}

/// Returns the real location of `path`, or `path` itself if it cannot be resolved: links to entries below `path` then
/// count as leading outside, and are followed once.
fn real_path(tree: &Arc<dyn Tree>, path: &VfsPath) -> VfsPath {
    let (Some(parent), Some(name)) = (path.parent(), path.name()) else { return path.clone() };
    match tree.find_dir(&parent) {
        Ok(Some(dir)) => dir.resolve(name).map_or_else(|_| path.clone(), |resolved| resolved.path),
        _ => path.clone(),
    }
}

#[cfg(test)]
mod tests {
    use vfs_core::search::LinkMode;

    use super::*;
    use crate::testing::{TestNode, TestTree, path};
    use crate::walk::testing::{EVERYWHERE, OPTIONS};
    use crate::walk::walk_options::MAX_ENTRIES;

    #[test]
    fn the_smallest_path_is_planned_unless_too_many_entries_lie_before() {
        let link = TestNode::Link("/far");
        let tree = TestTree::new([("/s/a/file", ""), ("/s/b/file", ""), ("/far/file", "")]);
        let tree: Arc<dyn Tree> = Arc::new(tree.with("/s/y/link", link.clone()).with("/s/z/link", link));
        let options = WalkOptions { links: LinkMode::Follow, ..OPTIONS };
        for (max_entries, expected) in [
            (MAX_ENTRIES, [OutsideEntryDecision::No, OutsideEntryDecision::Yes]),
            (7, [OutsideEntryDecision::No, OutsideEntryDecision::Yes]),
            (6, [OutsideEntryDecision::TooMany, OutsideEntryDecision::TooMany]),
            (0, [OutsideEntryDecision::TooMany, OutsideEntryDecision::TooMany]),
        ] {
            let follow = OutsideDirTracker::for_parallel_walk(&tree, &path("/s"), max_entries);
            let enters = |at: &str| follow.should_enter(&path("/far"), &path(at), &tree, EVERYWHERE, options);
            let entered = ["/s/z/link", "/s/y/link"].map(|at| enters(at).expect("it goes on"));
            assert_eq!(entered, expected, "{max_entries}");
        }
    }
}
