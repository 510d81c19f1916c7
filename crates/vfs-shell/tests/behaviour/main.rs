//! Behaviour of real shells through the public API.

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
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use tempfile::TempDir;
use vfs_core::{Backend as _, Error, ErrorKind, ExecuteRequest, ExecuteResponse, OpContext, Shell as _, VfsPath};
use vfs_shell::{LocalShellBackend, ShellConfig};

/// Time limit for one event. Only a failing test waits as long, however busy the machine is.
const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// Timeouts of a command, tried in turn until the command got far enough before it was terminated. On an idle machine the
/// first is enough.
const TIMES: [Duration; 4] =
    [Duration::from_millis(300), Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(40)];

/// Repetitions of a test that depends on a process being scheduled within a fixed time of the product, such as the time
/// between `SIGKILL` and the end of a call.
const ATTEMPTS: usize = 20;

/// Root directory with a shell.
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

    /// Runs `request`, which does not exit by itself, with each of the [`TIMES`] until `is_expected` accepts its result.
    async fn timed_out(
        &self,
        request: ExecuteRequest,
        is_expected: impl Fn(&ExecuteResponse) -> bool,
    ) -> ExecuteResponse {
        let mut last = None;
        for time in TIMES {
            let answer = self.try_run(request.clone().timeout(time)).await;
            if let Ok(response) = &answer {
                assert!(response.timed_out && response.duration >= time, "{request:?}: {response:?}");
                if is_expected(response) {
                    return response.clone();
                }
            } else if !was_too_busy(&answer) {
                panic!("{request:?}: {answer:?}");
            }
            last = Some(answer);
        }
        panic!("{request:?}: {last:?}");
    }

    async fn appears(&self, path: &str) {
        until(path, || self.host(path).exists()).await;
    }

    /// Creates a FIFO at `hold`, which commands open by `exec 9>hold`.
    fn hold(&self) -> Hold {
        rustix::fs::mknodat(CWD, self.host("hold"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("it is new");
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Hold(rustix::fs::open(self.host("hold"), flags, Mode::empty()).expect("it is there"))
    }
}

/// Returns whether a command was not started in time, which does not depend on the command.
fn was_too_busy<T>(answer: &Result<T, Error>) -> bool {
    answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unavailable)
}

/// Returns whether any process has a FIFO open for writing.
struct Hold(OwnedFd);

impl Hold {
    fn is_open(&self) -> bool {
        match rustix::io::read(&self.0, &mut [0; 1]) {
            Ok(read) => read > 0,
            Err(Errno::AGAIN) => true,
            Err(errno) => panic!("{errno}"),
        }
    }

    async fn released(&self) {
        until("all processes have exited", || !self.is_open()).await;
    }
}

/// Waits until a condition holds.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + HANG_TIMEOUT;
    while !holds() {
        assert!(Instant::now() < end, "{what}: not after {HANG_TIMEOUT:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a path")
}

#[tokio::test]
async fn files_and_other_facets_come_from_the_files_backend() {
    let place = Place::new();
    assert_eq!(place.backend.to_string(), "shell(local)");
    assert!(place.backend.as_streaming_shell().is_some() && place.backend.as_tree_provider().is_some());
    place.sh("printf text > made").await;
    let read = vfs_core::BackendExt::read_text(&place.backend, "/made").await.expect("it is there");
    assert_eq!(read, "text");
}

#[test]
fn calls_outside_of_a_runtime_fail_without_panic() {
    let place = Place::new();
    let error = futures::executor::block_on(place.try_run(ExecuteRequest::new("true"))).expect_err("no runtime");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let stream =
        vfs_core::StreamingShell::execute_stream(place.backend.shell(), OpContext::new(), ExecuteRequest::new("true"));
    let items: Vec<_> = futures::executor::block_on(futures::StreamExt::collect(stream));
    assert!(matches!(&items[..], [Err(error)] if error.kind() == ErrorKind::Unsupported), "{items:?}");
    let jobs =
        futures::executor::block_on(place.backend.shell().jobs(&OpContext::new(), vfs_core::shell::JobsRequest::new()));
    assert_eq!(jobs.expect("nothing runs"), []);
}
