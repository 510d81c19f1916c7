//! `vfs history`.

use std::io::Write;

use chrono::SecondsFormat;

use super::checkpoint::NO_CHECKPOINTS;
use crate::args::HistoryArgs;
use crate::escape::escaped;
use crate::exit::{Exit, Failure};
use crate::layers;
use crate::output::Output;
use crate::session::Session;

pub(super) async fn run(session: &Session, out: &mut Output, args: HistoryArgs) -> Result<Exit, Failure> {
    let layer = layers::outermost(&session.built()?.checkpoints, args.of.mount.as_deref(), NO_CHECKPOINTS)?;
    let history = layer.history(&session.cx).await?;
    for entry in history.into_iter().take(args.limit.unwrap_or(usize::MAX)) {
        if args.json {
            out.json(&entry)?;
            continue;
        }
        let time = entry.time.to_rfc3339_opts(SecondsFormat::Secs, true);
        let actor = escaped(entry.actor.as_deref().unwrap_or("-"));
        writeln!(out, "{:>6}  {time}  {actor}  {}", entry.number, escaped(&entry.to_string()))?;
    }
    Ok(Exit::Success)
}
