//! Renames.

use vfs_core::{ErrorKind, RenameRequest};

use super::LawResult;
use crate::target::Target;

laws! { "rename" in Storage:
    "M1" Nothing a_file_moves_with_its_content in Smoke,
    "M2" Nothing an_existing_target_is_not_replaced_by_default in Wrapper,
    "M3" Nothing overwrite_replaces_a_file_by_a_file,
    "M4" Nothing a_directory_moves_with_everything_below_it in Wrapper,
    "M5" Nothing nothing_moves_onto_itself_or_below_itself,
    "M6" Nothing a_missing_source_is_not_found,
    "M7" Nothing overwrite_does_not_mix_files_and_directories,
    "M7" EmptyDirectories a_directory_replaces_an_empty_one,
}

fn request(t: &Target, from: &str, to: &str) -> RenameRequest {
    RenameRequest::new(t.path(from), t.path(to))
}

async fn a_file_moves_with_its_content(t: &Target) -> LawResult {
    t.put("/a.bin", b"\0\xff one\r\n".to_vec()).await?;
    let result = t.rename(request(t, "/a.bin", "/new/deep/b.bin")).await?;
    assert_eq!((result.from, result.to), (t.path("/a.bin"), t.path("/new/deep/b.bin")));
    assert!(!result.replaced);
    assert_eq!(t.bytes("/new/deep/b.bin").await?, &b"\0\xff one\r\n"[..]);
    assert_eq!(t.tree().await?, ["/new", "/new/deep", "/new/deep/b.bin"]);
    Ok(())
}

async fn an_existing_target_is_not_replaced_by_default(t: &Target) -> LawResult {
    t.put_each(&["/a", "/b", "/d/x", "/e/y"]).await?;
    for (from, to) in [("/a", "/b"), ("/a", "/d"), ("/d", "/a"), ("/d", "/e"), ("/d/x", "/d")] {
        t.refused(t.rename(request(t, from, to)).await, ErrorKind::AlreadyExists);
    }
    assert_eq!(t.tree().await?, ["/a", "/b", "/d", "/d/x", "/e", "/e/y"]);
    assert_eq!((t.text("/a").await?, t.text("/b").await?), ("/a\n".into(), "/b\n".into()));
    Ok(())
}

async fn overwrite_replaces_a_file_by_a_file(t: &Target) -> LawResult {
    t.put_each(&["/a", "/b"]).await?;
    assert!(t.rename(request(t, "/a", "/b").overwrite()).await?.replaced);
    assert_eq!(t.tree().await?, ["/b"]);
    assert_eq!(t.text("/b").await?, "/a\n");
    assert!(!t.rename(request(t, "/b", "/c").overwrite()).await?.replaced);
    assert_eq!(t.text("/c").await?, "/a\n");
    Ok(())
}

async fn a_directory_moves_with_everything_below_it(t: &Target) -> LawResult {
    t.put_each(&["/d/a", "/d/b/c", "/d/.hidden", "/d-x", "/dx/a"]).await?;
    t.rename(request(t, "/d", "/d-moved/here")).await?;
    let here = ["/d-moved/here", "/d-moved/here/.hidden", "/d-moved/here/a", "/d-moved/here/b", "/d-moved/here/b/c"];
    let mut expected = vec!["/d-moved", "/d-x", "/dx", "/dx/a"];
    expected.extend(here);
    expected.sort_unstable();
    assert_eq!(t.tree().await?, expected);
    assert_eq!(t.text("/d-moved/here/b/c").await?, "/d/b/c\n");
    Ok(())
}

async fn nothing_moves_onto_itself_or_below_itself(t: &Target) -> LawResult {
    t.put_each(&["/a", "/d/x"]).await?;
    let missing = [("/missing", "/missing"), ("/missing", "/missing/below")];
    for (from, to) in [("/a", "/a"), ("/d", "/d"), ("/d", "/d/below"), ("/d", "/d/x/below")].into_iter().chain(missing)
    {
        t.refused(t.rename(request(t, from, to)).await, ErrorKind::InvalidArgument);
        t.refused(t.rename(request(t, from, to).overwrite()).await, ErrorKind::InvalidArgument);
    }
    assert_eq!(t.tree().await?, ["/a", "/d", "/d/x"]);
    t.rename(request(t, "/d", "/d2")).await?;
    assert_eq!(t.tree().await?, ["/a", "/d2", "/d2/x"], "a name that only begins alike is another name");
    Ok(())
}

async fn a_missing_source_is_not_found(t: &Target) -> LawResult {
    t.put_each(&["/a"]).await?;
    for (from, to) in [("/missing", "/b"), ("/missing/deeper", "/b"), ("/missing", "/new/dir/b")] {
        let error = t.refused(t.rename(request(t, from, to)).await, ErrorKind::NotFound);
        assert_eq!(error.path(), Some(t.path(from).as_str()));
    }
    t.refused(t.rename(request(t, "/missing", "/a").overwrite()).await, ErrorKind::NotFound);
    assert_eq!(t.tree().await?, ["/a"], "not even a directory was made");
    Ok(())
}

async fn overwrite_does_not_mix_files_and_directories(t: &Target) -> LawResult {
    t.put_each(&["/a", "/d/x", "/e/y"]).await?;
    t.refused(t.rename(request(t, "/a", "/d").overwrite()).await, ErrorKind::IsADirectory);
    t.refused(t.rename(request(t, "/d", "/a").overwrite()).await, ErrorKind::NotADirectory);
    t.refused(t.rename(request(t, "/d", "/e").overwrite()).await, ErrorKind::NotEmpty);
    assert_eq!(t.tree().await?, ["/a", "/d", "/d/x", "/e", "/e/y"]);
    Ok(())
}

async fn a_directory_replaces_an_empty_one(t: &Target) -> LawResult {
    t.put_each(&["/d/x", "/e/y"]).await?;
    t.rename(request(t, "/e/y", "/y")).await?;
    assert!(t.rename(request(t, "/d", "/e").overwrite()).await?.replaced);
    assert_eq!(t.tree().await?, ["/e", "/e/x", "/y"]);
    Ok(())
}
