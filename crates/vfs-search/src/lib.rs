//! Search engine for every backend: listing, globs, file types, ignore rules and ripgrep's matching.
//!
//! A backend provides its files as a [`Tree`](vfs_core::tree::Tree). This crate does the rest, and never accesses a
//! disk itself:
//!
//! * [`ls`] and [`glob`](glob()) walk the tree on the caller's thread, in order.
//! * [`grep_stream`] and [`grep`] search it with ripgrep's engine, and [`ls_on`] and [`glob_on`] walk it, on the
//!   workers of a [`Pool`] that all searches share. Results are in order here too: the same call over the same files
//!   returns the same results.
//!
//! A search is a pipeline that its consumer pulls. Workers claim subtrees of the walk, first those that were parked for
//! lack of room, then the first unclaimed one. They enter the directories there, and put their results into slots; the
//! steps for which a worker has no time can be claimed again. The consumer empties the slots in the order of the walk.
//! The number of slots and the bytes in them are bounded, so that a search which matches everything uses little memory
//! and starves no other search. If a time slice waits for a thread, a compensation thread replaces each worker that is
//! stuck in a call, busy with a long file, or waiting for its consumer.
//!
//! The modules depend on each other in one direction: `ops` (the operations) on the others, `engine` (worker pool and
//! ordered queue) on `walk` (directories), `searcher` (one file) on `walk` and `query` (compiled requests), and `walk`
//! and `query` on `glob`. `runtime` stands apart: it has helpers for the backends that run on tokio.

mod engine;
mod glob;
mod ops;
mod query;
mod read_error;
mod runtime;
mod search_item;
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
pub use self::ops::ls::{ls, ls_on};
pub use self::ops::open_tree::{grep_stream_in_tree, open_tree};
pub use self::query::any_of::any_of;
pub use self::query::file_types::file_type_names;
pub use self::query::required_literals::required_literals;
pub use self::query::search_scope::SearchScope;
pub use self::runtime::blocking::{is_starting_thread, run_blocking};
pub use self::runtime::run_to_completion::run_to_completion;
pub use self::runtime::run_until_cancelled::run_until_cancelled;
#[cfg(target_os = "linux")]
pub use self::runtime::sigxfsz::FILE_SIZE_SIGNAL;
pub use self::runtime::sigxfsz::without_size_signal;
pub use self::searcher::encoding::is_binary;
