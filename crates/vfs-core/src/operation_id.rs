//! Identity of a mutation that may be sent more than once.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::{Error, Result};

/// Identity of a mutation: a mutation that is sent again with the same id, after its response was lost, is made once.
///
/// # Behaviour
///
/// * The id is chosen by the caller, for example as a UUID, and set with
///   [`OpContext::with_operation_id`](crate::OpContext::with_operation_id).
/// * The id identifies a mutation together with the operation and its path: the same id with another request for the same operation
///   and path is a `conflict` with the detail [`OperationIdReused`](crate::error::ErrorDetail::OperationIdReused).
/// * [`Capabilities::operation_ids`](crate::Capabilities::operation_ids) says whether a backend remembers ids.
///
/// ```
/// use vfs_core::{OpContext, OperationId};
///
/// let cx = OpContext::new().with_operation_id(OperationId::parse("run-7/step-3")?);
/// assert_eq!(cx.operation_id().map(OperationId::as_str), Some("run-7/step-3"));
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId(Arc<str>);

impl OperationId {
    /// The maximum length in bytes.
    pub const MAX_LEN: usize = 256;

    /// Parses an id of 1 to [`MAX_LEN`](Self::MAX_LEN) bytes without control characters.
    ///
    /// # Errors
    ///
    /// `invalid_argument` for any other text.
    pub fn parse(text: &str) -> Result<Self> {
        if text.is_empty() || text.len() > Self::MAX_LEN || text.chars().any(char::is_control) {
            let message =
                format!("an operation id has 1 to {} bytes and no control characters; use a UUID", Self::MAX_LEN);
            return Err(Error::invalid_argument(message));
        }
        Ok(Self(text.into()))
    }

    /// Returns the id of a further mutation of one path in the same call. No id of a caller has a NUL byte.
    pub(crate) fn of_occurrence(&self, occurrence: usize) -> Self {
        if occurrence == 0 { self.clone() } else { Self(format!("{}\0{occurrence}", self.0).into()) }
    }

    /// Returns the text of the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for OperationId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_short_text_without_control_characters() {
        let longest = "x".repeat(OperationId::MAX_LEN);
        for (text, is_valid) in
            [("a", true), ("run 7/ü", true), (&longest, true), ("", false), ("a\n", false), ("a\0", false)]
        {
            assert_eq!(OperationId::parse(text).is_ok(), is_valid, "{text:?}");
        }
        assert!(OperationId::parse(&"x".repeat(OperationId::MAX_LEN + 1)).is_err());
    }
}
