//! Database schemas that tests create on servers and drop at the end.

/// A schema of this process alone.
#[derive(Debug)]
pub(crate) struct Schema {
    url: String,
    /// Its name.
    pub(crate) name: String,
}

impl Schema {
    /// Returns a schema whose name begins with `purpose`.
    pub(crate) fn new(url: &str, purpose: &str) -> Self {
        // The query after the '?' is for the store, not for the server.
        let url = url.split('?').next().unwrap_or_default();
        Self { url: url.to_owned(), name: format!("{purpose}_{:016x}", fastrand::u64(..)) }
    }
}

/// Drops the schema with everything in it.
pub(crate) fn drop_schema(Schema { url, name }: Schema) {
    // The runtime that a law ran on may be at its end.
    let dropped = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await?;
            tokio::spawn(connection);
            client
                .batch_execute(&format!("SET client_min_messages = error; DROP SCHEMA IF EXISTS {name} CASCADE"))
                .await
        })
    });
    dropped.join().expect("no panic").expect("the schema is dropped");
}
