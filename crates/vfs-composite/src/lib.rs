//! Mounts: one namespace over many backends.
//!
//! [`CompositeBackend`] is a mount table over a default backend. Its listings and searches run over one tree that unites the
//! trees of the backends, so that order, limits, ignore rules and visibility are those of a single file system; every other
//! operation goes to the one backend that a path belongs to.
//!
//! ```
//! use std::sync::Arc;
//! use vfs_composite::CompositeBackend;
//! use vfs_core::BackendExt;
//! use vfs_memory::MemoryBackend;
//!
//! # futures::executor::block_on(async {
//! let files = CompositeBackend::new(Arc::new(MemoryBackend::new()))
//!     .with_mount("/memories", Arc::new(MemoryBackend::new()))?;
//! files.create_text("/memories/plan.md", "1. read\n").await?;
//! files.create_text("/src/lib.rs", "// read\n").await?;
//! let found = files.grep_text("read").await?;
//! assert_eq!(found.iter().map(|hit| hit.path.as_str()).collect::<Vec<_>>(), ["/memories/plan.md", "/src/lib.rs"]);
//! # Ok::<(), vfs_core::Error>(())
//! # }).expect("the example runs");
//! ```

mod backend;
mod facets;
mod journal;
mod mount_identity;
mod mount_table;
mod mounted_backend;
mod recovery;
mod shadowed_paths;
mod transfer;
mod union_tree;

pub use backend::CompositeBackend;
pub use journal::{JournalLock, JournalLockGuard};
pub use mount_identity::MountIdentity;
pub use mounted_backend::MountInfo;
pub use recovery::{RecoveredMove, RecoveryObserver, RecoveryOptions, RecoveryOutcome, RecoveryReport};
