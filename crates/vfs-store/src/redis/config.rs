//! Configuration of a Redis store.

use std::fmt;
use std::time::Duration;

use vfs_core::{Error, Result};

use super::key_names::KeyNames;
use crate::admin::store_url::StoreUrl;

const PARAMETER_NAMES: &str = "prefix, ttl, connections, connect_timeout, timeout and patience";

/// Configuration of a [`RedisStore`](super::RedisStore): the server, and the settings of its connections.
///
/// # Behaviour
///
/// The URL is `redis://[[user][:password]@]host[:port][/database]`, or `rediss://` for TLS with a certificate that is
/// signed by a public authority or by [`root_certificate`](Self::root_certificate). Its parameters are the settings
/// below: `prefix`, `connections`, and in whole seconds `ttl`, `connect_timeout`, `timeout` and `patience`. The `Debug`
/// output contains no password.
///
/// ```
/// use std::time::Duration;
/// use vfs_store::RedisConfig;
///
/// let config = RedisConfig::new("redis://localhost:6379/0?prefix=agents")?.ttl(Duration::from_secs(3600))?;
/// assert!(RedisConfig::new("redis://localhost?tls=yes").is_err());
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Clone)]
pub struct RedisConfig {
    /// URL without its parameters.
    pub(super) url: StoreUrl,
    pub(super) names: KeyNames,
    pub(super) ttl: Option<Duration>,
    pub(super) connections: usize,
    pub(super) connect_timeout: Duration,
    pub(super) timeout: Duration,
    pub(super) patience: Duration,
    pub(super) root_certificate: Option<Vec<u8>>,
}

impl RedisConfig {
    /// Parses the configuration from the text of a URL, with defaults for missing parameters.
    ///
    /// # Errors
    ///
    /// `invalid_argument` if the text is not a URL, and the errors of [`from_url`](Self::from_url).
    pub fn new(url: &str) -> Result<Self> {
        Self::from_url(&StoreUrl::parse(url)?)
    }

    /// Reads the configuration from `url`, with defaults for missing parameters.
    ///
    /// # Errors
    ///
    /// `invalid_argument` if the URL has another scheme, no host, a database that is not a number, or unknown or
    /// invalid parameters.
    pub fn from_url(url: &StoreUrl) -> Result<Self> {
        if !matches!(url.scheme(), "redis" | "rediss") {
            let message =
                format!("'{}' is not the scheme of Redis; write 'redis://host' or 'rediss://host'", url.scheme());
            return Err(Error::invalid_argument(message));
        }
        let (bare, mut parameters) = url.split_parameters()?;
        let database = bare.path().trim_matches('/');
        if bare.host_str().is_none_or(str::is_empty) {
            return Err(Error::invalid_argument("the store's URL names no host; write 'redis://host:6379'"));
        }
        if !database.is_empty() && database.parse::<u16>().is_err() {
            let message = "the store's URL has a database that is not a number; write 'redis://host:6379/0'";
            return Err(Error::invalid_argument(message));
        }
        if bare.fragment().is_some() {
            return Err(Error::invalid_argument("the store's URL has a '#' without a meaning; remove the '#'"));
        }
        let mut config = Self {
            url: StoreUrl::parse(bare.as_str())?,
            names: KeyNames::new("vfs")?,
            ttl: None,
            connections: 4,
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(15),
            patience: Duration::from_secs(15),
            root_certificate: None,
        };
        if let Some(prefix) = parameters.take("prefix") {
            config = config.prefix(&prefix)?;
        }
        if let Some(seconds) = parameters.take_as("ttl")? {
            config = config.ttl(Duration::from_secs(seconds))?;
        }
        if let Some(connections) = parameters.take_as("connections")? {
            config = config.connections(connections);
        }
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        if let Some(limit) = parameters.take_as("connect_timeout")? {
            config = config.connect_timeout(seconds(limit));
        }
        if let Some(limit) = parameters.take_as("timeout")? {
            config = config.timeout(seconds(limit));
        }
        if let Some(patience) = parameters.take_as("patience")? {
            config = config.patience(seconds(patience));
        }
        parameters.finish(PARAMETER_NAMES)?;
        Ok(config)
    }

    /// Sets the prefix of all keys, so that several stores and other programs can share a server. Default `vfs`.
    ///
    /// # Errors
    ///
    /// `invalid_argument` unless `prefix` consists of 1 to 100 letters, digits and `-_.:`.
    pub fn prefix(mut self, prefix: &str) -> Result<Self> {
        self.names = KeyNames::new(prefix)?;
        Ok(self)
    }

    /// Sets how long a file exists after this handle last wrote or copied it, to the millisecond. Default: no expiry.
    ///
    /// # Behaviour
    ///
    /// * From its expiry on, a file does not exist for any operation, including listings and searches. A directory
    ///   expires with its last file.
    /// * The change feed reports the removal when a listing first finds the expired file, not at the moment of the
    ///   expiry.
    /// * Writing renews the expiry; reading does not. Moving a file does not change its expiry.
    ///
    /// # Errors
    ///
    /// `invalid_argument` if `ttl` is less than a millisecond or more than 100 years.
    pub fn ttl(mut self, ttl: Duration) -> Result<Self> {
        const HUNDRED_YEARS: Duration = Duration::from_secs(100 * 366 * 24 * 3600);
        if ttl < Duration::from_millis(1) || ttl > HUNDRED_YEARS {
            let message =
                "the ttl of a Redis store is a millisecond to 100 years; leave 'ttl' out to keep files for ever";
            return Err(Error::invalid_argument(message));
        }
        self.ttl = Some(ttl);
        Ok(self)
    }

    /// Sets the number of connections that the operations share, 1 to 64. With several, a large file does not delay all
    /// other operations. Default 4.
    #[must_use]
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections.clamp(1, 64);
        self
    }

    /// Sets how long connecting may take. Default 5 s.
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// Sets how long a response may take before the connection counts as lost, in addition to one second for each 4 MiB
    /// sent. Default 15 s.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// Sets how long an operation is retried if the connection was lost, or the server is busy or starting. A request
    /// that may have been sent is repeated at least once, and for at most five minutes. Default 15 s.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets the certificates in PEM format of which the server must have one, or a certificate signed by one. Default:
    /// those of public authorities.
    #[must_use]
    pub fn root_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.root_certificate = Some(pem.into());
        self
    }
}

impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, names, ttl, connections, connect_timeout, timeout, patience, root_certificate } = self;
        f.debug_struct("RedisConfig")
            .field("url", url)
            .field("prefix", &names.prefix())
            .field("ttl", ttl)
            .field("connections", connections)
            .field("connect_timeout", connect_timeout)
            .field("timeout", timeout)
            .field("patience", patience)
            .field("has_root_certificate", &root_certificate.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_all_settings() {
        let text = "rediss://ann:hidden@h:7000/3?prefix=p&ttl=60&connections=2&connect_timeout=1&timeout=2&patience=3";
        let config = RedisConfig::new(text).expect("a configuration");
        assert_eq!(config.names.prefix(), "p");
        assert_eq!((config.ttl, config.connections), (Some(Duration::from_secs(60)), 2));
        assert_eq!((config.connect_timeout, config.timeout), (Duration::from_secs(1), Duration::from_secs(2)));
        assert_eq!(config.patience, Duration::from_secs(3));
        let shown = format!("{config:?}");
        assert!(!shown.contains("hidden") && shown.contains("rediss://***@h:7000/3"), "{shown}");
    }

    #[test]
    fn an_invalid_url_is_refused_with_its_fault() {
        for (text, word) in [
            ("postgres://h", "redis://host"),
            ("redis:///0", "host"),
            ("redis://h/files", "number"),
            ("redis://h#insecure", "'#'"),
            ("redis://h?ttl=0", "millisecond"),
            ("redis://h?ttl=soon", "'ttl'"),
            ("redis://h?prefix=%7Bx%7D", "prefix"),
            ("redis://:hidden@h?passwort=hidden", "known are prefix"),
        ] {
            let error = RedisConfig::new(text).expect_err(text);
            assert!(error.message().contains(word), "{text}: {error}");
            assert!(!format!("{error:?}").contains("hidden"), "{error:?}");
        }
    }
}
