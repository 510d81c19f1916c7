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
        /// Sequence number to continue from: that of the last of `changes`, or the requested one if there are none.
        next: Sequence,
        /// `true` if more changes follow; `changes` is then not empty.
        has_more: bool,
    },
    /// The log no longer has the changes after the requested sequence number, or never had that number, as after the store was
    /// restored to an earlier state. The caller lists again and continues from this number, which is that of the last change.
    Expired(Sequence),
}

/// Change log of each namespace, with the changes of all processes in one order.
///
/// # Behaviour
///
/// * The changes of a namespace are numbered from 1, without gaps, in the order in which they are applied.
/// * A change is visible to every reader once it is acknowledged, and never before an earlier one. The record is written in the
///   transaction of the change, so that a visible change has a record and a recorded change is visible.
/// * Each applied write has one record: a copy is `Created` or `Changed`, and a put of equal content is `Changed`. The records of
///   a batch are consecutive, in the order of its writes. A change that is not applied has neither a record nor a number.
/// * The log keeps at least the last 4,096 changes of a namespace.
/// * [`StoreBackend`](crate::StoreBackend) polls for each feed on its own: it calls `since` until no change is left, then
///   `changed`, and `since` again as soon as `changed` returns. The store sets the interval, as it waits in `changed` for a
///   notification or between polls of its own. A search over cached names calls `since`, and never `changed`.
/// * No method may block its thread, not even `changed`.
///
/// # Errors
///
/// Those of [`Store`](super::Store). An error ends the feed, or fails the search, that sent the request.
#[async_trait]
pub trait StoreChangeLog: Send + Sync {
    /// Returns the sequence number of the last change, or 0 if there was none.
    ///
    /// A listing that begins afterwards includes this change and all earlier ones.
    async fn last_sequence(&self, namespace: &Namespace) -> Result<Sequence>;

    /// Returns at most `limit` changes after `seen`, in their order, beginning with the one that follows `seen`.
    ///
    /// If `seen` is the last change, the page is empty; if the log lacks a change after `seen`, or `seen` is greater than the last
    /// sequence number, the page is [`ChangePage::Expired`].
    async fn since(&self, namespace: &Namespace, seen: Sequence, limit: usize) -> Result<ChangePage>;

    /// Waits until there may be a change after `seen`.
    ///
    /// # Behaviour
    ///
    /// * The wait ends at once if there is a change after `seen`, and otherwise at most a second after one, by whatever process.
    /// * The wait may end without a change. A wait that always ends at once makes each feed send requests without a pause.
    /// * Dropping the future ends the wait.
    async fn changed(&self, namespace: &Namespace, seen: Sequence) -> Result<()>;
}
