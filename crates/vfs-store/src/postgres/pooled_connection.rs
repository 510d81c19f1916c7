//! Pooled connections, and cleanup after a dropped operation.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use deadpool_postgres::Object;
use scopeguard::ScopeGuard;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::{PostgresError, PostgresResult};

/// Time that an abandoned operation has to end before the server is requested to cancel it.
const CANCEL_GRACE_TIMEOUT: Duration = Duration::from_millis(100);

/// Connection of the pool, for one operation.
///
/// If the connection is dropped without a result, because the future of the operation was dropped or the operation
/// failed halfway, the server may still work on the operation. A task then waits a short time for the end of the
/// operation, and returns the connection to the pool idle and without a transaction. If the operation does not end in
/// time, the task closes the connection and requests the server to cancel the operation.
pub(super) struct PooledConnection(ScopeGuard<CancellableConnection, fn(CancellableConnection)>);

/// Connection with the settings that cancel its operation.
struct CancellableConnection {
    object: Object,
    tls: MakeRustlsConnect,
    /// Timeout of the request to cancel.
    limit: Duration,
}

impl PooledConnection {
    pub(super) fn new(object: Object, tls: MakeRustlsConnect, limit: Duration) -> Self {
        Self(scopeguard::guard(CancellableConnection { object, tls, limit }, recover))
    }

    /// Returns the connection to the pool. No operation may be in progress on it.
    pub(super) fn release(self) {
        drop(ScopeGuard::into_inner(self.0));
    }

    /// Closes the connection and cancels the operation that may be in progress on it.
    pub(super) fn close(self) {
        let connection = ScopeGuard::into_inner(self.0);
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(cancel(connection));
        } else {
            drop(Object::take(connection.object));
        }
    }

    /// Releases, closes or drops the connection, depending on the `result` of the operation. Returns the result.
    pub(super) fn finish<T>(self, result: PostgresResult<T>) -> PostgresResult<T> {
        match &result {
            Ok(_) => self.release(),
            Err(PostgresError::NoResponse) => self.close(),
            Err(_) => drop(self),
        }
        result
    }
}

impl Deref for PooledConnection {
    type Target = Object;

    fn deref(&self) -> &Object {
        &self.0.object
    }
}

impl DerefMut for PooledConnection {
    fn deref_mut(&mut self) -> &mut Object {
        &mut self.0.object
    }
}

fn recover(connection: CancellableConnection) {
    let Ok(runtime) = Handle::try_current() else { return drop(Object::take(connection.object)) };
    runtime.spawn(async move {
        // The response follows those of all earlier statements. Without a transaction, the statement does nothing.
        let is_idle = timeout(CANCEL_GRACE_TIMEOUT, connection.object.batch_execute("ROLLBACK")).await;
        if !matches!(is_idle, Ok(Ok(()))) {
            cancel(connection).await;
        }
    });
}

/// Closes the connection, and requests the server to cancel its statement. The server would otherwise notice only at
/// the end of the statement that the client disconnected.
async fn cancel(CancellableConnection { object, tls, limit }: CancellableConnection) {
    let client = Object::take(object);
    let (is_closed, token) = (client.is_closed(), client.cancel_token());
    drop(client);
    if is_closed {
        return;
    }
    // A statement that is not cancelled ends at its own time limit.
    if let Ok(Err(error)) = timeout(limit, token.cancel_query(tls)).await {
        tracing::debug!(%error, "an abandoned statement could not be cancelled");
    }
}
