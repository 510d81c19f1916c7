//! Binding of records to the mounts that they were written for.

use std::sync::Arc;

use serde_json::json;
use vfs_composite::{CompositeBackend, MountIdentity, RecoveryOutcome};
use vfs_core::{Backend as _, BackendExt, ErrorKind, OpContext, Operation, RenameRequest, Result};
use vfs_memory::MemoryBackend;

use crate::faults::Faults;
use crate::{Namespace, path, store};

fn local(root: &str) -> MountIdentity {
    MountIdentity::Local { root: root.to_owned() }
}

/// The namespace of `of` with these identities, and its target replaced by its source if `is_one` is set.
fn namespace_of(
    of: &Namespace,
    source: MountIdentity,
    target: MountIdentity,
    is_one: bool,
) -> Result<CompositeBackend> {
    let mounted = if is_one { of.source.clone() } else { of.target.clone() };
    CompositeBackend::new(Arc::new(of.source.clone()))
        .with_mount("/m", Arc::new(mounted))?
        .with_identity(&path("/"), source)?
        .with_identity(&path("/m"), target)
        .map(|files| files.with_journal(Arc::new(of.journal.clone()), path("/moves")))
}

#[tokio::test]
async fn a_record_is_recovered_only_with_its_own_mounts() -> Result<()> {
    let namespace = Namespace::new()?;
    namespace.source.create_text("/d/a", "a").await?;
    namespace.target.create_text("/d/a", "a").await?;
    let mut record = namespace.record_of(&["a"]).await?;
    record["source"]["identity"] = json!(store("one"));
    record["target"]["identity"] = json!(store("two"));
    namespace.write_record("move-1-0.json", &record).await?;
    for (source, target, end) in [
        (store("one"), local("/other"), "/m/d"),
        (local("/other"), store("two"), "/d"),
        (store("one"), local("/two"), "/m/d"),
    ] {
        let files = namespace_of(&namespace, source, target, false)?;
        let recovery = files.recover(&OpContext::new()).await?;
        let RecoveryOutcome::Incomplete(error) = &recovery.moves[0].outcome else { panic!("{recovery:?}") };
        assert_eq!((error.kind(), error.path()), (ErrorKind::CrossBackend, Some(end)));
        assert!(error.message().contains("the move was recorded with the store"), "{error}");
        assert!(namespace.source.exists("/d/a").await? && namespace.records().await? == 1);
    }
    let files = namespace_of(&namespace, store("one"), store("two"), false)?;
    assert_eq!(files.recover(&OpContext::new()).await?.moves[0].outcome, RecoveryOutcome::Finished);
    assert!(!namespace.source.exists("/d/a").await?);
    Ok(())
}

#[tokio::test]
async fn nothing_is_touched_if_a_backend_is_mounted_inside_an_end() -> Result<()> {
    for (at, end) in [("/m/d/sub", "/m/d"), ("/d/sub", "/d"), ("/m/d", "/m/d"), ("/d", "/d")] {
        let namespace = Namespace::new()?;
        for name in ["a", "sub/b"] {
            namespace.source.create_text(&format!("/d/{name}"), name).await?;
        }
        namespace.target.create_text("/d/a", "a").await?;
        namespace.write_record("move-1-0.json", &namespace.record_of(&["a", "sub/b"]).await?).await?;
        let added = MemoryBackend::new();
        added.create_text("/b", "of another backend").await?;
        namespace.files.mount(path(at), Arc::new(added.clone()))?;
        let RecoveryOutcome::Incomplete(error) = namespace.recover_one().await? else { panic!("{at}") };
        assert_eq!((error.kind(), error.path()), (ErrorKind::CrossBackend, Some(end)), "{error}");
        assert_eq!(namespace.source.glob_files("/d/**").await?.len(), 2, "{at}");
        assert_eq!(
            (namespace.target.glob_files("/d/**").await?.len(), added.glob_files("/**").await?.len()),
            (1, 1),
            "{at}"
        );
        namespace.files.unmount(&path(at))?;
        assert_eq!(namespace.recover_one().await?, RecoveryOutcome::Finished, "{at}");
        assert_eq!(namespace.target.read_text("/d/sub/b").await?, "sub/b");
    }
    Ok(())
}

#[tokio::test]
async fn a_file_that_may_be_one_at_both_ends_is_never_deleted() -> Result<()> {
    let cases = [
        (local("/one"), local("/one")),
        (local("/one"), local("/one/d")),
        // A link may lead from one root to the other, which shows in equal versions only.
        (local("/one"), local("/two")),
        (store("acme/{actor}"), store("acme/{actor}")),
        (store("acme/{actor}"), store("acme/ann")),
    ];
    for (source, target) in cases {
        let namespace = Namespace::new()?;
        namespace.source.create_text("/d/a", "a").await?;
        let mut record = namespace.record_of(&["a"]).await?;
        record["source"]["identity"] = json!(source);
        record["target"]["identity"] = json!(target);
        record["actor"] = json!("ann");
        namespace.write_record("move-1-0.json", &record).await?;
        let files = namespace_of(&namespace, source, target, true)?;
        let recovery = files.recover(&OpContext::new()).await?;
        let RecoveryOutcome::Incomplete(error) = &recovery.moves[0].outcome else { panic!("{recovery:?}") };
        assert_eq!(error.kind(), ErrorKind::CrossBackend, "{error}");
        assert_eq!(namespace.source.read_text("/d/a").await?, "a");
    }
    Ok(())
}

#[tokio::test]
async fn a_move_from_or_to_memory_is_not_recorded() -> Result<()> {
    let overlay = |base| MountIdentity::Overlay { store: None, base: Box::new(base) };
    let persistent = |base| MountIdentity::Overlay { store: Some("/overlay".to_owned()), base: Box::new(base) };
    let refused = Faults::new(&[Operation::Write], ErrorKind::PermissionDenied);
    for (source, target, is_recorded) in [
        (MountIdentity::Memory, store("two"), false),
        (store("one"), MountIdentity::Memory, false),
        (overlay(store("one")), store("two"), false),
        (store("one"), persistent(MountIdentity::Memory), true),
    ] {
        let namespace = Namespace::new()?;
        namespace.source.create_text("/d/a", "a").await?;
        let journal = refused.layer(Arc::new(namespace.journal.clone()));
        let files = namespace_of(&namespace, source, target, false)?.with_journal(journal, path("/moves"));
        let moved = files.rename(&OpContext::new(), RenameRequest::new(path("/d"), path("/m/d"))).await;
        assert_eq!(moved.is_err(), is_recorded, "{moved:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_move_onto_the_same_file_of_a_store_is_refused() -> Result<()> {
    let namespace = Namespace::new()?;
    namespace.source.create_text("/d/a", "a").await?;
    let files = namespace_of(&namespace, store("acme/{actor}"), store("acme/ann"), true)?;
    let (ann, bob) = (OpContext::new().with_actor("ann"), OpContext::new().with_actor("bob"));
    let request = RenameRequest::new(path("/d/a"), path("/m/d/a")).overwrite();
    let error = files.rename(&ann, request.clone()).await.expect_err("both ends are one file");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(namespace.source.read_text("/d/a").await?, "a");
    let files = namespace_of(&namespace, store("acme/{actor}"), store("acme/ann"), false)?;
    files.rename(&bob, request).await.map(drop)
}

#[tokio::test]
async fn two_paths_of_one_file_of_unknown_mounts_are_treated_as_one_file() -> Result<()> {
    let namespace = Namespace::new()?;
    namespace.source.create_text("/d/a", "a").await?;
    let files = CompositeBackend::new(Arc::new(namespace.source.clone()))
        .with_mount("/m", Arc::new(namespace.source.clone()))?
        .with_journal(Arc::new(namespace.journal.clone()), path("/moves"));
    let mut record = namespace.record_of(&["a"]).await?;
    (record["source"], record["target"]) = (json!({ "path": "/" }), json!({ "path": "/m" }));
    namespace.write_record("move-1-0.json", &record).await?;
    let recovery = files.recover(&OpContext::new()).await?;
    assert!(matches!(recovery.moves[0].outcome, RecoveryOutcome::Incomplete(_)), "{recovery:?}");
    assert!(namespace.source.exists("/d/a").await?);
    Ok(())
}

#[test]
fn an_identity_round_trips_with_its_wire_names() {
    let overlay = |store: Option<&str>| {
        let (store, base) = (store.map(str::to_owned), Box::new(MountIdentity::Memory));
        MountIdentity::Overlay { store, base }
    };
    for (identity, json) in [
        (local("/srv"), r#"{"kind":"local","root":"/srv"}"#),
        (store("one"), r#"{"kind":"store","url":"sqlite:/team.db","namespace":"one","directory":"/"}"#),
        (MountIdentity::Memory, r#"{"kind":"memory"}"#),
        (overlay(Some("/changes")), r#"{"kind":"overlay","store":"/changes","base":{"kind":"memory"}}"#),
        (overlay(None), r#"{"kind":"overlay","store":null,"base":{"kind":"memory"}}"#),
    ] {
        assert_eq!(serde_json::to_string(&identity).expect("JSON"), json);
        assert_eq!(serde_json::from_str::<MountIdentity>(json).expect("an identity"), identity);
    }
}
