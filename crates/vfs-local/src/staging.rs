//! Staging of new content, atomic and durable replacement, and locks of changed entries.

pub(crate) mod durable_rename;
pub(crate) mod entry_lock;
pub(crate) mod preserved_attributes;
pub(crate) mod reserved_names;
pub(crate) mod staged_file;
pub(crate) mod tree_sync;
pub(crate) mod unique_mtime;
