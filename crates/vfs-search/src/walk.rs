//! An ordered walk: entries by the bytes of their full paths, without recursion.

use std::collections::VecDeque;
use std::sync::Arc;

use vfs_core::{LinkMode, Problem, Result, VfsPath};

use crate::follow::Follow;
use crate::level::{CHECK_EVERY, Findings, Guide, Level, Opener, Stage, Step, WalkOptions, WalkState};
use vfs_core::tree::Tree;

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
