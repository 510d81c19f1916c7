//! Recovery of renames across mounts, from records as an interrupted rename leaves them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::{Value, json};
use vfs_composite::{CompositeBackend, JournalGuard, JournalLock, Recovered, Recovery};
use vfs_core::{Backend, BackendExt, ErrorKind, OpContext, RenameRequest, Result, StatRequest, VfsPath};
use vfs_memory::MemoryBackend;

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

/// Two backends in one namespace, and its journal.
struct Namespace {
    source: MemoryBackend,
    target: MemoryBackend,
    journal: MemoryBackend,
    files: CompositeBackend,
}

impl Namespace {
    fn new() -> Result<Self> {
        let (source, target, journal) = (MemoryBackend::new(), MemoryBackend::new(), MemoryBackend::new());
        let files = CompositeBackend::new(Arc::new(source.clone())).with_mount("/m", Arc::new(target.clone()))?;
        let files = files.with_journal(Arc::new(journal.clone()), path("/moves"));
        Ok(Self { source, target, journal, files })
    }

    async fn version(&self, at: &str) -> Result<Value> {
        let info = self.files.stat(&OpContext::new(), StatRequest::new(path(at))).await?;
        Ok(json!(info.version))
    }

    /// The record of a move of `files`, from `/d` to `/m/d`, with the versions of now.
    async fn note(&self, files: &[&str]) -> Result<Value> {
        let mut noted = Vec::new();
        for name in files {
            let from = format!("/d/{name}");
            let version = self.version(&from).await?;
            noted.push(json!({ "from": from, "to": format!("/m/d/{name}"), "kind": "file", "version": version }));
        }
        Ok(json!({ "from": "/d", "to": "/m/d", "files": noted }))
    }

    async fn record(&self, name: &str, note: &Value) -> Result<()> {
        self.journal.create_text(&format!("/moves/{name}"), &note.to_string()).await.map(drop)
    }

    async fn recover(&self) -> Result<Recovery> {
        self.files.recover(&OpContext::new()).await
    }

    async fn recover_one(&self) -> Result<Recovered> {
        let recovery = self.recover().await?;
        let [moved] = &recovery.moves[..] else { panic!("one move: {recovery:?}") };
        Ok(moved.outcome.clone())
    }

    async fn notes(&self) -> Result<usize> {
        Ok(self.journal.find("/moves/**").await?.len())
    }
}

#[tokio::test]
async fn a_move_that_has_begun_is_finished_and_one_that_has_not_is_rolled_back() -> Result<()> {
    for is_begun in [false, true] {
        let namespace = Namespace::new()?;
        namespace.source.create_text("/d/a", "a").await?;
        namespace.source.create_text("/d/b", "b").await?;
        namespace.record("move-1-0.json", &namespace.note(&["a", "b"]).await?).await?;
        if is_begun {
            namespace.target.create_text("/d/a", "a").await?;
        }
        let (outcome, all, none) = if is_begun {
            (Recovered::Finished, &namespace.target, &namespace.source)
        } else {
            (Recovered::RolledBack, &namespace.source, &namespace.target)
        };
        assert_eq!(namespace.recover_one().await?, outcome);
        assert_eq!(all.read_text("/d/a").await? + &all.read_text("/d/b").await?, "ab");
        assert!(!none.exists("/d").await?);
        assert_eq!(namespace.notes().await?, 0);
        assert_eq!(namespace.recover().await?, Recovery::default());
        if !is_begun {
            namespace.files.rename(&OpContext::new(), RenameRequest::new(path("/d"), path("/m/d"))).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_file_that_was_changed_at_both_ends_is_stuck_until_one_end_is_gone() -> Result<()> {
    for removed in ["/d/a", "/m/d/a"] {
        let namespace = Namespace::new()?;
        namespace.source.create_text("/d/a", "a").await?;
        namespace.source.create_text("/d/b", "b").await?;
        namespace.record("move-1-0.json", &namespace.note(&["a", "b"]).await?).await?;
        namespace.source.write_text("/d/a", "newer at the source").await?;
        namespace.target.create_text("/d/a", "newer at the target").await?;
        for _ in 0..2 {
            let Recovered::Stuck(error) = namespace.recover_one().await? else { panic!("it cannot be finished") };
            assert_eq!((error.kind(), error.path()), (ErrorKind::Conflict, Some("/d/a")));
            assert_eq!(namespace.source.read_text("/d/a").await?, "newer at the source");
            assert_eq!(namespace.target.read_text("/d/a").await?, "newer at the target");
            assert_eq!(namespace.target.read_text("/d/b").await?, "b", "the other file is moved");
            assert_eq!(namespace.notes().await?, 1);
        }
        // A stuck move is not in the way of others.
        namespace.source.create_text("/x", "x").await?;
        namespace.files.rename(&OpContext::new(), RenameRequest::new(path("/x"), path("/m/x"))).await?;
        namespace.files.remove(removed).await?;
        let outcome = namespace.recover_one().await?;
        if removed == "/d/a" {
            assert_eq!(outcome, Recovered::Finished);
            assert_eq!(namespace.target.read_text("/d/a").await?, "newer at the target");
        } else {
            assert_eq!(outcome, Recovered::FinishedExcept(vec![path("/d/a")]));
            assert_eq!(namespace.source.read_text("/d/a").await?, "newer at the source");
        }
        assert_eq!(namespace.notes().await?, 0);
    }
    Ok(())
}

#[tokio::test]
async fn a_target_of_another_content_is_never_replaced_nor_its_source_deleted() -> Result<()> {
    let namespace = Namespace::new()?;
    namespace.source.create_text("/d/a", "a").await?;
    namespace.record("move-1-0.json", &namespace.note(&["a"]).await?).await?;
    namespace.target.create_text("/d/a", "of somebody else").await?;
    let Recovered::Stuck(error) = namespace.recover_one().await? else { panic!("it cannot be finished") };
    assert_eq!((error.kind(), error.path()), (ErrorKind::Conflict, Some("/m/d/a")));
    assert_eq!(namespace.source.read_text("/d/a").await?, "a");
    assert_eq!(namespace.target.read_text("/d/a").await?, "of somebody else");
    Ok(())
}

#[tokio::test]
async fn a_source_of_equal_content_is_deleted_in_the_version_that_was_compared() -> Result<()> {
    let namespace = Namespace::new()?;
    namespace.source.create_text("/d/a", "a").await?;
    namespace.record("move-1-0.json", &namespace.note(&["a"]).await?).await?;
    // A rollback that was interrupted has written the source again.
    namespace.source.remove("/d/a").await?;
    namespace.source.create_text("/d/a", "a").await?;
    namespace.target.create_text("/d/a", "a").await?;
    assert_eq!(namespace.recover_one().await?, Recovered::Finished);
    assert!(!namespace.source.exists("/d").await?);
    assert_eq!(namespace.target.read_text("/d/a").await?, "a");
    Ok(())
}

#[tokio::test]
async fn two_names_of_one_file_are_not_taken_for_two_files() -> Result<()> {
    for is_written in [false, true] {
        let namespace = Namespace::new()?;
        namespace.source.create_text("/d/a", "a").await?;
        let other = CompositeBackend::new(Arc::new(namespace.source.clone()))
            .with_mount("/m", Arc::new(namespace.source.clone()))?
            .with_journal(Arc::new(namespace.journal.clone()), path("/moves"));
        let mut note = namespace.note(&["a"]).await?;
        let version = note["files"][0]["version"].clone();
        note["files"][0]["replaces"] = version;
        note["replaced"] = json!(true);
        namespace.record("move-1-0.json", &note).await?;
        if is_written {
            namespace.source.write_text("/d/a", "b").await?;
        }
        let recovery = other.recover(&OpContext::new()).await?;
        assert_eq!(matches!(recovery.moves[0].outcome, Recovered::Stuck(_)), is_written, "{recovery:?}");
        assert!(namespace.source.exists("/d/a").await?);
    }
    Ok(())
}

#[tokio::test]
async fn files_that_are_no_records_are_reported_and_do_not_block_others() -> Result<()> {
    let namespace = Namespace::new()?;
    namespace.source.create_text("/d/a", "a").await?;
    namespace.target.create_text("/d/a", "a").await?;
    namespace.record("move-0-0.json", &json!("damaged")).await?;
    namespace.record("move-1-0.json", &namespace.note(&["a"]).await?).await?;
    let mut elsewhere = namespace.note(&["a"]).await?;
    elsewhere["files"][0]["from"] = json!("/secret");
    namespace.record("move-2-0.json", &elsewhere).await?;
    namespace.record("notes.txt", &json!("of somebody else")).await?;
    namespace.record("lock", &json!("")).await?;
    let recovery = namespace.recover().await?;
    assert_eq!(recovery.moves.len(), 1);
    assert_eq!(recovery.moves[0].outcome, Recovered::Finished);
    let mut unreadable: Vec<_> = recovery.unreadable.iter().filter_map(|error| error.path()).collect();
    unreadable.sort_unstable();
    assert_eq!(unreadable, ["/moves/move-0-0.json", "/moves/move-2-0.json", "/moves/notes.txt"]);
    assert_eq!(namespace.notes().await?, 4);
    Ok(())
}

/// A lock that counts who asked for it, and is free or not.
#[derive(Debug)]
struct CountingLock {
    is_free: bool,
    shared: AtomicUsize,
    exclusive: AtomicUsize,
}

#[async_trait]
impl JournalLock for CountingLock {
    async fn lock_shared(&self, _cx: &OpContext) -> Result<JournalGuard> {
        self.shared.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(()))
    }

    async fn try_lock_exclusive(&self, _cx: &OpContext) -> Result<Option<JournalGuard>> {
        self.exclusive.fetch_add(1, Ordering::SeqCst);
        Ok(self.is_free.then(|| Box::new(()) as JournalGuard))
    }
}

#[tokio::test]
async fn a_recovery_waits_for_renames_that_are_under_way() -> Result<()> {
    for is_free in [false, true] {
        let namespace = Namespace::new()?;
        let lock = CountingLock { is_free, shared: AtomicUsize::new(0), exclusive: AtomicUsize::new(0) };
        let lock = Arc::new(lock);
        let files = namespace.files.clone().with_locked_journal(
            Arc::new(namespace.journal.clone()),
            path("/moves"),
            Arc::clone(&lock) as Arc<dyn JournalLock>,
        );
        assert_eq!(files.recover(&OpContext::new()).await?, Recovery::default());
        assert_eq!(lock.exclusive.load(Ordering::SeqCst), 0, "an empty journal takes no lock");
        namespace.source.create_text("/x", "x").await?;
        files.rename(&OpContext::new(), RenameRequest::new(path("/x"), path("/m/x"))).await?;
        assert_eq!(lock.shared.load(Ordering::SeqCst), 1);
        namespace.source.create_text("/d/a", "a").await?;
        namespace.target.create_text("/d/a", "a").await?;
        namespace.record("move-1-0.json", &namespace.note(&["a"]).await?).await?;
        let recovery = files.recover(&OpContext::new()).await?;
        assert_eq!((recovery.moves.len(), recovery.deferred), if is_free { (1, 0) } else { (0, 1) });
        assert_eq!(namespace.notes().await?, usize::from(!is_free));
    }
    Ok(())
}
