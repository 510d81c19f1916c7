//! Tool `list`: files below a directory, or counts by directory if there are many.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use async_trait::async_trait;
use vfs_core::operation::OperationClass;
use vfs_core::search::{EntryKinds, Skipped};
use vfs_core::{Error, ErrorKind, FileInfo, GlobRequest, GlobResult, StatRequest, VfsPath};

use super::counts_by_directory::{CountsByDirectory, relative};
use super::page::{Page, in_one_line, numbers};
use super::{errors, max_result_bytes};
use crate::action::{Action, CallScope, Effect};
use crate::annotations::Annotations;
use crate::outcome::ToolOutcome;
use crate::parameter::{Parameter, ParameterKind};
use crate::result_metadata::note_problems;
use crate::tool_definition::{Needs, ToolDefinition};
use crate::with_count::with_count;

/// Maximum number of entries that are read. A result says if there are more.
const MAX_ENTRIES: u64 = 200_000;

/// Maximum number of characters of a path or pattern in a header.
const MAX_HEADER_CHARACTERS: usize = 300;

const DEFAULT_LIMIT: u64 = 50;
const DEFAULT_DEPTH: u64 = 2;

pub(super) const LIST: ToolDefinition = ToolDefinition {
    name: "list",
    parameters: &[
        Parameter::optional("path", ParameterKind::Path, "Directory. Default '/'.").aliases(&[
            "directory",
            "dir_path",
            "dir",
        ]),
        Parameter::optional("match", ParameterKind::Glob, "Pattern such as '*.rs' or 'src/**/*.rs'.")
            .aliases(&["pattern", "glob"]),
        Parameter::optional("hidden", ParameterKind::Boolean, "Also hidden and ignored files. Default false.")
            .aliases(&["no_ignore", "include_hidden"]),
        Parameter::optional(
            "sort",
            ParameterKind::Choice(&["name", "size", "modified"]),
            "Largest or newest first. Default 'name'.",
        ),
        Parameter::optional(
            "depth",
            ParameterKind::Integer { min: 1, max: 32 },
            "Levels of directories that have a count of their own. Default 2.",
        ),
        Parameter::optional(
            "limit",
            ParameterKind::Integer { min: 1, max: 10_000 },
            "Maximum number of lines. Default 50.",
        ),
        Parameter::optional(
            "skip",
            ParameterKind::Integer { min: 0, max: i64::MAX },
            "Number of files to skip, for pages in place of counts.",
        ),
    ],
    annotations: Annotations::read_only("List files"),
    needs: Needs::Files,
    anthropic_type: None,
    description: |_| {
        "Lists the files below a directory, without hidden and ignored ones; counts by directory if there are more than `limit`."
            .to_owned()
    },
    action: |arguments| {
        Ok(Box::new(ListAction {
            path: arguments.path_or_root("path"),
            pattern: arguments.text("match").filter(|pattern| !pattern.is_empty()).map(str::to_owned),
            sort: match arguments.text("sort") {
                Some("size") => Sort::Size,
                Some("modified") => Sort::Modified,
                _ => Sort::Name,
            },
            depth: arguments.count("depth").unwrap_or(DEFAULT_DEPTH) as usize,
            limit: arguments.count("limit").unwrap_or(DEFAULT_LIMIT),
            skip: arguments.count("skip"),
            shows_hidden: arguments.boolean("hidden") == Some(true),
        }))
    },
};

struct ListAction {
    path: VfsPath,
    pattern: Option<String>,
    sort: Sort,
    depth: usize,
    limit: u64,
    skip: Option<u64>,
    shows_hidden: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Name,
    Size,
    Modified,
}

#[async_trait]
impl Action for ListAction {
    fn effect(&self) -> Effect {
        Effect::new(OperationClass::Read, vec![self.path.clone()])
    }

    async fn perform(&self, scope: &CallScope<'_>) -> ToolOutcome {
        match self.found(scope).await {
            Ok(found) => self.shown(found, max_result_bytes(scope)),
            Err(error) if error.kind() == ErrorKind::NotADirectory && self.is_file(scope).await => {
                let text = format!("Error: {} is a file; read it", self.path);
                ToolOutcome::of_error(&error, text)
            }
            Err(error) => errors::failure_outcome(scope, &self.path, error).await,
        }
    }
}

impl ListAction {
    async fn is_file(&self, scope: &CallScope<'_>) -> bool {
        let info = scope.backend.stat(scope.cx, StatRequest::new(self.path.clone())).await;
        info.is_ok_and(|info| !info.is_dir)
    }

    async fn found(&self, scope: &CallScope<'_>) -> Result<GlobResult, Error> {
        let request = GlobRequest::new(self.pattern.as_deref().unwrap_or("**/*")).path(self.path.clone());
        let request = if self.shows_hidden { request.hidden().no_ignore() } else { request };
        let kinds = if self.pattern.is_none() { EntryKinds::All } else { EntryKinds::Files };
        scope.backend.glob(scope.cx, request.kinds(kinds).limit(MAX_ENTRIES)).await
    }

    fn shown(&self, found: GlobResult, max_bytes: usize) -> ToolOutcome {
        let GlobResult { entries, truncated, skipped, problems, .. } = found;
        let mut entries = files_and_bare_directories(entries);
        match self.sort {
            Sort::Name => {}
            Sort::Size => entries.sort_by_key(|entry| Reverse(entry.size)),
            Sort::Modified => entries.sort_by_key(|entry| Reverse(entry.modified_at)),
        }
        let total = entries.len() as u64;
        let short = |text: &str| in_one_line(text).chars().take(MAX_HEADER_CHARACTERS).collect::<String>();
        let of_pattern =
            self.pattern.as_ref().map(|pattern| format!(" matching {}", short(pattern))).unwrap_or_default();
        let mut header = format!(
            "{}{of_pattern} below {}{}",
            with_count(total, "file"),
            short(self.path.as_str()),
            left_out(&skipped)
        );
        if total == 0 && self.pattern.as_ref().is_some_and(|pattern| pattern.starts_with('!')) {
            header.push_str("; `match` cannot exclude files");
        }
        if truncated.is_some() {
            header.push_str(&format!("; only the first {MAX_ENTRIES} entries by name were looked at: narrow `path`"));
        }
        let is_summary = self.skip.is_none() && self.sort == Sort::Name && total > self.limit;
        let (page, footer) = if is_summary {
            header.push_str("; by directory");
            let mut summary = CountsByDirectory::new(&self.path, self.depth);
            entries.iter().for_each(|entry| summary.add(&entry.path, 0));
            let page = summary.lines(self.limit, max_bytes, |key, found| match key.ends_with('/') {
                true => format!("{key}  {}", found.files),
                false => key.to_owned(),
            });
            (page, "[for the files: a deeper `path`, `match`, or pages from skip=0]".to_owned())
        } else {
            self.page(&entries, max_bytes, &mut header)
        };
        let is_truncated = !footer.is_empty() || truncated.is_some();
        let mut outcome = ToolOutcome { is_truncated, ..ToolOutcome::text(page.into_text(&header, &footer)) };
        note_problems(&mut outcome, &problems);
        outcome
    }

    fn page(&self, entries: &[FileInfo], max_bytes: usize, header: &mut String) -> (Page, String) {
        let skip = self.skip.unwrap_or(0);
        let rest = entries.iter().skip(usize::try_from(skip).unwrap_or(usize::MAX));
        let mut page = Page::new(max_bytes);
        for entry in rest.take(usize::try_from(self.limit).unwrap_or(usize::MAX)) {
            if !page.push(&self.line(entry)) {
                break;
            }
        }
        let (next, total) = (skip.saturating_add(page.items), entries.len() as u64);
        if page.items < total {
            let order = match self.sort {
                Sort::Name => "",
                Sort::Size => ", largest first",
                Sort::Modified => ", newest first",
            };
            header.push_str(&format!("{order}; {}", numbers("file", skip, if page.items == 0 { total } else { next })));
        }
        let footer = if next < total && page.items > 0 {
            format!("[{} more: skip={next}]", total - next)
        } else {
            String::new()
        };
        (page, footer)
    }

    fn line(&self, entry: &FileInfo) -> String {
        let name = in_one_line(relative(&entry.path, &self.path));
        let name = if entry.is_dir { format!("{name}/") } else { name.into_owned() };
        match self.sort {
            Sort::Name => name,
            Sort::Size => format!("{} {name}", size(entry.size)),
            Sort::Modified => match entry.modified_at {
                Some(at) => format!("{} {name}", at.format("%Y-%m-%d %H:%M:%S")),
                None => name,
            },
        }
    }
}

/// Returns the files, and the directories below which nothing is listed.
fn files_and_bare_directories(mut entries: Vec<FileInfo>) -> Vec<FileInfo> {
    let parents: BTreeSet<VfsPath> = entries.iter().filter_map(|entry| entry.path.parent()).collect();
    entries.retain(|entry| !entry.is_dir || !parents.contains(&entry.path));
    entries
}

/// Returns what was left out, in parentheses, or nothing.
pub(super) fn left_out(skipped: &Skipped) -> String {
    let counts = [
        (skipped.hidden, "hidden"),
        (skipped.ignored, "ignored"),
        (skipped.binary, "binary"),
        (skipped.too_large, "too large"),
        (skipped.links, "links"),
    ];
    let counts: Vec<_> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    if counts.is_empty() { String::new() } else { format!(" (without {})", counts.join(", ")) }
}

/// Returns a size in bytes in at most four characters and a unit of 1,024.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["k", "M", "G", "T", "P"];
    if bytes < 1024 {
        return bytes.to_string();
    }
    let (mut value, mut unit) = (bytes / 1024, 0);
    while value >= 1024 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1024, unit + 1);
    }
    format!("{value}{}", UNITS[unit])
}
