//! Profiles as data.

pub(crate) mod deepagents;
