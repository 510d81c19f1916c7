//! The search of one file: reading, matching, and conversion of matches to items.

pub(crate) mod aligned_buffer;
pub(crate) mod cancellable_matcher;
pub(crate) mod cancellable_reader;
pub(crate) mod encoding;
pub(crate) mod file_outcome;
pub(crate) mod file_searcher;
pub(crate) mod file_sink;
pub(crate) mod line_arena;
pub(crate) mod line_chunks;
pub(crate) mod literal_search;
pub(crate) mod multiline_block;
pub(crate) mod prefilter;
pub(crate) mod rendered_line;
pub(crate) mod submatch_collector;
