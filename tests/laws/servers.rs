//! What tests make on servers, and take away again.

/// A schema that nobody else has.
#[derive(Debug)]
pub(crate) struct Schema {
    url: String,
    /// Its name.
    pub(crate) name: String,
}

impl Schema {
    /// One whose name begins with `purpose`.
    pub(crate) fn new(url: &str, purpose: &str) -> Self {
        // What follows the '?' is for the store, and not for the server.
        let url = url.split('?').next().unwrap_or_default();
        Self { url: url.to_owned(), name: format!("{purpose}_{:016x}", fastrand::u64(..)) }
    }
}

/// Removes it with all that is in it.
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
