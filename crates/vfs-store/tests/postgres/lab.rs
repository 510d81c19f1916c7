//! A schema of its own for each test.

use std::panic::{AssertUnwindSafe, resume_unwind};

use bytes::Bytes;
use chrono::Utc;
use futures::FutureExt;
use tokio_postgres::NoTls;
use vfs_core::VfsPath;
use vfs_store::{Key, Namespace, NewValue, PostgresConfig, PostgresStore};

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
        PostgresConfig::new(&self.url).expect("a URL").schema(&self.schema)
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
