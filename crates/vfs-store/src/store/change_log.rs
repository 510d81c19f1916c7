//! Change log of a namespace.

use async_trait::async_trait;
use vfs_core::{Problem, Result, VfsPath};

use super::key::Namespace;
use super::values::StoredMeta;

/// Sequence number of a change in the log of its namespace, the same for every process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

/// One change in the log of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeRecord {
    /// A value was created.
    Created(VfsPath, StoredMeta),
    /// A value was replaced.
    Changed(VfsPath, StoredMeta),
    /// A value was removed.
    Removed(VfsPath),
    /// A value was moved, and replaced a value at its target if there was one.
    Moved {
        /// Source path.
        from: VfsPath,
        /// Target path.
        to: VfsPath,
        /// Metadata of the moved value.
        stored: StoredMeta,
    },
    /// The change was made, but the value cannot be read: a listing has this problem instead of an entry.
    Unreadable(Box<ChangeRecord>, Problem),
}

impl ChangeRecord {
    /// Returns the value that the change left, with its path.
    pub(crate) fn value_mut(&mut self) -> Option<(&VfsPath, &mut StoredMeta)> {
        match self {
            ChangeRecord::Created(path, stored) | ChangeRecord::Changed(path, stored) => Some((path, stored)),
            ChangeRecord::Moved { to, stored, .. } => Some((to, stored)),
            ChangeRecord::Unreadable(record, _) => record.value_mut(),
            ChangeRecord::Removed(_) => None,
        }
    }

    /// Returns the paths whose values changed.
    pub(crate) fn paths(&self) -> Vec<&VfsPath> {
        match self {
            ChangeRecord::Created(path, _) | ChangeRecord::Changed(path, _) | ChangeRecord::Removed(path) => vec![path],
            ChangeRecord::Moved { from, to, .. } => vec![from, to],
            ChangeRecord::Unreadable(record, _) => record.paths(),
        }
    }
}

/// One page of the change log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangePage {
    /// Changes after the requested sequence number, in order.
    Changes {
        /// Changes with their sequence numbers; empty if there are none.
        changes: Vec<(Sequence, ChangeRecord)>,
        /// Sequence number to continue from.
        next: Sequence,
        /// `true` if more changes follow.
        has_more: bool,
    },
    /// The log no longer has the changes after the requested sequence number, or never had that number, as after the store was
    /// restored to an earlier state. The caller lists again and continues from this number.
    Expired(Sequence),
}

/// Change log of each namespace, with the changes of all processes in one order.
///
/// # Behaviour
///
/// Sequence numbers have no gaps. A change is visible to every reader once it is acknowledged, and never before an earlier one. The log
/// keeps at least the last 4,096 changes.
#[async_trait]
pub trait Changes: Send + Sync {
    /// Returns the sequence number of the last change, or 0 if there was none.
    async fn last_sequence(&self, namespace: &Namespace) -> Result<Sequence>;

    /// Returns at most `limit` changes after `seen`.
    async fn since(&self, namespace: &Namespace, seen: Sequence, limit: usize) -> Result<ChangePage>;

    /// Waits until there may be a change after `seen`. The wait may end without a change, and ends at most a second
    /// after one.
    async fn changed(&self, namespace: &Namespace, seen: Sequence) -> Result<()>;
}
