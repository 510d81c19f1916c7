//! Interceptor that limits stored bytes and files, and the rate of operations.

mod background_command_tracker;
mod change_estimate;
mod observed_change;
mod path_locks;
mod quota_limits;
mod rate_limit;
mod usage_tracker;

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream;
use serde::{Deserialize, Serialize};
use vfs_core::backend::MutationMode;
use vfs_core::operation::{
    Intercepted, OperationClass, RequestRef, ResultStream, StreamCall, StreamRequest, UnaryRequest,
};
use vfs_core::shell::RunMode;
use vfs_core::{
    Backend, Capabilities, ErrorKind, Interceptor, Layer, OpContext, Operation, ResolveRequest, Result, VfsPath,
};
use vfs_search::run_until_cancelled;

pub use self::quota_limits::QuotaLimits;

use self::background_command_tracker::BackgroundCommandTracker;
use self::change_estimate::{ChangeEstimate, measure};
use self::observed_change::ObservedChange;
use self::path_locks::{PathLockGuard, StripedPathLocks};
use self::rate_limit::RateLimiter;
use self::usage_tracker::UsageTracker;

/// Limits stored bytes and files, and the rate of operations, for the callers in this process.
///
/// # Behaviour
///
/// * The limits apply to one process. A new process counts the stored files before its first change, so that
///   consecutive processes enforce the limits of bytes and files; concurrent processes see each other's changes only at
///   the next count, and can exceed a limit together by the amounts that they add meanwhile. Operations and the usage
///   of actors are counted from zero in each process. A count that all processes share would cost a conditional write
///   to a store before and after every change, and before every read, and would refuse them all if that store cannot be
///   reached; if concurrent processes must keep a limit, set it at the storage: a quota of the file system, of the
///   bucket or of the database.
/// * Bytes and files are counted once, by a recursive `ls` of the inner backend before the first change, and then
///   updated by each change. The growth of a change is reserved before the change and released if it fails, so that
///   concurrent changes cannot exceed a limit together. A change that does not grow is never refused.
/// * The files are counted as the caller of that change sees them. If callers see different files, as in a store with a
///   namespace for each actor, give each of them a backend and a quota of its own.
/// * A file that is written in chunks is counted at its commit.
/// * Changes of one file exclude each other, and changes of whole trees (rename, copy, recursive delete) exclude all
///   others. Each costs a `stat` before it, and a few `resolve`s where there are links; an edit is computed twice.
/// * A backend that remembers operation ids may answer a change with an id by the result of an earlier call, and change
///   nothing. Such a change is therefore counted by comparing its paths before and after it, which costs two more
///   `stat`s, or listings of the directories that are deleted, renamed over others, or copied to. A change that is sent
///   again still has to fit within the limits, as if it were made again.
/// * If the outcome of a change is unknown (it was dropped, or failed with an error such as `timeout` or
///   `unavailable`), the files are counted again before the next change. The same holds after every failed rename,
///   copy or recursive delete, which may have left a part; after a change whose size is not the expected one, for which
///   the actor is charged but not credited; and after one that removes a link, one of several names of a file, or a
///   directory where there may be links.
/// * The usage of an actor is the amount that its changes added, less the amount that they removed, since the layer was
///   created: an actor that deletes a file is credited with it, even if another actor wrote it. Usage can be negative.
///   Files that existed before, and differences found by a new count, belong to no actor. All callers without a name
///   are one actor. An actor that has changed files is remembered for the lifetime of the layer.
/// * Commands cannot be metered. After a command the files are counted again, also if it ended during a count, and
///   after restoring a snapshot; neither is refused for the amount that it stores. While a command runs in the
///   background the files are counted before each change.
/// * Changes that bypass the layer are not seen until the next count. Links and hard links count as often as `ls`
///   shows them, and the tracked usage may differ from that; [`QuotaUsageReader::recount`] corrects it.
/// * If the changes of a backend are only returned, each change is checked against the stored files, and usage is not
///   tracked.
/// * Every operation counts against `operations`, including reads, and each file of an upload or download; except
///   `resolve`, which layers and namespaces send before the operation itself.
/// * Counts belong to the layered backend and its clones; the same value around two backends limits each
///   independently. Needs a tokio runtime with its timer for callers that have a deadline.
///
/// # Errors
///
/// At the operation's first path, or at the root if it has none: `quota_exceeded` with the limit in its message, and
/// with [`RateLimited`](vfs_core::error::ErrorDetail::RateLimited) if the limit is a rate; `too_large` for the size of
/// a file. The call has then changed nothing, although an earlier call with its operation id may have. Also those of
/// the `stat`, `ls` and dry run before a change.
///
/// ```
/// use std::sync::Arc;
/// use vfs_core::{BackendExt, ErrorKind, Layer};
/// use vfs_layers::{Quota, QuotaLimits};
/// use vfs_memory::MemoryBackend;
///
/// # futures::executor::block_on(async {
/// let quota = Quota::new(QuotaLimits::new().max_bytes(10)).per_actor(QuotaLimits::new().max_files(3));
/// let files = quota.layer(Arc::new(MemoryBackend::new()));
/// files.create_text("/a", "12345").await?;
/// let error = files.create_text("/b", "123456").await.expect_err("11 bytes are too many");
/// assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    overall: QuotaLimits,
    per_actor: QuotaLimits,
}

impl Quota {
    /// Returns a quota for all callers in this process together.
    pub fn new(overall: QuotaLimits) -> Self {
        Self { overall, per_actor: QuotaLimits::new() }
    }

    /// Sets the limits of each actor. Default: no limits.
    #[must_use]
    pub fn per_actor(mut self, limits: QuotaLimits) -> Self {
        self.per_actor = limits;
        self
    }

    /// Returns `inner` with this layer around it, and a meter of its usage.
    pub fn metered(&self, inner: Arc<dyn Backend>) -> (Arc<dyn Backend>, QuotaUsageReader) {
        let state = Arc::new(QuotaState {
            quota: *self,
            usage: Arc::new(UsageTracker::new(self.overall, self.per_actor)),
            background_jobs: BackgroundCommandTracker::default(),
            rate_limiter: RateLimiter::new(&self.overall, &self.per_actor),
            locks: StripedPathLocks::new(),
        });
        let meter = QuotaUsageReader { inner: Arc::clone(&inner), state: Arc::clone(&state) };
        (Arc::new(Intercepted::new(inner, state)), meter)
    }
}

impl Layer for Quota {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        self.metered(inner).0
    }
}

/// A meter of the usage of a [`Quota`], created by [`Quota::metered`]. Clones share the same usage.
#[derive(Debug, Clone)]
pub struct QuotaUsageReader {
    inner: Arc<dyn Backend>,
    state: Arc<QuotaState>,
}

/// Number and size of the stored files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QuotaUsage {
    /// Number of files, without directories.
    pub files: u64,
    /// Sum of their sizes, in bytes.
    pub bytes: u64,
}

/// The balance of the files and bytes that an actor has added and removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ActorUsage {
    /// Number of files added less those removed.
    pub files: i64,
    /// Number of bytes added less those removed.
    pub bytes: i64,
}

impl QuotaUsageReader {
    /// Returns the stored files and bytes, at a moment when no change is in progress. Counts the files if the tracked
    /// usage is not valid.
    ///
    /// # Errors
    ///
    /// Those of the `ls` that counts; `timeout` and `cancelled` during the wait.
    pub async fn usage(&self, cx: &OpContext) -> Result<QuotaUsage> {
        let root = VfsPath::root();
        self.state.check_background_jobs(&*self.inner).await;
        let _guard = run_until_cancelled(cx, &root, self.state.locks.lock(None)).await?;
        if !(self.state.tracks_usage() && self.state.usage.is_valid()) {
            self.state.count(&*self.inner, cx).await?;
        }
        let total = self.state.usage.total();
        let at_least_0 = |amount: i128| u64::try_from(amount.max(0)).unwrap_or(u64::MAX);
        Ok(QuotaUsage { files: at_least_0(total.files), bytes: at_least_0(total.bytes) })
    }

    /// Counts the files again, and returns the stored files and bytes.
    ///
    /// # Errors
    ///
    /// Those of [`usage`](Self::usage).
    pub async fn recount(&self, cx: &OpContext) -> Result<QuotaUsage> {
        self.state.usage.invalidate();
        self.usage(cx).await
    }

    /// Returns the balance of `actor`; `None` stands for callers without a name. Zero unless bytes or files are
    /// limited.
    pub fn of_actor(&self, actor: Option<&str>) -> ActorUsage {
        let balance = self.state.usage.of_actor(actor);
        let bounded = |amount: i128| i64::try_from(amount).unwrap_or(if amount < 0 { i64::MIN } else { i64::MAX });
        ActorUsage { files: bounded(balance.files), bytes: bounded(balance.bytes) }
    }
}

/// The limits, the usage and the locks of a [`Quota`] around one backend.
#[derive(Debug)]
struct QuotaState {
    quota: Quota,
    usage: Arc<UsageTracker>,
    background_jobs: BackgroundCommandTracker,
    rate_limiter: RateLimiter,
    locks: StripedPathLocks,
}

impl QuotaState {
    /// Returns whether a limit needs the stored bytes or files to be tracked.
    fn tracks_usage(&self) -> bool {
        self.quota.overall.limits_storage() || self.quota.per_actor.limits_storage()
    }

    fn has_file_size(&self) -> bool {
        self.quota.overall.file_size.is_some() || self.quota.per_actor.file_size.is_some()
    }

    /// Invalidates the usage if commands in the background may have changed files.
    async fn check_background_jobs(&self, inner: &dyn Backend) {
        if self.tracks_usage() && self.background_jobs.may_have_changed(inner).await {
            self.usage.invalidate();
        }
    }

    /// Counts the stored files and bytes. The caller must hold the lock of all trees.
    async fn count(&self, inner: &dyn Backend, cx: &OpContext) -> Result<()> {
        let epoch = self.usage.epoch();
        self.usage.set_stored(measure(inner, cx, &VfsPath::root()).await?.0, epoch);
        Ok(())
    }

    /// Acquires the lock for the change, with the usage valid.
    async fn lock(
        &self,
        inner: &dyn Backend,
        cx: &OpContext,
        request: RequestRef<'_>,
        path: &VfsPath,
    ) -> Result<PathLockGuard<'_>> {
        self.check_background_jobs(inner).await;
        let file = changed_file(inner, cx, request).await;
        loop {
            if self.tracks_usage() && !self.usage.is_valid() {
                let _guard = run_until_cancelled(cx, path, self.locks.lock(None)).await?;
                if !self.usage.is_valid() {
                    self.count(inner, cx).await?;
                }
            }
            let guard = run_until_cancelled(cx, path, self.locks.lock(file.as_ref())).await?;
            if !self.tracks_usage() || self.usage.is_valid() {
                return Ok(guard);
            }
        }
    }

    async fn change<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let path = request.as_request_ref().paths().last().cloned().unwrap_or_else(VfsPath::root);
        cx.check().map_err(|error| error.or_path(&path))?;
        let _guard = self.lock(inner, cx, request.as_request_ref(), &path).await?;
        let estimate =
            ChangeEstimate::of(inner, cx, request.as_request_ref()).await.map_err(|error| error.or_path(&path))?;
        self.quota.overall.check_file(&path, estimate.largest)?;
        self.quota.per_actor.check_file(&path, estimate.largest)?;
        let is_tracked = self.tracks_usage() && inner.capabilities(&path).mutations == MutationMode::InPlace;
        let observed = if is_tracked { ObservedChange::begin(inner, cx, request.as_request_ref()).await } else { None };
        let reservation = self.usage.reserve(cx.actor(), estimate.growth(), &path)?;
        let changes_many_files = changes_many_files(request.as_request_ref());
        let result = request.send(inner, cx).await;
        match &result {
            _ if !is_tracked => reservation.release(),
            Ok(output) => {
                let reported = estimate.change(Q::output_ref(output));
                let observed_change = match &observed {
                    Some(observed) => observed.end(inner, cx).await,
                    None => reported,
                };
                match observed_change {
                    // Any other change includes those of other callers, which belong to no actor.
                    Some(change) if change.is_zero() || Some(change) == reported => reservation.commit(change),
                    change => reservation.commit_unknown(change),
                }
                if estimate.may_remove_links {
                    self.usage.invalidate();
                }
            }
            Err(error) if !changes_many_files && is_unapplied(error.kind()) => reservation.release(),
            Err(_) => drop(reservation),
        }
        result
    }
}

/// Returns the one file that is changed; `None` if there may be several.
async fn changed_file(inner: &dyn Backend, cx: &OpContext, request: RequestRef<'_>) -> Option<VfsPath> {
    let path = match request {
        RequestRef::Write(write) => &write.path,
        RequestRef::Edit(edit) => &edit.path,
        RequestRef::CommitWriter(commit) => &commit.path,
        RequestRef::Upload(upload) => &upload.path,
        RequestRef::Delete(delete) if !delete.recursive => &delete.path,
        _ => return None,
    };
    if !inner.capabilities(path).links {
        return Some(path.clone());
    }
    // Two links may lead to one file. If the real path is unknown, the change excludes all others.
    inner.resolve(cx, ResolveRequest::new(path.clone())).await.ok().map(|resolved| resolved.path)
}

/// Returns whether several files may be changed, some of which may be changed even if the operation fails.
fn changes_many_files(request: RequestRef<'_>) -> bool {
    match request {
        RequestRef::Rename(_) | RequestRef::Copy(_) | RequestRef::Restore(_) => true,
        RequestRef::Delete(delete) => delete.recursive,
        _ => false,
    }
}

/// Returns whether an error of `kind` means that a change of one file was not applied.
fn is_unapplied(kind: ErrorKind) -> bool {
    use ErrorKind::{
        AlreadyExists, ApprovalRequired, Busy, Conflict, CrossBackend, InvalidArgument, InvalidPath, InvalidPattern,
        IsADirectory, NoMatch, NotADirectory, NotEmpty, NotFound, NotText, NotUnique, PathEscape, PolicyDenied,
        QuotaExceeded, TooLarge, Unsupported,
    };
    matches!(
        kind,
        AlreadyExists
            | ApprovalRequired
            | Busy
            | Conflict
            | CrossBackend
            | InvalidArgument
            | InvalidPath
            | InvalidPattern
            | IsADirectory
            | NoMatch
            | NotADirectory
            | NotEmpty
            | NotFound
            | NotText
            | NotUnique
            | PathEscape
            | PolicyDenied
            | QuotaExceeded
            | TooLarge
            | Unsupported
    )
}

impl Interceptor for QuotaState {
    fn name(&self) -> &'static str {
        "quota"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let any = request.as_request_ref();
        // Layers and namespaces resolve the paths of an operation before they send it, and the commit of a writer was counted when the
        // writer was opened: each operation counts once.
        if !matches!(Q::OPERATION, Operation::Resolve | Operation::CommitWriter) {
            self.rate_limiter.admit(cx.actor(), &any.primary_path())?;
        }
        match any.class() {
            // Only the commit of a writer changes files.
            _ if Q::OPERATION == Operation::OpenWriter => request.send(inner, cx).await,
            OperationClass::Write if self.tracks_usage() || self.has_file_size() => {
                self.change(inner, cx, request).await
            }
            OperationClass::Execute => {
                if !matches!(any, RequestRef::Execute(command) if command.run == RunMode::Background) {
                    let _unknown = InvalidateUsageAfterCommand(Arc::clone(&self.usage));
                    return request.send(inner, cx).await;
                }
                // Before the call, because it may be dropped; and after it, because a check in between sees no job of it yet.
                self.background_jobs.record_start(cx);
                let result = request.send(inner, cx).await;
                self.background_jobs.record_start(cx);
                result
            }
            _ => request.send(inner, cx).await,
        }
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        let any = call.request().as_request_ref();
        if let Err(error) = self.rate_limiter.admit(cx.actor(), &any.primary_path()) {
            return error.into_stream();
        }
        if any.class() != OperationClass::Execute {
            return call.start(cx);
        }
        let unknown = InvalidateUsageAfterCommand(Arc::clone(&self.usage));
        let mut items = call.start(cx);
        stream::poll_fn(move |task| {
            let _unknown = &unknown;
            items.poll_next_unpin(task)
        })
        .fuse()
        .boxed()
    }

    fn capabilities(&self, mut inner: Capabilities) -> Capabilities {
        let sizes = [self.quota.overall.file_size, self.quota.per_actor.file_size];
        for max in sizes.into_iter().flatten() {
            inner.max_file_size = inner.max_file_size.min(max);
            inner.max_streamed_size = inner.max_streamed_size.min(max);
        }
        inner
    }
}

/// Guard that invalidates the usage once a command has ended.
struct InvalidateUsageAfterCommand(Arc<UsageTracker>);

impl Drop for InvalidateUsageAfterCommand {
    fn drop(&mut self) {
        self.0.invalidate();
    }
}
