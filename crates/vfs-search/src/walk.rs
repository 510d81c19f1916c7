//! Directory traversal in path order, with ignore rules, hidden names and links.

pub(crate) mod dir_entries;
pub(crate) mod dir_reader;
pub(crate) mod ignore_rules;
pub(crate) mod pending_steps;
pub(crate) mod sequential_walk;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod visibility;
pub(crate) mod walk_findings;
pub(crate) mod walk_options;
