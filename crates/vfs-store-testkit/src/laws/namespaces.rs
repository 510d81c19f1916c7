//! Isolation of namespaces with any names.

use std::collections::BTreeSet;

use vfs_core::{CaseMode, Result};
use vfs_store::{Condition, Key, ListRequest, Namespace, Precondition, TextQuery};
use vfs_testkit::LawResult;

use super::StoreTarget;
use super::law_helpers::{all_done, delete, done, list, namespace, path, put, refused, state_of, value};

store_laws! { "namespaces":
    "SA1" Nothing each_namespace_has_its_own_values,
    "SA2" Nothing a_value_is_in_one_namespace_only,
    "SA3" Nothing deleting_in_one_namespace_leaves_the_others,
    "SA4" Nothing namespaces_that_hold_a_value_are_listed,
    "SA5" Batch conditions_are_about_one_namespace,
    "SA6" Changes changes_are_those_of_one_namespace,
    "SA7" Search a_search_is_in_one_namespace,
    "SA8" Nothing a_namespace_may_be_long_and_deep,
    "SA9" Batch a_batch_changes_one_namespace,
}

/// Namespaces inside and next to each other, and others with similar names.
const SPACES: &[&str] = &[
    "",
    "org",
    "org/user",
    "org/user/assistant",
    "org/user/assistant2",
    "org/user2",
    "org-user",
    "orgx",
    "org.user",
    "org_user",
    "org0",
    "or",
    "o",
    "Org",
    "ORG/user",
    "org/User",
    "org/org",
    "org/org/user",
    "user",
    "user/org",
    "user/x",
    "_",
    "a_c",
    "abc",
    "-",
    "--",
    "+",
    "~",
    ":",
    "@",
    "a:b",
    "a+b",
    "a/b/c/d/e/f/g",
    "...",
    "...a",
    "a...",
    "x",
    "d",
    "0",
    "1",
    "null",
];

/// Paths that look like parts of other namespaces, or like separators that a store may put between namespace and path.
const PATHS: &[&str] = &[
    "/x",
    "/d/x",
    "/org/x",
    "/user/x",
    "/org/user/x",
    "/user/assistant/x",
    "/=",
    "/==",
    "/=/x",
    "/=/org/x",
    "/=/org/=/x",
    "/==/org/x",
    "/org/=/x",
    "/=/org/user/=/x",
    "/=/=/x",
    "/%3D/org/=/x",
    "/:x",
    "/org:x",
    "/a:b",
    "/-",
    "/0",
];

fn content_of(space: &str, at: &str) -> String {
    format!("{at} of {space:?}")
}

/// Returns the paths that are put in a namespace: those of all namespaces, and one of its own.
fn paths_of(space: &str) -> Vec<String> {
    let own = format!("/own/{space}/of");
    PATHS.iter().map(|at| (*at).to_owned()).chain([path(&own).to_string()]).collect()
}

async fn put_all(t: &StoreTarget) -> Result<()> {
    for space in SPACES {
        for at in paths_of(space) {
            let key = Key::new(namespace(space), path(&at));
            done(t.store.put(&key, value(content_of(space, &at)), &Precondition::Absent).await?);
        }
    }
    Ok(())
}

/// Asserts that a namespace has its values at exactly these paths.
async fn assert_has(t: &StoreTarget, space: &str, mut paths: Vec<String>) -> LawResult {
    let state = state_of(&*t.store, &namespace(space)).await?;
    let found: Vec<_> = state.into_iter().map(|(at, value)| (at.to_string(), value.content)).collect();
    paths.sort_unstable();
    let expected: Vec<_> = paths.into_iter().map(|at| (at.clone(), content_of(space, &at).into())).collect();
    assert_eq!(found, expected, "in {space:?}");
    Ok(())
}

/// No namespace shows values of its children, its siblings, namespaces with a similar name or the one without
/// components.
async fn each_namespace_has_its_own_values(t: &StoreTarget) -> LawResult {
    put_all(t).await?;
    for space in SPACES {
        assert_has(t, space, paths_of(space)).await?;
        let level = list(&*t.store, &namespace(space), &ListRequest::level(path("/")).limit(2)).await?;
        let deep = paths_of(space).into_iter().filter_map(|at| Some(format!("/{}", at[1..].split_once('/')?.0)));
        let folders: BTreeSet<_> = deep.collect();
        assert_eq!(level.folders(), folders.iter().map(String::as_str).collect::<Vec<_>>(), "in {space:?}");
    }
    Ok(())
}

/// Puts one value at a time: it is in its namespace, and all others are empty.
async fn a_value_is_in_one_namespace_only(t: &StoreTarget) -> LawResult {
    for (space, at) in
        [("org", "/user/x"), ("org/user", "/x"), ("", "/org/user/x"), ("", "/=/org/user/=/x"), ("orgx", "/x")]
    {
        let key = Key::new(namespace(space), path(at));
        done(t.store.put(&key, value("here"), &Precondition::Absent).await?);
        assert_eq!(t.store.namespaces().await?, [namespace(space)]);
        for other in SPACES.iter().filter(|other| **other != space) {
            let all = list(&*t.store, &namespace(other), &ListRequest::all(path("/"))).await?;
            assert_eq!(all.paths(), Vec::<&str>::new(), "{at} of {space:?} is in {other:?}");
            for text in PATHS {
                let key = Key::new(namespace(other), path(text));
                assert_eq!(t.store.head(&key).await?, None, "{at} of {space:?} is in {other:?}, as {text}");
            }
        }
        done(t.store.delete(&key, &Precondition::Any).await?);
    }
    Ok(())
}

async fn deleting_in_one_namespace_leaves_the_others(t: &StoreTarget) -> LawResult {
    put_all(t).await?;
    let cleared = ["org", "", "org/user", "a_c"];
    for space in cleared {
        for at in paths_of(space) {
            done(t.store.delete(&Key::new(namespace(space), path(&at)), &Precondition::Any).await?);
        }
    }
    for space in SPACES {
        assert_has(t, space, if cleared.contains(space) { vec![] } else { paths_of(space) }).await?;
    }
    Ok(())
}

/// The list is sorted and has each namespace with a value once.
async fn namespaces_that_hold_a_value_are_listed(t: &StoreTarget) -> LawResult {
    assert_eq!(t.store.namespaces().await?, []);
    let mut there = BTreeSet::new();
    for (n, space) in SPACES.iter().enumerate() {
        done(t.store.put(&Key::new(namespace(space), path("/=/x/=/y")), value("x"), &Precondition::Any).await?);
        there.insert(namespace(space));
        if n % 9 == 0 {
            assert_eq!(t.store.namespaces().await?, there.iter().cloned().collect::<Vec<_>>());
        }
    }
    let refused_here = Key::new(namespace("nothing/was/put"), path("/x"));
    let never = Precondition::Version(vfs_core::Version::new("never"));
    assert_eq!(refused(t.store.put(&refused_here, value("x"), &never).await?), None);
    for (n, space) in SPACES.iter().enumerate() {
        if n % 9 == 0 {
            assert_eq!(t.store.namespaces().await?, there.iter().cloned().collect::<Vec<_>>());
        }
        done(t.store.delete(&Key::new(namespace(space), path("/=/x/=/y")), &Precondition::Any).await?);
        there.remove(&namespace(space));
    }
    assert_eq!(t.store.namespaces().await?, []);
    Ok(())
}

/// Values of other namespaces do not affect the conditions of a batch.
async fn conditions_are_about_one_namespace(t: &StoreTarget) -> LawResult {
    let batch = t.store.as_batch().expect("the law needs it");
    for space in ["", "org/user", "org", "orgx"] {
        let conditions = [
            Condition::NothingBelow(path("/")),
            Condition::NothingBelow(path("/user")),
            Condition::At(path("/x"), Precondition::Absent),
            Condition::At(path("/user/x"), Precondition::Absent),
        ];
        let writes = vec![put("/x", "x"), put("/user/x", "x"), put("/org/user/x", "x"), put("/=/org/=/x", "x")];
        all_done(batch.batch(&namespace(space), &conditions, writes).await?);
    }
    for space in ["org/user/assistant", "o", "user"] {
        super::law_helpers::all_refused(batch.batch(&namespace(space), &[], vec![delete("/x")]).await?);
    }
    Ok(())
}

/// Each namespace numbers its own changes from 1.
async fn changes_are_those_of_one_namespace(t: &StoreTarget) -> LawResult {
    let changes = t.store.as_changes().expect("the law needs it");
    let spaces = ["", "org", "org/user", "orgx", "org-user"];
    for (n, space) in spaces.iter().enumerate() {
        for round in 0..=n {
            let key = Key::new(namespace(space), path(&format!("/user/{round}")));
            done(t.store.put(&key, value("x"), &Precondition::Absent).await?);
        }
    }
    for (n, space) in spaces.iter().enumerate() {
        assert_eq!(changes.last_sequence(&namespace(space)).await?.0, n as u64 + 1, "{space:?}");
        let records = super::change_replicas::records_after(&*t.store, &namespace(space), 0, 2).await?;
        assert_eq!(records.len(), n + 1, "{space:?}");
    }
    assert_eq!(changes.last_sequence(&namespace("or")).await?.0, 0);
    Ok(())
}

async fn a_search_is_in_one_namespace(t: &StoreTarget) -> LawResult {
    let search = t.store.as_search().expect("the law needs it");
    put_all(t).await?;
    for space in SPACES {
        let query = TextQuery::new(vec![format!("of {space:?}")], CaseMode::Sensitive);
        for other in [space, "nowhere", "org", "org/user"] {
            let found = search.candidates(&namespace(other), &path("/"), &query).await?;
            let Some(found) = found else { continue };
            let there = if SPACES.contains(&other) { paths_of(other) } else { vec![] };
            assert!(found.iter().all(|at| there.contains(&at.to_string())), "{found:?} in {other:?}");
            assert!(other != *space || found.len() == there.len(), "{found:?} in {space:?}, where all values match");
        }
    }
    Ok(())
}

/// A namespace can have 512 bytes in few long components or in many short ones.
async fn a_namespace_may_be_long_and_deep(t: &StoreTarget) -> LawResult {
    let deep = vec!["a"; 256].join("/");
    let long = ["x".repeat(128), "y".repeat(128), "z".repeat(128), "w".repeat(125)].join("/");
    let deeper = deep[..deep.len() - 2].to_owned();
    let spaces: BTreeSet<Namespace> = [&deep, &long, &deeper].map(|text| namespace(text)).into();
    for space in &spaces {
        let key = Key::new(space.clone(), path("/d/x"));
        done(t.store.put(&key, value(space.to_string()), &Precondition::Absent).await?);
    }
    for space in &spaces {
        let state = state_of(&*t.store, space).await?;
        assert_eq!(state.into_values().map(|value| value.content).collect::<Vec<_>>(), [space.to_string()]);
    }
    assert_eq!(t.store.namespaces().await?, spaces.into_iter().collect::<Vec<_>>());
    Ok(())
}

/// Moves and copies stay in their namespace, and never read a value of the same path elsewhere.
async fn a_batch_changes_one_namespace(t: &StoreTarget) -> LawResult {
    put_all(t).await?;
    let batch = t.store.as_batch().expect("the law needs it");
    let writes = vec![
        delete("/d/x"),
        super::law_helpers::rename("/user/x", "/moved"),
        super::law_helpers::copy("/=", "/copied"),
    ];
    all_done(batch.batch(&namespace("org"), &[], writes).await?);
    for space in SPACES.iter().filter(|space| **space != "org") {
        assert_has(t, space, paths_of(space)).await?;
    }
    assert_eq!(state_of(&*t.store, &namespace("org")).await?.len(), paths_of("org").len());
    Ok(())
}
