//! Handles to configured layers, with their positions in the namespace.

use std::path::PathBuf;

use vfs_core::VfsPath;
use vfs_core::path::PathMapping;
use vfs_layers::{Audit, BackendSink};
use vfs_versions::CheckpointedBackend;

/// The part of the namespace that a layer wraps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LayerScope {
    /// The layer wraps the whole namespace.
    Namespace,
    /// The layer wraps the files of one mount, or of `/`.
    Mount,
}

/// A configured layer and its position in the namespace.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LayerHandle<T> {
    /// The layer, or the part of it that callers can use.
    pub layer: T,
    /// Whether the layer wraps the whole namespace or one mount.
    pub scope: LayerScope,
    /// Maps paths of the layer to paths of [`ConfiguredBackend::backend`](crate::ConfiguredBackend::backend), and back.
    pub mapping: PathMapping,
    /// The audit logs further out, innermost first, each with the path under which it records operations on the layer.
    pub(crate) audits: Vec<(Audit, VfsPath)>,
    /// The checkpoint layers further out, innermost first, each with its mapping.
    pub(crate) checkpoints: Vec<(CheckpointedBackend, PathMapping)>,
    /// Whether this is a built-in policy that hides or protects files of layers. It has no effect on other files and on commands.
    pub(crate) is_protection: bool,
}

impl<T> LayerHandle<T> {
    pub(crate) fn new(layer: T, scope: LayerScope, mapping: PathMapping) -> Self {
        Self { layer, scope, mapping, audits: Vec::new(), checkpoints: Vec::new(), is_protection: false }
    }

    /// Keeps operations undoable in `checkpoints` across commits of this layer, if `checkpoints` at `position` wraps the layer.
    pub(crate) fn keep_undoable_in(&mut self, checkpoints: &CheckpointedBackend, position: &LayerHandle<()>) {
        if position.scope == LayerScope::Namespace || self.is_on_mount_of(position) {
            self.checkpoints.push((checkpoints.clone(), position.mapping.clone()));
        }
    }

    /// Records operations on this layer in `audit`, if `audit` at `position` wraps the layer.
    pub(crate) fn record_in(&mut self, audit: &Audit, position: &LayerHandle<()>) {
        if position.scope == LayerScope::Namespace {
            self.audits.push((audit.clone(), self.mapping.outer().clone()));
        } else if self.is_on_mount_of(position) {
            self.audits.push((audit.clone(), VfsPath::root()));
        }
    }

    fn is_on_mount_of(&self, position: &LayerHandle<()>) -> bool {
        self.scope == LayerScope::Mount && self.mapping.outer() == position.mapping.outer()
    }
}

impl LayerHandle<()> {
    /// Returns the path of the layer for the namespace path `path`, or `None` if the layer does not wrap that path.
    pub(crate) fn to_inner(&self, path: &VfsPath) -> Option<VfsPath> {
        self.mapping.to_inner(path).ok()
    }

    /// Returns a handle to `layer` at this position.
    pub(crate) fn with_layer<T>(self, layer: T) -> LayerHandle<T> {
        LayerHandle::new(layer, self.scope, self.mapping)
    }
}

/// An audit layer and the file of its log.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AuditLog {
    /// The audit layer.
    pub audit: Audit,
    /// The sink that appends records to the file and reads them.
    pub sink: BackendSink,
    /// The path of the file on the host.
    pub file: PathBuf,
}
