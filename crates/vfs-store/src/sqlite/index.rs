//! Trigram index of contents.
//!
//! What is indexed is folded first, each letter to one that is the same for all cases of it, where that is an ASCII letter;
//! other letters stay as they are. A needle is folded in the same way, so whatever holds it holds the same three characters
//! in a row. Where case does not matter, only those of ASCII alone are looked for, as others may be there in another case.
//!
//! A change of the index costs several times what a small write itself costs, and less for each file where many are indexed at
//! once. So files that were written wait until some have come together, and may match anything meanwhile. A file that is
//! written again and again is indexed once.

use std::collections::BTreeSet;

use rusqlite::Connection;
use vfs_core::{CaseMode, VfsPath};

use super::content;
use super::error::SqliteResult;
use super::rows::{self, IndexState};
use crate::store::{CandidateKeys, TextQuery, Write};

/// The largest content that is indexed, in bytes.
pub(super) const MAX_INDEXED: usize = 8 << 20;
/// How many files wait at most, and how many bytes they have together: a search reads them all.
const MAX_PENDING_ENTRIES: u64 = 64;
const MAX_PENDING_BYTES: u64 = 1 << 20;
/// A change that removes at least so many files does not remove them from the index.
const BULK_DELETE_THRESHOLD: usize = 64;
/// How many of these a later change removes from the index. Others wait for some 10 ms.
const MAX_PURGE_BATCH: u16 = 1000;
/// How many segments of one level are merged; SQLite's default.
const AUTOMERGE: i64 = 4;
/// Most threes that are looked for of one needle, and most needles.
const MAX_TRIGRAMS: usize = 24;
const MAX_TEXTS: usize = 64;

/// Whether `content` is to be indexed.
pub(super) fn is_text(content: &[u8]) -> bool {
    text(content).is_some()
}

/// `content` as text; `None` where it is none, or is too large.
fn text(content: &[u8]) -> Option<&str> {
    if content.len() > MAX_INDEXED || content.contains(&0) {
        return None;
    }
    std::str::from_utf8(content).ok()
}

/// The text of `content` as it is indexed; `None` where it is not to be.
pub(super) fn folded(namespace: i64, content: &[u8]) -> Option<String> {
    let text = text(content)?;
    let mut folded = String::with_capacity(text.len() + 12);
    folded.extend(mark(namespace));
    if text.is_ascii() {
        folded.push_str(text);
        folded.make_ascii_lowercase();
    } else {
        folded.extend(text.chars().map(fold));
    }
    Some(folded)
}

/// A letter that stands for all cases of `letter` if that is an ASCII letter in one of them, else `letter` itself.
fn fold(letter: char) -> char {
    match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        // What SQLite's index takes for them.
        '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        _ => letter.to_ascii_lowercase(),
    }
}

/// Three characters that every text of a namespace begins with, so that what others hold costs nothing. They are for private
/// use: a file that has the same ones is looked into for nothing, no more.
fn mark(namespace: i64) -> [char; 3] {
    [30, 15, 0].map(|shift| {
        let bits = u32::try_from((namespace >> shift) & 0x7fff).unwrap_or(0);
        char::from_u32(0xf_0000 + bits).unwrap_or('\u{f0000}')
    })
}

/// Whether the index is updated in the transaction that changes the files, or afterwards.
#[derive(Debug, Clone, Copy)]
pub(super) struct IndexTiming {
    /// Whether files that are written are indexed in that transaction, as they are too many to wait.
    pub(super) indexes_immediately: bool,
    /// How many calls of [`purge_removed`] follow the transaction; 0 where it updates the index itself. One more than its own files
    /// need, so that a backlog of earlier changes shrinks.
    pub(super) purge_passes: usize,
}

impl IndexTiming {
    pub(super) fn of(writes: &[Write]) -> Self {
        let written = writes.iter().filter(|write| matches!(write, Write::Put(..))).count();
        let deleted = writes.iter().filter(|write| matches!(write, Write::Delete(_))).count();
        // A file may be moved onto each of the others.
        let purge_passes =
            if deleted < BULK_DELETE_THRESHOLD { 0 } else { 1 + writes.len().div_ceil(MAX_PURGE_BATCH.into()) };
        Self { indexes_immediately: written as u64 >= MAX_PENDING_ENTRIES, purge_passes }
    }
}

/// Indexes all files that wait, if they are many.
pub(super) fn catch_up(connection: &Connection) -> SqliteResult<()> {
    let sql = "SELECT count(*), coalesce(sum(size), 0) FROM files WHERE indexed >= 2";
    let (files, bytes): (i64, i64) =
        connection.prepare_cached(sql)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if files.unsigned_abs() < MAX_PENDING_ENTRIES && bytes.unsigned_abs() < MAX_PENDING_BYTES {
        return Ok(());
    }
    purge_removed(connection)?;
    let sql = concat!("SELECT namespace, path, ", rows::columns!(), " FROM files WHERE indexed >= 2");
    let mut waiting = Vec::new();
    let mut statement = connection.prepare_cached(sql)?;
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        waiting.push((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, rows::found(row, 2)?));
    }
    let mut note = connection.prepare_cached("UPDATE files SET indexed = ?3 WHERE namespace = ?1 AND path = ?2")?;
    for (namespace, path, file) in waiting {
        let content = content::read(connection, file.id, file.stored.size, None)?;
        note.execute((namespace, path, write(connection, namespace, file.id, file.indexed, &content)?))?;
    }
    Ok(())
}

/// Indexes the `content` of the file `id`, of which it has what `indexed` says.
pub(super) fn write(
    connection: &Connection,
    namespace: i64,
    id: i64,
    indexed: IndexState,
    content: &[u8],
) -> SqliteResult<IndexState> {
    if indexed.has_row() {
        remove(connection, id)?;
    }
    let Some(text) = folded(namespace, content) else { return Ok(IndexState::Never) };
    connection.prepare_cached("INSERT INTO texts (rowid, body) VALUES (?1, ?2)")?.execute((id, text))?;
    Ok(IndexState::Current)
}

/// Removes the file `id`, which is there.
pub(super) fn remove(connection: &Connection, id: i64) -> SqliteResult<()> {
    connection.prepare_cached("DELETE FROM texts WHERE rowid = ?1")?.execute([id])?;
    Ok(())
}

/// Leaves the file `id`, which is there, to [`purge_removed`].
pub(super) fn remove_later(connection: &Connection, id: i64) -> SqliteResult<()> {
    connection.prepare_cached("INSERT INTO removed (id) VALUES (?1)")?.execute([id])?;
    Ok(())
}

/// Removes some of the files that were left to it. Returns whether others are left.
///
/// SQLite merges segments of the index when it commits removals, which takes seconds in a large index while others wait: 10 s for
/// 12,000 of 200,000 files. The removals themselves take microseconds each, and what they leave behind goes with the merges that
/// later writes bring about.
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

/// Sets how many segments of one level are merged; 0 for none. A rollback takes it back.
fn set_automerge(connection: &Connection, segments: i64) -> SqliteResult<()> {
    connection.prepare_cached("INSERT INTO texts (texts, rank) VALUES ('automerge', ?1)")?.execute([segments])?;
    Ok(())
}

/// The files at and below `prefix` that may hold one of the `needles`; `None` where they cannot be told, or are too many.
pub(super) fn candidates(
    connection: &Connection,
    namespace: i64,
    prefix: &VfsPath,
    query: &TextQuery,
) -> SqliteResult<Option<CandidateKeys>> {
    let Some(question) = question(namespace, query) else { return Ok(None) };
    let mut found = CandidateKeys::new();
    // Adds a path, and says whether they are not too many yet.
    let mut add = |text: &str| {
        // A path that cannot be named cannot be read either; checking the store tells of it.
        if let Ok(path) = rows::path(text)
            && path.starts_with(prefix)
        {
            found.insert(path);
        }
        found.len() <= query.max_candidates
    };
    let sql = "SELECT files.path FROM texts CROSS JOIN files ON files.id = texts.rowid
               WHERE texts MATCH ?1 AND files.namespace = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut matching = statement.query((question, namespace))?;
    while let Some(row) = matching.next()? {
        if !add(row.get_ref(0)?.as_str().unwrap_or_default()) {
            return Ok(None);
        }
    }
    // Some of these are beside the prefix, and `add` passes over them.
    let sql = "SELECT path FROM files WHERE indexed <> 1 AND namespace = ?1 AND path >= ?2 AND path < ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let mut others = statement.query((namespace, prefix.as_str(), rows::below(prefix).1))?;
    while let Some(row) = others.next()? {
        if !add(row.get_ref(0)?.as_str().unwrap_or_default()) {
            return Ok(None);
        }
    }
    Ok(Some(found))
}

/// What to ask the index; `None` where it cannot tell.
fn question(namespace: i64, query: &TextQuery) -> Option<String> {
    if query.texts.is_empty() || query.texts.len() > MAX_TEXTS {
        return None;
    }
    let each = query.texts.iter().map(|needle| {
        let quoted: Vec<_> = threes(needle, query.case)?.iter().map(quote).collect();
        Some(format!("({})", quoted.join(" AND ")))
    });
    let any = each.collect::<Option<Vec<_>>>()?.join(" OR ");
    Some(format!("{} AND ({any})", quote(&mark(namespace))))
}

/// Some of the three characters in a row that whatever holds `needle` holds too; `None` where there are none.
fn threes(needle: &str, case: CaseMode) -> Option<BTreeSet<[char; 3]>> {
    let folded: Vec<char> = needle.chars().map(fold).collect();
    // A smart search is one where case matters or not; what is found for the latter serves both.
    let is_safe = |letter: &char| *letter != '\0' && (case == CaseMode::Sensitive || letter.is_ascii());
    let all: BTreeSet<[char; 3]> =
        folded.array_windows().filter(|three: &&[char; 3]| three.iter().all(is_safe)).copied().collect();
    let step = all.len().div_ceil(MAX_TRIGRAMS).max(1);
    if all.is_empty() { None } else { Some(all.into_iter().step_by(step).collect()) }
}

fn quote(three: &[char; 3]) -> String {
    let text: String = three.iter().collect();
    format!("\"{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every letter that a search without case takes for an ASCII character is folded to the same one.
    #[test]
    fn no_case_of_an_ascii_character_is_left_out() {
        use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
        for ascii in '\0'..='\x7f' {
            let mut cases = ClassUnicode::new([ClassUnicodeRange::new(ascii, ascii)]);
            cases.try_case_fold_simple().expect("the table of cases is there");
            for range in cases.ranges() {
                for letter in range.start()..=range.end() {
                    assert_eq!(fold(letter), fold(ascii), "{letter:?} and {ascii:?}");
                }
            }
        }
    }

    #[test]
    fn only_what_is_safe_is_looked_for() {
        let threes =
            |needle, case| threes(needle, case).map(|threes| threes.iter().map(String::from_iter).collect::<Vec<_>>());
        use CaseMode::{Insensitive, Sensitive, Smart};
        assert_eq!(threes("ab", Sensitive), None);
        assert_eq!(threes("äö", Sensitive), None);
        assert_eq!(threes("Abcd", Sensitive).expect("two"), ["abc", "bcd"]);
        assert_eq!(threes("äöü", Sensitive).expect("one"), ["äöü"]);
        assert_eq!(threes("äöü", Insensitive), None);
        assert_eq!(threes("äöü", Smart), None);
        assert_eq!(threes("müSSig", Insensitive).expect("two"), ["sig", "ssi"]);
        assert_eq!(threes("\u{212a}e\u{17f}", Insensitive).expect("one"), ["kes"]);
        assert_eq!(threes("a\0b", Sensitive), None);
        assert_eq!(threes(&"0123456789abcdefghijklmnopqrstuvwxyz".repeat(100), Sensitive).expect("some").len(), 18);
    }

    #[test]
    fn namespaces_have_marks_of_their_own() {
        let marks: BTreeSet<_> = [1, 2, 0x7fff, 0x8000, 0x8001, 1 << 30, (1 << 30) + 1].map(mark).into();
        assert_eq!(marks.len(), 7);
    }

    #[test]
    fn what_is_no_text_is_not_indexed() {
        assert_eq!(folded(1, b"a\0b"), None);
        assert_eq!(folded(1, b"\xff\xfea"), None);
        assert_eq!(folded(1, &vec![b'a'; MAX_INDEXED + 1]), None);
        assert!(folded(1, "KSÄ\u{212a}\u{17f}".as_bytes()).expect("a text").ends_with("ksÄks"));
    }
}
