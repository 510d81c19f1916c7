//! What a backend lends to search: its directories and the bytes of its files.

mod mapped;
mod shared;
mod sketch;

use std::io::Read;

use bytes::Bytes;

use crate::error::Result;
use crate::path::VfsPath;
use crate::types::{FileInfo, Problem, Resolved};

pub use self::shared::{DynDirectory, DynTree, SharedTree};
pub use self::sketch::{Sketch, Sketcher, Sought};

/// What a directory entry is, without following it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// Anything else: a FIFO, a socket, a device. Never opened.
    Other,
}

/// The entries of one directory, in any order, and those that have no name here. A name that is in it twice counts once.
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
    /// One after the other: a directory may have a million, and most are of no interest.
    names: String,
    children: Vec<Child>,
    /// Entries that cannot be named, such as names that are not UTF-8. A path that does not start with `/` is taken to be
    /// the entry's name in this directory.
    pub problems: Vec<Problem>,
}

/// One entry of a listing, and where its name is.
#[derive(Debug, Clone, Copy)]
struct Child {
    start: usize,
    end: usize,
    kind: ChildKind,
}

/// About how long a name is, in bytes.
const NAME: usize = 16;

impl Listing {
    /// An empty listing with room for about `entries`.
    pub fn with_capacity(entries: usize) -> Self {
        let (names, children) = (String::with_capacity(entries * NAME), Vec::with_capacity(entries));
        Self { names, children, problems: Vec::new() }
    }

    /// Adds an entry; `name` is one component.
    pub fn push(&mut self, name: &str, kind: ChildKind) {
        let start = self.names.len();
        self.names.push_str(name);
        self.children.push(Child { start, end: self.names.len(), kind });
    }

    /// Forgets all entries and problems, and keeps the room they took.
    pub fn clear(&mut self) {
        self.names.clear();
        self.children.clear();
        self.problems.clear();
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.children.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    /// The entries: name and kind.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, ChildKind)> {
        (0..self.len()).map(|index| self.entry(index))
    }

    /// Keeps those entries that `keep` says.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, ChildKind) -> bool) {
        let names = &self.names;
        self.children.retain(|child| keep(&names[child.start..child.end], child.kind));
    }

    /// The entry at `index`, in the order they were added.
    ///
    /// # Panics
    ///
    /// If there are not so many.
    pub fn entry(&self, index: usize) -> (&str, ChildKind) {
        let child = self.children[index];
        (&self.names[child.start..child.end], child.kind)
    }

    /// The name of the entry at `index`, in the order they were added.
    ///
    /// # Panics
    ///
    /// If there are not so many.
    pub fn name(&self, index: usize) -> &str {
        self.entry(index).0
    }
}

/// What a search starts at.
#[derive(Debug, Clone)]
pub enum Located<D> {
    /// A directory.
    Directory(D),
    /// A file, by the directory that holds it. Links were followed.
    File {
        /// The directory.
        dir: D,
        /// The file's name in it.
        name: String,
    },
}

/// The content of a file that was opened for searching.
pub enum Opened {
    /// It is in memory.
    Bytes {
        /// The content.
        bytes: Bytes,
        /// Whether it holds a NUL in its first mebibyte, where that is known already.
        is_binary: Option<bool>,
        /// Who wants to know of it, if anybody.
        learn: Option<Learn>,
    },
    /// It is read as it is searched.
    Reader {
        /// The bytes from the beginning.
        reader: Box<dyn Read + Send>,
        /// How many there are likely to be; only a hint. Where as many came and a read had room for more, it is at its end.
        size: u64,
        /// Who wants to know of it, if anybody.
        learn: Option<Learn>,
    },
}

/// Takes a sketch of the whole content of a file, for [`Tree::known`]. A search that makes none drops it.
pub type Learn = Box<dyn FnOnce(Sketch) + Send>;

impl Opened {
    /// A content that is read as it is searched, of about `size` bytes.
    pub fn reader(reader: impl Read + Send + 'static, size: u64) -> Self {
        Self::Reader { reader: Box::new(reader), size, learn: None }
    }
}

impl From<Bytes> for Opened {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes { bytes, is_binary: None, learn: None }
    }
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Opened::Bytes { bytes, is_binary, .. } => {
                let size = bytes.len();
                f.debug_struct("Bytes").field("size", &size).field("is_binary", is_binary).finish_non_exhaustive()
            }
            Opened::Reader { size, .. } => f.debug_struct("Reader").field("size", size).finish_non_exhaustive(),
        }
    }
}

/// A tree of files that can be listed and searched.
///
/// # Behaviour
///
/// * Methods may block: they are called from blocking threads and workers, never from async code.
/// * A tree shows every entry; visibility, patterns and order are the search's business.
/// * Names are resolved relative to the held directory and never leave the tree.
/// * A directory is cheap to clone.
///
/// # Errors
///
/// Errors need not name a path: the search adds it.
pub trait Tree: Send + Sync + 'static {
    /// A directory that is held: a descriptor, or a place in a map.
    type Dir: Clone + Send + Sync + 'static;

    /// Finds where a search starts, following links inside the tree.
    fn locate(&self, path: &VfsPath) -> Result<Located<Self::Dir>>;

    /// Lists a directory, not sorted, not following links.
    fn list(&self, dir: &Self::Dir) -> Result<Listing>;

    /// As [`Tree::list`], of those entries alone whose names are in `names`; a name that is not there is left out.
    ///
    /// For trees that can look a name up, which is a matter of a few names where a directory may hold a million.
    fn list_only(&self, dir: &Self::Dir, names: &[String]) -> Result<Listing> {
        let mut listing = self.list(dir)?;
        listing.retain(|name, _| names.iter().any(|wanted| wanted == name));
        Ok(listing)
    }

    /// Opens the directory `name` of `dir`; `path` is where it is. A link to a directory inside the tree is followed.
    fn enter(&self, dir: &Self::Dir, name: &str, path: &VfsPath) -> Result<Self::Dir>;

    /// Says what the link `name` of `dir` leads to, as [`ChildKind::File`], [`Directory`](ChildKind::Directory) or
    /// [`Other`](ChildKind::Other); an error where it leads outside, in a circle or nowhere.
    fn follow(&self, dir: &Self::Dir, name: &str) -> Result<ChildKind>;

    /// Describes the entry `name` of `dir`, following links, as `path`.
    fn info(&self, dir: &Self::Dir, name: &str, path: VfsPath) -> Result<FileInfo>;

    /// What is remembered of the file `name` of `dir`, without opening it: of the very content that [`Tree::open`] would give
    /// now, and only where that would give one.
    ///
    /// With [`ChildKind::File`] a link is not followed. For trees that learn from searches; the others know nothing.
    fn known(&self, _dir: &Self::Dir, _name: &str, _kind: ChildKind) -> Option<Sketch> {
        None
    }

    /// Opens the regular file `name` of `dir` for reading. With [`ChildKind::Link`] a link inside the tree is followed;
    /// with [`ChildKind::File`] it is not. Anything that is not a regular file by now is refused without blocking.
    fn open(&self, dir: &Self::Dir, name: &str, kind: ChildKind) -> Result<Opened>;

    /// Says where the entry `name` of `dir` really is in the backend, links followed.
    fn resolve(&self, dir: &Self::Dir, name: &str) -> Result<Resolved>;
}
