//! The state of a namespace under construction.

use std::path::PathBuf;

use vfs_layers::QuotaUsageReader;
use vfs_policy::{Policy, RuleSet};
use vfs_versions::{CheckpointedBackend, OverlayBackend};

use super::host_storage_paths::HostStoragePaths;
use super::mounted_host_directories::MountedHostDirectories;
use super::protected_host_files::ProtectedHostFiles;
use super::store_connections::StoreConnections;
use crate::layer_handle::{AuditLog, LayerHandle};
use crate::namespace_spec::NamespaceSpec;

/// Opens backends and layers one after the other, and collects the handles to the layers.
pub(super) struct NamespaceBuilder<'a> {
    pub(super) spec: &'a NamespaceSpec,
    /// The directory that relative host paths start from.
    pub(super) base: PathBuf,
    pub(super) storage: HostStoragePaths,
    pub(super) protection: ProtectedHostFiles,
    pub(super) handles: LayerHandles,
    pub(super) connections: StoreConnections,
    pub(super) directories: MountedHostDirectories,
}

/// Handles to the layers that are open, in the order in which they were opened.
#[derive(Default)]
pub(super) struct LayerHandles {
    pub(super) overlays: Vec<LayerHandle<OverlayBackend>>,
    pub(super) policies: Vec<LayerHandle<RuleSet>>,
    /// The configured policies of the whole namespace, with their approver.
    pub(super) command_policies: Vec<Policy>,
    pub(super) audits: Vec<LayerHandle<AuditLog>>,
    pub(super) checkpoints: Vec<LayerHandle<CheckpointedBackend>>,
    pub(super) quotas: Vec<LayerHandle<QuotaUsageReader>>,
}

impl<'a> NamespaceBuilder<'a> {
    pub(super) fn new(
        spec: &'a NamespaceSpec,
        base: PathBuf,
        storage: HostStoragePaths,
        protection: ProtectedHostFiles,
    ) -> Self {
        Self {
            spec,
            base,
            storage,
            protection,
            handles: LayerHandles::default(),
            connections: StoreConnections::default(),
            directories: MountedHostDirectories::default(),
        }
    }
}
