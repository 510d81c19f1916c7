//! `vfs discard`.

use std::io::Write;

use super::diff::{NO_OVERLAY, change_line};
use crate::args::ChangesArgs;
use crate::exit::{Exit, Failure};
use crate::layers;
use crate::output::Output;
use crate::session::Session;

pub(super) async fn run(session: &Session, out: &mut Output, args: ChangesArgs) -> Result<Exit, Failure> {
    let mut files = 0;
    for overlay in layers::meant(&session.built()?.overlays, args.mount.as_deref(), NO_OVERLAY)? {
        let changes = overlay.discard(&session.cx).await?.changes;
        files += changes.len();
        for change in &changes {
            if args.json { out.json(change)? } else { change_line(out, change)? }
        }
    }
    if !args.json {
        let noun = if files == 1 { "file" } else { "files" };
        writeln!(out, "discarded the changes of {files} {noun}")?;
    }
    Ok(Exit::Success)
}
