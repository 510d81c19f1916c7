//! How commands end.

use std::sync::Arc;
use std::time::Duration;

use vfs_core::{
    Backend as _, CancelToken, ErrorKind, ExecuteRequest, OpContext, Shell as _, VfsPath, WriteMode, WriteRequest,
};
use vfs_shell::{HostLauncher, Leftovers, LocalShellBackend, ShellConfig};

use super::Place;

#[tokio::test]
async fn exit_codes_and_signals_are_exact() {
    let place = Place::new();
    for (command, code, signal) in [
        ("true", Some(0), None),
        ("false", Some(1), None),
        ("exit 77", Some(77), None),
        ("exit 255", Some(255), None),
        ("no-such-program-anywhere", Some(127), None),
        ("/dev/null", Some(126), None),
        ("kill -TERM $$", None, Some(15)),
        ("kill -KILL $$", None, Some(9)),
        ("kill -SEGV $$", None, Some(11)),
        ("sh -c 'kill -KILL $$'", Some(137), None),
        ("if; then", Some(2), None),
        ("(exit 3) | (exit 4)", Some(4), None),
    ] {
        // A shell may become the last command of its line, which is then what a signal ends.
        let response = place.sh(&format!("{command}\nexit $?")).await;
        let found = (response.exit_code, response.signal, response.timed_out);
        assert_eq!(found, (code, signal, false), "{command}: {response:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_run_is_refused_and_nothing_is_started() {
    let place = Place::new();
    for (request, kind) in [
        (ExecuteRequest::new(" "), ErrorKind::InvalidArgument),
        (ExecuteRequest::new("touch x").timeout(Duration::ZERO), ErrorKind::InvalidArgument),
        (ExecuteRequest::new("touch x; echo \0"), ErrorKind::InvalidArgument),
        (ExecuteRequest::new("touch x").env("A=B", ""), ErrorKind::InvalidArgument),
        (ExecuteRequest::new(format!("touch x; : {}", "a".repeat(200_000))), ErrorKind::TooLarge),
        (ExecuteRequest::new("touch x").env("A", "a".repeat(200_000)), ErrorKind::TooLarge),
    ] {
        let error = place.try_run(request).await.expect_err("refused");
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().len() < 2000, "{error}");
    }
    assert!(!place.host("x").exists());
}

#[tokio::test]
async fn a_shell_that_is_not_there_is_told_without_its_place() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let files = vfs_local::LocalBackend::open(directory.path()).expect("it is there");
    for (program, kind) in [("/no/such/shell", ErrorKind::Unsupported), ("/dev/null", ErrorKind::PermissionDenied)] {
        let launcher = HostLauncher::new(files.clone()).shell(program, ["-c"]);
        let backend = LocalShellBackend::launched_by(launcher, files.clone(), ShellConfig::new());
        let error =
            backend.shell().execute(&OpContext::new(), ExecuteRequest::new("true")).await.expect_err("no shell");
        assert_eq!(error.kind(), kind, "{error}");
        assert!(!error.to_string().contains(program), "{error}");
    }
}

#[tokio::test]
async fn a_timeout_is_an_answer_with_what_was_printed() {
    let place = Place::with(ShellConfig::new().default_timeout(Duration::from_millis(300)));
    for request in [
        ExecuteRequest::new("echo begun; sleep 100; echo never"),
        ExecuteRequest::new("echo begun; sleep 100").timeout(Duration::from_millis(300)),
        ExecuteRequest::new("echo begun; trap '' TERM; sleep 100; sleep 100"),
    ] {
        let response = place.run(request.clone()).await;
        assert_eq!((response.output.as_str(), response.timed_out), ("begun\n", true), "{request:?}");
        assert_eq!(response.exit_code, None, "{request:?}");
        assert!(matches!(response.signal, Some(9 | 15)), "{request:?}: {response:?}");
        assert!(response.duration >= Duration::from_millis(300), "{response:?}");
    }
    let cleaned = place.sh("trap 'echo cleaned; exit 5' TERM; echo begun; sleep 100 & wait").await;
    assert_eq!((cleaned.output.as_str(), cleaned.exit_code), ("begun\ncleaned\n", Some(5)), "asked first: {cleaned:?}");
    assert!(cleaned.timed_out);
}

#[tokio::test]
async fn the_context_ends_a_call_with_an_error() {
    let place = Place::new();
    let shell = place.backend.shell();
    let late = OpContext::new().with_timeout(Duration::from_millis(200));
    let error = shell.execute(&late, ExecuteRequest::new("sleep 100")).await.expect_err("late");
    assert_eq!(error.kind(), ErrorKind::Timeout);
    let cancel = CancelToken::new();
    let cx = OpContext::new().with_cancel_token(cancel.clone());
    let started = place.host("started");
    let (answer, ()) = tokio::join!(shell.execute(&cx, ExecuteRequest::new("touch started; sleep 100")), async {
        while !started.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    });
    assert_eq!(answer.expect_err("cancelled").kind(), ErrorKind::Cancelled);
    let error = shell.execute(&cx, ExecuteRequest::new("touch never")).await.expect_err("cancelled before");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(!place.host("never").exists());
}

#[test]
fn what_has_to_wait_for_a_thread_is_still_bounded_in_time_and_not_run_afterwards() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build();
    runtime.expect("a runtime").block_on(async {
        let place = Place::new();
        let (release, released) = std::sync::mpsc::channel::<()>();
        let busy = tokio::task::spawn_blocking(move || released.recv());
        let cx = OpContext::new().with_timeout(Duration::from_millis(200));
        let shell = place.backend.shell();
        let late = shell.execute(&cx, ExecuteRequest::new("touch ran")).await.expect_err("it could not be started");
        assert_eq!(late.kind(), ErrorKind::Timeout);
        drop(release);
        busy.await.expect("it does not panic").expect_err("nothing was sent");
        assert_eq!(place.sh("echo next").await.stdout, "next\n");
        assert!(!place.host("ran").exists());
    });
}

#[tokio::test]
async fn what_a_command_leaves_running_is_ended_or_kept() {
    let (end, keep) = (Place::new(), Place::with(ShellConfig::new().leftovers(Leftovers::Keep)));
    let command = "{ sleep 0.5; touch late; } >/dev/null 2>&1 & echo done";
    for (place, is_kept) in [(&end, false), (&keep, true)] {
        let response = place.sh(command).await;
        assert_eq!((response.output.as_str(), response.exit_code), ("done\n", Some(0)));
        assert!(response.duration < Duration::from_millis(400), "{response:?}");
        assert!(!place.host("late").exists());
        tokio::time::sleep(Duration::from_millis(if is_kept { 1500 } else { 800 })).await;
        assert_eq!(place.host("late").exists(), is_kept);
    }
    // Whoever holds an output open does not keep the call, and is not cut short where it is about to end.
    let held = keep.sh("sleep 100 & echo done").await;
    assert_eq!(held.output, "done\n");
    let ending = end.sh("{ sleep 0.01; echo late; } & echo done").await;
    assert_eq!(ending.output, "done\nlate\n");
}

#[tokio::test]
async fn a_supervisor_that_is_killed_takes_the_command_with_it() {
    let place = Place::new();
    let error =
        place.try_run(ExecuteRequest::new("touch begun; kill -KILL $PPID; sleep 100")).await.expect_err("killed");
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(place.host("begun").exists());
    // One that is stopped is woken to do its work.
    let request = ExecuteRequest::new("kill -STOP $PPID; sleep 100").timeout(Duration::from_millis(200));
    let response = place.run(request).await;
    assert!(response.timed_out && response.signal == Some(15), "{response:?}");
}

#[test]
fn either_kind_of_runtime_will_do() {
    for mut builder in [tokio::runtime::Builder::new_current_thread(), tokio::runtime::Builder::new_multi_thread()] {
        let runtime = builder.enable_io().enable_time().build().expect("a runtime");
        let place = Place::new();
        assert_eq!(runtime.block_on(place.sh("echo out; echo err >&2")).output, "out\nerr\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_was_just_written_runs_while_other_commands_start() {
    let place = Arc::new(Place::new());
    let writers: Vec<_> = (0..8)
        .map(|n| {
            let place = Arc::clone(&place);
            tokio::spawn(async move {
                for round in 0..100 {
                    let script =
                        WriteRequest::new(VfsPath::parse(&format!("/{n}")).expect("a path"), "#!/bin/sh\nexit 7\n");
                    let script = script.mode(WriteMode::Overwrite);
                    place.backend.write(&OpContext::new(), script).await.expect("it is written");
                    let ended = place.sh(&format!("chmod +x {n}; ./{n}")).await;
                    assert_eq!(ended.exit_code, Some(7), "{round}: {}", ended.stderr);
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("each script ran");
    }
}
