//! Listings of values and namespaces.

use tokio_postgres::Row;
use vfs_core::{Error, Problem, Result, VfsPath};

use super::error::PostgresResult;
use super::postgres_client::PostgresClient;
use super::row_conversion;
use crate::store::{Entry, ListDepth, ListRequest, Namespace, Page, PageToken};

const NAMESPACES: &str = "SELECT name FROM namespaces \
                          WHERE EXISTS (SELECT FROM files WHERE namespace = id) ORDER BY name";

const ALL: &str = "SELECT path, size, version, created_at, modified_at FROM files \
                   WHERE namespace = (SELECT id FROM namespaces WHERE name = $1) AND path > $2 AND path < $3 \
                   ORDER BY namespace, path LIMIT $4";

const LEVEL: &str = "SELECT at_name, at_size, at_version, at_created, at_modified, is_directory \
                     FROM list_level($1, $2, $3, $4, $5)";

/// Maximum number of entries in a page, whatever limit is requested.
const MAX_PAGE_SIZE: usize = 10_000;

/// Start of a page as encoded in its token: after a path, or at one level after the name of a file or a directory.
enum PageStart<'a> {
    Start,
    Path(&'a str),
    File(&'a str),
    Directory(&'a str),
}

impl<'a> PageStart<'a> {
    fn parse(request: &'a ListRequest) -> Result<Self> {
        let Some(token) = &request.from else { return Ok(Self::Start) };
        let refuse =
            || Error::invalid_argument("this is not a page token of this listing; use the 'next' of the page before");
        let (kind, rest) = token.as_str().split_at_checked(1).ok_or_else(refuse)?;
        match (kind, request.depth) {
            _ if rest.contains('\0') => Err(refuse()),
            ("a", ListDepth::All) => Ok(Self::Path(rest)),
            ("f", ListDepth::Level) => Ok(Self::File(rest)),
            ("d", ListDepth::Level) => Ok(Self::Directory(rest)),
            _ => Err(refuse()),
        }
    }
}

pub(super) async fn namespaces(server: &PostgresClient) -> Result<Vec<Namespace>> {
    let rows = server.rows(NAMESPACES, &[]).await?;
    let read = |row: &Row| -> PostgresResult<Namespace> { Ok(Namespace::parse(row.try_get(0)?)?) };
    rows.iter().map(|row| read(row).map_err(|fault| fault.describe(&server.config))).collect()
}

pub(super) async fn list(server: &PostgresClient, namespace: &Namespace, request: &ListRequest) -> Result<Page> {
    let from = PageStart::parse(request)?;
    let limit = request.limit.clamp(1, MAX_PAGE_SIZE);
    // One row more than the limit shows whether there is another page.
    let row_limit = limit as i64 + 1;
    let (start, end) = row_conversion::range_below(&request.below);
    let rows = match request.depth {
        ListDepth::All => {
            let after = if let PageStart::Path(path) = from { path.max(start.as_str()) } else { &start };
            server.rows(ALL, &[&namespace.as_str(), &after, &end, &row_limit]).await?
        }
        ListDepth::Level => {
            let file = if let PageStart::File(name) = from { Some(name) } else { None };
            let directory = if let PageStart::Directory(name) = from { Some(name) } else { None };
            let row_limit = row_limit as i32;
            server.rows(LEVEL, &[&namespace.as_str(), &start, &file, &directory, &row_limit]).await?
        }
    };
    read_page(&rows, limit, request).map_err(|fault| fault.describe(&server.config))
}

fn read_page(rows: &[Row], limit: usize, request: &ListRequest) -> PostgresResult<Page> {
    let mut page = Page::default();
    let mut last = None;
    for row in rows.iter().take(limit) {
        let name: &str = row.try_get(0)?;
        let is_directory = request.depth == ListDepth::Level && row.try_get(5)?;
        let path = match request.depth {
            ListDepth::All => VfsPath::parse(name).and_then(|path| require_canonical(path, name)),
            ListDepth::Level => request.below.child(name),
        };
        match path {
            Ok(path) if is_directory => page.directories.push(path),
            Ok(path) => page.entries.extend(row_conversion::read_meta(row, 1)?.map(|stored| Entry { path, stored })),
            Err(error) => page.problems.push(Problem::new(name, &error)),
        }
        let kind = match (request.depth, is_directory) {
            (ListDepth::All, _) => 'a',
            (ListDepth::Level, false) => 'f',
            (ListDepth::Level, true) => 'd',
        };
        last = Some((kind, name));
    }
    if rows.len() > limit {
        page.next = last.map(|(kind, name)| PageToken::new(format!("{kind}{name}")));
    }
    // Paths below a directory `a` come after those below a directory `a-b`, although the name `a` comes first.
    page.directories.sort_unstable();
    Ok(page)
}

/// Returns an error if `text` is not the canonical form of `path`, because no key has that name.
fn require_canonical(path: VfsPath, text: &str) -> Result<VfsPath> {
    if path.as_str() == text { Ok(path) } else { Err(Error::at(vfs_core::ErrorKind::InvalidPath, &path)) }
}
