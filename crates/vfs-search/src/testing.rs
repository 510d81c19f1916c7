//! Tree for tests, and runners that execute a search in every configuration.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::StreamExt as _;
use futures::executor::block_on;
use vfs_core::search::GrepSummary;
use vfs_core::tree::{ChildKind, Directory, Listing, LookupResult, SearchableContent, Sketch, Tree};
use vfs_core::{
    Error, ErrorKind, FileInfo, GlobRequest, GlobResult, GrepEvent, GrepRequest, OpContext, Problem, ResolveResult,
    Result, Version, VfsPath,
};

use crate::engine::ordered_task_queue::RunAheadLimits;
use crate::engine::pool::Pool;
use crate::ops::grep_stream::GrepEventStream;
use crate::{glob, glob_on};

/// The content of a path. A directory exists if something lies below it.
#[derive(Debug, Clone)]
pub(crate) enum TestNode {
    File(Bytes),
    /// A link to this absolute path; a relative one leads outside.
    Link(&'static str),
    Fifo,
    /// A file that cannot be opened.
    Locked,
    /// A directory that cannot be listed.
    LockedDirectory,
    Directory,
}

/// The form in which files are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TestContentSource {
    Bytes,
    /// Through a reader that returns at most this many bytes at a time.
    Reader(usize),
}

/// A function that a test tree calls with the path that is opened or listed.
type Hook = Box<dyn Fn(&str) + Send + Sync>;

/// A tree in a map that records the calls it receives.
pub(crate) struct TestTree {
    nodes: BTreeMap<String, TestNode>,
    lend: TestContentSource,
    pub(crate) listed: Mutex<Vec<String>>,
    pub(crate) opened: Mutex<Vec<String>>,
    pub(crate) on_open: Option<Hook>,
    on_list: Option<Hook>,
    lists_twice: bool,
    /// The sketches that searches built, if the tree caches them.
    cached_sketches: Option<Arc<Mutex<BTreeMap<String, Sketch>>>>,
    /// Number of links that were followed to determine their targets.
    pub(crate) follows: Arc<AtomicUsize>,
    /// Number of readers that were read to their end.
    pub(crate) exhausted: Arc<AtomicUsize>,
}

impl TestTree {
    pub(crate) fn new<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self::of(files.into_iter().map(|(path, text)| (path, TestNode::File(Bytes::copy_from_slice(text.as_bytes())))))
    }

    pub(crate) fn of<'a>(nodes: impl IntoIterator<Item = (&'a str, TestNode)>) -> Self {
        let nodes = nodes.into_iter().map(|(path, node)| (path.to_owned(), node)).collect();
        Self {
            nodes,
            lend: TestContentSource::Bytes,
            listed: Mutex::default(),
            opened: Mutex::default(),
            on_open: None,
            on_list: None,
            lists_twice: false,
            cached_sketches: None,
            follows: Arc::default(),
            exhausted: Arc::default(),
        }
    }

    /// Returns the same tree, with every name twice in a listing.
    pub(crate) fn listing_twice(mut self) -> Self {
        self.lists_twice = true;
        self
    }

    pub(crate) fn with(mut self, path: &str, node: TestNode) -> Self {
        self.nodes.insert(path.to_owned(), node);
        self
    }

    pub(crate) fn lend(mut self, lend: TestContentSource) -> Self {
        self.lend = lend;
        self
    }

    pub(crate) fn on_open(mut self, hook: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_open = Some(Box::new(hook));
        self
    }

    pub(crate) fn on_list(mut self, hook: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_list = Some(Box::new(hook));
        self
    }

    /// Returns the same tree with a cache of sketches.
    pub(crate) fn with_sketch_cache(mut self) -> Self {
        self.cached_sketches = Some(Arc::default());
        self
    }

    fn copy(&self, lend: TestContentSource) -> Self {
        Self { nodes: self.nodes.clone(), lists_twice: self.lists_twice, ..Self::of([]) }.lend(lend)
    }

    fn kind(&self, path: &str) -> Option<ChildKind> {
        match self.nodes.get(path) {
            Some(TestNode::File(_) | TestNode::Locked) => Some(ChildKind::File),
            Some(TestNode::Link(_)) => Some(ChildKind::Link),
            Some(TestNode::Fifo) => Some(ChildKind::Other),
            Some(TestNode::Directory | TestNode::LockedDirectory) => Some(ChildKind::Directory),
            None => {
                let below = format!("{}/", path.trim_end_matches('/'));
                let next = self.nodes.range(below.clone()..).next();
                next.filter(|(path, _)| path.starts_with(&below)).map(|_| ChildKind::Directory)
            }
        }
    }

    /// Returns the path that `path` leads to when links are followed.
    fn resolve(&self, path: &str) -> Result<String> {
        let mut hops = 0;
        let mut done = String::new();
        let mut rest: Vec<String> = path.split('/').filter(|name| !name.is_empty()).rev().map(str::to_owned).collect();
        while let Some(name) = rest.pop() {
            done = format!("{done}/{name}");
            if let Some(TestNode::Link(target)) = self.nodes.get(&done) {
                hops += 1;
                if hops > 40 {
                    return Err(Error::new(ErrorKind::InvalidPath, "too many links"));
                }
                let Some(inside) = target.strip_prefix('/') else {
                    return Err(Error::new(ErrorKind::PathEscape, "it leads outside"));
                };
                done.clear();
                rest.extend(inside.split('/').filter(|name| !name.is_empty()).rev().map(str::to_owned));
            }
        }
        match self.kind(&done) {
            Some(_) => Ok(done),
            None if done.is_empty() => Ok(done),
            None => Err(Error::new(ErrorKind::NotFound, "nothing is there")),
        }
    }
}

impl Tree for TestTree {
    fn lookup(self: Arc<Self>, path: &VfsPath) -> Result<LookupResult> {
        let real = self.resolve(path.as_str())?;
        let kind = self.kind(&real);
        let open = |path: &str| Arc::new(TestTreeDir { tree: Arc::clone(&self), path: path.to_owned() });
        match kind {
            Some(ChildKind::File) => {
                let (dir, name) = real.rsplit_once('/').expect("absolute");
                Ok(LookupResult::File { dir: open(dir), name: name.to_owned() })
            }
            Some(ChildKind::Directory) | None => Ok(LookupResult::Directory(open(&real))),
            Some(_) => Err(Error::at(ErrorKind::Unsupported, path)),
        }
    }
}

/// A directory of a [`TestTree`], by its path without a slash at the end.
struct TestTreeDir {
    tree: Arc<TestTree>,
    path: String,
}

impl TestTreeDir {
    fn child(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }
}

impl Directory for TestTreeDir {
    fn list(&self) -> Result<Listing> {
        self.tree.listed.lock().expect("not poisoned").push(format!("{}/", self.path));
        if let Some(hook) = &self.tree.on_list {
            hook(&self.path);
        }
        if matches!(self.tree.nodes.get(&self.path), Some(TestNode::LockedDirectory)) {
            return Err(Error::new(ErrorKind::PermissionDenied, "permission denied"));
        }
        let below = format!("{}/", self.path);
        let mut names: Vec<&str> = Vec::new();
        let mut problems = Vec::new();
        for (path, _) in self.tree.nodes.range(below.clone()..).take_while(|(path, _)| path.starts_with(&below)) {
            let name = path[below.len()..].split('/').next().expect("a name");
            if name.contains('\u{fffd}') {
                problems.push(Problem::new(name, &Error::new(ErrorKind::InvalidPath, "the name is not UTF-8")));
            } else if names.last() != Some(&name) {
                names.push(name);
            }
        }
        names.sort_unstable();
        names.dedup();
        // Not sorted, as on a disk.
        names.reverse();
        let mut listing = Listing::default();
        listing.problems = problems;
        for name in names {
            for _ in 0..=usize::from(self.tree.lists_twice) {
                listing.push(name, self.tree.kind(&format!("{below}{name}")).expect("it was listed"));
            }
        }
        Ok(listing)
    }

    fn open_dir(&self, name: &str, _: &VfsPath) -> Result<Arc<dyn Directory>> {
        let real = self.tree.resolve(&self.child(name))?;
        match self.tree.kind(&real) {
            Some(ChildKind::Directory) | None => Ok(Arc::new(Self { tree: Arc::clone(&self.tree), path: real })),
            Some(_) => Err(Error::new(ErrorKind::NotADirectory, "it is not a directory")),
        }
    }

    fn follow_link(&self, name: &str) -> Result<ChildKind> {
        self.tree.follows.fetch_add(1, Ordering::Relaxed);
        let real = self.tree.resolve(&self.child(name))?;
        Ok(self.tree.kind(&real).unwrap_or(ChildKind::Directory))
    }

    fn stat(&self, name: &str, path: VfsPath) -> Result<FileInfo> {
        let real = self.tree.resolve(&self.child(name))?;
        match self.tree.nodes.get(&real) {
            Some(TestNode::File(bytes)) => Ok(FileInfo::file(path, bytes.len() as u64, Version::new("1"))),
            Some(TestNode::Locked) => Ok(FileInfo::file(path, 0, Version::new("1"))),
            Some(TestNode::Fifo | TestNode::Link(_)) => Err(Error::new(ErrorKind::Unsupported, "not a file")),
            Some(TestNode::Directory | TestNode::LockedDirectory) | None => Ok(FileInfo::directory(path)),
        }
    }

    fn resolve(&self, name: &str) -> Result<ResolveResult> {
        self.tree.resolve(&self.child(name)).and_then(|real| VfsPath::parse(&real)).map(ResolveResult::at)
    }

    fn prefilter(&self, name: &str, kind: ChildKind) -> Option<Sketch> {
        assert_ne!(kind, ChildKind::Directory, "only files have sketches");
        let cached_sketches = self.tree.cached_sketches.as_ref()?.lock().expect("not poisoned");
        cached_sketches.get(&self.child(name)).cloned()
    }

    fn open_file(&self, name: &str, kind: ChildKind) -> Result<SearchableContent> {
        let path = self.child(name);
        self.tree.opened.lock().expect("not poisoned").push(path.clone());
        if let Some(hook) = &self.tree.on_open {
            hook(&path);
        }
        let real = if kind == ChildKind::Link { self.tree.resolve(&path)? } else { path };
        let bytes = match self.tree.nodes.get(&real) {
            Some(TestNode::File(bytes)) => bytes.clone(),
            Some(TestNode::Locked) => return Err(Error::new(ErrorKind::PermissionDenied, "permission denied")),
            Some(_) => return Err(Error::new(ErrorKind::Unsupported, "not a file")),
            None => return Err(Error::new(ErrorKind::NotFound, "nothing is there")),
        };
        let mut opened = match self.tree.lend {
            TestContentSource::Bytes => bytes.into(),
            TestContentSource::Reader(step) => {
                let size = bytes.len() as u64;
                let exhausted = Arc::clone(&self.tree.exhausted);
                SearchableContent::reader(SlowReader { bytes: Cursor::new(bytes), step, exhausted }, size)
            }
        };
        if let Some(cached_sketches) = self.tree.cached_sketches.clone().filter(|_| kind == ChildKind::File) {
            let (SearchableContent::Bytes { learn, .. } | SearchableContent::Reader { learn, .. }) = &mut opened;
            *learn = Some(Box::new(move |sketch| {
                cached_sketches.lock().expect("not poisoned").insert(real, sketch);
            }));
        }
        Ok(opened)
    }
}

/// Returns a few bytes at a time.
struct SlowReader {
    bytes: Cursor<Bytes>,
    step: usize,
    exhausted: Arc<AtomicUsize>,
}

impl Read for SlowReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let step = self.step.min(buffer.len());
        let read = self.bytes.read(&mut buffer[..step])?;
        if read == 0 && step > 0 {
            self.exhausted.fetch_add(1, Ordering::SeqCst);
        }
        Ok(read)
    }
}

/// Finds entries on the caller's thread and on pools, and asserts that the results agree.
pub(crate) fn find(tree: &TestTree, req: &GlobRequest) -> Result<GlobResult> {
    let expected = glob(Arc::new(tree.copy(TestContentSource::Bytes)), &OpContext::new(), req);
    for workers in [1, 2, 8] {
        let tree = Arc::new(tree.copy(TestContentSource::Bytes));
        let found = block_on(glob_on(&Pool::new(workers), tree, OpContext::new(), req.clone()));
        match (&expected, &found) {
            (Ok(expected), Ok(found)) => assert_eq!(found, expected, "{workers} workers: {req:?}"),
            (Err(expected), Err(found)) => assert_eq!(found.to_string(), expected.to_string(), "{req:?}"),
            _ => panic!("{workers} workers: {found:?}, not {expected:?}"),
        }
    }
    expected
}

pub(crate) fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

/// The result of a search: its events before the end, and the end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SearchOutput {
    pub(crate) events: Vec<GrepEvent>,
    pub(crate) summary: GrepSummary,
}

impl SearchOutput {
    /// Formats the events as `rg` prints them: `path:line:text` for a match, `path-line-text` for context,
    /// `path:count` or `path` for a file, `path! code` for a problem.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.events.iter().map(line).collect()
    }
}

fn line(event: &GrepEvent) -> String {
    match event {
        GrepEvent::Match(found) => {
            let mark = if found.kind == vfs_core::search::LineKind::Match { ':' } else { '-' };
            format!("{}{mark}{}{mark}{}", found.path, found.line, found.text)
        }
        GrepEvent::File(file) => match file.count {
            Some(count) => format!("{}:{count}", file.path),
            None => file.path.to_string(),
        },
        GrepEvent::Problem(problem) => format!("{}! {}", problem.path, problem.code),
        other => format!("{other:?}"),
    }
}

/// Runs one search on a pool of its own.
pub(crate) fn run_on(tree: Arc<TestTree>, req: GrepRequest, workers: usize, window: usize) -> Result<SearchOutput> {
    let pool = Pool::new(workers);
    let limits = RunAheadLimits { window, budget: 1 << 14, head_budget: 1 << 10, max_entries: u64::MAX };
    let mut events = GrepEventStream::new(tree, OpContext::new(), req, pool, limits);
    let mut seen = Vec::new();
    block_on(async {
        while let Some(event) = events.next().await {
            match event? {
                GrepEvent::End(summary) => {
                    assert!(events.next().await.is_none(), "nothing follows the end");
                    return Ok(SearchOutput { events: seen, summary });
                }
                event => seen.push(event),
            }
        }
        panic!("a stream ends with an end or an error");
    })
}

/// Runs a search in every configuration, and asserts that the results agree.
pub(crate) fn run(tree: &TestTree, req: &GrepRequest) -> SearchOutput {
    try_run(tree, req).unwrap_or_else(|error| panic!("{req:?}: {error}"))
}

/// Does the same as [`run`], for searches that may fail.
pub(crate) fn try_run(tree: &TestTree, req: &GrepRequest) -> Result<SearchOutput> {
    let expected = run_on(Arc::new(tree.copy(TestContentSource::Bytes)), req.clone(), 1, 1);
    for (lend, workers, window) in [
        (TestContentSource::Bytes, 2, 8),
        (TestContentSource::Bytes, 8, 32),
        (TestContentSource::Reader(usize::MAX), 1, 1),
        (TestContentSource::Reader(usize::MAX), 3, 4),
        (TestContentSource::Reader(7), 2, 2),
    ] {
        let outcome = run_on(Arc::new(tree.copy(lend)), req.clone(), workers, window);
        assert_eq!(outcome, expected, "{lend:?}, {workers} workers, window {window}: {req:?}");
    }
    for lend in [TestContentSource::Bytes, TestContentSource::Reader(usize::MAX), TestContentSource::Reader(7)] {
        let tree = Arc::new(tree.copy(lend).with_sketch_cache());
        for time in ["first", "second", "third"] {
            let outcome = run_on(Arc::clone(&tree), req.clone(), 2, 8);
            assert_eq!(outcome, expected, "{lend:?}, for the {time} time: {req:?}");
        }
    }
    expected
}
