//! Requests and results of content searches.

use serde::{Deserialize, Deserializer, Serialize};

use super::glob::{HiddenNames, IgnoreMode, LinkMode};
use super::incomplete_results::{Problem, Skipped, TruncationReason};
use super::line_text::LineText;
use super::submatches::Submatches;
use super::wire;
use crate::path::VfsPath;

/// The pattern of a content search.
///
/// The JSON form is `{"literal": "..."}` or `{"regex": "..."}`; a plain string is a literal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Pattern {
    /// A literal text. A text with a line break makes the search multiline.
    Literal(String),
    /// A regular expression of the [`regex` crate](https://docs.rs/regex/#syntax): linear time, no look-around.
    Regex(String),
}

impl Pattern {
    /// Returns the text or expression.
    pub fn as_str(&self) -> &str {
        match self {
            Pattern::Literal(text) | Pattern::Regex(text) => text,
        }
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// The form `{"literal": ...}` or `{"regex": ...}`.
        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum TaggedPattern {
            Literal(String),
            Regex(String),
        }
        /// The JSON forms of a pattern.
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a string, {\"literal\": ...} or {\"regex\": ...}")]
        enum WirePattern {
            Plain(String),
            Tagged(TaggedPattern),
        }
        Ok(match WirePattern::deserialize(deserializer)? {
            WirePattern::Plain(text) | WirePattern::Tagged(TaggedPattern::Literal(text)) => Pattern::Literal(text),
            WirePattern::Tagged(TaggedPattern::Regex(text)) => Pattern::Regex(text),
        })
    }
}

/// Case sensitivity of a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CaseMode {
    /// Letters match in the same case only.
    #[default]
    Sensitive,
    /// Letters match in any case.
    Insensitive,
    /// Letters match in any case, unless the pattern has an upper-case letter.
    Smart,
}

/// Where matches may begin and end.
///
/// The JSON form is the truth value `whole_word`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MatchBoundary {
    /// At any character.
    #[default]
    Anywhere,
    /// At word boundaries only.
    Word,
}

wire::mode_as_bool!(MatchBoundary: Anywhere, Word);

/// How far a match extends.
///
/// The JSON form is the truth value `multiline`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MultilineMode {
    /// A match is within one line, unless the pattern is a literal with a line break.
    #[default]
    SingleLine,
    /// A match can span lines: `.` also matches a line break, `^` and `$` match at each line.
    MultiLine,
}

wire::mode_as_bool!(MultilineMode: SingleLine, MultiLine);

/// Whether a search returns the lines that do not match.
///
/// The JSON form is the truth value `invert`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InvertMatch {
    /// The search returns the lines that match.
    #[default]
    No,
    /// The search returns the lines that do not match.
    Yes,
}

wire::mode_as_bool!(InvertMatch: No, Yes);

/// The output of a content search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GrepOutput {
    /// The matching lines, with context if the request asks for it.
    #[default]
    Matches,
    /// The files with a match. The search of a file ends at its first match.
    Files,
    /// The files with a match, with the number of matches in each.
    Counts,
}

/// How a search treats files with NUL bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BinaryMode {
    /// Binary files are skipped and counted.
    #[default]
    Skip,
    /// Binary files are searched like text.
    Text,
}

/// A request for [`Backend::grep`](crate::Backend::grep).
///
/// The modes are independent of one another: every combination is a valid search.
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
    /// The pattern.
    pub pattern: Pattern,
    /// The directory or file to search. Default: the root.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub path: VfsPath,
    /// The globs, of [`GlobRequest`](super::GlobRequest), that files must match. A glob that starts with `!` excludes files; the
    /// last matching glob decides. JSON takes a string or a list. Default: all files.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "wire::one_or_many")]
    pub glob: Vec<String>,
    /// The types of files to search, by ripgrep's names (`rust`, `py`, `make`). JSON takes a string or a list. Default: all types.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "wire::one_or_many")]
    pub file_types: Vec<String>,
    /// Case sensitivity. Default: [`CaseMode::Sensitive`].
    #[serde(default, deserialize_with = "wire::or_default")]
    pub case: CaseMode,
    /// Where matches may begin and end. Default: [`MatchBoundary::Anywhere`]. In JSON `whole_word`, a boolean.
    #[serde(rename = "whole_word", default, deserialize_with = "wire::or_default")]
    pub boundary: MatchBoundary,
    /// How far a match extends. Default: [`MultilineMode::SingleLine`]. In JSON `multiline`, a boolean.
    #[serde(rename = "multiline", default, deserialize_with = "wire::or_default")]
    pub span: MultilineMode,
    /// Whether the search returns the lines that do not match. Default: [`InvertMatch::No`]. In JSON a boolean.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub invert: InvertMatch,
    /// The number of context lines before each match, at most [`GrepRequest::MAX_CONTEXT`]. Default: 0.
    #[serde(default, deserialize_with = "wire::whole")]
    pub before: u32,
    /// The number of context lines after each match, at most [`GrepRequest::MAX_CONTEXT`]. Default: 0.
    #[serde(default, deserialize_with = "wire::whole")]
    pub after: u32,
    /// The output of the search. Default: [`GrepOutput::Matches`].
    #[serde(default, deserialize_with = "wire::or_default")]
    pub output: GrepOutput,
    /// The maximum number of matches, or of files if the output is files or counts. Context is not counted. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub limit: Option<u64>,
    /// The maximum number of matches in one file. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub limit_per_file: Option<u64>,
    /// The hidden names to include. Default: [`HiddenNames::Skip`].
    #[serde(default, deserialize_with = "wire::or_default")]
    pub hidden: HiddenNames,
    /// Whether ignore files apply. Default: [`IgnoreMode::Apply`]. In JSON `no_ignore`, a boolean.
    #[serde(rename = "no_ignore", default, deserialize_with = "wire::or_default")]
    pub ignore: IgnoreMode,
    /// How files with NUL bytes are treated. Default: [`BinaryMode::Skip`].
    #[serde(default, deserialize_with = "wire::or_default")]
    pub binary: BinaryMode,
    /// How links are treated. Default: [`LinkMode::Skip`].
    #[serde(default, deserialize_with = "wire::or_default")]
    pub links: LinkMode,
    /// The size in bytes above which files are skipped. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub max_file_size: Option<u64>,
    /// The size in bytes at which lines of the result are cut. Default: [`GrepRequest::DEFAULT_MAX_LINE_BYTES`].
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub max_line_bytes: Option<u64>,
    /// The maximum size in bytes of a collected result, with text and paths; a stream has no limit. Default:
    /// [`GrepRequest::DEFAULT_MAX_RESULT_BYTES`]. Values over [`GrepRequest::MAX_RESULT_BYTES`] are lowered to it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub max_result_bytes: Option<u64>,
}

impl GrepRequest {
    /// The maximum number of context lines on each side.
    pub const MAX_CONTEXT: u32 = 10_000;

    /// The default size at which lines are cut: 64 KiB.
    pub const DEFAULT_MAX_LINE_BYTES: u64 = 64 << 10;

    /// The default maximum size of a collected result: 32 MiB.
    pub const DEFAULT_MAX_RESULT_BYTES: u64 = 32 << 20;

    /// The upper bound of the maximum size of a collected result: 256 MiB.
    pub const MAX_RESULT_BYTES: u64 = 256 << 20;

    /// Creates a search of all files below the root for `pattern`.
    pub fn new(pattern: Pattern) -> Self {
        Self {
            pattern,
            path: VfsPath::root(),
            glob: Vec::new(),
            file_types: Vec::new(),
            case: CaseMode::default(),
            boundary: MatchBoundary::default(),
            span: MultilineMode::default(),
            invert: InvertMatch::default(),
            before: 0,
            after: 0,
            output: GrepOutput::default(),
            limit: None,
            limit_per_file: None,
            hidden: HiddenNames::default(),
            ignore: IgnoreMode::default(),
            binary: BinaryMode::default(),
            links: LinkMode::default(),
            max_file_size: None,
            max_line_bytes: None,
            max_result_bytes: None,
        }
    }

    /// Creates a search of all files below the root for a literal text.
    pub fn literal(text: impl Into<String>) -> Self {
        Self::new(Pattern::Literal(text.into()))
    }

    /// Creates a search of all files below the root for a regular expression.
    pub fn regex(regex: impl Into<String>) -> Self {
        Self::new(Pattern::Regex(regex.into()))
    }

    /// Sets the directory or file to search.
    #[must_use]
    pub fn path(mut self, path: VfsPath) -> Self {
        self.path = path;
        self
    }

    /// Adds a glob that files must match.
    #[must_use]
    pub fn glob(mut self, glob: impl Into<String>) -> Self {
        self.glob.push(glob.into());
        self
    }

    /// Adds a type of files to search.
    #[must_use]
    pub fn file_type(mut self, name: impl Into<String>) -> Self {
        self.file_types.push(name.into());
        self
    }

    /// Sets the case sensitivity.
    #[must_use]
    pub fn case(mut self, case: CaseMode) -> Self {
        self.case = case;
        self
    }

    /// Matches whole words only.
    #[must_use]
    pub fn whole_word(mut self) -> Self {
        self.boundary = MatchBoundary::Word;
        self
    }

    /// Makes the search multiline.
    #[must_use]
    pub fn multiline(mut self) -> Self {
        self.span = MultilineMode::MultiLine;
        self
    }

    /// Returns the lines that do not match.
    #[must_use]
    pub fn invert(mut self) -> Self {
        self.invert = InvertMatch::Yes;
        self
    }

    /// Sets the numbers of context lines.
    #[must_use]
    pub fn context(mut self, before: u32, after: u32) -> Self {
        (self.before, self.after) = (before, after);
        self
    }

    /// Sets the output of the search.
    #[must_use]
    pub fn output(mut self, output: GrepOutput) -> Self {
        self.output = output;
        self
    }

    /// Limits the number of matches.
    #[must_use]
    pub fn limit(mut self, matches: u64) -> Self {
        self.limit = Some(matches);
        self
    }

    /// Limits the number of matches in one file.
    #[must_use]
    pub fn limit_per_file(mut self, matches: u64) -> Self {
        self.limit_per_file = Some(matches);
        self
    }

    /// Includes all hidden names. Names whose dot a glob contains, as `.env*` does, are included anyway.
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

    /// Includes files that ignore files exclude.
    #[must_use]
    pub fn no_ignore(mut self) -> Self {
        self.ignore = IgnoreMode::Disregard;
        self
    }

    /// Sets how files with NUL bytes are treated.
    #[must_use]
    pub fn binary(mut self, binary: BinaryMode) -> Self {
        self.binary = binary;
        self
    }

    /// Sets how links are treated.
    #[must_use]
    pub fn links(mut self, links: LinkMode) -> Self {
        self.links = links;
        self
    }

    /// Skips files over `bytes`.
    #[must_use]
    pub fn max_file_size(mut self, bytes: u64) -> Self {
        self.max_file_size = Some(bytes);
        self
    }

    /// Sets the size at which lines of the result are cut.
    #[must_use]
    pub fn max_line_bytes(mut self, bytes: u64) -> Self {
        self.max_line_bytes = Some(bytes);
        self
    }

    /// Sets the maximum size of a collected result.
    #[must_use]
    pub fn max_result_bytes(mut self, bytes: u64) -> Self {
        self.max_result_bytes = Some(bytes);
        self
    }
}

/// Whether a line is a match or context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// The line matches.
    #[default]
    Match,
    /// The line is context of a match.
    Context,
}

/// A matching line, or a line of context.
///
/// The `text` of a multiline match contains all its lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GrepMatch {
    /// The file.
    pub path: VfsPath,
    /// The 1-based number of the first line.
    pub line: u64,
    /// The 1-based byte of the first submatch in the line; 0 for context and for an inverted search.
    pub column: u64,
    /// The line without its ending, in which invalid UTF-8 is replaced by U+FFFD.
    pub text: LineText,
    /// The positions of the pattern in `text`, at most the first 65,536.
    #[serde(default, skip_serializing_if = "Submatches::is_empty")]
    pub submatches: Submatches,
    /// Whether the line is a match or context.
    #[serde(default)]
    pub kind: LineKind,
    /// The byte offset of the first line in the file; in a UTF-16 file, the offset in its UTF-8 form.
    pub byte_offset: u64,
    /// Whether `text` was cut at `max_line_bytes`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl GrepMatch {
    /// Creates a matching line without submatches.
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

/// A file with matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MatchedFile {
    /// The file.
    pub path: VfsPath,
    /// The number of matches; `None` with [`GrepOutput::Files`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

impl MatchedFile {
    /// Creates the count of `path`.
    pub fn new(path: VfsPath, count: Option<u64>) -> Self {
        Self { path, count }
    }
}

/// The statistics of a content search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct GrepSummary {
    /// The number of files that were searched.
    pub files_searched: u64,
    /// The number of matches that were returned, without context.
    pub matches: u64,
    /// The number of files with a match.
    pub files_matched: u64,
    /// The numbers of skipped entries.
    pub skipped: Skipped,
    /// The reason for which there may be more matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<TruncationReason>,
}

/// An item of a streamed search, in the order of the result. In JSON an object with one field, which is named after the variant,
/// such as `{"match": {"path": "/a.rs", "line": 3, …}}` and at last `{"end": {"files_searched": 7, …}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GrepEvent {
    /// A line, with [`GrepOutput::Matches`].
    Match(GrepMatch),
    /// A file, with [`GrepOutput::Files`] and [`GrepOutput::Counts`].
    File(MatchedFile),
    /// An entry that could not be read.
    Problem(Problem),
    /// The statistics, which are the last item unless the stream ends with an error.
    End(GrepSummary),
}

/// The collected result of a content search, sorted by path and line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GrepResult {
    /// The lines; empty unless the output is [`GrepOutput::Matches`].
    #[serde(default)]
    pub matches: Vec<GrepMatch>,
    /// The files; empty unless the output is [`GrepOutput::Files`] or [`GrepOutput::Counts`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<MatchedFile>,
    /// The reason for which there may be more matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<TruncationReason>,
    /// The numbers of skipped entries.
    #[serde(default, skip_serializing_if = "Skipped::is_empty")]
    pub skipped: Skipped,
    /// The entries that could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
    /// The number of files that were searched.
    #[serde(default)]
    pub files_searched: u64,
}
