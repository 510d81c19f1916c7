//! States of all files that are remembered.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use vfs_core::{Error, ErrorKind, Result, SnapshotId};

use crate::map::FileMap;

/// All files of a [`MemoryBackend`](crate::MemoryBackend) at one moment. Taking and cloning one costs nothing; it keeps
/// the contents that it shows in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub(crate) files: FileMap,
}

impl Snapshot {
    /// How many files there are.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there is no file.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes the files have together.
    pub fn total_bytes(&self) -> u64 {
        self.files.bytes()
    }
}

/// Snapshots by name, for callers that cannot hold one.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    snapshots: Mutex<Numbered>,
}

#[derive(Debug, Default)]
struct Numbered {
    last: u64,
    by_id: HashMap<SnapshotId, Snapshot>,
}

impl Remembered {
    /// Keeps `snapshot` under a name that was never given before.
    pub(crate) fn keep(&self, snapshot: Snapshot) -> SnapshotId {
        let mut snapshots = self.lock();
        snapshots.last += 1;
        let id = SnapshotId::new(format!("snap-{}", snapshots.last));
        snapshots.by_id.insert(id.clone(), snapshot);
        id
    }

    pub(crate) fn get(&self, id: &SnapshotId) -> Result<Snapshot> {
        self.lock().by_id.get(id).cloned().ok_or_else(unknown)
    }

    pub(crate) fn forget(&self, id: &SnapshotId) -> Result<()> {
        self.lock().by_id.remove(id).map(drop).ok_or_else(unknown)
    }

    fn lock(&self) -> MutexGuard<'_, Numbered> {
        // A panic cannot leave the table half changed: each method changes it in its last step.
        self.snapshots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unknown() -> Error {
    Error::new(ErrorKind::NotFound, "there is no snapshot of this id; take one first")
}
