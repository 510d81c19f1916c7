//! What all tests here begin with.

use std::sync::Arc;

use vfs_core::{Backend, ExecuteRequest, ExecuteResponse, OpContext, Result, VfsPath};
use vfs_memory::MemoryBackend;
use vfs_virtual_shell::{VirtualShell, VirtualShellConfig};

pub(crate) fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

pub(crate) fn over(backend: impl Backend) -> VirtualShell {
    VirtualShell::new(Arc::new(backend), VirtualShellConfig::new())
}

pub(crate) fn in_memory() -> VirtualShell {
    over(MemoryBackend::new())
}

pub(crate) async fn execute(files: &dyn Backend, request: ExecuteRequest) -> Result<ExecuteResponse> {
    files.as_shell().expect("it has a shell").execute(&OpContext::new(), request).await
}

pub(crate) async fn run(files: &dyn Backend, command: &str) -> ExecuteResponse {
    execute(files, ExecuteRequest::new(command)).await.unwrap_or_else(|error| panic!("{command}: {error}"))
}
