//! An ordered walk: entries by the bytes of their full paths, without recursion.

use std::collections::VecDeque;
use std::sync::Arc;

use vfs_core::{Error, ErrorKind, LinkMode, Problem, Result, Skipped, VfsPath};

use crate::ignore_rules::IgnoreRules;
use crate::tree::{Child, ChildKind, Tree};
use crate::visibility::Visibility;

/// Entries that are looked at between two looks at the context.
const CHECK_EVERY: usize = 256;

/// How a walk goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WalkOptions {
    pub(crate) visibility: Visibility,
    pub(crate) links: LinkMode,
    /// How many levels; `None` for all.
    pub(crate) max_depth: Option<u32>,
    /// Whether directories are entries of their own.
    pub(crate) directories: Directories,
}

/// Whether a walk yields directories beside going down them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Directories {
    Yielded,
    OnlyEntered,
}

/// What steers a walk, and stops it.
pub(crate) trait Guide {
    /// Whether to go down the directory `name` of the directory `relative` (to where the walk started).
    fn enters(&self, relative: &str, name: &str) -> bool;

    /// Whether to go on.
    fn check(&self) -> Result<()>;
}

/// A directory that a walk is in.
#[derive(Debug)]
pub(crate) struct Place<D> {
    pub(crate) dir: D,
    pub(crate) path: VfsPath,
    /// Where in `path` the part below the start of the walk begins.
    start: usize,
    depth: u32,
    rules: IgnoreRules,
    above: Option<Arc<Above>>,
}

/// The identities of a directory and of those above it, for the loop guard.
#[derive(Debug)]
struct Above {
    identity: (u64, u64),
    above: Option<Arc<Above>>,
}

impl<D> Place<D> {
    /// The path relative to where the walk started.
    pub(crate) fn relative(&self) -> &str {
        self.path.as_str().get(self.start..).unwrap_or_default()
    }
}

/// One step of a walk.
#[derive(Debug)]
pub(crate) enum Found<D> {
    /// An entry that is shown.
    Entry(Entry<D>),
    /// One that could not be.
    Problem(Problem),
}

/// An entry: its directory, name and kind. The path is made where it is needed.
#[derive(Debug)]
pub(crate) struct Entry<D> {
    pub(crate) place: Arc<Place<D>>,
    pub(crate) name: String,
    pub(crate) kind: ChildKind,
}

impl<D> Entry<D> {
    pub(crate) fn path(&self) -> Result<VfsPath> {
        self.place.path.child(&self.name)
    }

    /// A problem with this entry.
    pub(crate) fn problem(&self, error: Error) -> Problem {
        problem_at(&self.place.path, &self.name, error)
    }
}

/// What a walk left out since it was last asked.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WalkReport {
    pub(crate) skipped: Skipped,
    /// Whether something lies deeper than the depth limit, or than a path can name.
    pub(crate) too_deep: bool,
}

/// A walk in progress.
#[derive(Debug)]
pub(crate) struct Walk<D> {
    options: WalkOptions,
    frames: Vec<Frame<D>>,
    problems: VecDeque<Problem>,
    report: WalkReport,
    steps_taken: usize,
}

/// A directory whose entries are not all done yet.
#[derive(Debug)]
struct Frame<D> {
    place: Arc<Place<D>>,
    children: Vec<Child>,
    steps: std::vec::IntoIter<Step>,
}

/// A directory is two steps: its entry, sorted by `name`, and what is below it, sorted by `name/`.
#[derive(Debug, Clone, Copy)]
struct Step {
    child: usize,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Entry,
    Descent,
}

impl<D: Clone + Send + Sync + 'static> Walk<D> {
    /// Begins at the directory `dir` at `path`.
    ///
    /// # Errors
    ///
    /// What listing that directory gives: everywhere below an error is a problem, but this is the directory asked for.
    pub(crate) fn start<T: Tree<Dir = D>>(
        tree: &T,
        guide: &dyn Guide,
        dir: D,
        path: &VfsPath,
        options: WalkOptions,
    ) -> Result<Self> {
        let mut walk = Self {
            options,
            frames: Vec::new(),
            problems: VecDeque::new(),
            report: WalkReport::default(),
            steps_taken: 0,
        };
        let mut problems = Vec::new();
        let rules = options.visibility.rules_above(tree, path, &mut problems);
        walk.problems.extend(problems);
        if options.max_depth == Some(0) {
            walk.report.too_deep = !tree.list(&dir).map_err(|error| error.with_path(path))?.children.is_empty();
            return Ok(walk);
        }
        let above = walk.guard(tree, &dir, None)?;
        let start = if path.is_root() { 1 } else { path.as_str().len() + 1 };
        walk.open(tree, guide, Place { dir, path: path.clone(), start, depth: 1, rules, above })?;
        Ok(walk)
    }

    /// The next entry or problem.
    ///
    /// # Errors
    ///
    /// Only what the guide's check gives.
    pub(crate) fn next<T: Tree<Dir = D>>(&mut self, tree: &T, guide: &dyn Guide) -> Result<Option<Found<D>>> {
        loop {
            if let Some(problem) = self.problems.pop_front() {
                return Ok(Some(Found::Problem(problem)));
            }
            let Some(frame) = self.frames.last_mut() else {
                return Ok(None);
            };
            let Some(step) = frame.steps.next() else {
                self.frames.pop();
                continue;
            };
            // Most entries may be of no interest, so that the caller has no occasion to look.
            self.steps_taken = self.steps_taken.wrapping_add(1);
            if self.steps_taken.is_multiple_of(CHECK_EVERY) {
                guide.check()?;
            }
            let place = Arc::clone(&frame.place);
            let child = &mut frame.children[step.child];
            if step.stage == Stage::Entry {
                let is_last = child.kind != ChildKind::Directory && child.kind != ChildKind::Link;
                let name = if is_last { std::mem::take(&mut child.name) } else { child.name.clone() };
                return Ok(Some(Found::Entry(Entry { place, name, kind: child.kind })));
            }
            let child = Child { name: std::mem::take(&mut child.name), kind: child.kind };
            // Given up before going down, so that a chain of single directories holds one of them at a time.
            if frame.steps.len() == 0 {
                self.frames.pop();
            }
            guide.check()?;
            if let Err(error) = self.descend(tree, guide, &place, &child) {
                guide.check()?;
                self.problems.push_back(problem_at(&place.path, &child.name, error));
            }
        }
    }

    /// What was left out since the last call.
    pub(crate) fn take_report(&mut self) -> WalkReport {
        std::mem::take(&mut self.report)
    }

    fn descend<T: Tree<Dir = D>>(
        &mut self,
        tree: &T,
        guide: &dyn Guide,
        place: &Place<D>,
        child: &Child,
    ) -> Result<()> {
        if !guide.enters(place.relative(), &child.name) {
            return Ok(());
        }
        // What a link leads to, and whether it can be followed, was told with its entry.
        if child.kind == ChildKind::Link && !matches!(tree.follow(&place.dir, &child.name), Ok(ChildKind::Directory)) {
            return Ok(());
        }
        let path = place.path.child(&child.name)?;
        let is_border = self.options.max_depth.is_some_and(|max| place.depth >= max);
        if is_border && self.report.too_deep {
            return Ok(());
        }
        let dir = tree.enter(&place.dir, &child.name, &path)?;
        if is_border {
            self.report.too_deep = !tree.list(&dir)?.children.is_empty();
            return Ok(());
        }
        let above = self.guard(tree, &dir, place.above.as_ref())?;
        let below = Place { dir, path, start: place.start, depth: place.depth + 1, rules: place.rules.clone(), above };
        self.open(tree, guide, below)
    }

    /// Refuses a directory that is one of those above it; only links can make one so.
    fn guard<T: Tree<Dir = D>>(&self, tree: &T, dir: &D, above: Option<&Arc<Above>>) -> Result<Option<Arc<Above>>> {
        if self.options.links != LinkMode::Follow {
            return Ok(None);
        }
        let Some(identity) = tree.identity(dir) else {
            return Ok(above.map(Arc::clone));
        };
        let mut next = above;
        while let Some(ancestor) = next {
            if ancestor.identity == identity {
                return Err(Error::new(ErrorKind::InvalidPath, "a link leads back to a directory above it"));
            }
            next = ancestor.above.as_ref();
        }
        Ok(Some(Arc::new(Above { identity, above: above.map(Arc::clone) })))
    }

    /// Lists a directory and puts its steps in order.
    fn open<T: Tree<Dir = D>>(&mut self, tree: &T, guide: &dyn Guide, mut place: Place<D>) -> Result<()> {
        let listing = tree.list(&place.dir).map_err(|error| error.with_path(&place.path))?;
        self.problems.extend(listing.problems.into_iter().map(|problem| locate_problem(&place.path, problem)));
        let mut children = listing.children;
        let mut problems = Vec::new();
        let visibility = self.options.visibility;
        place.rules = visibility.rules_in(tree, &place.rules, &place.dir, &place.path, &children, &mut problems);
        self.problems.extend(problems);
        let mut looked_at = 0_usize;
        let mut stopped = None;
        children.retain(|child| {
            looked_at += 1;
            if looked_at.is_multiple_of(CHECK_EVERY) && stopped.is_none() {
                stopped = guide.check().err();
            }
            stopped.is_none()
                && visibility.shows(&place.rules, &place.path, child, &mut self.report.skipped)
                && self.can_be_named(&place.path, child)
        });
        if let Some(error) = stopped {
            return Err(error);
        }
        let steps = self.steps(&children);
        self.frames.push(Frame { place: Arc::new(place), children, steps: steps.into_iter() });
        Ok(())
    }

    /// Whether `child` has a path; makes it a problem where it has none.
    fn can_be_named(&mut self, path: &VfsPath, child: &Child) -> bool {
        let name = child.name.as_str();
        let length = path.as_str().len() + 1 + name.len();
        let is_plain = name.len() <= VfsPath::MAX_COMPONENT && !name.starts_with('.') && !name.contains('\\');
        if is_plain && !name.is_empty() && length <= VfsPath::MAX_LEN {
            return true;
        }
        match path.child(name) {
            Ok(_) => true,
            Err(error) => {
                self.report.too_deep |= length > VfsPath::MAX_LEN;
                self.problems.push_back(problem_at(path, name, error));
                false
            }
        }
    }

    fn steps(&self, children: &[Child]) -> Vec<Step> {
        let mut steps = Vec::with_capacity(children.len());
        for (index, child) in children.iter().enumerate() {
            let descends = match child.kind {
                ChildKind::Directory => true,
                ChildKind::Link => self.options.links == LinkMode::Follow,
                ChildKind::File | ChildKind::Other => false,
            };
            if child.kind != ChildKind::Directory || self.options.directories == Directories::Yielded {
                steps.push(Step { child: index, stage: Stage::Entry });
            }
            if descends {
                steps.push(Step { child: index, stage: Stage::Descent });
            }
        }
        steps.sort_unstable_by(|a, b| key(children, a).cmp(key(children, b)));
        steps
    }
}

fn key<'a>(children: &'a [Child], step: &Step) -> impl Iterator<Item = u8> + 'a {
    let slash = (step.stage == Stage::Descent).then_some(b'/');
    children[step.child].name.bytes().chain(slash)
}

fn problem_at(path: &VfsPath, name: &str, error: Error) -> Problem {
    let path = format!("{}/{name}", path.as_str().trim_end_matches('/'));
    Problem::new(path.as_str(), &error.with_path_text(&path))
}

/// A listing's problem, which may name the entry alone.
fn locate_problem(path: &VfsPath, mut problem: Problem) -> Problem {
    if !problem.path.starts_with('/') {
        problem.path = format!("{}/{}", path.as_str().trim_end_matches('/'), problem.path);
    }
    problem
}
