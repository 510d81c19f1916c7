//! Configuration of a SQLite store.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use vfs_core::{Error, Result};

use crate::admin::store_url::{StoreUrl, percent_decoded};

/// Maximum [`busy_timeout`](SqliteConfig::busy_timeout).
const MAX_BUSY_TIMEOUT: Duration = Duration::from_secs(600);
/// Allowed numbers of [`readers`](SqliteConfig::readers).
const READERS: RangeInclusive<usize> = 1..=64;

/// Location of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DatabaseLocation {
    File(PathBuf),
    Memory,
}

/// Failures that an acknowledged change survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum SqliteDurability {
    /// A power cut: each change is on the disk before it is acknowledged (`synchronous=FULL`).
    #[default]
    Full,
    /// A crash of the process. A power cut may lose the newest changes, but never leaves part of one
    /// (`synchronous=NORMAL`).
    Normal,
}

/// Whether the text of files is indexed, so that a search reads only the files that may match.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum SqliteSearchIndex {
    /// Written files are indexed in groups: up to 64 files, of 1 MiB together, wait to be indexed, and every search
    /// reads them until then. A change of a larger text file indexes it at once.
    #[default]
    On,
    /// Written files are not indexed. Files that another handle indexed stay indexed until they are written again.
    Off,
}

/// Configuration of a [`SqliteStore`](super::SqliteStore): the location of its file and the settings of its
/// connections.
///
/// | URL parameter  | setter                                   | default | bounds               |
/// |----------------|------------------------------------------|---------|----------------------|
/// | `busy_timeout` | [`busy_timeout`](Self::busy_timeout)     | `10s`   | `0s` to `10m`        |
/// | `readers`      | [`readers`](Self::readers)               | `4`     | 1 to 64              |
/// | `durability`   | [`durability`](Self::durability)         | `full`  | `full` or `normal`   |
/// | `search_index` | [`search_index`](Self::search_index)     | `on`    | `on` or `off`        |
///
/// ```
/// use std::time::Duration;
/// use vfs_store::{SqliteConfig, StoreUrl};
///
/// let url = StoreUrl::parse("sqlite:///var/lib/agents.db?busy_timeout=2s&readers=8")?;
/// let config = SqliteConfig::new("/var/lib/agents.db").busy_timeout(Duration::from_secs(2)).readers(8);
/// assert_eq!(SqliteConfig::from_url(&url)?, config);
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteConfig {
    pub(super) location: DatabaseLocation,
    pub(super) busy_timeout: Duration,
    pub(super) readers: usize,
    pub(super) durability: SqliteDurability,
    pub(super) search_index: SqliteSearchIndex,
}

impl SqliteConfig {
    /// Returns the configuration of a store in the file at `path`. A missing file is created, a missing directory is
    /// not.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self::at(DatabaseLocation::File(path.as_ref().to_owned()))
    }

    /// Returns the configuration of a database in memory, which is lost when the last handle of the store is dropped.
    pub fn in_memory() -> Self {
        Self::at(DatabaseLocation::Memory)
    }

    fn at(location: DatabaseLocation) -> Self {
        Self {
            location,
            busy_timeout: Duration::from_secs(10),
            readers: 4,
            durability: SqliteDurability::default(),
            search_index: SqliteSearchIndex::default(),
        }
    }

    /// Parses `sqlite:///absolute/path.db`, `sqlite:relative/path.db` or `sqlite::memory:`, with parameters after a
    /// `?`.
    ///
    /// In a path, `%20` is a space, `%23` is `#`, `%3F` is `?` and `%25` is `%`.
    ///
    /// # Errors
    ///
    /// `invalid_argument` if the URL has another scheme, a host, or parameters that are unknown or out of their bounds.
    pub fn from_url(url: &StoreUrl) -> Result<Self> {
        let (bare, mut parameters) = url.split_parameters()?;
        if bare.scheme() != "sqlite" {
            let hint = "write it as 'sqlite:///path/to/file.db'";
            return Err(Error::invalid_argument(format!("'{}' is not the scheme of SQLite; {hint}", bare.scheme())));
        }
        if bare.host_str().is_some_and(|host| !host.is_empty()) || bare.port().is_some() || !bare.username().is_empty()
        {
            let hint =
                "write 'sqlite:///path' with three slashes for an absolute path, 'sqlite:path' for a relative one";
            return Err(Error::invalid_argument(format!("a SQLite file has no host; {hint}")));
        }
        if bare.fragment().is_some() {
            return Err(Error::invalid_argument("the path of the SQLite file has a '#'; write it as '%23'"));
        }
        let mut config = match bare.path() {
            ":memory:" => Self::in_memory(),
            path => Self::new(percent_decoded(path)?),
        };
        if let Some(text) = parameters.take("busy_timeout") {
            config.busy_timeout = humantime::parse_duration(&text).map_err(|error| {
                Error::invalid_argument(format!(
                    "the busy_timeout is not a duration ({error}); write for example '10s' or '250ms'"
                ))
            })?;
        }
        if let Some(readers) = parameters.take_as("readers")? {
            config.readers = readers;
        }
        if let Some(word) = parameters.take("durability") {
            let words = [("full", SqliteDurability::Full), ("normal", SqliteDurability::Normal)];
            config.durability = one_of("durability", &word, words)?;
        }
        if let Some(word) = parameters.take("search_index") {
            let words = [("on", SqliteSearchIndex::On), ("off", SqliteSearchIndex::Off)];
            config.search_index = one_of("search_index", &word, words)?;
        }
        parameters.finish("busy_timeout, readers, durability and search_index")?;
        config.check()?;
        Ok(config)
    }

    /// Sets how long an operation waits while other connections lock the file, before it fails with `busy`. Default 10
    /// s, at most 10 min.
    #[must_use]
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// Sets how many operations can read at the same time, 1 to 64; others wait. Default 4. A database in memory always
    /// has one connection.
    #[must_use]
    pub fn readers(mut self, readers: usize) -> Self {
        self.readers = readers;
        self
    }

    /// Sets the failures that an acknowledged change survives. Default [`SqliteDurability::Full`].
    #[must_use]
    pub fn durability(mut self, durability: SqliteDurability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets whether the text of files is indexed. Default [`SqliteSearchIndex::On`].
    #[must_use]
    pub fn search_index(mut self, index: SqliteSearchIndex) -> Self {
        self.search_index = index;
        self
    }

    /// Returns an error if a setting is out of its bounds.
    pub(super) fn check(&self) -> Result<()> {
        if self.busy_timeout > MAX_BUSY_TIMEOUT {
            return Err(Error::invalid_argument(
                "the busy_timeout of a SQLite store is over 10 minutes; use a shorter one",
            ));
        }
        if !READERS.contains(&self.readers) {
            return Err(Error::invalid_argument("the readers of a SQLite store are 1 to 64"));
        }
        if matches!(&self.location, DatabaseLocation::File(path) if path.as_os_str().is_empty()) {
            return Err(Error::invalid_argument(
                "the SQLite store has no path; write 'sqlite:///path/to/file.db', or 'sqlite::memory:'",
            ));
        }
        Ok(())
    }
}

fn one_of<T: Copy>(name: &str, word: &str, words: [(&str, T); 2]) -> Result<T> {
    let found = words.iter().find(|(name, _)| *name == word).map(|(_, value)| *value);
    found.ok_or_else(|| {
        Error::invalid_argument(format!("the {name} of a SQLite store is '{}' or '{}'", words[0].0, words[1].0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(text: &str) -> Result<SqliteConfig> {
        SqliteConfig::from_url(&StoreUrl::parse(text).expect("a URL"))
    }

    #[test]
    fn a_url_names_a_file_or_memory() {
        for (url, location) in [
            ("sqlite:///var/lib/a.db", DatabaseLocation::File("/var/lib/a.db".into())),
            ("sqlite:/var/lib/a.db", DatabaseLocation::File("/var/lib/a.db".into())),
            ("sqlite:a.db", DatabaseLocation::File("a.db".into())),
            ("sqlite:./b/a.db", DatabaseLocation::File("./b/a.db".into())),
            ("sqlite:../a.db", DatabaseLocation::File("../a.db".into())),
            ("sqlite:///a%20b/%C3%BC%23%3F.db", DatabaseLocation::File("/a b/ü#?.db".into())),
            ("sqlite::memory:", DatabaseLocation::Memory),
        ] {
            assert_eq!(from(url).expect(url).location, location, "{url}");
        }
    }

    #[test]
    fn parameters_are_read() {
        let config =
            from("sqlite:a.db?busy_timeout=250ms&readers=2&durability=normal&search_index=off").expect("right");
        let same = SqliteConfig::new("a.db")
            .busy_timeout(Duration::from_millis(250))
            .readers(2)
            .durability(SqliteDurability::Normal)
            .search_index(SqliteSearchIndex::Off);
        assert_eq!(config, same);
    }

    #[test]
    fn an_invalid_url_is_refused_with_its_fault() {
        for (url, word) in [
            ("postgres://h/db", "scheme"),
            ("sqlite://a.db", "three slashes"),
            ("sqlite://a/b.db", "three slashes"),
            ("sqlite:", "no path"),
            ("sqlite:a.db#b", "%23"),
            ("sqlite:a%zz.db", "%25"),
            ("sqlite:a%", "%25"),
            ("sqlite:a%+1", "%25"),
            ("sqlite:a%FF", "%25"),
            ("sqlite:a.db?readers=0", "1 to 64"),
            ("sqlite:a.db?readers=65", "1 to 64"),
            ("sqlite:a.db?readers=many", "readers"),
            ("sqlite:a.db?busy_timeout=10", "10s"),
            ("sqlite:a.db?busy_timeout=11m", "10 minutes"),
            ("sqlite:a.db?durability=none", "'full' or 'normal'"),
            ("sqlite:a.db?search_index=yes", "'on' or 'off'"),
            ("sqlite:a.db?mode=ro", "unknown"),
        ] {
            let error = from(url).expect_err(url);
            assert_eq!(error.kind(), vfs_core::ErrorKind::InvalidArgument);
            assert!(error.message().contains(word), "{url}: {error}");
        }
    }
}
