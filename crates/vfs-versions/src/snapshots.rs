//! Checkpoint layer: snapshots of all files, and an undo log of changes.

mod apply;
mod backend;
mod files;
mod manifest;
mod store;
mod undo;
mod undo_log;

use std::sync::Arc;

use tokio::sync::Mutex;
use vfs_core::{
    Backend, Interceptor, Layer, Mutations, OpContext, Operation, OperationClass, Result, ResultStream, StreamCall,
    StreamRequest, UnaryRequest, VfsPath,
};
use vfs_search::run_until_cancelled;

pub use self::backend::CheckpointedBackend;
pub use self::undo::{UndoEntry, Undone};

use self::files::Files;
use self::store::CheckpointStore;
use self::undo_log::{Ending, UndoCursor};

/// Default number of operations that can be undone.
const DEFAULT_MAX_UNDO: u64 = 1000;

/// Layer that takes snapshots of all files and keeps an undo log of changes, in a directory of any backend.
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
///   a file with the content of the target. Entries that a listing cannot show (its `problems`) are ignored.
/// * A restore changes only files whose content differs, each under the condition that it has not changed since it was read, and
///   deletes files that the snapshot does not have. If another process changes a file meanwhile, the earlier changes are undone;
///   files that could not be restored are named in the error. A restore that was cut short can be repeated.
/// * The name of a snapshot is never reused. To forget a snapshot removes the contents that nothing else names.
///
/// Undo, by [`CheckpointedBackend::undo`]:
///
/// * Before each `write`, `edit`, `delete`, `rename`, `copy`, `upload` and restore the contents of all files that it will
///   touch are stored, whole trees for directories, and afterwards the resulting versions. A change whose contents cannot be
///   stored is refused. Commands (`execute`) are not recorded, nor are changes that bypass the layer.
/// * A change that failed has no record. A change whose answer was lost, that was dropped, or whose process ended is settled
///   before the next one, according to the files at that time.
/// * The last 1,000 operations are kept, or the number set by [`max_undo`](Self::max_undo). Contents that only older operations
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
/// Those of the inner backend, and at the file or the root what becomes of a failure of the store: `cancelled`,
/// `quota_exceeded`, `storage_full`, `too_large`, `busy`, `timeout` and `unavailable` as they are, anything else as
/// `internal`, also a content that is missing from it or damaged. `not_found` for a snapshot that there is not, `conflict`
/// at a file that changed while its snapshot was restored, `unsupported` for what cannot be listed whole.
///
/// ```
/// use std::sync::Arc;
/// use vfs_core::{Backend, BackendExt, OpContext, RestoreRequest, SnapshotRequest, VfsPath};
/// use vfs_versions::Checkpoints;
/// use vfs_memory::MemoryBackend;
///
/// # futures::executor::block_on(async {
/// let store = Arc::new(MemoryBackend::new());
/// let files = Checkpoints::new(store, VfsPath::parse("/checkpoints")?).over(Arc::new(MemoryBackend::new()));
/// let cx = OpContext::new();
/// files.create_text("/a", "one").await?;
/// let snapshot = files.as_snapshots().expect("there are").snapshot(&cx, SnapshotRequest::new()).await?;
///
/// files.edit_text("/a", "one", "two").await?;
/// files.delete_file("/a").await?;
/// files.undo(&cx, 1).await?;
/// assert_eq!(files.read_text("/a").await?, "two");
///
/// files.as_snapshots().expect("there are").restore(&cx, RestoreRequest::new(snapshot.id)).await?;
/// assert_eq!(files.read_text("/a").await?, "one");
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
#[derive(Debug, Clone)]
pub struct Checkpoints {
    store: Arc<CheckpointStore>,
    turn: Arc<Mutex<UndoCursor>>,
    excluded: Vec<VfsPath>,
    max_undo_records: u64,
}

impl Checkpoints {
    /// Returns a layer that keeps its records at and below `directory` of `store`. The directory is created when needed.
    pub fn new(store: Arc<dyn Backend>, directory: VfsPath) -> Self {
        Self {
            store: Arc::new(CheckpointStore::new(store, directory)),
            turn: Arc::default(),
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
        let keeper = Keeper {
            store: Arc::clone(&self.store),
            turn: Arc::clone(&self.turn),
            excluded: self.excluded.clone(),
            max_records: self.max_undo_records,
        };
        CheckpointedBackend::new(inner, keeper)
    }
}

impl Layer for Checkpoints {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(self.over(inner))
    }
}

/// Interceptor of one backend: its store, its undo log and the lock of changes.
#[derive(Debug)]
struct Keeper {
    store: Arc<CheckpointStore>,
    turn: Arc<Mutex<UndoCursor>>,
    excluded: Vec<VfsPath>,
    max_records: u64,
}

impl Interceptor for Keeper {
    fn name(&self) -> &'static str {
        "checkpoints"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let path = request.as_request_ref().primary_path();
        let is_change = request.as_request_ref().class() == OperationClass::Write
            && !matches!(Q::OPERATION, Operation::OpenWriter | Operation::Restore);
        if !is_change || inner.capabilities(&path).mutations == Mutations::Returned {
            return request.send(inner, cx).await;
        }
        let mut turn = run_until_cancelled(cx, &path, self.turn.lock()).await?;
        let files = Files { inner, cx, excluded: &self.excluded };
        let record =
            self.begin(&files, &mut turn, request.as_request_ref()).await.map_err(|error| error.or_path(&path))?;
        let answer = request.send(inner, cx).await;
        match record {
            Some(record) => {
                let ending = Ending::of(&record, answer.as_ref().map(Q::output_ref));
                self.conclude(&files, &mut turn, record, ending).await;
            }
            None if answer.is_ok() && self.max_records > 0 && !self.excluded.iter().any(|ex| path.starts_with(ex)) => {
                tracing::warn!(operation = %Q::OPERATION, "a change that was to be refused was not, and has no note");
            }
            None => {}
        }
        answer
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}
