//! Reads of files: a window, or the whole content.

use std::os::fd::{AsFd, OwnedFd};

use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::fs::OFlags;
use rustix::io;
use vfs_core::{
    Error, ErrorKind, FileDownloadResponse, OpContext, ReadRequest, ReadResult, Result, Version, VfsPath,
    fallible_alloc, window,
};

use crate::fs::errno::retry;
use crate::fs::errno::{from_errno, from_errno_at};
use crate::fs::metadata::Metadata;
use crate::local_fs::LocalFs;

/// A file that was checked to be a regular one both before and after it was opened for reading.
pub(crate) struct OpenFile {
    pub(crate) fd: OwnedFd,
    pub(crate) metadata: Metadata,
}

impl LocalFs {
    /// Opens a regular file for reading.
    ///
    /// The type is checked through an `O_PATH` descriptor, which does not open the file itself, so that no device is
    /// ever touched; the open that follows cannot block, even if the entry was replaced in between.
    pub(crate) fn open_file(&self, path: &VfsPath) -> Result<OpenFile> {
        let path_fd = self.root.open_at(path, OFlags::PATH)?;
        self.check_readable(path_fd.as_fd(), path)?;
        let fd = self.root.open_for_reading(path)?;
        let metadata = self.check_readable(fd.as_fd(), path)?;
        Ok(OpenFile { fd, metadata })
    }

    fn check_readable(&self, fd: std::os::fd::BorrowedFd<'_>, path: &VfsPath) -> Result<Metadata> {
        let metadata = Metadata::from_fd(fd).map_err(|errno| from_errno_at(errno, path))?;
        metadata.check_readable_file(self.hard_links).map_err(|error| error.with_path(path))?;
        Ok(metadata)
    }

    pub(crate) fn read(&self, request: &ReadRequest, cx: &OpContext) -> Result<ReadResult> {
        let OpenFile { fd, metadata } = self.open_file(&request.path)?;
        let version = metadata.version();
        if request.bytes.is_none()
            && let Some(content) =
                read_in_one_call(&fd, &metadata).map_err(|errno| from_errno_at(errno, &request.path))?
        {
            return window::read_bytes(&content.into(), request, version);
        }
        let mut source = FileContentSource { fd, size: metadata.size(), cx };
        let mut index = self.line_indexes.get(&version);
        let window = window::read_indexed(&mut source, &mut index, request, version.clone());
        self.line_indexes.insert(&source.fd, &metadata, version, index);
        window
    }

    pub(crate) fn download(&self, path: VfsPath, cx: &OpContext) -> FileDownloadResponse {
        match self.read_whole(&path, cx) {
            Ok((content, version)) => FileDownloadResponse::ok(path, content, version),
            Err(error) => FileDownloadResponse::failed(path, error),
        }
    }

    fn read_whole(&self, path: &VfsPath, cx: &OpContext) -> Result<(Bytes, Version)> {
        let OpenFile { fd, metadata } = self.open_file(path)?;
        let content = read_to_end(&fd, &metadata, self.max_file_size, cx).map_err(|error| error.or_path(path))?;
        Ok((content.into(), metadata.version()))
    }
}

/// Maximum size of a file that is read by one call, 1 MiB.
const MAX_SINGLE_READ_SIZE: u64 = 1 << 20;

/// Returns the content of `fd` if the file is small and a single read returns exactly as many bytes as its size says;
/// the buffer has room for more.
fn read_in_one_call(fd: &OwnedFd, metadata: &Metadata) -> io::Result<Option<Vec<u8>>> {
    let size @ 1..=MAX_SINGLE_READ_SIZE = metadata.size() else { return Ok(None) };
    let mut content = Vec::with_capacity(size as usize + 1);
    let count = retry(|| io::pread(fd, spare_capacity(&mut content), 0))?;
    Ok((count as u64 == size).then_some(content))
}

/// Reads all of `fd`. Fails with `too_large` if the content exceeds `max_size` bytes, even if the file reports a
/// smaller size.
pub(crate) fn read_to_end(fd: &OwnedFd, metadata: &Metadata, max_size: u64, cx: &OpContext) -> Result<Vec<u8>> {
    const CHUNK: usize = 4 << 20;
    let too_large = || Error::new(ErrorKind::TooLarge, format!("the file is over the limit of {max_size} bytes"));
    if metadata.size() > max_size {
        return Err(too_large());
    }
    if let Some(content) = read_in_one_call(fd, metadata).map_err(from_errno)? {
        return Ok(content);
    }
    // One byte more than the size: the read that returns the last bytes then also finds the end of the file.
    let claimed = usize::try_from(metadata.size()).map_err(|_| too_large())?;
    let mut content = fallible_alloc::with_capacity(claimed.saturating_add(1))?;
    let mut filled = 0;
    loop {
        cx.check()?;
        if filled == content.len() {
            let more = match content.capacity() - filled {
                0 => filled.clamp(4096, CHUNK),
                room => room.min(CHUNK),
            };
            fallible_alloc::resize(&mut content, filled + more)?;
        }
        match retry(|| io::pread(fd, &mut content[filled..], filled as u64)).map_err(from_errno)? {
            0 => {
                content.truncate(filled);
                return Ok(content);
            }
            count => filled += count,
        }
        if filled as u64 > max_size {
            return Err(too_large());
        }
    }
}

/// A file as source of a window, which checks the context between blocks.
struct FileContentSource<'a> {
    fd: OwnedFd,
    size: u64,
    cx: &'a OpContext,
}

impl window::ContentSource for FileContentSource<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.cx.check()?;
        retry(|| io::pread(&self.fd, &mut *buffer, offset)).map_err(from_errno)
    }
}
