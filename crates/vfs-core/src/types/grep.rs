//! Finding text in files.

use serde::{Deserialize, Deserializer, Serialize};

use super::entry::{Problem, Skipped, Truncation};
use super::glob::{HiddenNames, LinkMode};
use super::line_text::LineText;
use super::submatches::Submatches;
use super::wire;
use crate::path::VfsPath;

/// What is searched for.
///
/// In JSON `{"literal": "..."}` or `{"regex": "..."}`; a plain string is a literal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Pattern {
    /// This text. One that holds a line break makes the search multiline.
    Literal(String),
    /// A regular expression of the [`regex` crate](https://docs.rs/regex/#syntax): linear time, no look-around.
    Regex(String),
}

impl Pattern {
    /// The text or expression.
    pub fn as_str(&self) -> &str {
        match self {
            Pattern::Literal(text) | Pattern::Regex(text) => text,
        }
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Tagged {
            Literal(String),
            Regex(String),
        }
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a string, {\"literal\": ...} or {\"regex\": ...}")]
        enum Wire {
            Plain(String),
            Tagged(Tagged),
        }
        Ok(match Wire::deserialize(deserializer)? {
            Wire::Plain(text) | Wire::Tagged(Tagged::Literal(text)) => Pattern::Literal(text),
            Wire::Tagged(Tagged::Regex(text)) => Pattern::Regex(text),
        })
    }
}

/// Whether letters of another case match.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CaseMode {
    /// They do not.
    #[default]
    Sensitive,
    /// They do.
    Insensitive,
    /// They do unless the pattern has an upper-case letter.
    Smart,
}

/// What a search returns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GrepOutput {
    /// The matching lines, with context where it is asked for.
    #[default]
    Matches,
    /// The files that have a match; each file is left at its first.
    Files,
    /// The files that have a match, with the number of matches in each.
    Counts,
}

/// What happens to files with NUL bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BinaryMode {
    /// They are left out and counted.
    #[default]
    Skip,
    /// They are searched as if they were text.
    Text,
}

/// Asks for the lines that match a pattern.
///
/// ```
/// use vfs_core::{GrepRequest, Pattern, VfsPath};
///
/// let request = GrepRequest::new(Pattern::Regex(r"fn \w+_all\(".into()))
///     .path(VfsPath::parse("/src")?)
///     .glob("*.rs")
///     .context(1, 1)
///     .limit(50);
/// assert_eq!(request.glob, ["*.rs"]);
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GrepRequest {
    /// What is searched for.
    pub pattern: Pattern,
    /// The directory searched, or the one file. Default: the root.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub path: VfsPath,
    /// Only files that match one of these globs, as [`GlobRequest`](super::GlobRequest) matches; one that starts with `!`
    /// leaves files out instead, and the last that matches decides. JSON takes a string or a list. Default: all files.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "wire::one_or_many")]
    pub glob: Vec<String>,
    /// Only files of one of these types, by ripgrep's names (`rust`, `py`, `make`). JSON takes a string or a list.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "wire::one_or_many")]
    pub file_types: Vec<String>,
    /// Whether letters of another case match. Default: they do not.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub case: CaseMode,
    /// Only matches that begin and end at word boundaries.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub whole_word: bool,
    /// Lets a match span lines: `.` matches a line break too, `^` and `$` match at lines.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub multiline: bool,
    /// The lines that do not match, instead.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub invert: bool,
    /// Lines of context before each match. Default 0; at most [`GrepRequest::MAX_CONTEXT`].
    #[serde(default, deserialize_with = "wire::whole")]
    pub before: u32,
    /// Lines of context after each match. Default 0; at most [`GrepRequest::MAX_CONTEXT`].
    #[serde(default, deserialize_with = "wire::whole")]
    pub after: u32,
    /// What is returned. Default: the matching lines.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub output: GrepOutput,
    /// Most matches in all (files, where the output is files or counts). Context is not counted. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub limit: Option<u64>,
    /// Most matches in one file. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub limit_per_file: Option<u64>,
    /// Which names that start with a dot are included. Default: those whose dot a glob spells, as `.env*` does.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub hidden: HiddenNames,
    /// Includes what ignore files exclude.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub no_ignore: bool,
    /// What happens to files with NUL bytes. Default: they are left out.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub binary: BinaryMode,
    /// What happens at links. Default: they are left out.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub links: LinkMode,
    /// Leaves out files over this many bytes. Default: none is.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub max_file_size: Option<u64>,
    /// Most bytes of a line in the result; the rest is cut. Default [`GrepRequest::DEFAULT_MAX_LINE_BYTES`].
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub max_line_bytes: Option<u64>,
    /// Most bytes of a collected result, text and paths together; a stream has no such bound.
    /// Default [`GrepRequest::DEFAULT_MAX_RESULT_BYTES`]; more than [`GrepRequest::MAX_RESULT_BYTES`] counts as that.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub max_result_bytes: Option<u64>,
}

impl GrepRequest {
    /// The most lines of context on either side.
    pub const MAX_CONTEXT: u32 = 10_000;

    /// 64 KiB, the most of one line that a result holds unless it asks for more.
    pub const DEFAULT_MAX_LINE_BYTES: u64 = 64 << 10;

    /// 32 MiB, the most that a collected result holds unless it asks for more.
    pub const DEFAULT_MAX_RESULT_BYTES: u64 = 32 << 20;

    /// 256 MiB, the most that a collected result holds, whatever is asked for.
    pub const MAX_RESULT_BYTES: u64 = 256 << 20;

    /// Searches everything below the root for `pattern`.
    pub fn new(pattern: Pattern) -> Self {
        Self {
            pattern,
            path: VfsPath::root(),
            glob: Vec::new(),
            file_types: Vec::new(),
            case: CaseMode::default(),
            whole_word: false,
            multiline: false,
            invert: false,
            before: 0,
            after: 0,
            output: GrepOutput::default(),
            limit: None,
            limit_per_file: None,
            hidden: HiddenNames::default(),
            no_ignore: false,
            binary: BinaryMode::default(),
            links: LinkMode::default(),
            max_file_size: None,
            max_line_bytes: None,
            max_result_bytes: None,
        }
    }

    /// Searches everything below the root for the text `text`.
    pub fn literal(text: impl Into<String>) -> Self {
        Self::new(Pattern::Literal(text.into()))
    }

    /// Searches everything below the root for the regular expression `regex`.
    pub fn regex(regex: impl Into<String>) -> Self {
        Self::new(Pattern::Regex(regex.into()))
    }

    /// Searches below `path`, or in the file `path`.
    #[must_use]
    pub fn path(mut self, path: VfsPath) -> Self {
        self.path = path;
        self
    }

    /// Searches only files that match `glob`, or one added before.
    #[must_use]
    pub fn glob(mut self, glob: impl Into<String>) -> Self {
        self.glob.push(glob.into());
        self
    }

    /// Searches only files of the type `name`, or one added before.
    #[must_use]
    pub fn file_type(mut self, name: impl Into<String>) -> Self {
        self.file_types.push(name.into());
        self
    }

    /// Sets whether letters of another case match.
    #[must_use]
    pub fn case(mut self, case: CaseMode) -> Self {
        self.case = case;
        self
    }

    /// Finds only whole words.
    #[must_use]
    pub fn whole_word(mut self) -> Self {
        self.whole_word = true;
        self
    }

    /// Lets matches span lines.
    #[must_use]
    pub fn multiline(mut self) -> Self {
        self.multiline = true;
        self
    }

    /// Finds the lines that do not match.
    #[must_use]
    pub fn invert(mut self) -> Self {
        self.invert = true;
        self
    }

    /// Adds lines of context.
    #[must_use]
    pub fn context(mut self, before: u32, after: u32) -> Self {
        (self.before, self.after) = (before, after);
        self
    }

    /// Sets what is returned.
    #[must_use]
    pub fn output(mut self, output: GrepOutput) -> Self {
        self.output = output;
        self
    }

    /// Ends the search after `matches`.
    #[must_use]
    pub fn limit(mut self, matches: u64) -> Self {
        self.limit = Some(matches);
        self
    }

    /// Leaves each file after `matches`.
    #[must_use]
    pub fn limit_per_file(mut self, matches: u64) -> Self {
        self.limit_per_file = Some(matches);
        self
    }

    /// Includes names that start with a dot. Those whose dot a glob spells, as `.env*` does, are included anyway.
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

    /// Sets what happens to files with NUL bytes.
    #[must_use]
    pub fn binary(mut self, binary: BinaryMode) -> Self {
        self.binary = binary;
        self
    }

    /// Sets what happens at links.
    #[must_use]
    pub fn links(mut self, links: LinkMode) -> Self {
        self.links = links;
        self
    }

    /// Leaves out files over `bytes`.
    #[must_use]
    pub fn max_file_size(mut self, bytes: u64) -> Self {
        self.max_file_size = Some(bytes);
        self
    }

    /// Cuts lines in the result after `bytes`.
    #[must_use]
    pub fn max_line_bytes(mut self, bytes: u64) -> Self {
        self.max_line_bytes = Some(bytes);
        self
    }

    /// Ends a collected search when the result holds `bytes`.
    #[must_use]
    pub fn max_result_bytes(mut self, bytes: u64) -> Self {
        self.max_result_bytes = Some(bytes);
        self
    }
}

/// Whether a line matched or stands beside one that did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// It matched.
    #[default]
    Match,
    /// It is context.
    Context,
}

/// A line that matched, or one of context.
///
/// A multiline match is one of these, its `text` holding all its lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GrepMatch {
    /// The file.
    pub path: VfsPath,
    /// The 1-based number of the (first) line.
    pub line: u64,
    /// The 1-based byte of the first submatch in the line; 0 for context and for an inverted search.
    pub column: u64,
    /// The line without its ending; U+FFFD where it is not UTF-8.
    pub text: LineText,
    /// Where in `text` the pattern is: the first 65,536 places of a line.
    #[serde(default, skip_serializing_if = "Submatches::is_empty")]
    pub submatches: Submatches,
    /// Whether it matched or is context.
    #[serde(default)]
    pub kind: LineKind,
    /// Where in the file the (first) line begins, in bytes; of a decoded UTF-16 file, in bytes of its UTF-8.
    pub byte_offset: u64,
    /// Whether `text` was cut at `max_line_bytes`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl GrepMatch {
    /// The line `line` of `path`, which matched.
    pub fn new(path: VfsPath, line: u64, text: impl Into<LineText>) -> Self {
        Self {
            path,
            line,
            column: 0,
            text: text.into(),
            submatches: Submatches::new(),
            kind: LineKind::Match,
            byte_offset: 0,
            cut: false,
        }
    }
}

/// A file that has matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FileCount {
    /// The file.
    pub path: VfsPath,
    /// How many matches; `None` where only files were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

impl FileCount {
    /// `path` has `count` matches.
    pub fn new(path: VfsPath, count: Option<u64>) -> Self {
        Self { path, count }
    }
}

/// What a search came across, beside its matches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct GrepSummary {
    /// Files searched.
    pub files_searched: u64,
    /// Matches reported, context not counted.
    pub matches: u64,
    /// Files that have a match.
    pub files_matched: u64,
    /// What visibility, binary detection and limits left out.
    pub skipped: Skipped,
    /// Why there may be more matches than these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Truncation>,
}

/// One item of a streamed search, in the order of the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GrepEvent {
    /// A line, with [`GrepOutput::Matches`].
    Match(GrepMatch),
    /// A file, with [`GrepOutput::Files`] and [`GrepOutput::Counts`].
    File(FileCount),
    /// An entry that could not be searched.
    Problem(Problem),
    /// The search is over: always the last item unless that is an error.
    End(GrepSummary),
}

/// A collected search: matches sorted by path, then line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GrepResult {
    /// The lines, with [`GrepOutput::Matches`].
    #[serde(default)]
    pub matches: Vec<GrepMatch>,
    /// The files, with [`GrepOutput::Files`] and [`GrepOutput::Counts`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileCount>,
    /// Why there may be more than these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Truncation>,
    /// What visibility, binary detection and limits left out.
    #[serde(default, skip_serializing_if = "Skipped::is_empty")]
    pub skipped: Skipped,
    /// Entries that could not be searched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
    /// Files searched.
    #[serde(default)]
    pub files_searched: u64,
}
