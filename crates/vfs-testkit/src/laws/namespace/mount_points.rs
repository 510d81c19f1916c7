//! Mount points and their ancestors, which no operation changes.

use vfs_core::{
    CopyRequest, DeleteRequest, EditRequest, ErrorKind, FileUploadRequest, ReadRequest, RenameRequest, Result,
    WriteMode, WriteRequest,
};

use super::super::LawResult;
use super::super::law_helpers::cx;
use super::law_helpers::{FileTexts, NamespaceFixture, path};
use crate::namespace_factory::NamespaceFactory;
use crate::target::Target;

namespace_laws! {
    "NS7" mount_points_and_their_ancestors_are_not_deleted,
    "NS7" mount_points_and_their_ancestors_are_not_renamed,
    "NS7" mount_points_and_their_ancestors_are_not_replaced,
    "NS7" mount_points_and_their_ancestors_are_not_files,
    "NS7" siblings_of_a_mount_can_be_changed,
}

/// A mount with files around it, below a directory that the default backend has, too.
struct MountPointFixture {
    parts: NamespaceFixture,
    before: FileTexts,
}

const FIXED: [&str; 4] = ["/", "/a", "/a/m", "/b"];

async fn mounted_tree(n: &NamespaceFactory) -> Result<MountPointFixture> {
    let parts = n.parts(&["/a/m", "/b"]);
    parts.files.put_each(&["/a/m/x", "/a/y", "/d/f", "/z"]).await?;
    let before = parts.files.files().await?;
    Ok(MountPointFixture { parts, before })
}

impl MountPointFixture {
    /// Asserts that nothing has changed.
    async fn assert_unchanged(&self, what: &str) -> LawResult {
        let NamespaceFixture { files, default, mounts } = &self.parts;
        assert_eq!(files.files().await?, self.before, "{what}");
        assert_eq!(files.level("/").await?, ["/a", "/b", "/d", "/z"], "{what}");
        assert_eq!(files.level("/a").await?, ["/a/m", "/a/y"], "{what}");
        assert_eq!(default.found("*").await?, ["/a/y", "/d/f", "/z"], "{what}");
        assert_eq!(mounts[0].found("*").await?, ["/x"], "{what}");
        Ok(())
    }
}

async fn mount_points_and_their_ancestors_are_not_deleted(n: &NamespaceFactory) -> LawResult {
    let tree = mounted_tree(n).await?;
    let files = &tree.parts.files;
    for at in FIXED {
        for request in [DeleteRequest::new(path(at)), DeleteRequest::new(path(at)).recursive()] {
            let error = files.refused(files.delete(request).await, ErrorKind::InvalidArgument);
            assert_eq!(error.path(), Some(at));
        }
    }
    tree.assert_unchanged("deleted").await
}

async fn mount_points_and_their_ancestors_are_not_renamed(n: &NamespaceFactory) -> LawResult {
    let tree = mounted_tree(n).await?;
    let files = &tree.parts.files;
    for at in FIXED {
        for to in ["/new", "/b/new", "/a/new"] {
            let request = RenameRequest::new(path(at), path(to));
            files.refused(files.rename(request.clone()).await, ErrorKind::InvalidArgument);
            files.refused(files.rename(request.overwrite()).await, ErrorKind::InvalidArgument);
        }
    }
    tree.assert_unchanged("renamed").await
}

async fn mount_points_and_their_ancestors_are_not_replaced(n: &NamespaceFactory) -> LawResult {
    use ErrorKind::{AlreadyExists, InvalidArgument, IsADirectory, NotEmpty};
    let tree = mounted_tree(n).await?;
    let files = &tree.parts.files;
    for to in FIXED {
        for from in ["/z", "/a/m/x", "/d"] {
            let (rename, copy) = (RenameRequest::new(path(from), path(to)), CopyRequest::new(path(from), path(to)));
            let kinds = if to == "/" { [InvalidArgument, IsADirectory] } else { [AlreadyExists, IsADirectory] };
            files.refused_as(files.rename(rename.clone()).await, &kinds);
            files.refused_as(files.copy(copy.clone()).await, &kinds);
            let kinds = if from == "/d" { [InvalidArgument, NotEmpty] } else { [InvalidArgument, IsADirectory] };
            files.refused_as(files.rename(rename.overwrite()).await, &kinds);
            files.refused_as(files.copy(copy.overwrite()).await, &kinds);
        }
    }
    tree.assert_unchanged("replaced").await
}

async fn mount_points_and_their_ancestors_are_not_files(n: &NamespaceFactory) -> LawResult {
    let tree = mounted_tree(n).await?;
    let files = &tree.parts.files;
    for at in FIXED {
        let writes = [WriteMode::CreateNew, WriteMode::Overwrite, WriteMode::Append, WriteMode::IfVersion("1".into())];
        for mode in writes {
            let write = files.write(WriteRequest::new(path(at), "x").mode(mode)).await;
            is_directory(files, at, write);
        }
        is_directory(files, at, files.read(ReadRequest::new(path(at))).await);
        is_directory(files, at, files.edit(EditRequest::new(path(at), "x", "y")).await);
        let mut uploaded = files.backend.upload_files(&cx(), vec![FileUploadRequest::new(path(at), "x")]).await;
        let cause = uploaded.pop().expect("an answer").cause;
        is_directory(files, at, cause.map_or(Ok(()), Err));
        is_directory(files, at, files.download_error(at).await.map_or(Ok(()), Err));
    }
    tree.assert_unchanged("written").await
}

fn is_directory<T: std::fmt::Debug>(files: &Target, at: &str, result: Result<T>) {
    let kinds = [ErrorKind::IsADirectory, ErrorKind::InvalidArgument];
    let kinds = if at == "/" { &kinds[..] } else { &kinds[..1] };
    assert_eq!(files.refused_as(result, kinds).path(), Some(at));
}

async fn siblings_of_a_mount_can_be_changed(n: &NamespaceFactory) -> LawResult {
    let MountPointFixture { parts: NamespaceFixture { files, .. }, .. } = mounted_tree(n).await?;
    files.rename(RenameRequest::new(path("/a/y"), path("/a/yy"))).await?;
    files.delete(DeleteRequest::new(path("/a/m/x"))).await?;
    files.delete(DeleteRequest::new(path("/d")).recursive()).await?;
    assert_eq!(files.tree().await?, ["/a", "/a/m", "/a/yy", "/b", "/z"], "an emptied mount is there still");
    files.put("/a/mm", "a name that only begins alike\n").await?;
    files.delete(DeleteRequest::new(path("/a/mm"))).await?;
    Ok(())
}
