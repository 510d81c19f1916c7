//! JSON format of audit logs and of usage.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use vfs_core::{BackendExt as _, ErrorKind, OpContext, Operation};
use vfs_layers::{ActorUsage, AuditHead, AuditOperation, AuditRecord, Outcome, Quota, QuotaLimits, QuotaUsage, verify};
use vfs_memory::MemoryBackend;

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
fn an_audit_log_that_was_written_before_is_read_and_verified() {
    let records: Vec<AuditRecord> = include_str!("../golden/audit.jsonl").lines().map(check).collect();
    let head = check::<AuditHead>(
        r#"{"sequence":6,"hash":"29cd13dd605407cf4aa983f68d32a1838603de9d98e1f0713be8ccdc996bba2f"}"#,
    );
    assert_eq!(verify(&records), Ok(head));
}

#[test]
fn audit_records_have_operations_and_outcomes_by_their_codes() {
    assert_eq!(
        check::<Vec<AuditOperation>>(r#"["read","commit","discard","undo","recover","gap"]"#),
        [
            AuditOperation::Backend(Operation::Read),
            AuditOperation::Commit,
            AuditOperation::Discard,
            AuditOperation::Undo,
            AuditOperation::Recover,
            AuditOperation::Gap,
        ]
    );
    assert_eq!(
        check::<Vec<Outcome>>(r#"["ok","dropped","not_found"]"#),
        [Outcome::Ok, Outcome::Dropped, Outcome::Failed(ErrorKind::NotFound)]
    );
}

#[tokio::test]
async fn usage_has_the_names_of_its_fields() {
    let (files, meter) = Quota::new(QuotaLimits::new().max_bytes(10)).metered(Arc::new(MemoryBackend::new()));
    files.create_text("/a", "12345").await.expect("within the limit");
    let usage = meter.usage(&OpContext::new()).await.expect("counted");
    assert_eq!(check::<QuotaUsage>(r#"{"files":1,"bytes":5}"#), usage);
    files.delete_file("/a").await.expect("deleted");
    assert_eq!(check::<ActorUsage>(r#"{"files":0,"bytes":0}"#), meter.of_actor(None));
    assert_eq!(check::<ActorUsage>(r#"{"files":-1,"bytes":-5}"#).bytes, -5);
}
