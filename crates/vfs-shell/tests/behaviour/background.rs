//! Commands in the background.

use std::time::Duration;

use vfs_core::shell::{JobId, JobInfo, JobOutputRequest, JobsRequest, StopJobRequest};
use vfs_core::{ErrorKind, ExecuteRequest, OpContext, Shell as _};
use vfs_shell::ShellConfig;

use super::{ATTEMPTS, HANG_TIMEOUT, Place, TIMES, until, was_too_busy};

impl Place {
    async fn begin(&self, command: &str) -> JobId {
        let response = self.run(ExecuteRequest::new(command).background()).await;
        response.job.expect("it goes on")
    }

    async fn jobs(&self) -> Vec<JobInfo> {
        self.backend.shell().jobs(&OpContext::new(), JobsRequest::new()).await.expect("listed")
    }

    async fn output(&self, id: &JobId, cursor: u64) -> vfs_core::shell::JobOutputResult {
        let request = JobOutputRequest::new(id.clone()).from(cursor).wait(HANG_TIMEOUT);
        self.backend.shell().job_output(&OpContext::new(), request).await.expect("the job exists")
    }

    async fn stop(&self, id: &JobId) -> JobInfo {
        self.backend.shell().stop_job(&OpContext::new(), StopJobRequest::new(id.clone())).await.expect("the job exists")
    }

    /// Reads the whole output of a job and its exit.
    async fn all(&self, id: &JobId) -> (String, vfs_core::shell::CommandExit) {
        let (mut text, mut cursor) = (String::new(), 0);
        loop {
            let output = self.output(id, cursor).await;
            assert_eq!(output.missed_bytes, 0);
            text.push_str(&output.output);
            cursor = output.cursor;
            if let Some(exit) = output.exit {
                return (text, exit);
            }
        }
    }
}

#[tokio::test]
async fn a_job_is_polled_from_a_cursor_until_it_ends() {
    let place = Place::new();
    let id = place.begin("echo one; while [ ! -e go ]; do sleep 0.02; done; echo two >&2; exit 4").await;
    let first = place.output(&id, 0).await;
    assert_eq!((first.output.as_str(), first.cursor, first.exit), ("one\n", 4, None));
    let nothing = JobOutputRequest::new(id.clone()).from(4);
    let nothing = place.backend.shell().job_output(&OpContext::new(), nothing).await.expect("the job exists");
    assert_eq!((nothing.output.as_str(), nothing.cursor, nothing.exit), ("", 4, None));
    let running = place.jobs().await;
    assert!(matches!(&running[..], [job] if job.id == id && job.exit.is_none() && job.command.starts_with("echo one")));
    place.sh("touch go").await;
    let (text, exit) = place.all(&id).await;
    assert_eq!((text.as_str(), exit.exit_code, exit.timed_out), ("one\ntwo\n", Some(4), false));
    assert_eq!(place.jobs().await[0].exit.expect("ended").exit_code, Some(4));
    assert_eq!(place.stop(&id).await.exit.expect("as it was").exit_code, Some(4));
}

#[tokio::test]
async fn a_job_can_be_stopped_and_timed() {
    let place = Place::new();
    let mut signal = None;
    for _ in 0..ATTEMPTS {
        let id = place.begin("trap '' TERM; echo begun; while :; do sleep 1; done").await;
        assert_eq!(place.output(&id, 0).await.output, "begun\n");
        signal = place.stop(&id).await.exit.expect("ended").signal;
        // If the kill took too long, the job counts as ended with an unknown signal.
        if signal.is_some() {
            break;
        }
    }
    assert_eq!(signal, Some(9));
    let patient = Place::with(ShellConfig::new().grace(HANG_TIMEOUT));
    for time in TIMES {
        let answer = patient.try_run(ExecuteRequest::new("sleep 1000").background().timeout(time)).await;
        if was_too_busy(&answer) {
            continue;
        }
        let (_, exit) = patient.all(&answer.expect("it runs").job.expect("a job")).await;
        assert!(exit.timed_out && exit.signal == Some(15), "{exit:?}");
        return;
    }
    panic!("it was not started");
}

#[tokio::test]
async fn a_job_log_keeps_the_tail_of_the_output() {
    let place = Place::with(ShellConfig::new().job_output_bytes(1000));
    let id = place.begin("i=0; while [ $i -lt 1000 ]; do echo line $i; i=$((i+1)); done").await;
    place.stop_when_ended(&id).await;
    let output = place.output(&id, 0).await;
    assert_eq!(output.output.len(), 1000);
    assert!(output.output.ends_with("line 999\n") && output.exit.is_some());
    assert_eq!((output.cursor, output.missed_bytes), (8890, 7890));
    let past = JobOutputRequest::new(id).from(8891);
    let error = place.backend.shell().job_output(&OpContext::new(), past).await.expect_err("past the end");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

impl Place {
    async fn stop_when_ended(&self, id: &JobId) {
        let mut cursor = 0;
        loop {
            let output = self.output(id, cursor).await;
            cursor = output.cursor;
            if output.exit.is_some() {
                return;
            }
        }
    }
}

#[tokio::test]
async fn running_jobs_are_limited_and_old_ended_jobs_removed() {
    let place = Place::with(ShellConfig::new().max_jobs(2).max_ended_jobs(1));
    let (first, second) = (place.begin("sleep 100").await, place.begin("sleep 100").await);
    let error = place.try_run(ExecuteRequest::new("sleep 100").background()).await.expect_err("too many");
    assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
    place.stop(&first).await;
    place.stop(&second).await;
    let third = place.begin("sleep 100").await;
    let ids: Vec<JobId> = place.jobs().await.into_iter().map(|job| job.id).collect();
    assert_eq!(ids, [second, third]);
    for unknown in [first, JobId::new("job-01"), JobId::new("job-99"), JobId::new(""), JobId::new("x".repeat(10_000))] {
        let error = place.backend.shell().stop_job(&OpContext::new(), StopJobRequest::new(unknown)).await;
        let error = error.expect_err("unknown");
        assert!(error.kind() == ErrorKind::NotFound && error.for_model().len() < 500, "{error}");
    }
    // Jobs of another owner are not removed for ours.
    let another = OpContext::new().with_actor("another");
    let theirs = place.backend.shell().execute(&another, ExecuteRequest::new("true").background()).await;
    let theirs = theirs.expect("started").job.expect("a job");
    let read = JobOutputRequest::new(theirs.clone()).wait(HANG_TIMEOUT);
    place.backend.shell().job_output(&another, read).await.expect("it ends");
    for _ in 0..3 {
        let ours = place.begin("sleep 100").await;
        place.stop(&ours).await;
    }
    place.backend.shell().job_output(&another, JobOutputRequest::new(theirs)).await.expect("the job exists");
    // A refused request takes no slot.
    for _ in 0..5 {
        place.try_run(ExecuteRequest::new("").background()).await.expect_err("refused");
    }
    place.begin("true").await;
}

#[tokio::test]
async fn waiting_for_a_job_ends_with_the_context_and_with_the_time() {
    let place = Place::new();
    let id = place.begin("sleep 100").await;
    let request = JobOutputRequest::new(id.clone()).wait(HANG_TIMEOUT);
    let cx = OpContext::new().with_timeout(Duration::from_millis(50));
    let error = place.backend.shell().job_output(&cx, request.clone()).await.expect_err("late");
    assert_eq!(error.kind(), ErrorKind::Timeout);
    let short = JobOutputRequest::new(id).wait(Duration::from_millis(50));
    let output = place.backend.shell().job_output(&OpContext::new(), short).await.expect("the job exists");
    assert_eq!((output.output.as_str(), output.exit), ("", None));
}

#[tokio::test]
async fn dropping_the_backend_ends_its_jobs() {
    let place = Place::with(ShellConfig::new().grace(HANG_TIMEOUT));
    place.begin("trap 'touch ended; exit' TERM; touch begun; while :; do sleep 0.05; done").await;
    place.appears("begun").await;
    let Place { directory, backend } = place;
    drop(backend);
    until("the job ends", || directory.path().join("ended").exists()).await;
}
