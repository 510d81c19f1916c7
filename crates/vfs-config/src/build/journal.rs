//! The journal of moves across mounts, and the recovery of moves that a crash interrupted.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use vfs_composite::{
    CompositeBackend, JournalGuard, JournalLock, RecoveredMove, Recovery, RecoveryObserver, RecoveryOptions,
    RecoveryOutcome,
};
use vfs_core::{Backend, Error, ErrorKind, FileInfo, LsRequest, OpContext, Result, VfsPath};
use vfs_layers::{AuditOperation, Outcome};
use vfs_local::{LocalBackend, LockMode};

use super::stores::Stores;
use crate::built::{AuditLog, Place, Placed};
use crate::config::Config;
use crate::error::{ConfigError, ConfigErrorKind, unopened_directory};
use crate::host::StorePlace;
use crate::tables::JournalSetting;

/// The directory of the journal, relative to that of the file.
const DEFAULT_DIRECTORY: &str = ".vfs/moves";

/// The name of the file of its lock.
const LOCK_FILE: &str = "lock";

/// Largest number of unreadable files that are warned of one by one.
const MAX_UNREADABLE_WARNINGS: usize = 8;

/// Time after which an opening moves no further file.
const YIELD_AFTER: Duration = Duration::from_secs(5);

/// Longest time that an opening takes to recover moves, which is for a file that takes longer than [`YIELD_AFTER`].
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(60);

/// The journal of a namespace, if it has one.
#[derive(Debug, Default)]
pub(super) struct MoveJournal {
    place: Option<StorePlace>,
    warnings: Vec<ConfigError>,
}

impl MoveJournal {
    /// Opens the journal of `config`, and has `stores` hide it from agents.
    ///
    /// The default directory is hidden even if it is not used: a recovery acts on its records below all policies, so nobody may
    /// write one for a later configuration.
    pub(super) async fn open(
        config: &Config,
        base: &Path,
        stores: &mut Stores,
    ) -> std::result::Result<Self, ConfigError> {
        let default = config.file().map(|_| base.join(DEFAULT_DIRECTORY));
        if let Some(default) = &default {
            stores.hide_journal(default.clone());
        }
        match (&config.tables.journal, default) {
            (Some(setting), default) => match setting.get_ref() {
                JournalSetting::Off => Ok(Self::unused(default.as_deref()).await),
                JournalSetting::Directory(directory) => {
                    let opened = open_directory(&base.join(directory), stores).await;
                    let place = opened.map_err(|error| {
                        let mut failed = config.source.error(error.kind, setting.span(), error.message);
                        failed.cause = error.cause;
                        failed
                    })?;
                    stores.hide_journal(place.real.clone());
                    let default = default.filter(|default| *default != place.real);
                    let warnings = pending_warning(default.as_deref()).await.into_iter().collect();
                    Ok(Self { place: Some(place), warnings })
                }
            },
            (None, Some(default)) if !config.tables.mounts.is_empty() => Ok(Self::open_default(&default, stores).await),
            (None, default) => Ok(Self::unused(default.as_deref()).await),
        }
    }

    /// Returns no journal.
    async fn unused(default: Option<&Path>) -> Self {
        Self { place: None, warnings: pending_warning(default).await.into_iter().collect() }
    }

    /// Opens the journal in the default directory. The file does not name it, so if it cannot be used there is none.
    async fn open_default(default: &Path, stores: &Stores) -> Self {
        match open_directory(default, stores).await {
            Ok(place) => Self { place: Some(place), warnings: Vec::new() },
            Err(mut error) => {
                error.message = format!(
                    "moves between mounts cannot be recovered after a crash: {}; name another directory with `journal`, or \
                     set it to false",
                    error.message
                );
                Self { place: None, warnings: vec![error] }
            }
        }
    }

    /// Returns `composite` with this journal.
    pub(super) fn attach(&self, composite: CompositeBackend) -> Result<CompositeBackend> {
        let Some(place) = &self.place else { return Ok(composite) };
        let lock = FileJournalLock { files: place.local.clone(), path: place.path.child(LOCK_FILE)? };
        Ok(composite.with_locked_journal(place.files(), place.path.clone(), Arc::new(lock)))
    }

    /// Returns warnings about interrupted moves of a namespace that is read-only, which are not recovered.
    pub(super) async fn leave_records(self) -> Vec<ConfigError> {
        let mut warnings = self.warnings;
        if let Some(place) = self.place
            && let Some(records) = count_records(&place).await
        {
            let message = format!(
                "{records} in '{}' cannot be recovered, as the namespace is read-only; open it with settings in which it is not",
                place.real.display()
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
    ) -> (Recovery, Vec<ConfigError>) {
        let mut warnings = self.warnings;
        let Some(place) = self.place else { return (Recovery::default(), warnings) };
        let options = RecoveryOptions::default().time_limit(RECOVERY_TIMEOUT).yield_after(YIELD_AFTER);
        let options = observer.into_iter().fold(options, RecoveryOptions::observer);
        match composite.recover_with(&OpContext::new(), options).await {
            Ok(recovery) => {
                warnings.extend(recovery.moves.iter().filter_map(|moved| outcome_warning(moved, &place)));
                warnings.extend(deferral_warning(recovery.deferred));
                warnings.extend(unreadable_warnings(&recovery.unreadable, &place));
                (recovery, warnings)
            }
            Err(error) => {
                let message = format!("interrupted moves in '{}' cannot be recovered", place.real.display());
                warnings.push(ConfigError::new(ConfigErrorKind::Open, message).because(error));
                (Recovery::default(), warnings)
            }
        }
    }
}

/// Opens the directory `path` of a journal, and makes it with the file of its lock. Only an existing directory can be hidden
/// from agents together with its parents.
async fn open_directory(path: &Path, stores: &Stores) -> std::result::Result<StorePlace, ConfigError> {
    let failed = |error| {
        let message = format!("the journal of moves '{}' cannot be used", path.display());
        ConfigError::new(ConfigErrorKind::Open, message).because(error)
    };
    let place = StorePlace::directory(path).map_err(|error| {
        let mut failed = ConfigError::new(ConfigErrorKind::Open, unopened_directory("journal", path, &error));
        failed.cause = Some(error);
        failed
    })?;
    // An agent may have made the link, and the records in the directory that it leads to, or may replace it by a directory with
    // records of its own.
    if place.real != normalized(path) {
        let message = format!(
            "'{}' is reached through a link, which could be replaced; name the directory that it leads to, '{}'",
            path.display(),
            place.real.display()
        );
        return Err(ConfigError::new(ConfigErrorKind::Conflict, message));
    }
    if stores.overlap(&place.real) {
        let message = format!("the store of a layer is in '{}' or around it", path.display());
        return Err(ConfigError::new(ConfigErrorKind::Conflict, message));
    }
    let cx = OpContext::new();
    let lock = place.path.child(LOCK_FILE).map_err(failed)?;
    // Records were written under a lock, so that there are locks here; to hold it now would keep another process from recovering.
    if count_records(&place).await.is_none() {
        place.local.try_lock_file(&cx, &lock, LockMode::Shared).await.map_err(failed)?;
    }
    if !place.local.can_create_in(&cx, &place.path).await.map_err(failed)? {
        return Err(failed(Error::new(ErrorKind::PermissionDenied, "no file can be created there")));
    }
    Ok(place)
}

/// Returns a warning about records in the default directory, if it is not the journal of this configuration.
async fn pending_warning(default: Option<&Path>) -> Option<ConfigError> {
    let place = StorePlace::directory(default?).ok().filter(|place| Some(place.real.as_path()) == default)?;
    let records = count_records(&place).await?;
    let message = format!(
        "{records} in '{}' cannot be recovered with these settings, as that is not the journal; open those that the moves were \
         made with, or remove the records if both ends are as they should be",
        place.real.display()
    );
    Some(ConfigError::new(ConfigErrorKind::Conflict, message))
}

/// Returns the number of records in the journal at `place` in words; `None` if there is none.
async fn count_records(place: &StorePlace) -> Option<String> {
    let listed = Backend::ls(&place.local, &OpContext::new(), LsRequest::new(place.path.clone())).await.ok()?;
    let is_record = |entry: &&FileInfo| entry.path.name().is_some_and(|name| name.starts_with("move-"));
    match listed.entries.iter().filter(is_record).count() {
        0 => None,
        1 => Some("1 record of a move between mounts".to_owned()),
        records => Some(format!("{records} records of moves between mounts")),
    }
}

/// Records in the audit logs around the namespace what became of interrupted moves, for the caller of each and without what was
/// recorded before; returns a warning if one cannot be written.
///
/// The logs have no record of such a move, as that is made when an operation ends.
pub(super) async fn audit_recovery(recovery: &Recovery, audits: &[Placed<AuditLog>]) -> Option<ConfigError> {
    let mut failure = None;
    for log in audits.iter().filter(|log| log.place == Place::Everywhere) {
        for moved in recovery.moves.iter().filter(|moved| moved.is_new) {
            let cx = moved.actor.iter().fold(OpContext::new(), |cx, actor| cx.with_actor(actor.as_str()));
            let cx = moved.session.iter().fold(cx, |cx, session| cx.with_session(session.as_str()));
            let work = async { Ok(moved) };
            let recorded =
                log.part.audit.record(&cx, AuditOperation::Recover, &moved.from, work, |moved| describe(moved));
            failure = recorded.await.err().or(failure);
        }
    }
    let message = "the recovery of interrupted moves is not in the audit log";
    failure.map(|error| ConfigError::new(ConfigErrorKind::Open, message).because(error))
}

/// Returns the outcome of recovering `moved` for an audit log.
fn describe(moved: &RecoveredMove) -> (Outcome, String) {
    let (outcome, words) = match &moved.outcome {
        RecoveryOutcome::RolledBack => (Outcome::Ok, "rolled back".to_owned()),
        RecoveryOutcome::FinishedExcept(left) => (Outcome::Ok, format!("finished but for {} paths", left.len())),
        RecoveryOutcome::Unfinished { remaining } => (Outcome::Ok, format!("{remaining} files are left")),
        RecoveryOutcome::Incomplete(error) => (Outcome::Failed(error.kind()), error.message().to_owned()),
        _ => (Outcome::Ok, "finished".to_owned()),
    };
    (outcome, format!("to {}: {words}", moved.to))
}

/// Returns `path` without dots.
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

/// The lock of a journal: a file in its directory.
#[derive(Debug)]
struct FileJournalLock {
    files: LocalBackend,
    path: VfsPath,
}

#[async_trait]
impl JournalLock for FileJournalLock {
    async fn lock_shared(&self, cx: &OpContext) -> Result<JournalGuard> {
        match self.files.lock_file(cx, &self.path, LockMode::Shared).await {
            Ok(lock) => Ok(Box::new(lock)),
            Err(error) if error.is_temporary() => Err(error),
            Err(error) => Err(error.with_consequence(
                "make the directory of the journal, '.vfs/moves' by default, writable, or set `journal` in vfs.toml to another \
                 one, or to false to move without a journal",
            )),
        }
    }

    async fn try_lock_exclusive(&self, cx: &OpContext) -> Result<Option<JournalGuard>> {
        let lock = self.files.try_lock_file(cx, &self.path, LockMode::Exclusive).await?;
        Ok(lock.map(|lock| Box::new(lock) as JournalGuard))
    }
}

/// Returns the warning about a move that is not, or not all, at its target.
fn outcome_warning(moved: &RecoveredMove, place: &StorePlace) -> Option<ConfigError> {
    let RecoveredMove { from, to, record, outcome, .. } = moved;
    let message = match outcome {
        RecoveryOutcome::FinishedExcept(left) => {
            let first = left.first().map(VfsPath::as_str).unwrap_or_default();
            let more = match left.len() {
                0 | 1 => String::new(),
                paths => format!(" and {} more", paths - 1),
            };
            format!(
                "the interrupted move of '{from}' to '{to}' was finished, but for '{first}'{more}, changed since and left there"
            )
        }
        RecoveryOutcome::Unfinished { remaining } => {
            format!(
                "the interrupted move of '{from}' to '{to}' is not finished: {remaining} files are left to later commands"
            )
        }
        RecoveryOutcome::Incomplete(error) => format!(
            "the move of '{from}' to '{to}' was interrupted and is not settled at '{}': {}; {}",
            error.path().unwrap_or(to.as_str()),
            error.message(),
            advice(error, &host_path(place, record.as_str())),
        ),
        _ => return None,
    };
    let mut warning = ConfigError::new(ConfigErrorKind::Conflict, message);
    if let RecoveryOutcome::Incomplete(error) = outcome {
        warning.cause = Some(error.clone());
    }
    Some(warning)
}

/// Returns the advice about a move that is stuck because of `error`, with its record in the file `record`.
fn advice(error: &Error, record: &Path) -> String {
    let record = record.display();
    match error.kind() {
        kind if kind.is_temporary() => "the next command tries again".to_owned(),
        ErrorKind::Conflict => format!(
            "nothing is lost: remove or rename whichever of the two ends is out of date, and the next command settles the move; \
             or remove '{record}' to leave both"
        ),
        // Their messages say what to do.
        ErrorKind::CrossBackend | ErrorKind::NotFound => format!("the record is '{record}'"),
        _ => format!("the next command tries again; to leave both ends as they are, remove '{record}'"),
    }
}

/// Returns the warning about `deferred` records that are left to a later recovery.
fn deferral_warning(deferred: usize) -> Option<ConfigError> {
    let moves = match deferred {
        0 => return None,
        1 => "1 move between mounts is".to_owned(),
        deferred => format!("{deferred} moves between mounts are"),
    };
    let message = format!("{moves} under way in another process, or interrupted and left to a later command");
    Some(ConfigError::new(ConfigErrorKind::Open, message))
}

/// Returns warnings about files in the journal that are not records of moves, or cannot be updated.
fn unreadable_warnings(errors: &[Error], place: &StorePlace) -> Vec<ConfigError> {
    let warn = |error: &Error| {
        let file = host_path(place, error.path().unwrap_or_default());
        let message = format!("'{}' in the journal of moves cannot be used, and stays", file.display());
        ConfigError::new(ConfigErrorKind::Unreadable, message).because(error.clone())
    };
    let mut warnings: Vec<_> = errors.iter().take(MAX_UNREADABLE_WARNINGS).map(warn).collect();
    if errors.len() > MAX_UNREADABLE_WARNINGS {
        let message = format!("{} more files in the journal of moves cannot be used", errors.len() - warnings.len());
        warnings.push(ConfigError::new(ConfigErrorKind::Unreadable, message));
    }
    warnings
}

/// The path on the host of `path` in the backend of the journal.
fn host_path(place: &StorePlace, path: &str) -> PathBuf {
    let name = path.rsplit('/').next().unwrap_or_default();
    place.real.join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_conflict_is_a_reason_to_remove_an_end() {
        let record = Path::new("/srv/.vfs/moves/move-1-0.json");
        for (kind, words, names_record) in [
            (ErrorKind::Conflict, "whichever of the two ends is out of date", true),
            (ErrorKind::Unavailable, "the next command tries again", false),
            (ErrorKind::Timeout, "the next command tries again", false),
            (ErrorKind::PermissionDenied, "the next command tries again; to leave both ends", true),
            (ErrorKind::CrossBackend, "the record is", true),
            (ErrorKind::NotFound, "the record is", true),
        ] {
            let advice = advice(&Error::of(kind), record);
            assert!(advice.contains(words) && advice.contains("move-1-0") == names_record, "{kind:?}: {advice}");
            assert_eq!(advice.contains("out of date"), kind == ErrorKind::Conflict, "{kind:?}");
        }
    }
}
