//! What searches need of the disk: a tree to walk, and what earlier ones have learned of it.

pub(crate) mod cache;
pub(crate) mod tree;
