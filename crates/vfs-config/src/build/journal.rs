//! The journal of moves across mounts, and the recovery of moves that a crash interrupted.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use vfs_composite::{CompositeBackend, JournalGuard, JournalLock, Recovered, RecoveredMove, Recovery};
use vfs_core::{Error, OpContext, Result, VfsPath};
use vfs_local::{LocalBackend, LockMode};

use super::stores::Stores;
use crate::config::Config;
use crate::error::{ConfigError, ConfigErrorKind, unopened_directory};
use crate::host::StorePlace;
use crate::tables::JournalSetting;

/// The directory of the journal, relative to that of the file.
const DEFAULT_DIRECTORY: &str = ".vfs/moves";

/// Largest number of unreadable files that are warned of one by one.
const MAX_UNREADABLE_WARNINGS: usize = 8;

/// The journal of a namespace, if it has one.
#[derive(Debug, Default)]
pub(super) struct MoveJournal {
    place: Option<StorePlace>,
    warnings: Vec<ConfigError>,
}

impl MoveJournal {
    /// Finds the directory of the journal, and has `stores` hide it. Nothing is made yet.
    pub(super) fn find(config: &Config, base: &Path, stores: &mut Stores) -> std::result::Result<Self, ConfigError> {
        let Some((path, span)) = directory(config, base) else { return Ok(Self::default()) };
        match Self::place(config, &path, span.clone(), stores) {
            Ok(place) => Ok(Self { place: Some(place), warnings: Vec::new() }),
            // Nobody asked for the default, so it does not stand in the way of a file that worked without it.
            Err(mut error) if span.is_none() => {
                error.message = format!(
                    "moves between mounts cannot be recovered after a crash: {}; name another directory with `journal`, or \
                     set it to false",
                    error.message
                );
                Ok(Self { place: None, warnings: vec![error] })
            }
            Err(error) => Err(error),
        }
    }

    fn place(
        config: &Config,
        path: &Path,
        span: Option<Range<usize>>,
        stores: &mut Stores,
    ) -> std::result::Result<StorePlace, ConfigError> {
        let failed = |kind, message: String| match &span {
            Some(span) => config.source.error(kind, span.clone(), message),
            None => ConfigError::new(kind, message),
        };
        let place = StorePlace::directory(path).map_err(|error| {
            let mut failed = failed(ConfigErrorKind::Open, unopened_directory("journal", path, &error));
            failed.cause = Some(error);
            failed
        })?;
        if !stores.hide_journal(&place, span.clone()) {
            let message = format!("the store of a layer is in '{}' or around it", path.display());
            return Err(failed(ConfigErrorKind::Conflict, message));
        }
        Ok(place)
    }

    /// `composite` with this journal.
    pub(super) fn around(&self, composite: CompositeBackend) -> Result<CompositeBackend> {
        let Some(place) = &self.place else { return Ok(composite) };
        let lock = FileJournalLock { files: place.local.clone(), path: place.path.child("lock")? };
        Ok(composite.with_locked_journal(place.files(), place.path.clone(), Arc::new(lock)))
    }

    /// Recovers interrupted moves; and returns warnings about what could not be recovered.
    pub(super) async fn recover(self, composite: &CompositeBackend) -> (Recovery, Vec<ConfigError>) {
        let mut warnings = self.warnings;
        let Some(place) = self.place else { return (Recovery::default(), warnings) };
        match composite.recover(&OpContext::new()).await {
            Ok(recovery) => {
                warnings.extend(recovery.moves.iter().filter_map(|moved| unfinished(moved, &place)));
                warnings.extend(unreadable(&recovery.unreadable, &place));
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

/// The directory that `config` names for the journal, and where; a default has no place in the file.
fn directory(config: &Config, base: &Path) -> Option<(PathBuf, Option<Range<usize>>)> {
    if config.tables.mounts.is_empty() {
        return None;
    }
    match &config.tables.journal {
        Some(setting) => match setting.get_ref() {
            JournalSetting::Off => None,
            JournalSetting::Directory(directory) => Some((base.join(directory), Some(setting.span()))),
        },
        // A text that is not from a file has no directory of its own.
        None => config.file().map(|_| (base.join(DEFAULT_DIRECTORY), None)),
    }
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
            Err(error) => {
                let message = format!(
                    "{}; make the directory of the journal, '.vfs/moves' by default, writable, or set `journal` in vfs.toml to \
                     another one, or to false to move without a journal",
                    error.message()
                );
                Err(Error::new(error.kind(), message).with_source(error))
            }
        }
    }

    async fn try_lock_exclusive(&self, cx: &OpContext) -> Result<Option<JournalGuard>> {
        let lock = self.files.try_lock_file(cx, &self.path, LockMode::Exclusive).await?;
        Ok(lock.map(|lock| Box::new(lock) as JournalGuard))
    }
}

/// The warning about a move that is not, or not all, at its target.
fn unfinished(moved: &RecoveredMove, place: &StorePlace) -> Option<ConfigError> {
    let RecoveredMove { from, to, note, outcome, .. } = moved;
    let message = match outcome {
        Recovered::FinishedExcept(left) => {
            let first = left.first().map(VfsPath::as_str).unwrap_or_default();
            let more = match left.len() {
                0 | 1 => String::new(),
                paths => format!(" and {} more", paths - 1),
            };
            format!(
                "the interrupted move of '{from}' to '{to}' was finished, but for '{first}'{more}, changed since and left there"
            )
        }
        Recovered::Stuck(error) => format!(
            "the move of '{from}' to '{to}' was interrupted and cannot be finished: {} ({}); nothing is lost: remove or rename \
             whichever of the two is out of date, and the next command settles the move, or remove '{}' to leave both",
            error.message(),
            error.path().unwrap_or(to.as_str()),
            host_path(place, note.as_str()).display(),
        ),
        _ => return None,
    };
    let mut warning = ConfigError::new(ConfigErrorKind::Conflict, message);
    if let Recovered::Stuck(error) = outcome {
        warning.cause = Some(error.clone());
    }
    Some(warning)
}

/// Warnings about files in the journal that are not records of moves.
fn unreadable(errors: &[Error], place: &StorePlace) -> Vec<ConfigError> {
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
