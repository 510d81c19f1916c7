//! Configuration of a Postgres store.

use std::fmt;
use std::time::Duration;

use tokio_postgres::config::Host;
use vfs_core::{Error, Result};

use crate::admin::store_url::{StoreUrl, StoreUrlParameters};

/// Allowed numbers of connections of a store.
const POOL_SIZES: std::ops::RangeInclusive<usize> = 1..=1000;
/// Maximum of all times except the `prepare_timeout`.
const MAX_TIME: Duration = Duration::from_secs(3600);
/// Maximum of the `prepare_timeout`.
const MAX_PREPARE: Duration = Duration::from_secs(24 * 3600);
/// Maximum length of the name of a schema in bytes. With its prefix it must be a valid name of a channel.
const MAX_SCHEMA: usize = 48;
/// Parameters of a URL that are passed to the server.
const SERVER_PARAMETERS: [&str; 8] =
    ["host", "port", "user", "password", "dbname", "application_name", "target_session_attrs", "channel_binding"];
const PARAMETER_NAMES: &str = "schema, pool_size, connect_timeout, pool_timeout, statement_timeout, lock_timeout, \
                     prepare_timeout, retry_for, sslmode, pooled, listen_url, \
                     host, port, user, password, dbname, application_name, target_session_attrs and channel_binding";

/// Encryption of a connection and verification of the server, with the names of the clients of Postgres.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum PostgresTls {
    /// Not encrypted (`disable`).
    Disable,
    /// Encrypted if the server supports it (`prefer`). An attacker on the network can read and change the traffic.
    #[default]
    Prefer,
    /// Encrypted (`require`). The server is not verified, so an attacker who can impersonate it can still read the
    /// traffic.
    Require,
    /// Encrypted, and the server's certificate must be valid for its host name (`verify-full`): signed by one of
    /// [`PostgresConfig::root_certificates`], or else by an authority that browsers trust.
    VerifyFull,
}

impl std::str::FromStr for PostgresTls {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "disable" => Ok(Self::Disable),
            "prefer" => Ok(Self::Prefer),
            "require" => Ok(Self::Require),
            "verify-full" => Ok(Self::VerifyFull),
            _ => Err(Error::invalid_argument(
                "the sslmode of a Postgres store is 'disable', 'prefer', 'require' or 'verify-full'",
            )),
        }
    }
}

/// Configuration of a [`PostgresStore`](super::PostgresStore): the server, and the settings of its connections.
///
/// | URL parameter       | setter                                           | default  | bounds         |
/// |---------------------|--------------------------------------------------|----------|----------------|
/// | `schema`            | [`schema`](Self::schema)                         | `vfs`    | see there      |
/// | `pool_size`         | [`pool_size`](Self::pool_size)                   | `16`     | 1 to 1000      |
/// | `connect_timeout`   | [`connect_timeout`](Self::connect_timeout)       | `10s`    | `1ms` to `1h`  |
/// | `pool_timeout`      | [`pool_timeout`](Self::pool_timeout)             | `10s`    | `1ms` to `1h`  |
/// | `statement_timeout` | [`statement_timeout`](Self::statement_timeout)   | `30s`    | `1ms` to `1h`  |
/// | `lock_timeout`      | [`lock_timeout`](Self::lock_timeout)             | `5s`     | `1ms` to `1h`  |
/// | `prepare_timeout`   | [`prepare_timeout`](Self::prepare_timeout)       | `10min`  | `1ms` to `24h` |
/// | `retry_for`         | [`retry_for`](Self::retry_for)                   | `10s`    | `0s` to `1h`   |
/// | `sslmode`           | [`tls`](Self::tls)                               | `prefer` |                |
/// | `pooled`            | [`pooled`](Self::pooled)                         | `false`  |                |
/// | `listen_url`        | [`listen_url`](Self::listen_url)                 | none     |                |
///
/// `host`, `port`, `user`, `password`, `dbname`, `application_name`, `target_session_attrs` and `channel_binding` have
/// the same meaning as for the clients of Postgres; `?host=/var/run/postgresql` is a Unix socket.
///
/// ```
/// use std::time::Duration;
/// use vfs_store::{PostgresConfig, PostgresTls, StoreUrl};
///
/// let url = StoreUrl::parse("postgres://agents:secret@db.example.org/files?sslmode=verify-full&pool_size=4")?;
/// let config = PostgresConfig::new("postgres://agents:secret@db.example.org/files")?.tls(PostgresTls::VerifyFull).pool_size(4);
/// assert_eq!(PostgresConfig::from_url(&url)?, config);
/// assert!(!format!("{config:?}").contains("secret"));
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresConfig {
    pub(super) server: tokio_postgres::Config,
    pub(super) tls: PostgresTls,
    pub(super) roots: Option<Vec<u8>>,
    pub(super) schema: String,
    pub(super) pool_size: usize,
    pub(super) connect_timeout: Duration,
    pub(super) pool_timeout: Duration,
    pub(super) statement_timeout: Duration,
    pub(super) lock_timeout: Duration,
    pub(super) prepare_timeout: Duration,
    pub(super) retry_for: Duration,
    pub(super) is_pooled: bool,
    pub(super) listener: Option<tokio_postgres::Config>,
}

impl PostgresConfig {
    /// Parses a URL such as `postgres://user:password@host:5432/database`, with parameters after a `?`.
    ///
    /// # Errors
    ///
    /// As those of [`from_url`](Self::from_url).
    pub fn new(url: &str) -> Result<Self> {
        Self::from_url(&StoreUrl::parse(url)?)
    }

    /// Parses a URL such as `postgres://user:password@host:5432/database`, with parameters after a `?`. Reserved
    /// characters are percent-encoded, such as `@` as `%40`.
    ///
    /// # Errors
    ///
    /// `invalid_argument` if the URL has another scheme, no host, or parameters that are unknown or out of their
    /// bounds.
    pub fn from_url(url: &StoreUrl) -> Result<Self> {
        let (mut bare, mut parameters) = url.split_parameters()?;
        if !matches!(bare.scheme(), "postgres" | "postgresql") {
            let hint = "write it as 'postgres://user:password@host/database'";
            return Err(Error::invalid_argument(format!("'{}' is not the scheme of Postgres; {hint}", bare.scheme())));
        }
        for name in SERVER_PARAMETERS {
            if let Some(value) = parameters.take(name) {
                bare.query_pairs_mut().append_pair(name, &value);
            }
        }
        let server = parse_server(bare)?;
        let mut config = Self {
            server,
            tls: PostgresTls::default(),
            roots: None,
            schema: "vfs".to_owned(),
            pool_size: 16,
            connect_timeout: Duration::from_secs(10),
            pool_timeout: Duration::from_secs(10),
            statement_timeout: Duration::from_secs(30),
            lock_timeout: Duration::from_secs(5),
            prepare_timeout: Duration::from_secs(600),
            retry_for: Duration::from_secs(10),
            is_pooled: false,
            listener: None,
        };
        config.apply(&mut parameters)?;
        parameters.finish(PARAMETER_NAMES)?;
        config.check()?;
        Ok(config)
    }

    fn apply(&mut self, parameters: &mut StoreUrlParameters) -> Result<()> {
        if let Some(schema) = parameters.take("schema") {
            self.schema = schema;
        }
        if let Some(size) = parameters.take_as("pool_size")? {
            self.pool_size = size;
        }
        if let Some(mode) = parameters.take("sslmode") {
            self.tls = mode.parse()?;
        }
        if let Some(is_pooled) = parameters.take_as("pooled")? {
            self.is_pooled = is_pooled;
        }
        if let Some(url) = parameters.take("listen_url") {
            self.listener = Some(parse_listen_url(&url)?);
        }
        for (name, time) in [
            ("connect_timeout", &mut self.connect_timeout),
            ("pool_timeout", &mut self.pool_timeout),
            ("statement_timeout", &mut self.statement_timeout),
            ("lock_timeout", &mut self.lock_timeout),
            ("prepare_timeout", &mut self.prepare_timeout),
            ("retry_for", &mut self.retry_for),
        ] {
            if let Some(text) = parameters.take(name) {
                *time = humantime::parse_duration(&text).map_err(|error| {
                    Error::invalid_argument(format!(
                        "the {name} is not a duration ({error}); write for example '10s' or '250ms'"
                    ))
                })?;
            }
        }
        Ok(())
    }

    /// Sets the schema of the tables, which is created if it is missing: 1 to 48 of `a-z 0-9 _`, not beginning with a
    /// digit. Stores in two schemas have nothing in common. Default `vfs`.
    #[must_use]
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = name.into();
        self
    }

    /// Sets the maximum number of connections, 1 to 1000. The connection that listens for changes is not counted. At
    /// most three quarters of the connections make changes, so that many writers cannot block all readers. Default 16.
    #[must_use]
    pub fn pool_size(mut self, connections: usize) -> Self {
        self.pool_size = connections;
        self
    }

    /// Sets how long a connection may take to be established. Default 10 s.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets how long an operation waits for a connection while all are in use, before it fails with `busy`. Default 10
    /// s.
    #[must_use]
    pub fn pool_timeout(mut self, timeout: Duration) -> Self {
        self.pool_timeout = timeout;
        self
    }

    /// Sets how long the server may work on one statement, before the operation fails with `timeout`. Default 30 s.
    #[must_use]
    pub fn statement_timeout(mut self, timeout: Duration) -> Self {
        self.statement_timeout = timeout;
        self
    }

    /// Sets how long a change waits for other changes in its namespace before it is retried. It fails with `busy` once
    /// [`retry_for`](Self::retry_for) is over. Default 5 s.
    #[must_use]
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Sets how long opening may take to create or migrate the tables, and before that to wait for another process that
    /// does so. Only a large database of an earlier version needs more than a moment. Default 10 minutes.
    #[must_use]
    pub fn prepare_timeout(mut self, timeout: Duration) -> Self {
        self.prepare_timeout = timeout;
        self
    }

    /// Sets how long an operation is retried after transient failures, such as a restart of the server. Zero disables
    /// retries. Default 10 s.
    #[must_use]
    pub fn retry_for(mut self, time: Duration) -> Self {
        self.retry_for = time;
        self
    }

    /// Sets whether the server is behind a pooler such as PgBouncer, which rejects settings at the start of a
    /// connection, and in transaction mode may run each transaction on another connection. If so, the store prepares no
    /// statements, and begins each transaction with its settings. Default `false`.
    ///
    /// Behind a pooler, waiting for changes polls every 750 ms, unless there is a [`listen_url`](Self::listen_url).
    #[must_use]
    pub fn pooled(mut self, is_pooled: bool) -> Self {
        self.is_pooled = is_pooled;
        self
    }

    /// Sets the URL of the same database without a pooler, for the connection that listens for changes. As a parameter
    /// of a URL it is percent-encoded: `listen_url=postgres%3A%2F%2Fagents%3Asecret%40db.example.org%2Ffiles`. TLS and
    /// timeouts are those of the store.
    ///
    /// # Errors
    ///
    /// As those of [`new`](Self::new), and `invalid_argument` if the URL has parameters of the store, such as
    /// `sslmode`.
    pub fn listen_url(mut self, url: &str) -> Result<Self> {
        self.listener = Some(parse_listen_url(url)?);
        Ok(self)
    }

    /// Sets the encryption of connections and the verification of the server. Default [`PostgresTls::Prefer`].
    #[must_use]
    pub fn tls(mut self, tls: PostgresTls) -> Self {
        self.tls = tls;
        self
    }

    /// Sets the certificate authorities that [`PostgresTls::VerifyFull`] trusts instead of those of browsers, as the
    /// text of a PEM file.
    #[must_use]
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots = Some(pem.into());
        self
    }

    /// Returns an error if a setting is out of its bounds.
    pub(super) fn check(&self) -> Result<()> {
        let refuse = |message: String| Err(Error::invalid_argument(message));
        let is_plain = |schema: &str| {
            let mut letters = schema.bytes();
            letters.next().is_some_and(|first| first.is_ascii_lowercase() || first == b'_')
                && letters.all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'_')
        };
        if self.schema.len() > MAX_SCHEMA || !is_plain(&self.schema) || self.schema.starts_with("pg_") {
            return refuse(format!(
                "the schema of a Postgres store has 1 to {MAX_SCHEMA} of 'a-z', '0-9' and '_', begins with none of '0-9', and \
                 not with 'pg_'"
            ));
        }
        if !POOL_SIZES.contains(&self.pool_size) {
            return refuse("the pool_size of a Postgres store is 1 to 1000".to_owned());
        }
        for (name, time) in [
            ("connect_timeout", self.connect_timeout),
            ("pool_timeout", self.pool_timeout),
            ("statement_timeout", self.statement_timeout),
            ("lock_timeout", self.lock_timeout),
        ] {
            if time < Duration::from_millis(1) || time > MAX_TIME {
                return refuse(format!("the {name} of a Postgres store is 1 millisecond to 1 hour"));
            }
        }
        if self.prepare_timeout < Duration::from_millis(1) || self.prepare_timeout > MAX_PREPARE {
            return refuse("the prepare_timeout of a Postgres store is 1 millisecond to 24 hours".to_owned());
        }
        if self.retry_for > MAX_TIME {
            return refuse("the retry_for of a Postgres store is at most 1 hour".to_owned());
        }
        if self.server.get_hosts().is_empty() && self.server.get_hostaddrs().is_empty() {
            return refuse(
                "the URL of the Postgres store has no host; write 'postgres://user:password@host/database'".to_owned(),
            );
        }
        Ok(())
    }

    /// Returns the hosts and ports of the server.
    pub(super) fn address(&self) -> String {
        let ports = self.server.get_ports();
        let port = |index: usize| ports.get(index).or(ports.first()).copied().unwrap_or(5432);
        let hosts = self.server.get_hosts().iter().enumerate().map(|(index, host)| match host {
            Host::Tcp(name) => format!("{name}:{}", port(index)),
            #[cfg(unix)]
            Host::Unix(directory) => format!("{}:{}", directory.display(), port(index)),
        });
        let hosts: Vec<_> = hosts.collect();
        if hosts.is_empty() {
            return self.server.get_hostaddrs().iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        }
        hosts.join(",")
    }

    pub(super) fn has_password(&self) -> bool {
        self.server.get_password().is_some()
    }

    pub(super) fn database(&self) -> &str {
        self.server.get_dbname().or(self.server.get_user()).unwrap_or("postgres")
    }

    pub(super) fn user(&self) -> &str {
        self.server.get_user().unwrap_or("of this process")
    }
}

/// Omits the password.
impl fmt::Debug for PostgresConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresConfig")
            .field("address", &self.address())
            .field("database", &self.database())
            .field("user", &self.user())
            .field("schema", &self.schema)
            .field("tls", &self.tls)
            .field("pool_size", &self.pool_size)
            .field("connect_timeout", &self.connect_timeout)
            .field("pool_timeout", &self.pool_timeout)
            .field("statement_timeout", &self.statement_timeout)
            .field("lock_timeout", &self.lock_timeout)
            .field("prepare_timeout", &self.prepare_timeout)
            .field("retry_for", &self.retry_for)
            .field("is_pooled", &self.is_pooled)
            .finish_non_exhaustive()
    }
}

/// Parses the URL of the connection that listens for changes, which must not have parameters of the store.
fn parse_listen_url(url: &str) -> Result<tokio_postgres::Config> {
    let config = PostgresConfig::new(url)?;
    let bare = PostgresConfig { server: config.server.clone(), ..PostgresConfig::new("postgres://localhost")? };
    if config != bare {
        let reason =
            "the listen_url of a Postgres store has parameters of the store; write them in the URL of the store";
        return Err(Error::invalid_argument(reason));
    }
    Ok(config.server)
}

/// Parses a URL that has only parameters of the server.
fn parse_server(mut url: url::Url) -> Result<tokio_postgres::Config> {
    // The parser of `tokio_postgres` does not decode a '+', which means a space in a parameter.
    let query = url.query().map(|query| query.replace('+', "%20"));
    url.set_query(query.as_deref());
    // The cause is dropped, because it may contain the password.
    url.as_str().parse().map_err(|_| {
        let hint =
            "write it as 'postgres://user:password@host:5432/database', with '%40' for an '@' in a name or password";
        Error::invalid_argument(format!("the URL of the Postgres store cannot be read; {hint}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_server_and_how_to_use_it() {
        let config = PostgresConfig::new(
            "postgresql://ann:p%40ss+w@h:5433/files?schema=mine&pool_size=3&connect_timeout=1s&pool_timeout=2s\
             &statement_timeout=3s&lock_timeout=250ms&retry_for=0s&sslmode=require&application_name=a+b",
        )
        .expect("right");
        assert_eq!(config.server.get_user(), Some("ann"));
        assert_eq!(config.server.get_password(), Some("p@ss+w".as_bytes()));
        assert_eq!(config.server.get_application_name(), Some("a+b"));
        assert_eq!((config.address().as_str(), config.database()), ("h:5433", "files"));
        let same =
            PostgresConfig { server: config.server.clone(), ..PostgresConfig::new("postgres://h").expect("right") }
                .schema("mine")
                .pool_size(3)
                .connect_timeout(Duration::from_secs(1))
                .pool_timeout(Duration::from_secs(2))
                .statement_timeout(Duration::from_secs(3))
                .lock_timeout(Duration::from_millis(250))
                .retry_for(Duration::ZERO)
                .tls(PostgresTls::Require);
        assert_eq!(config, same);
        let socket = PostgresConfig::new("postgres:///files?host=/run/postgresql&user=ann").expect("right");
        assert_eq!((socket.address().as_str(), socket.user()), ("/run/postgresql:5432", "ann"));
    }

    #[test]
    fn an_invalid_url_is_refused_with_its_fault() {
        for (url, word) in [
            ("mysql://h/db", "scheme"),
            ("postgres:///db", "no host"),
            ("postgres://h/db?port=x", "cannot be read"),
            ("postgres://h/db?schema=a-b", "schema"),
            ("postgres://h/db?schema=A", "schema"),
            ("postgres://h/db?schema=1a", "schema"),
            ("postgres://h/db?schema=", "schema"),
            ("postgres://h/db?schema=pg_mine", "schema"),
            ("postgres://h/db?pool_size=0", "1 to 1000"),
            ("postgres://h/db?pool_size=many", "pool_size"),
            ("postgres://h/db?lock_timeout=10", "10s"),
            ("postgres://h/db?lock_timeout=0s", "1 millisecond"),
            ("postgres://h/db?retry_for=2h", "1 hour"),
            ("postgres://h/db?sslmode=verify-ca", "verify-full"),
            ("postgres://h/db?sslrootcert=/a", "unknown"),
        ] {
            let error = PostgresConfig::new(url).expect_err(url);
            assert_eq!(error.kind(), vfs_core::ErrorKind::InvalidArgument);
            assert!(error.message().contains(word), "{url}: {error}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        for url in
            ["postgres://u:hidden@h/db", "postgres://u@h/db?password=hidden", "postgres://u:hidden@h/db?port=hidden"]
        {
            let shown = match PostgresConfig::new(url) {
                Ok(config) => format!("{config:?}"),
                Err(error) => format!("{error} {error:?} {}", error.for_model()),
            };
            assert!(!shown.contains("hidden"), "{shown}");
        }
    }
}
