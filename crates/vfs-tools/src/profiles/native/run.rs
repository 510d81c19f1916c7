//! Tool `run`: a command, with the start and the end of its output, or one in the background.

use std::time::Duration;

use async_trait::async_trait;
use vfs_core::operation::{OperationClass, UnaryRequest as _};
use vfs_core::shell::{CommandExit, RunMode};
use vfs_core::{ExecuteRequest, ExecuteResponse};

use super::{errors, max_result_bytes};
use crate::action::{Action, CallScope, Effect};
use crate::annotations::Annotations;
use crate::large_text::{LargeTextSource, shortened, start_and_end};
use crate::outcome::ToolOutcome;
use crate::parameter::{Parameter, ParameterKind};
use crate::request_action::ResultText;
use crate::result_metadata::outcome_of;
use crate::result_store::MAX_STORED_OUTPUT;
use crate::tool_definition::{Needs, ToolDefinition};
use crate::with_count::with_count;

/// Maximum size in bytes of an output that is not stored.
const MAX_UNSTORED_OUTPUT: u64 = 1 << 20;

/// Maximum number of characters of the reason why an output is not stored.
const MAX_REASON_CHARACTERS: usize = 300;

const MAX_SECONDS: i64 = 3_600;

pub(super) const RUN: ToolDefinition = ToolDefinition {
    name: "run",
    parameters: &[
        Parameter::required("command", ParameterKind::Text, "Command line of a shell.").aliases(&["cmd"]),
        Parameter::optional("cwd", ParameterKind::Path, "Directory. Default '/'.").aliases(&["workdir", "directory"]),
        Parameter::optional(
            "timeout",
            ParameterKind::Integer { min: 1, max: MAX_SECONDS },
            "Seconds. Default 120; none in the background.",
        ),
        Parameter::optional("background", ParameterKind::Boolean, "Do not wait: it becomes a job. Default false.")
            .aliases(&["run_in_background"]),
    ],
    annotations: Annotations::destructive("Run a command"),
    needs: Needs::Shell,
    anthropic_type: None,
    description: |_| {
        "Runs a command on the files, and shows its output and how it ended; of a long output the start and the end. Prefer the other tools \
         for files. In a command use relative paths: its '/' may be a different root."
            .to_owned()
    },
    action: |arguments| {
        let request = ExecuteRequest::new(arguments.required_text("command")?).cwd(arguments.path_or_root("cwd"));
        let request = match arguments.count("timeout") {
            None => request,
            Some(seconds) => request.timeout(Duration::from_secs(seconds)),
        };
        let in_background = arguments.boolean("background") == Some(true);
        Ok(Box::new(RunAction(if in_background { request.background() } else { request })))
    },
};

struct RunAction(ExecuteRequest);

#[async_trait]
impl Action for RunAction {
    fn effect(&self) -> Effect {
        Effect::new(OperationClass::Execute, vec![self.0.cwd.clone()])
    }

    async fn perform(&self, scope: &CallScope<'_>) -> ToolOutcome {
        let is_stored = scope.setup.stores_results() && self.0.run == RunMode::Foreground;
        let request = self.0.clone().max_output_bytes(if is_stored { MAX_STORED_OUTPUT } else { MAX_UNSTORED_OUTPUT });
        match request.send(scope.backend, scope.cx).await {
            Ok(response) => {
                let advice = if response.timed_out { timeout_advice(self.0.timeout) } else { "" };
                output_outcome(scope, response, advice).await
            }
            Err(error) => errors::failure_outcome(scope, &self.0.cwd, error).await,
        }
    }
}

/// Returns what to do about a command that its timeout has stopped.
fn timeout_advice(timeout: Option<Duration>) -> &'static str {
    match timeout {
        Some(timeout) if timeout.as_secs() >= MAX_SECONDS as u64 => "; set background=true",
        _ => "; set a longer `timeout`, or background=true",
    }
}

/// Returns the outcome of a command, which ends with `advice`.
async fn output_outcome(scope: &CallScope<'_>, response: ExecuteResponse, advice: &str) -> ToolOutcome {
    if let Some(job) = &response.job {
        return ToolOutcome::text(format!("job {job} runs; see it by the tool job: id=\"{job}\""));
    }
    let output = response.output.trim_end_matches('\n');
    let mut text = String::new();
    let max_bytes = max_result_bytes(scope);
    let is_long = output.len() > max_bytes;
    let mut artifact = None;
    if is_long {
        // The end says more than the start.
        let (start, end) = start_and_end(output, max_bytes / 4, max_bytes - max_bytes / 4);
        let left_out = &output[start.len()..output.len() - end.len()];
        let left_out = match response.truncated {
            false => with_count(left_out.trim_matches('\n').lines().count() as u64, "line"),
            true => format!("{} bytes", response.output_bytes.saturating_sub((start.len() + end.len()) as u64)),
        };
        let rest = match scope.setup.store(scope.cx, LargeTextSource::Call(scope.id), &response.output).await {
            None => "write the output to a file to read it all".to_owned(),
            Some(Err(error)) => shortened(&error.for_model(), MAX_REASON_CHARACTERS, "…"),
            Some(Ok(path)) => {
                let what = if response.truncated { "all but its middle is" } else { "all of it is" };
                format!("{what} in {}; read or search it, commands do not see it", artifact.insert(path))
            }
        };
        text.push_str(&format!("{start}\n[... {left_out} left out: {rest}]\n{end}\n"));
    } else if !output.is_empty() {
        text.push_str(output);
        text.push('\n');
    }
    text.push_str(&format!("[{}{advice}]", exit_words(&response.exit())));
    let is_truncated = is_long || response.truncated;
    ToolOutcome { artifact, ..outcome_of(ResultText { text, is_truncated }, response) }
}

/// Returns how a command ended, and after which time, such as `exit 1, 3 s`.
pub(super) fn exit_words(exit: &CommandExit) -> String {
    let time = exit.duration.as_secs();
    let time = if time > 0 { format!(", {time} s") } else { String::new() };
    let end = match (exit.timed_out, exit.exit_code, exit.signal) {
        (true, ..) => "stopped by its timeout".to_owned(),
        (false, Some(code), _) => format!("exit {code}"),
        (false, None, Some(signal)) => format!("ended by signal {signal}"),
        (false, None, None) => "ended".to_owned(),
    };
    format!("{end}{time}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_timeout_is_named_below_the_maximum() {
        let maximum = Duration::from_secs(MAX_SECONDS as u64);
        for (timeout, is_named) in [(None, true), (Some(maximum / 2), true), (Some(maximum), false)] {
            assert_eq!(timeout_advice(timeout).contains("longer `timeout`"), is_named, "{timeout:?}");
        }
    }
}
