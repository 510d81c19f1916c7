//! Shell of the strict double.

use async_trait::async_trait;
use futures::stream::{BoxStream, StreamExt};
use tokio::task::yield_now;
use vfs_core::shell::{
    FullOutputMode, JobInfo, JobOutputRequest, JobOutputResult, JobsRequest, RunMode, StopJobRequest,
};
use vfs_core::{
    Backend, Error, ExecuteEvent, ExecuteRequest, ExecuteResponse, OpContext, Result, Shell, StreamingShell,
};

use crate::strict_backend::StrictBackend;

/// Upper bound on the note that a shell adds to truncated output, in bytes.
const NOTE: u64 = 1024;

fn check_error(error: &Error) {
    assert!(!error.message().is_empty() && error.for_model().len() <= 2048, "an error has short words: {error:?}");
}

/// Checks the properties of the response to any command.
fn check_response(request: &ExecuteRequest, ended: &ExecuteResponse) {
    assert!(ended.exit_code.is_none() || ended.signal.is_none(), "it exited or was ended: {:?}", ended.exit());
    assert!(ended.signal.is_none_or(|signal| signal > 0), "there is no such signal: {:?}", ended.exit());
    if request.run == RunMode::Background {
        let mut bare = ExecuteResponse::default();
        bare.job.clone_from(&ended.job);
        assert!(ended.job.is_some() && *ended == bare, "the response to a job has only its id: {ended:?}");
        return;
    }
    assert!(ended.job.is_none(), "a command that was waited for is no job");
    let is_ended = ended.timed_out || ended.exit_code.is_some() || ended.signal.is_some();
    assert!(is_ended, "an answer has the exit of the command: {:?}", ended.exit());
    let limit = request.max_output_bytes.unwrap_or(ExecuteRequest::DEFAULT_MAX_OUTPUT_BYTES).saturating_add(NOTE);
    for text in [&ended.output, &ended.stdout, &ended.stderr] {
        // A byte that is not UTF-8 is shown by three.
        assert!(text.len() as u64 <= limit.saturating_mul(3), "{} bytes were returned, of {limit}", text.len());
    }
    assert!(!ended.truncated || ended.output_bytes > 0, "nothing cannot be cut");
    assert_eq!(
        ended.full_output.is_some(),
        request.full_output == FullOutputMode::File,
        "a file of the full output is written only if the request asks for it"
    );
}

fn check_job(job: &JobInfo) {
    assert!(!job.id.as_str().is_empty(), "a job has an id: {job:?}");
    let exit = job.exit.unwrap_or_default();
    assert!(exit.exit_code.is_none() || exit.signal.is_none(), "it exited or was ended: {job:?}");
}

async fn observed<T>(call: impl Future<Output = Result<T>>, check: impl FnOnce(&T)) -> Result<T> {
    yield_now().await;
    let result = call.await;
    match &result {
        Ok(value) => check(value),
        Err(error) => check_error(error),
    }
    yield_now().await;
    result
}

impl StrictBackend {
    fn shell(&self) -> &dyn Shell {
        self.inner.as_shell().expect("it is shown where there is one")
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Shell for StrictBackend {
    async fn execute(&self, cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse> {
        let request = req.clone();
        observed(self.shell().execute(cx, req), |ended| check_response(&request, ended)).await
    }

    async fn jobs(&self, cx: &OpContext, req: JobsRequest) -> Result<Vec<JobInfo>> {
        observed(self.shell().jobs(cx, req), |jobs| {
            assert!(jobs.is_sorted_by_key(|job| job.started), "the oldest comes first: {jobs:?}");
            jobs.iter().for_each(check_job);
        })
        .await
    }

    async fn job_output(&self, cx: &OpContext, req: JobOutputRequest) -> Result<JobOutputResult> {
        let most = req.max_bytes.unwrap_or(ExecuteRequest::DEFAULT_MAX_OUTPUT_BYTES).saturating_mul(3);
        observed(self.shell().job_output(cx, req), |chunk| {
            assert!(chunk.output.len() as u64 <= most, "{} bytes were returned, of {most}", chunk.output.len());
        })
        .await
    }

    async fn stop_job(&self, cx: &OpContext, req: StopJobRequest) -> Result<JobInfo> {
        let id = req.id.clone();
        observed(self.shell().stop_job(cx, req), |job| {
            assert_eq!(job.id, id, "an answer is about the requested job");
            assert!(job.exit.is_some(), "a job that was stopped has ended: {job:?}");
            check_job(job);
        })
        .await
    }
}

impl StreamingShell for StrictBackend {
    fn execute_stream(&self, cx: OpContext, req: ExecuteRequest) -> BoxStream<'static, Result<ExecuteEvent>> {
        let mut request = req.clone();
        // All output was streamed, so the exit has none.
        request.max_output_bytes = Some(0);
        let mut ended = false;
        let shell = self.inner.as_streaming_shell().expect("it is shown where there is one");
        shell
            .execute_stream(cx, req)
            .then(move |item| {
                assert!(!ended, "nothing comes after the exit or an error: {item:?}");
                ended = matches!(item, Ok(ExecuteEvent::Exit(_)) | Err(_));
                match &item {
                    Ok(ExecuteEvent::Stdout(text) | ExecuteEvent::Stderr(text)) => {
                        assert!(!text.is_empty(), "an item of output has some in it");
                    }
                    Ok(ExecuteEvent::Exit(exit)) => {
                        assert!([&exit.output, &exit.stdout, &exit.stderr].iter().all(|text| text.is_empty()));
                        check_response(&request, exit);
                    }
                    Ok(_) => {}
                    Err(error) => check_error(error),
                }
                async {
                    yield_now().await;
                    item
                }
            })
            .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn ended(change: impl FnOnce(&mut ExecuteResponse)) -> ExecuteResponse {
        let mut ended = ExecuteResponse::default();
        ended.exit_code = Some(0);
        change(&mut ended);
        ended
    }

    #[test]
    fn an_answer_is_consistent_and_no_longer_than_requested() {
        let request = ExecuteRequest::new("true").max_output_bytes(10);
        for (answer, expected) in [
            (ended(|_| ()), true),
            (ended(|ended| ended.exit_code = None), false),
            (ended(|ended| ended.signal = Some(9)), false),
            (ended(|ended| (ended.exit_code, ended.timed_out) = (None, true)), true),
            (ended(|ended| ended.job = Some(vfs_core::shell::JobId::new("1"))), false),
            (ended(|ended| ended.stdout = "x".repeat(5_000)), false),
            (ended(|ended| ended.truncated = true), false),
            (ended(|ended| ended.full_output = Some(vfs_core::VfsPath::root())), false),
        ] {
            let passes = catch_unwind(AssertUnwindSafe(|| check_response(&request, &answer))).is_ok();
            assert_eq!(passes, expected, "{answer:?}");
        }
    }
}
