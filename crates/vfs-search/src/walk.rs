//! Directory traversal in path order, with ignore rules, hidden names and links.

pub(crate) mod dir_entries;
pub(crate) mod dir_reader;
pub(crate) mod ignore;
pub(crate) mod options;
pub(crate) mod sequential;
pub(crate) mod subtree;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod visibility;
