//! Command `vfs history`: lists operations that can be undone.

use std::io::Write;

use chrono::SecondsFormat;

use super::checkpoint::NO_CHECKPOINTS;
use crate::args::HistoryArgs;
use crate::backend_session::BackendSession;
use crate::escape::escape;
use crate::exit::{Exit, Failure};
use crate::layers_at_mount;
use crate::standard_output::StandardOutput;

pub(super) async fn run(
    session: &BackendSession,
    out: &mut StandardOutput,
    args: HistoryArgs,
) -> Result<Exit, Failure> {
    let layer =
        layers_at_mount::find_outermost(&session.configured()?.checkpoints, args.of.mount.as_deref(), NO_CHECKPOINTS)?;
    let history = layer.history(&session.cx).await?;
    for entry in history.into_iter().take(args.limit.unwrap_or(usize::MAX)) {
        if args.json {
            out.json(&entry)?;
            continue;
        }
        let time = entry.time.to_rfc3339_opts(SecondsFormat::Secs, true);
        let actor = escape(entry.actor.as_deref().unwrap_or("-"));
        writeln!(out, "{:>6}  {time}  {actor}  {}", entry.number, escape(&entry.to_string()))?;
    }
    Ok(Exit::Success)
}
