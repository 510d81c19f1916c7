//! The search tool: its parameters, and pages of its results.

use vfs_core::{CaseMode, Error, ErrorKind, GrepMatch, GrepOutput, GrepRequest, GrepResult, VfsPath};

use super::language::{Language, LanguageMarker};
use super::words::{NO_FILES, error_text, fitting, line_room};
use crate::annotations::Annotations;
use crate::argument_error::ArgumentError;
use crate::arguments::Arguments;
use crate::large_text::cut;
use crate::parameter::{Parameter, ParameterKind};
use crate::request_action::{RequestAction, ResultText};
use crate::tool_definition::{Needs, ToolDefinition};
use crate::with_count::with_count;

/// Maximum size of the matches of a search, of which a call shows a page.
const MAX_MATCHED_BYTES: u64 = 8 << 20;

const NO_MATCHES: &str = "No matches found";

const ANY_NUMBER: ParameterKind = ParameterKind::Integer { min: i64::MIN, max: i64::MAX };

pub(super) const fn grep<L: LanguageMarker>() -> ToolDefinition {
    ToolDefinition {
        name: "grep",
        parameters: const { &parameters(L::LANGUAGE) },
        annotations: Annotations::read_only("Search in files"),
        needs: Needs::Files,
        anthropic_type: None,
        description: |_| {
            let text = L::LANGUAGE.choose(
                "Searches the lines of files for a regular expression in the syntax of ripgrep, in which literal braces and parentheses are \
                 escaped. Hidden and ignored files are left out.",
                "用 ripgrep 语法的正则表达式逐行搜索文件内容，字面的括号需要转义。跳过隐藏文件和被忽略的文件。",
            );
            text.to_owned()
        },
        action: |arguments| {
            let view = GrepView {
                language: L::LANGUAGE,
                offset: size(arguments, "offset").unwrap_or(0),
                head_limit: size(arguments, "head_limit").filter(|limit| *limit > 0),
                has_line_numbers: arguments.boolean("-n") != Some(false),
            };
            Ok(RequestAction::new(request(arguments)?, view, GrepView::show).explain(GrepView::error).boxed())
        },
    }
}

const fn parameters(language: Language) -> [Parameter; 13] {
    [
        Parameter::required("pattern", ParameterKind::Text, language.choose("Regular expression.", "正则表达式。"))
            .aliases(&["regex", "query"]),
        Parameter::optional(
            "path",
            ParameterKind::Path,
            language.choose("File or directory to search. Default '/'.", "要搜索的文件或目录。默认为 '/'。"),
        )
        .aliases(&["directory", "dir_path", "file_path"]),
        Parameter::optional(
            "glob",
            ParameterKind::Glob,
            language.choose("Pattern of the files to search, such as '*.js'.", "要搜索的文件的模式，如 '*.js'。"),
        )
        .aliases(&["include"]),
        Parameter::optional(
            "output_mode",
            ParameterKind::Choice(&["content", "files_with_matches", "count"]),
            language.choose(
                "'files_with_matches' (default): paths; 'content': matching lines; 'count': number of matching lines of each file.",
                "'files_with_matches'（默认）：路径；'content'：匹配的行；'count'：每个文件中匹配的行数。",
            ),
        ),
        Parameter::optional(
            "-C",
            ANY_NUMBER,
            language.choose("Lines around each match, for 'content'.", "每处匹配前后的行数，用于 'content'。"),
        )
        .aliases(&["context"]),
        Parameter::optional(
            "-B",
            ANY_NUMBER,
            language.choose("Lines before each match, for 'content'.", "每处匹配之前的行数，用于 'content'。"),
        )
        .aliases(&["before", "before_context"]),
        Parameter::optional(
            "-A",
            ANY_NUMBER,
            language.choose("Lines after each match, for 'content'.", "每处匹配之后的行数，用于 'content'。"),
        )
        .aliases(&["after", "after_context"]),
        Parameter::optional(
            "-n",
            ParameterKind::Boolean,
            language.choose("Line numbers, for 'content'. Default true.", "是否显示行号，用于 'content'。默认为 true。"),
        )
        .aliases(&["line_numbers"]),
        Parameter::optional(
            "-i",
            ParameterKind::Boolean,
            language.choose("Whether case is ignored. Default false.", "是否忽略大小写。默认为 false。"),
        )
        .aliases(&["case_insensitive", "ignore_case"]),
        Parameter::optional(
            "type",
            ParameterKind::Text,
            language.choose("Type of the files, such as 'py' or 'rust'.", "文件类型，如 'py' 或 'rust'。"),
        )
        .aliases(&["file_type"]),
        Parameter::optional(
            "head_limit",
            ANY_NUMBER,
            language.choose("Maximum number of lines or files. Default 0: all.", "最多返回的行数或文件数。默认为 0：全部。"),
        )
        .aliases(&["limit", "max_count"]),
        Parameter::optional(
            "offset",
            ANY_NUMBER,
            language.choose("Number of lines or files to skip. Default 0.", "要跳过的行数或文件数。默认为 0。"),
        ),
        Parameter::optional(
            "multiline",
            ParameterKind::Boolean,
            language.choose(
                "Whether a match may span lines, and `.` matches a line break. Default false.",
                "匹配是否可以跨行，且 `.` 匹配换行符。默认为 false。",
            ),
        ),
    ]
}

/// Returns a number, or 0 if it is negative.
fn size(arguments: &Arguments, name: &str) -> Option<usize> {
    arguments.integer(name).map(|number| usize::try_from(number.max(0)).unwrap_or(usize::MAX))
}

fn request(arguments: &Arguments) -> Result<GrepRequest, ArgumentError> {
    let output = match arguments.text("output_mode") {
        Some("content") => GrepOutput::Matches,
        Some("count") => GrepOutput::Counts,
        _ => GrepOutput::Files,
    };
    let request = GrepRequest::regex(arguments.required_text("pattern")?).path(arguments.path_or_root("path"));
    let mut request = request.output(output).max_result_bytes(MAX_MATCHED_BYTES);
    if let Some(glob) = arguments.text("glob").filter(|glob| !glob.is_empty()) {
        request = request.glob(glob);
    }
    if let Some(file_type) = arguments.text("type").filter(|file_type| !file_type.is_empty()) {
        request = request.file_type(file_type);
    }
    if arguments.boolean("-i") == Some(true) {
        request = request.case(CaseMode::Insensitive);
    }
    if arguments.boolean("multiline") == Some(true) {
        request = request.multiline();
    }
    if output == GrepOutput::Matches {
        let lines = |name| {
            let lines = arguments.integer("-C").or(arguments.integer(name))?;
            Some(lines.clamp(0, GrepRequest::MAX_CONTEXT.into()) as u32)
        };
        request = request.context(lines("-B").unwrap_or(0), lines("-A").unwrap_or(0));
    }
    Ok(request)
}

/// How the result of a search is shown.
#[derive(Debug)]
struct GrepView {
    language: Language,
    /// Number of lines or files to skip.
    offset: usize,
    /// Maximum number of lines or files.
    head_limit: Option<usize>,
    has_line_numbers: bool,
}

/// The lines or files that a call shows, of all that the search found.
struct GrepPage {
    lines: Vec<String>,
    total: usize,
    has_cut_line: bool,
}

/// A line of a match or of its context.
struct MatchLine<'a> {
    path: &'a VfsPath,
    number: u64,
    text: &'a str,
    is_cut: bool,
}

impl GrepView {
    fn show(&self, request: &GrepRequest, result: &GrepResult, max_characters: usize) -> ResultText {
        let GrepPage { mut lines, total, mut has_cut_line } = match request.output {
            GrepOutput::Files => self.files(result),
            GrepOutput::Counts => self.counts(result),
            _ => self.lines(result),
        };
        let mut kept = fitting(lines.iter().map(String::as_str), max_characters);
        // A page without a line would be the page to go on with.
        if kept == 0
            && let Some(line) = lines.first_mut()
        {
            cut(line, line_room(max_characters), " [line cut]");
            (kept, has_cut_line) = (1, true);
        }
        let body = lines[..kept].join("\n");
        let mut text = match request.output {
            GrepOutput::Files if total == 0 => NO_FILES.to_owned(),
            GrepOutput::Files => format!("Found {}\n{body}", with_count(total as u64, "file")),
            GrepOutput::Counts => {
                let matches = result.files.iter().filter_map(|file| file.count).sum();
                let (matches, files) = (with_count(matches, "total occurrence"), with_count(total as u64, "file"));
                format!("{}\n\nFound {matches} across {files}.", if total == 0 { NO_MATCHES } else { &body })
            }
            _ if lines.is_empty() => NO_MATCHES.to_owned(),
            _ => body,
        };
        if kept < lines.len() {
            let next = self.offset + kept;
            text.push_str(&match self.language {
                Language::English => format!("\n[truncated: continue with offset {next} of {total}]"),
                Language::Chinese => format!("\n[已截断：共 {total} 项，请从 offset {next} 继续]"),
            });
        }
        if result.truncated.is_some() {
            text.push_str(self.language.choose(
                "\n[truncated: the search stopped early; narrow `pattern`, `path` or `glob`]",
                "\n[已截断：搜索提前结束；请缩小 `pattern`、`path` 或 `glob` 的范围]",
            ));
        }
        ResultText { text, is_truncated: kept < lines.len() || result.truncated.is_some() || has_cut_line }
    }

    /// Returns paths in the order of the names of the files, as eino does.
    fn files(&self, result: &GrepResult) -> GrepPage {
        let mut paths: Vec<_> = result.files.iter().map(|file| &file.path).collect();
        paths.sort_by_key(|path| path.name());
        let lines = self.selected(&paths).map(ToString::to_string).collect();
        GrepPage { lines, total: paths.len(), has_cut_line: false }
    }

    /// Returns counts in the order of the paths.
    fn counts(&self, result: &GrepResult) -> GrepPage {
        let counts = self.selected(&result.files).map(|file| format!("{}:{}", file.path, file.count.unwrap_or(0)));
        GrepPage { lines: counts.collect(), total: result.files.len(), has_cut_line: false }
    }

    /// Returns lines in the order of the names of the files, as eino does.
    fn lines(&self, result: &GrepResult) -> GrepPage {
        let mut lines: Vec<_> = result.matches.iter().flat_map(match_lines).collect();
        lines.sort_by_key(|line| line.path.name());
        let shown = self.selected(&lines).map(|MatchLine { path, number, text, is_cut }| {
            let mark = if *is_cut { " [line cut]" } else { "" };
            match self.has_line_numbers {
                true => format!("{path}:{number}:{text}{mark}"),
                false => format!("{path}:{text}{mark}"),
            }
        });
        let has_cut_line = self.selected(&lines).any(|line| line.is_cut);
        GrepPage { lines: shown.collect(), total: lines.len(), has_cut_line }
    }

    /// Returns the items of the page.
    fn selected<'a, T>(&self, items: &'a [T]) -> impl Iterator<Item = &'a T> {
        items.iter().skip(self.offset).take(self.head_limit.unwrap_or(usize::MAX))
    }

    fn error(&self, request: &GrepRequest, error: &Error) -> String {
        if error.kind() == ErrorKind::InvalidArgument && request.pattern.as_str().is_empty() {
            return "pattern is required".to_owned();
        }
        error_text(error)
    }
}

/// Returns each line of a match, which may span lines.
fn match_lines(found: &GrepMatch) -> impl Iterator<Item = MatchLine<'_>> {
    let last = found.line + found.text.matches('\n').count() as u64;
    (found.line..).zip(found.text.split('\n')).map(move |(number, text)| MatchLine {
        path: &found.path,
        number,
        text: text.strip_suffix('\r').unwrap_or(text),
        is_cut: found.cut && number == last,
    })
}
