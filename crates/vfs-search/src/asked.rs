//! A backend that lends no tree, as one.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, OnceLock};

use tokio::runtime::Handle;
use vfs_core::tree::{ChildKind, Listing, Located, Opened, Tree};
use vfs_core::{
    Backend, DownloadRequest, Error, ErrorKind, FileInfo, LsRequest, OpContext, Request as _, ResolveRequest, Resolved,
    Result, StatRequest, VfsPath,
};

/// Asks a backend for each listing and each file, on the thread that wants it.
///
/// Those are the threads of a search pool, which may block; where the search was begun in a tokio runtime, what the
/// backend does runs in it.
#[derive(Debug)]
pub(crate) struct AskedTree {
    backend: Arc<dyn Backend>,
    cx: OpContext,
    runtime: Option<Handle>,
}

/// A directory, and once it was listed what is known of its entries.
#[derive(Debug, Clone)]
pub(crate) struct AskedDir {
    path: VfsPath,
    entries: Arc<OnceLock<HashMap<String, FileInfo>>>,
}

impl AskedDir {
    fn new(path: VfsPath) -> Self {
        Self { path, entries: Arc::default() }
    }
}

impl AskedTree {
    pub(crate) fn new(backend: Arc<dyn Backend>, cx: OpContext) -> Self {
        Self { backend, cx, runtime: Handle::try_current().ok() }
    }

    fn wait<T>(&self, answer: impl Future<Output = Result<T>>) -> Result<T> {
        match &self.runtime {
            Some(runtime) => runtime.block_on(answer),
            None => futures::executor::block_on(answer),
        }
    }
}

impl Tree for AskedTree {
    type Dir = AskedDir;

    fn locate(&self, path: &VfsPath) -> Result<Located<AskedDir>> {
        let info = self.wait(self.backend.stat(&self.cx, StatRequest::new(path.clone())))?;
        Ok(match (info.is_dir, path.parent(), path.name()) {
            (false, Some(dir), Some(name)) => Located::File { dir: AskedDir::new(dir), name: name.to_owned() },
            _ => Located::Directory(AskedDir::new(path.clone())),
        })
    }

    fn list(&self, dir: &AskedDir) -> Result<Listing> {
        let found = self.wait(self.backend.ls(&self.cx, LsRequest::new(dir.path.clone())))?;
        let mut listing = Listing::with_capacity(found.entries.len());
        let mut entries = HashMap::with_capacity(found.entries.len());
        for info in found.entries {
            let Some(name) = info.path.name().map(str::to_owned) else { continue };
            listing.push(&name, if info.is_dir { ChildKind::Directory } else { ChildKind::File });
            entries.insert(name, info);
        }
        listing.problems = found.problems;
        // Whoever was first has the same.
        let _ = dir.entries.set(entries);
        Ok(listing)
    }

    fn enter(&self, dir: &AskedDir, name: &str, path: &VfsPath) -> Result<AskedDir> {
        if self.info(dir, name, path.clone())?.is_dir {
            Ok(AskedDir::new(path.clone()))
        } else {
            Err(Error::at(ErrorKind::NotADirectory, path))
        }
    }

    fn identity(&self, _dir: &AskedDir) -> Option<(u64, u64)> {
        None
    }

    fn follow(&self, _dir: &AskedDir, _name: &str) -> Result<ChildKind> {
        Err(Error::new(ErrorKind::Unsupported, "links are not told apart here"))
    }

    fn info(&self, dir: &AskedDir, name: &str, path: VfsPath) -> Result<FileInfo> {
        match dir.entries.get().and_then(|entries| entries.get(name)) {
            Some(info) => Ok(info.clone()),
            // Not listed yet; or a name that came out of no listing, such as that of an ignore file.
            None => self.wait(self.backend.stat(&self.cx, StatRequest::new(path))),
        }
    }

    fn open(&self, dir: &AskedDir, name: &str, _kind: ChildKind) -> Result<Opened> {
        let request = DownloadRequest::new(dir.path.child(name)?);
        let answer = self.wait(request.send(&*self.backend, &self.cx))?;
        let missing = || Error::new(ErrorKind::Internal, "the backend gave neither file nor error");
        answer.content.map(Opened::from).ok_or_else(missing)
    }

    fn resolve(&self, dir: &AskedDir, name: &str) -> Result<Resolved> {
        let request = ResolveRequest::new(dir.path.child(name)?);
        self.wait(self.backend.resolve(&self.cx, request))
    }
}
