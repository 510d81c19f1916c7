//! Deleting.

use vfs_core::{DeleteRequest, ErrorDetail, ErrorKind};

use super::LawResult;
use crate::target::Target;

laws! { "delete":
    "D1" Nothing a_deleted_file_is_gone,
    "D2" Nothing a_missing_path_is_not_found,
    "D3" Nothing a_directory_goes_only_by_request,
    "D4" Nothing a_directory_goes_with_everything_below_it_and_nothing_else,
    "D5" Nothing a_delete_expects_the_version_that_was_read,
}

async fn a_deleted_file_is_gone(t: &Target) -> LawResult {
    t.put_each(&["/a.txt", "/b.txt"]).await?;
    let result = t.delete(DeleteRequest::new(t.path("/a.txt"))).await?;
    assert_eq!((result.path, result.files), (t.path("/a.txt"), 1));
    assert_eq!(t.tree().await?, ["/b.txt"]);
    t.refused(t.delete(DeleteRequest::new(t.path("/a.txt"))).await, ErrorKind::NotFound);
    t.put("/a.txt", "again\n").await?;
    assert_eq!(t.text("/a.txt").await?, "again\n");
    Ok(())
}

async fn a_missing_path_is_not_found(t: &Target) -> LawResult {
    t.put("/d/a.txt", "x").await?;
    for path in ["/missing", "/d/missing", "/d/missing/deeper", "/d/a"] {
        for request in [DeleteRequest::new(t.path(path)), DeleteRequest::new(t.path(path)).recursive()] {
            let error = t.refused(t.delete(request).await, ErrorKind::NotFound);
            assert_eq!(error.path(), Some(t.path(path).as_str()));
        }
    }
    Ok(())
}

async fn a_directory_goes_only_by_request(t: &Target) -> LawResult {
    t.put("/d/a.txt", "x").await?;
    let error = t.refused(t.delete(DeleteRequest::new(t.path("/d"))).await, ErrorKind::IsADirectory);
    assert_eq!(error.path(), Some(t.path("/d").as_str()));
    assert_eq!(t.tree().await?, ["/d", "/d/a.txt"]);
    Ok(())
}

async fn a_directory_goes_with_everything_below_it_and_nothing_else(t: &Target) -> LawResult {
    t.put_each(&["/d/a", "/d/b/c", "/d/b/.hidden", "/d-x", "/dx/a", "/d.txt", "/e"]).await?;
    let result = t.delete(DeleteRequest::new(t.path("/d")).recursive()).await?;
    assert_eq!((result.path, result.files), (t.path("/d"), 3));
    assert_eq!(t.tree().await?, ["/d-x", "/d.txt", "/dx", "/dx/a", "/e"]);
    assert_eq!(t.delete(DeleteRequest::new(t.path("/e")).recursive()).await?.files, 1, "a file goes, too");
    Ok(())
}

async fn a_delete_expects_the_version_that_was_read(t: &Target) -> LawResult {
    let first = t.put("/a.txt", "one\n").await?;
    let second = t.put("/a.txt", "two\n").await?;
    let request = DeleteRequest::new(t.path("/a.txt"));
    let error = t.refused(t.delete(request.clone().expected_version(first)).await, ErrorKind::Conflict);
    assert_eq!(error.detail(), Some(&ErrorDetail::Conflict { actual: Some(second.clone()) }));
    assert_eq!(t.text("/a.txt").await?, "two\n");
    t.delete(request.expected_version(second)).await?;
    assert!(!t.has("/a.txt").await?);
    Ok(())
}
