//! Snapshots, forks and going back.

use vfs_core::{Backend, BackendExt, ErrorKind, OpContext, SnapshotId};
use vfs_memory::MemoryBackend;

use super::{path, run};

#[test]
fn a_snapshot_stays_as_it_is_and_can_be_gone_back_to_twice() {
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
        let first = snapshots.snapshot(&cx).await?;
        files.write_text("/a", "second").await?;
        let second = snapshots.snapshot(&cx).await?;
        assert_eq!((first.as_str(), second.as_str()), ("snap-1", "snap-2"));

        snapshots.restore(&cx, &first).await?;
        assert_eq!(files.read_text("/a").await?, "first");
        snapshots.restore(&cx, &second).await?;
        assert_eq!(files.read_text("/a").await?, "second");

        snapshots.forget(&cx, &second).await?;
        for unknown in [&second, &SnapshotId::new("elsewhere")] {
            for outcome in [snapshots.restore(&cx, unknown).await, snapshots.forget(&cx, unknown).await] {
                assert_eq!(outcome.expect_err("it is not there").kind(), ErrorKind::NotFound);
            }
        }
        assert_eq!(snapshots.snapshot(&cx).await?.as_str(), "snap-3");
        assert_eq!(files.read_text("/a").await?, "second");
        Ok(())
    });
}
