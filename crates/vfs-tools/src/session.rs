//! What a session has shown to its model.

/// What a session has shown to its model.
#[derive(Debug, Default)]
pub(crate) struct Session {}
