//! Files on a local disk below an open root directory: confined by the kernel, written atomically.
//!
//! [`LocalBackend::open`] confines an agent to a directory; [`LocalConfig`] has the settings. This is the only crate of
//! the workspace that touches a file system. `fs::root` turns a virtual path into a descriptor, `staging` replaces a
//! file by its new content, and `staging::lock` serialises the changes of one file.

#[cfg(not(target_os = "linux"))]
compile_error!("vfs-local needs Linux: it confines by openat2 and replaces files by linkat and renameat2");

mod backend;
mod config;
mod fs;
mod local_fs;
mod ops;
mod search;
mod staging;
mod watch;

pub use backend::LocalBackend;
pub use backend::file_lock::{FileLock, FileLockMode};
pub use config::LocalConfig;
pub use config::policies::{Confinement, Durability, HardLinks, MountPolicy, PathResolution, ProtectionLevel};
pub use fs::syscall_probes::weakness_between_processes;
pub use search::search_cache::SearchCache;
