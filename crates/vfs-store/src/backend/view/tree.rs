//! Search tree over the files of a store.

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::{Buf as _, Bytes};
use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use vfs_core::context::DropGuard;
use vfs_core::tree::{self, ChildKind, Listing, Opened, Tree, TreeEntry};
use vfs_core::{Error, ErrorKind, FileInfo, ResolveResult, Result, Version, VfsPath};

use super::super::concurrency::runtime::Runtime;
use super::content_cache::Content;
use super::directory::{Directories, Directory, shadowed};
use super::namespace_view::{BLOCK_BYTES, NamespaceView, keeps_changing};
use super::path_entry::{PathEntry, above, file_info};
use super::prefetch::{self, Prefetcher};
use crate::store::{CandidateKeys, PathStat, Store, StoredMeta, StoredValue};

/// Names of files that a search may read for the rules in them, whatever it looks for.
const RULES: [&str; 3] = [".gitignore", ".ignore", "exclude"];

/// The files of one call's namespace, for one search.
///
/// It waits for the store on the thread that asks: those of a search pool, which may block. Where the search was begun in a
/// tokio runtime, what the store does runs in it, and is cancelled when that ends.
#[derive(Debug)]
pub(crate) struct StoreTree<S> {
    view: NamespaceView<S>,
    runtime: Option<Arc<Runtime>>,
    /// The names of now, as far as they are known.
    names: Option<ListedNames>,
    /// What is at some paths above the start, where it was looked up beforehand.
    above: HashMap<VfsPath, PathStat>,
    /// The files that may hold what is looked for, where that is known.
    hopes: Arc<OnceLock<SearchCandidates>>,
    /// What asks for them while the search has begun.
    asking: Option<CandidateTask>,
    /// Prefetching of the candidates.
    ahead: OnceLock<Prefetcher>,
    /// Ends fetches that run when the tree is dropped.
    drop_guard: Option<DropGuard>,
    /// Files over so many bytes are not searched.
    max_file_size: u64,
}

/// The names of all that is below a directory.
#[derive(Debug)]
pub(crate) struct ListedNames {
    pub(crate) below: VfsPath,
    pub(crate) directories: Directories,
}

/// Where a search may find something.
#[derive(Debug)]
pub(crate) struct SearchCandidates {
    /// Where that is known.
    pub(crate) below: VfsPath,
    /// The only files that may hold it, and all that are not text.
    pub(crate) candidates: CandidateKeys,
    /// Larger files are looked at all the same, as the search may have something to say of their lines.
    pub(crate) up_to: u64,
}

/// A task that ends with this.
#[derive(Debug)]
struct CandidateTask(AbortHandle);

impl Drop for CandidateTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A directory, with its entries once it was listed.
#[derive(Debug)]
struct StoreDir<S> {
    tree: Arc<StoreTree<S>>,
    path: VfsPath,
    listed: OnceLock<Directory>,
    /// Whether the search has read one of its files.
    has_read_file: AtomicBool,
    /// Prefetching of its small files.
    ahead: OnceLock<Prefetcher>,
}

impl<S: Store> StoreTree<S> {
    /// A tree whose names are `names`, or else those that the store lists when they are asked for.
    pub(crate) fn new(view: NamespaceView<S>, names: Option<ListedNames>) -> Self {
        Self {
            view,
            runtime: Runtime::current().map(Arc::new),
            names,
            above: HashMap::new(),
            hopes: Arc::default(),
            asking: None,
            ahead: OnceLock::new(),
            drop_guard: None,
            max_file_size: u64::MAX,
        }
    }

    /// This tree, for a search that finds something where there are `hopes` only: other files are shown empty.
    pub(crate) fn hopes(mut self, hopes: Option<SearchCandidates>) -> Self {
        self.hopes = Arc::new(hopes.map_or_else(OnceLock::new, OnceLock::from));
        self
    }

    /// As [`hopes`](Self::hopes), of which the search hears on its way.
    pub(crate) fn hopes_later(
        mut self,
        runtime: &Handle,
        hopes: impl Future<Output = Result<Option<SearchCandidates>>> + Send + 'static,
    ) -> Self {
        let known = Arc::clone(&self.hopes);
        let task = runtime.spawn(async move {
            match hopes.await {
                Ok(Some(hopes)) => drop(known.set(hopes)),
                Ok(None) => {}
                // The search goes on without the answer, and meets whatever keeps the store from one.
                Err(error) => tracing::debug!(%error, "a search reads files that may hold nothing"),
            }
        });
        self.asking = Some(CandidateTask(task.abort_handle()));
        self
    }

    /// This tree, which need not look up what is `above` its start.
    pub(crate) fn above(mut self, above: HashMap<VfsPath, PathStat>) -> Self {
        self.above = above;
        self
    }

    /// This tree, whose fetches are cancelled by `guard` when it is dropped.
    pub(crate) fn drop_guard(mut self, guard: DropGuard) -> Self {
        self.drop_guard = Some(guard);
        self
    }

    /// This tree, for a search that leaves out files over `bytes`.
    pub(crate) fn max_file_size(mut self, bytes: Option<u64>) -> Self {
        self.max_file_size = bytes.unwrap_or(u64::MAX);
        self
    }

    fn wait<T>(&self, answer: impl Future<Output = Result<T>>) -> Result<T> {
        match &self.runtime {
            Some(runtime) => runtime.wait(answer),
            None => futures::executor::block_on(answer),
        }
    }

    /// The names in the directory `path`, where they are known.
    fn names_in(&self, path: &VfsPath) -> Option<&Directories> {
        self.names.as_ref().filter(|names| path.starts_with(&names.below)).map(|names| &names.directories)
    }

    fn find(&self, path: &VfsPath) -> Result<PathEntry> {
        // What a path is, its parent says; the names below a directory do not say whether it is one.
        let Some(names) = path.parent().and_then(|parent| self.names_in(&parent)) else {
            return match self.above.get(path) {
                Some(stat) => self.found_above(path, stat),
                None => self.wait(self.view.find(path)),
            };
        };
        if let Some(found) = names.find(path) {
            return Ok(found);
        }
        let is_below_file = above(path).any(|above| matches!(names.find(&above), Some(PathEntry::File(_))));
        let kind = if is_below_file { ErrorKind::NotADirectory } else { ErrorKind::NotFound };
        Err(Error::at(kind, path))
    }

    /// What is at a path that was looked up beforehand, with all that is above it.
    fn found_above(&self, path: &VfsPath, stat: &PathStat) -> Result<PathEntry> {
        if let Some(stored) = &stat.stored {
            return Ok(PathEntry::File(stored.clone()));
        }
        if stat.has_below {
            return Ok(PathEntry::Directory);
        }
        let is_file = |path: VfsPath| self.above.get(&path).is_some_and(|stat| stat.stored.is_some());
        let kind = if above(path).any(is_file) { ErrorKind::NotADirectory } else { ErrorKind::NotFound };
        Err(Error::at(kind, path))
    }

    /// Whether the content of a file need not be looked at: it is text, and holds nothing that is looked for.
    fn is_hopeless(&self, path: &VfsPath, name: &str, size: u64) -> bool {
        let hopes = self.hopes.get().filter(|hopes| size <= hopes.up_to && !RULES.contains(&name));
        hopes.is_some_and(|hopes| path.starts_with(&hopes.below) && !hopes.candidates.contains(path))
    }
}

impl<S: Store> Tree for StoreTree<S> {
    fn lookup(self: Arc<Self>, path: &VfsPath) -> Result<TreeEntry> {
        Ok(match (self.find(path)?, path.parent(), path.name()) {
            (PathEntry::File(_), Some(dir), Some(name)) => {
                TreeEntry::File { dir: StoreDir::new(&self, dir), name: name.to_owned() }
            }
            _ => TreeEntry::Directory(StoreDir::new(&self, path.clone())),
        })
    }
}

impl<S: Store> StoreDir<S> {
    fn new(tree: &Arc<StoreTree<S>>, path: VfsPath) -> Arc<Self> {
        let (listed, has_read_file, ahead) = (OnceLock::new(), AtomicBool::new(false), OnceLock::new());
        Arc::new(Self { tree: Arc::clone(tree), path, listed, has_read_file, ahead })
    }

    fn stored(&self, name: &str) -> Option<&StoredMeta> {
        self.listed.get()?.file(name)
    }

    /// Returns the entries, and lists them the first time.
    fn directory(&self) -> Result<&Directory> {
        if let Some(listed) = self.listed.get() {
            return Ok(listed);
        }
        let listed = match self.tree.names_in(&self.path) {
            Some(names) => names.get(&self.path).cloned().unwrap_or_default(),
            None => self.tree.wait(self.tree.view.level(&self.path))?,
        };
        Ok(self.listed.get_or_init(|| listed))
    }

    /// Returns the files to prefetch when a file is read: the candidates of the search, or else the small files of the
    /// directory from the second one on, as the first may be an ignore file or all that the search needs.
    fn prefetcher(&self) -> Option<&Prefetcher> {
        if let Some(hopes) = self.tree.hopes.get() {
            let candidates = || hopes.candidates.iter().map(|path| (path.clone(), None));
            return Some(self.tree.ahead.get_or_init(|| Prefetcher::new(&self.tree.view, candidates())));
        }
        let listed = self.listed.get().filter(|_| self.tree.view.store().capabilities().bulk_reads)?;
        if !self.has_read_file.swap(true, Ordering::Relaxed) {
            return None;
        }
        Some(self.ahead.get_or_init(|| {
            let max = prefetch::MAX_FILE_BYTES.min(self.tree.max_file_size);
            let small = listed.files().filter(|(_, stored)| stored.size <= max);
            Prefetcher::new(
                &self.tree.view,
                small.filter_map(|(name, stored)| Some((self.path.child(name).ok()?, Some(stored)))),
            )
        }))
    }

    /// The content of the file at `path`, which is likely to be `stored`.
    fn content(&self, path: &VfsPath, stored: &StoredMeta) -> Result<Content> {
        let (key, contents) = (self.tree.view.key(path), &self.tree.view.shared.contents);
        if let Some(kept) = contents.get(&key, &stored.version) {
            return Ok(kept);
        }
        let runtime = self.tree.runtime.as_deref().map(Runtime::handle);
        if let Some(fetch) = self.prefetcher().and_then(|ahead| ahead.fetch_block(&self.tree.view, runtime, path)) {
            self.tree.wait(fetch.map(Ok))?;
            if let Some(kept) = contents.get(&key, &stored.version) {
                return Ok(kept);
            }
        }
        let max = self.tree.view.shared.max_file_size().max(stored.size);
        let StoredValue { stored, content, .. } = self.tree.wait(self.tree.view.whole_file(path, max))?;
        let content = Content::new(content);
        contents.insert(key, stored.version, content.clone());
        Ok(content)
    }
}

impl<S: Store> tree::Directory for StoreDir<S> {
    fn list(&self) -> Result<Listing> {
        let directory = self.directory()?;
        let mut listing = Listing::with_capacity(directory.len());
        directory.files().for_each(|(name, _)| listing.push(name, ChildKind::File));
        directory.directories().for_each(|name| listing.push(name, ChildKind::Directory));
        listing.problems = directory.problems(&self.path);
        Ok(listing)
    }

    fn list_only(&self, names: &[String]) -> Result<Listing> {
        if self.tree.names_in(&self.path).is_some() || self.listed.get().is_some() {
            let directory = self.directory()?;
            return Ok(only(directory, &self.path, names));
        }
        let looked_up =
            names.iter().filter_map(|name| Some((name, self.path.child(name).ok()?))).map(|(name, path)| async move {
                let (file, directory) = futures::join!(self.tree.view.head(&path), self.tree.view.has_below(&path));
                Ok::<_, Error>((name.as_str(), file?.is_some(), directory?))
            });
        let looked_up: Vec<_> = looked_up.collect();
        let looked_up = stream::iter(looked_up).buffered(self.tree.view.fetches()).try_collect::<Vec<_>>();
        let mut listing = Listing::default();
        for (name, is_file, is_directory) in self.tree.wait(looked_up)? {
            push(&mut listing, &self.path, name, is_file, is_directory);
        }
        Ok(listing)
    }

    fn open_dir(&self, name: &str, path: &VfsPath) -> Result<Arc<dyn tree::Directory>> {
        let is_listed =
            self.listed.get().is_some_and(|listed| listed.file(name).is_none() && listed.has_directory(name));
        if is_listed {
            return Ok(Self::new(&self.tree, path.clone()));
        }
        match self.tree.find(path)? {
            PathEntry::Directory => Ok(Self::new(&self.tree, path.clone())),
            PathEntry::File(_) => Err(Error::at(ErrorKind::NotADirectory, path)),
        }
    }

    fn follow_link(&self, _name: &str) -> Result<ChildKind> {
        Err(Error::new(ErrorKind::Unsupported, "there are no links here"))
    }

    fn stat(&self, name: &str, path: VfsPath) -> Result<FileInfo> {
        match self.stored(name) {
            Some(stored) => Ok(file_info(path, stored)),
            None => self.tree.find(&path).map(|found| found.info(path)),
        }
    }

    fn open_file(&self, name: &str, _kind: ChildKind) -> Result<Opened> {
        let path = self.path.child(name)?;
        let stored = match self.stored(name) {
            Some(stored) => stored.clone(),
            None => match self.tree.find(&path)? {
                PathEntry::File(stored) => stored,
                PathEntry::Directory => return Err(Error::at(ErrorKind::IsADirectory, &path)),
            },
        };
        let size = stored.size;
        if size <= self.tree.max_file_size && self.tree.is_hopeless(&path, name, size) {
            return Ok(Bytes::new().into());
        }
        // What is too large is not read, only told.
        if size > self.tree.max_file_size || size > BLOCK_BYTES {
            let tree = Arc::clone(&self.tree);
            let reader = BlockReader { tree, path, version: None, at: 0, block: Bytes::new() };
            return Ok(Opened::reader(reader, size));
        }
        let Content { bytes, is_binary } = self.content(&path, &stored)?;
        Ok(Opened::Bytes { bytes, is_binary: Some(is_binary), learn: None })
    }

    fn resolve(&self, name: &str) -> Result<ResolveResult> {
        self.path.child(name).map(ResolveResult::at)
    }
}

/// Those entries of `directory` that have one of the `names`.
fn only(directory: &Directory, path: &VfsPath, names: &[String]) -> Listing {
    let mut listing = Listing::default();
    for name in names {
        push(&mut listing, path, name, directory.file(name).is_some(), directory.has_directory(name));
    }
    listing
}

fn push(listing: &mut Listing, directory: &VfsPath, name: &str, is_file: bool, is_directory: bool) {
    match (is_file, is_directory) {
        (true, is_hidden) => {
            listing.push(name, ChildKind::File);
            if is_hidden {
                listing.problems.push(shadowed(directory, name));
            }
        }
        (false, true) => listing.push(name, ChildKind::Directory),
        (false, false) => {}
    }
}

/// A large file, read block by block as it is searched.
struct BlockReader<S> {
    tree: Arc<StoreTree<S>>,
    path: VfsPath,
    /// Of the first block; all others must have the same.
    version: Option<Version>,
    at: u64,
    block: Bytes,
}

impl<S: Store> BlockReader<S> {
    fn next_block(&mut self) -> Result<Bytes> {
        let block = self.tree.view.get(&self.path, Some(self.at..self.at.saturating_add(BLOCK_BYTES)));
        let StoredValue { stored, content, .. } = self.tree.wait(block)?.ok_or_else(|| Error::not_found(&self.path))?;
        let version = self.version.get_or_insert_with(|| stored.version.clone());
        if *version != stored.version {
            return Err(keeps_changing(&self.path));
        }
        self.at += content.len() as u64;
        Ok(content)
    }
}

impl<S: Store> Read for BlockReader<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if self.block.is_empty() {
            self.block = self.next_block().map_err(io::Error::other)?;
        }
        let count = buffer.len().min(self.block.len());
        self.block.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}
