//! Search support: the tree that searches walk, and the cache of earlier results.

pub(crate) mod local_tree;
pub(crate) mod search_cache;
