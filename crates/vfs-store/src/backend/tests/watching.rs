//! Change feeds.

use futures::StreamExt as _;
use vfs_core::watch::{Change, WatchCursor, WatchEvent, WatchRequest};
use vfs_core::{Backend, BackendExt, DeleteRequest, OpContext, RenameRequest, Watch};

use super::{cx, in_namespace, path};
use crate::{MemoryStore, StoreBackend};

/// Returns the next `count` events, each with a short text.
async fn next_events(files: &StoreBackend<MemoryStore>, req: WatchRequest, count: usize) -> Vec<(String, WatchEvent)> {
    let events = files.watch(OpContext::new(), req).take(count);
    events
        .map(|event| {
            let event = event.expect("an event");
            let text = match &event.change {
                Change::Created { path, .. } => format!("+{path}"),
                Change::Changed { path, .. } => format!("~{path}"),
                Change::Removed { path } => format!("-{path}"),
                Change::Renamed { from, to, .. } => format!("{from}>{to}"),
                _ => "overflow".to_owned(),
            };
            (text, event)
        })
        .collect()
        .await
}

fn texts(events: &[(String, WatchEvent)]) -> Vec<&str> {
    events.iter().map(|(text, _)| text.as_str()).collect()
}

#[tokio::test]
async fn changes_of_every_handle_are_reported_in_order_and_can_be_continued_from() {
    let store = MemoryStore::new();
    let (files, other) = (StoreBackend::new(store.clone()), StoreBackend::new(store));
    files.create_text("/before", "x").await.expect("it is new");
    let mut live = files.watch(OpContext::new(), WatchRequest::default());
    other.create_text("/d/a", "x").await.expect("it is new");
    other.edit_text("/d/a", "x", "y").await.expect("it is there");
    files.rename(&cx(), RenameRequest::new(path("/d"), path("/e"))).await.expect("it is there");
    files.copy(&cx(), vfs_core::CopyRequest::new(path("/e/a"), path("/d/b"))).await.expect("it is there");
    other.delete(&cx(), DeleteRequest::new(path("/e")).recursive()).await.expect("it is there");
    let first = live.next().await.expect("it goes on").expect("an event");
    assert_eq!(first.change, Change::Created { path: path("/d/a"), version: other_version(b"x") });

    let since = |cursor: &WatchCursor| WatchRequest::default().since(cursor.clone());
    let rest = next_events(&other, since(&first.cursor), 4).await;
    assert_eq!(texts(&rest), ["~/d/a", "/d/a>/e/a", "+/d/b", "-/e/a"]);
    assert_eq!(texts(&next_events(&files, since(&rest[1].1.cursor), 2).await), ["+/d/b", "-/e/a"]);
    let of_e = WatchRequest::new(path("/e")).since(first.cursor.clone());
    assert_eq!(texts(&next_events(&files, of_e, 2).await), ["+/e/a", "-/e/a"], "a rename into it, and a removal");
    let of_d = WatchRequest::new(path("/d")).since(first.cursor);
    assert_eq!(texts(&next_events(&files, of_d, 3).await), ["~/d/a", "-/d/a", "+/d/b"]);
}

fn other_version(content: &[u8]) -> Option<vfs_core::Version> {
    Some(crate::store::version_of(content))
}

#[tokio::test]
async fn an_expired_or_unknown_cursor_is_an_overflow() {
    let store = MemoryStore::new();
    let files = StoreBackend::new(store);
    for n in 0..4200 {
        files.write_text("/f", &n.to_string()).await.expect("it is written");
    }
    let since = |text: &str| WatchRequest::default().since(WatchCursor::new(text));
    let mut live = files.watch(OpContext::new(), WatchRequest::default());
    files.write_text("/f", "last").await.expect("it is written");
    let last = live.next().await.expect("it goes on").expect("an event").cursor;
    let (here, _) = last.as_str().rsplit_once('-').expect("a number at its end");
    for old in ["0", "17", "999999"].map(|number| format!("{here}-{number}")) {
        let overflow = next_events(&files, since(&old), 1).await;
        assert_eq!(texts(&overflow), ["overflow"], "{old}");
        files.write_text("/g", "x").await.expect("it is written");
        let next = next_events(&files, since(overflow[0].1.cursor.as_str()), 1).await;
        assert!(["+/g", "~/g"].contains(&texts(&next)[0]), "it goes on from there");
    }
    let mut refused = files.watch(OpContext::new(), since("nonsense"));
    let error = refused.next().await.expect("an item").expect_err("no cursor");
    assert_eq!((error.kind(), error.path()), (vfs_core::ErrorKind::InvalidArgument, Some("/")));
    assert!(refused.next().await.is_none());
    assert!(StoreBackend::new(MemoryStore::single_valued()).as_watch().is_none());
}

#[tokio::test]
async fn a_cursor_of_another_namespace_is_an_overflow() {
    let store = MemoryStore::new();
    let (ann, bob) = (in_namespace(&store, "ann"), in_namespace(&store, "bob"));
    let mut live = ann.watch(OpContext::new(), WatchRequest::default());
    for files in [&ann, &bob] {
        files.create_text("/a", "x").await.expect("it is new");
        files.create_text("/b", "x").await.expect("it is new");
    }
    let cursor = live.next().await.expect("it goes on").expect("an event").cursor;
    let since = |cursor: &WatchCursor| WatchRequest::default().since(cursor.clone());
    assert_eq!(texts(&next_events(&ann, since(&cursor), 1).await), ["+/b"]);
    let overflow = next_events(&bob, since(&cursor), 1).await;
    assert_eq!(texts(&overflow), ["overflow"]);
    bob.create_text("/c", "x").await.expect("it is new");
    assert_eq!(texts(&next_events(&bob, since(&overflow[0].1.cursor), 1).await), ["+/c"]);
}
