//! Timeouts, cancellation and orphans of commands.

use std::time::Duration;

use vfs_core::{ErrorKind, ExecuteResponse, OpContext};

use super::ShellTarget;
use super::law_helpers::{HANG_TIMEOUT, TIMES, assert_success, cx, patiently};
use super::orphan_detector::HOLD_PREFIX;
use crate::laws::LawResult;

shell_laws! { "ending":
    "XT1" has() a_timeout_is_reported_with_the_output_so_far in Wrapper,
    "XT2" has() a_command_within_its_time_is_left_alone,
    "XT3" has() a_cancelled_command_ends in Wrapper,
    "XT4" has() a_command_past_the_deadline_ends in Wrapper,
    "XT5" has() a_call_that_is_cancelled_or_late_or_not_polled_runs_nothing in Wrapper,
    "XT6" has(Processes) a_timeout_ends_every_process,
    "XT7" has(Processes) cancelling_ends_every_process,
    "XT8" has(Processes) a_deadline_ends_every_process,
    "XT9" has(Processes) dropping_the_call_ends_every_process in Wrapper,
    "XT10" has(Processes) processes_that_ignore_signals_are_ended,
    "XT11" has(Sessions) processes_that_left_the_session_are_ended,
    "XT12" has(Processes) a_stopped_process_is_ended,
    "XT13" has(Processes) a_process_that_is_left_running_does_not_hold_up_the_call,
    "XT14" has(Processes) closing_the_outputs_does_not_end_the_command,
    "XT15" has(Processes) a_flood_is_ended_in_time,
    "XT16" has(Processes) a_command_is_terminated_before_it_is_killed,
    "XT17" has(Processes) output_during_termination_is_returned,
}

/// Makes a file when everything before it runs, and runs for a minute.
const ON: &str = "echo x >started; sleep 60";

async fn a_timeout_is_reported_with_the_output_so_far(t: &ShellTarget) -> LawResult {
    let mut last = ExecuteResponse::default();
    let request = t.command("echo before; echo problem >&2; sleep 60; echo after");
    for time in TIMES {
        let Some(ended) = t.timed_out(&request, time).await? else { continue };
        last = ended;
        assert!(last.duration >= time.mul_f64(0.9), "{time:?}: {last:?}");
        if (last.stdout.as_str(), last.stderr.as_str()) == ("before\n", "problem\n") {
            assert_eq!((last.output.len(), last.output_bytes), (15, 15));
            return Ok(());
        }
    }
    panic!("what was printed is lost: {last:?}");
}

async fn a_command_within_its_time_is_left_alone(t: &ShellTarget) -> LawResult {
    let ended = t.execute(t.command("echo ran; sleep 0.2; exit 3").timeout(HANG_TIMEOUT)).await?;
    assert_eq!((ended.exit_code, ended.timed_out, ended.stdout.as_str()), (Some(3), false, "ran\n"));
    Ok(())
}

/// A command that shows that it runs by a file that grows, and that never ends.
const BEATING: &str = "while :; do echo x >>beat; sleep 0.05; done";

/// Ten beats of [`BEATING`], elsewhere.
const TEN_BEATS: &str = "n=0; while test $n -lt 10; do echo x >>beats; sleep 0.05; n=$((n + 1)); done";

/// Asserts that the file of [`BEATING`] grows no more, and was there.
async fn assert_still(t: &ShellTarget) -> LawResult {
    t.settled("it does not go on", TEN_BEATS, async || Ok(t.files.stat("/beat").await?.size)).await?;
    Ok(())
}

async fn a_cancelled_command_ends(t: &ShellTarget) -> LawResult {
    let cx = cx();
    let call = t.begin(cx.clone(), t.command(BEATING));
    t.appears("/beat").await?;
    cx.cancel_token().cancel();
    let answer = patiently("a cancelled call", call).await.expect("no panic");
    t.files.refused(answer, ErrorKind::Cancelled);
    assert_still(t).await
}

async fn a_command_past_the_deadline_ends(t: &ShellTarget) -> LawResult {
    for time in TIMES {
        let answer = patiently("a late call", t.begin(cx().with_timeout(time), t.command(BEATING))).await;
        t.files.refused(answer.expect("no panic"), ErrorKind::Timeout);
        if t.files.has("/beat").await? {
            return assert_still(t).await;
        }
    }
    panic!("it did not run");
}

async fn a_call_that_is_cancelled_or_late_or_not_polled_runs_nothing(t: &ShellTarget) -> LawResult {
    let cancelled = cx();
    cancelled.cancel_token().cancel();
    for (cx, kind) in [(cancelled, ErrorKind::Cancelled), (cx().with_timeout(Duration::ZERO), ErrorKind::Timeout)] {
        t.files.refused(t.shell().execute(&cx, t.command("touch ran")).await, kind);
    }
    drop(t.shell().execute(&cx(), t.command("touch ran")));
    // Another command ends after any process that the first one would have started.
    assert_success(&t.run("sleep 0.2").await?);
    assert_eq!(t.files.tree().await?, [""; 0]);
    Ok(())
}

/// The cause that ends a call.
#[derive(Debug, Clone, Copy)]
enum StopCause {
    Timeout,
    Cancelling,
    Deadline,
    Dropping,
}

/// Runs `command`, which makes the file `started` once all its processes run, brings it to its end, and asserts that
/// all of them end.
async fn all_end(t: &ShellTarget, command: &str, how: StopCause) -> LawResult {
    let (cx, request) = (cx(), t.command(format!("{HOLD_PREFIX} {command}")));
    match how {
        StopCause::Timeout | StopCause::Deadline => {
            for time in TIMES {
                let hold = t.hold().await?;
                if matches!(how, StopCause::Timeout) {
                    t.timed_out(&request, time).await?;
                } else {
                    let call = t.begin(OpContext::new().with_timeout(time), request.clone());
                    t.files.refused(patiently("a late call", call).await.expect("no panic"), ErrorKind::Timeout);
                }
                if t.files.has("/started").await? {
                    return hold.released().await;
                }
                hold.give_up();
            }
            panic!("it did not start");
        }
        StopCause::Cancelling => {
            let hold = t.hold().await?;
            let call = t.begin(cx.clone(), request);
            t.appears("/started").await?;
            cx.cancel_token().cancel();
            t.files.refused(patiently("a cancelled call", call).await.expect("no panic"), ErrorKind::Cancelled);
            hold.released().await
        }
        StopCause::Dropping => {
            let hold = t.hold().await?;
            let call = t.begin(cx, request);
            t.appears("/started").await?;
            call.abort();
            assert!(call.await.expect_err("it was dropped").is_cancelled());
            hold.released().await
        }
    }
}

/// Children, grandchildren, and an orphan.
const FAMILY: &str = "sleep 60 & (sleep 60; :) & sh -c 'sleep 60 & sleep 60; :' & (sleep 60 &) ;";

async fn a_timeout_ends_every_process(t: &ShellTarget) -> LawResult {
    all_end(t, &format!("{FAMILY} {ON}"), StopCause::Timeout).await
}

async fn cancelling_ends_every_process(t: &ShellTarget) -> LawResult {
    all_end(t, &format!("{FAMILY} {ON}"), StopCause::Cancelling).await
}

async fn a_deadline_ends_every_process(t: &ShellTarget) -> LawResult {
    all_end(t, &format!("{FAMILY} {ON}"), StopCause::Deadline).await
}

async fn dropping_the_call_ends_every_process(t: &ShellTarget) -> LawResult {
    all_end(t, &format!("{FAMILY} {ON}"), StopCause::Dropping).await
}

/// Processes that ignore signals. Each shell among them continues with its next command when its child is ended.
const STUBBORN: &str = "trap '' HUP INT TERM; (while :; do sleep 60; done) & (trap '' PIPE; sleep 60; sleep 60) &
    echo x >started; while :; do sleep 60; done";

async fn processes_that_ignore_signals_are_ended(t: &ShellTarget) -> LawResult {
    for how in [StopCause::Timeout, StopCause::Cancelling, StopCause::Dropping] {
        all_end(t, STUBBORN, how).await?;
    }
    Ok(())
}

async fn processes_that_left_the_session_are_ended(t: &ShellTarget) -> LawResult {
    let command = format!(
        "setsid sleep 60 & setsid sh -c '(setsid sleep 60 </dev/null >/dev/null 2>&1 &)'; (setsid sh -c 'trap \"\" HUP TERM;
        while :; do sleep 60; done' &); {ON}"
    );
    for how in [StopCause::Timeout, StopCause::Cancelling, StopCause::Dropping] {
        all_end(t, &command, how).await?;
    }
    Ok(())
}

async fn a_stopped_process_is_ended(t: &ShellTarget) -> LawResult {
    let command = "sleep 60 & kill -STOP $!; echo x >started; kill -STOP $$; sleep 60";
    for how in [StopCause::Timeout, StopCause::Cancelling] {
        all_end(t, command, how).await?;
    }
    Ok(())
}

/// The remaining process has the outputs open.
async fn a_process_that_is_left_running_does_not_hold_up_the_call(t: &ShellTarget) -> LawResult {
    for command in ["sleep 60 & echo begun", "(sleep 60; echo late) & echo begun", "echo begun; sleep 60 >&2 &"] {
        let ended = t.execute(t.command(command).timeout(HANG_TIMEOUT)).await?;
        assert_eq!((ended.exit_code, ended.timed_out), (Some(0), false), "{command}");
        assert_eq!(ended.stdout, "begun\n", "{command}");
    }
    Ok(())
}

/// A command that closes its outputs still has an exit code, and a time.
async fn closing_the_outputs_does_not_end_the_command(t: &ShellTarget) -> LawResult {
    let ended = t.run("echo before; exec >&- 2>&-; sleep 0.3; exit 7").await?;
    assert_eq!((ended.exit_code, ended.stdout.as_str()), (Some(7), "before\n"));
    t.assert_timed_out(&t.command("exec >/dev/null 2>&1; sleep 60")).await
}

async fn a_flood_is_ended_in_time(t: &ShellTarget) -> LawResult {
    for command in ["yes", "yes >&2", "yes & yes >&2 & yes", "cat /dev/zero"] {
        let request = t.command(format!("{HOLD_PREFIX} {command}")).max_output_bytes(10_000);
        let mut flooded = 0;
        for time in TIMES {
            let hold = t.hold().await?;
            if let Some(ended) = t.timed_out(&request, time).await? {
                assert!(ended.output.len() < 11_000, "{command}: {:?}", ended.exit());
                flooded = ended.output_bytes;
                assert_eq!(ended.truncated, flooded > 10_000, "{command}: {flooded} bytes");
            }
            if flooded > 10_000 {
                hold.released().await?;
                break;
            }
            hold.give_up();
        }
        assert!(flooded > 10_000, "{command}: {flooded} bytes");
    }
    Ok(())
}

/// Cleans up on SIGTERM, and prints a confirmation. The command waits in `wait`, which a signal interrupts at once.
const ORDERLY: &str = "trap 'echo in order; echo x >ordered; exit 5' TERM; echo x >started; sleep 60 & wait";

/// Number of [orderly](ORDERLY) commands that are ended before a law reports that no signal arrived. A command that is
/// not scheduled within the grace period is killed like any other, which is no fault of the shell.
const ATTEMPTS: usize = 3;

async fn a_command_is_terminated_before_it_is_killed(t: &ShellTarget) -> LawResult {
    for _ in 0..ATTEMPTS * TIMES.len() {
        all_end(t, ORDERLY, StopCause::Timeout).await?;
        if t.files.has("/ordered").await? {
            return Ok(());
        }
    }
    panic!("the command got no signal to end");
}

async fn output_during_termination_is_returned(t: &ShellTarget) -> LawResult {
    let (request, mut last) = (t.command(ORDERLY), None);
    for time in TIMES.into_iter().flat_map(|time| [time; ATTEMPTS]) {
        last = t.timed_out(&request, time).await?;
        if last.as_ref().is_some_and(|ended| ended.stdout == "in order\n") {
            return Ok(());
        }
    }
    panic!("its last output is lost: {last:?}");
}
