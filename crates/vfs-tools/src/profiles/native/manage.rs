//! Tool `manage`: moves, copies and deletes.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use vfs_core::backend::MutationMode;
use vfs_core::operation::OperationClass;
use vfs_core::state::FilesUpdate;
use vfs_core::{
    CopyRequest, DeleteRequest, Error, ErrorKind, GrepOutput, GrepRequest, RenameRequest, StatRequest, VfsPath,
};

use super::{errors, max_result_bytes};
use crate::action::{Action, CallScope, Effect};
use crate::annotations::Annotations;
use crate::argument_error::ArgumentError;
use crate::arguments::{Argument, Arguments};
use crate::outcome::{ChangedFile, FailureKind, ToolOutcome};
use crate::parameter::{Parameter, ParameterKind};
use crate::tool_definition::{Needs, ToolDefinition};
use crate::with_count::with_count;

/// Maximum number of files that are counted because they mention a path that is gone.
const MAX_MENTIONS: u64 = 100;

/// Maximum number of such paths.
const MAX_MENTIONED_PATHS: usize = 3;

/// Maximum number of characters of the reason of a failure, and size in bytes of what was done before it.
const MAX_REASON_CHARACTERS: usize = 900;
const MAX_DONE_BYTES: usize = 900;

/// Maximum time of looking for them.
const MAX_MENTION_TIME: Duration = Duration::from_secs(2);

const TRANSFER: &[Parameter] = &[
    Parameter::required("from", ParameterKind::Path, "").aliases(&["source", "old_path"]),
    Parameter::required("to", ParameterKind::Path, "New path, where nothing is yet.").aliases(&[
        "destination",
        "target",
        "new_path",
    ]),
];

pub(super) const MANAGE: ToolDefinition = ToolDefinition {
    name: "manage",
    parameters: &[
        Parameter::optional("move", ParameterKind::List(&ParameterKind::Object(TRANSFER)), "")
            .aliases(&["rename", "moves"]),
        Parameter::optional("copy", ParameterKind::List(&ParameterKind::Object(TRANSFER)), "").aliases(&["copies"]),
        Parameter::optional("delete", ParameterKind::List(&ParameterKind::Path), "Paths.")
            .aliases(&["remove", "deletes"]),
        Parameter::optional("recursive", ParameterKind::Boolean, "Also delete directories. Default false."),
    ],
    annotations: Annotations::destructive("Move, copy and delete"),
    needs: Needs::WritableFiles,
    anthropic_type: None,
    description: |_| {
        "Moves, copies and deletes files and directories, in this order, and stops at the first failure. Says which files still mention a path \
         that is gone."
            .to_owned()
    },
    action: |arguments| {
        let mut steps = Vec::new();
        for (name, transfer) in
            [("move", ManageStep::Move as fn(_, _) -> _), ("copy", ManageStep::Copy as fn(_, _) -> _)]
        {
            for item in arguments.list(name) {
                if let Argument::Object(item) = item {
                    steps.push(transfer(item.required_path("from")?, item.required_path("to")?));
                }
            }
        }
        let is_recursive = arguments.boolean("recursive") == Some(true);
        steps.extend(paths_to_delete(arguments).map(|path| ManageStep::Delete(path.clone(), is_recursive)));
        if steps.is_empty() {
            return Err(ArgumentError::new("give at least one of `move`, `copy` and `delete`"));
        }
        Ok(Box::new(ManageAction { steps }))
    },
};

fn paths_to_delete(arguments: &Arguments) -> impl Iterator<Item = &VfsPath> {
    arguments.list("delete").iter().filter_map(|path| match path {
        Argument::Path(path) => Some(path),
        _ => None,
    })
}

struct ManageAction {
    steps: Vec<ManageStep>,
}

enum ManageStep {
    Move(VfsPath, VfsPath),
    Copy(VfsPath, VfsPath),
    Delete(VfsPath, bool),
}

#[async_trait]
impl Action for ManageAction {
    fn effect(&self) -> Effect {
        let paths = self.steps.iter().flat_map(|step| match step {
            ManageStep::Move(from, to) | ManageStep::Copy(from, to) => vec![from.clone(), to.clone()],
            ManageStep::Delete(path, _) => vec![path.clone()],
        });
        Effect::new(OperationClass::Write, paths.collect())
    }

    fn changes(&self) -> Vec<VfsPath> {
        let deleted = self.steps.iter().flat_map(|step| match step {
            ManageStep::Delete(path, _) => self.paths_before_moves(path),
            ManageStep::Move(..) | ManageStep::Copy(..) => Vec::new(),
        });
        deleted.collect()
    }

    async fn perform(&self, scope: &CallScope<'_>) -> ToolOutcome {
        let returns_changes = scope.backend.capabilities(&VfsPath::root()).mutations == MutationMode::Returned;
        if returns_changes && self.steps.len() > 1 {
            // Each step would be made on the files as they were before the call.
            let words = "these files take one step in a call; make the steps one after the other";
            return ToolOutcome::failed(FailureKind::Backend(ErrorKind::Unsupported), format!("Error: {words}"));
        }
        let (mut report, failure) = self.perform_steps(scope).await;
        let outcome = match failure {
            None => {
                report.done.extend(mentions(scope, &report.gone).await);
                ToolOutcome::text(report.text(max_result_bytes(scope)))
            }
            Some(error) => {
                let before = if report.done.is_empty() { "" } else { "\nDone before it:\n" };
                let words: String = errors::error_text(scope, &VfsPath::root(), &error)
                    .await
                    .chars()
                    .take(MAX_REASON_CHARACTERS)
                    .collect();
                ToolOutcome::of_error(&error, format!("{words}{before}{}", report.text(MAX_DONE_BYTES)))
            }
        };
        ToolOutcome { changed: report.changed, files_update: report.files_update, ..outcome }
    }
}

/// What a call has done.
#[derive(Default)]
struct ManageReport {
    done: Vec<String>,
    /// Paths that are there no longer.
    gone: Vec<VfsPath>,
    changed: Vec<ChangedFile>,
    files_update: Option<FilesUpdate>,
}

impl ManageReport {
    /// Returns what was done, in at most about `max` bytes.
    fn text(&self, max: usize) -> String {
        let mut text = String::new();
        for (number, line) in self.done.iter().enumerate() {
            if text.len() + line.len() > max && number > 0 {
                text.push_str(&format!("... and {} more", self.done.len() - number));
                return text;
            }
            text.push_str(&line.chars().take(max).collect::<String>());
            text.push('\n');
        }
        text.trim_end().to_owned()
    }

    fn add(&mut self, words: String, update: Option<FilesUpdate>) {
        self.done.push(words);
        if let Some(update) = update {
            self.files_update.get_or_insert_default().extend(update);
        }
    }

    fn remove(&mut self, path: &VfsPath) {
        self.gone.push(path.clone());
        self.changed.push(ChangedFile::new(path.clone(), None));
    }
}

impl ManageAction {
    /// Returns where the files are before the call that are at or below `path` after its moves.
    fn paths_before_moves(&self, path: &VfsPath) -> Vec<VfsPath> {
        let mut before = vec![path.clone()];
        for step in self.steps.iter().rev() {
            let ManageStep::Move(from, to) = step else { continue };
            let is_below = before.iter().any(|path| to.starts_with(path));
            for path in &mut before {
                if let Some(source) = path.strip_prefix(to).and_then(|below| from.join(below).ok()) {
                    *path = source;
                }
            }
            if is_below {
                before.push(from.clone());
            }
        }
        before
    }

    /// Performs the steps up to the first failure.
    async fn perform_steps(&self, scope: &CallScope<'_>) -> (ManageReport, Option<Error>) {
        // An operation id is for one request.
        let cx = if self.steps.len() > 1 { &scope.cx.without_operation_id() } else { scope.cx };
        let scope = CallScope { cx, ..*scope };
        let mut report = ManageReport::default();
        for step in &self.steps {
            if let Err(error) = perform(&scope, step, &mut report).await {
                return (report, Some(error));
            }
        }
        (report, None)
    }
}

async fn perform(scope: &CallScope<'_>, step: &ManageStep, report: &mut ManageReport) -> Result<(), Error> {
    let CallScope { backend, cx, session, .. } = *scope;
    match step {
        ManageStep::Move(from, to) => {
            let moved = backend.rename(cx, RenameRequest::new(from.clone(), to.clone())).await;
            let moved = moved.map_err(|error| in_words_of_tool(error.or_path(from)))?;
            session.forget(from);
            session.forget(to);
            report.add(format!("moved {from} to {to}"), moved.files_update);
            report.remove(from);
            report.changed.extend(new_file(scope, to).await);
        }
        ManageStep::Copy(from, to) => {
            let copied = backend.copy(cx, CopyRequest::new(from.clone(), to.clone())).await;
            let copied = copied.map_err(|error| in_words_of_tool(error.or_path(from)))?;
            session.forget(to);
            report.add(format!("copied {from} to {to}{}", of_files(copied.files)), copied.files_update);
            report.changed.extend(new_file(scope, to).await);
        }
        ManageStep::Delete(path, is_recursive) => {
            let request = DeleteRequest::new(path.clone());
            let request = if *is_recursive { request.recursive() } else { request };
            let deleted = backend.delete(cx, request).await;
            let deleted = deleted.map_err(|error| in_words_of_tool(error.or_path(path)))?;
            session.forget(path);
            report.add(format!("deleted {path}{}", of_files(deleted.files)), deleted.files_update);
            report.remove(path);
        }
    }
    Ok(())
}

/// Returns `error` with the parameter that helps.
fn in_words_of_tool(error: Error) -> Error {
    let words = match error.kind() {
        ErrorKind::AlreadyExists => "something is there already; delete it first, or choose another path",
        ErrorKind::IsADirectory => "the path is a directory; recursive=true deletes it with everything in it",
        _ => return error,
    };
    let in_words = Error::new(error.kind(), words);
    match error.path().and_then(|path| VfsPath::parse(path).ok()) {
        Some(path) => in_words.with_path(&path),
        None => in_words,
    }
}

/// Returns the file at `path` with its version, if the backend has a file there by now.
async fn new_file(scope: &CallScope<'_>, path: &VfsPath) -> Option<ChangedFile> {
    let info = scope.backend.stat(scope.cx, StatRequest::new(path.clone())).await.ok()?;
    Some(ChangedFile::new(path.clone(), Some(info.version?)))
}

fn of_files(files: u64) -> String {
    if files == 1 { String::new() } else { format!(" ({})", with_count(files, "file")) }
}

/// Returns which files mention paths that are gone, a line for each path. A search that fails is no reason to report a failure of what was
/// done.
async fn mentions(scope: &CallScope<'_>, gone: &[VfsPath]) -> Vec<String> {
    // A single name is in too many texts for another reason.
    let gone = gone.iter().filter(|path| path.relative().contains('/'));
    let soonest = Instant::now() + MAX_MENTION_TIME;
    let cx = scope.cx.clone().with_deadline(scope.cx.deadline().map_or(soonest, |deadline| deadline.min(soonest)));
    let mut lines = Vec::new();
    for path in gone.take(MAX_MENTIONED_PATHS) {
        let request = GrepRequest::literal(path.relative()).whole_word().output(GrepOutput::Files);
        let Ok(found) = scope.backend.grep(&cx, request.limit(MAX_MENTIONS)).await else { break };
        if let Some(first) = found.files.first() {
            let more = if found.truncated.is_some() { "over " } else { "" };
            let files = with_count(found.files.len() as u64, "file");
            lines.push(format!("still mentioned: {}, in {more}{files} such as {}", path.relative(), first.path));
        }
    }
    lines
}
