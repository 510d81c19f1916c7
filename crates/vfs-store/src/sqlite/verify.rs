//! Verification of contents, counts, log and search index.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, Transaction};
use vfs_core::{Error, ErrorKind, Problem, Version, VfsPath};

use super::content::{self, PIECE_BYTES};
use super::error::SqliteResult;
use super::file_rows::FileIndexState;
use super::interrupt::InterruptToken;
use super::{file_rows, trigram_index};
use crate::store::{CheckReport, Namespace};

/// Maximum number of problems that are listed; further problems are only counts.
const MAX_PROBLEMS: usize = 1000;

/// Counts of one namespace.
#[derive(Debug, Default)]
struct NamespaceCounts {
    files: i64,
    bytes: i64,
}

/// Number of the trigrams of one file, and the sum of their hashes, which does not depend on their order.
type TrigramSum = (u64, u64);

/// State of the verification of a whole store.
struct StoreVerifier<'a> {
    connection: &'a Transaction<'a>,
    token: &'a InterruptToken,
    report: CheckReport,
    more_problems: u64,
    namespaces: HashMap<i64, NamespaceCounts>,
    ids: HashSet<i64>,
    index: HashMap<i64, TrigramSum>,
}

/// Verifies a snapshot of the whole store.
pub(super) fn verify(connection: &mut Connection, token: &InterruptToken) -> SqliteResult<CheckReport> {
    // Temporary table of this connection that lists the trigrams in the index.
    connection
        .execute_batch("CREATE VIRTUAL TABLE IF NOT EXISTS temp.threes USING fts5vocab('main', 'texts', 'instance')")?;
    let transaction = connection.transaction()?;
    let mut check = StoreVerifier {
        connection: &transaction,
        token,
        report: CheckReport::default(),
        more_problems: 0,
        namespaces: HashMap::new(),
        ids: HashSet::new(),
        index: HashMap::new(),
    };
    // If pages are damaged, problems found by other checks would only be consequences.
    if check.check_pages()? {
        check.read_index()?;
        check.check_files()?;
        check.check_leftovers()?;
        check.check_namespaces()?;
        check.check_changes()?;
    }
    Ok(check.finish())
}

impl StoreVerifier<'_> {
    fn add_problem(&mut self, namespace: Option<&str>, path: Option<&str>, message: impl Into<String>) {
        if self.report.problems.len() == MAX_PROBLEMS {
            self.more_problems += 1;
            return;
        }
        let place = match (namespace, path) {
            (Some("") | None, path) => path.unwrap_or_default().to_owned(),
            (Some(namespace), path) => format!("{namespace}:{}", path.unwrap_or("/")),
        };
        self.report.problems.push(Problem::new(place, &Error::new(ErrorKind::Internal, message.into())));
    }

    fn finish(mut self) -> CheckReport {
        if self.more_problems > 0 {
            let message = format!("{} more problems are not listed", self.more_problems);
            self.report.problems.push(Problem::new("", &Error::new(ErrorKind::Internal, message)));
        }
        self.report
    }

    fn check_pages(&mut self) -> SqliteResult<bool> {
        let connection = self.connection;
        // The index caches the state of its own tables between statements, and only a query refreshes it. Without this
        // query, the integrity check of SQLite would report changes of other connections as damage.
        let query = connection.query_row("SELECT count(*) FROM texts WHERE texts MATCH '\"   \"'", [], |_| Ok(()));
        if let Err(error) = query {
            if error.sqlite_error_code() != Some(rusqlite::ErrorCode::DatabaseCorrupt) {
                return Err(error.into());
            }
            self.add_problem(None, None, format!("the search index in the SQLite file is damaged: {error}"));
        }
        let mut statement = connection.prepare("PRAGMA integrity_check")?;
        let mut rows = statement.query([])?;
        let mut is_intact = true;
        while let Some(row) = rows.next()? {
            let line: String = row.get(0)?;
            if line != "ok" {
                is_intact = false;
                self.add_problem(None, None, format!("the SQLite file is damaged: {line}"));
            }
        }
        Ok(is_intact)
    }

    /// Sums up the trigrams of each file in the index.
    fn read_index(&mut self) -> SqliteResult<()> {
        let connection = self.connection;
        let mut statement = connection.prepare("SELECT doc, term FROM temp.threes")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let sum = self.index.entry(row.get(0)?).or_default();
            add_to(sum, row.get_ref(1)?.as_bytes().unwrap_or_default());
            if sum.0.is_multiple_of(4096) {
                self.token.check()?;
            }
        }
        Ok(())
    }

    fn check_files(&mut self) -> SqliteResult<()> {
        let sql = concat!(
            "SELECT (SELECT name FROM namespaces WHERE namespaces.id = namespace), namespace, path, ",
            file_rows::columns!(),
            " FROM files ORDER BY namespace, path"
        );
        let connection = self.connection;
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            self.token.check()?;
            let (name, namespace, path): (Option<String>, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let name = name.unwrap_or_else(|| format!("number {namespace}"));
            let found = match file_rows::read_file_row(row, 3) {
                Ok(found) => found,
                Err(_) => {
                    self.add_problem(Some(&name), Some(&path), "the metadata of the file cannot be read");
                    continue;
                }
            };
            let counts = self.namespaces.entry(namespace).or_default();
            counts.files += 1;
            counts.bytes += found.stored.size.cast_signed();
            self.ids.insert(found.id);
            self.report.files += 1;
            if !VfsPath::parse(&path).is_ok_and(|parsed| parsed.as_str() == path && !parsed.is_root()) {
                self.add_problem(Some(&name), Some(&path), "the path cannot name a file");
            }
            let sum = self.check_content(&name, &path, namespace, &found)?;
            let indexed = self.index.remove(&found.id);
            let agrees = match found.indexed {
                FileIndexState::Current => sum.is_some() && sum == indexed,
                FileIndexState::Never | FileIndexState::Waiting => indexed.is_none(),
                FileIndexState::Stale => indexed.is_some(),
            };
            if !agrees {
                self.add_problem(Some(&name), Some(&path), "the search index does not agree with the content");
            }
        }
        Ok(())
    }

    /// Verifies the content of a file piece by piece. Returns the trigrams that the index should have for it.
    fn check_content(
        &mut self,
        name: &str,
        path: &str,
        namespace: i64,
        found: &file_rows::FileRow,
    ) -> SqliteResult<Option<TrigramSum>> {
        let size = found.stored.size;
        let connection = self.connection;
        let mut statement = connection
            .prepare_cached("SELECT place, content FROM chunks WHERE place >= ?1 AND place < ?2 ORDER BY place")?;
        let mut pieces = statement.query((content::place(found.id, 0), content::place(found.id + 1, 0)))?;
        let (mut hasher, mut text, mut expected, mut length) = (blake3::Hasher::new(), Vec::new(), 0, 0);
        while let Some(row) = pieces.next()? {
            let number = content::split_place(row.get(0)?).1;
            let piece = row.get_ref(1)?.as_bytes().unwrap_or_default();
            if number != expected || piece.len() as u64 != PIECE_BYTES.min(size.saturating_sub(number * PIECE_BYTES)) {
                self.add_problem(
                    Some(name),
                    Some(path),
                    format!("piece {number} of the content is misplaced or truncated"),
                );
            }
            expected = number + 1;
            length += piece.len() as u64;
            hasher.update(piece);
            if text.len() <= trigram_index::MAX_INDEXED {
                text.extend_from_slice(piece);
            }
        }
        self.report.bytes += length;
        if length != size {
            self.add_problem(Some(name), Some(path), format!("the content has {length} bytes and should have {size}"));
        } else if Version::new(&hasher.finalize().to_hex()[..32]) != found.stored.version {
            self.add_problem(Some(name), Some(path), "the content is not what was written");
        }
        if found.indexed != FileIndexState::Current {
            return Ok(None);
        }
        Ok(trigram_index::fold_text(namespace, &text).map(|text| {
            let following = text.chars().skip(1).zip(text.chars().skip(2));
            let trigrams: HashSet<_> =
                text.chars().zip(following).map(|(first, (second, third))| [first, second, third]).collect();
            let mut sum = TrigramSum::default();
            trigrams.iter().for_each(|trigram| add_to(&mut sum, String::from_iter(trigram).as_bytes()));
            sum
        }))
    }

    /// Reports contents and index entries that belong to no file.
    fn check_leftovers(&mut self) -> SqliteResult<()> {
        let connection = self.connection;
        let mut statement =
            connection.prepare("SELECT DISTINCT place >> 20 FROM chunks EXCEPT SELECT id FROM staged")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let id = row.get(0)?;
            if !self.ids.contains(&id) {
                self.add_problem(None, None, format!("there is content of a file {id} that does not exist"));
            }
        }
        let mut removed = connection.prepare("SELECT id FROM removed")?;
        for id in removed.query_map([], |row| row.get::<_, i64>(0))? {
            let id = id?;
            if self.ids.contains(&id) {
                self.add_problem(None, None, format!("the file {id} is recorded as removed but still exists"));
            } else if self.index.remove(&id).is_none() {
                self.add_problem(None, None, format!("the removed file {id} has no entry in the search index"));
            }
        }
        let mut left: Vec<i64> = self.index.keys().copied().collect();
        left.sort_unstable();
        for id in left {
            self.add_problem(None, None, format!("the search index has an entry of a file {id} that does not exist"));
        }
        Ok(())
    }

    fn check_namespaces(&mut self) -> SqliteResult<()> {
        let connection = self.connection;
        let mut statement = connection.prepare("SELECT id, name, files, bytes FROM namespaces ORDER BY name")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (id, name): (i64, String) = (row.get(0)?, row.get(1)?);
            let counts = self.namespaces.remove(&id).unwrap_or_default();
            if Namespace::parse(&name).is_err() {
                self.add_problem(Some(&name), None, "the namespace cannot be named");
            }
            if (counts.files, counts.bytes) != (row.get(2)?, row.get(3)?) {
                self.add_problem(Some(&name), None, "the counts of files and bytes do not agree with the files");
            }
        }
        let left: Vec<i64> = self.namespaces.keys().copied().collect();
        for id in left {
            self.add_problem(None, None, format!("there are files in a namespace {id} that does not exist"));
        }
        Ok(())
    }

    /// Checks that the log of each namespace has no gap and ends with the sequence number of the namespace.
    fn check_changes(&mut self) -> SqliteResult<()> {
        let sql = "SELECT name FROM namespaces LEFT JOIN
                   (SELECT namespace, min(sequence) AS first, max(sequence) AS last, count(*) AS number
                    FROM changes GROUP BY namespace) ON namespace = id
                   WHERE coalesce(last, 0) <> sequence OR number <> last - first + 1 OR number < min(sequence, 4096)";
        let connection = self.connection;
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let name: String = row.get(0)?;
            self.add_problem(Some(&name), None, "the log of changes has a gap, or does not end with the newest change");
        }
        Ok(())
    }
}

fn add_to(sum: &mut TrigramSum, trigram: &[u8]) {
    let hash = blake3::hash(trigram);
    let first = hash.as_bytes().first_chunk().map_or(0, |first| u64::from_le_bytes(*first));
    *sum = (sum.0 + 1, sum.1.wrapping_add(first));
}
