//! Where haystacks come from: one file, or a walk that hands them out in batches.

use std::sync::Arc;

use vfs_core::{Error, ErrorKind, GrepRequest, LinkMode, Problem, Result, VfsPath};

use crate::plan::Plan;
use crate::tree::{ChildKind, Located, Opened, Tree};
use crate::walk::{Directories, Entry, Found, Guide, Walk, WalkOptions, WalkReport};

/// Most entries of one batch. The first batches are smaller, so that the first results are there soon.
const LARGEST_BATCH: usize = 32;

/// Most directories that the files of one batch are in: each is held, on a disk by a descriptor, until they are searched.
const MOST_DIRECTORIES: usize = 8;

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
        let mut directories = 0;
        let mut last: Option<*const _> = None;
        while parts.len() < size && directories < MOST_DIRECTORIES {
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
                Ok(Judgement::Search) => {
                    let place = Arc::as_ptr(&entry.place);
                    directories += usize::from(last.replace(place) != Some(place));
                    parts.push(BatchPart::Haystack(Haystack::Walked(entry)));
                }
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
    let is_left_out = entry.kind == ChildKind::Link && plan.links == LinkMode::Skip;
    if !is_wanted && !is_left_out {
        return Ok(Judgement::Pass);
    }
    let kind = match entry.kind {
        ChildKind::Link => match tree.follow(&entry.place.dir, &entry.name) {
            Ok(kind) => kind,
            // It was followed only to see whether a directory is left out here, and it leads to none.
            Err(_) if !is_wanted => return Ok(Judgement::Pass),
            Err(error) => return Err(error),
        },
        kind => kind,
    };
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::testing::{Node, TestTree};

    fn batches(tree: &TestTree, req: &GrepRequest, check: &dyn Fn() -> Result<()>) -> Vec<Batch<String>> {
        let plan = Plan::new(req).expect("a valid request");
        let mut source = Source::start(tree, req, &plan, check).expect("it starts");
        let mut batches: Vec<Batch<String>> = Vec::new();
        while batches.last().is_none_or(|batch| !batch.is_last) {
            batches.push(source.next_batch(tree, &plan, check).expect("it goes on"));
        }
        batches
    }

    #[test]
    fn a_batch_holds_few_directories() {
        let paths: Vec<_> = (0..100).map(|n| format!("/d{n:03}/f")).collect();
        let tree = TestTree::new(paths.iter().map(|path| (path.as_str(), "")));
        let sizes: Vec<_> =
            batches(&tree, &GrepRequest::literal("x"), &|| Ok(())).iter().map(|batch| batch.parts.len()).collect();
        assert_eq!(sizes.iter().sum::<usize>(), 100);
        assert_eq!(sizes.iter().max(), Some(&MOST_DIRECTORIES));
    }

    #[test]
    fn a_batch_of_one_directory_is_large() {
        let paths: Vec<_> = (0..100).map(|n| format!("/d/f{n:03}")).collect();
        let tree = TestTree::new(paths.iter().map(|path| (path.as_str(), "")));
        let all = batches(&tree, &GrepRequest::literal("x"), &|| Ok(()));
        assert_eq!(all.iter().map(|batch| batch.parts.len()).max(), Some(LARGEST_BATCH));
    }

    #[test]
    fn a_long_run_of_unwanted_entries_is_interrupted() {
        let paths: Vec<_> = (0..5000).map(|n| format!("/f{n:04}.txt")).collect();
        let tree = TestTree::new(paths.iter().map(|path| (path.as_str(), "")));
        let req = GrepRequest::literal("x").glob("*.rs");
        let plan = Plan::new(&req).expect("a valid request");
        let mut source = Source::start(&tree, &req, &plan, &|| Ok(())).expect("it starts");
        let looks = Cell::new(0);
        let check = || {
            looks.set(looks.get() + 1);
            if looks.get() > 3 { Err(Error::new(ErrorKind::Cancelled, "enough")) } else { Ok(()) }
        };
        let error = source.next_batch(&tree, &plan, &check).expect_err("interrupted");
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_no_problem_where_its_name_is_not_wanted() {
        for links in [LinkMode::Skip, LinkMode::Follow] {
            let tree = TestTree::new([("/a.rs", "")]).with("/foo.txt", Node::Link("/nothing"));
            let mut req = GrepRequest::literal("x");
            req.links = links;
            let problems = |req: &GrepRequest| {
                let all = batches(&tree, req, &|| Ok(()));
                let parts = all.iter().flat_map(|batch| &batch.parts);
                parts.filter(|part| matches!(part, BatchPart::Problem(_))).count()
            };
            assert_eq!(problems(&req), 1, "{links:?}");
            assert_eq!(problems(&req.clone().glob("*.rs")), 0, "{links:?}");
        }
    }
}
