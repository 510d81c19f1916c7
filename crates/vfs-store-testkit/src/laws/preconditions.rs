//! Preconditions of changes of one value.

use vfs_core::{Result, Version};
use vfs_store::{ListRequest, Precondition, PutOutcome};
use vfs_testkit::LawResult;

use super::StoreTarget;
use super::law_helpers::{done, key, path, refused, value};

store_laws! { "expected":
    "SE1" Nothing a_put_is_applied_if_its_precondition_holds,
    "SE2" Nothing a_delete_is_applied_if_its_precondition_holds,
    "SE3" Nothing an_old_version_is_refused,
    "SE4" Nothing only_the_exact_version_matches,
    "SE5" Nothing a_refusal_returns_the_metadata_of_the_value,
    "SE6" Nothing putting_the_same_content_again_is_a_change,
    "SE7" Nothing a_precondition_is_about_its_path_alone,
}

/// Returns all preconditions, with whether each holds without a value and with one.
async fn table(t: &StoreTarget) -> Result<Vec<(Precondition, bool, bool)>> {
    let there = t.put("/there", "content").await?.version;
    let other = t.put("/other", "other content").await?.version;
    Ok(vec![
        (Precondition::Any, true, true),
        (Precondition::Absent, true, false),
        (Precondition::Version(there), false, true),
        (Precondition::Version(other), false, false),
        (Precondition::Version(Version::new("no version")), false, false),
    ])
}

async fn a_put_is_applied_if_its_precondition_holds(t: &StoreTarget) -> LawResult {
    for (expected, on_nothing, on_something) in table(t).await? {
        t.put("/there", "content").await?;
        // If each write has a version of its own, expect the newest one.
        let expected = newest(t, expected, on_something).await?;
        let outcome = t.store.put(&key("/there"), value("new content"), &expected).await?;
        assert_eq!(matches!(outcome, PutOutcome::Applied(_)), on_something, "{expected:?}");
        let now = if on_something { "new content" } else { "content" };
        assert_eq!(t.content("/there").await?.as_deref(), Some(now.as_bytes()), "{expected:?}");

        let outcome = t.store.put(&key("/d/new"), value("new"), &expected).await?;
        assert_eq!(matches!(outcome, PutOutcome::Applied(_)), on_nothing, "{expected:?}");
        assert_eq!(t.head("/d/new").await?.is_some(), on_nothing, "{expected:?}");
        drop(t.store.delete(&key("/d/new"), &Precondition::Any).await?);
    }
    Ok(())
}

/// Returns `expected`, or the current version of `/there` if `expected` is a version that should hold for it.
async fn newest(t: &StoreTarget, expected: Precondition, is_of_there: bool) -> Result<Precondition> {
    match expected {
        Precondition::Version(_) if is_of_there => {
            Ok(Precondition::Version(t.head("/there").await?.expect("it is there").version))
        }
        other => Ok(other),
    }
}

/// A removal of a missing value is refused under any precondition.
async fn a_delete_is_applied_if_its_precondition_holds(t: &StoreTarget) -> LawResult {
    for (expected, _, on_something) in table(t).await? {
        t.put("/there", "content").await?;
        let expected = newest(t, expected, on_something).await?;
        let outcome = t.store.delete(&key("/there"), &expected).await?;
        assert_eq!(matches!(outcome, PutOutcome::Applied(_)), on_something, "{expected:?}");
        assert_eq!(t.head("/there").await?.is_none(), on_something, "{expected:?}");
        assert_eq!(refused(t.store.delete(&key("/nowhere"), &expected).await?), None, "{expected:?}");
    }
    Ok(())
}

/// A version that a value no longer has is refused, after a change and after a removal.
async fn an_old_version_is_refused(t: &StoreTarget) -> LawResult {
    let old = Precondition::Version(t.put("/a", "one").await?.version);
    let new = t.put("/a", "two").await?;
    for _ in 0..2 {
        t.assert_same(&refused(t.store.put(&key("/a"), value("x"), &old).await?).expect("it is there"), &new, "found");
        t.assert_same(&refused(t.store.delete(&key("/a"), &old).await?).expect("it is there"), &new, "found");
    }
    done(t.store.delete(&key("/a"), &Precondition::Version(new.version.clone())).await?);
    for outdated in [old, Precondition::Version(new.version)] {
        assert_eq!(refused(t.store.put(&key("/a"), value("x"), &outdated).await?), None);
        assert_eq!(refused(t.store.delete(&key("/a"), &outdated).await?), None);
    }
    assert_eq!(t.list(ListRequest::all(path("/"))).await?.paths(), Vec::<&str>::new());
    Ok(())
}

/// A server must not interpret these texts as any version, several versions or something else.
async fn only_the_exact_version_matches(t: &StoreTarget) -> LawResult {
    let stored = t.put("/a", "content").await?;
    let version = stored.version.as_str();
    let texts = [
        String::new(),
        "*".to_owned(),
        "\"*\"".to_owned(),
        "%".to_owned(),
        "NULL".to_owned(),
        "0".to_owned(),
        format!("W/{version}"),
        format!("'{version}'"),
        format!("x, {version}"),
        format!("\"x\", \"{version}\""),
        format!("{version}, x"),
        format!("{version}\r\nx-amz-meta-a: b"),
        format!("{version}\0"),
        format!("{version} "),
        format!(" {version}"),
        format!("{version}é"),
        version[..version.len() - 1].to_owned(),
        version.repeat(50),
        "x".repeat(10_000),
    ];
    for text in texts.into_iter().filter(|text| text != version) {
        let expected = Precondition::Version(Version::new(text.as_str()));
        for path in ["/a", "/missing"] {
            let is_there = path == "/a";
            assert_eq!(
                refused(t.store.put(&key(path), value("x"), &expected).await?).is_some(),
                is_there,
                "{text:.80?}"
            );
            assert_eq!(refused(t.store.delete(&key(path), &expected).await?).is_some(), is_there, "{text:.80?}");
        }
    }
    assert_eq!(t.texts().await?, [("/a".to_owned(), "content".to_owned())]);
    Ok(())
}

/// A refusal returns the current metadata, so that a caller can retry without another read.
async fn a_refusal_returns_the_metadata_of_the_value(t: &StoreTarget) -> LawResult {
    let mut last = t.put("/a", "0").await?;
    for content in ["1", "2", "3"] {
        let found = refused(t.store.put(&key("/a"), value("x"), &Precondition::Absent).await?).expect("it is there");
        t.assert_same(&found, &last, "found");
        last = done(t.store.put(&key("/a"), value(content), &Precondition::Version(found.version)).await?);
    }
    assert_eq!(t.content("/a").await?.as_deref(), Some(&b"3"[..]));
    Ok(())
}

/// A put of the same content is a change like any other, with its times.
async fn putting_the_same_content_again_is_a_change(t: &StoreTarget) -> LawResult {
    let stored = t.put("/a", "same").await?;
    let again = value("same").created_at(super::law_helpers::moment(7));
    done(t.store.put(&key("/a"), again, &Precondition::Version(stored.version)).await?);
    assert_eq!(t.head("/a").await?.expect("it is there").created_at, Some(super::law_helpers::moment(7)));
    Ok(())
}

/// Values at paths above, below and next to the path do not count.
async fn a_precondition_is_about_its_path_alone(t: &StoreTarget) -> LawResult {
    t.put_each(&["/d/x/y", "/dx", "/d-x", "/D", "/d/x2"]).await?;
    for path in ["/d", "/d/x", "/d/x/y/z"] {
        done(t.store.put(&key(path), value("made"), &Precondition::Absent).await?);
    }
    for path in ["/d", "/d/x", "/d/x/y/z"] {
        done(t.store.delete(&key(path), &Precondition::Any).await?);
    }
    assert_eq!(t.list(ListRequest::all(path("/"))).await?.paths(), ["/D", "/d-x", "/d/x/y", "/d/x2", "/dx"]);
    Ok(())
}
