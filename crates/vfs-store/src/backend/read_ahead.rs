//! Contents that a search is about to read, fetched many at a time.

use std::sync::OnceLock;

use vfs_core::{Result, VfsPath};

use super::contents::Content;
use super::space::Space;
use crate::store::Store;

/// How many files are fetched at once.
const BLOCK_FILES: usize = 64;
/// The largest of them, in bytes: larger ones are fetched each on its own.
pub(super) const MAX_FILE_BYTES: u64 = 64 << 10;

/// The files that a search is likely to read, in blocks that are fetched once.
///
/// Their contents are kept with those of other searches. Where there is no room for several blocks, nothing is read ahead.
#[derive(Debug)]
pub(super) struct ReadAhead {
    paths: Vec<VfsPath>,
    fetched: Vec<OnceLock<()>>,
}

impl ReadAhead {
    pub(super) fn new<S: Store>(space: &Space<S>, paths: impl IntoIterator<Item = VfsPath>) -> Self {
        let has_room = space.inner.contents.most() >= 4 * BLOCK_FILES as u64 * MAX_FILE_BYTES;
        let mut paths: Vec<_> = paths.into_iter().filter(|_| has_room).collect();
        paths.sort_unstable_by(|a, b| order(a).cmp(&order(b)));
        let fetched = paths.chunks(BLOCK_FILES).map(|_| OnceLock::new()).collect();
        Self { paths, fetched }
    }

    /// Makes sure that the block of `path` was fetched; `fetch` waits for it, and others who come meanwhile wait here.
    ///
    /// Whatever fails is left to whoever gets the file on its own, and reports it.
    pub(super) fn ensure<S: Store>(
        &self,
        space: &Space<S>,
        path: &VfsPath,
        fetch: impl FnOnce(&[VfsPath]) -> Result<()>,
    ) {
        let Ok(at) = self.paths.binary_search_by(|known| order(known).cmp(&order(path))) else { return };
        let block = at / BLOCK_FILES;
        self.fetched[block].get_or_init(|| {
            let end = self.paths.len().min((block + 1) * BLOCK_FILES);
            let paths = &self.paths[block * BLOCK_FILES..end];
            if let Err(error) = fetch(paths) {
                tracing::debug!(%error, namespace = %space.namespace, "files were not read ahead");
            }
        });
    }
}

/// Returns the directory, extension and name of a file: a search often reads the files of one extension alone.
fn order(path: &VfsPath) -> (&str, &str, &str) {
    let (directory, name) = path.as_str().rsplit_once('/').unwrap_or_default();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    (directory, extension, name)
}

/// Fetches the small ones of `paths`, and keeps their contents.
pub(super) async fn fetch<S: Store>(space: &Space<S>, paths: &[VfsPath]) -> Result<()> {
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
