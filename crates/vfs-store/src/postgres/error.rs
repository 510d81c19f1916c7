//! Errors of work on a Postgres server.

use std::io;

use deadpool_postgres::{PoolError, TimeoutType};
use tokio_postgres::error::SqlState;
use vfs_core::{Error, ErrorKind};

use super::config::PostgresConfig;

/// Reason why work on the server failed.
#[derive(Debug)]
pub(super) enum PostgresError {
    /// No connection could be established: the server cannot be reached, or rejects the connection.
    Connect(tokio_postgres::Error),
    /// The server did not complete the connection in time.
    ConnectTimeout,
    /// All connections of the pool are in use.
    PoolTimeout,
    /// A statement or its connection failed.
    Statement(tokio_postgres::Error),
    /// The server did not respond, although its own time limit has passed.
    NoResponse,
    /// An error of this store.
    Store(Error),
}

/// Result of work on the server.
pub(super) type PostgresResult<T> = Result<T, PostgresError>;

const TRANSACTION_LOST: [SqlState; 2] = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
const SERVER_LOST: [SqlState; 5] = [
    SqlState::ADMIN_SHUTDOWN,
    SqlState::CRASH_SHUTDOWN,
    SqlState::CANNOT_CONNECT_NOW,
    SqlState::TOO_MANY_CONNECTIONS,
    SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
];
const NO_SPACE: [SqlState; 1] = [SqlState::DISK_FULL];
const WRONG_CREDENTIALS: [SqlState; 2] = [SqlState::INVALID_PASSWORD, SqlState::INVALID_AUTHORIZATION_SPECIFICATION];
const UNEXPECTED_TABLES: [SqlState; 8] = [
    SqlState::INVALID_SCHEMA_NAME,
    SqlState::UNDEFINED_TABLE,
    SqlState::UNDEFINED_FUNCTION,
    SqlState::UNDEFINED_COLUMN,
    SqlState::UNDEFINED_OBJECT,
    SqlState::DUPLICATE_TABLE,
    SqlState::DUPLICATE_FUNCTION,
    SqlState::DATATYPE_MISMATCH,
];
const DAMAGED: [SqlState; 2] = [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED];

impl PostgresError {
    /// Returns whether a retry may succeed. For a statement of a transaction whose commit was not requested, this also
    /// means that the statement was not applied.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::ConnectTimeout | Self::NoResponse => true,
            Self::PoolTimeout | Self::Store(_) => false,
            Self::Connect(error) if is_tls(error) || is_pooler_refusal(error) => false,
            Self::Connect(error) | Self::Statement(error) => match error.code() {
                None => error.is_closed() || io_cause(error).is_some(),
                Some(state) => {
                    TRANSACTION_LOST.contains(state)
                        || SERVER_LOST.contains(state)
                        || *state == SqlState::LOCK_NOT_AVAILABLE
                        || state.code().starts_with("08")
                }
            },
        }
    }

    /// Returns whether the server cancelled a statement that took too long or waited too long for a lock.
    pub(super) fn is_time_limit(&self) -> bool {
        let states = [SqlState::QUERY_CANCELED, SqlState::LOCK_NOT_AVAILABLE];
        matches!(self, Self::Statement(error) if error.code().is_some_and(|state| states.contains(state)))
    }

    /// Returns whether the server could not be reached at all.
    pub(super) fn is_connect_failure(&self) -> bool {
        matches!(self, Self::Connect(error) if error.code().is_none()) || matches!(self, Self::ConnectTimeout)
    }

    /// Converts this into an error that describes the failure for the store of `config`.
    pub(super) fn describe(self, config: &PostgresConfig) -> Error {
        let (kind, message) = match &self {
            Self::Store(error) => return error.clone(),
            Self::PoolTimeout => (
                ErrorKind::Busy,
                format!(
                    "the {} connections of the Postgres store were in use for {}; try again, or raise 'pool_size'",
                    config.pool_size,
                    humantime::format_duration(config.pool_timeout),
                ),
            ),
            Self::ConnectTimeout => (
                ErrorKind::Unavailable,
                format!(
                    "the Postgres server at {} did not answer for {}; check host, port and firewall",
                    config.address(),
                    humantime::format_duration(config.connect_timeout),
                ),
            ),
            Self::NoResponse => (
                ErrorKind::Unavailable,
                format!("the Postgres server at {} stopped answering; try again later", config.address()),
            ),
            Self::Connect(error) if is_pooler_refusal(error) => (
                ErrorKind::InvalidArgument,
                format!(
                    "a pooler at {} rejects the session settings of the Postgres store; add 'pooled=true' to the URL of the \
                     store",
                    config.address(),
                ),
            ),
            Self::Connect(error) | Self::Statement(error) => match error.code() {
                Some(state) => describe_state(state, config),
                None => describe_failure(error, matches!(self, Self::Connect(_)), config),
            },
        };
        let error = Error::new(kind, message).with_generic_model_message();
        match self {
            Self::Connect(cause) | Self::Statement(cause) => error.with_source(cause),
            _ => error,
        }
    }
}

impl From<tokio_postgres::Error> for PostgresError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Statement(error)
    }
}

impl From<PoolError> for PostgresError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Timeout(TimeoutType::Wait) => Self::PoolTimeout,
            PoolError::Timeout(_) => Self::ConnectTimeout,
            PoolError::Backend(error) => Self::Connect(error),
            PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => Self::Store(
                Error::new(ErrorKind::Internal, "the connections of the Postgres store are closed; report it"),
            ),
        }
    }
}

impl From<Error> for PostgresError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

fn io_cause(error: &tokio_postgres::Error) -> Option<&io::Error> {
    std::error::Error::source(error)?.downcast_ref()
}

fn is_tls(error: &tokio_postgres::Error) -> bool {
    io_cause(error).and_then(io::Error::get_ref).is_some_and(|cause| cause.is::<rustls::Error>())
        || error.to_string().contains("TLS")
}

/// Returns whether a pooler rejected the settings of a session.
fn is_pooler_refusal(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_some_and(|error| error.message().contains("unsupported startup parameter"))
}

fn describe_state(state: &SqlState, config: &PostgresConfig) -> (ErrorKind, String) {
    let (user, database, schema) = (config.user(), config.database(), &config.schema);
    match state {
        _ if WRONG_CREDENTIALS.contains(state) => (
            ErrorKind::PermissionDenied,
            format!(
                "the Postgres server does not accept the user '{user}' with this password; correct the URL of the store"
            ),
        ),
        state if *state == SqlState::INVALID_CATALOG_NAME => (
            ErrorKind::InvalidArgument,
            format!(
                "the Postgres server has no database '{database}'; create it with 'createdb {database}', or correct the URL"
            ),
        ),
        state if *state == SqlState::INSUFFICIENT_PRIVILEGE => (
            ErrorKind::PermissionDenied,
            format!(
                "the Postgres user '{user}' may not make or use the schema '{schema}'; as an administrator run 'GRANT CREATE ON \
                 DATABASE {database} TO {user}', or name another schema"
            ),
        ),
        state if *state == SqlState::READ_ONLY_SQL_TRANSACTION => (
            ErrorKind::PermissionDenied,
            "the Postgres server only allows reading; name its primary in the URL of the store".to_owned(),
        ),
        _ if NO_SPACE.contains(state) => {
            (ErrorKind::StorageFull, "the disk of the Postgres server is full; free some space".to_owned())
        }
        state if *state == SqlState::QUERY_CANCELED => (
            ErrorKind::Timeout,
            format!(
                "the Postgres server did not finish within {}; narrow the request, or raise 'statement_timeout'",
                humantime::format_duration(config.statement_timeout),
            ),
        ),
        state if *state == SqlState::LOCK_NOT_AVAILABLE || TRANSACTION_LOST.contains(state) => (
            ErrorKind::Busy,
            "others changed the same namespace of the Postgres store for too long; try again".to_owned(),
        ),
        state if *state == SqlState::TOO_MANY_CONNECTIONS => (
            ErrorKind::Unavailable,
            "the Postgres server has no connection left; lower 'pool_size', or raise its 'max_connections'".to_owned(),
        ),
        state if *state == SqlState::DATETIME_FIELD_OVERFLOW => {
            (ErrorKind::InvalidArgument, "a time is out of the range that Postgres can store".to_owned())
        }
        _ if UNEXPECTED_TABLES.contains(state) => (
            ErrorKind::InvalidArgument,
            format!(
                "the tables in the schema '{schema}' of the Postgres database are not those of the store; name a schema of its \
                 own, or restore a backup"
            ),
        ),
        _ if DAMAGED.contains(state) => (
            ErrorKind::InvalidArgument,
            "the Postgres database of the store is damaged; see the server's log, and restore a backup".to_owned(),
        ),
        state => match state.code().get(..2) {
            Some("54") => (ErrorKind::TooLarge, "the value is larger than Postgres can store".to_owned()),
            Some("08" | "53" | "57" | "58") => (
                ErrorKind::Unavailable,
                format!("the Postgres server at {} is not available; try again later", config.address()),
            ),
            _ => (
                ErrorKind::Internal,
                format!("the Postgres server refused a statement with the code {}; report it", state.code()),
            ),
        },
    }
}

fn describe_failure(
    error: &tokio_postgres::Error,
    is_connecting: bool,
    config: &PostgresConfig,
) -> (ErrorKind, String) {
    let address = config.address();
    if is_tls(error) {
        return (
            ErrorKind::Unavailable,
            format!(
                "there is no trusted, encrypted connection to the Postgres server at {address}; see the cause, and the 'sslmode' \
                 of the store's URL"
            ),
        );
    }
    let refused = [io::ErrorKind::ConnectionRefused, io::ErrorKind::NotFound];
    match io_cause(error) {
        Some(cause) if is_connecting && refused.contains(&cause.kind()) => (
            ErrorKind::Unavailable,
            format!(
                "no Postgres server answers at {address}; start it, or correct host and port in the URL of the store"
            ),
        ),
        Some(_) if is_connecting => (
            ErrorKind::Unavailable,
            format!(
                "the Postgres server at {address} cannot be reached; correct host and port in the URL of the store"
            ),
        ),
        None if is_connecting && !config.has_password() => (
            ErrorKind::PermissionDenied,
            format!(
                "the Postgres server at {address} asks for a password; write it in the URL of the store as \
                 'postgres://user:password@host/database'"
            ),
        ),
        None if is_connecting => (
            ErrorKind::PermissionDenied,
            format!(
                "the Postgres server at {address} and this program have no authentication method in common; check that the \
                 address is that of a Postgres server with password authentication"
            ),
        ),
        _ if error.is_closed() || io_cause(error).is_some() => {
            (ErrorKind::Unavailable, format!("the connection to the Postgres server at {address} was lost; try again"))
        }
        _ => (
            ErrorKind::InvalidArgument,
            format!(
                "the schema '{}' of the Postgres database has data that the store did not write, or a value that Postgres \
                 cannot store; see the cause",
                config.schema,
            ),
        ),
    }
}
