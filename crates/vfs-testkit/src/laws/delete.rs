//! Deletion.

use futures::future::join;
use vfs_core::error::ErrorDetail;
use vfs_core::{DeleteRequest, ErrorKind};

use super::LawResult;
use crate::target::Target;

laws! { "delete" in Storage:
    "D1" Nothing a_deleted_file_does_not_exist in Smoke,
    "D2" Nothing a_missing_path_is_not_found,
    "D3" Nothing a_directory_is_deleted_only_by_request in Wrapper,
    "D4" Nothing a_directory_is_deleted_with_everything_below_it_and_nothing_else,
    "D5" Nothing a_delete_expects_the_version_that_was_read in Wrapper,
    "D6" EmptyDirectories an_empty_directory_is_deleted_alone,
    "D6" Nothing a_non_empty_directory_is_not_deleted_as_an_empty_one,
    "D6" Nothing a_file_is_not_deleted_as_an_empty_directory,
    "D7" Nothing a_file_that_is_made_while_its_directory_is_removed_as_empty_is_not_lost,
}

async fn a_deleted_file_does_not_exist(t: &Target) -> LawResult {
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

async fn a_directory_is_deleted_only_by_request(t: &Target) -> LawResult {
    t.put("/d/a.txt", "x").await?;
    let error = t.refused(t.delete(DeleteRequest::new(t.path("/d"))).await, ErrorKind::IsADirectory);
    assert_eq!(error.path(), Some(t.path("/d").as_str()));
    assert_eq!(t.tree().await?, ["/d", "/d/a.txt"]);
    Ok(())
}

async fn a_directory_is_deleted_with_everything_below_it_and_nothing_else(t: &Target) -> LawResult {
    t.put_each(&["/d/a", "/d/b/c", "/d/b/.hidden", "/d-x", "/dx/a", "/d.txt", "/e"]).await?;
    let result = t.delete(DeleteRequest::new(t.path("/d")).recursive()).await?;
    assert_eq!((result.path, result.files), (t.path("/d"), 3));
    assert_eq!(t.tree().await?, ["/d-x", "/d.txt", "/dx", "/dx/a", "/e"]);
    assert_eq!(t.delete(DeleteRequest::new(t.path("/e")).recursive()).await?.files, 1, "a file is deleted, too");
    Ok(())
}

async fn a_delete_expects_the_version_that_was_read(t: &Target) -> LawResult {
    let first = t.put("/a.txt", "one\n").await?;
    let second = t.put("/a.txt", "two\n").await?;
    let request = DeleteRequest::new(t.path("/a.txt"));
    let error = t.refused(t.delete(request.clone().expected_version(first)).await, ErrorKind::Conflict);
    assert_eq!(error.detail(), Some(&ErrorDetail::Conflict { actual: Some(second.clone()) }));
    assert_eq!(t.text("/a.txt").await?, "two\n");
    t.put("/d/x", "x\n").await?;
    let directory = DeleteRequest::new(t.path("/d")).recursive().expected_version(second.clone());
    t.refused(t.delete(directory).await, ErrorKind::InvalidArgument);
    t.delete(request.expected_version(second)).await?;
    assert_eq!(t.tree().await?, ["/d", "/d/x"]);
    Ok(())
}

async fn an_empty_directory_is_deleted_alone(t: &Target) -> LawResult {
    t.put_each(&["/d/e/a", "/d-x/a"]).await?;
    t.delete(DeleteRequest::new(t.path("/d/e/a"))).await?;
    let empty = |path| DeleteRequest::new(t.path(path)).only_empty();
    t.refused(t.delete(empty("/d")).await, ErrorKind::NotEmpty);
    for (directory, left) in [("/d/e", &["/d", "/d-x", "/d-x/a"][..]), ("/d", &["/d-x", "/d-x/a"])] {
        let result = t.delete(empty(directory)).await?;
        assert_eq!((result.path, result.files), (t.path(directory), 0));
        assert_eq!(t.tree().await?, left);
    }
    t.refused(t.delete(empty("/d")).await, ErrorKind::NotFound);
    Ok(())
}

async fn a_non_empty_directory_is_not_deleted_as_an_empty_one(t: &Target) -> LawResult {
    t.put_each(&["/d/a", "/e/.hidden", "/f/g/a"]).await?;
    let before = t.tree().await?;
    for directory in ["/d", "/e", "/f", "/f/g"] {
        let request = DeleteRequest::new(t.path(directory)).only_empty();
        for request in [request.clone(), request.recursive()] {
            let error = t.refused(t.delete(request).await, ErrorKind::NotEmpty);
            assert_eq!(error.path(), Some(t.path(directory).as_str()));
        }
    }
    assert_eq!(t.tree().await?, before);
    Ok(())
}

async fn a_file_is_not_deleted_as_an_empty_directory(t: &Target) -> LawResult {
    let version = t.put("/a.txt", "x").await?;
    let request = |path| DeleteRequest::new(t.path(path)).only_empty();
    for request in [request("/a.txt"), request("/a.txt").recursive(), request("/a.txt").expected_version(version)] {
        let error = t.refused(t.delete(request).await, ErrorKind::NotADirectory);
        assert_eq!(error.path(), Some(t.path("/a.txt").as_str()));
    }
    for missing in ["/missing", "/missing/deeper"] {
        t.refused(t.delete(request(missing)).await, ErrorKind::NotFound);
    }
    assert_eq!(t.text("/a.txt").await?, "x");
    Ok(())
}

async fn a_file_that_is_made_while_its_directory_is_removed_as_empty_is_not_lost(t: &Target) -> LawResult {
    for round in 0..50 {
        let directory = format!("/d{round}");
        // If directories can exist without files, this one exists, and is removed while the file is created.
        t.put(&format!("{directory}/first"), "x").await?;
        t.delete(DeleteRequest::new(t.path(&format!("{directory}/first")))).await?;
        let file = format!("{directory}/second");
        let remove = t.delete(DeleteRequest::new(t.path(&directory)).only_empty());
        let (removed, written) = join(remove, t.put(&file, "keep")).await;
        written?;
        assert_eq!(t.text(&file).await?, "keep", "round {round}: {removed:?}");
        if removed.is_err() {
            t.refused_as(removed, &[ErrorKind::NotEmpty, ErrorKind::NotFound]);
        }
    }
    Ok(())
}
