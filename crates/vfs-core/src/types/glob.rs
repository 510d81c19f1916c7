//! Finding files by name.

use std::fmt;

use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::entry::{FileInfo, Problem, Skipped, Truncation};
use super::wire;
use crate::path::VfsPath;

/// Which entries a glob returns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EntryKinds {
    /// Files.
    #[default]
    Files,
    /// Directories.
    Directories,
    /// Both.
    All,
}

impl EntryKinds {
    /// Whether files are among them.
    pub fn files(self) -> bool {
        self != EntryKinds::Directories
    }

    /// Whether directories are among them.
    pub fn directories(self) -> bool {
        self != EntryKinds::Files
    }
}

/// Which names that start with a dot a search includes.
///
/// In JSON `false`, `true` and `"spelled"`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HiddenNames {
    /// Those whose dot the pattern spells, as `.env*` does, and those that an ignore file asks for with `!`. What is below
    /// other hidden directories is left out.
    #[default]
    Skip,
    /// All.
    Include,
    /// Those whose dot the pattern spells, by the rule of shells. A pattern without a `/` is matched in hidden directories,
    /// too. In one with a `/` neither a wildcard nor `**` stands for the dot at the start of a component. A search for text
    /// without globs is one with the glob `*`.
    Spelled,
}

impl Serialize for HiddenNames {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            HiddenNames::Skip => serializer.serialize_bool(false),
            HiddenNames::Include => serializer.serialize_bool(true),
            HiddenNames::Spelled => serializer.serialize_str("spelled"),
        }
    }
}

impl<'de> Deserialize<'de> for HiddenNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HiddenNamesVisitor)
    }
}

struct HiddenNamesVisitor;

impl Visitor<'_> for HiddenNamesVisitor {
    type Value = HiddenNames;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`true`, `false` or \"spelled\"")
    }

    fn visit_bool<E: serde::de::Error>(self, include: bool) -> Result<HiddenNames, E> {
        Ok(if include { HiddenNames::Include } else { HiddenNames::Skip })
    }

    fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<HiddenNames, E> {
        match word {
            "spelled" => Ok(HiddenNames::Spelled),
            _ => Err(E::invalid_value(Unexpected::Str(word), &self)),
        }
    }
}

/// What a walk does at a symbolic link inside the root.
///
/// One that leads outside the root, in a circle or nowhere is a problem in the result, never followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LinkMode {
    /// `glob` shows a link to a file under the link's own name; `grep` leaves links out and counts them in `skipped`.
    /// Neither goes down a link to a directory.
    #[default]
    Skip,
    /// Links to files are followed, and links to directories outside of the searched tree. Such a directory is entered
    /// once, under the smallest path that leads there. A link to a directory of the searched tree is not followed: what is
    /// in that directory is found under its own path.
    Follow,
}

/// Asks for the entries whose name or path matches a pattern.
///
/// # Behaviour
///
/// * Without a `/` the pattern is matched against the name, at any depth. With a `/` it is matched against the path
///   relative to `path`; a leading `/` anchors it there.
/// * `*`, `?`, `[abc]`, `[a-z]`, `[!a]`, `{a,b}`, `**` as a whole segment; `\` escapes. Case-sensitive.
///
/// ```
/// use vfs_core::{GlobRequest, VfsPath};
///
/// let request = GlobRequest::new("src/**/*.rs").path(VfsPath::parse("/project")?).limit(100);
/// assert_eq!(request.pattern, "src/**/*.rs");
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GlobRequest {
    /// The pattern.
    pub pattern: String,
    /// The directory searched. Default: the root.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub path: VfsPath,
    /// Which entries are returned. Default: files.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub kinds: EntryKinds,
    /// Which names that start with a dot are included. Default: those whose dot the pattern spells, as `.env*` does.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub hidden: HiddenNames,
    /// Includes what ignore files exclude.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub no_ignore: bool,
    /// What happens at links. Default: links to directories are not followed.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub links: LinkMode,
    /// Most entries. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub limit: Option<u64>,
}

impl GlobRequest {
    /// Asks for the files below the root that match `pattern`.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            path: VfsPath::root(),
            kinds: EntryKinds::default(),
            hidden: HiddenNames::default(),
            no_ignore: false,
            links: LinkMode::default(),
            limit: None,
        }
    }

    /// Searches below `path`.
    #[must_use]
    pub fn path(mut self, path: VfsPath) -> Self {
        self.path = path;
        self
    }

    /// Returns entries of these kinds.
    #[must_use]
    pub fn kinds(mut self, kinds: EntryKinds) -> Self {
        self.kinds = kinds;
        self
    }

    /// Includes names that start with a dot. Those whose dot the pattern spells, as `.env*` does, are included anyway.
    #[must_use]
    pub fn hidden(self) -> Self {
        self.hidden_names(HiddenNames::Include)
    }

    /// Sets which names that start with a dot are included.
    #[must_use]
    pub fn hidden_names(mut self, hidden: HiddenNames) -> Self {
        self.hidden = hidden;
        self
    }

    /// Includes what ignore files exclude.
    #[must_use]
    pub fn no_ignore(mut self) -> Self {
        self.no_ignore = true;
        self
    }

    /// Sets what happens at links.
    #[must_use]
    pub fn links(mut self, links: LinkMode) -> Self {
        self.links = links;
        self
    }

    /// Ends the search after `entries`.
    #[must_use]
    pub fn limit(mut self, entries: u64) -> Self {
        self.limit = Some(entries);
        self
    }
}

/// The entries that match, sorted by the bytes of their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GlobResult {
    /// The entries.
    pub entries: Vec<FileInfo>,
    /// Why there may be more entries than these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Truncation>,
    /// What visibility left out.
    #[serde(default, skip_serializing_if = "Skipped::is_empty")]
    pub skipped: Skipped,
    /// Entries that could not be looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}
