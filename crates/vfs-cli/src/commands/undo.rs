//! Command `vfs undo`: undoes operations.

use std::io::Write;

use super::checkpoint::NO_CHECKPOINTS;
use crate::args::UndoArgs;
use crate::backend_session::BackendSession;
use crate::escape::escape;
use crate::exit::{self, Exit, Failure};
use crate::layers_at_mount;
use crate::standard_output::StandardOutput;

pub(super) async fn run(session: &BackendSession, out: &mut StandardOutput, args: UndoArgs) -> Result<Exit, Failure> {
    let layer =
        layers_at_mount::find_outermost(&session.configured()?.checkpoints, args.of.mount.as_deref(), NO_CHECKPOINTS)?;
    let report = layer.undo(&session.cx, args.operations).await?;
    if args.json {
        out.json(&report)?;
    } else {
        for entry in &report.entries {
            writeln!(out, "undid {}", escape(&entry.to_string()))?;
        }
    }
    if report.entries.is_empty() {
        exit::print_message("there is nothing to undo");
    }
    Ok(Exit::from_match(!report.entries.is_empty()))
}
