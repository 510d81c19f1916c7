//! `vfs read`.

use std::io::Write;
use std::sync::Arc;

use futures::TryStreamExt as _;
use vfs_core::{
    Backend, Error, ErrorDetail, ErrorKind, ReadRequest, Result as VfsResult, Truncation, Version, VfsPath, format,
    read_chunks,
};

use crate::args::ReadArgs;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::session::Session;

/// The size of a chunk, 4 MiB: only one is in memory, however long the file is.
const CHUNK_SIZE: u64 = 4 << 20;

pub(super) async fn run(session: &Session, out: &mut Output, args: ReadArgs) -> Result<Exit, Failure> {
    let path = session.path(&args.path)?;
    if args.numbered {
        return numbered(session, out, path, args).await;
    }
    if args.offset == 0 && args.limit.is_none() {
        print(session, out, ReadRequest::new(path), None).await?;
        return Ok(Exit::Success);
    }
    let mut request = ReadRequest::new(path.clone()).offset(args.offset).max_bytes(CHUNK_SIZE).raw();
    request.limit = args.limit;
    let window = match session.backend.read(&session.cx, request).await {
        // Binary content has no lines to skip.
        Err(error) if error.kind() == ErrorKind::NotText => {
            print(session, out, ReadRequest::new(path), None).await?;
            return Ok(Exit::Success);
        }
        window => window?,
    };
    out.write_all(window.content.as_bytes())?;
    let is_binary = window.encoding.is_none();
    let goes_on = window.truncated.is_some_and(|cause| cause != Truncation::Limit);
    if let (true, Some(next)) = (goes_on, window.bytes.end) {
        let end = match args.limit {
            Some(limit) if !is_binary => start_of_line(session, &path, args.offset.saturating_add(limit)).await?,
            _ => None,
        };
        print(session, out, ReadRequest::new(path).bytes(next, end), Some(window.version)).await?;
    }
    Ok(Exit::Success)
}

/// Prints one window as an agent sees it; where there is more, it says how to go on.
async fn numbered(session: &Session, out: &mut Output, path: VfsPath, args: ReadArgs) -> Result<Exit, Failure> {
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

/// Returns the byte at which the line after the first `lines` begins, or `None` if the file has no such line.
async fn start_of_line(session: &Session, path: &VfsPath, lines: u64) -> VfsResult<Option<u64>> {
    match session.backend.read(&session.cx, ReadRequest::new(path.clone()).lines(lines, 0)).await {
        Ok(window) => Ok(Some(window.bytes.start)),
        Err(error) if matches!(error.detail(), Some(ErrorDetail::OffsetOutOfRange { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Prints the bytes of `request` as they are, which must be of `version` if it is given.
async fn print(
    session: &Session,
    out: &mut Output,
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
