//! Tables of backends.

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;
use vfs_local::{Confinement, Durability, HardLinks, MountPolicy, PathResolutionMode};
use vfs_store::StoreUrl;

use crate::setting_values::{ByteSize, HostPath, HumanDuration};

/// The backend that holds the files.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(tag = "type")]
pub(crate) enum BackendTable {
    /// A directory of the host.
    Local(LocalTable),
    /// Memory: empty at the start, and lost when the process exits.
    Memory(MemoryTable),
    /// A durable store: SQLite, Postgres, Redis or object storage.
    Store(StoreBackendTable),
}

/// A directory of the host.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LocalTable {
    /// The directory that is mounted. It has to exist.
    #[schemars(with = "HostPath")]
    pub(crate) root: Spanned<HostPath>,
    /// The files that a path can reach. Default: `root`.
    pub(crate) confinement: Option<ConfinementSetting>,
    /// The failures that an acknowledged write survives. Default: `full`.
    pub(crate) durability: Option<DurabilitySetting>,
    /// Whether files with several hard links can be read. Default: `allow`.
    pub(crate) hard_links: Option<HardLinksSetting>,
    /// Whether other file systems that are mounted below the directory can be reached. Default: `cross`.
    pub(crate) mounts: Option<MountsSetting>,
    /// How paths are resolved. Default: `automatic`.
    pub(crate) resolution: Option<ResolutionSetting>,
    /// Maximum size of a file that is written, edited, copied or downloaded whole. Default: 256 MiB.
    pub(crate) max_file_size: Option<ByteSize>,
    /// Maximum size of a file that is written in chunks, without holding it in memory. Default: `max_file_size` if that is set,
    /// otherwise 1 PiB.
    pub(crate) max_streamed_size: Option<ByteSize>,
    /// Maximum time that a change waits for another change of the same file. Default: 10s.
    pub(crate) lock_timeout: Option<HumanDuration>,
}

/// Files in memory.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryTable {
    /// Maximum size of a file. Default: 256 MiB.
    pub(crate) max_file_size: Option<ByteSize>,
    /// Maximum total size of all files. Default: no limit.
    pub(crate) max_total_size: Option<ByteSize>,
}

/// A durable store, with its URL in `url`, or in the environment variable `url_env` if the URL contains a secret.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoreBackendTable {
    /// The URL of the store: `sqlite:memories.db` (relative to the directory of this file, and hidden if that is mounted),
    /// `postgres://user@host/database`, `redis://host/0`, `s3://bucket/prefix`. Parameters after a `?` are specific to the store.
    #[schemars(with = "Option<String>")]
    pub(crate) url: Option<Spanned<StoreUrlSetting>>,
    /// The environment variable that contains the URL.
    #[schemars(with = "Option<String>")]
    pub(crate) url_env: Option<Spanned<String>>,
    /// The namespace of the files in the store, such as `acme/{actor}`; `{actor}` and `{session}` are replaced by those of each
    /// call. Files of other namespaces are out of reach. Default: the namespace without a name.
    #[schemars(with = "Option<String>")]
    pub(crate) namespace: Option<Spanned<String>>,
    /// Maximum size of a file. Default: 256 MiB, or the limit of the store.
    pub(crate) max_file_size: Option<ByteSize>,
    /// Maximum size of a file that is written in chunks, without holding it in memory. Default: `max_file_size` if that is set,
    /// otherwise no limit but that of the store.
    pub(crate) max_streamed_size: Option<ByteSize>,
}

/// The URL of a store, parsed when the file is read.
#[derive(Debug, Clone)]
pub(crate) struct StoreUrlSetting(pub(crate) StoreUrl);

impl<'de> Deserialize<'de> for StoreUrlSetting {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        StoreUrl::parse(&text).map(Self).map_err(|error| serde::de::Error::custom(error.message()))
    }
}

/// Defines enums of settings, each with a conversion to an enum of `vfs-local`.
macro_rules! settings {
    ($($(#[doc = $doc:literal])+ $name:ident for $type:ident { $($(#[doc = $value_doc:literal])+ $setting:ident => $value:ident,)+ })+) => {$(
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub(crate) enum $name {
            $($(#[doc = $value_doc])+ $setting,)+
        }

        impl From<$name> for $type {
            fn from(setting: $name) -> Self {
                match setting { $($name::$setting => $type::$value,)+ }
            }
        }
    )+};
}

settings! {
    /// The files that a path can reach.
    ConfinementSetting for Confinement {
        /// Only files below the root: the kernel refuses every way out, links included.
        Root => Root,
        /// Every file that this process can reach, by its host path. This provides no security.
        None => None,
    }

    /// The failures that an acknowledged write survives.
    DurabilitySetting for Durability {
        /// A power failure.
        Full => Full,
        /// A crash of the process.
        Atomic => Atomic,
    }

    /// Whether files with several hard links can be read.
    HardLinksSetting for HardLinks {
        /// They can be read.
        Allow => Allow,
        /// Reading them is refused.
        Refuse => Refuse,
    }

    /// Whether other file systems that are mounted below the directory can be reached.
    MountsSetting for MountPolicy {
        /// They can be reached.
        Cross => Cross,
        /// Access to them is refused.
        Stay => Stay,
    }

    /// How paths are resolved.
    ResolutionSetting for PathResolutionMode {
        /// By the kernel if it supports that.
        Automatic => Automatic,
        /// One component at a time: slower, with the same confinement.
        Portable => Portable,
    }
}
