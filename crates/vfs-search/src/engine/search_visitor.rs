//! Visitor interface of a search: the choice of entries of the walk, and the work on each.

use std::sync::Arc;

use vfs_core::search::Skipped;
use vfs_core::tree::Directory;
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use crate::search_item::{ItemSink, SearchItem};
use crate::walk::dir_entries::{FilterDecision, WalkEntry};
use crate::walk::walk_options::{WalkFilter, WalkOptions};

/// Decides which entries a search visits, and visits them.
pub(crate) trait SearchVisitor: WalkFilter + Sized + Send + Sync + 'static {
    type Request: Send + Sync + 'static;

    /// The state that a worker reuses from one entry to the next.
    type WorkerState: Send + 'static;

    /// Validates and compiles a request.
    fn new(req: &Self::Request) -> Result<Self>;

    /// Returns the path at which a request starts.
    fn path(req: &Self::Request) -> &VfsPath;

    /// Returns whether a limit of 0 makes the search empty.
    fn has_zero_limit(&self) -> bool {
        false
    }

    /// Returns the options of the walk.
    fn options(&self) -> WalkOptions;

    /// Decides whether to visit an entry, without opening it.
    fn filter_entry(&self, entry: WalkEntry<'_>) -> Result<FilterDecision>;

    fn new_worker_state(&self) -> Self::WorkerState;

    /// Visits an entry and puts its items into `item_sink`: by default, the description of the entry.
    fn visit(
        &self,
        _worker_state: &mut Self::WorkerState,
        entry: WalkEntry<'_>,
        item_sink: &mut dyn ItemSink,
        _is_interrupted: &dyn Fn() -> bool,
    ) {
        // If the sink refuses the item, the visit ends, and the sink has recorded that the file is not complete.
        if item_sink.put(SearchItem::describe(entry)).is_continue() {
            let _ = item_sink.put(SearchItem::Done { searched: false, left_early: false, skipped: Skipped::default() });
        }
    }

    /// Visits the file that the request names instead of a directory.
    ///
    /// # Errors
    ///
    /// `not_a_directory` if the request needs a directory, as it does by default.
    fn visit_named(
        &self,
        _worker_state: &mut Self::WorkerState,
        file: &RequestedFile,
        _item_sink: &mut dyn ItemSink,
        _is_interrupted: &dyn Fn() -> bool,
    ) -> Result<()> {
        Err(Error::at(ErrorKind::NotADirectory, &file.path))
    }
}

/// A file that a request names.
#[derive(Debug)]
pub(crate) struct RequestedFile {
    pub(crate) dir: Arc<dyn Directory>,
    pub(crate) name: String,
    pub(crate) path: VfsPath,
}
