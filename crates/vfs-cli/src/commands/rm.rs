//! Command `vfs rm`: removes files.

use std::io::Write;

use vfs_core::{Backend, DeleteRequest};

use crate::args::RmArgs;
use crate::backend_session::BackendSession;
use crate::escape::escape;
use crate::exit::{Exit, Failure};
use crate::standard_output::StandardOutput;

pub(super) async fn run(session: &BackendSession, out: &mut StandardOutput, args: RmArgs) -> Result<Exit, Failure> {
    let mut request = DeleteRequest::new(session.path(&args.path)?);
    if args.recursive {
        request = request.recursive();
    }
    let result = session.backend.delete(&session.cx, request).await?;
    let files = if result.files == 1 { "file" } else { "files" };
    writeln!(out, "deleted {} ({} {files})", escape(result.path.as_str()), result.files)?;
    Ok(Exit::Success)
}
