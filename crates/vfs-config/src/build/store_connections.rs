//! Connections to durable stores, shared by all mounts with the same URL.

use std::path::Path;
use std::sync::Arc;

use vfs_core::Backend;
use vfs_store::{NamespaceSource, Store, StoreBackend, StoreConfig, StoreUrl, open_store};

use super::store_url::{resolve_store_url, store_span};
use crate::config_text::ConfigText;
use crate::error::{ConfigError, ConfigErrorKind};
use crate::tables::StoreBackendTable;

/// The open stores, one for each URL.
#[derive(Default)]
pub(super) struct StoreConnections {
    stores: Vec<(StoreUrl, Arc<dyn Store>)>,
}

impl StoreConnections {
    /// Opens the store of `table`, unless it is open already, and returns a backend over it.
    pub(super) async fn open_backend(
        &mut self,
        source: &ConfigText,
        table: &StoreBackendTable,
        base: &Path,
    ) -> Result<Arc<dyn Backend>, ConfigError> {
        let failed =
            |message: &str, error| source.error(ConfigErrorKind::Open, store_span(table), message).with_cause(error);
        let url = resolve_store_url(source, table, base)?;
        let mut settings = StoreConfig::new();
        if let Some(namespace) = &table.namespace {
            let template = NamespaceSource::template(namespace.get_ref());
            settings = settings.namespace(template.map_err(|error| failed("the namespace is invalid", error))?);
        }
        if let Some(size) = table.max_file_size {
            settings = settings.max_file_size(size.0);
        }
        if let Some(size) = table.max_streamed_size {
            settings = settings.max_streamed_size(size.0);
        }
        let existing = self.stores.iter().find(|(open, _)| *open == url).map(|(_, store)| Arc::clone(store));
        let store = match existing {
            Some(store) => store,
            None => {
                let opened = open_store(&url).await;
                let store = opened.map_err(|error| failed(&format!("the store '{url}' cannot be opened"), error))?;
                self.stores.push((url, Arc::clone(&store)));
                store
            }
        };
        Ok(Arc::new(StoreBackend::with_config(store, settings)))
    }
}
