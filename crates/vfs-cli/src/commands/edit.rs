//! `vfs edit`.

use std::io::Write;

use vfs_core::{Backend, EditRequest};

use crate::args::EditArgs;
use crate::escape::escaped;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::session::Session;

pub(super) async fn run(session: &Session, out: &mut Output, args: EditArgs) -> Result<Exit, Failure> {
    let mut request = EditRequest::new(session.path(&args.path)?, args.old, args.new);
    if args.all {
        request = request.replace_all();
    }
    if args.dry_run {
        request = request.dry_run();
    }
    let result = session.backend.edit(&session.cx, request).await?;
    match result.diff {
        Some(diff) => out.write_all(diff.as_bytes())?,
        None => {
            let places = if result.occurrences == 1 { "place" } else { "places" };
            let path = escaped(result.path.as_str());
            writeln!(out, "edited {path} ({} {places}, version {})", result.occurrences, result.version)?;
        }
    }
    Ok(Exit::Success)
}
