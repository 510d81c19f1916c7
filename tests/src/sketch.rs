//! Trees for searches that count their calls and can delay them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use vfs_core::tree::{ChildKind, Directory, Listing, LookupResult, SearchableContent, Tree};
use vfs_core::{Error, ErrorKind, FileInfo, ResolveResult, Result, Version, VfsPath};

/// An entry of a [`SketchTree`]. Directories also exist through the entries below them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// A file.
    File(Bytes),
    /// A file that cannot be opened.
    LockedFile,
    /// A directory.
    Directory,
    /// A directory that cannot be listed.
    LockedDirectory,
}

type Hook = Box<dyn Fn(&str) + Send + Sync>;

/// A tree in a map.
#[derive(Default)]
pub struct SketchTree {
    nodes: BTreeMap<String, Node>,
    on_open: Option<Hook>,
    opens: AtomicUsize,
}

impl SketchTree {
    /// A tree of `nodes`, by absolute paths.
    pub fn new(nodes: impl IntoIterator<Item = (String, Node)>) -> Self {
        Self { nodes: nodes.into_iter().collect(), ..Self::default() }
    }

    /// `count` files of `text`, fifty to a directory.
    pub fn alike(count: usize, text: &str) -> Self {
        let text = Bytes::copy_from_slice(text.as_bytes());
        Self::new((0..count).map(|n| (format!("/d{:05}/f{n:07}", n / 50), Node::File(text.clone()))))
    }

    /// Calls `hook` with the path of each file that is opened, before it is.
    #[must_use]
    pub fn on_open(mut self, hook: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_open = Some(Box::new(hook));
        self
    }

    /// How often a file was opened.
    pub fn opens(&self) -> usize {
        self.opens.load(Ordering::SeqCst)
    }

    fn kind(&self, path: &str) -> Option<ChildKind> {
        match self.nodes.get(path) {
            Some(Node::File(_) | Node::LockedFile) => Some(ChildKind::File),
            Some(Node::Directory | Node::LockedDirectory) => Some(ChildKind::Directory),
            None => self.below(path).next().map(|_| ChildKind::Directory),
        }
    }

    fn below(&self, path: &str) -> impl Iterator<Item = &str> {
        let below = format!("{path}/");
        let range = self.nodes.range(below.clone()..);
        range.map_while(move |(path, _)| path.starts_with(&below).then(|| &path[below.len()..]))
    }
}

impl fmt::Debug for SketchTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SketchTree")
            .field("nodes", &self.nodes.len())
            .field("opens", &self.opens)
            .finish_non_exhaustive()
    }
}

impl Tree for SketchTree {
    fn lookup(self: Arc<Self>, path: &VfsPath) -> Result<LookupResult> {
        if path.is_root() {
            return Ok(LookupResult::Directory(SketchDirectory::new(&self, "")));
        }
        let text = path.as_str();
        match (self.kind(text), text.rsplit_once('/')) {
            (Some(ChildKind::File), Some((dir, name))) => {
                Ok(LookupResult::File { dir: SketchDirectory::new(&self, dir), name: name.to_owned() })
            }
            (Some(_), _) => Ok(LookupResult::Directory(SketchDirectory::new(&self, text))),
            (None, _) => Err(Error::not_found(path)),
        }
    }
}

/// A directory of a [`SketchTree`], by its path without a slash at the end.
struct SketchDirectory {
    tree: Arc<SketchTree>,
    path: String,
}

impl SketchDirectory {
    fn new(tree: &Arc<SketchTree>, path: &str) -> Arc<Self> {
        Arc::new(Self { tree: Arc::clone(tree), path: path.to_owned() })
    }
}

impl Directory for SketchDirectory {
    fn list(&self) -> Result<Listing> {
        if self.tree.nodes.get(&self.path) == Some(&Node::LockedDirectory) {
            return Err(Error::new(ErrorKind::PermissionDenied, "it cannot be listed"));
        }
        let mut names: Vec<_> = self.tree.below(&self.path).filter_map(|rest| rest.split('/').next()).collect();
        names.sort_unstable();
        names.dedup();
        // Out of order, as a disk gives them.
        names.reverse();
        let mut listing = Listing::default();
        for name in names {
            if let Some(kind) = self.tree.kind(&format!("{}/{name}", self.path)) {
                listing.push(name, kind);
            }
        }
        Ok(listing)
    }

    fn open_dir(&self, _: &str, path: &VfsPath) -> Result<Arc<dyn Directory>> {
        Ok(SketchDirectory::new(&self.tree, path.as_str()))
    }

    fn follow_link(&self, _: &str) -> Result<ChildKind> {
        Err(Error::new(ErrorKind::Unsupported, "there are no links here"))
    }

    fn stat(&self, _: &str, path: VfsPath) -> Result<FileInfo> {
        Ok(match self.tree.nodes.get(path.as_str()) {
            Some(Node::File(bytes)) => FileInfo::file(path, bytes.len() as u64, Version::new("1")),
            Some(Node::LockedFile) => FileInfo::file(path, 0, Version::new("1")),
            _ => FileInfo::directory(path),
        })
    }

    fn resolve(&self, name: &str) -> Result<ResolveResult> {
        VfsPath::parse(&format!("{}/{name}", self.path)).map(ResolveResult::at)
    }

    fn open_file(&self, name: &str, _: ChildKind) -> Result<SearchableContent> {
        let path = format!("{}/{name}", self.path);
        self.tree.opens.fetch_add(1, Ordering::SeqCst);
        if let Some(hook) = &self.tree.on_open {
            hook(&path);
        }
        match self.tree.nodes.get(&path) {
            Some(Node::File(bytes)) => Ok(SearchableContent::from(bytes.clone())),
            Some(Node::LockedFile) => Err(Error::new(ErrorKind::PermissionDenied, "it cannot be opened")),
            _ => Err(Error::new(ErrorKind::NotFound, "no file is there")),
        }
    }
}
