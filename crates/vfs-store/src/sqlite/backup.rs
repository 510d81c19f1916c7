//! Online backup of the database file.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use vfs_core::{Error, ErrorKind};

use super::config::SqliteConfig;
use super::connect;
use super::error::SqliteResult;
use super::stop::Asked;

/// Pages that are copied between two looks at whether anyone still waits: 4 MiB.
const PAGES: i32 = 1024;

/// Copies all that `connection` sees into a new file at `to`; how many bytes it has.
pub(super) fn backup(connection: &mut Connection, to: &Path, asked: &Asked) -> SqliteResult<u64> {
    let path = std::path::absolute(to).map_err(|cause| {
        Error::invalid_argument("the path of the copy cannot be made absolute; name a file").with_source(cause)
    })?;
    let mut copy = connect::connect(&SqliteConfig::new(path))?;
    let pages: i64 = copy.pragma_query_value(None, "page_count", |row| row.get(0))?;
    if pages > 0 {
        let message = "there is a database already where the copy is to be; name a file that is not there yet";
        return Err(Error::new(ErrorKind::AlreadyExists, message).into());
    }
    // All is of the moment at which the transaction first reads; without one, each change of another process would make the
    // copying begin again.
    let transaction = connection.transaction()?;
    let page_size: i64 = transaction.pragma_query_value(None, "page_size", |row| row.get(0))?;
    transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    let pages = {
        let backup = Backup::new(&transaction, &mut copy)?;
        loop {
            asked.go_on()?;
            match backup.step(PAGES)? {
                StepResult::Done => break backup.progress().pagecount,
                StepResult::More => {}
                // Somebody else has the new file open.
                _ => connect::pause(),
            }
        }
    };
    Ok(u64::try_from(i64::from(pages) * page_size).unwrap_or(0))
}
