use std::sync::Arc;

use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use vfs_core::{
    Around, Backend, BackendExt, CopyRequest, DeleteRequest, DiffRequest, Effect, Error, ErrorKind, FileUpload,
    ForgetRequest, Layer, OpContext, Operation, RenameRequest, Request, RestoreRequest, Result, SnapshotId,
    SnapshotRequest, Snapshots, VfsPath, Wrapped,
};
use vfs_layers::{CheckpointedBackend, Checkpoints, Fault};
use vfs_memory::MemoryBackend;
use vfs_testkit::{ALL, Counting, StrictBackend, Target, model};

use super::support::path;

const DIRECTORY: &str = "/state";

fn cx() -> OpContext {
    OpContext::new().with_actor("tester")
}

/// A store in memory that is checkpointed, with what keeps its states.
struct Place {
    inner: Arc<MemoryBackend>,
    store: Arc<MemoryBackend>,
    files: CheckpointedBackend,
}

fn checkpoints(store: &Arc<MemoryBackend>) -> Checkpoints {
    Checkpoints::new(Arc::<MemoryBackend>::clone(store), path(DIRECTORY))
}

fn place() -> Place {
    let (inner, store) = (Arc::new(MemoryBackend::new()), Arc::new(MemoryBackend::new()));
    let files = checkpoints(&store).over(Arc::<MemoryBackend>::clone(&inner));
    Place { inner, store, files }
}

impl Place {
    /// The same files and the same store, as another process finds them.
    fn again(&self) -> CheckpointedBackend {
        checkpoints(&self.store).over(Arc::<MemoryBackend>::clone(&self.inner))
    }

    /// The same with `fault` between the layer and the files.
    fn failing(&self, fault: &Fault) -> CheckpointedBackend {
        checkpoints(&self.store).over(fault.layer(Arc::<MemoryBackend>::clone(&self.inner)))
    }

    fn has(&self, expected: &[(&str, &str)]) {
        let expected = MemoryBackend::from_files(expected.iter().map(|(at, text)| (path(at), text.to_string().into())));
        let differs = expected.expect("valid").snapshot().diff(&self.inner.snapshot());
        assert!(differs.is_empty(), "{}", differs.unified());
    }

    async fn objects(&self) -> usize {
        self.store.find(&format!("{DIRECTORY}/objects/**")).await.map_or(0, |found| found.len())
    }
}

async fn take(files: &CheckpointedBackend, label: &str) -> SnapshotId {
    files.snapshot(&cx(), SnapshotRequest::new().label(label)).await.expect("taken").id
}

async fn restore(files: &CheckpointedBackend, id: &SnapshotId) -> Result<()> {
    files.restore(&cx(), RestoreRequest::new(id.clone())).await
}

async fn undo(files: &CheckpointedBackend, operations: usize) -> Result<usize> {
    Ok(files.undo(&cx(), operations).await?.entries.len())
}

fn assert_conflict(error: &Error, at: &str) {
    assert_eq!((error.kind(), error.path()), (ErrorKind::Conflict, Some(at)), "{error}");
}

#[tokio::test]
async fn a_snapshot_downloads_what_has_changed_and_nothing_else() {
    let (inner, store) = (Arc::new(MemoryBackend::new()), Arc::new(MemoryBackend::new()));
    let counting = Arc::new(Counting::default());
    let files =
        checkpoints(&store).over(Arc::new(Wrapped::new(Arc::<MemoryBackend>::clone(&inner), Arc::clone(&counting))));
    for number in 0..50 {
        inner.create_text(&format!("/d/{number}"), &format!("text {number}")).await.expect("written");
    }
    take(&files, "first").await;
    assert_eq!(counting.calls(Operation::Download), 50);
    inner.write_text("/d/7", "other").await.expect("written");
    inner.create_text("/new", "new").await.expect("written");
    take(&files, "second").await;
    assert_eq!((counting.calls(Operation::Download), counting.calls(Operation::Ls)), (52, 2));
    take(&files, "third").await;
    assert_eq!(counting.calls(Operation::Download), 52);
}

#[tokio::test]
async fn snapshots_are_listed_compared_and_forgotten() {
    let place = place();
    let files = &place.files;
    place.inner.create_text("/a", "one\n").await.expect("written");
    place.inner.create_text("/same", "same\n").await.expect("written");
    let first = take(files, "first").await;
    place.inner.write_text("/a", "two\n").await.expect("written");
    place.inner.create_text("/b", "new\n").await.expect("written");
    let second = take(files, "second").await;
    place.inner.remove("/b").await.expect("removed");

    let listed = place.again().snapshots(&cx()).await.expect("listed");
    let seen: Vec<_> = listed.iter().map(|info| (&info.id, info.label.as_deref(), info.files, info.bytes)).collect();
    assert_eq!(seen, [(&first, Some("first"), 2, 9), (&second, Some("second"), 3, 13)]);

    let changed = files.diff(&cx(), DiffRequest::between(first.clone(), second.clone())).await.expect("compared");
    assert_eq!(changed.changes.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["/a", "/b"]);
    assert!(changed.unified().contains("-one\n+two\n"), "{}", changed.unified());
    let now = files.diff(&cx(), DiffRequest::since(second.clone())).await.expect("compared");
    assert_eq!(now.changes.len(), 1);
    assert!(now.unified().contains("-new"), "{}", now.unified());

    assert_eq!(place.objects().await, 4);
    files.forget(&cx(), ForgetRequest::new(second.clone())).await.expect("forgotten");
    assert_eq!(place.objects().await, 2, "what the first one names stays");
    for gone in [second.clone(), SnapshotId::new("snap-9"), SnapshotId::new("snap-01"), SnapshotId::new("../x")] {
        let error = files.forget(&cx(), ForgetRequest::new(gone.clone())).await.expect_err("gone");
        assert_eq!((error.kind(), error.path()), (ErrorKind::NotFound, Some("/")));
        assert_eq!(restore(files, &gone).await.expect_err("gone").kind(), ErrorKind::NotFound);
    }
    let third = take(&place.again(), "third").await;
    assert_ne!(third, second, "a name is not given again");
    assert_eq!(place.again().snapshots(&cx()).await.expect("listed").len(), 2);
}

#[tokio::test]
async fn going_back_brings_every_file_and_can_be_undone() {
    let place = place();
    for (at, text) in [("/a", "one"), ("/d/x", "x"), ("/d/y", "y"), ("/f", "file")] {
        place.inner.create_text(at, text).await.expect("written");
    }
    let first = take(&place.files, "first").await;
    let files = &place.files;
    files.write_text("/a", "two").await.expect("written");
    files.remove("/d/x").await.expect("removed");
    files.remove("/f").await.expect("removed");
    files.create_text("/f/now/a/directory", "below").await.expect("written");
    files.create_text("/extra", "extra").await.expect("written");
    restore(files, &first).await.expect("restored");
    place.has(&[("/a", "one"), ("/d/x", "x"), ("/d/y", "y"), ("/f", "file")]);
    restore(files, &first).await.expect("nothing is left to do");

    assert_eq!(undo(files, 1).await.expect("undone"), 1);
    place.has(&[("/a", "two"), ("/d/y", "y"), ("/extra", "extra"), ("/f/now/a/directory", "below")]);
    assert_eq!(undo(files, 100).await.expect("undone"), 5);
    place.has(&[("/a", "one"), ("/d/x", "x"), ("/d/y", "y"), ("/f", "file")]);
}

#[tokio::test]
async fn a_restore_that_fails_in_the_middle_goes_back_to_where_it_began() {
    let place = place();
    for number in 0..6 {
        place.inner.create_text(&format!("/{number}"), "old").await.expect("written");
    }
    let first = take(&place.files, "first").await;
    for number in 0..4 {
        place.inner.write_text(&format!("/{number}"), "new").await.expect("written");
    }
    place.inner.remove("/5").await.expect("removed");
    place.inner.create_text("/extra", "extra").await.expect("written");
    let before = place.inner.snapshot();
    for (kind, operation) in [
        (ErrorKind::Conflict, Operation::Write),
        (ErrorKind::Unavailable, Operation::Write),
        (ErrorKind::Conflict, Operation::Delete),
    ] {
        let calls = if operation == Operation::Write { 3 } else { 1 };
        let fault = Fault::new(kind).only(operation).every(calls);
        let error = restore(&place.failing(&fault), &first).await.expect_err("it fails");
        assert_eq!(error.kind(), kind);
        // Going back is a write, too: every third one fails, and no more than one is then left behind.
        let differs = before.diff(&place.inner.snapshot()).changes.len();
        assert_eq!(differs > 0, error.message().contains("could not be undone"), "{error}");
        place.inner.restore(&before);
        assert_eq!(place.again().history(&cx()).await.expect("listed").len(), differs.min(1));
        for entry in place.store.find(&format!("{DIRECTORY}/undo/*")).await.expect("listed") {
            place.store.remove(entry.path.as_str()).await.expect("removed");
        }
    }
    let lost = Fault::new(ErrorKind::Unavailable).only(Operation::Write).only(Operation::Delete).after();
    restore(&place.failing(&lost), &first).await.expect("only the answers are lost");
    place.has(&[("/0", "old"), ("/1", "old"), ("/2", "old"), ("/3", "old"), ("/4", "old"), ("/5", "old")]);
}

/// Has somebody else change `/2` just before it is written or deleted.
#[derive(Debug)]
struct Meddling;

impl Around for Meddling {
    fn name(&self) -> &'static str {
        "meddling"
    }

    async fn around<Q: Request>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let is_change = request.action().effect() == Effect::Changes;
        if is_change && request.action().paths().any(|path| path.as_str() == "/2") {
            inner.write_text("/2", "foreign").await?;
        }
        request.send(inner, cx).await
    }
}

#[tokio::test]
async fn a_change_in_between_is_a_conflict_and_what_was_done_is_undone() {
    let place = place();
    for number in 0..4 {
        place.inner.create_text(&format!("/{number}"), "old").await.expect("written");
    }
    let first = take(&place.files, "first").await;
    for number in 0..4 {
        place.files.write_text(&format!("/{number}"), "new").await.expect("written");
    }
    place.files.delete(&cx(), DeleteRequest::new(path("/0"))).await.expect("deleted");
    place.files.create_text("/extra", "extra").await.expect("written");
    let inner = Arc::<MemoryBackend>::clone(&place.inner) as Arc<dyn Backend>;
    let meddled = checkpoints(&place.store).over(Arc::new(Wrapped::new(inner, Arc::new(Meddling))));
    assert_conflict(&restore(&meddled, &first).await.expect_err("meddled with"), "/2");
    place.has(&[("/1", "new"), ("/2", "foreign"), ("/3", "new"), ("/extra", "extra")]);
    assert_eq!(undo(&place.files, 9).await.map_err(|error| error.kind()), Err(ErrorKind::Conflict));
    place.has(&[("/0", "new"), ("/1", "new"), ("/2", "foreign"), ("/3", "old")]);
    restore(&place.files, &first).await.expect("nobody meddles any more");
    place.has(&[("/0", "old"), ("/1", "old"), ("/2", "old"), ("/3", "old")]);
}

#[tokio::test]
async fn contents_that_nothing_names_go_and_those_of_the_history_stay() {
    let place = place();
    let files = &place.files;
    files.create_text("/a", "first").await.expect("written");
    let snapshot = take(files, "first").await;
    files.write_text("/a", "second").await.expect("written");
    files.write_text("/a", "third").await.expect("written");
    undo(files, 1).await.expect("undone");
    assert_eq!(place.objects().await, 3);
    files.forget(&cx(), ForgetRequest::new(snapshot)).await.expect("forgotten");
    assert_eq!(place.objects().await, 1, "what the write was made over");
    assert_eq!(undo(files, 9).await.expect("undone"), 2);
    place.has(&[]);
}

#[tokio::test]
async fn every_operation_is_taken_back() {
    let place = place();
    let files = &place.files;
    for (at, text) in [("/a", "one"), ("/b", "b"), ("/d/x", "x"), ("/d/e/y", "y"), ("/bin", "\0")] {
        place.inner.create_text(at, text).await.expect("written");
    }
    let mut states = vec![place.inner.snapshot()];
    let rename = |from: &str, to: &str| RenameRequest::new(path(from), path(to));
    let copy = |from: &str, to: &str| CopyRequest::new(path(from), path(to));
    let cx = &cx();
    for operation in 0..13 {
        let done = match operation {
            0 => files.create_text("/n/new", "new").await.map(drop),
            1 => files.write_text("/a", "two").await.map(drop),
            2 => files.append_text("/a", " three").await.map(drop),
            3 => files.edit_text("/a", "two", "2").await.map(drop),
            4 => files.remove("/bin").await,
            5 => files.delete(cx, DeleteRequest::new(path("/n")).recursive()).await.map(drop),
            6 => files.rename(cx, rename("/a", "/n/a")).await.map(drop),
            7 => files.rename(cx, rename("/d", "/moved")).await.map(drop),
            8 => files.rename(cx, rename("/n/a", "/b").overwrite()).await.map(drop),
            9 => files.copy(cx, copy("/moved", "/again")).await.map(drop),
            10 => files.copy(cx, copy("/b", "/again/x").overwrite()).await.map(drop),
            11 => {
                let upload = |at| FileUpload::new(path(at), "uploaded");
                let answers = files.upload_files(cx, vec![upload("/b"), upload("/u")]).await;
                answers.into_iter().find_map(|answer| answer.cause).map_or(Ok(()), Err)
            }
            _ => files.delete(cx, DeleteRequest::new(path("/again")).recursive()).await.map(drop),
        };
        done.expect("done");
        states.push(place.inner.snapshot());
    }
    let history = files.history(cx).await.expect("listed");
    assert_eq!(history.len(), 14, "each file of an upload is one operation");
    assert_eq!((history[0].operation, history[0].actor.as_deref()), (Operation::Delete, Some("tester")));
    assert_eq!(history[7].operation, Operation::Rename);
    assert_eq!(history[7].paths, [path("/a"), path("/n/a")]);
    for (operation, state) in states.iter().enumerate().take(13).rev() {
        let operations = if operation == 11 { 2 } else { 1 };
        assert_eq!(undo(&place.again(), operations).await.expect("undone"), operations);
        let differs = state.diff(&place.inner.snapshot());
        assert!(differs.is_empty(), "operation {operation}: {}", differs.unified());
    }
    assert_eq!(undo(files, 1).await.expect("nothing is left"), 0);
}

#[tokio::test]
async fn what_somebody_else_has_changed_is_not_taken_back() {
    let place = place();
    let files = &place.files;
    place.inner.create_text("/d/x", "x").await.expect("written");
    place.inner.create_text("/d/y", "y").await.expect("written");
    files.write_text("/a", "one").await.expect("written");
    files.delete(&cx(), DeleteRequest::new(path("/d")).recursive()).await.expect("deleted");
    files.write_text("/b", "b").await.expect("written");
    place.inner.create_text("/d/y", "foreign").await.expect("written");
    let before = place.inner.snapshot();

    let error = undo(files, 3).await.expect_err("the second has a conflict");
    assert_conflict(&error, "/d/y");
    assert!(error.message().contains("1 were taken back before"), "{error}");
    assert!(!place.inner.exists("/d/x").await.expect("known"), "nothing of it is done");
    assert_eq!(before.diff(&place.inner.snapshot()).changes.len(), 1, "only the newest is taken back");
    assert_eq!(files.history(&cx()).await.expect("listed").len(), 2);

    place.inner.remove("/d/y").await.expect("removed");
    assert_eq!(undo(files, 3).await.expect("undone"), 2);
    place.has(&[("/d/x", "x"), ("/d/y", "y")]);
}

#[tokio::test]
async fn a_change_that_fails_has_no_note() {
    let place = place();
    let files = &place.files;
    files.create_text("/a", "one").await.expect("written");
    files.create_text("/a", "two").await.expect_err("it is there");
    files.edit_text("/a", "missing", "x").await.expect_err("no match");
    files.remove("/missing").await.expect_err("missing");
    files.delete(&cx(), DeleteRequest::new(VfsPath::root()).recursive()).await.expect_err("the root stays");
    assert_eq!(files.history(&cx()).await.expect("listed").len(), 1);

    for (fault, noted) in [(Fault::new(ErrorKind::Unavailable), 1), (Fault::new(ErrorKind::Unavailable).after(), 2)] {
        let failing = place.failing(&fault.only(Operation::Write));
        failing.write_text("/a", "three").await.expect_err("it fails");
        assert_eq!(failing.history(&cx()).await.expect("listed").len(), noted, "only the second has happened");
    }
    assert_eq!(undo(files, 1).await.expect("undone"), 1);
    place.has(&[("/a", "one")]);
}

#[tokio::test]
async fn a_change_whose_process_ended_is_settled_by_what_is_there() {
    for has_happened in [false, true] {
        let place = place();
        place.inner.create_text("/a", "one").await.expect("written");
        let stuck = Wrapped::new(
            Arc::<MemoryBackend>::clone(&place.inner) as Arc<dyn Backend>,
            Arc::new(Stuck { has_happened }),
        );
        let dead = checkpoints(&place.store).over(Arc::new(stuck));
        let mut write = Box::pin(dead.write_text("/a", "two"));
        assert!(futures::poll!(&mut write).is_pending());
        drop(write);
        let history = place.again().history(&cx()).await.expect("listed");
        assert_eq!(history.len(), usize::from(has_happened));
        assert_eq!(undo(&place.again(), 1).await.expect("undone"), usize::from(has_happened));
        place.has(&[("/a", "one")]);
    }
}

/// Writes, or does not, and never answers.
#[derive(Debug)]
struct Stuck {
    has_happened: bool,
}

impl Around for Stuck {
    fn name(&self) -> &'static str {
        "stuck"
    }

    async fn around<Q: Request>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        if Q::OPERATION != Operation::Write {
            return request.send(inner, cx).await;
        }
        if self.has_happened {
            drop(request.send(inner, cx).await);
        }
        futures::future::pending().await
    }
}

#[tokio::test]
async fn a_change_whose_contents_cannot_be_kept_is_refused() {
    let place = place();
    place.inner.create_text("/a", "one").await.expect("written");
    for (operation, kind) in [(Operation::Write, ErrorKind::StorageFull), (Operation::Ls, ErrorKind::PermissionDenied)]
    {
        let store = Fault::new(kind).only(operation).layer(Arc::<MemoryBackend>::clone(&place.store));
        let files = Checkpoints::new(store, path(DIRECTORY)).over(Arc::<MemoryBackend>::clone(&place.inner));
        let error = files.write_text("/a", "two").await.expect_err("refused");
        let expected = if kind == ErrorKind::StorageFull { kind } else { ErrorKind::Internal };
        assert_eq!((error.kind(), error.path()), (expected, Some("/a")));
    }
    place.has(&[("/a", "one")]);
}

#[tokio::test]
async fn a_content_that_is_lost_or_damaged_is_told_and_nothing_is_done() {
    let place = place();
    for at in ["/a", "/b"] {
        place.inner.create_text(at, at).await.expect("written");
    }
    let first = take(&place.files, "first").await;
    for at in ["/a", "/b"] {
        place.files.write_text(at, "other").await.expect("written");
    }
    let object = blake3::hash(b"/b").to_hex();
    let object = format!("{DIRECTORY}/objects/{}/{}", &object[..2], &object[2..]);
    place.store.write_text(&object, "damaged").await.expect("written");
    for _ in 0..2 {
        let error = restore(&place.files, &first).await.expect_err("damaged");
        assert_eq!((error.kind(), error.path()), (ErrorKind::Internal, Some("/b")), "{error}");
        assert_eq!(undo(&place.files, 1).await.expect_err("damaged").path(), Some("/b"));
        place.has(&[("/a", "other"), ("/b", "other")]);
        place.store.remove(&object).await.ok();
    }
}

#[tokio::test]
async fn the_history_is_bounded() {
    let place = place();
    let limited = checkpoints(&place.store).max_undo(3);
    let files = limited.over(Arc::<MemoryBackend>::clone(&place.inner));
    for number in 0..120 {
        files.write_text("/a", &number.to_string()).await.expect("written");
    }
    assert_eq!(files.history(&cx()).await.expect("listed").len(), 3);
    assert!(place.objects().await < 30, "{} contents", place.objects().await);
    assert_eq!(undo(&files, 9).await.expect("undone"), 3);
    place.has(&[("/a", "116")]);
    let none = limited.max_undo(0).over(Arc::<MemoryBackend>::clone(&place.inner));
    none.write_text("/a", "x").await.expect("written");
    assert!(none.history(&cx()).await.expect("listed").is_empty());
}

#[tokio::test]
async fn a_store_in_the_same_files_is_left_out() {
    let inner = Arc::new(MemoryBackend::new());
    let shared = || Arc::<MemoryBackend>::clone(&inner);
    let files = Checkpoints::new(shared(), path("/keep/state")).exclude(path("/keep")).over(shared());
    files.create_text("/a", "one").await.expect("written");
    let first = take(&files, "first").await;
    files.create_text("/keep/mine", "mine").await.expect("written");
    files.write_text("/a", "two").await.expect("written");
    restore(&files, &first).await.expect("restored");
    assert_eq!(files.read_text("/a").await.expect("read"), "one");
    assert_eq!(files.read_text("/keep/mine").await.expect("read"), "mine");
    assert_eq!(undo(&files, 9).await.expect("undone"), 3);
    assert!(!inner.exists("/a").await.expect("known"));
    assert_eq!(files.snapshots(&cx()).await.expect("listed")[0].files, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_at_once_have_right_contents_before_them() {
    let place = place();
    place.inner.create_text("/a", "").await.expect("written");
    let tasks = (0..20).map(|_| {
        let files = place.files.clone();
        tokio::spawn(async move { files.append_text("/a", "x").await.map(drop) })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("joined").expect("written");
    }
    for left in (0..20).rev() {
        undo(&place.files, 1).await.expect("undone");
        assert_eq!(place.inner.read_text("/a").await.expect("read").len(), left);
    }
}

#[derive(Debug, Clone)]
enum Step {
    Write(&'static str, u8),
    Append(&'static str),
    Delete(&'static str),
    Rename(&'static str, &'static str, bool),
    Copy(&'static str, &'static str, bool),
    Snapshot,
    Restore(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let place = || proptest::sample::select(vec!["/a", "/b", "/d", "/d/a", "/d/b", "/d/e", "/d/e/a", "/f/a"]);
    prop_oneof![
        4 => (place(), 0..4_u8).prop_map(|(at, text)| Step::Write(at, text)),
        1 => place().prop_map(Step::Append),
        2 => place().prop_map(Step::Delete),
        2 => (place(), place(), any::<bool>()).prop_map(|(from, to, over)| Step::Rename(from, to, over)),
        2 => (place(), place(), any::<bool>()).prop_map(|(from, to, over)| Step::Copy(from, to, over)),
        1 => Just(Step::Snapshot),
        1 => any::<usize>().prop_map(Step::Restore),
    ]
}

async fn run(files: &CheckpointedBackend, step: &Step, taken: &[SnapshotId]) -> Result<()> {
    let cx = &cx();
    match *step {
        Step::Write(at, text) => files.write_text(at, &text.to_string()).await.map(drop),
        Step::Append(at) => files.append_text(at, "+").await.map(drop),
        Step::Delete(at) => files.delete(cx, DeleteRequest::new(path(at)).recursive()).await.map(drop),
        Step::Rename(from, to, over) => {
            let request = RenameRequest::new(path(from), path(to));
            files.rename(cx, if over { request.overwrite() } else { request }).await.map(drop)
        }
        Step::Copy(from, to, over) => {
            let request = CopyRequest::new(path(from), path(to));
            files.copy(cx, if over { request.overwrite() } else { request }).await.map(drop)
        }
        Step::Snapshot => Ok(()),
        Step::Restore(_) if taken.is_empty() => Ok(()),
        Step::Restore(which) => restore(files, &taken[which % taken.len()]).await,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn all_operations_undone_and_all_snapshots_restored_give_what_was(steps in proptest::collection::vec(step(), 1..25)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let place = place();
            place.inner.create_text("/d/a", "at first").await.expect("written");
            let first = place.inner.snapshot();
            let (mut taken, mut states) = (Vec::new(), Vec::new());
            for step in &steps {
                if matches!(step, Step::Snapshot) {
                    taken.push(take(&place.files, "").await);
                    states.push(place.inner.snapshot());
                }
                // Many of them are refused, as there is nothing, or something, at a path.
                run(&place.files, step, &taken).await.ok();
                if let Step::Restore(which) = step && !taken.is_empty() {
                    assert!(states[which % taken.len()].diff(&place.inner.snapshot()).is_empty());
                }
            }
            undo(&place.again(), usize::MAX).await.expect("undone");
            let differs = first.diff(&place.inner.snapshot());
            assert!(differs.is_empty(), "{}", differs.unified());
        });
    }

    #[test]
    fn an_undo_or_restore_among_faults_leaves_a_state_that_it_can_be_repeated_from(
        steps in proptest::collection::vec(step(), 1..12),
        seed in any::<u64>(),
        is_after in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let place = place();
            place.inner.create_text("/d/a", "at first").await.expect("written");
            let first = take(&place.files, "first").await;
            let before = place.inner.snapshot();
            for step in &steps {
                run(&place.files, step, std::slice::from_ref(&first)).await.ok();
            }
            let fault = Fault::new(ErrorKind::Unavailable).randomly(0.2, seed).only(Operation::Write);
            let fault = fault.only(Operation::Delete).only(Operation::Rename).only(Operation::Download);
            let fault = if is_after { fault.after() } else { fault };
            let failing = place.failing(&fault);
            for _ in 0..10 {
                let old = place.inner.snapshot();
                match undo(&failing, 1).await {
                    Ok(_) => {}
                    Err(error) if error.message().contains("could not be undone") => {}
                    Err(_) if is_after => {}
                    Err(_) => assert!(old.diff(&place.inner.snapshot()).is_empty(), "nothing is half undone"),
                }
            }
            undo(&place.again(), usize::MAX).await.expect("undone");
            assert!(before.diff(&place.inner.snapshot()).is_empty());
        });
    }
}

/// An empty store in memory that is checkpointed, strictly observed on either side.
fn target() -> Target {
    let files = Arc::new(StrictBackend::new(Arc::new(MemoryBackend::new())));
    let checkpoints = Checkpoints::new(Arc::new(StrictBackend::new(Arc::new(MemoryBackend::new()))), path(DIRECTORY));
    Target::new(Arc::new(StrictBackend::new(checkpoints.layer(files))))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_law_holds_through_checkpoints() {
    let mut checked = 0;
    for law in ALL {
        let target = target();
        if law.need.missing_in(&target).is_none() {
            let answer = (law.run)(&target).await;
            assert!(answer.is_ok(), "{} {}: {answer:?}", law.number, law.name);
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked} laws");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_operations_through_checkpoints_do_what_they_do_without(steps in model::steps()) {
        model::check(&target(), &steps);
    }
}
