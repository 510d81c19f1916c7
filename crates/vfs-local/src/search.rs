//! Search support: the tree that searches walk, and the cache of earlier results.

pub(crate) mod cache;
pub(crate) mod tree;
