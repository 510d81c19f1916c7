//! Tests of the collection and removal of workspaces.
//!
//! The tests change the files themselves, as commands would, so no sandbox is needed.
#![expect(clippy::disallowed_methods, reason = "what commands do to a workspace is done on the host")]

use std::any::Any;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::StreamExt as _;
use futures::executor::block_on;
use rustix::fs::{Mode, OFlags};
use vfs_core::operation::{Intercepted, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::snapshots::SnapshotDiffKind;
use vfs_core::watch::{Change, WatchRequest};
use vfs_core::{
    Backend, BackendExt as _, ErrorKind, Interceptor, LsResult, OpContext, Result, TruncationReason, VfsPath,
};
use vfs_local::LocalBackend;
use vfs_memory::MemoryBackend;
use vfs_sandbox::{CollectResult, ProtectionLevel, SandboxConfig, Workspace};

/// Runs `check` on a thread of an ordinary user that does all its file operations itself, with a directory to which
/// this user may write.
fn as_ordinary_user(check: impl FnOnce(&Path) + Send) {
    let parent = tempfile::tempdir().expect("a temporary directory");
    set_mode(parent.path(), 0o777);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            if rustix::process::geteuid().is_root() {
                // The system call changes only the calling thread.
                let (root, nobody) = (rustix::fs::Uid::ROOT, rustix::fs::Uid::from_raw(65534));
                rustix::thread::set_thread_res_uid(root, nobody, root).expect("root may become anyone");
            }
            check(parent.path());
        });
    });
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}

fn files(paths: &[&str]) -> Arc<MemoryBackend> {
    let files = Arc::new(MemoryBackend::new());
    for path in paths {
        block_on(files.create_text(path, &format!("{path}\n"))).expect("it is new");
    }
    files
}

fn checkout<B: Backend>(files: &Arc<B>, parent: &Path) -> Workspace {
    let backend: Arc<dyn Backend> = Arc::<B>::clone(files);
    block_on(Workspace::checkout(&OpContext::new(), backend, VfsPath::root(), parent)).expect("it is brought")
}

fn changes(workspace: &Workspace) -> CollectResult {
    block_on(workspace.changes(&OpContext::new())).expect("the changes")
}

fn collect(workspace: &mut Workspace) -> CollectResult {
    block_on(workspace.collect(&OpContext::new())).expect("it is brought back")
}

fn changed(collected: &CollectResult) -> Vec<(&str, SnapshotDiffKind)> {
    collected.changes.changes.iter().map(|change| (change.path.as_str(), change.kind)).collect()
}

fn problems(collected: &CollectResult) -> Vec<(&str, ErrorKind)> {
    let mut problems: Vec<_> = collected.problems.iter().map(|problem| (problem.path.as_str(), problem.code)).collect();
    problems.sort_unstable_by(|one, other| one.0.cmp(other.0));
    problems
}

fn text(files: &impl Backend, path: &str) -> String {
    block_on(files.read_text(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn an_unreadable_file_counts_as_unchanged() {
    as_ordinary_user(|parent| {
        let files = files(&["/src/a", "/src/deep/b", "/closed", "/open", "/deleted"]);
        let mut workspace = checkout(&files, parent);
        let here = workspace.directory().to_owned();
        fs::write(here.join("closed"), "other\n").expect("it is ours");
        fs::write(here.join("open"), "other\n").expect("it is ours");
        fs::remove_file(here.join("deleted")).expect("it is ours");
        set_mode(&here.join("closed"), 0);
        set_mode(&here.join("src"), 0);
        for collected in [changes(&workspace), collect(&mut workspace)] {
            assert_eq!(
                changed(&collected),
                [("/deleted", SnapshotDiffKind::Removed), ("/open", SnapshotDiffKind::Changed)]
            );
            let denied = ErrorKind::PermissionDenied;
            assert_eq!(problems(&collected), [("/closed", denied), ("/src", denied)], "{:?}", collected.problems);
            assert_eq!(collected.conflicts, []);
        }
        for untouched in ["/src/a", "/src/deep/b", "/closed"] {
            assert_eq!(text(&*files, untouched), format!("{untouched}\n"));
        }
        set_mode(&here.join("src"), 0o700);
        fs::remove_dir_all(here.join("src")).expect("it is ours");
        let removed = [("/src/a", SnapshotDiffKind::Removed), ("/src/deep/b", SnapshotDiffKind::Removed)];
        assert_eq!(changed(&collect(&mut workspace)), removed, "files that are readable again are collected");
    });
}

#[test]
fn a_file_that_is_too_large_does_not_prevent_the_collection_of_others() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let files = files(&["/large", "/other", "/deleted"]);
    let mut workspace = checkout(&files, parent.path());
    let here = workspace.directory();
    fs::File::options()
        .write(true)
        .open(here.join("large"))
        .expect("it is there")
        .set_len((256 << 20) + 1)
        .expect("set");
    fs::write(here.join("other"), "other\n").expect("it is ours");
    fs::remove_file(here.join("deleted")).expect("it is ours");
    for collected in [changes(&workspace), collect(&mut workspace)] {
        assert_eq!(
            changed(&collected),
            [("/deleted", SnapshotDiffKind::Removed), ("/other", SnapshotDiffKind::Changed)]
        );
        assert_eq!(problems(&collected), [("/large", ErrorKind::TooLarge)]);
    }
    assert_eq!(text(&*files, "/large"), "/large\n");
}

#[test]
fn unlisted_problems_remove_no_files() {
    as_ordinary_user(|parent| {
        let files = files(&["/z/file"]);
        let mut workspace = checkout(&files, parent);
        for number in 0..1100 {
            symlink("/etc/passwd", workspace.directory().join(format!("out-{number}"))).expect("it is new");
        }
        set_mode(&workspace.directory().join("z"), 0);
        let collected = collect(&mut workspace);
        assert_eq!(changed(&collected), []);
        assert_eq!(text(&*files, "/z/file"), "/z/file\n");
    });
}

#[test]
fn the_written_content_is_the_reported_content() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let files = files(&["/busy"]);
    let mut workspace = checkout(&files, parent.path());
    let (staged, busy) = (parent.path().join("staged"), workspace.directory().join("busy"));
    let done = AtomicBool::new(false);
    let put = |number: u64| {
        fs::write(&staged, format!("{number}\n")).expect("it is ours");
        fs::rename(&staged, &busy).expect("it is ours");
    };
    put(0);
    std::thread::scope(|scope| {
        scope.spawn(|| (1..).take_while(|_| !done.load(Ordering::Relaxed)).for_each(put));
        // Stop the other thread even if a check fails.
        let _ends = OnDrop(|| done.store(true, Ordering::Relaxed));
        for _ in 0..200 {
            let collected = collect(&mut workspace);
            let written = text(&*files, "/busy");
            let Some(change) = collected.changes.changes.first() else { continue };
            let is_reported = change.diff.lines().any(|line| line.strip_prefix('+') == Some(written.trim_end()));
            assert!(is_reported, "{written:?} was written, and this was reported: {}", change.diff);
        }
    });
}

struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn a_moved_file_exists_at_any_moment() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let files = files(&["/a"]);
    let mut workspace = checkout(&files, parent.path());
    fs::rename(workspace.directory().join("a"), workspace.directory().join("b")).expect("it is ours");
    let watch = files.as_watch().expect("a change feed");
    let mut events = watch.watch(OpContext::new(), WatchRequest::new(VfsPath::root()));
    let collected = collect(&mut workspace);
    assert_eq!(changed(&collected), [("/a", SnapshotDiffKind::Removed), ("/b", SnapshotDiffKind::Added)]);
    let mut next = || block_on(events.next()).expect("an event").expect("none was lost").change;
    assert!(matches!(next(), Change::Created { path, .. } if path.as_str() == "/b"));
    assert!(matches!(next(), Change::Removed { path, .. } if path.as_str() == "/a"));
}

#[test]
fn a_file_becomes_a_directory_and_a_directory_a_file() {
    let [parent, disk] = [(); 2].map(|()| tempfile::tempdir().expect("a temporary directory"));
    let memory = files(&["/file", "/directory/a", "/directory/deep/b"]);
    let local = Arc::new(LocalBackend::open(disk.path()).expect("it is there"));
    for path in ["/file", "/directory/a", "/directory/deep/b"] {
        block_on(local.create_text(path, "before\n")).expect("it is new");
    }
    let backends: [Arc<dyn Backend>; 2] = [memory, local];
    for backend in backends {
        let cx = OpContext::new();
        let workspace = Workspace::checkout(&cx, Arc::clone(&backend), VfsPath::root(), parent.path());
        let mut workspace = block_on(workspace).expect("it is brought");
        let here = workspace.directory();
        fs::remove_file(here.join("file")).expect("it is ours");
        fs::create_dir(here.join("file")).expect("it is ours");
        fs::write(here.join("file/new"), "new\n").expect("it is ours");
        fs::remove_dir_all(here.join("directory")).expect("it is ours");
        fs::write(here.join("directory"), "new\n").expect("it is ours");
        let collected = collect(&mut workspace);
        assert_eq!((collected.conflicts, collected.problems), (Vec::new(), Vec::new()), "{backend}");
        assert_eq!(text(&backend, "/file/new"), "new\n");
        assert_eq!(text(&backend, "/directory"), "new\n");
        assert!(changes(&workspace).changes.is_empty());
    }
}

#[test]
fn protected_paths_are_not_collected() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let files = files(&["/.env.example"]);
    let make = |here: &Path| {
        fs::create_dir_all(here.join(".git/hooks")).expect("it is ours");
        for name in [".git/config", ".git/hooks/post-checkout", ".env", ".gitignore", "keys"] {
            fs::write(here.join(name), "made\n").expect("it is ours");
        }
    };
    let mut workspace = checkout(&files, parent.path());
    make(workspace.directory());
    for collected in [changes(&workspace), collect(&mut workspace)] {
        assert_eq!(changed(&collected), [("/.gitignore", SnapshotDiffKind::Added), ("/keys", SnapshotDiffKind::Added)]);
        let denied = ErrorKind::PolicyDenied;
        assert_eq!(problems(&collected), [("/.env", denied), ("/.git", denied)], "{:?}", collected.problems);
    }
    for path in ["/.git/config", "/.git/hooks/post-checkout", "/.env"] {
        assert_eq!(block_on(files.read_text(path)).expect_err(path).kind(), ErrorKind::NotFound);
    }

    let config = SandboxConfig::new("/").unprotected().protect("keys", ProtectionLevel::Hidden).expect("a path");
    let other = self::files(&[]);
    let workspace = checkout(&other, parent.path()).protecting(config.protected);
    let mut workspace = workspace.protecting_names(config.protected_names);
    make(workspace.directory());
    let collected = collect(&mut workspace);
    assert_eq!(problems(&collected), [("/keys", ErrorKind::PolicyDenied)]);
    assert_eq!(text(&*other, "/.git/hooks/post-checkout"), "made\n", "it is not protected here");
}

#[test]
fn protected_names_are_not_collected_at_any_depth() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let files = files(&["/app/.env", "/app/file"]);
    let mut workspace = checkout(&files, parent.path());
    let here = workspace.directory().to_owned();
    fs::create_dir_all(here.join("app/library/.git/hooks")).expect("it is ours");
    for name in ["app/library/.git/hooks/pre-commit", "app/library/.git/config", "app/.env", "app/library/file"] {
        fs::write(here.join(name), "made\n").expect("it is ours");
    }
    for collected in [changes(&workspace), collect(&mut workspace)] {
        assert_eq!(changed(&collected), [("/app/library/file", SnapshotDiffKind::Added)]);
        let denied = ErrorKind::PolicyDenied;
        assert_eq!(problems(&collected), [("/app/.env", denied), ("/app/library/.git", denied)]);
    }
    assert_ne!(text(&*files, "/app/.env"), "made\n");
}

#[test]
fn protected_paths_are_relative_to_the_checkout() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let files = files(&["/project/file", "/.git/config"]);
    let from = VfsPath::parse("/project").expect("a path");
    let backend: Arc<dyn Backend> = Arc::<MemoryBackend>::clone(&files);
    let cx = OpContext::new();
    let workspace = Workspace::checkout(&cx, backend, from, parent.path());
    let mut workspace = block_on(workspace).expect("it is brought");
    fs::create_dir(workspace.directory().join(".git")).expect("it is ours");
    fs::write(workspace.directory().join(".git/config"), "made\n").expect("it is ours");
    assert_eq!(problems(&collect(&mut workspace)), [("/project/.git", ErrorKind::PolicyDenied)]);
}

#[test]
fn a_link_does_not_reveal_a_hidden_file() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let files = files(&["/.env", "/file", "/.git/config"]);
    let mut workspace = checkout(&files, parent.path());
    let here = workspace.directory();
    symlink(".env", here.join("leak")).expect("it is new");
    symlink("file", here.join("same")).expect("it is new");
    symlink(".git/config", here.join("readable")).expect("it is new");
    let collected = collect(&mut workspace);
    assert_eq!(changed(&collected), [("/readable", SnapshotDiffKind::Added), ("/same", SnapshotDiffKind::Added)]);
    assert_eq!(problems(&collected), [("/leak", ErrorKind::PolicyDenied)]);
}

#[test]
fn a_workspace_with_any_permissions_is_removed() {
    as_ordinary_user(|parent| {
        for is_dropped in [false, true] {
            let workspace = checkout(&files(&["/d/f", "/e/f/g"]), parent);
            let here = workspace.directory().to_owned();
            symlink(parent, here.join("e/link")).expect("it is new");
            fs::write(parent.join("outside"), "stays").expect("it is ours");
            for (path, mode) in [("d", 0o500), ("e/f", 0), ("e", 0o100), ("", 0)] {
                set_mode(&here.join(path), mode);
            }
            if is_dropped {
                drop(workspace);
            } else {
                block_on(workspace.discard()).expect("all of it goes");
            }
            assert!(fs::symlink_metadata(&here).is_err(), "it is left, dropped: {is_dropped}");
            assert_eq!(fs::read(parent.join("outside")).expect("it is there"), b"stays");
        }
    });
}

/// The path is longer than a system call accepts, and has more levels than a process may have descriptors.
#[test]
fn a_workspace_of_any_depth_is_removed() {
    const LEVELS: usize = 30_000;
    let parent = tempfile::tempdir().expect("a temporary directory");
    let workspace = checkout(&files(&["/file"]), parent.path());
    let here = workspace.directory().to_owned();
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut deepest = rustix::fs::open(&here, flags, Mode::empty()).expect("it is there");
    for _ in 0..LEVELS {
        rustix::fs::mkdirat(&deepest, "1", Mode::RWXU).expect("it is new");
        deepest = rustix::fs::openat(&deepest, "1", flags, Mode::empty()).expect("it was made");
    }
    drop(deepest);
    block_on(workspace.discard()).expect("all of it goes");
    assert!(!here.exists());
}

#[test]
fn a_workspace_that_was_removed_already_is_discarded() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let workspace = checkout(&files(&["/d/f"]), parent.path());
    fs::remove_dir_all(workspace.directory()).expect("it is ours");
    block_on(workspace.discard()).expect("nothing is left");
}

#[test]
fn an_error_of_the_removal_is_returned() {
    as_ordinary_user(|parent| {
        let above = parent.join("above");
        fs::create_dir(&above).expect("it is new");
        let workspace = checkout(&files(&["/d/f"]), &above);
        let here = workspace.directory().to_owned();
        set_mode(&above, 0o500);
        let refused = block_on(workspace.discard()).expect_err("the directory above forbids it");
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
        assert_eq!(fs::read_dir(&here).expect("it is there").count(), 0, "the contents are removed");
        set_mode(&above, 0o700);
    });
}

/// Truncates listings, as a backend does if there are too many entries.
#[derive(Debug)]
struct TruncatedListings;

impl Interceptor for TruncatedListings {
    fn name(&self) -> &'static str {
        "cut"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let mut result = request.send(inner, cx).await?;
        if let Some(listing) = (&mut result as &mut dyn Any).downcast_mut::<LsResult>() {
            listing.entries.pop();
            listing.truncated = Some(TruncationReason::MaxEntries);
        }
        Ok(result)
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

#[test]
fn a_truncated_listing_is_not_checked_out() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let backend: Arc<dyn Backend> = Arc::new(Intercepted::new(files(&["/a", "/b"]), Arc::new(TruncatedListings)));
    let refused = block_on(Workspace::checkout(&OpContext::new(), backend, VfsPath::root(), parent.path()));
    let error = refused.expect_err("a part of it is missing");
    assert_eq!((error.kind(), error.path()), (ErrorKind::TooLarge, Some("/")), "{error}");
    assert_eq!(fs::read_dir(parent.path()).expect("it lists").count(), 0, "nothing is left");
}

/// The runtime starts no thread for the removal.
#[test]
fn a_workspace_is_discarded_without_runtime_threads() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let workspace = checkout(&files(&["/d/f"]), parent.path());
    let here = workspace.directory().to_owned();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let handle = runtime.handle().clone();
    runtime.shutdown_background();
    let _entered = handle.enter();
    block_on(workspace.discard()).expect("all of it goes");
    assert!(!here.exists());
}

#[test]
fn collected_changes_have_stable_json_names() {
    let json = concat!(
        r#"{"changes":{"changes":[{"path":"/a","kind":"added","after":"v1"}]},"#,
        r#""conflicts":[{"path":"/b","expected":"v1","actual":null}],"#,
        r#""problems":[{"path":"/c","code":"unsupported","message":"Error: '/c': it is a socket"}]}"#
    );
    let collected: CollectResult = serde_json::from_str(json).expect("valid JSON");
    assert_eq!(serde_json::to_string(&collected).expect("JSON"), json);
}
