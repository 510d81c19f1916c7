//! URLs of stores and their parameters.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use url::Url;
use vfs_core::{Error, Result};

/// The URL of a store, such as `sqlite:///var/lib/agents.db`, `postgres://agents@db.example.org/files` or
/// `s3://bucket/prefix?region=eu-central-1`.
///
/// # Behaviour
///
/// * `Display` and `Debug` show neither user and password nor parameters, as some of these are secrets.
/// * Paths and parameters are percent-encoded: `%20` is a space, `%26` is `&`. A `+` is a `+`.
///
/// ```
/// use vfs_store::StoreUrl;
///
/// let url = StoreUrl::parse("postgres://agents:secret@db.example.org/files?sslmode=require")?;
/// assert_eq!(url.to_string(), "postgres://***@db.example.org/files?***");
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct StoreUrl(Url);

impl StoreUrl {
    /// Parses a URL.
    ///
    /// # Errors
    ///
    /// `invalid_argument` for an invalid URL; the message does not repeat the URL.
    pub fn parse(text: &str) -> Result<Self> {
        let url = Url::parse(text).map_err(|error| {
            let error = match error {
                url::ParseError::RelativeUrlWithoutBase => "there is no scheme such as 'sqlite:'".to_owned(),
                error => error.to_string(),
            };
            let hint = "write it as 'sqlite:///path/to/file.db', 'postgres://host/database', 'redis://host' or 's3://bucket/prefix'";
            Error::invalid_argument(format!("the URL of the store is invalid ({error}); {hint}"))
        })?;
        Ok(Self(url))
    }

    /// Returns the scheme, such as `sqlite`.
    pub fn scheme(&self) -> &str {
        self.0.scheme()
    }

    /// Returns the whole URL with its secrets.
    pub fn expose(&self) -> &Url {
        &self.0
    }

    /// Returns the file of a SQLite URL, which may be relative, or `None` for other URLs.
    ///
    /// # Errors
    ///
    /// `invalid_argument` if the path is invalid on this machine.
    pub fn file(&self) -> Result<Option<PathBuf>> {
        if self.scheme() != "sqlite" || self.0.path() == ":memory:" {
            return Ok(None);
        }
        percent_decoded(self.0.path()).map(|path| Some(PathBuf::from(path)))
    }

    /// Resolves a relative path against the absolute directory `base`.
    ///
    /// # Errors
    ///
    /// `invalid_argument` if `base` cannot be part of a URL.
    pub fn in_directory(&self, base: &Path) -> Result<Self> {
        let path = self.0.path();
        if self.scheme() != "sqlite" || path == ":memory:" || path.starts_with('/') {
            return Ok(self.clone());
        }
        let refuse = || Error::invalid_argument("the directory of the SQLite file cannot be part of a URL");
        let base = Url::from_directory_path(base).map_err(|()| refuse())?;
        let mut url = Url::parse(&format!("sqlite://{}{path}", base.path())).map_err(|_| refuse())?;
        url.set_query(self.0.query());
        Ok(Self(url))
    }

    /// Splits the URL into the URL without its query, and the parameters by name.
    ///
    /// # Errors
    ///
    /// `invalid_argument` for a duplicate parameter.
    pub fn split_parameters(&self) -> Result<(Url, StoreUrlParameters)> {
        let mut url = self.0.clone();
        let mut values = BTreeMap::new();
        // A '+' is literal, as secrets contain it and parameters have no spaces.
        for pair in self.0.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if values.insert(percent_decoded(name)?, percent_decoded(value)?).is_some() {
                return Err(Error::invalid_argument(
                    "the store's URL has a duplicate parameter; write each parameter once",
                ));
            }
        }
        url.set_query(None);
        Ok((url, StoreUrlParameters { values }))
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.0.clone();
        // Without '//' the secret part cannot be identified; the path of a SQLite file is not secret.
        if shown.cannot_be_a_base() && self.scheme() != "sqlite" {
            return write!(f, "{}:***", self.scheme());
        }
        // Some services take a token as the user name.
        let has_user = !shown.username().is_empty() || shown.password().is_some();
        if has_user && (shown.set_password(None).is_err() || shown.set_username("***").is_err()) {
            return write!(f, "{}:***", self.scheme());
        }
        shown.set_query(None);
        shown.set_fragment(None);
        write!(f, "{shown}")?;
        // The names of parameters are hidden too: text after a '&' that should have been '%26' is part of a secret.
        if self.0.query().is_some() { f.write_str("?***") } else { Ok(()) }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

impl std::str::FromStr for StoreUrl {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

/// Parameters of a URL, which are removed one by one.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct StoreUrlParameters {
    values: BTreeMap<String, String>,
}

impl StoreUrlParameters {
    /// Removes and returns the parameter `name`.
    pub fn take(&mut self, name: &str) -> Option<String> {
        self.values.remove(name)
    }

    /// Removes the parameter `name` and parses it as a `T`.
    ///
    /// # Errors
    ///
    /// `invalid_argument` with the message of `T`, if the value cannot be parsed.
    pub fn take_as<T: std::str::FromStr<Err: fmt::Display>>(&mut self, name: &str) -> Result<Option<T>> {
        let read = |text: String| {
            text.parse().map_err(|error| {
                let message = format!("the store's URL has an invalid '{name}' ({error}); correct it");
                Error::invalid_argument(message)
            })
        };
        self.take(name).map(read).transpose()
    }

    /// Returns an error if parameters are left.
    ///
    /// # Errors
    ///
    /// `invalid_argument` with the names of the unknown parameters, and the list of `supported` ones.
    pub fn finish(self, supported: &str) -> Result<()> {
        if self.values.is_empty() {
            return Ok(());
        }
        // Text that is not a parameter name may be part of a secret.
        let is_name =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        let named = self.values.iter().filter(|(name, value)| is_name(name) && !value.is_empty());
        let names: Vec<&str> = named.map(|(name, _)| name.as_str()).collect();
        let unknown = if names.is_empty() { "without a name".to_owned() } else { names.join(", ") };
        let hint = "a '&' in a value is written as '%26', a '%' as '%25'";
        let message = format!("the store's URL has unknown parameters ({unknown}); known are {supported}; {hint}");
        Err(Error::invalid_argument(message))
    }
}

/// Shows only the number of parameters, as some are secrets.
impl fmt::Debug for StoreUrlParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreUrlParameters").field("count", &self.values.len()).finish_non_exhaustive()
    }
}

/// Decodes the percent-encoded characters of `text`, a part of a URL.
pub(crate) fn percent_decoded(text: &str) -> Result<String> {
    let refuse = || {
        Error::invalid_argument(
            "the store's URL has a '%' that does not begin the code of a character; write '%25' for a '%'",
        )
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = after.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit)).ok_or_else(refuse)?;
        let digits = std::str::from_utf8(digits).map_err(|_| refuse())?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| refuse())?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).map_err(|_| refuse())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_secret_is_printed() {
        for (text, shown) in [
            ("sqlite:///tmp/a.db", "sqlite:///tmp/a.db"),
            ("sqlite::memory:", "sqlite::memory:"),
            ("postgres://hidden:hidden@h:5432/db", "postgres://***@h:5432/db"),
            ("postgres://h/db?user=u&password=hidden", "postgres://h/db?***"),
            ("postgres://u@h/db?password=pa&hidden", "postgres://***@h/db?***"),
            ("postgres:u:hidden@h/db", "postgres:***"),
            ("redis://:hidden@h/0", "redis://***@h/0"),
            ("redis://hidden@h/0", "redis://***@h/0"),
            ("s3://b/p?secret_access_key=hidden&region=hidden#hidden", "s3://b/p?***"),
        ] {
            let url = StoreUrl::parse(text).expect("a URL");
            assert_eq!(url.to_string(), shown);
            assert!(!format!("{url:?} {:?}", url.split_parameters().expect("parameters").1).contains("hidden"));
        }
        let error = StoreUrl::parse("postgres://u:hidden@[h/db").expect_err("not a URL");
        assert!(!format!("{error} {error:?} {}", error.for_model()).contains("hidden"));
    }

    #[test]
    fn the_file_of_a_database_is_returned_and_may_be_relative_to_a_directory() {
        let base = Path::new("/base dir/ü");
        for (text, file, below) in [
            ("sqlite:a.db", Some("a.db"), Some("/base dir/ü/a.db")),
            ("sqlite:b/a%20c.db?readers=2", Some("b/a c.db"), Some("/base dir/ü/b/a c.db")),
            ("sqlite:../a.db", Some("../a.db"), Some("/base dir/a.db")),
            (r"sqlite:a\b.db", Some(r"a\b.db"), Some(r"/base dir/ü/a\b.db")),
            ("sqlite:///var/a.db", Some("/var/a.db"), Some("/var/a.db")),
            ("sqlite::memory:", None, None),
            ("redis://h/0", None, None),
        ] {
            let url = StoreUrl::parse(text).expect("a URL");
            assert_eq!(url.file().expect(text), file.map(PathBuf::from), "{text}");
            let absolute = url.in_directory(base).expect(text);
            assert_eq!(absolute.file().expect(text), below.map(PathBuf::from), "{text}");
            assert_eq!(absolute.expose().query(), url.expose().query(), "{text}");
        }
    }

    #[test]
    fn unknown_and_duplicate_parameters_are_refused() {
        let url = StoreUrl::parse("redis://h/0?ttl=5&typo=x").expect("a URL");
        let (bare, mut parameters) = url.split_parameters().expect("parameters");
        assert_eq!(bare.as_str(), "redis://h/0");
        assert_eq!(parameters.take_as::<u64>("ttl").expect("a number"), Some(5));
        let error = parameters.finish("ttl").expect_err("one is unknown");
        assert!(error.to_string().contains("typo"), "{error}");
        let url = StoreUrl::parse("s3://b?key=ab+c%2Fd&ss%26&hidden").expect("a URL");
        let (_, mut parameters) = url.split_parameters().expect("parameters");
        assert_eq!(parameters.take("key").as_deref(), Some("ab+c/d"));
        let error = parameters.finish("key").expect_err("others are left");
        assert!(!error.to_string().contains("hidden") && error.to_string().contains("%26"), "{error}");
        assert!(StoreUrl::parse("redis://h?a=1&a=2").expect("a URL").split_parameters().is_err());
    }
}
