//! Spellings of paths, and the root directory.

use vfs_core::{
    CopyRequest, DeleteRequest, EditRequest, Error, ErrorKind, LsRequest, ReadRequest, RenameRequest, VfsPath,
    WriteMode, WriteRequest,
};

use super::LawResult;
use super::law_helpers::ends;
use crate::target::Target;

laws! { "paths" in Semantics:
    "P1" Nothing spellings_of_one_path_reach_one_file in Wrapper,
    "P2" Nothing a_parent_component_is_refused_in_every_spelling,
    "P3" Nothing an_invalid_path_is_refused_quickly_and_with_advice,
    "P6" Nothing the_longest_path_holds_a_file in Storage,
    "P7" OwnRoot the_root_exists_in_an_empty_backend in Storage,
    "P7" OwnRoot the_root_is_not_removed_moved_or_written in Storage,
}

async fn spellings_of_one_path_reach_one_file(t: &Target) -> LawResult {
    t.put("/d/a.txt", "one file\n").await?;
    let many_slashes = format!("/d{}a.txt", "/".repeat(100_000));
    for spelling in ["/d/a.txt", "d/a.txt", "//d//a.txt", "/./d/./a.txt", "/d/a.txt/", "/d/a.txt/.", &many_slashes] {
        assert_eq!(t.text(spelling).await?, "one file\n");
        assert_eq!(t.stat(spelling).await?.path, t.path("/d/a.txt"));
    }
    assert_eq!(t.tree().await?, ["/d", "/d/a.txt"]);
    Ok(())
}

#[track_caller]
fn refused_path(t: &Target, text: &str) -> Error {
    let error = t.refused(VfsPath::parse(text), ErrorKind::InvalidPath);
    assert!(error.path().is_some(), "{error:?} names the path as it was written");
    error
}

async fn a_parent_component_is_refused_in_every_spelling(t: &Target) -> LawResult {
    for text in ["..", "/..", "../x", "/a/..", "/a/../b", "a/./../b", "//..//"] {
        assert!(refused_path(t, text).for_model().contains("'..'"), "{text}");
    }
    Ok(())
}

async fn an_invalid_path_is_refused_quickly_and_with_advice(t: &Target) -> LawResult {
    let long_component = "x".repeat(256);
    let long_path = "/abcd".repeat(1000);
    let huge_component = "x".repeat(4_000_000);
    let many_components = "a/".repeat(2_000_000);
    for (text, advice) in [
        ("/a\0b", "NUL"),
        ("~", "~"),
        ("~root/x", "~"),
        ("C:\\x", "Windows"),
        ("c:/x", "Windows"),
        ("\\\\server\\share", "UNC"),
        (&long_component, "255"),
        (&long_path, "4096"),
        (&huge_component, "255"),
        (&many_components, "4096"),
    ] {
        let error = ends("parsing", async { refused_path(t, text) }).await;
        assert!(error.for_model().contains(advice), "{}", error.for_model());
    }
    Ok(())
}

async fn the_longest_path_holds_a_file(t: &Target) -> LawResult {
    let mut path = t.path("/deep");
    while path.as_str().len() + 201 < t.longest_path - 1 {
        path = path.child(&"d".repeat(200))?;
    }
    path = path.child(&"f".repeat(t.longest_path - path.as_str().len() - 1))?;
    assert_eq!(path.as_str().len(), t.longest_path);
    t.write(WriteRequest::new(path.clone(), "far down\n")).await?;
    t.edit(EditRequest::new(path.clone(), "far", "deep")).await?;
    assert_eq!(t.read(ReadRequest::new(path.clone())).await?.content.as_text(), Some("deep down\n"));
    let parent = path.parent().expect("it is not the root");
    assert_eq!(t.ls(LsRequest::new(parent)).await?.entries[0].path, path);
    assert_eq!(t.delete(DeleteRequest::new(t.path("/deep")).recursive()).await?.files, 1);
    Ok(())
}

async fn the_root_exists_in_an_empty_backend(t: &Target) -> LawResult {
    let root = t.stat("/").await?;
    assert!(root.is_dir && root.path.is_root());
    let listing = t.ls(LsRequest::new(VfsPath::root())).await?;
    assert!(listing.entries.is_empty() && listing.problems.is_empty() && listing.truncated.is_none());
    assert!(t.found("*").await?.is_empty());
    Ok(())
}

async fn the_root_is_not_removed_moved_or_written(t: &Target) -> LawResult {
    use ErrorKind::{AlreadyExists, InvalidArgument, IsADirectory};
    t.put("/a", "keep\n").await?;
    let root = VfsPath::root;
    t.refused(t.delete(DeleteRequest::new(root())).await, InvalidArgument);
    t.refused(t.delete(DeleteRequest::new(root()).recursive()).await, InvalidArgument);
    t.refused(t.rename(RenameRequest::new(root(), t.path("/x"))).await, InvalidArgument);
    t.refused(t.copy(CopyRequest::new(root(), t.path("/x"))).await, InvalidArgument);
    let onto = [AlreadyExists, InvalidArgument, IsADirectory];
    t.refused_as(t.rename(RenameRequest::new(t.path("/a"), root())).await, &onto);
    t.refused_as(t.rename(RenameRequest::new(t.path("/a"), root()).overwrite()).await, &onto);
    t.refused_as(t.copy(CopyRequest::new(t.path("/a"), root()).overwrite()).await, &onto);
    for mode in [WriteMode::CreateNew, WriteMode::Overwrite, WriteMode::Append] {
        t.refused(t.write(WriteRequest::new(root(), "x").mode(mode)).await, IsADirectory);
    }
    t.refused(t.edit(EditRequest::new(root(), "a", "b")).await, IsADirectory);
    t.refused(t.read(ReadRequest::new(root())).await, IsADirectory);
    assert_eq!(t.text("/a").await?, "keep\n");
    assert_eq!(t.tree().await?, ["/a"]);
    Ok(())
}
