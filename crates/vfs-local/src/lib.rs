//! Files on a local disk below a held root: confined by the kernel, written atomically.
//!
//! [`LocalBackend::open`] confines an agent to a directory; [`LocalConfig`] has the settings. This is the only crate of
//! the workspace that touches a file system. How a virtual path becomes a descriptor is in one place (`root`), how new
//! content takes a file's place in another (`staging`), and who may do that at a time in a third (`lock`).

#[cfg(not(target_os = "linux"))]
compile_error!("vfs-local needs Linux: it confines by openat2 and replaces files by linkat and renameat2");

mod attributes;
mod backend;
mod blocking;
mod calls;
mod commit;
mod config;
mod copy;
mod disk;
mod ends;
mod errno;
mod file_lock;
mod file_systems;
mod guard;
mod hidden;
mod in_place;
mod line_indexes;
mod lock;
mod metadata;
mod open_directory;
mod read;
mod removal_checks;
mod remove;
mod remove_empty;
mod remove_tree;
mod rename;
mod root;
mod search_memory;
mod staging;
mod tree;
mod tree_sync;
mod trust;
mod watch;
mod write;
mod write_times;

pub use backend::LocalBackend;
pub use calls::weakness_between_processes;
pub use config::{Confinement, Durability, HardLinks, LocalConfig, Mounts, Protection, Resolution};
pub use file_lock::{FileLock, LockMode};
pub use search_memory::SearchMemory;
