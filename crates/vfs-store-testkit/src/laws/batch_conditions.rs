//! Conditions of batches.

use vfs_core::Version;
use vfs_store::Precondition;
use vfs_testkit::LawResult;

use super::StoreTarget;
use super::law_helpers::{all_done, all_refused, at, delete, nothing_below, path, put, rename};

store_laws! { "conditions":
    "SD1" Batch each_condition_holds_or_refuses,
    "SD2" Batch nothing_below_covers_only_paths_below,
    "SD3" Batch conditions_are_checked_before_the_first_write,
    "SD4" Batch the_first_failed_condition_is_reported,
    "SD5" Batch the_same_path_may_be_named_again,
}

/// The path of a condition need not be one that the batch writes.
async fn each_condition_holds_or_refuses(t: &StoreTarget) -> LawResult {
    let there = t.put("/there", "content").await?;
    let other = t.put("/other", "other").await?;
    let (v, w) = (there.version.clone(), other.version.clone());
    let table = [
        ("/there", Precondition::Any, true),
        ("/there", Precondition::Absent, false),
        ("/there", Precondition::Version(v.clone()), true),
        ("/there", Precondition::Version(w), false),
        ("/there", Precondition::Version(Version::new("*")), false),
        ("/nowhere", Precondition::Any, true),
        ("/nowhere", Precondition::Absent, true),
        ("/nowhere", Precondition::Version(v.clone()), false),
        ("/there/below", Precondition::Absent, true),
        ("/there/below", Precondition::Version(v), false),
    ];
    for (n, (of, expected, holds)) in table.into_iter().enumerate() {
        let new = format!("/new/{n}");
        let outcome = t.batch(&[at(of, expected.clone())], vec![put(&new, "x")]).await?;
        if holds {
            all_done(outcome);
        } else {
            let (path, found) = all_refused(outcome);
            assert_eq!(path.as_str(), of);
            assert_eq!(found.is_some(), of == "/there", "{expected:?}");
            found.iter().for_each(|found| t.assert_same(found, &there, "found"));
        }
        assert_eq!(t.head(&new).await?.is_some(), holds, "{of} {expected:?}");
    }
    Ok(())
}

/// Neither the value at the path itself counts, nor paths that only share its beginning.
async fn nothing_below_covers_only_paths_below(t: &StoreTarget) -> LawResult {
    t.put_each(&[
        "/d", "/dx/a", "/d-/a", "/d.a", "/d0/a", "/D/a", "/e/f/g", "/a_b", "/axb/c", "/%/y", "/p/q", "/p/q/r",
    ])
    .await?;
    for (below, holds) in [
        ("/d", true),
        ("/nowhere", true),
        ("/e", false),
        ("/e/f", false),
        ("/e/f/g", true),
        ("/", false),
        ("/a_b", true),
        ("/a%", true),
        ("/%", false),
        ("/_", true),
        ("/p/q", false),
        ("/p/q/r", true),
        ("/dx/a", true),
        ("/é", true),
    ] {
        let outcome = t.batch(&[nothing_below(below)], vec![]).await?;
        if holds {
            all_done(outcome);
        } else {
            let (at, found) = all_refused(outcome);
            assert_eq!(at, path(below));
            assert_eq!(found.is_some(), below == "/p/q", "the value at {below} itself");
        }
    }
    Ok(())
}

/// The writes of the batch itself do not affect its conditions.
async fn conditions_are_checked_before_the_first_write(t: &StoreTarget) -> LawResult {
    t.put("/a", "a").await?;
    let writes = vec![put("/b", "1"), put("/b", "2"), put("/d/x", "x"), rename("/a", "/d/a")];
    all_done(
        t.batch(&[at("/b", Precondition::Absent), nothing_below("/d"), at("/d/a", Precondition::Absent)], writes)
            .await?,
    );
    let before = t.state().await?;
    all_refused(t.batch(&[at("/b", Precondition::Absent)], vec![delete("/b")]).await?);
    all_refused(t.batch(&[nothing_below("/d")], vec![delete("/d/x"), delete("/d/a")]).await?);
    assert_eq!(t.state().await?, before);
    Ok(())
}

/// A failed condition is reported before a write whose source is missing.
async fn the_first_failed_condition_is_reported(t: &StoreTarget) -> LawResult {
    t.put_each(&["/a", "/b", "/d/x"]).await?;
    let wrong = [at("/a", Precondition::Absent), at("/b", Precondition::Absent), nothing_below("/d")];
    for (first, refused) in [(0, "/a"), (1, "/b"), (2, "/d")] {
        let mut conditions = vec![at("/c", Precondition::Absent), at("/a", Precondition::Any), nothing_below("/c")];
        conditions.extend(wrong.iter().cycle().skip(first).take(3).cloned());
        let (path, found) = all_refused(t.batch(&conditions, vec![delete("/nowhere")]).await?);
        assert_eq!((path.as_str(), found.is_some()), (refused, refused != "/d"));
    }
    Ok(())
}

/// One path can have several conditions of both kinds, also contradictory ones.
async fn the_same_path_may_be_named_again(t: &StoreTarget) -> LawResult {
    let stored = t.put("/a", "a").await?;
    let version = || Precondition::Version(stored.version.clone());
    let holds = [
        at("/a", version()),
        at("/a", Precondition::Any),
        at("/a", version()),
        nothing_below("/a"),
        nothing_below("/a"),
    ];
    all_done(t.batch(&holds, vec![put("/b", "b")]).await?);
    all_refused(t.batch(&[at("/a", version()), at("/a", Precondition::Absent)], vec![put("/c", "c")]).await?);
    assert_eq!(t.head("/c").await?, None);
    Ok(())
}
