//! Checkpoint layer: snapshots of all files, and an undo log of changes.

pub(crate) mod apply_transitions;
mod backend;
pub(crate) mod caller_files;
pub(crate) mod checkpoint_store;
mod restore;
mod snapshot_catalog;
mod snapshot_manifest;

use std::sync::Arc;

use tokio::sync::Mutex;
use vfs_core::{Backend, Layer, VfsPath};

pub use self::backend::CheckpointedBackend;

use self::backend::UndoInterceptor;
use self::checkpoint_store::CheckpointStore;
use crate::undo_log::UndoCursor;

/// Default number of operations that can be undone.
const DEFAULT_MAX_UNDO: u64 = 1000;

/// Layer that takes snapshots of all files and writes an undo log of changes, in a directory of any backend.
///
/// # Behaviour
///
/// Snapshots, by the facet [`Snapshots`](vfs_core::Snapshots):
///
/// * The layered backend has snapshots of its own; those of the inner backend are not reachable through this layer. If they
///   suffice, this layer is not needed.
/// * Contents are stored once, by their hash. A snapshot lists all files and downloads those whose version differs from the
///   newest snapshot, so its cost follows the changes. A snapshot has all contents, or it does not exist.
/// * A snapshot has the contents of files, but no permissions, times or directories without files. A link to a file is stored as
///   a file with the content of the target. A link that leads nowhere is left out. If another entry cannot be read (the
///   `problems` of a listing), there is no snapshot, unless that entry is excluded.
/// * A restore changes only files whose content differs, each under the condition that it has not changed since it was read, and
///   deletes files that the snapshot does not have. If another process changes a file meanwhile, the earlier changes are undone;
///   files that could not be restored are named in the error. A restore that was cut short can be repeated.
/// * The id of a snapshot is never reused. Forgetting a snapshot removes the contents that nothing else names.
///
/// Undo, by [`CheckpointedBackend::undo`]:
///
/// * Before each `write`, `edit`, `delete`, `rename`, `copy`, `upload` and restore the contents of all files that it will
///   touch are stored, whole trees for directories, and afterwards the resulting versions. A change whose contents cannot be
///   stored is refused. Commands (`execute`) are not recorded, nor are changes that bypass the layer.
/// * A change that failed without effect has no record, nor has one with an operation id that leaves each file at its version, as
///   it does when it is sent again.
/// * A change whose response was lost, that was dropped, or whose process ended is settled before the next one, according to the
///   files at that time; so is at once a delete or rename with an operation id whose path is still there. If another process has
///   written a file that a delete or rename removed or replaced, the undo is a `conflict` until that file is gone. A delete is
///   taken for one that was never made if all files are there, some with their versions; a rename, if all sources are there, some
///   file has its version or all have their contents, no target that had a file has changed, and no new target has the content of
///   its source. For other changes, the content at that time is taken for that of the change. If the files cannot be read for a
///   reason that is not temporary, the change stays in the history, and is settled when it is undone.
/// * The targets of a copy or rename are recorded with the versions that they have right after it. If another process writes to one
///   in between, an undo takes its content for that of the operation.
/// * The last 1,000 operations can be undone, or the number set by [`max_undo`](Self::max_undo). Contents that only older operations
///   name are removed when a snapshot is forgotten, and from time to time.
/// * Changes, and other work that needs stable files, wait for each other. Reads do not wait.
/// * A change costs a `stat`, a download of each file that it touches, and about three small writes to the store.
///
/// The store:
///
/// * One directory of a store belongs to one backend. A second layer over the same backend and store, also in another process,
///   has the same snapshots and the same history. Two processes should not change files at the same time: each may remove
///   contents that the other is about to name.
/// * If the store is part of the same files, its directory must be excluded: see [`exclude`](Self::exclude).
/// * For a backend that only returns its changes, nothing is recorded, and a restore is refused.
///
/// # Errors
///
/// * Those of the inner backend.
/// * Failures of the store, at the file or the root: `cancelled`, `quota_exceeded`, `storage_full`, `too_large`, `busy`, `timeout`
///   and `unavailable` unchanged, all others as `internal`, including a missing or damaged content.
/// * `not_found` for a snapshot that does not exist, `conflict` for a file that changed during a restore, `unsupported` for a
///   directory that cannot be listed as a whole, or has an entry that cannot be read.
///
/// ```
/// use std::sync::Arc;
/// use vfs_core::snapshots::{RestoreRequest, SnapshotRequest};
/// use vfs_core::{Backend, BackendExt, OpContext, VfsPath};
/// use vfs_versions::Checkpoints;
/// use vfs_memory::MemoryBackend;
///
/// # futures::executor::block_on(async {
/// let store = Arc::new(MemoryBackend::new());
/// let files = Checkpoints::new(store, VfsPath::parse("/checkpoints")?).over(Arc::new(MemoryBackend::new()));
/// let cx = OpContext::new();
/// files.create_text("/a", "one").await?;
/// let snapshot = files.as_snapshots().expect("snapshots").snapshot(&cx, SnapshotRequest::new()).await?;
///
/// files.edit_text("/a", "one", "two").await?;
/// files.delete_file("/a").await?;
/// files.undo(&cx, 1).await?;
/// assert_eq!(files.read_text("/a").await?, "two");
///
/// files.as_snapshots().expect("snapshots").restore(&cx, RestoreRequest::new(snapshot.id)).await?;
/// assert_eq!(files.read_text("/a").await?, "one");
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
#[derive(Debug, Clone)]
pub struct Checkpoints {
    store: Arc<CheckpointStore>,
    cursor: Arc<Mutex<UndoCursor>>,
    excluded: Vec<VfsPath>,
    max_undo_records: u64,
}

impl Checkpoints {
    /// Returns a layer that stores its records at and below `directory` of `store`. The directory is created when needed.
    pub fn new(store: Arc<dyn Backend>, directory: VfsPath) -> Self {
        Self {
            store: Arc::new(CheckpointStore::new(store, directory)),
            cursor: Arc::default(),
            excluded: Vec::new(),
            max_undo_records: DEFAULT_MAX_UNDO,
        }
    }

    /// Sets how many operations can be undone; older ones are forgotten. 0 records none and forgets all. Default: 1,000.
    #[must_use]
    pub fn max_undo(mut self, operations: u64) -> Self {
        self.max_undo_records = operations;
        self
    }

    /// Excludes everything at and below `path`: snapshots and the undo log ignore it, and a restore leaves it unchanged. Each call
    /// adds a path. Default: nothing is excluded.
    #[must_use]
    pub fn exclude(mut self, path: VfsPath) -> Self {
        self.excluded.push(path);
        self
    }

    /// Returns `inner` with this layer around it.
    pub fn over(&self, inner: Arc<dyn Backend>) -> CheckpointedBackend {
        let interceptor = UndoInterceptor {
            store: Arc::clone(&self.store),
            cursor: Arc::clone(&self.cursor),
            excluded: self.excluded.clone(),
            max_undo_records: self.max_undo_records,
        };
        CheckpointedBackend::new(inner, interceptor)
    }
}

impl Layer for Checkpoints {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(self.over(inner))
    }
}
