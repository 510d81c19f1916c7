//! Helper functions of the laws of shells.

use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use vfs_core::{ErrorKind, ExecuteRequest, ExecuteResponse, OpContext, Result, Shell};

use super::ShellTarget;
use crate::laws::LawResult;

/// Time that a law waits for one event, so long that only a broken law reaches it, even on a busy machine. It is less
/// than the time after which a trial is abandoned, so that the message names the event.
pub(super) const HANG_TIMEOUT: Duration = Duration::from_secs(50);

/// Timeouts of a command whose end by time is checked, tried in turn until the command got as far as it should before it
/// was ended. On an idle machine the first is enough.
pub(super) const TIMES: [Duration; 3] = [Duration::from_millis(700), Duration::from_secs(4), Duration::from_secs(30)];

/// Makes a command wait until a test has written the file `go`.
pub(super) const WAIT: &str = "until test -e go; do sleep 0.05; done";

/// Maximum size of the note that a shell adds to truncated output, in bytes.
pub(super) const NOTE: usize = 300;

/// Returns a context with default settings.
pub(super) fn cx() -> OpContext {
    OpContext::new()
}

/// Waits for `work`, as long as a law waits.
pub(super) async fn patiently<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(HANG_TIMEOUT, work).await {
        Ok(value) => value,
        Err(_) => panic!("{what}: nothing after {HANG_TIMEOUT:?}"),
    }
}

/// Waits until a condition holds.
pub(super) async fn until<F>(what: &str, mut holds: impl FnMut() -> F) -> LawResult
where
    F: Future<Output = Result<bool>>,
{
    let start = Instant::now();
    while !holds().await? {
        assert!(start.elapsed() < HANG_TIMEOUT, "{what}: not after {HANG_TIMEOUT:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// Returns `count` lines of 12 bytes, each with its number.
pub(super) fn lines(count: usize) -> String {
    (0..count).map(|number| format!("line {number:06}\n")).collect()
}

/// Asserts that a command succeeded, and shows its output if it did not.
#[track_caller]
pub(super) fn assert_success(ended: &ExecuteResponse) {
    let is_success = ended.exit_code == Some(0) && ended.signal.is_none() && !ended.timed_out;
    assert!(is_success, "{:?} {:?}", ended.exit(), ended.output.chars().take(2000).collect::<String>());
}

impl ShellTarget {
    /// Returns the shell.
    pub(super) fn shell(&self) -> &dyn Shell {
        self.files.backend.as_shell().expect("the laws of shells are for backends with one")
    }

    /// Returns a request to run `command` in the base.
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

    /// Returns the standard output of `command`, which must succeed.
    pub(super) async fn printed(&self, command: &str) -> Result<String> {
        let ended = self.run(command).await?;
        assert_success(&ended);
        Ok(ended.stdout)
    }

    /// Runs `request`, which does not end by itself, and returns how it was ended after `time`; `None` if the machine was
    /// too busy to start it in that time, which shells report as unavailable.
    pub(super) async fn timed_out(&self, request: &ExecuteRequest, time: Duration) -> Result<Option<ExecuteResponse>> {
        match self.execute(request.clone().timeout(time)).await {
            Err(error) if error.kind() == ErrorKind::Unavailable => Ok(None),
            answer => {
                let ended = answer?;
                assert!(ended.timed_out && ended.exit_code != Some(0), "{:?}", ended.exit());
                Ok(Some(ended))
            }
        }
    }

    /// Asserts that `request`, which does not end by itself, is ended by its timeout.
    pub(super) async fn assert_timed_out(&self, request: &ExecuteRequest) -> LawResult {
        for time in TIMES {
            if self.timed_out(request, time).await?.is_some() {
                return Ok(());
            }
        }
        panic!("the command was not started: {request:?}");
    }

    /// Waits until two consecutive calls of `look` return equal values, and returns that value. Between two calls the
    /// shell runs `delay`, a command that takes as long as several of the steps that would change the value, even on a
    /// slow machine.
    pub(super) async fn settled<T: PartialEq, F>(
        &self,
        what: &str,
        delay: &str,
        mut look: impl FnMut() -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let start = Instant::now();
        let mut before = look().await?;
        loop {
            assert_success(&self.run(delay).await?);
            let now = look().await?;
            if now == before {
                return Ok(now);
            }
            assert!(start.elapsed() < HANG_TIMEOUT, "{what}: not after {HANG_TIMEOUT:?}");
            before = now;
        }
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
