//! The search of one file: reading, matching, and conversion of matches to items.

pub(crate) mod buffer;
pub(crate) mod cancellable_matcher;
pub(crate) mod chunks;
pub(crate) mod encoding;
pub(crate) mod file_searcher;
pub(crate) mod line;
pub(crate) mod line_arena;
pub(crate) mod literal;
pub(crate) mod multiline_block;
pub(crate) mod outcome;
pub(crate) mod paced_reader;
pub(crate) mod prefilter;
pub(crate) mod sink;
pub(crate) mod submatches;
