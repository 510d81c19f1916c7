//! Command `vfs discard`: discards changes of overlays.

use std::io::Write;

use vfs_core::VfsPath;

use super::diff::{NO_OVERLAY, print_change};
use crate::args::{DiscardArgs, OverlayArgs};
use crate::backend_session::BackendSession;
use crate::exit::{Exit, Failure};
use crate::layers_at_mount;
use crate::standard_output::StandardOutput;

pub(super) async fn run(
    session: &BackendSession,
    out: &mut StandardOutput,
    args: DiscardArgs,
) -> Result<Exit, Failure> {
    let DiscardArgs { of: OverlayArgs { json, mount }, paths } = args;
    let mut paths = paths.iter().map(|path| session.path(path)).collect::<Result<Vec<_>, _>>()?;
    if paths.is_empty() {
        paths.push(VfsPath::root());
    }
    let mut files = 0;
    for overlay in layers_at_mount::find(&session.configured()?.overlays, mount.as_deref(), NO_OVERLAY)? {
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
