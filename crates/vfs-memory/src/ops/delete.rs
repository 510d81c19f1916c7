//! Deletion of files and directories.

use vfs_core::transfer::DeleteScope;
use vfs_core::{DeleteRequest, DeleteResult, Error, ErrorKind, OpContext};

use super::MutationPlan;
use crate::file_map::{FileMap, FileOrDirectory, MapChanges};

pub(crate) fn delete(files: &FileMap, cx: &OpContext, req: &DeleteRequest) -> MutationPlan<DeleteResult> {
    let path = &req.path;
    if path.is_root() {
        return Err(Error::invalid_argument("the root cannot be deleted; name something below it").with_path(path));
    }
    let change = match files.find(path)? {
        found if req.scope == DeleteScope::EmptyDirectory => return Err(not_an_empty_directory(&found, req)),
        FileOrDirectory::File(file) => match &req.expected_version {
            Some(expected) if expected != file.version() => {
                return Err(Error::conflict(path, Some(file.version().clone())));
            }
            _ => vec![(path.clone(), None)],
        },
        FileOrDirectory::Directory => delete_directory(files, cx, req)?,
    };
    let result = DeleteResult::new(path.clone(), change.len() as u64);
    Ok((change, result))
}

/// Returns the error of deleting only an empty directory. Directories exist only with files, so none is empty.
fn not_an_empty_directory(found: &FileOrDirectory<'_>, req: &DeleteRequest) -> Error {
    match found {
        FileOrDirectory::File(_) => Error::at(ErrorKind::NotADirectory, &req.path),
        FileOrDirectory::Directory => Error::at(ErrorKind::NotEmpty, &req.path),
    }
}

fn delete_directory(files: &FileMap, cx: &OpContext, req: &DeleteRequest) -> vfs_core::Result<MapChanges> {
    let path = &req.path;
    req.check_directory()?;
    files
        .subtree(path)
        .map(|(below, _)| {
            cx.check()?;
            Ok((below.clone(), None))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::fixture::{self, path};

    #[test]
    fn delete_removes_only_the_named_path() {
        let files = fixture::map(&[("/a", ""), ("/d-x", ""), ("/d/x", ""), ("/d/y/z", ""), ("/d0", "")]);
        for (request, left) in [
            (DeleteRequest::new(path("/a")), &["/d-x", "/d/x", "/d/y/z", "/d0"][..]),
            (DeleteRequest::new(path("/a")).recursive(), &["/d-x", "/d/x", "/d/y/z", "/d0"]),
            (DeleteRequest::new(path("/d")).recursive(), &["/a", "/d-x", "/d0"]),
            (DeleteRequest::new(path("/d/y")).recursive(), &["/a", "/d-x", "/d/x", "/d0"]),
            (
                DeleteRequest::new(path("/d0")).expected_version(fixture::file("").version().clone()),
                &["/a", "/d-x", "/d/x", "/d/y/z"],
            ),
        ] {
            let (change, result) = delete(&files, &OpContext::new(), &request).expect("it can be deleted");
            let after = files.with(change);
            assert_eq!(after.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), left, "{request:?}");
            assert_eq!(result.files as usize, files.len() - after.len(), "{request:?}");
        }
    }

    #[test]
    fn the_last_file_takes_its_directories_with_it() {
        let files = fixture::map(&[("/a/b/c", "")]);
        let (change, _) =
            delete(&files, &OpContext::new(), &DeleteRequest::new(path("/a/b/c"))).expect("it can be deleted");
        let after = files.with(change);
        assert_eq!(after.find(&path("/a")).expect_err("it was deleted").kind(), ErrorKind::NotFound);
        assert!(matches!(after.find(&path("/")), Ok(FileOrDirectory::Directory)));
    }

    #[test]
    fn refusals_name_the_path() {
        let files = fixture::map(&[("/f", ""), ("/d/x", "")]);
        for (request, expected) in [
            (DeleteRequest::new(path("/")), ErrorKind::InvalidArgument),
            (DeleteRequest::new(path("/")).recursive(), ErrorKind::InvalidArgument),
            (DeleteRequest::new(path("/missing")).recursive(), ErrorKind::NotFound),
            (DeleteRequest::new(path("/f/x")), ErrorKind::NotADirectory),
            (DeleteRequest::new(path("/d")), ErrorKind::IsADirectory),
            (DeleteRequest::new(path("/d")).recursive().expected_version("v".into()), ErrorKind::InvalidArgument),
            (DeleteRequest::new(path("/f")).expected_version("stale".into()), ErrorKind::Conflict),
            (DeleteRequest::new(path("/f")).only_empty(), ErrorKind::NotADirectory),
            (DeleteRequest::new(path("/d")).only_empty(), ErrorKind::NotEmpty),
            (DeleteRequest::new(path("/d")).only_empty().recursive(), ErrorKind::NotEmpty),
            (DeleteRequest::new(path("/missing")).only_empty(), ErrorKind::NotFound),
        ] {
            let error = delete(&files, &OpContext::new(), &request).expect_err("it is refused");
            assert_eq!((error.kind(), error.path()), (expected, Some(request.path.as_str())), "{request:?}");
        }
    }

    #[test]
    fn a_cancelled_delete_of_a_directory_stops() {
        let files = fixture::map(&[("/d/x", "")]);
        let cx = OpContext::new();
        cx.cancel_token().cancel();
        let error = delete(&files, &cx, &DeleteRequest::new(path("/d")).recursive()).expect_err("it was cancelled");
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    }
}
