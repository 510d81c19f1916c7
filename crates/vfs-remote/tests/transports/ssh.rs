//! SSH transport, to a server of this machine.

use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;
use vfs_core::{Error, ErrorKind};
use vfs_remote::{HostKeyPolicy, RemoteExec, ScriptInvocation, Ssh, SshConfig};

use crate::sshd::{Sshd, missing};
use crate::{exited, laws, long_sleep, program, run, runs, timed_out, trial, until, write_program};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    let missing = missing();
    for (name, law) in laws::ALL {
        trials.push(trial(format!("ssh::{name}"), missing, move || async move {
            let server = Sshd::start();
            law(Arc::new(server.place())).await;
        }));
    }
    macro_rules! own {
        ($($name:ident),+ $(,)?) => {
            $(trials.push(trial(format!("ssh::{}", stringify!($name)), missing, $name));)+
        };
    }
    own![
        all_calls_share_one_connection,
        the_connection_ends_with_the_last_clone,
        a_lost_connection_is_replaced,
        a_connection_cut_in_the_middle_is_an_error_and_ends_the_script,
        a_server_that_is_gone_is_reported,
        a_login_that_is_refused_is_reported,
        a_host_key_that_changed_is_reported,
        a_host_key_that_is_unknown_is_reported_or_accepted,
        a_host_that_does_not_answer_is_given_up,
        a_failure_to_connect_is_one_for_all_who_wait,
        an_option_that_ssh_lacks_is_reported,
        words_that_could_be_options_are_refused,
        a_host_that_has_no_name_is_reported,
        start_up_files_of_the_login_shell_are_no_part_of_the_answer,
    ];
    for shell in ["dash", "bash", "zsh", "fish", "tcsh", "busybox"] {
        let missing = missing.or_else(|| program(shell).is_none().then_some(shell));
        trials.push(trial(format!("ssh::login_shell::{shell}"), missing, move || login_shell(shell)));
    }
    trials
}

async fn fails(place: &Ssh, script: &str) -> Error {
    place.run(ScriptInvocation::new(script)).await.expect_err("an error")
}

fn check(error: &Error, kind: ErrorKind, meaning: &str) {
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.message().contains(meaning), "{error}");
    assert!(!error.for_model().contains("/tmp"), "{error}");
}

async fn all_calls_share_one_connection() {
    let server = Sshd::start();
    let place = server.place();
    let calls = (0..20).map(|_| run(&place, "echo $SSH_CONNECTION"));
    let answers = futures::future::join_all(calls).await;
    assert!(answers.iter().all(|answer| answer.stdout == answers[0].stdout && !answer.stdout.is_empty()));
    assert_eq!(server.connections(), 1);
    assert_eq!(place.to_string(), format!("ssh://127.0.0.1:{}", server.port));
}

async fn the_connection_ends_with_the_last_clone() {
    let server = Sshd::start();
    let place = server.place();
    run(&place, "true").await;
    let clone = place.clone();
    drop(place);
    assert_eq!(run(&clone, "echo on").await, exited(0, "on\n", ""));
    drop(clone);
    until("the connection ended", || server.connections() == 0).await;
}

async fn a_lost_connection_is_replaced() {
    let server = Sshd::start();
    let place = server.place();
    run(&place, "true").await;
    server.cut();
    until("the connection ended", || server.connections() == 0).await;
    // The client may not have noticed the loss yet, and then reports it.
    let mut attempts = 0;
    let answer = loop {
        match place.run(ScriptInvocation::new("echo again")).await {
            Ok(answer) => break answer,
            Err(error) => check(&error, ErrorKind::Unavailable, "lost"),
        }
        attempts += 1;
        assert!(attempts < 5, "the connection is not replaced");
    };
    assert_eq!(answer, exited(0, "again\n", ""));
}

async fn a_connection_cut_in_the_middle_is_an_error_and_ends_the_script() {
    let server = Sshd::start();
    let place = server.place();
    for script in ["echo half; sleep", "sleep"] {
        let name = long_sleep();
        let call = tokio::spawn({
            let place = place.clone();
            let script = format!("{script} {name}; exit 0");
            async move { place.run(ScriptInvocation::new(script)).await }
        });
        until("the script started", || runs(&name)).await;
        server.cut();
        let error = call.await.expect("no panic").expect_err("no answer");
        check(&error, ErrorKind::Unavailable, "lost");
        assert!(error.message().contains("unknown"), "{error}");
        until("the script ended", || !runs(&name)).await;
    }
}

async fn a_server_that_is_gone_is_reported() {
    let mut server = Sshd::start();
    let place = server.place();
    run(&place, "true").await;
    server.kill();
    let mut last = fails(&place, "true").await;
    if !last.message().contains("refused") {
        // The first call noticed the lost connection.
        last = fails(&place, "true").await;
    }
    check(&last, ErrorKind::Unavailable, "the host refused the connection");
    server.restart();
    assert_eq!(run(&place, "echo back").await, exited(0, "back\n", ""));
}

async fn a_login_that_is_refused_is_reported() {
    let server = Sshd::start();
    let stranger = server.config().identity_file(server.path("stranger"));
    let error = fails(&Ssh::new(stranger).expect("a transport"), "true").await;
    check(&error, ErrorKind::PermissionDenied, "did not accept the login");
    let config = server.config().user("no-such-user");
    let error = fails(&Ssh::new(config).expect("a transport"), "true").await;
    check(&error, ErrorKind::PermissionDenied, "did not accept the login");
}

async fn a_host_key_that_changed_is_reported() {
    let server = Sshd::start();
    server.know_host("other-host.pub");
    for keys in [HostKeyPolicy::Known, HostKeyPolicy::AcceptNew] {
        let place = Ssh::new(server.config().host_keys(keys)).expect("a transport");
        check(&fails(&place, "true").await, ErrorKind::PermissionDenied, "not the recorded one");
    }
}

async fn a_host_key_that_is_unknown_is_reported_or_accepted() {
    let server = Sshd::start();
    std::fs::remove_file(server.path("known")).expect("a file");
    let place = server.place();
    check(&fails(&place, "true").await, ErrorKind::PermissionDenied, "key is unknown");
    let trusting = Ssh::new(server.config().host_keys(HostKeyPolicy::AcceptNew)).expect("a transport");
    assert_eq!(run(&trusting, "echo in").await, exited(0, "in\n", ""));
    assert_eq!(run(&place, "echo now accepted").await, exited(0, "now accepted\n", ""));
}

async fn a_host_that_does_not_answer_is_given_up() {
    // The system accepts connections to this port, but no server responds.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let config = SshConfig::new("127.0.0.1").port(port).config_file("none").connect_timeout(Duration::from_secs(1));
    let error = fails(&Ssh::new(config).expect("a transport"), "true").await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.message().contains("cannot be reached") || error.message().contains("in time"), "{error}");
}

async fn a_failure_to_connect_is_one_for_all_who_wait() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let config = SshConfig::new("127.0.0.1").port(port).config_file("none").connect_timeout(Duration::from_secs(1));
    let place = Ssh::new(config.sessions(30)).expect("a transport");
    let answers = futures::future::join_all((0..30).map(|_| place.run(ScriptInvocation::new("true")))).await;
    assert!(answers.iter().all(|answer| answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unavailable)));
    silent.set_nonblocking(true).expect("an option");
    let connections = std::iter::from_fn(|| silent.accept().ok()).count();
    assert!((1..=3).contains(&connections), "{connections} attempts for 30 who waited");
}

async fn an_option_that_ssh_lacks_is_reported() {
    let config =
        SshConfig::new("127.0.0.1").port(vfs_testkit::server_port()).config_file("none").option("NoSuchOption", "1");
    let error = fails(&Ssh::new(config).expect("a transport"), "true").await;
    check(&error, ErrorKind::InvalidArgument, "options");
}

async fn words_that_could_be_options_are_refused() {
    let refused = |config: SshConfig| {
        let error = Ssh::new(config).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    };
    for word in ["", "-oProxyCommand=id", "a b", "a\nb", "$(id)", "a;b", "a'b"] {
        refused(SshConfig::new(word));
        refused(SshConfig::new("host").user(word));
        refused(SshConfig::new("host").option(word, "1"));
    }
    refused(SshConfig::new("host").option("User", "a\nProxyCommand id"));
    Ssh::new(SshConfig::new("::1").user("a.b-c_d")).expect("a transport");
}

async fn a_host_that_has_no_name_is_reported() {
    let config = SshConfig::new("no-such-host.invalid").config_file("none");
    let error = fails(&Ssh::new(config).expect("a transport"), "true").await;
    check(&error, ErrorKind::Unavailable, "name does not resolve");
}

/// Tests a server whose users have the login shell `shell`, by a program that replaces it.
async fn login_shell(shell: &'static str) {
    let server = Sshd::start();
    let path = program(shell).expect("a shell").display().to_string();
    let shell = if shell == "busybox" { format!("{path} sh") } else { path };
    // Like sshd, pass the command as one argument of `-c`.
    let force = format!("exec {shell} -c \"$SSH_ORIGINAL_COMMAND\"");
    force_command(&server, &force);
    let place = server.place();
    let script = "printf '%s' 'a\\b!c\"d $HOME\n é'; cat; exit 9";
    let mut invocation = ScriptInvocation::new(script);
    invocation.stdin = "input".into();
    let answer = place.run(invocation).await.expect("an answer");
    assert_eq!(answer, exited(9, "a\\b!c\"d $HOME\n éinput", ""));
    assert_eq!(run(&place, &format!("true '{}'", "x".repeat(110_000))).await, exited(0, "", ""));
}

async fn start_up_files_of_the_login_shell_are_no_part_of_the_answer() {
    let server = Sshd::start();
    let noise = "echo welcome; echo news >&2; set -x; exec sh -c \"$SSH_ORIGINAL_COMMAND\"";
    force_command(&server, noise);
    let place = server.place();
    assert_eq!(run(&place, "echo out; echo err >&2").await, exited(0, "out\n", "err\n"));
    let answer = timed_out(&place, "echo before; sleep 300", |answer| !answer.stdout.is_empty()).await;
    assert_eq!(answer.stdout, "before\n");
}

/// Makes the server run `command` instead of the login shell's command line.
fn force_command(server: &Sshd, command: &str) {
    let program = server.path("login");
    write_program(&program, &format!("#!/bin/sh\n{command}\n"));
    let key = std::fs::read_to_string(server.path("user.pub")).expect("a key");
    let line = format!("command=\"{}\" {key}", program.display());
    std::fs::write(server.path("authorized"), line).expect("a file");
}
