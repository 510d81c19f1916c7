//! Replacing text in a file.

use serde::{Deserialize, Serialize};

use super::entry::Version;
use super::state::FilesUpdate;
use super::wire;
use crate::path::VfsPath;

/// Which occurrences of a text are replaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Occurrences {
    /// The only one; more than one is refused.
    #[default]
    Unique,
    /// Every one, from the left without overlap.
    All,
}

/// How the line endings of new text are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NewLineEndings {
    /// As those of the file, if all its lines end alike. In a file of mixed line endings each `\n` becomes the ending of its
    /// place, unless `old` holds a `\r` that is in the file; in a file without line endings they are written as given.
    #[default]
    Match,
    /// As given, byte for byte.
    Exact,
}

/// One text to be replaced by another, literally.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Replacement {
    /// The text as `read` shows it. Its `\n` matches the file's `\r\n` unless it holds a `\r` itself.
    #[serde(alias = "old_string")]
    pub old: String,
    /// The text that replaces it. Its line endings become those of the file.
    #[serde(alias = "new_string")]
    pub new: String,
    /// Which occurrences. Default: the only one.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub occurrences: Occurrences,
    /// How the line endings of `new` are written. Default: as those of the file.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub line_endings: NewLineEndings,
}

impl Replacement {
    /// Replaces the only occurrence of `old` with `new`.
    pub fn new(old: impl Into<String>, new: impl Into<String>) -> Self {
        Self { old: old.into(), new: new.into(), occurrences: Occurrences::Unique, line_endings: NewLineEndings::Match }
    }

    /// Replaces every occurrence.
    #[must_use]
    pub fn all(mut self) -> Self {
        self.occurrences = Occurrences::All;
        self
    }

    /// Writes `new` byte for byte, whatever the line endings of the file are.
    #[must_use]
    pub fn exact_line_endings(mut self) -> Self {
        self.line_endings = NewLineEndings::Exact;
        self
    }
}

/// Whether an edit is carried out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditMode {
    /// It is.
    #[default]
    Apply,
    /// It is not: the result has the diff, and nothing changes.
    DryRun,
}

/// Whether the result carries a unified diff.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiffOutput {
    /// Only a dry run's does.
    #[default]
    OnDryRun,
    /// It does.
    Always,
}

/// Asks for replacements in one file, all or none.
///
/// In JSON the replacements are a list, or, where there is one, `old`, `new`, `replace_all` and `line_endings` beside the
/// path: `{"path": "/a", "old": "x", "new": "y"}`.
///
/// ```
/// use vfs_core::{EditRequest, VfsPath};
///
/// let request = EditRequest::new(VfsPath::parse("/a.rs")?, "fn old()", "fn new()").and("old()", "new()");
/// assert_eq!(request.replacements.len(), 2);
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "WireEdit", try_from = "WireEdit")]
#[non_exhaustive]
pub struct EditRequest {
    /// The file.
    pub path: VfsPath,
    /// Applied in this order, each to what the ones before it left.
    pub replacements: Vec<Replacement>,
    /// Refuses with `conflict` if the file is another version. Default: any.
    pub expected_version: Option<Version>,
    /// Whether it is carried out. Default: yes.
    pub mode: EditMode,
    /// Whether the result carries the diff. Default: a dry run's does.
    pub diff: DiffOutput,
}

impl EditRequest {
    /// Replaces the only occurrence of `old` in `path` with `new`.
    pub fn new(path: VfsPath, old: impl Into<String>, new: impl Into<String>) -> Self {
        Self::list(path, vec![Replacement::new(old, new)])
    }

    /// Makes `replacements` in `path`.
    pub fn list(path: VfsPath, replacements: Vec<Replacement>) -> Self {
        Self { path, replacements, expected_version: None, mode: EditMode::default(), diff: DiffOutput::default() }
    }

    /// Makes one more replacement, after the others.
    #[must_use]
    pub fn and(mut self, old: impl Into<String>, new: impl Into<String>) -> Self {
        self.replacements.push(Replacement::new(old, new));
        self
    }

    /// Replaces every occurrence, in all replacements named so far.
    #[must_use]
    pub fn replace_all(mut self) -> Self {
        for replacement in &mut self.replacements {
            replacement.occurrences = Occurrences::All;
        }
        self
    }

    /// Writes the new text byte for byte, in all replacements named so far.
    #[must_use]
    pub fn exact_line_endings(mut self) -> Self {
        for replacement in &mut self.replacements {
            replacement.line_endings = NewLineEndings::Exact;
        }
        self
    }

    /// Refuses if the file is not `version`.
    #[must_use]
    pub fn expected_version(mut self, version: Version) -> Self {
        self.expected_version = Some(version);
        self
    }

    /// Only shows what would change.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.mode = EditMode::DryRun;
        self
    }

    /// Puts the unified diff into the result.
    #[must_use]
    pub fn with_diff(mut self) -> Self {
        self.diff = DiffOutput::Always;
        self
    }

    /// Whether the result carries the diff.
    pub fn wants_diff(&self) -> bool {
        self.diff == DiffOutput::Always || self.mode == EditMode::DryRun
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireEdit {
    path: VfsPath,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "wire::or_default")]
    replacements: Vec<Replacement>,
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "old_string")]
    old: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "new_string")]
    new: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replace_all: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line_endings: Option<NewLineEndings>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expected_version: Option<Version>,
    #[serde(default, deserialize_with = "wire::or_default")]
    mode: EditMode,
    #[serde(default, deserialize_with = "wire::or_default")]
    diff: DiffOutput,
}

impl From<EditRequest> for WireEdit {
    fn from(request: EditRequest) -> Self {
        let EditRequest { path, replacements, expected_version, mode, diff } = request;
        let (old, new, replace_all, line_endings) = (None, None, None, None);
        Self { path, replacements, old, new, replace_all, line_endings, expected_version, mode, diff }
    }
}

impl TryFrom<WireEdit> for EditRequest {
    type Error = &'static str;

    fn try_from(fields: WireEdit) -> Result<Self, Self::Error> {
        let WireEdit { path, mut replacements, old, new, replace_all, line_endings, expected_version, mode, diff } =
            fields;
        match (old, new) {
            (None, None) if replace_all.is_none() && line_endings.is_none() => {}
            (Some(old), Some(new)) if replacements.is_empty() => {
                let occurrences = if replace_all == Some(true) { Occurrences::All } else { Occurrences::Unique };
                let line_endings = line_endings.unwrap_or_default();
                replacements.push(Replacement { old, new, occurrences, line_endings });
            }
            (Some(_), Some(_)) => return Err("give either `old` and `new`, or `replacements`, not both"),
            (None, None) if replace_all.is_some() => {
                return Err("`replace_all` goes with `old` and `new`; a replacement has `occurrences`");
            }
            (None, None) => return Err("`line_endings` goes with `old` and `new`; each replacement has its own"),
            _ => return Err("`old` and `new` belong together"),
        }
        Ok(Self { path, replacements, expected_version, mode, diff })
    }
}

/// A file was edited, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EditResult {
    /// The file.
    pub path: VfsPath,
    /// How many places were replaced, over all replacements.
    pub occurrences: u64,
    /// The version that the file now has; after a dry run, the one it had and has.
    pub version: Version,
    /// Its size in bytes; after a dry run, the size it would have.
    pub size: u64,
    /// The unified diff, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// On an agent's state: the change to merge into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_update: Option<FilesUpdate>,
}

impl EditResult {
    /// `occurrences` places of `path` were replaced.
    pub fn new(path: VfsPath, occurrences: u64, version: Version, size: u64) -> Self {
        Self { path, occurrences, version, size, diff: None, files_update: None }
    }

    /// The same with a unified diff.
    #[must_use]
    pub fn with_diff(mut self, diff: Option<String>) -> Self {
        self.diff = diff;
        self
    }
}
