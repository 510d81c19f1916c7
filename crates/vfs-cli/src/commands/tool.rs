//! Command `vfs tool`: lists the tools of a profile, and calls them.

use std::io::Write;
use std::sync::Arc;

use serde_json::Value;
use vfs_core::Error;
use vfs_tools::{SchemaForm, ToolSet};

use crate::args::{ShellBackendArgs, ToolArgs, ToolCommand};
use crate::backend_session::BackendSession;
use crate::exit::{Exit, Failure};
use crate::shell_selection::ShellBackendKind;
use crate::standard_output::StandardOutput;
use crate::standard_streams;

pub(super) async fn run(session: &BackendSession, out: &mut StandardOutput, args: ToolArgs) -> Result<Exit, Failure> {
    let kind = ShellBackendKind::from_args(args.shell)?;
    let backend = match args.allow {
        Some(_) => session.with_shell(kind).await?,
        None if args.shell != ShellBackendArgs::default() => {
            return Err(Failure::Usage("--sandbox and --virtual need --allow exec"));
        }
        None => Arc::clone(&session.backend),
    };
    let tools = ToolSet::new(backend, args.profile);
    match args.command {
        ToolCommand::List { json: true } => out.json(&tools.to_anthropic(SchemaForm::Plain))?,
        ToolCommand::List { json: false } => {
            for tool in tools.tools() {
                writeln!(out, "{}: {}", tool.name(), tool.description())?;
            }
        }
        ToolCommand::Schema { strict, tool } => {
            let form = if strict { SchemaForm::Strict } else { SchemaForm::Plain };
            let tool = tools.get(&tool).ok_or_else(|| unknown_tool(&tools, &tool))?;
            writeln!(out, "{:#}", tool.input_schema(form))?;
        }
        ToolCommand::Call { tool, arguments } => {
            let tool = tools.get(&tool).ok_or_else(|| unknown_tool(&tools, &tool))?;
            let arguments = if arguments == "-" { standard_streams::read_text()? } else { arguments };
            let outcome = tool.call(&session.cx, &Value::String(arguments)).await;
            writeln!(out, "{}", outcome.to_text())?;
            return Ok(if outcome.failure.is_some() { Exit::Refused } else { Exit::Success });
        }
    }
    Ok(Exit::Success)
}

fn unknown_tool(tools: &ToolSet, name: &str) -> Failure {
    let names: Vec<_> = tools.tools().iter().map(|tool| tool.name()).collect();
    Error::invalid_argument(format!("there is no tool '{name}'; the tools are {}", names.join(", "))).into()
}
