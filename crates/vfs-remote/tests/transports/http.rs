//! A service that runs code: a server in this process which checks credentials, runs the script with the real `sh`, and
//! misbehaves on request.

mod service;
mod signature;

use std::time::Duration;

use libtest_mimic::Trial;
use vfs_core::{Error, ErrorKind};
use vfs_remote::http::{Agentkit, BearerToken, HttpRun, HttpRunConfig, JsonApi, ReplayPolicy, VolcengineSignature};
use vfs_remote::{RemoteExec, RemoteExit, RetainedOutputPart, ScriptInvocation};

use crate::{HANG_TIMEOUT, TIMES, exited, long_sleep, program, run, runs, timed_out, trial, until};
use service::{Fate, Kind, Service};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    let no_python = program("python3").is_none().then_some("python3");
    for (kind, missing) in [(Kind::Json, None), (Kind::Agentkit, no_python)] {
        macro_rules! each {
            ($($name:ident),+ $(,)?) => {
                $(trials.push(trial(format!("http::{kind:?}::{}", stringify!($name)), missing, move || $name(kind)));)+
            };
        }
        each![
            a_script_runs_as_it_is_written,
            bytes_and_exit_codes_arrive,
            a_timeout_ends_the_script_and_keeps_what_was_printed,
            a_process_left_behind_delays_no_caller,
            an_output_over_the_limit_is_truncated_and_reported,
            wrong_credentials_are_reported_and_not_shown,
            too_many_requests_are_waited_out,
            a_long_wait_is_not_waited_for,
            a_failure_is_not_repeated_unless_that_is_harmless,
            no_connection_is_tried_again,
            an_answer_that_breaks_off_is_no_answer,
            an_answer_that_does_not_come_is_given_up,
            an_answer_that_is_something_else_is_no_answer,
            an_answer_that_is_too_large_is_refused,
            a_redirect_is_not_followed,
            what_the_service_does_not_take_is_refused_here,
        ];
    }
    trials.push(trial("http::addresses".to_owned(), None, addresses));
    trials.push(trial("http::agentkit_says_no".to_owned(), None, agentkit_says_no));
    trials.push(trial("http::nothing_secret_is_shown".to_owned(), None, nothing_secret_is_shown));
    trials
}

fn config(service: &Service) -> HttpRunConfig {
    let url = service.url();
    let config = match service.kind {
        Kind::Json => HttpRunConfig::new(url, JsonApi::new()).sign(BearerToken::new(service::TOKEN)),
        Kind::Agentkit => HttpRunConfig::new(url, Agentkit::new("tool", "session/é 1"))
            .sign(VolcengineSignature::new(service::KEY_ID, service::KEY).session_token(service::TOKEN)),
    };
    config.patience(HANG_TIMEOUT)
}

fn place(service: &Service) -> HttpRun {
    HttpRun::new(config(service)).expect("a transport")
}

async fn fails(place: &HttpRun, script: &str) -> Error {
    let error = place.run(ScriptInvocation::new(script)).await.expect_err("an error");
    for secret in [service::TOKEN, service::KEY] {
        assert!(!format!("{error} {error:?} {}", error.for_model()).contains(secret), "{error}");
    }
    error
}

async fn a_script_runs_as_it_is_written(kind: Kind) {
    let service = Service::start(kind).await;
    let place = place(&service);
    let hostile = "'\"\\ \\\\ \\n %s $HOME $(id) `id` ! \t\r é 😀 {} \"\"\" {0}";
    let script = format!("printf %s '{}'\n", hostile.replace('\'', "'\\''"));
    assert_eq!(run(&place, &script).await, exited(0, hostile, ""));
    assert_eq!(service.take_runs(), 1);
}

async fn bytes_and_exit_codes_arrive(kind: Kind) {
    let service = Service::start(kind).await;
    let place = place(&service);
    let mut invocation = ScriptInvocation::new("cat; printf 'e\\377' >&2; exit 255");
    let all: Vec<u8> = (0..=255).cycle().take(200_000).collect();
    invocation.stdin = all.clone().into();
    let answer = place.run(invocation).await.expect("an answer");
    assert_eq!((&answer.stdout[..], &answer.stderr[..]), (&all[..], &b"e\xff"[..]));
    assert_eq!(answer.exit, RemoteExit::Exited(255));
    assert_eq!(run(&place, "kill -9 $$").await.exit, RemoteExit::Signalled(9));
    assert_eq!(run(&place, "cat").await, exited(0, "", ""));
}

async fn a_timeout_ends_the_script_and_keeps_what_was_printed(kind: Kind) {
    let service = Service::start(kind).await;
    let name = long_sleep();
    let script = format!("echo before; trap '' TERM; sleep {name}");
    let answer = timed_out(&place(&service), &script, |answer| !answer.stdout.is_empty()).await;
    assert_eq!(answer.stdout, "before\n");
    until("the script ended", || !runs(&name)).await;
}

async fn a_process_left_behind_delays_no_caller(kind: Kind) {
    let service = Service::start(kind).await;
    let place = place(&service);
    let name = long_sleep();
    let answer = run(&place, &format!("sleep {name} & echo $!")).await;
    assert_eq!(answer.exit, RemoteExit::Exited(0));
    let pid = String::from_utf8(answer.stdout.to_vec()).expect("a number");
    assert_eq!(run(&place, &format!("kill {pid}")).await.exit, RemoteExit::Exited(0));
}

async fn an_output_over_the_limit_is_truncated_and_reported(kind: Kind) {
    let service = Service::start(kind).await;
    let mut invocation = ScriptInvocation::new("head -c 1000000 /dev/zero; exit 5");
    invocation.max_output_bytes = 10;
    let answer = place(&service).run(invocation).await.expect("an answer");
    assert_eq!((answer.exit, answer.truncated, answer.stdout.len()), (RemoteExit::Exited(5), true, 10));
    let mut ends = ScriptInvocation::new("printf 0123456789abcdefghij");
    (ends.max_output_bytes, ends.keep) = (5, RetainedOutputPart::Ends);
    let answer = place(&service).run(ends).await.expect("an answer");
    assert_eq!((&answer.stdout[..], answer.truncated, answer.stdout_bytes), (&b"01hij"[..], true, 20));
}

async fn wrong_credentials_are_reported_and_not_shown(kind: Kind) {
    let service = Service::start(kind).await;
    let wrong = match kind {
        Kind::Json => config(&service).sign(BearerToken::new("another-token-of-somebody")),
        Kind::Agentkit => config(&service)
            .sign(VolcengineSignature::new(service::KEY_ID, "another-key-of-somebody").session_token(service::TOKEN)),
    };
    let place = HttpRun::new(wrong).expect("a transport");
    let error = fails(&place, "true").await;
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    assert!(error.message().contains("401"), "{error}");
    // The service repeats the request in its response.
    assert!(!error.message().contains("somebody"), "{error}");
    assert_eq!(service.take_runs(), 0);
    service.plan([Fate::Status(403, None)]);
    let error = fails(&self::place(&service), "true").await;
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert_eq!(service.take_requests(), 2);
}

async fn too_many_requests_are_waited_out(kind: Kind) {
    let service = Service::start(kind).await;
    service.plan([Fate::Status(429, Some("0")), Fate::Status(429, Some("1")), Fate::Status(429, None)]);
    assert_eq!(run(&place(&service), "echo ran").await, exited(0, "ran\n", ""));
    assert_eq!((service.take_requests(), service.take_runs()), (4, 1));
    service.plan(std::iter::repeat_n(Fate::Status(429, Some("0")), 4));
    let error = fails(&place(&service), "true").await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("was not run"), "{error}");
    assert_eq!((service.take_requests(), service.take_runs()), (4, 0));
}

async fn a_long_wait_is_not_waited_for(kind: Kind) {
    let service = Service::start(kind).await;
    service.plan([Fate::Status(429, Some("3600"))]);
    let error = fails(&place(&service), "true").await;
    assert!(error.message().contains("try again in 3600 s"), "{error}");
    assert_eq!(service.take_requests(), 1);
}

async fn a_failure_is_not_repeated_unless_that_is_harmless(kind: Kind) {
    let service = Service::start(kind).await;
    let repeating = HttpRun::new(config(&service).repeat(ReplayPolicy::Idempotent)).expect("a transport");
    for fate in [Fate::Status(500, None), Fate::Status(503, Some("0")), Fate::Lost, Fate::CutBody] {
        service.plan([fate.clone()]);
        let error = fails(&place(&service), "true").await;
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{fate:?}: {error}");
        assert_eq!(service.take_requests(), 1, "{fate:?}");
        service.plan([fate.clone()]);
        assert_eq!(run(&repeating, "echo again").await, exited(0, "again\n", ""), "{fate:?}");
        assert_eq!(service.take_requests(), 2, "{fate:?}");
    }
}

async fn no_connection_is_tried_again(kind: Kind) {
    let service = Service::start(kind).await;
    let place = place(&service);
    service.stop().await;
    let error = fails(&place, "true").await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("cannot be reached"), "{error}");
    // There are enough attempts for the service to resume meanwhile.
    let config = config(&service).attempts(9).longest_wait(HANG_TIMEOUT);
    let place = HttpRun::new(config).expect("a transport");
    let waiting = tokio::spawn(async move { place.run(ScriptInvocation::new("echo back")).await });
    service.resume().await;
    assert_eq!(waiting.await.expect("no panic").expect("an answer"), exited(0, "back\n", ""));
}

async fn an_answer_that_breaks_off_is_no_answer(kind: Kind) {
    let service = Service::start(kind).await;
    service.plan([Fate::CutBody]);
    let error = fails(&place(&service), "echo whole").await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("broke off"), "{error}");
    assert_eq!(service.take_runs(), 1);
}

async fn an_answer_that_does_not_come_is_given_up(kind: Kind) {
    let mut last = None;
    for time in [Duration::from_millis(100)].into_iter().chain(TIMES) {
        let service = Service::start(kind).await;
        service.plan([Fate::Silent]);
        let place = HttpRun::new(config(&service).patience(Duration::from_millis(100))).expect("a transport");
        let mut invocation = ScriptInvocation::new("true");
        invocation.timeout = time;
        let error = place.run(invocation).await.expect_err("an error");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let requests = service.take_requests();
        assert!(requests <= 1, "{requests} requests");
        if requests == 1 && error.message().contains("no answer within") {
            return;
        }
        last = Some((requests, error));
    }
    panic!("{last:?}");
}

async fn an_answer_that_is_something_else_is_no_answer(kind: Kind) {
    let service = Service::start(kind).await;
    for body in [
        "",
        "null",
        "[]",
        "{}",
        "<html>sign in</html>",
        "{\"exit_code\":0}",
        "{\"exit_code\":0,\"stdout\":\"!\",\"stderr\":\"\"}",
        "{\"stdout\":\"\",\"stderr\":\"\"}",
        "{\"exit_code\":0,\"timed_out\":true,\"stdout\":\"\",\"stderr\":\"\"}",
        "{\"Result\":{\"Result\":\"{}\"}}",
        "{\"Result\":{\"Result\":\"not json\"}}",
        "{\"Result\":{\"Result\":\"{\\\"success\\\":true,\\\"data\\\":{\\\"outputs\\\":[{\\\"text\\\":\\\"hello\\\"}]}}\"}}",
    ] {
        service.plan([Fate::Body(body.to_owned())]);
        let error = fails(&place(&service), "true").await;
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{body}");
    }
}

async fn an_answer_that_is_too_large_is_refused(kind: Kind) {
    let service = Service::start(kind).await;
    let place = HttpRun::new(config(&service).max_response_bytes(10_000)).expect("a transport");
    let error = fails(&place, "head -c 100000 /dev/zero").await;
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert_eq!(run(&place, "echo small").await, exited(0, "small\n", ""));
    // Without a length, the bytes are counted as they arrive.
    service.plan([Fate::Endless]);
    assert_eq!(fails(&place, "true").await.kind(), ErrorKind::TooLarge);
}

async fn a_redirect_is_not_followed(kind: Kind) {
    let service = Service::start(kind).await;
    service.plan([Fate::Redirect]);
    let error = fails(&place(&service), "true").await;
    assert!(error.message().contains("another address"), "{error}");
    assert_eq!(service.take_requests(), 1);
}

async fn what_the_service_does_not_take_is_refused_here(kind: Kind) {
    let service = Service::start(kind).await;
    let place = place(&service);
    let long = "x".repeat(place.transport().max_script_bytes + 1);
    assert_eq!(fails(&place, &long).await.kind(), ErrorKind::TooLarge);
    assert_eq!(fails(&place, "a\0b").await.kind(), ErrorKind::InvalidArgument);
    assert_eq!(service.take_requests(), 0);
    let most = format!("cat <<'e' | wc -c\n{}\ne\n", "x".repeat(100_000));
    assert_eq!(String::from_utf8_lossy(&run(&place, &most).await.stdout).trim(), "100001");
}

async fn addresses() {
    let open = |url: &str| HttpRun::new(HttpRunConfig::new(url, JsonApi::new()));
    for url in [
        "",
        "run",
        "ftp://host/",
        "http://host/",
        "http://10.0.0.1/",
        "https://user@host/",
        "https://u:p@host/",
        "https://host/?key=secret",
        "file:///etc/passwd",
    ] {
        let error = open(url).expect_err(url);
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{url}");
        assert!(!error.message().contains("secret"));
    }
    for url in ["https://host/", "http://127.0.0.1:1/", "http://localhost/", "http://[::1]:8/"] {
        open(url).expect(url);
    }
    let trusted = HttpRunConfig::new("http://run.internal:8080/v1", JsonApi::new()).plain_http();
    assert_eq!(HttpRun::new(trusted).expect("a transport").to_string(), "JSON run API at run.internal:8080");
}

async fn agentkit_says_no() {
    let service = Service::start(Kind::Agentkit).await;
    let no = "{\"ResponseMetadata\":{\"Error\":{\"Code\":\"NoSuchTool\",\"Message\":\"it is gone\"}}}";
    service.plan([Fate::Body(no.to_owned())]);
    let error = fails(&place(&service), "true").await;
    assert!(error.message().contains("NoSuchTool"), "{error}");
    let raised = "{\"success\":false,\"data\":{\"outputs\":[{\"output_type\":\"error\",\"ename\":\"MemoryError\"}]}}";
    let body = serde_json::json!({"ResponseMetadata": {}, "Result": {"Result": raised}});
    service.plan([Fate::Body(body.to_string())]);
    let error = fails(&place(&service), "true").await;
    assert!(error.message().contains("MemoryError"), "{error}");
}

async fn nothing_secret_is_shown() {
    for kind in [Kind::Json, Kind::Agentkit] {
        let service = Service::start(kind).await;
        let place = place(&service);
        let shown = format!("{place} {place:?} {:?}", config(&service));
        for secret in [service::TOKEN, service::KEY] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}
