//! `vfs commit`.

use std::io::{self, Write};

use vfs_core::{Error, ErrorKind, Version, VfsPath};
use vfs_versions::{Commit, CommitConflict};

use super::diff::{NO_OVERLAY, change_line};
use crate::args::ChangesArgs;
use crate::escape::escaped;
use crate::exit::{self, Exit, Failure};
use crate::layers;
use crate::output::Output;
use crate::session::Session;

pub(super) async fn run(session: &Session, out: &mut Output, args: ChangesArgs) -> Result<Exit, Failure> {
    let mut conflicting = Vec::new();
    let mut files = 0;
    // The outermost first: what it brings down into another one is then brought further.
    for overlay in layers::meant(&session.built()?.overlays, args.mount.as_deref(), NO_OVERLAY)?.into_iter().rev() {
        match overlay.commit(&session.cx).await? {
            Commit::Applied(changes) => {
                files += changes.changes.len();
                for change in &changes.changes {
                    if args.json { out.json(change)? } else { change_line(out, change)? }
                }
            }
            Commit::Conflicts(conflicts) => {
                conflicts.iter().try_for_each(|conflict| tell(out, args.json, conflict))?;
                conflicting.extend(conflicts.into_iter().map(|conflict| conflict.path));
            }
            _ => return Err(Error::of(ErrorKind::Internal).into()),
        }
    }
    if !args.json {
        let noun = if files == 1 { "file" } else { "files" };
        writeln!(out, "committed {files} {noun}")?;
    }
    if conflicting.is_empty() {
        return Ok(Exit::Success);
    }
    if !args.json {
        exit::tell(next_steps(&conflicting));
    }
    Ok(Exit::Refused)
}

/// Upper bound on the paths that the advice about conflicts names; each has a line of its own in the output.
const MAX_NAMED: usize = 5;

/// Returns which paths are in conflict, and how to go on.
fn next_steps(conflicting: &[VfsPath]) -> String {
    let named: Vec<_> = conflicting.iter().take(MAX_NAMED).map(VfsPath::as_str).collect();
    let more = conflicting.len() - named.len();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!(
        "conflict: {}{more}: changed beneath the overlay since; compare with 'vfs diff PATH' and keep the file beneath with \
         'vfs discard PATH'; 'vfs commit --help' says how to keep the file of the overlay",
        named.join(", ")
    )
}

fn tell(out: &mut Output, json: bool, conflict: &CommitConflict) -> io::Result<()> {
    if json {
        return out.json(conflict);
    }
    let version = |version: &Option<Version>| version.as_ref().map_or("absent".to_owned(), Version::to_string);
    let (expected, actual) = (version(&conflict.expected), version(&conflict.actual));
    writeln!(
        out,
        "conflict {} (it was {expected} when it was changed here, and is {actual} now)",
        escaped(conflict.path.as_str())
    )
}
