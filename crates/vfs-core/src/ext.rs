//! Short calls for users.

use std::future::Future;

use crate::backend::Backend;
use crate::context::OpContext;
use crate::error::{Error, ErrorKind, Result};
use crate::path::VfsPath;
use crate::types::{
    Content, DeleteRequest, EditRequest, EditResult, FileInfo, GlobRequest, GrepMatch, GrepRequest, LsRequest,
    ReadRequest, ReadResult, StatRequest, WriteMode, WriteRequest, WriteResult,
};

/// The common cases of every operation in one line, for every [`Backend`]; not to be implemented.
///
/// # Behaviour
///
/// Paths are parsed here. The context is a fresh one, with no deadline: use the full operations where one is needed.
///
/// # Errors
///
/// Those of the operation, and of [`VfsPath::parse`].
pub trait BackendExt: Backend {
    /// Reads a whole text file; `not_text` where it is not text, `too_large` where it is over a read's default bound.
    fn read_text(&self, path: &str) -> impl Future<Output = Result<String>> + Send {
        async move {
            let path = VfsPath::parse(path)?;
            let result = self.read(&OpContext::new(), ReadRequest::new(path.clone())).await?;
            match result.content {
                _ if result.truncated.is_some() => Err(Error::at(ErrorKind::TooLarge, &path)),
                Content::Text(text) => Ok(text),
                Content::Binary { .. } => Err(Error::at(ErrorKind::NotText, &path)),
            }
        }
    }

    /// Reads at most `limit` lines after the first `offset`.
    fn read_lines(&self, path: &str, offset: u64, limit: u64) -> impl Future<Output = Result<ReadResult>> + Send {
        async move { self.read(&OpContext::new(), ReadRequest::new(VfsPath::parse(path)?).lines(offset, limit)).await }
    }

    /// Writes a text file, over what is there.
    fn write_text(&self, path: &str, text: &str) -> impl Future<Output = Result<WriteResult>> + Send {
        async move {
            let request = WriteRequest::new(VfsPath::parse(path)?, text.to_owned()).mode(WriteMode::Overwrite);
            self.write(&OpContext::new(), request).await
        }
    }

    /// Writes a new text file; `already_exists` where something is there.
    fn create_text(&self, path: &str, text: &str) -> impl Future<Output = Result<WriteResult>> + Send {
        async move { self.write(&OpContext::new(), WriteRequest::new(VfsPath::parse(path)?, text.to_owned())).await }
    }

    /// Adds text to the end of a file, which is made where it is not there.
    fn append_text(&self, path: &str, text: &str) -> impl Future<Output = Result<WriteResult>> + Send {
        async move {
            let request = WriteRequest::new(VfsPath::parse(path)?, text.to_owned()).mode(WriteMode::Append);
            self.write(&OpContext::new(), request).await
        }
    }

    /// Replaces the only occurrence of `old` with `new`.
    fn edit_text(&self, path: &str, old: &str, new: &str) -> impl Future<Output = Result<EditResult>> + Send {
        async move { self.edit(&OpContext::new(), EditRequest::new(VfsPath::parse(path)?, old, new)).await }
    }

    /// Says what is at a path.
    fn stat_path(&self, path: &str) -> impl Future<Output = Result<FileInfo>> + Send {
        async move { self.stat(&OpContext::new(), StatRequest::new(VfsPath::parse(path)?)).await }
    }

    /// Whether anything is at a path.
    fn exists(&self, path: &str) -> impl Future<Output = Result<bool>> + Send {
        async move {
            match self.stat_path(path).await {
                Ok(_) => Ok(true),
                Err(error) if error.is_absence() => Ok(false),
                Err(error) => Err(error),
            }
        }
    }

    /// Lists one level of a directory.
    fn list_dir(&self, path: &str) -> impl Future<Output = Result<Vec<FileInfo>>> + Send {
        async move { Ok(self.ls(&OpContext::new(), LsRequest::new(VfsPath::parse(path)?)).await?.entries) }
    }

    /// Finds the visible files that match a glob, below the root.
    fn glob_files(&self, pattern: &str) -> impl Future<Output = Result<Vec<FileInfo>>> + Send {
        async move { Ok(self.glob(&OpContext::new(), GlobRequest::new(pattern)).await?.entries) }
    }

    /// Finds the lines of visible files that hold `text`, below the root.
    fn grep_text(&self, text: &str) -> impl Future<Output = Result<Vec<GrepMatch>>> + Send {
        async move { Ok(self.grep(&OpContext::new(), GrepRequest::literal(text)).await?.matches) }
    }

    /// Removes a file or link.
    fn delete_file(&self, path: &str) -> impl Future<Output = Result<()>> + Send {
        async move { self.delete(&OpContext::new(), DeleteRequest::new(VfsPath::parse(path)?)).await.map(drop) }
    }
}

impl<B: Backend + ?Sized> BackendExt for B {}
