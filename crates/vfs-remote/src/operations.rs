//! Operations of the backend: each builds a script or two and interprets the reply.

pub(crate) mod bulk;
pub(crate) mod edit;
pub(crate) mod read;
pub(crate) mod remove;
mod shell;
pub(crate) mod stat;
pub(crate) mod transfer;
pub(crate) mod write;
