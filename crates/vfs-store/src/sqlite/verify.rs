//! Verification of contents, counts, log and search index.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, Transaction};
use vfs_core::{Error, ErrorKind, Problem, Version, VfsPath};

use super::content::{self, PIECE_BYTES};
use super::error::SqliteResult;
use super::rows::IndexState;
use super::stop::Asked;
use super::{index, rows};
use crate::store::{CheckReport, Namespace};

/// Most problems that are told one by one; more are counted.
const MAX_PROBLEMS: usize = 1000;

/// The counts of one namespace.
#[derive(Debug, Default)]
struct Counted {
    files: i64,
    bytes: i64,
}

/// What the index holds of one file: how many threes, and a sum of their hashes, which does not depend on their order.
type TrigramSum = (u64, u64);

struct Verifier<'a> {
    connection: &'a Transaction<'a>,
    asked: &'a Asked,
    report: CheckReport,
    more_problems: u64,
    namespaces: HashMap<i64, Counted>,
    ids: HashSet<i64>,
    index: HashMap<i64, TrigramSum>,
}

/// Looks at everything, of one moment.
pub(super) fn verify(connection: &mut Connection, asked: &Asked) -> SqliteResult<CheckReport> {
    // A table of this connection alone, which shows what is in the index.
    connection
        .execute_batch("CREATE VIRTUAL TABLE IF NOT EXISTS temp.threes USING fts5vocab('main', 'texts', 'instance')")?;
    let transaction = connection.transaction()?;
    let mut check = Verifier {
        connection: &transaction,
        asked,
        report: CheckReport::default(),
        more_problems: 0,
        namespaces: HashMap::new(),
        ids: HashSet::new(),
        index: HashMap::new(),
    };
    // Where pages are damaged, whatever else is found says less.
    if check.pages()? {
        check.index()?;
        check.files()?;
        check.leftovers()?;
        check.namespaces()?;
        check.changes()?;
    }
    Ok(check.finish())
}

impl Verifier<'_> {
    fn problem(&mut self, namespace: Option<&str>, path: Option<&str>, message: impl Into<String>) {
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
            let message = format!("{} more problems are not told one by one", self.more_problems);
            self.report.problems.push(Problem::new("", &Error::new(ErrorKind::Internal, message)));
        }
        self.report
    }

    fn pages(&mut self) -> SqliteResult<bool> {
        let connection = self.connection;
        // The index keeps what it knows of its own tables from one statement to the next, and only a query makes it look again:
        // without one, SQLite's check takes what another connection changed for damage.
        let query = connection.query_row("SELECT count(*) FROM texts WHERE texts MATCH '\"   \"'", [], |_| Ok(()));
        if let Err(error) = query {
            if error.sqlite_error_code() != Some(rusqlite::ErrorCode::DatabaseCorrupt) {
                return Err(error.into());
            }
            self.problem(None, None, format!("the search index in the SQLite file is damaged: {error}"));
        }
        let mut statement = connection.prepare("PRAGMA integrity_check")?;
        let mut rows = statement.query([])?;
        let mut is_whole = true;
        while let Some(row) = rows.next()? {
            let line: String = row.get(0)?;
            if line != "ok" {
                is_whole = false;
                self.problem(None, None, format!("the SQLite file is damaged: {line}"));
            }
        }
        Ok(is_whole)
    }

    /// Reads the whole index.
    fn index(&mut self) -> SqliteResult<()> {
        let connection = self.connection;
        let mut statement = connection.prepare("SELECT doc, term FROM temp.threes")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let sum = self.index.entry(row.get(0)?).or_default();
            add_to(sum, row.get_ref(1)?.as_bytes().unwrap_or_default());
            if sum.0.is_multiple_of(4096) {
                self.asked.go_on()?;
            }
        }
        Ok(())
    }

    fn files(&mut self) -> SqliteResult<()> {
        let sql = concat!(
            "SELECT (SELECT name FROM namespaces WHERE namespaces.id = namespace), namespace, path, ",
            rows::columns!(),
            " FROM files ORDER BY namespace, path"
        );
        let connection = self.connection;
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            self.asked.go_on()?;
            let (name, namespace, path): (Option<String>, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let name = name.unwrap_or_else(|| format!("number {namespace}"));
            let found = match rows::found(row, 3) {
                Ok(found) => found,
                Err(_) => {
                    self.problem(Some(&name), Some(&path), "what is known of the file cannot be read");
                    continue;
                }
            };
            let counted = self.namespaces.entry(namespace).or_default();
            counted.files += 1;
            counted.bytes += found.stored.size.cast_signed();
            self.ids.insert(found.id);
            self.report.files += 1;
            if !VfsPath::parse(&path).is_ok_and(|parsed| parsed.as_str() == path && !parsed.is_root()) {
                self.problem(Some(&name), Some(&path), "the path cannot name a file");
            }
            let sum = self.content(&name, &path, namespace, &found)?;
            let indexed = self.index.remove(&found.id);
            let agrees = match found.indexed {
                IndexState::Current => sum.is_some() && sum == indexed,
                IndexState::Never | IndexState::Waiting => indexed.is_none(),
                IndexState::Stale => indexed.is_some(),
            };
            if !agrees {
                self.problem(Some(&name), Some(&path), "the search index does not agree with the content");
            }
        }
        Ok(())
    }

    /// Reads the content of a file piece by piece; what the index should hold of it.
    fn content(
        &mut self,
        name: &str,
        path: &str,
        namespace: i64,
        found: &rows::FileRow,
    ) -> SqliteResult<Option<TrigramSum>> {
        let size = found.stored.size;
        let connection = self.connection;
        let mut statement = connection
            .prepare_cached("SELECT place, content FROM chunks WHERE place >= ?1 AND place < ?2 ORDER BY place")?;
        let mut pieces = statement.query((content::place(found.id, 0), content::place(found.id + 1, 0)))?;
        let (mut hasher, mut kept, mut expected, mut length) = (blake3::Hasher::new(), Vec::new(), 0, 0);
        while let Some(row) = pieces.next()? {
            let number = content::of_place(row.get(0)?).1;
            let piece = row.get_ref(1)?.as_bytes().unwrap_or_default();
            if number != expected || piece.len() as u64 != PIECE_BYTES.min(size.saturating_sub(number * PIECE_BYTES)) {
                self.problem(Some(name), Some(path), format!("piece {number} of the content is not as it should be"));
            }
            expected = number + 1;
            length += piece.len() as u64;
            hasher.update(piece);
            if kept.len() <= index::MAX_INDEXED {
                kept.extend_from_slice(piece);
            }
        }
        self.report.bytes += length;
        if length != size {
            self.problem(Some(name), Some(path), format!("the content has {length} bytes and should have {size}"));
        } else if Version::new(&hasher.finalize().to_hex()[..32]) != found.stored.version {
            self.problem(Some(name), Some(path), "the content is not what was written");
        }
        if found.indexed != IndexState::Current {
            return Ok(None);
        }
        Ok(index::folded(namespace, &kept).map(|text| {
            let following = text.chars().skip(1).zip(text.chars().skip(2));
            let threes: HashSet<_> =
                text.chars().zip(following).map(|(first, (second, third))| [first, second, third]).collect();
            let mut sum = TrigramSum::default();
            threes.iter().for_each(|three| add_to(&mut sum, String::from_iter(three).as_bytes()));
            sum
        }))
    }

    /// What belongs to no file.
    fn leftovers(&mut self) -> SqliteResult<()> {
        let connection = self.connection;
        let mut statement =
            connection.prepare("SELECT DISTINCT place >> 20 FROM chunks EXCEPT SELECT id FROM staged")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let id = row.get(0)?;
            if !self.ids.contains(&id) {
                self.problem(None, None, format!("there is content of a file {id} that is not there"));
            }
        }
        let mut removed = connection.prepare("SELECT id FROM removed")?;
        for id in removed.query_map([], |row| row.get::<_, i64>(0))? {
            let id = id?;
            if self.ids.contains(&id) {
                self.problem(None, None, format!("the file {id} is recorded as removed but still exists"));
            } else if self.index.remove(&id).is_none() {
                self.problem(None, None, format!("the removed file {id} has no entry in the search index"));
            }
        }
        let mut left: Vec<i64> = self.index.keys().copied().collect();
        left.sort_unstable();
        for id in left {
            self.problem(None, None, format!("the search index has a file {id} that is not there"));
        }
        Ok(())
    }

    fn namespaces(&mut self) -> SqliteResult<()> {
        let connection = self.connection;
        let mut statement = connection.prepare("SELECT id, name, files, bytes FROM namespaces ORDER BY name")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (id, name): (i64, String) = (row.get(0)?, row.get(1)?);
            let counted = self.namespaces.remove(&id).unwrap_or_default();
            if Namespace::parse(&name).is_err() {
                self.problem(Some(&name), None, "the namespace cannot be named");
            }
            if (counted.files, counted.bytes) != (row.get(2)?, row.get(3)?) {
                self.problem(Some(&name), None, "the counts of files and bytes do not agree with the files");
            }
        }
        let left: Vec<i64> = self.namespaces.keys().copied().collect();
        for id in left {
            self.problem(None, None, format!("there are files in a namespace {id} that is not there"));
        }
        Ok(())
    }

    /// The log of each namespace goes up to its number, without a gap.
    fn changes(&mut self) -> SqliteResult<()> {
        let sql = "SELECT name FROM namespaces LEFT JOIN
                   (SELECT namespace, min(sequence) AS first, max(sequence) AS last, count(*) AS number
                    FROM changes GROUP BY namespace) ON namespace = id
                   WHERE coalesce(last, 0) <> sequence OR number <> last - first + 1 OR number < min(sequence, 4096)";
        let connection = self.connection;
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let name: String = row.get(0)?;
            self.problem(Some(&name), None, "the log of changes has a gap, or does not end with the newest");
        }
        Ok(())
    }
}

fn add_to(sum: &mut TrigramSum, three: &[u8]) {
    let hash = blake3::hash(three);
    let first = hash.as_bytes().first_chunk().map_or(0, |first| u64::from_le_bytes(*first));
    *sum = (sum.0 + 1, sum.1.wrapping_add(first));
}
