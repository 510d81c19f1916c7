//! Durable stores.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use vfs_core::Backend;
use vfs_store::{NamespaceSource, Store, StoreBackend, StoreConfig, StoreUrl, open_store};

use super::Builder;
use crate::config::Config;
use crate::error::{ConfigError, ConfigErrorKind};
use crate::tables::DurableTable;

/// The stores that are open: those of the same URL are one.
pub(super) type Opened = Vec<(StoreUrl, Arc<dyn Store>)>;

/// Where the store of `table` is, with relative paths under `base`.
pub(super) fn url_of(config: &Config, table: &DurableTable, base: &Path) -> Result<StoreUrl, ConfigError> {
    let refuse = |error: vfs_core::Error| {
        config.source.error(ConfigErrorKind::Invalid, span_of(table), "the store cannot be named").because(error)
    };
    let url = match (&table.url, &table.url_env) {
        (Some(url), _) => url.get_ref().0.clone(),
        (None, Some(variable)) => {
            let text = std::env::var(variable.get_ref()).map_err(|_| {
                // Its name is not repeated: the URL itself, with its password, may stand there by mistake.
                let message = "the variable of the environment that this names has no text; set it, or give a `url`";
                config.source.error(ConfigErrorKind::Open, variable.span(), message)
            })?;
            StoreUrl::parse(&text).map_err(refuse)?
        }
        (None, None) => return Err(refuse(vfs_core::Error::invalid_argument("it has no `url`"))),
    };
    url.in_directory(base).map_err(refuse)
}

/// Where in the file a store is named.
pub(super) fn span_of(table: &DurableTable) -> Range<usize> {
    let url = table.url.as_ref().map(|url| url.span());
    url.or_else(|| table.url_env.as_ref().map(|variable| variable.span())).unwrap_or_default()
}

impl Builder<'_> {
    pub(super) async fn durable(&mut self, table: &DurableTable) -> Result<Arc<dyn Backend>, ConfigError> {
        let failed = |message: &str, error| {
            self.config.source.error(ConfigErrorKind::Open, span_of(table), message).because(error)
        };
        let url = url_of(self.config, table, &self.base)?;
        let mut settings = StoreConfig::new();
        if let Some(namespace) = &table.namespace {
            let source = NamespaceSource::template(namespace.get_ref());
            settings = settings.namespace(source.map_err(|error| failed("the namespace cannot be used", error))?);
        }
        if let Some(size) = table.max_file_size {
            settings = settings.max_file_size(size.0);
        }
        let known = self.durable.iter().find(|(known, _)| *known == url).map(|(_, store)| Arc::clone(store));
        let store = match known {
            Some(store) => store,
            None => {
                let opened = open_store(&url).await;
                let store = opened.map_err(|error| failed(&format!("the store '{url}' cannot be opened"), error))?;
                self.durable.push((url, Arc::clone(&store)));
                store
            }
        };
        Ok(Arc::new(StoreBackend::with_config(store, settings)))
    }
}
