//! `vfs glob`.

use std::io::Write;

use vfs_core::{Backend, Error, ErrorKind, GlobRequest};

use crate::args::GlobArgs;
use crate::exit::{self, Exit, Failure};
use crate::output::Output;
use crate::progress::Progress;
use crate::session::Session;

const QUOTE: &str = "quote the pattern, so that the shell does not expand it: vfs glob '*.rs'";

pub(super) async fn run(session: &Session, out: &mut Output, args: GlobArgs) -> Result<Exit, Failure> {
    let is_plain = !args.pattern.contains(['*', '?', '[', '{']);
    if !args.rest.is_empty() {
        let count = args.rest.len() + 2;
        let advice = if is_plain { QUOTE } else { "search one directory at a time" };
        let message = format!("a pattern and a directory are expected, not {count} arguments; {advice}");
        return Err(Error::invalid_argument(message).into());
    }
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
    let found = found.map_err(|error| match error.kind() {
        // The shell has put two names in the place of the pattern.
        ErrorKind::NotADirectory if is_plain => Failure::Hinted(error, vec![QUOTE.to_owned()]),
        _ => error.into(),
    })?;
    let style = out.palette.path;
    for entry in &found.entries {
        writeln!(out, "{style}{}{style:#}", entry.path)?;
    }
    exit::warn(&found.problems);
    exit::warn_truncated(found.truncated);
    Ok(Exit::found(!found.entries.is_empty()))
}
