//! The file operations, and what some of them share.

mod copy;
mod edit;
mod fast_path;
pub(crate) mod line_index_cache;
pub(crate) mod local_writer;
mod read;
mod removal_checks;
mod remove;
mod remove_empty_dir;
mod rename;
mod transfer_checks;
pub(crate) mod write;
