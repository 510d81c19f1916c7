//! Copies.

use vfs_core::{CopyRequest, ErrorKind};

use super::LawResult;
use crate::target::Target;

laws! { "copy" in Storage:
    "C1" Nothing a_copy_has_the_same_content_and_is_independent in Smoke,
    "C2" Nothing an_existing_target_is_not_replaced_by_default in Wrapper,
    "C3" Nothing overwrite_replaces_a_file_by_a_file,
    "C4" Nothing a_directory_is_copied_with_everything_below_it in Wrapper,
    "C5" Nothing nothing_is_copied_onto_itself_or_below_itself,
    "C6" Nothing a_missing_source_is_not_found,
    "C7" Nothing overwrite_does_not_mix_files_and_directories,
}

fn request(t: &Target, from: &str, to: &str) -> CopyRequest {
    CopyRequest::new(t.path(from), t.path(to))
}

async fn a_copy_has_the_same_content_and_is_independent(t: &Target) -> LawResult {
    t.put("/a.bin", b"\0\xff one\r\n".to_vec()).await?;
    let result = t.copy(request(t, "/a.bin", "/new/b.bin")).await?;
    assert_eq!((result.from, result.to), (t.path("/a.bin"), t.path("/new/b.bin")));
    assert_eq!((result.replaced, result.files, result.bytes), (false, 1, 8));
    assert_eq!(t.bytes("/new/b.bin").await?, t.bytes("/a.bin").await?);
    t.put("/a.bin", "changed").await?;
    assert_eq!(t.bytes("/new/b.bin").await?, &b"\0\xff one\r\n"[..]);
    t.put("/new/b.bin", "changed, too").await?;
    assert_eq!(t.text("/a.bin").await?, "changed");
    Ok(())
}

async fn an_existing_target_is_not_replaced_by_default(t: &Target) -> LawResult {
    t.put_each(&["/a", "/b", "/d/x", "/e/y"]).await?;
    for (from, to) in [("/a", "/b"), ("/a", "/d"), ("/d", "/a"), ("/d", "/e")] {
        t.refused(t.copy(request(t, from, to)).await, ErrorKind::AlreadyExists);
    }
    assert_eq!(t.text("/b").await?, "/b\n");
    assert_eq!(t.tree().await?, ["/a", "/b", "/d", "/d/x", "/e", "/e/y"]);
    Ok(())
}

async fn overwrite_replaces_a_file_by_a_file(t: &Target) -> LawResult {
    t.put_each(&["/a", "/b"]).await?;
    assert!(t.copy(request(t, "/a", "/b").overwrite()).await?.replaced);
    assert_eq!((t.text("/a").await?, t.text("/b").await?), ("/a\n".into(), "/a\n".into()));
    assert!(!t.copy(request(t, "/a", "/c").overwrite()).await?.replaced);
    Ok(())
}

async fn a_directory_is_copied_with_everything_below_it(t: &Target) -> LawResult {
    t.put_each(&["/d/a", "/d/b/c", "/d/.hidden", "/d-x"]).await?;
    let result = t.copy(request(t, "/d", "/e")).await?;
    assert_eq!((result.files, result.bytes), (3, "/d/a\n/d/b/c\n/d/.hidden\n".len() as u64));
    for (copy, content) in [("/e/a", "/d/a\n"), ("/e/b/c", "/d/b/c\n"), ("/e/.hidden", "/d/.hidden\n")] {
        assert_eq!(t.text(copy).await?, content);
    }
    assert_eq!(t.tree().await?.len(), 11);
    Ok(())
}

async fn nothing_is_copied_onto_itself_or_below_itself(t: &Target) -> LawResult {
    t.put_each(&["/a", "/d/x"]).await?;
    for (from, to) in [("/a", "/a"), ("/d", "/d"), ("/d", "/d/below"), ("/d", "/d/b/c")] {
        t.refused(t.copy(request(t, from, to)).await, ErrorKind::InvalidArgument);
        t.refused(t.copy(request(t, from, to).overwrite()).await, ErrorKind::InvalidArgument);
    }
    assert_eq!(t.tree().await?, ["/a", "/d", "/d/x"]);
    Ok(())
}

async fn a_missing_source_is_not_found(t: &Target) -> LawResult {
    t.put_each(&["/a"]).await?;
    let error = t.refused(t.copy(request(t, "/missing", "/new/b")).await, ErrorKind::NotFound);
    assert_eq!(error.path(), Some(t.path("/missing").as_str()));
    t.refused(t.copy(request(t, "/missing", "/a").overwrite()).await, ErrorKind::NotFound);
    assert_eq!(t.tree().await?, ["/a"], "not even a directory was made");
    Ok(())
}

async fn overwrite_does_not_mix_files_and_directories(t: &Target) -> LawResult {
    t.put_each(&["/a", "/d/x", "/e/y"]).await?;
    t.refused(t.copy(request(t, "/a", "/d").overwrite()).await, ErrorKind::IsADirectory);
    t.refused(t.copy(request(t, "/d", "/a").overwrite()).await, ErrorKind::NotADirectory);
    t.refused(t.copy(request(t, "/d", "/e").overwrite()).await, ErrorKind::NotEmpty);
    assert_eq!(t.tree().await?, ["/a", "/d", "/d/x", "/e", "/e/y"]);
    Ok(())
}
