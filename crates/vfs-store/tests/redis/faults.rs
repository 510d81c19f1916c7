//! What a user is told who meets a server that is not there, or is not as it should be.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use vfs_core::{Error, ErrorKind};
use vfs_store::{Inspect as _, Precondition, PutOutcome, RedisConfig, RedisStore, Store};

use crate::support::{HANG_TIMEOUT, Server, content, done, key, value};

/// Why a server that answers refuses to be opened.
async fn refusal(url: &str) -> Error {
    refusal_within(url, HANG_TIMEOUT).await
}

/// Why the server cannot be opened, for which there is so much time.
async fn refusal_within(url: &str, time: Duration) -> Error {
    let config = RedisConfig::new(url).expect("a URL").connect_timeout(time).timeout(time);
    let error = RedisStore::open(config).await.expect_err("it is not opened");
    let shown = format!("{error} {error:?} {}", error.for_model());
    assert!(!shown.contains("hidden"), "{shown}");
    error
}

#[tokio::test]
async fn a_server_that_is_not_there() {
    // It holds the port and does not listen, so that no server of another test comes to be there.
    let held = TcpSocket::new_v4().expect("a socket");
    held.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let port = held.local_addr().expect("an address").port();
    let error = refusal(&format!("redis://:hidden@127.0.0.1:{port}")).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("nothing listens at 127.0.0.1") && error.message().contains("start"), "{error}");
    let error = refusal("redis://no-such-host.invalid").await;
    assert!(error.message().contains("cannot be found"), "{error}");
}

#[tokio::test]
async fn a_server_that_says_nothing_or_nonsense() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let short = Duration::from_millis(500);
    for scheme in ["redis", "rediss"] {
        let error = refusal_within(&format!("{scheme}://127.0.0.1:{port}"), short).await;
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
    tokio::spawn(async move {
        while let Ok((mut client, _)) = silent.accept().await {
            let _ = client.read(&mut [0; 1024]).await;
            let _ = client.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await;
        }
    });
    for scheme in ["redis", "rediss"] {
        let error = refusal_within(&format!("{scheme}://127.0.0.1:{port}"), short).await;
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
}

#[tokio::test]
async fn a_password_that_is_missing_or_wrong() {
    let Some(server) = Server::start(&["--requirepass", "right"]).await else { return };
    let error = refusal(&server.url()).await;
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert!(error.message().contains("asks for a password"), "{error}");
    for login in [":hidden", "ann:hidden"] {
        let error = refusal(&format!("redis://{login}@127.0.0.1:{}", server.port)).await;
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert!(error.message().contains("refused the user or password"), "{error}");
    }
    let url = format!("redis://:right@127.0.0.1:{}", server.port);
    let store = RedisStore::open(RedisConfig::new(&url).expect("a URL")).await.expect("it is opened");
    assert_eq!(store.to_string(), format!("Redis at 127.0.0.1:{} under 'vfs'", server.port));
    assert!(!format!("{store:?}").contains("right"), "{store:?}");
    let error = refusal(&format!("redis://:right@127.0.0.1:{}/99", server.port)).await;
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
}

#[tokio::test]
async fn a_user_without_rights() {
    let Some(server) = Server::start(&["--user", "ann", "on", ">hidden", "~vfs:*", "+@read", "+info"]).await else {
        return;
    };
    let url = format!("redis://ann:hidden@127.0.0.1:{}", server.port);
    let store = RedisStore::open(RedisConfig::new(&url).expect("a URL")).await.expect("it is opened");
    let error = store.put(&key("/a"), value("x"), &Precondition::Any).await.expect_err("it may not");
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
}

#[tokio::test]
async fn a_replica_that_is_read_only() {
    let Some(primary) = Server::start(&[]).await else { return };
    let store = primary.store().await;
    let _ = done(store.put(&key("/a"), value("x"), &Precondition::Absent).await.expect("it is put"));
    let port = primary.port.to_string();
    let Some(replica) = Server::start(&["--replicaof", "127.0.0.1", &port]).await else { return };
    // While it copies its primary it is there for nobody.
    let copied = async {
        loop {
            let error = refusal(&replica.url()).await;
            if error.kind() != ErrorKind::Unavailable {
                return error;
            }
        }
    };
    let error = tokio::time::timeout(HANG_TIMEOUT, copied).await.expect("it has copied its primary");
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert!(error.message().contains("address of the primary"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_full() {
    let Some(server) = Server::start(&["--maxmemory", "8mb"]).await else { return };
    let store = server.store().await;
    let mut number = 0;
    let error = loop {
        match store.put(&key(&format!("/{number}")), value(vec![b'x'; 100_000]), &Precondition::Absent).await {
            Ok(outcome) => drop(done(outcome)),
            Err(error) => break error,
        }
        number += 1;
    };
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert!(error.message().contains("maxmemory"), "{error}");
    let shown = error.for_model();
    assert!(!shown.contains("127.0.0.1") && !shown.contains("maxmemory"), "{shown}");
    assert_eq!(content(&store, &format!("/{number}")).await, None);
    let report = store.check().await.expect("a report");
    assert_eq!((report.files, report.problems.len()), (number, 0));
    for number in 0..number {
        let outcome = store.delete(&key(&format!("/{number}")), &Precondition::Any).await.expect("it is removed");
        assert!(matches!(outcome, PutOutcome::Applied(_)));
    }
    let _ = done(store.put(&key("/again"), value("x"), &Precondition::Absent).await.expect("it is put"));
}

#[tokio::test]
async fn a_server_with_tls() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let (certificate, secret) = (directory.path().join("certificate.pem"), directory.path().join("key.pem"));
    let mut openssl = tokio::process::Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]);
    openssl.args([
        "-addext",
        "subjectAltName=DNS:localhost",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
        "-keyout",
    ]);
    let Ok(made) = openssl.arg(&secret).arg("-out").arg(&certificate).output().await else {
        println!("skipped: the program openssl is not installed");
        return;
    };
    assert!(made.status.success(), "{made:?}");
    let (certificate_file, secret) = (certificate.display().to_string(), secret.display().to_string());
    let free = vfs_testkit::server_port();
    let options = ["--tls-port", &free.to_string(), "--tls-auth-clients", "no", "--tls-cert-file", &certificate_file];
    let files = ["--tls-key-file", &secret, "--tls-ca-cert-file", &certificate_file];
    let Some(_server) = Server::start(&[&options[..], &files[..]].concat()).await else { return };

    let url = format!("rediss://localhost:{free}");
    let error = refusal(&url).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("certificate"), "{error}");
    let config = RedisConfig::new(&url).expect("a URL");
    let error = RedisStore::open(config.clone().root_certificate("nonsense")).await.expect_err("no certificate");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    #[expect(clippy::disallowed_methods, reason = "it is the certificate that another program made for this test")]
    let pem = std::fs::read(&certificate).expect("it was made");
    let store = RedisStore::open(config.root_certificate(pem)).await.expect("it is trusted");
    let _ = done(store.put(&key("/a"), value("x"), &Precondition::Absent).await.expect("it is put"));
    assert_eq!(content(&store, "/a").await, Some("x".into()));
}
