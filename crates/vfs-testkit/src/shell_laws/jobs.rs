//! Background jobs.

use std::time::{Duration, Instant};

use vfs_core::shell::{CommandExit, JobId, JobInfo, JobOutputRequest, JobOutputResult, JobsRequest, StopJobRequest};
use vfs_core::{ErrorKind, ExecuteRequest, Result};

use super::ShellTarget;
use super::law_helpers::{HANG_TIMEOUT, TIMES, WAIT, cx, lines, patiently, until};
use super::orphan_detector::HOLD_PREFIX;
use crate::laws::LawResult;

shell_laws! { "jobs":
    "XJ1" has(Background) a_background_command_returns_its_id_at_once in Smoke,
    "XJ2" has(Background) jobs_are_listed_from_the_oldest_on in Wrapper,
    "XJ3" has(Background) output_is_polled_without_loss_or_repetition in Wrapper,
    "XJ4" has(Background) a_result_is_no_longer_than_requested,
    "XJ5" has(Background) waiting_ends_when_something_is_printed in Wrapper,
    "XJ6" has(Background) waiting_ends_at_its_timeout,
    "XJ7" has(Background) the_exit_is_reported_after_all_output in Wrapper,
    "XJ8" has(Background) a_job_continues_after_its_call in Wrapper,
    "XJ9" has(Background, Processes) a_stopped_job_has_no_process_left in Wrapper,
    "XJ10" has(Background) a_job_that_has_ended_stays_as_it_is,
    "XJ11" has(Background) an_unknown_job_is_not_found in Wrapper,
    "XJ12" has(Background) a_job_ends_at_its_timeout,
    "XJ13" has(Background) a_job_runs_with_its_directory_environment_and_input,
    "XJ14" has(Background) discarded_output_is_counted,
    "XJ15" has(Background) many_jobs_do_not_mix_their_outputs,
    "XJ16" has(Background) a_command_that_cannot_start_is_no_job in Wrapper,
    "XJ17" has(Background) a_job_is_visible_only_to_its_actor_and_session in Wrapper,
    "XJ18" has(Background) a_cursor_past_the_end_is_refused,
}

impl ShellTarget {
    async fn launch(&self, request: ExecuteRequest) -> Result<JobId> {
        let answer = self.execute(request.background()).await?;
        Ok(answer.job.expect("a job has an id"))
    }

    async fn job(&self, command: &str) -> Result<JobId> {
        self.launch(self.command(command)).await
    }

    async fn poll(&self, request: JobOutputRequest) -> Result<JobOutputResult> {
        // Answers that are there at once would leave no time for the job, where all share one thread.
        tokio::task::yield_now().await;
        patiently("what a job printed", self.shell().job_output(&cx(), request)).await
    }

    async fn stop(&self, id: &JobId) -> Result<JobInfo> {
        patiently("the end of a job", self.shell().stop_job(&cx(), StopJobRequest::new(id.clone()))).await
    }

    async fn listed(&self, id: &JobId) -> Result<JobInfo> {
        let jobs = self.shell().jobs(&cx(), JobsRequest::new()).await?;
        Ok(jobs.into_iter().find(|job| job.id == *id).expect("a job is listed"))
    }

    /// Returns all that a job prints from `cursor` on, until its exit.
    async fn drain(&self, id: &JobId, mut cursor: u64) -> Result<(String, u64, CommandExit)> {
        let (mut text, mut missed, start) = (String::new(), 0, Instant::now());
        loop {
            assert!(start.elapsed() < HANG_TIMEOUT, "a job does not come to its end: {} bytes", text.len());
            let next = self.poll(JobOutputRequest::new(id.clone()).from(cursor).wait(Duration::from_secs(10))).await?;
            assert!(next.cursor >= cursor, "a cursor does not go back");
            let is_news = next.cursor > cursor || next.exit.is_some();
            assert!(is_news || next.output.is_empty(), "the cursor advances with the output: {next:?}");
            cursor = next.cursor;
            text.push_str(&next.output);
            missed += next.missed_bytes;
            if let Some(exit) = next.exit {
                return Ok((text, missed, exit));
            }
        }
    }
}

async fn a_background_command_returns_its_id_at_once(t: &ShellTarget) -> LawResult {
    let answer = t.execute(t.command("echo one; sleep 60").background()).await?;
    let id = answer.job.clone().expect("a job has an id");
    assert!(!id.as_str().is_empty());
    let fields = (answer.output.as_str(), answer.exit_code, answer.signal, answer.timed_out, answer.truncated);
    assert_eq!(fields, ("", None, None, false, false), "a running job has no result yet");
    let other = t.job("true").await?;
    assert_ne!(id, other);
    t.stop(&id).await?;
    Ok(())
}

async fn jobs_are_listed_from_the_oldest_on(t: &ShellTarget) -> LawResult {
    assert_eq!(t.shell().jobs(&cx(), JobsRequest::new()).await?, []);
    let mut ids = Vec::new();
    for n in 0..4 {
        ids.push(t.job(&format!(": {n}; {WAIT}")).await?);
    }
    let jobs = t.shell().jobs(&cx(), JobsRequest::new()).await?;
    assert_eq!(jobs.iter().map(|job| &job.id).collect::<Vec<_>>(), ids.iter().collect::<Vec<_>>());
    assert!(jobs.is_sorted_by_key(|job| job.started));
    for (n, job) in jobs.iter().enumerate() {
        assert_eq!((job.command.as_str(), job.exit), (format!(": {n}; {WAIT}").as_str(), None));
    }
    t.go().await?;
    for id in &ids {
        t.drain(id, 0).await?;
        assert_eq!(t.listed(id).await?.exit.expect("it has ended").exit_code, Some(0));
    }
    Ok(())
}

async fn output_is_polled_without_loss_or_repetition(t: &ShellTarget) -> LawResult {
    let steps: String = (1..=3).map(|n| format!("until test -e go{n}; do sleep 0.05; done; echo line {n}; ")).collect();
    let id = t.job(&format!("echo line 0; {steps}")).await?;
    let (mut seen, mut cursor, start) = (String::new(), 0, Instant::now());
    for n in 0..=3 {
        if n > 0 {
            t.files.put(&format!("/go{n}"), "").await?;
        }
        while !seen.ends_with(&format!("line {n}\n")) {
            assert!(start.elapsed() < HANG_TIMEOUT, "line {n} does not come: {} bytes", seen.len());
            let wait = Duration::from_secs(10);
            let next = t.poll(JobOutputRequest::new(id.clone()).from(cursor).wait(wait)).await?;
            seen.push_str(&next.output);
            cursor = next.cursor;
        }
    }
    assert_eq!(seen, "line 0\nline 1\nline 2\nline 3\n");
    let (rest, missed, exit) = t.drain(&id, cursor).await?;
    assert_eq!((rest.as_str(), missed, exit.exit_code), ("", 0, Some(0)));
    let (again, _, _) = t.drain(&id, 0).await?;
    assert_eq!(again, seen, "the same from the beginning");
    Ok(())
}

/// Characters are not cut where an answer ends, and the last answer has the exit.
async fn a_result_is_no_longer_than_requested(t: &ShellTarget) -> LawResult {
    let text = "x\u{e9}\u{20ac}\u{1f600}".repeat(50);
    t.files.put("/text", text.clone()).await?;
    let id = t.job("cat text; exit 6").await?;
    t.drain(&id, 0).await?;
    for most in [4, 5, 7, 64, 499, 500, 1000] {
        let (mut seen, mut cursor) = (String::new(), 0);
        let exit = loop {
            let mut request = JobOutputRequest::new(id.clone()).from(cursor);
            request.max_bytes = Some(most);
            let next = t.poll(request).await?;
            assert!(next.output.len() as u64 <= most, "{} of at most {most}", next.output.len());
            seen.push_str(&next.output);
            cursor = next.cursor;
            match next.exit {
                Some(exit) => break exit,
                None => assert!(!next.output.is_empty(), "with {most} bytes there is more"),
            }
        };
        assert!(seen == text, "in answers of {most} bytes: {seen:?}");
        assert_eq!(exit.exit_code, Some(6));
    }
    Ok(())
}

async fn waiting_ends_when_something_is_printed(t: &ShellTarget) -> LawResult {
    let id = t.job(&format!("{WAIT}; echo printed; sleep 60")).await?;
    let request = JobOutputRequest::new(id.clone()).wait(HANG_TIMEOUT);
    let backend = t.files.shared();
    let waiting =
        tokio::spawn(async move { backend.as_shell().expect("it has a shell").job_output(&cx(), request).await });
    t.go().await?;
    let chunk = patiently("what was printed", waiting).await.expect("no panic")?;
    assert_eq!((chunk.output.as_str(), chunk.exit), ("printed\n", None));
    t.stop(&id).await?;
    Ok(())
}

async fn waiting_ends_at_its_timeout(t: &ShellTarget) -> LawResult {
    let id = t.job("sleep 60").await?;
    for wait in [None, Some(Duration::ZERO), Some(Duration::from_millis(200))] {
        let mut request = JobOutputRequest::new(id.clone());
        request.wait = wait;
        let chunk = t.poll(request).await?;
        assert_eq!((chunk.output.as_str(), chunk.cursor, chunk.missed_bytes, chunk.exit), ("", 0, 0, None), "{wait:?}");
    }
    t.stop(&id).await?;
    Ok(())
}

async fn the_exit_is_reported_after_all_output(t: &ShellTarget) -> LawResult {
    let id = t.job("echo out; echo err >&2; exit 42").await?;
    let (output, missed, exit) = t.drain(&id, 0).await?;
    let mut seen: Vec<_> = output.lines().collect();
    seen.sort_unstable();
    assert_eq!((seen, missed), (vec!["err", "out"], 0));
    assert_eq!((exit.exit_code, exit.signal, exit.timed_out), (Some(42), None, false));
    assert_eq!(t.listed(&id).await?.exit, Some(exit));
    let mut request = JobOutputRequest::new(id);
    request.max_bytes = Some(4);
    let part = t.poll(request).await?;
    assert_eq!((part.output.len(), part.exit), (4, None), "there is more");
    Ok(())
}

async fn a_job_continues_after_its_call(t: &ShellTarget) -> LawResult {
    let cx = cx().with_timeout(HANG_TIMEOUT);
    let request = t.command(format!("{WAIT}; echo went on")).background();
    let answer = patiently("a job", t.shell().execute(&cx, request)).await?;
    cx.cancel_token().cancel();
    // If the cancellation had ended the job as well, the job would have ended before the other jobs, which are stopped
    // later.
    for _ in 0..3 {
        let other = t.job("sleep 60").await?;
        t.stop(&other).await?;
    }
    t.go().await?;
    let (output, _, exit) = t.drain(&answer.job.expect("a job has an id"), 0).await?;
    assert_eq!((output.as_str(), exit.exit_code), ("went on\n", Some(0)));
    Ok(())
}

async fn a_stopped_job_has_no_process_left(t: &ShellTarget) -> LawResult {
    let hold = t.hold().await?;
    let family = "sleep 60 & (sleep 60; :) & (trap '' TERM; sleep 60; sleep 60) & echo started; sleep 60";
    let id = t.job(&format!("{HOLD_PREFIX} {family}")).await?;
    let began = t.poll(JobOutputRequest::new(id.clone()).wait(HANG_TIMEOUT)).await?;
    assert_eq!(began.output, "started\n");
    let stopped = t.stop(&id).await?;
    let exit = stopped.exit.expect("it has ended when it is stopped");
    assert!(exit.exit_code != Some(0) && !exit.timed_out, "{exit:?}");
    hold.released().await?;
    let (output, _, reported) = t.drain(&id, 0).await?;
    assert_eq!((output.as_str(), reported), ("started\n", exit), "the output is retained");
    assert_eq!(t.listed(&id).await?, stopped);
    Ok(())
}

async fn a_job_that_has_ended_stays_as_it_is(t: &ShellTarget) -> LawResult {
    let id = t.job("echo done; exit 3").await?;
    t.drain(&id, 0).await?;
    let before = t.listed(&id).await?;
    assert_eq!(before.exit.expect("it has ended").exit_code, Some(3));
    assert_eq!(t.stop(&id).await?, before);
    assert_eq!(t.stop(&id).await?, before, "once more");
    assert_eq!(t.listed(&id).await?, before);
    Ok(())
}

async fn an_unknown_job_is_not_found(t: &ShellTarget) -> LawResult {
    let id = t.job("true").await?;
    t.drain(&id, 0).await?;
    for text in ["", "no such job", "../1", "\0", &format!("{id}0"), &"9".repeat(10_000)] {
        let id = JobId::new(text);
        let output = t.shell().job_output(&cx(), JobOutputRequest::new(id.clone())).await;
        t.files.refused(output, ErrorKind::NotFound);
        t.files.refused(t.shell().stop_job(&cx(), StopJobRequest::new(id)).await, ErrorKind::NotFound);
    }
    Ok(())
}

async fn a_job_is_visible_only_to_its_actor_and_session(t: &ShellTarget) -> LawResult {
    let id = t.job(WAIT).await?;
    let actor = cx().with_actor("another");
    for other in [actor.clone(), cx().with_session("another"), actor.with_session("another")] {
        assert_eq!(t.shell().jobs(&other, JobsRequest::new()).await?, []);
        let output = t.shell().job_output(&other, JobOutputRequest::new(id.clone())).await;
        t.files.refused(output, ErrorKind::NotFound);
        t.files.refused(t.shell().stop_job(&other, StopJobRequest::new(id.clone())).await, ErrorKind::NotFound);
    }
    assert_eq!(t.listed(&id).await?.exit, None, "no other caller has stopped it");
    t.stop(&id).await?;
    Ok(())
}

async fn a_cursor_past_the_end_is_refused(t: &ShellTarget) -> LawResult {
    let id = t.job("echo some").await?;
    t.drain(&id, 0).await?;
    let at_the_end = t.poll(JobOutputRequest::new(id.clone()).from(5)).await?;
    assert_eq!((at_the_end.output.as_str(), at_the_end.cursor), ("", 5));
    let past = JobOutputRequest::new(id).from(6).wait(Duration::from_secs(600));
    t.files.refused(t.poll(past).await, ErrorKind::InvalidArgument);
    Ok(())
}

async fn a_job_ends_at_its_timeout(t: &ShellTarget) -> LawResult {
    for time in TIMES {
        let id = match t.launch(t.command("echo before; sleep 60").timeout(time)).await {
            // The machine was too busy to start it in that time.
            Err(error) if error.kind() == ErrorKind::Unavailable => continue,
            launched => launched?,
        };
        let (output, _, exit) = t.drain(&id, 0).await?;
        assert!(exit.timed_out && exit.exit_code != Some(0), "{exit:?}");
        if output == "before\n" {
            return Ok(());
        }
    }
    panic!("what was printed is lost");
}

async fn a_job_runs_with_its_directory_environment_and_input(t: &ShellTarget) -> LawResult {
    t.files.put("/deep/here", "here\n").await?;
    let request = t.command("cat here; echo $GIVEN; cat; echo made >made").cwd(t.files.path("/deep"));
    let id = t.launch(request.env("GIVEN", "given").stdin("read\n")).await?;
    let (output, _, exit) = t.drain(&id, 0).await?;
    assert_eq!((output.as_str(), exit.exit_code), ("here\ngiven\nread\n", Some(0)));
    assert_eq!(t.files.text("/deep/made").await?, "made\n");
    Ok(())
}

async fn discarded_output_is_counted(t: &ShellTarget) -> LawResult {
    let text = lines(1 << 20);
    t.files.put("/huge", text.clone()).await?;
    let id = t.job("cat huge; echo end").await?;
    until("it has ended", async || Ok(t.listed(&id).await?.exit.is_some())).await?;
    let (output, missed, _) = t.drain(&id, 0).await?;
    assert_eq!(missed as usize + output.len(), text.len() + 4, "{missed} bytes are missed");
    assert!(output.ends_with("line 1048575\nend\n"), "the last part is retained");
    Ok(())
}

async fn many_jobs_do_not_mix_their_outputs(t: &ShellTarget) -> LawResult {
    let mut ids = Vec::new();
    for n in 0..12 {
        let each = format!("for i in 1 2 3 4 5; do echo job {n}; echo job {n} >&2; done; exit {n}");
        ids.push(t.job(&each).await?);
    }
    for (n, id) in ids.iter().enumerate() {
        let (output, _, exit) = t.drain(id, 0).await?;
        assert_eq!((output, exit.exit_code), (format!("job {n}\n").repeat(10), Some(n as i32)));
    }
    Ok(())
}

async fn a_command_that_cannot_start_is_no_job(t: &ShellTarget) -> LawResult {
    t.files.put("/file", "x").await?;
    for (at, kind) in [("/missing", ErrorKind::NotFound), ("/file", ErrorKind::NotADirectory)] {
        t.assert_refused(t.command("touch ran").cwd(t.files.path(at)).background(), kind).await;
    }
    let cancelled = cx();
    cancelled.cancel_token().cancel();
    let answer = t.shell().execute(&cancelled, t.command("touch ran").background()).await;
    t.files.refused(answer, ErrorKind::Cancelled);
    assert_eq!(t.shell().jobs(&cx(), JobsRequest::new()).await?, []);
    assert_eq!(t.files.tree().await?, ["/file"]);
    Ok(())
}
