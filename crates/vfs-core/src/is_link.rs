//! Detection of symbolic links through the operations of any backend.

use crate::backend::Backend;
use crate::context::OpContext;
use crate::error::{ErrorKind, Result};
use crate::path::VfsPath;
use crate::requests::{LsRequest, ResolveRequest};

/// Returns whether the last component of `path` is a link in `backend`. Links above it are followed.
///
/// # Errors
///
/// The errors of `resolve` and `ls`, unless they show that nothing exists at `path` or that a link there leads outside
/// the backend.
pub async fn is_link(backend: &dyn Backend, cx: &OpContext, path: &VfsPath) -> Result<bool> {
    let (Some(parent), Some(name)) = (path.parent(), path.name()) else { return Ok(false) };
    if !backend.capabilities(path).links {
        return Ok(false);
    }
    let real = match backend.resolve(cx, ResolveRequest::new(path.clone())).await {
        Ok(resolved) => resolved.path,
        Err(error) if error.kind() == ErrorKind::PathEscape => return Ok(true),
        // A circular link is listed as a problem; any other invalid name does not exist.
        Err(error) if error.kind() == ErrorKind::InvalidPath => {
            let listed = backend.ls(cx, LsRequest::new(parent)).await.map(|listed| listed.problems).unwrap_or_default();
            let is_listed = listed.iter().any(|problem| problem.path == path.as_str());
            return if is_listed { Ok(true) } else { Err(error) };
        }
        // The target of a link above may be a file instead of a directory; then the path does not exist.
        Err(error) if matches!(error.kind(), ErrorKind::NotADirectory | ErrorKind::NotFound) => return Ok(false),
        Err(error) => return Err(error),
    };
    if real == *path {
        return Ok(false);
    }
    let parent = backend.resolve(cx, ResolveRequest::new(parent)).await?.path;
    Ok(parent.child(name)? != real)
}
