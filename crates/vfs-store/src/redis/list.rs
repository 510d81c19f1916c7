//! Listings by a script over the index.

use std::sync::LazyLock;

use ::redis::Script;
use vfs_core::{Error, Problem, Result, VfsPath};

use super::RedisStore;
use super::connection::{RedisRequest, start};
use super::reply::{self, ReplyParts};
use crate::store::{Entry, ListDepth, ListRequest, Namespace, Page, PageToken};

static LIST: LazyLock<Script> =
    LazyLock::new(|| Script::new(concat!(include_str!("common.lua"), include_str!("list.lua"))));
static SWEEP: LazyLock<Script> =
    LazyLock::new(|| Script::new(concat!(include_str!("common.lua"), include_str!("sweep.lua"))));

/// Maximum number of entries in a page: the server serves no other client while it collects them.
const MAX_PAGE_SIZE: usize = 1000;

/// Page as returned by the server.
pub(super) struct RawPage {
    /// Path, head and size of each file.
    pub(super) files: ReplyParts,
    pub(super) directories: ReplyParts,
    /// Paths in the index that have no file.
    pub(super) stale: Vec<Vec<u8>>,
    /// Start of the next page, as a bound of `ZRANGE`.
    pub(super) next: Option<Vec<u8>>,
}

impl RedisStore {
    pub(super) async fn list_page(&self, namespace: &Namespace, request: &ListRequest) -> Result<Page> {
        let from = request.from.as_ref().map(parse_token).transpose()?;
        let mut raw = self.raw_page(namespace, request, from.as_deref()).await?;
        let mut page = Page::default();
        while !raw.files.is_empty() {
            let name = raw.files.bytes()?;
            match (reply::parse_path(&name), raw.files.meta()?) {
                (Some(path), Some(stored)) => page.entries.push(Entry { path, stored }),
                _ => page.problems.push(Problem::from(reply::damaged(&String::from_utf8_lossy(&name)))),
            }
        }
        while !raw.directories.is_empty() {
            let name = raw.directories.bytes()?;
            match reply::parse_path(&name) {
                Some(path) => page.directories.push(path),
                None => page.problems.push(Problem::from(reply::damaged(&String::from_utf8_lossy(&name)))),
            }
        }
        // Paths below a directory `a` come after those below a directory `a-b`, although the name `a` comes first.
        page.directories.sort_unstable();
        page.next = raw.next.as_deref().map(encode_token);
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
        let (prefix, first, end) = bounds(&request.below);
        // A token of another listing must not start before this listing.
        let from = from.filter(|from| from[1..] > first.as_bytes()[1..]).unwrap_or(first.as_bytes());
        let depth = match request.depth {
            ListDepth::Level => "level",
            ListDepth::All => "all",
        };
        let base = self.names().base(namespace);
        let list = |_| {
            let mut cmd = start(&LIST, &base);
            cmd.arg(&prefix).arg(from).arg(&end).arg(depth).arg(request.limit.clamp(1, MAX_PAGE_SIZE));
            RedisRequest::Script(&LIST, cmd)
        };
        let mut parts = ReplyParts::new(self.link().ask(list).await?)?;
        let (files, directories, mut stale_parts) = (parts.parts()?, parts.parts()?, parts.parts()?);
        let mut stale = Vec::new();
        while !stale_parts.is_empty() {
            stale.push(stale_parts.bytes()?);
        }
        let next = Some(parts.bytes()?).filter(|next| !next.is_empty());
        Ok(RawPage { files, directories, stale, next })
    }

    /// Removes paths without a file from the index. Stale paths only make listings slower, so a failure, as on a server
    /// that rejects changes, does not fail the listing.
    async fn sweep(&self, namespace: &Namespace, paths: &[Vec<u8>]) {
        let base = self.names().base(namespace);
        let mut cmd = start(&SWEEP, &base);
        paths.iter().for_each(|path| {
            cmd.arg(path.as_slice());
        });
        if let Err(error) = self.link().ask_once(RedisRequest::Script(&SWEEP, cmd)).await {
            tracing::warn!(%error, %namespace, "paths of expired files remain in the index for now");
        }
    }
}

/// Returns the prefix of the paths below `directory`, and their start and end as bounds of `ZRANGE`.
fn bounds(directory: &VfsPath) -> (String, String, String) {
    let directory = if directory.is_root() { "" } else { directory.as_str() };
    // '0' is the character after '/'.
    (format!("{directory}/"), format!("[{directory}/"), format!("({directory}0"))
}

/// Encodes a bound in hex, because it can have any bytes if another program wrote to the index.
fn encode_token(bound: &[u8]) -> PageToken {
    PageToken::new(bound.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

fn parse_token(token: &PageToken) -> Result<Vec<u8>> {
    let digits = token.as_str().as_bytes();
    let read = |pair: &[u8]| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bound: Option<Vec<u8>> = digits.chunks(2).map(read).collect();
    let is_bound = |bound: &Vec<u8>| matches!(bound.first(), Some(b'[' | b'('));
    bound
        .filter(is_bound)
        .ok_or_else(|| Error::invalid_argument("this page token is not one of this store; list from the beginning"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_parsed_or_refused() {
        for bound in [&b"[/a\n\xff"[..], b"(/ab"] {
            assert_eq!(parse_token(&encode_token(bound)).expect("a token"), bound);
        }
        for text in ["", "2f", "zz", "5", "é", "5b2"] {
            let parsed = parse_token(&PageToken::new(text));
            assert_eq!(parsed.is_ok(), text == "5b2", "{text}");
        }
    }
}
