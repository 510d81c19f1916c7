//! Resolution of the URLs of durable stores.

use std::ops::Range;
use std::path::Path;

use vfs_store::StoreUrl;

use crate::config_text::ConfigText;
use crate::error::{ConfigError, ConfigErrorKind};
use crate::tables::StoreBackendTable;

/// Returns the URL of the store of `table`, with relative paths below `base`.
pub(super) fn resolve_store_url(
    source: &ConfigText,
    table: &StoreBackendTable,
    base: &Path,
) -> Result<StoreUrl, ConfigError> {
    let invalid = |error: vfs_core::Error| {
        source.error(ConfigErrorKind::Invalid, store_span(table), "the URL of the store is invalid").with_cause(error)
    };
    let url = match (&table.url, &table.url_env) {
        (Some(url), _) => url.get_ref().0.clone(),
        (None, Some(variable)) => {
            let text = std::env::var(variable.get_ref()).map_err(|_| {
                // The message does not repeat the name: by mistake it may be the URL itself, with its password.
                let message = "the environment variable is not set or not UTF-8; set it, or give a `url`";
                source.error(ConfigErrorKind::Open, variable.span(), message)
            })?;
            StoreUrl::parse(&text).map_err(invalid)?
        }
        (None, None) => return Err(invalid(vfs_core::Error::invalid_argument("`url` is missing"))),
    };
    url.in_directory(base).map_err(invalid)
}

/// Returns the position of the URL of a store in the configuration file.
pub(super) fn store_span(table: &StoreBackendTable) -> Range<usize> {
    let url = table.url.as_ref().map(|url| url.span());
    url.or_else(|| table.url_env.as_ref().map(|variable| variable.span())).unwrap_or_default()
}
