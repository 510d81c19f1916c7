//! `vfs checkpoint`.

use std::io::Write;

use vfs_core::SnapshotRequest;

use crate::args::CheckpointArgs;
use crate::exit::{Exit, Failure};
use crate::layers;
use crate::output::Output;
use crate::session::Session;

/// What is said where there are none.
pub(super) const NO_CHECKPOINTS: &str = "there is no layer of the type 'checkpoints' here; see docs/vfs.example.toml";

pub(super) async fn run(session: &Session, out: &mut Output, args: CheckpointArgs) -> Result<Exit, Failure> {
    let layer = layers::outermost(&session.built()?.checkpoints, args.of.mount.as_deref(), NO_CHECKPOINTS)?;
    let mut request = SnapshotRequest::new();
    request.label = args.label;
    let taken = layer.snapshot(&session.cx, request).await?;
    if args.json {
        out.json(&taken)?;
    } else {
        let noun = if taken.files == 1 { "file" } else { "files" };
        writeln!(out, "checkpoint {} ({} {noun}, {} bytes)", taken.id, taken.files, taken.bytes)?;
    }
    Ok(Exit::Success)
}
