//! `vfs history`.

use std::io::Write;

use chrono::SecondsFormat;
use vfs_core::Rebase;
use vfs_layers::UndoEntry;

use super::checkpoint::NO_CHECKPOINTS;
use crate::args::HistoryArgs;
use crate::exit::{Exit, Failure};
use crate::layers;
use crate::output::Output;
use crate::session::Session;

pub(super) async fn run(session: &Session, out: &mut Output, args: HistoryArgs) -> Result<Exit, Failure> {
    let layer = layers::outermost(&session.built()?.checkpoints, args.of.mount.as_deref(), NO_CHECKPOINTS)?;
    let history = layer.part.history(&session.cx).await.map_err(|error| layer.rebase.error(error))?;
    for mut entry in history.into_iter().take(args.limit.unwrap_or(usize::MAX)) {
        outward(&mut entry, &layer.rebase);
        if args.json {
            out.json(&entry)?;
            continue;
        }
        let time = entry.time.to_rfc3339_opts(SecondsFormat::Secs, true);
        let actor = entry.actor.as_deref().unwrap_or("-");
        writeln!(out, "{:>6}  {time}  {actor}  {}", entry.number, told(&entry))?;
    }
    Ok(Exit::Success)
}

/// Puts the paths of `entry` into the caller's namespace.
pub(super) fn outward(entry: &mut UndoEntry, rebase: &Rebase) {
    for path in &mut entry.paths {
        // What was done to more than the caller can see, such as going back to a checkpoint, was done to all of that.
        *path = rebase.outward(path).unwrap_or_else(|_| rebase.outer().clone());
    }
}

/// The operation in words.
pub(super) fn told(entry: &UndoEntry) -> String {
    let paths: Vec<_> = entry.paths.iter().map(|path| path.as_str()).collect();
    format!("{} {}", entry.operation, paths.join(" to "))
}
