//! Helper functions of the laws of namespaces.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt as _;
use vfs_core::operation::{Intercepted, UnaryRequest as _};
use vfs_core::transfer::FileDownloadRequest;
use vfs_core::{Backend, Error, GlobRequest, GrepEvent, GrepRequest, Interceptor, LsRequest, Problem, Result, VfsPath};

use super::super::law_helpers::cx;
use crate::namespace_factory::NamespaceFactory;
use crate::target::Target;

/// A namespace, and each of its backends by itself: the default one, then the others in the order they were named.
pub(super) struct NamespaceFixture {
    pub(super) files: Target,
    pub(super) default: Target,
    pub(super) mounts: Vec<Target>,
}

/// The text of every file of a backend.
pub(super) type FileTexts = BTreeMap<String, String>;

/// Returns `text` as a path.
pub(super) fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("laws name valid paths")
}

/// Returns `inner` with `layer` around it.
pub(super) fn around<A: Interceptor>(inner: &Arc<dyn Backend>, layer: &Arc<A>) -> Arc<dyn Backend> {
    Arc::new(Intercepted::new(Arc::clone(inner), Arc::clone(layer)))
}

impl NamespaceFactory {
    /// Returns a backend of its own, without mounts.
    pub(super) fn backend(&self) -> Target {
        Target::new((self.memory)())
    }

    /// Mounts `mounts` over `default`.
    pub(super) fn mount(&self, default: &Arc<dyn Backend>, mounts: &[(&str, &Arc<dyn Backend>)]) -> Target {
        let mounts = mounts.iter().map(|(at, backend)| (path(at), Arc::clone(*backend))).collect();
        Target::new((self.mounted)(Arc::clone(default), mounts))
    }

    /// Returns an empty backend, with others mounted over it at `places`.
    pub(super) fn parts(&self, places: &[&str]) -> NamespaceFixture {
        let (default, mounts) = (self.backend(), places.iter().map(|_| self.backend()).collect::<Vec<_>>());
        let table: Vec<_> = places.iter().copied().zip(mounts.iter().map(|mount| &mount.backend)).collect();
        NamespaceFixture { files: self.mount(&default.backend, &table), default, mounts }
    }
}

impl Target {
    /// Returns the text of every file.
    pub(super) async fn files(&self) -> Result<FileTexts> {
        let mut files = FileTexts::new();
        for entry in self.ls(LsRequest::new(VfsPath::root()).recursive()).await?.entries {
            if !entry.is_dir {
                let text = self.bytes(entry.path.as_str()).await?;
                files.insert(entry.path.to_string(), String::from_utf8_lossy(&text).into_owned());
            }
        }
        Ok(files)
    }

    /// Returns the names of one level of a directory.
    pub(super) async fn level(&self, directory: &str) -> Result<Vec<String>> {
        Ok(self.names(&self.ls(LsRequest::new(self.path(directory))).await?.entries))
    }

    /// Returns the paths that a glob with `request` finds.
    pub(super) async fn globbed(&self, request: GlobRequest) -> Result<Vec<String>> {
        Ok(self.names(&self.glob(request).await?.entries))
    }

    /// Returns all items of a streamed search.
    pub(super) async fn events(&self, request: GrepRequest) -> Result<Vec<GrepEvent>> {
        self.backend.grep_stream(cx(), request).collect::<Vec<_>>().await.into_iter().collect()
    }

    /// Returns the error of downloading `at`, if it is one.
    pub(super) async fn download_error(&self, at: &str) -> Option<Error> {
        FileDownloadRequest::new(self.path(at)).send(&*self.backend, &cx()).await.err()
    }
}

/// Returns the paths of problems.
pub(super) fn places(problems: &[Problem]) -> Vec<&str> {
    problems.iter().map(|problem| problem.path.as_str()).collect()
}
