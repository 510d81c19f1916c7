//! Configuration of a bucket store.

use std::fmt;
use std::time::Duration;

use vfs_core::{Error, Result};

use super::names::KeyLayout;
use crate::admin::url::{Parameters, StoreUrl, percent_decoded};

/// Which service a bucket is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BucketService {
    /// Amazon S3, and what speaks its language: MinIO, R2, Ceph and others.
    S3,
    /// Google Cloud Storage.
    #[cfg(feature = "gcp")]
    Google,
    /// Azure Blob Storage.
    #[cfg(feature = "azure")]
    Azure,
}

impl BucketService {
    fn of(scheme: &str) -> Result<Self> {
        match scheme {
            "s3" => Ok(Self::S3),
            #[cfg(feature = "gcp")]
            "gs" => Ok(Self::Google),
            #[cfg(not(feature = "gcp"))]
            "gs" => Err(Error::invalid_argument(
                "this program is built without Google Cloud Storage; build it with the feature 'gcp'",
            )),
            #[cfg(feature = "azure")]
            "az" => Ok(Self::Azure),
            #[cfg(not(feature = "azure"))]
            "az" => Err(Error::invalid_argument(
                "this program is built without Azure Blob Storage; build it with the feature 'azure'",
            )),
            _ => Err(Error::invalid_argument("the URL of a bucket begins with 's3://'")),
        }
    }

    /// What its URLs begin with.
    pub(super) fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            #[cfg(feature = "gcp")]
            Self::Google => "gs",
            #[cfg(feature = "azure")]
            Self::Azure => "az",
        }
    }

    /// The parameters of its URLs, each with the option of `object_store` that it sets.
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

/// How to reach a bucket.
///
/// # Behaviour
///
/// What the URL does not say is taken from the environment, as the tools of the services do: for S3 `AWS_ACCESS_KEY_ID`,
/// `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP` and others, then the role of
/// the machine or container; for Google Cloud Storage `GOOGLE_*`, for Azure `AZURE_*`. A key in the URL is used without the
/// session token of the environment.
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
    pub(super) service: BucketService,
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

    /// The bucket of a URL: `s3://bucket/prefix?region=..&endpoint=..`, or `gs://` and `az://` with their features.
    ///
    /// # Behaviour
    ///
    /// * All files are below `prefix`, or in the whole bucket where there is none.
    /// * Parameters of `s3://` are `region`, `endpoint` (the URL of another service than Amazon's), `access_key_id`,
    ///   `secret_access_key`, `session_token`, `allow_http` (`true` for an endpoint without encryption) and `virtual_hosted`
    ///   (`true` where the bucket is a part of the endpoint's name).
    /// * Parameters of `gs://` are `service_account` (the path of its file), `endpoint` and `allow_http`; of `az://`, whose bucket
    ///   is the container, `account`, `access_key`, `sas_token`, `endpoint`, `allow_http` and `emulator`.
    ///
    /// # Errors
    ///
    /// `invalid_argument` for what cannot be read, an unknown parameter, or an endpoint with a password in it.
    pub fn new(url: &str) -> Result<Self> {
        Self::from_url(&StoreUrl::parse(url)?)
    }

    /// The bucket of a URL that was read already; see [`new`](Self::new).
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn from_url(url: &StoreUrl) -> Result<Self> {
        let service = BucketService::of(url.scheme())?;
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

    /// How long one request may take, from its first byte to the last of its answer. A value of over 16 MiB is sent
    /// in many, and one of over 8 MiB is read in many.
    #[must_use]
    pub fn request_timeout(mut self, limit: Duration) -> Self {
        self.request_timeout = limit;
        self
    }

    /// How long a request is tried again that a fault of the service or of the network ended, from its first attempt.
    ///
    /// A request with all its attempts takes at most the longer of this and [`request_timeout`](Self::request_timeout). A change
    /// that ends so is looked up for 5 s more: on a dead network a change fails after 35 s, unless it was set otherwise.
    #[must_use]
    pub fn retry_timeout(mut self, limit: Duration) -> Self {
        self.retry_timeout = limit;
        self
    }

    /// How often such a request is tried again, with pauses of 0.1 s to 5 s between the attempts. 0 is never.
    #[must_use]
    pub fn max_retries(mut self, count: usize) -> Self {
        self.max_retries = count;
        self
    }
}

/// The bucket and the prefix: neither where it is nor who asks.
impl fmt::Display for BucketConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.service.scheme(), self.bucket)?;
        match self.layout.prefix() {
            "" => Ok(()),
            prefix => write!(f, "/{prefix}"),
        }
    }
}

/// With the names of the options that are set, and without their values.
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

fn options(service: BucketService, mut parameters: Parameters) -> Result<Vec<(&'static str, String)>> {
    let known = service.parameters();
    let mut options = Vec::new();
    for (name, option) in known {
        let value = match *name {
            "allow_http" | "virtual_hosted" | "emulator" => {
                parameters.take_as::<bool>(name)?.map(|value| value.to_string())
            }
            _ => parameters.take(name),
        };
        options.extend(value.map(|value| (*option, value)));
    }
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    parameters.finish(&names.join(", "))?;
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_where_the_files_are() {
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
    fn what_is_wrong_is_refused_without_showing_secrets() {
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
