//! Tree over a backend that provides none: each listing and file is a call of the backend.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::{Arc, OnceLock};

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tokio::runtime::Handle;
use vfs_core::operation::UnaryRequest as _;
use vfs_core::transfer::FileDownloadRequest;
use vfs_core::tree::{ChildKind, Directory, Listing, LookupResult, SearchableContent, Tree};
use vfs_core::{
    Backend, Error, ErrorKind, FileInfo, LsRequest, OpContext, Problem, ResolveRequest, ResolveResult, Result,
    StatRequest, VfsPath,
};

/// Maximum number of entries of a directory that are resolved at a time.
const MAX_CONCURRENT_RESOLVES: usize = 16;

/// A tree whose every listing and file is a call of a backend, made on the thread that needs the result.
///
/// These threads belong to a search pool and may block. If the tree was opened in a tokio runtime, the calls run in
/// that runtime.
#[derive(Debug)]
pub(crate) struct BackendTree {
    backend: Arc<dyn Backend>,
    cx: OpContext,
    runtime: Option<Handle>,
}

/// A directory, with its entries once it was listed.
#[derive(Debug)]
struct BackendDir {
    tree: Arc<BackendTree>,
    path: VfsPath,
    entries: OnceLock<HashMap<String, FileInfo>>,
}

impl BackendDir {
    fn new(tree: &Arc<BackendTree>, path: VfsPath) -> Arc<Self> {
        Arc::new(Self { tree: Arc::clone(tree), path, entries: OnceLock::new() })
    }
}

impl BackendTree {
    pub(crate) fn new(backend: Arc<dyn Backend>, cx: OpContext) -> Self {
        Self { backend, cx, runtime: Handle::try_current().ok() }
    }

    /// Returns the real location of `path`, with all links followed.
    fn resolve_path(&self, path: VfsPath) -> Result<ResolveResult> {
        self.block_on(self.backend.resolve(&self.cx, ResolveRequest::new(path)))
    }

    /// Returns the names among `entries` of `dir` that are links, since a listing describes their targets. If an entry
    /// cannot be resolved, it keeps the kind in the listing and becomes a problem.
    fn links(&self, dir: &VfsPath, entries: &[FileInfo], problems: &mut Vec<Problem>) -> Result<HashSet<String>> {
        if !self.backend.capabilities(dir).links {
            return Ok(HashSet::new());
        }
        let real = self.resolve_path(dir.clone())?.path;
        let resolve = async |name: &str| {
            let path = dir.child(name)?;
            match self.backend.resolve(&self.cx, ResolveRequest::new(path.clone())).await {
                Ok(resolved) => Ok((name.to_owned(), Ok(resolved.path != real.child(name)?))),
                Err(error) if error.is_absence() => Ok((name.to_owned(), Ok(false))),
                Err(error) if matches!(error.kind(), ErrorKind::Cancelled | ErrorKind::Timeout) => Err(error),
                Err(error) => Ok((name.to_owned(), Err(Problem::new(path.as_str(), &error)))),
            }
        };
        let names = entries.iter().filter_map(|entry| entry.path.name());
        let resolved: Vec<_> =
            self.block_on(stream::iter(names.map(resolve)).buffered(MAX_CONCURRENT_RESOLVES).try_collect())?;
        let mut links = HashSet::new();
        for (name, is_link) in resolved {
            match is_link {
                Ok(true) => drop(links.insert(name)),
                Ok(false) => {}
                Err(problem) => problems.push(problem),
            }
        }
        Ok(links)
    }

    fn block_on<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        match &self.runtime {
            Some(runtime) => runtime.block_on(call),
            None => futures::executor::block_on(call),
        }
    }
}

impl Tree for BackendTree {
    fn lookup(self: Arc<Self>, path: &VfsPath) -> Result<LookupResult> {
        let info = self.block_on(self.backend.stat(&self.cx, StatRequest::new(path.clone())))?;
        Ok(match (info.is_dir, path.parent(), path.name()) {
            (false, Some(dir), Some(name)) => {
                LookupResult::File { dir: BackendDir::new(&self, dir), name: name.to_owned() }
            }
            _ => LookupResult::Directory(BackendDir::new(&self, path.clone())),
        })
    }
}

impl Directory for BackendDir {
    fn list(&self) -> Result<Listing> {
        let BackendTree { backend, cx, .. } = &*self.tree;
        let result = self.tree.block_on(backend.ls(cx, LsRequest::new(self.path.clone())))?;
        let mut listing = Listing::with_capacity(result.entries.len());
        listing.problems = result.problems;
        let links = self.tree.links(&self.path, &result.entries, &mut listing.problems)?;
        let mut entries = HashMap::with_capacity(result.entries.len());
        for info in result.entries {
            let Some(name) = info.path.name().map(str::to_owned) else { continue };
            let kind = if links.contains(&name) { ChildKind::Link } else { kind_of(&info) };
            listing.push(&name, kind);
            entries.insert(name, info);
        }
        // An earlier listing has stored the same entries.
        let _ = self.entries.set(entries);
        Ok(listing)
    }

    fn open_dir(&self, name: &str, path: &VfsPath) -> Result<Arc<dyn Directory>> {
        if self.stat(name, path.clone())?.is_dir {
            Ok(Self::new(&self.tree, path.clone()))
        } else {
            Err(Error::at(ErrorKind::NotADirectory, path))
        }
    }

    fn follow_link(&self, name: &str) -> Result<ChildKind> {
        let info = self.stat(name, self.path.child(name)?)?;
        Ok(kind_of(&info))
    }

    fn stat(&self, name: &str, path: VfsPath) -> Result<FileInfo> {
        let BackendTree { backend, cx, .. } = &*self.tree;
        match self.entries.get().and_then(|entries| entries.get(name)) {
            Some(info) => Ok(info.clone()),
            // The directory was not listed yet, or the name comes from no listing, such as that of an ignore file.
            None => self.tree.block_on(backend.stat(cx, StatRequest::new(path))),
        }
    }

    fn open_file(&self, name: &str, _kind: ChildKind) -> Result<SearchableContent> {
        let BackendTree { backend, cx, .. } = &*self.tree;
        let request = FileDownloadRequest::new(self.path.child(name)?);
        let response = self.tree.block_on(request.send(&**backend, cx))?;
        let missing = || Error::new(ErrorKind::Internal, "the backend returned neither content nor an error");
        response.content.map(SearchableContent::from).ok_or_else(missing)
    }

    fn resolve(&self, name: &str) -> Result<ResolveResult> {
        self.tree.resolve_path(self.path.child(name)?)
    }
}

fn kind_of(info: &FileInfo) -> ChildKind {
    if info.is_dir { ChildKind::Directory } else { ChildKind::File }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use futures::executor::block_on;
    use futures::stream::BoxStream;
    use vfs_core::search::LinkMode;
    use vfs_core::{
        Capabilities, CopyRequest, CopyResult, DeleteRequest, DeleteResult, EditRequest, EditResult,
        FileDownloadResponse, FileUploadRequest, FileUploadResponse, GlobRequest, GlobResult, GrepEvent, GrepRequest,
        GrepResult, LsResult, ReadRequest, ReadResult, RenameRequest, RenameResult, Version, WriteRequest, WriteResult,
    };

    use super::*;
    use crate::testing::path;
    use crate::{Pool, glob_on, grep_on};

    /// A backend that provides listings and downloads but no tree: the file `/d/file`, and the links `/d/circle` and
    /// `/way`, which both lead to `/d`.
    #[derive(Debug, Default)]
    struct Linked {
        /// The error with which resolving `/d/file` fails, if it does.
        failure: Option<ErrorKind>,
    }

    impl std::fmt::Display for Linked {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("linked")
        }
    }

    fn real(path: &VfsPath) -> VfsPath {
        let mut real = VfsPath::root();
        for name in path.components() {
            real = match (real.as_str(), name) {
                ("/", "way") | ("/d", "circle") => VfsPath::parse("/d"),
                _ => real.child(name),
            }
            .expect("a path");
        }
        real
    }

    fn info(path: &VfsPath) -> FileInfo {
        match path.name() {
            Some("file") => FileInfo::file(path.clone(), 3, Version::new("1")),
            _ => FileInfo::directory(path.clone()),
        }
    }

    macro_rules! backend {
        ($($name:ident($request:ty) -> $result:ty;)+) => {
            #[async_trait]
            impl Backend for Linked {
                fn capabilities(&self, _: &VfsPath) -> Capabilities {
                    let mut capabilities = Capabilities::new(100);
                    capabilities.links = true;
                    capabilities
                }

                async fn stat(&self, _: &OpContext, req: StatRequest) -> Result<FileInfo> {
                    Ok(info(&req.path))
                }

                async fn resolve(&self, _: &OpContext, req: ResolveRequest) -> Result<ResolveResult> {
                    match self.failure.filter(|_| req.path.name() == Some("file")) {
                        Some(kind) => Err(Error::at(kind, &req.path)),
                        None => Ok(ResolveResult::at(real(&req.path))),
                    }
                }

                async fn ls(&self, _: &OpContext, req: LsRequest) -> Result<LsResult> {
                    let names = if real(&req.path).is_root() { ["d", "way"] } else { ["circle", "file"] };
                    Ok(LsResult::new(names.iter().map(|name| info(&req.path.child(name).expect("a path"))).collect()))
                }

                async fn download_files(&self, _: &OpContext, paths: Vec<VfsPath>) -> Vec<FileDownloadResponse> {
                    let file = |path| FileDownloadResponse::ok(path, "hit".into(), Version::new("1"));
                    paths.into_iter().map(file).collect()
                }

                async fn upload_files(&self, _: &OpContext, _: Vec<FileUploadRequest>) -> Vec<FileUploadResponse> {
                    Vec::new()
                }

                fn grep_stream(&self, _: OpContext, _: GrepRequest) -> BoxStream<'static, Result<GrepEvent>> {
                    stream::empty().boxed()
                }

                $(async fn $name(&self, _: &OpContext, _: $request) -> $result {
                    Err(Error::of(ErrorKind::Unsupported))
                })+
            }
        };
    }

    backend! {
        read(ReadRequest) -> Result<ReadResult>;
        write(WriteRequest) -> Result<WriteResult>;
        open_writer(vfs_core::OpenWriterRequest) -> Result<Box<dyn vfs_core::FileWriter>>;
        edit(EditRequest) -> Result<EditResult>;
        delete(DeleteRequest) -> Result<DeleteResult>;
        rename(RenameRequest) -> Result<RenameResult>;
        copy(CopyRequest) -> Result<CopyResult>;
        glob(GlobRequest) -> Result<GlobResult>;
        grep(GrepRequest) -> Result<GrepResult>;
    }

    #[test]
    fn links_of_a_backend_that_provides_no_tree_are_distinguished_from_their_targets() {
        let (pool, cx) = (Pool::new(1), OpContext::new());
        let tree = || Arc::new(BackendTree::new(Arc::new(Linked::default()), OpContext::new()));
        for (start, found) in [("/", "/d/file"), ("/d", "/d/file"), ("/way", "/way/file")] {
            for links in [LinkMode::Skip, LinkMode::Follow] {
                let request = GlobRequest::new("*").path(path(start)).links(links);
                let globbed = block_on(glob_on(&pool, tree(), cx.clone(), request)).expect("it globs");
                let names: Vec<_> = globbed.entries.iter().map(|entry| entry.path.as_str()).collect();
                assert_eq!(names, [found], "{links:?} from {start}");
                let request = GrepRequest::literal("hit").path(path(start)).links(links);
                let grepped = block_on(grep_on(&pool, tree(), cx.clone(), request)).expect("it greps");
                assert_eq!(grepped.matches.len(), 1, "{links:?} from {start}");
            }
        }
    }

    #[test]
    fn a_file_that_cannot_be_resolved_is_found_and_reported_as_a_problem() {
        let (pool, cx) = (Pool::new(1), OpContext::new());
        for (kind, found, problem) in [
            (ErrorKind::Busy, &["/d/file"][..], "/d/file"),
            (ErrorKind::Unavailable, &["/d/file"], "/d/file"),
            (ErrorKind::PermissionDenied, &["/d/file"], "/d/file"),
            (ErrorKind::NotFound, &["/d/file"], ""),
            (ErrorKind::Timeout, &[], "/d"),
        ] {
            let backend = Linked { failure: Some(kind) };
            let tree = Arc::new(BackendTree::new(Arc::new(backend), OpContext::new()));
            let globbed = block_on(glob_on(&pool, tree, cx.clone(), GlobRequest::new("*"))).expect("it globs");
            let names: Vec<_> = globbed.entries.iter().map(|entry| entry.path.as_str()).collect();
            assert_eq!(names, found, "{kind}");
            let problems: Vec<_> = globbed.problems.iter().map(|at| (at.path.as_str(), at.code)).collect();
            let expected: &[_] = if problem.is_empty() { &[] } else { &[(problem, kind)] };
            assert_eq!(problems, expected);
        }
    }
}
