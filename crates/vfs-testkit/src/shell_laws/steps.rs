//! The short calls that the laws of shells are written in.

use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use vfs_core::{ErrorKind, ExecuteRequest, ExecuteResponse, OpContext, Result, Shell};

use super::ShellTarget;
use crate::laws::LawResult;

/// How long a law waits for what must come before it says that it did not. No law takes this long but a broken one.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Times that a law gives a command whose end by time is what it looks at, one after the other until one was long enough
/// for the command to get where it should: on an idle machine the first is.
pub(super) const TIMES: [Duration; 3] = [Duration::from_millis(700), Duration::from_secs(4), Duration::from_secs(16)];

/// Makes a command wait until a test has written the file `go`.
pub(super) const WAIT: &str = "until test -e go; do sleep 0.05; done";

/// What a shell may add to output that it has cut, in bytes, to say so.
pub(super) const NOTE: usize = 300;

/// A context with nothing set.
pub(super) fn cx() -> OpContext {
    OpContext::new()
}

/// Waits for `work`, as long as a law waits.
pub(super) async fn patiently<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(value) => value,
        Err(_) => panic!("{what}: nothing after {PATIENCE:?}"),
    }
}

/// Waits until a condition holds.
pub(super) async fn until<F>(what: &str, mut holds: impl FnMut() -> F) -> LawResult
where
    F: Future<Output = Result<bool>>,
{
    let start = Instant::now();
    while !holds().await? {
        assert!(start.elapsed() < PATIENCE, "{what}: not after {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// Waits until something stays as it is for a while, and says how that is.
pub(super) async fn settled<T: PartialEq, F>(what: &str, mut look: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let start = Instant::now();
    let mut before = look().await?;
    loop {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let now = look().await?;
        if now == before {
            return Ok(now);
        }
        assert!(start.elapsed() < PATIENCE, "{what}: not after {PATIENCE:?}");
        before = now;
    }
}

/// `count` lines of 12 bytes, each with its number.
pub(super) fn lines(count: usize) -> String {
    (0..count).map(|number| format!("line {number:06}\n")).collect()
}

/// Asserts that a command ended well, and shows what it said if it did not.
#[track_caller]
pub(super) fn assert_success(ended: &ExecuteResponse) {
    let is_success = ended.exit_code == Some(0) && ended.signal.is_none() && !ended.timed_out;
    assert!(is_success, "{:?} {:?}", ended.exit(), ended.output.chars().take(2000).collect::<String>());
}

impl ShellTarget {
    /// The shell.
    pub(super) fn shell(&self) -> &dyn Shell {
        self.files.backend.as_shell().expect("the laws of shells are for backends with one")
    }

    /// A request to run `command` in the base.
    pub(super) fn command(&self, command: impl Into<String>) -> ExecuteRequest {
        ExecuteRequest::new(command).cwd(self.files.base.clone())
    }

    /// Runs a request to its end.
    pub(super) async fn execute(&self, request: ExecuteRequest) -> Result<ExecuteResponse> {
        let what = request.command.chars().take(200).collect::<String>();
        patiently(&what, self.shell().execute(&cx(), request)).await
    }

    /// Runs `command` in the base.
    pub(super) async fn run(&self, command: &str) -> Result<ExecuteResponse> {
        self.execute(self.command(command)).await
    }

    /// What `command` prints to its standard output, where it ends well.
    pub(super) async fn printed(&self, command: &str) -> Result<String> {
        let ended = self.run(command).await?;
        assert_success(&ended);
        Ok(ended.stdout)
    }

    /// Runs a request beside the law.
    pub(super) fn begin(&self, cx: OpContext, request: ExecuteRequest) -> JoinHandle<Result<ExecuteResponse>> {
        let backend = self.files.shared();
        tokio::spawn(async move { backend.as_shell().expect("it has a shell").execute(&cx, request).await })
    }

    /// Waits until a command has made the file `path`.
    pub(super) async fn appears(&self, path: &str) -> LawResult {
        until(path, || self.files.has(path)).await
    }

    /// Lets commands go on that [`WAIT`].
    pub(super) async fn go(&self) -> LawResult {
        self.files.put("/go", "").await.map(drop)
    }

    /// Asserts that a request is refused with `kind`, in a way that is fit to be shown.
    pub(super) async fn assert_refused(&self, request: ExecuteRequest, kind: ErrorKind) -> vfs_core::Error {
        let shown = format!("{request:?}").chars().take(300).collect::<String>();
        let answer = patiently(&shown, self.shell().execute(&cx(), request)).await;
        if let Ok(ended) = &answer {
            panic!("{shown} was not refused: {ended:?}");
        }
        self.files.refused(answer, kind)
    }
}
