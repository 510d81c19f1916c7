//! State of a disk after commits of overlays, successful or failed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;
use vfs_core::operation::{Intercepted, RequestRef, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::snapshots::SnapshotDiffKind;
use vfs_core::{
    Backend, BackendExt, CopyRequest, DeleteRequest, Error, ErrorKind, Interceptor, OpContext, RenameRequest, Result,
    VfsPath,
};
use vfs_memory::MemoryBackend;
use vfs_versions::{CommitResult, OverlayBackend};

use super::links::{disk, path};
use super::overlays::{names, some};

/// A disk or store that fails where one file is written.
#[derive(Debug)]
struct Failing {
    at: VfsPath,
    manner: Manner,
    /// How often it was written.
    writes: Arc<AtomicUsize>,
}

#[derive(Debug, Clone, Copy)]
enum Manner {
    /// Only this write of it fails, counted from 0.
    Nth(usize),
    /// From the first on every change fails, as after a crash.
    Crash,
}

impl Interceptor for Failing {
    fn name(&self) -> &'static str {
        "failing"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let is_it = matches!(request.as_request_ref(), RequestRef::Write(write) if write.path == self.at);
        let writes = self.writes.fetch_add(usize::from(is_it), Ordering::Relaxed);
        let fails = match (self.manner, request.as_request_ref()) {
            (Manner::Nth(n), _) => is_it && writes == n,
            (Manner::Crash, RequestRef::Write(_) | RequestRef::Delete(_)) => is_it || writes > 0,
            _ => false,
        };
        if fails {
            return Err(Error::new(ErrorKind::StorageFull, "it fails on purpose").with_path(&self.at));
        }
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

/// `base`, where the `nth` write of the file `at` fails.
fn failing(base: Arc<dyn Backend>, at: &str, nth: usize) -> Arc<dyn Backend> {
    let failing = Failing { at: path(at), manner: Manner::Nth(nth), writes: Arc::default() };
    Arc::new(Intercepted::new(base, Arc::new(failing)))
}

fn text(root: &TempDir, at: &str) -> Option<String> {
    fs::read_to_string(root.path().join(at)).ok()
}

async fn commit(overlay: &OverlayBackend) -> Result<()> {
    match overlay.commit(&OpContext::new()).await? {
        CommitResult::Applied(_) => Ok(()),
        other => panic!("nothing stands against it: {other:?}"),
    }
}

#[tokio::test]
async fn a_commit_that_failed_can_be_made_again() -> Result<()> {
    let (root, base) = disk(&[("a", "old\n"), ("gone.sh", "old\n"), ("p", "old\n"), ("z", "old\n")], &[]);
    fs::set_permissions(root.path().join("gone.sh"), fs::Permissions::from_mode(0o755)).expect("it is ours");
    let (base, store) = (failing(base, "/z", 0), Arc::new(MemoryBackend::new()));
    let open = || OverlayBackend::open(Arc::clone(&base), Arc::<MemoryBackend>::clone(&store), path("/kept"));
    let overlay = open().await?;
    overlay.edit_text("/a", "old", "new").await?;
    overlay.delete_file("/gone.sh").await?;
    overlay.delete_file("/p").await?;
    overlay.create_text("/p/q", "new\n").await?;
    overlay.edit_text("/z", "old", "new").await?;

    let error = overlay.commit(&OpContext::new()).await.expect_err("the disk fails");
    assert_eq!((error.kind(), error.message()), (ErrorKind::StorageFull, "it fails on purpose"));
    for file in ["a", "gone.sh", "p", "z"] {
        assert_eq!(text(&root, file).as_deref(), Some("old\n"), "{file}");
    }
    let mode = fs::metadata(root.path().join("gone.sh")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o755, "what is only deleted is deleted last");

    // The next process finds what to expect, as this one does.
    let again = open().await?;
    again.create_text("/more", "new\n").await?;
    commit(&again).await?;
    for file in ["a", "p/q", "z", "more"] {
        assert_eq!(text(&root, file).as_deref(), Some("new\n"), "{file}");
    }
    assert_eq!(text(&root, "gone.sh"), None);
    Ok(())
}

#[tokio::test]
async fn what_another_changed_after_a_commit_failed_is_a_conflict_still() -> Result<()> {
    let (_root, base) = disk(&[("a", "old\n"), ("b", "old\n"), ("z", "old\n")], &[]);
    let overlay = OverlayBackend::new(failing(Arc::clone(&base), "/z", 0));
    for file in ["/a", "/b", "/z"] {
        overlay.edit_text(file, "old", "new").await?;
    }
    let cx = OpContext::new();
    overlay.commit(&cx).await.expect_err("the disk fails");
    base.write_text("/b", "theirs\n").await?;
    let CommitResult::Conflicts(conflicts) = overlay.commit(&cx).await? else { panic!("one file was changed") };
    assert_eq!(conflicts.iter().map(|conflict| conflict.path.as_str()).collect::<Vec<_>>(), ["/b"]);
    base.write_text("/b", "new\n").await?;
    commit(&overlay).await
}

#[tokio::test]
async fn a_commit_that_could_not_all_be_taken_back_can_be_finished() -> Result<()> {
    let (root, base) = disk(&[("a", "old\n"), ("b", "old\n"), ("z", "old\n")], &[]);
    let base = failing(failing(base, "/a", 1), "/z", 0);
    let overlay = OverlayBackend::open(base, Arc::new(MemoryBackend::new()), path("/kept")).await?;
    for file in ["/a", "/b", "/z"] {
        overlay.edit_text(file, "old", "new").await?;
    }
    let error = overlay.commit(&OpContext::new()).await.expect_err("the disk fails");
    assert!(error.message().ends_with("these files could not be restored: /a"), "{error}");
    assert_eq!(
        ["a", "b", "z"].map(|file| text(&root, file)),
        ["new\n", "old\n", "old\n"].map(|text| Some(text.into()))
    );
    assert!(overlay.finish_commit(&OpContext::new()).await?);
    assert!(overlay.is_unchanged());
    assert_eq!(["a", "b", "z"].map(|file| text(&root, file)), ["new\n"; 3].map(|text| Some(text.into())));
    Ok(())
}

#[tokio::test]
async fn a_link_gives_way_to_what_is_written_in_its_place() -> Result<()> {
    let (root, base) = disk(
        &[("d/x", "old\n"), ("d/e/y", "old\n"), ("real/r", "old\n")],
        &[("d/l", "../real"), ("d/e/l", "y"), ("ln", "real")],
    );
    let overlay = OverlayBackend::new(base);
    overlay.delete(&OpContext::new(), DeleteRequest::new(path("/d")).recursive()).await?;
    overlay.create_text("/d", "new\n").await?;
    overlay.delete_file("/ln").await?;
    overlay.create_text("/ln/r", "new\n").await?;
    overlay.create_text("/ln/passing", "new\n").await?;
    overlay.delete_file("/ln/passing").await?;
    let diff = overlay.diff(&OpContext::new()).await?;
    let added: Vec<_> = diff.changes.iter().filter(|change| change.kind == SnapshotDiffKind::Added).collect();
    assert_eq!(added.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["/d", "/ln/r"]);
    commit(&overlay).await?;
    assert_eq!(text(&root, "d").as_deref(), Some("new\n"));
    assert_eq!(text(&root, "ln/r").as_deref(), Some("new\n"));
    assert_eq!(text(&root, "real/r").as_deref(), Some("old\n"), "what the link led to stays as it was");
    Ok(())
}

#[tokio::test]
async fn a_link_that_was_removed_before_a_commit_failed_is_reported_and_no_longer_expected() -> Result<()> {
    let (root, base) = disk(&[("f", "old\n"), ("z", "old\n")], &[("ln", "f")]);
    let overlay = OverlayBackend::new(failing(base, "/ln", 0));
    overlay.delete_file("/ln").await?;
    overlay.create_text("/ln", "new\n").await?;
    overlay.edit_text("/z", "old", "new").await?;
    let error = overlay.commit(&OpContext::new()).await.expect_err("the disk fails");
    assert!(error.message().ends_with("these files could not be restored: /ln"), "{error}");
    assert_eq!(["f", "ln", "z"].map(|file| text(&root, file)), [Some("old\n".into()), None, Some("old\n".into())]);
    commit(&overlay).await?;
    assert_eq!(
        ["f", "ln", "z"].map(|file| text(&root, file)),
        ["old\n", "new\n", "new\n"].map(|text| Some(text.into()))
    );
    Ok(())
}

#[tokio::test]
async fn a_commit_that_was_cut_short_is_finished_where_a_link_gives_way() -> Result<()> {
    for cut in ["/d", "/ln/r", "/z"] {
        let (root, base) = disk(
            &[("d/x", "old\n"), ("real/r", "old\n"), ("gone", "old\n"), ("z", "old\n")],
            &[("d/l", "../real"), ("ln", "real")],
        );
        let store: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
        let writes = Arc::<AtomicUsize>::default();
        let dying = |backend: &Arc<dyn Backend>| -> Arc<dyn Backend> {
            let failing = Failing { at: path(cut), manner: Manner::Crash, writes: Arc::clone(&writes) };
            Arc::new(Intercepted::new(Arc::clone(backend), Arc::new(failing)))
        };
        let overlay = OverlayBackend::open(dying(&base), dying(&store), path("/kept")).await?;
        overlay.delete(&OpContext::new(), DeleteRequest::new(path("/d")).recursive()).await?;
        overlay.create_text("/d", "new\n").await?;
        overlay.delete_file("/ln").await?;
        overlay.create_text("/ln/r", "new\n").await?;
        overlay.delete_file("/gone").await?;
        overlay.write_text("/z", "new\n").await?;
        overlay.commit(&OpContext::new()).await.expect_err("the disk is gone");

        assert!(OverlayBackend::open(base, store, path("/kept")).await?.is_unchanged(), "{cut}");
        for file in ["d", "ln/r", "z"] {
            assert_eq!(text(&root, file).as_deref(), Some("new\n"), "{file} after {cut}");
        }
        assert_eq!((text(&root, "real/r").as_deref(), text(&root, "gone")), (Some("old\n"), None));
    }
    Ok(())
}

#[tokio::test]
async fn a_copy_over_a_link_does_what_it_does_on_the_disk() -> Result<()> {
    for (from, to) in [
        ("/g", "/lf"),
        ("/g", "/ld"),
        ("/g", "/ld/x"),
        ("/g", "/nowhere"),
        ("/f", "/lf"),
        ("/lf", "/f"),
        ("/e", "/ld"),
        ("/e", "/lf"),
        ("/e", "/empty"),
    ] {
        for is_overwriting in [true, false] {
            let make = || {
                let made = disk(
                    &[("f", "f\n"), ("g", "g\n"), ("d/x", "x\n"), ("e/y", "y\n")],
                    &[("lf", "f"), ("ld", "d"), ("nowhere", "missing"), ("empty", "none")],
                );
                fs::create_dir(made.0.path().join("none")).expect("a directory can be made");
                made
            };
            let ((plain, local), (under, base)) = (make(), make());
            let overlay = OverlayBackend::new(base);
            let request = CopyRequest::new(path(from), path(to));
            let request = if is_overwriting { request.overwrite() } else { request };
            let cx = OpContext::new();
            let kinds = |answer: Result<vfs_core::CopyResult>| {
                answer.map_err(|error| (error.kind(), error.path().map(str::to_owned)))
            };
            let on_disk = kinds(local.copy(&cx, request.clone()).await);
            assert_eq!(kinds(overlay.copy(&cx, request.clone()).await), on_disk, "{request:?}");
            commit(&overlay).await?;
            assert_eq!(seen(under.path()), seen(plain.path()), "{request:?}");
        }
    }
    Ok(())
}

/// Everything below `root`: files with their text, links with what they name.
fn seen(root: &Path) -> Vec<(String, String)> {
    let mut entries = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("a directory") {
            let at = entry.expect("an entry").path();
            let kind = at.symlink_metadata().expect("it is there").file_type();
            let name = at.strip_prefix(root).expect("it is below").display().to_string();
            if kind.is_dir() {
                entries.push((name, String::new()));
                directories.push(at);
            } else if kind.is_symlink() {
                entries.push((name, format!("-> {}", fs::read_link(&at).expect("a link").display())));
            } else {
                entries.push((name, fs::read_to_string(&at).expect("a text")));
            }
        }
    }
    entries.sort_unstable();
    entries
}

#[tokio::test]
async fn what_another_process_began_is_finished_beside_the_changes_made_here() -> Result<()> {
    let (root, base) = disk(&[("a", "old\n"), ("z", "old\n")], &[]);
    let store: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
    let journaled = |base: &Arc<dyn Backend>| {
        OverlayBackend::new(Arc::clone(base)).with_journal(Arc::clone(&store), path("/journal"))
    };
    let crash = Failing { at: path("/z"), manner: Manner::Crash, writes: Arc::default() };
    let first = journaled(&(Arc::new(Intercepted::new(Arc::clone(&base), Arc::new(crash))) as Arc<dyn Backend>));
    for file in ["/a", "/z"] {
        first.write_text(file, "new\n").await?;
    }
    let cx = OpContext::new();
    first.commit(&cx).await.expect_err("the disk is gone");
    let error = first.create_text("/b", "lost?\n").await.expect_err("the commit is to be finished first");
    assert_eq!(error.kind(), ErrorKind::Conflict);

    let second = journaled(&base);
    second.create_text("/x", "mine\n").await?;
    assert_eq!(second.commit(&cx).await.expect_err("another is noted").kind(), ErrorKind::Conflict);
    assert!(second.finish_commit(&cx).await?);
    assert_eq!(["a", "z"].map(|file| text(&root, file)), ["new\n"; 2].map(|text| Some(text.into())));
    assert_eq!(second.read_text("/x").await?, "mine\n");
    commit(&second).await?;
    assert_eq!(text(&root, "x").as_deref(), Some("mine\n"));
    Ok(())
}

#[tokio::test]
async fn a_commit_that_was_taken_back_unnoted_can_be_finished() -> Result<()> {
    let (root, base) = disk(&[("a", "old\n"), ("z", "old\n")], &[]);
    let store: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
    let overlay = OverlayBackend::new(failing(Arc::clone(&base), "/z", 0))
        .with_journal(failing(Arc::clone(&store), "/journal/overlay.json", 1), path("/journal"));
    for file in ["/a", "/z"] {
        overlay.write_text(file, "new\n").await?;
    }
    let cx = OpContext::new();
    let error = overlay.commit(&cx).await.expect_err("both fail");
    assert!(error.message().starts_with("it fails on purpose; the rollback could not be recorded"), "{error}");
    assert_eq!(["a", "z"].map(|file| text(&root, file)), ["old\n"; 2].map(|text| Some(text.into())));

    let next = OverlayBackend::new(base).with_journal(store, path("/journal"));
    assert!(next.finish_commit(&cx).await?);
    assert_eq!(["a", "z"].map(|file| text(&root, file)), ["new\n"; 2].map(|text| Some(text.into())));
    Ok(())
}

/// A base that others change right after a file of it is read.
#[derive(Debug)]
struct Lively;

impl Interceptor for Lively {
    fn name(&self) -> &'static str {
        "lively"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let is_taken = matches!(request.as_request_ref(), RequestRef::Download(_));
        let answer = request.send(inner, cx).await;
        if is_taken {
            inner.write_text("/d/x", "theirs\n").await?;
            inner.write_text("/d/late", "theirs\n").await?;
        }
        answer
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

#[tokio::test]
async fn a_directory_that_is_moved_takes_nothing_away_that_came_in_the_meantime() -> Result<()> {
    let (root, base) = disk(&[("d/x", "old\n"), ("d/y", "old\n")], &[]);
    let overlay = OverlayBackend::new(Arc::new(Intercepted::new(Arc::clone(&base), Arc::new(Lively))));
    let cx = OpContext::new();
    overlay.rename(&cx, RenameRequest::new(path("/d"), path("/e"))).await?;
    assert_eq!(names(&overlay, "/").await, some(["/e"]));
    let CommitResult::Conflicts(conflicts) = overlay.commit(&cx).await? else { panic!("one file was changed") };
    assert_eq!(conflicts.iter().map(|conflict| conflict.path.as_str()).collect::<Vec<_>>(), ["/d/x"]);
    base.delete_file("/d/x").await?;
    commit(&overlay).await?;
    assert_eq!(text(&root, "d/late").as_deref(), Some("theirs\n"));
    assert_eq!(text(&root, "e/x").as_deref(), Some("old\n"));
    assert_eq!(text(&root, "d/y"), None);
    Ok(())
}

#[tokio::test]
async fn a_directory_with_links_that_lead_nowhere_or_outside_can_be_deleted() -> Result<()> {
    let (root, base) = disk(
        &[("d/x", "old\n"), ("real/r", "old\n")],
        &[("d/nowhere", "missing"), ("d/outside", "/etc/passwd"), ("d/l", "../real/r")],
    );
    let overlay = OverlayBackend::new(base);
    overlay.delete_file("/real/r").await?;
    let deleted = overlay.delete(&OpContext::new(), DeleteRequest::new(path("/d")).recursive()).await?;
    assert_eq!(deleted.files, 4);
    commit(&overlay).await?;
    assert!(!root.path().join("d").exists());
    Ok(())
}

#[tokio::test]
async fn a_link_in_a_directory_is_copied_as_what_it_holds_and_not_moved() -> Result<()> {
    let (root, base) = disk(&[("d/x", "x\n"), ("real/r", "old\n")], &[("d/l", "../real/r")]);
    let overlay = OverlayBackend::new(base);
    overlay.write_text("/real/r", "new\n").await?;
    let cx = OpContext::new();
    overlay.copy(&cx, CopyRequest::new(path("/d"), path("/e"))).await?;
    assert_eq!(overlay.read_text("/e/l").await?, "new\n");
    let error = overlay.rename(&cx, RenameRequest::new(path("/d"), path("/f"))).await.expect_err("it holds a link");
    assert_eq!((error.kind(), error.path()), (ErrorKind::Unsupported, Some("/d/l")));
    assert_eq!(names(&overlay, "/").await, some(["/d", "/e", "/real"]));
    commit(&overlay).await?;
    assert_eq!(text(&root, "e/l").as_deref(), Some("new\n"));
    Ok(())
}

#[tokio::test]
async fn a_directory_that_cannot_be_moved_or_copied_is_named_as_the_caller_named_it() -> Result<()> {
    let (_root, base) = disk(&[("real/d/x", "x\n"), ("real/f", "f\n")], &[("ln", "real"), ("real/d/l", "../f")]);
    let (overlay, cx) = (OverlayBackend::new(base).with_budget(1), OpContext::new());
    let error = overlay.rename(&cx, RenameRequest::new(path("/ln/d"), path("/e"))).await.expect_err("it holds a link");
    // The link is reported before any content is stored in the overlay.
    assert_eq!((error.kind(), error.path()), (ErrorKind::Unsupported, Some("/ln/d/l")));

    let (_root, base) = disk(&[("real/d/x", "x\n")], &[("ln", "real"), ("real/d/l", "missing")]);
    let overlay = OverlayBackend::new(base);
    let error = overlay.copy(&cx, CopyRequest::new(path("/ln/d"), path("/e"))).await.expect_err("it leads nowhere");
    assert_eq!((error.kind(), error.path()), (ErrorKind::Unsupported, Some("/ln/d/l")));
    let error = overlay.copy(&cx, CopyRequest::new(path("/ln/d"), path("/ln/d/e"))).await.expect_err("into itself");
    assert_eq!((error.kind(), error.path()), (ErrorKind::InvalidArgument, Some("/ln/d/e")));
    Ok(())
}

#[tokio::test]
async fn directories_that_were_deleted_do_not_come_back_empty_with_a_file_beside_them() -> Result<()> {
    for is_cut_short in [false, true] {
        let (root, base) =
            disk(&[("d/x", "old\n"), ("d/e/f/y", "old\n"), ("d/e/z", "old\n"), ("z", "old\n")], &[("d/l", "../other")]);
        fs::create_dir_all(root.path().join("other/none")).expect("a directory can be made");
        fs::create_dir(root.path().join("d/none")).expect("a directory can be made");
        let store: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
        let writes = Arc::<AtomicUsize>::default();
        let dying = |backend: &Arc<dyn Backend>| -> Arc<dyn Backend> {
            let failing = Failing { at: path("/z"), manner: Manner::Crash, writes: Arc::clone(&writes) };
            Arc::new(Intercepted::new(Arc::clone(backend), Arc::new(failing)))
        };
        let overlay = OverlayBackend::open(dying(&base), dying(&store), path("/kept")).await?;
        overlay.delete(&OpContext::new(), DeleteRequest::new(path("/d")).recursive()).await?;
        overlay.create_text("/d/x", "new\n").await?;
        if is_cut_short {
            overlay.write_text("/z", "new\n").await?;
            overlay.commit(&OpContext::new()).await.expect_err("the disk is gone");
            OverlayBackend::open(Arc::clone(&base), store, path("/kept")).await?;
        } else {
            commit(&overlay).await?;
        }
        assert_eq!(names(&*base, "/d").await, some(["/d/x"]));
        assert!(root.path().join("other/none").exists(), "what a link led to stays");
    }
    Ok(())
}

#[tokio::test]
async fn a_diff_has_the_deleted_links_wherever_they_led() -> Result<()> {
    let (_root, base) = disk(
        &[("d/x", "old\n")],
        &[("d/outside", "/etc/passwd"), ("d/nowhere", "missing"), ("d/file", "x"), ("d/other", "x")],
    );
    let (overlay, cx) = (OverlayBackend::new(base), OpContext::new());
    for link in ["/d/outside", "/d/nowhere", "/d/file", "/d/other"] {
        overlay.delete_file(link).await?;
    }
    overlay.create_text("/d/other", "new\n").await?;
    let diff = overlay.diff(&cx).await?;
    let kinds: Vec<_> = diff.changes.iter().map(|change| (change.path.as_str(), change.kind)).collect();
    let expected = [
        ("/d/file", SnapshotDiffKind::Removed),
        ("/d/nowhere", SnapshotDiffKind::Removed),
        ("/d/other", SnapshotDiffKind::Changed),
        ("/d/outside", SnapshotDiffKind::Removed),
    ];
    assert_eq!(kinds, expected);
    let text = diff.unified();
    assert!(text.contains("+new") && !text.contains("-old"), "{text}");
    let CommitResult::Applied(applied) = overlay.commit(&cx).await? else { panic!("nothing stands against it") };
    let applied: Vec<_> = applied.changes.iter().map(|change| (change.path.as_str(), change.kind)).collect();
    assert_eq!(applied, expected);
    Ok(())
}

#[tokio::test]
async fn a_link_in_a_circle_can_be_deleted_and_a_name_that_is_too_long_cannot() -> Result<()> {
    let links = [("circle", "circle"), ("one", "two"), ("two", "one"), ("d/circle", "circle"), ("up", "d")];
    let (root, base) = disk(&[("d/x", "old\n")], &links);
    let (overlay, cx) = (OverlayBackend::new(base), OpContext::new());
    overlay.delete_file("/circle").await?;
    overlay.create_text("/circle", "new\n").await?;
    overlay.delete_file("/one").await?;
    overlay.delete_file("/up/circle").await?;
    overlay.delete(&cx, DeleteRequest::new(path("/d")).recursive()).await?;
    assert_eq!(overlay.diff(&cx).await?.changes.len(), 4);
    commit(&overlay).await?;
    assert_eq!(
        seen(root.path()),
        [("circle", "new\n"), ("two", "-> one"), ("up", "-> d")].map(|(at, is)| (at.into(), is.into()))
    );

    let long = format!("/{}", "x".repeat(300));
    assert_eq!(overlay.delete_file(&long).await.expect_err("it is too long").kind(), ErrorKind::InvalidPath);
    Ok(())
}
