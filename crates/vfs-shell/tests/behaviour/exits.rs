//! Exit codes, timeouts, cancellation and orphans.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use vfs_core::{
    Backend as _, CancelToken, ErrorKind, ExecuteRequest, ExecuteResponse, OpContext, Shell as _, VfsPath, WriteMode,
    WriteRequest,
};
use vfs_shell::{CommandRunner, HostSpawner, LocalShellBackend, OrphanPolicy, ShellConfig, SpawnSpec, Spawner};

use super::{ATTEMPTS, HANG_TIMEOUT, Place, TIMES, until, was_too_busy};

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
        // A shell may execute the last command of its line in its own process, which a signal then terminates.
        let response = place.sh(&format!("{command}\nexit $?")).await;
        let found = (response.exit_code, response.signal, response.timed_out);
        assert_eq!(found, (code, signal, false), "{command}: {response:?}");
    }
}

#[tokio::test]
async fn an_invalid_request_is_refused_and_starts_no_process() {
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
async fn a_missing_shell_is_an_error_without_its_host_path() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let files = vfs_local::LocalBackend::open(directory.path()).expect("it is there");
    for (program, kind) in [("/no/such/shell", ErrorKind::Unsupported), ("/dev/null", ErrorKind::PermissionDenied)] {
        let spawner = HostSpawner::new(files.clone()).shell(program, ["-c"]);
        let backend = LocalShellBackend::with_spawner(spawner, files.clone(), ShellConfig::new());
        let error =
            backend.shell().execute(&OpContext::new(), ExecuteRequest::new("true")).await.expect_err("no shell");
        assert_eq!(error.kind(), kind, "{error}");
        assert!(!error.to_string().contains(program), "{error}");
    }
}

#[tokio::test]
async fn a_timeout_is_a_response_with_the_output_so_far() {
    let has_output_so_far = |response: &ExecuteResponse| {
        response.output == "begun\n" && response.exit_code.is_none() && matches!(response.signal, Some(9 | 15))
    };
    let place = Place::new();
    for command in ["echo begun; sleep 1000; echo never", "echo begun; trap '' TERM; sleep 1000; sleep 1000"] {
        place.timed_out(ExecuteRequest::new(command), has_output_so_far).await;
    }
    let patient = Place::with(ShellConfig::new().grace(HANG_TIMEOUT));
    let cleans = ExecuteRequest::new("trap 'echo cleaned; exit 5' TERM; echo begun; sleep 1000 & wait");
    let cleaned = patient.timed_out(cleans, |response| response.output.starts_with("begun\n")).await;
    assert_eq!((cleaned.output.as_str(), cleaned.exit_code), ("begun\ncleaned\n", Some(5)), "TERM first: {cleaned:?}");
    // A request without a timeout gets the default one.
    for time in TIMES {
        let place = Place::with(ShellConfig::new().default_timeout(time));
        let answer = place.try_run(ExecuteRequest::new("echo begun; sleep 1000")).await;
        if was_too_busy(&answer) {
            continue;
        }
        let response = answer.expect("it runs");
        assert!(response.timed_out && response.duration >= time, "{response:?}");
        if has_output_so_far(&response) {
            return;
        }
    }
    panic!("it was not ended as it should by default");
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
        until("it starts", || started.exists()).await;
        cancel.cancel();
    });
    assert_eq!(answer.expect_err("cancelled").kind(), ErrorKind::Cancelled);
    let error = shell.execute(&cx, ExecuteRequest::new("touch never")).await.expect_err("cancelled before");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(!place.host("never").exists());
}

#[test]
fn a_start_that_waits_for_a_thread_times_out_and_never_runs() {
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
async fn orphans_are_killed_or_detached_by_policy() {
    let (end, keep) = (Place::new(), Place::with(ShellConfig::new().orphan_policy(OrphanPolicy::Detach)));
    // The orphan waits for an event that happens only after the call has returned.
    let command = "exec 9>hold; { until [ -e go ]; do sleep 0.02; done; touch late; } >/dev/null 2>&1 & echo done";
    for (place, is_detached) in [(&end, false), (&keep, true)] {
        let hold = place.hold();
        let response = place.sh(command).await;
        assert_eq!((response.output.as_str(), response.exit_code), ("done\n", Some(0)));
        if is_detached {
            assert!(hold.is_open(), "it goes on");
        } else {
            hold.released().await;
        }
        std::fs::write(place.host("go"), "").expect("written");
        hold.released().await;
        assert_eq!(place.host("late").exists(), is_detached);
    }
    // An orphan that holds an output open does not delay the call, and one that exits soon is not cut short.
    let response = keep.sh("sleep 100 & echo done").await;
    assert_eq!(response.output, "done\n");
    let mut ending = String::new();
    for _ in 0..ATTEMPTS {
        ending = end.sh("{ sleep 0.01; echo late; } & echo done").await.output;
        if ending == "done\nlate\n" {
            break;
        }
    }
    assert_eq!(ending, "done\nlate\n");
}

#[tokio::test]
async fn killing_the_supervisor_kills_the_command() {
    let place = Place::new();
    let error =
        place.try_run(ExecuteRequest::new("touch begun; kill -KILL $PPID; sleep 100")).await.expect_err("killed");
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(place.host("begun").exists());
    // A stopped supervisor is resumed to do its work.
    place.timed_out(ExecuteRequest::new("kill -STOP $PPID; sleep 100"), |response| response.signal == Some(15)).await;
}

/// Spawner of a shell that stops its supervisor before it executes.
#[derive(Debug)]
struct Stopping;

#[async_trait]
impl Spawner for Stopping {
    async fn prepare(
        &self,
        _: &OpContext,
        _: &ExecuteRequest,
        _: Vec<(OsString, OsString)>,
    ) -> vfs_core::Result<SpawnSpec> {
        let mut launch = SpawnSpec::new("/bin/sh", std::fs::File::open("/").expect("there is a root").into());
        launch.confine = Some(Arc::new(|| {
            let supervisor = rustix::process::getppid().ok_or(std::io::ErrorKind::NotFound)?;
            Ok(rustix::process::kill_process(supervisor, rustix::process::Signal::STOP)?)
        }));
        Ok(launch)
    }
}

#[tokio::test]
async fn a_supervisor_that_is_stopped_at_once_is_resumed() {
    let commands = CommandRunner::new(Stopping, ShellConfig::new());
    let (cx, request) = (OpContext::new(), ExecuteRequest::new("true").timeout(HANG_TIMEOUT));
    assert_eq!(commands.execute(&cx, request).await.expect("it runs").exit_code, Some(0));
}

#[test]
fn commands_run_on_both_kinds_of_runtime() {
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
