//! Interruption of long work whose caller dropped its future.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, InterruptHandle};
use vfs_core::{Error, ErrorKind, Result};

use super::error::SqliteResult;

/// Owned by the waiting future; dropping it interrupts the work.
#[derive(Debug, Default)]
pub(super) struct InterruptGuard(Arc<InterruptState>);

/// Owned by the work, which checks it for an interruption.
#[derive(Debug)]
pub(super) struct InterruptToken(Arc<InterruptState>);

/// State that the guard and the token of one piece of work share.
#[derive(Default)]
struct InterruptState {
    is_interrupted: AtomicBool,
    /// Handle of the connection while it runs the work; later work on the same connection must not be interrupted.
    running: Mutex<Option<InterruptHandle>>,
}

impl InterruptState {
    fn running(&self) -> MutexGuard<'_, Option<InterruptHandle>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for InterruptState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InterruptState").field("is_interrupted", &self.is_interrupted).finish_non_exhaustive()
    }
}

impl InterruptGuard {
    pub(super) fn token(&self) -> InterruptToken {
        InterruptToken(Arc::clone(&self.0))
    }
}

impl Drop for InterruptGuard {
    fn drop(&mut self) {
        self.0.is_interrupted.store(true, Ordering::SeqCst);
        if let Some(connection) = &*self.0.running() {
            connection.interrupt();
        }
    }
}

impl InterruptToken {
    /// Returns the error `cancelled` if the work is interrupted.
    pub(super) fn check(&self) -> Result<()> {
        if self.0.is_interrupted.load(Ordering::SeqCst) { Err(Error::of(ErrorKind::Cancelled)) } else { Ok(()) }
    }

    /// Runs `work` on a connection. An interruption also ends the statement that is running.
    pub(super) fn run_interruptible<T>(
        &self,
        connection: &mut Connection,
        work: impl FnOnce(&mut Connection) -> SqliteResult<T>,
    ) -> SqliteResult<T> {
        *self.0.running() = Some(connection.get_interrupt_handle());
        let _running = RunningWorkGuard(&self.0);
        self.check()?;
        work(connection)
    }
}

/// Clears the handle when the work ends, also if it panics.
struct RunningWorkGuard<'a>(&'a InterruptState);

impl Drop for RunningWorkGuard<'_> {
    fn drop(&mut self) {
        *self.0.running() = None;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use rusqlite::functions::FunctionFlags;

    use super::*;

    #[test]
    fn a_running_statement_is_interrupted_and_none_after_it() {
        let guard = InterruptGuard::default();
        let token = guard.token();
        let (sender, begun) = mpsc::channel();
        let work = thread::spawn(move || {
            let mut connection = Connection::open_in_memory().expect("a connection");
            let record = move |_: &rusqlite::functions::Context<'_>| Ok(sender.send(()).is_ok());
            connection.create_scalar_function("record", 0, FunctionFlags::SQLITE_UTF8, record).expect("a function");
            let endless =
                "WITH RECURSIVE n(i) AS (SELECT record() UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
            let count =
                |connection: &mut Connection| Ok(connection.query_row(endless, [], |row| row.get::<_, i64>(0))?);
            let first = token.run_interruptible(&mut connection, count).map_err(Error::from);
            let next = connection.query_row("SELECT 1", [], |row| row.get::<_, i64>(0));
            let again = token.run_interruptible(&mut connection, count).map_err(Error::from);
            (first, next, again)
        });
        begun.recv().expect("it has begun");
        drop(guard);
        let (first, next, again) = work.join().expect("no panic");
        assert_eq!(first.expect_err("it is interrupted").kind(), ErrorKind::Cancelled);
        assert_eq!(next, Ok(1));
        assert_eq!(again.expect_err("it is not begun").kind(), ErrorKind::Cancelled);
    }
}
