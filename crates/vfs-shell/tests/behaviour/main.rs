//! What commands find, print and answer, with real shells.

#![allow(
    clippy::disallowed_methods,
    reason = "what a command finds is set up, and what it did is looked at, from outside"
)]

mod background;
mod environment;
mod exits;
mod full_output;
mod limits;
mod output;
mod streaming;
mod terminal;
mod working_directory;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use tempfile::TempDir;
use vfs_core::{Backend as _, Error, ExecuteRequest, ExecuteResponse, OpContext, Shell as _, VfsPath};
use vfs_shell::{LocalShellBackend, ShellConfig};

/// A root with a shell in it.
struct Place {
    directory: TempDir,
    backend: LocalShellBackend,
}

impl Place {
    fn new() -> Self {
        Self::with(ShellConfig::new())
    }

    fn with(config: ShellConfig) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
        let backend = LocalShellBackend::open(directory.path(), config).expect("it is there");
        Self { directory, backend }
    }

    fn host(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    async fn try_run(&self, req: ExecuteRequest) -> Result<ExecuteResponse, Error> {
        self.backend.as_shell().expect("it has one").execute(&OpContext::new(), req).await
    }

    async fn run(&self, req: ExecuteRequest) -> ExecuteResponse {
        self.try_run(req).await.expect("it runs")
    }

    async fn sh(&self, command: &str) -> ExecuteResponse {
        self.run(ExecuteRequest::new(command)).await
    }
}

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a path")
}

#[tokio::test]
async fn files_and_facets_are_those_of_the_files() {
    let place = Place::new();
    assert_eq!(place.backend.to_string(), "shell(local)");
    assert!(place.backend.as_streaming_shell().is_some() && place.backend.as_searchable().is_some());
    place.sh("printf text > made").await;
    let read = vfs_core::BackendExt::read_text(&place.backend, "/made").await.expect("it is there");
    assert_eq!(read, "text");
}

#[test]
fn outside_of_a_runtime_nothing_panics() {
    let place = Place::new();
    let error = futures::executor::block_on(place.try_run(ExecuteRequest::new("true"))).expect_err("no runtime");
    assert_eq!(error.kind(), vfs_core::ErrorKind::Unsupported);
    let stream =
        vfs_core::StreamingShell::execute_stream(place.backend.shell(), OpContext::new(), ExecuteRequest::new("true"));
    let items: Vec<_> = futures::executor::block_on(futures::StreamExt::collect(stream));
    assert!(matches!(&items[..], [Err(error)] if error.kind() == vfs_core::ErrorKind::Unsupported), "{items:?}");
    let jobs = futures::executor::block_on(place.backend.shell().jobs(&OpContext::new(), vfs_core::JobsRequest::new()));
    assert_eq!(jobs.expect("nothing runs"), []);
}
