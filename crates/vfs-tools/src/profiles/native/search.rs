//! Tool `search`: matching lines by file, or counts by directory if there are many.

use std::collections::BTreeMap;

use async_trait::async_trait;
use futures::StreamExt as _;
use vfs_core::operation::OperationClass;
use vfs_core::search::{CaseMode, GrepMatch, GrepOutput, GrepSummary, LineKind, Pattern};
use vfs_core::{Error, ErrorKind, GrepEvent, GrepRequest, Problem, VfsPath};

use super::counts_by_directory::{CountsByDirectory, MatchCounts};
use super::enclosing_lines::enclosing_lines;
use super::list::left_out;
use super::page::{in_one_line, numbers};
use super::search_page::{SearchPage, SearchPageItem};
use super::{errors, max_result_bytes};
use crate::action::{Action, CallScope, Effect};
use crate::annotations::Annotations;
use crate::outcome::ToolOutcome;
use crate::parameter::{Parameter, ParameterKind};
use crate::regex_signs::has_regex_signs;
use crate::result_metadata::note_problems;
use crate::tool_definition::{Needs, ToolDefinition};
use crate::with_count::with_count;

/// Maximum size of a shown line in bytes.
const MAX_LINE_BYTES: u64 = 400;

/// Levels of directories that have a count of their own.
const SUMMARY_DEPTH: usize = 3;

const DEFAULT_LIMIT: u64 = 100;

/// Start of the message about a malformed regular expression, which the contract of all backends fixes.
const BAD_REGEX: &str = "Invalid regex pattern:";

/// What is counted: a line with two matches counts once, and an edit of it has two places.
const LINE: &str = "matching line";

/// Maximum number of lines of a summary.
const MAX_SUMMARY_LINES: u64 = 50;

pub(super) const SEARCH: ToolDefinition = ToolDefinition {
    name: "search",
    parameters: &[
        Parameter::required("pattern", ParameterKind::Text, "Literal text, or a regular expression with `regex`.")
            .aliases(&["query", "text"]),
        Parameter::optional("path", ParameterKind::Path, "Directory or file. Default '/'.").aliases(&[
            "directory",
            "dir_path",
            "dir",
            "file_path",
        ]),
        Parameter::optional("glob", ParameterKind::Glob, "Pattern of files, such as '*.rs'.")
            .aliases(&["include", "match"]),
        Parameter::optional("regex", ParameterKind::Boolean, "Default false."),
        Parameter::optional("word", ParameterKind::Boolean, "Whole words only. Default false.")
            .aliases(&["whole_word"]),
        Parameter::optional(
            "case",
            ParameterKind::Choice(&["smart", "sensitive", "insensitive"]),
            "'smart' (default): sensitive if the pattern has a capital.",
        ),
        Parameter::optional("show", ParameterKind::Choice(&["lines", "files", "counts"]), "Default 'lines'."),
        Parameter::hidden(
            "output_mode",
            ParameterKind::Choice(&["content", "files_with_matches", "count", "lines", "files", "counts"]),
        ),
        Parameter::optional("hidden", ParameterKind::Boolean, "Also hidden and ignored files. Default false.")
            .aliases(&["no_ignore", "include_hidden"]),
        Parameter::optional("context", ParameterKind::Integer { min: 0, max: 20 }, "Lines around a match. Default 0."),
        Parameter::optional(
            "limit",
            ParameterKind::Integer { min: 1, max: 10_000 },
            "Maximum number of matches or files. Default 100.",
        )
        .aliases(&["max_count", "head_limit"]),
        Parameter::optional(
            "skip",
            ParameterKind::Integer { min: 0, max: i64::MAX },
            "Number of them to skip, for pages in place of counts.",
        ),
    ],
    annotations: Annotations::read_only("Search in files"),
    needs: Needs::Files,
    anthropic_type: None,
    description: |_| {
        "Searches the text of files, without hidden, ignored and binary ones. Shows matching lines by file, with the definition around them \
         after `=`; counts by directory if there are more than `limit`."
            .to_owned()
    },
    action: |arguments| {
        let pattern = arguments.required_text("pattern")?;
        let pattern =
            if arguments.boolean("regex") == Some(true) { Pattern::Regex(pattern) } else { Pattern::Literal(pattern) };
        let case = match arguments.text("case") {
            Some("sensitive") => CaseMode::Sensitive,
            Some("insensitive") => CaseMode::Insensitive,
            _ => CaseMode::Smart,
        };
        let context = arguments.count("context").unwrap_or(0) as u32;
        let mut request =
            GrepRequest::new(pattern).path(arguments.path_or_root("path")).case(case).context(context, context);
        request = match arguments.text("glob") {
            None | Some("") => request,
            Some(glob) => request.glob(glob),
        };
        if arguments.boolean("word") == Some(true) {
            request = request.whole_word();
        }
        if arguments.boolean("hidden") == Some(true) {
            request = request.hidden().no_ignore();
        }
        let output = match arguments.text("show").or(arguments.text("output_mode")) {
            Some("files" | "files_with_matches") => GrepOutput::Files,
            Some("counts" | "count") => GrepOutput::Counts,
            _ => GrepOutput::Matches,
        };
        Ok(Box::new(SearchAction {
            request: request.output(output).max_line_bytes(MAX_LINE_BYTES),
            limit: arguments.count("limit").unwrap_or(DEFAULT_LIMIT),
            skip: arguments.count("skip"),
        }))
    },
};

struct SearchAction {
    request: GrepRequest,
    limit: u64,
    skip: Option<u64>,
}

#[async_trait]
impl Action for SearchAction {
    fn effect(&self) -> Effect {
        Effect::new(OperationClass::Read, vec![self.request.path.clone()])
    }

    async fn perform(&self, scope: &CallScope<'_>) -> ToolOutcome {
        match self.try_perform(scope).await {
            Ok(outcome) => outcome,
            Err(error) => {
                // The kind is that of a bad `glob`, too.
                let is_bad_regex = error.message().starts_with(BAD_REGEX);
                let mut outcome = errors::failure_outcome(scope, &self.request.path, error).await;
                if is_bad_regex {
                    outcome.push_note("leave out `regex` if the pattern is literal text");
                }
                outcome
            }
        }
    }
}

impl SearchAction {
    async fn try_perform(&self, scope: &CallScope<'_>) -> Result<ToolOutcome, Error> {
        let window = self.window(scope).await?;
        if window.has_more && self.skip.is_none() {
            let (outcome, files) = self.summary(scope).await?;
            // Of one file there is nothing to summarise.
            if files > 1 {
                return Ok(outcome);
            }
        }
        let mut text =
            if window.next == 0 { self.nothing(scope, &window.summary).await? } else { self.header(&window) };
        let (around, left_out) = match self.shows_definitions() {
            true => enclosing_lines(scope, window.lines()).await,
            false => (BTreeMap::new(), 0),
        };
        if left_out > 0 {
            let files = with_count(left_out as u64, "source file");
            text.push_str(&format!("; definitions not looked for in the last {files}"));
        }
        text.push('\n');
        let left_out = window.render(&mut text, &around);
        if left_out > 0 {
            text.push_str(&format!("[{} left out, `--` in their place]\n", with_count(left_out, "definition")));
        }
        if window.has_more {
            text.push_str(&format!("[more: skip={}]", window.next));
        }
        let is_truncated = window.has_more || window.has_cut_line() || window.summary.truncated.is_some();
        let mut outcome = ToolOutcome { is_truncated, ..ToolOutcome::text(text.trim_end_matches('\n')) };
        note_problems(&mut outcome, &window.problems);
        Ok(outcome)
    }

    /// Returns whether the definition around a match is shown: lines around it say more.
    fn shows_definitions(&self) -> bool {
        self.request.output == GrepOutput::Matches && self.request.before == 0
    }

    /// Reads the results that are shown, and stops at the first that is not.
    async fn window(&self, scope: &CallScope<'_>) -> Result<SearchPage, Error> {
        let skip = self.skip.unwrap_or(0);
        let mut events = scope.backend.grep_stream(scope.cx.clone(), self.request.clone());
        let mut window = SearchPage::new(max_result_bytes(scope), self.shows_definitions());
        let mut context: Vec<GrepMatch> = Vec::new();
        while let Some(event) = events.next().await {
            let fits = match event? {
                GrepEvent::Match(line) if line.kind == LineKind::Context => {
                    context.push(line);
                    continue;
                }
                GrepEvent::Match(_) | GrepEvent::File(_) if window.next < skip => {
                    // The lines after a match that is skipped may be those before the next one.
                    context.clear();
                    window.next += 1;
                    continue;
                }
                GrepEvent::Match(_) | GrepEvent::File(_) if window.next - skip >= self.limit => false,
                GrepEvent::Match(found) => {
                    if window.items.is_empty() {
                        self.keep_lines_before(&mut context, &found);
                    }
                    window.push_match(&mut context, found)
                }
                GrepEvent::File(file) => {
                    let count = file.count.map(|count| format!(": {count}")).unwrap_or_default();
                    window.push_file(format!("{}{count}", in_one_line(file.path.as_str())))
                }
                GrepEvent::Problem(problem) => {
                    window.problems.push(problem);
                    continue;
                }
                GrepEvent::End(summary) => {
                    window.summary = summary;
                    break;
                }
                _ => continue,
            };
            window.has_more = !fits;
            if window.has_more {
                break;
            }
            window.next += 1;
        }
        if let Some(SearchPageItem::Line(last)) = window.items.last() {
            let (path, end) = (last.path.clone(), last.line + u64::from(self.request.after));
            context.retain(|line| line.path == path && line.line <= end);
            window.push_context(context);
        }
        Ok(window)
    }

    /// Removes the lines of `context` that do not belong to `found`.
    fn keep_lines_before(&self, context: &mut Vec<GrepMatch>, found: &GrepMatch) {
        let first = found.line.saturating_sub(u64::from(self.request.before));
        context.retain(|line| line.path == found.path && line.line >= first);
    }

    fn header(&self, window: &SearchPage) -> String {
        let left_out = left_out(&window.summary.skipped);
        let shown = window.next;
        let noun = if self.request.output == GrepOutput::Matches { LINE } else { "file" };
        match self.skip.unwrap_or(0) {
            skip if skip > 0 || window.has_more => format!("{}{left_out}", numbers(noun, skip, shown)),
            _ => format!("{}{left_out}", with_count(shown, noun)),
        }
    }

    /// Returns counts by directory, and the number of files.
    async fn summary(&self, scope: &CallScope<'_>) -> Result<(ToolOutcome, u64), Error> {
        let request = self.request.clone().context(0, 0).output(GrepOutput::Counts);
        let mut summary = CountsByDirectory::new(&self.request.path, SUMMARY_DEPTH);
        let (total, end, problems) = count(scope, request, |path, matches| summary.add(path, matches)).await?;
        let page = summary.lines(MAX_SUMMARY_LINES, max_result_bytes(scope), |key, found| {
            let files =
                if key.ends_with('/') { format!(" in {}", with_count(found.files, "file")) } else { String::new() };
            format!("{key}  {}{files}", found.matches)
        });
        let at_least = if end.truncated.is_some() { "at least " } else { "" };
        let header = format!(
            "{at_least}{} in {}{}, too many to show; by directory below {}",
            with_count(total.matches, LINE),
            with_count(total.files, "file"),
            left_out(&end.skipped),
            self.request.path
        );
        let has = |is_letter: fn(char) -> bool| self.request.pattern.as_str().contains(is_letter);
        let is_folded = self.request.case == CaseMode::Smart && has(char::is_lowercase) && !has(char::is_uppercase);
        let case = if is_folded { ", case='sensitive'" } else { "" };
        let footer =
            format!("[for the lines: a narrower `path` or `glob`, a longer pattern{case}, or pages from skip=0]");
        let mut outcome = ToolOutcome { is_truncated: true, ..ToolOutcome::text(page.into_text(&header, &footer)) };
        note_problems(&mut outcome, &problems);
        Ok((outcome, total.files))
    }

    /// Returns that nothing was found, and what a pattern that looks like a regular expression would find as one.
    async fn nothing(&self, scope: &CallScope<'_>, summary: &GrepSummary) -> Result<String, Error> {
        let searched = with_count(summary.files_searched, "file");
        let text = format!("no matches in {searched} below {}{}", self.request.path, left_out(&summary.skipped));
        let Pattern::Literal(pattern) = &self.request.pattern else { return Ok(text) };
        if !looks_like_regex(pattern) {
            return Ok(text);
        }
        let mut request = self.request.clone().context(0, 0).output(GrepOutput::Counts);
        request.pattern = Pattern::Regex(pattern.clone());
        let as_expression = match count(scope, request, |_, _| {}).await {
            Ok((MatchCounts { files, matches }, _, _)) if matches > 0 => {
                let (matches, files) = (with_count(matches, LINE), with_count(files, "file"));
                format!("as a regular expression (regex=true) it has {matches} in {files}.")
            }
            // The model may have meant an expression, and left out a sign of it.
            Err(error) if error.kind() == ErrorKind::InvalidPattern => {
                "for a regular expression set regex=true.".to_owned()
            }
            Ok(_) | Err(_) => return Ok(text),
        };
        Ok(format!("{text}\nThe pattern is literal text; {as_expression}"))
    }
}

/// Counts the matches of `request`, whose output is counts.
async fn count(
    scope: &CallScope<'_>,
    request: GrepRequest,
    mut add: impl FnMut(&VfsPath, u64),
) -> Result<(MatchCounts, GrepSummary, Vec<Problem>), Error> {
    let mut events = scope.backend.grep_stream(scope.cx.clone(), request);
    let (mut total, mut problems) = (MatchCounts::default(), Vec::new());
    while let Some(event) = events.next().await {
        match event? {
            GrepEvent::File(file) => {
                let matches = file.count.unwrap_or(0);
                total.files += 1;
                total.matches += matches;
                add(&file.path, matches);
            }
            GrepEvent::Problem(problem) => problems.push(problem),
            GrepEvent::End(summary) => return Ok((total, summary, problems)),
            _ => {}
        }
    }
    Ok((total, GrepSummary::default(), problems))
}

/// Returns whether `pattern` is more likely an expression than literal text.
fn looks_like_regex(pattern: &str) -> bool {
    has_regex_signs(pattern)
        || pattern.contains('|') && !pattern.contains("||")
        || pattern.starts_with('^')
        || pattern.ends_with('$')
}
