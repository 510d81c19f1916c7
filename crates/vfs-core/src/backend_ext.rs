//! Convenience methods for callers of a backend.

use std::future::Future;

use crate::backend::Backend;
use crate::context::OpContext;
use crate::error::{Error, ErrorKind, Result};
use crate::path::VfsPath;
use crate::requests::{
    Content, DeleteRequest, EditRequest, EditResult, FileInfo, GlobRequest, GrepMatch, GrepRequest, LsRequest,
    ReadRequest, ReadResult, StatRequest, WriteMode, WriteRequest, WriteResult,
};

/// Short methods for common operations, implemented for every [`Backend`].
///
/// # Behaviour
///
/// Each method parses its path and uses a new [`OpContext`] without deadline. If you need a context, call the operation itself.
///
/// # Errors
///
/// The errors of the operation and of [`VfsPath::parse`].
pub trait BackendExt: Backend {
    /// Returns the text of a whole file.
    ///
    /// # Errors
    ///
    /// `not_text` for a binary file; `too_large` for a file over [`ReadRequest::DEFAULT_MAX_BYTES`].
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

    /// Reads at most `limit` lines after skipping `offset` lines.
    fn read_lines(&self, path: &str, offset: u64, limit: u64) -> impl Future<Output = Result<ReadResult>> + Send {
        async move { self.read(&OpContext::new(), ReadRequest::new(VfsPath::parse(path)?).lines(offset, limit)).await }
    }

    /// Writes a text file, replacing an existing one.
    fn write_text(&self, path: &str, text: &str) -> impl Future<Output = Result<WriteResult>> + Send {
        async move {
            let request = WriteRequest::new(VfsPath::parse(path)?, text.to_owned()).mode(WriteMode::Overwrite);
            self.write(&OpContext::new(), request).await
        }
    }

    /// Creates a text file.
    ///
    /// # Errors
    ///
    /// `already_exists` if the path exists.
    fn create_text(&self, path: &str, text: &str) -> impl Future<Output = Result<WriteResult>> + Send {
        async move { self.write(&OpContext::new(), WriteRequest::new(VfsPath::parse(path)?, text.to_owned())).await }
    }

    /// Appends text to a file, which is created if it does not exist.
    fn append_text(&self, path: &str, text: &str) -> impl Future<Output = Result<WriteResult>> + Send {
        async move {
            let request = WriteRequest::new(VfsPath::parse(path)?, text.to_owned()).mode(WriteMode::Append);
            self.write(&OpContext::new(), request).await
        }
    }

    /// Replaces the only occurrence of `old` in a file with `new`.
    ///
    /// # Errors
    ///
    /// `no_match` if `old` does not occur; `not_unique` if it occurs more than once.
    fn edit_text(&self, path: &str, old: &str, new: &str) -> impl Future<Output = Result<EditResult>> + Send {
        async move { self.edit(&OpContext::new(), EditRequest::new(VfsPath::parse(path)?, old, new)).await }
    }

    /// Returns the metadata of a file or directory.
    fn stat_path(&self, path: &str) -> impl Future<Output = Result<FileInfo>> + Send {
        async move { self.stat(&OpContext::new(), StatRequest::new(VfsPath::parse(path)?)).await }
    }

    /// Returns whether the path exists.
    fn exists(&self, path: &str) -> impl Future<Output = Result<bool>> + Send {
        async move {
            match self.stat_path(path).await {
                Ok(_) => Ok(true),
                Err(error) if error.is_absence() => Ok(false),
                Err(error) => Err(error),
            }
        }
    }

    /// Returns the entries of a directory, sorted by path, without entries that could not be described: [`Backend::ls`] reports them.
    fn list_dir(&self, path: &str) -> impl Future<Output = Result<Vec<FileInfo>>> + Send {
        async move { Ok(self.ls(&OpContext::new(), LsRequest::new(VfsPath::parse(path)?)).await?.entries) }
    }

    /// Returns the visible files that match a glob, sorted by path: up to [the limit](GlobRequest::limit), and without directories that
    /// could not be listed. [`Backend::glob`] reports both.
    fn glob_files(&self, pattern: &str) -> impl Future<Output = Result<Vec<FileInfo>>> + Send {
        async move { Ok(self.glob(&OpContext::new(), GlobRequest::new(pattern)).await?.entries) }
    }

    /// Returns the lines of visible files that contain `text`, sorted by path and line: up to [the limit](GrepRequest::limit), and
    /// without files that could not be read. [`Backend::grep`] reports both.
    fn grep_text(&self, text: &str) -> impl Future<Output = Result<Vec<GrepMatch>>> + Send {
        async move { Ok(self.grep(&OpContext::new(), GrepRequest::literal(text)).await?.matches) }
    }

    /// Deletes a file or link.
    fn delete_file(&self, path: &str) -> impl Future<Output = Result<()>> + Send {
        async move { self.delete(&OpContext::new(), DeleteRequest::new(VfsPath::parse(path)?)).await.map(drop) }
    }
}

impl<B: Backend + ?Sized> BackendExt for B {}
