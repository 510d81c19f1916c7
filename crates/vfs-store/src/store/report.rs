//! Reports about whole stores.

use serde::Serialize;
use vfs_core::Problem;

/// Result of the verification of every value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CheckReport {
    /// Number of values that were read.
    pub files: u64,
    /// Bytes of content that were read.
    pub bytes: u64,
    /// Defects that were found.
    pub problems: Vec<Problem>,
}

/// Counts of a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StoreStats {
    /// Number of namespaces with a value.
    pub namespaces: u64,
    /// Number of values.
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
