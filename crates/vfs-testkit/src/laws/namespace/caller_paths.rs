//! Paths in results and errors, which are those of the caller.

use vfs_core::error::ErrorDetail;
use vfs_core::{
    CopyRequest, DeleteRequest, EditRequest, Error, ErrorKind, FileUploadRequest, GlobRequest, GrepEvent, GrepOutput,
    GrepRequest, LsRequest, ReadRequest, RenameRequest, ResolveRequest, Result, WriteMode, WriteRequest,
};

use super::super::LawResult;
use super::super::law_helpers::cx;
use super::law_helpers::path;
use crate::namespace_factory::NamespaceFactory;
use crate::target::Target;

namespace_laws! {
    "NS8" results_have_paths_of_the_namespace,
    "NS8" searches_have_paths_of_the_namespace,
    "NS8" diffs_have_paths_of_the_namespace,
    "NS9" errors_have_paths_of_the_namespace,
    "NS9" errors_of_two_paths_have_paths_of_the_namespace,
    "NS9" errors_about_versions_and_texts_keep_their_details,
}

/// Creates a file in a mount that is two levels down, and returns the namespace.
async fn one_file(n: &NamespaceFactory) -> Result<Target> {
    let files = n.parts(&["/in/m"]).files;
    files.put("/in/m/d/f", "one\ntwo\n").await?;
    Ok(files)
}

async fn results_have_paths_of_the_namespace(n: &NamespaceFactory) -> LawResult {
    let files = one_file(n).await?;
    let (backend, at, to) = (&files.backend, path("/in/m/d/f"), path("/in/m/to"));
    assert_eq!(files.stat("/in/m/d/f").await?.path, at);
    let resolved = backend.resolve(&cx(), ResolveRequest::new(at.clone())).await?;
    assert_eq!((resolved.path, resolved.names), (at.clone(), 1));
    assert_eq!(files.level("/in/m").await?, ["/in/m/d"]);
    assert_eq!(files.level("/in/m/d").await?, ["/in/m/d/f"]);
    assert_eq!(files.read(ReadRequest::new(at.clone())).await?.path, at);
    assert_eq!(files.write(WriteRequest::new(at.clone(), "one\n").mode(WriteMode::Overwrite)).await?.path, at);
    assert_eq!(files.edit(EditRequest::new(at.clone(), "one", "two")).await?.path, at);
    let copied = files.copy(CopyRequest::new(at.clone(), to.clone())).await?;
    assert_eq!((copied.from, copied.to), (at.clone(), to.clone()));
    let renamed = files.rename(RenameRequest::new(to.clone(), path("/in/m/d/g"))).await?;
    assert_eq!((renamed.from, renamed.to), (to.clone(), path("/in/m/d/g")));
    assert_eq!(files.delete(DeleteRequest::new(path("/in/m/d/g"))).await?.path, path("/in/m/d/g"));
    let uploaded = backend.upload_files(&cx(), vec![FileUploadRequest::new(to.clone(), "x")]).await;
    let downloaded = backend.download_files(&cx(), vec![to.clone()]).await;
    assert_eq!((&uploaded[0].path, &downloaded[0].path), (&to, &to));
    Ok(())
}

async fn searches_have_paths_of_the_namespace(n: &NamespaceFactory) -> LawResult {
    let files = one_file(n).await?;
    for start in ["/", "/in", "/in/m", "/in/m/d"] {
        let globbed = files.globbed(GlobRequest::new("f").path(path(start))).await?;
        assert_eq!(globbed, ["/in/m/d/f"], "{start}");
        let grep = GrepRequest::literal("two").path(path(start));
        assert_eq!(files.hits(grep.clone()).await?, ["/in/m/d/f:2:two"], "{start}");
        let counted = files.grep(grep.clone().output(GrepOutput::Counts)).await?.files;
        assert_eq!(counted[0].path, path("/in/m/d/f"), "{start}");
        let events = files.events(grep).await?;
        assert!(matches!(&events[0], GrepEvent::Match(hit) if hit.path == path("/in/m/d/f")), "{events:?}");
    }
    let named = GrepRequest::literal("two").path(path("/in/m/d/f"));
    assert_eq!(files.hits(named).await?, ["/in/m/d/f:2:two"], "a file is a start, too");
    Ok(())
}

async fn diffs_have_paths_of_the_namespace(n: &NamespaceFactory) -> LawResult {
    let files = one_file(n).await?;
    let edit = |old: &str, new: &str| EditRequest::new(path("/in/m/d/f"), old, new);
    let expected = "--- a/in/m/d/f\n+++ b/in/m/d/f\n";
    for request in [edit("one", "1").dry_run(), edit("one", "--- a/d/f").with_diff()] {
        let diff = files.edit(request).await?.diff.expect("a diff was requested");
        assert!(diff.starts_with(expected), "{diff}");
    }
    let diff = files.edit(edit("two", "2").with_diff()).await?.diff.expect("a diff was requested");
    assert!(diff.contains("\n --- a/d/f\n"), "the content is as it is: {diff}");
    Ok(())
}

/// Asserts that an error about `at`, which the backend calls `inner`, names it as the caller does, in every word.
fn assert_caller_path(files: &Target, error: &Error, at: &str, inner: &str) {
    assert_eq!(error.path(), Some(at), "{error:?}");
    files.assert_fit_to_be_shown(error);
    for words in [error.for_model(), error.to_string()] {
        assert!(!words.replace(at, "").contains(inner), "{words}");
    }
}

async fn errors_have_paths_of_the_namespace(n: &NamespaceFactory) -> LawResult {
    let files = one_file(n).await?;
    for (inner, kind) in [
        ("/missing", ErrorKind::NotFound),
        ("/d/missing/deeper", ErrorKind::NotFound),
        ("/d/f/below", ErrorKind::NotADirectory),
        ("/d", ErrorKind::IsADirectory),
    ] {
        let at = format!("/in/m{inner}");
        let target = || path(&at);
        let mut answers = vec![
            files.read(ReadRequest::new(target())).await.err(),
            files.edit(EditRequest::new(target(), "x", "y")).await.err(),
            files.delete(DeleteRequest::new(target())).await.err(),
            files.download_error(&at).await,
        ];
        if kind == ErrorKind::IsADirectory {
            answers.push(files.write(WriteRequest::new(target(), "x").mode(WriteMode::Overwrite)).await.err());
            let upload = files.backend.upload_files(&cx(), vec![FileUploadRequest::new(target(), "x")]).await.remove(0);
            answers.push(upload.cause);
        } else {
            answers.push(files.stat(&at).await.err());
            answers.push(files.ls(LsRequest::new(target())).await.err());
            answers.push(files.glob(GlobRequest::new("*").path(target())).await.err());
            answers.push(files.grep(GrepRequest::literal("x").path(target())).await.err());
            answers.push(files.events(GrepRequest::literal("x").path(target())).await.err());
            answers.push(files.rename(RenameRequest::new(target(), path("/in/m/new"))).await.err());
            answers.push(files.rename(RenameRequest::new(target(), path("/new"))).await.err());
            answers.push(files.copy(CopyRequest::new(target(), path("/in/m/new"))).await.err());
            answers.push(files.copy(CopyRequest::new(target(), path("/new"))).await.err());
        }
        for (number, answer) in answers.into_iter().enumerate() {
            let error = answer.unwrap_or_else(|| panic!("answer {number} about {at} is no error"));
            assert_eq!(error.kind(), kind, "answer {number}: {error:?}");
            assert_caller_path(&files, &error, &at, inner);
        }
    }
    for start in ["/in/m/d/f", "/in/m/d/f/below"] {
        let error = files.refused(files.ls(LsRequest::new(path(start))).await, ErrorKind::NotADirectory);
        assert_eq!(error.path(), Some(start));
    }
    Ok(())
}

async fn errors_of_two_paths_have_paths_of_the_namespace(n: &NamespaceFactory) -> LawResult {
    let files = one_file(n).await?;
    files.put_each(&["/in/m/e", "/z"]).await?;
    for from in ["/in/m/e", "/z"] {
        let (rename, copy) =
            (RenameRequest::new(path(from), path("/in/m/d/f")), CopyRequest::new(path(from), path("/in/m/d/f")));
        assert_caller_path(
            &files,
            &files.refused(files.rename(rename).await, ErrorKind::AlreadyExists),
            "/in/m/d/f",
            "'/d/f",
        );
        assert_caller_path(
            &files,
            &files.refused(files.copy(copy).await, ErrorKind::AlreadyExists),
            "/in/m/d/f",
            "'/d/f",
        );
        let onto = RenameRequest::new(path(from), path("/in/m/d")).overwrite();
        assert_caller_path(&files, &files.refused(files.rename(onto).await, ErrorKind::IsADirectory), "/in/m/d", "'/d");
        let below = RenameRequest::new(path(from), path("/in/m/d/f/below"));
        let error = files.refused(files.rename(below).await, ErrorKind::NotADirectory);
        assert_caller_path(&files, &error, "/in/m/d/f/below", "'/d/f");
    }
    Ok(())
}

async fn errors_about_versions_and_texts_keep_their_details(n: &NamespaceFactory) -> LawResult {
    let files = one_file(n).await?;
    let at = || path("/in/m/d/f");
    let version = files.stat("/in/m/d/f").await?.version;
    let stale = || "another".into();
    let conflicts = [
        files.write(WriteRequest::new(at(), "x").mode(WriteMode::IfVersion(stale()))).await.map(drop),
        files.edit(EditRequest::new(at(), "one", "x").expected_version(stale())).await.map(drop),
        files.delete(DeleteRequest::new(at()).expected_version(stale())).await.map(drop),
    ];
    for conflict in conflicts {
        let error = files.refused(conflict, ErrorKind::Conflict);
        assert_eq!(error.detail(), Some(&ErrorDetail::Conflict { actual: version.clone() }));
        assert_caller_path(&files, &error, "/in/m/d/f", "'/d/f");
    }
    let exists = files.refused(files.write(WriteRequest::new(at(), "x")).await, ErrorKind::AlreadyExists);
    assert!(exists.for_model().starts_with("Cannot write to /in/m/d/f because it already exists."));
    let missing = files.refused(files.edit(EditRequest::new(at(), "onne", "x")).await, ErrorKind::NoMatch);
    assert!(matches!(missing.detail(), Some(ErrorDetail::NoMatch { nearest, .. }) if nearest[0].text == "one"));
    assert_caller_path(&files, &missing, "/in/m/d/f", "'/d/f");
    let twice = files.refused(files.edit(EditRequest::new(at(), "o", "x")).await, ErrorKind::NotUnique);
    assert!(matches!(twice.detail(), Some(ErrorDetail::NotUnique { count: 2, .. })));
    assert_caller_path(&files, &twice, "/in/m/d/f", "'/d/f");
    let empty = files.refused(files.edit(EditRequest::new(at(), "", "x")).await, ErrorKind::InvalidArgument);
    assert_caller_path(&files, &empty, "/in/m/d/f", "'/d/f");
    let past = files.refused(files.read(ReadRequest::new(at()).offset(9)).await, ErrorKind::InvalidArgument);
    assert_eq!(past.detail(), Some(&ErrorDetail::OffsetOutOfRange { total_lines: 2 }));
    assert_caller_path(&files, &past, "/in/m/d/f", "'/d/f");
    Ok(())
}
