//! Snapshots, forks and restores.

use vfs_core::snapshots::{ForgetRequest, ListSnapshotsRequest, RestoreRequest, SnapshotDiffKind, SnapshotRequest};
use vfs_core::{Backend, BackendExt, ErrorKind, OpContext};
use vfs_memory::MemoryBackend;

use super::{path, run};

#[test]
fn a_snapshot_never_changes_and_can_be_restored_twice() {
    run(async {
        let files = MemoryBackend::new();
        files.create_text("/a", "first").await?;
        let first = files.snapshot();
        for _ in 0..2 {
            files.write_text("/a", "second!").await?;
            files.create_text("/b/c", "more").await?;
            assert_eq!((first.len(), first.total_bytes()), (1, 5));
            let second = files.snapshot();
            assert_eq!((second.len(), second.total_bytes()), (2, 11));
            assert_ne!(first, second);

            files.restore(&first);
            assert_eq!(files.snapshot(), first);
            assert_eq!(files.read_text("/a").await?, "first");
            assert!(!files.exists("/b").await?);
        }
        assert!(MemoryBackend::new().snapshot().is_empty());
        Ok(())
    });
}

#[test]
fn clones_share_files_and_forks_do_not() {
    run(async {
        let files = MemoryBackend::from_files([(path("/a"), "a".into())])?;
        let (clone, fork) = (files.clone(), files.fork());
        files.write_text("/a", "changed").await?;
        fork.create_text("/only-in-fork", "").await?;
        assert_eq!(clone.read_text("/a").await?, "changed");
        assert_eq!(fork.read_text("/a").await?, "a");
        assert!(!files.exists("/only-in-fork").await?);
        Ok(())
    });
}

#[test]
fn named_snapshots_are_found_until_they_are_forgotten() {
    run(async {
        let files = MemoryBackend::new();
        let cx = OpContext::new();
        let snapshots = files.as_snapshots().expect("memory has snapshots");
        files.create_text("/a", "first").await?;
        let first = snapshots.snapshot(&cx, SnapshotRequest::new().label("one")).await?;
        files.write_text("/a", "second").await?;
        let second = snapshots.snapshot(&cx, SnapshotRequest::new()).await?;
        assert_eq!((first.id.as_str(), second.id.as_str()), ("snap-1", "snap-2"));
        assert_eq!((first.label.as_deref(), first.files, first.bytes), (Some("one"), 1, 5));
        assert_eq!(snapshots.snapshots(&cx, ListSnapshotsRequest::new()).await?, [first.clone(), second.clone()]);

        snapshots.restore(&cx, RestoreRequest::new(first.id.clone())).await?;
        assert_eq!(files.read_text("/a").await?, "first");
        snapshots.restore(&cx, RestoreRequest::new(second.id.clone())).await?;
        assert_eq!(files.read_text("/a").await?, "second");

        snapshots.forget(&cx, ForgetRequest::new(first.id.clone())).await?;
        let gone = snapshots.restore(&cx, RestoreRequest::new(first.id)).await;
        assert_eq!(gone.map_err(|error| error.kind()), Err(ErrorKind::NotFound));
        assert_eq!(snapshots.snapshots(&cx, ListSnapshotsRequest::new()).await?, [second]);
        Ok(())
    });
}

#[test]
fn the_changes_between_two_snapshots_have_diffs() {
    run(async {
        let files = MemoryBackend::new();
        for (path, text) in [("/changed", "one\n"), ("/removed", "gone\n"), ("/same", "same\n")] {
            files.create_text(path, text).await?;
        }
        let before = files.snapshot();
        files.write_text("/changed", "two\n").await?;
        files.write_text("/same", "same\n").await?;
        files.delete_file("/removed").await?;
        files.create_text("/added", "new\n").await?;
        let changes = before.diff(&files.snapshot());
        let kinds: Vec<_> = changes.changes.iter().map(|change| (change.path.as_str(), change.kind)).collect();
        let expected = [
            ("/added", SnapshotDiffKind::Added),
            ("/changed", SnapshotDiffKind::Changed),
            ("/removed", SnapshotDiffKind::Removed),
        ];
        assert_eq!(kinds, expected);
        let expected = "--- /dev/null\n+++ b/added\n@@ -0,0 +1 @@\n+new\n\
                        --- a/changed\n+++ b/changed\n@@ -1 +1 @@\n-one\n+two\n\
                        --- a/removed\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n";
        assert_eq!(changes.unified(), expected);
        assert!(before.diff(&before).is_empty());
        Ok(())
    });
}
