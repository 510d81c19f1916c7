//! States of all files that are remembered.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::Utc;
use vfs_core::{ChangeSet, Error, ErrorKind, FileChange, Result, SnapshotId, SnapshotInfo, SnapshotRequest, VfsPath};

use crate::file::File;
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

    /// The files that differ between this state and a later one. Contents that both share are not compared.
    pub fn diff(&self, later: &Snapshot) -> ChangeSet {
        let (mut before, mut after) = (self.files.iter().peekable(), later.files.iter().peekable());
        let mut changes = Vec::new();
        loop {
            let order = match (before.peek(), after.peek()) {
                (None, None) => break,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some((old, _)), Some((new, _))) => old.cmp(new),
            };
            let old = if order.is_le() { before.next() } else { None };
            let new = if order.is_ge() { after.next() } else { None };
            changes.extend(change(old, new));
        }
        ChangeSet::new(changes)
    }
}

/// What became of one file.
fn change(old: Option<(&VfsPath, &Arc<File>)>, new: Option<(&VfsPath, &Arc<File>)>) -> Option<FileChange> {
    if let (Some((_, old)), Some((_, new))) = (old, new)
        && Arc::ptr_eq(old, new)
    {
        return None;
    }
    let (path, _) = old.or(new)?;
    let side = |file: Option<(&'_ VfsPath, &'_ Arc<File>)>| file.map(|(_, file)| Arc::clone(file));
    let (old, new) = (side(old), side(new));
    let known = |file: &'_ Option<Arc<File>>| file.as_ref().map(|file| file.version().clone());
    let (before, after) = (known(&old), known(&new));
    FileChange::between(
        path,
        old.as_ref().zip(before).map(|(file, version)| (&file.content()[..], version)),
        new.as_ref().zip(after).map(|(file, version)| (&file.content()[..], version)),
    )
}

/// Snapshots by name, for callers that cannot hold one.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    snapshots: Mutex<Numbered>,
}

#[derive(Debug, Default)]
struct Numbered {
    last: u64,
    by_number: BTreeMap<u64, (SnapshotInfo, Snapshot)>,
}

impl Remembered {
    /// Keeps `snapshot` under a name that was never given before.
    pub(crate) fn keep(&self, snapshot: Snapshot, req: SnapshotRequest) -> SnapshotInfo {
        let mut snapshots = self.lock();
        snapshots.last += 1;
        let number = snapshots.last;
        let info = SnapshotInfo::new(SnapshotId::new(format!("{PREFIX}{number}")), Utc::now())
            .label(req.label)
            .holding(snapshot.len() as u64, snapshot.total_bytes());
        snapshots.by_number.insert(number, (info.clone(), snapshot));
        info
    }

    /// Those that are kept, the oldest first.
    pub(crate) fn list(&self) -> Vec<SnapshotInfo> {
        self.lock().by_number.values().map(|(info, _)| info.clone()).collect()
    }

    pub(crate) fn get(&self, id: &SnapshotId) -> Result<Snapshot> {
        let snapshots = self.lock();
        let found = number(id).and_then(|number| snapshots.by_number.get(&number));
        found.map(|(_, snapshot)| snapshot.clone()).ok_or_else(unknown)
    }

    pub(crate) fn forget(&self, id: &SnapshotId) -> Result<()> {
        let forgotten = number(id).and_then(|number| self.lock().by_number.remove(&number));
        forgotten.map(drop).ok_or_else(unknown)
    }

    fn lock(&self) -> MutexGuard<'_, Numbered> {
        // A panic cannot leave the table half changed: each method changes it in its last step.
        self.snapshots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const PREFIX: &str = "snap-";

fn number(id: &SnapshotId) -> Option<u64> {
    id.as_str().strip_prefix(PREFIX)?.parse().ok()
}

fn unknown() -> Error {
    let message = "there is no snapshot of this id; list those that there are, or take one first";
    Error::new(ErrorKind::NotFound, message).with_path(&VfsPath::root())
}
