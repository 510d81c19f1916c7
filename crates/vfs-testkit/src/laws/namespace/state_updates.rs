//! Updates of a state, versions, and many files at a time.

use std::sync::Arc;

use vfs_core::state::FilesUpdate;
use vfs_core::transfer::FileOperationError;
use vfs_core::{
    CopyRequest, DeleteRequest, EditRequest, ErrorKind, FileUploadRequest, GlobRequest, LsRequest, ReadRequest,
    RenameRequest, WriteMode, WriteRequest,
};

use super::super::LawResult;
use super::super::law_helpers::cx;
use super::law_helpers::{NamespaceFixture, around, path};
use crate::fault_injector::{FakeUpdateInterceptor, FaultInjector, FaultSchedule, InjectedFault};
use crate::namespace_factory::NamespaceFactory;

namespace_laws! {
    "NS10" files_updates_have_paths_of_the_namespace,
    "NS10" a_change_of_two_mounts_is_one_files_update,
    "NS11" versions_are_those_of_the_mount,
    "NS12" uploads_to_several_mounts_are_answered_in_order,
    "NS12" downloads_of_several_mounts_are_answered_in_order,
    "NS12" of_two_uploads_of_one_file_the_later_wins,
}

/// Returns the paths of an update, each with whether it is a file now.
fn changed_paths(update: Option<FilesUpdate>) -> Vec<(String, bool)> {
    let update = update.expect("the change has an update");
    update.into_iter().map(|(path, file)| (path.to_string(), file.is_some())).collect()
}

fn expected(paths: &[(&str, bool)]) -> Vec<(String, bool)> {
    paths.iter().map(|(path, is_there)| ((*path).to_owned(), *is_there)).collect()
}

async fn files_updates_have_paths_of_the_namespace(n: &NamespaceFactory) -> LawResult {
    let reporting = around(&n.backend().backend, &Arc::new(FakeUpdateInterceptor));
    let files = n.mount(&n.backend().backend, &[("/in/m", &reporting)]);
    let (a, b) = (|| path("/in/m/a"), || path("/in/m/b"));
    assert_eq!(
        changed_paths(files.write(WriteRequest::new(a(), "x")).await?.files_update),
        expected(&[("/in/m/a", true)])
    );
    let edited = files.edit(EditRequest::new(a(), "x", "y")).await?;
    assert_eq!(changed_paths(edited.files_update), expected(&[("/in/m/a", true)]));
    let copied = files.copy(CopyRequest::new(a(), b())).await?;
    assert_eq!(changed_paths(copied.files_update), expected(&[("/in/m/b", true)]));
    let renamed = files.rename(RenameRequest::new(b(), path("/in/m/c"))).await?;
    assert_eq!(changed_paths(renamed.files_update), expected(&[("/in/m/b", false), ("/in/m/c", true)]));
    let deleted = files.delete(DeleteRequest::new(a())).await?;
    assert_eq!(changed_paths(deleted.files_update), expected(&[("/in/m/a", false)]));
    let uploaded = files.backend.upload_files(&cx(), vec![FileUploadRequest::new(a(), "x")]).await.remove(0);
    assert_eq!(changed_paths(uploaded.files_update), expected(&[("/in/m/a", true)]));
    Ok(())
}

async fn a_change_of_two_mounts_is_one_files_update(n: &NamespaceFactory) -> LawResult {
    let reporting = || around(&n.backend().backend, &Arc::new(FakeUpdateInterceptor));
    let files = n.mount(&reporting(), &[("/m", &reporting())]);
    files.put_each(&["/d/a", "/d/b"]).await?;
    let copied = files.copy(CopyRequest::new(path("/d"), path("/m/copy"))).await?;
    assert_eq!(changed_paths(copied.files_update), expected(&[("/m/copy/a", true), ("/m/copy/b", true)]));
    let renamed = files.rename(RenameRequest::new(path("/d"), path("/m/e"))).await?;
    let all = [("/d/a", false), ("/d/b", false), ("/m/e/a", true), ("/m/e/b", true)];
    let update = changed_paths(renamed.files_update);
    // The update may name a directory that moved with its files, too.
    assert!(all.iter().all(|(at, is_there)| update.contains(&((*at).to_owned(), *is_there))), "{update:?}");
    assert!(update.iter().all(|(at, _)| at.starts_with("/d") || at.starts_with("/m/e/")), "{update:?}");
    Ok(())
}

async fn versions_are_those_of_the_mount(n: &NamespaceFactory) -> LawResult {
    let NamespaceFixture { files, mounts, .. } = n.parts(&["/m"]);
    let at = || path("/m/f");
    let first = files.put("/m/f", "one\n").await?;
    let own = mounts[0].stat("/f").await?.version;
    assert_eq!(own.as_ref(), Some(&first));
    assert_eq!(files.stat("/m/f").await?.version, own);
    assert_eq!(files.read(ReadRequest::new(at())).await?.version, first);
    assert_eq!(files.ls(LsRequest::new(path("/m"))).await?.entries[0].version, own);
    assert_eq!(files.glob(GlobRequest::new("f")).await?.entries[0].version, own);
    assert_eq!(files.backend.download_files(&cx(), vec![at()]).await[0].version, own);
    let if_version = |version| WriteRequest::new(at(), "two\n").mode(WriteMode::IfVersion(version));
    let second = files.write(if_version(first.clone())).await?.version;
    files.refused(files.write(if_version(first.clone())).await, ErrorKind::Conflict);
    let edit = |version| EditRequest::new(at(), "two", "three").expected_version(version);
    files.refused(files.edit(edit(first.clone())).await, ErrorKind::Conflict);
    let third = files.edit(edit(second.clone())).await?.version;
    let delete = |version| DeleteRequest::new(at()).expected_version(version);
    files.refused(files.delete(delete(second)).await, ErrorKind::Conflict);
    assert_eq!(files.text("/m/f").await?, "three\n");
    files.delete(delete(third)).await?;
    files.refused(files.write(if_version(first)).await, ErrorKind::Conflict);
    Ok(())
}

async fn uploads_to_several_mounts_are_answered_in_order(n: &NamespaceFactory) -> LawResult {
    let (default, one) = (n.backend(), n.backend());
    let failing =
        around(&n.backend().backend, &FaultInjector::new(|_| true, FaultSchedule::Every, InjectedFault::FailBefore));
    let files = n.mount(&default.backend, &[("/one", &one.backend), ("/bad", &failing)]);
    one.put_each(&["/d/x"]).await?;
    let paths = ["/one/a", "/z", "/bad/a", "/one/d", "/a", "/one", "/bad/b", "/one/b"];
    let uploads = paths.map(|at| FileUploadRequest::new(path(at), at)).to_vec();
    let answers = files.backend.upload_files(&cx(), uploads).await;
    assert_eq!(answers.iter().map(|answer| answer.path.as_str()).collect::<Vec<_>>(), paths);
    for (answer, at) in answers.iter().zip(paths) {
        let (error, kind) = match at {
            "/one/d" | "/one" => (Some(FileOperationError::IsDirectory), Some(ErrorKind::IsADirectory)),
            at if at.starts_with("/bad") => (Some(FileOperationError::InvalidPath), Some(ErrorKind::Unavailable)),
            _ => (None, None),
        };
        assert_eq!((answer.error, answer.cause.as_ref().map(|cause| cause.kind())), (error, kind), "{at}");
        assert_eq!(answer.version.is_some(), error.is_none(), "{at}");
        if let Some(cause) = &answer.cause {
            assert_eq!(cause.path(), Some(at));
        } else {
            assert_eq!(files.text(at).await?, at);
        }
    }
    assert_eq!(default.tree().await?, ["/a", "/z"]);
    assert_eq!(one.found("*").await?, ["/a", "/b", "/d/x"]);
    Ok(())
}

async fn downloads_of_several_mounts_are_answered_in_order(n: &NamespaceFactory) -> LawResult {
    let (default, one) = (n.backend(), n.backend());
    let failing =
        around(&n.backend().backend, &FaultInjector::new(|_| true, FaultSchedule::Every, InjectedFault::FailBefore));
    let files = n.mount(&default.backend, &[("/one", &one.backend), ("/bad", &failing)]);
    files.put_each(&["/one/a", "/z", "/one/b"]).await?;
    let paths = ["/one/b", "/z", "/bad/a", "/one/missing", "/one/a", "/one", "/missing", "/z"];
    let requested = paths.map(path).to_vec();
    let answers = files.backend.download_files(&cx(), requested).await;
    assert_eq!(answers.iter().map(|answer| answer.path.as_str()).collect::<Vec<_>>(), paths);
    for (answer, at) in answers.iter().zip(paths) {
        let (content, error) = match at {
            "/one" => (None, Some(FileOperationError::IsDirectory)),
            "/bad/a" => (None, Some(FileOperationError::InvalidPath)),
            "/one/missing" | "/missing" => (None, Some(FileOperationError::FileNotFound)),
            _ => (Some(format!("{at}\n").into()), None),
        };
        assert_eq!((&answer.content, answer.error), (&content, error), "{at}");
        assert!(answer.cause.as_ref().is_none_or(|cause| cause.path() == Some(at)), "{at}");
    }
    Ok(())
}

async fn of_two_uploads_of_one_file_the_later_wins(n: &NamespaceFactory) -> LawResult {
    let NamespaceFixture { files, .. } = n.parts(&["/m"]);
    let uploads = [("/m/a", "first"), ("/a", "other"), ("//m/./a", "second")];
    let uploads = uploads.map(|(at, text)| FileUploadRequest::new(path(at), text)).to_vec();
    let answers = files.backend.upload_files(&cx(), uploads).await;
    assert!(answers.iter().all(|answer| answer.cause.is_none()), "{answers:?}");
    assert_eq!((files.text("/m/a").await?.as_str(), files.text("/a").await?.as_str()), ("second", "other"));
    Ok(())
}
