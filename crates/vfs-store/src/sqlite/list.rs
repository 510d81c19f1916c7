//! Listings in path order.

use rusqlite::Connection;
use vfs_core::{Error, ErrorKind, Problem, Result, VfsPath};

use super::error::{SqliteError, SqliteResult};
use super::file_rows::{self, columns};
use crate::store::{Entry, ListDepth, ListRequest, Page, PageToken};

/// Position that a listing has reached.
#[derive(Debug, Clone)]
enum ListPosition {
    /// Before the first path.
    Start,
    /// At the file with this path.
    File(String),
    /// After all paths below this directory.
    Directory(String),
}

impl ListPosition {
    fn parse(token: &PageToken) -> Result<Self> {
        match token.as_str().split_at_checked(1) {
            Some(("f", path)) => Ok(Self::File(path.to_owned())),
            Some(("d", path)) => Ok(Self::Directory(path.to_owned())),
            _ => Err(Error::invalid_argument("the page token of the listing is not one of a SQLite store")),
        }
    }

    fn token(self) -> Option<PageToken> {
        match self {
            Self::Start => None,
            Self::File(path) => Some(PageToken::new(format!("f{path}"))),
            Self::Directory(path) => Some(PageToken::new(format!("d{path}"))),
        }
    }

    /// Returns the least path after this position. No path contains a NUL, and '0' is the character after '/'.
    fn next_path(&self) -> String {
        match self {
            Self::Start => String::new(),
            Self::File(path) => format!("{path}\0"),
            Self::Directory(path) => format!("{path}0"),
        }
    }
}

/// Returns a page of a listing.
///
/// A listing of one level follows the index of paths and skips each directory in one step, however many files are below
/// it.
pub(super) fn list(connection: &Connection, namespace: i64, request: &ListRequest) -> SqliteResult<Page> {
    let (prefix, end) = file_rows::range_below(&request.below);
    let mut position = request.from.as_ref().map_or(Ok(ListPosition::Start), ListPosition::parse)?;
    let mut page = Page::default();
    let sql = concat!(
        "SELECT path, ",
        columns!(),
        " FROM files WHERE namespace = ?1 AND path >= ?2 AND path < ?3 ORDER BY path"
    );
    let mut statement = connection.prepare_cached(sql)?;
    'steps: loop {
        let start = position.next_path().max(prefix.clone());
        let mut files = statement.query((namespace, start, &end))?;
        while let Some(row) = files.next()? {
            if page.entries.len() + page.directories.len() + page.problems.len() >= request.limit.max(1) {
                page.next = position.token();
                break 'steps;
            }
            let text = row.get_ref(0)?.as_str().map_err(|_| SqliteError::damaged())?;
            let name = text.strip_prefix(&prefix).ok_or_else(SqliteError::damaged)?;
            if request.depth == ListDepth::Level
                && let Some((directory, _)) = name.split_once('/')
            {
                match request.below.child(directory) {
                    Ok(directory) => page.directories.push(directory),
                    Err(error) => page.problems.push(Problem::new(text, &error)),
                }
                position = ListPosition::Directory(format!("{prefix}{directory}"));
                continue 'steps;
            }
            match entry(text, file_rows::read_file_row(row, 1)) {
                Ok(entry) => page.entries.push(entry),
                Err(error) => page.problems.push(Problem::new(text, &error)),
            }
            position = ListPosition::File(text.to_owned());
        }
        break;
    }
    // Paths below a directory `a` come after those below a directory `a-b`, although the name `a` comes first.
    page.directories.sort_unstable();
    Ok(page)
}

fn entry(text: &str, found: SqliteResult<file_rows::FileRow>) -> Result<Entry> {
    let path = VfsPath::parse(text)?;
    if path.as_str() != text {
        return Err(Error::of(ErrorKind::InvalidPath));
    }
    Ok(Entry { path, stored: found?.stored })
}
