//! Pooled connections, and cleanup after a dropped operation.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use deadpool_postgres::Object;
use scopeguard::ScopeGuard;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::{PostgresError, PostgresResult};

/// How long what was given up may take to its end before the server is asked to cancel it.
const CANCEL_GRACE_TIMEOUT: Duration = Duration::from_millis(100);

/// A connection of the pool, for one operation.
///
/// Where the operation does not say how it ended, as its future was dropped or it failed in the middle, the server may still
/// work on it. Then a task sees to it that whoever gets the connection next finds it idle and without a transaction: what ends
/// soon may end, and else the connection is closed and the server asked to cancel.
pub(super) struct Connection(ScopeGuard<PooledConnection, fn(PooledConnection)>);

/// A connection, and what it takes to cancel what it does.
struct PooledConnection {
    object: Object,
    tls: MakeRustlsConnect,
    /// How long asking for that may take.
    limit: Duration,
}

impl Connection {
    pub(super) fn new(object: Object, tls: MakeRustlsConnect, limit: Duration) -> Self {
        Self(scopeguard::guard(PooledConnection { object, tls, limit }, settle))
    }

    /// Gives the connection back with nothing under way on it.
    pub(super) fn keep(self) {
        drop(ScopeGuard::into_inner(self.0));
    }

    /// Closes the connection, as nobody knows what it does.
    pub(super) fn close(self) {
        let lent = ScopeGuard::into_inner(self.0);
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(cancel(lent));
        } else {
            drop(Object::take(lent.object));
        }
    }

    /// Gives the connection back or closes it, as `answer` tells what became of the operation.
    pub(super) fn finish<T>(self, answer: PostgresResult<T>) -> PostgresResult<T> {
        match &answer {
            Ok(_) => self.keep(),
            Err(PostgresError::Silence) => self.close(),
            Err(_) => drop(self),
        }
        answer
    }
}

impl Deref for Connection {
    type Target = Object;

    fn deref(&self) -> &Object {
        &self.0.object
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut Object {
        &mut self.0.object
    }
}

fn settle(lent: PooledConnection) {
    let Ok(runtime) = Handle::try_current() else { return drop(Object::take(lent.object)) };
    runtime.spawn(async move {
        // It is answered after all that was asked before; without a transaction it does nothing.
        let is_idle = timeout(CANCEL_GRACE_TIMEOUT, lent.object.batch_execute("ROLLBACK")).await;
        if !matches!(is_idle, Ok(Ok(()))) {
            cancel(lent).await;
        }
    });
}

/// Closes the connection, and asks the server to stop what it does for it, as it would notice only at the end that nobody is there.
async fn cancel(PooledConnection { object, tls, limit }: PooledConnection) {
    let client = Object::take(object);
    let (is_closed, token) = (client.is_closed(), client.cancel_token());
    drop(client);
    if is_closed {
        return;
    }
    // What is not cancelled ends with its statement's own time limit.
    if let Ok(Err(error)) = timeout(limit, token.cancel_query(tls)).await {
        tracing::debug!(%error, "a statement that nobody waits for could not be cancelled");
    }
}
