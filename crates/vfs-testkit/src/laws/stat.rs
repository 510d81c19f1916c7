//! Metadata of files and directories, and versions.

use chrono::{TimeDelta, Utc};
use vfs_core::backend::AccessMode;
use vfs_core::{
    CopyRequest, DeleteRequest, EditRequest, ErrorKind, FileUploadRequest, GlobRequest, LsRequest, ReadRequest,
    RenameRequest, WriteMode, WriteRequest,
};

use super::LawResult;
use super::law_helpers::cx;
use crate::target::Target;

laws! { "stat" in Storage:
    "F1" Nothing a_file_is_described_in_full in Smoke,
    "F2" Nothing a_directory_has_neither_size_nor_version,
    "F3" Nothing directories_come_into_being_with_the_files_below_them,
    "F4" Nothing a_missing_path_is_not_found,
    "F5" Nothing below_a_file_there_is_no_directory,
    "F6" Nothing a_directory_is_not_a_file,
    "F7" Nothing every_operation_returns_the_same_version in Wrapper,
    "F7" Nothing another_content_is_another_version,
    "F8" Nothing the_time_of_the_last_change_does_not_go_back,
    "F9" EmptyDirectories an_emptied_directory_stays,
    "F9" ImpliedDirectories an_emptied_directory_disappears,
    "F10" Nothing capabilities_match_what_can_be_done in Wrapper,
}

async fn a_file_is_described_in_full(t: &Target) -> LawResult {
    t.put("/a/b.txt", "héllo\n").await?;
    let info = t.stat("/a/b.txt").await?;
    assert_eq!((info.path, info.is_dir, info.size), (t.path("/a/b.txt"), false, 7));
    assert!(info.version.is_some());
    let age = Utc::now() - info.modified_at.expect("a file has a time of change");
    assert!(age.abs() < TimeDelta::hours(1), "changed {age} ago");
    Ok(())
}

async fn a_directory_has_neither_size_nor_version(t: &Target) -> LawResult {
    t.put("/a/b.txt", "x").await?;
    let info = t.stat("/a").await?;
    assert_eq!((info.path, info.is_dir, info.size, info.version), (t.path("/a"), true, 0, None));
    Ok(())
}

async fn directories_come_into_being_with_the_files_below_them(t: &Target) -> LawResult {
    t.put("/a/b/c.txt", "x").await?;
    for directory in ["/a", "/a/b"] {
        assert!(t.stat(directory).await?.is_dir);
    }
    assert_eq!(t.tree().await?, ["/a", "/a/b", "/a/b/c.txt"]);
    Ok(())
}

async fn a_missing_path_is_not_found(t: &Target) -> LawResult {
    t.put("/there.txt", "x").await?;
    for path in ["/missing", "/missing/deeper", "/there", "/there.txt2"] {
        let error = t.refused(t.stat(path).await, ErrorKind::NotFound);
        assert_eq!(error.path(), Some(t.path(path).as_str()));
    }
    Ok(())
}

async fn below_a_file_there_is_no_directory(t: &Target) -> LawResult {
    use ErrorKind::NotADirectory;
    t.put("/f", "a file\n").await?;
    t.put("/g", "another\n").await?;
    let below = || t.path("/f/x");
    t.refused(t.stat("/f/x").await, NotADirectory);
    t.refused(t.ls(LsRequest::new(below())).await, NotADirectory);
    t.refused(t.read(ReadRequest::new(below())).await, NotADirectory);
    for mode in [WriteMode::CreateNew, WriteMode::Overwrite, WriteMode::Append] {
        t.refused(t.write(WriteRequest::new(below(), "x").mode(mode)).await, NotADirectory);
    }
    t.refused(t.write(WriteRequest::new(t.path("/f/x/y"), "x")).await, NotADirectory);
    t.refused(t.edit(EditRequest::new(below(), "a", "b")).await, NotADirectory);
    t.refused(t.delete(DeleteRequest::new(below())).await, NotADirectory);
    t.refused(t.rename(RenameRequest::new(t.path("/g"), below())).await, NotADirectory);
    t.refused(t.copy(CopyRequest::new(t.path("/g"), below())).await, NotADirectory);
    let upload = t.backend.upload_files(&cx(), vec![FileUploadRequest::new(below(), "x")]).await;
    assert_eq!(upload[0].cause.as_ref().map(vfs_core::Error::kind), Some(NotADirectory));
    assert_eq!(t.tree().await?, ["/f", "/g"]);
    assert_eq!(t.text("/f").await?, "a file\n");
    Ok(())
}

async fn a_directory_is_not_a_file(t: &Target) -> LawResult {
    use ErrorKind::IsADirectory;
    t.put("/d/keep", "x").await?;
    t.refused(t.read(ReadRequest::new(t.path("/d"))).await, IsADirectory);
    t.refused(t.edit(EditRequest::new(t.path("/d"), "a", "b")).await, IsADirectory);
    let version = t.stat("/d/keep").await?.version.expect("a file has a version");
    for mode in [WriteMode::CreateNew, WriteMode::Overwrite, WriteMode::Append, WriteMode::IfVersion(version)] {
        t.refused(t.write(WriteRequest::new(t.path("/d"), "x").mode(mode)).await, IsADirectory);
    }
    assert_eq!(t.tree().await?, ["/d", "/d/keep"]);
    Ok(())
}

async fn every_operation_returns_the_same_version(t: &Target) -> LawResult {
    let path = t.path("/d/a.txt");
    let written = t.write(WriteRequest::new(path.clone(), "one\n")).await?.version;
    assert_eq!(t.stat("/d/a.txt").await?.version.as_ref(), Some(&written));
    assert_eq!(t.read(ReadRequest::new(path.clone())).await?.version, written);
    assert_eq!(t.ls(LsRequest::new(t.path("/d"))).await?.entries[0].version.as_ref(), Some(&written));
    assert_eq!(t.glob(GlobRequest::new("a.txt")).await?.entries[0].version.as_ref(), Some(&written));
    let downloaded = t.backend.download_files(&cx(), vec![path.clone()]).await;
    assert_eq!(downloaded[0].version.as_ref(), Some(&written));
    let edited = t.edit(EditRequest::new(path.clone(), "one", "two")).await?.version;
    assert_eq!(t.stat("/d/a.txt").await?.version, Some(edited));
    let uploaded = t.backend.upload_files(&cx(), vec![FileUploadRequest::new(path, "three\n")]).await;
    assert!(uploaded[0].version.is_some());
    assert_eq!(t.stat("/d/a.txt").await?.version, uploaded[0].version);
    Ok(())
}

async fn another_content_is_another_version(t: &Target) -> LawResult {
    let mut seen = Vec::new();
    for round in 0..100 {
        // Same name, same size, as fast as can be: neither size nor a coarse clock may be the version.
        seen.push(t.put("/a.txt", format!("{round:03}\n")).await?);
    }
    seen.push(t.edit(EditRequest::new(t.path("/a.txt"), "099", "100")).await?.version);
    seen.push(t.write(WriteRequest::new(t.path("/a.txt"), "101\n").mode(WriteMode::Append)).await?.version);
    seen.push(t.put("/a.txt", "").await?);
    let count = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), count, "equal versions mean equal content");
    Ok(())
}

async fn the_time_of_the_last_change_does_not_go_back(t: &Target) -> LawResult {
    t.put("/a.txt", "one").await?;
    let first = t.stat("/a.txt").await?.modified_at.expect("a file has a time of change");
    t.put("/a.txt", "two").await?;
    let second = t.stat("/a.txt").await?.modified_at.expect("a file has a time of change");
    t.edit(EditRequest::new(t.path("/a.txt"), "two", "three")).await?;
    let third = t.stat("/a.txt").await?.modified_at.expect("a file has a time of change");
    assert!(first <= second && second <= third, "{first} {second} {third}");
    Ok(())
}

async fn an_emptied_directory_stays(t: &Target) -> LawResult {
    t.put("/a/b/c.txt", "x").await?;
    t.delete(DeleteRequest::new(t.path("/a/b/c.txt"))).await?;
    assert!(t.stat("/a/b").await?.is_dir);
    assert_eq!(t.tree().await?, ["/a", "/a/b"]);
    assert!(t.ls(LsRequest::new(t.path("/a/b"))).await?.entries.is_empty());
    Ok(())
}

async fn an_emptied_directory_disappears(t: &Target) -> LawResult {
    t.put("/keep", "x").await?;
    t.put("/a/b/c.txt", "x").await?;
    t.delete(DeleteRequest::new(t.path("/a/b/c.txt"))).await?;
    t.refused(t.stat("/a/b").await, ErrorKind::NotFound);
    t.refused(t.ls(LsRequest::new(t.path("/a"))).await, ErrorKind::NotFound);
    t.put("/a", "the name is free\n").await?;
    assert_eq!(t.tree().await?, ["/a", "/keep"]);
    Ok(())
}

async fn capabilities_match_what_can_be_done(t: &Target) -> LawResult {
    let capabilities = t.backend.capabilities(&t.base);
    assert_eq!(capabilities.access, AccessMode::ReadWrite, "the laws need a backend that can be written");
    assert!(capabilities.max_file_size >= 16 << 20, "files of 16 MiB can be stored");
    t.put("/a.txt", "x").await?;
    assert_eq!(t.backend.capabilities(&t.path("/a.txt")).max_file_size, capabilities.max_file_size);
    Ok(())
}
