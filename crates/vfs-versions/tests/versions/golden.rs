//! JSON of the undo report and of commit conflicts.

use serde::Serialize;
use serde::de::DeserializeOwned;
use vfs_versions::{CommitConflict, UndoEntry, UndoReport};

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("JSON")
}

/// Reads `text` as a `T`, and checks that it is written again as it was.
#[track_caller]
fn check<T: Serialize + DeserializeOwned>(text: &str) -> T {
    let value: T = serde_json::from_str(text).expect("the names are known");
    assert_eq!(json(&value), text);
    value
}

#[test]
fn undo_reports_and_conflicts_are_written_with_the_names_with_which_they_are_read() {
    check::<UndoEntry>(r#"{"number":3,"time":"2025-01-15T10:30:00Z","operation":"write","paths":["/a"]}"#);
    check::<UndoReport>(concat!(
        r#"{"entries":[{"number":3,"time":"2025-01-15T10:30:00Z","actor":"ann","operation":"rename","#,
        r#""paths":["/a","/b"]}],"files":2}"#
    ));
    check::<CommitConflict>(r#"{"path":"/a","expected":"v1","actual":null}"#);
}
