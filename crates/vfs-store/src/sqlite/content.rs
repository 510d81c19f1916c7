//! Contents of files, stored in pieces.

use std::ops::Range;

use bytes::Bytes;
use rusqlite::Connection;
use vfs_core::fallible_alloc;

use super::error::{SqliteError, SqliteResult};

/// Size of a piece in bytes.
pub(super) const PIECE_BYTES: u64 = 1 << 20;
/// Number of low bits of a `place` that are the number of the piece; the others are the id of the file.
const NUMBER_BITS: u32 = 20;
/// Maximum size of a value. A change of this size locks the file for seconds, during which other changes wait.
pub(super) const MAX_VALUE: u64 = 1 << 30;

/// Maximum size of a value that is staged in parts: as many bytes as pieces have numbers for.
pub(super) const MAX_STAGED: u64 = PIECE_BYTES << NUMBER_BITS;

/// Returns an id that neither a content nor an entry of the search index uses.
pub(super) fn next_id(connection: &Connection) -> SqliteResult<i64> {
    let sql = "SELECT max(coalesce((SELECT max(id) FROM files), 0), coalesce((SELECT max(id) FROM removed), 0),
                          coalesce((SELECT max(id) FROM staged), 0)) + 1";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// Returns the place of piece `number` of the file `id`.
pub(super) fn place(id: i64, number: u64) -> i64 {
    (id << NUMBER_BITS) | i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns the id of the file whose piece is at `place`, and the number of that piece.
pub(super) fn split_place(place: i64) -> (i64, u64) {
    (place >> NUMBER_BITS, (place & ((1 << NUMBER_BITS) - 1)).unsigned_abs())
}

/// Reads the bytes `range` of the content of the file `id`, which has `size` bytes.
pub(super) fn read(connection: &Connection, id: i64, size: u64, range: Option<Range<u64>>) -> SqliteResult<Bytes> {
    let range = range.unwrap_or(0..size);
    let (start, end) = (range.start.min(size), range.end.min(size));
    if start >= end {
        return Ok(Bytes::new());
    }
    let length = usize::try_from(end - start).map_err(|_| SqliteError::damaged())?;
    let mut content = fallible_alloc::with_capacity(length.min(usize::try_from(MAX_VALUE).unwrap_or(length)))?;
    let mut statement =
        connection.prepare_cached("SELECT place, content FROM chunks WHERE place BETWEEN ?1 AND ?2 ORDER BY place")?;
    let mut rows = statement.query((place(id, start / PIECE_BYTES), place(id, (end - 1) / PIECE_BYTES)))?;
    while let Some(row) = rows.next()? {
        let begins = split_place(row.get(0)?).1 * PIECE_BYTES;
        let piece = row.get_ref(1)?.as_blob().map_err(|_| SqliteError::damaged())?;
        let cut = |at: u64| usize::try_from(at.saturating_sub(begins)).unwrap_or(usize::MAX).min(piece.len());
        content.extend_from_slice(&piece[cut(start)..cut(end)]);
    }
    if content.len() != length {
        return Err(SqliteError::damaged());
    }
    Ok(content.into())
}

/// Writes the pieces of the file `id` from piece number `first` on. None of them may exist.
pub(super) fn write(connection: &Connection, id: i64, first: u64, content: &[u8]) -> SqliteResult<()> {
    let mut statement = connection.prepare_cached("INSERT INTO chunks (place, content) VALUES (?1, ?2)")?;
    for (number, piece) in (first..).zip(content.chunks(usize::try_from(PIECE_BYTES).unwrap_or(usize::MAX))) {
        statement.execute((place(id, number), piece))?;
    }
    Ok(())
}

/// Copies the content of the file `from` to the file `to`, which must not have any.
pub(super) fn copy(connection: &Connection, from: i64, to: i64) -> SqliteResult<()> {
    let sql = "INSERT INTO chunks (place, content)
               SELECT place - ?1 + ?2, content FROM chunks WHERE place >= ?1 AND place < ?3";
    connection.prepare_cached(sql)?.execute((place(from, 0), place(to, 0), place(from + 1, 0)))?;
    Ok(())
}

/// Removes the content of the file `id`.
pub(super) fn remove(connection: &Connection, id: i64) -> SqliteResult<()> {
    let mut statement = connection.prepare_cached("DELETE FROM chunks WHERE place >= ?1 AND place < ?2")?;
    statement.execute((place(id, 0), place(id + 1, 0)))?;
    Ok(())
}

/// Removes at most `max` pieces of the content of the file `id`, and returns how many there were.
pub(super) fn remove_some(connection: &Connection, id: i64, max: usize) -> SqliteResult<usize> {
    let sql = "DELETE FROM chunks WHERE place IN (SELECT place FROM chunks WHERE place >= ?1 AND place < ?2 LIMIT ?3)";
    Ok(connection.prepare_cached(sql)?.execute((
        place(id, 0),
        place(id + 1, 0),
        i64::try_from(max).unwrap_or(i64::MAX),
    ))?)
}
