//! Services that fail, and answers that are lost.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use hyper::Method;
use vfs_core::{Error, ErrorKind};
use vfs_store::{
    BucketConfig, BucketStore, Key, ListRequest, Namespace, NewValue, Precondition, PutOutcome, StagedContent, Staging,
    Store, ValueContent,
};

use crate::servers::{Fate, Gate, Server};
use crate::{at, content, done, key, path, put, refused, value};

const FAULT: Fate = Fate::Status(500, "<Error><Code>InternalError</Code></Error>");

#[tokio::test]
async fn a_put_whose_answer_was_lost_is_done_once() {
    let server = Server::start().await;
    let store = server.store().await;
    for fate in [Fate::Lost, Fate::Cut, FAULT] {
        let name = key(&format!("/{fate:?}"));
        server.plan(Method::PUT, [fate.clone()]);
        let first = done(store.put(&name, value("one"), &Precondition::Absent).await.expect("a put"));
        server.plan(Method::PUT, [fate.clone(), fate.clone()]);
        let second = done(store.put(&name, value("two"), &Precondition::Version(first.version)).await.expect("a put"));
        server.plan(Method::PUT, [fate.clone()]);
        let third = done(store.put(&name, value("three"), &Precondition::Any).await.expect("a put"));
        assert_ne!(second.version, third.version);
        assert_eq!(store.head(&name).await.expect("an answer"), Some(third), "{fate:?}");
        assert_eq!(content(&store, &name).await.as_deref(), Some("three"));
    }
}

#[tokio::test]
async fn a_large_put_whose_answer_was_lost_is_done_once() {
    let server = Server::start().await;
    let store = server.store().await;
    let large = NewValue::new(Bytes::from(vec![1; (16 << 20) + 1]), at(5)).created_at(at(1));
    // The first request begins the upload, the second ends it.
    server.plan(Method::POST, [FAULT, Fate::Cut, Fate::Lost]);
    let stored = done(store.put(&key("/large"), large, &Precondition::Absent).await.expect("a put"));
    assert_eq!(store.head(&key("/large")).await.expect("an answer"), Some(stored));
}

/// The service answers a completed upload before it is at its end, and may still fail.
#[tokio::test]
async fn a_large_put_that_was_half_answered_is_looked_up() {
    let server = Server::start().await;
    let large = || NewValue::new(Bytes::from(vec![1; (16 << 20) + 1]), at(5)).created_at(at(1));
    let error = "<Error><Code>InternalError</Code><Message>m</Message></Error>";
    for retries in [0, 2] {
        let store = BucketStore::open(server.config().max_retries(retries)).await.expect("a store");
        for fate in [Fate::Cropped, Fate::DoneBut(200, error), Fate::DoneBut(200, "<Nonsense/>")] {
            let name = key(&format!("/{retries}/{}", fastrand::u64(..)));
            server.plan(Method::POST, [Fate::Done, fate.clone()]);
            let outcome = store.put(&name, large(), &Precondition::Absent).await;
            let stored = done(outcome.unwrap_or_else(|error| panic!("{retries} {fate:?}: {error}")));
            assert_eq!(store.head(&name).await.expect("an answer"), Some(stored));
        }
    }
    // It was not made.
    let store = BucketStore::open(server.config().max_retries(0)).await.expect("a store");
    server.plan(Method::POST, [Fate::Done, Fate::Status(200, error)]);
    let error = store.put(&key("/not"), large(), &Precondition::Absent).await.expect_err("it failed");
    assert!(error.is_temporary() && error.message().contains("may still be"), "{error}");
    assert_eq!(store.head(&key("/not")).await.expect("an answer"), None);
}

#[tokio::test]
async fn a_change_in_doubt_is_unavailable_whatever_its_last_attempt_was_answered() {
    const DENIED: Fate = Fate::Status(403, "<Error><Code>AccessDenied</Code></Error>");
    const QUOTA: Fate = Fate::Status(403, "<Error><Code>QuotaExceeded</Code></Error>");
    let server = Server::start().await;
    let store = server.store().await;
    put(&store, &key("/a"), "one").await;
    for fate in [DENIED, QUOTA] {
        server.plan(Method::PUT, [FAULT, fate.clone(), FAULT, fate.clone()]);
        server.plan(Method::DELETE, [FAULT, fate]);
        for error in [
            store.put(&key("/new"), value("two"), &Precondition::Absent).await.expect_err("it failed"),
            store.put(&key("/a"), value("two"), &Precondition::Any).await.expect_err("it failed"),
            store.delete(&key("/a"), &Precondition::Any).await.expect_err("it failed"),
        ] {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            assert!(error.message().contains("may still be"), "{error}");
        }
    }
}

/// Stages a content of one part for the value at `name`.
async fn stage(store: &BucketStore, name: &Key, text: &'static str) -> (StagedContent, NewValue) {
    let token = store.begin(name, at(1), at(5)).await.expect("it begins");
    store.append(&token, 0, Bytes::from_static(text.as_bytes())).await.expect("it is stored");
    let version = ValueContent::Bytes(Bytes::from_static(text.as_bytes())).version();
    let staged = StagedContent { token, size: text.len() as u64, version };
    (staged.clone(), NewValue::staged(staged, at(5)).created_at(at(1)))
}

async fn assert_not_staged(store: &BucketStore, name: &Key, value: NewValue) {
    let error = store.put(name, value, &Precondition::Any).await.expect_err("the content is not staged any more");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
}

#[tokio::test]
async fn a_staged_put_that_failed_succeeds_at_the_second_attempt() {
    let server = Server::start().await;
    let store = BucketStore::open(server.config().max_retries(0)).await.expect("a store");
    for fate in [FAULT, Fate::Cut] {
        let name = key(&format!("/{}", fastrand::u64(..)));
        let expected = Precondition::Version(put(&store, &name, "one").await.version);
        let (_, two) = stage(&store, &name, "two").await;
        server.plan(Method::POST, [fate.clone()]);
        let error = store.put(&name, two.clone(), &expected).await.expect_err("the completion failed");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{fate:?}: {error}");
        assert_eq!(content(&store, &name).await.as_deref(), Some("one"));
        let stored = done(store.put(&name, two.clone(), &expected).await.expect("a put"));
        assert_eq!(store.head(&name).await.expect("an answer"), Some(stored));
        assert_eq!(content(&store, &name).await.as_deref(), Some("two"));
        assert_not_staged(&store, &name, two).await;
    }
}

#[tokio::test]
async fn a_staged_put_whose_answer_was_lost_is_recognised_at_the_second_attempt() {
    let server = Server::start().await;
    let store = BucketStore::open(server.config().max_retries(0)).await.expect("a store");
    let expected = Precondition::Version(put(&store, &key("/a"), "one").await.version);
    let (_, two) = stage(&store, &key("/a"), "two").await;
    // The object is looked up twice before the completion, and once after it failed.
    server.plan(Method::HEAD, [Fate::Done, Fate::Done, Fate::Status(500, "")]);
    server.plan(Method::POST, [Fate::Lost]);
    let error = store.put(&key("/a"), two.clone(), &expected).await.expect_err("nothing is known");
    assert!(error.message().contains("is unknown"), "{error}");
    server.take_seen(&Method::POST);
    let stored = done(store.put(&key("/a"), two.clone(), &expected).await.expect("it was applied"));
    assert_eq!(server.take_seen(&Method::POST), 0, "the upload is not completed again");
    assert_eq!(store.head(&key("/a")).await.expect("an answer"), Some(stored));
    assert_eq!(content(&store, &key("/a")).await.as_deref(), Some("two"));
    assert_not_staged(&store, &key("/a"), two).await;
}

#[tokio::test]
async fn a_staged_put_whose_completion_was_not_sent_has_a_known_outcome() {
    let server = Server::start().await;
    let config = server.config().max_retries(0).request_timeout(Duration::from_secs(1));
    let store = BucketStore::open(config.retry_timeout(Duration::from_secs(1))).await.expect("a store");
    let (_, value) = stage(&store, &key("/a"), "text").await;
    for fate in [Fate::Status(500, ""), Fate::Never] {
        // The second of two requests for the version of the object, right before the completion.
        server.plan(Method::HEAD, [Fate::Done, fate.clone()]);
        server.take_seen(&Method::POST);
        let error = store.put(&key("/a"), value.clone(), &Precondition::Absent).await.expect_err("it failed");
        assert!(error.is_temporary(), "{fate:?}: {error}");
        assert_eq!(server.take_seen(&Method::POST), 0, "{fate:?}");
        assert!(!error.message().contains("may still be") && !error.message().contains("unknown"), "{fate:?}: {error}");
    }
    done(store.put(&key("/a"), value, &Precondition::Absent).await.expect("a put"));
}

#[tokio::test]
async fn a_large_put_is_tried_again_although_its_parts_cannot_be_removed() {
    let server = Server::start().await;
    let store = BucketStore::open(server.config().max_retries(0)).await.expect("a store");
    let one = put(&store, &key("/a"), "one").await;
    let value = NewValue::new(Bytes::from(vec![b'x'; (16 << 20) + 1]), at(5));
    // The first request begins the upload, the second is refused, so that the put is tried again.
    server.plan(Method::POST, [Fate::Done, Fate::Status(412, "")]);
    server.plan(Method::DELETE, [Fate::Status(500, "")]);
    let outcome = store.put(&key("/a"), value, &Precondition::Version(one.version.clone())).await;
    assert!(outcome.as_ref().is_ok_and(|outcome| matches!(outcome, PutOutcome::Applied(_))), "{outcome:?}");
}

#[tokio::test]
async fn a_staged_put_that_failed_overwrites_no_later_change_and_can_be_discarded() {
    let server = Server::start().await;
    let store = BucketStore::open(server.config().max_retries(0)).await.expect("a store");
    let expected = Precondition::Version(put(&store, &key("/a"), "one").await.version);
    let (staged, two) = stage(&store, &key("/a"), "two").await;
    server.plan(Method::POST, [FAULT]);
    store.put(&key("/a"), two.clone(), &expected).await.expect_err("the completion failed");
    let three = put(&store, &key("/a"), "three").await;
    assert_eq!(refused(store.put(&key("/a"), two.clone(), &expected).await.expect("an answer")), Some(three));
    server.take_seen(&Method::DELETE);
    store.discard(&staged.token).await.expect("it is discarded");
    assert_eq!(server.take_seen(&Method::DELETE), 1, "the parts are removed from the bucket");
    assert_not_staged(&store, &key("/a"), two).await;
    assert_eq!(content(&store, &key("/a")).await.as_deref(), Some("three"));
}

#[tokio::test]
async fn a_put_that_takes_too_long_says_that_it_may_be_made() {
    let server = Server::start().await;
    let config = server.config().max_retries(0).request_timeout(Duration::from_millis(300));
    // A busy machine may need longer than this short time at first.
    let store = loop {
        match BucketStore::open(config.clone()).await {
            Ok(store) => break store,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
    };
    server.plan(Method::PUT, [Fate::Never]);
    let error = store.put(&key("/a"), value("one"), &Precondition::Absent).await.expect_err("no answer");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.is_temporary() && error.message().contains("may still be"), "{error}");
    assert!(error.for_model().contains("read the file again"), "{}", error.for_model());
}

/// Packets are dropped, or the service is frozen: what is sent gets no answer, and no connection is closed.
#[tokio::test(start_paused = true)]
async fn a_network_that_is_dead_fails_each_operation_after_35_s() {
    let server = Server::start().await;
    let store = server.store().await;
    let large = || NewValue::new(Bytes::from(vec![1; (16 << 20) + 1]), at(5));
    let _ = done(store.put(&key("/a"), value("one"), &Precondition::Absent).await.expect("a put"));
    for method in [Method::GET, Method::HEAD, Method::PUT, Method::POST, Method::DELETE] {
        server.plan(method, vec![Fate::Never; 100]);
    }
    let request = ListRequest::all(vfs_core::VfsPath::root());
    let (a, new, namespace) = (key("/a"), key("/new"), Namespace::default());
    let failures: [(&str, BoxFuture<'_, Error>); 6] = [
        ("head", Box::pin(async { store.head(&a).await.expect_err("no answer") })),
        ("get", Box::pin(async { store.get(&a, None).await.expect_err("no answer") })),
        ("list", Box::pin(async { store.list(&namespace, &request).await.expect_err("no answer") })),
        ("delete", Box::pin(async { store.delete(&a, &Precondition::Any).await.expect_err("no answer") })),
        ("put", Box::pin(async { store.put(&new, value("two"), &Precondition::Absent).await.expect_err("no answer") })),
        ("large", Box::pin(async { store.put(&new, large(), &Precondition::Absent).await.expect_err("no answer") })),
    ];
    for (operation, failure) in failures {
        let start = tokio::time::Instant::now();
        let error = failure.await;
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{operation}: {error}");
        assert!(error.is_temporary() && error.message().contains("did not answer"), "{operation}: {error}");
        assert!(start.elapsed() <= Duration::from_secs(35), "{operation}: {:?}", start.elapsed());
        assert!(!error.for_model().contains("narrow"), "{operation}: {}", error.for_model());
    }
}

#[tokio::test]
async fn a_large_value_is_read_in_pieces_of_one_version() {
    let server = Server::start().await;
    let store = server.store().await;
    let hasty = server.config().max_retries(0).request_timeout(Duration::from_secs(60));
    let hasty = BucketStore::open(hasty).await.expect("a store");
    let content: Vec<u8> = (0..(20 << 20) + 7_u32).map(|at| (at % 251) as u8).collect();
    let large = NewValue::new(Bytes::from(content.clone()), at(5));
    let _ = done(store.put(&key("/large"), large, &Precondition::Absent).await.expect("a put"));

    // No answer is ever longer than 10 MiB: an object of more takes longer than any time that there is for one.
    server.plan(Method::GET, vec![Fate::Stalls(10 << 20); 8]);
    let found = hasty.get(&key("/large"), None).await.expect("it is read").expect("it is there");
    assert!(found.content == content);
    server.plan(Method::GET, []);
    for range in
        [0..1, (8 << 20) - 1..(8 << 20) + 1, 5..(19 << 20), (20 << 20)..u64::MAX, (20 << 20) + 7..(20 << 20) + 8]
    {
        let found = store.get(&key("/large"), Some(range.clone())).await.expect("it is read").expect("it is there");
        let within = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(content.len());
        assert!(found.content == content[within(range.start)..within(range.end)], "{range:?}");
    }
    let _ = done(store.put(&key("/empty"), value(""), &Precondition::Absent).await.expect("a put"));
    assert_eq!(content_of(&store, "/empty").await, "");

    // Between the first piece and the others another process puts a new version.
    let gate = Arc::new(Gate::default());
    server.plan(Method::GET, [Fate::Done, Fate::Waits(Arc::clone(&gate))]);
    let reading = tokio::spawn({
        let store = store.clone();
        async move { content_of(&store, "/large").await }
    });
    gate.is_reached().await;
    let new = vec![7; 20 << 20];
    let put = NewValue::new(Bytes::from(new.clone()), at(6));
    let _ = done(store.put(&key("/large"), put, &Precondition::Any).await.expect("a put"));
    gate.open();
    assert!(reading.await.expect("no panic") == new);
}

async fn content_of(store: &BucketStore, text: &str) -> Bytes {
    store.get(&key(text), None).await.expect("it is read").expect("it is there").content
}

#[tokio::test]
async fn a_removal_whose_answer_was_lost_is_done() {
    let server = Server::start().await;
    let store = server.store().await;
    for fate in [Fate::Lost, Fate::Cut, FAULT] {
        let stored = put(&store, &key("/a"), "one").await;
        server.plan(Method::DELETE, [fate]);
        let expected = Precondition::Version(stored.version.clone());
        assert_eq!(done(store.delete(&key("/a"), &expected).await.expect("an answer")), stored);
        assert_eq!(store.head(&key("/a")).await.expect("an answer"), None);
    }
}

#[tokio::test]
async fn what_cannot_be_known_is_said() {
    let server = Server::start().await;
    let patient = server.store().await;
    let hasty = BucketStore::open(server.config().max_retries(0)).await.expect("a store");
    let first = put(&patient, &key("/a"), "one").await;
    let expected = Precondition::Version(first.version);

    server.plan(Method::PUT, [Fate::Cut]);
    let error = hasty.put(&key("/a"), value("two"), &expected).await.expect_err("it was cut");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(!error.message().contains("is unknown"), "what was there is there still: {error}");

    server.plan(Method::PUT, [Fate::Lost]);
    let outcome = hasty.put(&key("/a"), value("two"), &expected).await.expect("it was made, and that can be seen");
    assert!(matches!(outcome, PutOutcome::Applied(_)));

    server.plan(Method::PUT, [Fate::Lost]);
    let second = done(patient.put(&key("/a"), value("three"), &Precondition::Any).await.expect("a put"));
    assert_eq!(patient.head(&key("/a")).await.expect("an answer"), Some(second.clone()));

    // Another has changed it since, so that its mark is gone.
    server.plan(Method::PUT, [FAULT]);
    let stale = Precondition::Version("0".into());
    let error = patient.put(&key("/a"), value("four"), &stale).await.expect_err("one attempt had no answer");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("is unknown"), "{error}");
    assert_eq!(content(&patient, &key("/a")).await.as_deref(), Some("three"));
}

#[tokio::test]
async fn an_overloaded_service_is_asked_again_and_not_for_ever() {
    let server = Server::start().await;
    let store = BucketStore::open(server.config().max_retries(2)).await.expect("a store");
    let busy = Fate::Status(503, "<Error><Code>SlowDown</Code></Error>");
    put(&store, &key("/a"), "one").await;
    server.plan(Method::GET, vec![busy.clone(); 2]);
    assert_eq!(content(&store, &key("/a")).await.as_deref(), Some("one"));
    server.take_seen(&Method::GET);
    server.plan(Method::GET, vec![busy; 20]);
    let error = store.list(&Namespace::default(), &ListRequest::all(path("/"))).await.expect_err("it is overloaded");
    assert_eq!((error.kind(), server.take_seen(&Method::GET)), (ErrorKind::Unavailable, 3));
    assert!(error.message().contains("overloaded"), "{error}");
}

#[tokio::test]
async fn a_refusal_is_no_fault_and_is_not_tried_again() {
    let server = Server::start().await;
    let store = server.store().await;
    let stored = put(&store, &key("/a"), "one").await;
    server.take_seen(&Method::PUT);
    assert_eq!(refused(store.put(&key("/a"), value("two"), &Precondition::Absent).await.expect("a put")), Some(stored));
    assert_eq!(server.take_seen(&Method::PUT), 1);
}

async fn refused_to_open(url: &str) -> Error {
    let config = BucketConfig::new(url).expect("a configuration").max_retries(1).retry_timeout(Duration::from_secs(1));
    let error = BucketStore::open(config).await.expect_err("it cannot be opened");
    let printed = format!("{error} {error:?} {}", error.for_model());
    assert!(!printed.contains("hidden"), "{printed}");
    assert!(!error.for_model().contains("s3://"), "{}", error.for_model());
    error
}

#[tokio::test]
async fn what_a_new_user_meets_first_reads_well() {
    let server = Server::start().await;
    let closed = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        listener.local_addr().expect("an address")
    };
    for (url, kind, words) in [
        (format!("{}&secret_access_key=secret", server.url("missing")), ErrorKind::InvalidArgument, "no such bucket"),
        (
            format!("{}&secret_access_key=hidden", server.url("files")),
            ErrorKind::PermissionDenied,
            "the secret does not belong",
        ),
        (
            format!("{}&secret_access_key=hidden", server.url("files").replace("_id=key", "_id=hidden")),
            ErrorKind::PermissionDenied,
            "does not know the access key",
        ),
        (
            format!("s3://b?endpoint=http://{closed}&allow_http=true&access_key_id=hidden&secret_access_key=hidden"),
            ErrorKind::Unavailable,
            "cannot be reached",
        ),
        (
            format!("s3://b?endpoint=http://{closed}&access_key_id=hidden&secret_access_key=hidden"),
            ErrorKind::InvalidArgument,
            "allow_http=true",
        ),
        ("s3://b?access_key_id=hidden".to_owned(), ErrorKind::InvalidArgument, "belong together"),
    ] {
        let error = refused_to_open(&url).await;
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(words), "{error}");
    }
}

#[tokio::test]
async fn credentials_that_expire_are_named() {
    let server = Server::start().await;
    let store = server.store().await;
    put(&store, &key("/a"), "one").await;
    let expired = "<Error><Code>ExpiredToken</Code><Message>m</Message><Token-0>hidden</Token-0></Error>";
    server.plan(Method::PUT, [Fate::Status(400, expired)]);
    let error = store.put(&key("/b"), value("x"), &Precondition::Absent).await.expect_err("they expired");
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert!(error.message().contains("expired") && !format!("{error:?}").contains("hidden"), "{error:?}");
    server.plan(Method::HEAD, [Fate::Status(403, "")]);
    assert_eq!(store.head(&key("/a")).await.expect_err("it is denied").kind(), ErrorKind::PermissionDenied);
}
