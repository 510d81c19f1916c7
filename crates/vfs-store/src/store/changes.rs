//! What a store tells of its changes.

use async_trait::async_trait;
use vfs_core::{Problem, Result, VfsPath};

use super::key::Namespace;
use super::values::StoredMeta;

/// A place in the changes of one namespace: the number of the last that was seen. It is the same for every process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

/// One change, as a store remembers it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeRecord {
    /// A value was put where none was.
    Created(VfsPath, StoredMeta),
    /// A value was put in the place of another.
    Changed(VfsPath, StoredMeta),
    /// A value is gone.
    Removed(VfsPath),
    /// A value was moved, in place of what was at its new path.
    Moved {
        /// Where it was.
        from: VfsPath,
        /// Where it is.
        to: VfsPath,
        /// What is known of it.
        stored: StoredMeta,
    },
    /// What is told happened, with a value that is there and cannot be read: a listing has this problem in its place.
    Unreadable(Box<ChangeRecord>, Problem),
}

impl ChangeRecord {
    /// The value that the change left, and where it is.
    pub(crate) fn value_mut(&mut self) -> Option<(&VfsPath, &mut StoredMeta)> {
        match self {
            ChangeRecord::Created(path, stored) | ChangeRecord::Changed(path, stored) => Some((path, stored)),
            ChangeRecord::Moved { to, stored, .. } => Some((to, stored)),
            ChangeRecord::Unreadable(record, _) => record.value_mut(),
            ChangeRecord::Removed(_) => None,
        }
    }

    /// The paths at which something is another or gone.
    pub(crate) fn paths(&self) -> Vec<&VfsPath> {
        match self {
            ChangeRecord::Created(path, _) | ChangeRecord::Changed(path, _) | ChangeRecord::Removed(path) => vec![path],
            ChangeRecord::Moved { from, to, .. } => vec![from, to],
            ChangeRecord::Unreadable(record, _) => record.paths(),
        }
    }
}

/// Some changes, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangePage {
    /// These, in the order in which they were made. Empty where there are none.
    Changes {
        /// Each with its place.
        changes: Vec<(Sequence, ChangeRecord)>,
        /// Where to go on.
        next: Sequence,
        /// Whether there is more by now.
        has_more: bool,
    },
    /// What happened after the place that was asked for is no longer remembered, or no change was ever made there, as in a store
    /// that was put back to an earlier state: list again, and go on from here.
    Expired(Sequence),
}

/// Tells of the changes of a namespace, made by whatever process, in one order for all.
///
/// # Behaviour
///
/// A change has the number after that of the one before it, and is there for everyone as soon as it is acknowledged; nobody
/// ever sees a change without those before it. The newest are remembered, at least 4,096 of them.
#[async_trait]
pub trait Changes: Send + Sync {
    /// The place after the last change; 0 where there never was one.
    async fn last_sequence(&self, namespace: &Namespace) -> Result<Sequence>;

    /// At most `limit` changes after `seen`.
    async fn since(&self, namespace: &Namespace, seen: Sequence, limit: usize) -> Result<ChangePage>;

    /// Waits until there may be a change after `seen`. It may come back for nothing, but never misses one for longer than
    /// a second.
    async fn changed(&self, namespace: &Namespace, seen: Sequence) -> Result<()>;
}
