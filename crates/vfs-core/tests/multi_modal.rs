//! Multimodal reads of any backend.

use async_trait::async_trait;
use bytes::Bytes;
use futures::executor::block_on;
use futures::stream::BoxStream;
use vfs_core::multi_modal::*;
use vfs_core::*;

/// A backend that has one file, and nothing but reading and downloading.
#[derive(Debug)]
struct OneFile(Bytes);

impl std::fmt::Display for OneFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("one file")
    }
}

fn unsupported<T>() -> Result<T> {
    Err(Error::new(ErrorKind::Unsupported, "only reading"))
}

#[async_trait]
impl Backend for OneFile {
    fn capabilities(&self, _: &VfsPath) -> Capabilities {
        Capabilities::new(1 << 20)
    }
    async fn stat(&self, _: &OpContext, _: StatRequest) -> Result<FileInfo> {
        unsupported()
    }
    async fn resolve(&self, _: &OpContext, _: ResolveRequest) -> Result<ResolveResult> {
        unsupported()
    }
    async fn ls(&self, _: &OpContext, _: LsRequest) -> Result<LsResult> {
        unsupported()
    }
    async fn read(&self, _: &OpContext, req: ReadRequest) -> Result<ReadResult> {
        window::read_bytes(&self.0, &req, Version::new("v"))
    }
    async fn write(&self, _: &OpContext, _: WriteRequest) -> Result<WriteResult> {
        unsupported()
    }
    async fn open_writer(&self, _: &OpContext, _: OpenWriterRequest) -> Result<Box<dyn FileWriter>> {
        unsupported()
    }
    async fn edit(&self, _: &OpContext, _: EditRequest) -> Result<EditResult> {
        unsupported()
    }
    async fn delete(&self, _: &OpContext, _: DeleteRequest) -> Result<DeleteResult> {
        unsupported()
    }
    async fn rename(&self, _: &OpContext, _: RenameRequest) -> Result<RenameResult> {
        unsupported()
    }
    async fn copy(&self, _: &OpContext, _: CopyRequest) -> Result<CopyResult> {
        unsupported()
    }
    async fn glob(&self, _: &OpContext, _: GlobRequest) -> Result<GlobResult> {
        unsupported()
    }
    async fn grep(&self, _: &OpContext, _: GrepRequest) -> Result<GrepResult> {
        unsupported()
    }
    fn grep_stream(&self, _: OpContext, _: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
        Box::pin(futures::stream::once(async { unsupported() }))
    }
    async fn upload_files(&self, _: &OpContext, _: Vec<FileUploadRequest>) -> Vec<FileUploadResponse> {
        Vec::new()
    }
    async fn download_files(&self, _: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse> {
        paths.into_iter().map(|path| FileDownloadResponse::ok(path, self.0.clone(), Version::new("v"))).collect()
    }
}

fn read(content: &'static [u8], read: ReadRequest, pages: Option<&str>) -> Result<MultiModalReadResult> {
    let mut request = MultiModalReadRequest::new(read);
    request.pages = pages.map(str::to_owned);
    block_on(read_multi_modal(&OneFile(Bytes::from_static(content)), &OpContext::new(), request))
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and more";
const PDF: &[u8] = b"%PDF-1.7\nwhatever";

fn whole() -> ReadRequest {
    ReadRequest::new(VfsPath::root())
}

#[test]
fn images_and_documents_are_one_part() {
    for (content, kind, mime_type) in [(PNG, PartKind::Image, "image/png"), (PDF, PartKind::Pdf, "application/pdf")] {
        for request in [whole(), whole().max_bytes(12)] {
            let expected = FilePart::new(kind, mime_type, Bytes::from_static(content));
            assert_eq!(read(content, request, None), Ok(MultiModalReadResult::Parts(vec![expected])));
        }
    }
}

#[test]
fn other_files_are_the_result_of_a_read() {
    for (content, request) in
        [(&b"text\n"[..], whole().limit(1)), (b"\0\x01", whole()), (PNG, whole().bytes(0, Some(9)))]
    {
        let expected = window::read_bytes(&Bytes::from_static(content), &request, Version::new("v")).expect("reads");
        assert_eq!(read(content, request, None), Ok(MultiModalReadResult::Content(expected)));
    }
}

#[test]
fn pages_are_checked_and_pdfs_are_not_taken_apart() {
    let kind = |content, pages| read(content, whole(), Some(pages)).map(drop).map_err(|error| error.kind());
    assert_eq!(kind(PDF, "0"), Err(ErrorKind::InvalidArgument));
    assert_eq!(kind(PDF, "1-5"), Err(ErrorKind::Unsupported));
    assert_eq!(kind(b"text", "5-1"), Err(ErrorKind::InvalidArgument));
    assert_eq!(kind(b"text", "1"), Ok(()));
}
