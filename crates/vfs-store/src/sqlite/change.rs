//! Batches of writes within a transaction.

use chrono::{DateTime, Utc};
use rusqlite::Connection;
use vfs_core::VfsPath;

use super::config::SqliteSearchIndex;
use super::error::{SqliteError, SqliteResult};
use super::file_rows::{self, FileIndexState, FileRow};
use super::trigram_index::{self, IndexUpdateTiming};
use super::{change_log, content, staging};
use crate::store::{
    BatchOutcome, ChangeRecord, Condition, Namespace, NewValue, StagedContent, StoredMeta, ValueContent, Write, WriteId,
};

/// State of a batch that is being applied to one namespace: its sequence numbers, counts and index updates.
struct BatchWriter<'a> {
    connection: &'a Connection,
    namespace: i64,
    /// Sequence number of the newest change before this batch.
    before: i64,
    /// Sequence number of the newest change.
    sequence: i64,
    /// Sequence number of the last change of this batch; each write is one change.
    last: i64,
    files: i64,
    bytes: i64,
    search_index: SqliteSearchIndex,
    timing: IndexUpdateTiming,
    /// Whether the batch left a file that is to be indexed later.
    has_pending_files: bool,
    /// The id of the next new file; `None` before the first one.
    next_id: Option<i64>,
}

/// Reason why a batch ends early.
enum BatchError {
    /// A write needs a file at this path, and there is none.
    Missing(VfsPath),
    SqliteError(SqliteError),
}

impl<E: Into<SqliteError>> From<E> for BatchError {
    fn from(error: E) -> Self {
        Self::SqliteError(error.into())
    }
}

/// Applies all of the `writes` if all of the `conditions` hold. If a condition fails, the caller rolls the transaction
/// back.
pub(super) fn batch(
    connection: &Connection,
    namespace: &Namespace,
    search_index: SqliteSearchIndex,
    conditions: &[Condition],
    writes: &[Write],
) -> SqliteResult<BatchOutcome> {
    let id = file_rows::namespace_id(connection, namespace)?;
    for condition in conditions {
        if let Some(failure) = check_condition(connection, id, condition)? {
            return Ok(failure);
        }
    }
    let mut writer = BatchWriter::begin(connection, namespace, search_index, writes)?;
    let mut applied = Vec::with_capacity(writes.len());
    for write in writes {
        match writer.apply(write.clone()) {
            Ok(stored) => applied.push(stored),
            Err(BatchError::Missing(path)) => return Ok(BatchOutcome::PreconditionFailed(path, None)),
            Err(BatchError::SqliteError(fault)) => return Err(fault),
        }
    }
    writer.finish()?;
    Ok(BatchOutcome::Applied(applied))
}

/// Returns the outcome of the batch if `condition` does not hold, or `None` if it holds.
fn check_condition(
    connection: &Connection,
    namespace: Option<i64>,
    condition: &Condition,
) -> SqliteResult<Option<BatchOutcome>> {
    let (Condition::At(path, _) | Condition::NothingBelow(path)) = condition;
    let found = match namespace {
        Some(namespace) => file_rows::find(connection, namespace, path.as_str())?.map(|found| found.stored),
        None => None,
    };
    let holds = match (condition, namespace) {
        (Condition::At(_, expected), _) => expected.holds(found.as_ref()),
        (Condition::NothingBelow(_), Some(namespace)) => !file_rows::has_below(connection, namespace, path)?,
        (Condition::NothingBelow(_), None) => true,
    };
    Ok((!holds).then(|| BatchOutcome::PreconditionFailed(path.clone(), found)))
}

impl<'a> BatchWriter<'a> {
    fn begin(
        connection: &'a Connection,
        namespace: &Namespace,
        search_index: SqliteSearchIndex,
        writes: &[Write],
    ) -> SqliteResult<Self> {
        connection
            .prepare_cached("INSERT INTO namespaces (name) VALUES (?1) ON CONFLICT DO NOTHING")?
            .execute([namespace.as_str()])?;
        let mut statement = connection.prepare_cached("SELECT id, sequence FROM namespaces WHERE name = ?1")?;
        let (id, sequence): (i64, i64) =
            statement.query_row([namespace.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Self {
            connection,
            namespace: id,
            before: sequence,
            sequence,
            last: sequence + i64::try_from(writes.len()).unwrap_or(i64::MAX - sequence),
            files: 0,
            bytes: 0,
            search_index,
            timing: IndexUpdateTiming::of(writes),
            has_pending_files: false,
            next_id: None,
        })
    }

    fn finish(self) -> SqliteResult<()> {
        if self.has_pending_files {
            trigram_index::catch_up(self.connection)?;
        }
        let sql = "UPDATE namespaces SET sequence = ?2, files = files + ?3, bytes = bytes + ?4 WHERE id = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.execute((self.namespace, self.sequence, self.files, self.bytes))?;
        change_log::trim(self.connection, self.namespace, self.before, self.sequence)
    }

    /// Applies one `write`. Returns the metadata of the resulting file, or of the removed file.
    fn apply(&mut self, write: Write) -> Result<StoredMeta, BatchError> {
        match write {
            Write::Put(path, value) => Ok(self.put(path, &value)?),
            Write::Delete(path) => {
                let Some(found) = self.find(&path)? else { return Err(BatchError::Missing(path)) };
                self.remove(&path, &found)?;
                self.log_change(&ChangeRecord::Removed(path))?;
                Ok(found.stored)
            }
            Write::Move { from, to } => {
                let Some(found) = self.find(&from)? else { return Err(BatchError::Missing(from)) };
                self.rename(&from, &to)?;
                self.log_change(&ChangeRecord::Moved { from, to, stored: found.stored.clone() })?;
                Ok(found.stored)
            }
            Write::Copy { from, to, at } => {
                let Some(found) = self.find(&from)? else { return Err(BatchError::Missing(from)) };
                Ok(self.copy(&found, to, at)?)
            }
        }
    }

    fn find(&self, path: &VfsPath) -> SqliteResult<Option<FileRow>> {
        file_rows::find(self.connection, self.namespace, path.as_str())
    }

    fn put(&mut self, path: VfsPath, value: &NewValue) -> SqliteResult<StoredMeta> {
        let stored =
            StoredMeta::new(value.content.size(), value.content.version(), file_rows::truncate_time(value.modified_at))
                .created_at(file_rows::truncate_time(value.created_at));
        let before = self.find(&path)?;
        let content = match &value.content {
            ValueContent::Bytes(content) => content,
            ValueContent::Staged(staged) => return self.put_staged(path, staged, stored, before.as_ref(), value.id),
        };
        let is_same = before.as_ref().is_some_and(|found| found.stored.version == stored.version);
        let id = self.prepare_id(before.as_ref(), is_same)?;
        if !is_same {
            content::write(self.connection, id, 0, content)?;
        }
        let is_indexed = self.search_index == SqliteSearchIndex::On;
        let indexed = if is_indexed && self.timing.indexes_immediately && !is_same {
            let indexed = before.as_ref().map_or(FileIndexState::Never, |found| found.indexed);
            trigram_index::write(self.connection, self.namespace, id, indexed, content)?
        } else {
            self.update_index(before.as_ref(), is_same, is_indexed && trigram_index::is_text(content))?
        };
        self.write_row(path, FileRow { id, stored, indexed }, before.as_ref(), value.id)
    }

    /// Replaces the content of the file at `path` with a staged content, which is too large to be indexed.
    fn put_staged(
        &mut self,
        path: VfsPath,
        staged: &StagedContent,
        stored: StoredMeta,
        before: Option<&FileRow>,
        write: WriteId,
    ) -> SqliteResult<StoredMeta> {
        let id = staging::take(self.connection, staged)?;
        if let Some(found) = before {
            content::remove(self.connection, found.id)?;
            if found.indexed.has_row() {
                trigram_index::remove(self.connection, found.id)?;
            }
        }
        self.write_row(path, FileRow { id, stored, indexed: FileIndexState::Never }, before, write)
    }

    fn copy(&mut self, source: &FileRow, to: VfsPath, at: DateTime<Utc>) -> SqliteResult<StoredMeta> {
        let at = file_rows::truncate_time(at);
        let stored = StoredMeta::new(source.stored.size, source.stored.version.clone(), at).created_at(at);
        let before = self.find(&to)?;
        let is_same = before.as_ref().is_some_and(|found| found.stored.version == stored.version);
        let id = self.prepare_id(before.as_ref(), is_same)?;
        if !is_same {
            content::copy(self.connection, source.id, id)?;
        }
        let is_text = self.search_index == SqliteSearchIndex::On && source.indexed != FileIndexState::Never;
        let indexed = self.update_index(before.as_ref(), is_same, is_text)?;
        self.write_row(to, FileRow { id, stored, indexed }, before.as_ref(), WriteId::random())
    }

    /// Returns the id under which the new content of a file is written. This is the id of the file that was there
    /// `before`, whose content is removed unless it stays the same, or a new id.
    fn prepare_id(&mut self, before: Option<&FileRow>, is_same: bool) -> SqliteResult<i64> {
        let Some(found) = before else { return self.new_id() };
        if !is_same {
            content::remove(self.connection, found.id)?;
        }
        Ok(found.id)
    }

    fn new_id(&mut self) -> SqliteResult<i64> {
        let id = match self.next_id {
            Some(id) => id,
            None => content::next_id(self.connection)?,
        };
        self.next_id = Some(id + 1);
        Ok(id)
    }

    /// Updates the index entry of a file that replaces `before`, unless that is left to [`trigram_index::catch_up`]. Returns
    /// the new state of the entry.
    fn update_index(&mut self, before: Option<&FileRow>, is_same: bool, is_text: bool) -> SqliteResult<FileIndexState> {
        let indexed = before.map_or(FileIndexState::Never, |found| found.indexed);
        if is_same && indexed != FileIndexState::Never {
            return Ok(indexed);
        }
        if is_text {
            self.has_pending_files = true;
            return Ok(if indexed.has_row() { FileIndexState::Stale } else { FileIndexState::Waiting });
        }
        if let Some(found) = before.filter(|found| found.indexed.has_row()) {
            trigram_index::remove(self.connection, found.id)?;
        }
        Ok(FileIndexState::Never)
    }

    fn rename(&mut self, from: &VfsPath, to: &VfsPath) -> SqliteResult<()> {
        if from == to {
            return Ok(());
        }
        if let Some(replaced) = self.find(to)? {
            self.remove(to, &replaced)?;
        }
        let sql = "UPDATE files SET path = ?3 WHERE namespace = ?1 AND path = ?2";
        self.connection.prepare_cached(sql)?.execute((self.namespace, from.as_str(), to.as_str()))?;
        Ok(())
    }

    /// Writes the row of a file whose content is already written, and appends the change to the log.
    fn write_row(
        &mut self,
        path: VfsPath,
        file: FileRow,
        before: Option<&FileRow>,
        write: WriteId,
    ) -> SqliteResult<StoredMeta> {
        let sql = "INSERT INTO files (namespace, path, id, size, version, created, modified, write_id, indexed)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
                   ON CONFLICT (namespace, path) DO UPDATE SET
                   id = excluded.id, size = excluded.size, version = excluded.version, created = excluded.created,
                   modified = excluded.modified, write_id = excluded.write_id, indexed = excluded.indexed";
        let FileRow { id, stored, indexed } = file;
        let modified = stored.modified_at.timestamp_micros();
        self.connection.prepare_cached(sql)?.execute((
            self.namespace,
            path.as_str(),
            id,
            stored.size.cast_signed(),
            file_rows::version_bytes(&stored)?,
            stored.created_at.map_or(modified, |time| time.timestamp_micros()),
            modified,
            write.get().to_be_bytes(),
            indexed,
        ))?;
        self.bytes += stored.size.cast_signed() - before.map_or(0, |found| found.stored.size.cast_signed());
        self.files += i64::from(before.is_none());
        let change = if before.is_some() { ChangeRecord::Changed } else { ChangeRecord::Created };
        self.log_change(&change(path, stored.clone()))?;
        Ok(stored)
    }

    fn remove(&mut self, path: &VfsPath, found: &FileRow) -> SqliteResult<()> {
        content::remove(self.connection, found.id)?;
        if found.indexed.has_row() {
            let remove = if self.timing.purge_passes > 0 { trigram_index::mark_removed } else { trigram_index::remove };
            remove(self.connection, found.id)?;
        }
        let mut statement = self.connection.prepare_cached("DELETE FROM files WHERE namespace = ?1 AND path = ?2")?;
        statement.execute((self.namespace, path.as_str()))?;
        self.files -= 1;
        self.bytes -= found.stored.size.cast_signed();
        Ok(())
    }

    fn log_change(&mut self, record: &ChangeRecord) -> SqliteResult<()> {
        self.sequence += 1;
        if change_log::is_trimmed_at(self.sequence, self.last) {
            return Ok(());
        }
        change_log::append(self.connection, self.namespace, self.sequence, record)
    }
}
