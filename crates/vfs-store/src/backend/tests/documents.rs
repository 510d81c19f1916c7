//! Backends over documents, also of other programs.

use std::sync::Arc;

use vfs_core::{Backend, BackendExt, ErrorKind, GlobRequest, GrepRequest, LsRequest, ReadRequest, StatRequest};

use super::{Probe, cx, path};
use crate::{
    DocumentForm, DocumentStore, Key, MemoryStore, Namespace, NewValue, Precondition, Store as _, StoreBackend,
};

fn key(at: &str) -> Key {
    Key::new(Namespace::default(), path(at))
}

async fn put(store: &MemoryStore, at: &str, document: &str) {
    let value = NewValue::new(document.to_owned().into(), chrono::Utc::now());
    let _new = store.put(&key(at), value, &Precondition::Any).await.expect("memory is there");
}

const LINES: &str = r#"{"content": ["one", "two needle", ""], "created_at": "2025-01-15T10:30:00+00:00", "modified_at": "2025-01-15T10:35:00+00:00"}"#;
const ESCAPED: &str = r#"{"content": "gr\u00fc\u00dfe needle\n", "encoding": "utf-8", "created_at": "2025-01-15T10:30:00Z", "modified_at": "2025-01-15T10:35:00Z", "more": 1}"#;
const BINARY: &str = r#"{"content": "AAEC", "encoding": "base64", "created_at": "", "modified_at": ""}"#;

fn stores() -> [MemoryStore; 2] {
    [MemoryStore::new(), MemoryStore::single_valued()]
}

#[tokio::test]
async fn both_forms_are_read_searched_and_changed() {
    for store in stores() {
        put(&store, "/d/lines", LINES).await;
        put(&store, "/d/escaped", ESCAPED).await;
        put(&store, "/d/binary", BINARY).await;
        let files = StoreBackend::new(DocumentStore::new(store.clone()));
        assert_eq!(files.read_text("/d/lines").await.expect("a document"), "one\ntwo needle\n");
        assert_eq!(files.read_text("/d/escaped").await.expect("a document"), "grüße needle\n");
        let sizes: Vec<_> = files.list_dir("/d").await.expect("a listing").into_iter().map(|info| info.size).collect();
        assert_eq!(sizes, [3, 15, 15], "those of the contents");
        let info = files.stat_path("/d/lines").await.expect("a document");
        assert_eq!(info.created_at.map(|at| at.to_rfc3339()).as_deref(), Some("2025-01-15T10:30:00+00:00"));
        let found = files.grep(&cx(), GrepRequest::literal("grüße")).await.expect("a search");
        assert_eq!((found.matches.len(), found.skipped.binary, found.files_searched), (1, 1, 2));
        files.edit_text("/d/lines", "two", "2").await.expect("it can be edited");
        files.append_text("/d/escaped", "more\n").await.expect("it can be written to");
        assert_eq!(files.read_text("/d/lines").await.expect("a document"), "one\n2 needle\n");
        assert_eq!(files.stat_path("/d/lines").await.expect("a document").created_at, info.created_at);
        files.copy(&cx(), vfs_core::CopyRequest::new(path("/d"), path("/e"))).await.expect("it can be copied");
        let copy = files.stat_path("/e/lines").await.expect("a document");
        assert!(copy.created_at > info.created_at, "the copy is new");
        assert_eq!((copy.size, files.read_text("/e/lines").await.expect("a document")), (13, "one\n2 needle\n".into()));
    }
}

#[tokio::test]
async fn a_file_is_written_as_a_document_in_the_configured_form() {
    for (form, content) in [(DocumentForm::Text, r#""a\nb\n""#), (DocumentForm::Lines, r#"["a","b",""]"#)] {
        let store = MemoryStore::new();
        let files = StoreBackend::new(DocumentStore::new(store.clone()).form(form));
        files.create_text("/f", "a\nb\n").await.expect("it is new");
        let value = store.get(&key("/f"), None).await.expect("memory is there").expect("a value");
        let text = std::str::from_utf8(&value.content).expect("JSON").to_owned();
        assert!(text.starts_with(&format!(r#"{{"content":{content}"#)) && text.contains("created_at"), "{text}");
        let other = if form == DocumentForm::Text { DocumentForm::Lines } else { DocumentForm::Text };
        let reader = StoreBackend::new(DocumentStore::new(store).form(other));
        assert_eq!(reader.read_text("/f").await.expect("both are read"), "a\nb\n");
    }
}

#[tokio::test]
async fn an_invalid_document_is_an_error_for_its_file_alone() {
    for store in stores() {
        put(&store, "/d/good", LINES).await;
        let faults = [
            "",
            "needle",
            "[1]",
            "{}",
            r#"{"content": 7}"#,
            r#"{"content": "x", "encoding": "rot13"}"#,
            "{\"content\": \"\u{0}\"}",
        ];
        for (n, fault) in faults.iter().enumerate() {
            put(&store, &format!("/d/bad{n}"), fault).await;
        }
        let files = StoreBackend::new(DocumentStore::new(store.clone()));
        for n in 0..faults.len() {
            let bad = path(&format!("/d/bad{n}"));
            let errors = [
                files.stat(&cx(), StatRequest::new(bad.clone())).await.err(),
                files.read(&cx(), ReadRequest::new(bad.clone())).await.err(),
                files.edit_text(bad.as_str(), "a", "b").await.err(),
                files.download_files(&cx(), vec![bad.clone()]).await.remove(0).cause,
            ];
            for error in errors {
                let error = error.expect("it is no document");
                assert_eq!((error.kind(), error.path()), (ErrorKind::InvalidArgument, Some(bad.as_str())));
            }
        }
        let listed = files.ls(&cx(), LsRequest::new(path("/d"))).await.expect("a listing");
        assert_eq!((listed.entries.len(), listed.problems.len()), (1, faults.len()));
        for _ in 0..2 {
            let found = files.grep(&cx(), GrepRequest::literal("needle")).await.expect("a search");
            assert_eq!((found.matches.len(), found.problems.len()), (1, faults.len()));
            let globbed = files.glob(&cx(), GlobRequest::new("**")).await.expect("a search");
            assert_eq!((globbed.entries.len(), globbed.problems.len()), (1, faults.len()));
        }
        files.delete_file("/d/bad0").await.expect("it can be deleted");
        let deleted =
            files.delete(&cx(), vfs_core::DeleteRequest::new(path("/d")).recursive()).await.expect("all of it");
        assert_eq!(deleted.files as usize, faults.len());
        assert!(store.namespaces().await.expect("memory is there").is_empty());
    }
}

#[tokio::test]
async fn a_document_that_becomes_invalid_is_a_problem_until_it_is_repaired() {
    let store = MemoryStore::new();
    put(&store, "/d/a", LINES).await;
    put(&store, "/d/b", LINES).await;
    let (files, raw) = (StoreBackend::new(DocumentStore::new(store.clone())), StoreBackend::new(store.clone()));
    let globbed = async || {
        let found = files.glob(&cx(), GlobRequest::new("**/*")).await.expect("a search");
        let names = |paths: Vec<String>| paths.join(" ");
        let entries = names(found.entries.iter().map(|info| info.path.to_string()).collect());
        (entries, names(found.problems.into_iter().map(|problem| problem.path).collect()))
    };
    let expect = |entries: &str, problems: &str| (entries.to_owned(), problems.to_owned());
    assert_eq!(globbed().await, expect("/d/a /d/b", ""));
    put(&store, "/d/a", "no document").await;
    put(&store, "/d/new", "no document").await;
    for _ in 0..2 {
        assert_eq!(globbed().await, expect("/d/b", "/d/a /d/new"));
    }
    raw.rename(&cx(), vfs_core::RenameRequest::new(path("/d/a"), path("/e/moved"))).await.expect("it is there");
    put(&store, "/d/new", ESCAPED).await;
    assert_eq!(globbed().await, expect("/d/b /d/new", "/e/moved"));
    raw.delete_file("/e/moved").await.expect("it is there");
    assert_eq!(globbed().await, expect("/d/b /d/new", ""));
    assert!(files.stat_path("/e").await.is_err(), "nothing is left of it");
}

#[tokio::test]
async fn a_change_whose_document_cannot_be_read_now_is_read_later() {
    let store = MemoryStore::new();
    put(&store, "/d/a", LINES).await;
    let probe = Arc::new(Probe::new(store.clone()));
    let files = StoreBackend::new(DocumentStore::new(Arc::clone(&probe)));
    let sizes = async || {
        let found = files.glob(&cx(), GlobRequest::new("**/*")).await?;
        Ok::<_, vfs_core::Error>(found.entries.iter().map(|info| info.size).collect::<Vec<_>>())
    };
    assert_eq!(sizes().await.expect("a search"), [15]);
    put(&store, "/d/b", BINARY).await;
    probe.fail(Some(("get", ErrorKind::Unavailable)));
    assert_eq!(sizes().await.expect_err("the document cannot be read").kind(), ErrorKind::Unavailable);
    probe.fail(None);
    assert_eq!(sizes().await.expect("a search"), [15, 3]);
}
