//! Renames and copies from one mount to another.

use vfs_core::{CopyRequest, ErrorKind, RenameRequest};

use super::super::LawResult;
use super::law_helpers::{NamespaceFixture, path};
use crate::namespace_factory::NamespaceFactory;

namespace_laws! {
    "NS20" a_file_moves_across_mounts,
    "NS20" a_directory_moves_across_mounts_with_everything_below_it,
    "NS20" a_copy_across_mounts_is_independent,
    "NS20" a_directory_is_copied_across_mounts_with_everything_below_it,
    "NS20" within_a_mount_a_file_moves_as_in_the_backend,
    "NS21" an_existing_target_in_another_mount_is_not_replaced_by_default,
    "NS21" overwrite_replaces_a_file_in_another_mount,
    "NS21" overwrite_does_not_mix_files_and_directories_of_mounts,
    "NS22" a_missing_source_of_a_move_across_mounts_is_not_found,
    "NS22" nothing_moves_into_a_mount_below_itself,
    "NS23" a_directory_that_holds_a_mount_is_copied_as_it_is_seen,
}

fn rename(from: &str, to: &str) -> RenameRequest {
    RenameRequest::new(path(from), path(to))
}

fn copy(from: &str, to: &str) -> CopyRequest {
    CopyRequest::new(path(from), path(to))
}

async fn a_file_moves_across_mounts(n: &NamespaceFactory) -> LawResult {
    let NamespaceFixture { files, default, mounts } = n.parts(&["/m", "/m/in", "/o"]);
    let content = b"\0\xff one\r\n";
    files.put("/a.bin", content.to_vec()).await?;
    let ways = ["/a.bin", "/m/new/deep/b", "/m/in/b", "/o/b", "/b"];
    for way in ways.windows(2) {
        let (from, to) = (way[0], way[1]);
        let result = files.rename(rename(from, to)).await?;
        assert_eq!((result.from, result.to, result.replaced), (path(from), path(to), false));
        assert_eq!(files.bytes(to).await?, &content[..]);
        assert!(!files.has(from).await?, "{from} no longer exists");
        assert_eq!(files.found("*").await?, [to]);
    }
    assert_eq!(default.tree().await?, ["/b"]);
    for mount in &mounts {
        assert_eq!(mount.found("*").await?, [""; 0]);
    }
    Ok(())
}

const TREE: [&str; 4] = ["/d/.hidden", "/d/a", "/d/b/c", "/d/b/e/f"];

async fn a_directory_moves_across_mounts_with_everything_below_it(n: &NamespaceFactory) -> LawResult {
    let NamespaceFixture { files, default, mounts } = n.parts(&["/m", "/o"]);
    default.put("/.gitignore", "*\n!*/\n").await?;
    files.put_each(&TREE).await?;
    files.put_each(&["/d-x", "/m/keep"]).await?;
    let result = files.rename(rename("/d", "/m/new/d")).await?;
    assert_eq!((result.from, result.to, result.replaced), (path("/d"), path("/m/new/d"), false));
    assert_eq!(default.tree().await?, ["/.gitignore", "/d-x"]);
    let moved = ["/keep", "/new", "/new/d", "/new/d/.hidden", "/new/d/a", "/new/d/b", "/new/d/b/c", "/new/d/b/e"];
    assert_eq!(mounts[0].tree().await?[..8], moved);
    for at in TREE {
        assert_eq!(files.text(&format!("/m/new{at}")).await?, format!("{at}\n"));
    }
    files.rename(rename("/m/new/d", "/o/d")).await?;
    assert_eq!(mounts[1].files().await?.into_keys().collect::<Vec<_>>(), TREE);
    assert_eq!(mounts[0].files().await?.into_keys().collect::<Vec<_>>(), ["/keep"]);
    Ok(())
}

async fn a_copy_across_mounts_is_independent(n: &NamespaceFactory) -> LawResult {
    let NamespaceFixture { files, .. } = n.parts(&["/m"]);
    files.put("/a", "one\n").await?;
    let result = files.copy(copy("/a", "/m/new/b")).await?;
    assert_eq!((result.from, result.to, result.replaced), (path("/a"), path("/m/new/b"), false));
    assert_eq!((result.files, result.bytes), (1, 4));
    files.put("/a", "two\n").await?;
    assert_eq!(files.text("/m/new/b").await?, "one\n");
    files.copy(copy("/m/new/b", "/c")).await?;
    assert_eq!(files.files().await?.into_keys().collect::<Vec<_>>(), ["/a", "/c", "/m/new/b"]);
    Ok(())
}

async fn a_directory_is_copied_across_mounts_with_everything_below_it(n: &NamespaceFactory) -> LawResult {
    let NamespaceFixture { files, default, mounts } = n.parts(&["/m"]);
    files.put_each(&TREE).await?;
    let result = files.copy(copy("/d", "/m/d")).await?;
    let bytes = TREE.iter().map(|at| at.len() as u64 + 1).sum();
    assert_eq!((result.replaced, result.files, result.bytes), (false, 4, bytes));
    assert_eq!(default.files().await?, mounts[0].files().await?);
    let whole = files.copy(copy("/m", "/copied")).await?;
    assert_eq!((whole.files, files.text("/copied/d/b/c").await?.as_str()), (4, "/d/b/c\n"), "a mount can be copied");
    Ok(())
}

async fn within_a_mount_a_file_moves_as_in_the_backend(n: &NamespaceFactory) -> LawResult {
    let NamespaceFixture { files, default, mounts } = n.parts(&["/m"]);
    files.put_each(&["/m/a", "/m/d/x"]).await?;
    files.rename(rename("/m/a", "/m/new/b")).await?;
    files.copy(copy("/m/d", "/m/e")).await?;
    assert_eq!(mounts[0].found("*").await?, ["/d/x", "/e/x", "/new/b"]);
    assert_eq!(default.tree().await?, [""; 0]);
    Ok(())
}

async fn an_existing_target_in_another_mount_is_not_replaced_by_default(n: &NamespaceFactory) -> LawResult {
    let NamespaceFixture { files, .. } = n.parts(&["/m"]);
    files.put_each(&["/a", "/d/x", "/m/b", "/m/e/y"]).await?;
    let before = files.files().await?;
    for (from, to) in [("/a", "/m/b"), ("/a", "/m/e"), ("/d", "/m/b"), ("/d", "/m/e"), ("/m/b", "/a"), ("/m/e", "/d")] {
        let error = files.refused(files.rename(rename(from, to)).await, ErrorKind::AlreadyExists);
        assert_eq!(error.path(), Some(to));
        let error = files.refused(files.copy(copy(from, to)).await, ErrorKind::AlreadyExists);
        assert_eq!(error.path(), Some(to));
    }
    assert_eq!(files.files().await?, before);
    Ok(())
}

async fn overwrite_replaces_a_file_in_another_mount(n: &NamespaceFactory) -> LawResult {
    let NamespaceFixture { files, .. } = n.parts(&["/m"]);
    files.put_each(&["/a", "/m/b"]).await?;
    let copied = files.copy(copy("/a", "/m/b").overwrite()).await?;
    assert_eq!((copied.replaced, copied.files, files.text("/m/b").await?.as_str()), (true, 1, "/a\n"));
    files.put("/m/b", "another\n").await?;
    assert!(files.rename(rename("/a", "/m/b").overwrite()).await?.replaced);
    assert_eq!(files.text("/m/b").await?, "/a\n");
    assert!(!files.rename(rename("/m/b", "/c").overwrite()).await?.replaced);
    assert_eq!(files.found("*").await?, ["/c"]);
    Ok(())
}

async fn overwrite_does_not_mix_files_and_directories_of_mounts(n: &NamespaceFactory) -> LawResult {
    let NamespaceFixture { files, .. } = n.parts(&["/m"]);
    files.put_each(&["/a", "/d/x", "/m/b", "/m/e/y"]).await?;
    let before = files.files().await?;
    for (from, to, kind) in [
        ("/a", "/m/e", ErrorKind::IsADirectory),
        ("/d", "/m/b", ErrorKind::NotADirectory),
        ("/d", "/m/e", ErrorKind::NotEmpty),
        ("/a", "/m/b/below", ErrorKind::NotADirectory),
        ("/d", "/m/b/below", ErrorKind::NotADirectory),
    ] {
        files.refused(files.rename(rename(from, to).overwrite()).await, kind);
        files.refused(files.copy(copy(from, to).overwrite()).await, kind);
    }
    assert_eq!(files.files().await?, before);
    Ok(())
}

async fn a_missing_source_of_a_move_across_mounts_is_not_found(n: &NamespaceFactory) -> LawResult {
    let NamespaceFixture { files, .. } = n.parts(&["/m"]);
    files.put_each(&["/a", "/m/b"]).await?;
    for (from, to) in [("/missing", "/m/new/x"), ("/m/missing/deeper", "/new/x"), ("/missing", "/m/b")] {
        let error = files.refused(files.rename(rename(from, to).overwrite()).await, ErrorKind::NotFound);
        assert_eq!(error.path(), Some(from));
        let error = files.refused(files.copy(copy(from, to).overwrite()).await, ErrorKind::NotFound);
        assert_eq!(error.path(), Some(from));
    }
    assert_eq!(files.tree().await?, ["/a", "/m", "/m/b"], "not even a directory was made");
    Ok(())
}

async fn nothing_moves_into_a_mount_below_itself(n: &NamespaceFactory) -> LawResult {
    let NamespaceFixture { files, .. } = n.parts(&["/d/m"]);
    files.put_each(&["/d/x", "/d/m/y"]).await?;
    let before = files.files().await?;
    for to in ["/d/m/z", "/d/m", "/d/new", "/d"] {
        files.refused(files.rename(rename("/d", to)).await, ErrorKind::InvalidArgument);
        files.refused(files.copy(copy("/d", to)).await, ErrorKind::InvalidArgument);
        files.refused(files.copy(copy("/d", to).overwrite()).await, ErrorKind::InvalidArgument);
    }
    assert_eq!(files.files().await?, before);
    Ok(())
}

async fn a_directory_that_holds_a_mount_is_copied_as_it_is_seen(n: &NamespaceFactory) -> LawResult {
    let NamespaceFixture { files, default, .. } = n.parts(&["/d/m", "/o"]);
    default.put_each(&["/d/m/lost"]).await?;
    files.put_each(&["/d/x", "/d/m/y"]).await?;
    let result = files.copy(copy("/d", "/o/d")).await?;
    assert_eq!(result.files, 2);
    assert_eq!(files.globbed(vfs_core::GlobRequest::new("*").path(path("/o"))).await?, ["/o/d/m/y", "/o/d/x"]);
    files.copy(copy("/d", "/e")).await?;
    assert_eq!(default.files().await?.into_keys().collect::<Vec<_>>(), ["/d/m/lost", "/d/x", "/e/m/y", "/e/x"]);
    Ok(())
}
