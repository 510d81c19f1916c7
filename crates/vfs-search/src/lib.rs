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

mod engine;
mod glob;
mod item;
mod ops;
mod query;
mod read_error;
mod runtime;
mod searcher;
mod walk;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use self::engine::pool::Pool;
pub use self::engine::pool_stats::PoolStats;
pub use self::glob::GlobPattern;
pub use self::ops::glob::{glob, glob_on};
pub use self::ops::grep::{grep, grep_on};
pub use self::ops::grep_stream::{grep_stream, grep_stream_on};
pub use self::ops::lend::{grep_stream_lent, lend};
pub use self::ops::ls::{ls, ls_on};
pub use self::query::alternation::any_of;
pub use self::query::file_types::file_type_names;
pub use self::query::required_literals::required_literals;
pub use self::query::search_scope::SearchScope;
pub use self::runtime::blocking::{is_starting_thread, run_blocking};
pub use self::runtime::cancellation::run_until_cancelled;
pub use self::runtime::completion::run_to_completion;
#[cfg(target_os = "linux")]
pub use self::runtime::size_signal::FILE_SIZE_SIGNAL;
pub use self::runtime::size_signal::without_size_signal;
pub use self::searcher::encoding::is_binary;
