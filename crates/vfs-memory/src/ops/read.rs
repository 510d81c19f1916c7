//! Reads of files and metadata.

use vfs_core::{
    FileDownloadResponse, FileInfo, OpContext, ReadRequest, ReadResult, Result, StatRequest, VfsPath, window,
};

use crate::file_map::{FileMap, FileOrDirectory};

pub(crate) fn stat(files: &FileMap, cx: &OpContext, req: StatRequest) -> Result<FileInfo> {
    cx.check()?;
    Ok(match files.find(&req.path)? {
        FileOrDirectory::File(file) => file.info(req.path),
        FileOrDirectory::Directory => FileInfo::directory(req.path),
    })
}

pub(crate) fn read(files: &FileMap, cx: &OpContext, req: &ReadRequest) -> Result<ReadResult> {
    cx.check()?;
    let file = files.find_file(&req.path)?;
    window::read_bytes(file.content(), req, file.version().clone()).map_err(|error| error.or_path(&req.path))
}

pub(crate) fn download(files: &FileMap, cx: &OpContext, path: VfsPath) -> FileDownloadResponse {
    match cx.check().and_then(|()| files.find_file(&path)) {
        Ok(file) => FileDownloadResponse::ok(path, file.content().clone(), file.version().clone()),
        Err(error) => FileDownloadResponse::failed(path, error),
    }
}
