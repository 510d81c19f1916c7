//! Bounds of a scan: entries, depth and the total length of paths.

use vfs_core::{Error, ErrorKind, OpContext, Result};

use super::scan_rules::ScanRules;

/// Maximum depth of a directory that is listed. Paths at this depth are far longer than a system call accepts.
const MAX_DEPTH: usize = 4_096;

/// Maximum total length of the paths that are found, in bytes. A path can be as long as the tree is deep.
const MAX_PATH_BYTES: usize = 64 << 20;

/// Number of entries after which cancellation is checked.
pub(super) const CHECK_INTERVAL: u64 = 4_096;

/// Remaining bounds of a scan of all mounts, and the context of its call.
#[derive(Debug)]
pub(crate) struct ScanBudget<'a> {
    pub(super) entries: u64,
    pub(super) path_bytes: usize,
    pub(super) depth: usize,
    pub(super) cx: &'a OpContext,
}

impl<'a> ScanBudget<'a> {
    pub(crate) fn new(rules: &ScanRules, cx: &'a OpContext) -> Self {
        Self { entries: rules.max_entries, path_bytes: MAX_PATH_BYTES, depth: MAX_DEPTH, cx }
    }

    pub(super) fn take_entry(&mut self) -> Result<()> {
        if self.entries.is_multiple_of(CHECK_INTERVAL) {
            self.cx.check()?;
        }
        self.entries = self.entries.checked_sub(1).ok_or_else(|| {
            refused(
                "there are more entries than are searched for protected names and sockets before a command starts; mount a \
                 smaller directory, remove unneeded files from outside of the sandbox, or raise max_scanned_entries",
            )
        })?;
        Ok(())
    }

    pub(super) fn take_path(&mut self, bytes: usize) -> Result<()> {
        self.path_bytes = self.path_bytes.checked_sub(bytes).ok_or_else(|| {
            refused(
                "the paths of protected names and sockets have more bytes in total than can be covered before a command \
                 starts; remove some from outside of the sandbox, where they are not covered",
            )
        })?;
        Ok(())
    }
}

pub(super) fn refused(message: &'static str) -> Error {
    Error::new(ErrorKind::QuotaExceeded, message)
}
