//! Recovery of renames across mounts that a crash interrupted.

mod move_recovery;
mod recovery_notifier;

use std::sync::Arc;
use std::time::{Duration, Instant};

use vfs_core::{Error, ErrorKind, OpContext, Result, VfsPath};

use self::move_recovery::MoveRecovery;
use self::recovery_notifier::RecoveryNotifier;
pub use self::recovery_notifier::RecoveryObserver;
use crate::backend::CompositeBackend;
use crate::journal::{Journal, MoveRecord};

/// The report of one recovery.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// The renames that were recovered, or could not be, oldest first.
    pub moves: Vec<RecoveredMove>,
    /// An error for each file of the journal that is not a record, or could not be updated, with its path there. The
    /// files stay.
    pub unreadable: Vec<Error>,
    /// Number of records that are left to a later recovery, because a rename or another recovery is running, the time
    /// limit has passed, or one of their mounts failed.
    pub deferred: usize,
}

/// A rename that a recovery found in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveredMove {
    /// The source of the rename.
    pub from: VfsPath,
    /// The target of the rename.
    pub to: VfsPath,
    /// The path of its record in the backend of the journal.
    pub record: VfsPath,
    /// The actor that began it.
    pub actor: Option<String>,
    /// The session in which it was begun.
    pub session: Option<String>,
    /// The outcome of its recovery.
    pub outcome: RecoveryOutcome,
    /// Whether the outcome is new: `false` if nothing was settled and an earlier recovery ended with the same
    /// problem.
    pub is_new: bool,
}

/// The outcome of recovering one rename.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecoveryOutcome {
    /// All files are at the target, and none at the source.
    Finished,
    /// As [`Finished`](Self::Finished), except for these paths, which stay at the source: they were changed or added
    /// there since and are not at the target, or a link that was changed leads to them.
    FinishedExcept(Vec<VfsPath>),
    /// No file had arrived at the target: every file is at the source, and the rename did not take place.
    RolledBack,
    /// The time limit passed before everything was settled: `remaining` files and empty directories are left to the
    /// next recovery, which continues from there.
    Unfinished {
        /// Number of files and empty directories that are not settled.
        remaining: usize,
    },
    /// The rename cannot be completed because of this error: a `conflict` about a file that was changed at both ends,
    /// `cross_backend` if other files are mounted, or the same files may be mounted at both ends, and those of the
    /// mounts. Its record stays for the next recovery, with the files that are not settled, and nothing is lost.
    Incomplete(Error),
}

/// The settings of one recovery.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RecoveryOptions {
    time_limit: Option<Duration>,
    yield_after: Option<Duration>,
    observer: Option<Arc<dyn RecoveryObserver>>,
}

impl RecoveryOptions {
    /// Ends the recovery after `time_limit`: records that are not settled then are left to the next one.
    #[must_use]
    pub fn time_limit(mut self, time_limit: Duration) -> Self {
        self.time_limit = Some(time_limit);
        self
    }

    /// Begins no further step after `duration`, once the recovery has made progress. In contrast to the [time
    /// limit](Self::time_limit), it does not interrupt the file that is being moved, so that each recovery settles at
    /// least one.
    #[must_use]
    pub fn yield_after(mut self, duration: Duration) -> Self {
        self.yield_after = Some(duration);
        self
    }

    /// Sends notices to `observer`.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn RecoveryObserver>) -> Self {
        self.observer = Some(observer);
        self
    }
}

impl CompositeBackend {
    /// Completes the renames across mounts that a crash interrupted.
    ///
    /// # Behaviour
    ///
    /// * A rename of which nothing has arrived at the target is rolled back: if every file is at the source, its
    ///   record is removed. Otherwise files that are still at the source are copied, compared and deleted there, as
    ///   the rename would have done.
    /// * Records are recovered only if both mounts have the [identities](Self::with_identity) of the record.
    /// * Files are copied, replaced and deleted only in the versions that were recorded; after the start of a
    ///   rollback also in others, which it may have written. A file that may be one at both ends is never deleted. A
    ///   file whose source was changed since, and which is not at the target, stays at the source. If both ends have
    ///   different contents, the outcome is [`Incomplete`](RecoveryOutcome::Incomplete): the record is rewritten with
    ///   the files that are not settled, and the next recovery tries them again, until one of the two no longer exists.
    /// * If the time limit passes, settled files stay settled, and the record is rewritten with the others, so that
    ///   each recovery makes progress.
    /// * The first [temporary](Error::is_temporary) error ends the recovery of a rename, and later ones of the mount
    ///   that failed are deferred.
    /// * With a [lock](Self::with_locked_journal) nothing is done while a rename or another recovery is running, and
    ///   an empty journal takes no lock. Without one, call this before renames begin.
    /// * Recovery acts for the actor and session of the rename, in the layers around each mount. Layers around this
    ///   backend do not see it.
    ///
    /// # Errors
    ///
    /// The errors of listing and locking the journal. Without a journal there is nothing to recover.
    pub async fn recover(&self, cx: &OpContext) -> Result<RecoveryReport> {
        self.recover_with(cx, RecoveryOptions::default()).await
    }

    /// Completes interrupted renames as [`recover`](Self::recover) does, with `options`.
    ///
    /// # Errors
    ///
    /// As [`recover`](Self::recover).
    pub async fn recover_with(&self, cx: &OpContext, options: RecoveryOptions) -> Result<RecoveryReport> {
        let Some(journal) = &self.journal else { return Ok(RecoveryReport::default()) };
        let cx = &cx.without_operation_id();
        let listed = journal.list(cx).await?;
        let count = listed.records.len();
        let deferred = RecoveryReport { unreadable: listed.unreadable, deferred: count, ..RecoveryReport::default() };
        if count == 0 {
            return Ok(deferred);
        }
        let (composite, journal) = (self.clone(), Arc::clone(journal));
        vfs_search::run_to_completion(cx, |cx| async move {
            let Some(_guard) = journal.try_lock(&cx).await? else { return Ok(deferred) };
            composite.recover_all(&cx, &journal, &options).await
        })
        .await
    }

    /// Recovers the renames of a journal that is locked.
    async fn recover_all(
        &self,
        cx: &OpContext,
        journal: &Journal,
        options: &RecoveryOptions,
    ) -> Result<RecoveryReport> {
        // Records may have been removed before the lock was acquired.
        let listed = journal.list(cx).await?;
        let mut recovery = RecoveryReport { unreadable: listed.unreadable, ..RecoveryReport::default() };
        let limited = options.time_limit.map_or_else(|| cx.clone(), |limit| cx.clone().with_timeout(limit));
        let yield_at = options.yield_after.and_then(|duration| Instant::now().checked_add(duration));
        let mut failed_mounts: Vec<VfsPath> = Vec::new();
        let mut has_progressed = false;
        for entry in listed.records {
            cx.check()?;
            let is_over = has_progressed && yield_at.is_some_and(|moment| Instant::now() >= moment);
            if is_over || limited.check().is_err() {
                recovery.deferred += 1;
                continue;
            }
            let record = match journal.read(cx, &entry).await {
                Ok(record) => record,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => {
                    recovery.unreadable.push(error.or_path(&entry.path));
                    continue;
                }
            };
            if failed_mounts.iter().any(|mount| *mount == record.source.path || *mount == record.target.path) {
                recovery.deferred += 1;
                continue;
            }
            let observer = options.observer.clone();
            let notice = observer.map(|observer| Arc::new(RecoveryNotifier::new(observer, &record.from, &record.to)));
            let recorded = record.files.len();
            let mut move_recovery = MoveRecovery::new(self, &limited, record, yield_at, notice);
            let settled = move_recovery.settle().await;
            let (mut record, mut is_changed) = move_recovery.into_record();
            let outcome = match settled {
                Ok(unfinished @ RecoveryOutcome::Unfinished { .. }) => Ok(unfinished),
                Ok(outcome) => journal.remove(cx, entry.path.clone()).await.map(|()| outcome).map_err(removal_failure),
                Err(error) => Err(error),
            };
            let is_new = match &outcome {
                Ok(RecoveryOutcome::Unfinished { .. }) => is_changed,
                Ok(_) => true,
                Err(error) => {
                    let problem = format!("{} {}", error.kind().code(), error.path().unwrap_or_default());
                    record.problems.insert(problem) || record.files.len() < recorded
                }
            };
            has_progressed |= is_new && outcome.is_ok();
            is_changed |= is_new;
            if is_changed && matches!(outcome, Ok(RecoveryOutcome::Unfinished { .. }) | Err(_)) {
                let updated = journal.replace(&cx.for_cleanup(), &entry.path, &record).await;
                recovery.unreadable.extend(updated.err().map(|error| error.or_path(&entry.path)));
            }
            let MoveRecord { from, to, source, target, actor, session, .. } = record;
            if let Err(error) = &outcome
                && error.is_temporary()
            {
                let path = error.path().and_then(|path| VfsPath::parse(path).ok());
                let failed = path.map(|path| self.table().route(&path).at().clone());
                match failed.filter(|mount| *mount == source.path || *mount == target.path) {
                    Some(mount) => failed_mounts.push(mount),
                    None => failed_mounts.extend([source.path, target.path]),
                }
            }
            let outcome = outcome.unwrap_or_else(RecoveryOutcome::Incomplete);
            recovery.moves.push(RecoveredMove { from, to, record: entry.path, actor, session, outcome, is_new });
        }
        Ok(recovery)
    }
}

/// Returns the error for a settled rename whose record cannot be removed.
fn removal_failure(source: Error) -> Error {
    let message = format!("the move is settled, but its record cannot be removed: {}", source.message());
    Error::new(source.kind(), message).with_generic_model_message().with_source(source)
}
