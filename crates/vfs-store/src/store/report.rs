//! What a look at a whole store found.

use serde::Serialize;
use vfs_core::Problem;

/// What a verification of every value found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CheckReport {
    /// Values that were read.
    pub files: u64,
    /// Bytes of content that were read.
    pub bytes: u64,
    /// What is not as it should be; empty where all is well.
    pub problems: Vec<Problem>,
}

/// How much a store holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StoreStats {
    /// Namespaces that hold a value.
    pub namespaces: u64,
    /// Values.
    pub files: u64,
    /// Bytes of content.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_have_these_names_in_json() {
        let report = CheckReport { files: 2, bytes: 10, problems: Vec::new() };
        assert_eq!(serde_json::to_string(&report).expect("JSON"), r#"{"files":2,"bytes":10,"problems":[]}"#);
        let stats = StoreStats { namespaces: 1, files: 2, bytes: 10 };
        assert_eq!(serde_json::to_string(&stats).expect("JSON"), r#"{"namespaces":1,"files":2,"bytes":10}"#);
    }
}
