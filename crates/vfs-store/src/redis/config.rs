//! Configuration of a Redis store.

use std::fmt;
use std::time::Duration;

use vfs_core::{Error, Result};

use super::names::KeyNames;
use crate::admin::url::StoreUrl;

const PARAMETER_NAMES: &str = "prefix, ttl, connections, connect_timeout, timeout and patience";

/// Where a Redis server is and how it is used.
///
/// # Behaviour
///
/// The URL is `redis://[[user][:password]@]host[:port][/database]`, or `rediss://` for TLS, with a certificate that a public authority
/// signed, or that of [`root_certificate`](Self::root_certificate). Its parameters are the settings below: `prefix`, `connections`, and in whole seconds `ttl`,
/// `connect_timeout`, `timeout` and `patience`. What prints a configuration shows no password.
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
    /// Without parameters.
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
    /// The configuration that `url` says, with defaults for the rest.
    ///
    /// # Errors
    ///
    /// `invalid_argument` for a text that is no URL, and as [`from_url`](Self::from_url).
    pub fn new(url: &str) -> Result<Self> {
        Self::from_url(&StoreUrl::parse(url)?)
    }

    /// The configuration that `url` says, with defaults for the rest.
    ///
    /// # Errors
    ///
    /// `invalid_argument` for another scheme, a missing host, a database that is no number, and unknown or wrong parameters.
    pub fn from_url(url: &StoreUrl) -> Result<Self> {
        if !matches!(url.scheme(), "redis" | "rediss") {
            let message =
                format!("'{}' is no scheme of a Redis server; write 'redis://host' or 'rediss://host'", url.scheme());
            return Err(Error::invalid_argument(message));
        }
        let (bare, mut parameters) = url.split_parameters()?;
        let database = bare.path().trim_matches('/');
        if bare.host_str().is_none_or(str::is_empty) {
            return Err(Error::invalid_argument("the store's URL names no host; write 'redis://host:6379'"));
        }
        if !database.is_empty() && database.parse::<u16>().is_err() {
            let message = "the store's URL has a database that is no number; write 'redis://host:6379/0'";
            return Err(Error::invalid_argument(message));
        }
        if bare.fragment().is_some() {
            return Err(Error::invalid_argument("the store's URL has a '#', which means nothing here; leave it out"));
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

    /// What all keys begin with, so that several stores and other programs can share a server. Default `vfs`.
    ///
    /// # Errors
    ///
    /// `invalid_argument` unless it has 1 to 100 letters, digits and `-_.:`.
    pub fn prefix(mut self, prefix: &str) -> Result<Self> {
        self.names = KeyNames::new(prefix)?;
        Ok(self)
    }

    /// How long a file is kept after it was last written or copied by this handle, to the millisecond. Default: for ever.
    ///
    /// # Behaviour
    ///
    /// * A file that has expired is not there for any operation, listings and searches included, from that moment on. A directory
    ///   goes with its last file.
    /// * The change feed tells that it was removed when a listing first comes across it, not at the moment itself.
    /// * Writing renews the time; reading does not. A file that is moved keeps the rest of its time.
    ///
    /// # Errors
    ///
    /// `invalid_argument` for less than a millisecond or more than 100 years.
    pub fn ttl(mut self, ttl: Duration) -> Result<Self> {
        const HUNDRED_YEARS: Duration = Duration::from_secs(100 * 366 * 24 * 3600);
        if ttl < Duration::from_millis(1) || ttl > HUNDRED_YEARS {
            let message =
                "files of a Redis store are kept for a millisecond to 100 years; leave 'ttl' out to keep them for ever";
            return Err(Error::invalid_argument(message));
        }
        self.ttl = Some(ttl);
        Ok(self)
    }

    /// How many connections the operations share; at least one. Large files are why one is not enough. Default 4.
    #[must_use]
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections.clamp(1, 64);
        self
    }

    /// How long making a connection may take. Default 5 s.
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// How long an answer may take before the connection counts as lost, beside a second for each 4 MiB that are sent. Default 15 s.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// How long an operation is tried again where the connection was lost or the server is busy or starting. One that may have been
    /// sent is repeated once at least, and for five minutes at most. Default 15 s.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Trusts the server's certificate where it is, or was signed by, one of these, in the form of PEM, and no other. Default: public
    /// authorities.
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
    fn a_url_says_all() {
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
    fn what_is_wrong_with_a_url_is_said() {
        for (text, said) in [
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
            assert!(error.message().contains(said), "{text}: {error}");
            assert!(!format!("{error:?}").contains("hidden"), "{error:?}");
        }
    }
}
