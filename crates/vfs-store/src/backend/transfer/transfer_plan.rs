//! Plan of a rename or copy.

use vfs_core::{Version, VfsPath};

use crate::store::StoredMeta;

/// Files of a rename or copy with their target paths.
#[derive(Debug, Clone)]
pub(crate) struct TransferPlan {
    pub(crate) from: VfsPath,
    pub(crate) to: VfsPath,
    pub(crate) files: Vec<FileTransfer>,
    /// Metadata of the file at the target, which is replaced.
    pub(crate) replaced: Option<StoredMeta>,
}

/// One file of a rename or copy.
#[derive(Debug, Clone)]
pub(crate) struct FileTransfer {
    pub(crate) from: VfsPath,
    pub(crate) to: VfsPath,
    /// Size of the source in bytes when the plan was made.
    pub(crate) size: u64,
    /// Version of the source when the plan was made. A copy with an operation id requires it; a transfer without batches copies the
    /// current version.
    pub(crate) version: Version,
}

/// Whether the source of a transfer is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransferKind {
    /// A rename removes it.
    Rename,
    /// A copy keeps it.
    Copy,
}
