//! Prefetching of the files that a search is about to read.

use std::fmt;
use std::sync::{Arc, OnceLock};

use futures::future::{BoxFuture, FutureExt as _, Shared};
use tokio::runtime::Handle;
use vfs_core::{Result, Version, VfsPath};

use super::content_cache::CachedContent;
use super::namespace_view::NamespaceView;
use crate::store::{Store, StoredMeta};

/// Maximum number of files in a block, which is fetched by one request.
const MAX_BLOCK_FILES: usize = 64;
/// Maximum size of a file that is prefetched, in bytes: a larger one is fetched on its own.
pub(crate) const MAX_FILE_BYTES: u64 = 64 << 10;
/// Size in bytes at which a block is full; files that were not listed count as empty.
const MAX_BLOCK_BYTES: u64 = 1 << 20;
/// Number of blocks that are fetched beyond the one that is read, from the second block on: a search may end with the first.
const BLOCKS_AHEAD: usize = 2;

/// Files that a search is likely to read, in blocks that are fetched once.
///
/// The contents go to the cache of the backend. If that has no room for several blocks, nothing is prefetched.
pub(crate) struct Prefetcher {
    files: Vec<ExpectedFile>,
    blocks: Vec<PrefetchBlock>,
}

/// A file, and the version that a listing has of it.
#[derive(Debug, Clone)]
struct ExpectedFile {
    path: VfsPath,
    version: Option<Version>,
}

/// The files from the end of the block before to `end`.
struct PrefetchBlock {
    end: usize,
    fetch: OnceLock<Shared<BoxFuture<'static, ()>>>,
}

impl Prefetcher {
    /// Arranges `files` in blocks; a file has metadata if it was listed.
    pub(crate) fn new<'a, S: Store>(
        view: &NamespaceView<S>,
        files: impl IntoIterator<Item = (VfsPath, Option<&'a StoredMeta>)>,
    ) -> Self {
        let has_room = view.shared.contents.capacity() >= 4 * MAX_BLOCK_FILES as u64 * MAX_FILE_BYTES;
        let mut files: Vec<_> = files.into_iter().filter(|_| has_room).collect();
        files.sort_unstable_by(|(a, _), (b, _)| sort_key(a).cmp(&sort_key(b)));
        let mut blocks = Vec::with_capacity(files.len() / MAX_BLOCK_FILES + 1);
        let (mut start, mut bytes) = (0, 0);
        for (index, (_, stored)) in files.iter().enumerate() {
            bytes += stored.map_or(0, |stored| stored.size);
            let end = index + 1;
            if end - start == MAX_BLOCK_FILES || bytes >= MAX_BLOCK_BYTES || end == files.len() {
                blocks.push(PrefetchBlock { end, fetch: OnceLock::new() });
                (start, bytes) = (end, 0);
            }
        }
        let files = files.into_iter();
        let files =
            files.map(|(path, stored)| ExpectedFile { path, version: stored.map(|stored| stored.version.clone()) });
        Self { files: files.collect(), blocks }
    }

    /// Returns a future that completes once the block of `path` has been fetched, or `None` if the file is in no block.
    ///
    /// Also starts to fetch the next blocks in the `runtime`. If a fetch fails, the caller fetches the file on its own,
    /// and reports the error.
    pub(crate) fn fetch_block<S: Store>(
        &self,
        view: &NamespaceView<S>,
        runtime: Option<&Handle>,
        path: &VfsPath,
    ) -> Option<impl Future<Output = ()> + use<S>> {
        let index = self.files.binary_search_by(|file| sort_key(&file.path).cmp(&sort_key(path))).ok()?;
        let block = self.blocks.partition_point(|block| block.end <= index);
        let fetch = self.start_fetch(view, runtime, block, ());
        if block > 0 && runtime.is_some() {
            for next in (block + 1..self.blocks.len()).take(BLOCKS_AHEAD) {
                if self.blocks[next].fetch.get().is_some() {
                    continue;
                }
                let Ok(permit) = Arc::clone(&view.shared.prefetch_permits).try_acquire_owned() else { break };
                drop(self.start_fetch(view, runtime, next, permit));
            }
        }
        Some(fetch)
    }

    /// Returns the fetch of a block, which the first call starts. The `permit` is released when it ends.
    fn start_fetch<S: Store>(
        &self,
        view: &NamespaceView<S>,
        runtime: Option<&Handle>,
        block: usize,
        permit: impl Send + 'static,
    ) -> Shared<BoxFuture<'static, ()>> {
        let start_fetch = || {
            let start = block.checked_sub(1).map_or(0, |before| self.blocks[before].end);
            let (view, files) = (view.clone(), self.files[start..self.blocks[block].end].to_vec());
            let fetch = async move {
                let _permit = permit;
                if let Err(error) = fetch(&view, files).await {
                    tracing::debug!(%error, namespace = %view.namespace, "files were not prefetched");
                }
            };
            let fetch = fetch.boxed().shared();
            if let Some(runtime) = runtime {
                drop(runtime.spawn(fetch.clone()));
            }
            fetch
        };
        self.blocks[block].fetch.get_or_init(start_fetch).clone()
    }
}

impl fmt::Debug for Prefetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (files, blocks) = (self.files.len(), self.blocks.len());
        f.debug_struct("Prefetcher").field("files", &files).field("blocks", &blocks).finish()
    }
}

/// Returns the directory, extension and name of a file: a search often reads the files of one extension alone.
fn sort_key(path: &VfsPath) -> (&str, &str, &str) {
    let (directory, name) = path.as_str().rsplit_once('/').unwrap_or_default();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    (directory, extension, name)
}

/// Fetches the small files among `files` that are not cached, and caches their contents.
async fn fetch<S: Store>(view: &NamespaceView<S>, files: Vec<ExpectedFile>) -> Result<()> {
    let contents = &view.shared.contents;
    let is_cached = |file: &ExpectedFile| match &file.version {
        Some(version) => contents.get(&view.key(&file.path), version).is_some(),
        None => contents.has(&view.key(&file.path)),
    };
    let missing: Vec<VfsPath> = files.into_iter().filter(|file| !is_cached(file)).map(|file| file.path).collect();
    let Some(first) = missing.first() else { return Ok(()) };
    let fetched = view.ask(first, view.store().get_many(&view.namespace, &missing, MAX_FILE_BYTES)).await?;
    for (path, value) in missing.iter().zip(fetched) {
        if let Some(value) = value {
            contents.insert(view.key(path), value.stored.version, CachedContent::new(value.content));
        }
    }
    Ok(())
}
