//! Agent state: its files, updates of them, and a backend over both.

mod backend;
mod files;

pub use backend::StateBackend;
pub use files::{FilesState, merge_updates};
