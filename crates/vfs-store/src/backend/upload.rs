//! Uploads of many files: several in one change, where the store can do that.

use std::collections::{BTreeSet, HashSet};

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use vfs_core::{Error, ErrorKind, FileUpload, FileUploadResponse, WriteRequest};

use super::space::{Space, above};
use super::write::{self, NewContent};
use crate::store::{BatchOutcome, Condition, Expected, Store, Stored, Times, Write};

/// The most files in one change. Others who change the namespace wait as long as it takes.
const MAX_BATCH_FILES: usize = 128;
/// The most bytes in one change.
const MAX_BATCH_BYTES: usize = 4 << 20;
/// The largest file, in bytes, that is written together with others: larger ones are sent at the same time instead.
const MAX_BATCHED_FILE: usize = 256 << 10;

/// Files that are written in the same way.
enum Group {
    /// In one change.
    Batch(Vec<FileUpload>),
    /// Each in a change of its own, several at a time.
    Each(Vec<FileUpload>),
}

/// Uploads `files`, in their order where that matters. The answers are in the order of `files`.
pub(super) async fn upload_all<S: Store>(space: &Space<S>, files: Vec<FileUpload>) -> Vec<FileUploadResponse> {
    let mut answers = Vec::with_capacity(files.len());
    for wave in split_by_order(files) {
        let groups = if space.batches().is_some() { split_by_size(wave) } else { vec![Group::Each(wave)] };
        for group in groups {
            answers.extend(match group {
                Group::Batch(files) => upload_batch(space, files).await,
                Group::Each(files) => upload_each(space, files).await,
            });
        }
    }
    answers
}

/// Splits `files` so that those of one part do not depend on one another's order.
fn split_by_order(files: Vec<FileUpload>) -> Vec<Vec<FileUpload>> {
    let mut waves = Vec::new();
    let (mut wave, mut taken, mut above_taken) = (Vec::new(), HashSet::new(), HashSet::new());
    for file in files {
        let meets = taken.contains(&file.path)
            || above_taken.contains(&file.path)
            || above(&file.path).any(|above| taken.contains(&above));
        if meets {
            waves.push(std::mem::take(&mut wave));
            taken.clear();
            above_taken.clear();
        }
        above_taken.extend(above(&file.path));
        taken.insert(file.path.clone());
        wave.push(file);
    }
    waves.push(wave);
    waves
}

/// Splits `wave` into what is written in the same way.
fn split_by_size(wave: Vec<FileUpload>) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut bytes = 0;
    for file in wave {
        let size = file.content.len();
        match groups.last_mut() {
            Some(Group::Each(files)) if size > MAX_BATCHED_FILE => files.push(file),
            Some(Group::Batch(files))
                if size <= MAX_BATCHED_FILE && files.len() < MAX_BATCH_FILES && bytes + size <= MAX_BATCH_BYTES =>
            {
                files.push(file);
                bytes += size;
            }
            _ if size > MAX_BATCHED_FILE => groups.push(Group::Each(vec![file])),
            _ => {
                groups.push(Group::Batch(vec![file]));
                bytes = size;
            }
        }
    }
    groups
}

async fn upload_each<S: Store>(space: &Space<S>, files: Vec<FileUpload>) -> Vec<FileUploadResponse> {
    let upload = async |file: FileUpload| {
        let path = file.path.clone();
        FileUploadResponse::of_write(path, write::write(space, WriteRequest::from(file)).await)
    };
    let uploads: Vec<_> = files.into_iter().map(upload).collect();
    stream::iter(uploads).buffered(space.fetches()).collect().await
}

/// Uploads `files` in one change, or each on its own where that change cannot be made, as each has an answer of its own.
async fn upload_batch<S: Store>(space: &Space<S>, files: Vec<FileUpload>) -> Vec<FileUploadResponse> {
    let (Some(first), Some(batch)) = (files.first(), plan_batch(space, &files).await) else {
        return upload_each(space, files).await;
    };
    match space.batch(&first.path, &batch.conditions, batch.writes).await {
        Ok(BatchOutcome::Done(stored)) => {
            let answer = |(file, stored): (FileUpload, Stored)| FileUploadResponse::ok(file.path, stored.version);
            files.into_iter().zip(stored).map(answer).collect()
        }
        // The store may still make the change.
        Err(error) if is_undecided(&error) || space.cx.check().is_err() => {
            let answer = |FileUpload { path, .. }| {
                let error = error.clone().with_path(&path);
                FileUploadResponse::failed(path, error)
            };
            files.into_iter().map(answer).collect()
        }
        Ok(BatchOutcome::Refused(..)) | Err(_) => upload_each(space, files).await,
    }
}

fn is_undecided(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Cancelled)
}

struct BatchPlan {
    conditions: Vec<Condition>,
    writes: Vec<Write>,
}

/// Plans the change that writes `files`; `None` where one of them is refused or cannot be looked up, or there are no two.
async fn plan_batch<S: Store>(space: &Space<S>, files: &[FileUpload]) -> Option<BatchPlan> {
    if files.len() < 2 {
        return None;
    }
    let has_times = space.store().abilities().times != Times::OfStore;
    let is_allowed = |file: &FileUpload| {
        let has_path = !file.path.is_root() && space.check_path(&file.path).is_ok();
        let has_size = space.check_size(&file.path, file.content.len() as u64).is_ok();
        has_path && has_size && (has_times || file.modified_at.is_none())
    };
    if !files.iter().all(is_allowed) {
        return None;
    }
    let lookups: Vec<_> = files.iter().map(|file| space.head(&file.path)).collect();
    let found: Vec<Option<Stored>> = stream::iter(lookups).buffered(space.fetches()).try_collect().await.ok()?;
    let write = |(file, found): (&FileUpload, &Option<Stored>)| {
        let content = NewContent { bytes: file.content.clone(), modified_at: file.modified_at };
        Write::Put(file.path.clone(), content.value(found.as_ref()))
    };
    let writes = files.iter().zip(&found).map(write).collect();
    Some(BatchPlan { conditions: require_unchanged(files, &found), writes })
}

/// Returns the conditions that each file is still what was found, and has room where nothing was.
fn require_unchanged(files: &[FileUpload], found: &[Option<Stored>]) -> Vec<Condition> {
    let (mut conditions, mut directories) = (Vec::with_capacity(2 * files.len()), BTreeSet::new());
    for (file, found) in files.iter().zip(found) {
        let expected = found.as_ref().map_or(Expected::Nothing, |found| Expected::Version(found.version.clone()));
        conditions.push(Condition::At(file.path.clone(), expected));
        if found.is_none() {
            conditions.push(Condition::NothingBelow(file.path.clone()));
            directories.extend(above(&file.path));
        }
    }
    conditions.extend(directories.into_iter().map(|directory| Condition::At(directory, Expected::Nothing)));
    conditions
}
