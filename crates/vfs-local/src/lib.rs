//! Files on a local disk below an open root directory: confined by the kernel, written atomically.
//!
//! [`LocalBackend::open`] confines an agent to a directory; [`LocalConfig`] has the settings. The file access of
//! agents is in this crate: `fs::root` turns a virtual path into a descriptor, `staging` replaces a file by its new content,
//! and `staging::entry_lock` serialises the changes of one file.
//!
//! This crate needs Linux. On other systems it compiles, and opening a backend is `unsupported`.

#[cfg(target_os = "linux")]
mod backend;
mod config;
#[cfg(target_os = "linux")]
mod fs;
#[cfg(target_os = "linux")]
mod local_fs;
#[cfg(target_os = "linux")]
mod ops;
#[cfg(target_os = "linux")]
mod search;
#[cfg(target_os = "linux")]
mod staging;
#[cfg(not(target_os = "linux"))]
mod unsupported;
#[cfg(target_os = "linux")]
mod watch;

#[cfg(target_os = "linux")]
pub use self::backend::LocalBackend;
#[cfg(target_os = "linux")]
pub use self::backend::file_lock::FileLock;
pub use self::config::LocalConfig;
pub use self::config::policies::{
    Confinement, Durability, FileLockMode, HardLinks, MountPolicy, PathResolutionMode, ProtectionLevel,
};
#[cfg(target_os = "linux")]
pub use self::fs::syscall_probes::weakness_between_processes;
#[cfg(target_os = "linux")]
pub use self::search::search_cache::SearchCache;
#[cfg(not(target_os = "linux"))]
pub use self::unsupported::{FileLock, LocalBackend, SearchCache, weakness_between_processes};
