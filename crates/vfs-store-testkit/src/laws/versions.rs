//! Versions of values.

use std::collections::BTreeSet;

use vfs_store::{Key, Precondition};
use vfs_testkit::LawResult;

use super::StoreTarget;
use super::law_helpers::{done, key, namespace, noise, path, value};

store_laws! { "versions":
    "SX1" Nothing other_content_has_another_version,
    "SX2" VersionsOfContent equal_content_has_an_equal_version,
    "SX3" Nothing reading_changes_no_version,
    "SX4" Nothing versions_can_be_written_down,
}

/// Contents that differ only in one byte, at their end or in their size have different versions.
async fn other_content_has_another_version(t: &StoreTarget) -> LawResult {
    let large = noise(1_200_000, 1);
    let mut last = large.to_vec();
    *last.last_mut().expect("it is not empty") ^= 1;
    let mut middle = large.to_vec();
    middle[600_000] ^= 1;
    let longer = [&large[..], b"\0"].concat();
    let contents = [vec![], b"a".to_vec(), b"b".to_vec(), b"a\0".to_vec(), large.to_vec(), last, middle, longer];
    let mut versions = BTreeSet::new();
    for content in &contents {
        versions.insert(t.put("/a", content.clone()).await?.version);
    }
    assert_eq!(versions.len(), contents.len(), "{versions:?}");
    Ok(())
}

/// The version depends only on the content, not on earlier values, on times or on the process.
async fn equal_content_has_an_equal_version(t: &StoreTarget) -> LawResult {
    for content in [noise(0, 1), noise(10, 1), noise(1_200_000, 1)] {
        let first = t.put("/a", content.clone()).await?.version;
        t.put("/a", "something else").await?;
        assert_eq!(t.put("/a", content.clone()).await?.version, first);
        done(t.store.delete(&key("/a"), &Precondition::Any).await?);
        let later = vfs_store::NewValue::new(content.clone(), super::law_helpers::moment(999));
        assert_eq!(done(t.handle(1).put(&key("/a"), later, &Precondition::Absent).await?).version, first);
    }
    Ok(())
}

/// Neither reads nor changes of other values change a version.
async fn reading_changes_no_version(t: &StoreTarget) -> LawResult {
    let stored = t.put("/a", "here").await?;
    for n in 0..3 {
        t.put(&format!("/a/{n}"), "below").await?;
        let elsewhere = Key::new(namespace("laws"), path("/a"));
        done(t.store.put(&elsewhere, value("there"), &Precondition::Any).await?);
        assert_eq!(t.content("/a").await?.as_deref(), Some(&b"here"[..]));
        assert_eq!(t.head("/a").await?.expect("it is there").version, stored.version);
    }
    let stored = Precondition::Version(stored.version);
    done(t.store.put(&key("/a"), value("new"), &stored).await?);
    Ok(())
}

/// A version is a short text without control characters, which callers put into files and messages.
async fn versions_can_be_written_down(t: &StoreTarget) -> LawResult {
    for content in [noise(0, 1), noise(100, 2), noise(1_200_000, 3)] {
        let version = t.put("/a", content).await?.version;
        let text = version.as_str();
        assert!((1..=256).contains(&text.len()) && !text.contains(char::is_control), "{text:?}");
    }
    Ok(())
}
