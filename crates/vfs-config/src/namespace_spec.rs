//! The parsed configuration of a namespace and the callbacks that its layers use.

use std::sync::Arc;

use vfs_composite::RecoveryObserver;
use vfs_policy::Approver;

use crate::config_text::ConfigText;
use crate::tables::ConfigFileTable;

/// Everything that is needed to build a namespace, apart from the base directory.
#[derive(Debug, Clone)]
pub(crate) struct NamespaceSpec {
    pub(crate) source: ConfigText,
    pub(crate) tables: ConfigFileTable,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) recovery_observer: Option<Arc<dyn RecoveryObserver>>,
}
