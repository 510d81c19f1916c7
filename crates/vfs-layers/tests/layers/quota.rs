//! Quotas: limits, counts and usage of actors.

mod replayed_calls;
mod unknown_outcome;

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;
use futures::executor::block_on;
use futures::future::{join_all, poll_immediate};
use proptest::prelude::{ProptestConfig, any, proptest};
use tokio::time::{Duration, advance};
use vfs_core::error::ErrorDetail;
use vfs_core::operation::{Intercepted, RequestRef, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::snapshots::{RestoreRequest, SnapshotRequest};
use vfs_core::{
    Backend, BackendExt, CopyRequest, DeleteRequest, EditRequest, ErrorKind, FileUploadRequest, Interceptor, Layer,
    LsRequest, LsResult, OpContext, OpenWriterRequest, Operation, RenameRequest, Result, TruncationReason, WriteMode,
    WriteRequest,
};
use vfs_layers::{ActorUsage, FaultInjection, Quota, QuotaLimits, QuotaUsage, QuotaUsageReader};
use vfs_memory::{FilesState, MemoryBackend, StateBackend};
use vfs_testkit::model::{ExistingTargetMode, ModelStep, check, steps};
use vfs_testkit::{CallCounter, StrictBackend, Target};

use super::support::{memory, path, write};

fn metered(limits: QuotaLimits) -> (Arc<dyn Backend>, QuotaUsageReader, MemoryBackend) {
    let store = MemoryBackend::new();
    // The strict double yields at every call, so that concurrent calls interleave.
    let inner = StrictBackend::new(Arc::new(store.clone()));
    let (files, meter) = Quota::new(limits).metered(Arc::new(inner));
    (files, meter, store)
}

/// Returns the number of stored files and bytes, by a fresh listing.
async fn stored(store: &dyn Backend) -> (u64, u64) {
    let listing = store.ls(&OpContext::new(), LsRequest::new(path("/")).recursive()).await.expect("listed");
    let files = listing.entries.iter().filter(|entry| !entry.is_dir);
    files.fold((0, 0), |(files, bytes), file| (files + 1, bytes + file.size))
}

async fn tracked(meter: &QuotaUsageReader) -> (u64, u64) {
    let QuotaUsage { files, bytes, .. } = meter.usage(&OpContext::new()).await.expect("counted");
    (files, bytes)
}

/// Runs `step`, which may fail.
async fn take(files: &dyn Backend, cx: &OpContext, step: &ModelStep) -> Result<()> {
    let overwrites =
        |mode: ExistingTargetMode| matches!(mode, ExistingTargetMode::Overwrite | ExistingTargetMode::Append);
    match step {
        ModelStep::Write { path: at, content, mode } => {
            let mode = match mode {
                ExistingTargetMode::CreateNew => WriteMode::CreateNew,
                ExistingTargetMode::Overwrite => WriteMode::Overwrite,
                ExistingTargetMode::Append => WriteMode::Append,
                ExistingTargetMode::IfCurrent => {
                    let version = files.stat_path(at).await.ok().and_then(|info| info.version);
                    version.map_or(WriteMode::CreateNew, WriteMode::IfVersion)
                }
                ExistingTargetMode::IfStale => WriteMode::IfVersion("a version that never was".into()),
            };
            files.write(cx, WriteRequest::new(path(at), content.clone()).mode(mode)).await.map(drop)
        }
        ModelStep::Edit { path: at, old, new, all } => {
            let request = EditRequest::new(path(at), old, new);
            files.edit(cx, if *all { request.replace_all() } else { request }).await.map(drop)
        }
        ModelStep::Delete { path: at, recursive } => {
            let request = DeleteRequest::new(path(at));
            files.delete(cx, if *recursive { request.recursive() } else { request }).await.map(drop)
        }
        ModelStep::Rename { from, to, mode } => {
            let request = RenameRequest::new(path(from), path(to));
            files.rename(cx, if overwrites(*mode) { request.overwrite() } else { request }).await.map(drop)
        }
        ModelStep::Copy { from, to, mode } => {
            let request = CopyRequest::new(path(from), path(to));
            files.copy(cx, if overwrites(*mode) { request.overwrite() } else { request }).await.map(drop)
        }
        ModelStep::Read { path: at, .. } => {
            let upload = FileUploadRequest::new(path(at), "uploaded");
            files.upload_files(cx, vec![upload]).await.remove(0).cause.map_or(Ok(()), Err)
        }
        _ => Ok(()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn a_quota_does_not_change_random_operations_and_counts_all_of_them(steps in steps()) {
        let (files, meter, store) = metered(QuotaLimits::new().max_bytes(u64::MAX).max_files(u64::MAX));
        check(&Target::new(files), &steps);
        assert_eq!(block_on(tracked(&meter)), block_on(stored(&store)));
    }

    #[test]
    fn no_limit_is_passed_and_the_count_is_exact_after_every_step(steps in steps(), bytes in 0..60_u64, most in 0..6_u64) {
        block_on(async {
            let store = MemoryBackend::new();
            store.create_text("/c/d/e", "12345").await.expect("written");
            let counting = Arc::new(CallCounter::default());
            let counted = Arc::new(Intercepted::new(Arc::new(store.clone()), Arc::clone(&counting)));
            let own = QuotaLimits::new().max_bytes(20);
            let (files, meter) = Quota::new(QuotaLimits::new().max_bytes(bytes).max_files(most)).per_actor(own).metered(counted);
            let contexts = [OpContext::new().with_actor("a"), OpContext::new().with_actor("b"), OpContext::new()];
            let mut before = stored(&store).await;
            let mut failed = 0;
            for (step, cx) in steps.iter().zip(contexts.iter().cycle()) {
                failed += u64::from(take(&*files, cx, step).await.is_err() && is_of_many(step));
                let now = stored(&store).await;
                assert_eq!(tracked(&meter).await, now, "{step:?}");
                assert!(now.0 <= most.max(before.0) && now.1 <= bytes.max(before.1), "{now:?} after {step:?}");
                before = now;
            }
            let actors = [Some("a"), Some("b"), None].map(|actor| meter.of_actor(actor));
            assert!(actors.iter().all(|actor| actor.bytes <= 20), "{actors:?}");
            let sum = |of: fn(&ActorUsage) -> i64| actors.iter().map(of).sum::<i64>();
            let all = (sum(|actor| actor.files) + 1, sum(|actor| actor.bytes) + 5);
            assert_eq!((before.0 as i64, before.1 as i64), all, "actors and what was there are the whole");
            assert!(counting.calls(Operation::Ls) <= 1 + trees(&steps) + failed, "it was counted once, and after failures");
        });
    }

    #[test]
    fn the_count_is_exact_where_answers_are_lost(steps in steps(), seed in any::<u64>()) {
        block_on(async {
            let store = MemoryBackend::new();
            let lossy = FaultInjection::new(ErrorKind::Unavailable).randomly(0.3, seed);
            let lossy = [Operation::Write, Operation::Edit, Operation::Delete, Operation::Rename, Operation::Copy]
                .into_iter()
                .fold(lossy.only(Operation::Upload), FaultInjection::only);
            let inner = lossy.clone().randomly(0.3, seed ^ 1).after().layer(lossy.layer(Arc::new(store.clone())));
            let (files, meter) = Quota::new(QuotaLimits::new().max_bytes(100)).metered(inner);
            for step in &steps {
                let _ = take(&*files, &OpContext::new(), step).await;
                assert_eq!(tracked(&meter).await, stored(&store).await, "{step:?}");
            }
        });
    }
}

/// Whether a failure of the step may leave a part of it.
fn is_of_many(step: &ModelStep) -> bool {
    matches!(step, ModelStep::Rename { .. } | ModelStep::Copy { .. } | ModelStep::Delete { recursive: true, .. })
}

/// Returns the number of steps that list the entries which they copy or delete.
fn trees(steps: &[ModelStep]) -> u64 {
    let lists = |step: &&ModelStep| matches!(step, ModelStep::Copy { .. } | ModelStep::Delete { recursive: true, .. });
    steps.iter().filter(lists).count() as u64
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writers_at_once_do_not_pass_a_limit_together() {
    for limits in [QuotaLimits::new().max_bytes(1000), QuotaLimits::new().max_files(10)] {
        let (files, meter, store) = metered(limits);
        let tasks = (0..64).map(|n| {
            let files = Arc::clone(&files);
            tokio::spawn(async move { files.create_text(&format!("/{n}"), &"x".repeat(100)).await })
        });
        let answers = join_all(tasks).await.into_iter().map(|task| task.expect("no panic"));
        let (written, refused): (Vec<_>, Vec<_>) = answers.partition(Result::is_ok);
        assert_eq!((written.len(), refused.len()), (10, 54));
        for error in refused.into_iter().filter_map(Result::err) {
            assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
            assert!(error.path().is_some_and(|path| path != "/"));
        }
        assert_eq!((tracked(&meter).await, stored(&store).await), ((10, 1000), (10, 1000)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writers_of_the_same_files_are_counted_exactly() {
    let (store, counting) = (MemoryBackend::new(), Arc::new(CallCounter::default()));
    let strict = Arc::new(StrictBackend::new(Arc::new(store.clone())));
    let counted = Arc::new(Intercepted::new(strict, Arc::clone(&counting)));
    let (files, meter) = Quota::new(QuotaLimits::new().max_bytes(1_000_000)).metered(counted);
    let tasks = (0..64_usize).map(|n| {
        let files = Arc::clone(&files);
        tokio::spawn(async move {
            for round in 0..20 {
                let name = format!("/{}", (n + round) % 5);
                let _ = match (n + round) % 4 {
                    0 => files.append_text(&name, "appended").await.is_ok(),
                    1 => files.write_text(&name, &"x".repeat(n)).await.is_ok(),
                    2 => files.delete_file(&name).await.is_ok(),
                    _ => files.edit_text(&name, "appended", "a").await.is_ok(),
                };
            }
        })
    });
    join_all(tasks).await.into_iter().for_each(|task| task.expect("no panic"));
    assert_eq!(tracked(&meter).await, stored(&store).await);
    assert_eq!(counting.calls(Operation::Ls), 1, "it was never in doubt");
}

#[tokio::test]
async fn the_error_has_the_limit_and_the_usage() {
    let (files, ..) = metered(QuotaLimits::new().max_bytes(10).max_files(2).max_file_size(8));
    files.create_text("/a", "12345").await.expect("room");
    let error = files.create_text("/b", "123456").await.expect_err("too much");
    assert_eq!((error.kind(), error.path()), (ErrorKind::QuotaExceeded, Some("/b")));
    assert!(error.message().contains("is 10 bytes; 5 are in use and this adds 6"), "{error}");
    files.create_text("/b", "").await.expect("room");
    let error = files.create_text("/c", "").await.expect_err("one too many");
    assert!(error.message().contains("is 2 files; 2 are in use and this adds 1"), "{error}");
    let error = files.append_text("/a", "6789").await.expect_err("too large");
    assert_eq!((error.kind(), error.path()), (ErrorKind::TooLarge, Some("/a")));
    assert!(error.message().contains("limit of 8"), "{error}");
}

#[tokio::test]
async fn changes_that_do_not_grow_are_never_refused() {
    let store = MemoryBackend::new();
    store.create_text("/a", "much more than allowed").await.expect("written");
    let limits = QuotaLimits::new().max_bytes(5).max_files(0).max_file_size(5);
    let files = Quota::new(limits).layer(Arc::new(store));
    files.edit_text("/a", "much more", "a lot").await.expect("shrinks");
    files.write_text("/a", "far too much").await.expect("shrinks");
    files.rename(&OpContext::new(), RenameRequest::new(path("/a"), path("/b"))).await.expect("moves");
    assert_eq!(files.append_text("/b", "x").await.expect_err("grows").kind(), ErrorKind::TooLarge);
    files.delete_file("/b").await.expect("goes");
    files.create_text("/c", "").await.expect_err("one file is too many");
}

#[tokio::test]
async fn the_backends_own_refusal_comes_first() {
    let (files, ..) = metered(QuotaLimits::new().max_bytes(5));
    files.create_text("/d/a", "12345").await.expect("room");
    assert_eq!(files.create_text("/d/a", "123456").await.expect_err("there").kind(), ErrorKind::AlreadyExists);
    assert_eq!(files.write_text("/d", "123456").await.expect_err("a directory").kind(), ErrorKind::IsADirectory);
    files.create_text("/e", "").await.expect("room");
    let copy = files.copy(&OpContext::new(), CopyRequest::new(path("/d/a"), path("/e"))).await;
    assert_eq!(copy.expect_err("there").kind(), ErrorKind::AlreadyExists);
}

#[tokio::test]
async fn each_actor_has_its_own_limits_and_is_credited_with_files_it_removes() {
    let limits = QuotaLimits::new().max_bytes(10);
    let (files, meter) = Quota::new(QuotaLimits::new()).per_actor(limits).metered(memory().await);
    let by = |actor: &'static str| OpContext::new().with_actor(actor);
    let write = |at: &str| WriteRequest::new(path(at), "12345678");
    files.write(&by("a"), write("/1")).await.expect("room");
    let error = files.write(&by("a"), write("/2")).await.expect_err("too much");
    assert!(error.message().contains("this actor is 10 bytes"), "{error}");
    files.write(&by("b"), write("/2")).await.expect("another actor");
    files.delete(&by("b"), DeleteRequest::new(path("/1"))).await.expect("removed");
    let usage = |actor| (meter.of_actor(actor).files, meter.of_actor(actor).bytes);
    assert_eq!((usage(Some("a")), usage(Some("b")), usage(None)), ((1, 8), (0, 0), (0, 0)));
    files.delete_file("/a").await.expect("removed");
    assert_eq!(usage(None), (-1, -12));
}

#[tokio::test(start_paused = true)]
async fn operations_are_limited_in_each_window_overall_and_by_actor() {
    let minute = Duration::from_secs(60);
    let quota = Quota::new(QuotaLimits::new().max_operations(3, minute))
        .per_actor(QuotaLimits::new().max_operations(2, minute));
    let files = quota.layer(memory().await);
    let by = |actor: &'static str| OpContext::new().with_actor(actor);
    let look = async |actor: &'static str| super::support::read(&*files, &by(actor), "/a").await;
    look("a").await.expect("first");
    look("a").await.expect("second");
    let error = look("a").await.expect_err("third of this actor");
    assert_eq!((error.kind(), error.path()), (ErrorKind::QuotaExceeded, Some("/a")));
    assert!(error.message().contains("2 operations in 60s"), "{error}");
    assert_eq!(error.detail(), Some(&ErrorDetail::RateLimited { retry_after_ms: 60_000 }));
    look("b").await.expect("one that was refused does not count");
    assert!(look("b").await.expect_err("fourth of all").message().contains("3 operations"));
    advance(minute).await;
    look("a").await.expect("a new window");
}

/// Performs each operation, and never returns its result.
#[derive(Debug)]
struct Mute;

impl Interceptor for Mute {
    fn name(&self) -> &'static str {
        "mute"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let answer = request.send(inner, cx).await;
        if Q::OPERATION == Operation::Write {
            std::future::pending::<()>().await;
        }
        answer
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

#[tokio::test]
async fn a_change_that_is_dropped_is_counted_if_it_happened() {
    let store = memory().await;
    let mute = Arc::new(Intercepted::new(Arc::<MemoryBackend>::clone(&store), Arc::new(Mute)));
    let (files, meter) = Quota::new(QuotaLimits::new().max_bytes(20).max_files(2)).metered(mute);
    assert_eq!(tracked(&meter).await, (1, 12));
    assert!(poll_immediate(Box::pin(write(&*files, "/b", "12345678", WriteMode::CreateNew))).await.is_none());
    assert_eq!((tracked(&meter).await, stored(&*store).await), ((2, 20), (2, 20)));
    let copy = CopyRequest::new(path("/b"), path("/c"));
    assert_eq!(files.copy(&OpContext::new(), copy).await.expect_err("full").kind(), ErrorKind::QuotaExceeded);
}

#[tokio::test]
async fn a_restored_snapshot_is_counted_again_and_a_recount_sees_changes_by_others() {
    let (files, meter, store) = metered(QuotaLimits::new().max_bytes(100));
    let (cx, snapshots) = (OpContext::new(), files.as_snapshots().expect("memory has them"));
    files.create_text("/a", "12345").await.expect("room");
    let taken = snapshots.snapshot(&cx, SnapshotRequest::new()).await.expect("taken");
    files.delete_file("/a").await.expect("removed");
    assert_eq!(tracked(&meter).await, (0, 0));
    snapshots.restore(&cx, RestoreRequest::new(taken.id)).await.expect("the snapshot is restored");
    assert_eq!(tracked(&meter).await, (1, 5));
    store.create_text("/past", "the layer").await.expect("written");
    assert_eq!(tracked(&meter).await, (1, 5));
    let counted = meter.recount(&cx).await.expect("counted");
    assert_eq!((counted.files, counted.bytes), (2, 14));
}

#[tokio::test]
async fn usage_is_not_tracked_for_a_backend_that_returns_its_changes() {
    let files = Quota::new(QuotaLimits::new().max_bytes(10)).layer(Arc::new(StateBackend::pure(FilesState::new())));
    for name in ["/a", "/b", "/c"] {
        let written = files.create_text(name, "12345678").await.expect("the state has still no files");
        assert!(written.files_update.is_some());
    }
    assert_eq!(files.create_text("/a", "12345678901").await.expect_err("11").kind(), ErrorKind::QuotaExceeded);
}

#[tokio::test]
async fn capabilities_have_the_maximum_file_size() {
    let quota = Quota::new(QuotaLimits::new().max_file_size(7)).per_actor(QuotaLimits::new().max_file_size(5));
    let files = quota.layer(memory().await);
    let capabilities = files.capabilities(&path("/"));
    assert_eq!((capabilities.max_file_size, capabilities.max_streamed_size), (5, 5));
    assert_eq!(files.create_text("/b", "123456").await.expect_err("too large").kind(), ErrorKind::TooLarge);
    let copy = files.copy(&OpContext::new(), CopyRequest::new(path("/a"), path("/b"))).await;
    assert_eq!(copy.expect_err("too large").kind(), ErrorKind::TooLarge);
}

#[tokio::test]
async fn a_writer_counts_as_one_operation_and_by_the_size_of_its_commit() {
    let limits = QuotaLimits::new().max_bytes(10).max_file_size(8).max_operations(3, Duration::from_secs(3600));
    let (files, meter, store) = metered(limits);
    let write = async |at: &str, content: &'static [u8]| {
        let mut writer = files.open_writer(&OpContext::new(), OpenWriterRequest::new(path(at))).await?;
        writer.write(Bytes::from_static(content)).await?;
        writer.commit().await
    };
    assert_eq!(write("/a", b"123456").await.expect("within the limits").size, 6);
    assert_eq!(write("/b", b"12345").await.expect_err("11 bytes in all").kind(), ErrorKind::QuotaExceeded);
    assert_eq!(write("/b", b"123456789").await.expect_err("larger than a file").kind(), ErrorKind::TooLarge);
    let fourth = write("/b", b"1").await.expect_err("the fourth operation");
    assert!(fourth.message().contains("3 operations"), "{fourth}");
    assert_eq!((tracked(&meter).await, stored(&store).await), ((1, 6), (1, 6)));
}

/// Lists a part of `/d`, as a backend does where too much is there.
#[derive(Debug)]
struct Cut;

impl Interceptor for Cut {
    fn name(&self) -> &'static str {
        "cut"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let is_cut = matches!(request.as_request_ref(), RequestRef::Ls(ls) if ls.path == path("/d"));
        let mut answer = request.send(inner, cx).await?;
        if let Some(listing) = (&mut answer as &mut dyn Any).downcast_mut::<LsResult>().filter(|_| is_cut) {
            listing.entries.pop();
            listing.truncated = Some(TruncationReason::MaxEntries);
        }
        Ok(answer)
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

#[tokio::test]
async fn an_incomplete_listing_is_an_error_not_a_smaller_count() {
    let store = memory().await;
    for name in ["/d/a", "/d/b"] {
        store.create_text(name, "12345678").await.expect("it is new");
    }
    let cut = Arc::new(Intercepted::new(Arc::<MemoryBackend>::clone(&store), Arc::new(Cut)));
    let (files, meter) = Quota::new(QuotaLimits::new().max_bytes(100)).metered(cut);
    let (cx, before) = (OpContext::new(), tracked(&meter).await);
    let copied = files.copy(&cx, CopyRequest::new(path("/d"), path("/e"))).await.expect_err("it cannot be counted");
    let deleted = files.delete(&cx, DeleteRequest::new(path("/d")).recursive()).await.expect_err("nor can it here");
    for error in [copied, deleted] {
        assert_eq!((error.kind(), error.path()), (ErrorKind::TooLarge, Some("/d")), "{error}");
    }
    assert_eq!((tracked(&meter).await, stored(&*store).await), (before, before));
    files.delete_file("/d/a").await.expect("a part can be counted");
    assert_eq!(tracked(&meter).await, (before.0 - 1, before.1 - 8));
}
