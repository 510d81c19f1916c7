//! Requests and results of edits.

use serde::{Deserialize, Serialize};

use super::agent_state::FilesUpdate;
use super::version::Version;
use super::wire;
use crate::path::VfsPath;

/// The occurrences of a text that a replacement replaces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReplacementScope {
    /// The only occurrence; more than one is an error.
    #[default]
    Unique,
    /// Every occurrence, from the left, without overlap.
    All,
}

/// How the line endings of the new text are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NewLineEndings {
    /// Line endings become those of the file, if its lines end alike. In a file with mixed line endings, each `\n` becomes the
    /// ending at its position, unless `old` contains a `\r` that occurs in the file. In a file without line endings, the new text
    /// is written as given.
    #[default]
    Match,
    /// The new text is written byte for byte.
    Exact,
}

/// The replacement of a literal text by another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Replacement {
    /// The text to replace, as `read` returns it. A `\n` also matches `\r\n`, unless the text contains a `\r`.
    #[serde(alias = "old_string")]
    pub old: String,
    /// The new text. Its line endings become those of the file.
    #[serde(alias = "new_string")]
    pub new: String,
    /// The occurrences to replace. Default: the only one.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub occurrences: ReplacementScope,
    /// How the line endings of `new` are written. Default: [`NewLineEndings::Match`].
    #[serde(default, deserialize_with = "wire::or_default")]
    pub line_endings: NewLineEndings,
}

impl Replacement {
    /// Creates a replacement of the only occurrence of `old` by `new`.
    pub fn new(old: impl Into<String>, new: impl Into<String>) -> Self {
        Self {
            old: old.into(),
            new: new.into(),
            occurrences: ReplacementScope::Unique,
            line_endings: NewLineEndings::Match,
        }
    }

    /// Replaces every occurrence instead.
    #[must_use]
    pub fn all(mut self) -> Self {
        self.occurrences = ReplacementScope::All;
        self
    }

    /// Writes `new` byte for byte, without regard to the line endings of the file.
    #[must_use]
    pub fn exact_line_endings(mut self) -> Self {
        self.line_endings = NewLineEndings::Exact;
        self
    }
}

/// Whether an edit changes the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApplyMode {
    /// The file is changed.
    #[default]
    Apply,
    /// The file is not changed; the result has the diff.
    DryRun,
}

/// Whether the result of an edit has a unified diff.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DiffInclusion {
    /// Only the result of a dry run has a diff.
    #[default]
    OnDryRun,
    /// The result has a diff.
    Always,
}

/// A request for [`Backend::edit`](crate::Backend::edit): replacements in one file, of which all or none are made.
///
/// In JSON, the replacements are a list. A single replacement may be given as `old`, `new`, `replace_all` and `line_endings` beside
/// the path: `{"path": "/a", "old": "x", "new": "y"}`.
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
    /// The replacements, each of which applies to the result of those before it.
    pub replacements: Vec<Replacement>,
    /// The version that the file must have, else the edit fails with `conflict`. Default: any.
    pub expected_version: Option<Version>,
    /// Whether the edit changes the file. Default: [`ApplyMode::Apply`].
    pub mode: ApplyMode,
    /// Whether the result has the diff. Default: [`DiffInclusion::OnDryRun`].
    pub diff: DiffInclusion,
}

impl EditRequest {
    /// Creates an edit that replaces the only occurrence of `old` in `path` with `new`.
    pub fn new(path: VfsPath, old: impl Into<String>, new: impl Into<String>) -> Self {
        Self::list(path, vec![Replacement::new(old, new)])
    }

    /// Creates an edit that makes `replacements` in `path`.
    pub fn list(path: VfsPath, replacements: Vec<Replacement>) -> Self {
        Self { path, replacements, expected_version: None, mode: ApplyMode::default(), diff: DiffInclusion::default() }
    }

    /// Adds a replacement after the others.
    #[must_use]
    pub fn and(mut self, old: impl Into<String>, new: impl Into<String>) -> Self {
        self.replacements.push(Replacement::new(old, new));
        self
    }

    /// Replaces every occurrence, in all replacements added so far.
    #[must_use]
    pub fn replace_all(mut self) -> Self {
        for replacement in &mut self.replacements {
            replacement.occurrences = ReplacementScope::All;
        }
        self
    }

    /// Writes the new text byte for byte, in all replacements added so far.
    #[must_use]
    pub fn exact_line_endings(mut self) -> Self {
        for replacement in &mut self.replacements {
            replacement.line_endings = NewLineEndings::Exact;
        }
        self
    }

    /// Fails with `conflict` unless the file has this version.
    #[must_use]
    pub fn expected_version(mut self, version: Version) -> Self {
        self.expected_version = Some(version);
        self
    }

    /// Makes the edit a dry run, which changes nothing and returns the diff.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.mode = ApplyMode::DryRun;
        self
    }

    /// Adds the unified diff to the result.
    #[must_use]
    pub fn with_diff(mut self) -> Self {
        self.diff = DiffInclusion::Always;
        self
    }

    /// Returns whether the result has the diff.
    pub fn wants_diff(&self) -> bool {
        self.diff == DiffInclusion::Always || self.mode == ApplyMode::DryRun
    }
}

/// The JSON form of an edit.
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
    mode: ApplyMode,
    #[serde(default, deserialize_with = "wire::or_default")]
    diff: DiffInclusion,
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
                let occurrences =
                    if replace_all == Some(true) { ReplacementScope::All } else { ReplacementScope::Unique };
                let line_endings = line_endings.unwrap_or_default();
                replacements.push(Replacement { old, new, occurrences, line_endings });
            }
            (Some(_), Some(_)) => {
                return Err("the edit has both forms of replacements; give either `old` and `new`, or `replacements`");
            }
            (None, None) if replace_all.is_some() => {
                return Err("`replace_all` applies to `old` and `new` only; set `occurrences` in each replacement");
            }
            (None, None) => {
                return Err("`line_endings` applies to `old` and `new` only; set `line_endings` in each replacement");
            }
            _ => return Err("the edit has only one of `old` and `new`; give both"),
        }
        Ok(Self { path, replacements, expected_version, mode, diff })
    }
}

/// The result of an edit, or of a dry run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EditResult {
    /// The file.
    pub path: VfsPath,
    /// The number of occurrences that were replaced, over all replacements.
    pub occurrences: u64,
    /// The version of the file after the call.
    pub version: Version,
    /// The size of the new content in bytes.
    pub size: u64,
    /// The unified diff, if the request asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The update to merge into the caller's state, from a backend with [`MutationMode::Returned`](crate::backend::MutationMode::Returned).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_update: Option<FilesUpdate>,
}

impl EditResult {
    /// Creates a result without a diff.
    pub fn new(path: VfsPath, occurrences: u64, version: Version, size: u64) -> Self {
        Self { path, occurrences, version, size, diff: None, files_update: None }
    }

    /// Sets the unified diff.
    #[must_use]
    pub fn with_diff(mut self, diff: Option<String>) -> Self {
        self.diff = diff;
        self
    }
}
