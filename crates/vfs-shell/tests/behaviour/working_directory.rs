//! Working directory of commands.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use vfs_core::{ErrorKind, ExecuteRequest};

use super::{Place, path};

#[tokio::test]
async fn the_working_directory_is_inside_the_root() {
    let place = Place::new();
    let outside = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir_all(place.host("a b/deep")).expect("made");
    fs::write(place.host("file"), "").expect("written");
    symlink("a b", place.host("inside")).expect("linked");
    symlink(outside.path(), place.host("outside")).expect("linked");
    symlink("../..", place.host("a b/up")).expect("linked");
    let root = fs::canonicalize(place.directory.path()).expect("it is there");
    for (cwd, expected) in [("/", ""), ("/a b", "a b"), ("/a b/deep", "a b/deep"), ("/inside/deep", "a b/deep")] {
        let response = place.run(ExecuteRequest::new("/bin/pwd").cwd(path(cwd))).await;
        let expected = root.join(expected).display().to_string();
        assert_eq!(response.stdout.trim_end(), expected.trim_end_matches('/'), "{cwd}");
    }
    for (cwd, kind) in [
        ("/missing", ErrorKind::NotFound),
        ("/a b/missing/x", ErrorKind::NotFound),
        ("/file", ErrorKind::NotADirectory),
        ("/file/x", ErrorKind::NotADirectory),
        ("/outside", ErrorKind::PathEscape),
        ("/a b/up", ErrorKind::PathEscape),
    ] {
        let error = place.try_run(ExecuteRequest::new("touch /tmp/never").cwd(path(cwd))).await.expect_err(cwd);
        assert_eq!((error.kind(), error.path()), (kind, Some(cwd)), "{error}");
        assert!(!error.for_model().contains(&root.display().to_string()), "{error}");
    }
}

#[tokio::test]
async fn a_directory_that_may_not_be_entered_is_refused() {
    let place = Place::new();
    fs::create_dir(place.host("closed")).expect("made");
    fs::set_permissions(place.host("closed"), fs::Permissions::from_mode(0o0)).expect("ours");
    let answer = place.try_run(ExecuteRequest::new("pwd").cwd(path("/closed"))).await;
    if rustix::process::geteuid().is_root() {
        answer.expect("root may");
    } else {
        assert_eq!(answer.expect_err("refused").kind(), ErrorKind::PermissionDenied);
    }
}
