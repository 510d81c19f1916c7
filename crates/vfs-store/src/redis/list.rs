//! Listings by a script over the index.

use std::sync::LazyLock;

use ::redis::Script;
use vfs_core::{Error, Problem, Result, VfsPath};

use super::RedisStore;
use super::connection::{Request, start};
use super::reply::{self, ReplyParts};
use crate::store::{Entry, ListDepth, ListRequest, Namespace, Page, PageToken};

static LIST: LazyLock<Script> =
    LazyLock::new(|| Script::new(concat!(include_str!("common.lua"), include_str!("list.lua"))));
static SWEEP: LazyLock<Script> =
    LazyLock::new(|| Script::new(concat!(include_str!("common.lua"), include_str!("sweep.lua"))));

/// The most of a page: nobody else is served while it is put together.
const MAX_PAGE_SIZE: usize = 1000;

/// A page as the server gave it.
pub(super) struct RawPage {
    /// Each with its head and size.
    pub(super) files: ReplyParts,
    pub(super) directories: ReplyParts,
    /// Paths in the index that have no file.
    pub(super) stale: Vec<Vec<u8>>,
    /// Where the next page begins, as a bound of `ZRANGE`.
    pub(super) next: Option<Vec<u8>>,
}

impl RedisStore {
    pub(super) async fn page(&self, namespace: &Namespace, request: &ListRequest) -> Result<Page> {
        let from = request.from.as_ref().map(read_token).transpose()?;
        let mut raw = self.raw_page(namespace, request, from.as_deref()).await?;
        let mut page = Page::default();
        while !raw.files.is_empty() {
            let name = raw.files.bytes()?;
            match (reply::path(&name), raw.files.stored()?) {
                (Some(path), Some(stored)) => page.entries.push(Entry { path, stored }),
                _ => page.problems.push(Problem::from(reply::damaged(&String::from_utf8_lossy(&name)))),
            }
        }
        while !raw.directories.is_empty() {
            let name = raw.directories.bytes()?;
            match reply::path(&name) {
                Some(path) => page.directories.push(path),
                None => page.problems.push(Problem::from(reply::damaged(&String::from_utf8_lossy(&name)))),
            }
        }
        // Those in a directory `a` come after a directory `a-b`, whose own name is after it.
        page.directories.sort_unstable();
        page.next = raw.next.as_deref().map(write_token);
        if !raw.stale.is_empty() {
            self.sweep(namespace, &raw.stale).await;
        }
        Ok(page)
    }

    pub(super) async fn raw_page(
        &self,
        namespace: &Namespace,
        request: &ListRequest,
        from: Option<&[u8]>,
    ) -> Result<RawPage> {
        let (beginning, first, end) = bounds(&request.below);
        // A token of another listing begins no earlier than this one.
        let from = from.filter(|from| from[1..] > first.as_bytes()[1..]).unwrap_or(first.as_bytes());
        let depth = match request.depth {
            ListDepth::Level => "level",
            ListDepth::All => "all",
        };
        let base = self.names().base(namespace);
        let ask = |_| {
            let mut cmd = start(&LIST, &base);
            cmd.arg(&beginning).arg(from).arg(&end).arg(depth).arg(request.limit.clamp(1, MAX_PAGE_SIZE));
            Request::Script(&LIST, cmd)
        };
        let mut parts = ReplyParts::of(self.link().ask(ask).await?)?;
        let (files, directories, mut gone) = (parts.parts()?, parts.parts()?, parts.parts()?);
        let mut stale = Vec::new();
        while !gone.is_empty() {
            stale.push(gone.bytes()?);
        }
        let next = Some(parts.bytes()?).filter(|next| !next.is_empty());
        Ok(RawPage { files, directories, stale, next })
    }

    /// Takes paths without a file out of the index. A listing is right without it; it only becomes slower with time, so that a
    /// server which takes no changes fails none.
    async fn sweep(&self, namespace: &Namespace, paths: &[Vec<u8>]) {
        let base = self.names().base(namespace);
        let mut cmd = start(&SWEEP, &base);
        paths.iter().for_each(|path| {
            cmd.arg(path.as_slice());
        });
        if let Err(error) = self.link().ask_once(Request::Script(&SWEEP, cmd)).await {
            tracing::warn!(%error, %namespace, "paths of expired files stay in the index for now");
        }
    }
}

/// What the paths below `directory` begin with, and where they begin and end, as bounds of `ZRANGE`.
fn bounds(directory: &VfsPath) -> (String, String, String) {
    let directory = if directory.is_root() { "" } else { directory.as_str() };
    // '0' is what comes next after '/'.
    (format!("{directory}/"), format!("[{directory}/"), format!("({directory}0"))
}

/// In hex, as a bound may be any bytes where another program wrote into the index.
fn write_token(bound: &[u8]) -> PageToken {
    PageToken::new(bound.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

fn read_token(token: &PageToken) -> Result<Vec<u8>> {
    let digits = token.as_str().as_bytes();
    let read = |pair: &[u8]| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bound: Option<Vec<u8>> = digits.chunks(2).map(read).collect();
    let is_bound = |bound: &Vec<u8>| matches!(bound.first(), Some(b'[' | b'('));
    bound
        .filter(is_bound)
        .ok_or_else(|| Error::invalid_argument("this page token is none of this store; list from the beginning"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_or_refused() {
        for bound in [&b"[/a\n\xff"[..], b"(/ab"] {
            assert_eq!(read_token(&write_token(bound)).expect("a token"), bound);
        }
        for text in ["", "2f", "zz", "5", "é", "5b2"] {
            let read = read_token(&PageToken::new(text));
            assert_eq!(read.is_ok(), text == "5b2", "{text}");
        }
    }
}
