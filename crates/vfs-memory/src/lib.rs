//! Files in memory.
//!
//! * [`MemoryBackend`] is a live store: clones are handles on the same files, snapshots, forks and going back cost nothing.
//! * [`StateBackend`] works on an agent's state, [`FilesState`]: every change comes back as an update that merges into it.
//!
//! Both keep their files in one ordered, persistent map, and every operation is one pure function over that map, so they
//! behave alike. Readers and searches work on a version of the map that nobody changes under them; they take no lock.
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

mod config;
mod events;
mod file;
mod map;
mod memory;
mod ops;
mod shared;
mod snapshot;
mod state;
mod tree;

pub use config::MemoryConfig;
pub use file::StateFormat;
pub use memory::MemoryBackend;
pub use snapshot::Snapshot;
pub use state::{FilesState, StateBackend, merge_updates};
