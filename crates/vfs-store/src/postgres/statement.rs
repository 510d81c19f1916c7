//! Statements with typed parameters, prepared if the session allows it.

use chrono::{DateTime, Utc};
use deadpool_postgres::Object;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};
use vfs_core::{Error, ErrorKind};

use super::error::{PostgresError, PostgresResult};

/// Parameter of a statement with its SQL type. Behind a pooler no statement is prepared from which the type could be
/// inferred.
pub(super) trait TypedParameter: ToSql + Sync {
    /// Returns the SQL type.
    fn sql_type(&self) -> Type;
}

/// Reference to a parameter of any type.
pub(super) type ParameterRef<'a> = &'a dyn TypedParameter;

macro_rules! typed {
    ($($rust:ty => $sql:ident),+ $(,)?) => {
        $(impl TypedParameter for $rust {
            fn sql_type(&self) -> Type {
                Type::$sql
            }
        })+
    };
}

typed! {
    &str => TEXT,
    String => TEXT,
    Option<&str> => TEXT,
    i16 => INT2,
    i32 => INT4,
    i64 => INT8,
    bool => BOOL,
    &[u8] => BYTEA,
    Vec<u8> => BYTEA,
    Vec<i16> => INT2_ARRAY,
    Vec<i32> => INT4_ARRAY,
    Vec<bool> => BOOL_ARRAY,
    Vec<&str> => TEXT_ARRAY,
    Vec<Option<&str>> => TEXT_ARRAY,
    Vec<Option<String>> => TEXT_ARRAY,
    Vec<Option<i64>> => INT8_ARRAY,
    Vec<Option<&[u8]>> => BYTEA_ARRAY,
    Vec<Option<DateTime<Utc>>> => TIMESTAMPTZ_ARRAY,
}

/// Mode in which statements are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StatementMode {
    /// The connection is a session that has the settings, and in which statements are prepared once.
    Session,
    /// Each transaction may run on another connection of a pooler, and therefore begins with these settings.
    Transaction { settings: String },
}

impl StatementMode {
    /// Returns the rows of a statement in a transaction that is already open.
    pub(super) async fn query(
        &self,
        connection: &Object,
        sql: &str,
        parameters: &[ParameterRef<'_>],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        match self {
            Self::Session => {
                let statement = connection.prepare_cached(sql).await?;
                let parameters: Vec<_> = parameters.iter().map(|value| *value as &(dyn ToSql + Sync)).collect();
                connection.query(&statement, &parameters).await
            }
            Self::Transaction { .. } => query_unprepared(connection, sql, parameters).await,
        }
    }

    /// Returns the rows of a statement that is a transaction of its own.
    pub(super) async fn query_autocommit(
        &self,
        connection: &Object,
        sql: &str,
        parameters: &[ParameterRef<'_>],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        match self {
            Self::Session => self.query(connection, sql, parameters).await,
            Self::Transaction { .. } => {
                self.query_in_transaction(connection, query_unprepared(connection, sql, parameters)).await
            }
        }
    }

    /// Like [`query_autocommit`](Self::query_autocommit), with a plan for these parameters.
    pub(super) async fn query_planned(
        &self,
        connection: &Object,
        sql: &str,
        parameters: &[ParameterRef<'_>],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        match self {
            Self::Session => query_unprepared(connection, sql, parameters).await,
            Self::Transaction { .. } => self.query_autocommit(connection, sql, parameters).await,
        }
    }

    /// Returns the statements that begin a transaction.
    pub(super) fn begin(&self, mode: &str) -> String {
        format!("BEGIN {mode}; {}", self.settings())
    }

    /// Returns the statements that apply the settings to a transaction that is already open.
    pub(super) fn settings(&self) -> &str {
        match self {
            Self::Session => "",
            Self::Transaction { settings } => settings,
        }
    }

    /// Runs `query` in a transaction, whose statements are all sent before the first response. If one fails, the
    /// transaction is rolled back.
    async fn query_in_transaction(
        &self,
        connection: &Object,
        query: impl Future<Output = Result<Vec<Row>, tokio_postgres::Error>>,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let begin = self.begin("ISOLATION LEVEL READ COMMITTED READ WRITE");
        let (begin, rows, commit) =
            futures::join!(connection.batch_execute(&begin), query, connection.batch_execute("COMMIT"));
        let rows = rows?;
        begin.and(commit).map(|()| rows)
    }
}

/// Returns the row of a statement that always has one.
pub(super) fn single_row(rows: Vec<Row>) -> PostgresResult<Row> {
    let none = || Error::new(ErrorKind::Internal, "a statement of the Postgres store has no row; report it");
    rows.into_iter().next().ok_or_else(|| PostgresError::Store(none()))
}

async fn query_unprepared(
    connection: &Object,
    sql: &str,
    parameters: &[ParameterRef<'_>],
) -> Result<Vec<Row>, tokio_postgres::Error> {
    let parameters: Vec<_> = parameters.iter().map(|value| (*value as &(dyn ToSql + Sync), value.sql_type())).collect();
    connection.query_typed(sql, &parameters).await
}
