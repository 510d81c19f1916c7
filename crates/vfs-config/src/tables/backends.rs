//! Places for files.

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;
use vfs_local::{Confinement, Durability, HardLinks, Mounts, Resolution};
use vfs_store::StoreUrl;

use crate::values::{HostPath, Size, Time};

/// Where files are.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(tag = "type")]
pub(crate) enum BackendTable {
    /// A directory of this machine.
    Local(LocalTable),
    /// Memory: empty at first, and gone with the process.
    Memory(MemoryTable),
    /// A durable store: SQLite, Postgres, Redis or object storage.
    Store(DurableTable),
}

/// A directory of this machine.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LocalTable {
    /// The directory that is shown. It has to exist.
    #[schemars(with = "HostPath")]
    pub(crate) root: Spanned<HostPath>,
    /// What a path may reach. Default: `root`.
    pub(crate) confinement: Option<ConfinementWord>,
    /// What an acknowledged write survives. Default: `full`.
    pub(crate) durability: Option<DurabilityWord>,
    /// Whether files with more than one name may be read. Default: `allow`.
    pub(crate) hard_links: Option<HardLinksWord>,
    /// Whether file systems mounted below the directory belong to it. Default: `cross`.
    pub(crate) mounts: Option<MountsWord>,
    /// How paths are resolved. Default: `automatic`.
    pub(crate) resolution: Option<ResolutionWord>,
    /// The largest file that is written, edited, copied or downloaded whole. Default: 256 MiB.
    pub(crate) max_file_size: Option<Size>,
    /// How long a change waits for another change of the same file. Default: 10s.
    pub(crate) lock_timeout: Option<Time>,
}

/// Memory.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryTable {
    /// The largest file. Default: 256 MiB.
    pub(crate) max_file_size: Option<Size>,
    /// Most bytes of all files together. Default: no bound.
    pub(crate) max_total_size: Option<Size>,
}

/// A durable store. It is named by `url`, or by `url_env` where the URL has a secret.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DurableTable {
    /// Where it is: `sqlite:memories.db` (relative to the directory of this file, and hidden where that is shown),
    /// `postgres://user@host/database`, `redis://host/0`, `s3://bucket/prefix`. Parameters after a `?` are the store's own.
    #[schemars(with = "Option<String>")]
    pub(crate) url: Option<Spanned<Url>>,
    /// The variable of the environment that has the URL.
    #[schemars(with = "Option<String>")]
    pub(crate) url_env: Option<Spanned<String>>,
    /// Whose files these are, such as `acme/{actor}`, with the actor and session of each call in the place of `{actor}` and
    /// `{session}`. Files of another namespace are never seen. Default: one without a name.
    #[schemars(with = "Option<String>")]
    pub(crate) namespace: Option<Spanned<String>>,
    /// The largest file. Default: 256 MiB, or what the store can hold.
    pub(crate) max_file_size: Option<Size>,
}

/// The URL of a store; whatever prints it shows no secret.
#[derive(Debug, Clone)]
pub(crate) struct Url(pub(crate) StoreUrl);

impl<'de> Deserialize<'de> for Url {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        StoreUrl::parse(&text).map(Self).map_err(|error| serde::de::Error::custom(error.message()))
    }
}

macro_rules! words {
    ($($(#[doc = $doc:literal])+ $name:ident for $type:ident { $($(#[doc = $word_doc:literal])+ $word:ident => $value:ident,)+ })+) => {$(
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub(crate) enum $name {
            $($(#[doc = $word_doc])+ $word,)+
        }

        impl From<$name> for $type {
            fn from(word: $name) -> Self {
                match word { $($name::$word => $type::$value,)+ }
            }
        }
    )+};
}

words! {
    /// What a path may reach.
    ConfinementWord for Confinement {
        /// Only what lies below the root: the kernel refuses every way out, links included.
        Root => Root,
        /// Everything that this process may reach: paths are the host's own. No security at all.
        None => None,
    }

    /// What an acknowledged write survives.
    DurabilityWord for Durability {
        /// A power cut.
        Full => Full,
        /// A crash of the process.
        Atomic => Atomic,
    }

    /// Whether files with more than one name may be read.
    HardLinksWord for HardLinks {
        /// They may.
        Allow => Allow,
        /// They are refused.
        Refuse => Refuse,
    }

    /// Whether other file systems belong to the directory.
    MountsWord for Mounts {
        /// They do.
        Cross => Cross,
        /// They are refused.
        Stay => Stay,
    }

    /// How paths are resolved.
    ResolutionWord for Resolution {
        /// By the kernel where it can.
        Automatic => Automatic,
        /// A component at a time: slower, and just as confined.
        Portable => Portable,
    }
}
