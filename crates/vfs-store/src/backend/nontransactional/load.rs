//! Values that are read for a put at another path.

use chrono::{DateTime, Utc};
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use super::super::transfer::transfer_plan::TransferKind;
use super::super::view::namespace_view::NamespaceView;
use super::transfer_step_error::TransferStepError;
use crate::pinned_value::{discard, stage_value};
use crate::store::{
    NewValue, Precondition, PutOutcome, STAGED_PART_BYTES, Staging, Store, StoredMeta, StoredValue, ValueContent,
};

/// Reads the value `stored` at `from` for a put at `to`: into memory, or in parts into the staging of the store if it is large.
///
/// A value that has changed is a conflict.
pub(super) async fn load<S: Store>(
    view: &NamespaceView<S>,
    (from, stored): (&VfsPath, &StoredMeta),
    to: &VfsPath,
    kind: TransferKind,
) -> Result<NewValue, TransferStepError> {
    if let Some(staging) = staging_of(view, stored.size) {
        return stage(view, staging, (from, stored), to, kind).await;
    }
    let value = view.whole_of(from, stored.size).await?;
    let value = value.filter(|value| value.stored.version == stored.version).ok_or(TransferStepError::Conflict)?;
    Ok(with_times(value, kind))
}

/// Reads the current value at `from`, probably of `size` bytes, with its metadata; `None` if there is none.
pub(super) async fn load_current<S: Store>(
    view: &NamespaceView<S>,
    (from, size): (&VfsPath, u64),
    to: &VfsPath,
    kind: TransferKind,
) -> Result<Option<(StoredMeta, NewValue)>, TransferStepError> {
    if let Some(staging) = staging_of(view, size) {
        let Some(stored) = view.head(from).await? else { return Ok(None) };
        let value = stage(view, staging, (from, &stored), to, kind).await?;
        return Ok(Some((stored, value)));
    }
    let value = view.whole_of(from, size).await?;
    Ok(value.map(|value| (value.stored.clone(), with_times(value, kind))))
}

/// Puts a loaded value. A staged one that is not put is discarded.
pub(super) async fn put_loaded<S: Store>(
    view: &NamespaceView<S>,
    to: &VfsPath,
    value: NewValue,
    expected: &Precondition,
) -> Result<PutOutcome> {
    let outcome = put_retained(view, to, &value, expected).await;
    if !matches!(outcome, Ok(PutOutcome::Applied(_))) {
        discard_loaded(view, &value).await;
    }
    outcome
}

/// Puts a loaded value. A staged one that is not put remains staged, for another attempt.
pub(super) async fn put_retained<S: Store>(
    view: &NamespaceView<S>,
    to: &VfsPath,
    value: &NewValue,
    expected: &Precondition,
) -> Result<PutOutcome> {
    let is_staged = matches!(value.content, ValueContent::Staged(_));
    match view.put(to, value.clone(), expected).await {
        // Another writer changed the file between the check of the precondition and the completion.
        Err(error) if is_staged && error.kind() == ErrorKind::Conflict => Ok(PutOutcome::PreconditionFailed(None)),
        outcome => outcome,
    }
}

/// Discards the content of a loaded value that is not put.
pub(super) async fn discard_loaded<S: Store>(view: &NamespaceView<S>, value: &NewValue) {
    if let (ValueContent::Staged(staged), Some(staging)) = (&value.content, view.store().as_staging()) {
        discard(staging, &staged.token).await;
    }
}

fn staging_of<S: Store>(view: &NamespaceView<S>, size: u64) -> Option<&dyn Staging> {
    if size > STAGED_PART_BYTES as u64 { view.store().as_staging() } else { None }
}

async fn stage<S: Store>(
    view: &NamespaceView<S>,
    staging: &dyn Staging,
    (from, stored): (&VfsPath, &StoredMeta),
    to: &VfsPath,
    kind: TransferKind,
) -> Result<NewValue, TransferStepError> {
    if stored.size > staging.max_size() {
        let message = format!("the file is larger than the {} bytes that the store can write", staging.max_size());
        return Err(Error::new(ErrorKind::TooLarge, message).with_path(from).into());
    }
    let (created_at, modified_at) = times(stored, kind);
    let (key, target) = (view.key(from), view.key(to));
    let token = view.ask(to, staging.begin(&target, created_at, modified_at)).await?;
    match view.ask(from, stage_value((view.store(), &key, stored), staging, token.clone())).await {
        Ok(content) => Ok(NewValue::staged(content, modified_at).created_at(created_at)),
        Err(error) => {
            discard(staging, &token).await;
            Err(if error.kind() == ErrorKind::Conflict { TransferStepError::Conflict } else { error.into() })
        }
    }
}

fn with_times(value: StoredValue, kind: TransferKind) -> NewValue {
    let (created_at, modified_at) = times(&value.stored, kind);
    NewValue::new(value.content, modified_at).created_at(created_at)
}

fn times(stored: &StoredMeta, kind: TransferKind) -> (DateTime<Utc>, DateTime<Utc>) {
    match kind {
        TransferKind::Rename => (stored.creation_time(), stored.modified_at),
        TransferKind::Copy => {
            let now = Utc::now();
            (now, now)
        }
    }
}
