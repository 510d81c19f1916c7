//! Online backup of the database file.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use vfs_core::{Error, ErrorKind};

use super::config::SqliteConfig;
use super::connect;
use super::error::SqliteResult;
use super::interrupt::InterruptToken;

/// Number of pages copied between two checks for cancellation: 4 MiB.
const PAGES_PER_STEP: i32 = 1024;

/// Copies a snapshot of the database of `connection` into a new file at `to`. Returns the size of the copy in bytes.
pub(super) fn backup(connection: &mut Connection, to: &Path, token: &InterruptToken) -> SqliteResult<u64> {
    let path = std::path::absolute(to).map_err(|cause| {
        Error::invalid_argument("the path of the copy cannot be made absolute; name a file").with_source(cause)
    })?;
    let mut copy = connect::connect(&SqliteConfig::new(path))?;
    let pages: i64 = copy.pragma_query_value(None, "page_count", |row| row.get(0))?;
    if pages > 0 {
        let message = "the target of the backup is a database that is not empty; name a file that does not exist yet";
        return Err(Error::new(ErrorKind::AlreadyExists, message).into());
    }
    // The backup copies the snapshot at which the transaction first reads. Without a transaction, each change by
    // another process would restart the copy.
    let transaction = connection.transaction()?;
    let page_size: i64 = transaction.pragma_query_value(None, "page_size", |row| row.get(0))?;
    transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    let pages = {
        let backup = Backup::new(&transaction, &mut copy)?;
        loop {
            token.check()?;
            match backup.step(PAGES_PER_STEP)? {
                StepResult::Done => break backup.progress().pagecount,
                StepResult::More => {}
                // Another connection locks the new file.
                _ => connect::pause(),
            }
        }
    };
    Ok(u64::try_from(i64::from(pages) * page_size).unwrap_or(0))
}
