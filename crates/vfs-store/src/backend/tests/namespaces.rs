//! Isolation of namespaces.

use futures::StreamExt as _;
use futures::future::poll_immediate;
use vfs_core::watch::WatchRequest;
use vfs_core::{Backend, BackendExt, DeleteRequest, GlobRequest, GrepRequest, RenameRequest, Watch};

use super::{cx, in_namespace, path};
use crate::{MemoryStore, NamespaceSource, StoreBackend, StoreConfig};

/// Names of namespaces with parents, children and similar names.
const SIMILAR_NAMES: [&str; 9] = ["", "a", "a/b", "a/b/c", "a/b2", "a/", "ab", "a/B", "b/a"];

fn namespaces() -> impl Iterator<Item = &'static str> {
    SIMILAR_NAMES.into_iter().filter(|name| !name.ends_with('/'))
}

#[tokio::test]
async fn every_namespace_has_files_of_its_own() {
    for store in [MemoryStore::new(), MemoryStore::single_valued()] {
        for name in namespaces() {
            let files = in_namespace(&store, name);
            files.create_text("/b/c.txt", &format!("needle of <{name}>\n")).await.expect("it is new here");
            files.create_text(&format!("/only-{}", name.replace('/', "-")), "needle\n").await.expect("it is new here");
        }
        for name in namespaces() {
            let files = in_namespace(&store, name);
            let own = format!("/only-{}", name.replace('/', "-"));
            let found = files.glob(&cx(), GlobRequest::new("**")).await.expect("a search");
            let paths: Vec<_> = found.entries.iter().map(|info| info.path.as_str().to_owned()).collect();
            assert_eq!(paths, ["/b/c.txt", &own], "{name}");
            let matches = files.grep(&cx(), GrepRequest::literal("needle")).await.expect("a search").matches;
            let texts: Vec<_> = matches.iter().map(|found| found.text.as_str()).collect();
            assert_eq!(texts, [&format!("needle of <{name}>"), "needle"], "{name}");
            let listed: Vec<_> =
                files.list_dir("/").await.expect("a listing").into_iter().map(|info| info.path).collect();
            assert_eq!(listed, [path("/b"), path(&own)], "{name}");
            assert_eq!(files.read_text("/b/c.txt").await.expect("it is there"), format!("needle of <{name}>\n"));
        }
    }
}

#[tokio::test]
async fn a_change_in_one_namespace_does_not_affect_others() {
    for store in [MemoryStore::new(), MemoryStore::single_valued()] {
        for name in namespaces() {
            in_namespace(&store, name).create_text("/b/c/f", "text\n").await.expect("it is new here");
        }
        let files = in_namespace(&store, "a");
        files.delete(&cx(), DeleteRequest::new(path("/b")).recursive()).await.expect("it is there");
        in_namespace(&store, "a/b")
            .rename(&cx(), RenameRequest::new(path("/b"), path("/d")))
            .await
            .expect("it is there");
        in_namespace(&store, "ab").edit_text("/b/c/f", "text", "other").await.expect("it is there");
        for name in namespaces() {
            let expected = match name {
                "a" => None,
                "a/b" => Some(("/d/c/f", "text\n")),
                "ab" => Some(("/b/c/f", "other\n")),
                _ => Some(("/b/c/f", "text\n")),
            };
            let files = in_namespace(&store, name);
            let left = files.glob_files("**").await.expect("a search");
            assert_eq!(left.first().map(|info| info.path.as_str()), expected.map(|(path, _)| path), "{name}");
            if let Some((path, text)) = expected {
                assert_eq!(files.read_text(path).await.expect("it is there"), text, "{name}");
            }
        }
    }
}

#[tokio::test]
async fn each_call_has_the_namespace_of_its_caller() {
    let config = StoreConfig::new().namespace(NamespaceSource::template("org/{actor}").expect("a template"));
    let files = StoreBackend::with_config(MemoryStore::new(), config);
    let (ann, bob) = (cx().with_actor("ann"), cx().with_actor("bob"));
    let write = |text: &str| vfs_core::WriteRequest::new(path("/f"), text.to_owned());
    files.write(&ann, write("ann's needle\n")).await.expect("it is new");
    files.write(&bob, write("bob's needle\n")).await.expect("it is new for bob");
    for (caller, text) in [(&ann, "ann's needle"), (&bob, "bob's needle")] {
        let found = files.grep(caller, GrepRequest::literal("needle")).await.expect("a search");
        assert_eq!(found.matches.iter().map(|found| found.text.as_str()).collect::<Vec<_>>(), [text]);
    }
    let error = files.grep(&cx(), GrepRequest::literal("needle")).await.expect_err("the call has no actor");
    assert_eq!((error.kind(), error.path()), (vfs_core::ErrorKind::InvalidArgument, Some("/")));
    let mut events = files.watch(ann.clone(), WatchRequest::default());
    files.write(&bob, write("again\n").mode(vfs_core::WriteMode::Overwrite)).await.expect("it is written");
    assert!(poll_immediate(events.next()).await.is_none(), "changes of bob are not reported to ann");
}
