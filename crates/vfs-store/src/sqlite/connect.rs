//! Opening of connections, and their settings.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use vfs_core::{Error, ErrorKind};

use super::config::{DatabaseLocation, SqliteConfig, SqliteDurability};
use super::error::{SqliteError, SqliteResult};
use super::schema;

/// Number of prepared statements that a connection caches; the store uses fewer.
const STATEMENT_CACHE_CAPACITY: usize = 64;
/// Size in bytes to which a write-ahead log that grew larger is truncated.
const MAX_WAL_BYTES: i64 = 16 << 20;

/// Opens the first connection: creates a missing file, and migrates an older one to the current version.
pub(super) fn open(config: &SqliteConfig) -> SqliteResult<Connection> {
    let start = Instant::now();
    loop {
        match try_open(config) {
            // If several processes create the file at the same time, SQLite does not wait for each lock itself.
            Err(fault) if fault.is_busy() && start.elapsed() < config.busy_timeout => pause(),
            result => return result,
        }
    }
}

fn try_open(config: &SqliteConfig) -> SqliteResult<Connection> {
    let mut connection = connect(config)?;
    schema::prepare(&mut connection)?;
    Ok(connection)
}

/// Opens a connection to a file that [`open`] prepared.
pub(super) fn connect(config: &SqliteConfig) -> SqliteResult<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match &config.location {
        DatabaseLocation::File(path) => {
            Connection::open_with_flags(path, flags).map_err(|error| explain_open_failure(path, error))?
        }
        DatabaseLocation::Memory => Connection::open_in_memory_with_flags(flags)?,
    };
    connection.busy_timeout(config.busy_timeout)?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE_CAPACITY);
    // If this user may not write to the file, SQLite opens it read-only without an error.
    if connection.is_readonly(rusqlite::MAIN_DB)? {
        return Err(Error::new(
            ErrorKind::PermissionDenied,
            "the SQLite file of the store cannot be written: its file system is read-only, or this user may not write to the \
             file and its directory; allow writing to both",
        )
        .with_generic_model_message()
        .into());
    }
    let synchronous = match config.durability {
        SqliteDurability::Full => "FULL",
        SqliteDurability::Normal => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "journal_size_limit", MAX_WAL_BYTES)?;
    Ok(connection)
}

/// Sleeps for a short random time, which differs between waiting connections.
pub(super) fn pause() {
    thread::sleep(Duration::from_micros(fastrand::u64(500..3000)));
}

/// Adds the cause to an error of SQLite, which says only that the file cannot be opened.
#[expect(clippy::disallowed_methods, reason = "the file is SQLite's, and in no backend")]
fn explain_open_failure(path: &Path, error: rusqlite::Error) -> SqliteError {
    if error.sqlite_error_code() != Some(rusqlite::ErrorCode::CannotOpen) {
        return error.into();
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (kind, message) = match std::fs::metadata(parent) {
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => (
            ErrorKind::InvalidArgument,
            "the directory of the SQLite file of the store does not exist; create the directory first",
        ),
        Ok(found) if !found.is_dir() => {
            (ErrorKind::InvalidArgument, "the SQLite file of the store would be below a file; name another path")
        }
        Ok(_) if std::fs::metadata(path).is_ok_and(|found| found.is_dir()) => {
            (ErrorKind::InvalidArgument, "the path of the SQLite store is a directory; name a file in it")
        }
        _ => (
            ErrorKind::PermissionDenied,
            "this user may not open or create the SQLite file of the store; allow access to the file and its directory",
        ),
    };
    Error::new(kind, message).with_generic_model_message().with_source(error).into()
}
