//! Haystacks to matches: one meaning of listing, globs, file types, ignore rules and search for every backend.
//!
//! A backend lends its files as a [`Tree`]; this crate does the rest, and never touches a disk itself:
//!
//! * [`ls`] and [`glob`] walk the tree on the caller's thread, in order;
//! * [`grep_stream`] and [`grep`] search it with ripgrep's engine, and [`glob_on`] walks it, on the workers of a [`Pool`]
//!   that all searches share, in order as well: the same call gives the same answer.
//!
//! A search is a pipeline that its consumer pulls. Workers claim stretches of the walk, always the first that nobody has
//! claimed, go down into the directories there, and put what they find into slots; what they have no time for goes back to
//! be claimed. The consumer empties the slots in the order of the walk. How far the workers may be ahead is bounded, in
//! slots and in bytes, so that a search which matches everything holds little, and starves nobody. A worker that is stuck
//! in one call, or long in one file while others wait, is stood in for.

mod activity;
mod alternation;
mod asked;
mod beyond;
mod block;
mod blocking;
mod buffer;
mod collect;
mod deadline;
mod engine;
mod entries;
mod feed;
mod filter;
mod find;
mod follow;
mod frontier;
mod glob;
mod haystack;
mod ignore_rules;
mod item;
mod known;
mod lend;
mod level;
mod line;
mod list;
mod lists;
mod literal;
mod matcher;
mod outlet;
mod pace;
mod pattern;
mod places;
mod plan;
mod pool;
mod problems;
mod pulse;
mod quest;
mod reading;
mod required;
mod sink;
mod size_signal;
mod stream;
mod stretch;
mod texts;
mod types;
mod visibility;
mod walk;
mod watched;
mod whole;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use vfs_core::tree::Tree;
use vfs_core::{GrepEvent, GrepRequest, GrepResult, OpContext, Result};

use self::frontier::Tuning;
use self::stream::GrepEvents;

pub use self::activity::Activity;
pub use self::alternation::any_of;
pub use self::blocking::{is_starting_thread, run_blocking};
pub use self::deadline::run_until_cancelled;
pub use self::find::{glob, glob_on};
pub use self::glob::GlobPattern;
pub use self::haystack::is_binary;
pub use self::lend::{Coverage, grep_stream_lent, lend};
pub use self::list::{ls, ls_on};
pub use self::pool::Pool;
pub use self::required::required_texts;
#[cfg(target_os = "linux")]
pub use self::size_signal::FILE_SIZE_SIGNAL;
pub use self::size_signal::without_size_signal;
pub use self::types::file_type_names;
pub use self::whole::to_the_end;

/// Finds text in the files of `tree`, and gives it out as it is found.
///
/// # Behaviour
///
/// * Events come sorted by path (bytes), then line; the last is [`GrepEvent::End`], or an error.
/// * Work begins at the first poll, on the workers of [`Pool::global`], and never far ahead of the consumer. Dropping the
///   stream ends it; so do the context's token and deadline, without the workers' help.
/// * What visibility, binary detection, links and limits leave out is counted in the summary. A file that the request names
///   is searched whatever visibility, globs and types say, as ripgrep does.
/// * A file with a NUL in its first mebibyte is binary; a byte order mark of UTF-16 makes it text.
/// * A literal that holds a line break makes the search multiline and matches `\r\n` too. `$` matches before `\r\n`.
/// * `limit` and `limit_per_file` set `truncated` only where there is at least one match more. A limit of 0 finds nothing
///   and is truncated.
/// * A line of over 64 MiB, and a file of over 64 MiB in a multiline search, is a problem. So is less with an expression
///   that repeats a lot: 1 GiB divided by what its counted repetitions expand to, about 105 KiB for the largest.
/// * A file that has over 64 MiB more than it claims is a problem.
/// * Counted repetitions that expand to over 10,000 places (`(a{100}){101}`) are an invalid pattern.
///
/// # Errors
///
/// As its last item: [`InvalidArgument`](vfs_core::ErrorKind::InvalidArgument),
/// [`InvalidPattern`](vfs_core::ErrorKind::InvalidPattern), [`NotFound`](vfs_core::ErrorKind::NotFound), what listing the
/// directory itself gives, [`Cancelled`](vfs_core::ErrorKind::Cancelled), [`Timeout`](vfs_core::ErrorKind::Timeout),
/// [`Busy`](vfs_core::ErrorKind::Busy) where 4,096 turns of searches wait already, and
/// [`Internal`](vfs_core::ErrorKind::Internal) where a worker panicked.
pub fn grep_stream<T: Tree>(tree: Arc<T>, cx: OpContext, req: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
    grep_stream_on(Pool::global(), tree, cx, req)
}

/// As [`grep_stream`], on the workers of `pool`.
pub fn grep_stream_on<T: Tree>(
    pool: &Pool,
    tree: Arc<T>,
    cx: OpContext,
    req: GrepRequest,
) -> BoxStream<'static, Result<GrepEvent>> {
    GrepEvents::new(tree, cx, req, pool.clone(), Tuning::for_workers(pool.workers())).boxed()
}

/// Finds text in the files of `tree`, as [`grep_stream`] does, and collects it.
///
/// # Behaviour
///
/// The result holds at most [`GrepRequest::max_result_bytes`]; where there is more it says so in `truncated`. It needs no
/// runtime; dropping the future ends the search.
///
/// # Errors
///
/// As [`grep_stream`].
pub async fn grep<T: Tree>(tree: Arc<T>, cx: OpContext, req: GrepRequest) -> Result<GrepResult> {
    grep_on(Pool::global(), tree, cx, req).await
}

/// As [`grep`], on the workers of `pool`.
///
/// # Errors
///
/// As [`grep_stream`].
pub async fn grep_on<T: Tree>(pool: &Pool, tree: Arc<T>, cx: OpContext, req: GrepRequest) -> Result<GrepResult> {
    let (start, max_bytes) = (req.path.clone(), req.max_result_bytes);
    let events = GrepEvents::new(tree, cx, req, pool.clone(), Tuning::for_workers(pool.workers()));
    collect::collect(events, &start, max_bytes).await
}
