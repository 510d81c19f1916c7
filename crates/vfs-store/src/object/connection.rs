//! Clients of object storage services.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::list::PaginatedListStore;
use object_store::{BackoffConfig, ObjectStore, RetryConfig};
use url::Url;
use vfs_core::{Error, Result};

use super::config::{BucketConfig, BucketProvider};
use super::error::BucketError;
use super::http_transport::{AttemptRecordingConnector, OperationTimeout, UnsignedHeaderSupport};
use super::list::{KeyParsing, ListSource};
use super::object_client::{ConditionBasis, ObjectClient};
use super::object_metadata::MetadataNames;
use super::repeatable_upload::RepeatableUploadFactory;

/// Returns the service of a configuration, without sending a request.
pub(super) fn connect(config: &BucketConfig) -> Result<(ObjectClient, ListSource)> {
    match config.service {
        BucketProvider::S3 => s3(config),
        #[cfg(feature = "gcp")]
        BucketProvider::Google => google(config),
        #[cfg(feature = "azure")]
        BucketProvider::Azure => azure(config),
    }
}

fn s3(config: &BucketConfig) -> Result<(ObjectClient, ListSource)> {
    let has_key = config.options.iter().any(|(option, _)| *option == "access_key_id");
    let mut builder = AmazonS3Builder::new();
    for (name, value) in environment("AWS_") {
        // A session token in the environment belongs to the key in the environment.
        match name.parse() {
            Ok(AmazonS3ConfigKey::Token) if has_key => {}
            Ok(key) => builder = builder.with_config(key, value),
            Err(_) => {}
        }
    }
    for (option, value) in &config.options {
        // `AWS_ENDPOINT_URL_S3` in the environment would take precedence over an `endpoint` of the URL.
        let option = if *option == "endpoint" { "aws_endpoint_url_s3" } else { option };
        builder = builder.with_config(option.parse().map_err(|error| unusable(config, error))?, value);
    }
    let setting = |key: AmazonS3ConfigKey| builder.get_config_value(&key);
    let endpoint = setting(AmazonS3ConfigKey::S3Endpoint).or_else(|| setting(AmazonS3ConfigKey::Endpoint));
    let allow_http = setting(AmazonS3ConfigKey::Client(object_store::ClientConfigKey::AllowHttp));
    check_endpoint(endpoint.as_deref(), allow_http.as_deref())?;
    if setting(AmazonS3ConfigKey::AccessKeyId).is_some() != setting(AmazonS3ConfigKey::SecretAccessKey).is_some() {
        let reason =
            "an access key and its secret belong together; give both access_key_id and secret_access_key, or neither";
        return Err(Error::invalid_argument(reason));
    }
    let store = builder
        .with_bucket_name(&config.bucket)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_disable_bulk_delete(true)
        .with_retry(retries(config))
        .with_http_connector(AttemptRecordingConnector {
            unsigned: UnsignedHeaderSupport::Accepted,
            request_timeout: config.request_timeout,
        })
        .build()
        .map_err(|error| unusable(config, error))?;
    let uploads = RepeatableUploadFactory::new(store.clone());
    let (mut service, source) = parts(config, store, ConditionBasis::Tags, MetadataNames::HYPHENED, KeyParsing::Raw);
    service.repeatable_uploads = Some(uploads);
    Ok((service, source))
}

#[cfg(feature = "gcp")]
fn google(config: &BucketConfig) -> Result<(ObjectClient, ListSource)> {
    use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};

    let mut builder = GoogleCloudStorageBuilder::from_env();
    for (option, value) in &config.options {
        builder = builder.with_config(option.parse().map_err(|error| unusable(config, error))?, value);
    }
    let setting = |key: GoogleConfigKey| builder.get_config_value(&key);
    let allow_http = setting(GoogleConfigKey::Client(object_store::ClientConfigKey::AllowHttp));
    check_endpoint(setting(GoogleConfigKey::BaseUrl).as_deref(), allow_http.as_deref())?;
    let store = builder
        .with_bucket_name(&config.bucket)
        .with_retry(retries(config))
        .with_http_connector(AttemptRecordingConnector {
            unsigned: UnsignedHeaderSupport::Rejected,
            request_timeout: config.request_timeout,
        })
        .build()
        .map_err(|error| unusable(config, error))?;
    Ok(parts(config, store, ConditionBasis::Generations, MetadataNames::HYPHENED, KeyParsing::Raw))
}

#[cfg(feature = "azure")]
fn azure(config: &BucketConfig) -> Result<(ObjectClient, ListSource)> {
    use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};

    let mut builder = MicrosoftAzureBuilder::from_env();
    for (option, value) in &config.options {
        builder = builder.with_config(option.parse().map_err(|error| unusable(config, error))?, value);
    }
    let setting = |key: AzureConfigKey| builder.get_config_value(&key);
    let allow_http = setting(AzureConfigKey::Client(object_store::ClientConfigKey::AllowHttp));
    check_endpoint(setting(AzureConfigKey::Endpoint).as_deref(), allow_http.as_deref())?;
    let store = builder
        .with_container_name(&config.bucket)
        .with_retry(retries(config))
        .with_http_connector(AttemptRecordingConnector {
            unsigned: UnsignedHeaderSupport::Rejected,
            request_timeout: config.request_timeout,
        })
        .build()
        .map_err(|error| unusable(config, error))?;
    Ok(parts(config, store, ConditionBasis::Tags, MetadataNames::UNDERSCORED, KeyParsing::Parsed))
}

fn parts<S: ObjectStore + PaginatedListStore>(
    config: &BucketConfig,
    store: S,
    conditions: ConditionBasis,
    labels: MetadataNames,
    keys: KeyParsing,
) -> (ObjectClient, ListSource) {
    let store = Arc::new(store);
    let limit = OperationTimeout::new(config.request_timeout.max(config.retry_timeout));
    let objects = Arc::clone(&store) as Arc<dyn ObjectStore>;
    let service = ObjectClient { objects, conditions, labels, limit, repeatable_uploads: None };
    (service, ListSource::Paged { store, keys, limit })
}

/// Returns the environment variables whose names begin with `prefix`, with their names in lower case.
fn environment(prefix: &str) -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(move |(name, _)| name.starts_with(prefix))
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
}

fn retries(config: &BucketConfig) -> RetryConfig {
    let backoff =
        BackoffConfig { init_backoff: Duration::from_millis(100), max_backoff: Duration::from_secs(5), base: 2.0 };
    RetryConfig { backoff, max_retries: config.max_retries, retry_timeout: config.retry_timeout }
}

fn check_endpoint(endpoint: Option<&str>, allow_http: Option<&str>) -> Result<()> {
    let Some(endpoint) = endpoint else { return Ok(()) };
    let refuse = |reason: &'static str| Err(Error::invalid_argument(reason));
    match Url::parse(endpoint) {
        Ok(url) if !url.username().is_empty() || url.password().is_some() => refuse(
            "the endpoint of the bucket has a name or password in it; give access_key_id and secret_access_key instead",
        ),
        Ok(url) if url.scheme() == "http" && !allow_http.is_some_and(is_yes) => {
            refuse("the endpoint of the bucket is not encrypted; if this is intended, add allow_http=true to the URL")
        }
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(()),
        _ => refuse("the endpoint of the bucket is not a URL; write it as 'https://storage.example.org'"),
    }
}

/// Returns whether a setting that may come from the environment is on.
pub(super) fn is_yes(setting: &str) -> bool {
    matches!(setting.to_ascii_lowercase().as_str(), "1" | "true" | "on" | "yes" | "y")
}

fn unusable(config: &BucketConfig, error: object_store::Error) -> Error {
    let reason = BucketError::from(error).error(&config.to_string());
    Error::invalid_argument(format!("{}; correct the URL, or the environment", reason.message()))
        .with_model_message("Error: the storage is not set up")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_encrypted_unless_http_is_allowed() {
        for (endpoint, allow_http, is_right) in [
            (None, None, true),
            (Some("https://h"), None, true),
            (Some("http://h:9000"), Some("true"), true),
            (Some("http://h:9000"), Some("1"), true),
            (Some("http://h:9000"), Some("false"), false),
            (Some("http://h:9000"), None, false),
            (Some("https://u:hidden@h"), None, false),
            (Some("h:9000"), None, false),
            (Some("hidden"), None, false),
        ] {
            let checked = check_endpoint(endpoint, allow_http);
            assert_eq!(checked.is_ok(), is_right, "{endpoint:?}");
            assert!(!format!("{checked:?}").contains("hidden"));
        }
    }
}
