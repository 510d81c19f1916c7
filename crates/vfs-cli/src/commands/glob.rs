//! `vfs glob`.

use std::io::Write;

use vfs_core::{Backend, GlobRequest};

use crate::args::GlobArgs;
use crate::exit::{self, Exit, Failure};
use crate::output::Output;
use crate::progress::Progress;
use crate::session::Session;

pub(super) async fn run(session: &Session, out: &mut Output, args: GlobArgs) -> Result<Exit, Failure> {
    let mut request = GlobRequest::new(args.pattern).path(session.path_or_root(args.path.as_deref())?);
    request.hidden = args.visibility.hidden;
    request.no_ignore = args.visibility.no_ignore;
    let mut progress = Progress::start();
    let mut search = std::pin::pin!(session.backend.glob(&session.cx, request));
    let found = loop {
        tokio::select! {
            biased;
            found = &mut search => break found,
            () = progress.due() => progress.show("searching"),
        }
    };
    progress.clear();
    let found = found?;
    let style = out.palette.path;
    for entry in &found.entries {
        writeln!(out, "{style}{}{style:#}", entry.path)?;
    }
    exit::warn(&found.problems);
    exit::warn_truncated(found.truncated);
    Ok(Exit::found(!found.entries.is_empty()))
}
