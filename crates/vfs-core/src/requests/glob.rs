//! Requests and results of globs.

use std::fmt;

use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::file_info::FileInfo;
use super::incomplete_results::{Problem, Skipped, TruncationReason};
use super::wire;
use crate::path::VfsPath;

/// The types of entries that a glob returns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EntryKinds {
    /// Files only.
    #[default]
    Files,
    /// Directories only.
    Directories,
    /// Files and directories.
    All,
}

impl EntryKinds {
    /// Returns whether files are included.
    pub fn files(self) -> bool {
        self != EntryKinds::Directories
    }

    /// Returns whether directories are included.
    pub fn directories(self) -> bool {
        self != EntryKinds::Files
    }
}

/// The hidden names, which start with a dot, that a search includes.
///
/// The JSON forms are `false`, `true` and `"spelled"`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HiddenNames {
    /// Names whose dot the pattern contains, as `.env*` does, and names that an ignore file includes by `!`. Other hidden
    /// directories are not searched.
    #[default]
    Skip,
    /// All hidden names.
    Include,
    /// Names whose dot the pattern contains, by the rules of shells: in a pattern with a `/`, neither a wildcard nor `**` matches a
    /// dot at the start of a component. A pattern without a `/` also matches in hidden directories. A search for text without globs
    /// has the glob `*`.
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

/// Deserialises the setting from its name or a truth value.
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

/// Whether ignore files, such as `.gitignore`, apply to a search.
///
/// The JSON form is the truth value `no_ignore`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IgnoreMode {
    /// Entries that ignore files exclude are skipped and counted.
    #[default]
    Apply,
    /// Ignore files are not read.
    Disregard,
}

wire::mode_as_bool!(IgnoreMode: Apply, Disregard);

/// How a search treats symbolic links inside the root.
///
/// A link that leads outside the root, in a loop or to no file is never followed; the result lists it as a problem.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LinkMode {
    /// `glob` returns a link to a file under the link's own path; `grep` skips links and counts them in `skipped`. Links to
    /// directories are not followed.
    #[default]
    Skip,
    /// Links to files, and links to directories outside of the searched tree, are followed. Such a directory is searched once,
    /// under the smallest path that leads to it. A link to a directory inside the searched tree is not followed, as its files
    /// are found under their own paths.
    Follow,
}

/// A request for [`Backend::glob`](crate::Backend::glob).
///
/// # Behaviour
///
/// * A pattern without a `/` is matched against the name, at any depth. A pattern with a `/` is matched against the path relative
///   to `path`; a leading `/` anchors a name there.
/// * The syntax is `*`, `?`, `[abc]`, `[a-z]`, `[!a]`, `{a,b}`, `**` as a whole component, and `\` to escape. Matching is
///   case-sensitive.
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
    /// The directory to search. Default: the root.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub path: VfsPath,
    /// The types of entries to return. Default: files.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub kinds: EntryKinds,
    /// The hidden names to include. Default: [`HiddenNames::Skip`].
    #[serde(default, deserialize_with = "wire::or_default")]
    pub hidden: HiddenNames,
    /// Whether ignore files apply. Default: [`IgnoreMode::Apply`]. In JSON `no_ignore`, a boolean.
    #[serde(rename = "no_ignore", default, deserialize_with = "wire::or_default")]
    pub ignore: IgnoreMode,
    /// How links are treated. Default: [`LinkMode::Skip`].
    #[serde(default, deserialize_with = "wire::or_default")]
    pub links: LinkMode,
    /// The maximum number of entries. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub limit: Option<u64>,
}

impl GlobRequest {
    /// Creates a request for the files below the root that match `pattern`.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            path: VfsPath::root(),
            kinds: EntryKinds::default(),
            hidden: HiddenNames::default(),
            ignore: IgnoreMode::default(),
            links: LinkMode::default(),
            limit: None,
        }
    }

    /// Sets the directory to search.
    #[must_use]
    pub fn path(mut self, path: VfsPath) -> Self {
        self.path = path;
        self
    }

    /// Sets the types of entries to return.
    #[must_use]
    pub fn kinds(mut self, kinds: EntryKinds) -> Self {
        self.kinds = kinds;
        self
    }

    /// Includes all hidden names. Names whose dot the pattern contains, as `.env*` does, are included anyway.
    #[must_use]
    pub fn hidden(self) -> Self {
        self.hidden_names(HiddenNames::Include)
    }

    /// Sets the hidden names to include.
    #[must_use]
    pub fn hidden_names(mut self, hidden: HiddenNames) -> Self {
        self.hidden = hidden;
        self
    }

    /// Includes entries that ignore files exclude.
    #[must_use]
    pub fn no_ignore(mut self) -> Self {
        self.ignore = IgnoreMode::Disregard;
        self
    }

    /// Sets how links are treated.
    #[must_use]
    pub fn links(mut self, links: LinkMode) -> Self {
        self.links = links;
        self
    }

    /// Limits the number of entries.
    #[must_use]
    pub fn limit(mut self, entries: u64) -> Self {
        self.limit = Some(entries);
        self
    }
}

/// The result of a glob.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GlobResult {
    /// The matching entries, sorted by the bytes of their paths.
    pub entries: Vec<FileInfo>,
    /// The reason for which there may be more entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<TruncationReason>,
    /// The numbers of skipped entries.
    #[serde(default, skip_serializing_if = "Skipped::is_empty")]
    pub skipped: Skipped,
    /// The entries that could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}
