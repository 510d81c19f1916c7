//! What may stand in the file, as it is written. The comments are the descriptions of the schema.

mod backends;
mod layers;
mod rules;

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, IntoDeserializer as _, Visitor};
use toml::Spanned;
use vfs_core::VfsPath;

use crate::values::HostPath;

pub(crate) use self::backends::{BackendTable, DurableTable, LocalTable, MemoryTable};
pub(crate) use self::layers::{
    AuditTable, CacheTable, CheckpointsTable, ConcurrencyTable, LayerTable, OverlayTable, PolicyTable, QuotaTable,
    RetryTable, StoreTable, TimeoutTable,
};
pub(crate) use self::rules::{RuleTable, RulesTable};

/// A whole namespace of an agent: what is where, and the layers around it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "vfs.toml")]
pub(crate) struct FileTable {
    /// The directory of the journal of moves across mounts, from which the next process recovers moves that a crash interrupted;
    /// or false for none: such a move may then stay at both ends. It is made when the file is opened, and hidden where it lies in a
    /// directory that is shown. Default: `.vfs/moves`, if it can be written.
    #[schemars(with = "Option<JournalSchema>")]
    pub(crate) journal: Option<Spanned<JournalSetting>>,
    /// What is at `/`, and wherever no mount is.
    pub(crate) default: DefaultTable,
    /// What is at other places.
    #[serde(default)]
    pub(crate) mounts: Vec<MountTable>,
    /// Layers around everything, the first one innermost.
    #[serde(default)]
    #[schemars(with = "Vec<LayerTable>")]
    pub(crate) layers: Vec<Spanned<LayerTable>>,
}

/// Where moves across mounts are recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JournalSetting {
    /// Nowhere.
    Off,
    /// In this directory.
    Directory(HostPath),
}

/// A directory, or `false`.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum JournalSchema {
    /// The directory.
    Directory(HostPath),
    /// `false` for none.
    Off(bool),
}

impl<'de> Deserialize<'de> for JournalSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct JournalVisitor;

        impl Visitor<'_> for JournalVisitor {
            type Value = JournalSetting;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a directory, or false")
            }

            fn visit_bool<E: serde::de::Error>(self, is_on: bool) -> Result<JournalSetting, E> {
                if is_on {
                    return Err(E::custom("there is a journal by default; name its directory, or leave this out"));
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

/// A place for files, and the layers around it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DefaultTable {
    #[schemars(flatten, with = "BackendTable")]
    pub(crate) backend: Spanned<BackendTable>,
    /// Layers around these files alone, the first one innermost.
    #[serde(default)]
    #[schemars(with = "Vec<LayerTable>")]
    pub(crate) layers: Vec<Spanned<LayerTable>>,
}

/// A place for files, where it is mounted, and the layers around it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MountTable {
    /// Where it is, as the agent sees it, such as `/memories`. It need not exist, and shadows what is there.
    #[schemars(with = "String")]
    pub(crate) path: Spanned<VfsPath>,
    #[schemars(flatten, with = "BackendTable")]
    pub(crate) backend: Spanned<BackendTable>,
    /// Layers around these files alone, the first one innermost. Their paths begin at the mount.
    #[serde(default)]
    #[schemars(with = "Vec<LayerTable>")]
    pub(crate) layers: Vec<Spanned<LayerTable>>,
}

impl FileTable {
    /// All durable stores, wherever they are mounted.
    pub(crate) fn all_durable(&self) -> impl Iterator<Item = &DurableTable> {
        let mounted = self.mounts.iter().map(|mount| &mount.backend);
        [&self.default.backend].into_iter().chain(mounted).filter_map(|backend| match backend.get_ref() {
            BackendTable::Store(durable) => Some(durable),
            BackendTable::Local(_) | BackendTable::Memory(_) => None,
        })
    }

    /// All layers, wherever they are.
    pub(crate) fn all_layers(&self) -> impl Iterator<Item = &Spanned<LayerTable>> {
        let mounts = self.mounts.iter().flat_map(|mount| &mount.layers);
        self.default.layers.iter().chain(mounts).chain(&self.layers)
    }
}
