//! Tables of layers.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;
use vfs_core::{Operation, VfsPath};
use vfs_layers::{AuditScope, OnSinkFailure, QuotaLimits};

use super::rules::{EffectSetting, HardLinksSetting, RuleTable};
use crate::setting_values::{ByteSize, HostPath, HumanDuration, NonZeroDuration};

/// A layer around files.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(tag = "type")]
pub(crate) enum LayerTable {
    /// Appends a record of every operation to a file, each with the hash of the one before. Use one log in one process at a
    /// time: records that two processes append at once make `vfs log --verify` fail.
    Audit(AuditTable),
    /// Caches the contents of files that were read.
    Cache(CacheTable),
    /// Takes snapshots of the files, and undoes changes.
    Checkpoints(CheckpointsTable),
    /// Limits the number of concurrent operations.
    ConcurrencyLimit(ConcurrencyTable),
    /// Stores changes separately from the files until they are committed.
    Overlay(OverlayTable),
    /// Allows or denies every operation by rules.
    Policy(PolicyTable),
    /// Limits stored bytes and files, and the rate of operations, of the callers in one process.
    Quota(QuotaTable),
    /// Refuses every change. Listed before an overlay, it refuses every change except a commit.
    ReadOnly(ReadOnlyTable),
    /// Retries operations after transient failures.
    Retry(RetryTable),
    /// Shows one directory as the root. Only possible around a mount or the default backend.
    Scoped(ScopedTable),
    /// Limits the duration of every operation.
    Timeout(TimeoutTable),
    /// Puts a `tracing` span around every operation.
    Trace(TraceTable),
}

/// The host path in which a layer stores its data.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LayerStoragePath<'a> {
    /// A directory that the layer uses alone.
    Directory(&'a Spanned<HostPath>),
    /// A single file.
    File(&'a Spanned<HostPath>),
}

impl LayerTable {
    /// Returns the host path in which the layer stores its data, if it has one.
    pub(crate) fn storage(&self) -> Option<LayerStoragePath<'_>> {
        match self {
            Self::Audit(audit) => Some(LayerStoragePath::File(&audit.file)),
            Self::Checkpoints(checkpoints) => Some(LayerStoragePath::Directory(&checkpoints.store)),
            Self::Overlay(overlay) => overlay.store.as_ref().map(LayerStoragePath::Directory),
            _ => None,
        }
    }

    /// Returns the rules file of a policy, if it has one.
    pub(crate) fn rules_file(&self) -> Option<&Spanned<HostPath>> {
        match self {
            Self::Policy(policy) => policy.rules_file.as_ref(),
            _ => None,
        }
    }
}

/// An audit log of operations.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditTable {
    /// The file that records are appended to, as lines of JSON. If it is in a mounted directory, it is hidden, and so is every
    /// file whose name starts with its name and a dot: the log is rotated into such files.
    #[schemars(with = "HostPath")]
    pub(crate) file: Spanned<HostPath>,
    /// The size at which the log is rotated: `audit.jsonl` is renamed to `audit.jsonl.120` if its last record has the number 120.
    /// Rotated files are never removed. Default: 4 MiB.
    pub(crate) rotate_at: Option<ByteSize>,
    /// Which operations are recorded. Default: `all`.
    pub(crate) scope: Option<AuditScopeSetting>,
    /// The behaviour if a record cannot be written. Default: `refuse`.
    pub(crate) on_failure: Option<SinkFailureSetting>,
}

/// Which operations are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AuditScopeSetting {
    /// All operations.
    All,
    /// Changes and commands only.
    Changes,
}

impl From<AuditScopeSetting> for AuditScope {
    fn from(setting: AuditScopeSetting) -> Self {
        match setting {
            AuditScopeSetting::All => Self::All,
            AuditScopeSetting::Changes => Self::Changes,
        }
    }
}

/// The behaviour if a record cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SinkFailureSetting {
    /// Operations that cannot be recorded are refused.
    Refuse,
    /// Operations continue; a later record has the number of lost ones.
    Continue,
}

impl From<SinkFailureSetting> for OnSinkFailure {
    fn from(setting: SinkFailureSetting) -> Self {
        match setting {
            SinkFailureSetting::Refuse => Self::Refuse,
            SinkFailureSetting::Continue => Self::Continue,
        }
    }
}

/// A cache of file contents.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CacheTable {
    /// Maximum total size of the cached contents.
    pub(crate) max_bytes: ByteSize,
    /// Maximum size of a cached file. Default: 1 MiB.
    pub(crate) max_file_size: Option<ByteSize>,
}

/// Snapshots and an undo log.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckpointsTable {
    /// The directory that snapshots are stored in. It is created if missing, and hidden if it is in a mounted directory.
    #[schemars(with = "HostPath")]
    pub(crate) store: Spanned<HostPath>,
    /// Maximum number of operations that can be undone. Default: 1000.
    pub(crate) max_undo: Option<u64>,
}

/// A limit on concurrent operations.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConcurrencyTable {
    /// Maximum number of operations that run at once.
    pub(crate) operations: NonZeroUsize,
    /// Maximum number of operations that wait; others are refused. Default: no limit.
    pub(crate) queue: Option<usize>,
}

/// A copy-on-write overlay.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OverlayTable {
    /// The directory that changes are stored in, so that the next process has them. It is created if missing, and hidden if it is
    /// in a mounted directory. Default: changes are in memory, and lost when the process exits.
    #[schemars(with = "Option<HostPath>")]
    pub(crate) store: Option<Spanned<HostPath>>,
    /// Maximum total size of changed files. Default: 256 MiB.
    pub(crate) budget: Option<ByteSize>,
}

/// Access rules, inline or in a file of their own.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyTable {
    /// A TOML file with `default`, `hard_links`, `not_understood` and `rules`, in place of these keys here.
    #[schemars(with = "Option<HostPath>")]
    pub(crate) rules_file: Option<Spanned<HostPath>>,
    /// The effect on operations that no rule covers. Default: `allow`. Commands always need a rule.
    pub(crate) default: Option<EffectSetting>,
    /// The effect on files with several hard links. Default: `deny`, if any rule denies.
    pub(crate) hard_links: Option<HardLinksSetting>,
    /// The effect on command lines that rules with `commands` do not understand. Default: `ask`.
    pub(crate) not_understood: Option<EffectSetting>,
    /// The rules; the first one that covers an operation decides about it.
    #[schemars(with = "Option<Vec<RuleTable>>")]
    pub(crate) rules: Option<Vec<Spanned<RuleTable>>>,
    /// Maximum time to wait for an approval after an `ask` rule. Default: 5m.
    pub(crate) approval_timeout: Option<HumanDuration>,
}

/// At least one limit. Limits apply to the callers in one process. A process counts the stored files at its first change, so
/// successive processes keep to `max_bytes` and `max_files`, but concurrent ones can exceed them together. `max_operations` and
/// `per_actor` start from zero in each process.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuotaTable {
    /// Maximum total size of all files. Default: no limit.
    pub(crate) max_bytes: Option<ByteSize>,
    /// Maximum number of files. Default: no limit.
    pub(crate) max_files: Option<u64>,
    /// Maximum size of one file. Default: no limit.
    pub(crate) max_file_size: Option<ByteSize>,
    /// Maximum rate of operations. Default: no limit.
    pub(crate) max_operations: Option<OperationRateTable>,
    /// Limits of each actor in one process. Default: no limits.
    pub(crate) per_actor: Option<QuotaLimitsTable>,
}

/// Limits of each actor.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuotaLimitsTable {
    /// Maximum number of bytes that the actor adds. Default: no limit.
    pub(crate) max_bytes: Option<ByteSize>,
    /// Maximum number of files that the actor adds. Default: no limit.
    pub(crate) max_files: Option<u64>,
    /// Maximum size of one file. Default: no limit.
    pub(crate) max_file_size: Option<ByteSize>,
    /// Maximum rate of operations. Default: no limit.
    pub(crate) max_operations: Option<OperationRateTable>,
}

impl QuotaTable {
    /// Returns the limits of all callers in the process together.
    pub(crate) fn overall(&self) -> QuotaLimitsTable {
        QuotaLimitsTable {
            max_bytes: self.max_bytes,
            max_files: self.max_files,
            max_file_size: self.max_file_size,
            max_operations: self.max_operations.clone(),
        }
    }
}

impl QuotaLimitsTable {
    pub(crate) fn is_empty(&self) -> bool {
        self.max_bytes.is_none()
            && self.max_files.is_none()
            && self.max_file_size.is_none()
            && self.max_operations.is_none()
    }

    pub(crate) fn to_limits(&self) -> QuotaLimits {
        let mut limits = QuotaLimits::new();
        limits.bytes = self.max_bytes.map(|size| size.0);
        limits.files = self.max_files;
        limits.file_size = self.max_file_size.map(|size| size.0);
        limits.operations = self.max_operations.as_ref().map(|rate| (rate.count.get(), rate.window.0));
        limits
    }
}

/// A rate of operations.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OperationRateTable {
    /// The number of operations in each window.
    pub(crate) count: NonZeroU64,
    /// The length of a window.
    pub(crate) window: NonZeroDuration,
}

/// A read-only layer, without settings.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadOnlyTable {}

/// Retries with exponential backoff.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetryTable {
    /// Maximum number of attempts, the first one included. Default: 4.
    pub(crate) attempts: Option<NonZeroU32>,
    /// Maximum delay before the first retry; it doubles for each further one. Default: 50ms.
    pub(crate) min_delay: Option<HumanDuration>,
    /// Maximum delay before every retry. Default: 5s.
    pub(crate) max_delay: Option<HumanDuration>,
}

/// A directory that is shown as the root.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScopedTable {
    /// The directory. It need not exist.
    #[schemars(with = "String")]
    pub(crate) directory: VfsPath,
}

/// A limit on the duration of operations.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TimeoutTable {
    /// Maximum duration of an operation.
    pub(crate) time: NonZeroDuration,
    /// Maximum duration of single operations, by name, in place of `time`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, NonZeroDuration>")]
    pub(crate) operations: BTreeMap<Operation, NonZeroDuration>,
}

/// A tracing layer, without settings.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TraceTable {}
