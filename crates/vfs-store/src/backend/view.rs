//! View of a namespace in one call: files, the directories that their paths imply, and caches of both.

pub(super) mod candidate_names;
pub(super) mod content_cache;
pub(super) mod directory;
pub(super) mod indexed_names;
pub(super) mod line_index_cache;
pub(super) mod name_index;
pub(super) mod namespace_view;
pub(super) mod operation;
pub(super) mod path_entry;
pub(super) mod prefetch;
pub(super) mod text_query;
pub(super) mod tree;
