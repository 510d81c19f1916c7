//! Mount table, which routes paths to backends.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use vfs_core::{Backend, Error, ErrorKind, OpContext, Result, VfsPath};

use crate::mount_identity::MountIdentity;
use crate::mounted_backend::{MountInfo, MountedBackend};

/// An immutable mount table. A change creates another one.
#[derive(Debug, Clone)]
pub(crate) struct MountTable {
    default: Arc<MountedBackend>,
    mounts: BTreeMap<VfsPath, Arc<MountedBackend>>,
    executor: Option<VfsPath>,
}

impl MountTable {
    pub(crate) fn new(default: Arc<dyn Backend>) -> Self {
        Self {
            default: Arc::new(MountedBackend::new(VfsPath::root(), default)),
            mounts: BTreeMap::new(),
            executor: None,
        }
    }

    /// Returns this table with `backend` at `at`.
    pub(crate) fn with(&self, at: VfsPath, backend: Arc<dyn Backend>) -> Result<Self> {
        if at.is_root() {
            let message = "the default backend is at the root; mount at a directory below it";
            return Err(Error::invalid_argument(message).with_path(&at));
        }
        if self.mounts.contains_key(&at) {
            let message = "a backend is mounted here already; unmount it first";
            return Err(Error::new(ErrorKind::AlreadyExists, message).with_path(&at));
        }
        let mut table = self.clone();
        table.mounts.insert(at.clone(), Arc::new(MountedBackend::new(at, backend)));
        Ok(table)
    }

    /// Returns this table without the mount at `at`, and that mount.
    pub(crate) fn without(&self, at: &VfsPath) -> Result<(Self, Arc<MountedBackend>)> {
        let mut table = self.clone();
        let mount = table.mounts.remove(at).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "no backend is mounted here; list the mounts").with_path(at)
        })?;
        if table.executor.as_ref() == Some(at) {
            table.executor = None;
        }
        Ok((table, mount))
    }

    /// Returns this table with `identity` for the mount at `at`.
    pub(crate) fn with_identity(&self, at: &VfsPath, identity: MountIdentity) -> Result<Self> {
        let mut table = self.clone();
        let mount = if at.is_root() { Some(&mut table.default) } else { table.mounts.get_mut(at) };
        let mount = mount.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "no backend is mounted here; list the mounts").with_path(at)
        })?;
        *mount = Arc::new(mount.with_identity(identity));
        Ok(table)
    }

    /// Returns this table with commands running in the mount at `at`.
    pub(crate) fn with_executor_at(&self, at: VfsPath) -> Result<Self> {
        let mount = if at.is_root() { Some(&self.default) } else { self.mounts.get(&at) };
        let mount = mount.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "no backend is mounted here; list the mounts").with_path(&at)
        })?;
        if mount.backend.as_shell().is_none() {
            return Err(Error::new(ErrorKind::Unsupported, "the backend here has no shell").with_path(&at));
        }
        Ok(Self { executor: Some(at), ..self.clone() })
    }

    /// Returns the mount that runs commands.
    pub(crate) fn executor(&self) -> Option<&Arc<MountedBackend>> {
        self.executor.as_ref().map(|at| self.route(at))
    }

    /// Returns the mount of `path`: the one at its longest prefix of whole segments.
    pub(crate) fn route(&self, path: &VfsPath) -> &Arc<MountedBackend> {
        if self.mounts.is_empty() {
            return &self.default;
        }
        self.mounted_prefixes(path).next().unwrap_or(&self.default)
    }

    /// Returns the mounts at `path` and above it, the default one last.
    pub(crate) fn above<'t, 'p>(
        &'t self,
        path: &'p VfsPath,
    ) -> impl Iterator<Item = &'t Arc<MountedBackend>> + use<'t, 'p> {
        self.mounted_prefixes(path).chain([&self.default])
    }

    fn mounted_prefixes<'t, 'p>(
        &'t self,
        path: &'p VfsPath,
    ) -> impl Iterator<Item = &'t Arc<MountedBackend>> + use<'t, 'p> {
        let text = path.as_str();
        let ends = text.match_indices('/').map(|(at, _)| at).rev();
        [text.len()].into_iter().chain(ends).filter_map(move |end| self.mounts.get(&text[..end]))
    }

    /// Returns the mounts strictly below `directory`, ordered by the bytes of their paths.
    pub(crate) fn below<'t, 'p>(
        &'t self,
        directory: &'p VfsPath,
    ) -> impl Iterator<Item = &'t Arc<MountedBackend>> + use<'t, 'p> {
        let text = if directory.is_root() { "" } else { directory.as_str() };
        let after = (Bound::Excluded(text), Bound::Unbounded);
        // Siblings with the same prefix, such as `/a-b`, are ordered between `/a` and the paths below it.
        let siblings = self.mounts.range::<str, _>(after).take_while(move |(at, _)| at.as_str().starts_with(text));
        siblings.filter(move |(at, _)| at.as_str().as_bytes()[text.len()] == b'/').map(|(_, mount)| mount)
    }

    /// Returns whether a mount is at or below `path`, which makes it a directory whatever the backends contain.
    pub(crate) fn is_mount_or_ancestor(&self, path: &VfsPath) -> bool {
        !self.mounts.is_empty() && (self.is_mount(path) || self.has_mounts_below(path))
    }

    /// Returns whether a backend is mounted below `path`.
    pub(crate) fn has_mounts_below(&self, path: &VfsPath) -> bool {
        self.below(path).next().is_some()
    }

    /// Returns whether a backend is mounted at `path` itself.
    pub(crate) fn is_mount(&self, path: &VfsPath) -> bool {
        self.mounts.contains_key(path)
    }

    /// Returns the names in `directory` that lead to mounts.
    pub(crate) fn mount_names_in(&self, directory: &VfsPath) -> BTreeSet<String> {
        let name =
            |mount: &Arc<MountedBackend>| mount.at().strip_prefix(directory)?.split('/').next().map(str::to_owned);
        self.below(directory).filter_map(name).collect()
    }

    /// Returns the location of `path` by the identity of its mount, if that has one.
    pub(crate) fn location(&self, cx: &OpContext, path: &VfsPath) -> Result<Option<String>> {
        let mount = self.route(path);
        let Some(identity) = &mount.identity else { return Ok(None) };
        Ok(identity.location(cx, &mount.mapping.to_inner(path)?))
    }

    pub(crate) fn list(&self) -> Vec<MountInfo> {
        let executor = self.executor.as_ref();
        let info = |mount: &Arc<MountedBackend>| MountInfo {
            path: mount.at().clone(),
            backend: mount.backend.to_string(),
            capabilities: mount.capabilities(mount.at()),
            is_executor: executor == Some(mount.at()),
            has_feed: mount.backend.as_watch().is_some(),
        };
        [&self.default].into_iter().chain(self.mounts.values()).map(info).collect()
    }
}

#[cfg(test)]
mod tests {
    use vfs_memory::MemoryBackend;

    use super::*;

    fn path(text: &str) -> VfsPath {
        VfsPath::parse(text).expect("a valid path")
    }

    fn table(mounts: &[&str]) -> MountTable {
        let memory = || -> Arc<dyn Backend> { Arc::new(MemoryBackend::new()) };
        mounts
            .iter()
            .try_fold(MountTable::new(memory()), |table, at| table.with(path(at), memory()))
            .expect("different places")
    }

    #[test]
    fn the_longest_prefix_of_whole_segments_decides() {
        let table = table(&["/memories", "/memories/projects", "/a/b/c"]);
        for (at, expected) in [
            ("/", "/"),
            ("/memories", "/memories"),
            ("/memories/x", "/memories"),
            ("/memories/projects/x/y", "/memories/projects"),
            ("/memoriesx", "/"),
            ("/memories/projectsx", "/memories"),
            ("/a/b", "/"),
            ("/a/b/c/d", "/a/b/c"),
        ] {
            assert_eq!(table.route(&path(at)).at().as_str(), expected, "{at}");
        }
        let above: Vec<_> = table.above(&path("/memories/projects/x")).map(|mount| mount.at().as_str()).collect();
        assert_eq!(above, ["/memories/projects", "/memories", "/"]);
    }

    #[test]
    fn ancestors_of_a_mount_are_directories() {
        let table = table(&["/a/b", "/a-b/c", "/a/b/d/e"]);
        for (at, expected) in
            [("/", true), ("/a", true), ("/a/b", true), ("/a/b/d", true), ("/a/b/x", false), ("/a-", false)]
        {
            assert_eq!(table.is_mount_or_ancestor(&path(at)), expected, "{at}");
        }
        let names = |at| table.mount_names_in(&path(at)).into_iter().collect::<Vec<_>>();
        assert_eq!(names("/"), ["a", "a-b"]);
        assert_eq!(names("/a"), ["b"]);
        assert_eq!(names("/a/b"), ["d"]);
        assert!(!self::table(&[]).is_mount_or_ancestor(&VfsPath::root()));
    }
}
