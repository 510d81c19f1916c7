//! Uploads of many files, in batches if the store supports them.

use std::collections::{BTreeSet, HashSet};

use futures::stream::{self, StreamExt as _};
use vfs_core::{Error, ErrorKind, FileUploadResponse, UploadRequest, WriteRequest};

use super::view::namespace_view::NamespaceView;
use super::view::path_entry::above;
use super::write::{self, NewContent};
use crate::store::{BatchOutcome, Condition, Precondition, Store, StoredMeta, TimestampSource, Write};

/// The most files in one change. Others who change the namespace wait as long as it takes.
const MAX_BATCH_FILES: usize = 256;
/// The most bytes in one change.
const MAX_BATCH_BYTES: usize = 4 << 20;
/// The largest file, in bytes, that is written together with others: larger ones are sent at the same time instead.
const MAX_BATCHED_FILE: usize = 256 << 10;

/// What a level of a path counts as, in bytes: each is a condition of the change.
const LEVEL_BYTES: usize = 1 << 10;

/// Uploads `files`, in their order where that matters. The answers are in the order of `files`.
pub(super) async fn upload_all<S: Store>(
    view: &NamespaceView<S>,
    files: Vec<UploadRequest>,
) -> Vec<FileUploadResponse> {
    let mut answers = Vec::with_capacity(files.len());
    for wave in split_by_order(files) {
        // Each file with an operation id is recorded on its own.
        let is_recorded = view.cx.operation_id().is_some() && view.store().as_operations().is_some();
        if view.batches().is_none() || is_recorded {
            answers.extend(upload_each(view, wave).await);
            continue;
        }
        let is_large: Vec<bool> = wave.iter().map(|file| file.content.len() > MAX_BATCHED_FILE).collect();
        let (large, small) = wave.into_iter().partition(|file| file.content.len() > MAX_BATCHED_FILE);
        let (large, small) = futures::join!(upload_each(view, large), upload_batches(view, small));
        let (mut large, mut small) = (large.into_iter(), small.into_iter());
        answers.extend(is_large.into_iter().filter_map(|is_large| if is_large { large.next() } else { small.next() }));
    }
    answers
}

/// Splits `files` so that those of one part do not depend on one another's order.
fn split_by_order(files: Vec<UploadRequest>) -> Vec<Vec<UploadRequest>> {
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

async fn upload_batches<S: Store>(view: &NamespaceView<S>, files: Vec<UploadRequest>) -> Vec<FileUploadResponse> {
    let mut answers = Vec::with_capacity(files.len());
    for batch in split_by_size(files) {
        answers.extend(upload_batch(view, batch).await);
    }
    answers
}

/// Splits `files` into what is written in one change.
fn split_by_size(files: Vec<UploadRequest>) -> Vec<Vec<UploadRequest>> {
    let mut batches: Vec<Vec<UploadRequest>> = Vec::new();
    let mut bytes = 0;
    for file in files {
        let size = file.content.len() + LEVEL_BYTES * file.path.components().count();
        match batches.last_mut() {
            Some(batch) if batch.len() < MAX_BATCH_FILES && bytes + size <= MAX_BATCH_BYTES => {
                batch.push(file);
                bytes += size;
            }
            _ => {
                batches.push(vec![file]);
                bytes = size;
            }
        }
    }
    batches
}

async fn upload_each<S: Store>(view: &NamespaceView<S>, files: Vec<UploadRequest>) -> Vec<FileUploadResponse> {
    let upload = async |file: UploadRequest| {
        let path = file.path.clone();
        let written = async {
            let view = view.clone().for_mutation(&file)?;
            view.once(write::write(&view, WriteRequest::from(file))).await
        };
        FileUploadResponse::of_write(path, written.await)
    };
    let uploads: Vec<_> = files.into_iter().map(upload).collect();
    stream::iter(uploads).buffered(view.fetches()).collect().await
}

/// Uploads `files` in one change, or each on its own where that change cannot be made, as each has an answer of its own.
async fn upload_batch<S: Store>(view: &NamespaceView<S>, files: Vec<UploadRequest>) -> Vec<FileUploadResponse> {
    let (Some(first), Some(batch)) = (files.first(), plan_batch(view, &files).await) else {
        return upload_each(view, files).await;
    };
    match view.batch(&first.path, &batch.conditions, batch.writes).await {
        Ok(BatchOutcome::Applied(stored)) if stored.len() == files.len() => {
            let answer =
                |(file, stored): (UploadRequest, StoredMeta)| FileUploadResponse::ok(file.path, stored.version);
            files.into_iter().zip(stored).map(answer).collect()
        }
        Err(error) if is_undecided(&error) || view.cx.check().is_err() => fail_all(files, &error),
        Ok(BatchOutcome::Applied(stored)) => {
            let reason = format!("{} of {} writes were reported by the store", stored.len(), files.len());
            fail_all(files, &Error::new(ErrorKind::Internal, reason))
        }
        Ok(BatchOutcome::PreconditionFailed(..)) | Err(_) => upload_each(view, files).await,
    }
}

fn fail_all(files: Vec<UploadRequest>, error: &Error) -> Vec<FileUploadResponse> {
    files
        .into_iter()
        .map(|UploadRequest { path, .. }| {
            let error = error.clone().with_path(&path);
            FileUploadResponse::failed(path, error)
        })
        .collect()
}

/// Whether a change that ended with `error` may have been made: a second one could overwrite what others made of it.
fn is_undecided(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::Cancelled)
}

struct BatchPlan {
    conditions: Vec<Condition>,
    writes: Vec<Write>,
}

/// Plans the change that writes `files`; `None` where one of them is refused or cannot be looked up, or there are no two.
async fn plan_batch<S: Store>(view: &NamespaceView<S>, files: &[UploadRequest]) -> Option<BatchPlan> {
    if files.len() < 2 {
        return None;
    }
    let has_times = view.store().capabilities().timestamps != TimestampSource::Store;
    let is_allowed = |file: &UploadRequest| {
        let has_path = !file.path.is_root() && view.check_path(&file.path).is_ok();
        let has_size = view.check_size(&file.path, file.content.len() as u64).is_ok();
        has_path && has_size && (has_times || file.modified_at.is_none())
    };
    if !files.iter().all(is_allowed) {
        return None;
    }
    let paths: Vec<_> = files.iter().map(|file| file.path.clone()).collect();
    let stats = view.stat_many(&paths[0], &paths).await.ok()?;
    let found: Vec<Option<StoredMeta>> = stats.into_iter().map(|stat| stat.stored).collect();
    let write = |(file, found): (&UploadRequest, &Option<StoredMeta>)| {
        let content = NewContent::new(file.content.clone(), file.modified_at);
        Write::Put(file.path.clone(), content.value(found.as_ref()))
    };
    let writes = files.iter().zip(&found).map(write).collect();
    Some(BatchPlan { conditions: require_unchanged(files, &found), writes })
}

/// Returns the conditions that each file is still what was found, and has room where nothing was.
fn require_unchanged(files: &[UploadRequest], found: &[Option<StoredMeta>]) -> Vec<Condition> {
    let (mut conditions, mut directories) = (Vec::with_capacity(2 * files.len()), BTreeSet::new());
    for (file, found) in files.iter().zip(found) {
        let expected =
            found.as_ref().map_or(Precondition::Absent, |found| Precondition::Version(found.version.clone()));
        conditions.push(Condition::At(file.path.clone(), expected));
        if found.is_none() {
            conditions.push(Condition::NothingBelow(file.path.clone()));
            directories.extend(above(&file.path));
        }
    }
    conditions.extend(directories.into_iter().map(|directory| Condition::At(directory, Precondition::Absent)));
    conditions
}
