//! Opening of a store by URL.

use std::sync::Arc;

use vfs_core::{Error, Result};

use super::store_url::StoreUrl;
use crate::memory::MemoryStore;
use crate::store::Store;

/// Opens the store that `url` names.
///
/// # Behaviour
///
/// | URL | store | feature |
/// |---|---|---|
/// | `sqlite:relative.db`, `sqlite:///absolute/path.db`, `sqlite::memory:` | `SqliteStore` | `sqlite` |
/// | `postgres://user:password@host:5432/database`, `postgresql://...` | `PostgresStore` | `postgres` |
/// | `redis://:password@host:6379/0`, `rediss://...` with TLS | `RedisStore` | `redis` |
/// | `s3://bucket/prefix?region=...` | `BucketStore` | `object-store` |
/// | `gs://bucket/prefix` | `BucketStore` | `gcp` |
/// | `az://container/prefix` | `BucketStore` | `azure` |
/// | `memory:` | [`MemoryStore`], empty and of this process | |
///
/// The configuration of each store documents the parameters that may follow a `?`.
///
/// # Errors
///
/// `invalid_argument` for an unknown scheme or an invalid URL; `unsupported` with the name of the feature, if the store
/// is not enabled in this build; and errors of opening the store.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> vfs_core::Result<()> {
/// use vfs_store::{StoreUrl, open_store};
///
/// let store = open_store(&StoreUrl::parse("memory:")?).await?;
/// assert!(store.namespaces().await?.is_empty());
/// assert!(open_store(&StoreUrl::parse("mysql://host/db")?).await.is_err());
/// # Ok(())
/// # }
/// ```
pub async fn open_store(url: &StoreUrl) -> Result<Arc<dyn Store>> {
    match url.scheme() {
        "memory" => {
            let (_, parameters) = url.split_parameters()?;
            parameters.finish("none")?;
            Ok(Arc::new(MemoryStore::new()))
        }
        "sqlite" => sqlite(url).await,
        "postgres" | "postgresql" => postgres(url).await,
        "redis" | "rediss" => redis(url).await,
        "s3" | "gs" | "az" => bucket(url).await,
        other => {
            let message =
                format!("there is no store for '{other}:'; use sqlite, postgres, redis, s3, gs, az or memory");
            Err(Error::invalid_argument(message))
        }
    }
}

macro_rules! openers {
    ($($opener:ident $feature:literal $config:ident $store:ident;)+) => {$(
        #[cfg(feature = $feature)]
        async fn $opener(url: &StoreUrl) -> Result<Arc<dyn Store>> {
            Ok(Arc::new(crate::$store::open(crate::$config::from_url(url)?).await?))
        }

        #[cfg(not(feature = $feature))]
        async fn $opener(url: &StoreUrl) -> Result<Arc<dyn Store>> {
            Err(missing_feature(url.scheme(), $feature))
        }
    )+};
}

openers! {
    sqlite "sqlite" SqliteConfig SqliteStore;
    postgres "postgres" PostgresConfig PostgresStore;
    redis "redis" RedisConfig RedisStore;
    bucket "object-store" BucketConfig BucketStore;
}

/// Returns the error that the stores of `scheme` are not enabled in this build. They need `feature`, or a feature that includes it.
#[cfg(not(all(feature = "sqlite", feature = "postgres", feature = "redis", feature = "gcp", feature = "azure")))]
pub(crate) fn missing_feature(scheme: &str, feature: &str) -> Error {
    let feature = match scheme {
        "gs" => "gcp",
        "az" => "azure",
        _ => feature,
    };
    let message = format!("stores at '{scheme}:' are not enabled in this build; build with the feature '{feature}'");
    let detail = vfs_core::error::ErrorDetail::MissingFeature { feature: feature.to_owned() };
    Error::new(vfs_core::ErrorKind::Unsupported, message).with_detail(detail)
}

#[cfg(test)]
mod tests {
    use vfs_core::ErrorKind;
    use vfs_core::error::ErrorDetail;

    use super::*;

    #[tokio::test]
    async fn the_error_for_an_unknown_scheme_lists_the_supported_ones() {
        let refused = |text: &'static str| async move {
            open_store(&StoreUrl::parse(text).expect("a URL")).await.map(drop).expect_err(text)
        };
        let error = refused("mysql://host/db").await;
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("postgres") && error.message().contains("mysql"), "{error}");
        assert_eq!(refused("memory:?size=1").await.kind(), ErrorKind::InvalidArgument);
        for (text, is_built_in, feature) in [
            ("sqlite:?typo=1", cfg!(feature = "sqlite"), "sqlite"),
            ("postgres://h/db?typo=1", cfg!(feature = "postgres"), "postgres"),
            ("rediss://h?typo=1", cfg!(feature = "redis"), "redis"),
            ("s3://b?typo=1", cfg!(feature = "object-store"), "object-store"),
            ("gs://b?typo=1", cfg!(feature = "gcp"), "gcp"),
            ("az://c?typo=1", cfg!(feature = "azure"), "azure"),
        ] {
            let error = refused(text).await;
            let expected = if is_built_in { ErrorKind::InvalidArgument } else { ErrorKind::Unsupported };
            assert_eq!(error.kind(), expected, "{text}: {error}");
            assert!(error.message().contains(if is_built_in { "typo" } else { feature }), "{text}: {error}");
            let missing = Some(&ErrorDetail::MissingFeature { feature: feature.to_owned() });
            assert_eq!(error.detail(), if is_built_in { None } else { missing }, "{text}");
        }
    }
}
