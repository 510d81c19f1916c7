//! Servers, stores and short words for tests.

use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use vfs_core::VfsPath;
use vfs_store::{Key, Namespace, NewValue, PutOutcome, RedisConfig, RedisStore, Store, StoredMeta};

/// How long a test waits for what a correct store always does. This bounds a hang and says nothing about speed.
pub(crate) const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// `config` with times that no server exceeds, however busy it is: a test of a limit sets that limit itself.
pub(crate) fn patient(config: RedisConfig) -> RedisConfig {
    config.connect_timeout(HANG_TIMEOUT).timeout(HANG_TIMEOUT).patience(10 * HANG_TIMEOUT)
}

/// The server that all tests share.
pub(crate) struct Shared {
    pub(crate) url: String,
    pub(crate) prefix: String,
}

impl Shared {
    /// The shared server with a prefix that no other test has; says why where there is none.
    pub(crate) fn find() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let Ok(url) = std::env::var("VFS_TEST_REDIS") else {
            println!("skipped: VFS_TEST_REDIS is not set to the URL of a Redis server");
            return None;
        };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Some(Self { url, prefix: format!("test-{:08x}-{number}", fastrand::u32(..)) })
    }

    pub(crate) fn config(&self) -> RedisConfig {
        patient(RedisConfig::new(&self.url).and_then(|config| config.prefix(&self.prefix)).expect("a configuration"))
    }

    pub(crate) async fn store(&self) -> RedisStore {
        RedisStore::open(self.config()).await.expect("the server in VFS_TEST_REDIS answers")
    }

    /// Sends what no store would.
    pub(crate) async fn send(&self, command: &[&[u8]]) -> redis::Value {
        let client = redis::Client::open(self.url.as_str()).expect("a URL");
        let mut connection = client.get_multiplexed_async_connection().await.expect("a connection");
        let mut cmd = redis::Cmd::new();
        for argument in command {
            cmd.arg(*argument);
        }
        cmd.query_async(&mut connection).await.expect("an answer")
    }

    /// A key of this prefix.
    pub(crate) fn key(&self, rest: &str) -> Vec<u8> {
        format!("{}:{rest}", self.prefix).into_bytes()
    }
}

/// A server of the test's own.
pub(crate) struct Server {
    pub(crate) port: u16,
    dir: TempDir,
    options: Vec<String>,
    child: Option<Child>,
}

impl Server {
    /// Starts one that writes each change to its disk before it acknowledges it; says why where it cannot.
    pub(crate) async fn start(options: &[&str]) -> Option<Self> {
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let dir = TempDir::new().expect("a directory");
        let mut server = Self { port: vfs_testkit::server_port(), dir, options, child: None };
        server.launch().await.then_some(server)
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) async fn store(&self) -> RedisStore {
        RedisStore::open(patient(RedisConfig::new(&self.url()).expect("a URL"))).await.expect("the server answers")
    }

    /// Kills it as a power cut would, and starts it with what is on its disk.
    pub(crate) async fn crash_and_restart(&mut self) {
        self.child.take().expect("it runs").kill().await.expect("it is killed");
        assert!(self.launch().await);
    }

    async fn launch(&mut self) -> bool {
        let mut command = Command::new("redis-server");
        command.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--appendonly", "yes", "--appendfsync", "always", "--dir"]).arg(self.dir.path());
        command.args(&self.options).stdout(Stdio::null()).kill_on_drop(true);
        let Ok(child) = command.spawn() else {
            println!("skipped: the program redis-server is not installed");
            return false;
        };
        self.child = Some(child);
        // It takes connections as soon as it listens, and answers when it has loaded its data.
        while TcpStream::connect(("127.0.0.1", self.port)).await.is_err() {
            tokio::task::yield_now().await;
        }
        true
    }
}

pub(crate) fn namespace(text: &str) -> Namespace {
    Namespace::parse(text).expect("a namespace")
}

pub(crate) fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a path")
}

/// A key in the namespace without components.
pub(crate) fn key(text: &str) -> Key {
    Key::new(Namespace::default(), path(text))
}

pub(crate) fn value(content: impl Into<Bytes>) -> NewValue {
    NewValue::new(content.into(), now())
}

/// A time that every store keeps as it is.
pub(crate) fn now() -> DateTime<Utc> {
    DateTime::from_timestamp_micros(Utc::now().timestamp_micros()).expect("a time")
}

pub(crate) fn done(outcome: PutOutcome) -> StoredMeta {
    match outcome {
        PutOutcome::Applied(stored) => stored,
        PutOutcome::PreconditionFailed(found) => panic!("refused as there is {found:?}"),
    }
}

pub(crate) async fn content(store: &RedisStore, at: &str) -> Option<Bytes> {
    store.get(&key(at), None).await.expect("an answer").map(|value| value.content)
}
