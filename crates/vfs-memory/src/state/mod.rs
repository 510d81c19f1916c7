//! An agent's state: its files, the changes that merge into them, and a backend over both.

mod backend;
mod files;

pub use backend::StateBackend;
pub use files::{FilesState, merge_updates};
