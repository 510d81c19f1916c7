//! Buckets to test with.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
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
use tokio::sync::Notify;
use vfs_store::{BucketConfig, BucketStore};

/// A bucket in memory, of `object_store` itself.
pub(crate) fn memory() -> BucketStore {
    BucketStore::new(Arc::new(InMemory::new()), "team/files").expect("a store")
}

/// What happens to one request.
#[derive(Debug, Clone)]
pub(crate) enum Fate {
    /// The connection is cut before anything is done.
    Cut,
    /// It is done, and the connection cut before the answer.
    Lost,
    /// It is not done, and this is the answer.
    Status(u16, &'static str),
    /// It is done, and this is the answer.
    DoneBut(u16, &'static str),
    /// It is done, and the connection cut in the middle of the answer.
    Cropped,
    /// It is done and answered, but of the answer only so many bytes ever come.
    Stalls(usize),
    /// It is done and answered.
    Done,
    /// It is not done, and never answered.
    Never,
    /// It is done and answered once somebody opens the gate.
    Waits(Arc<Gate>),
}

/// Where a request waits.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    reached: Notify,
    opened: Notify,
}

impl Gate {
    /// Waits until the request has come.
    pub(crate) async fn is_reached(&self) {
        self.reached.notified().await;
    }

    pub(crate) fn open(&self) {
        self.opened.notify_one();
    }
}

/// The fates of the next requests of each method.
type Plan = Arc<Mutex<HashMap<Method, VecDeque<Fate>>>>;

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
        self.plan.lock().expect("a plan").insert(method, fates.into_iter().collect());
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
                    plan.get_mut(request.method()).and_then(VecDeque::pop_front)
                };
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
                    Some(Fate::DoneBut(status, body)) => {
                        let _ = hyper::service::Service::call(&service, request).await;
                        let body = s3s::Body::from(body.to_owned());
                        Ok(hyper::Response::builder().status(status).body(body).expect("an answer"))
                    }
                    Some(Fate::Cropped) => {
                        let answer = call(&service, request).await?;
                        Ok(answer.map(|body| Shortened::of(body, 10, End::Cut)))
                    }
                    Some(Fate::Stalls(bytes)) => {
                        let answer = call(&service, request).await?;
                        Ok(answer.map(|body| Shortened::of(body, bytes, End::Silence)))
                    }
                    Some(Fate::Never) => std::future::pending().await,
                    Some(Fate::Waits(gate)) => {
                        gate.reached.notify_one();
                        gate.opened.notified().await;
                        call(&service, request).await
                    }
                    Some(Fate::Done) | None => call(&service, request).await,
                }
            }
        });
        tokio::spawn(async move {
            // A connection that is cut is what the tests are about.
            let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(socket), answer).await;
        });
    }
}

fn cut() -> std::io::Error {
    std::io::Error::other("cut")
}

async fn call(service: &S3Service, request: Request<Incoming>) -> std::io::Result<hyper::Response<s3s::Body>> {
    hyper::service::Service::call(service, request).await.map_err(|_| cut())
}

/// The beginning of an answer.
struct Shortened {
    body: s3s::Body,
    left: usize,
    end: End,
}

/// What comes after the beginning.
enum End {
    Cut,
    Silence,
}

impl Shortened {
    fn of(body: s3s::Body, bytes: usize, end: End) -> s3s::Body {
        s3s::Body::http_body(Self { body, left: bytes, end })
    }
}

impl Body for Shortened {
    type Data = Bytes;
    type Error = s3s::StdError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, s3s::StdError>>> {
        if self.left == 0 {
            return match self.end {
                End::Cut => Poll::Ready(Some(Err(cut().into()))),
                End::Silence => Poll::Pending,
            };
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(frame.map(|frame| {
            frame.map(|frame| {
                frame.map_data(|data: Bytes| {
                    let part = data.slice(..data.len().min(self.left));
                    self.left -= part.len();
                    part
                })
            })
        }))
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

/// After this time without an answer, moto's server hangs. It is one process of Python, and slow on a machine with other work.
const HANG_TIMEOUT: Duration = Duration::from_secs(600);

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
        let config = BucketConfig::new(&url).expect("a configuration");
        let config = config.request_timeout(HANG_TIMEOUT).retry_timeout(HANG_TIMEOUT);
        BucketStore::open(config).await.expect("a store")
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
