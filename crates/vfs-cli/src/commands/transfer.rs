//! `vfs mv` and `vfs cp`.

use std::io::Write;

use vfs_core::{Backend, CopyRequest, RenameRequest};

use crate::args::TransferArgs;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::session::Session;

pub(super) async fn rename(session: &Session, out: &mut Output, args: TransferArgs) -> Result<Exit, Failure> {
    let mut request = RenameRequest::new(session.path(&args.from)?, session.path(&args.to)?);
    if args.force {
        request = request.overwrite();
    }
    let result = session.backend.rename(&session.cx, request).await?;
    writeln!(out, "moved {} to {}", result.from, result.to)?;
    Ok(Exit::Success)
}

pub(super) async fn copy(session: &Session, out: &mut Output, args: TransferArgs) -> Result<Exit, Failure> {
    let mut request = CopyRequest::new(session.path(&args.from)?, session.path(&args.to)?);
    if args.force {
        request = request.overwrite();
    }
    let result = session.backend.copy(&session.cx, request).await?;
    let files = if result.files == 1 { "file" } else { "files" };
    writeln!(out, "copied {} to {} ({} {files}, {} bytes)", result.from, result.to, result.files, result.bytes)?;
    Ok(Exit::Success)
}
