//! Visitor interface of a search: which entries of the walk it takes, and what it does with them.

use vfs_core::tree::Tree;
use vfs_core::{Result, VfsPath};

use crate::glob::DotVisibility;
use crate::item::ItemSink;
use crate::walk::dir_entries::{FilterDecision, WalkEntry};
use crate::walk::options::WalkOptions;

/// Decides which entries a search visits, and visits them.
pub(crate) trait SearchVisitor: Sized + Send + Sync + 'static {
    type Request: Send + Sync + 'static;
    /// The state that a worker reuses from one entry to the next.
    type WorkerState: Send + 'static;

    /// Validates and compiles a request.
    fn new(req: &Self::Request) -> Result<Self>;

    /// Returns the path at which a request starts.
    fn path(req: &Self::Request) -> &VfsPath;

    /// Returns whether a limit of 0 makes the search empty.
    fn wants_nothing(&self) -> bool {
        false
    }

    /// Returns the options of the walk.
    fn options(&self) -> WalkOptions;

    /// Returns whether to enter the directory `name` of the directory `relative`.
    fn should_enter(&self, relative: &str, name: &str) -> bool;

    /// Returns the only relevant names in the directory `relative`, if they are known without listing it.
    fn names_in(&self, relative: &str) -> Option<Vec<String>>;

    /// Returns how much of the entry `name` of the directory `relative`, a name with a leading dot, the request asks
    /// for.
    fn hidden_override(&self, relative: &str, name: &str) -> DotVisibility;

    /// Returns what to do with an entry, as far as that can be decided without opening it.
    fn filter_entry<T: Tree>(&self, tree: &T, entry: WalkEntry<'_, T::Dir>) -> Result<FilterDecision>;

    fn new_worker_state(&self) -> Self::WorkerState;

    /// Visits an entry and puts its items into `item_sink`.
    fn visit<T: Tree>(
        &self,
        worker_state: &mut Self::WorkerState,
        tree: &T,
        entry: WalkEntry<'_, T::Dir>,
        item_sink: &mut dyn ItemSink,
        is_interrupted: &dyn Fn() -> bool,
    );

    /// Visits the file that the request names instead of a directory.
    ///
    /// # Errors
    ///
    /// `not_a_directory` if the request needs a directory.
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
