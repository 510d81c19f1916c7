//! Uploads of many files, in batches if the store supports them.

use std::collections::{BTreeSet, HashSet};

use futures::stream::{self, StreamExt as _};
use vfs_core::backend::OperationIdSupport;
use vfs_core::operation::UploadContexts;
use vfs_core::{Error, ErrorKind, FileUploadRequest, FileUploadResponse, OpContext, Result, WriteRequest};

use super::view::namespace_view::NamespaceView;
use super::view::path_entry::above;
use super::write::{self, NewContent};
use crate::store::{BatchOutcome, Condition, Precondition, Store, StoredMeta, TimestampSource, Write};

/// Maximum number of files in one batch. Other writers of the namespace wait while a batch is applied.
const MAX_BATCH_FILES: usize = 256;
/// Maximum size of one batch in bytes.
const MAX_BATCH_BYTES: usize = 4 << 20;
/// Maximum size in bytes of a file that is written in a batch. Larger files are written one by one, concurrently.
const MAX_BATCHED_FILE: usize = 256 << 10;

/// Bytes that each component of a path adds to the size of a batch, as each is a condition of the batch.
const COMPONENT_BYTES: usize = 1 << 10;

/// Uploads `files`, in their order where paths depend on each other, and returns the responses in the order of `files`.
pub(super) async fn upload_all<S: Store>(
    view: &NamespaceView<S>,
    files: Vec<FileUploadRequest>,
) -> Vec<FileUploadResponse> {
    let mut responses = Vec::with_capacity(files.len());
    let mut contexts = UploadContexts::new(&view.cx);
    let support = match view.store().as_operations() {
        Some(_) => OperationIdSupport::Stored,
        None => OperationIdSupport::Ignored,
    };
    for wave in split_by_order(files) {
        // Each file with an operation id is recorded on its own.
        let is_recorded = view.cx.operation_id().is_some() && support == OperationIdSupport::Stored;
        if view.batches().is_none() || is_recorded {
            let wave = wave.into_iter().map(|file| (contexts.next(&file.path, support), file));
            let uploaded = upload_each_with(view, wave.collect()).await;
            uploaded.iter().for_each(|response| contexts.record(response));
            responses.extend(uploaded);
            continue;
        }
        let is_large: Vec<bool> = wave.iter().map(|file| file.content.len() > MAX_BATCHED_FILE).collect();
        let (large, small) = wave.into_iter().partition(|file| file.content.len() > MAX_BATCHED_FILE);
        let (large, small) = futures::join!(upload_each(view, large), upload_batches(view, small));
        let (mut large, mut small) = (large.into_iter(), small.into_iter());
        responses
            .extend(is_large.into_iter().filter_map(|is_large| if is_large { large.next() } else { small.next() }));
    }
    responses
}

/// Splits `files` into waves within which the order of the files does not matter.
fn split_by_order(files: Vec<FileUploadRequest>) -> Vec<Vec<FileUploadRequest>> {
    let mut waves = Vec::new();
    let (mut wave, mut paths, mut parents) = (Vec::new(), HashSet::new(), HashSet::new());
    for file in files {
        let depends = paths.contains(&file.path)
            || parents.contains(&file.path)
            || above(&file.path).any(|above| paths.contains(&above));
        if depends {
            waves.push(std::mem::take(&mut wave));
            paths.clear();
            parents.clear();
        }
        parents.extend(above(&file.path));
        paths.insert(file.path.clone());
        wave.push(file);
    }
    waves.push(wave);
    waves
}

async fn upload_batches<S: Store>(view: &NamespaceView<S>, files: Vec<FileUploadRequest>) -> Vec<FileUploadResponse> {
    let mut responses = Vec::with_capacity(files.len());
    for batch in split_by_size(files) {
        responses.extend(upload_batch(view, batch).await);
    }
    responses
}

/// Splits `files` into batches.
fn split_by_size(files: Vec<FileUploadRequest>) -> Vec<Vec<FileUploadRequest>> {
    let mut batches: Vec<Vec<FileUploadRequest>> = Vec::new();
    let mut bytes = 0;
    for file in files {
        let size = file.content.len() + COMPONENT_BYTES * file.path.components().count();
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

async fn upload_each<S: Store>(view: &NamespaceView<S>, files: Vec<FileUploadRequest>) -> Vec<FileUploadResponse> {
    upload_each_with(view, files.into_iter().map(|file| (Ok(view.cx.clone()), file)).collect()).await
}

/// Uploads each file with the context of its own, or fails with the error in its place.
async fn upload_each_with<S: Store>(
    view: &NamespaceView<S>,
    files: Vec<(Result<OpContext>, FileUploadRequest)>,
) -> Vec<FileUploadResponse> {
    let upload = async |(cx, file): (Result<OpContext>, FileUploadRequest)| {
        let path = file.path.clone();
        let written = async {
            let view = NamespaceView { cx: cx?, ..view.clone() }.for_mutation(&file)?;
            view.once(write::write(&view, WriteRequest::from(file))).await
        };
        FileUploadResponse::of_write(path, written.await)
    };
    let uploads: Vec<_> = files.into_iter().map(upload).collect();
    stream::iter(uploads).buffered(view.fetches()).collect().await
}

/// Uploads `files` in one batch, or each on its own if the batch cannot be applied, as each file has its own response.
async fn upload_batch<S: Store>(view: &NamespaceView<S>, files: Vec<FileUploadRequest>) -> Vec<FileUploadResponse> {
    let (Some(first), Some(batch)) = (files.first(), plan_batch(view, &files).await) else {
        return upload_each(view, files).await;
    };
    match view.batch(&first.path, &batch.conditions, batch.writes).await {
        Ok(BatchOutcome::Applied(stored)) if stored.len() == files.len() => {
            let response =
                |(file, stored): (FileUploadRequest, StoredMeta)| FileUploadResponse::ok(file.path, stored.version);
            files.into_iter().zip(stored).map(response).collect()
        }
        Err(error) if is_undecided(&error) || view.cx.check().is_err() => fail_all(files, &error),
        Ok(BatchOutcome::Applied(stored)) => {
            let reason = format!("{} of {} writes were reported by the store", stored.len(), files.len());
            fail_all(files, &Error::new(ErrorKind::Internal, reason))
        }
        Ok(BatchOutcome::PreconditionFailed(..)) | Err(_) => upload_each(view, files).await,
    }
}

fn fail_all(files: Vec<FileUploadRequest>, error: &Error) -> Vec<FileUploadResponse> {
    files
        .into_iter()
        .map(|FileUploadRequest { path, .. }| {
            let error = error.clone().with_path(&path);
            FileUploadResponse::failed(path, error)
        })
        .collect()
}

/// Returns `true` if a change that failed with `error` may have been applied: to repeat it could overwrite later
/// changes of other writers.
fn is_undecided(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::Cancelled | ErrorKind::Internal)
}

/// Conditions and writes of a batch that uploads several files.
struct UploadBatch {
    conditions: Vec<Condition>,
    writes: Vec<Write>,
}

/// Plans the batch that writes `files`, or returns `None` if one of them is refused or cannot be looked up, or there
/// are fewer than two.
async fn plan_batch<S: Store>(view: &NamespaceView<S>, files: &[FileUploadRequest]) -> Option<UploadBatch> {
    if files.len() < 2 {
        return None;
    }
    let has_times = view.store().capabilities().timestamps != TimestampSource::Store;
    let is_allowed = |file: &FileUploadRequest| {
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
    let write = |(file, found): (&FileUploadRequest, &Option<StoredMeta>)| {
        let content = NewContent::new(file.content.clone(), file.modified_at);
        Write::Put(file.path.clone(), content.value(found.as_ref()))
    };
    let writes = files.iter().zip(&found).map(write).collect();
    Some(UploadBatch { conditions: require_unchanged(files, &found), writes })
}

/// Returns the conditions that each file is unchanged since it was `found`, and that a new file has no file above or
/// below it.
fn require_unchanged(files: &[FileUploadRequest], found: &[Option<StoredMeta>]) -> Vec<Condition> {
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
