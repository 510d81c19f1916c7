//! The parsed configuration of a namespace and the callbacks that its layers use.

use std::sync::Arc;

use vfs_composite::RecoveryObserver;
use vfs_policy::Approver;

use crate::source::Source;
use crate::tables::FileTable;

/// Everything that is needed to build a namespace, apart from the base directory.
#[derive(Debug, Clone)]
pub(crate) struct NamespaceSpec {
    pub(crate) source: Source,
    pub(crate) tables: FileTable,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) recovery_observer: Option<Arc<dyn RecoveryObserver>>,
}
