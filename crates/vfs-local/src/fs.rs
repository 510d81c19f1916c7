//! File system access: path resolution below the root, metadata, and wrappers of system calls.

pub(crate) mod cache_eligibility;
pub(crate) mod created_parents;
pub(crate) mod directory_entries;
pub(crate) mod entry_location;
pub(crate) mod errno;
pub(crate) mod file_systems;
pub(crate) mod metadata;
pub(crate) mod nowait_reads;
pub(crate) mod protected_paths;
pub(crate) mod remove_tree;
pub(crate) mod rename_noreplace;
pub(crate) mod root;
pub(crate) mod syscall_probes;
