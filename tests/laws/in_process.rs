//! An S3 server in this process, for the laws of stores.

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use tokio::net::TcpListener;
use vfs_core::Result;
use vfs_store_testkit::StoreTarget;

use crate::buckets::opened;

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
            // If a connection breaks, its client reports the error.
            tokio::spawn(async move {
                let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(socket), service).await;
            });
        }
    });
    let target = opened("laws", &format!("http://{address}")).await?.with_guard(root);
    let except = |target: StoreTarget, (laws, reason): &(&[&'static str], &'static str)| {
        laws.iter().fold(target, |target, law| target.except(law, reason))
    };
    Ok(MISSING_IN_S3S_FS.iter().fold(target, except))
}

/// Laws that s3s-fs breaks, with the reasons.
const MISSING_IN_S3S_FS: &[(&[&str], &str)] = &[
    (
        &["SR1", "SR2", "SR3", "SR4", "SR5", "SR6", "SR7", "SR8"],
        "s3s-fs looks at a condition and then puts, with other requests in between",
    ),
    (
        &[
            "SV3", "SV10", "SV11", "SE7", "SX3", "SL1", "SL2", "SL3", "SL4", "SL6", "SL7", "SL8", "SA1", "SA2", "SA3",
            "SN5", "SO1",
        ],
        "s3s-fs keeps objects as files, and those cannot be below one another",
    ),
    (&["SN6", "SN7", "SA8"], "s3s-fs makes file names of keys, which are too long then"),
];
