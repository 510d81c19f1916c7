//! Outcome of an operation.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use vfs_core::ErrorKind;
use vfs_core::operation::StreamRequest;

/// The outcome of an operation. In JSON its [`code`](Self::code).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The operation succeeded, or its stream came to its end: its last item, such as
    /// [`GrepEvent::End`](vfs_core::GrepEvent::End), or `None`.
    Ok,
    /// The operation failed.
    Failed(ErrorKind),
    /// The caller dropped the operation before its end. A change has happened as a whole, or not at all.
    Dropped,
}

impl Outcome {
    /// Returns `ok`, the code of the error kind, or `dropped`.
    pub fn code(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Failed(kind) => kind.code(),
            Outcome::Dropped => "dropped",
        }
    }

    /// Returns the outcome of `result`.
    pub(crate) fn of<T>(result: &vfs_core::Result<T>) -> Self {
        result.as_ref().err().map_or(Outcome::Ok, |error| Outcome::Failed(error.kind()))
    }

    /// Returns the outcome of a stream whose last item is `item`, or `None` if `item` does not end a stream.
    pub(crate) fn of_last_item<Q: StreamRequest>(item: &vfs_core::Result<Q::Output>) -> Option<Self> {
        match item {
            Ok(item) => Q::output_ref(item).ends_stream().then_some(Outcome::Ok),
            Err(error) => Some(Outcome::Failed(error.kind())),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

impl<'de> Deserialize<'de> for Outcome {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = String::deserialize(deserializer)?;
        let failed = ErrorKind::ALL.iter().map(|kind| Outcome::Failed(*kind));
        let mut all = [Outcome::Ok, Outcome::Dropped].into_iter().chain(failed);
        all.find(|outcome| outcome.code() == code)
            .ok_or_else(|| serde::de::Error::custom(format_args!("`{code}` is not an outcome")))
    }
}
