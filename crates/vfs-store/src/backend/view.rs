//! View of a namespace in one call: its files, the directories that their paths imply, and caches.
//!
//! Reads and changes go through it.

pub(super) mod candidate_names;
pub(super) mod content_cache;
pub(super) mod directory_map;
pub(super) mod identified_operation;
pub(super) mod indexed_names;
pub(super) mod line_index_cache;
pub(super) mod name_index;
pub(super) mod namespace_view;
pub(super) mod path_entry;
pub(super) mod prefetch;
pub(super) mod store_tree;
pub(super) mod text_query;
