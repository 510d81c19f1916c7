//! Writes of whole files and appends.

use bytes::Bytes;
use chrono::{DateTime, SubsecRound, Utc};
use vfs_core::{Error, ErrorKind, Result, Version, VfsPath, WriteMode, WriteRequest, WriteResult, fallible_alloc};

use super::coordination::backoff::{backoff, contended};
use super::coordination::completion::finish_or_roll_back;
use super::nontransactional;
use super::view::namespace_view::NamespaceView;
use super::view::path_entry::{PathEntry, above};
use crate::store::{
    Condition, NewValue, Precondition, PutOutcome, Store, StoredMeta, TimestampSource, ValueContent, Write, WriteId,
};

pub(super) async fn write<S: Store>(view: &NamespaceView<S>, req: WriteRequest) -> Result<WriteResult> {
    if view.shared.store.capabilities().timestamps == TimestampSource::Store {
        req.refuse_modified_at()?;
    }
    let WriteRequest { path, content, mode, modified_at, .. } = req;
    view.check_path(&path)?;
    match mode {
        WriteMode::Append => append(view, &path, &content, modified_at).await,
        mode => put_content(view, &path, NewContent::new(content, modified_at), mode).await,
    }
}

/// Stores `new` as the whole content of the file at `path`, if `mode` allows it.
pub(super) async fn put_content<S: Store>(
    view: &NamespaceView<S>,
    path: &VfsPath,
    new: NewContent,
    mode: WriteMode,
) -> Result<WriteResult> {
    match mode {
        WriteMode::CreateNew => create(view, path, new).await,
        WriteMode::Overwrite => overwrite(view, path, new).await,
        WriteMode::IfVersion(version) => replace(view, path, new, version).await,
        _ => Err(Error::at(ErrorKind::Unsupported, path)),
    }
}

async fn create<S: Store>(view: &NamespaceView<S>, path: &VfsPath, new: NewContent) -> Result<WriteResult> {
    if let Err(error) = new.check_size(view, path) {
        refuse_existing(path, view.look_up(path).await?)?;
        return Err(error);
    }
    for attempt in 0..view.shared.config.edit_attempts {
        match put_new(view, path, new.value(None)).await? {
            PutOutcome::Applied(stored) => {
                return Ok(WriteResult::new(path.clone(), true, stored.version, new.size()));
            }
            PutOutcome::PreconditionFailed(_) => refuse_existing(path, view.look_up(path).await?)?,
        }
        backoff(&view.cx, path, attempt).await?;
    }
    Err(contended(path))
}

/// Returns an error if there is an entry at `path`.
fn refuse_existing(path: &VfsPath, found: Option<PathEntry>) -> Result<()> {
    match found {
        None => Ok(()),
        Some(PathEntry::File(_)) => Err(Error::already_exists(path)),
        Some(PathEntry::Directory) => Err(Error::at(ErrorKind::IsADirectory, path)),
    }
}

/// Returns the file that a write to `path` replaces, if there is one.
async fn existing<S: Store>(view: &NamespaceView<S>, path: &VfsPath) -> Result<Option<StoredMeta>> {
    match view.look_up(path).await? {
        None => Ok(None),
        Some(PathEntry::File(stored)) => Ok(Some(stored)),
        Some(PathEntry::Directory) => Err(Error::at(ErrorKind::IsADirectory, path)),
    }
}

async fn overwrite<S: Store>(view: &NamespaceView<S>, path: &VfsPath, new: NewContent) -> Result<WriteResult> {
    let size = new.size();
    let mut lock = None;
    for attempt in 0..view.shared.config.edit_attempts {
        if attempt > 0 && lock.is_none() {
            lock = Some(view.lock_key(path).await?);
        }
        let file = view.head(path).await?;
        if let Err(error) = new.check_size(view, path) {
            existing(view, path).await?;
            return Err(error);
        }
        let value = new.value(file.as_ref());
        let outcome = match &file {
            None => put_new(view, path, value).await?,
            // Programs that do not check for directories may have stored files below the path; the write replaces the file
            // anyway.
            Some(file) => put_over(view, path, value, file.version.clone()).await?,
        };
        match outcome {
            PutOutcome::Applied(stored) => {
                return Ok(WriteResult::new(path.clone(), file.is_none(), stored.version, size));
            }
            PutOutcome::PreconditionFailed(_) => existing(view, path).await?,
        };
        backoff(&view.cx, path, attempt).await?;
    }
    Err(contended(path))
}

async fn replace<S: Store>(
    view: &NamespaceView<S>,
    path: &VfsPath,
    new: NewContent,
    expected: Version,
) -> Result<WriteResult> {
    let size = new.size();
    let file = existing(view, path).await?;
    let file = match file {
        Some(file) if file.version == expected => file,
        other => return Err(Error::conflict(path, other.map(|file| file.version))),
    };
    new.check_size(view, path)?;
    match put_over(view, path, new.value(Some(&file)), expected).await? {
        PutOutcome::Applied(stored) => Ok(WriteResult::new(path.clone(), false, stored.version, size)),
        PutOutcome::PreconditionFailed(found) => Err(Error::conflict(path, found.map(|file| file.version))),
    }
}

async fn append<S: Store>(
    view: &NamespaceView<S>,
    path: &VfsPath,
    added: &Bytes,
    modified_at: Option<DateTime<Utc>>,
) -> Result<WriteResult> {
    let _lock = view.lock_key(path).await?;
    let max = view.shared.max_file_size();
    for attempt in 0..view.shared.config.edit_attempts {
        let outcome;
        let file = view.whole(path, max).await?;
        let size = file.as_ref().map_or(0, |file| file.stored.size) + added.len() as u64;
        match &file {
            None => {
                if view.check_size(path, size).is_err() {
                    existing(view, path).await?;
                }
                view.check_size(path, size)?;
                outcome = put_new(view, path, NewContent::new(added.clone(), modified_at).value(None)).await?;
            }
            Some(file) => {
                view.check_size(path, size)?;
                let joined = fallible_alloc::join(&file.content, added)?;
                let value = NewContent::new(joined, modified_at).value(Some(&file.stored));
                outcome = put_over(view, path, value, file.stored.version.clone()).await?;
            }
        }
        match outcome {
            PutOutcome::Applied(stored) => {
                return Ok(WriteResult::new(path.clone(), file.is_none(), stored.version, size));
            }
            PutOutcome::PreconditionFailed(_) => existing(view, path).await?,
        };
        backoff(&view.cx, path, attempt).await?;
    }
    Err(contended(path))
}

/// The new content of a file, with its modification time.
#[derive(Clone)]
pub(super) struct NewContent {
    pub(super) content: ValueContent,
    /// The modification time; `None` for now.
    pub(super) modified_at: Option<DateTime<Utc>>,
    /// `true` if the content was written in chunks, and its size checked against the limit for these.
    pub(super) is_streamed: bool,
}

impl NewContent {
    pub(super) fn new(bytes: Bytes, modified_at: Option<DateTime<Utc>>) -> Self {
        Self { content: bytes.into(), modified_at, is_streamed: false }
    }

    fn size(&self) -> u64 {
        self.content.size()
    }

    /// Returns an error if the content is too large for one write.
    fn check_size<S: Store>(&self, view: &NamespaceView<S>, path: &VfsPath) -> Result<()> {
        if self.is_streamed { Ok(()) } else { view.check_size(path, self.size()) }
    }

    /// Returns the value to store; `old` is the file that is replaced.
    pub(super) fn value(&self, old: Option<&StoredMeta>) -> NewValue {
        let now = Utc::now();
        let modified_at = old.map_or(now, |old| now.max(old.modified_at));
        let modified_at = self.modified_at.map_or(modified_at, |at| at.trunc_subsecs(6));
        NewValue {
            content: self.content.clone(),
            created_at: old.map_or(now, StoredMeta::creation_time),
            modified_at,
            id: WriteId::random(),
        }
    }
}

/// Returns the conditions for a new file at `path`: no parent is a file, and no file is below it.
pub(super) fn room_for(path: &VfsPath) -> Vec<Condition> {
    let parts = above(path).map(|above| Condition::At(above, Precondition::Absent));
    parts.chain([Condition::NothingBelow(path.clone())]).collect()
}

/// Replaces the version `replaced` of a file.
async fn put_over<S: Store>(
    view: &NamespaceView<S>,
    path: &VfsPath,
    value: NewValue,
    replaced: Version,
) -> Result<PutOutcome> {
    let content = value.content.clone();
    let result = || WriteResult::new(path.clone(), false, content.version(), content.size());
    view.commit_put(path, value, &Precondition::Version(replaced), result).await
}

/// Creates a file at a path without an entry.
async fn put_new<S: Store>(view: &NamespaceView<S>, path: &VfsPath, value: NewValue) -> Result<PutOutcome> {
    if path.is_root() {
        return Ok(PutOutcome::PreconditionFailed(None));
    }
    if view.batches().is_none() {
        let (view, path) = (view.clone(), path.clone());
        let cx = view.cx.clone();
        let at = path.clone();
        return finish_or_roll_back(&cx, &at, |cx| async move {
            nontransactional::put_new(&view.with_context(cx), &path, value).await
        })
        .await;
    }
    let mut conditions = vec![Condition::At(path.clone(), Precondition::Absent)];
    conditions.extend(room_for(path));
    let content = value.content.clone();
    let result = || WriteResult::new(path.clone(), true, content.version(), content.size());
    let outcome = view.commit(path, &conditions, vec![Write::Put(path.clone(), value)], result).await?;
    outcome.into_single().map_err(|error| error.with_path(path))
}
