//! Contents of errors, for models and for operators.

use vfs_core::{
    CopyRequest, DeleteRequest, EditRequest, Error, ErrorKind, GlobRequest, GrepRequest, LsRequest, ReadRequest,
    RenameRequest, VfsPath, WriteMode, WriteRequest,
};

use super::LawResult;
use crate::target::Target;

laws! { "errors" in Wrapper:
    "X1" Nothing every_failure_names_the_requested_path in Smoke,
    "X2" Nothing every_failure_is_short_and_hides_host_paths,
    "X3" Nothing a_failure_about_a_long_path_is_short,
    "X4" Nothing a_failure_in_json_has_its_code_path_and_message,
}

/// Returns one failure of each operation at `path`, which is missing, and at a file and a directory.
async fn failures(t: &Target, path: &VfsPath) -> Vec<Error> {
    let path = || path.clone();
    [
        t.ls(LsRequest::new(path())).await.map(drop),
        t.read(ReadRequest::new(path())).await.map(drop),
        t.write(WriteRequest::new(path(), "x").mode(WriteMode::IfVersion("none".into()))).await.map(drop),
        t.edit(EditRequest::new(path(), "a", "b")).await.map(drop),
        t.edit(EditRequest::new(path(), "", "b")).await.map(drop),
        t.delete(DeleteRequest::new(path())).await.map(drop),
        t.rename(RenameRequest::new(path(), t.path("/new"))).await.map(drop),
        t.copy(CopyRequest::new(path(), t.path("/new"))).await.map(drop),
        t.glob(GlobRequest::new("*").path(path())).await.map(drop),
        t.grep(GrepRequest::literal("x").path(path())).await.map(drop),
    ]
    .into_iter()
    .map(|result| result.expect_err("nothing is there"))
    .collect()
}

async fn every_failure_names_the_requested_path(t: &Target) -> LawResult {
    t.put_each(&["/f", "/d/x"]).await?;
    for path in ["/missing", "/missing/deeper/still", "/d/mis sing\n.txt", "/f/below"] {
        for error in failures(t, &t.path(path)).await {
            assert_eq!(error.path(), Some(t.path(path).as_str()), "{error:?}");
        }
    }
    let exists = t.write(WriteRequest::new(t.path("/f"), "x")).await;
    assert_eq!(t.refused(exists, ErrorKind::AlreadyExists).path(), Some(t.path("/f").as_str()));
    let onto = t.rename(RenameRequest::new(t.path("/d/x"), t.path("/f"))).await;
    assert_eq!(t.refused(onto, ErrorKind::AlreadyExists).path(), Some(t.path("/f").as_str()));
    Ok(())
}

async fn every_failure_is_short_and_hides_host_paths(t: &Target) -> LawResult {
    t.put_each(&["/f", "/d/x"]).await?;
    for path in ["/missing", "/f/below", "/d/missing/deeper"] {
        for error in failures(t, &t.path(path)).await {
            t.assert_fit_to_be_shown(&error);
            assert!(error.kind() != ErrorKind::Internal, "{error:?} is a fault of the caller, not of the machine");
        }
    }
    Ok(())
}

async fn a_failure_about_a_long_path_is_short(t: &Target) -> LawResult {
    let long = t.path(&format!("/{}", "directory/".repeat(380)));
    for error in failures(t, &long).await {
        t.assert_fit_to_be_shown(&error);
    }
    let huge = "x".repeat(5 << 20);
    for result in [VfsPath::parse(&huge), VfsPath::parse(&format!("/../{huge}")), t.base.join(&huge)] {
        t.refused(result, ErrorKind::InvalidPath);
    }
    Ok(())
}

async fn a_failure_in_json_has_its_code_path_and_message(t: &Target) -> LawResult {
    let path = t.path("/missing");
    let error = t.refused(t.read(ReadRequest::new(path.clone())).await, ErrorKind::NotFound);
    let json = serde_json::to_value(&error).expect("errors have a form in JSON");
    assert_eq!(json["code"], "not_found");
    assert_eq!(json["path"], path.as_str());
    assert_eq!(json["message"], error.for_model());
    Ok(())
}
