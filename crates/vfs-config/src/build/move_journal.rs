//! Write-ahead journal of moves across mounts, and recovery of interrupted moves.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use vfs_composite::{
    CompositeBackend, JournalLock, JournalLockGuard, RecoveredMove, RecoveryObserver, RecoveryOptions, RecoveryOutcome,
    RecoveryReport,
};
use vfs_core::{Backend, Error, ErrorKind, FileInfo, LsRequest, OpContext, Result, VfsPath};
use vfs_layers::{AuditOperation, Outcome};
use vfs_local::{FileLockMode, LocalBackend};

use super::host_storage_paths::HostStoragePaths;
use crate::error::{ConfigError, ConfigErrorKind, describe_open_failure};
use crate::host_storage_location::HostStorageLocation;
use crate::layer_handle::{AuditLog, LayerHandle, LayerScope};
use crate::namespace_spec::NamespaceSpec;
use crate::tables::JournalSetting;

/// The default directory of the journal, relative to the base directory.
const DEFAULT_DIRECTORY: &str = ".vfs/moves";

/// The name of the lock file in the directory of the journal.
const LOCK_FILE: &str = "lock";

/// Maximum number of unreadable files with a warning of their own.
const MAX_UNREADABLE_WARNINGS: usize = 8;

/// Time after which recovery starts no further file.
const RECOVERY_YIELD_AFTER: Duration = Duration::from_secs(5);

/// Maximum duration of a recovery. Only a file that takes longer than [`RECOVERY_YIELD_AFTER`] makes use of it.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(60);

/// The journal of a namespace, if it has one.
#[derive(Debug, Default)]
pub(super) struct OpenedJournal {
    location: Option<HostStorageLocation>,
    warnings: Vec<ConfigError>,
}

impl OpenedJournal {
    /// Opens the journal of `spec`, and registers it in `storage` so that it is hidden from agents.
    ///
    /// The default directory is hidden even if it is not used: recovery applies its records below all policies, so an agent must
    /// not be able to write one for a later configuration.
    pub(super) async fn open(
        spec: &NamespaceSpec,
        base: &Path,
        storage: &mut HostStoragePaths,
    ) -> std::result::Result<Self, ConfigError> {
        let default = spec.source.file().map(|_| base.join(DEFAULT_DIRECTORY));
        if let Some(default) = &default {
            storage.add_journal(default.clone());
        }
        match (&spec.tables.journal, default) {
            (Some(setting), default) => match setting.get_ref() {
                JournalSetting::Off => Ok(Self::disabled(default.as_deref()).await),
                JournalSetting::Directory(directory) => {
                    let opened = open_directory(&base.join(directory), storage).await;
                    let location = opened.map_err(|error| {
                        let mut failed = spec.source.error(error.kind, setting.span(), error.message);
                        failed.cause = error.cause;
                        failed
                    })?;
                    storage.add_journal(location.real.clone());
                    let default = default.filter(|default| *default != location.real);
                    let warnings = pending_warning(default.as_deref()).await.into_iter().collect();
                    Ok(Self { location: Some(location), warnings })
                }
            },
            (None, Some(default)) if !spec.tables.mounts.is_empty() => Ok(Self::open_default(&default, storage).await),
            (None, default) => Ok(Self::disabled(default.as_deref()).await),
        }
    }

    /// Returns a disabled journal, which records nothing.
    async fn disabled(default: Option<&Path>) -> Self {
        Self { location: None, warnings: pending_warning(default).await.into_iter().collect() }
    }

    /// Opens the journal in the default directory. The configuration does not require it, so an unusable directory only disables it.
    async fn open_default(default: &Path, storage: &HostStoragePaths) -> Self {
        match open_directory(default, storage).await {
            Ok(location) => Self { location: Some(location), warnings: Vec::new() },
            Err(mut error) => {
                error.message = format!(
                    "moves between mounts cannot be recovered after a crash: {}; name another directory with `journal`, or \
                     set it to false",
                    error.message
                );
                Self { location: None, warnings: vec![error] }
            }
        }
    }

    /// Returns `composite` with this journal.
    pub(super) fn attach(&self, composite: CompositeBackend) -> Result<CompositeBackend> {
        let Some(location) = &self.location else { return Ok(composite) };
        let lock = FileJournalLock { files: location.local.clone(), path: location.path.child(LOCK_FILE)? };
        Ok(composite.with_locked_journal(location.files(), location.path.clone(), Arc::new(lock)))
    }

    /// Returns warnings about interrupted moves of a namespace that is read-only, which are not recovered.
    pub(super) async fn leave_records(self) -> Vec<ConfigError> {
        let mut warnings = self.warnings;
        if let Some(location) = self.location
            && let Some(records) = count_records(&location).await
        {
            let message = format!(
                "{records} in '{}' cannot be recovered, because the namespace is read-only; open it with settings that permit writes",
                location.real.display()
            );
            warnings.push(ConfigError::new(ConfigErrorKind::Conflict, message));
        }
        warnings
    }

    /// Recovers interrupted moves, and returns warnings about those that could not be recovered.
    pub(super) async fn recover(
        self,
        composite: &CompositeBackend,
        observer: Option<Arc<dyn RecoveryObserver>>,
    ) -> (RecoveryReport, Vec<ConfigError>) {
        let mut warnings = self.warnings;
        let Some(location) = self.location else { return (RecoveryReport::default(), warnings) };
        let options = RecoveryOptions::default().time_limit(RECOVERY_TIMEOUT).yield_after(RECOVERY_YIELD_AFTER);
        let options = observer.into_iter().fold(options, RecoveryOptions::observer);
        match composite.recover_with(&OpContext::new(), options).await {
            Ok(recovery) => {
                warnings.extend(recovery.moves.iter().filter_map(|moved| outcome_warning(moved, &location)));
                warnings.extend(deferral_warning(recovery.deferred));
                warnings.extend(unreadable_warnings(&recovery.unreadable, &location));
                (recovery, warnings)
            }
            Err(error) => {
                let message = format!("interrupted moves in '{}' cannot be recovered", location.real.display());
                warnings.push(ConfigError::new(ConfigErrorKind::Open, message).with_cause(error));
                (RecoveryReport::default(), warnings)
            }
        }
    }
}

/// Opens the directory `path` of a journal, and creates it with its lock file. Only an existing directory can be hidden from
/// agents together with its parents.
async fn open_directory(
    path: &Path,
    storage: &HostStoragePaths,
) -> std::result::Result<HostStorageLocation, ConfigError> {
    let failed = |error| {
        let message = format!("the journal of moves '{}' cannot be used", path.display());
        ConfigError::new(ConfigErrorKind::Open, message).with_cause(error)
    };
    let location = HostStorageLocation::directory(path).map_err(|error| {
        let mut failed = ConfigError::new(ConfigErrorKind::Open, describe_open_failure("journal", path, &error));
        failed.cause = Some(error);
        failed
    })?;
    // An agent may have created the link and the records in its target, or may replace the link by a directory with records of
    // its own.
    if location.real != normalized(path) {
        let message = format!(
            "'{}' is reached through a link, which could be replaced; name the target of the link, '{}'",
            path.display(),
            location.real.display()
        );
        return Err(ConfigError::new(ConfigErrorKind::Conflict, message));
    }
    if storage.overlaps(&location.real) {
        let message =
            format!("the store of a layer is inside or around '{}'; choose another directory", path.display());
        return Err(ConfigError::new(ConfigErrorKind::Conflict, message));
    }
    let cx = OpContext::new();
    let lock = location.path.child(LOCK_FILE).map_err(failed)?;
    // If there are records, locks work here, because records are written under a lock. Taking the lock now would keep another
    // process from recovering.
    if count_records(&location).await.is_none() {
        location.local.try_lock_file(&cx, &lock, FileLockMode::Shared).await.map_err(failed)?;
    }
    if !location.local.can_create_in(&cx, &location.path).await.map_err(failed)? {
        return Err(failed(Error::new(ErrorKind::PermissionDenied, "no file can be created there")));
    }
    Ok(location)
}

/// Returns a warning about records in the default directory, if it is not the journal of this configuration.
async fn pending_warning(default: Option<&Path>) -> Option<ConfigError> {
    let location =
        HostStorageLocation::directory(default?).ok().filter(|location| Some(location.real.as_path()) == default)?;
    let records = count_records(&location).await?;
    let message = format!(
        "{records} in '{}' cannot be recovered with these settings, which use another journal or none; use the settings that \
         the moves were made with, or remove the records if the files at both ends are correct",
        location.real.display()
    );
    Some(ConfigError::new(ConfigErrorKind::Conflict, message))
}

/// Describes the number of records in the journal at `location`, or returns `None` if there is none.
async fn count_records(location: &HostStorageLocation) -> Option<String> {
    let listing = Backend::ls(&location.local, &OpContext::new(), LsRequest::new(location.path.clone())).await.ok()?;
    let is_record = |entry: &&FileInfo| entry.path.name().is_some_and(|name| name.starts_with("move-"));
    match listing.entries.iter().filter(is_record).count() {
        0 => None,
        1 => Some("1 record of a move between mounts".to_owned()),
        records => Some(format!("{records} records of moves between mounts")),
    }
}

/// Records new outcomes of interrupted moves in the audit logs of the namespace, as operations of the callers of the moves.
/// Returns a warning if a record cannot be written.
///
/// The logs have no other record of an interrupted move, because a record is written when an operation ends.
pub(super) async fn audit_recovery(recovery: &RecoveryReport, audits: &[LayerHandle<AuditLog>]) -> Option<ConfigError> {
    let mut failure = None;
    for log in audits.iter().filter(|log| log.scope == LayerScope::Namespace) {
        for moved in recovery.moves.iter().filter(|moved| moved.is_new) {
            let cx = moved.actor.iter().fold(OpContext::new(), |cx, actor| cx.with_actor(actor.as_str()));
            let cx = moved.session.iter().fold(cx, |cx, session| cx.with_session(session.as_str()));
            let work = async { Ok(moved) };
            let recorded =
                log.layer.audit.record(&cx, AuditOperation::Recover, &moved.from, work, |moved| describe(moved));
            failure = recorded.await.err().or(failure);
        }
    }
    let message = "the recovery of interrupted moves cannot be recorded in the audit log";
    failure.map(|error| ConfigError::new(ConfigErrorKind::Open, message).with_cause(error))
}

/// Returns the outcome of the recovery of `moved` for an audit log.
fn describe(moved: &RecoveredMove) -> (Outcome, String) {
    let (outcome, detail) = match &moved.outcome {
        RecoveryOutcome::RolledBack => (Outcome::Ok, "rolled back".to_owned()),
        RecoveryOutcome::FinishedExcept(left) => (Outcome::Ok, format!("finished but for {} paths", left.len())),
        RecoveryOutcome::Unfinished { remaining } => (Outcome::Ok, format!("{remaining} files are left")),
        RecoveryOutcome::Incomplete(error) => (Outcome::Failed(error.kind()), error.message().to_owned()),
        _ => (Outcome::Ok, "finished".to_owned()),
    };
    (outcome, format!("to {}: {detail}", moved.to))
}

/// Returns `path` without `.` and `..` components.
fn normalized(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut normalized, component| {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(normalized.pop()),
            component => normalized.push(component),
        }
        normalized
    })
}

/// The lock of a journal, a file in its directory.
#[derive(Debug)]
struct FileJournalLock {
    files: LocalBackend,
    path: VfsPath,
}

#[async_trait]
impl JournalLock for FileJournalLock {
    async fn lock_shared(&self, cx: &OpContext) -> Result<JournalLockGuard> {
        match self.files.lock_file(cx, &self.path, FileLockMode::Shared).await {
            Ok(lock) => Ok(Box::new(lock)),
            Err(error) if error.is_temporary() => Err(error),
            Err(error) => Err(error.with_consequence(
                "make the directory of the journal, '.vfs/moves' by default, writable, or set `journal` in vfs.toml to another \
                 one, or to false to move without a journal",
            )),
        }
    }

    async fn try_lock_exclusive(&self, cx: &OpContext) -> Result<Option<JournalLockGuard>> {
        let lock = self.files.try_lock_file(cx, &self.path, FileLockMode::Exclusive).await?;
        Ok(lock.map(|lock| Box::new(lock) as JournalLockGuard))
    }
}

/// Returns a warning if a move is not, or not completely, at its target.
fn outcome_warning(moved: &RecoveredMove, location: &HostStorageLocation) -> Option<ConfigError> {
    let RecoveredMove { from, to, record, outcome, .. } = moved;
    let message = match outcome {
        RecoveryOutcome::FinishedExcept(left) => {
            let first = left.first().map(VfsPath::as_str).unwrap_or_default();
            let more = match left.len() {
                0 | 1 => String::new(),
                paths => format!(" and {} more", paths - 1),
            };
            format!(
                "the interrupted move of '{from}' to '{to}' was finished, except for '{first}'{more}, which was changed since and left there"
            )
        }
        RecoveryOutcome::Unfinished { remaining } => {
            format!(
                "the interrupted move of '{from}' to '{to}' is not finished: later commands move the other {remaining} files"
            )
        }
        RecoveryOutcome::Incomplete(error) => format!(
            "the move of '{from}' to '{to}' was interrupted and cannot be recovered at '{}': {}; {}",
            error.path().unwrap_or(to.as_str()),
            error.message(),
            advice(error, &host_path(location, record.as_str())),
        ),
        _ => return None,
    };
    let mut warning = ConfigError::new(ConfigErrorKind::Conflict, message);
    if let RecoveryOutcome::Incomplete(error) = outcome {
        warning.cause = Some(error.clone());
    }
    Some(warning)
}

/// Returns what to do about a move that cannot be recovered because of `error`, and whose record is the file `record`.
fn advice(error: &Error, record: &Path) -> String {
    let record = record.display();
    match error.kind() {
        kind if kind.is_temporary() => "the next command retries".to_owned(),
        ErrorKind::Conflict => format!(
            "nothing is lost: remove or rename the outdated file at one of the two ends, and the next command recovers the move; \
             or remove '{record}' to keep both"
        ),
        // Messages of these errors say what to do.
        ErrorKind::CrossBackend | ErrorKind::NotFound => format!("the record is '{record}'"),
        _ => format!("the next command retries; to keep both ends as they are, remove '{record}'"),
    }
}

/// Returns a warning about `deferred` records, which a later recovery handles.
fn deferral_warning(deferred: usize) -> Option<ConfigError> {
    let moves = match deferred {
        0 => return None,
        1 => "1 move between mounts is".to_owned(),
        deferred => format!("{deferred} moves between mounts are"),
    };
    let message = format!("{moves} in progress in another process, or interrupted and left to a later command");
    Some(ConfigError::new(ConfigErrorKind::Open, message))
}

/// Returns warnings about files in the journal that are not records of moves or cannot be updated.
fn unreadable_warnings(errors: &[Error], location: &HostStorageLocation) -> Vec<ConfigError> {
    let warn = |error: &Error| {
        let file = host_path(location, error.path().unwrap_or_default());
        let message = format!("'{}' in the journal of moves is not a usable record, and is left there", file.display());
        ConfigError::new(ConfigErrorKind::Unreadable, message).with_cause(error.clone())
    };
    let mut warnings: Vec<_> = errors.iter().take(MAX_UNREADABLE_WARNINGS).map(warn).collect();
    if errors.len() > MAX_UNREADABLE_WARNINGS {
        let message =
            format!("{} more files in the journal of moves are not usable records", errors.len() - warnings.len());
        warnings.push(ConfigError::new(ConfigErrorKind::Unreadable, message));
    }
    warnings
}

/// Returns the host path of `path`, a file of the journal.
fn host_path(location: &HostStorageLocation, path: &str) -> PathBuf {
    let name = path.rsplit('/').next().unwrap_or_default();
    location.real.join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_advice_about_a_conflict_is_to_remove_a_file() {
        let record = Path::new("/srv/.vfs/moves/move-1-0.json");
        for (kind, words, names_record) in [
            (ErrorKind::Conflict, "the outdated file at one of the two ends", true),
            (ErrorKind::Unavailable, "the next command retries", false),
            (ErrorKind::Timeout, "the next command retries", false),
            (ErrorKind::PermissionDenied, "the next command retries; to keep both ends", true),
            (ErrorKind::CrossBackend, "the record is", true),
            (ErrorKind::NotFound, "the record is", true),
        ] {
            let advice = advice(&Error::of(kind), record);
            assert!(advice.contains(words) && advice.contains("move-1-0") == names_record, "{kind:?}: {advice}");
            assert_eq!(advice.contains("outdated"), kind == ErrorKind::Conflict, "{kind:?}");
        }
    }
}
