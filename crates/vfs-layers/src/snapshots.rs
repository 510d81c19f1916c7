//! States and changes that are remembered, of any backend in any other.

mod apply;
mod backend;
mod files;
mod manifest;
mod notes;
mod store;
mod undo;

use std::sync::Arc;

use tokio::sync::Mutex;
use vfs_core::{Around, Backend, Effect, Layer, Mutations, OpContext, Operation, Request, Result, VfsPath};
use vfs_search::run_until_cancelled;

pub use self::backend::CheckpointedBackend;
pub use self::undo::{UndoEntry, Undone};

use self::files::Files;
use self::notes::{Ending, Turn};
use self::store::Store;
use crate::place::place;

/// How many operations can be taken back, by default.
const MOST_UNDO: u64 = 1000;

/// Remembers states of all files, and what each change was about to touch, in a directory of any backend.
///
/// # Behaviour
///
/// Snapshots, by the facet [`Snapshots`](vfs_core::Snapshots):
///
/// * The backend has snapshots, whatever the inner one has; those of its own are not reached through this layer. Leave it
///   out where they are enough.
/// * Contents are kept once, by their hash. A snapshot lists all files and downloads those of which the newest snapshot has
///   not the same version, so that it costs what has changed. It has all contents, or it is not there.
/// * Of a file its content is remembered. Permissions, times and directories without files are not; a link to a file is
///   remembered as a file with the content that it leads to. What a listing cannot show (its `problems`) is left alone.
/// * Going back changes only files whose content differs, each under the condition that it is as it was just seen, and
///   deletes files that the snapshot does not have. Where somebody else changes one meanwhile, what was done so far is
///   undone; files that this failed for are named in the error. One that was cut short can be repeated.
/// * A name of a snapshot is never given again. Forgetting removes the contents that nothing names any more.
///
/// Undo, by [`CheckpointedBackend::undo`]:
///
/// * Before each `write`, `edit`, `delete`, `rename`, `copy`, `upload` and restore the contents of all files that it will
///   touch are kept, whole trees for directories, and afterwards the versions that it left. A change whose contents cannot
///   be kept is refused. Commands (`execute`) are not noted, nor what others change past the layer.
/// * A change that failed has no note. One whose answer was lost, that was dropped, or whose process ended is settled
///   before the next one by what is there then.
/// * The last 1,000 operations are kept, or as many as [`max_undo`](Self::max_undo) says. Contents that only older ones
///   name go when a snapshot is forgotten, and from time to time.
/// * Changes, and whatever else needs the files to hold still, wait for each other. Looking does not wait.
/// * A change costs a `stat`, a download of each file that it touches, and about three small writes to the store.
///
/// The store:
///
/// * One directory of a store is of one backend. A second layer over the same two, also in another process, knows the same
///   snapshots and the same history. Two processes should not change files at the same time: each may remove contents
///   that the other is about to name.
/// * Where the store is in the same files, its directory must be left out: see [`exclude`](Self::exclude).
/// * Of a backend whose changes are only returned, nothing is noted, and going back is refused.
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
/// use vfs_layers::Checkpoints;
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
/// files.remove("/a").await?;
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
    store: Arc<Store>,
    turn: Arc<Mutex<Turn>>,
    excluded: Vec<VfsPath>,
    most_undo: u64,
}

impl Checkpoints {
    /// Keeps what is remembered at and below `directory` of `store`, which is made when it is needed.
    pub fn new(store: Arc<dyn Backend>, directory: VfsPath) -> Self {
        Self {
            store: Arc::new(Store::new(store, directory)),
            turn: Arc::default(),
            excluded: Vec::new(),
            most_undo: MOST_UNDO,
        }
    }

    /// Sets how many operations can be taken back; older ones are forgotten. 0 notes none and forgets all. Default: 1,000.
    #[must_use]
    pub fn max_undo(mut self, operations: u64) -> Self {
        self.most_undo = operations;
        self
    }

    /// Leaves out what is at and below `path`: it is neither remembered nor noted, and going back leaves it as it is.
    /// Called again, that too. Default: nothing is left out.
    #[must_use]
    pub fn exclude(mut self, path: VfsPath) -> Self {
        self.excluded.push(path);
        self
    }

    /// `inner` with this layer around it.
    pub fn over(&self, inner: Arc<dyn Backend>) -> CheckpointedBackend {
        let keeper = Keeper {
            store: Arc::clone(&self.store),
            turn: Arc::clone(&self.turn),
            excluded: self.excluded.clone(),
            most_notes: self.most_undo,
        };
        CheckpointedBackend::new(inner, keeper)
    }
}

impl Layer for Checkpoints {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(self.over(inner))
    }
}

/// What one layered backend remembers, and who may change its files now.
#[derive(Debug)]
struct Keeper {
    store: Arc<Store>,
    turn: Arc<Mutex<Turn>>,
    excluded: Vec<VfsPath>,
    most_notes: u64,
}

impl Around for Keeper {
    fn name(&self) -> &'static str {
        "checkpoints"
    }

    async fn around<Q: Request>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let path = place(request.action());
        let is_change = request.action().effect() == Effect::Changes && Q::OPERATION != Operation::Restore;
        if !is_change || inner.capabilities(&path).mutations == Mutations::Returned {
            return request.send(inner, cx).await;
        }
        let mut turn = run_until_cancelled(cx, &path, self.turn.lock()).await?;
        let files = Files { inner, cx, excluded: &self.excluded };
        let note = self.begin(&files, &mut turn, request.action()).await.map_err(|error| error.or_path(&path))?;
        let answer = request.send(inner, cx).await;
        match note {
            Some(note) => {
                let ending = Ending::of(&note, &answer);
                self.conclude(&files, &mut turn, note, ending).await;
            }
            None if answer.is_ok() && self.most_notes > 0 && !self.excluded.iter().any(|ex| path.starts_with(ex)) => {
                tracing::warn!(operation = %Q::OPERATION, "a change that was to be refused was not, and has no note");
            }
            None => {}
        }
        answer
    }
}
