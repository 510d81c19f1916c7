//! Files in memory: a live store, and the files of an agent's state.
//!
//! * [`MemoryBackend`] is a live store: clones share the files, and snapshots, forks and restores take constant time.
//! * [`StateBackend`] works on an agent's state, [`FilesState`]: every change returns an update that merges into the state.
//!
//! Both keep their files in one ordered, persistent map, and every operation is one pure function over that map, so they
//! behave alike. Readers and searches work on an immutable version of the map and take no lock.
//!
//! ```
//! use vfs_core::BackendExt;
//! use vfs_memory::MemoryBackend;
//!
//! # futures::executor::block_on(async {
//! let files = MemoryBackend::new();
//! files.create_text("/notes/today.md", "- read\n").await?;
//!
//! let before = files.snapshot();
//! files.append_text("/notes/today.md", "- write\n").await?;
//! files.restore(&before);
//! assert_eq!(files.read_text("/notes/today.md").await?, "- read\n");
//! # Ok::<(), vfs_core::Error>(())
//! # }).expect("the example runs");
//! ```

mod backend;
mod change_events;
mod config;
mod cow_cell;
mod file_map;
mod memory_file;
mod memory_tree;
mod ops;
mod snapshot;
mod state;

pub use backend::MemoryBackend;
pub use config::MemoryConfig;
pub use memory_file::StateContentFormat;
pub use snapshot::Snapshot;
pub use state::{FilesState, StateBackend, merge_updates};
