//! Serde tables of the configuration file. Doc comments of keys are descriptions in the JSON schema.

mod backends;
mod layers;
mod rules;

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, IntoDeserializer as _, Visitor};
use toml::Spanned;
use vfs_core::VfsPath;

use crate::setting_values::HostPath;

pub(crate) use self::backends::{BackendTable, LocalTable, MemoryTable, StoreBackendTable};
pub(crate) use self::layers::{
    AuditTable, CacheTable, CheckpointsTable, ConcurrencyTable, LayerStoragePath, LayerTable, OverlayTable,
    PolicyTable, QuotaTable, RetryTable, TimeoutTable,
};
pub(crate) use self::rules::{RuleTable, RulesTable};

/// The namespace of an agent: its backends, its mounts and the layers around them.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "vfs.toml")]
pub(crate) struct ConfigFileTable {
    /// The directory of the journal of moves across mounts, from which the next process recovers moves that a crash interrupted;
    /// or false for no journal: files of an interrupted move may then stay at both ends. The directory is created if missing, and
    /// hidden if it is in a mounted directory. Default: `.vfs/moves`, if that is writable.
    #[schemars(with = "Option<JournalSchema>")]
    pub(crate) journal: Option<Spanned<JournalSetting>>,
    /// The files at `/`, and at every path outside the mounts.
    pub(crate) default: DefaultMountTable,
    /// The files at other paths.
    #[serde(default)]
    pub(crate) mounts: Vec<MountTable>,
    /// Layers around the whole namespace, the first one innermost.
    #[serde(default)]
    #[schemars(with = "Vec<LayerTable>")]
    pub(crate) layers: Vec<Spanned<LayerTable>>,
}

/// The setting of the journal of moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JournalSetting {
    /// Moves are not recorded.
    Off,
    /// Moves are recorded in this directory.
    Directory(HostPath),
}

/// A directory, or `false`.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum JournalSchema {
    /// The directory.
    Directory(HostPath),
    /// `false` for no journal.
    Off(bool),
}

impl<'de> Deserialize<'de> for JournalSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Accepts a directory, or `false`.
        struct JournalVisitor;

        impl Visitor<'_> for JournalVisitor {
            type Value = JournalSetting;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a directory, or false")
            }

            fn visit_bool<E: serde::de::Error>(self, is_on: bool) -> Result<JournalSetting, E> {
                if is_on {
                    return Err(E::custom("the journal is on by default; name a directory, or remove this setting"));
                }
                Ok(JournalSetting::Off)
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<JournalSetting, E> {
                HostPath::deserialize(text.into_deserializer()).map(JournalSetting::Directory)
            }
        }

        deserializer.deserialize_any(JournalVisitor)
    }
}

/// The default backend and the layers around it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DefaultMountTable {
    #[schemars(flatten, with = "BackendTable")]
    pub(crate) backend: Spanned<BackendTable>,
    /// Layers around these files only, the first one innermost.
    #[serde(default)]
    #[schemars(with = "Vec<LayerTable>")]
    pub(crate) layers: Vec<Spanned<LayerTable>>,
}

/// A mounted backend, its path and the layers around it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MountTable {
    /// The path of the mount in the namespace, such as `/memories`. It need not exist; the mount shadows files that are below it.
    #[schemars(with = "String")]
    pub(crate) path: Spanned<VfsPath>,
    #[schemars(flatten, with = "BackendTable")]
    pub(crate) backend: Spanned<BackendTable>,
    /// Layers around these files only, the first one innermost. Their paths start at the mount.
    #[serde(default)]
    #[schemars(with = "Vec<LayerTable>")]
    pub(crate) layers: Vec<Spanned<LayerTable>>,
}

impl ConfigFileTable {
    /// Returns the tables of all durable stores.
    pub(crate) fn all_store_backends(&self) -> impl Iterator<Item = &StoreBackendTable> {
        let mounted = self.mounts.iter().map(|mount| &mount.backend);
        [&self.default.backend].into_iter().chain(mounted).filter_map(|backend| match backend.get_ref() {
            BackendTable::Store(store) => Some(store),
            BackendTable::Local(_) | BackendTable::Memory(_) => None,
        })
    }

    /// Returns all layers: of the default backend, of the mounts and of the namespace.
    pub(crate) fn all_layers(&self) -> impl Iterator<Item = &Spanned<LayerTable>> {
        let mounts = self.mounts.iter().flat_map(|mount| &mount.layers);
        self.default.layers.iter().chain(mounts).chain(&self.layers)
    }
}
