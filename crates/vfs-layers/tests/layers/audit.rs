//! Audit logs: records, sinks and the hash chain.

mod dropped;
mod storage_full;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use futures::StreamExt;
use futures::future::join_all;
use vfs_core::operation::{Intercepted, OperationClass};
use vfs_core::{
    Backend, BackendExt, CopyRequest, EditRequest, ErrorKind, FileUploadRequest, GrepRequest, Layer, OpContext,
    Operation, RenameRequest, Result, VfsPath, WriteMode,
};
use vfs_layers::{
    Audit, AuditHead, AuditRecord, AuditScope, AuditSink, BackendSink, ChainFault, Delay, FaultInjection, MemorySink,
    OnSinkFailure, Outcome, verify, verify_until,
};
use vfs_memory::MemoryBackend;
use vfs_testkit::{CallCounter, StrictBackend};

use super::support::{memory, millis, path, read, search, write};

async fn audited() -> (Arc<dyn Backend>, Audit, MemorySink) {
    let sink = MemorySink::new();
    let audit = Audit::new(sink.clone());
    (audit.layer(memory().await), audit, sink)
}

#[tokio::test]
async fn a_record_says_who_did_what_where_and_how_it_ended() {
    let (files, _, sink) = audited().await;
    let cx = OpContext::new().with_actor("planner").with_session("s1");
    let renamed = files.rename(&cx, RenameRequest::new(path("/a"), path("/b"))).await;
    renamed.expect("moved");
    files.read_text("/missing").await.expect_err("missing");
    let records = sink.records();
    assert_eq!(records.iter().map(|record| record.sequence).collect::<Vec<_>>(), [1, 2]);
    let first = &records[0];
    assert_eq!((first.actor.as_deref(), first.session.as_deref()), (Some("planner"), Some("s1")));
    assert_eq!((first.operation, first.effect), (Operation::Rename.into(), OperationClass::Write));
    assert_eq!((&first.path, &first.to), (&Some(path("/a")), &Some(path("/b"))));
    assert_eq!((first.outcome, records[1].outcome), (Outcome::Ok, Outcome::Failed(ErrorKind::NotFound)));
    let json = serde_json::to_value(first).expect("serialises");
    assert_eq!((&json["outcome"], &json["operation"]), (&"ok".into(), &"rename".into()));
    let time = json["time"].as_str().expect("a text");
    assert!(time.ends_with('Z') && time.parse::<chrono::DateTime<chrono::Utc>>().is_ok(), "{time}");
    assert_eq!(json.as_object().expect("an object").len(), 14, "nothing is there that is none: {json}");
}

#[tokio::test]
async fn of_a_change_it_says_what_was_there_before_and_afterwards() {
    let (files, _, sink) = audited().await;
    let cx = OpContext::new();
    let written = write(&*files, "/b", "12345", WriteMode::CreateNew).await.expect("written");
    let edited = files.edit(&cx, EditRequest::new(path("/b"), "5", "")).await.expect("edited");
    files.copy(&cx, CopyRequest::new(path("/b"), path("/a")).overwrite()).await.expect("copied");
    files.upload_files(&cx, vec![FileUploadRequest::new(path("/u"), "x")]).await;
    files.delete_file("/b").await.expect("removed");
    write(&*files, "/a", "x", WriteMode::CreateNew).await.expect_err("it is there");
    let sizes: Vec<_> = sink
        .records()
        .iter()
        .map(|record| [&record.before, &record.replaced, &record.after].map(|state| state.as_ref().map(|at| at.size)))
        .collect();
    let expected = [
        [None, None, Some(5)],
        [Some(5), None, Some(4)],
        [Some(4), Some(12), Some(4)],
        [None, None, Some(1)],
        [Some(4), None, None],
        [Some(4), None, Some(4)],
    ];
    assert_eq!(sizes, expected);
    let edit = &sink.records()[1];
    assert_eq!(edit.before.as_ref().and_then(|at| at.version.clone()), Some(written.version));
    assert_eq!(edit.after.as_ref().and_then(|at| at.version.clone()), Some(edited.version));
}

#[tokio::test]
async fn a_change_whose_answer_was_lost_shows_that_it_happened() {
    let sink = MemorySink::new();
    let lossy = FaultInjection::new(ErrorKind::Unavailable).only(Operation::Write).after().layer(memory().await);
    write(&*Audit::new(sink.clone()).layer(lossy), "/b", "x", WriteMode::CreateNew).await.expect_err("lost");
    let [record] = &sink.records()[..] else { panic!("one record") };
    assert_eq!(record.outcome, Outcome::Failed(ErrorKind::Unavailable));
    assert_eq!((&record.before, record.after.as_ref().map(|at| at.size)), (&None, Some(1)));
}

#[tokio::test]
async fn contents_edits_and_patterns_are_not_recorded() {
    let (files, _, sink) = audited().await;
    files.write_text("/b", "secret").await.expect("written");
    files.edit_text("/b", "secret", "other secret").await.expect("edited");
    files.grep_text("secret").await.expect("searched");
    search(&*files, &OpContext::new()).await;
    files.glob_files("*secret*").await.expect("found");
    assert_eq!(sink.records().len(), 5);
    assert!(!format!("{:?}", sink.records()).contains("secret"));
}

#[tokio::test]
async fn the_scope_can_be_changes_only() {
    let sink = MemorySink::new();
    let files = Audit::new(sink.clone()).scope(AuditScope::Changes).layer(memory().await);
    files.read_text("/a").await.expect("read");
    let dry = EditRequest::new(path("/a"), "one", "x").replace_all().dry_run();
    files.edit(&OpContext::new(), dry).await.expect("a dry run");
    files.delete_file("/a").await.expect("removed");
    let operations: Vec<_> = sink.records().iter().map(|record| record.operation).collect();
    assert_eq!(operations, [Operation::Delete.into()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_of_many_at_once_are_in_order_and_chained() {
    let (files, audit, sink) = audited().await;
    let tasks = (0..64).map(|n| {
        let files = Arc::clone(&files);
        tokio::spawn(async move {
            for _ in 0..10 {
                files.append_text(&format!("/{}", n % 8), "x").await.expect("appended");
            }
        })
    });
    join_all(tasks).await.into_iter().for_each(|task| task.expect("no panic"));
    assert_eq!(sink.records().len(), 640);
    assert_eq!(verify(&sink.records()), Ok(audit.head()));
    assert_eq!(audit.head().sequence, 640);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sink_that_takes_its_time_has_every_record_once_and_in_order() {
    let log = StrictBackend::new(Arc::new(MemoryBackend::new()));
    let sink = BackendSink::new(Arc::new(log), path("/log"));
    let audit = Audit::new(sink.clone());
    let files = audit.layer(memory().await);
    let tasks = (0..64).map(|n| {
        let files = Arc::clone(&files);
        tokio::spawn(async move {
            let mut call = Box::pin(files.stat_path("/a"));
            // Every third goes away while its record is on its way.
            for _ in 0..n {
                if n % 3 == 0 && futures::future::poll_immediate(&mut call).await.is_some() {
                    return;
                }
                tokio::task::yield_now().await;
            }
            if n % 3 != 0 {
                call.await.expect("described");
            }
        })
    });
    join_all(tasks).await.into_iter().for_each(|task| task.expect("no panic"));
    audit.flush().await.expect("all records are stored");
    let records = sink.records().await.expect("read back");
    assert_eq!(verify(&records), Ok(audit.head()));
    assert!(records.len() >= 42, "{}", records.len());
}

/// Six good records, changed by `change`, and where that is found.
async fn broken(change: impl FnOnce(&mut Vec<AuditRecord>)) -> (u64, ChainFault) {
    let (files, audit, sink) = audited().await;
    for n in 0..6 {
        files.write_text(&format!("/{n}"), "x").await.expect("written");
    }
    let mut records = sink.records();
    assert_eq!(verify_until(&records, &audit.head()), Ok(()));
    change(&mut records);
    let error = verify_until(&records, &audit.head()).expect_err("it was changed");
    assert!(error.to_string().contains(&error.sequence.to_string()), "{error}");
    (error.sequence, error.fault)
}

#[tokio::test]
async fn every_change_of_the_log_is_found_at_its_record() {
    assert_eq!(broken(|log| log[2].actor = Some("somebody".into())).await, (3, ChainFault::Changed));
    assert_eq!(broken(|log| log[2].duration_us += 1).await, (3, ChainFault::Changed));
    assert_eq!(broken(|log| log[5].path = Some(path("/x"))).await, (6, ChainFault::Changed));
    assert_eq!(broken(|log| drop(log.remove(2))).await, (3, ChainFault::OutOfSequence));
    assert_eq!(broken(|log| drop(log.remove(0))).await, (1, ChainFault::OutOfSequence));
    assert_eq!(broken(|log| log.insert(2, log[1].clone())).await, (3, ChainFault::OutOfSequence));
    assert_eq!(broken(|log| log.swap(2, 3)).await, (3, ChainFault::OutOfSequence));
    assert_eq!(broken(|log| log[3].previous = log[2].previous.clone()).await, (4, ChainFault::Unchained));
    assert_eq!(broken(|log| log.truncate(4)).await, (5, ChainFault::Missing));
    assert_eq!(broken(Vec::clear).await, (1, ChainFault::Missing));
}

#[tokio::test]
async fn a_log_that_was_written_anew_is_found_by_its_head() {
    let (files, audit, sink) = audited().await;
    files.write_text("/b", "x").await.expect("written");
    let (others, _, other) = audited().await;
    others.delete_file("/a").await.expect("removed");
    assert!(verify(&other.records()).is_ok());
    let error = verify_until(&other.records(), &audit.head()).expect_err("another log");
    assert_eq!((error.sequence, error.fault), (1, ChainFault::OtherEnd));
    let longer: Vec<_> = sink.records().into_iter().chain(sink.records()).collect();
    assert_eq!(verify(&longer).expect_err("twice").fault, ChainFault::OutOfSequence);
}

#[tokio::test]
async fn a_stream_is_recorded_when_it_ends_fails_or_is_dropped() {
    let (files, audit, sink) = audited().await;
    search(&*files, &OpContext::new()).await;
    let begin = || files.grep_stream(OpContext::new(), GrepRequest::literal("one"));
    let mut dropped = begin();
    dropped.next().await.expect("an item").expect("a match");
    drop(dropped);
    drop(begin());
    let cx = OpContext::new();
    cx.cancel_token().cancel();
    search(&*files, &cx).await;
    audit.flush().await.expect("all records are stored");
    let seen: Vec<_> = sink.records().iter().map(|record| (record.matches, record.outcome)).collect();
    let cancelled = Outcome::Failed(ErrorKind::Cancelled);
    assert_eq!(seen, [(Some(3), Outcome::Ok), (None, Outcome::Dropped), (None, cancelled)]);
    assert_eq!(verify(&sink.records()), Ok(audit.head()));
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_is_dropped_is_recorded_before_the_next() {
    let sink = MemorySink::new();
    let slow = Delay::new(millis(0)).for_operation(Operation::Read, millis(50)).layer(memory().await);
    let audit = Audit::new(sink.clone());
    let files = audit.layer(slow);
    tokio::time::timeout(millis(7), files.read_text("/a")).await.expect_err("dropped");
    assert_eq!((sink.records().len(), audit.head()), (0, AuditHead::start()));
    files.stat_path("/a").await.expect("described");
    let records = sink.records();
    let seen: Vec<_> = records.iter().map(|record| (record.operation, record.outcome)).collect();
    let expected = [(Operation::Read, Outcome::Dropped), (Operation::Stat, Outcome::Ok)];
    assert_eq!(seen, expected.map(|(operation, outcome)| (operation.into(), outcome)));
    assert_eq!(records[0].duration_us, 7000);
    assert!(verify(&records).is_ok());
}

/// A sink that refuses records while `refuses` is set.
#[derive(Debug, Clone, Default)]
struct Moody {
    refuses: Arc<AtomicBool>,
    sink: MemorySink,
}

#[async_trait]
impl AuditSink for Moody {
    async fn append(&self, record: &AuditRecord) -> Result<()> {
        if self.refuses.load(Ordering::SeqCst) {
            return Err(vfs_core::Error::of(ErrorKind::StorageFull));
        }
        self.sink.append(record).await
    }
}

#[tokio::test]
async fn after_a_failure_of_the_sink_nothing_is_done_until_it_works_again() {
    let counting = Arc::new(CallCounter::default());
    let inner = Arc::new(Intercepted::new(memory().await, Arc::clone(&counting)));
    let sink = Moody::default();
    let audit = Audit::new(sink.clone());
    let files = audit.layer(inner);
    sink.refuses.store(true, Ordering::SeqCst);
    files.write_text("/b", "x").await.expect("it happened, and the answer says so");
    let calls = counting.total();
    let error = files.write_text("/c", "x").await.expect_err("refused");
    assert_eq!((error.kind(), error.path()), (ErrorKind::Unavailable, Some("/c")));
    assert_eq!(files.read_text("/a").await.expect_err("refused").kind(), ErrorKind::Unavailable);
    assert_eq!(counting.total(), calls);

    sink.refuses.store(false, Ordering::SeqCst);
    files.write_text("/d", "x").await.expect("it works again");
    let paths: Vec<_> = sink.sink.records().into_iter().filter_map(|record| record.path).collect();
    assert_eq!(paths, [path("/b"), path("/d")]);
    assert_eq!(verify(&sink.sink.records()), Ok(audit.head()));
}

#[tokio::test]
async fn one_that_continues_keeps_its_records_until_the_sink_works_again() {
    let sink = Moody::default();
    let audit = Audit::new(sink.clone()).on_sink_failure(OnSinkFailure::Continue);
    let files = audit.layer(memory().await);
    sink.refuses.store(true, Ordering::SeqCst);
    for n in 0..5 {
        files.write_text(&format!("/{n}"), "x").await.expect("goes on");
    }
    assert!(sink.sink.records().is_empty());
    sink.refuses.store(false, Ordering::SeqCst);
    audit.flush().await.expect("all records are stored");
    assert_eq!(sink.sink.records().len(), 5);
    assert_eq!(verify(&sink.sink.records()), Ok(audit.head()));
}

#[tokio::test]
async fn a_log_in_a_file_is_read_back_and_gone_on_with() {
    let log: Arc<MemoryBackend> = Arc::default();
    let sink = BackendSink::new(Arc::<MemoryBackend>::clone(&log), path("/log/é.jsonl"));
    assert_eq!(sink.head().await.expect("nothing yet"), AuditHead::start());
    assert!(sink.records().await.expect("nothing yet").is_empty());
    for round in 1..=3 {
        let audit = Audit::resuming(sink.clone(), sink.head().await.expect("read back"));
        let cx = OpContext::new().with_actor("naïve 🦀\n\"".repeat(9000));
        read(&*audit.layer(memory().await), &cx, "/é").await.expect_err("missing");
        assert_eq!((audit.head().sequence, sink.head().await), (round, Ok(audit.head())));
        assert_eq!(verify(&sink.records().await.expect("read back")), Ok(audit.head()));
    }
    let text = log.read_text("/log/é.jsonl").await.expect("text");
    assert_eq!((text.lines().count(), text.is_ascii()), (3, true));
}

#[tokio::test]
async fn a_log_that_was_tampered_with_is_read_back_and_found_or_refused() {
    let log: Arc<MemoryBackend> = Arc::default();
    let sink = BackendSink::new(Arc::<MemoryBackend>::clone(&log), path("/log"));
    let files = Audit::new(sink.clone()).layer(memory().await);
    files.read_text("/a").await.expect("read");
    files.stat_path("/a").await.expect("described");
    log.edit_text("/log", r#""operation":"read""#, r#""operation":"grep""#).await.expect("edited");
    let records = sink.records().await.expect("still records");
    assert_eq!(verify(&records).expect_err("changed").sequence, 1);
    log.edit_text("/log", r#"{"sequence":1"#, r#"{"more":1,"sequence":1"#).await.expect("edited");
    let error = sink.records().await.expect_err("a field that is none");
    assert_eq!((error.kind(), error.path()), (ErrorKind::Internal, Some("/log")));
    log.append_text("/log", "{").await.expect("written");
    assert!(sink.head().await.expect_err("cut").message().contains("is incomplete"));
}

#[tokio::test]
async fn a_record_whose_writing_was_not_acknowledged_is_there_once() {
    let log: Arc<MemoryBackend> = Arc::default();
    let lossy = FaultInjection::new(ErrorKind::Unavailable).only(Operation::Write).every(2).after();
    let sink = BackendSink::new(lossy.layer(Arc::<MemoryBackend>::clone(&log)), path("/log"));
    let audit = Audit::new(sink.clone()).on_sink_failure(OnSinkFailure::Continue);
    let files = audit.layer(memory().await);
    for n in 0..10 {
        files.write_text(&format!("/{n}"), "x").await.expect("the sink comes round at the next");
    }
    audit.flush().await.expect("all records are stored");
    let records = sink.records().await.expect("read back");
    assert_eq!((records.len(), verify(&records)), (10, Ok(audit.head())));
}

#[tokio::test]
async fn one_value_around_two_backends_has_one_log() {
    let sink = MemorySink::new();
    let audit = Audit::new(sink.clone());
    let (one, two) = (audit.layer(memory().await), audit.clone().layer(memory().await));
    let mut paths: BTreeMap<u64, VfsPath> = BTreeMap::new();
    one.delete_file("/a").await.expect("removed");
    two.stat_path("/a").await.expect("described");
    for record in sink.records() {
        paths.extend(record.path.map(|path| (record.sequence, path)));
    }
    assert_eq!(paths.len(), 2);
    assert!(verify(&sink.records()).is_ok());
}

#[tokio::test]
async fn a_record_that_does_not_follow_the_last_one_in_the_file_is_refused() -> vfs_core::Result<()> {
    let log = Arc::new(MemoryBackend::new());
    let sink = || BackendSink::new(Arc::<MemoryBackend>::clone(&log), path("/audit.jsonl"));
    let (first, second) = (Audit::new(sink()), Audit::new(sink()));
    let files = first.layer(memory().await);
    let others = second.layer(memory().await);
    files.read_text("/a").await?;
    assert_eq!(others.delete_file("/a").await.expect_err("its log is another's").kind(), ErrorKind::Unavailable);
    assert_eq!(others.read_text("/a").await.expect_err("still").kind(), ErrorKind::Unavailable);
    files.read_text("/a").await?;
    assert_eq!(verify(&sink().records().await?), Ok(first.head()));
    Ok(())
}
