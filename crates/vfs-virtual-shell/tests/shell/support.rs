//! Helpers of these tests.

use std::sync::Arc;
use std::time::Duration;

use vfs_core::{Backend, ExecuteRequest, ExecuteResponse, OpContext, Result, VfsPath};
use vfs_memory::MemoryBackend;
use vfs_virtual_shell::{VirtualShell, VirtualShellConfig};

/// Time limit for one event. Only a failing test waits as long, however busy the machine is.
pub(crate) const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// Timeouts of a command, tried in turn until the command got far enough before it was stopped. On an idle machine the first
/// is enough.
pub(crate) const TIMES: [Duration; 4] =
    [Duration::from_millis(200), Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(40)];

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
