//! Trigram index of contents.
//!
//! Text is case-folded before it is indexed: each letter with an ASCII case variant becomes the lower-case ASCII
//! letter, and other letters stay as they are. A needle is folded in the same way, so every text that contains the
//! needle also contains its folded trigrams. A case-insensitive search uses the pure ASCII trigrams alone, as the text
//! may have other letters in another case.
//!
//! An update of the index costs several times as much as a small write, and less per file if many files are indexed
//! together. Written files therefore wait until a group of them can be indexed, and are candidates of every search
//! until then. A file that is written repeatedly is indexed once per group.

use std::collections::BTreeSet;

use rusqlite::Connection;
use vfs_core::{CaseMode, VfsPath};

use super::content;
use super::error::SqliteResult;
use super::file_rows::{self, FileIndexState};
use crate::store::{CandidateKeys, TextQuery, Write};

/// Maximum size of an indexed content in bytes.
pub(super) const MAX_INDEXED: usize = 8 << 20;
/// Maximum number of files that wait to be indexed, and of their bytes together; every search reads all of them.
const MAX_PENDING_ENTRIES: u64 = 64;
const MAX_PENDING_BYTES: u64 = 1 << 20;
/// Number of deleted files from which on a change leaves their index entries to [`purge_removed`].
const BULK_DELETE_THRESHOLD: usize = 64;
/// Maximum number of files that one call of [`purge_removed`] removes from the index. Other changes wait about 10 ms
/// for it.
const MAX_PURGE_BATCH: u16 = 1000;
/// Number of index segments at one level that SQLite merges; the default of SQLite.
const AUTOMERGE: i64 = 4;
/// Maximum number of trigrams in the query for one needle, and of needles in a query.
const MAX_TRIGRAMS: usize = 24;
const MAX_TEXTS: usize = 64;

/// Returns whether `content` is text that is indexed.
pub(super) fn is_text(content: &[u8]) -> bool {
    text(content).is_some()
}

/// Returns `content` as text, or `None` if it is binary or too large.
fn text(content: &[u8]) -> Option<&str> {
    if content.len() > MAX_INDEXED || content.contains(&0) {
        return None;
    }
    std::str::from_utf8(content).ok()
}

/// Returns the folded text of `content` for the index, or `None` if it is not indexed.
pub(super) fn fold_text(namespace: i64, content: &[u8]) -> Option<String> {
    let text = text(content)?;
    let mut folded = String::with_capacity(text.len() + 12);
    folded.extend(namespace_mark(namespace));
    if text.is_ascii() {
        folded.push_str(text);
        folded.make_ascii_lowercase();
    } else {
        folded.extend(text.chars().map(fold_char));
    }
    Some(folded)
}

/// Returns the lower-case ASCII letter of which `letter` is a case variant, or `letter` itself if there is none.
fn fold_char(letter: char) -> char {
    match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        // SQLite indexes these noncharacters as U+FFFD.
        '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        _ => letter.to_ascii_lowercase(),
    }
}

/// Returns the three characters with which each indexed text of a namespace begins, so that a query skips the texts of
/// other namespaces. They are from a private use area; a file that contains them is only an additional candidate.
fn namespace_mark(namespace: i64) -> [char; 3] {
    [30, 15, 0].map(|shift| {
        let bits = u32::try_from((namespace >> shift) & 0x7fff).unwrap_or(0);
        char::from_u32(0xf_0000 + bits).unwrap_or('\u{f0000}')
    })
}

/// Decision whether the index is updated in the transaction that changes the files, or afterwards.
#[derive(Debug, Clone, Copy)]
pub(super) struct IndexUpdateTiming {
    /// Whether written files are indexed in that transaction, because there are too many of them to wait.
    pub(super) indexes_immediately: bool,
    /// Number of calls of [`purge_removed`] that follow the transaction; 0 if it removes the entries itself. One more
    /// than its own files need, so that a backlog of earlier changes shrinks.
    pub(super) purge_passes: usize,
}

impl IndexUpdateTiming {
    pub(super) fn of(writes: &[Write]) -> Self {
        let written = writes.iter().filter(|write| matches!(write, Write::Put(..))).count();
        let deleted = writes.iter().filter(|write| matches!(write, Write::Delete(_))).count();
        // A file may be moved onto each of the others.
        let purge_passes =
            if deleted < BULK_DELETE_THRESHOLD { 0 } else { 1 + writes.len().div_ceil(MAX_PURGE_BATCH.into()) };
        Self { indexes_immediately: written as u64 >= MAX_PENDING_ENTRIES, purge_passes }
    }
}

/// Indexes all waiting files if there are enough of them.
pub(super) fn catch_up(connection: &Connection) -> SqliteResult<()> {
    let sql = "SELECT count(*), coalesce(sum(size), 0) FROM files WHERE indexed >= 2";
    let (files, bytes): (i64, i64) =
        connection.prepare_cached(sql)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if files.unsigned_abs() < MAX_PENDING_ENTRIES && bytes.unsigned_abs() < MAX_PENDING_BYTES {
        return Ok(());
    }
    purge_removed(connection)?;
    let sql = concat!("SELECT namespace, path, ", file_rows::columns!(), " FROM files WHERE indexed >= 2");
    let mut waiting = Vec::new();
    let mut statement = connection.prepare_cached(sql)?;
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        waiting.push((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, file_rows::read_file_row(row, 2)?));
    }
    let mut update = connection.prepare_cached("UPDATE files SET indexed = ?3 WHERE namespace = ?1 AND path = ?2")?;
    for (namespace, path, file) in waiting {
        let content = content::read(connection, file.id, file.stored.size, None)?;
        update.execute((namespace, path, write(connection, namespace, file.id, file.indexed, &content)?))?;
    }
    Ok(())
}

/// Indexes the `content` of the file `id` in place of the entry with the state `indexed`. Returns the new state.
pub(super) fn write(
    connection: &Connection,
    namespace: i64,
    id: i64,
    indexed: FileIndexState,
    content: &[u8],
) -> SqliteResult<FileIndexState> {
    if indexed.has_row() {
        remove(connection, id)?;
    }
    let Some(text) = fold_text(namespace, content) else { return Ok(FileIndexState::Never) };
    connection.prepare_cached("INSERT INTO texts (rowid, body) VALUES (?1, ?2)")?.execute((id, text))?;
    Ok(FileIndexState::Current)
}

/// Removes the entry of the file `id`, which must exist.
pub(super) fn remove(connection: &Connection, id: i64) -> SqliteResult<()> {
    connection.prepare_cached("DELETE FROM texts WHERE rowid = ?1")?.execute([id])?;
    Ok(())
}

/// Leaves the removal of the entry of the file `id`, which must exist, to [`purge_removed`].
pub(super) fn mark_removed(connection: &Connection, id: i64) -> SqliteResult<()> {
    connection.prepare_cached("INSERT INTO removed (id) VALUES (?1)")?.execute([id])?;
    Ok(())
}

/// Removes some of the entries that [`mark_removed`] recorded. Returns whether more of them are left.
///
/// SQLite merges segments of the index when it commits removals, which takes seconds in a large index while other
/// changes wait: 10 s for 12,000 of 200,000 files. This function therefore switches merging off. The removals
/// themselves take microseconds each, and the merges of later writes reclaim their space.
pub(super) fn purge_removed(connection: &Connection) -> SqliteResult<bool> {
    let mut statement = connection.prepare_cached("SELECT id FROM removed ORDER BY id LIMIT ?1")?;
    let ids = statement.query_map([MAX_PURGE_BATCH], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
    let Some(last) = ids.last() else { return Ok(false) };
    set_automerge(connection, 0)?;
    ids.iter().try_for_each(|id| remove(connection, *id))?;
    connection.prepare_cached("INSERT INTO texts (texts) VALUES ('flush')")?.execute([])?;
    set_automerge(connection, AUTOMERGE)?;
    connection.prepare_cached("DELETE FROM removed WHERE id <= ?1")?.execute([last])?;
    Ok(ids.len() == usize::from(MAX_PURGE_BATCH))
}

/// Sets the number of segments at one level that SQLite merges; 0 switches merging off. A rollback reverts the setting.
fn set_automerge(connection: &Connection, segments: i64) -> SqliteResult<()> {
    connection.prepare_cached("INSERT INTO texts (texts, rank) VALUES ('automerge', ?1)")?.execute([segments])?;
    Ok(())
}

/// Returns the files at and below `prefix` that may contain one of the texts of `query`, or `None` if the index cannot
/// narrow them down or there are too many of them.
pub(super) fn candidates(
    connection: &Connection,
    namespace: i64,
    prefix: &VfsPath,
    query: &TextQuery,
) -> SqliteResult<Option<CandidateKeys>> {
    let Some(expression) = match_expression(namespace, query) else { return Ok(None) };
    let mut found = CandidateKeys::new();
    // Adds a path, and returns whether the number of candidates is within the limit.
    let mut add = |text: &str| {
        // A row with an invalid path cannot be read either; `Inspect::check` reports it.
        if let Ok(path) = file_rows::parse_path(text)
            && path.starts_with(prefix)
        {
            found.insert(path);
        }
        found.len() <= query.max_candidates
    };
    let sql = "SELECT files.path FROM texts CROSS JOIN files ON files.id = texts.rowid
               WHERE texts MATCH ?1 AND files.namespace = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut matching = statement.query((expression, namespace))?;
    while let Some(row) = matching.next()? {
        if !add(row.get_ref(0)?.as_str().unwrap_or_default()) {
            return Ok(None);
        }
    }
    // The range also contains paths that are neither the prefix nor below it; `add` skips them.
    let sql = "SELECT path FROM files WHERE indexed <> 1 AND namespace = ?1 AND path >= ?2 AND path < ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let mut others = statement.query((namespace, prefix.as_str(), file_rows::range_below(prefix).1))?;
    while let Some(row) = others.next()? {
        if !add(row.get_ref(0)?.as_str().unwrap_or_default()) {
            return Ok(None);
        }
    }
    Ok(Some(found))
}

/// Returns the FTS5 expression that matches the candidates, or `None` if the index cannot narrow them down.
fn match_expression(namespace: i64, query: &TextQuery) -> Option<String> {
    if query.texts.is_empty() || query.texts.len() > MAX_TEXTS {
        return None;
    }
    let each = query.texts.iter().map(|needle| {
        let quoted: Vec<_> = trigrams(needle, query.case)?.iter().map(quote).collect();
        Some(format!("({})", quoted.join(" AND ")))
    });
    let any = each.collect::<Option<Vec<_>>>()?.join(" OR ");
    Some(format!("{} AND ({any})", quote(&namespace_mark(namespace))))
}

/// Returns some of the trigrams that every text with `needle` contains, or `None` if there are none.
fn trigrams(needle: &str, case: CaseMode) -> Option<BTreeSet<[char; 3]>> {
    let folded: Vec<char> = needle.chars().map(fold_char).collect();
    // A smart-case search may turn out to be case-insensitive; the trigrams for that are correct for both.
    let is_safe = |letter: &char| *letter != '\0' && (case == CaseMode::Sensitive || letter.is_ascii());
    let all: BTreeSet<[char; 3]> =
        folded.array_windows().filter(|trigram: &&[char; 3]| trigram.iter().all(is_safe)).copied().collect();
    let step = all.len().div_ceil(MAX_TRIGRAMS).max(1);
    if all.is_empty() { None } else { Some(all.into_iter().step_by(step).collect()) }
}

fn quote(trigram: &[char; 3]) -> String {
    let text: String = trigram.iter().collect();
    format!("\"{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every letter that a case-insensitive search treats as equal to an ASCII character folds to that character.
    #[test]
    fn every_case_variant_of_an_ascii_character_is_folded() {
        use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
        for ascii in '\0'..='\x7f' {
            let mut cases = ClassUnicode::new([ClassUnicodeRange::new(ascii, ascii)]);
            cases.try_case_fold_simple().expect("the table of cases is there");
            for range in cases.ranges() {
                for letter in range.start()..=range.end() {
                    assert_eq!(fold_char(letter), fold_char(ascii), "{letter:?} and {ascii:?}");
                }
            }
        }
    }

    #[test]
    fn only_trigrams_that_every_match_contains_are_queried() {
        let trigrams = |needle, case| {
            trigrams(needle, case).map(|trigrams| trigrams.iter().map(String::from_iter).collect::<Vec<_>>())
        };
        use CaseMode::{Insensitive, Sensitive, Smart};
        assert_eq!(trigrams("ab", Sensitive), None);
        assert_eq!(trigrams("äö", Sensitive), None);
        assert_eq!(trigrams("Abcd", Sensitive).expect("two"), ["abc", "bcd"]);
        assert_eq!(trigrams("äöü", Sensitive).expect("one"), ["äöü"]);
        assert_eq!(trigrams("äöü", Insensitive), None);
        assert_eq!(trigrams("äöü", Smart), None);
        assert_eq!(trigrams("müSSig", Insensitive).expect("two"), ["sig", "ssi"]);
        assert_eq!(trigrams("\u{212a}e\u{17f}", Insensitive).expect("one"), ["kes"]);
        assert_eq!(trigrams("a\0b", Sensitive), None);
        assert_eq!(trigrams(&"0123456789abcdefghijklmnopqrstuvwxyz".repeat(100), Sensitive).expect("some").len(), 18);
    }

    #[test]
    fn namespaces_have_marks_of_their_own() {
        let marks: BTreeSet<_> = [1, 2, 0x7fff, 0x8000, 0x8001, 1 << 30, (1 << 30) + 1].map(namespace_mark).into();
        assert_eq!(marks.len(), 7);
    }

    #[test]
    fn binary_and_large_contents_are_not_indexed() {
        assert_eq!(fold_text(1, b"a\0b"), None);
        assert_eq!(fold_text(1, b"\xff\xfea"), None);
        assert_eq!(fold_text(1, &vec![b'a'; MAX_INDEXED + 1]), None);
        assert!(fold_text(1, "KSÄ\u{212a}\u{17f}".as_bytes()).expect("a text").ends_with("ksÄks"));
    }
}
