//! Undo log: a record of the files that each change is about to touch, written before it.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use vfs_core::{
    Action, DeleteRequest, EditResult, ErrorKind, FileUploadResponse, OpContext, Operation, Result, TransferMode,
    Version, VfsPath, WriteResult,
};

use super::Keeper;
use super::apply::{Versions, there};
use super::files::{Files, Image, Images, Last, Tree, for_cleanup};
use super::store::Part;

/// What is written down of one operation: `undo/<number>.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) number: u64,
    pub(super) time: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) actor: Option<String>,
    pub(super) operation: Operation,
    /// As they were asked for.
    pub(super) paths: Vec<VfsPath>,
    /// Where it shows what the operation did, links followed: at these paths and below them.
    pub(super) roots: Vec<VfsPath>,
    pub(super) files: BTreeMap<VfsPath, Touched>,
    /// Whether it is known what the operation left.
    pub(super) is_done: bool,
}

/// One file that an operation touches; `None` is no file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Touched {
    pub(super) before: Option<Image>,
    pub(super) after: Option<Version>,
}

/// The numbers of the notes, for whoever may change files.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// The number of the next note; `None` where the store has to be asked.
    next: Option<u64>,
    /// A note whose operation was not seen to end.
    open: Option<u64>,
}

impl Turn {
    /// Has the store asked, as others have changed what is there.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

impl Note {
    fn begin(cx: &OpContext, operation: Operation, paths: Vec<VfsPath>, roots: Vec<VfsPath>) -> Self {
        let actor = cx.actor().map(str::to_owned);
        Self { number: 0, time: Utc::now(), actor, operation, paths, roots, files: BTreeMap::new(), is_done: false }
    }

    pub(super) fn with_before(mut self, before: Images) -> Self {
        for (path, image) in before {
            self.files.entry(path).or_default().before = Some(image);
        }
        self
    }

    /// The files that the operation may have touched, as they are now.
    pub(super) async fn look(&self, files: &Files<'_>) -> Result<Tree> {
        let mut now = Tree::new();
        for root in &self.roots {
            now.extend(files.below(root).await?);
        }
        for path in self.files.keys().filter(|path| !self.roots.iter().any(|root| path.starts_with(root))) {
            if let Some(seen) = files.file(path).await? {
                now.insert(path.clone(), seen);
            }
        }
        Ok(now)
    }

    /// Takes `after` for what the operation left.
    pub(super) fn end(&mut self, after: BTreeMap<VfsPath, Version>) {
        for touched in self.files.values_mut() {
            touched.after = None;
        }
        for (path, version) in after {
            self.files.entry(path).or_default().after = Some(version);
        }
        // What lies below the same root and is as it was does not belong to the operation.
        self.files.retain(|_, touched| touched.before.is_some() || touched.after.is_some());
        self.is_done = true;
    }

    fn has_happened(&self) -> bool {
        self.files.values().any(|touched| touched.before.as_ref().map(|image| &image.version) != touched.after.as_ref())
    }
}

impl Keeper {
    /// Writes down what `action` is about to touch. `None` where nothing is to be undone, as it will be refused.
    pub(super) async fn begin(&self, files: &Files<'_>, turn: &mut Turn, action: Action<'_>) -> Result<Option<Note>> {
        if self.most_notes == 0 {
            return Ok(None);
        }
        self.settle(files, turn).await?;
        let Some(roots) = roots(files, action).await? else { return Ok(None) };
        let mut seen = Tree::new();
        for root in &roots {
            seen.extend(files.below(root).await?);
        }
        let known = if seen.len() > 1 { self.newest(files.cx).await? } else { Images::new() };
        let before = self.store.keep(files, seen, &known).await?;
        let note = Note::begin(files.cx, action.operation(), action.paths().cloned().collect(), roots);
        self.note(files.cx, turn, note.with_before(before)).await.map(Some)
    }

    /// Writes down that the files of `before`, and those at `made`, are about to be made those of a snapshot.
    pub(super) async fn begin_restore(
        &self,
        cx: &OpContext,
        turn: &mut Turn,
        before: Images,
        made: BTreeSet<VfsPath>,
    ) -> Result<Option<Note>> {
        if self.most_notes == 0 {
            return Ok(None);
        }
        let mut note = Note::begin(cx, Operation::Restore, vec![VfsPath::root()], Vec::new()).with_before(before);
        note.files.extend(made.into_iter().map(|path| (path, Touched::default())));
        self.note(cx, turn, note).await.map(Some)
    }

    async fn note(&self, cx: &OpContext, turn: &mut Turn, mut note: Note) -> Result<Note> {
        let next = turn.next.unwrap_or(1);
        note.number = self.store.add(cx, Part::Undo, next, |number| Note { number, ..note.clone() }).await?;
        (turn.next, turn.open) = (Some(note.number + 1), Some(note.number));
        Ok(note)
    }

    /// Keeps `note`, of which it is known what the operation left.
    async fn finish(&self, cx: &OpContext, turn: &mut Turn, note: &Note) {
        if let Err(error) = self.complete(cx, turn, note).await {
            tracing::warn!(%error, "a note could not be completed, and is settled before the next change");
        }
    }

    /// Keeps `note` of a restore that left `left` at the files that it reached, also where it failed and went back.
    pub(super) async fn end_restore(&self, cx: &OpContext, turn: &mut Turn, mut note: Note, left: Versions) {
        note.files.retain(|path, _| left.contains_key(path));
        note.end(there(left));
        if note.has_happened() {
            self.finish(cx, turn, &note).await;
        } else {
            self.drop_note(cx, turn, &note).await;
        }
    }

    async fn complete(&self, cx: &OpContext, turn: &mut Turn, note: &Note) -> Result<()> {
        self.store.save(cx, Part::Undo, note.number, note).await?;
        turn.open = None;
        let Some(old) = note.number.checked_sub(self.most_notes) else { return Ok(()) };
        self.store.remove(cx, Part::Undo, old).await?;
        // Whoever never forgets a snapshot would keep the contents of old notes for ever.
        if note.number.is_multiple_of(self.most_notes.max(100)) {
            self.collect(cx).await;
        }
        Ok(())
    }

    /// Removes the note of an operation that has not happened.
    pub(super) async fn drop_note(&self, cx: &OpContext, turn: &mut Turn, note: &Note) {
        match self.store.remove(cx, Part::Undo, note.number).await {
            Ok(()) => (turn.next, turn.open) = (Some(note.number), None),
            Err(error) => tracing::warn!(%error, "the note of a change that failed could not be removed yet"),
        }
    }

    /// Completes or removes the note of an operation whose end nobody saw, by what is there now.
    pub(super) async fn settle(&self, files: &Files<'_>, turn: &mut Turn) -> Result<()> {
        if turn.next.is_none() {
            self.count(files.cx, turn).await?;
        }
        let Some(number) = turn.open else { return Ok(()) };
        let mut note = match self.store.load::<Note>(files.cx, Part::Undo, number).await {
            Ok(Some(note)) if !note.is_done => note,
            Ok(_) => {
                turn.open = None;
                return Ok(());
            }
            // Files that nobody could change any more because of one damaged note would be the worse loss.
            Err(error) if error.kind() == ErrorKind::Internal => {
                tracing::warn!(%error, "a note cannot be read, and its operation cannot be undone");
                turn.open = None;
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        note.end(versions(note.look(files).await?));
        if note.has_happened() {
            self.complete(files.cx, turn, &note).await?;
        } else {
            self.drop_note(files.cx, turn, &note).await;
        }
        Ok(())
    }

    /// Finds the number of the next note, and an operation whose process has ended before it did.
    async fn count(&self, cx: &OpContext, turn: &mut Turn) -> Result<()> {
        let numbers = self.store.numbers(cx, Part::Undo).await?;
        let last = numbers.last().map_or(0, |(number, _)| *number);
        let oldest = (last + 1).saturating_sub(self.most_notes);
        for (number, _) in numbers.iter().filter(|(number, _)| *number < oldest) {
            self.store.remove(cx, Part::Undo, *number).await?;
        }
        (turn.next, turn.open) = (Some(last + 1), (last > 0).then_some(last));
        Ok(())
    }

    /// Completes or removes `note` after its operation.
    pub(super) async fn conclude(&self, files: &Files<'_>, turn: &mut Turn, mut note: Note, ending: Ending) {
        let cx = for_cleanup(files.cx);
        let files = Files { cx: &cx, ..*files };
        let concluded = match ending {
            Ending::Left(after) => {
                note.end(after);
                self.finish(&cx, turn, &note).await;
                Ok(())
            }
            Ending::Done => match note.look(&files).await {
                Ok(now) => {
                    note.end(versions(now));
                    self.finish(&cx, turn, &note).await;
                    Ok(())
                }
                Err(error) => Err(error),
            },
            Ending::Nothing => {
                self.drop_note(&cx, turn, &note).await;
                Ok(())
            }
            Ending::Unknown => self.settle(&files, turn).await,
        };
        if let Err(error) = concluded {
            tracing::warn!(%error, "what a change left is looked at before the next one");
        }
    }
}

/// How an operation ended.
#[derive(Debug)]
pub(super) enum Ending {
    /// It left these versions.
    Left(BTreeMap<VfsPath, Version>),
    /// It is done; what it left has to be looked at.
    Done,
    /// Nothing has happened.
    Nothing,
    /// It is not known what has happened.
    Unknown,
}

impl Ending {
    pub(super) fn of<O: 'static>(note: &Note, answer: &Result<O>) -> Self {
        match answer {
            Ok(output) => told(note, output).map_or(Self::Done, Self::Left),
            Err(error) if may_have_happened(error.kind()) => Self::Unknown,
            Err(_) => Self::Nothing,
        }
    }
}

pub(super) fn versions(tree: Tree) -> BTreeMap<VfsPath, Version> {
    tree.into_iter().map(|(path, seen)| (path, seen.version)).collect()
}

/// The version that an operation on one file says that it left.
fn told<O: 'static>(note: &Note, output: &O) -> Option<BTreeMap<VfsPath, Version>> {
    let [root] = &note.roots[..] else { return None };
    let output: &dyn Any = output;
    let version = if let Some(write) = output.downcast_ref::<WriteResult>() {
        Some(&write.version)
    } else if let Some(edit) = output.downcast_ref::<EditResult>() {
        Some(&edit.version)
    } else {
        output.downcast_ref::<FileUploadResponse>().and_then(|upload| upload.version.as_ref())
    };
    version.map(|version| BTreeMap::from([(root.clone(), version.clone())]))
}

/// Whether an error of `kind` leaves open what has happened. A tree that is removed or moved in many steps may have got
/// stuck at a part that is in use.
fn may_have_happened(kind: ErrorKind) -> bool {
    use ErrorKind::{Busy, Cancelled, Internal, NotEmpty, PermissionDenied, StorageFull, Timeout, Unavailable};
    matches!(kind, Busy | Cancelled | Internal | NotEmpty | PermissionDenied | StorageFull | Timeout | Unavailable)
}

/// The paths at and below which `action` changes files; `None` where the backend will refuse it, so that no tree has to
/// be kept for nothing.
async fn roots(files: &Files<'_>, action: Action<'_>) -> Result<Option<Vec<VfsPath>>> {
    match action {
        Action::Write(write) => one_file(files, &write.path).await,
        Action::Upload(upload) => one_file(files, &upload.path).await,
        Action::Edit(edit) => match files.file(&edit.path).await? {
            Some(_) => one_file(files, &edit.path).await,
            None => Ok(None),
        },
        Action::Delete(delete) => deleted(files, delete).await,
        Action::Rename(rename) => {
            let Some(to) = moved(files, &rename.from, &rename.to, rename.mode).await? else { return Ok(None) };
            Ok(Some(vec![files.real(&rename.from, Last::Kept).await, to]))
        }
        Action::Copy(copy) => {
            let to = moved(files, &copy.from, &copy.to, copy.mode).await?;
            Ok(to.map(|to| vec![to]))
        }
        _ => Ok(None),
    }
}

async fn one_file(files: &Files<'_>, path: &VfsPath) -> Result<Option<Vec<VfsPath>>> {
    if path.is_root() || files.is_excluded(path) || files.at(path).await?.is_some_and(|info| info.is_dir) {
        return Ok(None);
    }
    Ok(Some(vec![files.real(path, Last::Followed).await]))
}

async fn deleted(files: &Files<'_>, delete: &DeleteRequest) -> Result<Option<Vec<VfsPath>>> {
    let path = &delete.path;
    if path.is_root() || files.is_excluded(path) {
        return Ok(None);
    }
    match files.at(path).await? {
        Some(info) if !info.is_dir || delete.recursive => Ok(Some(vec![files.real(path, Last::Kept).await])),
        _ => Ok(None),
    }
}

/// Where something goes that is moved or copied from `from` to `to`.
async fn moved(files: &Files<'_>, from: &VfsPath, to: &VfsPath, mode: TransferMode) -> Result<Option<VfsPath>> {
    if from.is_root() || to.starts_with(from) || from.starts_with(to) || files.at(from).await?.is_none() {
        return Ok(None);
    }
    match files.at(to).await? {
        Some(_) if mode == TransferMode::CreateNew => Ok(None),
        Some(info) if info.is_dir && !files.below(to).await?.is_empty() => Ok(None),
        _ => Ok(Some(files.real(to, Last::Kept).await)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_written_with_the_names_with_which_it_is_read() {
        let golden = include_str!("../../tests/golden/undo_note.json");
        for json in [golden.to_owned(), golden.replace("  \"actor\": \"ann\",\n", "")] {
            let note: Note = serde_json::from_str(&json).expect("a note");
            assert_eq!(serde_json::to_string_pretty(&note).expect("JSON") + "\n", json);
        }
    }
}
