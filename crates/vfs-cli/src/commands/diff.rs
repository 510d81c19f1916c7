//! `vfs diff`.

use std::io::{self, Write};

use vfs_core::{ChangeKind, FileChange};

use crate::args::DiffArgs;
use crate::escape::escaped;
use crate::exit::{self, Exit, Failure};
use crate::layers;
use crate::output::Output;
use crate::session::Session;

/// What is said where there is no overlay.
pub(super) const NO_OVERLAY: &str = "there is no layer of the type 'overlay' here; see docs/vfs.example.toml";

pub(super) async fn run(session: &Session, out: &mut Output, args: DiffArgs) -> Result<Exit, Failure> {
    let path = session.path_or_root(args.path.as_deref())?;
    for overlay in layers::meant(&session.built()?.overlays, None, NO_OVERLAY)? {
        let changes = overlay.diff(&session.cx).await?.changes;
        for change in changes.iter().filter(|change| change.path.starts_with(&path)) {
            if args.json {
                out.json(change)?;
            } else if change.diff.is_empty() {
                exit::tell(format_args!("{}: {}; it is too long to be shown", change.path, word(change)));
            } else {
                out.write_all(change.diff.as_bytes())?;
            }
        }
    }
    Ok(Exit::Success)
}

/// Prints what became of a file, as a line.
pub(super) fn change_line(out: &mut Output, change: &FileChange) -> io::Result<()> {
    writeln!(out, "{:8} {}", word(change), escaped(change.path.as_str()))
}

fn word(change: &FileChange) -> &'static str {
    match change.kind {
        ChangeKind::Added => "added",
        ChangeKind::Removed => "removed",
        _ => "changed",
    }
}
