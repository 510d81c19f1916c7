//! `vfs write`.

use std::io::{Read, Write};

use vfs_core::{Backend, Error, ErrorKind, VfsPath, WriteRequest};

use crate::args::WriteArgs;
use crate::escape::escaped;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::session::Session;
use crate::streams;

pub(super) async fn run(session: &Session, out: &mut Output, args: WriteArgs) -> Result<Exit, Failure> {
    let path = session.path(&args.path)?;
    if args.modified_at.is_some() && !session.backend.capabilities(&path).set_times {
        let message = "the time of a file cannot be set here; leave out --modified-at";
        return Err(Error::new(ErrorKind::Unsupported, message).with_path(&path).into());
    }
    let content = content(session, &path)?;
    let request = WriteRequest::new(path.clone(), content).mode(args.mode).modified_at(args.modified_at);
    let result = session.backend.write(&session.cx, request).await.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            let message = "the file exists; replace it with --mode overwrite, or add to it with --mode append";
            Error::new(ErrorKind::AlreadyExists, message).with_path(&path)
        }
        _ => error,
    })?;
    let done = if result.created { "created" } else { "wrote" };
    let path = escaped(result.path.as_str());
    writeln!(out, "{done} {path} ({} bytes, version {})", result.size, result.version)?;
    Ok(Exit::Success)
}

/// All of standard input, as far as a file may hold it.
fn content(session: &Session, path: &VfsPath) -> Result<Vec<u8>, Failure> {
    let limit = session.backend.capabilities(path).max_file_size;
    let mut content = Vec::new();
    streams::stdin()?.take(limit.saturating_add(1)).read_to_end(&mut content).map_err(Failure::Input)?;
    if content.len() as u64 > limit {
        let message = format!("standard input is over the {limit} bytes that a file may hold here");
        return Err(Error::new(ErrorKind::TooLarge, message).with_path(path).into());
    }
    Ok(content)
}
