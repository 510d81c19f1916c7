//! Uploads of many files: several in one change, where the store can do that.

use std::collections::{BTreeSet, HashSet};

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use vfs_core::{FileUpload, FileUploadResponse, Result, WriteRequest};

use super::space::{Space, above};
use super::write::{self, NewContent};
use crate::store::{BatchOutcome, Condition, Expected, Store, Stored, Times, Write};

/// The most files in one change. Others who change the namespace wait as long as it takes.
const MOST_FILES: usize = 128;
/// The most bytes in one change, unless one file has more.
const MOST_BYTES: usize = 4 << 20;

/// Uploads `files`, in their order where that matters. The answers are in the order of `files`.
pub(super) async fn upload_all<S: Store>(space: &Space<S>, files: Vec<FileUpload>) -> Vec<FileUploadResponse> {
    let mut answers = Vec::with_capacity(files.len());
    for wave in waves(files) {
        if space.batches().is_none() {
            answers.extend(one_by_one(space, wave).await);
            continue;
        }
        for group in groups(wave) {
            match together(space, &group).await {
                Ok(Some(uploaded)) => answers.extend(uploaded),
                // The store may still be at work on it, and is not asked for more.
                Err(error) if error.is_temporary() || space.cx.check().is_err() => {
                    let failed = |FileUpload { path, .. }| {
                        let error = error.clone().with_path(&path);
                        FileUploadResponse::failed(path, error)
                    };
                    answers.extend(group.into_iter().map(failed));
                }
                // Each file has an answer of its own, and one that fails stops no other.
                Ok(None) | Err(_) => answers.extend(one_by_one(space, group).await),
            }
        }
    }
    answers
}

/// Splits `files` so that those of one part do not depend on one another's order.
fn waves(files: Vec<FileUpload>) -> Vec<Vec<FileUpload>> {
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

/// Splits `wave` into what one change may hold.
fn groups(wave: Vec<FileUpload>) -> Vec<Vec<FileUpload>> {
    let mut groups: Vec<Vec<FileUpload>> = Vec::new();
    let mut bytes = 0;
    for file in wave {
        let size = file.content.len();
        match groups.last_mut() {
            Some(group) if group.len() < MOST_FILES && bytes + size <= MOST_BYTES => {
                group.push(file);
                bytes += size;
            }
            _ => {
                groups.push(vec![file]);
                bytes = size;
            }
        }
    }
    groups
}

async fn one_by_one<S: Store>(space: &Space<S>, files: Vec<FileUpload>) -> Vec<FileUploadResponse> {
    let uploads: Vec<_> = files
        .into_iter()
        .map(|file| async move {
            let path = file.path.clone();
            FileUploadResponse::of_write(path, write::write(space, WriteRequest::from(file)).await)
        })
        .collect();
    stream::iter(uploads).buffered(space.fetches()).collect().await
}

/// Uploads a group in one change; `None` where that is not possible, or others changed what is there.
async fn together<S: Store>(space: &Space<S>, group: &[FileUpload]) -> Result<Option<Vec<FileUploadResponse>>> {
    let [first, _, ..] = group else { return Ok(None) };
    let keeps_times = space.store().abilities().times != Times::OfStore;
    let can_be_written = |file: &FileUpload| {
        let is_path = !file.path.is_root() && space.check_path(&file.path).is_ok();
        let is_size = space.check_size(&file.path, file.content.len() as u64).is_ok();
        is_path && is_size && (keeps_times || file.modified_at.is_none())
    };
    if !group.iter().all(can_be_written) {
        return Ok(None);
    }
    let heads: Vec<_> = group.iter().map(|file| space.head(&file.path)).collect();
    let found: Vec<Option<Stored>> = stream::iter(heads).buffered(space.fetches()).try_collect().await?;
    let writes = group.iter().zip(&found).map(|(file, found)| {
        let content = NewContent { bytes: file.content.clone(), modified_at: file.modified_at };
        Write::Put(file.path.clone(), content.value(found.as_ref()))
    });
    match space.batch(&first.path, &conditions(group, &found), writes.collect()).await? {
        BatchOutcome::Refused(..) => Ok(None),
        BatchOutcome::Done(stored) => {
            let uploaded =
                |(file, stored): (&FileUpload, Stored)| FileUploadResponse::ok(file.path.clone(), stored.version);
            Ok(Some(group.iter().zip(stored).map(uploaded).collect()))
        }
    }
}

/// Each file is still what was found, and has room where nothing was.
fn conditions(group: &[FileUpload], found: &[Option<Stored>]) -> Vec<Condition> {
    let (mut conditions, mut directories) = (Vec::with_capacity(2 * group.len()), BTreeSet::new());
    for (file, found) in group.iter().zip(found) {
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
