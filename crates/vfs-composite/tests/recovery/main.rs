//! Recovery of renames across mounts, from records as an interrupted rename leaves them.

mod faults;
mod identity;
mod incomplete;
mod locking;

use std::sync::Arc;

use serde_json::{Value, json};
use vfs_composite::{CompositeBackend, MountIdentity, RecoveryOutcome, RecoveryReport};
use vfs_core::{Backend, BackendExt, ErrorKind, OpContext, RenameRequest, Result, StatRequest, VfsPath};
use vfs_memory::MemoryBackend;

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

fn store(namespace: &str) -> MountIdentity {
    MountIdentity::Store { url: "sqlite:/team.db".to_owned(), namespace: namespace.to_owned(), directory: path("/") }
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
        Self::with(|source| source, |target| target)
    }

    /// A namespace with layers around its source and its target.
    fn with(
        source_layer: impl FnOnce(Arc<dyn Backend>) -> Arc<dyn Backend>,
        target_layer: impl FnOnce(Arc<dyn Backend>) -> Arc<dyn Backend>,
    ) -> Result<Self> {
        let (source, target, journal) = (MemoryBackend::new(), MemoryBackend::new(), MemoryBackend::new());
        let files = CompositeBackend::new(source_layer(Arc::new(source.clone())))
            .with_mount("/m", target_layer(Arc::new(target.clone())))?
            .with_identity(&path("/"), store("one"))?
            .with_identity(&path("/m"), store("two"))?
            .with_journal(Arc::new(journal.clone()), path("/moves"));
        Ok(Self { source, target, journal, files })
    }

    async fn version(&self, at: &str) -> Result<Value> {
        let info = self.files.stat(&OpContext::new(), StatRequest::new(path(at))).await?;
        Ok(json!(info.version))
    }

    /// The record of a move of `files`, from `/d` to `/m/d`, with the versions of now.
    async fn record_of(&self, files: &[&str]) -> Result<Value> {
        let mut recorded = Vec::new();
        for name in files {
            let from = format!("/d/{name}");
            let version = self.version(&from).await?;
            recorded.push(json!({ "from": from, "to": format!("/m/d/{name}"), "kind": "file", "version": version }));
        }
        let mount = |at: &str, identity| json!({ "path": at, "identity": identity });
        let (source, target) = (mount("/", store("one")), mount("/m", store("two")));
        Ok(json!({ "from": "/d", "to": "/m/d", "source": source, "target": target, "files": recorded }))
    }

    async fn write_record(&self, name: &str, record: &Value) -> Result<()> {
        self.journal.create_text(&format!("/moves/{name}"), &record.to_string()).await.map(drop)
    }

    async fn recover(&self) -> Result<RecoveryReport> {
        self.files.recover(&OpContext::new()).await
    }

    async fn recover_one(&self) -> Result<RecoveryOutcome> {
        let recovery = self.recover().await?;
        let [moved] = &recovery.moves[..] else { panic!("one move: {recovery:?}") };
        Ok(moved.outcome.clone())
    }

    async fn records(&self) -> Result<usize> {
        Ok(self.journal.glob_files("/moves/**").await?.len())
    }
}

#[tokio::test]
async fn a_move_that_has_begun_is_finished_and_any_other_is_rolled_back() -> Result<()> {
    for is_begun in [false, true] {
        let namespace = Namespace::new()?;
        namespace.source.create_text("/d/a", "a").await?;
        namespace.source.create_text("/d/b", "b").await?;
        namespace.write_record("move-1-0.json", &namespace.record_of(&["a", "b"]).await?).await?;
        if is_begun {
            namespace.target.create_text("/d/a", "a").await?;
        }
        let (outcome, all, none) = if is_begun {
            (RecoveryOutcome::Finished, &namespace.target, &namespace.source)
        } else {
            (RecoveryOutcome::RolledBack, &namespace.source, &namespace.target)
        };
        assert_eq!(namespace.recover_one().await?, outcome);
        assert_eq!(all.read_text("/d/a").await? + &all.read_text("/d/b").await?, "ab");
        assert!(!none.exists("/d").await?);
        assert_eq!(namespace.records().await?, 0);
        assert_eq!(namespace.recover().await?, RecoveryReport::default());
        if !is_begun {
            namespace.files.rename(&OpContext::new(), RenameRequest::new(path("/d"), path("/m/d"))).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_file_that_was_changed_at_both_ends_is_incomplete_until_one_end_is_gone() -> Result<()> {
    for removed in ["/d/a", "/m/d/a"] {
        let namespace = Namespace::new()?;
        namespace.source.create_text("/d/a", "a").await?;
        namespace.source.create_text("/d/b", "b").await?;
        namespace.write_record("move-1-0.json", &namespace.record_of(&["a", "b"]).await?).await?;
        namespace.source.write_text("/d/a", "newer at the source").await?;
        namespace.target.create_text("/d/a", "newer at the target").await?;
        for _ in 0..2 {
            let RecoveryOutcome::Incomplete(error) = namespace.recover_one().await? else {
                panic!("it cannot be finished")
            };
            assert_eq!((error.kind(), error.path()), (ErrorKind::Conflict, Some("/d/a")));
            assert_eq!(namespace.source.read_text("/d/a").await?, "newer at the source");
            assert_eq!(namespace.target.read_text("/d/a").await?, "newer at the target");
            assert_eq!(namespace.target.read_text("/d/b").await?, "b", "the other file is moved");
            assert_eq!(namespace.records().await?, 1);
        }
        // A stuck move does not block others.
        namespace.source.create_text("/x", "x").await?;
        namespace.files.rename(&OpContext::new(), RenameRequest::new(path("/x"), path("/m/x"))).await?;
        namespace.files.delete_file(removed).await?;
        let outcome = namespace.recover_one().await?;
        if removed == "/d/a" {
            assert_eq!(outcome, RecoveryOutcome::Finished);
            assert_eq!(namespace.target.read_text("/d/a").await?, "newer at the target");
        } else {
            assert_eq!(outcome, RecoveryOutcome::FinishedExcept(vec![path("/d/a")]));
            assert_eq!(namespace.source.read_text("/d/a").await?, "newer at the source");
        }
        assert_eq!(namespace.records().await?, 0);
    }
    Ok(())
}

#[tokio::test]
async fn a_target_of_another_content_is_never_replaced_nor_its_source_deleted() -> Result<()> {
    let namespace = Namespace::new()?;
    namespace.source.create_text("/d/a", "a").await?;
    namespace.write_record("move-1-0.json", &namespace.record_of(&["a"]).await?).await?;
    namespace.target.create_text("/d/a", "of somebody else").await?;
    let RecoveryOutcome::Incomplete(error) = namespace.recover_one().await? else { panic!("it cannot be finished") };
    assert_eq!((error.kind(), error.path()), (ErrorKind::Conflict, Some("/m/d/a")));
    assert_eq!(namespace.source.read_text("/d/a").await?, "a");
    assert_eq!(namespace.target.read_text("/d/a").await?, "of somebody else");
    Ok(())
}

#[tokio::test]
async fn a_record_of_a_newer_version_is_reported_as_one_and_left_alone() -> Result<()> {
    for has_other_fields in [false, true] {
        let namespace = Namespace::new()?;
        namespace.source.create_text("/d/a", "a").await?;
        namespace.target.create_text("/d/a", "a").await?;
        let mut record = namespace.record_of(&["a"]).await?;
        record["format"] = json!(2);
        if has_other_fields {
            record["compression"] = json!("zstd");
        }
        namespace.write_record("move-1-0.json", &record).await?;
        let recovery = namespace.recover().await?;
        let [error] = &recovery.unreadable[..] else { panic!("{recovery:?}") };
        assert!(error.message().contains("by a newer version"), "{error}");
        assert!(recovery.moves.is_empty() && namespace.source.exists("/d/a").await?);
    }
    Ok(())
}

/// Values that no rename writes to a record, and their places in it.
fn forgeries(record: &Value) -> Vec<(&'static str, Value)> {
    let twice = json!([record["files"][0], record["files"][0]]);
    vec![
        ("/files/0/from", json!("/secret")),
        ("/files/0/to", json!("/m/elsewhere")),
        ("/files/0/to", json!("/m/d/other")),
        ("/files", twice),
        ("/from", json!("/")),
        ("/to", json!("/d/a/m")),
        ("/target/path", json!("/")),
        ("/target/path", json!("/elsewhere")),
    ]
}

#[tokio::test]
async fn files_that_are_no_records_are_reported_and_do_not_block_others() -> Result<()> {
    let namespace = Namespace::new()?;
    namespace.source.create_text("/d/a", "a").await?;
    namespace.target.create_text("/d/a", "a").await?;
    namespace.write_record("move-0-0.json", &json!("damaged")).await?;
    namespace.write_record("move-1-0.json", &namespace.record_of(&["a"]).await?).await?;
    let record = namespace.record_of(&["a"]).await?;
    for (number, (pointer, forged)) in forgeries(&record).into_iter().enumerate() {
        let mut record = record.clone();
        *record.pointer_mut(pointer).expect("a place in the record") = forged;
        namespace.write_record(&format!("move-2-{number}.json"), &record).await?;
    }
    namespace.write_record("notes.txt", &json!("of somebody else")).await?;
    namespace.write_record("lock", &json!("")).await?;
    let recovery = namespace.recover().await?;
    assert_eq!(recovery.moves.len(), 1);
    assert_eq!(recovery.moves[0].outcome, RecoveryOutcome::Finished);
    let mut unreadable: Vec<_> = recovery.unreadable.iter().filter_map(|error| error.path()).collect();
    unreadable.sort_unstable();
    assert_eq!(unreadable.remove(0), "/moves/move-0-0.json");
    assert_eq!(unreadable.pop(), Some("/moves/notes.txt"));
    assert_eq!(unreadable.len(), forgeries(&record).len(), "{unreadable:?}");
    assert_eq!(namespace.records().await?, unreadable.len() + 3);
    Ok(())
}
