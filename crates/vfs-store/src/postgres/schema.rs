//! Schema and its migrations.

use deadpool_postgres::{Object, Transaction};
use tokio::time::timeout;
use tokio_postgres::GenericClient;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use vfs_core::{Error, ErrorKind};

use super::config::PostgresConfig;
use super::error::{PostgresError, PostgresResult};
use super::server::{ANSWER_GRACE_TIMEOUT, Server};
use super::statement::only;

/// What makes a schema of each version into one of the next; the first makes it of an empty one.
///
/// A step is never changed once it was released: databases of its version are out there.
const STEPS: &[&str] = &[include_str!("schema/1.sql"), include_str!("schema/2.sql"), include_str!("schema/3.sql")];

/// The version of schemas that this program writes.
const VERSION: i32 = STEPS.len() as i32;

/// The oldest server that knows all that is asked of it.
const MIN_SERVER_VERSION: i32 = 130_000;

/// What the lock is called under which tables are made: "vfss".
const LOCK: i64 = 0x7666_7373;

const SERVER: &str = "SELECT current_setting('server_version_num')::integer, current_setting('server_encoding'), \
                      to_regnamespace($1) IS NOT NULL, to_regclass($1 || '.schema_version') IS NOT NULL, \
                      EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_trgm'), \
                      coalesce((SELECT indisvalid FROM pg_index \
                          WHERE indexrelid = to_regclass($1 || '.chunks_searched')), false), \
                      current_setting('search_path')";

// The operators are in the schema of the extension, which may be any.
const MAKE_INDEX: &str = "DO $do$ BEGIN EXECUTE format('CREATE INDEX IF NOT EXISTS chunks_searched ON chunks \
                          USING gin ((searchable(data) COLLATE \"C\") %I.gin_trgm_ops) \
                          WITH (gin_pending_list_limit = 256) WHERE is_text', \
                          (SELECT nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace \
                          WHERE extname = 'pg_trgm')); END $do$";

/// What a database is like.
struct SchemaState {
    has_tables: bool,
    has_trigrams: bool,
    has_index: bool,
}

/// Brings the schema to this version, at the same time as others may; whether it can be searched.
pub(super) async fn prepare(server: &Server, connection: &mut Object) -> PostgresResult<bool> {
    let config = &server.config;
    let is_prepared = async {
        let found = look(connection, config).await?;
        Ok::<_, PostgresError>(
            found.has_tables && version(&***connection, &config.schema).await? == VERSION && found.has_index,
        )
    };
    if server.within(is_prepared).await? {
        return Ok(true);
    }
    let making = async {
        make_tables(connection, config).await?;
        make_search(connection, config).await
    };
    match timeout(config.prepare_timeout + ANSWER_GRACE_TIMEOUT, making).await {
        Ok(Err(fault)) if fault.is_of_time() => Err(takes_too_long(config)),
        Ok(made) => made,
        Err(_) => Err(PostgresError::Silence),
    }
}

/// What is told of tables that are not there in time. Whether another process makes them, or this one would, cannot be told apart.
fn takes_too_long(config: &PostgresConfig) -> PostgresError {
    let message = format!(
        "the tables of the Postgres store at {} were not ready within {}; another process may be making them, or hold a lock: \
         end it if it hangs, or raise 'prepare_timeout'",
        config.address(),
        humantime::format_duration(config.prepare_timeout),
    );
    Error::new(ErrorKind::Timeout, message).into()
}

/// Begins a transaction that waits for its turn to make tables. Others may be at it, with a large database for long.
async fn in_turn<'a>(connection: &'a mut Object, config: &PostgresConfig) -> PostgresResult<Transaction<'a>> {
    let transaction = connection.transaction().await?;
    let limit = config.prepare_timeout.as_millis();
    let path = &config.schema;
    let settings = "SET LOCAL lock_timeout = 0; SET LOCAL client_min_messages = error";
    let limits = format!("{settings}; SET LOCAL search_path = {path}; SET LOCAL statement_timeout = {limit}");
    transaction.batch_execute(&limits).await?;
    transaction.batch_execute(&format!("SELECT pg_advisory_xact_lock({LOCK})")).await?;
    Ok(transaction)
}

async fn look(connection: &Object, config: &PostgresConfig) -> PostgresResult<SchemaState> {
    let row = only(connection.query_typed(SERVER, &[(&config.schema, Type::TEXT)]).await?)?;
    let refuse = |message: String| Err(Error::invalid_argument(message).into());
    if row.try_get::<_, i32>(0)? < MIN_SERVER_VERSION {
        return refuse("the Postgres server is older than version 13; use a newer one".to_owned());
    }
    let encoding: &str = row.try_get(1)?;
    if encoding != "UTF8" {
        return refuse(format!(
            "the Postgres database '{0}' is encoded in {encoding}; make one with 'createdb --encoding=UTF8 \
             --template=template0 {0}'",
            config.database()
        ));
    }
    let path: &str = row.try_get(6)?;
    if !config.is_pooled && path != config.schema {
        return refuse(format!(
            "the Postgres server at {} does not know the settings that a session of the store begins with, as behind a pooler; add \
             'pooled=true' to the URL of the store",
            config.address()
        ));
    }
    Ok(SchemaState { has_tables: row.try_get(3)?, has_trigrams: row.try_get(4)?, has_index: row.try_get(5)? })
}

/// The version of the schema, refused where it is newer than this program.
async fn version(connection: &impl GenericClient, schema: &str) -> PostgresResult<i32> {
    let versions = format!("SELECT coalesce(max(version), 0) FROM {schema}.schema_version");
    let row = only(connection.query_typed(&versions, &[]).await?)?;
    let version = row.try_get(0)?;
    if version > VERSION {
        return Err(Error::invalid_argument(format!(
            "the tables of the Postgres store are of version {version}, and this program knows those up to {VERSION}; use a \
             newer program"
        ))
        .into());
    }
    Ok(version)
}

async fn make_tables(connection: &mut Object, config: &PostgresConfig) -> PostgresResult<()> {
    let schema = &config.schema;
    let transaction = in_turn(connection, config).await?;
    // Another process may have been first; and who may use a schema need not be allowed to make one.
    let row = only(transaction.query_typed(SERVER, &[(&schema, Type::TEXT)]).await?)?;
    if !row.try_get::<_, bool>(2)? {
        transaction.batch_execute(&format!("CREATE SCHEMA {schema}")).await?;
    }
    if !row.try_get::<_, bool>(3)? {
        let table =
            "CREATE TABLE schema_version (version integer PRIMARY KEY, made_at timestamptz NOT NULL DEFAULT now())";
        transaction.batch_execute(table).await?;
    }
    let found = version(&*transaction, schema).await?;
    for (number, step) in (1..).zip(STEPS).filter(|(number, _)| *number > found) {
        transaction.batch_execute(step).await?;
        transaction.batch_execute(&format!("INSERT INTO schema_version (version) VALUES ({number})")).await?;
    }
    Ok(transaction.commit().await?)
}

/// Makes the index that searches ask, where that is possible; whether it is there.
async fn make_search(connection: &mut Object, config: &PostgresConfig) -> PostgresResult<bool> {
    let found = look(connection, config).await?;
    if found.has_index {
        return Ok(true);
    }
    if !found.has_trigrams
        && let Err(fault) = under_lock(connection, config, "CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public").await
    {
        tracing::info!(schema = config.schema, ?fault, "the database has no pg_trgm, so that a search reads all files");
        return if is_not_allowed(&fault) { Ok(false) } else { Err(fault) };
    }
    match under_lock(connection, config, MAKE_INDEX).await {
        Ok(()) => Ok(true),
        Err(fault) if is_not_allowed(&fault) => {
            tracing::info!(schema = config.schema, ?fault, "the index for searches cannot be made by this user");
            Ok(false)
        }
        Err(fault) => Err(fault),
    }
}

async fn under_lock(connection: &mut Object, config: &PostgresConfig, sql: &str) -> PostgresResult<()> {
    let transaction = in_turn(connection, config).await?;
    transaction.batch_execute(sql).await?;
    Ok(transaction.commit().await?)
}

/// Whether the server said that this user may not, or that it has no such thing.
fn is_not_allowed(fault: &PostgresError) -> bool {
    let PostgresError::Statement(error) = fault else { return false };
    let states = [
        SqlState::INSUFFICIENT_PRIVILEGE,
        SqlState::FEATURE_NOT_SUPPORTED,
        SqlState::UNDEFINED_FILE,
        SqlState::INVALID_SCHEMA_NAME,
        SqlState::UNDEFINED_OBJECT,
    ];
    error.code().is_some_and(|state| states.contains(state))
}
