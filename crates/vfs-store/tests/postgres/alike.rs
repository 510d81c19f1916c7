//! It does what the store in memory does.

use bytes::Bytes;
use fastrand::Rng;
use vfs_store::{
    BatchStore, Condition, Inspect, Key, ListDepth, ListRequest, MemoryStore, NewValue, Page, PostgresStore,
    Precondition, Sequence, Store, StoreChangeLog, StoredMeta, Write,
};

use crate::lab::{in_lab, key, namespace, path, value};

/// Paths of which some are below others, and some sort between a directory and what is in it.
const PATHS: [&str; 12] =
    ["/a", "/a/b", "/a/b/c", "/a/b/d", "/a-b", "/a-b/c", "/a.txt", "/a/b!/x", "/z", "/z/z/z/z", "/0", "/ä/ö"];

fn a_path(rng: &mut Rng) -> vfs_core::VfsPath {
    path(PATHS[rng.usize(..PATHS.len())])
}

fn a_value(rng: &mut Rng) -> NewValue {
    let at =
        chrono::DateTime::from_timestamp(rng.i64(-1_000_000..2_000_000_000), rng.u32(..1_000_000_000)).expect("a time");
    let content = Bytes::from(vec![b'x'; rng.usize(..4)]);
    NewValue::new(content, at).created_at(at - chrono::TimeDelta::nanoseconds(1_234_567_891))
}

fn an_expectation(rng: &mut Rng, versions: &[StoredMeta]) -> Precondition {
    match rng.u8(..4) {
        0 => Precondition::Absent,
        1 if !versions.is_empty() => Precondition::Version(versions[rng.usize(..versions.len())].version.clone()),
        _ => Precondition::Any,
    }
}

fn a_write(rng: &mut Rng) -> Write {
    match rng.u8(..6) {
        0 => Write::Delete(a_path(rng)),
        1 => Write::Move { from: a_path(rng), to: a_path(rng) },
        2 => Write::Copy { from: a_path(rng), to: a_path(rng), at: a_value(rng).modified_at },
        _ => Write::Put(a_path(rng), a_value(rng)),
    }
}

fn a_condition(rng: &mut Rng, versions: &[StoredMeta]) -> Condition {
    match rng.u8(..3) {
        0 => Condition::NothingBelow(if rng.u8(..8) == 0 { path("/") } else { a_path(rng) }),
        _ => Condition::At(a_path(rng), an_expectation(rng, versions)),
    }
}

async fn all_pages(store: &dyn Store, request: ListRequest) -> Page {
    let mut all = Page::default();
    let mut from = None;
    loop {
        let mut asked = request.clone();
        asked.from = from;
        let page = store.list(&namespace(), &asked).await.expect("a page");
        assert!(page.entries.len() + page.directories.len() <= request.limit);
        assert!(page.entries.is_sorted_by_key(|entry| &entry.path) && page.directories.is_sorted());
        all.entries.extend(page.entries);
        all.directories.extend(page.directories);
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    assert!(request.depth == ListDepth::Level || all.entries.is_sorted_by_key(|entry| &entry.path));
    all.entries.sort_by(|a, b| a.path.cmp(&b.path));
    all.directories.sort();
    all
}

async fn compare(postgres: &PostgresStore, memory: &MemoryStore, rng: &mut Rng) {
    for below in ["/", "/a", "/a/b", "/z", "/none"] {
        for request in [ListRequest::all(path(below)), ListRequest::level(path(below))] {
            let request = request.limit(rng.usize(1..6));
            let (ours, theirs) = (all_pages(postgres, request.clone()).await, all_pages(memory, request.clone()).await);
            assert_eq!(ours, theirs, "{request:?}");
        }
    }
    for text in PATHS {
        let range = (rng.bool()).then(|| rng.u64(..3)..rng.u64(..5));
        let key = key(text);
        assert_eq!(postgres.head(&key).await, memory.head(&key).await);
        assert_eq!(postgres.get(&key, range.clone()).await, memory.get(&key, range.clone()).await, "{text} {range:?}");
    }
    let seen = Sequence(rng.u64(..20));
    let limit = rng.usize(1..50);
    assert_eq!(postgres.since(&namespace(), seen, limit).await, memory.since(&namespace(), seen, limit).await);
    assert_eq!(postgres.last_sequence(&namespace()).await, memory.last_sequence(&namespace()).await);
    assert_eq!(postgres.namespaces().await, memory.namespaces().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn random_changes_have_the_same_outcomes() {
    in_lab(async |lab| {
        let (postgres, memory) = (lab.store().await, MemoryStore::new());
        let mut rng = Rng::with_seed(7);
        let mut versions = Vec::new();
        for round in 0..400 {
            let at = a_path(&mut rng);
            let key = Key::new(namespace(), at.clone());
            let expected = an_expectation(&mut rng, &versions);
            match rng.u8(..4) {
                0 => assert_eq!(postgres.delete(&key, &expected).await, memory.delete(&key, &expected).await),
                1 => {
                    let value = a_value(&mut rng);
                    let ours = postgres.put(&key, value.clone(), &expected).await;
                    assert_eq!(ours, memory.put(&key, value, &expected).await, "{key:?}");
                    if let Ok(vfs_store::PutOutcome::Applied(stored)) = ours {
                        versions.push(stored);
                    }
                }
                _ => {
                    let conditions: Vec<_> = (0..rng.usize(..3)).map(|_| a_condition(&mut rng, &versions)).collect();
                    let writes: Vec<_> = (0..rng.usize(..6)).map(|_| a_write(&mut rng)).collect();
                    let ours = postgres.batch(&namespace(), &conditions, writes.clone()).await;
                    let theirs = memory.batch(&namespace(), &conditions, writes.clone()).await;
                    assert_eq!(ours, theirs, "{conditions:?} {writes:?}");
                }
            }
            if round % 20 == 0 {
                compare(&postgres, &memory, &mut rng).await;
            }
        }
        compare(&postgres, &memory, &mut rng).await;
        assert_eq!(postgres.check().await.expect("it can be checked").problems, []);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_values_come_back_whole_and_in_parts() {
    in_lab(async |lab| {
        let store = lab.store().await;
        let mut rng = Rng::with_seed(3);
        for size in [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5_000_000] {
            let content: Bytes = std::iter::repeat_with(|| rng.u8(..)).take(size).collect();
            let key = key(&format!("/large/{size}"));
            let _ = store.put(&key, value(content.clone()), &Precondition::Absent).await.expect("it is put");
            let size = size as u64;
            let mut ranges =
                vec![None, Some(0..0), Some(0..u64::MAX), Some(u64::MAX - 1..u64::MAX), Some(size..size + 9)];
            #[expect(clippy::reversed_empty_ranges, reason = "a range that ends before it begins is empty")]
            ranges.push(Some(7..3));
            ranges.extend((0..12).map(|_| Some(rng.u64(..=size)..rng.u64(..=size + 5))));
            ranges.extend([Some((1 << 20) - 2..(1 << 20) + 2), Some(1 << 20..2 << 20), Some(0..1)]);
            for range in ranges {
                let found = store.get(&key, range.clone()).await.expect("it is got").expect("it is there");
                let cut = |at: u64| at.min(size) as usize;
                let wanted = range.map_or(0..cut(size), |range| cut(range.start)..cut(range.end));
                let wanted = wanted.start..wanted.end.max(wanted.start);
                assert_eq!(found.content, content.slice(wanted));
                assert_eq!(found.stored.size, size);
            }
        }
        // A batch of more than goes with the change itself, of which one is moved and one copied before the end.
        let writes = (0..40).map(|n| Write::Put(path(&format!("/many/{n}")), value(vec![n; 1 << 20]))).chain([
            Write::Copy { from: path("/many/39"), to: path("/copied"), at: chrono::Utc::now() },
            Write::Move { from: path("/many/38"), to: path("/moved") },
            Write::Delete(path("/many/37")),
        ]);
        let _ = store.batch(&namespace(), &[], writes.collect()).await.expect("it is made");
        for (text, byte) in [("/copied", 39), ("/moved", 38), ("/many/0", 0), ("/many/39", 39)] {
            let found = store.get(&key(text), None).await.expect("it is got").expect("it is there");
            assert!(found.content.len() == 1 << 20 && found.content.iter().all(|found| *found == byte), "{text}");
        }
        let refused = store.put(&key("/large/5000000"), value(vec![0; 3 << 20]), &Precondition::Absent).await;
        assert!(matches!(refused, Ok(vfs_store::PutOutcome::PreconditionFailed(Some(_)))), "{refused:?}");
        let report = store.check().await.expect("it can be checked");
        assert_eq!((report.problems, report.files), (vec![], 6 + 40));
        let stats = store.stats().await.expect("it is counted");
        assert_eq!((stats.namespaces, stats.files, stats.bytes), (1, 46, report.bytes));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_over_a_limit_is_refused() {
    in_lab(async |lab| {
        let store = lab.store().await;
        let limits = store.capabilities();
        // Letters that nothing can press together, so that an entry of an index is as long as it gets.
        let mut rng = Rng::with_seed(1);
        let mut component = || std::iter::repeat_with(|| rng.alphanumeric()).take(255).collect::<String>();
        let mut longest: String = (0..8).map(|_| format!("/{}", component())).collect();
        assert_eq!(longest.len(), limits.max_path);
        let _ = store.put(&key(&longest), value("x"), &Precondition::Absent).await.expect("it fits");
        assert_eq!(store.list(&namespace(), &ListRequest::all(path("/"))).await.expect("a page").entries.len(), 1);
        longest.truncate(limits.max_path - 1);
        longest.push_str("/x");
        let error = store.put(&key(&longest), value("x"), &Precondition::Absent).await.expect_err("too long");
        assert_eq!(error.kind(), vfs_core::ErrorKind::InvalidPath);
        let huge = value(vec![0; limits.max_value as usize + 1]);
        let error = store.put(&key("/huge"), huge, &Precondition::Absent).await.expect_err("too large");
        assert_eq!(error.kind(), vfs_core::ErrorKind::TooLarge);
    })
    .await;
}
