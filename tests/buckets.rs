//! Buckets for the laws of stores and of files.

use std::net::SocketAddr;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use vfs_core::Result;
use vfs_store::{BucketConfig, BucketStore};
use vfs_testkit::{StoreTarget, Times};

/// At an S3 server in this process, on files of a directory.
pub(crate) async fn s3s_fs() -> Result<StoreTarget> {
    let root = tempfile::tempdir().expect("a directory can be made");
    std::fs::create_dir(root.path().join("laws")).expect("a bucket is a directory");
    let mut service = S3ServiceBuilder::new(FileSystem::new(root.path()).expect("it serves the directory"));
    service.set_auth(SimpleAuth::from_single("key", "secret"));
    let service = service.build();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it has an address");
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let service = service.clone();
            // A connection that breaks is its client's to tell of.
            tokio::spawn(async move {
                let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(socket), service).await;
            });
        }
    });
    let target = opened("laws", &format!("http://{address}")).await?.holding(root);
    let except = |target: StoreTarget, (laws, reason): &(&[&'static str], &'static str)| {
        laws.iter().fold(target, |target, law| target.except(law, reason))
    };
    Ok(MISSING_IN_S3S_FS.iter().fold(target, except))
}

/// What s3s-fs cannot do.
const MISSING_IN_S3S_FS: &[(&[&str], &str)] = &[
    (
        &["SR1", "SR2", "SR3", "SR4", "SR5", "SR6", "SR7", "SR8"],
        "s3s-fs looks at a condition and then puts, with other requests in between",
    ),
    (
        &["SV3", "SE7", "SX3", "SL1", "SL2", "SL3", "SL4", "SL6", "SL7", "SL8", "SA1", "SA2", "SA3", "SN5", "SO1"],
        "s3s-fs keeps objects as files, and those cannot be below one another",
    ),
    (&["SN6", "SN7", "SA8"], "s3s-fs makes file names of keys, which are too long then"),
];

/// In a new bucket of moto's server.
pub(crate) async fn moto(endpoint: String) -> Result<StoreTarget> {
    let bucket = format!("laws-{:016x}", fastrand::u64(..));
    let address: SocketAddr =
        endpoint.trim_start_matches("http://").parse().expect("VFS_TEST_S3 is http://address:port");
    let mut connection = TcpStream::connect(address).await.expect("VFS_TEST_S3 answers");
    let request =
        format!("PUT /{bucket} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await.expect("the request is sent");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.expect("there is an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    opened(&bucket, &endpoint).await
}

async fn opened(bucket: &str, endpoint: &str) -> Result<StoreTarget> {
    let keys = "access_key_id=key&secret_access_key=secret&region=us-east-1";
    let config = BucketConfig::new(&format!("s3://{bucket}/laws?endpoint={endpoint}&allow_http=true&{keys}"))?;
    let (first, second) = (BucketStore::open(config.clone()).await?, BucketStore::open(config).await?);
    Ok(StoreTarget::new(first).with_second(second).with_times(Times::OfStore))
}
