//! Concurrent changes through independent handles, as of several processes.

use std::sync::Arc;

use futures::future::join_all;
use vfs_core::{Backend, BackendExt, ErrorKind, WriteMode, WriteRequest};

use super::{Probe, cx, path};
use crate::{MemoryStore, StoreBackend};

/// Returns backends over one store, each as if in a process of its own.
fn processes(store: &MemoryStore, count: usize) -> Vec<StoreBackend<Arc<Probe>>> {
    (0..count).map(|_| StoreBackend::new(Arc::new(Probe::new(store.clone())))).collect()
}

fn stores() -> [MemoryStore; 2] {
    [MemoryStore::new(), MemoryStore::single_valued()]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_edit_of_a_file_is_lost() {
    for store in stores() {
        let processes = processes(&store, 4);
        let lines: Vec<_> = (0..64).map(|n| format!("line {n}.\n")).collect();
        processes[0].create_text("/f", &lines.concat()).await.expect("it is new");
        let edits = (0..64).map(|n| {
            let files = processes[n % 4].clone();
            tokio::spawn(async move { files.edit_text("/f", &format!("line {n}."), &format!("done {n}.")).await })
        });
        for edit in join_all(edits).await {
            edit.expect("no panic").expect("every edit is made");
        }
        let expected: Vec<_> = (0..64).map(|n| format!("done {n}.\n")).collect();
        assert_eq!(processes[1].read_text("/f").await.expect("it is there"), expected.concat());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_append_is_stored_once() {
    for store in stores() {
        let processes = processes(&store, 4);
        let appends = (0..64).map(|n| {
            let files = processes[n % 4].clone();
            tokio::spawn(async move { files.append_text("/log", &format!("{n}\n")).await })
        });
        let created = join_all(appends).await.into_iter().map(|append| append.expect("no panic").expect("it is made"));
        assert_eq!(created.filter(|result| result.created).count(), 1);
        let text = processes[0].read_text("/log").await.expect("it is there");
        let mut numbers: Vec<u32> = text.lines().map(|line| line.parse().expect("a whole line")).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..64).collect::<Vec<_>>());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_and_a_directory_never_share_a_path() {
    for store in stores() {
        let can_batch = crate::Store::as_batch(&store).is_some();
        let processes = processes(&store, 2);
        for round in 0..60 {
            let (file, below) = (format!("/{round}/a"), format!("/{round}/a/b"));
            let write = |files: &StoreBackend<Arc<Probe>>, to: &str, mode: &WriteMode| {
                let (files, request) = (files.clone(), WriteRequest::new(path(to), "x").mode(mode.clone()));
                tokio::spawn(async move { files.write(&cx(), request).await })
            };
            let mode = [WriteMode::CreateNew, WriteMode::Overwrite, WriteMode::Append][round % 3].clone();
            let (one, other) = futures::join!(write(&processes[0], &file, &mode), write(&processes[1], &below, &mode));
            let (one, other) = (one.expect("no panic"), other.expect("no panic"));
            let made = [one.is_ok(), other.is_ok()];
            assert_ne!(made, [true, true], "{round}");
            assert!(!can_batch || made != [false, false], "{round}: one of them is first");
            for (result, kind) in [(one, ErrorKind::IsADirectory), (other, ErrorKind::NotADirectory)] {
                if let Err(error) = result {
                    assert!(error.kind() == kind || error.kind() == ErrorKind::Busy || !can_batch, "{round}: {error}");
                }
            }
            let is_there = |at: String| {
                let files = processes[0].clone();
                async move { crate::Store::head(files.store(), &files_key(&at)).await.expect("memory is there").is_some() }
            };
            assert_eq!(
                [is_there(file).await, is_there(below).await],
                made,
                "{round}: the results match the stored files"
            );
        }
    }
}

fn files_key(at: &str) -> crate::Key {
    crate::Key::new(crate::Namespace::default(), path(at))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_creators_in_many_processes_wins() {
    for store in stores() {
        let processes = processes(&store, 4);
        let creators = (0..32).map(|n| {
            let files = processes[n % 4].clone();
            tokio::spawn(async move { files.create_text("/d/f", &n.to_string()).await })
        });
        let outcomes: Vec<_> = join_all(creators).await.into_iter().map(|made| made.expect("no panic")).collect();
        assert_eq!(outcomes.iter().filter(|made| made.is_ok()).count(), 1);
        let kinds: Vec<_> = outcomes.iter().filter_map(|made| made.as_ref().err()).map(|error| error.kind()).collect();
        assert!(kinds.iter().all(|kind| *kind == ErrorKind::AlreadyExists), "{kinds:?}");
    }
}
