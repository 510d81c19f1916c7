//! Adapter that gives the tools of a [`ToolSet`] to agents of rig.
//!
//! [`tools`] returns [`DynamicTool`]s for the `AgentBuilder` of the crates `rig` and `rig-agent`, version 0.44.
//!
//! # Behaviour
//!
//! * Names, descriptions, schemas and order are those of the [`ToolSet`].
//! * An image is an image for the model if rig knows its MIME type. Any other file is a line with its type and size, as rig's results
//!   have no documents.
//! * Every call has the [`OpContext`] given to [`tools`], or the one of its run: [`ToolContext::with_scope`] takes an
//!   `Arc<OpContext>`, with a deadline or a token for this run only. The operation id is left out, as a run makes many changes.
//! * The calls of a turn run one after the other, or in any order if `AgentRunner::tool_concurrency` allows several at once: allow that
//!   only if the calls of a turn do not depend on each other. A call ends when its context is cancelled or the run is dropped.
//! * Each result has its own [maximum](ToolSet::max_characters); the one of a turn does not apply.
//! * A result has what the model sees. The update of a `StateBackend::pure` is not in it; a `StateBackend::session` returns all of
//!   them by `take_update`.
//!
//! # Errors
//!
//! A failed call is a [`ToolExecutionError`] with the text of its outcome, which rig shows to the model as the result, and the run goes
//! on. The code is that of the [`ErrorKind`], or `not_read`, `invalid_arguments` or `command_failed`; the error is retryable if the
//! kind is temporary. The kinds of rig are:
//!
//! | rig | failure |
//! |---|---|
//! | [`InvalidArgs`](ToolErrorKind::InvalidArgs) | an argument is missing or cannot be read; `invalid_argument`, `invalid_path`, `invalid_pattern` |
//! | [`NotFound`](ToolErrorKind::NotFound) | `not_found` |
//! | [`PermissionDenied`](ToolErrorKind::PermissionDenied) | `permission_denied`, `path_escape`; as a refusal, `policy_denied`, `approval_required` and a file that was not read |
//! | [`Timeout`](ToolErrorKind::Timeout), [`Cancelled`](ToolErrorKind::Cancelled) | `timeout`, `cancelled` |
//! | [`Provider`](ToolErrorKind::Provider) | `unavailable` |
//! | [`Other`](ToolErrorKind::Other) | any other kind, and a command that failed |
//!
//! # Examples
//!
//! ```
//! use std::sync::Arc;
//!
//! use agent_vfs::tools::Profile;
//! use agent_vfs::{BackendExt, MemoryBackend, OpContext, ToolSet};
//! use rig_agent::AgentBuilder;
//! # use rig_core::test_utils::{MockCompletionModel, MockTurn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let edit = serde_json::json!({ "path": "/plan.md", "old": "draft", "new": "final" });
//! # let model =
//! #     MockCompletionModel::from_turns([MockTurn::tool_call("1", "edit", edit), MockTurn::text("It is final.")]);
//! let files = Arc::new(MemoryBackend::new());
//! files.create_text("/plan.md", "- draft\n").await?;
//! let tools = ToolSet::new(files.clone(), Profile::Native);
//! let cx = OpContext::new().with_actor("planner");
//!
//! let agent = AgentBuilder::new(model).dynamic_tools(agent_vfs::rig::tools(&tools, &cx)).default_max_turns(20).build();
//! let response = agent.prompt("Make the plan final.").await?;
//! assert_eq!(response.output(), "It is final.");
//! assert_eq!(files.read_text("/plan.md").await?, "- final\n");
//! # Ok(())
//! # }
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rig_core::message::{ImageMediaType, MimeType as _, ToolName, ToolResultContent};
#[cfg(doc)]
use rig_core::tool::ToolErrorKind;
use rig_core::tool::{DynamicTool, ToolContext, ToolExecutionError, ToolOutput};
use vfs_core::{ErrorKind, OpContext};
use vfs_tools::{FailureKind, Part, SchemaForm, Tool, ToolOutcome, ToolSet};

/// Returns `tools` for an agent of rig, whose calls have the context `cx` unless their run has one of its own.
///
/// The tools share what the [`ToolSet`] remembers, so make one `ToolSet` for each conversation.
pub fn tools(tools: &ToolSet, cx: &OpContext) -> Vec<DynamicTool> {
    // The name of a tool is never empty, so that none is left out.
    tools.tools().iter().filter_map(|tool| Some(dynamic_tool(ToolName::new(tool.name()).ok()?, tool, cx))).collect()
}

fn dynamic_tool(name: ToolName, tool: &Tool, cx: &OpContext) -> DynamicTool {
    let (tool, default_cx) = (tool.clone(), cx.without_operation_id());
    let (description, schema) = (tool.description().to_owned(), tool.input_schema(SchemaForm::Plain));
    DynamicTool::new_with_context(name, description, schema, move |context: &mut ToolContext, arguments| {
        let run_cx = context.scope::<OpContext>().map(|cx| cx.without_operation_id());
        let (tool, cx) = (tool.clone(), run_cx.unwrap_or_else(|| default_cx.clone()));
        Box::pin(async move { result_of(tool.call(&cx, &arguments).await) })
    })
}

fn result_of(outcome: ToolOutcome) -> Result<ToolOutput, ToolExecutionError> {
    match outcome.failure {
        Some(failure) => Err(error_of(failure, outcome.to_text())),
        None => output_of(&outcome.parts),
    }
}

/// Returns parts as content of rig. Texts that follow one another become one, as [`ToolOutcome::to_text`] joins them.
fn output_of(parts: &[Part]) -> Result<ToolOutput, ToolExecutionError> {
    let mut content: Vec<ToolResultContent> = Vec::new();
    for part in parts {
        match (image_of(part), content.last_mut()) {
            (Some(image), _) => content.push(image),
            (None, Some(ToolResultContent::Text(before))) => {
                before.text.push('\n');
                before.text.push_str(&part.to_text());
            }
            (None, _) => content.push(ToolResultContent::text(part.to_text())),
        }
    }
    if content.is_empty() {
        // Rig has no result without content.
        content.push(ToolResultContent::text(""));
    }
    ToolOutput::content(content)
}

/// Returns the image of a part, or `None` if it is none or if rig has no name for its type.
fn image_of(part: &Part) -> Option<ToolResultContent> {
    let Part::File(file) = part else { return None };
    let media_type = ImageMediaType::from_mime_type(&file.mime_type)?;
    Some(ToolResultContent::image_base64(STANDARD.encode(&file.data), Some(media_type), None))
}

fn error_of(failure: FailureKind, text: String) -> ToolExecutionError {
    let (error, code) = match failure {
        FailureKind::Backend(kind) => {
            return backend_error(kind, text).with_code(kind.code()).with_retryable(kind.is_temporary());
        }
        FailureKind::InvalidArguments => (ToolExecutionError::invalid_args(text), "invalid_arguments"),
        FailureKind::Command => (ToolExecutionError::other(text), "command_failed"),
        FailureKind::NotRead => (ToolExecutionError::refused(text), "not_read"),
        _ => (ToolExecutionError::other(text), "other"),
    };
    error.with_code(code).with_retryable(false)
}

fn backend_error(kind: ErrorKind, text: String) -> ToolExecutionError {
    match kind {
        ErrorKind::InvalidArgument | ErrorKind::InvalidPath | ErrorKind::InvalidPattern => {
            ToolExecutionError::invalid_args(text)
        }
        ErrorKind::NotFound => ToolExecutionError::not_found(text),
        ErrorKind::PolicyDenied | ErrorKind::ApprovalRequired => ToolExecutionError::refused(text),
        ErrorKind::PermissionDenied | ErrorKind::PathEscape => ToolExecutionError::permission_denied(text),
        ErrorKind::Timeout => ToolExecutionError::timeout(text),
        ErrorKind::Cancelled => ToolExecutionError::cancelled(text),
        ErrorKind::Unavailable => ToolExecutionError::provider(text),
        _ => ToolExecutionError::other(text),
    }
}
