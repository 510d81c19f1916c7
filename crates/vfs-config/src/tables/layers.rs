//! Layers.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;
use vfs_core::{Operation, VfsPath};
use vfs_layers::{AuditScope, OnSinkFailure, QuotaLimits};

use super::rules::{EffectWord, HardLinksWord, RuleTable};
use crate::values::{HostPath, Size, Time, TimeLimit};

/// Something around files.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(tag = "type")]
pub(crate) enum LayerTable {
    /// Writes a record of every operation to a file, each tied to the one before. One process at a time: what two append at
    /// once shows as a broken log.
    Audit(AuditTable),
    /// Keeps the contents of files that were read.
    Cache(CacheTable),
    /// Keeps states of the files to go back to.
    Checkpoints(CheckpointsTable),
    /// Lets so many operations run at once.
    ConcurrencyLimit(ConcurrencyTable),
    /// Keeps changes apart from the files until they are committed.
    Overlay(OverlayTable),
    /// Decides about every operation by rules.
    Policy(PolicyTable),
    /// Limits what is stored, and how often it is asked, by the callers in one process.
    Quota(QuotaTable),
    /// Refuses every change. Further in than an overlay of the same list, it keeps out everything but a commit.
    ReadOnly(ReadOnlyTable),
    /// Tries again what failed for a while.
    Retry(RetryTable),
    /// Shows one directory as if it were all. Only around one place, not around the whole namespace.
    Scoped(ScopedTable),
    /// Ends every operation after a time.
    Timeout(TimeoutTable),
    /// Puts a `tracing` span around every operation.
    Trace(TraceTable),
}

/// Where a layer keeps what it keeps.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StoreTable<'a> {
    /// A directory of its own.
    Directory(&'a Spanned<HostPath>),
    /// One file.
    File(&'a Spanned<HostPath>),
}

impl LayerTable {
    /// Where it keeps what it keeps, if it does.
    pub(crate) fn store(&self) -> Option<StoreTable<'_>> {
        match self {
            Self::Audit(audit) => Some(StoreTable::File(&audit.file)),
            Self::Checkpoints(checkpoints) => Some(StoreTable::Directory(&checkpoints.store)),
            Self::Overlay(overlay) => overlay.store.as_ref().map(StoreTable::Directory),
            _ => None,
        }
    }

    /// The file of its rules, where it has one.
    pub(crate) fn rules_file(&self) -> Option<&Spanned<HostPath>> {
        match self {
            Self::Policy(policy) => policy.rules_file.as_ref(),
            _ => None,
        }
    }
}

/// The record of every operation.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditTable {
    /// The file that records are appended to, as lines of JSON. It is hidden where it lies in a directory that is shown, and
    /// so is every file whose name begins with its own and a dot: the log is rotated into such files.
    #[schemars(with = "HostPath")]
    pub(crate) file: Spanned<HostPath>,
    /// The size at which the log goes on in a new file; `audit.jsonl` becomes `audit.jsonl.120` where its last record is number
    /// 120. None is ever removed. Default: 4 MiB.
    pub(crate) rotate_at: Option<Size>,
    /// Which operations are recorded. Default: `all`.
    pub(crate) scope: Option<ScopeWord>,
    /// What happens when a record cannot be kept. Default: `refuse`.
    pub(crate) on_failure: Option<SinkFailureWord>,
}

/// Which operations are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScopeWord {
    /// Every one.
    All,
    /// Changes and commands.
    Changes,
}

impl From<ScopeWord> for AuditScope {
    fn from(word: ScopeWord) -> Self {
        match word {
            ScopeWord::All => Self::All,
            ScopeWord::Changes => Self::Changes,
        }
    }
}

/// What happens after a record could not be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SinkFailureWord {
    /// No operation begins that could not be recorded.
    Refuse,
    /// Operations go on; a record says how many others were lost.
    Continue,
}

impl From<SinkFailureWord> for OnSinkFailure {
    fn from(word: SinkFailureWord) -> Self {
        match word {
            SinkFailureWord::Refuse => Self::Refuse,
            SinkFailureWord::Continue => Self::Continue,
        }
    }
}

/// Contents that need not be fetched again.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CacheTable {
    /// Most bytes of contents that are kept.
    pub(crate) max_bytes: Size,
    /// The largest file that is kept. Default: 1 MiB.
    pub(crate) max_file_size: Option<Size>,
}

/// States to go back to.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckpointsTable {
    /// The directory that states are kept in. It is made, and hidden where it lies in a directory that is shown.
    #[schemars(with = "HostPath")]
    pub(crate) store: Spanned<HostPath>,
    /// Most operations that can be taken back. Default: 1000.
    pub(crate) max_undo: Option<u64>,
}

/// So many operations at once.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConcurrencyTable {
    /// Most operations that run at once.
    pub(crate) operations: NonZeroUsize,
    /// Most operations that wait; others are refused. Default: any number.
    pub(crate) queue: Option<usize>,
}

/// Changes that are kept apart.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OverlayTable {
    /// The directory that changes are kept in, for the next process to go on with. It is made, and hidden where it lies in a
    /// directory that is shown. Default: memory, so that they are gone with the process.
    #[schemars(with = "Option<HostPath>")]
    pub(crate) store: Option<Spanned<HostPath>>,
    /// Most bytes of changed files. Default: that of the overlay.
    pub(crate) budget: Option<Size>,
}

/// Rules about who may do what where: here, or in a file of their own.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyTable {
    /// A file of rules in TOML, with `default`, `hard_links`, `not_understood` and `rules`, in place of those here.
    #[schemars(with = "Option<HostPath>")]
    pub(crate) rules_file: Option<Spanned<HostPath>>,
    /// What becomes of what no rule covers. Default: `allow`. Commands always take a rule.
    pub(crate) default: Option<EffectWord>,
    /// What becomes of files that have several names. Default: `deny`, where anything is denied at all.
    pub(crate) hard_links: Option<HardLinksWord>,
    /// What becomes of command lines that rules with `commands` do not understand. Default: `ask`.
    pub(crate) not_understood: Option<EffectWord>,
    /// The rules, in order: the first that covers something decides about it.
    #[schemars(with = "Option<Vec<RuleTable>>")]
    pub(crate) rules: Option<Vec<Spanned<RuleTable>>>,
    /// How long an answer to an `ask` rule may take. Default: 5m.
    pub(crate) approval_timeout: Option<Time>,
}

/// Limits, at least one of them. They hold for the callers in one process: what is stored is counted when the process makes its
/// first change, so that processes one after the other keep to `max_bytes` and `max_files`, and several at once can pass them
/// together; `max_operations` and `per_actor` begin anew in each.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuotaTable {
    /// Most bytes of all files together. Default: no limit.
    pub(crate) max_bytes: Option<Size>,
    /// Most files. Default: no limit.
    pub(crate) max_files: Option<u64>,
    /// Most bytes of one file. Default: no limit.
    pub(crate) max_file_size: Option<Size>,
    /// Most operations in a window of time. Default: no limit.
    pub(crate) max_operations: Option<RateTable>,
    /// What each actor may use in one process. Default: no limits.
    pub(crate) per_actor: Option<LimitsTable>,
}

/// Limits of each actor.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitsTable {
    /// Most bytes that it adds. Default: no limit.
    pub(crate) max_bytes: Option<Size>,
    /// Most files that it adds. Default: no limit.
    pub(crate) max_files: Option<u64>,
    /// Most bytes of one file. Default: no limit.
    pub(crate) max_file_size: Option<Size>,
    /// Most operations in a window of time. Default: no limit.
    pub(crate) max_operations: Option<RateTable>,
}

impl QuotaTable {
    /// The limits of all callers in the process together.
    pub(crate) fn overall(&self) -> LimitsTable {
        LimitsTable {
            max_bytes: self.max_bytes,
            max_files: self.max_files,
            max_file_size: self.max_file_size,
            max_operations: self.max_operations.clone(),
        }
    }
}

impl LimitsTable {
    pub(crate) fn is_empty(&self) -> bool {
        let storage = [self.max_bytes.is_some(), self.max_files.is_some(), self.max_file_size.is_some()];
        !storage.contains(&true) && self.max_operations.is_none()
    }

    pub(crate) fn limits(&self) -> QuotaLimits {
        let mut limits = QuotaLimits::new();
        limits.bytes = self.max_bytes.map(|size| size.0);
        limits.files = self.max_files;
        limits.file_size = self.max_file_size.map(|size| size.0);
        limits.operations = self.max_operations.as_ref().map(|rate| (rate.count.get(), rate.window.0));
        limits
    }
}

/// So many operations in a window of time.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RateTable {
    /// How many.
    pub(crate) count: NonZeroU64,
    /// In how long a time.
    pub(crate) window: TimeLimit,
}

/// No settings.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadOnlyTable {}

/// Trying again.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetryTable {
    /// Most attempts, the first one included. Default: 4.
    pub(crate) attempts: Option<NonZeroU32>,
    /// The bound of the first wait, from which the others double. Default: 50ms.
    pub(crate) min_delay: Option<Time>,
    /// The bound of every wait. Default: 5s.
    pub(crate) max_delay: Option<Time>,
}

/// One directory as all there is.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScopedTable {
    /// The directory that is shown. It need not exist.
    #[schemars(with = "String")]
    pub(crate) directory: VfsPath,
}

/// An end to every operation.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TimeoutTable {
    /// How long each may take.
    pub(crate) time: TimeLimit,
    /// How long single operations may take instead, by their names.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, TimeLimit>")]
    pub(crate) operations: BTreeMap<Operation, TimeLimit>,
}

/// No settings.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TraceTable {}
