//! Moves and copies.

use vfs_store::{ListRequest, Precondition};
use vfs_testkit::LawResult;

use super::StoreTarget;
use super::law_helpers::{all_done, at, copy, delete, moment, noise, path, put, rename};

store_laws! { "moves":
    "SM1" Batch a_move_keeps_the_content_and_the_metadata,
    "SM2" Batch a_copy_has_the_times_of_its_creation,
    "SM3" Batch a_move_onto_itself_changes_nothing,
    "SM4" Batch a_copy_onto_itself_keeps_the_content,
    "SM5" Batch two_values_are_swapped_through_a_third_path,
    "SM6" Batch the_value_at_the_new_path_is_replaced,
    "SM7" Batch a_value_moves_below_itself_and_back,
    "SM8" Batch a_copy_is_a_value_of_its_own,
}

/// The moved value has the same content, size, version and times.
async fn a_move_keeps_the_content_and_the_metadata(t: &StoreTarget) -> LawResult {
    for size in [0, 10, 1_200_000] {
        t.put("/a", noise(size, 1)).await?;
        let before = t.store.get(&super::law_helpers::key("/a"), None).await?.expect("it is there");
        let results = all_done(
            t.batch(&[at("/a", Precondition::Version(before.stored.version.clone()))], vec![rename("/a", "/d/b")])
                .await?,
        );
        t.assert_same(&results[0], &before.stored, "the result");
        let after = t.store.get(&super::law_helpers::key("/d/b"), None).await?.expect("it is there");
        assert!(before == after, "{:?} became {:?}", before.stored, after.stored);
        assert_eq!((t.head("/a").await?, t.list(ListRequest::all(path("/"))).await?.paths()), (None, vec!["/d/b"]));
    }
    Ok(())
}

/// A copy has the content of its source, and the time of the copy.
async fn a_copy_has_the_times_of_its_creation(t: &StoreTarget) -> LawResult {
    for size in [0, 10, 1_200_000] {
        let source = t.put("/a", noise(size, 1)).await?;
        all_done(t.batch(&[], vec![copy("/a", "/d/b")]).await?);
        let copied = t.head("/d/b").await?.expect("it is there");
        assert_eq!(
            (copied.size, copied.created_at, copied.modified_at),
            (source.size, Some(moment(3600)), moment(3600))
        );
        assert!(t.content("/d/b").await? == Some(noise(size, 1)), "{size} bytes");
        t.assert_same(&t.head("/a").await?.expect("it is there"), &source, "the source");
    }
    Ok(())
}

async fn a_move_onto_itself_changes_nothing(t: &StoreTarget) -> LawResult {
    t.put_each(&["/a", "/b"]).await?;
    let before = t.state().await?;
    let results = all_done(t.batch(&[], vec![rename("/a", "/a")]).await?);
    assert_eq!((results.len(), results[0].size), (1, 2));
    assert_eq!(t.state().await?, before);
    Ok(())
}

async fn a_copy_onto_itself_keeps_the_content(t: &StoreTarget) -> LawResult {
    for content in [noise(10, 1), noise(1_200_000, 2)] {
        t.put("/a", content.clone()).await?;
        let results = all_done(t.batch(&[], vec![copy("/a", "/a")]).await?);
        assert_eq!((results.len(), results[0].size), (1, content.len() as u64));
        assert!(t.content("/a").await? == Some(content), "another content");
        assert_eq!(t.head("/a").await?.expect("it is there").created_at, Some(moment(3600)));
    }
    Ok(())
}

async fn two_values_are_swapped_through_a_third_path(t: &StoreTarget) -> LawResult {
    let a = t.put("/a", "content of a").await?;
    let b = t.put("/b", "b").await?;
    all_done(
        t.batch(&[at("/t", Precondition::Absent)], vec![rename("/a", "/t"), rename("/b", "/a"), rename("/t", "/b")])
            .await?,
    );
    t.assert_same(&t.head("/a").await?.expect("it is there"), &b, "swapped");
    t.assert_same(&t.head("/b").await?.expect("it is there"), &a, "swapped");
    let expected = [("/a", "b"), ("/b", "content of a")];
    assert_eq!(t.texts().await?, expected.map(|(at, text)| (at.to_owned(), text.to_owned())));
    Ok(())
}

/// Nothing is left of the replaced value, whatever the sizes of both.
async fn the_value_at_the_new_path_is_replaced(t: &StoreTarget) -> LawResult {
    for (from, to) in [(10, 1_200_000), (1_200_000, 10), (0, 10), (2_500_000, 1_200_000)] {
        for write in [rename("/a", "/b"), copy("/a", "/b")] {
            t.put("/a", noise(from, 1)).await?;
            t.put("/b", noise(to, 2)).await?;
            all_done(t.batch(&[], vec![write]).await?);
            assert!(t.content("/b").await? == Some(noise(from, 1)), "{from} bytes over {to}");
        }
    }
    Ok(())
}

/// A store has no directories: a value can be moved below its own path, and values below a path stay where they are.
async fn a_value_moves_below_itself_and_back(t: &StoreTarget) -> LawResult {
    t.put_each(&["/a", "/a/b"]).await?;
    all_done(t.batch(&[], vec![rename("/a", "/a/c/d")]).await?);
    assert_eq!(t.list(ListRequest::all(path("/"))).await?.paths(), ["/a/b", "/a/c/d"]);
    all_done(t.batch(&[], vec![rename("/a/c/d", "/a"), copy("/a", "/a/b/c")]).await?);
    assert_eq!(t.list(ListRequest::all(path("/"))).await?.paths(), ["/a", "/a/b", "/a/b/c"]);
    Ok(())
}

/// A later change of one of the two does not affect the other.
async fn a_copy_is_a_value_of_its_own(t: &StoreTarget) -> LawResult {
    t.put("/a", noise(1_200_000, 1)).await?;
    all_done(t.batch(&[], vec![copy("/a", "/b"), copy("/b", "/c")]).await?);
    t.put("/a", "changed").await?;
    assert!(t.content("/b").await? == Some(noise(1_200_000, 1)), "the copy changed with its source");
    all_done(t.batch(&[], vec![delete("/b"), put("/a", "replaced")]).await?);
    assert!(t.content("/c").await? == Some(noise(1_200_000, 1)), "the copy was deleted with its source");
    Ok(())
}
