//! Audit logs on full or failing storage: no operation without a record, and no silent loss.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use vfs_core::{Backend, BackendExt, Error, ErrorKind, Layer, Result};
use vfs_layers::{
    Audit, AuditHead, AuditOperation, AuditRecord, AuditSink, BackendSink, OnSinkFailure, Outcome, ReadOnly, verify,
};
use vfs_memory::{MemoryBackend, MemoryConfig};

use super::Moody;
use crate::support::{memory, path};

fn limited(set: impl FnOnce(&mut MemoryConfig)) -> Arc<MemoryBackend> {
    let mut config = MemoryConfig::new();
    set(&mut config);
    Arc::new(MemoryBackend::with_config(config))
}

#[tokio::test]
async fn a_log_whose_file_is_full_continues_in_another_without_loss() {
    let log = limited(|config| config.max_file_size = 160 << 10);
    let sink = BackendSink::new(Arc::<MemoryBackend>::clone(&log), path("/log/audit.jsonl"));
    let audit = Audit::new(sink.clone());
    let files = audit.layer(memory().await);
    for _ in 0..2000 {
        files.stat_path("/a").await.expect("there is room for its record");
    }
    assert_eq!(verify(&sink.records().await.expect("read back")), Ok(audit.head()));
    assert_eq!((audit.head().sequence, sink.head().await), (2000, Ok(audit.head())));
    let names: Vec<_> =
        log.list_dir("/log").await.expect("listed").into_iter().map(|file| file.path.to_string()).collect();
    assert!(names.len() >= 4 && names.contains(&"/log/audit.jsonl".to_owned()), "{names:?}");

    let next = Audit::resuming(sink.clone(), sink.head().await.expect("read back"));
    next.layer(memory().await).stat_path("/a").await.expect("it goes on in the last file");
    assert_eq!(verify(&sink.records().await.expect("read back")).map(|head| head.sequence), Ok(2001));
}

#[tokio::test]
async fn a_log_whose_last_file_was_just_rotated_can_be_continued() {
    let log: Arc<MemoryBackend> = Arc::default();
    let sink = BackendSink::new(Arc::<MemoryBackend>::clone(&log), path("/audit.jsonl")).max_size(1);
    for sequence in 1..=3 {
        let audit = Audit::resuming(sink.clone(), sink.head().await.expect("read back"));
        audit.layer(memory().await).stat_path("/a").await.expect("described");
        assert_eq!(audit.head().sequence, sequence);
    }
    let cx = vfs_core::OpContext::new();
    let rename = vfs_core::RenameRequest::new(path("/audit.jsonl"), path("/audit.jsonl.3"));
    log.rename(&cx, rename).await.expect("as a rotation that was cut short");
    let audit = Audit::resuming(sink.clone(), sink.head().await.expect("read back"));
    audit.layer(memory().await).stat_path("/a").await.expect("described");
    assert_eq!(verify(&sink.records().await.expect("read back")), Ok(audit.head()));
    assert_eq!(audit.head().sequence, 4);
}

#[tokio::test]
async fn a_change_does_not_begin_if_its_record_cannot_be_written() {
    let log: Arc<MemoryBackend> = Arc::default();
    let sink = BackendSink::new(ReadOnly.layer(log), path("/audit.jsonl"));
    let memory = memory().await;
    let files = Audit::new(sink).layer(Arc::<MemoryBackend>::clone(&memory));
    let error = files.write_text("/b", "x").await.expect_err("it would be unrecorded");
    assert_eq!((error.kind(), error.path()), (ErrorKind::Unavailable, Some("/b")));
    assert!(!memory.exists("/b").await.expect("looked at"), "nothing happened");
}

#[tokio::test]
async fn on_full_storage_running_operations_are_recorded_and_no_other_begins() {
    let log = limited(|config| config.max_total_size = Some(600 << 10));
    let sink = BackendSink::new(Arc::<MemoryBackend>::clone(&log), path("/audit.jsonl"));
    let audit = Audit::new(sink.clone());
    let memory = memory().await;
    let files = audit.layer(Arc::<MemoryBackend>::clone(&memory));
    files.write_text("/1", "x").await.expect("recorded");
    let used: u64 = log.list_dir("/").await.expect("listed").iter().map(|file| file.size).sum();
    let filler = "x".repeat(usize::try_from((600 << 10) - used).expect("it fits"));
    log.write_text("/filler", &filler).await.expect("now it is full");
    log.append_text("/filler", "x").await.expect_err("it is");

    files.write_text("/2", "x").await.expect("it began before anybody knew");
    let records = sink.records().await.expect("read back");
    assert_eq!((records.len(), verify(&records)), (2, Ok(audit.head())), "and is recorded");
    for n in 3..6 {
        let error = files.write_text(&format!("/{n}"), "x").await.expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(!memory.exists(&format!("/{n}")).await.expect("looked at"));
    }
    log.delete_file("/filler").await.expect("removed");
    files.write_text("/6", "x").await.expect("there is room again");
    assert_eq!(verify(&sink.records().await.expect("read back")), Ok(audit.head()));
    assert_eq!(audit.head().sequence, 3);
}

#[tokio::test]
async fn records_beyond_the_queue_capacity_are_counted_by_a_gap_record() {
    let sink = Moody::default();
    let audit = Audit::new(sink.clone()).on_sink_failure(OnSinkFailure::Continue);
    let files = audit.layer(memory().await);
    sink.refuses.store(true, Ordering::SeqCst);
    for _ in 0..10_002 {
        files.stat_path("/a").await.expect("goes on");
    }
    sink.refuses.store(false, Ordering::SeqCst);
    audit.flush().await.expect("all records are stored");
    files.stat_path("/a").await.expect("goes on");
    let records = sink.sink.records();
    assert_eq!(verify(&records), Ok(audit.head()));
    assert_eq!(records.len(), 10_002);
    let gap = &records[10_000];
    assert_eq!((gap.operation, gap.lost), (AuditOperation::Gap, Some(2)));
    assert_eq!(gap.outcome, Outcome::Failed(ErrorKind::StorageFull));
    assert_eq!(records.iter().filter(|record| record.lost.is_some()).count(), 1);
}

/// Counts how often it is prepared, which succeeds if it accepts records and `has_reserve`.
#[derive(Debug, Clone, Default)]
struct CountsPreparations {
    sink: Moody,
    has_reserve: bool,
    preparations: Arc<AtomicUsize>,
}

#[async_trait]
impl AuditSink for CountsPreparations {
    async fn prepare(&self, _head: &AuditHead) -> Result<()> {
        self.preparations.fetch_add(1, Ordering::SeqCst);
        let is_possible = self.has_reserve && !self.sink.refuses.load(Ordering::SeqCst);
        if is_possible { Ok(()) } else { Err(Error::of(ErrorKind::StorageFull)) }
    }

    async fn append(&self, record: &AuditRecord) -> Result<()> {
        self.sink.append(record).await
    }
}

#[tokio::test]
async fn under_continue_the_sink_is_prepared_once_after_each_failure() {
    let sink = CountsPreparations { has_reserve: true, ..Default::default() };
    let files = Audit::new(sink.clone()).on_sink_failure(OnSinkFailure::Continue).layer(memory().await);
    let mut preparations = Vec::new();
    for refuses in [false, true, false, true] {
        sink.sink.refuses.store(refuses, Ordering::SeqCst);
        for _ in 0..5 {
            files.stat_path("/a").await.expect("goes on");
        }
        preparations.push(sink.preparations.load(Ordering::SeqCst));
    }
    // At the first operation, after the first record that is refused, and after the first that is accepted again.
    assert_eq!(preparations, [1, 2, 3, 4]);
}

#[tokio::test]
async fn under_continue_a_sink_without_a_reserve_is_prepared_once() {
    let sink = CountsPreparations::default();
    let files = Audit::new(sink.clone()).on_sink_failure(OnSinkFailure::Continue).layer(memory().await);
    for _ in 0..5 {
        files.stat_path("/a").await.expect("goes on");
    }
    assert_eq!(sink.preparations.load(Ordering::SeqCst), 1);
    assert_eq!(sink.sink.sink.records().len(), 5);
}
