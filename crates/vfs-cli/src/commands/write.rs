//! Command `vfs write`: writes standard input to a file.

use std::io::{Read, Write};

use bytes::Bytes;
use vfs_core::{Backend, Error, ErrorKind, OpenWriterRequest, VfsPath, WriteMode, WriteResult};

use crate::args::WriteArgs;
use crate::backend_session::BackendSession;
use crate::escape::escape;
use crate::exit::{Exit, Failure};
use crate::standard_output::StandardOutput;
use crate::standard_streams;

/// Size of a chunk in bytes, 4 MiB.
const CHUNK_SIZE: u64 = 4 << 20;

pub(super) async fn run(session: &BackendSession, out: &mut StandardOutput, args: WriteArgs) -> Result<Exit, Failure> {
    let path = session.path(&args.path)?;
    if args.modified_at.is_some() && !session.backend.capabilities(&path).set_times {
        let message = "the time of a file cannot be set here; leave out --modified-at";
        return Err(Error::new(ErrorKind::Unsupported, message).with_path(&path).into());
    }
    let request = OpenWriterRequest::new(path.clone()).mode(args.mode).modified_at(args.modified_at);
    let result = write(session, request).await.map_err(|failure| match failure {
        Failure::Operation(error) => Failure::Operation(suggest_mode(error, &path)),
        failure => failure,
    })?;
    let verb = if result.created { "created" } else { "wrote" };
    let path = escape(result.path.as_str());
    writeln!(out, "{verb} {path} ({} bytes, version {})", result.size, result.version)?;
    Ok(Exit::Success)
}

/// Writes standard input: in one request if it fits in a chunk or is appended, otherwise chunk by chunk.
async fn write(session: &BackendSession, request: OpenWriterRequest) -> Result<WriteResult, Failure> {
    let (backend, cx) = (&session.backend, &session.cx);
    let mut input = standard_streams::stdin()?;
    let is_append = request.mode == WriteMode::Append;
    let max_file_size = backend.capabilities(&request.path).max_file_size;
    let limit = if is_append { max_file_size } else { CHUNK_SIZE.min(max_file_size) };
    let first = read_chunk(&mut input, limit.saturating_add(1))?;
    if (first.len() as u64) <= limit {
        return Ok(backend.write(cx, request.into_write(first)).await?);
    }
    if is_append {
        let message = format!("standard input exceeds the maximum file size of {limit} bytes");
        return Err(Error::new(ErrorKind::TooLarge, message).with_path(&request.path).into());
    }
    let mut writer = backend.open_writer(cx, request).await?;
    let mut chunk = first;
    while !chunk.is_empty() {
        writer.write(chunk).await?;
        chunk = read_chunk(&mut input, CHUNK_SIZE)?;
    }
    Ok(writer.commit().await?)
}

/// Reads `size` bytes of `input`, or fewer at its end.
fn read_chunk(input: &mut impl Read, size: u64) -> Result<Bytes, Failure> {
    let mut chunk = Vec::new();
    input.take(size).read_to_end(&mut chunk).map_err(Failure::Input)?;
    Ok(chunk.into())
}

/// Adds the modes for existing files to `error`, if it says that the file exists.
fn suggest_mode(error: Error, path: &VfsPath) -> Error {
    if error.kind() != ErrorKind::AlreadyExists {
        return error;
    }
    let message = "the file exists; replace it with --mode overwrite, or add to it with --mode append";
    Error::new(ErrorKind::AlreadyExists, message).with_path(path)
}
