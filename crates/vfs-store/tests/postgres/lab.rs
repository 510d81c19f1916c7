//! A schema of its own for each test.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::Duration;

use bytes::Bytes;
use chrono::Utc;
use futures::FutureExt;
use tokio_postgres::NoTls;
use vfs_core::VfsPath;
use vfs_store::{Key, Namespace, NewValue, PostgresConfig, PostgresStore};

/// How long a test waits for what a correct store always does. This bounds a hang and says nothing about speed.
pub(crate) const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// Longer than any test takes.
pub(crate) const LONG: Duration = Duration::from_secs(600);

/// `config` with times that no server exceeds, however busy it is: a test of a limit sets that limit itself.
pub(crate) fn patient(config: PostgresConfig) -> PostgresConfig {
    config.connect_timeout(LONG).pool_timeout(LONG).statement_timeout(LONG).lock_timeout(LONG).retry_for(LONG)
}

/// The first answer that is no error, of a store whose times are shorter than a busy server may take.
pub(crate) async fn until_ok<T>(ask: impl AsyncFn() -> vfs_core::Result<T>) -> T {
    let answer = async {
        loop {
            match ask().await {
                Ok(answer) => return answer,
                Err(error) => assert!(error.is_temporary(), "{error:?}"),
            }
        }
    };
    tokio::time::timeout(HANG_TIMEOUT, answer).await.expect("an answer before the bound for a hang")
}

/// Where a test works.
pub(crate) struct Lab {
    /// The server, without a schema.
    pub(crate) url: String,
    pub(crate) schema: String,
    /// A connection besides the store, in the schema.
    pub(crate) client: tokio_postgres::Client,
}

impl Lab {
    pub(crate) fn config(&self) -> PostgresConfig {
        patient(PostgresConfig::new(&self.url).expect("a URL").schema(&self.schema))
    }

    pub(crate) async fn store(&self) -> PostgresStore {
        PostgresStore::open(self.config()).await.expect("it opens")
    }
}

/// Runs `test` in a schema that is gone afterwards, or says why not.
pub(crate) async fn in_lab(test: impl AsyncFnOnce(&Lab)) {
    let Some(url) = server() else { return };
    let schema = format!("test_{:016x}", fastrand::u64(..));
    let client = connect(&url).await;
    client.batch_execute(&format!("SET search_path = {schema}")).await.expect("a path");
    let lab = Lab { url, schema, client };
    let ended = AssertUnwindSafe(test(&lab)).catch_unwind().await;
    let dropped = format!("SET client_min_messages = error; DROP SCHEMA IF EXISTS {} CASCADE", lab.schema);
    lab.client.batch_execute(&dropped).await.expect("the schema is dropped");
    if let Err(panic) = ended {
        resume_unwind(panic);
    }
}

#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
pub(crate) fn server() -> Option<String> {
    let url = std::env::var("VFS_TEST_POSTGRES").ok();
    if url.is_none() {
        eprintln!("skipped: VFS_TEST_POSTGRES names no server");
    }
    url
}

/// A plain connection to the server at `url`.
pub(crate) async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a server");
    tokio::spawn(connection);
    client
}

pub(crate) fn namespace() -> Namespace {
    Namespace::parse("acme/ann").expect("a namespace")
}

pub(crate) fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a path")
}

pub(crate) fn key(text: &str) -> Key {
    Key::new(namespace(), path(text))
}

pub(crate) fn value(content: impl Into<Bytes>) -> NewValue {
    NewValue::new(content.into(), Utc::now())
}

/// `url` with another host and port.
pub(crate) fn at(url: &str, address: std::net::SocketAddr) -> String {
    let mut url = url::Url::parse(url).expect("a URL");
    url.set_host(Some(&address.ip().to_string())).expect("a host");
    url.set_port(Some(address.port())).expect("a port");
    url.to_string()
}
