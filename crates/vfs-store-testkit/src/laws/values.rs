//! Reads and writes of values.

use std::ops::Range;

use bytes::Bytes;
use vfs_core::ErrorKind;
use vfs_store::{ListRequest, Precondition, TransactionSupport};
use vfs_testkit::LawResult;

use super::StoreTarget;
use super::law_helpers::{delete, done, home, key, moment, namespace, noise, path, put, refused, value};
use crate::target::MAX_SMALL_VALUE;

store_laws! { "values":
    "SV1" Nothing any_bytes_of_any_size_come_back,
    "SV2" Nothing every_operation_returns_the_same_metadata,
    "SV3" Nothing a_missing_value_is_none,
    "SV4" Nothing a_range_is_cut_at_the_end,
    "SV5" Nothing a_range_of_a_large_value_has_its_bytes,
    "SV6" Nothing a_value_is_replaced_whole,
    "SV7" Nothing a_deleted_value_is_absent_and_can_be_put_again,
    "SV8" SmallValues a_value_over_the_limit_is_refused,
    "SV9" Nothing capabilities_match_the_store,
    "SV10" Nothing stat_of_many_paths_agrees_with_each,
    "SV11" Nothing reading_many_values_agrees_with_reading_each,
}

const MIB: usize = 1 << 20;

fn limit_of(t: &StoreTarget) -> usize {
    usize::try_from(t.store.capabilities().max_value).unwrap_or(usize::MAX)
}

/// Contents of every kind: empty, text, every byte value, line ends and NULs, and sizes around those at which stores
/// split.
async fn any_bytes_of_any_size_come_back(t: &StoreTarget) -> LawResult {
    let mut contents: Vec<Bytes> = vec![
        Bytes::new(),
        Bytes::from_static(b"\0"),
        Bytes::from_static(b"a"),
        Bytes::from_static(b"line\r\nline\n\n"),
        Bytes::from_static(b"\xff\xfe\xc3\x28\xed\xa0\x80"),
        Bytes::from_static("\u{feff}na\u{ef}ve \u{1f600}'\"\\%_\u{0}".as_bytes()),
        (0..=255).collect::<Vec<u8>>().into(),
    ];
    let sizes = [4095, 4096, 65_535, 65_536, 65_537, 262_144, MIB - 1, MIB, MIB + 1, 5 * MIB];
    contents.extend(sizes.iter().zip(1..).map(|(size, seed)| noise(*size, seed)));
    contents.push(Bytes::from(vec![0; MIB + 1]));
    contents.retain(|content| content.len() <= limit_of(t));
    for (n, content) in contents.iter().enumerate() {
        let stored = t.put(&format!("/d/{n}"), content.clone()).await?;
        assert_eq!(stored.size, content.len() as u64);
    }
    for (n, content) in contents.iter().enumerate() {
        let found = t.content(&format!("/d/{n}")).await?;
        assert!(found.as_ref() == Some(content), "{} bytes are not what was put", content.len());
    }
    Ok(())
}

/// The result of a change, `head`, `get` whole and in part, and a listing agree on size, version and times.
async fn every_operation_returns_the_same_metadata(t: &StoreTarget) -> LawResult {
    for (n, size) in [0, 1, 70_000, MIB + 1].into_iter().enumerate() {
        let at = format!("/d/{n}");
        let stored = t.put(&at, noise(size, 7)).await?;
        let head = t.head(&at).await?.expect("it is there");
        t.assert_same(&stored, &head, "put and head");
        for range in [None, Some(0..1), Some(0..0), Some(5..u64::MAX)] {
            let got = t.store.get(&key(&at), range.clone()).await?.expect("it is there");
            assert_eq!(got.stored, head, "get {range:?} and head");
        }
        let listing = t.list(ListRequest::level(path("/d"))).await?;
        let entry = listing.entries.iter().find(|entry| entry.path == path(&at)).expect("it is listed");
        t.assert_same(&entry.stored, &head, "list and head");
        let found = refused(t.store.put(&key(&at), value("x"), &Precondition::Absent).await?);
        t.assert_same(&found.expect("it is there"), &head, "a refusal and head");
    }
    Ok(())
}

/// A directory is not a value, and neither is a missing path next to or below a value.
async fn a_missing_value_is_none(t: &StoreTarget) -> LawResult {
    let missing = ["/a", "/d", "/d/x", "/d/x/y/z", "/d/", "/D/X/Y", "/d/x/y2", "/d/x/"];
    t.put("/d/x/y", "here").await?;
    for at in missing {
        assert_eq!(t.head(at).await?, None, "{at}");
        assert_eq!(t.store.get(&key(at), None).await?, None, "{at}");
        assert_eq!(t.store.get(&key(at), Some(0..10)).await?, None, "{at}");
        assert_eq!(refused(t.store.delete(&key(at), &Precondition::Any).await?), None, "{at}");
    }
    assert_eq!(t.content("/d/x/y").await?.as_deref(), Some(&b"here"[..]));
    Ok(())
}

/// Values, directories, both at one path, neither, the root, one path twice, and names with a meaning to some stores.
async fn stat_of_many_paths_agrees_with_each(t: &StoreTarget) -> LawResult {
    t.put_each(&["/a", "/d/x", "/d/y/z", "/d-e", "/d.e/f", "/%", "/_", "/both", "/both/below"]).await?;
    let texts = [
        "/",
        "/a",
        "/d",
        "/d/x",
        "/d/y",
        "/d/y/z",
        "/d-e",
        "/d.e",
        "/e",
        "/d/x/below",
        "/%",
        "/_",
        "/b",
        "/both",
        "/D",
        "/a",
        "/both/below",
        "/none/at/all",
    ];
    let paths: Vec<_> = texts.iter().map(|text| path(text)).collect();
    let stats = t.store.stat_many(&home(), &paths).await?;
    assert_eq!(stats.len(), paths.len());
    for (at, stat) in paths.iter().zip(stats) {
        let stored = if at.is_root() { None } else { t.head(at.as_str()).await? };
        assert_eq!(stat.stored, stored, "{at}");
        let below = t.list(ListRequest::level(at.clone())).await?;
        assert_eq!(stat.has_below, !(below.entries.is_empty() && below.directories.is_empty()), "{at}");
    }
    assert_eq!(t.store.stat_many(&home(), &[]).await?, []);
    let elsewhere = t.store.stat_many(&namespace("nobody/here"), &paths).await?;
    assert!(elsewhere.iter().all(|stat| stat.stored.is_none() && !stat.has_below), "{elsewhere:?}");
    Ok(())
}

async fn reading_many_values_agrees_with_reading_each(t: &StoreTarget) -> LawResult {
    let sizes = [0, 1, 1000, 4095, 4096, 65_535, 65_536, 65_537, 100_000];
    for (size, seed) in sizes.iter().zip(1..).filter(|(size, _)| **size <= limit_of(t)) {
        t.put(&format!("/d/{size}"), noise(*size, seed)).await?;
    }
    let missing = ["/d", "/d/2", "/", "/d/1/below"].into_iter().map(path);
    let paths: Vec<_> = sizes.iter().map(|size| path(&format!("/d/{size}"))).chain(missing).collect();
    for max_size in [0, 1, 4096, 65_536] {
        let values = t.store.get_many(&home(), &paths, max_size).await?;
        assert_eq!(values.len(), paths.len());
        for (at, value) in paths.iter().zip(values) {
            let single = if at.is_root() { None } else { t.store.get(&key(at.as_str()), None).await? };
            assert_eq!(value, single.filter(|value| value.stored.size <= max_size), "{at} of at most {max_size} bytes");
        }
    }
    assert_eq!(t.store.get_many(&home(), &[], 1).await?, []);
    Ok(())
}

fn part<'a>(content: &'a Bytes, range: &Range<u64>) -> &'a [u8] {
    let cut = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(content.len());
    content.get(cut(range.start)..cut(range.end)).unwrap_or_default()
}

/// The range is inside the content, across its end, at its end, beyond it, empty, or ends before its start.
async fn a_range_is_cut_at_the_end(t: &StoreTarget) -> LawResult {
    const PLACES: [u64; 9] = [0, 1, 3, 9, 10, 11, 100, u64::MAX - 1, u64::MAX];
    for content in ["0123456789", ""] {
        let content = Bytes::from(content);
        t.put("/a", content.clone()).await?;
        for (start, end) in PLACES.into_iter().flat_map(|start| PLACES.map(|end| (start, end))) {
            let got = t.store.get(&key("/a"), Some(start..end)).await?.expect("it is there");
            assert_eq!(&got.content[..], part(&content, &(start..end)), "{start}..{end} of {content:?}");
            assert_eq!(got.stored.size, content.len() as u64, "the size is that of the whole");
        }
    }
    Ok(())
}

/// Ranges at and across the offsets at which stores split large values, and at random offsets.
async fn a_range_of_a_large_value_has_its_bytes(t: &StoreTarget) -> LawResult {
    let content = noise((5 * MIB / 2).min(limit_of(t)), 11);
    let size = content.len() as u64;
    t.put("/a", content.clone()).await?;
    let edges = [65_536_u64, 131_072, 262_144, 524_288, 1 << 20, 2 << 20, size];
    let mut ranges: Vec<_> = edges
        .iter()
        .flat_map(|edge| [edge - 1..edge + 1, *edge..edge + 1, edge - 1..*edge, edge - 3..edge + 9])
        .collect();
    ranges.extend([0..size, 1..size - 1, 0..1 << 20, 1 << 20..2 << 20, size - 1..u64::MAX, size..size + 1]);
    let mut random = fastrand::Rng::with_seed(5);
    ranges.extend((0..30).map(|_| random.u64(0..size)..random.u64(0..size + 100)));
    for range in ranges {
        let got = t.store.get(&key("/a"), Some(range.clone())).await?.expect("it is there");
        assert!(got.content == part(&content, &range), "{range:?}: {} bytes, not those", got.content.len());
    }
    Ok(())
}

/// A shorter value that replaces a longer one has none of its bytes, and a longer one that replaces a shorter one is
/// complete.
async fn a_value_is_replaced_whole(t: &StoreTarget) -> LawResult {
    for (seed, size) in [(1, MIB + 1), (2, 10), (3, 3 * MIB), (4, 0), (5, 200_000), (6, 1)] {
        let content = noise(size.min(limit_of(t)), seed);
        let stored = t.put("/a", content.clone()).await?;
        t.assert_same(&stored, &t.head("/a").await?.expect("it is there"), "put and head");
        assert!(t.content("/a").await?.as_ref() == Some(&content), "{size} bytes");
    }
    assert_eq!(t.list(ListRequest::all(path("/"))).await?.paths(), ["/a"]);
    Ok(())
}

/// A removal returns the removed value, and a new value has nothing of the old one.
async fn a_deleted_value_is_absent_and_can_be_put_again(t: &StoreTarget) -> LawResult {
    let first = t.put("/d/a", noise(MIB + 1, 3)).await?;
    t.assert_same(&done(t.store.delete(&key("/d/a"), &Precondition::Any).await?), &first, "what was there");
    assert_eq!((t.head("/d/a").await?, t.content("/d/a").await?), (None, None));
    assert_eq!(t.list(ListRequest::all(path("/"))).await?.paths(), Vec::<&str>::new());
    assert_eq!(t.list(ListRequest::level(path("/"))).await?.folders(), Vec::<&str>::new());
    let later = value("again").created_at(moment(5));
    done(t.store.put(&key("/d/a"), later, &Precondition::Absent).await?);
    assert_eq!(t.head("/d/a").await?.expect("it is there").created_at, Some(moment(5)));
    assert_eq!(t.content("/d/a").await?.as_deref(), Some(&b"again"[..]));
    Ok(())
}

/// A value of exactly the limit can be put. One byte more is `too_large`, and the previous value stays.
async fn a_value_over_the_limit_is_refused(t: &StoreTarget) -> LawResult {
    let limit = limit_of(t);
    assert!(limit as u64 <= MAX_SMALL_VALUE, "the law needs a small limit");
    t.put("/a", noise(limit, 1)).await?;
    let before = t.state().await?;
    let large = value(noise(limit + 1, 1));
    for expected in [Precondition::Any, Precondition::Absent] {
        let error = t.store.put(&key("/a"), large.clone(), &expected).await.expect_err("it is too large");
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error:?}");
    }
    if t.store.as_batch().is_some() {
        let writes = vec![put("/b", "small"), delete("/a"), vfs_store::Write::Put(path("/c"), large)];
        let error = t.batch(&[], writes).await.expect_err("it is too large");
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error:?}");
    }
    assert_eq!(t.state().await?, before);
    Ok(())
}

/// A store has batches if and only if its capabilities say so. Its limits are reasonable, and its `Display` text is
/// short.
async fn capabilities_match_the_store(t: &StoreTarget) -> LawResult {
    let capabilities = t.store.capabilities();
    assert_eq!(t.store.as_batch().is_some(), capabilities.transactions == TransactionSupport::Namespace);
    assert!(capabilities.max_value >= 1 << 20, "a store can have values of a MiB");
    assert!(capabilities.max_path >= 255, "a store can have paths of 255 bytes");
    assert!((1..200).contains(&t.store.to_string().len()), "{}", t.store);
    Ok(())
}
