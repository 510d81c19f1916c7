//! Opening of the backends of mounts.

use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use vfs_core::path::PathMapping;
use vfs_core::{Backend, VfsPath};
use vfs_local::{Confinement, LocalConfig};
use vfs_memory::{MemoryBackend, MemoryConfig};

use super::layers::combined_scope;
use super::namespace_builder::NamespaceBuilder;
use crate::error::{ConfigError, ConfigErrorKind, describe_open_failure};
use crate::host_paths;
use crate::layer_handle::LayerScope;
use crate::tables::{BackendTable, LayerTable, LocalTable, MemoryTable};

impl NamespaceBuilder<'_> {
    /// Opens the backend at `path` with its layers.
    pub(super) async fn open_mount(
        &mut self,
        path: &VfsPath,
        backend: &Spanned<BackendTable>,
        layers: &[Spanned<LayerTable>],
    ) -> Result<Arc<dyn Backend>, ConfigError> {
        let opened: Arc<dyn Backend> = match backend.get_ref() {
            BackendTable::Local(local) => self.open_local(path, local, layers)?,
            BackendTable::Memory(memory) => Arc::new(MemoryBackend::with_config(memory_config(memory))),
            BackendTable::Store(store) => self.connections.open_backend(&self.spec.source, store, &self.base).await?,
        };
        self.add_layers(opened, layers, LayerScope::Mount, path).await
    }

    fn open_local(
        &mut self,
        mount_path: &VfsPath,
        table: &LocalTable,
        layers: &[Spanned<LayerTable>],
    ) -> Result<Arc<dyn Backend>, ConfigError> {
        let source = &self.spec.source;
        let span = table.root.span();
        let path = self.base.join(table.root.get_ref());
        let config = local_config(table, &path);
        let is_host = config.confinement == Confinement::None;
        let opened = config.open().and_then(|opened| Ok((opened, host_paths::real_directory(&path)?)));
        let (opened, real) = opened.map_err(|error| {
            let message = describe_open_failure("root", &path, &error);
            let mut config_error = source.error(ConfigErrorKind::Open, span.clone(), message);
            config_error.cause = Some(error);
            config_error
        })?;
        if self.storage.contains(&real) {
            let message = "the directory is in the store of a layer; choose another directory, or move the store";
            return Err(source.error(ConfigErrorKind::Conflict, span, message));
        }
        let directory = if is_host { Path::new("/") } else { &real };
        let mapping = PathMapping::new(mount_path.clone(), combined_scope(layers)?);
        if let Some(weakness) = vfs_local::weakness_between_processes().filter(|_| self.directories.is_empty()) {
            self.directories.warnings.push(source.error(ConfigErrorKind::Open, span.clone(), weakness));
        }
        self.directories.add(source, span, mount_path, directory.join(mapping.inner().relative()));
        self.protection.protect_mount(Arc::new(opened), directory, &mapping, &mut self.handles.policies)
    }
}

fn local_config(table: &LocalTable, path: &Path) -> LocalConfig {
    let mut config = LocalConfig::new(path);
    let LocalTable {
        root: _,
        confinement,
        durability,
        hard_links,
        mounts,
        resolution,
        max_file_size,
        max_streamed_size,
        lock_timeout,
    } = table;
    config.confinement = confinement.map_or(config.confinement, Into::into);
    config.durability = durability.map_or(config.durability, Into::into);
    config.hard_links = hard_links.map_or(config.hard_links, Into::into);
    config.mounts = mounts.map_or(config.mounts, Into::into);
    config.resolution = resolution.map_or(config.resolution, Into::into);
    config.lock_timeout = lock_timeout.map_or(config.lock_timeout, |time| time.0);
    if let Some(size) = max_file_size {
        config = config.max_file_size(size.0);
    }
    config.max_streamed_size = max_streamed_size.map_or(config.max_streamed_size, |size| size.0);
    config
}

fn memory_config(table: &MemoryTable) -> MemoryConfig {
    let mut config = MemoryConfig::new();
    config.max_file_size = table.max_file_size.map_or(config.max_file_size, |size| size.0);
    config.max_total_size = table.max_total_size.map(|size| size.0);
    config
}
