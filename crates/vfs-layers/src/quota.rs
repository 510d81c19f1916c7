//! So much and no more.

mod background;
mod forecast;
mod gate;
mod ledger;
mod limits;
mod rate;

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream;
use vfs_core::{
    Backend, Capabilities, ErrorKind, Intercepted, Interceptor, Layer, Mutations, OpContext, Operation, OperationClass,
    RequestRef, ResolveRequest, Result, ResultStream, RunMode, StreamCall, StreamRequest, UnaryRequest, VfsPath,
};
use vfs_search::run_until_cancelled;

pub use self::limits::QuotaLimits;

use self::background::Background;
use self::forecast::{Forecast, measure};
use self::gate::{Gate, Held};
use self::ledger::Ledger;
use self::rate::Rate;

/// Limits what is stored and how often it is asked, by the callers in this process.
///
/// # Behaviour
///
/// * The limits hold for one process. A new one counts what is stored before its first change, so that processes one after
///   the other keep to the limits of bytes and files; several at once see each other's changes only when they count anew, and
///   can pass a limit together by what each of them adds meanwhile. Operations and what an actor uses are counted from zero in
///   each process. A count that all processes share would cost a conditional write to a store before and after every change,
///   and before every look, and would refuse them all where that store cannot be reached; where processes at once have to
///   keep to a limit, set it where the files are: a quota of the file system, of the bucket or of the database.
/// * Bytes and files are counted once, by a recursive `ls` of the inner backend before the first change, and kept from then
///   on by what each change came to. Room is set aside before a change and given back where it fails, so that many at once
///   cannot pass a limit together. What does not grow is never refused.
/// * Changes of one file wait for each other, as do those of whole trees (rename, copy, recursive delete) for all. Each
///   costs a `stat` before it, and an edit is computed twice.
/// * Where nobody knows whether a change happened (it was dropped, or failed with an error such as `timeout` or
///   `unavailable`), the files are counted again before the next change; so they are after every rename, copy or recursive
///   delete that failed, which may have left a part.
/// * What an actor uses is what its own changes added, less what they removed, since the layer was made: whoever deletes
///   a file is credited with it, whoever wrote it. It may be less than nothing. Files that were there before, and what
///   a new count finds, are nobody's. Callers without a name are one actor. An actor that has changed something is
///   remembered for as long as the layer lives.
/// * Commands cannot be metered. After one the files are counted again, also where it ended while they were counted, as
///   after going back to a snapshot; neither is refused for what it stores. As long as one runs in the background they are
///   counted before each change.
/// * What is changed past the layer is not seen until the next count. Links and hard links count as often as `ls` shows
///   them, and where there are any, what is kept may differ from that; [`QuotaMeter::recount`] corrects it.
/// * Of a backend whose changes are only returned, each change is held against what is stored, and nothing is kept.
/// * Every operation counts against `operations`, also looks, and each file of an upload or download; but for `resolve`, which
///   layers and namespaces ask before the operation itself.
/// * What was counted belongs to the layered backend and its clones; the same value around two backends limits each on
///   its own. It needs a tokio runtime with its timer for callers that have a deadline.
///
/// # Errors
///
/// At the operation's first path, the root where it has none: `quota_exceeded` with the limit in its words, `too_large` for
/// the size of a file. Nothing has then happened. Also those of the `stat`, `ls` and dry run that it makes before a change.
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
    /// Limits all callers in this process together.
    pub fn new(overall: QuotaLimits) -> Self {
        Self { overall, per_actor: QuotaLimits::new() }
    }

    /// Limits each actor, too. Default: no limits.
    #[must_use]
    pub fn per_actor(mut self, limits: QuotaLimits) -> Self {
        self.per_actor = limits;
        self
    }

    /// `inner` with this layer around it, and what shows how much is used.
    pub fn metered(&self, inner: Arc<dyn Backend>) -> (Arc<dyn Backend>, QuotaMeter) {
        let meters = Arc::new(Meters {
            quota: *self,
            ledger: Arc::new(Ledger::new(self.overall, self.per_actor)),
            background: Background::default(),
            rate: Rate::new(&self.overall, &self.per_actor),
            gate: Gate::new(),
        });
        let meter = QuotaMeter { inner: Arc::clone(&inner), meters: Arc::clone(&meters) };
        (Arc::new(Intercepted::new(inner, meters)), meter)
    }
}

impl Layer for Quota {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        self.metered(inner).0
    }
}

/// Shows how much of a [`Quota`] is used; made by [`Quota::metered`]. Clones are handles on the same.
#[derive(Debug, Clone)]
pub struct QuotaMeter {
    inner: Arc<dyn Backend>,
    meters: Arc<Meters>,
}

/// What is stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuotaUsage {
    /// How many files, directories not counted.
    pub files: u64,
    /// How many bytes they have together.
    pub bytes: u64,
}

/// What an actor has added, less what it has removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActorUsage {
    /// How many files more, or fewer.
    pub files: i64,
    /// How many bytes more, or fewer.
    pub bytes: i64,
}

impl QuotaMeter {
    /// What is stored, at a moment when no change is under way. Counts where that is not known.
    ///
    /// # Errors
    ///
    /// Those of the `ls` that counts; `timeout` and `cancelled` while it waits.
    pub async fn usage(&self, cx: &OpContext) -> Result<QuotaUsage> {
        let root = VfsPath::root();
        self.meters.look_at_background(&*self.inner).await;
        let _held = run_until_cancelled(cx, &root, self.meters.gate.enter(None)).await?;
        if !(self.meters.keeps() && self.meters.ledger.is_known()) {
            self.meters.count(&*self.inner, cx).await?;
        }
        let whole = self.meters.ledger.whole();
        let at_least_0 = |amount: i128| u64::try_from(amount.max(0)).unwrap_or(u64::MAX);
        Ok(QuotaUsage { files: at_least_0(whole.files), bytes: at_least_0(whole.bytes) })
    }

    /// Counts again, and gives what is stored.
    ///
    /// # Errors
    ///
    /// Those of [`usage`](Self::usage).
    pub async fn recount(&self, cx: &OpContext) -> Result<QuotaUsage> {
        self.meters.ledger.forget();
        self.usage(cx).await
    }

    /// What `actor` has added, on balance; `None` is callers without a name. Nothing is kept unless bytes or files are
    /// limited.
    pub fn of_actor(&self, actor: Option<&str>) -> ActorUsage {
        let own = self.meters.ledger.of_actor(actor);
        let bounded = |amount: i128| i64::try_from(amount).unwrap_or(if amount < 0 { i64::MIN } else { i64::MAX });
        ActorUsage { files: bounded(own.files), bytes: bounded(own.bytes) }
    }
}

#[derive(Debug)]
struct Meters {
    quota: Quota,
    ledger: Arc<Ledger>,
    background: Background,
    rate: Rate,
    gate: Gate,
}

impl Meters {
    /// Whether what is stored is kept.
    fn keeps(&self) -> bool {
        self.quota.overall.is_of_storage() || self.quota.per_actor.is_of_storage()
    }

    fn has_file_size(&self) -> bool {
        self.quota.overall.file_size.is_some() || self.quota.per_actor.file_size.is_some()
    }

    /// Has the files counted again where commands in the background may have changed them.
    async fn look_at_background(&self, inner: &dyn Backend) {
        if self.keeps() && self.background.may_have_changed(inner).await {
            self.ledger.forget();
        }
    }

    /// Counts what is stored. The gate must be held for all.
    async fn count(&self, inner: &dyn Backend, cx: &OpContext) -> Result<()> {
        let epoch = self.ledger.epoch();
        self.ledger.set(measure(inner, cx, &VfsPath::root()).await?.0, epoch);
        Ok(())
    }

    /// The right to make the change, with what is stored known.
    async fn enter(
        &self,
        inner: &dyn Backend,
        cx: &OpContext,
        action: RequestRef<'_>,
        path: &VfsPath,
    ) -> Result<Held<'_>> {
        self.look_at_background(inner).await;
        let file = changed_file(inner, cx, action).await;
        loop {
            if self.keeps() && !self.ledger.is_known() {
                let _all = run_until_cancelled(cx, path, self.gate.enter(None)).await?;
                if !self.ledger.is_known() {
                    self.count(inner, cx).await?;
                }
            }
            let held = run_until_cancelled(cx, path, self.gate.enter(file.as_ref())).await?;
            if !self.keeps() || self.ledger.is_known() {
                return Ok(held);
            }
        }
    }

    async fn change<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let path = request.as_request_ref().paths().last().cloned().unwrap_or_else(VfsPath::root);
        cx.check().map_err(|error| error.or_path(&path))?;
        let _held = self.enter(inner, cx, request.as_request_ref(), &path).await?;
        let forecast = Forecast::of(inner, cx, request.as_request_ref()).await.map_err(|error| error.or_path(&path))?;
        self.quota.overall.check_file(&path, forecast.largest)?;
        self.quota.per_actor.check_file(&path, forecast.largest)?;
        let is_kept = self.keeps() && inner.capabilities(&path).mutations == Mutations::InPlace;
        let reservation = self.ledger.reserve(cx.actor(), forecast.growth(), &path)?;
        let is_of_many = is_of_many(request.as_request_ref());
        let answer = request.send(inner, cx).await;
        let change = answer.as_ref().map(|output| forecast.change(Q::output_ref(output)));
        match change {
            _ if !is_kept => reservation.give_back(),
            Ok(Some(change)) => reservation.settle(change),
            Err(error) if !is_of_many && has_not_happened(error.kind()) => reservation.give_back(),
            Ok(None) | Err(_) => drop(reservation),
        }
        answer
    }
}

/// The one file that is changed; `None` where that may be several.
async fn changed_file(inner: &dyn Backend, cx: &OpContext, action: RequestRef<'_>) -> Option<VfsPath> {
    let path = match action {
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
    // Two links to one file are one file; where that cannot be known, it is changed alone.
    inner.resolve(cx, ResolveRequest::new(path.clone())).await.ok().map(|resolved| resolved.path)
}

/// Whether several files may be changed, of which some may be when the rest fails, whatever the error.
fn is_of_many(action: RequestRef<'_>) -> bool {
    match action {
        RequestRef::Rename(_) | RequestRef::Copy(_) | RequestRef::Restore(_) => true,
        RequestRef::Delete(delete) => delete.recursive,
        _ => false,
    }
}

/// Whether an error of `kind` says that nothing was changed by what changes one file.
fn has_not_happened(kind: ErrorKind) -> bool {
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

impl Interceptor for Meters {
    fn name(&self) -> &'static str {
        "quota"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let any = request.as_request_ref();
        // Layers and namespaces resolve the paths of an operation before they send it; it counts once.
        if Q::OPERATION != Operation::Resolve {
            self.rate.admit(cx.actor(), &any.primary_path())?;
        }
        match any.class() {
            OperationClass::Write if self.keeps() || self.has_file_size() => self.change(inner, cx, request).await,
            OperationClass::Execute => {
                if !matches!(any, RequestRef::Execute(command) if command.run == RunMode::Background) {
                    let _unknown = Unknown(Arc::clone(&self.ledger));
                    return request.send(inner, cx).await;
                }
                // Before, since the call may be dropped; and behind, since who looked between saw no job of it yet.
                self.background.begins(cx);
                let answer = request.send(inner, cx).await;
                self.background.begins(cx);
                answer
            }
            _ => request.send(inner, cx).await,
        }
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        let any = call.request().as_request_ref();
        if let Err(error) = self.rate.admit(cx.actor(), &any.primary_path()) {
            return error.into_stream();
        }
        if any.class() != OperationClass::Execute {
            return call.start(cx);
        }
        let unknown = Unknown(Arc::clone(&self.ledger));
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
        for most in sizes.into_iter().flatten() {
            inner.max_file_size = inner.max_file_size.min(most);
        }
        inner
    }
}

/// Has the files counted again once a command has ended.
struct Unknown(Arc<Ledger>);

impl Drop for Unknown {
    fn drop(&mut self) {
        self.0.forget();
    }
}
