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
use vfs_core::tree::{self, ChildKind, Listing, LookupResult, SearchableContent, Tree};
use vfs_core::{Error, ErrorKind, FileInfo, ResolveResult, Result, Version, VfsPath};

use super::super::coordination::shutdown_aware_runtime::ShutdownAwareRuntime;
use super::content_cache::CachedContent;
use super::directory_map::{DirectoryEntries, DirectoryMap, shadowed};
use super::namespace_view::{BLOCK_BYTES, NamespaceView, keeps_changing};
use super::path_entry::{PathEntry, above, file_info};
use super::prefetch::{self, Prefetcher};
use crate::store::{CandidateKeys, PathStat, Store, StoredMeta, StoredValue};

/// Names of ignore files, which a search may read although they are not candidates.
const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", "exclude"];

/// Tree of the files in the namespace of a call, for one search.
///
/// Requests to the store block the calling thread, which belongs to a search pool. If the search was started in a tokio
/// runtime, the requests run in this runtime and are cancelled at its shutdown.
#[derive(Debug)]
pub(crate) struct StoreTree<S> {
    view: NamespaceView<S>,
    runtime: Option<Arc<ShutdownAwareRuntime>>,
    /// Names that were listed in advance; other directories are listed when the search reaches them.
    names: Option<ListedNames>,
    /// Entries above the start of the search that were looked up in advance.
    above: HashMap<VfsPath, PathStat>,
    /// Files that may match, once the store has returned them.
    candidates: Arc<OnceLock<SearchCandidates>>,
    /// Task that requests the candidates while the search runs.
    candidate_task: Option<CandidateQueryGuard>,
    /// Prefetching of the candidates.
    prefetcher: OnceLock<Prefetcher>,
    /// Cancels running requests when the tree is dropped.
    drop_guard: Option<DropGuard>,
    /// Maximum size in bytes of a file that is searched.
    max_file_size: u64,
}

/// Names of all files below a directory.
#[derive(Debug)]
pub(crate) struct ListedNames {
    pub(crate) below: VfsPath,
    pub(crate) directories: DirectoryMap,
}

/// Files that may match a search.
#[derive(Debug)]
pub(crate) struct SearchCandidates {
    /// Path at and below which the candidates are complete.
    pub(crate) below: VfsPath,
    /// Paths of all files that may match, and of all that are not text.
    pub(crate) keys: CandidateKeys,
    /// Maximum size in bytes of a file that is skipped if it is not a candidate. A larger one is read, as the search
    /// may report that one of its lines is too long.
    pub(crate) max_skipped_size: u64,
}

/// Handle that aborts its task when it is dropped.
#[derive(Debug)]
struct CandidateQueryGuard(AbortHandle);

impl Drop for CandidateQueryGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Directory, with its entries once it was listed.
#[derive(Debug)]
struct StoreDirectory<S> {
    tree: Arc<StoreTree<S>>,
    path: VfsPath,
    listed: OnceLock<DirectoryEntries>,
    /// `true` once the search has read one of its files.
    has_read_file: AtomicBool,
    /// Prefetching of its small files.
    prefetcher: OnceLock<Prefetcher>,
}

impl<S: Store> StoreTree<S> {
    /// Returns a tree with `names`; other directories are listed when the search reaches them.
    pub(crate) fn new(view: NamespaceView<S>, names: Option<ListedNames>) -> Self {
        Self {
            view,
            runtime: ShutdownAwareRuntime::current().map(Arc::new),
            names,
            above: HashMap::new(),
            candidates: Arc::default(),
            candidate_task: None,
            prefetcher: OnceLock::new(),
            drop_guard: None,
            max_file_size: u64::MAX,
        }
    }

    /// Sets the `candidates` of the search. Files that can be skipped are opened as empty files.
    pub(crate) fn candidates(mut self, candidates: Option<SearchCandidates>) -> Self {
        self.candidates = Arc::new(candidates.map_or_else(OnceLock::new, OnceLock::from));
        self
    }

    /// Sets [candidates](Self::candidates) that the store returns while the search runs.
    pub(crate) fn pending_candidates(
        mut self,
        runtime: &Handle,
        candidates: impl Future<Output = Result<Option<SearchCandidates>>> + Send + 'static,
    ) -> Self {
        let result = Arc::clone(&self.candidates);
        let task = runtime.spawn(async move {
            match candidates.await {
                Ok(Some(candidates)) => drop(result.set(candidates)),
                Ok(None) => {}
                // The search goes on without candidates; an error of the store that persists fails its next request.
                Err(error) => {
                    tracing::debug!(%error, "the search index of the store failed; the search reads all files")
                }
            }
        });
        self.candidate_task = Some(CandidateQueryGuard(task.abort_handle()));
        self
    }

    /// Sets the entries `above` the start of the search that were looked up in advance.
    pub(crate) fn above(mut self, above: HashMap<VfsPath, PathStat>) -> Self {
        self.above = above;
        self
    }

    /// Cancels requests by `guard` when the tree is dropped.
    pub(crate) fn drop_guard(mut self, guard: DropGuard) -> Self {
        self.drop_guard = Some(guard);
        self
    }

    /// Sets the maximum size of a file that is searched.
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

    /// Returns the listed names, if they include those in the directory `path`.
    fn names_in(&self, path: &VfsPath) -> Option<&DirectoryMap> {
        self.names.as_ref().filter(|names| path.starts_with(&names.below)).map(|names| &names.directories)
    }

    fn find(&self, path: &VfsPath) -> Result<PathEntry> {
        // The entry of a path is in the listing of its parent: the names below a path do not show whether the path is a
        // directory.
        let Some(names) = path.parent().and_then(|parent| self.names_in(&parent)) else {
            return match self.above.get(path) {
                Some(stat) => self.entry_above(path, stat),
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

    /// Returns the entry at a path that was looked up in advance, with all paths above it.
    fn entry_above(&self, path: &VfsPath, stat: &PathStat) -> Result<PathEntry> {
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

    /// Returns `true` if the search can skip the content of a file, which is text without a match.
    fn can_skip(&self, path: &VfsPath, name: &str, size: u64) -> bool {
        let candidates = self
            .candidates
            .get()
            .filter(|candidates| size <= candidates.max_skipped_size && !IGNORE_FILES.contains(&name));
        candidates.is_some_and(|candidates| path.starts_with(&candidates.below) && !candidates.keys.contains(path))
    }
}

impl<S: Store> Tree for StoreTree<S> {
    fn lookup(self: Arc<Self>, path: &VfsPath) -> Result<LookupResult> {
        Ok(match (self.find(path)?, path.parent(), path.name()) {
            (PathEntry::File(_), Some(dir), Some(name)) => {
                LookupResult::File { dir: StoreDirectory::new(&self, dir), name: name.to_owned() }
            }
            _ => LookupResult::Directory(StoreDirectory::new(&self, path.clone())),
        })
    }
}

impl<S: Store> StoreDirectory<S> {
    fn new(tree: &Arc<StoreTree<S>>, path: VfsPath) -> Arc<Self> {
        let (listed, has_read_file, prefetcher) = (OnceLock::new(), AtomicBool::new(false), OnceLock::new());
        Arc::new(Self { tree: Arc::clone(tree), path, listed, has_read_file, prefetcher })
    }

    fn stored(&self, name: &str) -> Option<&StoredMeta> {
        self.listed.get()?.file(name)
    }

    /// Returns the entries, and lists them the first time.
    fn directory(&self) -> Result<&DirectoryEntries> {
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
        if let Some(candidates) = self.tree.candidates.get() {
            let files = || candidates.keys.iter().map(|path| (path.clone(), None));
            return Some(self.tree.prefetcher.get_or_init(|| Prefetcher::new(&self.tree.view, files())));
        }
        let listed = self.listed.get().filter(|_| self.tree.view.store().capabilities().bulk_reads)?;
        if !self.has_read_file.swap(true, Ordering::Relaxed) {
            return None;
        }
        Some(self.prefetcher.get_or_init(|| {
            let max = prefetch::MAX_FILE_BYTES.min(self.tree.max_file_size);
            let small = listed.files().filter(|(_, stored)| stored.size <= max);
            Prefetcher::new(
                &self.tree.view,
                small.filter_map(|(name, stored)| Some((self.path.child(name).ok()?, Some(stored)))),
            )
        }))
    }

    /// Returns the content of the file at `path`, from the cache if it has the version of `stored`.
    fn content(&self, path: &VfsPath, stored: &StoredMeta) -> Result<CachedContent> {
        let (key, contents) = (self.tree.view.key(path), &self.tree.view.shared.contents);
        if let Some(cached) = contents.get(&key, &stored.version) {
            return Ok(cached);
        }
        let runtime = self.tree.runtime.as_deref().map(ShutdownAwareRuntime::handle);
        if let Some(fetch) =
            self.prefetcher().and_then(|prefetcher| prefetcher.fetch_block(&self.tree.view, runtime, path))
        {
            self.tree.wait(fetch.map(Ok))?;
            if let Some(cached) = contents.get(&key, &stored.version) {
                return Ok(cached);
            }
        }
        let max = self.tree.view.shared.max_file_size().max(stored.size);
        let StoredValue { stored, content, .. } = self.tree.wait(self.tree.view.whole_file(path, max))?;
        let content = CachedContent::new(content);
        contents.insert(key, stored.version, content.clone());
        Ok(content)
    }
}

impl<S: Store> tree::Directory for StoreDirectory<S> {
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
            return Ok(filter_entries(directory, &self.path, names));
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
            push_entry(&mut listing, &self.path, name, is_file, is_directory);
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
        Err(Error::new(ErrorKind::Unsupported, "a store has no links"))
    }

    fn stat(&self, name: &str, path: VfsPath) -> Result<FileInfo> {
        match self.stored(name) {
            Some(stored) => Ok(file_info(path, stored)),
            None => self.tree.find(&path).map(|found| found.info(path)),
        }
    }

    fn open_file(&self, name: &str, _kind: ChildKind) -> Result<SearchableContent> {
        let path = self.path.child(name)?;
        let stored = match self.stored(name) {
            Some(stored) => stored.clone(),
            None => match self.tree.find(&path)? {
                PathEntry::File(stored) => stored,
                PathEntry::Directory => return Err(Error::at(ErrorKind::IsADirectory, &path)),
            },
        };
        let size = stored.size;
        if size <= self.tree.max_file_size && self.tree.can_skip(&path, name, size) {
            return Ok(Bytes::new().into());
        }
        // The search skips a file over its limit by the size alone, without reading it.
        if size > self.tree.max_file_size || size > BLOCK_BYTES {
            let tree = Arc::clone(&self.tree);
            let reader = StoreFileReader { tree, path, version: None, at: 0, block: Bytes::new() };
            return Ok(SearchableContent::reader(reader, size));
        }
        let CachedContent { bytes, is_binary } = self.content(&path, &stored)?;
        Ok(SearchableContent::Bytes { bytes, is_binary: Some(is_binary), learn: None })
    }

    fn resolve(&self, name: &str) -> Result<ResolveResult> {
        self.path.child(name).map(ResolveResult::at)
    }
}

/// Returns the entries of `directory` with one of `names`.
fn filter_entries(directory: &DirectoryEntries, path: &VfsPath, names: &[String]) -> Listing {
    let mut listing = Listing::default();
    for name in names {
        push_entry(&mut listing, path, name, directory.file(name).is_some(), directory.has_directory(name));
    }
    listing
}

fn push_entry(listing: &mut Listing, directory: &VfsPath, name: &str, is_file: bool, is_directory: bool) {
    match (is_file, is_directory) {
        (true, is_shadowed) => {
            listing.push(name, ChildKind::File);
            if is_shadowed {
                listing.problems.push(shadowed(directory, name));
            }
        }
        (false, true) => listing.push(name, ChildKind::Directory),
        (false, false) => {}
    }
}

/// Reader of a large file, which fetches one block at a time.
struct StoreFileReader<S> {
    tree: Arc<StoreTree<S>>,
    path: VfsPath,
    /// Version of the first block, which all others must have.
    version: Option<Version>,
    at: u64,
    block: Bytes,
}

impl<S: Store> StoreFileReader<S> {
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

impl<S: Store> Read for StoreFileReader<S> {
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
