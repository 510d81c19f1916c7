//! Database schema and its migrations.

use rusqlite::{Connection, Transaction, TransactionBehavior};
use vfs_core::{Error, ErrorKind};

use super::error::SqliteResult;

/// Application id of SQLite files of this store: "vfss".
const APPLICATION: i32 = 0x7666_7373;

/// Migrations from each schema version to the next; the first creates the tables in an empty file.
///
/// A released migration never changes, as files of its version exist.
const MIGRATIONS: &[&str] = &[
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
];

/// Schema version of the files that this program writes.
pub(super) const VERSION: usize = MIGRATIONS.len();

/// Migrates the file to the current version. Other processes may migrate it at the same time.
pub(super) fn prepare(connection: &mut Connection) -> SqliteResult<()> {
    let found = version(&connection.transaction()?)?;
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode != "wal" && mode != "memory" {
        let message = "the file system of the SQLite file of the store cannot share memory between processes, which is \
                       common for network file systems; move the file to a local disk";
        return Err(Error::new(ErrorKind::Unsupported, message).into());
    }
    if found == VERSION {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have migrated the file in the meantime.
    for migration in &MIGRATIONS[version(&transaction)?..] {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", i64::try_from(VERSION).unwrap_or(i64::MAX))?;
    Ok(transaction.commit()?)
}

/// Returns an error if the file no longer has the version with which it was opened: a newer program upgraded it, or it
/// was replaced by another file.
pub(super) fn require_current(connection: &Connection) -> SqliteResult<()> {
    let version: i64 = connection.prepare_cached("PRAGMA user_version")?.query_row([], |row| row.get(0))?;
    let message = match usize::try_from(version) {
        Ok(VERSION) => return Ok(()),
        Ok(earlier) if earlier < VERSION => format!(
            "the SQLite file of the store was replaced by one of version {version} while it was open; open the store again"
        ),
        _ => unknown_version(version),
    };
    Err(Error::invalid_argument(message).with_generic_model_message().into())
}

fn unknown_version(version: i64) -> String {
    format!(
        "the SQLite file of the store is of version {version}, and this program supports versions up to {VERSION}; use a newer \
         program"
    )
}

/// Returns the schema version of the file; 0 if the file is empty.
fn version(transaction: &Transaction<'_>) -> SqliteResult<usize> {
    let application: i32 = transaction.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let refuse = |message: String| Err(Error::invalid_argument(message).into());
    match usize::try_from(version) {
        Ok(0) if application == 0 && tables == 0 => Ok(0),
        _ if application != APPLICATION => {
            refuse("the SQLite file of the store is another program's; name a different file".to_owned())
        }
        Ok(version @ 1..=VERSION) => Ok(version),
        _ => refuse(unknown_version(version)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_migration_changes_nothing() {
        let mut connection = Connection::open_in_memory().expect("memory");
        prepare(&mut connection).expect("the first time");
        let changes = connection.total_changes();
        prepare(&mut connection).expect("the second time");
        assert_eq!(connection.total_changes(), changes);
        assert_eq!(version(&connection.transaction().expect("it begins")).expect("ours"), VERSION);
    }

    #[test]
    fn a_file_of_an_earlier_version_is_migrated() {
        let mut connection = Connection::open_in_memory().expect("memory");
        connection.execute_batch(MIGRATIONS[0]).expect("the first version");
        connection.pragma_update(None, "application_id", APPLICATION).expect("it is marked");
        connection.pragma_update(None, "user_version", 1).expect("it is marked");
        prepare(&mut connection).expect("it is ours");
        assert_eq!(version(&connection.transaction().expect("it begins")).expect("ours"), VERSION);
        connection.execute("INSERT INTO removed VALUES (1)", []).expect("the table of the second version");
        connection.execute("INSERT INTO staged VALUES (1, 'a', 0)", []).expect("the table of the third version");
    }

    #[test]
    fn a_file_of_another_program_is_refused_unchanged() {
        for (sql, word) in [
            ("CREATE TABLE accounts (id)", "another program's"),
            ("PRAGMA application_id = 7", "another program's"),
            ("PRAGMA user_version = 1", "another program's"),
            ("PRAGMA application_id = 0x76667373; PRAGMA user_version = 99", "newer program"),
            ("PRAGMA application_id = 0x76667373; PRAGMA user_version = -1", "newer program"),
        ] {
            let mut connection = Connection::open_in_memory().expect("memory");
            connection.execute_batch(sql).expect(sql);
            let error = Error::from(prepare(&mut connection).expect_err(sql));
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{sql}");
            assert!(error.message().contains(word), "{sql}: {error}");
            let files = "SELECT count(*) FROM sqlite_schema WHERE name = 'files'";
            assert_eq!(connection.query_row(files, [], |row| row.get::<_, i64>(0)).expect("it counts"), 0, "{sql}");
        }
    }
}
