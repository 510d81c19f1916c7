//! Errors of work on a SQLite connection.

use rusqlite::ErrorCode as Code;
use vfs_core::{Error, ErrorKind};

/// Reason why work on a connection failed.
#[derive(Debug)]
pub(super) enum SqliteError {
    /// An error that SQLite reported.
    Database(rusqlite::Error),
    /// An error of this store.
    Store(Error),
}

/// Result of work on a connection.
pub(super) type SqliteResult<T> = Result<T, SqliteError>;

impl SqliteError {
    /// Returns the error of a file with data that no version of this store writes.
    pub(super) fn damaged() -> Self {
        Self::Store(Error::invalid_argument(DAMAGED).with_generic_model_message())
    }

    /// Returns whether the disk is full.
    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::Database(error) => describe(error).0 == ErrorKind::StorageFull,
            Self::Store(error) => error.kind() == ErrorKind::StorageFull,
        }
    }

    /// Returns whether another connection locks the file.
    pub(super) fn is_busy(&self) -> bool {
        match self {
            Self::Database(error) => {
                matches!(error.sqlite_error_code(), Some(Code::DatabaseBusy | Code::DatabaseLocked))
            }
            Self::Store(error) => error.kind() == ErrorKind::Busy,
        }
    }
}

impl From<rusqlite::Error> for SqliteError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<Error> for SqliteError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<SqliteError> for Error {
    fn from(fault: SqliteError) -> Self {
        match fault {
            SqliteError::Database(error) => {
                let (kind, message) = describe(&error);
                Error::new(kind, message).with_generic_model_message().with_source(error)
            }
            SqliteError::Store(error) => error,
        }
    }
}

const DAMAGED: &str = "the SQLite file of the store is damaged; restore a backup, or save what is left of it with the \
                       '.recover' command of the sqlite3 program";
const UNEXPECTED_TABLES: &str = "the tables in the SQLite file of the store are not those of a store, or SQLite refused \
                                 a statement; another program may have changed them: restore a backup";

fn describe(error: &rusqlite::Error) -> (ErrorKind, &'static str) {
    use ErrorKind as K;
    if matches!(error, rusqlite::Error::NulError(_) | rusqlite::Error::InvalidPath(_)) {
        return (K::InvalidArgument, "the path of the SQLite file has a NUL, or is not UTF-8; name another one");
    }
    match error.sqlite_error_code() {
        Some(Code::DatabaseBusy | Code::DatabaseLocked | Code::FileLockingProtocolFailed | Code::SchemaChanged) => (
            K::Busy,
            "other connections locked the SQLite file of the store for longer than its busy timeout; try again, or raise \
             'busy_timeout'",
        ),
        Some(Code::NotADatabase) => {
            (K::InvalidArgument, "the file of the store is not a SQLite database, or is encrypted; name another file")
        }
        Some(Code::DatabaseCorrupt) => (K::InvalidArgument, DAMAGED),
        Some(Code::DiskFull) => (K::StorageFull, "the disk of the SQLite file of the store is full; free some space"),
        Some(Code::ReadOnly | Code::PermissionDenied | Code::AuthorizationForStatementDenied) => (
            K::PermissionDenied,
            "this user may not write to the SQLite file of the store; allow writing to the file and its directory",
        ),
        Some(Code::CannotOpen) => (
            K::Unavailable,
            "the SQLite file of the store cannot be opened; check that it is a file, and that not too many files are open",
        ),
        Some(Code::SystemIoFailure) => {
            (K::Unavailable, "the disk of the SQLite file of the store failed; see the cause")
        }
        Some(Code::OutOfMemory) => (K::Unavailable, "SQLite is out of memory; try again later"),
        Some(Code::TooBig) => (K::TooLarge, "the value is larger than SQLite can store"),
        Some(Code::OperationInterrupted | Code::OperationAborted) => (K::Cancelled, "the operation was cancelled"),
        Some(Code::Unknown) => (K::InvalidArgument, UNEXPECTED_TABLES),
        Some(_) => (K::Internal, "SQLite failed; report this if it happens again"),
        // A column has another type, or a required row is missing.
        None => (K::InvalidArgument, DAMAGED),
    }
}
