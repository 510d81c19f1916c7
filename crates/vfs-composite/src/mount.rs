//! One backend at one place.

use std::sync::Arc;

use serde::Serialize;
use vfs_core::tree::SharedTree;
use vfs_core::{
    Backend, Capabilities, MapPaths, OpContext, OpenTreeRequest, PathMapping, Result, UnaryRequest, VfsPath,
};

use crate::identity::MountIdentity;

/// A mount, as a listing of mounts shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MountInfo {
    /// Where it is; `/` for the default backend.
    pub path: VfsPath,
    /// What is there, as the backend displays itself.
    pub backend: String,
    /// What can be done there.
    pub capabilities: Capabilities,
    /// Whether commands run there.
    pub is_executor: bool,
    /// Whether it has a change feed.
    pub has_feed: bool,
}

/// A backend, and where it is.
#[derive(Debug)]
pub(crate) struct Mount {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) rebase: PathMapping,
    pub(crate) identity: Option<MountIdentity>,
}

impl Mount {
    pub(crate) fn new(at: VfsPath, backend: Arc<dyn Backend>) -> Self {
        Self { backend, rebase: PathMapping::new(at, VfsPath::root()), identity: None }
    }

    /// Returns the same mount with `identity`.
    pub(crate) fn identified(&self, identity: MountIdentity) -> Self {
        Self { backend: Arc::clone(&self.backend), rebase: self.rebase.clone(), identity: Some(identity) }
    }

    pub(crate) fn at(&self) -> &VfsPath {
        self.rebase.outer()
    }

    pub(crate) fn capabilities(&self, at: &VfsPath) -> Capabilities {
        // A path that becomes too long for the backend is one that it cannot have.
        self.backend.capabilities(&self.rebase.to_inner(at).unwrap_or_default())
    }

    /// Performs `request`, whose paths are all in this mount, in the caller's namespace.
    pub(crate) async fn send<Q>(&self, cx: &OpContext, request: Q) -> Result<Q::Output>
    where
        Q: UnaryRequest,
        Q::Output: MapPaths,
    {
        if self.at().is_root() {
            return request.send(&*self.backend, cx).await;
        }
        let inner = request.map_paths(&mut |path| self.rebase.to_inner(path))?;
        let output = inner.send(&*self.backend, cx).await.map_err(|error| self.rebase.error(error))?;
        output.map_paths(&self.rebase)
    }

    /// The mount's tree in the caller's namespace, for a search that may start outside.
    pub(crate) async fn open_tree(&self, cx: &OpContext, req: OpenTreeRequest) -> Result<SharedTree> {
        let is_inside = req.path.starts_with(self.at());
        let inner = if is_inside { self.rebase.to_inner(&req.path)? } else { VfsPath::root() };
        let lent = vfs_search::open_tree(&self.backend, cx, req.at(inner)).await;
        let tree = lent.map_err(|error| self.rebase.error(error).or_path(self.at()))?;
        Ok(if self.at().is_root() { tree } else { tree.rebased(self.rebase.clone()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_listed_with_the_names_of_its_golden_file() {
        let info = MountInfo {
            path: VfsPath::parse("/m").expect("a valid path"),
            backend: "memory".to_owned(),
            capabilities: Capabilities::new(1 << 20),
            is_executor: true,
            has_feed: true,
        };
        let json = serde_json::to_string_pretty(&info).expect("JSON") + "\n";
        assert_eq!(json, include_str!("../tests/golden/mount_info.json"));
    }
}
