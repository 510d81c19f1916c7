//! Container transport without an engine: a small program stands in for the client.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use libtest_mimic::Trial;
use tempfile::TempDir;
use vfs_core::ErrorKind;
use vfs_remote::{ContainerExec, ContainerExecConfig, RemoteExec, ScriptInvocation};

use crate::laws;
use crate::{exited, program, run, trial, write_program};

/// A replacement of an engine's client, which prints the error messages of real clients, and otherwise runs the command
/// on this machine, in a separate session as engines do.
const STAND_IN: &str = r#"#!/bin/sh
printf '%s\n' "$@" >"$0.arguments"
while [ "$1" != exec ]; do shift; done
shift
while case $1 in -*) true;; *) false;; esac; do shift; done
container=$1
shift
say() { echo "$1" >&2; exit "$2"; }
case $container in
gone) say 'Error response from daemon: No such container: gone' 1;;
pod-gone) say 'Error: no container with name or ID "pod-gone" found: no such container' 125;;
stopped) say 'Error response from daemon: container 0123 is not running' 1;;
down) say 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?' 1;;
closed) say 'permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: dial unix /var/run/docker.sock: connect: permission denied' 1;;
shell-less) say 'OCI runtime exec failed: exec failed: unable to start container process: exec: "sh": executable file not found in $PATH: unknown' 126;;
stranger) say 'unable to find user nosuch: no matching entries in passwd file' 126;;
silent) exit 0;;
liar) echo out; echo err >&2; exit 7;;
cut)
    exec 3<&0
    setsid "$@" <&3 3<&- >"$0.out" &
    until grep -q 0123 "$0.out"; do sleep 0.02; done
    head -c 60 "$0.out"
    exit 0;;
deaf) exec sleep 600;;
esac
echo 'a warning of the client' >&2
exec setsid -w "$@"
"#;

struct StandIn {
    directory: TempDir,
}

impl StandIn {
    fn new() -> Self {
        let directory = TempDir::new().expect("a directory");
        write_program(&directory.path().join("docker"), STAND_IN);
        Self { directory }
    }

    fn program(&self) -> PathBuf {
        self.directory.path().join("docker")
    }

    fn config(&self, container: &str) -> ContainerExecConfig {
        ContainerExecConfig::with_program(self.program(), container)
    }

    fn place(&self, container: &str) -> ContainerExec {
        ContainerExec::new(self.config(container)).expect("a transport")
    }

    fn arguments(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.program().with_file_name("docker.arguments")).expect("arguments");
        text.lines().map(str::to_owned).collect()
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    let missing = program("setsid").is_none().then_some("setsid");
    for (name, law) in laws::ALL {
        trials.push(trial(format!("container::stand_in::{name}"), missing, move || async move {
            let stand_in = StandIn::new();
            law(Arc::new(stand_in.place("works"))).await;
        }));
    }
    trials.push(trial("container::arguments".to_owned(), missing, arguments));
    trials.push(trial("container::a_client_s_words_are_typed_errors".to_owned(), None, words));
    trials.push(trial("container::a_client_s_exit_code_is_not_the_script_s".to_owned(), missing, no_answer));
    trials.push(trial("container::a_client_that_hangs_is_given_up".to_owned(), None, deaf));
    trials.push(trial("container::names_that_could_be_options_are_refused".to_owned(), None, names));
    trials.push(trial("container::a_client_that_is_missing".to_owned(), None, no_client));
    trials
}

async fn arguments() {
    let stand_in = StandIn::new();
    let config = stand_in.config("box-1").user("1000:1000").engine_argument("--context=far").argument("--env=A=B");
    let place = ContainerExec::new(config).expect("a transport");
    assert_eq!(place.to_string(), "docker:box-1");
    assert_eq!(run(&place, "echo hi").await, exited(0, "hi\n", ""));
    let arguments = stand_in.arguments();
    let expected = ["--context=far", "exec", "--interactive", "--user=1000:1000", "--env=A=B", "box-1", "sh", "-c"];
    assert_eq!(arguments[..expected.len()], expected);
    assert_eq!(arguments.last().map(String::as_str), Some("echo hi"));
}

async fn words() {
    let stand_in = StandIn::new();
    for (container, kind, meaning) in [
        ("gone", ErrorKind::Unavailable, "no such container"),
        ("pod-gone", ErrorKind::Unavailable, "no such container"),
        ("stopped", ErrorKind::Unavailable, "start it"),
        ("down", ErrorKind::Unavailable, "no container engine answers"),
        ("closed", ErrorKind::PermissionDenied, "does not let this user in"),
        ("shell-less", ErrorKind::Unavailable, "POSIX shell"),
        ("stranger", ErrorKind::InvalidArgument, "does not have this user"),
    ] {
        let error = stand_in.place(container).run(ScriptInvocation::new("true")).await.expect_err("an error");
        assert_eq!(error.kind(), kind, "{container}: {error}");
        assert!(error.message().contains(meaning), "{container}: {error}");
        assert!(error.message().contains("was not run"), "{container}: {error}");
        assert!(!error.for_model().contains("/var/run"), "{error}");
        assert!(std::error::Error::source(&error).is_some(), "operators see the client's own words");
    }
}

async fn no_answer() {
    let stand_in = StandIn::new();
    for container in ["silent", "liar", "cut"] {
        let script = "printf 0123456789012345678901234567890123456789012345678901234567890123456789; exit 0";
        let answer = stand_in.place(container).run(ScriptInvocation::new(script)).await;
        let error = answer.expect_err("an error");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{container}");
        assert!(error.message().contains("unknown"), "{container}: {error}");
    }
}

async fn deaf() {
    let stand_in = StandIn::new();
    let mut invocation = ScriptInvocation::new("true");
    invocation.timeout = std::time::Duration::from_millis(300);
    let error = stand_in.place("deaf").run(invocation).await.expect_err("an error");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("in time"), "{error}");
}

async fn names() {
    for name in ["", "-v", "--privileged", "a b", "a\nb", "a;b", "../a", "a/b", "é"] {
        let error = ContainerExec::new(ContainerExecConfig::docker(name)).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{name:?}");
        let config = ContainerExecConfig::docker("box").user(name);
        assert_eq!(ContainerExec::new(config).expect_err("refused").kind(), ErrorKind::InvalidArgument);
    }
    for name in ["box", "0123abc", "a.b_c-d"] {
        ContainerExec::new(ContainerExecConfig::podman(name).user("agent:users")).expect("a transport");
    }
}

async fn no_client() {
    let nowhere = Path::new("/nonexistent/docker");
    let place = ContainerExec::new(ContainerExecConfig::with_program(nowhere, "box")).expect("a transport");
    let error = place.run(ScriptInvocation::new("true")).await.expect_err("an error");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.for_model().contains("`docker` is not on this machine"), "{error}");
    assert!(!error.for_model().contains("nonexistent"), "{error}");
}
