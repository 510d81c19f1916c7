//! What a search is after: which entries of the walk it takes, and what it does with them.

use vfs_core::tree::Tree;
use vfs_core::{Result, VfsPath};

use crate::glob::DotVisibility;
use crate::item::ItemSink;
use crate::walk::dir_entries::{FilterDecision, WalkEntry};
use crate::walk::options::WalkOptions;

/// What a search is after.
pub(crate) trait SearchVisitor: Sized + Send + Sync + 'static {
    type Request: Send + Sync + 'static;
    /// What a worker needs to visit one entry after another.
    type WorkerState: Send + 'static;

    /// Checks and compiles a request.
    fn new(req: &Self::Request) -> Result<Self>;

    /// Where a request starts.
    fn path(req: &Self::Request) -> &VfsPath;

    /// Whether a limit of 0 leaves nothing to look for.
    fn wants_nothing(&self) -> bool {
        false
    }

    /// How it walks.
    fn options(&self) -> WalkOptions;

    /// Whether to go down the directory `name` of the directory `relative`.
    fn should_enter(&self, relative: &str, name: &str) -> bool;

    /// The only names in the directory `relative` that are of interest, where these can be told beforehand.
    fn names_in(&self, relative: &str) -> Option<Vec<String>>;

    /// How much of the entry `name` of the directory `relative` is asked for, which starts with a dot.
    fn hidden_override(&self, relative: &str, name: &str) -> DotVisibility;

    /// What happens to an entry, as far as that can be told without opening it.
    fn filter_entry<T: Tree>(&self, tree: &T, entry: WalkEntry<'_, T::Dir>) -> Result<FilterDecision>;

    fn new_worker_state(&self) -> Self::WorkerState;

    /// Visits an entry; what comes of it goes to `item_sink`.
    fn visit<T: Tree>(
        &self,
        worker_state: &mut Self::WorkerState,
        tree: &T,
        entry: WalkEntry<'_, T::Dir>,
        item_sink: &mut dyn ItemSink,
        is_interrupted: &dyn Fn() -> bool,
    );

    /// Visits the file that the request names in the place of a directory.
    ///
    /// # Errors
    ///
    /// Where it has to be a directory.
    fn visit_named<T: Tree>(
        &self,
        worker_state: &mut Self::WorkerState,
        tree: &T,
        file: &NamedFile<T::Dir>,
        item_sink: &mut dyn ItemSink,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<()>;
}

/// A file that a request names.
#[derive(Debug)]
pub(crate) struct NamedFile<D> {
    pub(crate) dir: D,
    pub(crate) name: String,
    pub(crate) path: VfsPath,
}
