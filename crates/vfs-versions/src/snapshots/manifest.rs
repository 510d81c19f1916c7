//! Snapshot manifests: creation, listing, comparison, restoration, removal.

use std::collections::{BTreeSet, HashSet};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use vfs_core::{
    ChangeSet, DiffRequest, Error, ErrorKind, FileChange, OpContext, Result, SnapshotId, SnapshotInfo, SnapshotRequest,
    VfsPath,
};

use super::Keeper;
use super::apply::{Failure, FileStep, apply};
use super::files::{FileStamp, Files, Image, Images, Tree, for_cleanup};
use super::store::RecordKind;
use super::undo_log::{UndoCursor, UndoRecord};

/// Manifest of one snapshot: `snapshots/<number>.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    id: SnapshotId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    taken_at: DateTime<Utc>,
    files: Images,
}

const PREFIX: &str = "snap-";

impl Manifest {
    fn info(&self) -> SnapshotInfo {
        let bytes = self.files.values().map(|image| image.size).sum();
        let info = SnapshotInfo::new(self.id.clone(), self.taken_at).label(self.label.clone());
        info.holding(self.files.len() as u64, bytes)
    }
}

impl Keeper {
    /// Returns the contents of the newest snapshot, or none if there is no snapshot.
    pub(super) async fn newest(&self, cx: &OpContext) -> Result<Images> {
        let numbers = self.store.numbers(cx, RecordKind::Snapshots).await?;
        let Some((number, _)) = numbers.iter().rev().find(|(_, has_record)| *has_record) else {
            return Ok(Images::new());
        };
        let manifest = self.store.load::<Manifest>(cx, RecordKind::Snapshots, *number).await?;
        Ok(manifest.map(|manifest| manifest.files).unwrap_or_default())
    }

    pub(super) async fn take(&self, files: &Files<'_>, request: SnapshotRequest) -> Result<SnapshotInfo> {
        let cx = files.cx;
        let seen = files.below(&VfsPath::root()).await?;
        let known = self.newest(cx).await?;
        let files = self.store.keep(files, seen, &known).await?;
        let id = SnapshotId::new("");
        let mut manifest = Manifest { id, label: request.label, taken_at: Utc::now(), files };
        let numbers = self.store.numbers(cx, RecordKind::Snapshots).await?;
        let next = numbers.last().map_or(0, |(number, _)| *number) + 1;
        let add = |number| {
            manifest.id = SnapshotId::new(format!("{PREFIX}{number}"));
            manifest.clone()
        };
        self.store.add(cx, RecordKind::Snapshots, next, add).await?;
        // Placeholders of forgotten numbers can go once they are no longer the last number.
        for (number, _) in numbers.iter().filter(|(_, has_record)| !has_record) {
            if let Err(error) = self.store.remove(cx, RecordKind::Snapshots, *number).await {
                tracing::warn!(%error, "the number of a forgotten snapshot stays in the store");
            }
        }
        Ok(manifest.info())
    }

    pub(super) async fn list(&self, cx: &OpContext) -> Result<Vec<SnapshotInfo>> {
        Ok(self.manifests(cx).await?.iter().map(Manifest::info).collect())
    }

    async fn manifests(&self, cx: &OpContext) -> Result<Vec<Manifest>> {
        let numbers = self.store.numbers(cx, RecordKind::Snapshots).await?;
        let mut manifests = Vec::with_capacity(numbers.len());
        for (number, _) in numbers.into_iter().filter(|(_, has_record)| *has_record) {
            manifests.extend(self.store.load::<Manifest>(cx, RecordKind::Snapshots, number).await?);
        }
        Ok(manifests)
    }

    async fn manifest(&self, cx: &OpContext, id: &SnapshotId) -> Result<Manifest> {
        let number = number(id).ok_or_else(|| unknown(id))?;
        self.store.load(cx, RecordKind::Snapshots, number).await?.ok_or_else(|| unknown(id))
    }

    pub(super) async fn forget(&self, cx: &OpContext, id: &SnapshotId) -> Result<()> {
        let number = number(id).ok_or_else(|| unknown(id))?;
        let numbers = self.store.numbers(cx, RecordKind::Snapshots).await?;
        if !numbers.contains(&(number, true)) {
            return Err(unknown(id));
        }
        // The last number stays taken, so that no other snapshot gets this name.
        if numbers.last().is_some_and(|(last, _)| *last == number) {
            self.store.clear(cx, RecordKind::Snapshots, number).await?;
        } else {
            self.store.remove(cx, RecordKind::Snapshots, number).await?;
        }
        self.collect(cx).await;
        Ok(())
    }

    /// Removes the contents that neither a snapshot nor an undo record names. A failure only costs space.
    pub(super) async fn collect(&self, cx: &OpContext) {
        let collected = async {
            let mut named = HashSet::new();
            for manifest in self.manifests(cx).await? {
                named.extend(manifest.files.into_values().map(|image| image.object));
            }
            let numbers = self.store.numbers(cx, RecordKind::Undo).await?;
            let numbers: Vec<_> = numbers.into_iter().map(|(number, _)| number).collect();
            for record in self.store.load_many::<UndoRecord>(cx, RecordKind::Undo, &numbers).await? {
                named.extend(record.files.into_values().filter_map(|touched| Some(touched.before?.object)));
            }
            self.store.retain(cx, &named).await
        };
        match collected.await {
            Ok(removed) => tracing::debug!(removed, "contents that nothing names were removed"),
            Err(error) => tracing::warn!(%error, "contents that nothing names could not be removed"),
        }
    }

    pub(super) async fn go_back(&self, files: &Files<'_>, turn: &mut UndoCursor, id: &SnapshotId) -> Result<()> {
        self.settle(files, turn).await?;
        let manifest = self.manifest(files.cx, id).await?;
        let steps = self.steps(files, manifest.files).await?;
        if steps.is_empty() {
            return Ok(());
        }
        let made =
            steps.iter().filter(|step| step.now.is_none()).map(|step| step.path.clone()).collect::<BTreeSet<_>>();
        let before = steps.iter().filter_map(|step| Some((step.path.clone(), step.now.clone()?))).collect();
        let record = self.begin_restore(files.cx, turn, before, made).await?;
        let restored = apply(&self.store, files, steps).await;
        let (left, result) = match restored {
            Ok(versions) => (versions, Ok(())),
            Err(Failure { error, left }) => (left, Err(error)),
        };
        if let Some(record) = record {
            self.end_restore(&for_cleanup(files.cx), turn, record, left).await;
        }
        result
    }

    /// Returns the steps that bring the files to the state `then`. The contents that they replace are stored first.
    async fn steps(&self, files: &Files<'_>, mut then: Images) -> Result<Vec<FileStep>> {
        then.retain(|path, _| !files.is_excluded(path));
        let mut seen = files.below(&VfsPath::root()).await?;
        let same = |path: &VfsPath, seen: &FileStamp| then.get(path).is_some_and(|image| image.version == seen.version);
        let unchanged: BTreeSet<_> = seen.extract_if(.., |path, seen| same(path, seen)).map(|(path, _)| path).collect();
        then.retain(|path, _| !unchanged.contains(path));
        let mut now = self.store.keep(files, seen, &self.newest(files.cx).await?).await?;
        let mut steps = Vec::new();
        for (path, image) in then {
            let there = now.remove(&path);
            if there.as_ref().is_none_or(|there| there.object != image.object) {
                steps.push(FileStep { path, now: there, then: Some(image) });
            }
        }
        steps.extend(now.into_iter().map(|(path, image)| FileStep { path, now: Some(image), then: None }));
        Ok(steps)
    }

    pub(super) async fn compare(&self, files: &Files<'_>, request: &DiffRequest) -> Result<ChangeSet> {
        let before = self.manifest(files.cx, &request.from).await?.files;
        let after = match &request.to {
            Some(id) => Side::Kept(self.manifest(files.cx, id).await?.files),
            None => Side::Now(files.below(&VfsPath::root()).await?),
        };
        let paths: BTreeSet<_> = before.keys().chain(after.paths()).cloned().collect();
        let mut changes = Vec::new();
        for path in paths.into_iter().filter(|path| !files.is_excluded(path)) {
            files.cx.check()?;
            changes.extend(self.change(files, &path, before.get(&path), after.at(&path)).await?);
        }
        Ok(ChangeSet::new(changes))
    }

    /// Returns the change of one file. Contents are read only if needed.
    async fn change(
        &self,
        files: &Files<'_>,
        path: &VfsPath,
        before: Option<&Image>,
        after: Option<At<'_>>,
    ) -> Result<Option<FileChange>> {
        let old = match (before, &after) {
            (Some(old), Some(new)) if new.is(old) => return Ok(None),
            (Some(old), _) => Some((self.content(files.cx, path, old).await?, old.version.clone())),
            (None, _) => None,
        };
        let new = match after {
            None => None,
            Some(At::Kept(image)) => Some((self.content(files.cx, path, image).await?, image.version.clone())),
            Some(At::Now(seen)) => files.content(path).await?.map(|content| (content, seen.version.clone())),
        };
        Ok(FileChange::between(
            path,
            old.as_ref().map(|(content, version)| (&content[..], version.clone())),
            new.as_ref().map(|(content, version)| (&content[..], version.clone())),
        ))
    }

    async fn content(&self, cx: &OpContext, path: &VfsPath, image: &Image) -> Result<Bytes> {
        self.store.get(cx, &image.object).await.map_err(|error| error.with_path(path))
    }
}

/// Later side of a comparison.
enum Side {
    Kept(Images),
    Now(Tree),
}

/// File on the later side of a comparison.
enum At<'a> {
    Kept(&'a Image),
    Now(&'a FileStamp),
}

impl Side {
    fn paths(&self) -> impl Iterator<Item = &VfsPath> {
        let (kept, now) = match self {
            Self::Kept(images) => (Some(images.keys()), None),
            Self::Now(tree) => (None, Some(tree.keys())),
        };
        kept.into_iter().flatten().chain(now.into_iter().flatten())
    }

    fn at(&self, path: &VfsPath) -> Option<At<'_>> {
        match self {
            Self::Kept(images) => images.get(path).map(At::Kept),
            Self::Now(tree) => tree.get(path).map(At::Now),
        }
    }
}

impl At<'_> {
    /// Returns whether this file is known to have the content of `image` without reading it.
    fn is(&self, image: &Image) -> bool {
        match self {
            Self::Kept(kept) => kept.object == image.object,
            Self::Now(seen) => seen.version == image.version,
        }
    }
}

fn number(id: &SnapshotId) -> Option<u64> {
    let digits = id.as_str().strip_prefix(PREFIX)?;
    let number = digits.parse::<u64>().ok()?;
    (number.to_string() == digits).then_some(number)
}

fn unknown(id: &SnapshotId) -> Error {
    let message = format!("there is no snapshot with the id '{id}'; list those that exist, or take one first");
    Error::new(ErrorKind::NotFound, message).with_path(&VfsPath::root())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_written_with_the_names_with_which_it_is_read() {
        let golden = include_str!("../../tests/golden/snapshot_manifest.json");
        for json in [golden.to_owned(), golden.replace("  \"label\": \"before\",\n", "")] {
            let manifest: Manifest = serde_json::from_str(&json).expect("a manifest");
            assert_eq!(serde_json::to_string_pretty(&manifest).expect("JSON") + "\n", json);
        }
    }
}
