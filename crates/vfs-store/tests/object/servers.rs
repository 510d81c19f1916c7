//! Buckets to test with.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use object_store::memory::InMemory;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use vfs_store::{BucketConfig, BucketStore};

/// A bucket in memory, of `object_store` itself.
pub(crate) fn memory() -> BucketStore {
    BucketStore::new(Arc::new(InMemory::new()), "team/files").expect("a store")
}

/// What happens to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The connection is cut before anything is done.
    Cut,
    /// It is done, and the connection cut before the answer.
    Lost,
    /// It is not done, and this is the answer.
    Status(u16, &'static str),
}

/// Which requests a fate is for, and the fates of the next ones of them.
type Plan = Arc<Mutex<(Option<Method>, VecDeque<Fate>)>>;

/// An S3 server in this process, on files of a directory that goes with it.
pub(crate) struct Server {
    address: std::net::SocketAddr,
    plan: Plan,
    seen: Arc<Mutex<Vec<Method>>>,
    _root: TempDir,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let root = TempDir::new().expect("a directory");
        // A bucket is a directory.
        let bucket = tempfile::Builder::new().prefix("files").rand_bytes(0).tempdir_in(root.path()).expect("a bucket");
        let _ = bucket.keep();
        let service = {
            let mut builder = S3ServiceBuilder::new(FileSystem::new(root.path()).expect("a file system"));
            builder.set_auth(SimpleAuth::from_single("key", "secret"));
            builder.build()
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let plan = Plan::default();
        let seen = Arc::default();
        tokio::spawn(serve(listener, service, Arc::clone(&plan), Arc::clone(&seen)));
        Self { address, plan, seen, _root: root }
    }

    pub(crate) fn url(&self, bucket: &str) -> String {
        format!(
            "s3://{bucket}/team?endpoint=http://{}&allow_http=true&access_key_id=key&region=us-east-1",
            self.address
        )
    }

    pub(crate) fn config(&self) -> BucketConfig {
        BucketConfig::new(&format!("{}&secret_access_key=secret", self.url("files"))).expect("a configuration")
    }

    pub(crate) async fn store(&self) -> BucketStore {
        BucketStore::open(self.config()).await.expect("a store")
    }

    /// What happens to the next requests of a method.
    pub(crate) fn plan(&self, method: Method, fates: impl IntoIterator<Item = Fate>) {
        *self.plan.lock().expect("a plan") = (Some(method), fates.into_iter().collect());
    }

    /// How many requests of a method came since it was asked last.
    pub(crate) fn take_seen(&self, method: &Method) -> usize {
        let seen = std::mem::take(&mut *self.seen.lock().expect("the requests"));
        seen.iter().filter(|seen| *seen == method).count()
    }
}

async fn serve(listener: TcpListener, service: S3Service, plan: Plan, seen: Arc<Mutex<Vec<Method>>>) {
    loop {
        let (socket, _) = listener.accept().await.expect("a connection");
        let (service, plan, seen) = (service.clone(), Arc::clone(&plan), Arc::clone(&seen));
        let answer = service_fn(move |request: Request<Incoming>| {
            let (service, plan, seen) = (service.clone(), Arc::clone(&plan), Arc::clone(&seen));
            async move {
                seen.lock().expect("the requests").push(request.method().clone());
                let fate = {
                    let mut plan = plan.lock().expect("a plan");
                    if plan.0.as_ref() == Some(request.method()) { plan.1.pop_front() } else { None }
                };
                let cut = || std::io::Error::other("cut");
                match fate {
                    Some(Fate::Cut) => Err(cut()),
                    Some(Fate::Status(status, body)) => {
                        let body = s3s::Body::from(body.to_owned());
                        Ok(hyper::Response::builder().status(status).body(body).expect("an answer"))
                    }
                    Some(Fate::Lost) => {
                        let _ = hyper::service::Service::call(&service, request).await;
                        Err(cut())
                    }
                    None => hyper::service::Service::call(&service, request).await.map_err(|_| cut()),
                }
            }
        });
        tokio::spawn(async move {
            // A connection that is cut is what the tests are about.
            let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(socket), answer).await;
        });
    }
}

/// A new bucket at moto's server; `None`, with a line that says so, where the environment names none.
#[expect(clippy::print_stdout, reason = "whoever reads what a test printed should see that it was skipped")]
pub(crate) async fn moto() -> Option<MotoBucket> {
    let Ok(endpoint) = std::env::var("VFS_TEST_S3") else {
        println!("skipped: VFS_TEST_S3 names no server; see .ci/moto");
        return None;
    };
    let bucket = MotoBucket { endpoint, name: format!("test-{:016x}", fastrand::u64(..)) };
    bucket.send("PUT", "").await;
    Some(bucket)
}

/// A bucket of a test's own at moto's server.
pub(crate) struct MotoBucket {
    endpoint: String,
    pub(crate) name: String,
}

impl MotoBucket {
    pub(crate) async fn store(&self) -> BucketStore {
        let url = format!(
            "s3://{}/team?endpoint={}&allow_http=true&access_key_id=k&secret_access_key=s&region=us-east-1",
            self.name, self.endpoint
        );
        BucketStore::open(BucketConfig::new(&url).expect("a configuration")).await.expect("a store")
    }

    /// Sends a request as another tool would; `key` is spelled as in a URL.
    pub(crate) async fn send(&self, method: &str, key: &str) {
        let host = self.endpoint.trim_start_matches("http://").trim_end_matches('/');
        let mut connection = TcpStream::connect(host).await.expect("a connection");
        let request = format!(
            "{method} /{}{key} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            self.name
        );
        connection.write_all(request.as_bytes()).await.expect("it is sent");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}
