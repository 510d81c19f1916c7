//! Agent state: its files, updates of them, and a backend over both.

mod backend;
mod files_state;

pub use backend::StateBackend;
pub use files_state::{FilesState, merge_updates};
