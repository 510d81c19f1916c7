//! Identities of mounts, which bind records of the move journal to the mounts they were written for.

use std::path::{Path, PathBuf};

use toml::Spanned;
use vfs_composite::MountIdentity;
use vfs_core::VfsPath;

use super::layers::combined_scope;
use super::namespace_builder::NamespaceBuilder;
use super::store_url::{resolve_store_url, store_span};
use crate::error::{ConfigError, ConfigErrorKind};
use crate::redaction::redact_urls;
use crate::tables::{BackendTable, LayerTable, StoreBackendTable};

/// The URL parameters that identify a store and are not secret.
const LOCATION_PARAMETERS: [&str; 3] = ["endpoint", "prefix", "schema"];

impl NamespaceBuilder<'_> {
    /// Returns the identity of the mount at `path`.
    pub(super) fn mount_identity(
        &self,
        path: &VfsPath,
        backend: &BackendTable,
        layers: &[Spanned<LayerTable>],
    ) -> Result<MountIdentity, ConfigError> {
        let mut identity = match backend {
            BackendTable::Local(_) => {
                // Collecting the components removes a trailing slash.
                let root: PathBuf =
                    self.directories.directory_at(path).into_iter().flat_map(Path::components).collect();
                MountIdentity::Local { root: root.to_string_lossy().into_owned() }
            }
            BackendTable::Memory(_) => MountIdentity::Memory,
            BackendTable::Store(table) => MountIdentity::Store {
                url: self.store_location(table)?,
                namespace: table.namespace.as_ref().map(|namespace| namespace.get_ref().clone()).unwrap_or_default(),
                directory: combined_scope(layers)?,
            },
        };
        for layer in layers {
            if let LayerTable::Overlay(overlay) = layer.get_ref() {
                let store = overlay.store.as_ref().map(|setting| self.storage.location(setting)).transpose()?;
                let store = store.map(|store| store.real.to_string_lossy().into_owned());
                identity = MountIdentity::Overlay { store, base: Box::new(identity) };
            }
        }
        Ok(identity)
    }

    /// Returns the URL of the store of `table` without its secrets.
    fn store_location(&self, table: &StoreBackendTable) -> Result<String, ConfigError> {
        let source = &self.spec.source;
        let url = resolve_store_url(source, table, &self.base)?;
        let (_, mut parameters) = url.split_parameters().map_err(|error| {
            let message = "the URL of the store is invalid";
            source.error(ConfigErrorKind::Invalid, store_span(table), message).with_cause(error)
        })?;
        let mut location = url.to_string();
        for name in LOCATION_PARAMETERS {
            if let Some(value) = parameters.take(name) {
                location.push_str(&format!(" {name}={}", redact_urls(&value)));
            }
        }
        Ok(location)
    }
}
