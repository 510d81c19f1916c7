//! `vfs read`.

use std::io::Write;

use vfs_core::{
    Backend, Content, Error, ErrorDetail, ReadRequest, ReadResult, Result as VfsResult, Version, VfsPath, format,
};

use crate::args::ReadArgs;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::session::Session;

/// 4 MiB are held at a time, however long the file is.
const CHUNK: u64 = 4 << 20;

pub(super) async fn run(session: &Session, out: &mut Output, args: ReadArgs) -> Result<Exit, Failure> {
    let path = session.path(&args.path)?;
    if args.numbered {
        return numbered(session, out, path, args).await;
    }
    let mut file = File { session, path, version: None };
    if (args.offset > 0 || args.limit.is_some()) && file.is_binary().await? {
        file.print(out, 0, None).await?;
        return Ok(Exit::Success);
    }
    let start = if args.offset == 0 { 0 } else { file.start_of_line(args.offset).await? };
    let end = match args.limit {
        Some(limit) => file.start_of_line_or_end(args.offset.saturating_add(limit)).await?,
        None => None,
    };
    file.print(out, start, end).await?;
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

/// One version of one file, read piece by piece.
struct File<'a> {
    session: &'a Session,
    path: VfsPath,
    version: Option<Version>,
}

impl File<'_> {
    /// Reads a piece; `conflict` where the file is not what the first piece was of.
    async fn read(&mut self, request: ReadRequest) -> VfsResult<ReadResult> {
        let piece = self.session.backend.read(&self.session.cx, request).await?;
        match &self.version {
            Some(version) if *version != piece.version => Err(Error::conflict(&self.path, Some(piece.version))),
            _ => {
                self.version = Some(piece.version.clone());
                Ok(piece)
            }
        }
    }

    /// Whether it has no lines, so that there is nothing to leave out.
    async fn is_binary(&mut self) -> VfsResult<bool> {
        let window = self.read(ReadRequest::new(self.path.clone()).lines(0, 0).max_bytes(1)).await?;
        Ok(matches!(window.content, Content::Binary { .. }))
    }

    /// The byte that the line after the first `lines` begins at.
    async fn start_of_line(&mut self, lines: u64) -> VfsResult<u64> {
        let window = self.read(ReadRequest::new(self.path.clone()).lines(lines, 0)).await?;
        Ok(window.bytes.start)
    }

    /// The same, or `None` where the file has no such line.
    async fn start_of_line_or_end(&mut self, lines: u64) -> VfsResult<Option<u64>> {
        match self.start_of_line(lines).await {
            Ok(start) => Ok(Some(start)),
            Err(error) if matches!(error.detail(), Some(ErrorDetail::PastEnd { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Prints the bytes from `start` to `end` as they are.
    async fn print(&mut self, out: &mut Output, start: u64, end: Option<u64>) -> Result<(), Failure> {
        let mut next = Some(start);
        while let Some(start) = next {
            let request = ReadRequest::new(self.path.clone()).bytes(start, end).max_bytes(CHUNK);
            let piece = self.read(request).await?;
            match &piece.content {
                Content::Text(text) => out.write_all(text.as_bytes())?,
                Content::Binary { bytes, .. } => out.write_all(bytes)?,
            }
            next = piece.next_byte.filter(|next| *next > start && end.is_none_or(|end| *next < end));
        }
        Ok(())
    }
}
