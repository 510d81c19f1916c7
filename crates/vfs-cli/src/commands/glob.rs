//! Command `vfs glob`: finds files by name.

use std::io::Write;

use vfs_core::{Backend, Error, ErrorKind, GlobRequest};

use crate::args::GlobArgs;
use crate::backend_session::BackendSession;
use crate::exit::{self, Exit, Failure};
use crate::progress_line::ProgressLine;
use crate::standard_output::StandardOutput;

const QUOTE_ADVICE: &str = "quote the pattern, so that the shell does not expand it: vfs glob '*.rs'";

pub(super) async fn run(session: &BackendSession, out: &mut StandardOutput, args: GlobArgs) -> Result<Exit, Failure> {
    let is_plain = !args.pattern.contains(['*', '?', '[', '{']);
    if !args.rest.is_empty() {
        let count = args.rest.len() + 2;
        let advice = if is_plain { QUOTE_ADVICE } else { "search one directory at a time" };
        let message = format!("a pattern and a directory are expected, not {count} arguments; {advice}");
        return Err(Error::invalid_argument(message).into());
    }
    let mut request = GlobRequest::new(args.pattern).path(session.path_or_root(args.path.as_deref())?);
    request.hidden = args.visibility.hidden;
    request.ignore = args.visibility.ignore();
    let mut progress = ProgressLine::start();
    let mut search = std::pin::pin!(session.backend.glob(&session.cx, request));
    let result = loop {
        tokio::select! {
            biased;
            result = &mut search => break result,
            () = progress.tick() => progress.show("searching"),
        }
    };
    progress.clear();
    let result = result.map_err(|error| match error.kind() {
        // The shell has expanded the pattern to two names.
        ErrorKind::NotADirectory if is_plain => Failure::Hinted(error, vec![QUOTE_ADVICE.to_owned()]),
        _ => error.into(),
    })?;
    let style = out.palette.path;
    for entry in &result.entries {
        writeln!(out, "{style}{}{style:#}", entry.path)?;
    }
    exit::print_problems(&result.problems);
    exit::print_truncation(result.truncated);
    Ok(Exit::from_match(!result.entries.is_empty()))
}
