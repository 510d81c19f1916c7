//! Buckets for the laws of stores and of files.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use vfs_core::Result;
use vfs_store::{BucketConfig, BucketStore};
use vfs_store_testkit::StoreTarget;

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

/// After this time without an answer, a service hangs. One that is a process of Python is slow on a machine with other work.
const HANG_TIMEOUT: Duration = Duration::from_secs(600);

/// The bucket `bucket` of the service at `endpoint`.
pub(crate) async fn opened(bucket: &str, endpoint: &str) -> Result<StoreTarget> {
    let keys = "access_key_id=key&secret_access_key=secret&region=us-east-1";
    let config = BucketConfig::new(&format!("s3://{bucket}/laws?endpoint={endpoint}&allow_http=true&{keys}"))?;
    let config = config.request_timeout(HANG_TIMEOUT).retry_timeout(HANG_TIMEOUT);
    StoreTarget::opened_by(move || BucketStore::open(config.clone())).await
}
