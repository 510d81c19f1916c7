//! Edits of several files, verified before the first is made and rolled back if one of them fails.

use std::collections::HashMap;

use bytes::Bytes;
use vfs_core::backend::MutationMode;
use vfs_core::edit::Replacement;
use vfs_core::error::ErrorDetail;
use vfs_core::search::Skipped;
use vfs_core::{
    EditRequest, EditResult, Error, ErrorKind, GrepOutput, GrepRequest, OpContext, Problem, StatRequest, Version,
    VfsPath, WriteMode, WriteRequest,
};

use super::errors;
use crate::action::CallScope;
use crate::outcome::{ChangedFile, FailureKind, MAX_ERROR_CHARACTERS, ToolOutcome};
use crate::with_count::with_count;

/// Maximum number of files of one call.
const MAX_FILES: usize = 1_000;

/// Characters that make a path a pattern, unless there is a file of this name. A backslash escapes one of them.
const PATTERN_CHARACTERS: [char; 5] = ['*', '?', '[', '{', '\\'];

/// Maximum size in bytes of the files of one call together, whose content is kept for a rollback.
const MAX_KEPT_BYTES: u64 = 64 << 20;

/// Maximum number of files that a failure names.
const MAX_NAMED_FILES: usize = 5;

/// An edit as the arguments have it.
#[derive(Debug, Clone)]
pub(super) struct PlannedEdit {
    pub(super) path: VfsPath,
    pub(super) old: String,
    pub(super) new: String,
    pub(super) is_everywhere: bool,
    pub(super) expected: Option<u64>,
}

impl PlannedEdit {
    /// Returns the path of the file, or the directory that a pattern of files names.
    pub(super) fn place(&self) -> VfsPath {
        match self.path.as_str().find(PATTERN_CHARACTERS) {
            None => self.path.clone(),
            Some(at) => {
                let fixed = self.path.as_str()[..at].rsplit_once('/').map_or("/", |(directory, _)| directory);
                // A part of a valid path is valid.
                VfsPath::parse(fixed).unwrap_or_default()
            }
        }
    }

    fn replacement(&self) -> Replacement {
        let replacement = Replacement::new(self.old.as_str(), self.new.as_str());
        let is_everywhere = self.is_everywhere || self.expected.is_some_and(|expected| expected > 1);
        if is_everywhere { replacement.all() } else { replacement }
    }
}

/// The edits of each file.
#[derive(Debug, Default)]
pub(super) struct EditPlan {
    files: Vec<FileEdits>,
    /// Files that match a pattern and were not searched.
    pub(super) skipped: Skipped,
    /// Files that match a pattern and could not be searched.
    pub(super) problems: Vec<Problem>,
}

/// The edits of one file.
#[derive(Debug)]
struct FileEdits {
    request: EditRequest,
    /// The number of the edit of each replacement.
    numbers: Vec<usize>,
    /// What a dry run has found.
    verified: Option<EditResult>,
}

/// Why nothing was made, or what stayed.
#[derive(Debug)]
pub(super) struct EditFailure {
    path: VfsPath,
    error: Error,
    /// Words before those of the error, such as `edit 2 of 3: `.
    place: String,
    /// Words after those of the error.
    consequence: String,
    /// Files that have another version than before.
    changed: Vec<ChangedFile>,
}

impl EditFailure {
    pub(super) fn new(path: &VfsPath, error: Error) -> Self {
        let error = error.or_path(path);
        Self { path: path.clone(), error, place: String::new(), consequence: String::new(), changed: Vec::new() }
    }

    /// Returns whether the call can be repeated, as nothing was made and the file still has the text that was shown.
    pub(super) async fn is_repeatable(&self, scope: &CallScope<'_>) -> bool {
        self.changed.is_empty()
            && self.consequence.is_empty()
            && errors::is_text_unchanged(scope, &self.path, &self.error).await
    }

    pub(super) async fn into_outcome(self, scope: &CallScope<'_>) -> ToolOutcome {
        let words = errors::error_text(scope, &self.path, &self.error).await;
        let words = match (self.place.is_empty(), words.strip_prefix("Error: ")) {
            (false, Some(rest)) => format!("Error: {}{rest}", self.place),
            (false, None) => format!("Error: {}{words}", self.place),
            (true, _) => words,
        };
        // What stayed is more important than all of the reason.
        let room = MAX_ERROR_CHARACTERS.saturating_sub(self.consequence.chars().count());
        let words: String = words.chars().take(room).collect();
        let kind = FailureKind::Backend(self.error.kind());
        ToolOutcome { changed: self.changed, ..ToolOutcome::failed(kind, format!("{words}{}", self.consequence)) }
    }
}

impl EditPlan {
    /// Finds the files of `edits`.
    pub(super) async fn new(scope: &CallScope<'_>, edits: &[PlannedEdit]) -> Result<Self, EditFailure> {
        let mut plan = Self::default();
        let mut by_path: HashMap<VfsPath, usize> = HashMap::new();
        for (number, edit) in edits.iter().enumerate() {
            let fail = |error| failure(edits, number, &edit.path, error);
            let is_pattern = edit.path.as_str().contains(PATTERN_CHARACTERS) && !exists(scope, &edit.path).await;
            let targets = if is_pattern {
                let place = edit.place();
                if plan.files.iter().any(|file| file.request.path.starts_with(&place)) {
                    let words = "an earlier edit changes files below the pattern, which is searched before; make it in a call of its own";
                    return Err(fail(Error::invalid_argument(words)));
                }
                plan.search(scope, edit).await.map_err(fail)?
            } else {
                vec![(edit.path.clone(), edit.replacement(), scope.session.version(&edit.path))]
            };
            for (path, replacement, shown) in targets {
                let at = *by_path.entry(path.clone()).or_insert_with(|| {
                    let request = EditRequest::list(path, Vec::new());
                    plan.files.push(FileEdits { request, numbers: Vec::new(), verified: None });
                    plan.files.len() - 1
                });
                let request = &mut plan.files[at].request;
                request.expected_version = request.expected_version.take().or(shown);
                request.replacements.push(replacement);
                plan.files[at].numbers.push(number);
            }
            if plan.files.len() > MAX_FILES {
                let words = format!("the call has over {MAX_FILES} files; narrow the pattern, or make several calls");
                return Err(fail(Error::new(ErrorKind::TooLarge, words)));
            }
        }
        Ok(plan)
    }

    /// Returns the files that match the pattern of an edit and have its text. They need not have been shown: the search has seen them.
    async fn search(
        &mut self,
        scope: &CallScope<'_>,
        edit: &PlannedEdit,
    ) -> Result<Vec<(VfsPath, Replacement, Option<Version>)>, Error> {
        if edit.old.is_empty() {
            return Err(Error::invalid_argument("`old` is empty; give the text to replace"));
        }
        let request = GrepRequest::literal(edit.old.as_str()).glob(edit.path.as_str()).output(GrepOutput::Files);
        let found = scope.backend.grep(scope.cx, request.limit(MAX_FILES as u64 + 1)).await?;
        if found.truncated.is_some() && found.files.len() <= MAX_FILES {
            let words = "the search for the pattern stopped early; narrow it";
            return Err(Error::new(ErrorKind::TooLarge, words));
        }
        if found.files.is_empty() {
            let words = format!(
                "no file matches the pattern and has the text ({} searched); escape a `[` of a name as `\\[`",
                with_count(found.files_searched, "file")
            );
            return Err(Error::new(ErrorKind::NoMatch, words));
        }
        self.skipped += found.skipped;
        self.problems.extend(found.problems);
        let replacement = edit.replacement().all();
        // What has to be read before is edited as it was then; otherwise the search has seen it.
        let shown = |path: &VfsPath| scope.session.version(path).filter(|_| scope.setup.reads_before_edits);
        let targets = found.files.into_iter().map(|file| {
            let shown = shown(&file.path);
            (file.path, replacement.clone(), shown)
        });
        Ok(targets.collect())
    }

    /// Verifies the edits by dry runs, unless the only one needs none.
    pub(super) async fn verify(&mut self, scope: &CallScope<'_>, edits: &[PlannedEdit]) -> Result<(), EditFailure> {
        let mut occurrences = vec![0; edits.len()];
        for FileEdits { request, numbers, verified } in &mut self.files {
            let result = scope.backend.edit(scope.cx, request.clone().dry_run()).await;
            let result = result.map_err(|error| {
                let number = failing_edit(edits, &error, numbers);
                failure(edits, number, &request.path, error)
            })?;
            if let [number] = **numbers {
                occurrences[number] += result.occurrences;
            } else if let Some(number) = numbers.iter().find(|number| edits[**number].expected.is_some()) {
                let words =
                    "`expect` needs a file that no other edit of the call changes; make the edit in a call of its own";
                return Err(failure(edits, *number, &request.path, Error::invalid_argument(words)));
            }
            request.expected_version = Some(result.version.clone());
            *verified = Some(result);
        }
        for (number, (edit, found)) in edits.iter().zip(occurrences).enumerate() {
            if let Some(expected) = edit.expected.filter(|expected| *expected != found) {
                let words = format!("`expect` is {expected}, and there are {found}; nothing was made");
                return Err(failure(edits, number, &edit.path, Error::invalid_argument(words)));
            }
        }
        Ok(())
    }

    /// Returns the files.
    pub(super) fn paths(&self) -> Vec<VfsPath> {
        self.files.iter().map(|file| file.request.path.clone()).collect()
    }

    /// Returns whether the backend verifies all of it in one request.
    pub(super) fn is_one_request(&self, edits: &[PlannedEdit]) -> bool {
        self.files.len() == 1 && edits.iter().all(|edit| edit.expected.is_none())
    }

    /// Returns what dry runs have found.
    pub(super) fn results(&self) -> impl Iterator<Item = &EditResult> {
        self.files.iter().filter_map(|file| file.verified.as_ref())
    }

    /// Makes the edits, each on the version that was verified. If one fails, those before it are rolled back.
    pub(super) async fn apply(
        &self,
        scope: &CallScope<'_>,
        edits: &[PlannedEdit],
    ) -> Result<Vec<EditResult>, EditFailure> {
        let kept = if self.files.len() > 1 { self.contents(scope).await? } else { Vec::new() };
        // An operation id is for one request.
        let cx = if self.files.len() > 1 { &scope.cx.without_operation_id() } else { scope.cx };
        let mut results: Vec<EditResult> = Vec::with_capacity(self.files.len());
        let mut guard = scope.session.begin_edits();
        for file in &self.files {
            guard.add(&file.request.path);
            match scope.backend.edit(cx, file.request.clone().with_diff()).await {
                Ok(result) => results.push(result),
                Err(error) => {
                    let number = failing_edit(edits, &error, &file.numbers);
                    let mut failure = failure(edits, number, &file.request.path, error);
                    let cleanup = scope.cx.for_cleanup();
                    file.find_lost_result(scope, &cleanup, &mut failure).await;
                    roll_back(scope, &cleanup, &results, kept, &mut failure).await;
                    guard.end();
                    return Err(failure);
                }
            }
        }
        guard.end();
        Ok(results)
    }

    /// Reads the content of each file, to be able to write it back.
    async fn contents(&self, scope: &CallScope<'_>) -> Result<Vec<Bytes>, EditFailure> {
        let size: u64 = self.results().map(|result| result.size).sum();
        if size > MAX_KEPT_BYTES {
            let path = self.files.first().map_or_else(VfsPath::root, |file| file.request.path.clone());
            let words =
                format!("the files of one call may have {MAX_KEPT_BYTES} bytes together; edit fewer of them at once");
            return Err(EditFailure::new(&path, Error::new(ErrorKind::TooLarge, words)));
        }
        let paths = self.files.iter().map(|file| file.request.path.clone()).collect();
        let files = scope.backend.download_files(scope.cx, paths).await;
        let contents = self.files.iter().zip(files).map(|(FileEdits { request, .. }, file)| {
            file.content.ok_or_else(|| {
                let error = file.cause.unwrap_or_else(|| Error::not_found(&request.path));
                EditFailure::new(&request.path, error)
            })
        });
        contents.collect()
    }
}

impl FileEdits {
    /// Says whether the edit of the file may have been made although it failed, as its result was lost.
    async fn find_lost_result(&self, scope: &CallScope<'_>, cx: &OpContext, failure: &mut EditFailure) {
        use ErrorKind::{Cancelled, Internal, Timeout, Unavailable};
        if !matches!(failure.error.kind(), Timeout | Cancelled | Unavailable | Internal) {
            return;
        }
        let path = &self.request.path;
        let now = scope.backend.stat(cx, StatRequest::new(path.clone())).await.ok().and_then(|info| info.version);
        if now.is_none() || now != self.request.expected_version {
            failure.consequence.push_str(&format!("\n{path} may have its edits; read it."));
            failure.changed.extend(now.map(|version| ChangedFile::new(path.clone(), Some(version))));
        }
    }
}

/// Writes back the files that were edited, unless somebody has changed them since, and says what stayed.
async fn roll_back(
    scope: &CallScope<'_>,
    cx: &OpContext,
    edited: &[EditResult],
    kept: Vec<Bytes>,
    failure: &mut EditFailure,
) {
    let mut left = Vec::new();
    for (result, content) in edited.iter().zip(kept) {
        // An update that is only returned has not been applied by anybody yet.
        if scope.backend.capabilities(&result.path).mutations == MutationMode::Returned {
            continue;
        }
        let mode = WriteMode::IfVersion(result.version.clone());
        let back = scope.backend.write(cx, WriteRequest::new(result.path.clone(), content).mode(mode)).await;
        let version = match back {
            Ok(written) => written.version,
            Err(_) => {
                left.push(result.path.as_str());
                result.version.clone()
            }
        };
        scope.session.show(&result.path, &version, None);
        failure.changed.push(ChangedFile::new(result.path.clone(), Some(version)));
    }
    if !left.is_empty() {
        let more = if left.len() > MAX_NAMED_FILES { ", ..." } else { "" };
        let named = left[..left.len().min(MAX_NAMED_FILES)].join(", ");
        let files = with_count(left.len() as u64, "file");
        failure.consequence.push_str(&format!("\nThe edits of {files} could not be rolled back: {named}{more}."));
    } else if !edited.is_empty() {
        let files = with_count(edited.len() as u64, "file");
        failure.consequence.push_str(&format!("\nThe edits of {files} before it were rolled back."));
    }
}

async fn exists(scope: &CallScope<'_>, path: &VfsPath) -> bool {
    let info = scope.backend.stat(scope.cx, StatRequest::new(path.clone())).await;
    // The edit of a path that cannot be looked at fails with the reason.
    !info.is_err_and(|error| error.is_absence())
}

/// Returns the number of the edit that failed, of those of a file.
fn failing_edit(edits: &[PlannedEdit], error: &Error, numbers: &[usize]) -> usize {
    let at = match error.detail() {
        Some(
            ErrorDetail::NoMatch { replacement, .. }
            | ErrorDetail::NotUnique { replacement, .. }
            | ErrorDetail::EmptyOld { replacement },
        ) => numbers.get(*replacement),
        _ => numbers.iter().find(|number| edits[**number].old == edits[**number].new),
    };
    at.or(numbers.first()).copied().unwrap_or(0)
}

fn failure(edits: &[PlannedEdit], number: usize, path: &VfsPath, error: Error) -> EditFailure {
    let place =
        if edits.len() > 1 { format!("edit {} of {}, {path}: ", number + 1, edits.len()) } else { String::new() };
    let is_numbered = error.kind() == ErrorKind::NoMatch && has_line_numbers(&edits[number].old);
    let consequence =
        if is_numbered { "\n`old` has line numbers: leave them out, and the tab after each." } else { "" };
    EditFailure { place, consequence: consequence.to_owned(), ..EditFailure::new(path, error) }
}

/// Returns whether each line of `text` begins with a number and a tab, as the lines of a read do.
fn has_line_numbers(text: &str) -> bool {
    let is_numbered = |line: &str| {
        let number = line.split_once('\t').map_or("", |(number, _)| number.trim());
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    !text.is_empty() && text.lines().all(is_numbered)
}
