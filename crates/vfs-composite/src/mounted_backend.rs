//! Backend at its mount point.

use std::sync::Arc;

use serde::Serialize;
use vfs_core::operation::UnaryRequest;
use vfs_core::path::{MapResultPaths, PathMapping};
use vfs_core::tree::{MappedTree, OpenTreeRequest, Tree};
use vfs_core::{Backend, Capabilities, OpContext, Result, VfsPath};

use crate::mount_identity::MountIdentity;

/// Description of a mount in the list of mounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MountInfo {
    /// Mount point; `/` for the default backend.
    pub path: VfsPath,
    /// The display form of the backend.
    pub backend: String,
    /// Capabilities at the mount point.
    pub capabilities: Capabilities,
    /// Whether commands run there.
    pub is_executor: bool,
    /// Whether it has a change feed.
    pub has_feed: bool,
}

/// A backend and its mount point.
#[derive(Debug)]
pub(crate) struct MountedBackend {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) mapping: PathMapping,
    pub(crate) identity: Option<MountIdentity>,
}

impl MountedBackend {
    pub(crate) fn new(at: VfsPath, backend: Arc<dyn Backend>) -> Self {
        Self { backend, mapping: PathMapping::new(at, VfsPath::root()), identity: None }
    }

    /// Returns the same mount with `identity`.
    pub(crate) fn with_identity(&self, identity: MountIdentity) -> Self {
        Self { backend: Arc::clone(&self.backend), mapping: self.mapping.clone(), identity: Some(identity) }
    }

    pub(crate) fn at(&self) -> &VfsPath {
        self.mapping.outer()
    }

    pub(crate) fn capabilities(&self, at: &VfsPath) -> Capabilities {
        // A path that is too long for the backend cannot exist in it.
        self.backend.capabilities(&self.mapping.to_inner(at).unwrap_or_default())
    }

    /// Performs `request`, whose paths are all in this mount, in the caller's namespace.
    pub(crate) async fn send<Q>(&self, cx: &OpContext, request: Q) -> Result<Q::Output>
    where
        Q: UnaryRequest,
        Q::Output: MapResultPaths,
    {
        if self.at().is_root() {
            return request.send(&*self.backend, cx).await;
        }
        let inner = request.map_paths(&mut |path| self.mapping.to_inner(path))?;
        let output = inner.send(&*self.backend, cx).await.map_err(|error| self.mapping.error(error))?;
        output.map_paths(&self.mapping)
    }

    /// Returns the mount's tree in the caller's namespace, for a search that may start outside.
    pub(crate) async fn open_tree(&self, cx: &OpContext, req: OpenTreeRequest) -> Result<Arc<dyn Tree>> {
        let is_inside = req.path.starts_with(self.at());
        let inner = if is_inside { self.mapping.to_inner(&req.path)? } else { VfsPath::root() };
        let opened = vfs_search::open_tree(&self.backend, cx, req.at(inner)).await;
        let tree = opened.map_err(|error| self.mapping.error(error).or_path(self.at()))?;
        Ok(if self.at().is_root() { tree } else { Arc::new(MappedTree::new(tree, self.mapping.clone())) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_info_has_the_json_of_its_golden_file() {
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
