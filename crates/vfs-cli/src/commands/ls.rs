//! Command `vfs ls`: lists a directory.

use std::io::Write;

use chrono::SecondsFormat;
use vfs_core::{Backend, FileInfo, LsRequest};

use crate::args::LsArgs;
use crate::backend_session::BackendSession;
use crate::exit::{self, Exit, Failure};
use crate::standard_output::StandardOutput;

pub(super) async fn run(session: &BackendSession, out: &mut StandardOutput, args: LsArgs) -> Result<Exit, Failure> {
    let mut request = LsRequest::new(session.path_or_root(args.path.as_deref())?);
    if args.recursive {
        request = request.recursive();
    }
    let listing = session.backend.ls(&session.cx, request).await?;
    for entry in &listing.entries {
        if args.long {
            let time = entry.modified_at.map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true));
            write!(out, "{:>12} {:<20} ", entry.size, time.as_deref().unwrap_or("-"))?;
        }
        writeln!(out, "{}{}", entry.path, suffix(entry))?;
    }
    exit::print_problems(&listing.problems);
    exit::print_truncation(listing.truncated);
    Ok(Exit::Success)
}

fn suffix(entry: &FileInfo) -> &'static str {
    if entry.is_dir { "/" } else { "" }
}
