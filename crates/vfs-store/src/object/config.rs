//! Configuration of a bucket store.

use std::fmt;
use std::time::Duration;

use vfs_core::{Error, Result};

use super::key_layout::KeyLayout;
#[cfg(not(all(feature = "gcp", feature = "azure")))]
use crate::admin::open::missing_feature;
use crate::admin::store_url::{StoreUrl, StoreUrlParameters, percent_decoded};

/// Object storage service of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BucketProvider {
    /// Amazon S3 and compatible services: MinIO, R2, Ceph and others.
    S3,
    /// Google Cloud Storage.
    #[cfg(feature = "gcp")]
    Google,
    /// Azure Blob Storage.
    #[cfg(feature = "azure")]
    Azure,
}

impl BucketProvider {
    fn from_scheme(scheme: &str) -> Result<Self> {
        match scheme {
            "s3" => Ok(Self::S3),
            #[cfg(feature = "gcp")]
            "gs" => Ok(Self::Google),
            #[cfg(not(feature = "gcp"))]
            "gs" => Err(missing_feature(scheme, "gcp")),
            #[cfg(feature = "azure")]
            "az" => Ok(Self::Azure),
            #[cfg(not(feature = "azure"))]
            "az" => Err(missing_feature(scheme, "azure")),
            _ => Err(Error::invalid_argument("the URL of a bucket begins with 's3://'")),
        }
    }

    /// Returns the scheme of the URLs of the service.
    pub(super) fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            #[cfg(feature = "gcp")]
            Self::Google => "gs",
            #[cfg(feature = "azure")]
            Self::Azure => "az",
        }
    }

    /// Returns the parameters of the URLs of the service, each with the option of `object_store` that it sets.
    fn parameters(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::S3 => &[
                ("region", "region"),
                ("endpoint", "endpoint"),
                ("access_key_id", "access_key_id"),
                ("secret_access_key", "secret_access_key"),
                ("session_token", "session_token"),
                ("allow_http", "allow_http"),
                ("virtual_hosted", "virtual_hosted_style_request"),
            ],
            #[cfg(feature = "gcp")]
            Self::Google => {
                &[("service_account", "service_account"), ("endpoint", "google_base_url"), ("allow_http", "allow_http")]
            }
            #[cfg(feature = "azure")]
            Self::Azure => &[
                ("account", "account_name"),
                ("access_key", "access_key"),
                ("sas_token", "sas_token"),
                ("endpoint", "endpoint"),
                ("allow_http", "allow_http"),
                ("emulator", "use_emulator"),
            ],
        }
    }
}

/// Configuration of a [`BucketStore`](super::BucketStore): the bucket, and the settings of its requests.
///
/// # Behaviour
///
/// Settings that are missing in the URL are read from the environment, as by the tools of the services: for S3
/// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT_URL`,
/// `AWS_ALLOW_HTTP` and others, then the role of the machine or container; for Google Cloud Storage `GOOGLE_*`, for
/// Azure `AZURE_*`. A key in the URL is used without the session token of the environment.
///
/// ```
/// use vfs_store::BucketConfig;
///
/// let config = BucketConfig::new("s3://agents/files?region=eu-central-1&secret_access_key=hidden")?;
/// assert_eq!(config.to_string(), "s3://agents/files");
/// assert!(!format!("{config:?}").contains("hidden"));
/// assert!(BucketConfig::new("s3://agents?regoin=eu-central-1").is_err());
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Clone)]
pub struct BucketConfig {
    pub(super) service: BucketProvider,
    pub(super) bucket: String,
    pub(super) layout: KeyLayout,
    /// Options of `object_store` with their values.
    pub(super) options: Vec<(&'static str, String)>,
    pub(super) request_timeout: Duration,
    pub(super) retry_timeout: Duration,
    pub(super) max_retries: usize,
}

impl BucketConfig {
    /// The default of [`request_timeout`](Self::request_timeout).
    pub const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
    /// The default of [`retry_timeout`](Self::retry_timeout).
    pub const DEFAULT_RETRY_TIMEOUT: Duration = Duration::from_secs(30);
    /// The default of [`max_retries`](Self::max_retries).
    pub const DEFAULT_MAX_RETRIES: usize = 6;

    /// Parses the URL of a bucket: `s3://bucket/prefix?region=..&endpoint=..`, or `gs://` and `az://` with their
    /// features.
    ///
    /// # Behaviour
    ///
    /// * All files are below `prefix`, or in the whole bucket if there is no prefix.
    /// * Parameters of `s3://` are `region`, `endpoint` (the URL of a service other than Amazon's), `access_key_id`,
    ///   `secret_access_key`, `session_token`, `allow_http` (`true` for an endpoint without encryption) and
    ///   `virtual_hosted` (`true` if the bucket is a part of the host name of the endpoint).
    /// * Parameters of `gs://` are `service_account` (the path of its file), `endpoint` and `allow_http`; of `az://`,
    ///   whose bucket is the container, `account`, `access_key`, `sas_token`, `endpoint`, `allow_http` and `emulator`.
    ///
    /// # Errors
    ///
    /// `invalid_argument` for an invalid URL, an unknown parameter, or an endpoint with a password in it; `unsupported` for `gs://`
    /// and `az://` without their features.
    pub fn new(url: &str) -> Result<Self> {
        Self::from_url(&StoreUrl::parse(url)?)
    }

    /// Reads the configuration from a parsed URL; see [`new`](Self::new).
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn from_url(url: &StoreUrl) -> Result<Self> {
        let service = BucketProvider::from_scheme(url.scheme())?;
        let (bare, parameters) = url.split_parameters()?;
        if !bare.username().is_empty()
            || bare.password().is_some()
            || bare.port().is_some()
            || bare.fragment().is_some()
        {
            let reason = "the URL of a bucket is 's3://bucket/prefix'; a key and an endpoint are parameters: '?access_key_id=..&secret_access_key=..&endpoint=..'";
            return Err(Error::invalid_argument(reason));
        }
        let Some(bucket) = bare.host_str().filter(|host| !host.is_empty()) else {
            return Err(Error::invalid_argument("the URL names no bucket; write it as 's3://bucket/prefix'"));
        };
        Ok(Self {
            service,
            bucket: bucket.to_owned(),
            layout: KeyLayout::new(&percent_decoded(bare.path())?)?,
            options: options(service, parameters)?,
            request_timeout: Self::DEFAULT_REQUEST_TIMEOUT,
            retry_timeout: Self::DEFAULT_RETRY_TIMEOUT,
            max_retries: Self::DEFAULT_MAX_RETRIES,
        })
    }

    /// Sets how long one request may take, from its first byte to the last byte of its response. A value of over 16 MiB
    /// is sent in several requests, and one of over 8 MiB is read in several.
    #[must_use]
    pub fn request_timeout(mut self, limit: Duration) -> Self {
        self.request_timeout = limit;
        self
    }

    /// Sets how long a request is retried after failures of the service or the network, from its first attempt.
    ///
    /// A request with all its attempts takes at most the longer of this time and
    /// [`request_timeout`](Self::request_timeout). After a change that fails so, the store tries for another 5 s to
    /// determine its outcome: with the defaults, a change without a network fails after 35 s.
    #[must_use]
    pub fn retry_timeout(mut self, limit: Duration) -> Self {
        self.retry_timeout = limit;
        self
    }

    /// Sets the maximum number of retries of such a request, with pauses of 0.1 s to 5 s between the attempts. 0
    /// disables retries.
    #[must_use]
    pub fn max_retries(mut self, count: usize) -> Self {
        self.max_retries = count;
        self
    }
}

/// Writes the bucket and the prefix, without endpoint and credentials.
impl fmt::Display for BucketConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.service.scheme(), self.bucket)?;
        match self.layout.prefix() {
            "" => Ok(()),
            prefix => write!(f, "/{prefix}"),
        }
    }
}

/// Writes the names of the options that are set, without their values.
impl fmt::Debug for BucketConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options: Vec<&str> = self.options.iter().map(|(name, _)| *name).collect();
        f.debug_struct("BucketConfig")
            .field("bucket", &self.to_string())
            .field("options", &options)
            .field("request_timeout", &self.request_timeout)
            .field("retry_timeout", &self.retry_timeout)
            .field("max_retries", &self.max_retries)
            .finish()
    }
}

fn options(service: BucketProvider, mut parameters: StoreUrlParameters) -> Result<Vec<(&'static str, String)>> {
    let supported = service.parameters();
    let mut options = Vec::new();
    for (name, option) in supported {
        let value = match *name {
            "allow_http" | "virtual_hosted" | "emulator" => {
                parameters.take_as::<bool>(name)?.map(|value| value.to_string())
            }
            _ => parameters.take(name),
        };
        options.extend(value.map(|value| (*option, value)));
    }
    let names: Vec<&str> = supported.iter().map(|(name, _)| *name).collect();
    parameters.finish(&names.join(", "))?;
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_bucket_and_prefix() {
        for (text, shown) in [
            ("s3://b", "s3://b"),
            ("s3://b/", "s3://b"),
            ("s3://b/p/q/?region=r", "s3://b/p/q"),
            ("s3://b.with-dots/a%20b/%C3%BC", "s3://b.with-dots/a b/ü"),
        ] {
            assert_eq!(BucketConfig::new(text).expect("a bucket").to_string(), shown);
        }
    }

    #[test]
    fn an_invalid_url_is_refused_without_showing_secrets() {
        for text in [
            "s3:///p",
            "s3://",
            "s3://hidden:hidden@b",
            "s3://key:hidden@b/p",
            "s3://b/a//b",
            "s3://b?unknown=hidden",
            "s3://b?allow_http=hidden",
            "s3://b/%ff",
            "s3://b/=/org",
            "http://b/hidden",
        ] {
            let error = BucketConfig::new(text).expect_err(text);
            assert_eq!(error.kind(), vfs_core::ErrorKind::InvalidArgument, "{text}");
            assert!(!format!("{error:?}{}", error.for_model()).contains("hidden"), "{error:?}");
        }
    }

    #[test]
    fn nothing_secret_is_printed() {
        let config = BucketConfig::new("s3://b?secret_access_key=hidden&access_key_id=hidden&session_token=hidden")
            .expect("a bucket");
        let printed = format!("{config} {config:?}");
        assert!(!printed.contains("hidden") && printed.contains("secret_access_key"), "{printed}");
    }
}
