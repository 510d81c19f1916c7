//! Tool `job`: the output of commands in the background, in pages that put together are the whole.

use std::time::Duration;

use async_trait::async_trait;
use vfs_core::operation::{OperationClass, UnaryRequest as _};
use vfs_core::shell::{JobId, JobInfo, JobOutputRequest, JobOutputResult, JobsRequest, StopJobRequest};
use vfs_core::{Error, VfsPath};

use super::run::exit_words;
use super::{errors, max_result_bytes};
use crate::action::{Action, CallScope, Effect};
use crate::annotations::Annotations;
use crate::argument_error::ArgumentError;
use crate::outcome::ToolOutcome;
use crate::parameter::{Parameter, ParameterKind};
use crate::tool_definition::{Needs, ToolDefinition};

/// Maximum number of seconds that a call waits.
const MAX_WAIT_SECONDS: i64 = 600;

/// Maximum number of jobs that are listed, the latest ones.
const MAX_JOBS: usize = 50;

/// Maximum number of characters of the command of a listed job.
const MAX_COMMAND_CHARACTERS: usize = 100;

pub(super) const JOB: ToolDefinition = ToolDefinition {
    name: "job",
    parameters: &[
        Parameter::optional("id", ParameterKind::Text, "The job. Default: list all jobs.").aliases(&["job", "job_id"]),
        Parameter::optional(
            "from",
            ParameterKind::Integer { min: 0, max: i64::MAX },
            "Byte at which the output starts. Default: after what you have seen.",
        )
        .aliases(&["cursor", "offset"]),
        Parameter::optional(
            "wait",
            ParameterKind::Integer { min: 0, max: MAX_WAIT_SECONDS },
            "Seconds to wait for output or the end. Default 0.",
        ),
        Parameter::optional("stop", ParameterKind::Boolean, "Stop the job. Default false.").aliases(&["kill"]),
    ],
    annotations: Annotations::destructive("See or stop a job"),
    needs: Needs::Shell,
    anthropic_type: None,
    description: |_| "Shows the output of a command in the background since you last saw it, or stops it.".to_owned(),
    action: |arguments| {
        let from = arguments.count("from");
        let is_given =
            |name| arguments.boolean(name) == Some(true) || arguments.count(name).is_some_and(|count| count > 0);
        let needs_id = ["from", "wait", "stop"].into_iter().find(|name| is_given(name));
        Ok(Box::new(match (arguments.text("id").filter(|id| !id.is_empty()), needs_id) {
            (None, Some(name)) => return Err(ArgumentError::new(format!("`{name}` needs the `id` of a job"))),
            (None, None) => JobAction::List,
            (Some(id), _) => JobAction::Show {
                id: JobId::new(id),
                from,
                wait: Duration::from_secs(arguments.count("wait").unwrap_or(0)),
                stop: arguments.boolean("stop") == Some(true),
            },
        }))
    },
};

enum JobAction {
    List,
    Show { id: JobId, from: Option<u64>, wait: Duration, stop: bool },
}

#[async_trait]
impl Action for JobAction {
    fn effect(&self) -> Effect {
        let class = match self {
            Self::Show { stop: true, .. } => OperationClass::Execute,
            Self::Show { .. } | Self::List => OperationClass::Read,
        };
        Effect::new(class, vec![VfsPath::root()])
    }

    async fn perform(&self, scope: &CallScope<'_>) -> ToolOutcome {
        let shown = match self {
            Self::List => list(scope).await,
            Self::Show { id, from, wait, stop } => show(scope, id, *from, *wait, *stop).await,
        };
        match shown {
            Ok(outcome) => outcome,
            Err(error) => errors::failure_outcome(scope, &VfsPath::root(), error).await,
        }
    }
}

async fn list(scope: &CallScope<'_>) -> Result<ToolOutcome, Error> {
    let jobs = JobsRequest::new().send(scope.backend, scope.cx).await?;
    let line = |job: &JobInfo| {
        let command: String = job.command.chars().take(MAX_COMMAND_CHARACTERS).collect();
        let state = job.exit.as_ref().map_or_else(|| "runs".to_owned(), exit_words);
        format!("{} [{state}] {}", job.id, command.escape_debug())
    };
    let mut lines: Vec<_> = jobs.iter().rev().take(MAX_JOBS).map(line).collect();
    lines.reverse();
    let left_out = jobs.len() - lines.len();
    if left_out > 0 {
        lines.insert(0, format!("[{left_out} earlier jobs left out]"));
    }
    let text = if lines.is_empty() { "no jobs".to_owned() } else { lines.join("\n") };
    Ok(ToolOutcome { is_truncated: left_out > 0, ..ToolOutcome::text(text) })
}

/// Shows the output of a job from `from` on, or from where the model has seen it.
async fn show(
    scope: &CallScope<'_>,
    id: &JobId,
    from: Option<u64>,
    wait: Duration,
    stop: bool,
) -> Result<ToolOutcome, Error> {
    if stop {
        StopJobRequest::new(id.clone()).send(scope.backend, scope.cx).await?;
    }
    let from = from.unwrap_or_else(|| scope.session.job_cursor(id));
    let max_bytes = max_result_bytes(scope);
    let mut request = JobOutputRequest::new(id.clone()).from(from).wait(wait);
    request.max_bytes = Some(max_bytes as u64);
    let JobOutputResult { output, cursor, missed_bytes, exit, .. } = request.send(scope.backend, scope.cx).await?;
    scope.session.set_job_cursor(id, cursor);
    let mut text = String::new();
    if missed_bytes > 0 {
        text.push_str(&format!("[{missed_bytes} bytes before this are no longer stored]\n"));
    }
    text.push_str(&output);
    let is_in_line = !output.is_empty() && !output.ends_with('\n');
    if is_in_line {
        text.push('\n');
    }
    // A page ends before a character that would be cut.
    let is_full = output.len() + 3 >= max_bytes;
    text.push_str(&match &exit {
        Some(exit) => format!("[job {id}: {}]", exit_words(exit)),
        None => {
            let state = if is_full { "has more output" } else { "runs" };
            let in_line = if is_in_line { ", the line goes on" } else { "" };
            format!("[job {id} {state}{in_line}; next: from={cursor}]")
        }
    });
    Ok(ToolOutcome { is_truncated: exit.is_none(), ..ToolOutcome::text(text) })
}
