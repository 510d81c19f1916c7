//! Commands behind mounts and layers, with real shells.

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use vfs_composite::CompositeBackend;
use vfs_core::shell::JobOutputRequest;
use vfs_core::{Backend, BackendExt as _, ErrorKind, ExecuteRequest, Layer as _, OpContext, VfsPath};
use vfs_layers::{Quota, QuotaLimits};
use vfs_memory::MemoryBackend;
use vfs_shell::{LocalShellBackend, ShellConfig};

fn host() -> (TempDir, Arc<dyn Backend>) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let shell = LocalShellBackend::open(directory.path(), ShellConfig::new()).expect("it is there");
    (directory, Arc::new(shell))
}

#[tokio::test]
async fn a_command_runs_in_no_directory_that_a_mount_hides() {
    let (_directory, shell) = host();
    shell.write_text("/memories/hidden", "x").await.expect("written");
    shell.write_text("/src/file", "x").await.expect("written");
    let files = CompositeBackend::new(shell)
        .with_mount("/memories", Arc::new(MemoryBackend::new()))
        .and_then(|files| files.with_executor("/"))
        .expect("the mounts are valid");
    let run = async |cwd: &str| {
        let request = ExecuteRequest::new("ls").cwd(VfsPath::parse(cwd).expect("a path"));
        files.as_shell().expect("it has one").execute(&OpContext::new(), request).await
    };
    for cwd in ["/memories", "/memories/deeper"] {
        let error = run(cwd).await.expect_err("it is another mount's");
        assert_eq!((error.kind(), error.path()), (ErrorKind::CrossBackend, Some(cwd)), "{error}");
    }
    assert_eq!(run("/src").await.expect("it runs").stdout, "file\n");
}

#[tokio::test]
async fn what_a_command_in_the_background_stores_counts_against_the_quota() {
    let (_directory, shell) = host();
    let files = Quota::new(QuotaLimits::new().max_bytes(1_000)).layer(shell);
    let shell = files.as_shell().expect("it has one");
    let cx = OpContext::new().with_actor("one");
    let command = "until [ -e go ]; do sleep 0.02; done; head -c 900 /dev/zero >large";
    let job = shell.execute(&cx, ExecuteRequest::new(command).background()).await.expect("it runs").job;
    files.write_text("/before", "x").await.expect("there is room");
    files.write_text("/go", "x").await.expect("there is room");
    let (id, mut cursor) = (job.expect("a job"), 0);
    loop {
        let request = JobOutputRequest::new(id.clone()).from(cursor).wait(Duration::from_secs(20));
        let output = shell.job_output(&cx, request).await.expect("it is known");
        if output.exit.is_some() {
            break;
        }
        cursor = output.cursor;
    }
    let error = files.write_text("/after", &"x".repeat(400)).await.expect_err("there is no room");
    assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
    files.write_text("/small", &"x".repeat(50)).await.expect("there is room");
}
