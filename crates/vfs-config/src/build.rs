//! Construction of a namespace from its parsed configuration.

mod backends;
mod host_storage_paths;
mod layers;
mod mount_identity;
mod mounted_host_directories;
mod move_journal;
mod namespace_builder;
mod protected_host_files;
mod store_connections;
mod store_url;

use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vfs_composite::{CompositeBackend, RecoveryReport};
use vfs_core::VfsPath;
use vfs_layers::BackendSink;

use self::host_storage_paths::HostStoragePaths;
use self::layers::layer_position;
use self::move_journal::OpenedJournal;
use self::namespace_builder::{LayerHandles, NamespaceBuilder};
use self::protected_host_files::ProtectedHostFiles;
use crate::configured_backend::ConfiguredBackend;
use crate::error::{ConfigError, ConfigErrorKind};
use crate::host_paths;
use crate::layer_handle::{LayerHandle, LayerScope};
use crate::namespace_spec::NamespaceSpec;
use crate::tables::LayerTable;

/// Opens the namespace of `spec`, with relative host paths below `base`.
pub(crate) async fn build_namespace(spec: &NamespaceSpec, base: &Path) -> Result<ConfiguredBackend, ConfigError> {
    let base = resolve_base(base)?;
    let mut storage = HostStoragePaths::create(spec, &base).await?;
    let journal = OpenedJournal::open(spec, &base, &mut storage).await?;
    let protection = ProtectedHostFiles::new(spec, &base, &storage).await?;
    let mut builder = NamespaceBuilder::new(spec, base, storage, protection);
    let composite = open_mounts(&mut builder, &journal).await?;
    let tables = &spec.tables;
    let is_read_only = tables.layers.iter().any(|layer| matches!(layer.get_ref(), LayerTable::ReadOnly(_)));
    let (recovery, recovery_warnings) = if is_read_only {
        (RecoveryReport::default(), journal.leave_records().await)
    } else {
        journal.recover(&composite, spec.recovery_observer.clone()).await
    };
    let mounts = Arc::new(composite.clone());
    let backend = builder.add_layers(mounts, &tables.layers, LayerScope::Namespace, &VfsPath::root()).await?;
    let backend = builder.protection.protect_namespace(backend, &mut builder.handles.policies)?;
    let LayerHandles { overlays, policies, command_policies, audits, checkpoints, quotas } = builder.handles;
    let mut warnings = builder.directories.warnings;
    warnings.extend(recovery_warnings);
    warnings.extend(self::move_journal::audit_recovery(&recovery, &audits).await);
    Ok(ConfiguredBackend {
        backend,
        composite,
        overlays,
        policies,
        command_policies,
        audits,
        checkpoints,
        quotas,
        recovery,
        warnings,
    })
}

/// Opens the default backend and all mounts, and combines them with the journal of moves.
async fn open_mounts(
    builder: &mut NamespaceBuilder<'_>,
    journal: &OpenedJournal,
) -> Result<CompositeBackend, ConfigError> {
    let (spec, root) = (builder.spec, VfsPath::root());
    let default = &spec.tables.default;
    let backend = builder.open_mount(&root, &default.backend, &default.layers).await?;
    let identity = builder.mount_identity(&root, default.backend.get_ref(), &default.layers)?;
    let composite = CompositeBackend::new(backend).with_identity(&root, identity);
    let mut composite = composite.and_then(|composite| journal.attach(composite)).map_err(|error| {
        ConfigError::new(ConfigErrorKind::Open, "the journal of moves cannot be used").with_cause(error)
    })?;
    for mount in &spec.tables.mounts {
        let path = mount.path.get_ref();
        let backend = builder.open_mount(path, &mount.backend, &mount.layers).await?;
        let identity = builder.mount_identity(path, mount.backend.get_ref(), &mount.layers)?;
        let mounted = composite.mount(path.clone(), backend).and_then(|()| composite.with_identity(path, identity));
        composite = mounted.map_err(|error| {
            let message = format!("the backend cannot be mounted at '{path}'");
            spec.source.error(ConfigErrorKind::Conflict, mount.path.span(), message).with_cause(error)
        })?;
    }
    Ok(composite)
}

/// Returns the audit logs of `spec` for reading, and opens nothing else.
pub(crate) async fn open_audit_logs(
    spec: &NamespaceSpec,
    base: &Path,
) -> Result<Vec<LayerHandle<BackendSink>>, ConfigError> {
    let storage = HostStoragePaths::create(spec, &resolve_base(base)?).await?;
    let (tables, root) = (&spec.tables, VfsPath::root());
    let mounts = tables.mounts.iter().map(|mount| (mount.path.get_ref(), LayerScope::Mount, &mount.layers));
    let stacks = iter::once((&root, LayerScope::Mount, &tables.default.layers)).chain(mounts);
    let mut logs = Vec::new();
    for (path, scope, layers) in stacks.chain([(&root, LayerScope::Namespace, &tables.layers)]) {
        for (index, layer) in layers.iter().enumerate() {
            if let LayerTable::Audit(table) = layer.get_ref() {
                logs.push(layer_position(scope, path, &layers[index + 1..])?.with_layer(storage.audit_sink(table)?));
            }
        }
    }
    Ok(logs)
}

fn resolve_base(base: &Path) -> Result<PathBuf, ConfigError> {
    host_paths::real_directory(base).map_err(|error| ConfigError::open_directory("base directory", base, error))
}
