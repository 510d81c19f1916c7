//! Directory trees that search engines walk, for implementers of backends.

mod mapped_tree;
mod sketch;

use std::fmt;
use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::path::VfsPath;
use crate::requests::{FileInfo, Problem, ResolveResult};

pub use crate::facets::TreeProvider;
pub use crate::requests::{OpenTreeRequest, TreeUse};

pub use self::mapped_tree::MappedTree;
pub use self::sketch::{Sketch, SketchQuery, Sketcher};

/// The type of a directory entry, without following links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A FIFO, a socket or a device, which is never opened.
    Other,
}

/// The entries of one directory, in any order.
///
/// Duplicate names count once.
///
/// ```
/// use vfs_core::tree::{ChildKind, Listing};
///
/// let mut listing = Listing::default();
/// listing.push("src", ChildKind::Directory);
/// assert_eq!(listing.iter().next(), Some(("src", ChildKind::Directory)));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// The concatenated names: a directory may have a million entries, most of which do not match.
    names: String,
    children: Vec<ListingChild>,
    /// Entries without a valid name, such as one that is not UTF-8. A problem whose path does not start with `/` has the name of
    /// the entry in this directory.
    pub problems: Vec<Problem>,
}

/// An entry of a listing, with the range of its name.
#[derive(Debug, Clone, Copy)]
struct ListingChild {
    start: usize,
    end: usize,
    kind: ChildKind,
}

/// The assumed average length of a name in bytes.
const AVERAGE_NAME_BYTES: usize = 16;

impl Listing {
    /// Creates an empty listing with a capacity of about `entries`.
    pub fn with_capacity(entries: usize) -> Self {
        let (names, children) = (String::with_capacity(entries * AVERAGE_NAME_BYTES), Vec::with_capacity(entries));
        Self { names, children, problems: Vec::new() }
    }

    /// Adds an entry, whose name is one path component.
    pub fn push(&mut self, name: &str, kind: ChildKind) {
        let start = self.names.len();
        self.names.push_str(name);
        self.children.push(ListingChild { start, end: self.names.len(), kind });
    }

    /// Removes all entries and problems, and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.names.clear();
        self.children.clear();
        self.problems.clear();
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.children.len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    /// Returns the names and types of the entries.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, ChildKind)> {
        (0..self.len()).map(|index| self.entry(index))
    }

    /// Keeps the entries for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, ChildKind) -> bool) {
        let names = &self.names;
        self.children.retain(|child| keep(&names[child.start..child.end], child.kind));
    }

    /// Returns the entry at `index`, in the order of insertion.
    ///
    /// # Panics
    ///
    /// Panics if `index` is out of bounds.
    pub fn entry(&self, index: usize) -> (&str, ChildKind) {
        let child = self.children[index];
        (&self.names[child.start..child.end], child.kind)
    }

    /// Returns the name of the entry at `index`, in the order of insertion.
    ///
    /// # Panics
    ///
    /// Panics if `index` is out of bounds.
    pub fn name(&self, index: usize) -> &str {
        self.entry(index).0
    }
}

/// The result of a lookup in a tree.
#[derive(Debug, Clone)]
pub enum LookupResult {
    /// A directory.
    Directory(Arc<dyn Directory>),
    /// A file in its directory, after following links.
    File {
        /// The directory.
        dir: Arc<dyn Directory>,
        /// The name of the file.
        name: String,
    },
}

impl LookupResult {
    /// Returns the directory, which was looked up at `path`.
    ///
    /// # Errors
    ///
    /// [`NotADirectory`](ErrorKind::NotADirectory) if the entry is a file.
    pub fn into_dir(self, path: &VfsPath) -> Result<Arc<dyn Directory>> {
        match self {
            Self::Directory(dir) => Ok(dir),
            Self::File { .. } => Err(Error::at(ErrorKind::NotADirectory, path)),
        }
    }
}

/// The content of a file that was opened for searching.
pub enum SearchableContent {
    /// The content is in memory.
    Bytes {
        /// The content.
        bytes: Bytes,
        /// Whether the first MiB contains a NUL, if known.
        is_binary: Option<bool>,
        /// A callback that receives the sketch of the content.
        learn: Option<SketchCallback>,
    },
    /// The content is read while it is searched.
    Reader {
        /// A reader from the beginning of the file.
        reader: Box<dyn Read + Send>,
        /// The likely size, as a hint. If this many bytes were read and the buffer had room for more, the file has ended.
        size: u64,
        /// A callback that receives the sketch of the content.
        learn: Option<SketchCallback>,
    },
}

/// A callback that receives the [`Sketch`] of a whole file, for [`Directory::prefilter`]. A search that makes no sketch drops the callback.
pub type SketchCallback = Box<dyn FnOnce(Sketch) + Send>;

impl SearchableContent {
    /// Creates a content of about `size` bytes that is read while it is searched.
    pub fn reader(reader: impl Read + Send + 'static, size: u64) -> Self {
        Self::Reader { reader: Box::new(reader), size, learn: None }
    }
}

impl From<Bytes> for SearchableContent {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes { bytes, is_binary: None, learn: None }
    }
}

impl fmt::Debug for SearchableContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SearchableContent::Bytes { bytes, is_binary, .. } => {
                let size = bytes.len();
                f.debug_struct("Bytes").field("size", &size).field("is_binary", is_binary).finish_non_exhaustive()
            }
            SearchableContent::Reader { size, .. } => {
                f.debug_struct("Reader").field("size", size).finish_non_exhaustive()
            }
        }
    }
}

/// A tree of files that can be listed and searched.
///
/// # Behaviour
///
/// * A lookup opens only its entry: the root need not exist or be readable.
/// * A lookup consumes a handle on the tree, which the directories that it opens may keep.
/// * Methods of a tree and of its directories may block. They are called on blocking threads and search workers, and in async code
///   only by backends in memory.
///
/// # Errors
///
/// Errors of a tree and of its directories need not name a path, as the search adds it.
///
/// ```
/// use std::sync::Arc;
/// use vfs_core::tree::{ChildKind, Directory, Listing, SearchableContent, Tree, LookupResult};
/// use vfs_core::{Error, ErrorKind, FileInfo, ResolveResult, Result, Version, VfsPath};
///
/// /// A tree with one file, `/hello`.
/// struct OneFile;
///
/// impl Tree for OneFile {
///     fn lookup(self: Arc<Self>, path: &VfsPath) -> Result<LookupResult> {
///         match path.as_str() {
///             "/" => Ok(LookupResult::Directory(self)),
///             "/hello" => Ok(LookupResult::File { dir: self, name: "hello".to_owned() }),
///             _ => Err(Error::not_found(path)),
///         }
///     }
/// }
///
/// impl Directory for OneFile {
///     fn list(&self) -> Result<Listing> {
///         let mut listing = Listing::default();
///         listing.push("hello", ChildKind::File);
///         Ok(listing)
///     }
///
///     fn open_dir(&self, _name: &str, path: &VfsPath) -> Result<Arc<dyn Directory>> {
///         Err(Error::at(ErrorKind::NotADirectory, path))
///     }
///
///     fn follow_link(&self, _name: &str) -> Result<ChildKind> {
///         Err(Error::of(ErrorKind::NotFound))
///     }
///
///     fn stat(&self, _name: &str, path: VfsPath) -> Result<FileInfo> {
///         Ok(FileInfo::file(path, 5, Version::new("1")))
///     }
///
///     fn open_file(&self, _name: &str, _kind: ChildKind) -> Result<SearchableContent> {
///         Ok(SearchableContent::from(bytes::Bytes::from("hello")))
///     }
///
///     fn resolve(&self, name: &str) -> Result<ResolveResult> {
///         VfsPath::root().child(name).map(ResolveResult::at)
///     }
/// }
///
/// let tree: Arc<dyn Tree> = Arc::new(OneFile);
/// assert!(tree.find_dir(&VfsPath::root())?.is_some());
/// # Ok::<(), Error>(())
/// ```
pub trait Tree: Send + Sync + 'static {
    /// Looks up the entry at `path`, following links inside the tree.
    ///
    /// # Errors
    ///
    /// An error if there is neither a directory nor a regular file at `path`, or if a link leads outside the tree.
    fn lookup(self: Arc<Self>, path: &VfsPath) -> Result<LookupResult>;
}

impl dyn Tree {
    /// Returns the directory at `path`, or `None` if no directory exists there.
    ///
    /// # Errors
    ///
    /// The errors of [`Tree::lookup`], except for [absence](crate::Error::is_absence).
    pub fn find_dir(self: &Arc<Self>, path: &VfsPath) -> Result<Option<Arc<dyn Directory>>> {
        match Arc::clone(self).lookup(path) {
            Ok(LookupResult::Directory(dir)) => Ok(Some(dir)),
            Ok(LookupResult::File { .. }) => Ok(None),
            Err(error) if error.is_absence() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl fmt::Debug for dyn Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tree")
    }
}

/// An open directory of a [`Tree`], such as a file descriptor or a key of a map.
///
/// # Behaviour
///
/// * A directory returns every entry; the search applies visibility rules, patterns and order.
/// * Names are resolved relative to the directory, and never outside the tree.
/// * An entry that was listed may be gone when it is described or opened: its error, such as `not_found`, is a problem of the search.
pub trait Directory: Send + Sync + 'static {
    /// Lists the directory, unsorted, without following links.
    fn list(&self) -> Result<Listing>;

    /// Lists the entries whose names are in `names`. Missing names are ignored.
    ///
    /// Override this method if names can be looked up, so that a few names in a large directory are cheap.
    fn list_only(&self, names: &[String]) -> Result<Listing> {
        let mut listing = self.list()?;
        listing.retain(|name, _| names.iter().any(|other| other == name));
        Ok(listing)
    }

    /// Opens the directory `name`, whose path in results and errors is `path`. A link to a directory inside the tree is followed.
    fn open_dir(&self, name: &str, path: &VfsPath) -> Result<Arc<dyn Directory>>;

    /// Returns the type of the target of the link `name`: [`File`](ChildKind::File), [`Directory`](ChildKind::Directory) or
    /// [`Other`](ChildKind::Other).
    ///
    /// # Errors
    ///
    /// An error if the link leads outside the tree, into a loop, or to no file.
    fn follow_link(&self, name: &str) -> Result<ChildKind>;

    /// Returns the metadata of the entry `name`, following links, with the path `path`, which may not be that within this tree.
    fn stat(&self, name: &str, path: VfsPath) -> Result<FileInfo>;

    /// Returns the cached sketch of the file `name`, without opening the file.
    ///
    /// # Behaviour
    ///
    /// * The sketch is of the content that [`open_file`](Self::open_file) would return now. If that would fail, the method returns
    ///   `None`.
    /// * With [`ChildKind::File`], a link is not followed.
    /// * A tree without a cache returns `None`.
    fn prefilter(&self, _name: &str, _kind: ChildKind) -> Option<Sketch> {
        None
    }

    /// Opens the regular file `name` for reading.
    ///
    /// With [`ChildKind::Link`], a link inside the tree is followed; with [`ChildKind::File`], it is not. If the entry is no
    /// longer a regular file, the method fails without blocking.
    fn open_file(&self, name: &str, kind: ChildKind) -> Result<SearchableContent>;

    /// Resolves all links of the entry `name`, to a path of the backend.
    fn resolve(&self, name: &str) -> Result<ResolveResult>;
}

impl fmt::Debug for dyn Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Directory")
    }
}
