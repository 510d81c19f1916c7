//! Agent state: JSON, pure and session backends, content formats.

use serde_json::{Value, json};
use vfs_core::backend::MutationMode;
use vfs_core::state::{FileData, FileDataContent, FilesUpdate};
use vfs_core::{
    Backend, BackendExt, CopyRequest, DeleteRequest, EditRequest, ErrorKind, FileUploadRequest, LsRequest, OpContext,
    RenameRequest, WriteRequest,
};
use vfs_memory::{FilesState, MemoryConfig, StateBackend, StateContentFormat, merge_updates};

use super::{path, run};

/// The `files` of the state that the documents show, and the one that they invoke an agent with.
fn documents() -> Value {
    json!({
        "/path/to/file1.txt": {
            "content": ["line1", "line2", "line3"],
            "created_at": "2025-01-15T10:30:00Z",
            "modified_at": "2025-01-15T10:35:00Z",
        },
        "/README.md": {
            "content": ["# Project", "This is a test."],
            "created_at": "2025-01-15T10:00:00Z",
            "modified_at": "2025-01-15T10:00:00Z",
        },
    })
}

fn state(json: Value) -> FilesState {
    serde_json::from_value(json).expect("a state")
}

#[test]
fn the_documents_state_round_trips() {
    run(async {
        let state = state(documents());
        assert_eq!(serde_json::to_value(&state).expect("it can be written"), documents());

        let files = StateBackend::pure(state);
        assert_eq!(files.read_text("/README.md").await?, "# Project\nThis is a test.");
        let info = files.stat_path("/path/to/file1.txt").await?;
        assert_eq!(info.size, 17);
        let times = json!([info.created_at, info.modified_at]);
        assert_eq!(times, json!(["2025-01-15T10:30:00Z", "2025-01-15T10:35:00Z"]));
        let listed: Vec<_> =
            files.list_dir("/").await?.into_iter().map(|entry| (entry.path.to_string(), entry.is_dir)).collect();
        assert_eq!(listed, [("/README.md".into(), false), ("/path".into(), true)]);
        assert_eq!(files.grep_text("line2").await?[0].path, path("/path/to/file1.txt"));
        Ok(())
    });
}

#[test]
fn both_forms_and_any_bytes_survive_a_checkpoint() {
    run(async {
        let files = StateBackend::session(state(json!({
            "/lines": {"content": ["a", "b", ""], "created_at": "2025-01-15T10:30:00Z", "modified_at": "2025-01-15T10:35:00.123456+00:00", "extra": 1},
            "/plain": {"content": "a\r\nb", "created_at": "2025-01-15T10:30:00Z", "modified_at": "2025-01-15T12:35:00+02:00"},
            "/text": {"content": "ü\n", "encoding": "utf-8", "created_at": "2025-01-15T10:30:00Z", "modified_at": "2025-01-15T10:35:00Z"},
            "/bytes": {"content": "AP+f", "encoding": "base64", "created_at": "2025-01-15T10:30:00Z", "modified_at": "2025-01-15T10:35:00Z"},
            "/empty": {"content": [], "created_at": "2025-01-15T10:30:00Z", "modified_at": "2025-01-15T10:35:00Z"},
        })));
        files.create_text("/new/file", "new").await?;

        let before = files.state();
        let text = serde_json::to_string(&before).expect("it can be written");
        let after: FilesState = serde_json::from_str(&text).expect("it can be read");
        assert_eq!(after, before);

        let paths: Vec<_> = before.iter().map(|(path, _)| path.clone()).collect();
        assert_eq!(paths.len(), 6);
        let cx = OpContext::new();
        let again = StateBackend::pure(after);
        assert_eq!(again.download_files(&cx, paths.clone()).await, files.download_files(&cx, paths).await);
        assert_eq!(again.list_dir("/").await?, files.list_dir("/").await?);

        let bytes = again.download_files(&cx, vec![path("/bytes"), path("/empty")]).await;
        assert_eq!(bytes[0].content.as_deref(), Some(&[0, 255, 159][..]));
        assert_eq!(bytes[1].content.as_deref(), Some(&[][..]));
        Ok(())
    });
}

#[test]
fn a_decoding_error_names_the_key() {
    let file = json!({"content": "x", "created_at": "2025-01-15T10:30:00Z", "modified_at": "2025-01-15T10:30:00Z"});
    let encoded = |encoding: &str, content: Value| {
        let mut file = file.clone();
        file["encoding"] = encoding.into();
        file["content"] = content;
        file
    };
    for (files, names) in [
        (json!({"/../etc/passwd": file}), "/../etc/passwd"),
        (json!({"~/x": file}), "~/x"),
        (json!({"/": file}), "/"),
        (json!({"/a": file, "a/": file}), "/a"),
        (json!({"/half": {"created_at": "2025-01-15T10:30:00Z"}}), "/half"),
        (json!({"/when": {"content": "x", "created_at": "yesterday"}}), "/when"),
        (json!({"/null": null}), "/null"),
        (json!({"/number": encoded("utf-8", 7.into())}), "/number"),
        (json!({"/base64": encoded("base64", "%".into())}), "/base64"),
        (json!({"/legacy": encoded("latin-1", "x".into())}), "/legacy"),
    ] {
        let error = serde_json::from_str::<FilesState>(&files.to_string()).expect_err(names).to_string();
        assert!(error.contains(names) && error.len() < 2048, "{error}");
    }
}

#[test]
fn a_pure_backend_changes_nothing_and_its_updates_merge_to_what_a_session_has() {
    run(async {
        let cx = OpContext::new();
        let mut merged = state(documents());
        let session = StateBackend::session(merged.clone());
        let edit = EditRequest::new(path("/README.md"), "a test", "an edit");
        let copy = CopyRequest::new(path("/path"), path("/copy"));
        let rename = RenameRequest::new(path("/path/to"), path("/moved"));
        let delete = DeleteRequest::new(path("/copy/to/file1.txt"));
        let write = WriteRequest::new(path("/new"), "new");

        for step in 0..5 {
            let pure = StateBackend::pure(merged.clone());
            let mut updates = Vec::new();
            for files in [&pure, &session] {
                updates.push(match step {
                    0 => files.edit(&cx, edit.clone()).await?.files_update,
                    1 => files.copy(&cx, copy.clone()).await?.files_update,
                    2 => files.rename(&cx, rename.clone()).await?.files_update,
                    3 => files.delete(&cx, delete.clone()).await?.files_update,
                    _ => files.write(&cx, write.clone()).await?.files_update,
                });
            }
            assert_eq!(pure.state(), merged, "step {step}");
            assert!(pure.take_update().is_empty());
            let update = updates.swap_remove(0).expect("a mutation has an update");
            let of_session = updates.swap_remove(0).expect("a mutation has an update");
            assert!(update.keys().eq(of_session.keys()), "step {step}");
            merged.merge(update)?;
            assert_eq!(contents(&merged), contents(&session.state()), "step {step}");
        }
        let paths: Vec<_> = merged.iter().map(|(path, _)| path.to_string()).collect();
        assert_eq!(paths, ["/README.md", "/moved/file1.txt", "/new"]);
        Ok(())
    });
}

fn contents(state: &FilesState) -> Vec<(String, Option<bytes::Bytes>)> {
    state.iter().map(|(path, data)| (path.to_string(), data.to_bytes().ok())).collect()
}

#[test]
fn take_update_returns_each_change_once() {
    run(async {
        let start = state(documents());
        let files = StateBackend::session(start.clone());
        assert!(files.take_update().is_empty());
        files.create_text("/a", "1").await?;
        files.write_text("/a", "2").await?;
        files.create_text("/b", "").await?;
        files.delete_file("/b").await?;
        files.delete_file("/README.md").await?;
        let first = files.take_update();
        assert_eq!(first.keys().map(|path| path.as_str()).collect::<Vec<_>>(), ["/README.md", "/a", "/b"]);
        assert!(first[&path("/b")].is_none() && first[&path("/README.md")].is_none());
        assert!(files.take_update().is_empty());
        assert_eq!(start.apply(first.clone())?, files.state());

        files.append_text("/a", "3").await?;
        let second = files.take_update();
        assert_eq!(second.len(), 1);
        assert_eq!(start.apply(merge_updates(first, second))?, files.state());
        assert_eq!(files.read_text("/a").await?, "23");
        Ok(())
    });
}

#[test]
fn a_dry_run_has_no_update() {
    run(async {
        let files = StateBackend::session(state(documents()));
        let request = EditRequest::new(path("/README.md"), "test", "trial").dry_run();
        let result = files.edit(&OpContext::new(), request).await?;
        assert_eq!(result.files_update, None);
        assert!(result.diff.is_some() && files.take_update().is_empty());
        assert_eq!(files.state(), state(documents()));
        Ok(())
    });
}

#[test]
fn a_file_keeps_its_form_and_time_of_making_and_a_new_one_has_the_form_that_was_set() {
    run(async {
        let cx = OpContext::new();
        let made = state(documents()).get(&path("/README.md")).expect("it is there").created_at;
        for format in [StateContentFormat::Text, StateContentFormat::Lines] {
            let files = StateBackend::pure(state(documents())).with_format(format);
            let edited = files.edit(&cx, EditRequest::new(path("/README.md"), "test", "trial")).await?;
            let edited = only_file(edited.files_update);
            let lines = vec!["# Project".to_owned(), "This is a trial.".to_owned()];
            assert_eq!(
                (edited.content, edited.encoding, edited.created_at),
                (FileDataContent::Lines(lines), None, made)
            );
            assert!(edited.modified_at > made);

            let written = only_file(files.create_text("/new", "a\nb\n").await?.files_update);
            match format {
                StateContentFormat::Lines => {
                    assert_eq!(written.content, FileDataContent::Lines(vec!["a".into(), "b".into(), String::new()]));
                    assert_eq!(written.encoding, None);
                }
                _ => {
                    assert_eq!(written.content, FileDataContent::Text("a\nb\n".into()));
                    assert_eq!(written.encoding.as_deref(), Some("utf-8"));
                }
            }
            assert_eq!(written.created_at, written.modified_at);

            let bytes = WriteRequest::new(path("/bytes"), vec![0xff]);
            let bytes = only_file(files.write(&cx, bytes).await?.files_update);
            assert_eq!(
                (bytes.content, bytes.encoding.as_deref()),
                (FileDataContent::Text("/w==".into()), Some("base64"))
            );
        }
        Ok(())
    });
}

fn only_file(update: Option<FilesUpdate>) -> FileData {
    let update = update.expect("a mutation has an update");
    assert_eq!(update.len(), 1);
    update.into_values().next().flatten().expect("it is a file")
}

#[test]
fn uploads_have_one_update_each_and_must_be_consistent() {
    run(async {
        let cx = OpContext::new();
        for files in [StateBackend::pure(FilesState::new()), StateBackend::session(FilesState::new())] {
            let uploads = ["/a", "/a/b", "/c"].map(|at| FileUploadRequest::new(path(at), at.to_owned())).to_vec();
            let responses = files.upload_files(&cx, uploads).await;
            let kinds: Vec<_> =
                responses.iter().map(|response| response.cause.as_ref().map(|cause| cause.kind())).collect();
            assert_eq!(kinds, [None, Some(ErrorKind::NotADirectory), None]);

            let mut merged = FilesState::new();
            for update in responses.into_iter().filter_map(|response| response.files_update) {
                assert_eq!(update.len(), 1);
                merged.merge(update)?;
            }
            assert_eq!(merged.len(), 2);
            let in_place = files.capabilities(&path("/")).mutations == MutationMode::InPlace;
            assert_eq!(files.state(), if in_place { merged } else { FilesState::new() });
        }
        Ok(())
    });
}

#[test]
fn a_file_and_a_directory_merged_into_one_path_can_be_separated() {
    run(async {
        let mut merged = FilesState::new();
        for at in ["/p", "/p/below", "/other"] {
            let written = StateBackend::pure(FilesState::new()).create_text(at, at).await?;
            merged.merge(written.files_update.unwrap_or_default())?;
        }
        let files = StateBackend::session(merged);
        let listing = files.ls(&OpContext::new(), LsRequest::new(path("/"))).await?;
        assert_eq!(listing.entries.iter().map(|entry| entry.path.as_str()).collect::<Vec<_>>(), ["/other", "/p"]);
        assert_eq!(listing.problems.iter().map(|problem| problem.path.as_str()).collect::<Vec<_>>(), ["/p"]);
        assert_eq!(files.read_text("/p").await?, "/p");
        assert_eq!(files.read_text("/p/below").await?, "/p/below");

        files.rename(&OpContext::new(), RenameRequest::new(path("/p"), path("/q"))).await?;
        let listing = files.ls(&OpContext::new(), LsRequest::new(path("/")).recursive()).await?;
        let paths: Vec<_> = listing.entries.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(paths, ["/other", "/p", "/p/below", "/q"]);
        assert!(listing.problems.is_empty());
        Ok(())
    });
}

#[test]
fn display_and_capabilities_of_state_backends() {
    for (files, mutations) in [
        (StateBackend::pure(FilesState::new()), MutationMode::Returned),
        (StateBackend::session(FilesState::new()), MutationMode::InPlace),
    ] {
        let files = files.with_config(MemoryConfig::new().max_file_size(9));
        assert_eq!(files.to_string(), "state");
        let capabilities = files.capabilities(&path("/"));
        assert_eq!((capabilities.mutations, capabilities.max_file_size), (mutations, 9));
    }
}
