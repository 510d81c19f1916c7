//! Contents that a search is about to read, fetched many at a time.

use std::fmt;
use std::sync::OnceLock;

use futures::future::{BoxFuture, FutureExt as _, Shared};
use tokio::runtime::Handle;
use vfs_core::{Result, VfsPath};

use super::contents::Content;
use super::space::Space;
use crate::store::Store;

/// How many files are fetched at once.
const BLOCK_FILES: usize = 64;
/// The largest of them, in bytes: larger ones are fetched each on its own.
pub(super) const MAX_FILE_BYTES: u64 = 64 << 10;

/// How many blocks are fetched beyond the one that is read, from the second block on: a search may have enough with the first.
const BLOCKS_AHEAD: usize = 2;

/// The files that a search is likely to read, in blocks that are fetched once.
///
/// Their contents are kept with those of other searches. Where there is no room for several blocks, nothing is read ahead.
pub(super) struct ReadAhead {
    paths: Vec<VfsPath>,
    fetches: Vec<OnceLock<Shared<BoxFuture<'static, ()>>>>,
}

impl ReadAhead {
    pub(super) fn new<S: Store>(space: &Space<S>, paths: impl IntoIterator<Item = VfsPath>) -> Self {
        let has_room = space.inner.contents.most() >= 4 * BLOCK_FILES as u64 * MAX_FILE_BYTES;
        let mut paths: Vec<_> = paths.into_iter().filter(|_| has_room).collect();
        paths.sort_unstable_by(|a, b| order(a).cmp(&order(b)));
        let fetches = paths.chunks(BLOCK_FILES).map(|_| OnceLock::new()).collect();
        Self { paths, fetches }
    }

    /// Returns a future that completes when the block of `path` was fetched, if it is in one, and begins to fetch the next blocks
    /// in the `runtime`.
    ///
    /// A failure is left to the caller, which gets the file on its own then, and reports it.
    pub(super) fn ensure<S: Store>(
        &self,
        space: &Space<S>,
        runtime: Option<&Handle>,
        path: &VfsPath,
    ) -> Option<impl Future<Output = ()> + use<S>> {
        let at = self.paths.binary_search_by(|known| order(known).cmp(&order(path))).ok()?;
        let block = at / BLOCK_FILES;
        let fetch = self.fetch(space, runtime, block);
        if block > 0 && runtime.is_some() {
            let ahead = (block + 1..self.fetches.len()).take(BLOCKS_AHEAD);
            ahead.for_each(|block| drop(self.fetch(space, runtime, block)));
        }
        Some(fetch)
    }

    /// Returns the fetch of a block, which is begun by the first call.
    fn fetch<S: Store>(
        &self,
        space: &Space<S>,
        runtime: Option<&Handle>,
        block: usize,
    ) -> Shared<BoxFuture<'static, ()>> {
        let fetch = self.fetches[block].get_or_init(|| {
            let end = self.paths.len().min((block + 1) * BLOCK_FILES);
            let (space, paths) = (space.clone(), self.paths[block * BLOCK_FILES..end].to_vec());
            let fetch = async move {
                if let Err(error) = fetch(&space, &paths).await {
                    tracing::debug!(%error, namespace = %space.namespace, "files were not read ahead");
                }
            };
            let fetch = fetch.boxed().shared();
            if let Some(runtime) = runtime {
                drop(runtime.spawn(fetch.clone()));
            }
            fetch
        });
        fetch.clone()
    }
}

impl fmt::Debug for ReadAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadAhead").field("files", &self.paths.len()).finish_non_exhaustive()
    }
}

/// Returns the directory, extension and name of a file: a search often reads the files of one extension alone.
fn order(path: &VfsPath) -> (&str, &str, &str) {
    let (directory, name) = path.as_str().rsplit_once('/').unwrap_or_default();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    (directory, extension, name)
}

/// Fetches the small ones of `paths`, and keeps their contents.
async fn fetch<S: Store>(space: &Space<S>, paths: &[VfsPath]) -> Result<()> {
    let contents = &space.inner.contents;
    let unknown: Vec<VfsPath> = paths.iter().filter(|path| !contents.has(&space.key(path))).cloned().collect();
    let Some(first) = unknown.first() else { return Ok(()) };
    let fetched = space.ask(first, space.store().get_many(&space.namespace, &unknown, MAX_FILE_BYTES)).await?;
    for (path, value) in unknown.iter().zip(fetched) {
        if let Some(value) = value {
            contents.insert(space.key(path), value.stored.version, Content::new(value.content));
        }
    }
    Ok(())
}
