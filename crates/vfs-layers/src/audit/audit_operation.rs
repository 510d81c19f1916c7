//! Operation of an audit record.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use vfs_core::Operation;

/// The operation of a record: one of a backend, one on its layers, or a gap. In JSON its [`code`](Self::code).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuditOperation {
    /// An operation of the backend.
    Backend(Operation),
    /// The changes of an overlay were committed to the files beneath it.
    Commit,
    /// The changes of an overlay were discarded.
    Discard,
    /// Operations were undone.
    Undo,
    /// A move across mounts that a crash had interrupted was finished or rolled back, or could not be.
    Recover,
    /// Records are missing here, because the sink refused them for too long.
    Gap,
}

impl AuditOperation {
    /// Operations that are not operations of a backend.
    const LAYER_OPERATIONS: [Self; 5] = [Self::Commit, Self::Discard, Self::Undo, Self::Recover, Self::Gap];

    /// Returns the stable snake_case name.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Backend(operation) => operation.code(),
            Self::Commit => "commit",
            Self::Discard => "discard",
            Self::Undo => "undo",
            Self::Recover => "recover",
            Self::Gap => "gap",
        }
    }
}

impl From<Operation> for AuditOperation {
    fn from(operation: Operation) -> Self {
        Self::Backend(operation)
    }
}

impl fmt::Display for AuditOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl Serialize for AuditOperation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

impl<'de> Deserialize<'de> for AuditOperation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = String::deserialize(deserializer)?;
        let all = Operation::ALL.iter().map(|operation| Self::Backend(*operation)).chain(Self::LAYER_OPERATIONS);
        all.into_iter()
            .find(|operation| operation.code() == code)
            .ok_or_else(|| serde::de::Error::custom(format_args!("`{code}` is not an operation of an audit record")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_code_of_its_own_and_is_read_back() {
        let all: Vec<_> = Operation::ALL.iter().map(|operation| (*operation).into()).collect();
        for operation in all.into_iter().chain(AuditOperation::LAYER_OPERATIONS) {
            let json = serde_json::to_string(&operation).expect("JSON");
            assert_eq!(serde_json::from_str::<AuditOperation>(&json).expect(&json), operation);
        }
    }
}
