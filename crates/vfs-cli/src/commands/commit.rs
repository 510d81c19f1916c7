//! `vfs commit`.

use std::io::{self, Write};

use vfs_core::{Error, ErrorKind, Version};
use vfs_layers::{Commit, CommitConflict};

use super::diff::{NO_OVERLAY, change_line};
use crate::args::ChangesArgs;
use crate::escape::escaped;
use crate::exit::{Exit, Failure};
use crate::layers;
use crate::output::Output;
use crate::session::Session;

pub(super) async fn run(session: &Session, out: &mut Output, args: ChangesArgs) -> Result<Exit, Failure> {
    let mut exit = Exit::Success;
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
                exit = Exit::Refused;
                conflicts.iter().try_for_each(|conflict| tell(out, args.json, conflict))?;
            }
            _ => return Err(Error::of(ErrorKind::Internal).into()),
        }
    }
    if !args.json {
        let noun = if files == 1 { "file" } else { "files" };
        writeln!(out, "committed {files} {noun}")?;
    }
    Ok(exit)
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
