//! Transfers and writes that collide with other writers, most in a store that changes one value at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::executor::block_on;
use futures::future::join_all;
use vfs_core::{
    Backend, BackendExt, CopyRequest, Error, ErrorKind, OpenWriterRequest, RenameRequest, WriteMode, WriteRequest,
};

use super::rollback::{contents, stage};
use super::{Probe, cx, path};
use crate::{Key, MemoryStore, Namespace, NewValue, Precondition, PutOutcome, STAGED_PART_BYTES, Store, StoreBackend};

fn key(at: &str) -> Key {
    Key::new(Namespace::default(), path(at))
}

/// Puts a value without checking for directories, as other programs do.
fn put(store: &MemoryStore, at: &str, text: &'static str) {
    let value = NewValue::new(Bytes::from_static(text.as_bytes()), chrono::Utc::now());
    assert!(matches!(block_on(store.put(&key(at), value, &Precondition::Any)), Ok(PutOutcome::Applied(_))));
}

fn remove(store: &MemoryStore, at: &str) {
    assert!(matches!(block_on(store.delete(&key(at), &Precondition::Any)), Ok(PutOutcome::Applied(_))));
}

fn owned(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(at, text)| ((*at).to_owned(), (*text).to_owned())).collect()
}

#[tokio::test]
async fn a_source_that_vanishes_is_not_found_and_the_target_stays() {
    for (call, to) in [("get", "/n"), ("get", "/t"), ("put", "/n"), ("delete", "/n"), ("put", "/t"), ("delete", "/t")] {
        let (files, probe, store) = stage().await;
        let other = store.clone();
        probe.take_all();
        let at = if (call, to) == ("get", "/t") { 2 } else { 1 };
        probe.before(move |name, count| {
            if name == call && count == at {
                remove(&other, "/d/a");
            }
        });
        let request = RenameRequest::new(path("/d/a"), path(to)).overwrite();
        let error = files.rename(&cx(), request).await.expect_err("there is nothing to move");
        assert_eq!(error.kind(), ErrorKind::NotFound, "{call} {to}: {error}");
        assert_eq!(error.path(), Some("/d/a"), "{call} {to}");
        let expected = [("/d/b/c", "of /d/b/c\n"), ("/d/e", "of /d/e\n"), ("/t", "of /t\n")];
        assert_eq!(contents(&store).await, owned(&expected), "{call} {to}");
    }
}

#[tokio::test]
async fn a_copy_whose_source_vanishes_is_not_found() {
    let (files, probe, store) = stage().await;
    probe.take_all();
    probe.before(move |name, count| {
        if name == "get" && count == 1 {
            remove(&store, "/d/a");
        }
    });
    let error =
        files.copy(&cx(), CopyRequest::new(path("/d/a"), path("/n"))).await.expect_err("the source was removed");
    assert_eq!((error.kind(), error.path()), (ErrorKind::NotFound, Some("/d/a")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_renames_of_a_source_wins() {
    for store in [MemoryStore::new(), MemoryStore::single_valued()] {
        for round in 0..40 {
            let from = format!("/{round}/from");
            StoreBackend::new(store.clone()).create_text(&from, "text\n").await.expect("it is new");
            let renames = (0..3).map(|n| {
                let files = StoreBackend::new(Arc::new(Probe::new(store.clone())));
                let request = RenameRequest::new(path(&from), path(&format!("/{round}/to{n}")));
                tokio::spawn(async move { files.rename(&cx(), request).await })
            });
            let outcomes: Vec<_> = join_all(renames).await.into_iter().map(|made| made.expect("no panic")).collect();
            let won = outcomes.iter().position(Result::is_ok).expect("one of them wins");
            let kinds: Vec<_> = outcomes.iter().filter_map(|made| made.as_ref().err()).map(|e| e.kind()).collect();
            assert_eq!(kinds, [ErrorKind::NotFound; 2], "{round}");
            let left = StoreBackend::new(store.clone()).list_dir(&format!("/{round}")).await.expect("a listing");
            let left: Vec<_> = left.iter().map(|info| info.path.to_string()).collect();
            assert_eq!(left, [format!("/{round}/to{won}")]);
        }
    }
}

#[tokio::test]
async fn a_directory_that_is_created_meanwhile_is_not_merged_into() {
    for (created, is_copy) in [("/n/x", false), ("/n/b", false), ("/n/a/x", false), ("/n", true), ("/n/b", true)] {
        let (files, probe, store) = stage().await;
        let other = store.clone();
        let mut expected = contents(&store).await;
        expected.push((created.to_owned(), "another\n".to_owned()));
        expected.sort();
        probe.take_all();
        probe.before(move |name, count| {
            if name == "put" && count == 2 {
                put(&other, created, "another\n");
            }
        });
        let outcome = if is_copy {
            files.copy(&cx(), CopyRequest::new(path("/d"), path("/n"))).await.map(drop)
        } else {
            files.rename(&cx(), RenameRequest::new(path("/d"), path("/n"))).await.map(drop)
        };
        assert_eq!(
            outcome.expect_err("another writer created the target").kind(),
            ErrorKind::AlreadyExists,
            "{created}"
        );
        assert_eq!(contents(&store).await, expected, "{created} {is_copy}");
    }
}

#[tokio::test]
async fn a_file_that_becomes_a_directory_before_it_is_overwritten_stays_one() {
    for store in [MemoryStore::new(), MemoryStore::single_valued()] {
        let (files, probe) = super::probed(store.clone());
        files.create_text("/f", "old\n").await.expect("it is new");
        probe.take_all();
        let other = store.clone();
        probe.before(move |name, count| {
            if (name == "put" || name == "batch") && count == 1 {
                remove(&other, "/f");
                put(&other, "/f/below", "below\n");
            }
        });
        let request = WriteRequest::new(path("/f"), "new\n").mode(WriteMode::Overwrite);
        let error = files.write(&cx(), request).await.expect_err("it is a directory");
        assert_eq!(error.kind(), ErrorKind::IsADirectory);
        assert_eq!(contents(&store).await, owned(&[("/f/below", "below\n")]));
    }
}

#[tokio::test]
async fn a_file_that_shares_its_path_with_a_directory_can_be_overwritten() {
    for store in [MemoryStore::new(), MemoryStore::single_valued()] {
        for (at, text) in [("/f", "old\n"), ("/f/below", "old\n"), ("/f/below/that", "below\n")] {
            put(&store, at, text);
        }
        let files = StoreBackend::new(store.clone());
        for at in ["/f", "/f/below"] {
            files.write_text(at, "new\n").await.expect("it is there");
            let value = store.get(&key(at), None).await.expect("memory is there").expect("it is there");
            assert_eq!(value.content, "new\n");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_of_many_overwrites_succeed() {
    for store in [MemoryStore::new(), MemoryStore::single_valued()] {
        let writes = (0..64).map(|n| {
            let files = StoreBackend::new(Arc::new(Probe::new(store.clone())));
            tokio::spawn(async move { files.write_text("/f", &format!("{n}\n")).await })
        });
        for write in join_all(writes).await {
            write.expect("no panic").expect("it is written");
        }
    }
}

#[tokio::test]
async fn large_files_are_copied_a_few_at_a_time() {
    const SIZE: usize = 20 << 20;
    let (files, probe) = super::probed(MemoryStore::single_valued());
    let content = Bytes::from(vec![b'x'; SIZE]);
    for n in 0..8 {
        let value = NewValue::new(content.clone(), chrono::Utc::now());
        let put = probe.store.put(&key(&format!("/d/{n}")), value, &Precondition::Absent).await;
        assert!(matches!(put, Ok(PutOutcome::Applied(_))));
    }
    probe.take_all();
    let (open, max_open) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&max_open);
    probe.before(move |name, _| match name {
        "get" => _ = seen.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst),
        "put" => _ = open.fetch_sub(1, Ordering::SeqCst),
        _ => {}
    });
    let copied = files.copy(&cx(), CopyRequest::new(path("/d"), path("/n"))).await.expect("it is there");
    assert_eq!(copied.files, 8);
    assert_eq!(probe.take("get"), 8, "each file is read by one request");
    assert_eq!(max_open.load(Ordering::SeqCst), 3, "64 MiB at once");
}

#[tokio::test]
async fn a_file_that_is_created_between_two_lookups_is_read_and_edited() {
    for is_edited in [false, true] {
        let (files, probe, store) = stage().await;
        probe.take_all();
        let other = store.clone();
        // The first lookup found no file; the second one determines the reason.
        probe.before(move |name, count| {
            if name == "head" && count == 1 {
                put(&other, "/new", "made\n");
            }
        });
        if is_edited {
            files.edit_text("/new", "made", "edited").await.expect("it is there by now");
            assert_eq!(files.read_text("/new").await.expect("it is there"), "edited\n");
        } else {
            assert_eq!(files.read_text("/new").await.expect("it is there by now"), "made\n");
        }
    }
}

#[tokio::test]
async fn a_file_created_meanwhile_at_the_target_of_an_overwrite_is_replaced() {
    for is_copy in [false, true] {
        let (files, probe, store) = stage().await;
        let other = store.clone();
        probe.take_all();
        probe.before(move |name, count| {
            if name == "put" && count == 1 {
                put(&other, "/n", "another\n");
            }
        });
        if is_copy {
            let copied = files.copy(&cx(), CopyRequest::new(path("/d/a"), path("/n")).overwrite()).await;
            assert!(copied.expect("it replaces").replaced);
        } else {
            let moved = files.rename(&cx(), RenameRequest::new(path("/d/a"), path("/n")).overwrite()).await;
            assert!(moved.expect("it replaces").replaced);
        }
        assert_eq!(files.read_text("/n").await.expect("it is there"), "of /d/a\n");
        assert_eq!(files.exists("/d/a").await.expect("an answer"), is_copy);
    }
}

#[tokio::test]
async fn a_file_that_shares_its_path_with_a_directory_can_be_the_target_of_an_overwrite() {
    for store in [MemoryStore::new(), MemoryStore::single_valued()] {
        for at in ["/f", "/f/below", "/f/below/that"] {
            put(&store, at, "old\n");
        }
        let files = StoreBackend::new(store.clone());
        put(&store, "/a", "new\n");
        let copied = files.copy(&cx(), CopyRequest::new(path("/a"), path("/f")).overwrite()).await;
        assert!(copied.expect("it replaces").replaced);
        let moved = files.rename(&cx(), RenameRequest::new(path("/a"), path("/f/below")).overwrite()).await;
        assert!(moved.expect("it replaces").replaced);
        for (at, text) in [("/f", "new\n"), ("/f/below", "new\n"), ("/f/below/that", "old\n")] {
            let value = store.get(&key(at), None).await.expect("memory is there").expect("it is there");
            assert_eq!(value.content, text, "{at}");
        }
        assert!(!files.exists("/a").await.expect("an answer"));
    }
}

#[tokio::test]
async fn an_incomplete_rollback_is_reported_and_loses_nothing() {
    let (files, probe, store) = stage().await;
    let other = store.clone();
    probe.take_all();
    probe.before(move |name, count| {
        // The first source is removed, its copy is edited, and the second source has different content.
        if name == "delete" && count == 2 {
            put(&other, "/n/a", "edited\n");
            put(&other, "/n/b/c", "edited, too\n");
            put(&other, "/d/b/c", "newer\n");
        }
    });
    let error = files.rename(&cx(), RenameRequest::new(path("/d"), path("/n"))).await.expect_err("others changed it");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.message().contains("check source and target"), "{error}");
    let left = contents(&store).await;
    for (at, text) in [("/n/a", "edited\n"), ("/n/b/c", "edited, too\n"), ("/d/b/c", "newer\n"), ("/d/e", "of /d/e\n")]
    {
        assert!(left.contains(&(at.to_owned(), text.to_owned())), "{at}: {left:?}");
    }
}

#[tokio::test]
async fn a_streamed_file_that_is_withdrawn_for_another_one_is_a_conflict_once_that_is_gone() {
    for (is_removed, kind) in [(true, ErrorKind::Conflict), (false, ErrorKind::IsADirectory)] {
        let error = commit_beside_another_file(is_removed).await;
        assert_eq!((error.kind(), error.path()), (kind, Some("/f")), "{error}");
    }
}

#[tokio::test]
async fn a_commit_that_was_busy_is_repeated_with_all_chunks() {
    for (chunks, call) in [(1, "put"), (2, "append"), (2, "put")] {
        let (files, probe) = super::probed(MemoryStore::single_valued());
        probe.add_staging();
        let mut writer = files.open_writer(&cx(), OpenWriterRequest::new(path("/f"))).await.expect("it is opened");
        let content = vec![b'x'; chunks * STAGED_PART_BYTES - 3];
        for chunk in content.chunks(STAGED_PART_BYTES) {
            writer.write(Bytes::copy_from_slice(chunk)).await.expect("it is written");
        }
        probe.fail(Some((call, ErrorKind::Busy)));
        let error = writer.commit().await.expect_err("the store is busy");
        assert_eq!(error.kind(), ErrorKind::Busy, "{call}: {error}");
        probe.fail(None);
        assert_eq!(writer.commit().await.expect("it is repeated").size, content.len() as u64, "{call}");
        let written = files.read_text("/f").await.expect("it is there");
        assert!(written.as_bytes() == content, "{call}: {} bytes", written.len());
    }
}

/// Commits a streamed file in whose way another file is created meanwhile, and returns the error.
async fn commit_beside_another_file(is_removed: bool) -> Error {
    let store = MemoryStore::single_valued();
    let (files, probe) = super::probed(store.clone());
    probe.add_staging();
    let mut writer = files.open_writer(&cx(), OpenWriterRequest::new(path("/f"))).await.expect("it is opened");
    for _ in 0..2 {
        writer.write(Bytes::from(vec![b'x'; STAGED_PART_BYTES])).await.expect("it is written");
    }
    probe.take_all();
    let other = store.clone();
    probe.before(move |name, count| match (name, count) {
        ("put", 1) => put(&other, "/f/below", "below\n"),
        ("delete", 1) if is_removed => remove(&other, "/f/below"),
        _ => {}
    });
    let error = writer.commit().await.expect_err("another file was in its way");
    let left: &[(&str, &str)] = if is_removed { &[] } else { &[("/f/below", "below\n")] };
    assert_eq!(contents(&store).await, owned(left));
    error
}
