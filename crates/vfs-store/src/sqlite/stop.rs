//! Interruption of long work whose caller is gone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, InterruptHandle};
use vfs_core::{Error, ErrorKind, Result};

use super::error::SqliteResult;

/// Held by who waits; its end asks the work to stop.
#[derive(Debug, Default)]
pub(super) struct Stop(Arc<InterruptState>);

/// Held by the work.
#[derive(Debug)]
pub(super) struct Asked(Arc<InterruptState>);

#[derive(Default)]
struct InterruptState {
    is_asked: AtomicBool,
    /// The connection that works, as long as it does: whatever comes after it must not be interrupted.
    working: Mutex<Option<InterruptHandle>>,
}

impl InterruptState {
    fn working(&self) -> MutexGuard<'_, Option<InterruptHandle>> {
        self.working.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for InterruptState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("is_asked", &self.is_asked).finish_non_exhaustive()
    }
}

impl Stop {
    pub(super) fn asked(&self) -> Asked {
        Asked(Arc::clone(&self.0))
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.is_asked.store(true, Ordering::SeqCst);
        if let Some(working) = &*self.0.working() {
            working.interrupt();
        }
    }
}

impl Asked {
    /// `cancelled` where it is asked to stop.
    pub(super) fn go_on(&self) -> Result<()> {
        if self.0.is_asked.load(Ordering::SeqCst) { Err(Error::of(ErrorKind::Cancelled)) } else { Ok(()) }
    }

    /// Does `work` on a connection; a statement of it that is under way when it is asked to stop is interrupted.
    pub(super) fn interruptible<T>(
        &self,
        connection: &mut Connection,
        work: impl FnOnce(&mut Connection) -> SqliteResult<T>,
    ) -> SqliteResult<T> {
        *self.0.working() = Some(connection.get_interrupt_handle());
        let _working = RunningWork(&self.0);
        self.go_on()?;
        work(connection)
    }
}

/// Ends with the work, also where that panics.
struct RunningWork<'a>(&'a InterruptState);

impl Drop for RunningWork<'_> {
    fn drop(&mut self) {
        *self.0.working() = None;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use rusqlite::functions::FunctionFlags;

    use super::*;

    #[test]
    fn a_statement_under_way_is_interrupted_and_none_after_it() {
        let stop = Stop::default();
        let asked = stop.asked();
        let (sender, begun) = mpsc::channel();
        let work = thread::spawn(move || {
            let mut connection = Connection::open_in_memory().expect("a connection");
            let record = move |_: &rusqlite::functions::Context<'_>| Ok(sender.send(()).is_ok());
            connection.create_scalar_function("record", 0, FunctionFlags::SQLITE_UTF8, record).expect("a function");
            let endless =
                "WITH RECURSIVE n(i) AS (SELECT record() UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
            let count =
                |connection: &mut Connection| Ok(connection.query_row(endless, [], |row| row.get::<_, i64>(0))?);
            let first = asked.interruptible(&mut connection, count).map_err(Error::from);
            let next = connection.query_row("SELECT 1", [], |row| row.get::<_, i64>(0));
            let again = asked.interruptible(&mut connection, count).map_err(Error::from);
            (first, next, again)
        });
        begun.recv().expect("it has begun");
        drop(stop);
        let (first, next, again) = work.join().expect("no panic");
        assert_eq!(first.expect_err("it is interrupted").kind(), ErrorKind::Cancelled);
        assert_eq!(next, Ok(1));
        assert_eq!(again.expect_err("it is not begun").kind(), ErrorKind::Cancelled);
    }
}
