//! Operations of the backend: construction of scripts, and interpretation of their replies.

pub(crate) mod bulk;
pub(crate) mod edit;
pub(crate) mod read;
pub(crate) mod remove;
mod shell;
pub(crate) mod staged;
pub(crate) mod stat;
pub(crate) mod transfer;
pub(crate) mod write;
pub(crate) mod writer;
