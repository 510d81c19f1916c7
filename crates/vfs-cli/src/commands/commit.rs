//! Command `vfs commit`: applies the changes of overlays.

use std::io::{self, Write};

use vfs_core::{Error, ErrorKind, Version, VfsPath};
use vfs_versions::{CommitConflict, CommitResult};

use super::diff::{NO_OVERLAY, print_change};
use crate::args::OverlayArgs;
use crate::backend_session::BackendSession;
use crate::escape::escape;
use crate::exit::{self, Exit, Failure};
use crate::layers_at_mount;
use crate::standard_output::StandardOutput;

pub(super) async fn run(
    session: &BackendSession,
    out: &mut StandardOutput,
    args: OverlayArgs,
) -> Result<Exit, Failure> {
    let mut conflicting_paths = Vec::new();
    let mut files = 0;
    // The outermost overlay first, so that its changes go through the overlays below it.
    for overlay in
        layers_at_mount::find(&session.configured()?.overlays, args.mount.as_deref(), NO_OVERLAY)?.into_iter().rev()
    {
        match overlay.commit(&session.cx).await? {
            CommitResult::Applied(changes) => {
                files += changes.changes.len();
                for change in &changes.changes {
                    if args.json { out.json(change)? } else { print_change(out, change)? }
                }
            }
            CommitResult::Conflicts(conflicts) => {
                conflicts.iter().try_for_each(|conflict| print_conflict(out, args.json, conflict))?;
                conflicting_paths.extend(conflicts.into_iter().map(|conflict| conflict.path));
            }
            _ => return Err(Error::of(ErrorKind::Internal).into()),
        }
    }
    if !args.json {
        let noun = if files == 1 { "file" } else { "files" };
        writeln!(out, "committed {files} {noun}")?;
    }
    if conflicting_paths.is_empty() {
        return Ok(Exit::Success);
    }
    if !args.json {
        exit::print_message(conflict_advice(&conflicting_paths));
    }
    Ok(Exit::Refused)
}

/// Maximum number of paths in the advice about conflicts. The output has a line for each conflict.
const MAX_PATHS_IN_ADVICE: usize = 5;

/// Returns which paths are in conflict, and how to resolve that.
fn conflict_advice(conflicting_paths: &[VfsPath]) -> String {
    let first: Vec<_> = conflicting_paths.iter().take(MAX_PATHS_IN_ADVICE).map(VfsPath::as_str).collect();
    let more = conflicting_paths.len() - first.len();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!(
        "conflict: {}{more}: the file below the overlay has changed since; compare with 'vfs diff PATH' and keep the file below with \
         'vfs discard PATH'; 'vfs commit --help' says how to keep the file of the overlay",
        first.join(", ")
    )
}

fn print_conflict(out: &mut StandardOutput, json: bool, conflict: &CommitConflict) -> io::Result<()> {
    if json {
        return out.json(conflict);
    }
    let version = |version: &Option<Version>| version.as_ref().map_or("absent".to_owned(), Version::to_string);
    let (expected, actual) = (version(&conflict.expected), version(&conflict.actual));
    writeln!(out, "conflict {} (expected version {expected}, found {actual})", escape(conflict.path.as_str()))
}
