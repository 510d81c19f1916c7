//! Identities of mounts, to which records of moves are bound.

use std::path::{Path, PathBuf};

use toml::Spanned;
use vfs_composite::MountIdentity;
use vfs_core::VfsPath;

use super::Builder;
use super::durable::{span_of, url_of};
use super::layers::scope;
use crate::error::{ConfigError, ConfigErrorKind};
use crate::mask::masked;
use crate::tables::{BackendTable, DurableTable, LayerTable};

/// The parameters of a URL that say which store it is, and are no secrets.
const LOCATION_PARAMETERS: [&str; 3] = ["endpoint", "prefix", "schema"];

impl Builder<'_> {
    /// Returns the identity of what was placed at `at`.
    pub(super) fn identity(
        &self,
        at: &VfsPath,
        backend: &BackendTable,
        layers: &[Spanned<LayerTable>],
    ) -> Result<MountIdentity, ConfigError> {
        let mut identity = match backend {
            BackendTable::Local(_) => {
                // Components, so that no path ends in a slash.
                let root: PathBuf = self.shared.directory(at).into_iter().flat_map(Path::components).collect();
                MountIdentity::Local { root: root.to_string_lossy().into_owned() }
            }
            BackendTable::Memory(_) => MountIdentity::Memory,
            BackendTable::Store(table) => MountIdentity::Store {
                url: self.location(table)?,
                namespace: table.namespace.as_ref().map(|namespace| namespace.get_ref().clone()).unwrap_or_default(),
                directory: scope(layers)?,
            },
        };
        for layer in layers {
            if let LayerTable::Overlay(overlay) = layer.get_ref() {
                let store = overlay.store.as_ref().map(|named| self.stores.of(named)).transpose()?;
                let store = store.map(|store| store.real.to_string_lossy().into_owned());
                identity = MountIdentity::Overlay { store, base: Box::new(identity) };
            }
        }
        Ok(identity)
    }

    /// Returns the URL of the store of `table` without its secrets.
    fn location(&self, table: &DurableTable) -> Result<String, ConfigError> {
        let url = url_of(self.config, table, &self.base)?;
        let (_, mut parameters) = url.split_parameters().map_err(|error| {
            let message = "the store cannot be named";
            self.config.source.error(ConfigErrorKind::Invalid, span_of(table), message).because(error)
        })?;
        let mut location = url.to_string();
        for name in LOCATION_PARAMETERS {
            if let Some(value) = parameters.take(name) {
                location.push_str(&format!(" {name}={}", masked(&value)));
            }
        }
        Ok(location)
    }
}
