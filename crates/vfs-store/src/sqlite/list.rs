//! Listings in path order.

use rusqlite::Connection;
use vfs_core::{Error, ErrorKind, Problem, Result, VfsPath};

use super::error::{SqliteError, SqliteResult};
use super::rows::{self, columns};
use crate::store::{Entry, ListDepth, ListRequest, Page, PageToken};

/// How far a listing came.
#[derive(Debug, Clone)]
enum ListPosition {
    /// To before everything.
    Nothing,
    /// To the file with this path.
    File(String),
    /// To the end of what is below this path.
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
            Self::Nothing => None,
            Self::File(path) => Some(PageToken::new(format!("f{path}"))),
            Self::Directory(path) => Some(PageToken::new(format!("d{path}"))),
        }
    }

    /// The least path that comes after it. No path has a NUL, and '0' is what comes next after '/'.
    fn next(&self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::File(path) => format!("{path}\0"),
            Self::Directory(path) => format!("{path}0"),
        }
    }
}

/// A page of a listing.
///
/// For one level the listing goes along the index of paths, and over each directory in one step, however much is below it.
pub(super) fn list(connection: &Connection, namespace: i64, request: &ListRequest) -> SqliteResult<Page> {
    let (beginning, end) = rows::below(&request.below);
    let mut passed = request.from.as_ref().map_or(Ok(ListPosition::Nothing), ListPosition::parse)?;
    let mut page = Page::default();
    let sql = concat!(
        "SELECT path, ",
        columns!(),
        " FROM files WHERE namespace = ?1 AND path >= ?2 AND path < ?3 ORDER BY path"
    );
    let mut statement = connection.prepare_cached(sql)?;
    'steps: loop {
        let start = passed.next().max(beginning.clone());
        let mut files = statement.query((namespace, start, &end))?;
        while let Some(row) = files.next()? {
            if page.entries.len() + page.directories.len() + page.problems.len() >= request.limit.max(1) {
                page.next = passed.token();
                break 'steps;
            }
            let text = row.get_ref(0)?.as_str().map_err(|_| SqliteError::damaged())?;
            let name = text.strip_prefix(&beginning).ok_or_else(SqliteError::damaged)?;
            if request.depth == ListDepth::Level
                && let Some((directory, _)) = name.split_once('/')
            {
                match request.below.child(directory) {
                    Ok(directory) => page.directories.push(directory),
                    Err(error) => page.problems.push(Problem::new(text, &error)),
                }
                passed = ListPosition::Directory(format!("{beginning}{directory}"));
                continue 'steps;
            }
            match entry(text, rows::found(row, 1)) {
                Ok(entry) => page.entries.push(entry),
                Err(error) => page.problems.push(Problem::new(text, &error)),
            }
            passed = ListPosition::File(text.to_owned());
        }
        break;
    }
    // What is in a directory `a` comes after a directory `a-b`, whose own name is after it.
    page.directories.sort_unstable();
    Ok(page)
}

fn entry(text: &str, found: SqliteResult<rows::FileRow>) -> Result<Entry> {
    let path = VfsPath::parse(text)?;
    if path.as_str() != text {
        return Err(Error::of(ErrorKind::InvalidPath));
    }
    Ok(Entry { path, stored: found?.stored })
}
