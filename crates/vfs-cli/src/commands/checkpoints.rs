//! `vfs checkpoints`.

use std::io::Write;

use chrono::SecondsFormat;
use vfs_core::Snapshots;

use super::checkpoint::NO_CHECKPOINTS;
use crate::args::CheckpointsArgs;
use crate::escape::escaped;
use crate::exit::{Exit, Failure};
use crate::layers;
use crate::output::Output;
use crate::session::Session;

pub(super) async fn run(session: &Session, out: &mut Output, args: CheckpointsArgs) -> Result<Exit, Failure> {
    let layer = layers::outermost(&session.built()?.checkpoints, args.of.mount.as_deref(), NO_CHECKPOINTS)?;
    let taken = layer.part.snapshots(&session.cx).await.map_err(|error| layer.rebase.error(error))?;
    let width = taken.iter().map(|snapshot| snapshot.id.as_str().len()).max().unwrap_or_default();
    for snapshot in &taken {
        if args.json {
            out.json(snapshot)?;
            continue;
        }
        let time = snapshot.taken_at.to_rfc3339_opts(SecondsFormat::Secs, true);
        let label = escaped(snapshot.label.as_deref().unwrap_or("-"));
        let (id, files, bytes) = (snapshot.id.as_str(), snapshot.files, snapshot.bytes);
        writeln!(out, "{id:width$}  {time}  {files:>8} files  {bytes:>12} bytes  {label}")?;
    }
    Ok(Exit::Success)
}
