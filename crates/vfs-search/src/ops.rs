//! The operations: listing, glob and grep, over any tree or backend.

pub(crate) mod backend_tree;
pub(crate) mod entry_collector;
pub(crate) mod glob;
pub(crate) mod grep;
pub(crate) mod grep_stream;
mod grep_visitor;
pub(crate) mod ls;
pub(crate) mod open_tree;
pub(crate) mod problem_collector;
