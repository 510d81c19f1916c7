//! Database schema and its migrations.

use deadpool_postgres::{Object, Transaction};
use tokio::time::timeout;
use tokio_postgres::GenericClient;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use vfs_core::{Error, ErrorKind};

use super::config::PostgresConfig;
use super::error::{PostgresError, PostgresResult};
use super::postgres_client::{ANSWER_GRACE_TIMEOUT, PostgresClient};
use super::statement::single_row;

/// Migrations from each schema version to the next; the first creates the tables in an empty schema.
///
/// A released migration never changes, as databases of its version exist.
const MIGRATIONS: &[&str] = &[include_str!("schema/1.sql"), include_str!("schema/2.sql"), include_str!("schema/3.sql")];

/// Schema version that this program writes.
const VERSION: i32 = MIGRATIONS.len() as i32;

/// Version of the oldest server that supports all statements of the store.
const MIN_SERVER_VERSION: i32 = 130_000;

/// Key of the advisory lock under which tables are created and migrated: "vfss".
const MIGRATION_LOCK: i64 = 0x7666_7373;

const SCHEMA_STATE: &str = "SELECT current_setting('server_version_num')::integer, current_setting('server_encoding'), \
                      to_regnamespace($1) IS NOT NULL, to_regclass($1 || '.schema_version') IS NOT NULL, \
                      EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_trgm'), \
                      coalesce((SELECT indisvalid FROM pg_index \
                          WHERE indexrelid = to_regclass($1 || '.chunks_searched')), false), \
                      current_setting('search_path')";

// The operators are in the schema of the extension, which can be any schema.
const CREATE_SEARCH_INDEX: &str = "DO $do$ BEGIN EXECUTE format('CREATE INDEX IF NOT EXISTS chunks_searched ON chunks \
                          USING gin ((searchable(data) COLLATE \"C\") %I.gin_trgm_ops) \
                          WITH (gin_pending_list_limit = 256) WHERE is_text', \
                          (SELECT nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace \
                          WHERE extname = 'pg_trgm')); END $do$";

/// State of the schema of a database.
struct SchemaState {
    has_tables: bool,
    has_trigrams: bool,
    has_index: bool,
}

/// Creates or migrates the schema, also if other processes do so at the same time. Returns whether it has a search
/// index.
pub(super) async fn prepare(server: &PostgresClient, connection: &mut Object) -> PostgresResult<bool> {
    let config = &server.config;
    let is_prepared = async {
        let found = read_state(connection, config).await?;
        Ok::<_, PostgresError>(
            found.has_tables && version(&***connection, &config.schema).await? == VERSION && found.has_index,
        )
    };
    if server.with_timeout(is_prepared).await? {
        return Ok(true);
    }
    let preparation = async {
        migrate_tables(connection, config).await?;
        create_search_index(connection, config).await
    };
    match timeout(config.prepare_timeout + ANSWER_GRACE_TIMEOUT, preparation).await {
        Ok(Err(fault)) if fault.is_time_limit() => Err(not_ready_error(config)),
        Ok(result) => result,
        Err(_) => Err(PostgresError::NoResponse),
    }
}

/// Returns the error of tables that were not ready in time. Either another process creates them, or this one was too
/// slow.
fn not_ready_error(config: &PostgresConfig) -> PostgresError {
    let message = format!(
        "the tables of the Postgres store at {} were not ready within {}; another process may be creating or locking them: \
         end that process if it hangs, or raise 'prepare_timeout'",
        config.address(),
        humantime::format_duration(config.prepare_timeout),
    );
    Error::new(ErrorKind::Timeout, message).into()
}

/// Begins a transaction that has the migration lock. Another process may have it, for a long time with a large
/// database.
async fn begin_migration<'a>(connection: &'a mut Object, config: &PostgresConfig) -> PostgresResult<Transaction<'a>> {
    let transaction = connection.transaction().await?;
    let limit = config.prepare_timeout.as_millis();
    let path = &config.schema;
    let settings = "SET LOCAL lock_timeout = 0; SET LOCAL client_min_messages = error";
    let limits = format!("{settings}; SET LOCAL search_path = {path}; SET LOCAL statement_timeout = {limit}");
    transaction.batch_execute(&limits).await?;
    transaction.batch_execute(&format!("SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")).await?;
    Ok(transaction)
}

async fn read_state(connection: &Object, config: &PostgresConfig) -> PostgresResult<SchemaState> {
    let row = single_row(connection.query_typed(SCHEMA_STATE, &[(&config.schema, Type::TEXT)]).await?)?;
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
            "the Postgres server at {} ignores the session settings of the store, as it does behind a pooler; add 'pooled=true' \
             to the URL of the store",
            config.address()
        ));
    }
    Ok(SchemaState { has_tables: row.try_get(3)?, has_trigrams: row.try_get(4)?, has_index: row.try_get(5)? })
}

/// Returns the version of the schema, or an error if it is newer than this program.
async fn version(connection: &impl GenericClient, schema: &str) -> PostgresResult<i32> {
    let versions = format!("SELECT coalesce(max(version), 0) FROM {schema}.schema_version");
    let row = single_row(connection.query_typed(&versions, &[]).await?)?;
    let version = row.try_get(0)?;
    if version > VERSION {
        return Err(Error::invalid_argument(format!(
            "the tables of the Postgres store are of version {version}, and this program supports versions up to {VERSION}; \
             use a newer program"
        ))
        .into());
    }
    Ok(version)
}

async fn migrate_tables(connection: &mut Object, config: &PostgresConfig) -> PostgresResult<()> {
    let schema = &config.schema;
    let transaction = begin_migration(connection, config).await?;
    // Another process may have created the schema. A user who may use a schema need not have the right to create one.
    let row = single_row(transaction.query_typed(SCHEMA_STATE, &[(&schema, Type::TEXT)]).await?)?;
    if !row.try_get::<_, bool>(2)? {
        transaction.batch_execute(&format!("CREATE SCHEMA {schema}")).await?;
    }
    if !row.try_get::<_, bool>(3)? {
        let table =
            "CREATE TABLE schema_version (version integer PRIMARY KEY, made_at timestamptz NOT NULL DEFAULT now())";
        transaction.batch_execute(table).await?;
    }
    let found = version(&*transaction, schema).await?;
    for (number, migration) in (1..).zip(MIGRATIONS).filter(|(number, _)| *number > found) {
        transaction.batch_execute(migration).await?;
        transaction.batch_execute(&format!("INSERT INTO schema_version (version) VALUES ({number})")).await?;
    }
    Ok(transaction.commit().await?)
}

/// Creates the search index if possible. Returns whether it exists.
async fn create_search_index(connection: &mut Object, config: &PostgresConfig) -> PostgresResult<bool> {
    let found = read_state(connection, config).await?;
    if found.has_index {
        return Ok(true);
    }
    if !found.has_trigrams
        && let Err(fault) =
            execute_locked(connection, config, "CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public").await
    {
        tracing::info!(schema = config.schema, ?fault, "the database has no pg_trgm, so searches read all files");
        return if is_not_allowed(&fault) { Ok(false) } else { Err(fault) };
    }
    match execute_locked(connection, config, CREATE_SEARCH_INDEX).await {
        Ok(()) => Ok(true),
        Err(fault) if is_not_allowed(&fault) => {
            tracing::info!(schema = config.schema, ?fault, "this user cannot create the search index");
            Ok(false)
        }
        Err(fault) => Err(fault),
    }
}

async fn execute_locked(connection: &mut Object, config: &PostgresConfig, sql: &str) -> PostgresResult<()> {
    let transaction = begin_migration(connection, config).await?;
    transaction.batch_execute(sql).await?;
    Ok(transaction.commit().await?)
}

/// Returns whether this user lacks the right, or the server lacks the feature.
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
