//! Command `vfs mv` and `vfs cp`: move and copy files.

use std::io::Write;

use vfs_core::{Backend, CopyRequest, Error, ErrorKind, RenameRequest, StatRequest, VfsPath};

use crate::args::MoveCopyArgs;
use crate::backend_session::BackendSession;
use crate::escape::escape;
use crate::exit::{Exit, Failure};
use crate::standard_output::StandardOutput;

pub(super) async fn rename(
    session: &BackendSession,
    out: &mut StandardOutput,
    args: MoveCopyArgs,
) -> Result<Exit, Failure> {
    let mut request = RenameRequest::new(session.path(&args.from)?, session.path(&args.to)?);
    if args.force {
        request = request.overwrite();
    }
    let (from, to) = (request.from.clone(), request.to.clone());
    let result = match session.backend.rename(&session.cx, request).await {
        Ok(result) => result,
        Err(error) => return Err(add_advice(session, error, &from, &to).await.into()),
    };
    writeln!(out, "moved {} to {}", escape(result.from.as_str()), escape(result.to.as_str()))?;
    Ok(Exit::Success)
}

pub(super) async fn copy(
    session: &BackendSession,
    out: &mut StandardOutput,
    args: MoveCopyArgs,
) -> Result<Exit, Failure> {
    let mut request = CopyRequest::new(session.path(&args.from)?, session.path(&args.to)?);
    if args.force {
        request = request.overwrite();
    }
    let (from, to) = (request.from.clone(), request.to.clone());
    let result = match session.backend.copy(&session.cx, request).await {
        Ok(result) => result,
        Err(error) => return Err(add_advice(session, error, &from, &to).await.into()),
    };
    let files = if result.files == 1 { "file" } else { "files" };
    let (from, to) = (escape(result.from.as_str()), escape(result.to.as_str()));
    writeln!(out, "copied {from} to {to} ({} {files}, {} bytes)", result.files, result.bytes)?;
    Ok(Exit::Success)
}

/// Adds what to write instead to an error about an existing target.
async fn add_advice(session: &BackendSession, error: Error, from: &VfsPath, to: &VfsPath) -> Error {
    let concerns_target = error.path() == Some(to.as_str());
    if !concerns_target || !matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::IsADirectory) {
        return error;
    }
    let is_dir = async |path: &VfsPath| {
        let info = session.backend.stat(&session.cx, StatRequest::new(path.clone())).await;
        info.is_ok_and(|info| info.is_dir)
    };
    let inside = from.name().and_then(|name| to.child(name).ok());
    let message = match (is_dir(to).await, inside) {
        (true, Some(inside)) => format!("the target is a directory; write the whole new path: {inside}"),
        (false, _) if error.kind() == ErrorKind::AlreadyExists => match is_dir(from).await {
            true => "the file exists, and a directory cannot replace a file; name another target".into(),
            false => "the file exists; replace it with --force".into(),
        },
        _ => return error,
    };
    Error::new(error.kind(), message).with_path(to)
}
