//! Tool `run`: a command, with the start and the end of its output.

use std::time::Duration;

use async_trait::async_trait;
use vfs_core::operation::{OperationClass, UnaryRequest as _};
use vfs_core::{ExecuteRequest, ExecuteResponse};

use super::errors;
use super::page::with_count;
use crate::action::{Action, CallScope, Effect};
use crate::annotations::Annotations;
use crate::outcome::ToolOutcome;
use crate::parameter::{Parameter, ParameterKind};
use crate::request_action::ResultText;
use crate::result_parts::outcome_of;
use crate::tool_definition::{Needs, ToolDefinition};

/// Maximum size in bytes of an output that is shown whole.
const MAX_OUTPUT_BYTES: usize = 4_000;

/// Maximum size in bytes of the start of a longer output, and of its end, which tells more.
const START_BYTES: usize = 1_000;
const END_BYTES: usize = 3_000;

/// Maximum size in bytes of the output that is kept of a command.
const MAX_KEPT_BYTES: u64 = 1 << 20;

const MAX_SECONDS: i64 = 3_600;

pub(super) const RUN: ToolDefinition = ToolDefinition {
    name: "run",
    parameters: &[
        Parameter::required("command", ParameterKind::Text, "Command line of a shell.").aliases(&["cmd"]),
        Parameter::optional("cwd", ParameterKind::Path, "Directory. Default '/'.").aliases(&["workdir", "directory"]),
        Parameter::optional("timeout", ParameterKind::Integer { min: 1, max: MAX_SECONDS }, "Seconds. Default 120."),
    ],
    annotations: Annotations::destructive("Run a command"),
    needs: Needs::Shell,
    anthropic_type: None,
    description: |_| {
        "Runs a command on the files, and shows its output and how it ended; of a long output the start and the end. Prefer the other tools \
         for files."
            .to_owned()
    },
    action: |arguments| {
        let request = ExecuteRequest::new(arguments.required_text("command")?);
        let request = request.cwd(arguments.path_or_root("cwd")).max_output_bytes(MAX_KEPT_BYTES);
        Ok(Box::new(RunAction(match arguments.count("timeout") {
            None => request,
            Some(seconds) => request.timeout(Duration::from_secs(seconds)),
        })))
    },
};

struct RunAction(ExecuteRequest);

#[async_trait]
impl Action for RunAction {
    fn effect(&self) -> Effect {
        Effect::new(OperationClass::Execute, vec![self.0.cwd.clone()])
    }

    async fn perform(&self, scope: &CallScope<'_>) -> ToolOutcome {
        match self.0.clone().send(scope.backend, scope.cx).await {
            Ok(response) => outcome_of(output_text(&response), response),
            Err(error) => errors::failure_outcome(scope, &self.0.cwd, error).await,
        }
    }
}

fn output_text(response: &ExecuteResponse) -> ResultText {
    let output = response.output.trim_end_matches('\n');
    let mut text = String::new();
    let is_long = output.len() > MAX_OUTPUT_BYTES;
    if is_long {
        let start = &output[..output.floor_char_boundary(START_BYTES)];
        let start = &start[..start.rfind('\n').unwrap_or(start.len())];
        let end = &output[output.ceil_char_boundary(output.len() - END_BYTES)..];
        let end = end.split_once('\n').map_or(end, |(_, rest)| rest);
        let left_out = &output[start.len()..output.len() - end.len()];
        let lines = match response.truncated {
            false => with_count(left_out.trim_matches('\n').lines().count() as u64, "line"),
            true => format!("{} bytes", response.output_bytes.saturating_sub((start.len() + end.len()) as u64)),
        };
        text.push_str(&format!("{start}\n[... {lines} left out: write the output to a file to read it all]\n{end}\n"));
    } else if !output.is_empty() {
        text.push_str(output);
        text.push('\n');
    }
    let time = response.duration.as_secs();
    let time = if time > 0 { format!(", {time} s") } else { String::new() };
    let end = match (response.timed_out, response.exit_code, response.signal) {
        (true, ..) => "stopped by its timeout".to_owned(),
        (false, Some(code), _) => format!("exit {code}"),
        (false, None, Some(signal)) => format!("ended by signal {signal}"),
        (false, None, None) => "ended".to_owned(),
    };
    text.push_str(&format!("[{end}{time}]"));
    ResultText { text, is_truncated: is_long || response.truncated }
}
