//! Where haystacks come from: one file, or a walk that hands them out in batches.

use vfs_core::{Error, ErrorKind, GrepRequest, LinkMode, Problem, Result, VfsPath};

use crate::plan::Plan;
use crate::tree::{ChildKind, Located, Opened, Tree};
use crate::walk::{Directories, Entry, Found, Guide, Walk, WalkOptions, WalkReport};

/// Most entries of one batch. The first batches are smaller, so that the first results are there soon.
const LARGEST_BATCH: usize = 32;

/// A file that is to be searched.
#[derive(Debug)]
pub(crate) enum Haystack<D> {
    /// One that a walk came to.
    Walked(Entry<D>),
    /// One that the request names, whatever visibility, globs and types say.
    Named { dir: D, name: String, path: VfsPath },
}

impl<D> Haystack<D> {
    pub(crate) fn path(&self) -> Result<VfsPath> {
        match self {
            Haystack::Walked(entry) => entry.path(),
            Haystack::Named { path, .. } => Ok(path.clone()),
        }
    }

    pub(crate) fn open<T: Tree<Dir = D>>(&self, tree: &T) -> Result<Opened> {
        match self {
            Haystack::Walked(entry) => tree.open(&entry.place.dir, &entry.name, entry.kind),
            Haystack::Named { dir, name, .. } => tree.open(dir, name, ChildKind::File),
        }
    }
}

/// Some haystacks in order, with the problems between them.
#[derive(Debug)]
pub(crate) struct Batch<D> {
    pub(crate) parts: Vec<BatchPart<D>>,
    pub(crate) report: WalkReport,
    /// Whether nothing follows.
    pub(crate) is_last: bool,
}

impl<D> Batch<D> {
    /// The only batch of a search that wants nothing.
    pub(crate) fn nothing() -> Self {
        Self { parts: Vec::new(), report: WalkReport::default(), is_last: true }
    }
}

/// One part of a batch.
#[derive(Debug)]
pub(crate) enum BatchPart<D> {
    Haystack(Haystack<D>),
    Problem(Problem),
}

/// What is still to be searched.
#[derive(Debug)]
pub(crate) struct Source<D> {
    kind: SourceKind<D>,
    batch_size: usize,
}

#[derive(Debug)]
enum SourceKind<D> {
    File(Option<Haystack<D>>),
    Walk(Walk<D>),
}

impl<D: Clone + Send + Sync + 'static> Source<D> {
    /// Finds where `req` starts.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`], and what listing the directory gives.
    pub(crate) fn start<T: Tree<Dir = D>>(
        tree: &T,
        req: &GrepRequest,
        plan: &Plan,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Self> {
        let kind = match tree.locate(&req.path).map_err(|error| error.or_path(&req.path))? {
            Located::File { dir, name } => {
                SourceKind::File(Some(Haystack::Named { dir, name, path: req.path.clone() }))
            }
            Located::Directory(dir) => {
                let options = WalkOptions {
                    visibility: plan.visibility,
                    links: plan.links,
                    max_depth: None,
                    directories: Directories::OnlyEntered,
                };
                SourceKind::Walk(Walk::start(tree, &Filtered { plan, check }, dir, &req.path, options)?)
            }
        };
        Ok(Self { kind, batch_size: 1 })
    }

    /// The next haystacks.
    ///
    /// # Errors
    ///
    /// Only what `check` gives.
    pub(crate) fn next_batch<T: Tree<Dir = D>>(
        &mut self,
        tree: &T,
        plan: &Plan,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Batch<D>> {
        let walk = match &mut self.kind {
            SourceKind::File(file) => {
                let parts = file.take().map(BatchPart::Haystack).into_iter().collect();
                return Ok(Batch { parts, report: WalkReport::default(), is_last: true });
            }
            SourceKind::Walk(walk) => walk,
        };
        let size = self.batch_size;
        self.batch_size = (size * 2).min(LARGEST_BATCH);
        let guide = Filtered { plan, check };
        let mut parts = Vec::with_capacity(size);
        let mut links = 0;
        let mut is_last = false;
        while parts.len() < size {
            let entry = match walk.next(tree, &guide)? {
                None => {
                    is_last = true;
                    break;
                }
                Some(Found::Problem(problem)) => {
                    parts.push(BatchPart::Problem(problem));
                    continue;
                }
                Some(Found::Entry(entry)) => entry,
            };
            match judge(tree, plan, &entry) {
                Ok(Judgement::Search) => parts.push(BatchPart::Haystack(Haystack::Walked(entry))),
                Ok(Judgement::SkipLink) => links += 1,
                Ok(Judgement::Pass) => {}
                Err(error) => parts.push(BatchPart::Problem(entry.problem(error))),
            }
        }
        let mut report = walk.take_report();
        report.skipped.links += links;
        Ok(Batch { parts, report, is_last })
    }
}

/// What happens to an entry of a walk.
enum Judgement {
    Search,
    /// It is a link, and links are left out.
    SkipLink,
    /// It is none of this search's business.
    Pass,
}

fn judge<T: Tree>(tree: &T, plan: &Plan, entry: &Entry<T::Dir>) -> Result<Judgement> {
    let is_wanted = plan.filter.opens(entry.place.relative(), &entry.name);
    let kind = match entry.kind {
        ChildKind::Link => tree.follow(&entry.place.dir, &entry.name)?,
        kind => kind,
    };
    let is_left_out = entry.kind == ChildKind::Link && plan.links == LinkMode::Skip;
    match kind {
        ChildKind::File if is_wanted => Ok(if is_left_out { Judgement::SkipLink } else { Judgement::Search }),
        ChildKind::Directory if is_left_out => Ok(Judgement::SkipLink),
        ChildKind::Other if is_wanted => {
            Err(Error::new(ErrorKind::Unsupported, "it is a FIFO, socket or device, not a file"))
        }
        _ => Ok(Judgement::Pass),
    }
}

/// Goes down the directories that a search's filter can want something of.
struct Filtered<'a> {
    plan: &'a Plan,
    check: &'a dyn Fn() -> Result<()>,
}

impl Guide for Filtered<'_> {
    fn enters(&self, relative: &str, name: &str) -> bool {
        self.plan.filter.enters(relative, name)
    }

    fn check(&self) -> Result<()> {
        (self.check)()
    }
}
