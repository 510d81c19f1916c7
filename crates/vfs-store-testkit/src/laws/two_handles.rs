//! Two handles of one store, as in two processes.

use vfs_store::{Key, ListRequest, Precondition, Sequence};
use vfs_testkit::LawResult;

use super::StoreTarget;
use super::change_replicas::records_after;
use super::law_helpers::{
    all_done, all_refused, at, done, home, key, list, namespace, noise, nothing_below, path, put, refused, rename,
    value,
};

store_laws! { "handles":
    "SH1" Second a_value_that_one_handle_put_is_read_by_the_other,
    "SH2" Second a_change_by_one_handle_is_listed_by_the_other,
    "SH3" Second a_version_is_valid_for_both_handles,
    "SH4" BatchAndSecond conditions_cover_changes_of_the_other_handle,
    "SH5" ChangesAndSecond both_handles_return_the_same_records,
    "SH6" Second a_change_is_there_when_the_values_are_opened_again,
}

/// An acknowledged value of any size is visible through the other handle at once.
async fn a_value_that_one_handle_put_is_read_by_the_other(t: &StoreTarget) -> LawResult {
    for (n, size) in [0, 10, 1_200_000, 10].into_iter().enumerate() {
        let (one, other) = (t.handle(n), t.handle(n + 1));
        let stored = done(one.put(&key("/a"), value(noise(size, n as u64)), &Precondition::Any).await?);
        let got = other.get(&key("/a"), None).await?.expect("it is there");
        assert!(got.content == noise(size, n as u64), "{size} bytes");
        t.assert_same(&got.stored, &stored, "the other handle");
        assert_eq!(other.head(&key("/a")).await?, Some(got.stored));
        assert_eq!(
            other.get(&key("/a"), Some(2..5)).await?.expect("it is there").content.len(),
            size.min(5).saturating_sub(2)
        );
        done(other.delete(&key("/a"), &Precondition::Version(stored.version)).await?);
        assert_eq!((one.head(&key("/a")).await?, one.get(&key("/a"), None).await?), (None, None));
    }
    Ok(())
}

async fn a_change_by_one_handle_is_listed_by_the_other(t: &StoreTarget) -> LawResult {
    for n in 0..20 {
        let (one, other) = (t.handle(n), t.handle(n + 1));
        let at = Key::new(namespace(&format!("space/{n}")), path(&format!("/d{n}/x")));
        done(one.put(&at, value("x"), &Precondition::Absent).await?);
        assert_eq!(list(&*other, &at.namespace, &ListRequest::all(path("/"))).await?.paths(), [at.path.as_str()]);
        assert_eq!(list(&*other, &at.namespace, &ListRequest::level(path("/"))).await?.folders(), [format!("/d{n}")]);
        assert_eq!(other.namespaces().await?, std::slice::from_ref(&at.namespace));
        done(other.delete(&at, &Precondition::Any).await?);
        assert_eq!(one.namespaces().await?, []);
    }
    Ok(())
}

async fn a_version_is_valid_for_both_handles(t: &StoreTarget) -> LawResult {
    let mut last = t.put("/a", "begin").await?;
    for n in 0..10 {
        let old = Precondition::Version(last.version.clone());
        last = done(t.handle(n).put(&key("/a"), value(format!("{n}")), &old).await?);
        let found = refused(t.handle(n + 1).put(&key("/a"), value("late"), &old).await?);
        t.assert_same(&found.expect("it is there"), &last, "found");
    }
    Ok(())
}

async fn conditions_cover_changes_of_the_other_handle(t: &StoreTarget) -> LawResult {
    for n in 0..6 {
        let (one, other) = (t.handle(n), t.handle(n + 1));
        let (one, other) = (one.as_batch().expect("the law needs it"), other.as_batch().expect("the law needs it"));
        let (above, below) = (format!("/{n}"), format!("/{n}/x"));
        all_done(one.batch(&home(), &[nothing_below(&above)], vec![put(&below, "x")]).await?);
        let (refused, _) = all_refused(other.batch(&home(), &[nothing_below(&above)], vec![put(&above, "x")]).await?);
        assert_eq!(refused, path(&above));
        all_refused(other.batch(&home(), &[at(&below, Precondition::Absent)], vec![put(&above, "x")]).await?);
        all_done(other.batch(&home(), &[], vec![rename(&below, &above)]).await?);
        all_refused(one.batch(&home(), &[], vec![rename(&below, "/elsewhere")]).await?);
    }
    Ok(())
}

/// The records have the same order and the same sequence numbers.
async fn both_handles_return_the_same_records(t: &StoreTarget) -> LawResult {
    for n in 0..20 {
        done(t.handle(n).put(&key(&format!("/{}", n % 3)), value(format!("{n}")), &Precondition::Any).await?);
        let other = t.handle(n + 1);
        assert_eq!(other.as_changes().expect("the law needs it").last_sequence(&home()).await?, Sequence(n as u64 + 1));
    }
    assert_eq!(records_after(&*t.handle(0), &home(), 0, 7).await?, records_after(&*t.handle(1), &home(), 0, 7).await?);
    Ok(())
}

async fn a_change_is_there_when_the_values_are_opened_again(t: &mut StoreTarget) -> LawResult {
    let stored = t.put("/kept", "kept").await?;
    t.put("/deleted", "deleted").await?;
    done(t.store.delete(&key("/deleted"), &Precondition::Any).await?);
    t.reopen().await?;
    let got = t.store.get(&key("/kept"), None).await?.expect("it was put before");
    assert_eq!((got.content.as_ref(), t.head("/deleted").await?), (&b"kept"[..], None));
    t.assert_same(&got.stored, &stored, "opened again");
    assert_eq!(t.list(ListRequest::all(path("/"))).await?.paths(), ["/kept"]);
    done(t.store.put(&key("/kept"), value("changed"), &Precondition::Version(stored.version)).await?);
    Ok(())
}
