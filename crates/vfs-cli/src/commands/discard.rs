//! Command `vfs discard`: discards changes of overlays.

use std::io::Write;

use vfs_core::VfsPath;

use super::diff::{NO_OVERLAY, print_change};
use crate::args::{ChangesArgs, DiscardArgs};
use crate::exit::{Exit, Failure};
use crate::layer_selection;
use crate::output::Output;
use crate::session::Session;

pub(super) async fn run(session: &Session, out: &mut Output, args: DiscardArgs) -> Result<Exit, Failure> {
    let DiscardArgs { of: ChangesArgs { json, mount }, paths } = args;
    let mut paths = paths.iter().map(|path| session.path(path)).collect::<Result<Vec<_>, _>>()?;
    if paths.is_empty() {
        paths.push(VfsPath::root());
    }
    let mut files = 0;
    for overlay in layer_selection::select(&session.configured()?.overlays, mount.as_deref(), NO_OVERLAY)? {
        let changes = overlay.discard_paths(&session.cx, &paths).await?.changes;
        files += changes.len();
        for change in &changes {
            if json { out.json(change)? } else { print_change(out, change)? }
        }
    }
    if !json {
        let noun = if files == 1 { "file" } else { "files" };
        writeln!(out, "discarded the changes of {files} {noun}")?;
    }
    Ok(Exit::Success)
}
