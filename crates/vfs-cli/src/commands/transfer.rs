//! `vfs mv` and `vfs cp`.

use std::io::Write;

use vfs_core::{Backend, CopyRequest, RenameRequest};

use crate::args::TransferArgs;
use crate::escape::escaped;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::session::Session;

pub(super) async fn rename(session: &Session, out: &mut Output, args: TransferArgs) -> Result<Exit, Failure> {
    let mut request = RenameRequest::new(session.path(&args.from)?, session.path(&args.to)?);
    if args.force {
        request = request.overwrite();
    }
    let result = session.backend.rename(&session.cx, request).await?;
    writeln!(out, "moved {} to {}", escaped(result.from.as_str()), escaped(result.to.as_str()))?;
    Ok(Exit::Success)
}

pub(super) async fn copy(session: &Session, out: &mut Output, args: TransferArgs) -> Result<Exit, Failure> {
    let mut request = CopyRequest::new(session.path(&args.from)?, session.path(&args.to)?);
    if args.force {
        request = request.overwrite();
    }
    let result = session.backend.copy(&session.cx, request).await?;
    let files = if result.files == 1 { "file" } else { "files" };
    let (from, to) = (escaped(result.from.as_str()), escaped(result.to.as_str()));
    writeln!(out, "copied {from} to {to} ({} {files}, {} bytes)", result.files, result.bytes)?;
    Ok(Exit::Success)
}
