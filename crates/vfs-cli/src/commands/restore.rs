//! Command `vfs restore`: restores a snapshot.

use std::io::Write;

use vfs_core::ErrorKind;
use vfs_core::snapshots::{RestoreRequest, SnapshotId};

use super::checkpoint::NO_CHECKPOINTS;
use crate::args::RestoreArgs;
use crate::backend_session::BackendSession;
use crate::escape::escape;
use crate::exit::{Exit, Failure};
use crate::layers_at_mount;
use crate::standard_output::StandardOutput;

pub(super) async fn run(
    session: &BackendSession,
    out: &mut StandardOutput,
    args: RestoreArgs,
) -> Result<Exit, Failure> {
    let layer =
        layers_at_mount::find_outermost(&session.configured()?.checkpoints, args.of.mount.as_deref(), NO_CHECKPOINTS)?;
    let request = RestoreRequest::new(SnapshotId::new(args.id.as_str()));
    layer.restore(&session.cx, request).await.map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            Failure::Hinted(error, vec!["'vfs checkpoints' lists the id of each checkpoint".to_owned()])
        }
        _ => error.into(),
    })?;
    writeln!(out, "restored {}", escape(&args.id))?;
    Ok(Exit::Success)
}
