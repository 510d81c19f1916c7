//! Tool `edit`: replacements in one or more files, of which all are made or none.

use std::collections::BTreeSet;

use async_trait::async_trait;
use vfs_core::operation::OperationClass;
use vfs_core::{EditResult, VfsPath};

use super::changed_lines::{ChangedPlace, changed_places};
use super::edit_plan::{EditFailure, EditPlan, PlannedEdit};
use super::list::left_out;
use super::max_result_bytes;
use crate::action::{Action, CallScope, Effect};
use crate::annotations::Annotations;
use crate::argument_error::ArgumentError;
use crate::arguments::{Argument, Arguments};
use crate::outcome::{ChangedFile, ToolOutcome};
use crate::parameter::{Parameter, ParameterKind};
use crate::result_metadata::note_problems;
use crate::session::short_version;
use crate::tool_definition::{Needs, ToolDefinition};
use crate::with_count::with_count;

/// Maximum number of edits of one call.
const MAX_EDITS: usize = 1_000;

/// Maximum number of lines that are shown of the changed places; of more, only the numbers are.
const MAX_SHOWN_LINES: usize = 60;

/// Maximum size in bytes of these lines.
const MAX_SHOWN_BYTES: usize = 6_000;

/// Maximum number of ranges of lines that are shown of a file.
const MAX_SHOWN_RANGES: usize = 20;

/// Maximum size in bytes of the diffs of a dry run.
const MAX_DIFF_BYTES: usize = 4_000;

/// Maximum number of files that are named.
const MAX_NAMED_FILES: usize = 100;

const OLD: &[&str] = &["old_string", "old_str", "oldText", "search"];
const NEW: &[&str] = &["new_string", "new_str", "newText", "replace", "replacement"];
const ALL: &[&str] = &["replace_all", "global"];

const EDITS: &[Parameter] = &[
    Parameter::required(
        "path",
        ParameterKind::Path,
        "The file, or a pattern of files such as '/src/**/*.rs', with each occurrence in them.",
    )
    .aliases(&["file_path", "file"]),
    Parameter::required("old", ParameterKind::Text, "Text as it is in the file, without line numbers.").aliases(OLD),
    Parameter::required("new", ParameterKind::Text, "Text in its place.").aliases(NEW),
    Parameter::optional("all", ParameterKind::Boolean, "Replace each occurrence. Default false: `old` is there once.")
        .aliases(ALL),
    Parameter::optional(
        "expect",
        ParameterKind::Integer { min: 1, max: i64::MAX },
        "Number of occurrences to replace; otherwise nothing is.",
    ),
];

pub(super) const EDIT: ToolDefinition = ToolDefinition {
    name: "edit",
    parameters: &[
        Parameter::required("edits", ParameterKind::List(&ParameterKind::Object(EDITS)), "Made in this order.")
            .aliases(&["edit", "replacements"]),
        Parameter::optional("dry_run", ParameterKind::Boolean, "Only show the diff. Default false.")
            .aliases(&["dryRun"]),
    ],
    annotations: Annotations::destructive("Edit files"),
    needs: Needs::WritableFiles,
    anthropic_type: None,
    description: |_| {
        "Replaces texts in files: every edit is made, or none. Shows the lines as they are then, so that nothing has to be read again."
            .to_owned()
    },
    action: |arguments| {
        let edits = arguments.list("edits").iter().filter_map(|edit| match edit {
            Argument::Object(edit) => Some(parse_edit(edit)),
            _ => None,
        });
        let edits = edits.collect::<Result<Vec<_>, _>>()?;
        if edits.is_empty() || edits.len() > MAX_EDITS {
            return Err(ArgumentError::new(format!(
                "`edits` has to have 1 to {MAX_EDITS} edits; it has {}",
                edits.len()
            )));
        }
        Ok(Box::new(EditAction { edits, is_dry_run: arguments.boolean("dry_run") == Some(true) }))
    },
};

fn parse_edit(edit: &Arguments) -> Result<PlannedEdit, ArgumentError> {
    Ok(PlannedEdit {
        path: edit.required_path("path")?,
        old: edit.required_text("old")?,
        new: edit.required_text("new")?,
        is_everywhere: edit.boolean("all") == Some(true),
        expected: edit.count("expect"),
    })
}

struct EditAction {
    edits: Vec<PlannedEdit>,
    is_dry_run: bool,
}

#[async_trait]
impl Action for EditAction {
    fn effect(&self) -> Effect {
        let class = if self.is_dry_run { OperationClass::Read } else { OperationClass::Write };
        let paths: BTreeSet<VfsPath> = self.edits.iter().map(PlannedEdit::place).collect();
        Effect::new(class, paths.into_iter().collect())
    }

    async fn perform(&self, scope: &CallScope<'_>) -> ToolOutcome {
        // Each edit may be of another file with a new version of the same text.
        let mut repetitions = self.edits.len();
        loop {
            match self.try_perform(scope).await {
                Ok(outcome) => return outcome,
                Err(failure) if repetitions > 0 && failure.is_repeatable(scope).await => repetitions -= 1,
                Err(failure) => return failure.into_outcome(scope).await,
            }
        }
    }
}

impl EditAction {
    async fn try_perform(&self, scope: &CallScope<'_>) -> Result<ToolOutcome, EditFailure> {
        if self.is_dry_run {
            let mut plan = EditPlan::new(scope, &self.edits).await?;
            plan.verify(scope, &self.edits).await?;
            return Ok(dry_run(scope, &plan));
        }
        let mut plan = EditPlan::new(scope, &self.edits).await?;
        if let Some(refused) = scope.refuse_unread(plan.paths()).await {
            return Ok(refused);
        }
        if !plan.is_one_request(&self.edits) {
            plan.verify(scope, &self.edits).await?;
        }
        let results = plan.apply(scope, &self.edits).await?;
        Ok(edit_outcome(scope, &plan, results))
    }
}

fn dry_run(scope: &CallScope<'_>, plan: &EditPlan) -> ToolOutcome {
    let mut text = format!("{}{} would change:", places(plan.results()), left_out(&plan.skipped));
    let max_bytes = max_result_bytes(scope).min(MAX_DIFF_BYTES);
    let (mut counted, mut is_truncated) = (Vec::new(), false);
    for (number, result) in plan.results().enumerate() {
        let diff = result.diff.as_deref().unwrap_or_default().trim_end();
        if counted.is_empty() && text.len() + diff.len() <= max_bytes {
            text.push_str(&format!("\n{diff}"));
        } else if number == 0 {
            text.push_str(&format!("\n{}\n[the diff is cut]", &diff[..diff.floor_char_boundary(max_bytes)]));
            is_truncated = true;
        } else {
            // What does not fit is counted, so that the answer has every file.
            counted.push(format!("{}: {}", result.path, result.occurrences));
        }
    }
    if !counted.is_empty() {
        is_truncated = true;
        let named = counted[..counted.len().min(MAX_NAMED_FILES)].join("\n");
        text.push_str(&format!("\n[places in the other files, whose diff is left out]\n{named}"));
        if counted.len() > MAX_NAMED_FILES {
            text.push_str(&format!("\n... and {} more files", counted.len() - MAX_NAMED_FILES));
        }
    }
    let mut outcome = ToolOutcome { is_truncated, ..ToolOutcome::text(text) };
    note_problems(&mut outcome, &plan.problems);
    outcome
}

fn edit_outcome(scope: &CallScope<'_>, plan: &EditPlan, results: Vec<EditResult>) -> ToolOutcome {
    let mut outcome = ToolOutcome::text(String::new());
    let changes: Vec<_> =
        results.iter().map(|result| changed_places(result.diff.as_deref().unwrap_or_default())).collect();
    let mut text = format!("{}{}:\n", places(results.iter()), left_out(&plan.skipped));
    let lines = || changes.iter().flatten().flat_map(|place| &place.lines);
    let max_shown = MAX_SHOWN_BYTES.min(max_result_bytes(scope) / 4 * 3);
    let is_short = lines().count() <= MAX_SHOWN_LINES && lines().map(String::len).sum::<usize>() <= max_shown;
    for (result, places) in results.iter().zip(&changes).take(MAX_NAMED_FILES) {
        if is_short {
            text.push_str(&format!("{} {}\n", result.path, short_version(&result.version)));
            for place in places {
                (place.first..)
                    .zip(&place.lines)
                    .for_each(|(number, line)| text.push_str(&format!("{number}\t{line}\n")));
            }
        } else {
            let ranges = places.iter().take(MAX_SHOWN_RANGES).map(ChangedPlace::range);
            let more = if places.len() > MAX_SHOWN_RANGES { ", ..." } else { "" };
            text.push_str(&format!("{}: {}{more}\n", result.path, ranges.collect::<Vec<_>>().join(", ")));
        }
    }
    if results.len() > MAX_NAMED_FILES {
        text.push_str(&format!("... and {} more files\n", results.len() - MAX_NAMED_FILES));
    }
    let end = text.trim_end().len().min(text.floor_char_boundary(max_result_bytes(scope)));
    if end < text.trim_end().len() {
        text.truncate(end);
        text.push_str("\n[cut]");
        outcome.is_truncated = true;
    } else {
        text.truncate(end);
    }
    outcome.parts = ToolOutcome::text(text).parts;
    note_problems(&mut outcome, &plan.problems);
    for result in results {
        scope.session.show(&result.path, &result.version, None);
        outcome.changed.push(ChangedFile::new(result.path, Some(result.version)));
        if let Some(update) = result.files_update {
            outcome.files_update.get_or_insert_default().extend(update);
        }
    }
    outcome
}

/// Returns the number of places, and of files if there are several.
fn places<'a>(results: impl Iterator<Item = &'a EditResult>) -> String {
    let (files, places) = results.fold((0, 0), |(files, places), result| (files + 1, places + result.occurrences));
    match files {
        1 => with_count(places, "place"),
        _ => format!("{} in {}", with_count(places, "place"), with_count(files, "file")),
    }
}
