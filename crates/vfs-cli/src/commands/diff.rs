//! Command `vfs diff`: shows the changes of overlays.

use std::io::{self, Write};

use vfs_core::snapshots::{SnapshotDiffEntry, SnapshotDiffKind};

use crate::args::DiffArgs;
use crate::backend_session::BackendSession;
use crate::escape::escape;
use crate::exit::{self, Exit, Failure};
use crate::layers_at_mount;
use crate::standard_output::StandardOutput;

/// The message if no overlay is configured.
pub(super) const NO_OVERLAY: &str = "there is no layer of the type 'overlay' here; 'vfs config example' shows one";

pub(super) async fn run(session: &BackendSession, out: &mut StandardOutput, args: DiffArgs) -> Result<Exit, Failure> {
    let path = session.path_or_root(args.path.as_deref())?;
    for overlay in layers_at_mount::find(&session.configured()?.overlays, None, NO_OVERLAY)? {
        let changes = overlay.diff(&session.cx).await?.changes;
        for change in changes.iter().filter(|change| change.path.starts_with(&path)) {
            if args.json {
                out.json(change)?;
            } else if change.diff.is_empty() {
                exit::print_message(format_args!(
                    "{}: {}; the diff is too long to print",
                    change.path,
                    kind_name(change)
                ));
            } else {
                out.write_all(change.diff.as_bytes())?;
            }
        }
    }
    Ok(Exit::Success)
}

/// Prints the change of a file as one line.
pub(super) fn print_change(out: &mut StandardOutput, change: &SnapshotDiffEntry) -> io::Result<()> {
    writeln!(out, "{:8} {}", kind_name(change), escape(change.path.as_str()))
}

fn kind_name(change: &SnapshotDiffEntry) -> &'static str {
    match change.kind {
        SnapshotDiffKind::Added => "added",
        SnapshotDiffKind::Removed => "removed",
        _ => "changed",
    }
}
