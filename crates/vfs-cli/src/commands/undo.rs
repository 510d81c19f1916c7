//! `vfs undo`.

use std::io::Write;

use super::checkpoint::NO_CHECKPOINTS;
use crate::args::UndoArgs;
use crate::escape::escaped;
use crate::exit::{self, Exit, Failure};
use crate::layers;
use crate::output::Output;
use crate::session::Session;

pub(super) async fn run(session: &Session, out: &mut Output, args: UndoArgs) -> Result<Exit, Failure> {
    let layer = layers::outermost(&session.built()?.checkpoints, args.of.mount.as_deref(), NO_CHECKPOINTS)?;
    let undone = layer.undo(&session.cx, args.operations).await?;
    if args.json {
        out.json(&undone)?;
    } else {
        for entry in &undone.entries {
            writeln!(out, "took back {}", escaped(&entry.to_string()))?;
        }
    }
    if undone.entries.is_empty() {
        exit::tell("there is nothing to take back");
    }
    Ok(Exit::found(!undone.entries.is_empty()))
}
