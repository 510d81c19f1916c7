//! Observer of recoveries, and the notice about one rename, which is sent once.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use vfs_core::VfsPath;

/// A receiver of notices about a recovery.
pub trait RecoveryObserver: fmt::Debug + Send + Sync {
    /// Called at most once for each rename, when its recovery begins to copy files or has taken half a second. It may be called on
    /// another thread, and must not block.
    fn on_recovery(&self, from: &VfsPath, to: &VfsPath);
}

/// A notice that is sent before files are copied, or when the recovery has taken some time.
#[derive(Debug)]
pub(super) struct RecoveryNotifier {
    observer: Arc<dyn RecoveryObserver>,
    from: VfsPath,
    to: VfsPath,
    is_sent: AtomicBool,
}

impl RecoveryNotifier {
    pub(super) fn new(observer: Arc<dyn RecoveryObserver>, from: &VfsPath, to: &VfsPath) -> Self {
        Self { observer, from: from.clone(), to: to.clone(), is_sent: AtomicBool::new(false) }
    }

    pub(super) fn send(&self) {
        if !self.is_sent.swap(true, Ordering::Relaxed) {
            self.observer.on_recovery(&self.from, &self.to);
        }
    }
}
