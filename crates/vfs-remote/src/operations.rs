//! Operations of the backend: construction of scripts, and interpretation of their replies.

pub(crate) mod bulk_transfer;
pub(crate) mod edit;
pub(crate) mod read;
pub(crate) mod remote_staged_content;
pub(crate) mod remote_writer;
pub(crate) mod remove;
pub(crate) mod rename_copy;
mod shell;
pub(crate) mod stat;
pub(crate) mod write;
