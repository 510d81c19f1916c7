//! Command `vfs checkpoints`: lists snapshots.

use std::io::Write;

use chrono::SecondsFormat;
use vfs_core::Snapshots;
use vfs_core::snapshots::ListSnapshotsRequest;

use super::checkpoint::NO_CHECKPOINTS;
use crate::args::CheckpointsArgs;
use crate::backend_session::BackendSession;
use crate::escape::escape;
use crate::exit::{Exit, Failure};
use crate::layers_at_mount;
use crate::standard_output::StandardOutput;

pub(super) async fn run(
    session: &BackendSession,
    out: &mut StandardOutput,
    args: CheckpointsArgs,
) -> Result<Exit, Failure> {
    let layer =
        layers_at_mount::find_outermost(&session.configured()?.checkpoints, args.of.mount.as_deref(), NO_CHECKPOINTS)?;
    let snapshots = layer
        .layer
        .snapshots(&session.cx, ListSnapshotsRequest::new())
        .await
        .map_err(|error| layer.mapping.error(error))?;
    let width = snapshots.iter().map(|snapshot| snapshot.id.as_str().len()).max().unwrap_or_default();
    for snapshot in &snapshots {
        if args.json {
            out.json(snapshot)?;
            continue;
        }
        let time = snapshot.taken_at.to_rfc3339_opts(SecondsFormat::Secs, true);
        let label = escape(snapshot.label.as_deref().unwrap_or("-"));
        let (id, files, bytes) = (snapshot.id.as_str(), snapshot.files, snapshot.bytes);
        writeln!(out, "{id:width$}  {time}  {files:>8} files  {bytes:>12} bytes  {label}")?;
    }
    Ok(Exit::Success)
}
