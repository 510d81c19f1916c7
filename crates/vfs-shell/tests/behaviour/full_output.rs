//! Files with the full output of commands.

use std::fs;
use std::sync::Arc;

use vfs_core::{BackendExt as _, ErrorKind, ExecuteRequest, OpContext, Shell as _};
use vfs_shell::{CommandRunner, HostSpawner, ShellConfig, WithShell};

use super::{HANG_TIMEOUT, Place, path, until};

#[tokio::test]
async fn the_full_output_file_has_every_byte() {
    let place = Place::new();
    let command = r"printf 'a\377\n'; echo err >&2; i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done";
    let response = place.run(ExecuteRequest::new(command).keep_full_output().max_output_bytes(100)).await;
    let file = response.full_output.expect("requested");
    assert!(response.truncated && file.parent() == Some(path("/.outputs")), "{file}");
    let written = fs::read(place.host(file.relative())).expect("it is there");
    assert_eq!(written.len() as u64, response.output_bytes);
    assert!(written.starts_with(b"a\xff\nerr\n0\n1\n") && written.ends_with(b"\n19999\n"));
    let again = place.run(ExecuteRequest::new("echo short").keep_full_output()).await.full_output.expect("requested");
    assert_eq!(place.backend.read_text(again.as_str()).await.expect("it is there"), "short\n");
    assert_ne!(file, again);
    assert_eq!(place.sh("echo none").await.full_output, None);
}

#[tokio::test]
async fn a_job_writes_a_full_output_file() {
    let place = Place::new();
    let response = place.run(ExecuteRequest::new("echo begun; sleep 100").keep_full_output().background()).await;
    let (id, file) = (response.job.expect("a job"), response.full_output.expect("requested"));
    let shell = place.backend.shell();
    let wait = vfs_core::shell::JobOutputRequest::new(id.clone()).wait(HANG_TIMEOUT);
    shell.job_output(&OpContext::new(), wait).await.expect("the job exists");
    shell.stop_job(&OpContext::new(), vfs_core::shell::StopJobRequest::new(id)).await.expect("the job exists");
    assert_eq!(place.backend.read_text(file.as_str()).await.expect("it is there"), "begun\n");
}

#[tokio::test]
async fn the_full_output_file_grows_while_the_command_runs() {
    let place = Place::new();
    let response = place.run(ExecuteRequest::new("echo begun; sleep 100").keep_full_output().background()).await;
    let file = response.full_output.expect("requested");
    until("it is written", || fs::read(place.host(file.relative())).expect("it is there") == b"begun\n").await;
    assert_eq!(place.backend.read_text(file.as_str()).await.expect("it is there"), "begun\n");
    let stop = vfs_core::shell::StopJobRequest::new(response.job.expect("a job"));
    place.backend.shell().stop_job(&OpContext::new(), stop).await.expect("the job exists");
}

#[tokio::test]
async fn a_refused_command_leaves_no_full_output_file() {
    let place = Place::new();
    let request = ExecuteRequest::new("true").cwd(path("/missing")).keep_full_output();
    place.try_run(request).await.expect_err("there is no such directory");
    assert!(!place.host(".outputs").exists());
}

#[tokio::test]
async fn a_full_output_file_over_its_limit_ends_the_command() {
    let place = Place::with(ShellConfig::new().max_full_output_bytes(1_000_000));
    let error = place.try_run(ExecuteRequest::new("yes").keep_full_output()).await.expect_err("too large");
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    let name = path(error.path().expect("it is named"));
    assert!(
        fs::metadata(place.host(name.relative())).expect("it is there").len() == 1_000_000,
        "all that fits is there"
    );
}

#[tokio::test]
async fn a_link_out_of_the_root_at_the_output_directory_is_refused() {
    let place = Place::new();
    let outside = tempfile::tempdir().expect("a temporary directory");
    std::os::unix::fs::symlink(outside.path(), place.host(".outputs")).expect("linked");
    let error = place.try_run(ExecuteRequest::new("touch ran").keep_full_output()).await.expect_err("outside");
    assert_eq!(error.kind(), ErrorKind::PathEscape);
    assert!(!place.host("ran").exists());
    assert_eq!(fs::read_dir(outside.path()).expect("it is there").count(), 0);
}

#[tokio::test]
async fn full_output_is_unsupported_without_files() {
    let place = Place::new();
    let files = vfs_local::LocalBackend::open(place.directory.path()).expect("it is there");
    let commands = CommandRunner::new(HostSpawner::new(files.clone()), ShellConfig::new());
    let backend = WithShell::new("bare", Arc::new(files), commands);
    let request = ExecuteRequest::new("touch ran").keep_full_output();
    let error = backend.shell().execute(&OpContext::new(), request).await.expect_err("nowhere");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(!place.host("ran").exists());
}

#[tokio::test]
async fn links_in_the_path_of_the_output_directory_are_refused() {
    for (link, to, directory) in [
        (".outputs", "kept", "/.outputs"),
        (".outputs", "missing", "/.outputs"),
        ("logs", "kept", "/logs/outputs"),
        ("logs", ".", "/logs/kept"),
    ] {
        let place = Place::with(ShellConfig::new().full_output_directory(path(directory)));
        fs::create_dir(place.host("kept")).expect("it is new");
        std::os::unix::fs::symlink(to, place.host(link)).expect("linked");
        let error = place.try_run(ExecuteRequest::new("touch ran").keep_full_output()).await.expect_err(directory);
        assert_eq!((error.kind(), error.path()), (ErrorKind::PathEscape, Some(directory)), "{error}");
        assert!(!place.host("ran").exists(), "{directory}");
        assert_eq!(fs::read_dir(place.host("kept")).expect("it is there").count(), 0, "{directory}");
        assert!(!place.host("missing").exists());
    }
}

#[tokio::test]
async fn a_file_at_the_output_directory_is_an_error() {
    let place = Place::new();
    fs::write(place.host(".outputs"), "a file").expect("it is new");
    let error = place.try_run(ExecuteRequest::new("touch ran").keep_full_output()).await.expect_err("a file");
    assert_eq!((error.kind(), error.path()), (ErrorKind::NotADirectory, Some("/.outputs")));
}

#[tokio::test]
async fn missing_directories_of_the_output_file_are_created() {
    let place = Place::with(ShellConfig::new().full_output_directory(path("/var/log/outputs")));
    for _ in 0..2 {
        let file = place.run(ExecuteRequest::new("echo out").keep_full_output()).await.full_output.expect("requested");
        assert_eq!(file.parent(), Some(path("/var/log/outputs")));
        assert_eq!(fs::read_to_string(place.host(file.relative())).expect("it is there"), "out\n");
    }
}
