//! Snapshots of all files, and a table of named ones.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::Utc;
use vfs_core::snapshots::{SnapshotDiffEntry, SnapshotDiffResult, SnapshotId, SnapshotInfo, SnapshotRequest};
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use crate::file_map::FileMap;
use crate::memory_file::MemoryFile;

/// All files of a [`MemoryBackend`](crate::MemoryBackend) at one moment. Taking and cloning one takes constant time;
/// it keeps its contents in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub(crate) files: FileMap,
}

impl Snapshot {
    /// Returns the number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Returns whether there is no file.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size of all files together.
    pub fn total_bytes(&self) -> u64 {
        self.files.bytes()
    }

    /// Returns the files that differ between this snapshot and a later one. Contents that both share are not
    /// compared.
    pub fn diff(&self, later: &Snapshot) -> SnapshotDiffResult {
        let changes = self.files.differences(&later.files);
        SnapshotDiffResult::new(changes.filter_map(|(path, old, new)| change(path, old, new)).collect::<Vec<_>>())
    }
}

/// Returns the change of one file.
fn change(path: &VfsPath, old: Option<&Arc<MemoryFile>>, new: Option<&Arc<MemoryFile>>) -> Option<SnapshotDiffEntry> {
    let version = |file: Option<&Arc<MemoryFile>>| file.map(|file| file.version().clone());
    let (before, after) = (version(old), version(new));
    SnapshotDiffEntry::between(
        path,
        old.zip(before).map(|(file, version)| (&file.content()[..], version)),
        new.zip(after).map(|(file, version)| (&file.content()[..], version)),
    )
}

/// Snapshots by name, for callers of the trait.
#[derive(Debug, Default)]
pub(crate) struct NamedSnapshots {
    snapshots: Mutex<SnapshotTable>,
}

/// The named snapshots, by the number in their name.
#[derive(Debug, Default)]
struct SnapshotTable {
    last: u64,
    by_number: BTreeMap<u64, (SnapshotInfo, Snapshot)>,
}

impl NamedSnapshots {
    /// Stores `snapshot` under a name that was never used before.
    pub(crate) fn insert(&self, snapshot: Snapshot, req: SnapshotRequest) -> SnapshotInfo {
        let mut snapshots = self.lock();
        snapshots.last += 1;
        let number = snapshots.last;
        let info = SnapshotInfo::new(SnapshotId::new(format!("{ID_PREFIX}{number}")), Utc::now())
            .label(req.label)
            .holding(snapshot.len() as u64, snapshot.total_bytes());
        snapshots.by_number.insert(number, (info.clone(), snapshot));
        info
    }

    /// Returns the stored snapshots, oldest first.
    pub(crate) fn list(&self) -> Vec<SnapshotInfo> {
        self.lock().by_number.values().map(|(info, _)| info.clone()).collect()
    }

    pub(crate) fn get(&self, id: &SnapshotId) -> Result<Snapshot> {
        let snapshots = self.lock();
        let found = number(id).and_then(|number| snapshots.by_number.get(&number));
        found.map(|(_, snapshot)| snapshot.clone()).ok_or_else(|| unknown_snapshot(id))
    }

    pub(crate) fn forget(&self, id: &SnapshotId) -> Result<()> {
        let removed = number(id).and_then(|number| self.lock().by_number.remove(&number));
        removed.map(drop).ok_or_else(|| unknown_snapshot(id))
    }

    fn lock(&self) -> MutexGuard<'_, SnapshotTable> {
        // A panic leaves no partial change behind: each method changes the table in its last step.
        self.snapshots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const ID_PREFIX: &str = "snap-";

fn number(id: &SnapshotId) -> Option<u64> {
    id.as_str().strip_prefix(ID_PREFIX)?.parse().ok()
}

fn unknown_snapshot(id: &SnapshotId) -> Error {
    let message = format!("there is no snapshot with the id '{id}'; list those that exist, or take one first");
    Error::new(ErrorKind::NotFound, message).with_path(&VfsPath::root())
}
