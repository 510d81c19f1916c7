//! Requests that are refused before a command runs.

use std::time::Duration;

use vfs_core::shell::{JobId, JobOutputRequest, JobsRequest, StopJobRequest, TerminalSize};
use vfs_core::{ErrorKind, ExecuteRequest};

use super::ShellFeature;
use super::ShellTarget;
use super::law_helpers::{assert_success, cx, patiently};
use crate::laws::LawResult;

shell_laws! { "refusal":
    "XR1" has() an_invalid_command_is_refused in Wrapper,
    "XR2" has() the_longest_times_and_the_greatest_limits_are_accepted in Wrapper,
    "XR3" has() a_command_over_the_system_limit_is_run_or_refused,
    "XR4" lacks(Terminal) an_unsupported_terminal_is_refused,
    "XR5" lacks(Background) an_unsupported_background_command_is_refused,
    "XR6" has() a_backend_shows_the_shells_that_it_has in Smoke,
}

/// Requests that no shell can run; each command would leave a file.
pub(super) fn impossible(t: &ShellTarget) -> Vec<ExecuteRequest> {
    let touch = || t.command("touch ran");
    vec![
        t.command(""),
        t.command(" \n\t "),
        t.command("touch ran\0; true"),
        touch().timeout(Duration::ZERO),
        touch().env("", "x"),
        touch().env("A=B", "x"),
        touch().env("=", "x"),
        touch().env("A\0", "x"),
        touch().env("A", "x\0y"),
        touch().terminal(TerminalSize { rows: 0, columns: 80 }),
        touch().terminal(TerminalSize { rows: 24, columns: 0 }),
    ]
}

async fn an_invalid_command_is_refused(t: &ShellTarget) -> LawResult {
    for request in impossible(t) {
        t.assert_refused(request.clone(), ErrorKind::InvalidArgument).await;
        if t.has(ShellFeature::Background) {
            t.assert_refused(request.background(), ErrorKind::InvalidArgument).await;
        }
    }
    assert_eq!(t.files.tree().await?, [""; 0], "what is refused does not run");
    Ok(())
}

async fn the_longest_times_and_the_greatest_limits_are_accepted(t: &ShellTarget) -> LawResult {
    let ended = t.execute(t.command("echo ran").timeout(Duration::MAX).max_output_bytes(u64::MAX)).await?;
    assert_success(&ended);
    assert_eq!(ended.stdout, "ran\n");
    let ended = t.execute(t.command("echo $LONG").env("LONG", "x".repeat(50_000))).await?;
    assert_success(&ended);
    assert_eq!(ended.stdout.len(), 50_001);
    Ok(())
}

async fn a_command_over_the_system_limit_is_run_or_refused(t: &ShellTarget) -> LawResult {
    let padding = "x".repeat(3 << 20);
    for (request, expected) in [
        (t.command(format!(": {padding}\necho ran")), "ran\n"),
        (t.command("echo ${#LONG}").env("LONG", padding.clone()), "3145728\n"),
        (t.command("echo ran").env("N".repeat(1 << 18), padding.clone()), "ran\n"),
    ] {
        match patiently("a long request", t.shell().execute(&cx(), request)).await {
            Ok(ended) => assert_eq!((ended.exit_code, ended.stdout.as_str()), (Some(0), expected), "{}", ended.stderr),
            refused => drop(t.files.refused_as(refused, &[ErrorKind::TooLarge, ErrorKind::InvalidArgument])),
        }
    }
    Ok(())
}

async fn an_unsupported_terminal_is_refused(t: &ShellTarget) -> LawResult {
    t.assert_refused(t.command("touch ran").terminal(TerminalSize::default()), ErrorKind::Unsupported).await;
    assert!(!t.files.has("/ran").await?, "what is refused does not run");
    Ok(())
}

async fn an_unsupported_background_command_is_refused(t: &ShellTarget) -> LawResult {
    t.assert_refused(t.command("touch ran").background(), ErrorKind::Unsupported).await;
    let (shell, id) = (t.shell(), JobId::new("1"));
    t.files.refused(shell.jobs(&cx(), JobsRequest::new()).await, ErrorKind::Unsupported);
    t.files.refused(shell.job_output(&cx(), JobOutputRequest::new(id.clone())).await, ErrorKind::Unsupported);
    t.files.refused(shell.stop_job(&cx(), StopJobRequest::new(id)).await, ErrorKind::Unsupported);
    assert!(!t.files.has("/ran").await?, "what is refused does not run");
    Ok(())
}

async fn a_backend_shows_the_shells_that_it_has(t: &ShellTarget) -> LawResult {
    assert!(t.files.backend.as_shell().is_some());
    assert_eq!(t.files.backend.as_streaming_shell().is_some(), t.has(ShellFeature::Streaming));
    Ok(())
}
