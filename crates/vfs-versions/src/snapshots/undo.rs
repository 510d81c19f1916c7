//! Undo of the last operations.

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use vfs_core::{Error, ErrorKind, Operation, RenameRequest, Result, Version, VfsPath};

use super::Keeper;
use super::apply::{Failure, Step, Versions, apply, changed, there};
use super::files::{Files, Image, Images, Tree, for_cleanup};
use super::store::Part;
use super::undo_log::{Note, Turn, versions};
use crate::content_store::ObjectId;

/// An operation that can be taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UndoEntry {
    /// Its number: later operations have higher ones.
    pub number: u64,
    /// When it began, in UTC; RFC 3339 in JSON.
    pub time: DateTime<Utc>,
    /// Who asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Which operation; its code in JSON.
    pub operation: Operation,
    /// The paths that were asked for; the root for going back to a snapshot.
    pub paths: Vec<VfsPath>,
}

/// The operation in words: `rename /a to /b`.
impl fmt::Display for UndoEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths: Vec<_> = self.paths.iter().map(|path| path.as_str()).collect();
        write!(f, "{} {}", self.operation, paths.join(" to "))
    }
}

/// What was taken back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Undone {
    /// The operations, the newest first.
    pub entries: Vec<UndoEntry>,
    /// How many files were changed for it, one that was changed twice counting twice.
    pub files: u64,
}

impl From<&Note> for UndoEntry {
    fn from(note: &Note) -> Self {
        let Note { number, time, actor, operation, paths, .. } = note.clone();
        Self { number, time, actor, operation, paths }
    }
}

/// What a file is again, in another version than it was.
type Renewed = BTreeMap<VfsPath, (Version, Version)>;

impl Keeper {
    /// The notes that there are, the oldest first.
    pub(super) async fn notes(&self, files: &Files<'_>) -> Result<Vec<Note>> {
        let numbers = self.store.numbers(files.cx, Part::Undo).await?;
        let numbers: Vec<_> = numbers.into_iter().map(|(number, _)| number).collect();
        self.store.load_many(files.cx, Part::Undo, &numbers).await
    }

    /// Those of the files at `paths` that are as the newest operation on each left them, with their contents by hash.
    pub(super) async fn current(&self, files: &Files<'_>, paths: &[VfsPath]) -> Result<Images> {
        let notes = self.notes(files).await?;
        let mut current = Images::new();
        for path in paths {
            let newest = notes.iter().rev().find_map(|note| note.files.get(path));
            let Some(left) = newest.and_then(|touched| touched.after.as_ref()) else { continue };
            let Some(Ok((content, Some(version)))) = files.download(vec![path.clone()]).await.pop() else { continue };
            if version == *left {
                let (object, size) = (ObjectId::of(&content), content.len() as u64);
                current.insert(path.clone(), Image { object, size, version });
            }
        }
        Ok(current)
    }

    /// Records the versions that files have now which hold what they held as `before`.
    pub(super) async fn renew_versions(&self, files: &Files<'_>, before: Images) -> Result<()> {
        let mut renewed = Renewed::new();
        for (path, image) in before {
            let Some(now) = files.file(&path).await? else { continue };
            if now.version != image.version && files.holds(&path, Some(&now), Some(&image)).await? {
                renewed.insert(path, (image.version, now.version));
            }
        }
        if renewed.is_empty() {
            return Ok(());
        }
        let mut notes = self.notes(files).await?;
        for note in renew(&mut notes, &renewed) {
            self.store.save(files.cx, Part::Undo, note.number, note).await?;
        }
        Ok(())
    }

    pub(super) async fn undo(&self, files: &Files<'_>, turn: &mut Turn, operations: usize) -> Result<Undone> {
        self.settle(files, turn).await?;
        turn.forget();
        let mut notes = self.notes(files).await?;
        let mut undone = Undone::default();
        for _ in 0..operations {
            let Some(note) = notes.pop() else { break };
            let number = note.number;
            let (renewed, count) = match self.undo_one(files, note.clone()).await {
                Ok(done) => done,
                Err(Failure { error, left }) => {
                    self.keep_left(files, note, left).await;
                    return Err(stopped(error, &undone));
                }
            };
            for earlier in renew(&mut notes, &renewed) {
                self.store.save(files.cx, Part::Undo, earlier.number, earlier).await?;
            }
            self.store.remove(files.cx, Part::Undo, number).await?;
            undone.entries.push(UndoEntry::from(&note));
            undone.files += count;
        }
        Ok(undone)
    }

    /// Writes down which versions files have that were changed and changed back, so that the note can be taken back later.
    async fn keep_left(&self, files: &Files<'_>, mut note: Note, left: Versions) {
        let mut is_changed = false;
        for (path, version) in left {
            if let Some(touched) = note.files.get_mut(&path)
                && touched.after != version
            {
                (touched.after, is_changed) = (version, true);
            }
        }
        if is_changed && let Err(error) = self.store.save(&for_cleanup(files.cx), Part::Undo, note.number, &note).await
        {
            tracing::warn!(%error, "an operation cannot be undone any more, as its note could not be renewed");
        }
    }

    /// Takes back what `note` says, all of it or nothing, and says how many files that changed.
    async fn undo_one(&self, files: &Files<'_>, mut note: Note) -> Result<(Renewed, u64), Failure> {
        let now = note.look(files).await?;
        if !note.is_done {
            note.end(versions(now.clone()));
        }
        let plan = Plan::of(files, &note, &now).await?;
        if plan.is_whole
            && let Some(versions) = moved_back(files, &note, &now).await?
        {
            return Ok((renewed(&note, versions), note.files.len() as u64 / 2));
        }
        let seen = now.into_iter().filter(|(path, _)| plan.open.contains(path)).collect();
        let images = self.store.keep(files, seen, &Images::new()).await?;
        let steps = plan.open.iter().map(|path| {
            let touched = note.files.get(path).cloned().unwrap_or_default();
            let now = images.get(path).cloned();
            // What has changed since it was looked at a moment ago was changed by somebody else.
            if now.as_ref().map(|image| &image.version) != touched.after.as_ref() {
                return Err(changed(path, now.map(|image| image.version)));
            }
            Ok(Step { path: path.clone(), now, then: touched.before })
        });
        let steps: Vec<_> = steps.collect::<Result<_>>()?;
        let count = steps.len() as u64;
        let mut versions = plan.back;
        versions.extend(there(apply(&self.store, files, steps).await?));
        Ok((renewed(&note, versions), count))
    }
}

/// What has to be done to take a note back.
struct Plan {
    /// The files that have to change.
    open: Vec<VfsPath>,
    /// Those that are back already, as where an undo was cut short, with the versions that they have.
    back: BTreeMap<VfsPath, Version>,
    /// Whether all is as the operation left it.
    is_whole: bool,
}

impl Plan {
    /// Holds what is there against what the operation left; what is neither that nor what was there before is a conflict.
    async fn of(files: &Files<'_>, note: &Note, now: &Tree) -> Result<Self> {
        let mut plan = Self { open: Vec::new(), back: BTreeMap::new(), is_whole: true };
        for (path, touched) in &note.files {
            let seen = now.get(path);
            let version = seen.map(|seen| &seen.version);
            let is_left = version == touched.after.as_ref();
            if is_left && version != touched.before.as_ref().map(|image| &image.version) {
                plan.open.push(path.clone());
            } else if is_left || files.holds(path, seen, touched.before.as_ref()).await? {
                plan.is_whole &= is_left;
                plan.back.extend(version.map(|version| (path.clone(), version.clone())));
            } else {
                return Err(changed(path, version.cloned()));
            }
        }
        Ok(plan)
    }
}

/// Moves back what a rename has moved, which keeps all that a content does not have: permissions, times, links, directories
/// without files. `None` where it cannot be done so, as something was replaced, or was added since.
async fn moved_back(files: &Files<'_>, note: &Note, now: &Tree) -> Result<Option<BTreeMap<VfsPath, Version>>> {
    let (Operation::Rename, [from, to]) = (note.operation, &note.roots[..]) else { return Ok(None) };
    let is_new = |path: &VfsPath| note.files.get(path).is_none_or(|touched| touched.before.is_some());
    if now.keys().any(|path| is_new(path) || path.starts_with(from)) || files.at(to).await?.is_none() {
        return Ok(None);
    }
    if note.files.iter().any(|(path, touched)| path.starts_with(to) && touched.before.is_some()) {
        return Ok(None);
    }
    let moved = files.inner.rename(files.cx, RenameRequest::new(to.clone(), from.clone())).await;
    match moved {
        Ok(_) => Ok(Some(versions(files.below(from).await?))),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(error),
    }
}

/// Those of `versions` that are other ones than the files had before the operation.
fn renewed(note: &Note, versions: BTreeMap<VfsPath, Version>) -> Renewed {
    let of = |(path, new): (VfsPath, Version)| {
        let old = note.files.get(&path)?.before.as_ref()?.version.clone();
        (old != new).then_some((path, (old, new)))
    };
    versions.into_iter().filter_map(of).collect()
}

/// Teaches earlier notes the versions that the files have which they left, and gives those notes that learnt something.
fn renew<'a>(notes: &'a mut [Note], renewed: &Renewed) -> Vec<&'a Note> {
    let mut changed = vec![false; notes.len()];
    for (path, (old, new)) in renewed {
        let found = notes.iter_mut().enumerate().rev();
        let mut found = found.filter_map(|(place, note)| note.files.get_mut(path).map(|touched| (place, touched)));
        if let Some((place, touched)) = found.next()
            && touched.after.as_ref() == Some(old)
        {
            touched.after = Some(new.clone());
            changed[place] = true;
        }
    }
    notes.iter().zip(changed).filter_map(|(note, changed)| changed.then_some(note)).collect()
}

/// `error`, with how many operations were taken back before it.
fn stopped(error: Error, undone: &Undone) -> Error {
    if undone.entries.is_empty() {
        return error;
    }
    error.with_consequence(format_args!("of those asked for, {} were taken back before", undone.entries.len()))
}
