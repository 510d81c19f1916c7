//! Live store: listings, searches, limits and bulk operations.

use vfs_core::multi_modal::{FilePart, MultiModalReadRequest, MultiModalReadResult, PartKind};
use vfs_core::transfer::FileOperationError;
use vfs_core::{
    Backend, BackendExt, CopyRequest, DeleteRequest, EditRequest, ErrorKind, FileUploadRequest, GlobRequest,
    GrepRequest, LsRequest, OpContext, ReadRequest, RenameRequest, StatRequest, WriteRequest,
};
use vfs_memory::{FilesState, MemoryBackend, MemoryConfig, StateBackend};

use super::{path, run};

fn store(files: &[(&'static str, &'static str)]) -> MemoryBackend {
    MemoryBackend::from_files(files.iter().map(|(at, content)| (path(at), (*content).into())))
        .expect("the files fit one another")
}

async fn listed(files: &MemoryBackend, request: LsRequest) -> Result<Vec<String>, ErrorKind> {
    let result = files.ls(&OpContext::new(), request).await.map_err(|error| error.kind())?;
    Ok(result.entries.iter().map(|entry| format!("{}{}", entry.path, if entry.is_dir { "/" } else { "" })).collect())
}

#[test]
fn listings_are_sorted_one_level_of_the_directory_alone() {
    run(async {
        let files = store(&[("/a-b", ""), ("/a.b", ""), ("/a/b", "12"), ("/a/c/d", ""), ("/a0", ""), ("/z/y/x", "")]);
        for (request, expected) in [
            (LsRequest::new(path("/")), Ok(&["/a/", "/a-b", "/a.b", "/a0", "/z/"][..])),
            (LsRequest::new(path("/a")), Ok(&["/a/b", "/a/c/"])),
            (LsRequest::new(path("/a")).recursive(), Ok(&["/a/b", "/a/c/", "/a/c/d"])),
            (LsRequest::new(path("/a/b")), Err(ErrorKind::NotADirectory)),
            (LsRequest::new(path("/a/b/c")), Err(ErrorKind::NotADirectory)),
            (LsRequest::new(path("/missing")), Err(ErrorKind::NotFound)),
        ] {
            let expected = expected.map(|paths| paths.iter().map(|path| (*path).to_owned()).collect());
            assert_eq!(listed(&files, request.clone()).await, expected, "{request:?}");
        }
        assert_eq!(listed(&MemoryBackend::new(), LsRequest::new(path("/"))).await, Ok(Vec::new()));

        let entry = files.stat_path("/a/b").await?;
        assert_eq!(files.list_dir("/a").await?[0], entry);
        assert!(entry.modified_at.is_some() && entry.created_at.is_some() && entry.version.is_some());
        assert!(files.stat_path("/a").await?.is_dir && files.stat_path("/").await?.is_dir);
        Ok(())
    });
}

#[test]
fn searches_see_the_files_of_the_moment_they_began() {
    run(async {
        let files = store(&[("/src/a.rs", "needle\n"), ("/src/b.rs", "hay\nneedle\n"), ("/doc.md", "needle\n")]);
        let found = files.grep_text("needle").await?;
        let places: Vec<_> = found.iter().map(|found| (found.path.as_str(), found.line)).collect();
        assert_eq!(places, [("/doc.md", 1), ("/src/a.rs", 1), ("/src/b.rs", 2)]);

        let stream = files.grep_stream(OpContext::new(), GrepRequest::literal("needle"));
        files.delete(&OpContext::new(), DeleteRequest::new(path("/src")).recursive()).await?;
        let events: Vec<_> = futures::StreamExt::collect(stream).await;
        assert!(events.iter().all(Result::is_ok) && events.len() >= 3, "{events:?}");
        assert_eq!(files.grep_text("needle").await?.len(), 1);

        let result = files.glob(&OpContext::new(), GlobRequest::new("**/*.rs")).await?;
        assert!(result.entries.is_empty());
        assert_eq!(files.glob_files("*.md").await?[0], files.stat_path("/doc.md").await?);
        Ok(())
    });
}

#[test]
fn reads_name_the_path_in_every_refusal() {
    run(async {
        let files = store(&[("/d/f", "one\ntwo\n")]);
        for (at, expected) in [
            ("/", ErrorKind::IsADirectory),
            ("/d", ErrorKind::IsADirectory),
            ("/missing", ErrorKind::NotFound),
            ("/d/f/x", ErrorKind::NotADirectory),
        ] {
            let error = files.read_text(at).await.expect_err("it is no file");
            assert_eq!((error.kind(), error.path()), (expected, Some(at)));
        }
        let error = files.read_lines("/d/f", 7, 1).await.expect_err("past the end");
        assert_eq!((error.kind(), error.path()), (ErrorKind::InvalidArgument, Some("/d/f")));
        let window = files.read_lines("/d/f", 1, 1).await?;
        assert_eq!((window.content.as_text(), window.start_line), (Some("two\n"), 2));
        assert_eq!(Some(window.version), files.stat_path("/d/f").await?.version);
        Ok(())
    });
}

#[test]
fn uploads_and_downloads_answer_for_each_file_in_order() {
    run(async {
        let files = MemoryBackend::with_config(MemoryConfig::new().max_file_size(8));
        files.create_text("/d/x", "x").await?;
        files.create_text("/f", "old").await?;
        let bytes: &[u8] = &[0, 159, 255];
        let uploads = [
            ("/f", "new".as_bytes()),
            ("/d", b"x"),
            ("/", b"x"),
            ("/f/x", b"x"),
            ("/big", b"123456789"),
            ("/b/c", bytes),
        ];
        let uploads = uploads.map(|(at, content)| FileUploadRequest::new(path(at), content.to_vec())).to_vec();
        let responses = files.upload_files(&OpContext::new(), uploads).await;
        let outcomes: Vec<_> = responses
            .iter()
            .map(|response| (response.path.as_str(), response.error, response.cause.as_ref().map(|cause| cause.kind())))
            .collect();
        assert_eq!(
            outcomes,
            [
                ("/f", None, None),
                ("/d", Some(FileOperationError::IsDirectory), Some(ErrorKind::IsADirectory)),
                ("/", Some(FileOperationError::IsDirectory), Some(ErrorKind::IsADirectory)),
                ("/f/x", Some(FileOperationError::InvalidPath), Some(ErrorKind::NotADirectory)),
                ("/big", Some(FileOperationError::InvalidPath), Some(ErrorKind::TooLarge)),
                ("/b/c", None, None),
            ]
        );
        assert_eq!(responses[0].version, files.stat_path("/f").await?.version);

        let paths = ["/b/c", "/missing", "/d", "/f"].map(path).to_vec();
        let responses = files.download_files(&OpContext::new(), paths).await;
        let outcomes: Vec<_> = responses.iter().map(|response| (response.content.as_deref(), response.error)).collect();
        assert_eq!(
            outcomes,
            [
                (Some(bytes), None),
                (None, Some(FileOperationError::FileNotFound)),
                (None, Some(FileOperationError::IsDirectory)),
                (Some("new".as_bytes()), None),
            ]
        );
        Ok(())
    });
}

#[test]
fn a_cancelled_context_ends_every_operation_before_it_changes_anything() {
    run(async {
        let files = store(&[("/f", "text"), ("/d/x", "x")]);
        let before = files.snapshot();
        let cx = OpContext::new();
        cx.cancel_token().cancel();
        let kinds = [
            files.write(&cx, WriteRequest::new(path("/n"), "x")).await.map(drop),
            files.edit(&cx, EditRequest::new(path("/f"), "text", "x")).await.map(drop),
            files.delete(&cx, DeleteRequest::new(path("/f"))).await.map(drop),
            files.rename(&cx, RenameRequest::new(path("/f"), path("/n"))).await.map(drop),
            files.copy(&cx, CopyRequest::new(path("/f"), path("/n"))).await.map(drop),
            files.stat(&cx, StatRequest::new(path("/f"))).await.map(drop),
            files.read(&cx, ReadRequest::new(path("/f"))).await.map(drop),
            files.ls(&cx, LsRequest::new(path("/"))).await.map(drop),
            files.glob(&cx, GlobRequest::new("*")).await.map(drop),
            files.grep(&cx, GrepRequest::literal("x")).await.map(drop),
        ]
        .map(|outcome| outcome.map_err(|error| error.kind()));
        assert_eq!(kinds, [Err(ErrorKind::Cancelled); 10]);
        let uploaded = files.upload_files(&cx, vec![FileUploadRequest::new(path("/n"), "x")]).await;
        let downloaded = files.download_files(&cx, vec![path("/f")]).await;
        assert_eq!(uploaded[0].cause.as_ref().map(|cause| cause.kind()), Some(ErrorKind::Cancelled));
        assert_eq!(downloaded[0].cause.as_ref().map(|cause| cause.kind()), Some(ErrorKind::Cancelled));
        assert_eq!(files.snapshot(), before);
        Ok(())
    });
}

#[test]
fn from_files_refuses_conflicting_files() {
    for (paths, expected) in [
        (&["/"][..], ErrorKind::IsADirectory),
        (&["/a", "/a/b"], ErrorKind::NotADirectory),
        (&["/a/b", "/a"], ErrorKind::IsADirectory),
    ] {
        let error =
            MemoryBackend::from_files(paths.iter().map(|at| (path(at), "x".into()))).expect_err("no such store");
        assert_eq!(error.kind(), expected, "{paths:?}");
    }
}

#[test]
fn display_and_capabilities_of_a_store() {
    let files = MemoryBackend::with_config(MemoryConfig::new().max_file_size(7));
    assert_eq!(files.to_string(), "memory");
    let mut capabilities = vfs_core::Capabilities::new(7);
    capabilities.set_times = true;
    assert_eq!(files.capabilities(&path("/")), capabilities);
    assert!(files.as_snapshots().is_some() && files.as_shell().is_none());
}

#[test]
fn pictures_are_read_as_parts_and_text_as_text() {
    run(async {
        let png: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
        let files = MemoryBackend::from_files([(path("/p.png"), png.into()), (path("/t"), "text".into())])?;
        let state = StateBackend::session(FilesState::new());
        state
            .upload_files(
                &OpContext::new(),
                vec![FileUploadRequest::new(path("/p.png"), png), FileUploadRequest::new(path("/t"), "text")],
            )
            .await;
        for backend in [&files as &dyn Backend, &state] {
            let reader = backend.as_multi_modal().expect("memory reads pictures");
            let request = |at: &str| MultiModalReadRequest::new(ReadRequest::new(path(at)));
            let picture = reader.multi_modal_read(&OpContext::new(), request("/p.png")).await?;
            let part = FilePart::new(PartKind::Image, "image/png", png.into());
            assert_eq!(picture, MultiModalReadResult::Parts(vec![part]), "{backend}");
            let text = reader.multi_modal_read(&OpContext::new(), request("/t")).await?;
            let MultiModalReadResult::Content(text) = text else { panic!("{backend}: text is no part: {text:?}") };
            assert_eq!(text.content.as_text(), Some("text"), "{backend}");
        }
        Ok(())
    });
}
