//! Command `vfs checkpoint`: takes a snapshot.

use std::io::Write;

use vfs_core::snapshots::SnapshotRequest;

use crate::args::CheckpointArgs;
use crate::backend_session::BackendSession;
use crate::exit::{Exit, Failure};
use crate::layers_at_mount;
use crate::standard_output::StandardOutput;

/// The message if no checkpoint layer is configured.
pub(super) const NO_CHECKPOINTS: &str =
    "there is no layer of the type 'checkpoints' here; 'vfs config example' shows one";

pub(super) async fn run(
    session: &BackendSession,
    out: &mut StandardOutput,
    args: CheckpointArgs,
) -> Result<Exit, Failure> {
    let layer =
        layers_at_mount::find_outermost(&session.configured()?.checkpoints, args.of.mount.as_deref(), NO_CHECKPOINTS)?;
    let mut request = SnapshotRequest::new();
    request.label = args.label;
    let snapshot = layer.snapshot(&session.cx, request).await?;
    if args.json {
        out.json(&snapshot)?;
    } else {
        let noun = if snapshot.files == 1 { "file" } else { "files" };
        writeln!(out, "checkpoint {} ({} {noun}, {} bytes)", snapshot.id, snapshot.files, snapshot.bytes)?;
    }
    Ok(Exit::Success)
}
