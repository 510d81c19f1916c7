//! Connections that are lost: what was acknowledged is there, and nothing is made twice.

use std::collections::BTreeMap;
use std::time::Duration;

use vfs_core::ErrorKind;
use vfs_store::{ChangeRecord, Inspect as _, Key, Precondition, PutOutcome, RedisConfig, RedisStore, Store};

use crate::proxy::Proxy;
use crate::shared::all_changes;
use crate::support::{HANG_TIMEOUT, Server, Shared, content, done, key, namespace, path, patient, value};

const CUTS: usize = 200;

async fn through(shared: &Shared, proxy: &Proxy, change: impl FnOnce(RedisConfig) -> RedisConfig) -> RedisStore {
    let config = patient(RedisConfig::new(&format!("redis://127.0.0.1:{}", proxy.port)).expect("a URL"));
    let config = change(config.prefix(&shared.prefix).expect("a prefix"));
    loop {
        // Opening is not tried again by itself.
        if let Ok(store) = RedisStore::open(config.clone()).await {
            return store;
        }
    }
}

fn address(url: &str) -> String {
    url.trim_start_matches("redis://").trim_end_matches('/').to_owned()
}

/// Adds one to the number at `/counter`, and says whether it was acknowledged at the first try.
async fn increment(store: &RedisStore) -> bool {
    let found = store.get(&key("/counter"), None).await.expect("it is read").expect("it is there");
    let number: u64 = std::str::from_utf8(&found.content).expect("text").parse().expect("a number");
    let expected = Precondition::Version(found.stored.version);
    let outcome = store.put(&key("/counter"), value((number + 1).to_string()), &expected).await;
    matches!(outcome.expect("an outcome"), PutOutcome::Applied(_))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_cut_loses_and_repeats_nothing() {
    let Some(shared) = Shared::find() else { return };
    let direct = shared.store().await;
    let _ = done(direct.put(&key("/counter"), value("0"), &Precondition::Absent).await.expect("it is put"));
    let (proxy, _) = Proxy::start(&address(&shared.url), CUTS).await;
    let writers: Vec<_> = (0..3)
        .map(|writer| {
            let proxy = proxy.clone();
            let shared = Shared { url: shared.url.clone(), prefix: shared.prefix.clone() };
            tokio::spawn(async move {
                let store = through(&shared, &proxy, |config| config.connections(2)).await;
                let (mut created, mut increments) = (0, 0_u64);
                while proxy.cuts() < CUTS {
                    let at = key(&format!("/{writer}/{created}"));
                    let _ = done(
                        store.put(&at, value(created.to_string()), &Precondition::Absent).await.expect("it is put"),
                    );
                    created += 1;
                    increments += u64::from(increment(&store).await);
                }
                (created, increments)
            })
        })
        .collect();
    let mut expected = BTreeMap::new();
    let mut increments = 0;
    for (writer, task) in writers.into_iter().enumerate() {
        let (created, incremented) = task.await.expect("no panic");
        increments += incremented;
        expected.extend((0..created).map(|number: u32| (format!("/{writer}/{number}"), 1)));
    }
    assert_eq!(content(&direct, "/counter").await, Some(increments.to_string().into()));
    let mut told = BTreeMap::new();
    let mut counted = 0;
    for tell in all_changes(&direct, "").await {
        match tell {
            ChangeRecord::Created(path, _) => *told.entry(path.to_string()).or_insert(0) += 1,
            ChangeRecord::Changed(path, _) if path.as_str() == "/counter" => counted += 1,
            other => panic!("nobody made {other:?}"),
        }
    }
    assert_eq!(told.remove("/counter"), Some(1));
    assert_eq!(counted, increments);
    assert_eq!(told, expected);
    let report = direct.check().await.expect("a report");
    assert_eq!((report.files, report.problems.len()), (expected.len() as u64 + 1, 0));
    println!("{} cuts, {} files, {increments} increments", proxy.cuts(), expected.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_arrives_late_is_not_made_again() {
    let Some(shared) = Shared::find() else { return };
    let direct = shared.store().await;
    let (proxy, mut answers) = Proxy::start(&address(&shared.url), 0).await;
    let store = through(&shared, &proxy, |config| config.connections(1).timeout(Duration::from_millis(300))).await;
    let one = done(store.put(&key("/a"), value("1"), &Precondition::Absent).await.expect("it is put"));

    // Sent twice, made once: the change behind it in time is not undone.
    proxy.hold();
    let _ = done(store.put(&key("/a"), value("2"), &Precondition::Any).await.expect("it is put"));
    let _ = done(direct.put(&key("/a"), value("3"), &Precondition::Any).await.expect("it is put"));
    proxy.release();
    answers.recv().await.expect("the late change is answered");
    assert_eq!(content(&direct, "/a").await, Some("3".into()));
    assert_eq!(all_changes(&direct, "").await.len(), 3);

    // Refused once, it stays refused, even when what was expected is there again.
    proxy.hold();
    let refused = store.put(&key("/a"), value("4"), &Precondition::Version(one.version)).await.expect("an outcome");
    assert!(matches!(refused, PutOutcome::PreconditionFailed(Some(_))), "{refused:?}");
    let _ = done(direct.put(&key("/a"), value("1"), &Precondition::Any).await.expect("it is put"));
    proxy.release();
    answers.recv().await.expect("the late change is answered");
    assert_eq!(content(&direct, "/a").await, Some("1".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_crashes_keeps_what_it_acknowledged() {
    let Some(mut server) = Server::start(&[]).await else { return };
    let store = server.store().await;
    let _ = done(store.put(&key("/counter"), value("0"), &Precondition::Absent).await.expect("it is put"));
    let (stop, mut stopped) = tokio::sync::watch::channel(false);
    let (started, mut progress) = tokio::sync::mpsc::channel(1);
    let writer = tokio::spawn(async move {
        let mut increments = 0_u64;
        while !*stopped.borrow_and_update() {
            increments += u64::from(increment(&store).await);
            let _ = started.try_send(increments);
        }
        (store, increments)
    });
    for _ in 0..5 {
        for _ in 0..20 {
            progress.recv().await.expect("it is incremented");
        }
        server.crash_and_restart().await;
    }
    stop.send_replace(true);
    let (store, increments) = writer.await.expect("no panic");
    assert_eq!(content(&store, "/counter").await, Some(increments.to_string().into()));
    assert_eq!(all_changes(&store, "").await.len() as u64, increments + 1);
    assert_eq!(store.check().await.expect("a report").problems, []);
    println!("5 crashes, {increments} increments");
}

/// The answers to these changes never come. Their callers are told what became of them, though they have no patience at all.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_answer_does_not_come_is_asked_about_once_at_least() {
    let Some(shared) = Shared::find() else { return };
    let direct = shared.store().await;
    let (proxy, mut answers) = Proxy::start(&address(&shared.url), 0).await;
    let mut time = Duration::from_millis(300);
    let one = loop {
        let hasty = |config: RedisConfig| config.connections(1).timeout(time).patience(Duration::ZERO);
        let store = through(&shared, &proxy, hasty).await;
        proxy.hold();
        let put = store.put(&key("/a"), value("1"), &Precondition::Absent).await;
        proxy.release();
        answers.recv().await.expect("the late change is answered");
        match put {
            Ok(outcome) => break done(outcome),
            // A busy server may answer the question too late as well. The next time is long enough, or it was never asked.
            Err(error) => assert!(time < HANG_TIMEOUT, "{error}"),
        }
        time *= 4;
        let _ = direct.delete(&key("/a"), &Precondition::Any).await.expect("an answer");
    };
    assert_eq!(content(&direct, "/a").await, Some("1".into()));
    let changes = all_changes(&direct, "").await;
    assert_eq!(changes.last(), Some(&ChangeRecord::Created(key("/a").path, one)));
    let made = changes.iter().filter(|tell| matches!(tell, ChangeRecord::Created(..))).count();
    assert_eq!(changes.len(), 2 * made - 1, "each was made once, and all but the last removed");
}

/// After an error of another kind, a caller repeats the change, which would then be applied twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_in_doubt_is_unavailable_although_its_repetition_was_rejected() {
    let Some(server) = Server::start(&["--lua-time-limit", "1"]).await else { return };
    let shared = Shared { url: server.url(), prefix: "vfs".to_owned() };
    let direct = shared.store().await;
    let (proxy, mut answers) = Proxy::start(&address(&shared.url), 0).await;
    let client = redis::Client::open(shared.url.as_str()).expect("a URL");
    let mut other = client.get_multiplexed_async_connection().await.expect("a connection");
    for (reject, accept) in [
        ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"),
        ("ACL SETUSER default -set -evalsha", "ACL SETUSER default +set +evalsha"),
        ("EVAL while(true)do(type)(1)end 0", "SCRIPT KILL"),
    ] {
        done(direct.put(&key("/a"), value("before"), &Precondition::Any).await.expect("it is put"));
        let hasty =
            |config: RedisConfig| config.connections(1).timeout(Duration::from_secs(2)).patience(Duration::ZERO);
        let store = through(&shared, &proxy, hasty).await;
        proxy.hold();
        let mut rejecting = client.get_multiplexed_async_connection().await.expect("a connection");
        tokio::spawn(async move { command(reject).query_async::<redis::Value>(&mut rejecting).await });
        while command("SET other x").query_async::<redis::Value>(&mut other).await.is_ok() {}
        let error = store.put(&key("/a"), value("after"), &Precondition::Any).await.expect_err("it is rejected");
        // A machine with other work may be too slow for the answer.
        assert!(matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Timeout), "{reject}: {error}");
        assert!(error.message().contains("a change may have been made"), "{reject}: {error}");
        assert!(error.for_model().contains("see whether it was made"), "{reject}: {}", error.for_model());
        command(accept).query_async::<redis::Value>(&mut other).await.expect("it is accepted");
        while command("SET other x").query_async::<redis::Value>(&mut other).await.is_err() {}
        proxy.release();
        answers.recv().await.expect("the first attempt is answered");
        assert_eq!(content(&direct, "/a").await, Some("after".into()), "{reject}");
    }
}

/// A command without spaces in its arguments.
fn command(text: &str) -> redis::Cmd {
    let mut command = redis::Cmd::new();
    for argument in text.split(' ') {
        command.arg(argument);
    }
    command
}

/// The first change of a namespace is sent again under another name, as it has to be registered before.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_change_of_a_namespace_stays_refused_once_it_was() {
    let Some(shared) = Shared::find() else { return };
    let direct = shared.store().await;
    let (proxy, mut answers) = Proxy::start(&address(&shared.url), 0).await;
    let store = through(&shared, &proxy, |config| config.connections(1).timeout(Duration::from_millis(300))).await;
    let new = |text: &str| Key::new(namespace("new"), path(text));
    proxy.hold();
    let version = Precondition::Version(version_of_text("1"));
    let refused = store.put(&new("/a"), value("2"), &version).await.expect("an outcome");
    assert_eq!(refused, PutOutcome::PreconditionFailed(None));
    let _ = done(direct.put(&new("/a"), value("1"), &Precondition::Absent).await.expect("it is put"));
    proxy.release();
    answers.recv().await.expect("the late change is answered");
    let found = direct.get(&new("/a"), None).await.expect("an answer").expect("it is there");
    assert_eq!(found.content, "1");
}

/// The version that this store gives a text.
fn version_of_text(text: &str) -> vfs_core::Version {
    vfs_core::Version::new(&blake3::hash(text.as_bytes()).to_hex()[..32])
}

#[tokio::test(flavor = "multi_thread")]
async fn no_time_is_too_long() {
    let Some(shared) = Shared::find() else { return };
    let config = shared.config().patience(Duration::MAX).timeout(Duration::MAX).connect_timeout(Duration::MAX);
    let store = RedisStore::open(config).await.expect("it is opened");
    let _ = done(store.put(&key("/a"), value("1"), &Precondition::Absent).await.expect("it is put"));
    let changes = store.as_changes().expect("it tells");
    let position = changes.last_sequence(&namespace("")).await.expect("a position");
    changes.changed(&namespace(""), position).await.expect("it waits for a while");
}
