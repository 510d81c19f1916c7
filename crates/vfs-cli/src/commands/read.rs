//! Command `vfs read`: prints a file.

use std::io::Write;
use std::sync::Arc;

use futures::TryStreamExt as _;
use vfs_core::chunks::read_chunks;
use vfs_core::error::ErrorDetail;
use vfs_core::{
    Backend, Error, ErrorKind, ReadRequest, Result as VfsResult, TruncationReason, Version, VfsPath, format,
};

use crate::args::ReadArgs;
use crate::backend_session::BackendSession;
use crate::exit::{Exit, Failure};
use crate::standard_output::StandardOutput;

/// Size of a chunk in bytes, 2 MiB. Only one chunk is in memory at a time.
const CHUNK_SIZE: u64 = 2 << 20;

pub(super) async fn run(session: &BackendSession, out: &mut StandardOutput, args: ReadArgs) -> Result<Exit, Failure> {
    let path = session.path(&args.path)?;
    if args.numbered {
        return print_numbered(session, out, path, args).await;
    }
    if args.offset == 0 && args.limit.is_none() {
        print_bytes(session, out, ReadRequest::new(path), None).await?;
        return Ok(Exit::Success);
    }
    let mut request = ReadRequest::new(path.clone()).offset(args.offset).max_bytes(CHUNK_SIZE).raw();
    request.limit = args.limit;
    let window = match session.backend.read(&session.cx, request).await {
        // Binary content has no lines, so all of it is printed.
        Err(error) if error.kind() == ErrorKind::NotText => {
            print_bytes(session, out, ReadRequest::new(path), None).await?;
            return Ok(Exit::Success);
        }
        window => window?,
    };
    out.write_all(window.content.as_bytes())?;
    let is_binary = window.encoding.is_none();
    let has_more = window.truncated.is_some_and(|cause| cause != TruncationReason::Limit);
    if let (true, Some(next)) = (has_more, window.bytes.end) {
        let end = match args.limit {
            Some(limit) if !is_binary => find_line_start(session, &path, args.offset.saturating_add(limit)).await?,
            _ => None,
        };
        print_bytes(session, out, ReadRequest::new(path).bytes(next, end), Some(window.version)).await?;
    }
    Ok(Exit::Success)
}

/// Prints one window with line numbers, as an agent sees it.
async fn print_numbered(
    session: &BackendSession,
    out: &mut StandardOutput,
    path: VfsPath,
    args: ReadArgs,
) -> Result<Exit, Failure> {
    let mut request = ReadRequest::new(path).offset(args.offset);
    request.limit = args.limit;
    let window = session.backend.read(&session.cx, request).await?;
    let text = format::numbered(&window);
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    Ok(Exit::Success)
}

/// Returns the offset of the line after the first `lines`, or `None` if the file has no such line.
async fn find_line_start(session: &BackendSession, path: &VfsPath, lines: u64) -> VfsResult<Option<u64>> {
    match session.backend.read(&session.cx, ReadRequest::new(path.clone()).lines(lines, 0)).await {
        Ok(window) => Ok(Some(window.bytes.start)),
        Err(error) if matches!(error.detail(), Some(ErrorDetail::OffsetOutOfRange { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Prints the bytes of `request` unchanged. If `version` is given, another version of the file is an error.
async fn print_bytes(
    session: &BackendSession,
    out: &mut StandardOutput,
    request: ReadRequest,
    version: Option<Version>,
) -> Result<(), Failure> {
    let path = request.path.clone();
    let mut chunks = read_chunks(Arc::clone(&session.backend), session.cx.clone(), request.max_bytes(CHUNK_SIZE));
    while let Some(chunk) = chunks.try_next().await? {
        if version.as_ref().is_some_and(|version| *version != chunk.version) {
            return Err(Error::conflict(&path, Some(chunk.version)).into());
        }
        out.write_all(chunk.content.as_bytes())?;
    }
    Ok(())
}
